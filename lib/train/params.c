/* params.c -- parameters: initial values, formats of a plan, the model's copy; see trainer.h. */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>

const train_placement *train_param_place(const train *t, const train_param *p)
{
    return &t->plan->layers[p->layer];
}

const train_tensor *train_param_model(const train_param *p)
{
    return p->copy.data ? &p->copy : &p->kept;
}

size_t train_param_shape(const train *t, const train_param *p, size_t shape[4])
{
    const train_layer *l = &t->run->layers[p->layer];
    const int table = l->type == TRAIN_EMBED || l->type == TRAIN_POSITIONS;
    shape[0] = table ? l->inputs : l->outputs;
    shape[1] = table ? l->outputs : l->inputs;
    if (l->type != TRAIN_CONV || p->bias)
        return p->rank;
    shape[1] = shape[2] = 3;
    shape[3] = l->inputs;
    return 4;
}

void train_param_matrices(const train *t, const train_param *p, mpsim_optim *o)
{
    size_t shape[4];
    const size_t rank = train_param_shape(t, p, shape);
    o->rows = rank > 1 ? shape[rank - 2] : 0;
    o->cols = rank > 1 ? shape[rank - 1] : 0;
}

/* ---- the list ---- */

static train_param *add(train *t, size_t layer, const char *what, size_t rows, size_t cols)
{
    train_param *p = &t->params[t->n_params];
    const train_layer *l = &t->run->layers[layer];
    p->layer = layer;
    p->bias = what[0] == 'b';
    p->rank = p->bias || l->type == TRAIN_BATCHNORM || l->type == TRAIN_NORM ? 1 : 2;
    snprintf(p->name, sizeof p->name, "%.47s.%.6s", l->name, what);
    p->kept.rows = rows;
    p->kept.cols = cols;
    (p->bias ? t->bias_of : t->weight_of)[layer] = (int)t->n_params++;
    return p;
}

static void list_layer(train *t, size_t i)
{
    const train_layer *l = &t->run->layers[i];
    switch ((train_type)l->type) {
    case TRAIN_LINEAR:
        add(t, i, "weight", l->outputs, l->inputs);
        break;
    case TRAIN_CONV:
        add(t, i, "weight", l->outputs, 9 * (size_t)l->inputs);
        return;
    case TRAIN_EMBED:
    case TRAIN_POSITIONS:
        add(t, i, "weight", l->inputs, l->outputs);
        return;
    case TRAIN_BATCHNORM:
    case TRAIN_NORM:
        add(t, i, "weight", 1, l->outputs);
        break;
    default:
        return;
    }
    if (!l->plain)
        add(t, i, "bias", 1, l->outputs);
}

static void list(train *t)
{
    const train_settings *s = &t->run->settings;
    const size_t head = t->run->n_layers - 2;
    for (size_t i = 0; i < t->run->n_layers; i++) {
        t->weight_of[i] = t->bias_of[i] = -1;
        if (i == head && train_is_text(s) && s->decoder.tied)
            t->weight_of[i] = t->weight_of[0];
        else
            list_layer(t, i);
    }
}

/* ---- initial values ---- */

/* Uniform in +-gain / sqrt(fan_in). */
static void initial_uniform(const train *t, const train_param *p, uint64_t stream, float *values, size_t n)
{
    const train_settings *s = &t->run->settings;
    const train_layer *l = &t->run->layers[p->layer];
    const double fan_in = (double)l->inputs * (l->type == TRAIN_CONV ? 9 : 1);
    const double bound = (p->bias ? 1 : s->gain) / sqrt(fan_in);
    for (size_t i = 0; i < n; i++) {
        const uint32_t w = mpsim_rng_word(s->seed, stream, i);
        const double u = (double)(w >> 8) * 0x1p-24 * 2 - 1;
        values[i] = (float)(u * bound);
    }
}

/* Normal numbers, drawn on threads. */
typedef struct normal {
    mpsim_rng rng;
    float deviation, *values;
    size_t n;
} normal;

enum { DRAWN = 1 << 16 }; /* by a task */

static void draw(size_t i, void *job)
{
    const normal *d = job;
    const size_t first = i * DRAWN, left = d->n - first;
    mpsim_rng rng = d->rng;
    rng.index = first;
    mpsim_normal_array(&rng, d->deviation, d->values + first, left < DRAWN ? left : DRAWN);
}

/* Of what ends on the stream with a smaller deviation. */
static void initial_normal(const train *t, const train_param *p, uint64_t stream, float *values, size_t n)
{
    const train_settings *s = &t->run->settings;
    const mpsim_pool *pool = t->e->pool;
    const size_t tasks = n / DRAWN + (n % DRAWN != 0);
    double deviation = 0.02 * s->gain;
    if (strstr(p->name, ".proj."))
        deviation = deviation / sqrt(2.0 * s->depth);
    normal d = {.rng = {.seed = s->seed, .stream = stream}, .deviation = (float)deviation, .values = values, .n = n};
    if (pool && tasks > 1)
        pool->run(pool->self, tasks, draw, &d);
    else
        for (size_t i = 0; i < tasks; i++)
            draw(i, &d);
}

