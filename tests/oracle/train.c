/* train.c -- parameters, forward, backward, a step. */
#include "train.h"

#include "trainparts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

/* uniform in +-bound: 24 bits of a word */
static float initial(const oracle_train *o, const parameter *p, size_t i, double bound)
{
    char name[2 * TRAIN_NAME];
    (void)snprintf(name, sizeof name, "init %s", p->name);
    const uint32_t w = mpsim_rng_word(o->run->settings.seed, oracle_stream(name), i);
    return (float)(((double)(w / 256) / 8388608 - 1) * bound);
}

static void parameter_new(const oracle_train *o, layer *l, int k, size_t rows, size_t cols, double fan_in)
{
    parameter *p = &l->p[k];
    p->exists = 1;
    (void)snprintf(p->name, sizeof p->name, "%s.%s", l->is->name, k ? "bias" : "weight");
    const oracle_format *kept = oracle_format_of(&l->in->kept), *state = oracle_format_of(&l->in->state);
    shape(&p->kept, rows, cols, kept);
    shape(&p->m, rows, cols, state);
    shape(&p->v, rows, cols, state);
    const double bound = (k ? 1 : o->run->settings.gain) / sqrt(fan_in);
    for (size_t i = 0; i < rows * cols; i++)
        p->kept.v[i] = l->is->type == TRAIN_BATCHNORM ? (float)!k : oracle_to(kept, (double)initial(o, p, i, bound));
    refresh(o, l, p);
}

static void layer_new(oracle_train *o, layer *l)
{
    const size_t in = l->is->inputs, out = l->is->outputs;
    if (l->is->type == TRAIN_LINEAR || l->is->type == TRAIN_CONV) {
        const size_t fan = l->is->type == TRAIN_CONV ? 9 * in : in;
        parameter_new(o, l, 0, out, fan, (double)fan);
        if (l->is->type == TRAIN_LINEAR)
            parameter_new(o, l, 1, 1, out, (double)fan);
    }
    if (l->is->type == TRAIN_BATCHNORM) {
        parameter_new(o, l, 0, 1, out, 1);
        parameter_new(o, l, 1, 1, out, 1);
        shape(&l->running[0], 1, out, oracle_format_find(NULL));
        shape(&l->running[1], 1, out, oracle_format_find(NULL));
        for (size_t i = 0; i < out; i++)
            l->running[1].v[i] = 1;
    }
}

static void converted(const oracle_train *o, const layer *l, parameter *p)
{
    matrix *const all[] = {&p->kept, &p->m, &p->v};
    for (int i = 0; i < 3; i++) {
        matrix t = {0};
        cast(&t, all[i], oracle_format_of(i ? &l->in->state : &l->in->kept));
        free(all[i]->v);
        *all[i] = t;
    }
    refresh(o, l, p);
}

/* Scales and histories, anew unless the plan before had the same. */
static void scales_new(oracle_train *o, const train_plan *before, layer *l)
{
    for (int q = 0; q < QUANTISED; q++) {
        const mpsim_block_recipe *r = o->plan->delayed ? l->in->recipe[oracle_roles[q]] : NULL;
        mpsim_delayed_config c = o->plan->history;
        c.fp8_max = r ? (float)oracle_format_find(r->element)->max : 0;
        const mpsim_delayed_config *old = &l->scale[q].config;
        const int goes_on = l->history[q] && before && c.history == old->history && c.algorithm == old->algorithm &&
                            c.margin == old->margin && c.fp8_max == old->fp8_max;
        if (r && goes_on)
            continue;
        free(l->history[q]);
        l->history[q] = NULL;
        if (!r)
            continue;
        l->history[q] = calloc(c.history, sizeof *l->history[q]);
        if (!l->history[q] || mpsim_delayed_init(&l->scale[q], &c, l->history[q]) != MPSIM_OK)
            abort();
    }
}

static int same_scaler(const mpsim_scaler_config *a, const mpsim_scaler_config *b)
{
    return strcmp(a->name, b->name) == 0 && a->init == b->init && a->window == b->window && a->growth == b->growth &&
           a->backoff == b->backoff;
}

void plan_now(oracle_train *o)
{
    const train_plan *before = o->plan;
    for (size_t i = 0; i < o->run->n_plans && o->run->plans[i].from <= o->step; i++)
        o->plan = &o->run->plans[i];
    if (o->plan == before)
        return;
    if (!before || !same_scaler(&before->scaler, &o->plan->scaler)) {
        o->scale = (float)o->plan->scaler.init;
        o->clean = 0;
        if (mpsim_scaler_init(&o->scaler, &o->plan->scaler) != MPSIM_OK)
            abort();
    }
    for (size_t i = 0; i < o->n; i++) {
        layer *l = &o->layers[i];
        l->in = &o->plan->layers[i];
        for (int q = 0; q < QUANTISED; q++) {
            free(l->q[q].v);
            l->q[q].v = NULL;
        }
        for (int k = 0; before && k < 2; k++)
            if (l->p[k].exists)
                converted(o, l, &l->p[k]);
        scales_new(o, before, l);
    }
}

