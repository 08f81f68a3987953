/* block.c -- see block.h. */
#include "block.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- binary32 by MPFR ---- */

static mpfr_t X, Y, Z, W;

static void f32_ready(void)
{
    static int ready;
    if (!ready)
        mpfr_inits2(24, X, Y, Z, W, (mpfr_ptr)0);
    ready = 1;
    mpfr_set_emin(-148); /* 2^-149 is 0.1b 2^-148 */
    mpfr_set_emax(128);
}

static float f32_done(int inexact)
{
    mpfr_subnormalize(Z, inexact, MPFR_RNDN);
    return mpfr_get_flt(Z, MPFR_RNDN);
}

float f32_mul(float a, float b)
{
    f32_ready();
    mpfr_set_flt(X, a, MPFR_RNDN);
    mpfr_set_flt(Y, b, MPFR_RNDN);
    return f32_done(mpfr_mul(Z, X, Y, MPFR_RNDN));
}

float f32_div(float a, float b)
{
    f32_ready();
    mpfr_set_flt(X, a, MPFR_RNDN);
    mpfr_set_flt(Y, b, MPFR_RNDN);
    return f32_done(mpfr_div(Z, X, Y, MPFR_RNDN));
}

float f32_add(float a, float b)
{
    f32_ready();
    mpfr_set_flt(X, a, MPFR_RNDN);
    mpfr_set_flt(Y, b, MPFR_RNDN);
    return f32_done(mpfr_add(Z, X, Y, MPFR_RNDN));
}

static float f32_fma(float a, float b, float c)
{
    f32_ready();
    mpfr_set_flt(X, a, MPFR_RNDN);
    mpfr_set_flt(Y, b, MPFR_RNDN);
    mpfr_set_flt(W, c, MPFR_RNDN);
    return f32_done(mpfr_fma(Z, X, Y, W, MPFR_RNDN));
}

/* f32(a / b) with the quotient in binary64. */
static float f32_div_by_f64(double a, double b)
{
    static mpfr_t d[3];
    static int ready;
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    if (!ready)
        mpfr_inits2(53, d[0], d[1], d[2], (mpfr_ptr)0);
    ready = 1;
    mpfr_set_d(d[0], a, MPFR_RNDN);
    mpfr_set_d(d[1], b, MPFR_RNDN);
    mpfr_div(d[2], d[0], d[1], MPFR_RNDN); /* no subnormal of binary64 is near */
    f32_ready();
    return f32_done(mpfr_set(Z, d[2], MPFR_RNDN));
}

/* 2^e for e of -149 to 127, by bits. */
static float f32_power(int e)
{
    return f32_of_bits(e < -126 ? (uint32_t)1 << (e + 149) : (uint32_t)(e + 127) << 23);
}

/* floor(log2 a) of a finite a > 0. */
int floor_log2(double a)
{
    int e;
    (void)frexp(a, &e);
    return e - 1;
}

static int is_power(double a)
{
    int e;
    return frexp(a, &e) == 0.5;
}

/* ---- element formats ---- */

const char *const oracle_elements[ORACLE_ELEMENTS] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};

static grid grids[ORACLE_ELEMENTS] = {
    {"e4m3", 8, 3, 7, 0x7e, 0x7f, {0}}, {"e5m2", 8, 2, 15, 0x7b, 0x7f, {0}}, {"e3m2", 6, 2, 3, 0x1f, 0, {0}},
    {"e2m3", 6, 3, 1, 0x1f, 0, {0}},    {"e2m1", 4, 1, 1, 0x07, 0, {0}},
};

const grid *grid_of(const char *name)
{
    for (size_t i = 0; i < COUNT(grids); i++) {
        grid *g = &grids[i];
        if (strcmp(g->name, name) != 0)
            continue;
        for (unsigned code = 0; g->v[1] == 0 || code <= g->top + 1; code++) {
            const int m = 1 << g->mbits, field = (int)code / m, t = (int)code % m;
            g->v[code] = field == 0 ? ldexp(t, 1 - g->bias - g->mbits) : ldexp(m + t, field - g->bias - g->mbits);
        }
        return g;
    }
    ck_abort_msg("no grid %s", name);
}

