/* decoder.c -- parameters, text, forward, backward, a step of a transformer. */
#include "decoder.h"

#include "decoderoptim.h"
#include "decoderparts.h"
#include "decoderrows.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

static int ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Normal, by Box and Muller. */
static float initial(const oracle_decoder *d, const parameter *p, size_t i, double deviation)
{
    char name[2 * TRAIN_NAME];
    (void)snprintf(name, sizeof name, "init %s", p->name);
    const uint64_t seed = d->base.run->settings.seed, stream = oracle_stream(name);
    const uint32_t v = mpsim_rng_word(seed, stream, 2 * i), w = mpsim_rng_word(seed, stream, 2 * i + 1);
    const float u = (float)(v / 256 + 1) * 0x1p-24f, turn = (float)(w / 256) * 0x1p-24f;
    const float z = sqrtf(-2.0f * mpsim_log(u)) * mpsim_cos(turn * 0x1.921fb6p+2f);
    return (float)deviation * z;
}

/* Deviation 0: all are `value`. */
static void parameter_new(oracle_decoder *d, layer *l, int k, size_t rows, size_t cols, double deviation, float value)
{
    const oracle_format *kept = oracle_format_of(&l->in->kept), *state = oracle_format_of(&l->in->state);
    parameter *p = &l->p[k];
    p->exists = 1;
    (void)snprintf(p->name, sizeof p->name, "%s.%s", l->is->name, k ? "bias" : "weight");
    shape(&p->kept, rows, cols, kept);
    shape(&p->m, rows, cols, state);
    shape(&p->v, rows, cols, state);
    shape(&d->more[decoder_index(d, l)].kahan[k], rows, cols, kept);
    for (size_t i = 0; i < rows * cols; i++)
        p->kept.v[i] = oracle_to(kept, (double)(deviation > 0 ? initial(d, p, i, deviation) : value));
    refresh(&d->base, l, p);
}

static double deviation_of(const oracle_decoder *d, const char *name)
{
    const train_settings *s = &d->base.run->settings;
    const double x = 0.02 * s->gain;
    return ends_with(name, "attn.proj") || ends_with(name, "mlp.proj") ? x / sqrt(2 * (double)s->depth) : x;
}

static void layer_new(oracle_decoder *d, layer *l)
{
    const size_t in = l->is->inputs, out = l->is->outputs;
    const double deviation = deviation_of(d, l->is->name);
    switch (l->is->type) {
    case TRAIN_EMBED:
    case TRAIN_POSITIONS:
        parameter_new(d, l, 0, in, out, deviation, 0);
        break;
    case TRAIN_LINEAR:
        if (strcmp(l->is->name, "head") == 0 && d->is->tied)
            l->shared = d->base.layers; /* wte is the first */
        else
            parameter_new(d, l, 0, out, in, deviation, 0);
        if (!l->is->plain)
            parameter_new(d, l, 1, 1, out, 0, 0);
        break;
    case TRAIN_NORM:
        parameter_new(d, l, 0, 1, out, 0, 1);
        if (!l->is->plain)
            parameter_new(d, l, 1, 1, out, 0, 0);
        break;
    default:
        break;
    }
}

void decoder_share(oracle_decoder *d)
{
    for (size_t i = 0; i < d->base.n; i++) {
        layer *l = &d->base.layers[i];
        if (l->shared)
            cast(&l->p[0].used, &l->shared->p[0].stored, oracle_format_of(&l->in->format[TRAIN_WEIGHT]));
    }
}

static void rotations_new(oracle_decoder *d)
{
    const decoder_sizes z = decoder_sizes_of(d);
    const size_t half = z.size / 2;
    d->cos = calloc(z.length * half + 1, sizeof *d->cos);
    d->sin = calloc(z.length * half + 1, sizeof *d->sin);
    if (!d->cos || !d->sin)
        abort();
    for (size_t p = 0; p < z.length; p++)
        for (size_t c = 0; c < half; c++) {
            const double w = oracle_exp64(-((2 * (double)c) / (double)z.size) * oracle_log64(10000));
            double a = (double)p * w;
            a = a - floor(a * 0x1.45f306dc9c883p-3 + 0.5) * 0x1.921fb54442d18p+2;
            d->cos[p * half + c] = mpsim_cos((float)a);
            d->sin[p * half + c] = mpsim_sin((float)a);
        }
}

