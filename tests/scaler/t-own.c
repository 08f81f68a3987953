/* t-own.c -- what the fields of a scaler do where no framework ships the combination, values
 * outside their domains, and a run whose overflows come from its gradients. */
#include "oracle/frameworks.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

static mpsim_scaler_config row_of(const char *name)
{
    const mpsim_scaler_type *t = mpsim_scaler_find(name);
    ck_assert_msg(t != NULL, "no row %s", name);
    return t->config;
}

/* ---- rows with changes that no framework ships ---- */

/* The events of every step. -: none; s: skip; b: backs off; g: grows; t: tolerated; l: the floor
 * cut; h: the ceiling cut; r: refused; x: raised. */
static const struct {
    const char *text, *steps;
    double last;
} owns[] = {
    {"torch:init=3000.1", "-", 0x1.770334p+11},
    {"apex:init=3000.1", "-", 3000.1},
    {"torch:floor=1024,init=2048", "sb sbl sbl", 1024},
    {"torch:ceiling=100000,window=1", "gh gh sb", 50000},
    {"torch:ceiling=2^17,window=1", "g gh", 131072},
    {"torch:hysteresis=2,refill=never,window=2", "st sb - g sb sb", 16384},
    {"torch:hysteresis=2,refill=growth,window=2", "st sb - g st sb", 32768},
    {"megatron:refill=backoff", "st sb st sb - st", 1073741824},
    {"megatron:refill=clean,hysteresis=3", "st st sb sb - st st - st st sb", 0x1p+29},
    {"torch:skip=0", "b - b", 16384},
    {"torch:dynamic=0,window=1", "- s - s", 65536},
    {"torch:floor-rule=stop,floor=2^14", "sb x x x", 32768},
    {"keras:floor-rule=raise,floor=2^14", "sb x x", 16384},
    {"torch:arithmetic=f64,init=2^127,window=1", "r sb g r", 0x1p+127},
    {"torch:arithmetic=f64,guard=0,init=2^127,window=1", "g g", 0x1p+129},
    {"torch:arithmetic=f32,guard=0,init=2^127,window=1", "g g sb", (double)INFINITY},
    {"torch:guard=0,init=2^127,window=1", "g sb g", (double)INFINITY}, /* CUDA up to 2.0 */
    {"torch:growth-rule=interval,window=2", "- - g - g sb - - g", 262144},
    {"torch:growth-rule=multiple,window=2", "- g - g sb - g", 262144},
};

static unsigned letters(const char *word, size_t n)
{
    static const struct {
        char letter;
        unsigned event;
    } all[] = {{'s', SKIP | OV}, {'b', BACK | OV}, {'g', GROW}, {'t', TOLD},
               {'l', LOW},       {'h', HIGH},      {'r', REF},  {'x', RAISED}};
    unsigned e = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            e |= word[i] == all[j].letter ? all[j].event : 0;
    return e;
}

CASE("scalers", 60);

TEST(own)
{
    for (size_t i = 0; i < sizeof owns / sizeof *owns; i++) {
        mpsim_scaler_config c;
        mpsim_scaler s;
        ck_assert_msg(mpsim_scaler_parse(&c, owns[i].text) == MPSIM_OK, "%s", owns[i].text);
        ck_assert(mpsim_scaler_init(&s, &c) == MPSIM_OK);
        size_t step = 0;
        for (const char *w = owns[i].steps; *w; w += strspn(w, " "), step++) {
            const size_t n = strcspn(w, " ");
            const unsigned e = letters(w, n), mask = e & RAISED ? RAISED : ~0u;
            const unsigned is = mpsim_scaler_update(&s, (e & (OV | RAISED)) != 0).events;
            ck_assert_msg((is & mask) == e, "%s, step %zu: events %u, not %u", owns[i].text, step, is, e);
            w += n;
        }
        ck_assert_msg(bits_of_f64(s.scale) == bits_of_f64(owns[i].last), "%s: %a", owns[i].text, s.scale);
    }
}

/* ---- numbers ---- */

/* Values that show the arithmetic: the product with 0.7 in binary64, rounded once, and with
 * binary32's 0.7 differ; so do the two ways with 1.1. */