static void initial(const train *t, const train_param *p, float *values, size_t n)
{
    const int text = train_is_text(&t->run->settings);
    const int norm = p->rank == 1 && !p->bias;
    char purpose[TRAIN_NAME + 16];
    snprintf(purpose, sizeof purpose, "init %s", p->name);
    if (norm || (p->bias && (text || t->run->layers[p->layer].type == TRAIN_BATCHNORM)))
        for (size_t i = 0; i < n; i++)
            values[i] = norm ? 1.0f : 0.0f;
    else
        (text ? initial_normal : initial_uniform)(t, p, train_stream(purpose), values, n);
}

/* kept = values, rounded to its format. */
static int fill(train *t, train_tensor *kept, const float *values)
{
    train_engine *e = t->e;
    train_tensor wide = {.format = mpsim_format_find("binary32"), .rows = kept->rows, .cols = kept->cols};
    if (mpsim_format_same(kept->format, wide.format))
        return e->ops->put(e, kept, values);
    const int code = e->ops->alloc(e, &wide) || e->ops->put(e, &wide, values) ||
                     e->ops->cast(e, kept, &wide, MPSIM_ROUND_NEAREST_EVEN, NULL);
    e->ops->release(e, &wide);
    return code ? -1 : 0;
}

static int begin(train *t, train_param *p, char *error)
{
    const size_t n = p->kept.rows * p->kept.cols;
    float *values = malloc(n * sizeof *values);
    if (!values)
        return train_fail(error, "out of memory");
    initial(t, p, values, n);
    p->kept.format = &t->run->plans[0].layers[p->layer].kept;
    const int code = t->e->ops->alloc(t->e, &p->kept) || fill(t, &p->kept, values);
    free(values);
    return code ? train_engine_failed(t, p->name, error) : 0;
}

/* Statistics start as mean 0, variance 1. */
static int begin_running(train *t, size_t layer, char *error)
{
    const uint32_t n = t->run->layers[layer].outputs;
    float *ones = malloc(n * sizeof *ones);
    int code = ones ? 0 : train_fail(error, "out of memory");
    for (uint32_t i = 0; ones && i < n; i++)
        ones[i] = 1.0f;
    for (int k = 0; k < 2 && !code; k++) {
        train_tensor *x = &t->running[layer][k];
        *x = (train_tensor){.format = mpsim_format_find("binary32"), .rows = 1, .cols = n};
        if (t->e->ops->alloc(t->e, x) || (k == 1 && t->e->ops->put(t->e, x, ones)))
            code = train_engine_failed(t, t->run->layers[layer].name, error);
    }
    free(ones);
    return code;
}

int train_params_open(train *t, char *error)
{
    int code = train_decoder_open(t, error);
    list(t);
    for (size_t i = 0; i < t->n_params && !code; i++)
        code = begin(t, &t->params[i], error);
    for (size_t i = 0; i < t->run->n_layers && !code; i++)
        if (t->run->layers[i].type == TRAIN_BATCHNORM)
            code = begin_running(t, i, error);
    return code;
}

static void drop(train *t, train_tensor *x)
{
    if (x->data)
        t->e->ops->release(t->e, x);
    memset(x, 0, sizeof *x);
}

/* They may have one memory. */
static void drop_gradients(train *t, train_param *p)
{
    if (p->grad.data == p->wgrad.data)
        p->grad.data = NULL;
    drop(t, &p->grad);
    drop(t, &p->wgrad);
}

void train_params_close(train *t)
{
    for (size_t i = 0; i < t->n_params; i++) {
        train_param *p = &t->params[i];
        train_tensor *all[] = {&p->kept, &p->copy, &p->m, &p->v, &p->vmax, &p->kahan};
        drop_gradients(t, p);
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            drop(t, all[k]);
    }
    for (size_t i = 0; i < TRAIN_LAYERS; i++) {
        drop(t, &t->running[i][0]);
        drop(t, &t->running[i][1]);
    }
    drop(t, &t->rotary[0]);
    drop(t, &t->rotary[1]);
}

/* ---- a plan comes into force ---- */

/* x in format f: rounded to nearest if it has another one; zeros if there is none yet. */
static int bring(train *t, train_tensor *x, const train_tensor *like, const mpsim_format *f)
{
    train_engine *e = t->e;
    train_tensor y = {.format = f, .rows = like->rows, .cols = like->cols};
    if (x->data && mpsim_format_same(x->format, f)) {
        x->format = f;
        return 0;
    }
    if (e->ops->alloc(e, &y))
        return -1;
    if (x->data && e->ops->cast(e, &y, x, MPSIM_ROUND_NEAREST_EVEN, NULL)) {
        e->ops->release(e, &y);
        return -1;
    }
    drop(t, x);
    *x = y;
    return 0;
}

