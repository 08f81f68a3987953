/* train.c -- opening, stepping, evaluating; see train.h. */
#include "run/fields.h"
#include "trainer.h"

#include <math.h>
#include <stdlib.h>

/* ---- a plan comes into force ---- */

static const train_plan *plan_at(const train_run *r, uint64_t step)
{
    size_t i = r->n_plans - 1;
    while (i > 0 && r->plans[i].from > step)
        i--;
    return &r->plans[i];
}

static int check_place(const train_layer *l, const train_placement *p, char *error)
{
    const mpsim_format *more[] = {&p->storage, &p->kept, &p->state};
    for (int i = 0; i < TRAIN_ROLES + 3; i++) {
        const mpsim_format *f = i < TRAIN_ROLES ? &p->format[i] : more[i - TRAIN_ROLES];
        if (mpsim_format_check(f) || !train_fits_binary32(f))
            return train_fail(error, "%s: format %.55s: only signed formats within binary32 that have a NaN", l->name,
                              f->name);
    }
    for (int i = 0; i < TRAIN_ROLES; i++)
        if (p->recipe[i] && (mpsim_block_check(p->recipe[i]) || i == TRAIN_OUT || i > TRAIN_AGRAD))
            return train_fail(error, "%s: recipe %.31s does not fit", l->name, p->recipe[i]->name);
    return 0;
}

/* A transform and promotion need blocks to be of use; codes are multiplied where all have one scale
 * for the same products. */
static int check_blocks(const train_layer *l, const train_placement *p, char *error)
{
    static const train_role roles[] = {TRAIN_ACT, TRAIN_WEIGHT, TRAIN_AGRAD};
    if (p->hadamard != 0 && p->hadamard != 16)
        return train_fail(error, "%s: Hadamard transform must be 16, not %lu", l->name, (unsigned long)p->hadamard);
    for (size_t i = 0; i < 3; i++) {
        const mpsim_block_recipe *r = p->recipe[roles[i]];
        if ((l->type == TRAIN_SCORES || l->type == TRAIN_CONTEXT) && r && (r->block_rows || r->block_cols))
            return train_fail(error, "%s: recipe %.31s: attention takes recipes with one scale per tensor", l->name,
                              r->name);
    }
    for (size_t i = 0; i < 3 && (p->hadamard || p->promote); i++) {
        const mpsim_block_recipe *r = p->recipe[roles[i]];
        if (!r || (r->block_rows == 0 && r->block_cols == 0))
            return train_fail(error, "%s: %s needs recipes with blocks", l->name,
                              p->hadamard ? "a Hadamard transform" : "promotion");
        if (p->promote && (r->block_cols != p->promote || mpsim_format_find(r->element)->bits != 8))
            return train_fail(error,
                              "%s: promotion every %lu products: recipe %s has no blocks of that many one-byte codes",
                              l->name, (unsigned long)p->promote, r->name);
    }
    return 0;
}

static int check_plan(const train_run *r, const train_plan *p, char *error)
{
    for (size_t i = 0; i < r->n_layers; i++)
        if (check_place(&r->layers[i], &p->layers[i], error) || check_blocks(&r->layers[i], &p->layers[i], error))
            return -1;
    if (mpsim_scaler_config_check(&p->scaler))
        return train_fail(error, "plan of step %llu: the loss scaler's settings are out of range",
                          (unsigned long long)p->from);
    if (!p->optimizer.variant)
        return train_fail(error, "plan of step %llu: no optimizer", (unsigned long long)p->from);
    return 0;
}

static int start_delayed(train_fp8 *s, const train_plan *plan, const char *element, char *error)
{
    mpsim_delayed_config c = plan->history;
    c.fp8_max = (float)mpsim_format_max(mpsim_format_find(element));
    if (s->used && train_same_history(&s->state.config, &c))
        return 0;
    if (mpsim_delayed_config_check(&c))
        return train_fail(error, "the settings of delayed scaling are out of range");
    free(s->state.history);
    s->used = 0;
    float *history = calloc(c.history, sizeof *history);
    if (!history)
        return train_fail(error, "out of memory");
    s->used = 1;
    mpsim_delayed_init(&s->state, &c, history);
    return 0;
}