oracle_train *oracle_train_open(const train_run *r)
{
    oracle_train *o = calloc(1, sizeof *o);
    if (!o)
        abort();
    o->run = r;
    o->n = r->n_layers;
    o->math = oracle_format_find(r->settings.math);
    for (size_t i = 0; i < o->n; i++)
        o->layers[i].is = &r->layers[i];
    plan_now(o);
    for (size_t i = 0; i < o->n; i++)
        layer_new(o, &o->layers[i]);
    return o;
}

/* ---- forward ---- */

static void pooled(layer *l)
{
    const size_t s = l->is->side, half = s / 2, c = l->is->inputs;
    const size_t images = l->act.rows / (s * s);
    for (size_t i = 0; i < images * half * half * c; i++) {
        const size_t k = i % c, x = i / c % half, y = i / c / half % half, n = i / c / half / half;
        float best = 0;
        for (size_t t = 0; t < 4; t++) {
            const float v = l->act.v[((n * s + 2 * y + t / 2) * s + 2 * x + t % 2) * c + k];
            if (t == 0 || (!isnan(best) && (isnan(v) || v > best)))
                best = v;
        }
        l->out.v[i] = best;
    }
}

static oracle_batchnorm normal(const oracle_train *o, const layer *l, const oracle_format *f)
{
    return (oracle_batchnorm){l->act.rows, l->act.cols, 1e-5f, 0.1f, o->math, f};
}

static void normalise(oracle_train *o, layer *l)
{
    const oracle_batchnorm b = normal(o, l, l->out.f);
    if (o->testing) {
        oracle_inference(&b, l->out.v, l->act.v, l->running[0].v, l->running[1].v, l->p[0].used.v, l->p[1].used.v);
        return;
    }
    shape(&l->mean, 1, l->act.cols, oracle_format_find(NULL));
    shape(&l->inverse, 1, l->act.cols, oracle_format_find(NULL));
    oracle_forward(&b, l->out.v, l->mean.v, l->inverse.v, l->running[0].v, l->running[1].v, l->act.v, l->p[0].used.v,
                   l->p[1].used.v);
}

void linear(oracle_train *o, layer *l, const oracle_format *f)
{
    const int conv = l->is->type == TRAIN_CONV, blocks = in_blocks(l, ACT_Q);
    matrix a = l->act, w = l->p[0].used;
    if (!blocks)
        a = entering(o, l, ACT_Q, &a);
    if (conv) {
        windows(&l->columns, &a, l->is->side);
        a = l->columns;
    }
    a = blocks ? in_pieces(o, l, ACT_Q, &a, COPY_ROWS) : a;
    w = blocks ? in_pieces(o, l, WEIGHT_Q, &w, COPY_ROWS) : entering(o, l, WEIGHT_Q, &w);
    product(o, &l->out, f, a, 0, w, 1, l->p[1].exists ? &l->p[1].used : NULL);
}

/* Layers that pass on the format that comes. */
static int is_plain(const layer *l)
{
    return l->is->type == TRAIN_RELU || l->is->type == TRAIN_MAXPOOL || l->is->type == TRAIN_FLATTEN;
}

static void forward_layer(oracle_train *o, layer *l, const matrix *x)
{
    const int plain = is_plain(l);
    const oracle_format *f = plain ? x->f : oracle_format_of(&l->in->format[TRAIN_OUT]);
    cast(&l->act, x, plain ? x->f : oracle_format_of(&l->in->format[TRAIN_ACT]));
    const size_t rows = l->act.rows, s = l->is->side;
    for (int k = 0; k < 2 && !o->testing; k++)
        if (l->p[k].exists)
            cast(&l->p[k].entered, &l->p[k].used, l->p[k].used.f);
    switch (l->is->type) {
    case TRAIN_LINEAR:
    case TRAIN_CONV:
        linear(o, l, f);
        break;
    case TRAIN_BATCHNORM:
        shape(&l->out, rows, l->act.cols, f);
        normalise(o, l);
        break;
    case TRAIN_RELU:
        cast(&l->out, &l->act, f);
        for (size_t i = 0; i < rows * l->act.cols; i++)
            if (!(l->out.v[i] > 0) && !isnan(l->out.v[i]))
                l->out.v[i] = 0;
        break;
    case TRAIN_MAXPOOL:
        shape(&l->out, rows / 4, l->act.cols, f);
        pooled(l);
        break;
    default: /* TRAIN_FLATTEN */
        cast(&l->out, &l->act, f);
        l->out.rows = rows / (s * s);
        l->out.cols = l->act.cols * s * s;
    }
}