int train_params_refresh(train *t, char *error)
{
    const mpsim_round_mode mode = t->plan->master == TRAIN_SPLIT_MASTER ? MPSIM_ROUND_NEAREST_AWAY
                                                                        : MPSIM_ROUND_NEAREST_EVEN;
    train_pair list[TRAIN_PARAMS];
    size_t n = 0;
    for (size_t i = 0; i < t->n_params; i++)
        if (t->params[i].copy.data)
            list[n++] = (train_pair){.y = &t->params[i].copy, .x = &t->params[i].kept};
    return t->e->ops->cast_list(t->e, list, n, mode) ? train_engine_failed(t, "the model's copies", error) : 0;
}

/* What any plan of the run needs: so a checkpoint has the same tensors whatever the step. */
static unsigned needs_of_run(const train *t, const train_param *p)
{
    unsigned needs = 0;
    for (size_t i = 0; i < t->run->n_plans; i++) {
        const train_plan *plan = &t->run->plans[i];
        const train_placement *l = &plan->layers[p->layer];
        needs |= l->muon && !p->bias ? MPSIM_OPTIM_M : mpsim_optim_needs(&plan->optimizer, &l->kept);
    }
    return needs;
}

static train_tensor *there(train_tensor *x)
{
    return x->data ? x : NULL;
}

/* Gradients as backward leaves them, and as the optimizer reads them: of a lean training in one memory, unless the
 * former are read once more after the others are there. */
static int bring_gradients(train *t, const train_plan *plan, train_param *p)
{
    const train_placement *l = &plan->layers[p->layer];
    const int again = plan->scaler.check == MPSIM_CHECK_NORM || plan->scaler.order == MPSIM_UPDATE_BEFORE_UNSCALE;
    drop_gradients(t, p);
    if (bring(t, &p->wgrad, &p->kept, &l->format[TRAIN_WGRAD]))
        return -1;
    if (!t->lean || again)
        return bring(t, &p->grad, &p->kept, &l->kept);
    p->grad = p->wgrad;
    p->grad.format = &l->kept;
    return 0;
}

static int use(train *t, const train_plan *plan, train_param *p)
{
    const train_placement *l = &plan->layers[p->layer];
    const unsigned needs = needs_of_run(t, p);
    const mpsim_format *state = l->muon && !p->bias ? &l->kept
                                                    : mpsim_placement_state(l, (uint64_t)p->kept.rows * p->kept.cols);
    int code = bring(t, &p->kept, &p->kept, &l->kept);
    if (!mpsim_format_same(&l->kept, &l->storage))
        code = code || bring(t, &p->copy, &p->kept, &l->storage);
    else
        drop(t, &p->copy);
    if (needs & MPSIM_OPTIM_M)
        code = code || bring(t, &p->m, &p->kept, state);
    if (needs & MPSIM_OPTIM_V)
        code = code || bring(t, &p->v, &p->kept, state);
    if (needs & MPSIM_OPTIM_VMAX)
        code = code || bring(t, &p->vmax, &p->kept, state);
    if (needs & MPSIM_OPTIM_KAHAN)
        code = code || bring(t, &p->kahan, &p->kept, &l->kept);
    code = code || bring_gradients(t, plan, p);
    if (!code && l->states)
        code = t->e->ops->keep(t->e, l->states, &p->kept, there(&p->m), there(&p->v), there(&p->vmax));
    return code ? -1 : 0;
}

static int check_engine(const train_ops *ops, const train_plan *plan, size_t layers, char *error)
{
    const mpsim_optim_traits *o = mpsim_optim_traits_of(plan->optimizer.algorithm);
    if (ops->cuda && !o->cuda)
        return train_fail(error, "%s has no %s, which the cpu has", ops->name, o->title);
    for (size_t i = 0; i < layers; i++) {
        const train_placement *l = &plan->layers[i];
        if (l->muon && !ops->muon)
            return train_fail(error, "%s has no Muon, which the cpu has", ops->name);
        if (l->states && !ops->keep)
            return train_fail(error, "%s keeps no moments in few bits (states %s), as the cpu does", ops->name,
                              l->states->name);
    }
    return 0;
}

int train_params_use(train *t, const train_plan *plan, char *error)
{
    /* what the engine lacks for any plan is told before a step is taken */
    for (size_t i = 0; !t->plan && i < t->run->n_plans; i++)
        if (check_engine(t->e->ops, &t->run->plans[i], t->run->n_layers, error))
            return -1;
    for (size_t i = 0; i < t->n_params; i++)
        if (use(t, plan, &t->params[i]))
            return train_engine_failed(t, t->params[i].name, error);
    t->plan = plan;
    return train_params_refresh(t, error);
}