static int use_fp8(train *t, const train_plan *plan, char *error)
{
    static const train_role roles[TRAIN_FP8] = {TRAIN_ACT, TRAIN_WEIGHT, TRAIN_AGRAD};
    for (size_t i = 0; i < t->run->n_layers; i++)
        for (int k = 0; k < TRAIN_FP8; k++) {
            const mpsim_block_recipe *r = plan->layers[i].recipe[roles[k]];
            if (r && plan->delayed && r->block_rows == 0 && r->block_cols == 0 &&
                start_delayed(&t->fp8[i][k], plan, r->element, error))
                return -1;
        }
    return 0;
}

int train_use(train *t, const train_plan *plan, char *error)
{
    const train_plan *old = t->plan;
    if (plan == old)
        return 0;
    train_pass_close(t, &t->batch);
    train_pass_close(t, &t->test);
    train_pass_close(t, &t->rest);
    train_blocks_close(t);
    if (use_fp8(t, plan, error) || train_params_use(t, plan, error) || train_gather_open(t, error))
        return -1;
    if ((!old || !train_same_scaler(&old->scaler, &plan->scaler)) && mpsim_scaler_init(&t->scaler, &plan->scaler))
        return train_fail(error, "the loss scaler's settings are out of range");
    return train_pass_open(t, &t->batch, t->run->settings.batch, 1, error);
}

/* ---- open, close ---- */

static const train_text *text_of(const train_run *r)
{
    return r->text ? r->text : train_text_bundled();
}

static int check_run(const train_run *r, char *error)
{
    train_layer layers[TRAIN_LAYERS];
    const size_t n = train_network(&r->settings, layers, error);
    if (n == 0)
        return -1;
    if (n != r->n_layers || r->n_plans < 1 || r->n_plans > TRAIN_PLANS || r->plans[0].from != 0)
        return train_fail(error, "layers or plans do not match the settings");
    for (size_t i = 0; i < n; i++)
        if (strcmp(layers[i].name, r->layers[i].name) != 0 || layers[i].type != r->layers[i].type)
            return train_fail(error, "layers do not match the settings");
    for (size_t i = 0; i < r->n_plans; i++) {
        if (i && r->plans[i].from <= r->plans[i - 1].from)
            return train_fail(error, "plans are not in the order of their steps");
        if (check_plan(r, &r->plans[i], error))
            return -1;
    }
    return train_is_text(&r->settings) ? train_text_check(text_of(r), &r->settings, error) : 0;
}

/* Room for what a pass takes from the data. */
static int open_room(train *t)
{
    const train_settings *s = &t->run->settings;
    const size_t batch = s->batch, images = batch > TRAIN_TESTS ? batch : TRAIN_TESTS;
    t->scores = calloc((size_t)train_micro_batches(s) * train_ranks(s), sizeof *t->scores);
    if (!t->scores)
        return -1;
    if (train_is_text(s)) {
        t->text = text_of(t->run);
        t->labels = malloc(batch * s->decoder.context * sizeof *t->labels);
        t->starts = malloc(batch * sizeof *t->starts);
        return t->labels && t->starts ? 0 : -1;
    }
    t->labels = malloc(images * sizeof *t->labels);
    t->pixels = malloc(images * TRAIN_PIXELS * sizeof *t->pixels);
    return t->labels && t->pixels ? 0 : -1;
}

static int open_all(train *t, char *error)
{
    if (open_room(t) || mpsim_format_parse(&t->math, t->run->settings.math))
        return train_fail(error, "out of memory");
    return train_params_open(t, error) || train_use(t, plan_at(t->run, 0), error) ? -1 : 0;
}