/* All layers but the loss; the logits as the loss takes them. */
static layer *forward(oracle_train *o, const uint32_t *images, size_t n)
{
    matrix x = {0};
    const int flat = o->layers[0].is->side == 0;
    shape(&x, flat ? n : n * TRAIN_PIXELS, flat ? TRAIN_PIXELS : 1, oracle_format_find(NULL));
    for (size_t i = 0; i < n; i++)
        o->labels[i] = train_digit(images[i], x.v + i * TRAIN_PIXELS);
    o->images = n;
    const matrix *in = &x;
    for (size_t i = 0; i + 1 < o->n; i++) {
        forward_layer(o, &o->layers[i], in);
        in = &o->layers[i].out;
    }
    layer *loss = &o->layers[o->n - 1];
    cast(&loss->act, in, oracle_format_of(&loss->in->format[TRAIN_ACT]));
    free(x.v);
    return loss;
}

float mean_loss(const oracle_train *o, const float *losses, size_t n)
{
    const float sum = oracle_sum(o->math, losses, n, 1, 256);
    return oracle_div(o->math, sum, oracle_to(o->math, (double)(float)n));
}

/* ---- backward ---- */

/* dW = dy^T x */
static void weight_back(oracle_train *o, layer *l, matrix g)
{
    const layer *of = l->shared ? l->shared : l;
    const oracle_format *f = oracle_format_of(&of->in->format[TRAIN_WGRAD]);
    const matrix x = l->is->type == TRAIN_CONV               ? l->columns
                     : l->q[ACT_Q].v && !in_blocks(l, ACT_Q) ? l->q[ACT_Q]
                                                             : l->act;
    if (in_blocks(l, ACT_Q))
        product(o, &l->p[0].grad, f, in_pieces(o, l, AGRAD_Q, &g, COPY_WEIGHT), 0,
                in_pieces(o, l, ACT_Q, &x, COPY_WEIGHT), 1, NULL);
    else
        product(o, &l->p[0].grad, f, g, 1, x, 0, NULL);
}

/* db: sums of dy before it is quantised */
static void bias_back(layer *l)
{
    const oracle_format *f = oracle_format_of(&l->in->format[TRAIN_WGRAD]);
    shape(&l->p[1].grad, 1, l->agrad.cols, f);
    for (size_t j = 0; j < l->agrad.cols; j++)
        l->p[1].grad.v[j] = oracle_to(
            f, (double)oracle_sum(oracle_format_find(NULL), l->agrad.v + j, l->agrad.rows, l->agrad.cols, 256));
}

/* dx = dy W */
static void input_back(oracle_train *o, layer *l, matrix g)
{
    const oracle_format *f = oracle_format_of(&l->in->format[TRAIN_DGRAD]);
    const int conv = l->is->type == TRAIN_CONV, blocks = in_blocks(l, AGRAD_Q);
    const matrix w = l->q[WEIGHT_Q].v && !blocks ? l->q[WEIGHT_Q] : l->p[0].used;
    if (conv) {
        windows(&l->around, &g, l->is->side);
        turned(&l->turn, &w, l->is->inputs);
    }
    if (blocks)
        product(o, &l->dgrad, f, in_pieces(o, l, AGRAD_Q, conv ? &l->around : &g, COPY_ROWS), 0,
                in_pieces(o, l, WEIGHT_Q, conv ? &l->turn : &w, conv ? COPY_TURNED : COPY_COLUMNS), 1, NULL);
    else
        product(o, &l->dgrad, f, conv ? l->around : g, 0, conv ? l->turn : w, conv, NULL);
}

void linear_back(oracle_train *o, layer *l, int first)
{
    const matrix g = in_blocks(l, AGRAD_Q) ? l->agrad : entering(o, l, AGRAD_Q, &l->agrad);
    weight_back(o, l, g);
    if (l->p[1].exists)
        bias_back(l);
    if (!first)
        input_back(o, l, g);
}

static void pool_back(layer *l)
{
    const size_t s = l->is->side, half = s / 2, c = l->is->inputs;
    for (size_t i = 0; i < l->agrad.rows * c; i++) {
        const size_t k = i % c, x = i / c % half, y = i / c / half % half, n = i / c / half / half;
        size_t at = 0;
        for (size_t t = 0; t < 4; t++) {
            const size_t place = ((n * s + 2 * y + t / 2) * s + 2 * x + t % 2) * c + k;
            const float v = l->act.v[place], best = l->act.v[at];
            if (t == 0 || (!isnan(best) && (isnan(v) || v > best)))
                at = place;
        }
        l->dgrad.v[at] = oracle_to(l->dgrad.f, (double)l->agrad.v[i]);
    }
}