static const oracle_format *math_of(const oracle_decoder *d, const char *own)
{
    return oracle_format_find(*own ? own : d->base.run->settings.math);
}

/* What plans change; compensations are numbers of the kept format, too. */
static void plan_of_step(oracle_decoder *d)
{
    const train_plan *before = d->base.plan;
    plan_now(&d->base);
    for (size_t i = 0; before && before != d->base.plan && i < 2 * d->base.n; i++) {
        const layer *l = &d->base.layers[i / 2];
        matrix *k = &d->more[i / 2].kahan[i % 2], t = {0};
        if (!l->p[i % 2].exists)
            continue;
        cast(&t, k, oracle_format_of(&l->in->kept));
        free(k->v);
        *k = t;
    }
    decoder_share(d);
}

oracle_decoder *oracle_decoder_open(const train_run *r, const train_text *text)
{
    oracle_decoder *d = calloc(1, sizeof *d);
    if (!d)
        abort();
    d->base.run = r;
    d->base.n = r->n_layers;
    d->text = text;
    d->is = &r->settings.decoder;
    d->base.math = math_of(d, "");
    d->math_norm = math_of(d, d->is->math_norm);
    d->math_softmax = math_of(d, d->is->math_softmax);
    for (size_t i = 0; i < d->base.n; i++)
        d->base.layers[i].is = &r->layers[i];
    plan_now(&d->base);
    for (size_t i = 0; i < d->base.n; i++)
        layer_new(d, &d->base.layers[i]);
    const size_t places = (size_t)r->settings.batch * d->is->context;
    d->tokens = calloc(places, sizeof *d->tokens);
    d->labels = calloc(places, sizeof *d->labels);
    if (!d->tokens || !d->labels)
        abort();
    rotations_new(d);
    return d;
}

/* ---- text ---- */

static uint32_t token_at(const train_text *x, size_t i)
{
    const uint8_t *p = (const uint8_t *)x->tokens + i * x->bytes;
    uint16_t two;
    uint32_t four;
    if (x->bytes == 1)
        return *p;
    memcpy(&two, p, sizeof two);
    if (x->bytes == 2)
        return two;
    memcpy(&four, p, sizeof four);
    return four;
}

/* Sequence b of the pass begins at that token. */
static void window(oracle_decoder *d, size_t b, size_t start)
{
    for (size_t i = 0; i < d->is->context; i++) {
        d->tokens[b * d->is->context + i] = token_at(d->text, start + i);
        d->labels[b * d->is->context + i] = token_at(d->text, start + i + 1);
    }
}

static void windows_of_step(oracle_decoder *d, unsigned micro, unsigned rank)
{
    const train_settings *s = &d->base.run->settings;
    const uint64_t stream = oracle_stream("text windows"), room = d->text->trained - d->is->context;
    d->sequences = s->batch;
    for (size_t b = 0; b < s->batch; b++) {
        const uint64_t at = ((d->base.step * d->is->accumulate + micro) * d->is->ranks + rank) * s->batch + b;
        window(d, b, (size_t)((uint64_t)mpsim_rng_word(s->seed, stream, at) * room >> 32));
    }
}

/* ---- forward ---- */

static const oracle_format *out_of(const layer *l)
{
    return oracle_format_of(&l->in->format[TRAIN_OUT]);
}

/* Rows of a table by tokens, or of that by places plus x. */
static void looked_up(oracle_decoder *d, layer *l, const matrix *x)
{
    const matrix *table = &l->p[0].stored;
    const size_t places = d->sequences * d->is->context, n = table->cols;
    shape(&l->out, places, n, out_of(l));
    for (size_t r = 0; r < places; r++)
        for (size_t c = 0; c < n; c++) {
            const size_t row = x ? r % table->rows : d->tokens[r];
            const float w = table->v[row * n + c];
            l->out.v[r * n + c] = oracle_to(l->out.f, (double)(x ? x->v[r * n + c] + w : w));
        }
}