double grid_max(const grid *g)
{
    return g->v[g->top];
}

int grid_emax(const grid *g)
{
    return floor_log2(grid_max(g));
}

/* The index of a >= 0 rounded on the grid, top + 1 for what is beyond it. */
static unsigned nearest_even(const grid *g, double a, int *tie)
{
    unsigned low = 0, high = g->top + 1;
    if (a >= g->v[high])
        return high;
    while (high - low > 1) {
        const unsigned m = (low + high) / 2;
        *(g->v[m] <= a ? &low : &high) = m;
    }
    const double middle = (g->v[low] + g->v[high]) / 2; /* exact */
    *tie = a == middle;
    if (a == middle)
        return low + (low & 1);
    return a > middle ? high : low;
}

static float step_of(float a)
{
    return a < 2 ? 0.5f : a < 4 ? 1 : 2;
}

/* TransformerEngine's emulation of cvt.rs with 8 bits, for E2M1. */
static unsigned stochastic(const grid *g, float a, unsigned random)
{
    const float t = f32_fma((float)random / 256, step_of(a), a);
    const double q = floor((double)t / (double)step_of(t)) * (double)step_of(t);
    for (unsigned code = 0; code <= g->top; code++)
        if (q == g->v[code])
            return code;
    ck_assert(q > grid_max(g));
    return g->top + 1;
}

/* microxcaling: sign floor(|m| + 0.5) in binary32, m in units of the last place. The sum rounds:
 * the number below 0.5 becomes 1, too; ties go away from zero. */
static unsigned half_away(const grid *g, float a, int *tie)
{
    unsigned low = 0;
    while (low <= g->top && g->v[low + 1] <= (double)a)
        low++;
    if (low > g->top)
        return low;
    const double unit = g->v[low + 1] - g->v[low];
    const double m = (double)a / unit; /* by a power of two */
    *tie = m - floor(m) == 0.5;
    return low + (unsigned)(floor((double)f32_add((float)m, 0.5f)) - g->v[low] / unit);
}

/* The saturating cast of y. */
element oracle_cast(const grid *g, int mode, float y, unsigned random)
{
    element e = {0};
    e.not_a_number = isnan(y) != 0;
    if (e.not_a_number) {
        e.code = g->nan ? g->nan : g->top;
        e.value = g->nan ? (double)NAN : grid_max(g);
        return e;
    }
    const double a = fabs((double)y);
    unsigned i = mode == STOCHASTIC ? stochastic(g, (float)a, random)
                 : mode == AWAY     ? half_away(g, (float)a, &e.tie)
                                    : nearest_even(g, a, &e.tie);
    e.overflow = i > g->top;
    if (e.overflow)
        i = g->top;
    e.underflow = i == 0;
    e.subnormal = i > 0 && i < 1u << g->mbits;
    const int minus = signbit(y) && (mode != AWAY || y != 0); /* sign(-0) is 0 there */
    e.code = i | (minus ? 1u << (g->bits - 1) : 0);
    e.value = minus ? -g->v[i] : g->v[i];
    return e;
}

/* ---- the table, a second time ---- */