train *train_open(const train_run *r, train_engine *e, int how, char *error)
{
    if (check_run(r, error))
        return NULL;
    train *t = calloc(1, sizeof *t);
    if (!t) {
        train_fail(error, "out of memory");
        return NULL;
    }
    t->run = r;
    t->e = e;
    t->count = (how & TRAIN_COUNT) != 0;
    t->lean = (how & TRAIN_LEAN) != 0;
    if (open_all(t, error)) {
        train_close(t);
        return NULL;
    }
    return t;
}

void train_close(train *t)
{
    if (!t)
        return;
    (void)t->e->ops->finish(t->e); /* after a step that failed the engine owes it counts */
    train_pass_close(t, &t->batch);
    train_pass_close(t, &t->test);
    train_pass_close(t, &t->rest);
    train_blocks_close(t);
    train_gather_close(t);
    train_params_close(t);
    for (size_t i = 0; i < TRAIN_LAYERS; i++)
        for (int k = 0; k < TRAIN_FP8; k++)
            free(t->fp8[i][k].state.history);
    free(t->scores);
    free(t->labels);
    free(t->pixels);
    free(t->starts);
    free(t);
}

uint64_t train_steps_done(const train *t)
{
    return t->step;
}

train_engine *train_engine_of(train *t)
{
    return t->e;
}

/* ---- a step ---- */

static int finish(train *t, const char *what, char *error)
{
    return t->e->ops->finish(t->e) ? train_engine_failed(t, what, error) : 0;
}

/* Windows of the text into a pass. */
static void fill(train *t, train_pass *p, const size_t *starts)
{
    const size_t context = t->run->settings.decoder.context;
    for (size_t b = 0; b < p->images; b++)
        train_text_fill(t->text, starts[b], context, p->tokens + b * context, t->labels + b * context);
}

static int run_batch(train *t, uint32_t micro, uint32_t rank, char *error)
{
    const train_settings *s = &t->run->settings;
    uint32_t images[TRAIN_IMAGES];
    if (train_is_text(s)) {
        train_windows(t, micro, rank, t->starts);
        fill(t, &t->batch, t->starts);
        return train_pass_do(t, &t->batch, error);
    }
    train_batch(s->seed, t->step, s->batch, images);
    return train_pass_run(t, &t->batch, images, 0, error);
}

/* The gradients that are the step's, of all micro-batches and ranks. */
static int forward_backward(train *t, char *error)
{
    const train_settings *s = &t->run->settings;
    const uint32_t micros = train_micro_batches(s), ranks = train_ranks(s);
    const double rows = (double)s->batch * (train_is_text(s) ? s->decoder.context : 1);
    t->coefficient = (float)(t->scaler.scale * s->loss_factor / (rows * micros));
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t micro = 0; micro < micros; micro++) {
            t->batch.micro = rank * micros + micro;
            if (run_batch(t, micro, rank, error) || train_gather(t, micro, rank, error))
                return -1;
        }
    return train_gather_ranks(t, error);
}

/* The mean loss of all micro-batches and ranks. */
static void add_scores(const train *t, train_step *out)
{
    const train_settings *s = &t->run->settings;
    const double rows = (double)s->batch * (train_is_text(s) ? s->decoder.context : 1);
    const size_t n = (size_t)train_micro_batches(s) * train_ranks(s);
    double loss = 0;
    uint64_t correct = 0;
    for (size_t i = 0; i < n; i++) {
        loss += (double)t->scores[i].loss;
        correct += t->scores[i].correct;
    }
    out->loss = (float)(loss / (double)n);
    out->accuracy = (double)correct / (rows * (double)n);
}