static oracle_rows rows_of(const layer *l, const oracle_format *math, const oracle_format *f)
{
    return (oracle_rows){l->act.rows, l->act.cols, math, f};
}

static void normalise(oracle_decoder *d, layer *l)
{
    const oracle_rows r = rows_of(l, d->math_norm, out_of(l));
    shape(&l->mean, r.rows, 1, oracle_format_find(NULL));
    shape(&l->inverse, r.rows, 1, oracle_format_find(NULL));
    shape(&l->out, r.rows, r.cols, r.f);
    oracle_norm(&r, d->is->norm == MPSIM_NORM_RMS, l->out.v, l->mean.v, l->inverse.v, l->act.v, l->p[0].used.v,
                l->p[1].exists ? l->p[1].used.v : NULL);
}

static size_t hidden_of(const oracle_decoder *d, const matrix *x)
{
    return x->cols / (d->is->activation == MPSIM_SWIGLU ? 2 : 1);
}

/* What comes to layer i: what the one before it gives. */
static const matrix *comes(const oracle_decoder *d, size_t i)
{
    return &d->base.layers[i - 1].out;
}

static void added(const oracle_decoder *d, layer *l, const matrix *x)
{
    const matrix *stream = comes(d, l->is->from);
    shape(&l->out, x->rows, x->cols, out_of(l));
    for (size_t i = 0; i < x->rows * x->cols; i++)
        l->out.v[i] = oracle_to(l->out.f, (double)(x->v[i] + stream->v[i]));
}

static void activate(const oracle_decoder *d, layer *l, const matrix *x)
{
    const oracle_rows r = {x->rows, hidden_of(d, x), d->base.math, x->f};
    shape(&l->out, r.rows, r.cols, r.f);
    oracle_activate(&r, d->is->activation, l->out.v, x->v);
}

static void forward_layer(oracle_decoder *d, size_t i)
{
    layer *l = &d->base.layers[i];
    const matrix *x = i ? comes(d, i) : NULL;
    const int enters = l->is->type == TRAIN_LINEAR || l->is->type == TRAIN_NORM;
    if (enters)
        cast(&l->act, x, oracle_format_of(&l->in->format[TRAIN_ACT]));
    for (int k = 0; k < 2 && enters && !d->base.testing; k++)
        if (l->p[k].used.v)
            cast(&l->p[k].entered, &l->p[k].used, l->p[k].used.f);
    switch (l->is->type) {
    case TRAIN_EMBED:
    case TRAIN_POSITIONS:
        looked_up(d, l, x);
        break;
    case TRAIN_NORM:
        normalise(d, l);
        break;
    case TRAIN_LINEAR:
        linear(&d->base, l, out_of(l));
        break;
    case TRAIN_HEADS:
        heads_forward(d, l, x);
        break;
    case TRAIN_SCORES: /* and the softmax and the context after it */
        attention_forward(d, l);
        break;
    case TRAIN_ACTIVATION:
        activate(d, l, x);
        break;
    case TRAIN_ADD:
        added(d, l, x);
        break;
    case TRAIN_LOSS:
        cast(&l->act, x, oracle_format_of(&l->in->format[TRAIN_ACT]));
        break;
    case TRAIN_SOFTMAX:
    case TRAIN_CONTEXT:
        break;
    default:
        abort();
    }
}

/* Through the loss: its gradient with that coefficient; the mean loss; *correct is added to. */
static float pass(oracle_decoder *d, float coefficient, uint64_t *correct)
{
    for (size_t i = 0; i < d->base.n; i++)
        forward_layer(d, i);
    layer *l = &d->base.layers[d->base.n - 1];
    const size_t n = l->act.rows;
    float *losses = calloc(n, sizeof *losses);
    uint64_t right;
    shape(&l->dgrad, n, l->act.cols, oracle_format_of(&l->in->format[TRAIN_DGRAD]));
    oracle_xent(d->base.math, l->dgrad.f, n, l->act.cols, l->act.v, d->labels, coefficient, losses, l->dgrad.v, &right);
    *correct += right;
    const float loss = mean_loss(&d->base, losses, n);
    free(losses);
    return loss;
}