const row oracle_table[ORACLE_ROWS] = {
    {"te-current", "e4m3", MPSIM_SCALE_AMAX_TE, 0, EVEN, 0, 0, BIG, 0},
    {"te-current-e5m2", "e5m2", MPSIM_SCALE_AMAX_TE, 0, EVEN, 0, 0, BIG, 0},
    {"te-current-pow2", "e4m3", MPSIM_SCALE_AMAX_TE, 1, EVEN, 0, 0, BIG, 0},
    {"te-block-1x128", "e4m3", MPSIM_SCALE_AMAX_TE, 1, EVEN, 1, 128, BIG, 0},
    {"te-block-1x128-e5m2", "e5m2", MPSIM_SCALE_AMAX_TE, 1, EVEN, 1, 128, BIG, 0},
    {"te-block-128x128", "e4m3", MPSIM_SCALE_AMAX_TE, 1, EVEN, 128, 128, BIG, 0},
    {"mxfp8", "e4m3", MPSIM_SCALE_E8M0_TE, 0, EVEN, 1, 32, 0, 0},
    {"mxfp8-e5m2", "e5m2", MPSIM_SCALE_E8M0_TE, 0, EVEN, 1, 32, 0, 0},
    {"mxfp8-floor", "e4m3", MPSIM_SCALE_E8M0_FLOOR, 0, EVEN, 1, 32, 0, 0},
    {"mxfp8-even", "e4m3", MPSIM_SCALE_E8M0_EVEN, 0, EVEN, 1, 32, 0, 0},
    {"mxfp8-ceil", "e4m3", MPSIM_SCALE_E8M0_CEIL, 0, EVEN, 1, 32, 0, 0},
    {"mxfp8-rceil", "e4m3", MPSIM_SCALE_E8M0_RCEIL, 0, EVEN, 1, 32, 0, 0},
    {"mxfp6-e3m2", "e3m2", MPSIM_SCALE_E8M0_FLOOR, 0, EVEN, 1, 32, 0, 0},
    {"mxfp6-e2m3", "e2m3", MPSIM_SCALE_E8M0_FLOOR, 0, EVEN, 1, 32, 0, 0},
    {"mxfp4", "e2m1", MPSIM_SCALE_E8M0_FLOOR, 0, EVEN, 1, 32, 0, 0},
    {"nvfp4", "e2m1", MPSIM_SCALE_NVFP4_TE, 0, EVEN, 1, 16, 0, 0},
    {"nvfp4-2d", "e2m1", MPSIM_SCALE_NVFP4_TE, 0, EVEN, 16, 16, 0, 0},
    {"nvfp4-sr", "e2m1", MPSIM_SCALE_NVFP4_TE, 0, STOCHASTIC, 1, 16, 0, 0},
    {"nvfp4-torchao", "e2m1", MPSIM_SCALE_NVFP4_TORCHAO, 0, EVEN, 1, 16, 0, 0},
    {"microx-e4m3", "e4m3", MPSIM_SCALE_E8M0_MICROX, 0, AWAY, 1, 32, 0, 0},
    {"microx-e5m2", "e5m2", MPSIM_SCALE_E8M0_MICROX, 0, AWAY, 1, 32, 0, 0},
    {"microx-e3m2", "e3m2", MPSIM_SCALE_E8M0_MICROX, 0, AWAY, 1, 32, 0, 0},
    {"microx-e2m3", "e2m3", MPSIM_SCALE_E8M0_MICROX, 0, AWAY, 1, 32, 0, 0},
    {"microx-e2m1", "e2m1", MPSIM_SCALE_E8M0_MICROX, 0, AWAY, 1, 32, 0, 0},
    {"torchao-tensorwise", "e4m3", MPSIM_SCALE_AMAX_TORCHAO, 0, EVEN, 0, 0, 0, 1e-12},
    {"torchao-tensorwise-e5m2", "e5m2", MPSIM_SCALE_AMAX_TORCHAO, 0, EVEN, 0, 0, 0, 1e-12},
    {"torchao-rowwise", "e4m3", MPSIM_SCALE_AMAX_TORCHAO, 1, EVEN, 1, 0, 0, 1e-12},
    {"ms-amp", "e4m3", MPSIM_SCALE_MSAMP, 0, EVEN, 0, 0, 0, 0},
    {"torchao-0.18-floor", "e4m3", MPSIM_SCALE_TORCHAO_018_FLOOR, 0, EVEN, 1, 32, 0, 0},
    {"torchao-0.18-even", "e4m3", MPSIM_SCALE_TORCHAO_018_EVEN, 0, EVEN, 1, 32, 0, 0},
    {"torchao-0.18-ceil", "e4m3", MPSIM_SCALE_TORCHAO_018_CEIL, 0, EVEN, 1, 32, 0, 0},
    {"torchao-0.18-rceil", "e4m3", MPSIM_SCALE_TORCHAO_018_RCEIL, 0, EVEN, 1, 32, 0, 0},
    {"nvfp4-1level", "e2m1", MPSIM_SCALE_NVFP4_1LEVEL, 0, EVEN, 1, 16, 0, 0},
    {"deepseek-1x128", "e4m3", MPSIM_SCALE_AMAX_DEEPSEEK, 0, EVEN, 1, 128, 0, 0},
    {"deepseek-128x128", "e4m3", MPSIM_SCALE_AMAX_DEEPSEEK, 0, EVEN, 128, 128, 0, 0},
    {"deepgemm-1x128", "e4m3", MPSIM_SCALE_E8M0_DEEPGEMM, 0, EVEN, 1, 128, 0, 1e-4},
    {"deepgemm-128x128", "e4m3", MPSIM_SCALE_E8M0_DEEPGEMM, 0, EVEN, 128, 128, 0, 1e-4},
};