/* Counts of parameters are those of every pass. */
static void add_entering(train *t)
{
    const train_settings *s = &t->run->settings;
    const uint64_t passes = (uint64_t)train_micro_batches(s) * train_ranks(s);
    const uint64_t times = train_enters_anew(&t->batch) ? 1 : passes;
    t->act.nonzero += times * t->entering.nonzero;
    t->act.lost += times * t->entering.lost;
    t->act.overflow += times * t->entering.overflow;
    t->act.nonfinite += times * t->entering.nonfinite;
}

/* All amaxes are told before a scale follows from them. */
static void next_scales(train *t)
{
    for (int update = 0; update < 2; update++)
        for (size_t i = 0; i < t->batch.n; i++) {
            train_do *d = t->batch.list[i];
            if (!d->delayed || !d->record)
                continue;
            if (update)
                mpsim_delayed_update(d->delayed, 0.0f);
            else
                mpsim_delayed_record(d->delayed, d->amax);
            d->amax = 0;
        }
}

int train_prepare(train *t, char *error)
{
    return train_use(t, plan_at(t->run, t->step), error);
}

int train_next(train *t, train_step *out, char *error)
{
    memset(out, 0, sizeof *out);
    memset(&t->act, 0, sizeof t->act);
    t->agrad = t->wgrad = t->entering = t->act;
    t->updates = t->lost = 0;
    if (t->scaler.stopped)
        return train_fail(error, "the scaler has stopped the training");
    if (train_prepare(t, error) || forward_backward(t, error))
        return -1;
    out->step = t->step;
    out->plan = t->plan;
    if (train_apply(t, out, error))
        return -1;
    if (finish(t, "the end of a step", error))
        return -1;
    add_scores(t, out);
    add_entering(t);
    out->act = t->act;
    out->agrad = t->agrad;
    out->wgrad = t->wgrad;
    out->updates = t->updates;
    out->lost = t->lost;
    next_scales(t);
    t->step++;
    return 0;
}

/* ---- evaluation ---- */

/* Held-back windows from number `first` on, as many as the pass takes. */
static int run_held(train *t, train_pass *p, size_t images, size_t first, char *error)
{
    const size_t context = t->run->settings.decoder.context;
    if (p->n == 0 && train_pass_open(t, p, images, 0, error))
        return -1;
    for (size_t b = 0; b < images; b++)
        t->starts[b] = t->text->trained + (first + b) * context;
    fill(t, p, t->starts);
    return train_pass_do(t, p, error) || finish(t, "evaluation", error) ? -1 : 0;
}

static int evaluate_text(train *t, double *loss, double *accuracy, char *error)
{
    const train_settings *s = &t->run->settings;
    const size_t n = train_windows_held(t->text, s);
    uint64_t correct = 0;
    double sum = 0;
    if (n == 0)
        return train_fail(error, "evaluation needs at least one window");
    for (size_t at = 0; at < n; at += s->batch) {
        const size_t images = n - at < s->batch ? n - at : s->batch;
        if (run_held(t, images < s->batch ? &t->rest : &t->test, images, at, error))
            return -1;
        sum += (double)t->scores->loss * (double)images;
        correct += t->scores->correct;
    }
    *loss = sum / (double)n;
    *accuracy = (double)correct / ((double)n * s->decoder.context);
    return 0;
}

static int evaluate_digits(train *t, double *loss, double *accuracy, char *error)
{
    if (t->test.n == 0 && train_pass_open(t, &t->test, TRAIN_TESTS, 0, error))
        return -1;
    if (train_pass_run(t, &t->test, NULL, TRAIN_IMAGES, error) || finish(t, "evaluation", error))
        return -1;
    *loss = (double)t->scores->loss;
    *accuracy = (double)t->scores->correct / TRAIN_TESTS;
    return 0;
}

int train_evaluate(train *t, double *loss, double *accuracy, char *error)
{
    t->coefficient = 1.0f / TRAIN_TESTS; /* of gradients, of which there are none */
    return (train_is_text(&t->run->settings) ? evaluate_text : evaluate_digits)(t, loss, accuracy, error);
}
