/* t-scaler.c -- every loss scaler against the framework's own algorithm (frameworks.c).
 *
 * What is compared after every step: the events, the scale that the loss had, the one that its
 * gradients are unscaled with, the next one (bit by bit), and the counters that a checkpoint of the
 * framework shows. */
#include "oracle/frameworks.h"
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const mpsim_scaler_type *row_of(const char *name)
{
    const mpsim_scaler_type *t = mpsim_scaler_find(name);
    ck_assert_msg(t != NULL, "no row %s", name);
    return t;
}

/* ---- one step of both ---- */

typedef struct pair {
    const framework *f;
    knobs k;
    mpsim_scaler_config config;
    mpsim_scaler s;
    machine m;
    int64_t step, clean, overflow; /* what any scaler counts */
    int ended;
} pair;

static char mismatch[512];
static uint64_t compared;

static double scale_of(const pair *p)
{
    return p->f->has & PYTHON ? p->m.cur : (double)p->m.scale;
}

static mpsim_scaler_config configured(const framework *f, const knobs *k)
{
    mpsim_scaler_config c = row_of(f->name)->config;
    c.init = k->init;
    if (!f->dynamic)
        return c;
    c.growth = k->grow;
    c.backoff = k->back;
    c.floor = k->floor;
    c.ceiling = k->ceiling;
    c.tolerance = k->tolerance;
    c.threshold = k->threshold;
    c.window = (uint64_t)k->window;
    c.hysteresis = (uint32_t)k->hysteresis;
    if (k->consecutive)
        c.refill = MPSIM_REFILL_CLEAN;
    if (c.floor_rule == MPSIM_FLOOR_RAISE && !k->raise)
        c.floor_rule = MPSIM_FLOOR_CLAMP;
    return c;
}

static void restart(pair *p)
{
    const knobs *k = &p->k;
    p->m = (machine){.scale = (float)k->init, .cur = k->init, .h = k->hysteresis, .last = -1, .rescale = -1};
    p->step = p->clean = 0;
    p->overflow = -1;
    p->ended = 0;
    ck_assert(mpsim_scaler_init(&p->s, &p->config) == MPSIM_OK);
}

static void start(pair *p, const framework *f, const knobs *k)
{
    p->f = f;
    p->k = *k;
    p->config = configured(f, k);
    restart(p);
}

static int differ(const pair *p, const char *what, double is, double should)
{
    if (!*mismatch)
        snprintf(mismatch, sizeof mismatch,
                 "%s init=%a growth=%g backoff=%g floor=%g ceiling=%g "
                 "window=%" PRId64 " hysteresis=%" PRId64 " consecutive=%d tolerance=%g "
                 "threshold=%g, step %" PRId64 ": %s is %a, should be %a",
                 p->f->name, p->k.init, p->k.grow, p->k.back, p->k.floor, p->k.ceiling, p->k.window, p->k.hysteresis,
                 p->k.consecutive, p->k.tolerance, p->k.threshold, p->step, what, is, should);
    return 0;
}

static int64_t at_least_one(int64_t h)
{
    return h < 1 ? 1 : h;
}

/* The counters after a step. Hysteresis that is used up is 1, 0 or less: all back off at once. */
static int counters(const pair *p)
{
    const mpsim_scaler *s = &p->s;
    if (s->step != (uint64_t)p->step)
        return differ(p, "steps", (double)s->step, (double)p->step);
    if (s->clean != (uint64_t)p->clean)
        return differ(p, "clean", (double)s->clean, (double)p->clean);
    if (p->f->has & TRACKER && s->clean != (uint64_t)p->m.tracker)
        return differ(p, "tracker", (double)s->clean, (double)p->m.tracker);
    if (s->last_overflow != p->overflow)
        return differ(p, "last overflow", (double)s->last_overflow, (double)p->overflow);
    if (p->f->has & HYST && at_least_one(s->hysteresis) != at_least_one(p->m.h))
        return differ(p, "hysteresis", (double)s->hysteresis, (double)p->m.h);
    if (p->f->has & OVERS && s->last_rescale != p->m.rescale)
        return differ(p, "last rescale", (double)s->last_rescale, (double)p->m.rescale);
    if (p->f->has & OVERS && s->overflows != (uint64_t)p->m.over)
        return differ(p, "overflows", (double)s->overflows, (double)p->m.over);
    return 1;
}