/* A row with the caller's scale. */
const row oracle_given = {"given", "e4m3", MPSIM_SCALE_GIVEN, 0, EVEN, 0, 0, 0, 0};

mpsim_block_recipe oracle_recipe(const row *r)
{
    const int given = r->rule == MPSIM_SCALE_GIVEN;
    const mpsim_block_recipe *found = mpsim_block_find(given ? "te-current" : r->name);
    ck_assert_msg(found != NULL, "no %s", r->name);
    mpsim_block_recipe b = *found;
    b.rule = (uint8_t)r->rule;
    if (given)
        snprintf(b.element, sizeof b.element, "%s", r->element);
    return b;
}

int propagates_nan(int rule)
{
    return rule != MPSIM_SCALE_E8M0_TE && rule != MPSIM_SCALE_AMAX_TE && rule != MPSIM_SCALE_GIVEN &&
           rule != MPSIM_SCALE_NVFP4_TE && rule != MPSIM_SCALE_AMAX_DEEPSEEK;
}

/* ---- scales ---- */

tensor oracle_tensor(const row *r, float amax)
{
    tensor t = {1, 1, amax};
    if (r->rule == MPSIM_SCALE_NVFP4_TE) {
        t.encode = amax == 0 ? 1 : f32_div(2688, amax);
        if (t.encode > (float)BIG)
            t.encode = (float)BIG;
        if (t.encode == 0)
            t.encode = 1;
        t.decode = f32_div(1, t.encode);
    } else if (r->rule == MPSIM_SCALE_NVFP4_TORCHAO) {
        t.decode = f32_div(amax, 2688);
        t.encode = f32_div(1, t.decode);
    }
    return t;
}

/* The exponent field as the rules with bit patterns see it. */
static int field_exponent(double a)
{
    return a < 0x1p-126 ? -127 : floor_log2(a);
}

static int even_exponent(const grid *g, double a)
{
    const int e = field_exponent(a);
    const double base = ldexp(1, e < -126 ? -126 : e), half = ldexp(base, -g->mbits - 1);
    return e + (a + half >= (e < -126 ? base : 2 * base));
}

/* As torch.log2 in binary32, correctly rounded: just beside a power of two it is its exponent. */
static float log2_f32(float a)
{
    f32_ready();
    mpfr_set_flt(X, a, MPFR_RNDN);
    return f32_done(mpfr_log2(Z, X, MPFR_RNDN));
}

static int ceil_exponent(double a)
{
    return a == 0 ? -127 : field_exponent(a) + !(a >= 0x1p-126 && is_power(a));
}

/* log2 of v rounded up to a power of two of 2^-127 to 2^127. */
static int up_exponent(double v)
{
    const int e = v == 0 ? -127 : floor_log2(v) + !is_power(v);
    return e < -127 ? -127 : e > 127 ? 127 : e;
}

