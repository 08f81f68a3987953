/* recipe.c -- see recipe.h. */
#include "recipe.h"

#include "support/support.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- binary32 by MPFR ---- */

typedef int (*operation)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

static float f32_op(operation op, float a, float b)
{
    static mpfr_t x, y, z;
    static int ready;
    if (!ready) {
        mpfr_inits2(24, x, y, z, (mpfr_ptr)0);
        mpfr_set_emin(-148); /* 2^-149 is 0.1b 2^-148 */
        mpfr_set_emax(128);
        ready = 1;
    }
    mpfr_set_flt(x, a, MPFR_RNDN);
    mpfr_set_flt(y, b, MPFR_RNDN);
    const int inexact = op(z, x, y, MPFR_RNDN);
    mpfr_subnormalize(z, inexact, MPFR_RNDN);
    return mpfr_get_flt(z, MPFR_RNDN);
}

float quotient(float a, float b)
{
    return f32_op(mpfr_div, a, b);
}

int recipe_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || bits_of_f32(a) == bits_of_f32(b);
}

/* ---- the oracle ---- */

static float larger(float a, float b, int nan_wins)
{
    if (isnan(a))
        return nan_wins ? a : b;
    if (isnan(b))
        return nan_wins ? b : a;
    return a > b ? a : b;
}

void oracle_record(state *s, float amax)
{
    const int python = s->variant == MPSIM_DELAYED_PYTHON;
    s->history[0] = larger(s->history[0], amax, python);
}

/* The scale that an amax gives, remembered: there are few different ones. */
static float fresh(const state *s, float amax)
{
    static struct {
        uint32_t amax, max;
        int margin, python, used;
        float scale;
    } memo[4096];
    const int python = s->variant == MPSIM_DELAYED_PYTHON;
    const uint32_t a = bits_of_f32(amax), m = bits_of_f32(s->max);
    const uint32_t hash = (a ^ a >> 11 ^ m >> 7 ^ (uint32_t)(s->margin + 200) * 2654435761u ^ (uint32_t)python * 97u) %
                          COUNT(memo);
    if (memo[hash].used && memo[hash].amax == a && memo[hash].max == m && memo[hash].margin == s->margin &&
        memo[hash].python == python)
        return memo[hash].scale;
    const float power = ldexpf(1, s->margin), unpower = ldexpf(1, -s->margin);
    /* torch divides a number by a tensor as reciprocal times number. */
    float scale = python ? quotient(f32_op(mpfr_mul, quotient(1, amax), s->max), power)
                         : quotient(f32_op(mpfr_mul, s->max, unpower), amax);
    if (isinf(scale))
        scale = f32_of_bits(0x7f7fffff);
    memo[hash].amax = a;
    memo[hash].max = m;
    memo[hash].margin = s->margin;
    memo[hash].python = python;
    memo[hash].scale = scale;
    memo[hash].used = 1;
    return scale;
}

void oracle_update(state *s, float reduced)
{
    const float last = reduced != 0 ? reduced : s->history[0];
    const int python = s->variant == MPSIM_DELAYED_PYTHON;
    float amax = 0, rolled[SLOTS];
    if (s->variant == MPSIM_DELAYED_BULK && last == 0) {
        memcpy(rolled, s->history, sizeof rolled);
    } else {
        for (int i = 0; i < s->length; i++) {
            const float a = i == s->length - 1 ? last : s->history[i + 1];
            amax = larger(amax, a, python);
            rolled[i] = i == 0 ? 0 : a;
        }
    }
    if (s->most_recent)
        amax = last;
    memcpy(s->history, rolled, (size_t)s->length * sizeof rolled[0]);
    if (isfinite(amax) && amax > 0) {
        static float of = 1, is = 1;
        s->scale = fresh(s, amax);
        if (bits_of_f32(of) != bits_of_f32(s->scale)) {
            of = s->scale;
            is = quotient(1, of);
        }
        s->inverse = is;
    }
}

/* ---- side by side ---- */

void pair_init(pair *p, int length, int algorithm, int variant, int margin, float max)
{
    memset(p, 0, sizeof *p);
    p->s = (state){.length = length,
                   .most_recent = algorithm,
                   .variant = variant,
                   .margin = margin,
                   .max = max,
                   .scale = 1,
                   .inverse = 1};
    mpsim_delayed_config c;
    mpsim_delayed_config_init(&c, mpsim_format_find("e4m3"));
    c.history = (uint32_t)length;
    c.algorithm = algorithm ? MPSIM_AMAX_MOST_RECENT : MPSIM_AMAX_MAX;
    c.variant = (uint8_t)variant;
    c.margin = (int16_t)margin;
    c.fp8_max = max;
    for (int i = 0; i < SLOTS; i++)
        p->history[i] = i < length ? 99 : 55; /* init clears its own */
    ck_assert_int_eq(mpsim_delayed_init(&p->d, &c, p->history), MPSIM_OK);
}

void pair_copy(pair *to, const pair *from)
{
    *to = *from;
    to->d.history = to->history;
}

int pair_equal(const pair *p)
{
    int equal = recipe_same(p->d.scale, p->s.scale) && recipe_same(p->d.scale_inverse, p->s.inverse);
    for (int i = 0; i < p->s.length; i++)
        equal &= recipe_same(p->history[i], p->s.history[i]);
    for (int i = p->s.length; i < SLOTS; i++)
        equal &= p->history[i] == 55;
    return equal;
}

void step(pair *p, float amax, float reduced)
{
    oracle_record(&p->s, amax);
    mpsim_delayed_record(&p->d, amax);
    oracle_update(&p->s, reduced);
    mpsim_delayed_update(&p->d, reduced);
}

const char *describe(const pair *p)
{
    static char text[640];
    int n = snprintf(text, sizeof text,
                     "length %d algorithm %d variant %d margin %d: scale %a %a, "
                     "inverse %a %a, history",
                     p->s.length, p->s.most_recent, p->s.variant, p->s.margin, (double)p->d.scale, (double)p->s.scale,
                     (double)p->d.scale_inverse, (double)p->s.inverse);
    for (int i = 0; i < p->s.length && n > 0 && (size_t)n < sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %a %a", (double)p->history[i], (double)p->s.history[i]);
    return text;
}
