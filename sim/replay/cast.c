/* cast.c -- the casts of a step, and the FP8 state behind them; see state.h. */
#include "state.h"

#include <train/step.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- states ---- */

cast_state *replay_state(replay *r, const char *name)
{
    const ptrdiff_t at = nameindex_find(&r->state_names, name);
    if (at >= 0)
        return &r->states[at];
    cast_state *states = realloc(r->states, (r->n_states + 1) * sizeof *states);
    if (!states)
        return NULL;
    r->states = states;
    cast_state *s = &states[r->n_states];
    memset(s, 0, sizeof *s);
    s->name = strdup(name);
    if (!s->name)
        return NULL;
    if (nameindex_add(&r->state_names, s->name, r->n_states)) {
        free(s->name);
        return NULL;
    }
    r->n_states++;
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
static int start_delayed(replay *r, cast_state *s, const mpsim_format *element)
{
    mpsim_delayed_config c = r->plan->delayed;
    c.fp8_max = (float)mpsim_format_max(element);
    if (s->has_delayed && train_same_history(&s->delayed.config, &c))
        return 0;
    free(s->history);
    s->history = calloc(c.history, sizeof *s->history);
    if (!s->history)
        return replay_no_memory();
    s->has_delayed = 1;
    mpsim_delayed_init(&s->delayed, &c, s->history);
    return 0;
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

static replay_cast *add_cast(replay *r, const char *name)
{
    cast_state *s = replay_state(r, name); /* keeps the name for us */
    if (!s)
        return NULL;
    if (r->n_casts == r->room_casts) {
        const size_t room = r->room_casts ? 2 * r->room_casts : 64;
        replay_cast *casts = realloc(r->casts, room * sizeof *casts);
        if (!casts)
            return NULL;
        r->casts = casts;
        r->room_casts = room;
    }
    replay_cast *c = &r->casts[r->n_casts++];
    memset(c, 0, sizeof *c);
    c->name = s->name;
    c->next = c->scale = c->sqnr_db = (double)NAN;
    return c;
}

static void take_counts(replay_cast *c, const mpsim_cast_stats *casts, const mpsim_stats *stats)
{
    c->underflow += casts->counts.underflow;
    c->subnormal = casts->counts.subnormal;
    c->overflow += casts->counts.overflow;
    c->sqnr_db = mpsim_cast_stats_sqnr_db(casts, stats);
}

/* The numbers as the quantiser gets them: x * factor in the compute format. */
static int to_compute(const mpsim_format *f, const double *x, size_t n, double factor,
                      float *y, mpsim_cast_stats *casts)
{
    mpsim_rounding rounding;
    mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
    rounding.scale = factor;
    replay_round(f, factor, y, x, n);
    return mpsim_cast_stats_add(casts, f, &rounding, NULL, x, n) == MPSIM_OK ? 0 : EXIT_DATA;
}

/* How many of the elements that saturate would do so, too, at the scale of this step's amax: none
 * but with a negative margin. */
static uint64_t saturated_at_own(const mpsim_delayed_config *c, const mpsim_block_recipe *b,
                                 const float *y, size_t n, size_t cols, float amax, uint64_t all)
{
    const float own = ldexpf(c->fp8_max, -c->margin) / amax;
    mpsim_cast_stats casts;
    const mpsim_blocks out = {.casts = &casts};
    if (all == 0 || c->margin >= 0 || !(own > 0) || !isfinite(own))
        return 0;
    mpsim_cast_stats_init(&casts);
    mpsim_block_quantize(b, y, n / cols, cols, -1.0f, own, NULL, &out, NULL);
    return casts.counts.overflow < all ? casts.counts.overflow : all;
}

static int cast_blocks(replay *r, replay_cast *c, const mpsim_block_recipe *recipe,
                       const mpsim_format *compute, const double *x, size_t n, size_t cols,
                       double factor)
{
    mpsim_block_recipe b = *recipe;
    mpsim_cast_stats first, casts;
    mpsim_stats stats;
    const mpsim_rng rng = replay_rng(r, c->name);
    float given = 1.0f;
    cast_state *s = replay_state(r, c->name);
    float *y = malloc((n ? n : 1) * sizeof *y);
    double *wide = malloc((n ? n : 1) * sizeof *wide);
    int code = y && wide ? 0 : replay_no_memory();
    mpsim_cast_stats_init(&first);
    mpsim_cast_stats_init(&casts);
    mpsim_stats_init(&stats);
    if (!code)
        code = to_compute(compute, x, n, factor, y, &first);
    if (!code && r->plan->recipe->delayed) {
        code = start_delayed(r, s, mpsim_format_find(b.element));
        if (!code && r->gap && !s->used)
            begin_after_gap(s, mpsim_amax(y, n));
        b.rule = MPSIM_SCALE_GIVEN;
        given = s->delayed.scale;
    }
    if (!code) {
        const mpsim_blocks out = {.casts = &casts};
        for (size_t i = 0; i < n; i++)
            wide[i] = (double)y[i];
        mpsim_stats_add(&stats, wide, n);
        if (mpsim_block_quantize(&b, y, cols ? n / cols : 0, cols, -1.0f, given, &rng, &out, NULL))
            code = fail(EXIT_DATA, "replay: recipe %s does not fit %s", recipe->name, c->name);
    }
    if (!code) {
        c->underflow = first.counts.underflow;
        c->overflow = first.counts.overflow;
        take_counts(c, &casts, &stats);
        snprintf(c->format, sizeof c->format, "%.12s > %.30s", compute->name,
                 r->plan->recipe->delayed ? b.element : recipe->name);
        c->scale = (double)NAN;
    }
    if (!code && r->plan->recipe->delayed) {
        const float amax = mpsim_amax(y, n);
        mpsim_delayed_record(&s->delayed, amax);
        s->used = 1;
        s->cast = r->n_casts - 1;
        c->scale = (double)given * r->scaler.scale;
        const uint64_t all = casts.counts.overflow;
        c->stale = all - saturated_at_own(&s->delayed.config, &b, y, n, cols, amax, all);
    }
    free(y);
    free(wide);
    return code;
}

/* What overflows to an infinity here does so in the weight gradients behind it, too. */
static void see_overflow(replay *r, const replay_cast *c, const mpsim_format *f)
{
    if (c->overflow == 0 || !f->inf || r->overflow)
        return;
    r->overflow = 1;
    r->cause = c->name;
}

int replay_cast_tensor(replay *r, const char *name, train_role role, layer_kind layer,
                       const train_placement *place, int is_operand, const double *x, size_t n,
                       size_t cols, double factor)
{
    static const int backward[TRAIN_ROLES] = {[TRAIN_AGRAD] = 1, [TRAIN_DGRAD] = 1, [TRAIN_WGRAD] = 1};
    const mpsim_format *f = &place->format[role];
    const mpsim_block_recipe *recipe = is_operand ? place->recipe[role] : NULL;
    mpsim_stats stats;
    replay_cast *c = add_cast(r, name);
    if (!c)
        return replay_no_memory();
    mpsim_stats_init(&stats);
    mpsim_stats_add(&stats, x, n);
    c->kind = trace_kind(name);
    c->layer = layer;
    c->count = n;
    c->nonfinite = stats.nan + stats.inf;
    c->nonzero = n - stats.zero - c->nonfinite;
    c->amax = stats.amax * factor;
    if (recipe) {
        const int code = cast_blocks(r, c, recipe, f, x, n, cols, factor);
        if (code)
            return code;
    } else {
        mpsim_rounding rounding;
        mpsim_cast_stats casts;
        mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_cast_stats_init(&casts);
        rounding.scale = factor;
        if (mpsim_cast_stats_add(&casts, f, &rounding, NULL, x, n))
            return fail(EXIT_DATA, "replay: %s cannot be cast", name);
        take_counts(c, &casts, &stats);
        snprintf(c->format, sizeof c->format, "%.40s", f->name);
        c->scale = backward[role] ? r->scaler.scale : 1;
        see_overflow(r, c, f);
    }
    return 0;
}