static void e8m0_scale(scale *s, const row *r, const grid *g)
{
    const double a = (double)s->amax;
    const float reciprocal = f32_div(1, (float)grid_max(g));
    int e = 128;
    if (isfinite(s->amax))
        switch (r->rule) {
        case MPSIM_SCALE_E8M0_FLOOR:
            e = field_exponent(a) - grid_emax(g);
            break;
        case MPSIM_SCALE_E8M0_EVEN: /* what rounds to 2^128 is infinite */
            e = even_exponent(g, a);
            e = e == 128 ? 128 : e - grid_emax(g);
            break;
        case MPSIM_SCALE_E8M0_CEIL:
            e = ceil_exponent(a) - grid_emax(g);
            break;
        case MPSIM_SCALE_E8M0_MICROX:
            e = (int)floor((double)log2_f32(a == 0 ? 0x1p-126f : (float)a)) - grid_emax(g);
            break;
        default:
            e = up_exponent((double)f32_mul(s->amax, reciprocal));
            break;
        }
    else if (r->rule == MPSIM_SCALE_E8M0_TE)
        e = 127;
    e = e < -127 ? -127 : e;
    s->code = (unsigned)(e + 127);
    s->factor = e == 128 ? (float)NAN : f32_power(-e);
    s->inverse = e == 128 ? (float)NAN : f32_power(e);
}

/* torchao 0.18: no exponent is that of infinity, 128; only a NaN gives code 255. */
static void torchao_018_scale(scale *s, const row *r, const grid *g)
{
    const double a = (double)s->amax;
    const int infinite = isinf(s->amax);
    int e = 128;
    if (r->rule == MPSIM_SCALE_TORCHAO_018_RCEIL) {
        const float l = log2_f32(f32_div(s->amax, (float)grid_max(g)));
        e = isnan(l) ? 128 : l > 127 ? 127 : l < -127 ? -127 : (int)ceil((double)l);
        s->factor = isnan(l) ? (float)NAN : e == -127 ? 1 : f32_power(-e);
    } else if (isnan(s->amax)) {
        s->factor = 0; /* divided by infinity */
    } else {
        e = infinite                                   ? 128
            : r->rule == MPSIM_SCALE_TORCHAO_018_FLOOR ? field_exponent(a)
            : r->rule == MPSIM_SCALE_TORCHAO_018_EVEN  ? even_exponent(g, a)
                                                       : ceil_exponent(a);
        e -= grid_emax(g);
        e = e < -127 ? -127 : e;
        s->factor = f32_power(e < -126 ? 126 : -e);
    }
    s->code = (unsigned)(e + 127);
    s->inverse = e == 128 ? (float)NAN : f32_power(e);
}

/* exp2(floor(log2 s)) by torch. */
static float down_by_log(float s)
{
    return isfinite(s) && s > 0 ? f32_power((int)floor((double)log2_f32(s))) : s;
}

static float down_to_power(float s)
{
    return isfinite(s) && s > 0 ? f32_power(floor_log2((double)s)) : s;
}

static void amax_scale(scale *s, const row *r, const grid *g)
{
    const float max = (float)grid_max(g);
    if (r->rule == MPSIM_SCALE_AMAX_TE) {
        s->factor = 1;
        if (isfinite(s->amax) && s->amax > 0) {
            s->factor = f32_div(max, s->amax);
            if (isinf(s->factor))
                s->factor = (float)r->inf;
        }
    } else {
        const double a = (double)s->amax < 1e-12 ? 1e-12 : (double)s->amax;
        s->factor = isnan(s->amax) ? (float)NAN : f32_div_by_f64((double)max, a);
    }
    if (r->power)
        s->factor = r->rule == MPSIM_SCALE_AMAX_TE ? down_to_power(s->factor) : down_by_log(s->factor);
    s->inverse = f32_div(1, s->factor);
}

/* Without a margin. */
static void msamp_scale(scale *s, const grid *g, float given)
{
    s->factor = given;
    if (isfinite(s->amax) && s->amax > 0) {
        const float q = f32_div((float)grid_max(g), s->amax);
        s->factor = isinf(q) ? q : f32_power(floor_log2((double)q));
    } else if (isinf(s->amax)) {
        s->factor = f32_div(1, given);
    }
    s->inverse = f32_div(1, s->factor);
}

