/* cast.c -- the casts of a step, and the FP8 state behind them; see state.h. */
#include "impl.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../pass/tiles.h"

#include <train/step.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- states ---- */

cast_state *replay_state(replay *r, const char *name)
{
    const size_t known = r->n_states;
    cast_state *s = nameindex_item(&r->state_names, &r->states, &r->n_states, sizeof *s, name);
    if (r->n_states > known)
        s->mine = replay_is_mine(r, name);
    return s;
}

void replay_states_clear(replay *r)
{
    nameindex_clear(&r->state_names);
    for (size_t i = 0; i < r->n_states; i++) {
        free(r->states[i].name);
        free(r->states[i].history);
    }
    free(r->states);
    r->states = NULL;
    r->n_states = 0;
}

/* Another plan may bring another history: scales start at 1 then. */
static void start_delayed(const replay *r, cast_state *s, const mpsim_format *element)
{
    mpsim_delayed_config c = r->plan->delayed;
    c.fp8_max = (float)mpsim_format_max(element);
    if (s->has_delayed && train_same_history(&s->delayed.config, &c))
        return;
    free(s->history);
    s->history = need_memory(c.history, sizeof *s->history);
    s->has_delayed = 1;
    mpsim_delayed_init(&s->delayed, &c, s->history);
}

/* What the steps that were not recorded left is not known: this step's own amax is the best guess. */
static void begin_after_gap(cast_state *s, float amax)
{
    const mpsim_delayed_config c = s->delayed.config;
    memset(s->history, 0, c.history * sizeof *s->history);
    mpsim_delayed_init(&s->delayed, &c, s->history);
    mpsim_delayed_record(&s->delayed, amax);
    mpsim_delayed_update(&s->delayed, 0.0f);
}

void replay_states_update(replay *r)
{
    for (size_t i = 0; i < r->n_states; i++) {
        cast_state *s = &r->states[i];
        if (!s->used)
            continue;
        s->used = 0;
        mpsim_delayed_update(&s->delayed, 0.0f);
        /* slot 0 waits for the next step; the others are in the order of their steps */
        const size_t n = s->delayed.config.history;
        r->casts[s->cast].next = (double)s->delayed.scale;
        r->casts[s->cast].history = s->history + (n > 1);
        r->casts[s->cast].n_history = n > 1 ? n - 1 : 0;
    }
}

/* ---- casts ---- */

/* What becomes of the tensor KIND:OF, under the name KIND-SUFFIX:OF. */
static void add_cast(replay *r, const char *kind, const char *suffix, const char *of)
{
    char name[512], tensor[512];
    snprintf(name, sizeof name, "%s%s:%s", kind, suffix, of);
    snprintf(tensor, sizeof tensor, "%s:%s", kind, of);
    cast_state *s = replay_state(r, name); /* keeps the name for us */
    s->mine = replay_is_mine(r, tensor);
    need_room(&r->casts, r->n_casts, sizeof *r->casts);
    replay_cast *c = &r->casts[r->n_casts++];
    memset(c, 0, sizeof *c);
    c->name = s->name;
    c->kind = trace_kind(tensor);
    c->next = c->scale = c->sqnr_db = (double)NAN;
}

void replay_add_cast(replay *r, const char *kind, const char *of)
{
    add_cast(r, kind, "", of);
}

void replay_add_columns(replay *r, const char *kind, const char *of)
{
    add_cast(r, kind, ".qt", of);
}

/* What is cast, to what, and what there is to say of both: each its share of a cast. */
typedef struct outcome {
    mpsim_stats stats;
    mpsim_cast_stats casts;
} outcome;

/* Statistics of n numbers as they are, and as f has them times factor; f NULL: the former. */
static mpsim_status summarise(mpsim_summary *s, const mpsim_format *f, double factor, const record_values *x, size_t n,
                              outcome *o)
{
    mpsim_cast cast = {.format = f};
    mpsim_rounding_init(&cast.rounding, MPSIM_ROUND_NEAREST_EVEN);
    cast.rounding.scale = factor;
    mpsim_stats_init(&o->stats);
    mpsim_cast_stats_init(&o->casts);
    mpsim_status status = mpsim_summary_begin(s, f ? &cast : NULL, f ? 1 : 0,
                                              MPSIM_SUMMARY_SUMS | (f ? (unsigned)MPSIM_SUMMARY_ERRORS : 0));
    if (status == MPSIM_OK)
        status = x->narrow ? mpsim_summary_add_f32(s, NULL, x->narrow, n) : mpsim_summary_add_f64(s, NULL, x->wide, n);
    return status == MPSIM_OK ? mpsim_summary_read(s, &o->stats, NULL, &o->casts) : status;
}

static void take_counts(replay_cast *c, const mpsim_cast_stats *casts, const mpsim_stats *stats)
{
    c->underflow += casts->counts.underflow;
    c->subnormal = casts->counts.subnormal;
    c->overflow += casts->counts.overflow;
    c->sqnr_db = mpsim_cast_stats_sqnr_db(casts, stats);
}

/* How many of the elements that saturate would do so, too, at the scale of this step's amax: none
 * but with a negative margin. */
static uint64_t saturated_at_own(const mpsim_delayed_config *c, const mpsim_block_recipe *b, const float *y, size_t n,
                                 size_t cols, float amax, uint64_t all)
{
    const float own = ldexpf(c->fp8_max, -c->margin) / amax;
    mpsim_counts counts = {0, 0, 0, 0, 0};
    const mpsim_blocks out = {.counts = &counts};
    if (all == 0 || c->margin >= 0 || !(own > 0) || !isfinite(own))
        return 0;
    mpsim_block_quantize(b, y, n / cols, cols, -1.0f, own, NULL, &out, NULL);
    return counts.overflow < all ? counts.overflow : all;
}