/* ---- backward ---- */

static const oracle_format *wgrad_of(const layer *l)
{
    return oracle_format_of(&l->in->format[TRAIN_WGRAD]);
}

/* Chains over the places of a token, or over the sequences. A tied head's gradient comes first. */
static void looked_up_back(oracle_decoder *d, layer *l)
{
    const int places = l->is->type == TRAIN_POSITIONS;
    const layer *head = &d->base.layers[d->base.n - 2];
    const size_t rows = l->p[0].stored.rows, n = l->p[0].stored.cols;
    matrix *g = &l->p[0].grad;
    shape(g, rows, n, wgrad_of(l));
    for (size_t t = 0; t < rows; t++)
        for (size_t c = 0; c < n; c++) {
            float s = !places && head->shared ? head->p[0].grad.v[t * n + c] : 0;
            for (size_t r = 0; r < l->agrad.rows; r++)
                if ((places ? r % rows : d->tokens[r]) == t)
                    s = s + l->agrad.v[r * n + c];
            g->v[t * n + c] = oracle_to(g->f, (double)s);
        }
}

static void normal_back(oracle_decoder *d, layer *l)
{
    const oracle_rows r = rows_of(l, d->math_norm, oracle_format_of(&l->in->format[TRAIN_DGRAD]));
    shape(&l->dgrad, r.rows, r.cols, r.f);
    for (int k = 0; k < 2; k++)
        if (l->p[k].exists)
            shape(&l->p[k].grad, 1, r.cols, wgrad_of(l));
    oracle_norm_back(&r, d->is->norm == MPSIM_NORM_RMS, l->dgrad.v, l->p[0].grad.v,
                     l->p[1].exists ? l->p[1].grad.v : NULL, l->agrad.v, l->act.v, l->mean.v, l->inverse.v,
                     l->p[0].used.v);
    for (size_t i = 0; i < 2 * r.cols; i++) {
        const matrix *g = &l->p[i / r.cols].grad;
        if (l->p[i / r.cols].exists)
            g->v[i % r.cols] = oracle_to(g->f, (double)g->v[i % r.cols]);
    }
}

/* At the beginning of a branch: its gradient and that which passed by. */
static const matrix *joined(oracle_decoder *d, size_t i)
{
    for (size_t k = i; k < d->base.n; k++) {
        layer *add = &d->base.layers[k];
        if (add->is->type != TRAIN_ADD || add->is->from != i)
            continue;
        const matrix *dx = &d->base.layers[i].dgrad;
        shape(&add->dgrad, dx->rows, dx->cols, oracle_format_of(&add->in->format[TRAIN_DGRAD]));
        for (size_t e = 0; e < dx->rows * dx->cols; e++)
            add->dgrad.v[e] = oracle_to(add->dgrad.f, (double)(dx->v[e] + add->agrad.v[e]));
        return &add->dgrad;
    }
    return &d->base.layers[i].dgrad;
}

static void activate_back(const oracle_decoder *d, layer *l, const matrix *x, const matrix *dy)
{
    const oracle_rows r = {dy->rows, dy->cols, d->base.math, dy->f};
    shape(&l->dgrad, x->rows, x->cols, r.f);
    oracle_activate_back(&r, d->is->activation, l->dgrad.v, dy->v, x->v);
}

/* dy comes to layer i; what goes on. */
static const matrix *backward_layer(oracle_decoder *d, size_t i, const matrix *dy)
{
    layer *l = &d->base.layers[i];
    if (dy && l->is->type != TRAIN_ACTIVATION && l->is->type != TRAIN_HEADS)
        cast(&l->agrad, dy, oracle_format_of(&l->in->format[TRAIN_AGRAD]));
    switch (l->is->type) {
    case TRAIN_EMBED:
    case TRAIN_POSITIONS:
        looked_up_back(d, l);
        return &l->agrad;
    case TRAIN_NORM:
        normal_back(d, l);
        return joined(d, i);
    case TRAIN_LINEAR:
        linear_back(&d->base, l, 0);
        return &l->dgrad;
    case TRAIN_CONTEXT: /* and all before it up to the heads */
        attention_back(d, l - 2);
        return NULL;
    case TRAIN_HEADS:
        heads_back(d, l);
        return &l->dgrad;
    case TRAIN_ACTIVATION:
        activate_back(d, l, comes(d, i), dy);
        return &l->dgrad;
    case TRAIN_ADD:
        return &l->agrad;
    default: /* TRAIN_SCORES, TRAIN_SOFTMAX */
        return NULL;
    }
}