static void normal_back(oracle_train *o, layer *l)
{
    const oracle_batchnorm b = normal(o, l, l->dgrad.f);
    const oracle_format *grad = oracle_format_of(&l->in->format[TRAIN_WGRAD]);
    for (int k = 0; k < 2; k++)
        shape(&l->p[k].grad, 1, l->act.cols, grad);
    oracle_backward(&b, l->dgrad.v, l->p[0].grad.v, l->p[1].grad.v, l->agrad.v, l->act.v, l->mean.v, l->inverse.v,
                    l->p[0].used.v);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < l->act.cols; i++)
            l->p[k].grad.v[i] = oracle_to(grad, (double)l->p[k].grad.v[i]);
}

static void backward_layer(oracle_train *o, layer *l, const matrix *dy, int first)
{
    const int plain = is_plain(l);
    const oracle_format *f = plain ? dy->f : oracle_format_of(&l->in->format[TRAIN_DGRAD]);
    cast(&l->agrad, dy, plain ? dy->f : oracle_format_of(&l->in->format[TRAIN_AGRAD]));
    if (l->is->type != TRAIN_LINEAR && l->is->type != TRAIN_CONV)
        shape(&l->dgrad, l->act.rows, l->act.cols, f);
    switch (l->is->type) {
    case TRAIN_LINEAR:
    case TRAIN_CONV:
        linear_back(o, l, first);
        break;
    case TRAIN_BATCHNORM:
        normal_back(o, l);
        break;
    case TRAIN_RELU:
        for (size_t i = 0; i < l->act.rows * l->act.cols; i++)
            l->dgrad.v[i] = l->out.v[i] > 0 ? oracle_to(f, (double)l->agrad.v[i]) : 0;
        break;
    case TRAIN_MAXPOOL:
        pool_back(l);
        break;
    default: /* TRAIN_FLATTEN: the same numbers in the same order */
        for (size_t i = 0; i < l->act.rows * l->act.cols; i++)
            l->dgrad.v[i] = oracle_to(f, (double)l->agrad.v[i]);
    }
}

void oracle_train_next(oracle_train *o, oracle_step *out)
{
    const train_settings *s = &o->run->settings;
    uint32_t images[TRAIN_IMAGES];
    plan_now(o);
    oracle_batch(s->seed, o->step, s->batch, images);
    layer *l = forward(o, images, s->batch);
    float *losses = calloc(s->batch, sizeof *losses);
    uint64_t correct;
    shape(&l->dgrad, l->act.rows, l->act.cols, oracle_format_of(&l->in->format[TRAIN_DGRAD]));
    const float c = (float)((double)o->scale * s->loss_factor / (double)s->batch);
    oracle_xent(o->math, l->dgrad.f, l->act.rows, l->act.cols, l->act.v, o->labels, c, losses, l->dgrad.v, &correct);
    out->loss = mean_loss(o, losses, s->batch);
    out->accuracy = (double)correct / (double)s->batch;
    free(losses);
    for (size_t i = o->n - 1; i-- > 0;)
        backward_layer(o, &o->layers[i], &o->layers[i + 1].dgrad, i == 0);
    out->scale = (double)o->scale;
    update(o, out);
    out->next_scale = (double)o->scale;
    for (size_t i = 0; i < o->n; i++)
        for (int q = 0; q < QUANTISED; q++)
            if (o->layers[i].history[q])
                mpsim_delayed_update(&o->layers[i].scale[q], 0);
    o->step++;
}

void oracle_train_evaluate(oracle_train *o, double *loss, double *accuracy)
{
    uint32_t images[TRAIN_TESTS];
    for (uint32_t i = 0; i < TRAIN_TESTS; i++)
        images[i] = TRAIN_IMAGES + i;
    o->testing = 1;
    const layer *l = forward(o, images, TRAIN_TESTS);
    o->testing = 0;
    float losses[TRAIN_TESTS], *dx = calloc(l->act.rows * l->act.cols, sizeof *dx);
    uint64_t correct;
    oracle_xent(o->math, oracle_format_find(NULL), l->act.rows, l->act.cols, l->act.v, o->labels, 1, losses, dx,
                &correct);
    *loss = (double)mean_loss(o, losses, TRAIN_TESTS);
    *accuracy = (double)correct / TRAIN_TESTS;
    free(dx);
}