/* The FP8 state that a cast works with; the scale that it takes. */
static float begin_delayed(const replay *r, cast_state *s, const mpsim_block_recipe *b, const float *y, size_t n)
{
    start_delayed(r, s, mpsim_format_find(b->element));
    if (r->gap && !s->used)
        begin_after_gap(s, mpsim_amax(y, n));
    return s->delayed.scale;
}

static void end_delayed(const replay *r, cast_state *s, replay_cast *c, const mpsim_block_recipe *b,
                        const replay_casting *how, const float *y, float given, uint64_t all)
{
    const float amax = mpsim_amax(y, how->n);
    mpsim_delayed_record(&s->delayed, amax);
    s->used = 1;
    s->cast = (size_t)(c - r->casts);
    c->scale = (double)given * r->scaler.scale;
    c->stale = all - saturated_at_own(&s->delayed.config, b, y, how->n, how->cols, amax, all);
}

/* The numbers as the quantiser gets them, x * factor in the compute format, are y. */
static void cast_blocks(const replay *r, replay_cast *c, cast_state *s, const mpsim_block_recipe *recipe,
                        const replay_casting *how, float *y, replay_problem *problem)
{
    const mpsim_format *compute = &how->place->format[how->role];
    const int delayed = r->plan->recipe->delayed;
    mpsim_block_recipe b = *recipe;
    mpsim_cast_stats casts;
    outcome plain;
    const mpsim_rng rng = replay_rng(r, c->name);
    const mpsim_blocks out = {.casts = &casts};
    const record_values values = {.narrow = y};
    float given = 1.0f;
    mpsim_cast_stats_init(&casts);
    if (summarise(replay_self(r)->summary, NULL, 1, &values, how->n, &plain))
        (void)need(NULL);
    if (delayed) {
        given = begin_delayed(r, s, &b, y, how->n);
        b.rule = MPSIM_SCALE_GIVEN;
    }
    const size_t rows = how->cols ? how->n / how->cols : 0;
    if (mpsim_block_quantize(&b, y, how->columns ? how->cols : rows, how->columns ? rows : how->cols, -1.0f, given,
                             &rng, &out, NULL)) {
        replay_fails(problem, EXIT_DATA, "replay: recipe %s does not fit %s", recipe->name, c->name);
        return;
    }
    take_counts(c, &casts, &plain.stats);
    snprintf(c->format, sizeof c->format, "%.12s > %s%.24s", compute->name,
             how->columns && how->place->hadamard ? "rht " : "", delayed ? b.element : recipe->name);
    c->scale = (double)NAN;
    if (delayed)
        end_delayed(r, s, c, &b, how, y, given, casts.counts.overflow);
}

/* The matrix of y, transposed, each row through the transform and rounded to f again. */
static float *transposed(const replay_casting *how, const mpsim_format *f, const float *y)
{
    const size_t rows = how->cols ? how->n / how->cols : 0;
    float *t = need(array_memory(how->n, sizeof *t));
    pass_block_transpose(t, y, rows, how->cols);
    if (!how->place->hadamard)
        return t;
    for (size_t j = 0; j < how->cols && rows; j++)
        mpsim_hadamard_groups(t + j * rows, rows, how->place->hadamard, 0);
    const record_values values = {.narrow = t};
    replay_round(f, 1, t, &values, 0, how->n);
    return t;
}

void replay_cast_tensor(const replay *r, size_t cast, const replay_casting *how, const record_values *x,
                        replay_problem *problem)
{
    static const int backward[TRAIN_ROLES] = {[TRAIN_AGRAD] = 1, [TRAIN_DGRAD] = 1, [TRAIN_WGRAD] = 1};
    const mpsim_format *f = &how->place->format[how->role];
    const mpsim_block_recipe *recipe = how->is_operand ? how->place->recipe[how->role] : NULL;
    replay_cast *c = &r->casts[cast];
    outcome o;
    const mpsim_status status = summarise(replay_self(r)->summary, f, how->factor, x, how->n, &o);
    if (status == MPSIM_ENOMEM)
        (void)need(NULL);
    if (status != MPSIM_OK) {
        replay_fails(problem, EXIT_DATA, "replay: %s cannot be cast", c->name);
        return;
    }
    c->layer = how->layer;
    c->count = how->n;
    c->nonfinite = o.stats.nan + o.stats.inf;
    c->nonzero = how->n - o.stats.zero - c->nonfinite;
    c->amax = o.stats.amax * how->factor;
    if (!recipe) {
        take_counts(c, &o.casts, &o.stats);
        snprintf(c->format, sizeof c->format, "%.40s", f->name);
        c->scale = backward[how->role] ? r->scaler.scale : 1;
        /* what overflows to an infinity here does so in the weight gradients behind it, too */
        c->infinite = c->overflow > 0 && f->inf;
        return;
    }
    const ptrdiff_t state = nameindex_find(&r->state_names, c->name);
    float *y = need(array_memory(how->n, sizeof *y));
    c->underflow = o.casts.counts.underflow;
    c->overflow = o.casts.counts.overflow;
    replay_round(f, how->factor, y, x, 0, how->n);
    float *t = how->columns ? transposed(how, f, y) : NULL;
    cast_blocks(r, c, &r->states[state], recipe, how, t ? t : y, problem);
    free(t);
    free(y);
}