/* ---- steps ---- */

static float micro_batch(oracle_decoder *d, unsigned rank, unsigned micro, uint64_t *correct)
{
    const train_settings *s = &d->base.run->settings;
    const uint64_t rows = (uint64_t)s->batch * d->is->context * d->is->accumulate;
    d->base.micro = rank * d->is->accumulate + micro;
    windows_of_step(d, micro, rank);
    const float loss = pass(d, (float)((double)d->base.scale * s->loss_factor / (double)rows), correct);
    const matrix *dy = &d->base.layers[d->base.n - 1].dgrad;
    for (size_t i = d->base.n - 1; i-- > 0;)
        dy = backward_layer(d, i, dy);
    gradients_add(d, rank, micro);
    return loss;
}

/* lr times this */
static double schedule(const oracle_decoder *d)
{
    const double s = (double)d->base.step, steps = (double)d->base.run->settings.steps;
    const double warmup = (double)d->is->warmup, cooldown = (double)d->is->cooldown, least = d->is->min_lr;
    double factor = 1;
    if (s < warmup) {
        factor = (s + 1) / warmup;
    } else {
        const double p = (s - warmup) / (steps - warmup);
        if (d->is->decay == TRAIN_LINEAR_DECAY)
            factor = 1 - (1 - least) * p;
        if (d->is->decay == TRAIN_COSINE)
            factor = least + (1 - least) * 0.5 * (1 + (double)mpsim_cos((float)(p * 0x1.921fb54442d18p+1)));
    }
    return cooldown > 0 && s >= steps - cooldown ? factor * ((steps - s) / (cooldown + 1)) : factor;
}

void oracle_decoder_next(oracle_decoder *d, oracle_decoded *out)
{
    const unsigned n = d->is->accumulate * d->is->ranks;
    double loss = 0;
    uint64_t correct = 0;
    memset(out, 0, sizeof *out);
    plan_of_step(d);
    for (unsigned k = 0; k < n; k++)
        loss += (double)micro_batch(d, k / d->is->accumulate, k % d->is->accumulate, &correct);
    gradients_end(d);
    out->step.loss = (float)(loss / n);
    out->step.accuracy = (double)correct / ((double)d->base.run->settings.batch * d->is->context * n);
    out->step.scale = (double)d->base.scale;
    out->lr = d->lr = d->base.plan->optimizer.lr * schedule(d);
    decoder_update(d, out);
    out->step.next_scale = (double)d->base.scale;
    for (size_t i = 0; i < d->base.n; i++)
        for (int q = 0; q < QUANTISED; q++)
            if (d->base.layers[i].history[q])
                mpsim_delayed_update(&d->base.layers[i].scale[q], 0);
    d->base.step++;
}

void oracle_decoder_evaluate(oracle_decoder *d, double *loss, double *accuracy)
{
    const size_t context = d->is->context, batch = d->base.run->settings.batch;
    size_t n = (d->text->held - 1) / context;
    uint64_t correct = 0;
    n = n < d->is->validation ? n : d->is->validation;
    *loss = 0;
    d->base.testing = 1;
    for (size_t first = 0; first < n; first += d->sequences) {
        d->sequences = n - first < batch ? n - first : batch;
        for (size_t b = 0; b < d->sequences; b++)
            window(d, b, d->text->trained + (first + b) * context);
        *loss += (double)pass(d, 1, &correct) * (double)d->sequences;
    }
    d->base.testing = 0;
    *loss /= (double)n;
    *accuracy = (double)correct / (double)(n * context);
}