/* A scaler that has raised gives RAISED for ever and keeps its scale. */
static int still_ended(pair *p, int inf)
{
    const mpsim_scaler_result r = mpsim_scaler_update(&p->s, inf);
    const double scale = scale_of(p);
    compared++;
    if (!(r.events & RAISED) || r.events & (BACK | GROW))
        return differ(p, "events after the end", r.events, RAISED);
    if (bits_of_f64(r.next) != bits_of_f64(scale) || bits_of_f64(p->s.scale) != bits_of_f64(scale))
        return differ(p, "scale after the end", r.next, scale);
    return 1;
}

/* 1 if both did the same. On the step that raises, training ends: only RAISED, OVERFLOW and the
 * scale mean something. */
static int together(pair *p, int inf)
{
    if (p->ended)
        return still_ended(p, inf);
    const double before = scale_of(p);
    const unsigned events = p->f->step(&p->m, &p->k, inf);
    const double after = scale_of(p), unscale = p->f->has & EARLY ? after : before;
    const mpsim_scaler_result r = mpsim_scaler_update(&p->s, inf);
    compared++;
    const unsigned mask = events & RAISED ? RAISED | OV | GROW : ~0u;
    if ((r.events & mask) != events)
        return differ(p, "events", r.events, events);
    if (bits_of_f64(r.scale) != bits_of_f64(before))
        return differ(p, "scale", r.scale, before);
    if (bits_of_f64(r.next) != bits_of_f64(after))
        return differ(p, "next", r.next, after);
    if (bits_of_f64(p->s.scale) != bits_of_f64(after))
        return differ(p, "scale kept", p->s.scale, after);
    if (p->s.stopped != (events & RAISED ? 1 : 0))
        return differ(p, "stopped", p->s.stopped, events & RAISED ? 1 : 0);
    if (events & RAISED) {
        p->ended = 1;
        return 1;
    }
    if (bits_of_f64(r.unscale) != bits_of_f64(unscale))
        return differ(p, "unscale", r.unscale, unscale);
    if (inf)
        p->overflow = p->step;
    p->step += 1;
    p->clean = inf || events & (GROW | REF) ? 0 : p->clean + 1;
    return counters(p);
}

/* ---- the rows ---- */

#define SAME(field, wanted)                                             \
    ck_assert_msg((wanted) < 0 || (double)c->field == (double)(wanted), \
                  "%s: " #field " is %g, "                              \
                  "should be %g",                                       \
                  f->name, (double)c->field, (double)(wanted))

CASE("rows", 30);

TEST(defaults)
{
    for (size_t i = 0; i < FRAMEWORKS; i++) {
        const framework *f = &frameworks[i];
        const mpsim_scaler_type *t = row_of(f->name);
        const mpsim_scaler_config *c = &t->config;
        ck_assert_str_eq(c->name, f->name);
        ck_assert(t->framework && *t->framework && t->source && *t->source);
        ck_assert(mpsim_scaler_config_check(c) == MPSIM_OK);
        SAME(dynamic, f->dynamic);
        SAME(skip, f->skip);
        SAME(growth_rule, f->rule);
        SAME(refill, f->refill);
        SAME(arithmetic, f->arithmetic);
        SAME(guard, f->guard);
        SAME(floor_rule, f->floor_rule);
        SAME(order, f->order);
        SAME(unscale, f->unscale);
        SAME(check, f->check);
        if (f->has & CALLER)
            continue;
        SAME(init, f->init);
        SAME(growth, f->grow);
        SAME(backoff, f->back);
        SAME(floor, f->floor);
        SAME(ceiling, f->ceiling);
        SAME(window, f->dynamic ? f->window : -1);
        SAME(hysteresis, f->hysteresis);
        SAME(tolerance, 0);
        SAME(threshold, 0);
    }
}

/* ---- the algorithms ---- */

static knobs defaults_of(const framework *f)
{
    const mpsim_scaler_config *c = &row_of(f->name)->config;
    knobs k = {f->init, 2, 0.5, f->floor, f->ceiling, 0, 0, f->window, f->hysteresis, 0, 1};
    if (f->has & CALLER || !f->dynamic) {
        k.init = c->init;
        k.window = 2000;
        k.hysteresis = 2;
    }
    return k;
}

CASE("steps", 120);

/* The first growth of a clean run: after `window` steps, in DeepSpeed one later. */
TEST(first_growth)
{
    for (size_t i = 0; i < FRAMEWORKS; i++) {
        const framework *f = &frameworks[i];
        if (f->first <= 0)
            continue;
        pair p;
        const knobs k = defaults_of(f);
        start(&p, f, &k);
        for (int64_t step = 1; step <= 3 * f->window; step++) {
            const mpsim_scaler_result r = mpsim_scaler_update(&p.s, 0);
            const int grows = step >= f->first && (step - f->first) % f->window == 0;
            ck_assert_msg((r.events == GROW) == grows && r.next == r.scale * (grows ? 2 : 1),
                          "%s: events %u in step %" PRId64, f->name, r.events, step);
        }
    }
}

