/* forward.c -- the operations of a forward pass; see trainer.h.
 *
 * Convolutions are gathers and products; the input gradient is one chain over (y, x, output channel), so nothing is
 * scattered or added by atomics. mpsim/convolution.h gives the same bits (tests/dot/t-convolution-orders) but is
 * not used: the gathered matrix is a tensor of the trainer, with a digest, and what block recipes quantise. On the
 * sizes of --net cnn the forward functions there take 0.95 to 1.8 of the time, on wider ones 0.87 to 0.95. */
#include "trainer.h"

static const train_placement *place(const train_build *b, size_t layer)
{
    return &b->plan->layers[layer];
}

/* ---- products ---- */

static void operand_act(train_build *b, size_t i, const train_tensor *x)
{
    const train_layer *l = &b->t->run->layers[i];
    const int blocks = train_in_blocks(b, i, TRAIN_ACT);
    train_counts *counts = &b->t->act;
    train_operand *o = &b->act[i];
    o->base = train_in_format(b, i, "act", x, &place(b, i)->format[TRAIN_ACT], counts);
    o->first = blocks ? o->base : train_copy_of(b, i, TRAIN_ACT, ".q", o->base, 0, counts);
    if (l->type == TRAIN_CONV) {
        const size_t columns = 9 * (size_t)l->inputs;
        const void *index = train_index(b, i, x->rows * columns, l->inputs, train_columns);
        o->first = train_gathered(b, i, "columns", o->first, x->rows, columns, index);
    }
    o->second = o->first;
    o->transposed = blocks;
    if (!blocks)
        return;
    x = o->first;
    o->first = train_copy_of(b, i, TRAIN_ACT, ".q", x, 0, counts);
    if (b->p->training)
        o->second = train_copy_for_wgrad(b, i, TRAIN_ACT, x, counts);
}

static const train_tensor *product_layer(train_build *b, size_t i, const train_tensor *x)
{
    const train_layer *l = &b->t->run->layers[i];
    const train_tensor *bias = NULL;
    operand_act(b, i, x);
    b->weight[i].base = train_entering(b, i, b->t->weight_of[i], "weight.in");
    b->weight[i].first = train_copy_of(b, i, TRAIN_WEIGHT, ".q", b->weight[i].base, 0, &b->t->act);
    if (b->t->bias_of[i] >= 0)
        bias = train_entering(b, i, b->t->bias_of[i], "bias.in");
    train_do *d = train_add(b, WORK_GEMM, i, "out", b->act[i].first->rows, l->outputs, &place(b, i)->format[TRAIN_OUT]);
    train_product(b, d, i, b->act[i].first, 0, b->weight[i].first, 1, bias, &b->t->act);
    b->layer[i] = d;
    return d->results[0].to;
}

/* ---- other layers ---- */

static const train_tensor *norm_layer(train_build *b, size_t i, const train_tensor *x)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const train_placement *l = place(b, i);
    x = train_in_format(b, i, "act", x, &l->format[TRAIN_ACT], &b->t->act);
    const train_tensor *weight = train_entering(b, i, b->t->weight_of[i], "weight.in");
    const train_tensor *bias = train_entering(b, i, b->t->bias_of[i], "bias.in");
    train_do *d = train_add(b, b->p->training ? WORK_NORM : WORK_NORM_TEST, i, "out", x->rows, x->cols,
                            &l->format[TRAIN_OUT]);
    if (b->p->training) {
        train_add_result(b, d, i, "mean", 1, x->cols, fp32);
        train_add_result(b, d, i, "inverse", 1, x->cols, fp32);
    }
    d->x = x;
    d->weight = weight;
    d->bias = bias;
    d->running[0] = &b->t->running[i][0];
    d->running[1] = &b->t->running[i][1];
    d->counts = &b->t->act;
    b->layer[i] = d;
    return d->results[0].to;
}

static const train_tensor *relu_layer(train_build *b, size_t i, const train_tensor *x)
{
    train_do *d = train_add(b, WORK_RELU, i, "out", x->rows, x->cols, x->format);
    d->x = x;
    b->layer[i] = d;
    return d->results[0].to;
}

static const train_tensor *pool_layer(train_build *b, size_t i, const train_tensor *x)
{
    const train_layer *l = &b->t->run->layers[i];
    train_do *d = train_add(b, WORK_POOL, i, "out", x->rows / 4, x->cols, x->format);
    d->x = x;
    d->pool =
        (train_pool){.images = b->p->images, .height = l->side, .width = l->side, .channels = l->inputs, .size = 2};
    b->layer[i] = d;
    return d->results[0].to;
}

static const train_tensor *flatten_layer(train_build *b, size_t i, const train_tensor *x)
{
    const train_layer *l = &b->t->run->layers[i];
    const void *index = train_index(b, i, x->rows * x->cols, l->inputs, train_in_order);
    return train_gathered(b, i, "out", x, b->p->images, l->outputs, index);
}

static const train_tensor *loss_layer(train_build *b, size_t i, const train_tensor *x)
{
    const train_placement *l = place(b, i);
    x = train_in_format(b, i, "act", x, &l->format[TRAIN_ACT], &b->t->act);
    train_do *d = train_add_bare(b, WORK_LOSS);
    if (b->p->training)
        train_add_result(b, d, i, "dgrad", x->rows, x->cols, &l->format[TRAIN_DGRAD]);
    d->x = x;
    d->counts = &b->t->agrad;
    b->layer[i] = d;
    return x;
}

void train_build_forward(train_build *b)
{
    static train_builder *const layers[TRAIN_TYPES] = {[TRAIN_LINEAR] = product_layer,
                                                       [TRAIN_CONV] = product_layer,
                                                       [TRAIN_BATCHNORM] = norm_layer,
                                                       [TRAIN_RELU] = relu_layer,
                                                       [TRAIN_MAXPOOL] = pool_layer,
                                                       [TRAIN_FLATTEN] = flatten_layer,
                                                       [TRAIN_LOSS] = loss_layer,
                                                       [TRAIN_EMBED] = train_embed_forward,
                                                       [TRAIN_POSITIONS] = train_positions_forward,
                                                       [TRAIN_NORM] = train_norm_forward,
                                                       [TRAIN_HEADS] = train_heads_forward,
                                                       [TRAIN_SCORES] = train_scores_forward,
                                                       [TRAIN_SOFTMAX] = train_softmax_forward,
                                                       [TRAIN_CONTEXT] = train_context_forward,
                                                       [TRAIN_ACTIVATION] = train_activation_forward,
                                                       [TRAIN_ADD] = train_add_forward};
    const train_tensor *x = &b->p->pixels;
    for (size_t i = 0; i < b->t->run->n_layers && !b->failed; i++) {
        b->input[i] = x;
        x = layers[b->t->run->layers[i].type](b, i, x);
    }
}
