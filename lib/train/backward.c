/* backward.c -- the operations of a backward pass; see trainer.h. */
#include "trainer.h"

/* The weight as the gradient of the input reads it: row c, column (ky 3 + kx) O + o is
 * W[o, 2 - ky, 2 - kx, c]; so dx = im2col(dy) times its transpose:
 *
 *   dx[n, y, x, c] = sum over ky, kx, o of dy[n, y + ky - 1, x + kx - 1, o] W[o, 2 - ky, 2 - kx,
 *   c] */
static void turned_weight(int32_t *index, const train_layer *l, size_t images, size_t channels)
{
    const int32_t inputs = (int32_t)l->inputs, outputs = (int32_t)l->outputs;
    (void)images;
    (void)channels;
    for (int32_t c = 0; c < inputs; c++)
        for (int32_t k = 0; k < 9; k++)
            for (int32_t o = 0; o < outputs; o++)
                *index++ = (o * 9 + 8 - k) * inputs + c;
}

/* ---- products ---- */

static train_operand operand_agrad(train_build *b, size_t i, const train_tensor *dy, int input)
{
    const train_layer *l = &b->t->run->layers[i];
    const int blocks = train_in_blocks(b, i, TRAIN_AGRAD);
    train_counts *counts = &b->t->agrad;
    train_operand o = {.transposed = blocks};
    o.base = train_in_format(b, i, "agrad", dy, &b->plan->layers[i].format[TRAIN_AGRAD], counts);
    o.second = blocks ? train_copy_for_wgrad(b, i, TRAIN_AGRAD, o.base, counts)
                      : train_copy_of(b, i, TRAIN_AGRAD, ".q", o.base, 0, counts);
    o.first = blocks ? o.base : o.second;
    if (!input)
        return o;
    if (l->type == TRAIN_CONV) {
        const size_t columns = 9 * (size_t)l->outputs;
        const void *index = train_index(b, i, dy->rows * columns, l->outputs, train_columns);
        o.first = train_gathered(b, i, "agrad.columns", o.first, dy->rows, columns, index);
    }
    if (blocks)
        o.first = train_copy_of(b, i, TRAIN_AGRAD, ".q", o.first, 0, counts);
    return o;
}

/* The weight for dx, in operand second and transposed. */
static void operand_weight(train_build *b, size_t i)
{
    const train_layer *l = &b->t->run->layers[i];
    const int blocks = train_in_blocks(b, i, TRAIN_WEIGHT);
    const int conv = l->type == TRAIN_CONV;
    train_operand *o = &b->weight[i];
    o->second = blocks ? o->base : o->first;
    o->transposed = blocks || conv;
    if (conv) {
        const size_t columns = 9 * (size_t)l->outputs;
        const void *index = train_index(b, i, l->inputs * columns, 0, turned_weight);
        o->second = train_gathered(b, i, "weight.turned", o->second, l->inputs, columns, index);
    }
    if (blocks)
        o->second = train_copy_of(b, i, TRAIN_WEIGHT, ".qt", o->second, !conv, &b->t->act);
}

static void gradients(train_build *b, size_t i, const train_operand *dy)
{
    train *t = b->t;
    train_do *d = train_add_bare(b, WORK_GEMM);
    train_add_gradient(b, d, t->weight_of[i]);
    if (t->params[t->weight_of[i]].layer != i)
        train_hide(d);
    train_product(b, d, i, dy->second, !dy->transposed, b->act[i].second, b->act[i].transposed, NULL, &t->wgrad);
    if (t->bias_of[i] < 0)
        return;
    d = train_add_bare(b, WORK_SUMS);
    train_add_gradient(b, d, t->bias_of[i]);
    d->x = dy->base;
    d->counts = &t->wgrad;
    d->when = WHEN_LAST;
}

static const train_tensor *product_layer(train_build *b, size_t i, const train_tensor *dy)
{
    const train_layer *l = &b->t->run->layers[i];
    const train_operand o = operand_agrad(b, i, dy, i > 0);
    const train_tensor *dx = NULL;
    if (i > 0) {
        operand_weight(b, i);
        train_do *d = train_add(b, WORK_GEMM, i, "dgrad", o.first->rows, l->inputs,
                                &b->plan->layers[i].format[TRAIN_DGRAD]);
        train_product(b, d, i, o.first, 0, b->weight[i].second, b->weight[i].transposed, NULL, &b->t->agrad);
        dx = d->results[0].to;
    }
    gradients(b, i, &o);
    return dx;
}

/* ---- other layers ---- */

static const train_tensor *norm_layer(train_build *b, size_t i, const train_tensor *dy)
{
    return train_norm_back(b, i, WORK_NORM_BACK, dy);
}

static const train_tensor *relu_layer(train_build *b, size_t i, const train_tensor *dy)
{
    train_do *d = train_add(b, WORK_RELU_BACK, i, "dgrad", dy->rows, dy->cols, dy->format);
    d->x = dy;
    d->y = b->layer[i]->results[0].to;
    return d->results[0].to;
}

static const train_tensor *pool_layer(train_build *b, size_t i, const train_tensor *dy)
{
    const train_do *forward = b->layer[i];
    train_do *d = train_add(b, WORK_POOL_BACK, i, "dgrad", forward->x->rows, dy->cols, dy->format);
    d->x = dy;
    d->y = forward->x;
    d->pool = forward->pool;
    return d->results[0].to;
}

static const train_tensor *flatten_layer(train_build *b, size_t i, const train_tensor *dy)
{
    const train_layer *l = &b->t->run->layers[i];
    const void *index = train_index(b, i, dy->rows * dy->cols, l->inputs, train_in_order);
    return train_gathered(b, i, "dgrad", dy, dy->rows * l->side * l->side, l->inputs, index);
}

static const train_tensor *loss_layer(train_build *b, size_t i, const train_tensor *dy)
{
    (void)dy;
    return b->layer[i]->results[0].to;
}

void train_build_backward(train_build *b)
{
    static train_builder *const layers[TRAIN_TYPES] = {[TRAIN_LINEAR] = product_layer,
                                                       [TRAIN_CONV] = product_layer,
                                                       [TRAIN_BATCHNORM] = norm_layer,
                                                       [TRAIN_RELU] = relu_layer,
                                                       [TRAIN_MAXPOOL] = pool_layer,
                                                       [TRAIN_FLATTEN] = flatten_layer,
                                                       [TRAIN_LOSS] = loss_layer,
                                                       [TRAIN_EMBED] = train_embed_backward,
                                                       [TRAIN_POSITIONS] = train_positions_backward,
                                                       [TRAIN_NORM] = train_norm_backward,
                                                       [TRAIN_HEADS] = train_heads_backward,
                                                       [TRAIN_SCORES] = train_scores_backward,
                                                       [TRAIN_SOFTMAX] = train_softmax_backward,
                                                       [TRAIN_CONTEXT] = train_context_backward,
                                                       [TRAIN_ACTIVATION] = train_activation_backward,
                                                       [TRAIN_ADD] = train_add_backward};
    const train_tensor *dy = NULL;
    const size_t from = b->p->n;
    for (size_t i = b->t->run->n_layers; i-- > 0 && !b->failed;)
        dy = layers[b->t->run->layers[i].type](b, i, dy);
    for (size_t i = from; i < b->p->n; i++)
        b->p->list[i]->backward = 1;
}