enum { SETS = 6 };

/* Settings of one framework near what can go wrong; 0: it has no such setting. */
static int setting(const framework *f, int set, knobs *k)
{
    const int f32 = !(f->has & PYTHON), seq = (f->has & OVERS) != 0;
    const int factors = framework_takes_factors(f);
    const int cap = f->ceiling > 0 && isfinite(f->ceiling);
    *k = defaults_of(f);
    switch (set) {
    case 0:
        k->init = 1024;
        return 1;
    case 1: /* near the floor, or zero */
        k->init = k->floor > 0 ? 4 * k->floor : f32 ? 0x1p-147 : 0x1p-1072;
        return f->dynamic;
    case 2: /* near the ceiling, or infinity */
        k->init = isfinite(k->ceiling) ? k->ceiling / 2 : f32 ? 0x1p+126 : 0x1p+1022;
        return f->dynamic;
    case 3: /* factors that round: binary64 factors, or binary32 ones */
        k->init = 3000.1;
        k->grow = factors ? 1.1 : 2;
        k->back = factors ? 0.7 : 0.5;
        k->tolerance = seq ? 0.3 : 0;
        return f->dynamic;
    case 4: /* the floor between two scales; in fairseq the threshold as well */
        k->init = 24;
        k->floor = f->floor > 0 ? 5 : 0;
        k->threshold = seq ? 7 : 0;
        k->tolerance = seq ? 0.2 : 0;
        return f->floor > 0 || cap;
    default: /* from below the floor; a ceiling that is no power of two */
        k->init = cap ? 20 : 0.125;
        k->floor = cap ? 3 : f->floor > 0 ? 1 : 0;
        k->ceiling = cap ? 50 : k->ceiling;
        k->threshold = seq ? 1.5 : 0;
        return f->floor > 0 || cap;
    }
}

static int every_pattern(pair *p)
{
    for (unsigned pattern = 0; pattern < 1u << 12; pattern++) {
        restart(p);
        for (unsigned step = 0; step < 12; step++)
            if (!together(p, pattern >> step & 1))
                return 0;
    }
    return 1;
}

static int every_knob(const framework *f, knobs k)
{
    const int zero = f->floor_rule == MPSIM_FLOOR_RAISE;
    const int64_t hysteresis = f->has & HYST ? 3 : 1;
    pair p;
    for (k.window = 1; k.window <= 4; k.window++)
        for (k.hysteresis = 1; k.hysteresis <= hysteresis; k.hysteresis++)
            for (k.consecutive = 0; k.consecutive <= zero; k.consecutive++)
                for (k.raise = !zero; k.raise <= 1; k.raise++) {
                    start(&p, f, &k);
                    if (!every_pattern(&p))
                        return 0;
                }
    return 1;
}

/* All patterns of up to 12 steps: the shorter ones are the beginnings of the longer. */
TESTS(patterns, FRAMEWORKS)
{
    const framework *f = &frameworks[_i];
    const uint64_t before = compared;
    *mismatch = 0;
    for (int set = 0; set < SETS; set++) {
        knobs k;
        if ((set == 0 || test_in_part((uint64_t)(set + _i), 1)) && setting(f, set, &k))
            ck_assert_msg(every_knob(f, k), "%s", mismatch);
    }
    printf("# %s: %" PRIu64 " steps\n", f->name, compared - before);
}

/* Long runs with the defaults: overflows at random, and where scale * amax passes 65504. */
TESTS(long_runs, FRAMEWORKS)
{
    const framework *f = &frameworks[_i];
    const knobs k = defaults_of(f);
    uint64_t state = test_seed() + (uint64_t)_i;
    const size_t n = test_scaled(60000);
    static const unsigned one_in[] = {5000, 700, 30, 3, 0};
    *mismatch = 0;
    for (size_t j = 0; j < sizeof one_in / sizeof *one_in; j++) {
        pair p;
        start(&p, f, &k);
        double walk = 0;
        for (size_t step = 0; step < n && *mismatch == 0; step++) {
            walk += (double)(test_random(&state) % 2001) / 20000 - 0.05;
            const double amax = exp2(walk);
            const int inf = one_in[j] ? test_random(&state) % one_in[j] == 0 : !(scale_of(&p) * amax <= 65504);
            together(&p, inf);
            if (p.ended && step % 50 == 0)
                restart(&p);
        }
        ck_assert_msg(*mismatch == 0, "%s", mismatch);
    }
}

TEST_MAIN("t-scaler");