static void nvfp4_scale(scale *s, const row *r, const tensor *t)
{
    const grid *g = grid_of("e4m3");
    float v;
    if (r->rule == MPSIM_SCALE_NVFP4_TE) {
        v = f32_mul(s->amax, f32_mul(t->encode, f32_div(1, 6)));
    } else {
        v = f32_div(f32_div(s->amax, 6), t->decode);
        v = v < 0x1p-6f ? 0x1p-6f : v;
    }
    const element e = oracle_cast(g, EVEN, v, 0);
    s->code = e.code;
    s->s8 = (float)e.value;
    if (r->rule == MPSIM_SCALE_NVFP4_TE) { /* back by the amax, not by the scale of the tensor */
        s->inverse = f32_mul(f32_mul(s->s8, t->amax), f32_div(1, 2688));
        s->factor = f32_div(1, f32_mul(s->s8, t->decode));
        if (s->factor > (float)BIG)
            s->factor = (float)BIG;
    } else {
        s->inverse = f32_mul(s->s8, t->decode);
        s->factor = f32_div(t->encode, s->s8);
    }
}

/* Both divide amax by the largest number. */
static void deep_scale(scale *s, const row *r, const grid *g)
{
    const float least = (float)r->epsilon, a = s->amax < least ? least : s->amax;
    const float v = f32_div(a, (float)grid_max(g));
    if (r->rule == MPSIM_SCALE_AMAX_DEEPSEEK) {
        s->inverse = v == 0 ? 1 : v;
        s->factor = f32_div(1, s->inverse);
        return;
    }
    int e = isfinite(v) ? floor_log2((double)v) + !is_power((double)v) : 128;
    e = v < 0x1p-126f ? -126 : e;
    s->code = (unsigned)(e + 127);
    s->factor = e == 128 ? (float)NAN : f32_power(-e);
    s->inverse = e == 128 ? (float)NAN : f32_power(e);
}

scale oracle_scale(const row *r, const grid *g, const tensor *t, float amax, float given)
{
    scale s = {.amax = amax};
    switch (r->rule) {
    case MPSIM_SCALE_AMAX_TE:
    case MPSIM_SCALE_AMAX_TORCHAO:
        amax_scale(&s, r, g);
        break;
    case MPSIM_SCALE_MSAMP:
        msamp_scale(&s, g, given);
        break;
    case MPSIM_SCALE_GIVEN:
        s.factor = given;
        s.inverse = f32_div(1, given);
        break;
    case MPSIM_SCALE_NVFP4_TE:
    case MPSIM_SCALE_NVFP4_TORCHAO:
    case MPSIM_SCALE_NVFP4_1LEVEL: /* under a tensor scale of 1 */
        nvfp4_scale(&s, r, t);
        break;
    case MPSIM_SCALE_AMAX_DEEPSEEK:
    case MPSIM_SCALE_E8M0_DEEPGEMM:
        deep_scale(&s, r, g);
        break;
    case MPSIM_SCALE_TORCHAO_018_FLOOR:
    case MPSIM_SCALE_TORCHAO_018_EVEN:
    case MPSIM_SCALE_TORCHAO_018_CEIL:
    case MPSIM_SCALE_TORCHAO_018_RCEIL:
        torchao_018_scale(&s, r, g);
        break;
    default:
        e8m0_scale(&s, r, g);
        break;
    }
    return s;
}

float oracle_scaled(const row *r, const scale *s, float x)
{
    return r->rule == MPSIM_SCALE_AMAX_DEEPSEEK ? f32_div(x, s->inverse) : f32_mul(x, s->factor);
}

int oracle_is_exact(const row *r, const scale *s, float x, double q)
{
    if (r->rule == MPSIM_SCALE_AMAX_DEEPSEEK)
        return q * (double)s->inverse == (double)x;
    return q == (double)x * (double)s->factor;
}

/* As the source dequantises. */
float oracle_value(const row *r, const scale *s, double q)
{
    if (r->rule == MPSIM_SCALE_AMAX_TORCHAO)
        return f32_div((float)q, s->factor);
    return f32_mul((float)q, s->inverse);
}

int block_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || bits_of_f32(a) == bits_of_f32(b);
}