TEST(arithmetic)
{
    mpsim_scaler a, b;
    mpsim_scaler_config ca = row_of("torch"), cb = row_of("megatron");
    ca.backoff = cb.backoff = 0.7;
    ca.init = cb.init = 65536;
    cb.hysteresis = 1;
    ck_assert(mpsim_scaler_init(&a, &ca) == MPSIM_OK && mpsim_scaler_init(&b, &cb) == MPSIM_OK);
    size_t differences = 0;
    float x = 65536, y = 65536;
    for (int i = 0; i < 30; i++) {
        const double ra = mpsim_scaler_update(&a, 1).next, rb = mpsim_scaler_update(&b, 1).next;
        x = (float)((double)x * 0.7);
        y = y * 0.7f < 1 ? 1 : y * 0.7f;
        ck_assert(bits_of_f64(ra) == bits_of_f64((double)x));
        ck_assert(bits_of_f64(rb) == bits_of_f64((double)y));
        differences += ra != rb;
    }
    ck_assert_msg(differences >= 10, "only %zu of 30 differ", differences);
}

/* ---- a run whose overflows come from its gradients ---- */

/* Keras, amax constant: the first steps are skipped until scale * amax <= 65504; then the scale
 * doubles after 2000 clean steps, the next step overflows and halves it: one step of 2001. */
TEST(steady_state)
{
    static const double amax[] = {3, 1.0, 8.1, 1000, 16376};
    for (size_t i = 0; i < sizeof amax / sizeof *amax; i++) {
        for (int tf = 0; tf < 2; tf++) {
            mpsim_scaler s;
            const mpsim_scaler_config c = row_of(tf ? "tf-keras" : "keras");
            ck_assert(mpsim_scaler_init(&s, &c) == MPSIM_OK);
            size_t lead = 0, skipped = 0;
            double scale = 32768;
            for (; scale * amax[i] > 65504; scale /= 2)
                lead++;
            for (size_t step = 0; step < lead; step++)
                ck_assert(mpsim_scaler_update(&s, s.scale * amax[i] > 65504).events & SKIP);
            ck_assert(s.scale == scale);
            while (s.scale * amax[i] <= 65504)
                mpsim_scaler_update(&s, 0);
            const size_t steps = (size_t)200 * 2001;
            for (size_t step = 0; step < steps; step++)
                skipped += (mpsim_scaler_update(&s, s.scale * amax[i] > 65504).events & SKIP) != 0;
            ck_assert_uint_eq(skipped, 200);
            const double percent = 100 * (double)skipped / (double)steps;
            ck_assert_msg(percent > 0.0499 && percent < 0.0501, "%g %%", percent);
        }
    }
}

/* ---- fields outside their domain ---- */

static void refused(const char *what, const mpsim_scaler_config *c)
{
    mpsim_scaler s;
    ck_assert_msg(mpsim_scaler_config_check(c) == MPSIM_EINVAL, "check takes a bad %s", what);
    ck_assert_msg(mpsim_scaler_init(&s, c) == MPSIM_EINVAL, "init takes a bad %s", what);
}

#define BAD(field, value)                         \
    do {                                          \
        mpsim_scaler_config c_ = row_of("torch"); \
        c_.field = (value);                       \
        refused(#field, &c_);                     \
    } while (0)

TEST(domain)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    BAD(dynamic, 2);
    BAD(skip, 2);
    BAD(guard, 2);
    BAD(growth_rule, 3);
    BAD(refill, 8);
    BAD(arithmetic, 3);
    BAD(floor_rule, 3);
    BAD(order, 3);
    BAD(unscale, 3);
    BAD(check, 2);
    BAD(hysteresis, 0);
    BAD(window, 0);
    const double wrong[] = {-1, inf, nan};
    for (size_t i = 0; i < 3; i++) {
        BAD(init, wrong[i]);
        BAD(growth, wrong[i]);
        BAD(backoff, wrong[i]);
        BAD(tolerance, wrong[i]);
        BAD(threshold, wrong[i]);
        BAD(floor, wrong[i]);
    }
    BAD(growth, 0);
    BAD(backoff, 0);
    BAD(ceiling, -1);
    BAD(ceiling, nan);
    BAD(floor, nan);
    BAD(init, -0.0);
    BAD(init, 1e300); /* binary32 cannot hold it */
    BAD(floor, 1e300);
    mpsim_scaler_config crossed = row_of("torch");
    crossed.floor = 8;
    crossed.ceiling = 4;
    refused("floor above ceiling", &crossed);
}

TEST_MAIN("t-scaler-own");
