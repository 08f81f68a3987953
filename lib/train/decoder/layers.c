/* layers.c -- a transformer's layers but attention, as operations of a pass: forward, then back; see
 * trainer.h. */
#include "../trainer.h"

static const train_placement *place(const train_build *b, size_t layer)
{
    return &b->plan->layers[layer];
}

static const train_tensor *model_of(const train_build *b, size_t layer)
{
    return train_param_model(&b->t->params[b->t->weight_of[layer]]);
}

/* ---- tokens and places ---- */

const train_tensor *train_embed_forward(train_build *b, size_t i, const train_tensor *x)
{
    const size_t rows = b->p->images * b->t->run->settings.decoder.context;
    train_do *d = train_add(b, WORK_EMBED, i, "out", rows, b->t->run->layers[i].outputs,
                            &place(b, i)->format[TRAIN_OUT]);
    (void)x;
    d->x = model_of(b, i);
    d->tokens = b->p->tokens;
    d->counts = &b->t->act;
    return d->results[0].to;
}

const train_tensor *train_positions_forward(train_build *b, size_t i, const train_tensor *x)
{
    train_do *d = train_add(b, WORK_POSITIONS, i, "out", x->rows, x->cols, &place(b, i)->format[TRAIN_OUT]);
    d->x = x;
    d->y = model_of(b, i);
    d->counts = &b->t->act;
    return d->results[0].to;
}

/* The gradient of a table; what comes goes on. */
static const train_tensor *table_backward(train_build *b, train_work work, size_t i, const train_tensor *dy)
{
    dy = train_in_format(b, i, "agrad", dy, &place(b, i)->format[TRAIN_AGRAD], &b->t->agrad);
    train_do *d = train_add_bare(b, work);
    train_add_gradient(b, d, b->t->weight_of[i]);
    d->x = dy;
    d->tokens = b->p->tokens;
    d->counts = &b->t->wgrad;
    return dy;
}

const train_tensor *train_embed_backward(train_build *b, size_t i, const train_tensor *dy)
{
    return table_backward(b, WORK_EMBED_BACK, i, dy);
}

const train_tensor *train_positions_backward(train_build *b, size_t i, const train_tensor *dy)
{
    return table_backward(b, WORK_POSITIONS_BACK, i, dy);
}

/* ---- norms ---- */

const train_tensor *train_norm_forward(train_build *b, size_t i, const train_tensor *x)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const train_placement *l = place(b, i);
    const train_tensor *bias = NULL;
    x = train_in_format(b, i, "act", x, &l->format[TRAIN_ACT], &b->t->act);
    const train_tensor *weight = train_entering(b, i, b->t->weight_of[i], "weight.in");
    if (b->t->bias_of[i] >= 0)
        bias = train_entering(b, i, b->t->bias_of[i], "bias.in");
    train_do *d = train_add(b, WORK_ROWNORM, i, "out", x->rows, x->cols, &l->format[TRAIN_OUT]);
    train_add_result(b, d, i, "mean", x->rows, 1, fp32);
    train_add_result(b, d, i, "inverse", x->rows, 1, fp32);
    d->x = x;
    d->weight = weight;
    d->bias = bias;
    d->counts = &b->t->act;
    b->layer[i] = d;
    return d->results[0].to;
}

/* The layer that adds the input of layer i again, or 0. */
static size_t add_from(const train_build *b, size_t i)
{
    const train_run *r = b->t->run;
    for (size_t k = i + 1; k < r->n_layers; k++)
        if (r->layers[k].type == TRAIN_ADD)
            return r->layers[k].from == i ? k : 0;
    return 0;
}

const train_tensor *train_norm_backward(train_build *b, size_t i, const train_tensor *dy)
{
    const size_t add = add_from(b, i);
    const train_tensor *dx = train_norm_back(b, i, WORK_ROWNORM_BACK, dy);
    if (!add)
        return dx;
    train_do *sum = train_add(b, WORK_ADD, add, "dgrad", dy->rows, dy->cols, &place(b, add)->format[TRAIN_DGRAD]);
    sum->x = dx;
    sum->y = b->around[add];
    sum->counts = &b->t->agrad;
    return sum->results[0].to;
}

/* ---- activations ---- */

const train_tensor *train_activation_forward(train_build *b, size_t i, const train_tensor *x)
{
    train_do *d = train_add(b, WORK_ACTIVATE, i, "out", x->rows, b->t->run->layers[i].outputs, x->format);
    d->x = x;
    d->counts = &b->t->act;
    return d->results[0].to;
}

const train_tensor *train_activation_backward(train_build *b, size_t i, const train_tensor *dy)
{
    train_do *d = train_add(b, WORK_ACTIVATE_BACK, i, "dgrad", dy->rows, b->t->run->layers[i].inputs, dy->format);
    d->x = b->input[i];
    d->y = dy;
    d->counts = &b->t->agrad;
    return d->results[0].to;
}

/* ---- the stream ---- */

const train_tensor *train_add_forward(train_build *b, size_t i, const train_tensor *x)
{
    train_do *d = train_add(b, WORK_ADD, i, "out", x->rows, x->cols, &place(b, i)->format[TRAIN_OUT]);
    d->x = x;
    d->y = b->input[b->t->run->layers[i].from];
    d->counts = &b->t->act;
    return d->results[0].to;
}

const train_tensor *train_add_backward(train_build *b, size_t i, const train_tensor *dy)
{
    dy = train_in_format(b, i, "agrad", dy, &place(b, i)->format[TRAIN_AGRAD], &b->t->agrad);
    b->around[i] = dy;
    return dy;
}
