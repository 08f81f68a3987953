/* cases.c -- see cases.h. */
#include "cases.h"

#include "support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void cases_init(cases *c, int width)
{
    *c = (cases){.width = width};
}

void cases_clear(cases *c)
{
    free(c->u);
    cases_init(c, c->width);
}

static void push_bits(cases *c, uint64_t u)
{
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 1024;
        c->u = realloc(c->u, c->room * sizeof *c->u);
        if (!c->u)
            abort();
    }
    c->u[c->n++] = u;
}

/* A magnitude with both signs. */
static void push_both(cases *c, uint64_t magnitude)
{
    push_bits(c, magnitude);
    push_bits(c, magnitude | (uint64_t)1 << (c->width - 1));
}

static uint64_t pattern(const cases *c, double v)
{
    if (c->width == 64)
        return bits_of_f64(v);
    return bits_of_f32(v > (double)FLT_MAX ? FLT_MAX : (float)v);
}

/* v >= 0, rounded to the source type; with its neighbours there if `near`. */
static void push(cases *c, double v, int near)
{
    /* Far outside of binary32 every point is the same point. */
    if (!(v <= DBL_MAX) || (c->width == 32 && (v > 0x1p130 || (v != 0 && v < 0x1p-152))))
        return;
    const uint64_t u = pattern(c, v);
    push_both(c, u);
    if (near) {
        push_both(c, u + 1); /* FLT_MAX or DBL_MAX: infinity */
        if (u)
            push_both(c, u - 1);
    }
}

void cases_edges(cases *c, const oracle_format *of, double scale, int near)
{
    const double least = oracle_magnitude(of, of->zeros ? 1 : 0);
    const double normal = ldexp(1, of->emin);
    const double last = of->max, before = oracle_magnitude(of, of->max_code - 1);
    const double ulp = last - before;
    const double one = ldexp(1, 1 - of->precision); /* the ulp of 1 */
    /* clang-format off */
    const double points[] = {
        least / 4, least / 2, least * 0.75, least, least * 1.5, least * 2,
        normal / 2, normal - least, normal - least / 2, normal - least / 4, normal,
        normal * 1.25, before, last - ulp / 2, last, last + ulp / 4, last + ulp / 2,
        last + ulp * 0.75, last + ulp, last * 1.5, last * 2, last * 4,
        1, 1 + one / 2, 1 + one * 1.5, 0.1, 3,
    };
    /* clang-format on */
    push(c, 0, 1);
    for (size_t k = 0; k < sizeof points / sizeof points[0]; k++)
        push(c, points[k] / scale, near);
    if (c->width == 32) {
        /* clang-format off */
        static const uint32_t ends[] = {
            0x00000001, 0x007fffff, 0x00800000, 0x00400000, 0x7f7fffff, 0x7f800000,
            /* NaNs: quiet, signalling, payload at either end, mixed */
            0x7fc00000, 0x7f800001, 0x7fffffff, 0x7fbfffff, 0x7fa00000, 0x7fe12345,
            0x7f80e000, 0x7fffe2da, 0x7fff8c22,
        };
        /* clang-format on */
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
            push_both(c, ends[k]);
    } else {
        static const uint64_t ends[] = {
            0x0000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x0008000000000000, 0x7fefffffffffffff,
            0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x7fffffffffffffff, 0x7ff7ffffffffffff,
            0x7ff4000000000000, 0x7ffc2468a1234567, 0x7ff0000020000000, 0x7ff000001fffffff, 0x7fffffffe0000000,
        };
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
            push_both(c, ends[k]);
        /* The ends of binary32, where a detour through it would go wrong. */
        const double narrow[] = {(double)FLT_MAX, (double)FLT_MAX * (1 + 0x1p-25), 0x1p128,
                                 (double)FLT_MIN, (double)FLT_MIN * (1 - 0x1p-25), 0x1p-149,
                                 0x1p-150};
        for (size_t k = 0; k < sizeof narrow / sizeof narrow[0]; k++)
            push(c, narrow[k], near);
    }
}

/* All points between magnitude i and the next one. */
static void push_interval(cases *c, const oracle_format *of, uint64_t i, double scale)
{
    const double a = oracle_magnitude(of, i), b = oracle_magnitude(of, i + 1);
    push(c, a / scale, 1);
    if (!(b <= DBL_MAX))
        return;
    const double mid = a + (b - a) / 2;
    push(c, mid / scale, 1);
    push(c, (a + (b - a) / 4) / scale, 0);
    push(c, (a + (b - a) * 0.75) / scale, 0);
    /* Off the midpoint by less than half a unit of an 11-, 8- or 24-bit significand: an
     * intermediate format would round these onto the tie. */
    static const double off[] = {0x1p-10, 0x1p-13, 0x1p-27, 0x1p-40};
    for (size_t k = 0; k < (c->width == 64 ? 4 : 2); k++) {
        push(c, mid * (1 + off[k]) / scale, 0);
        push(c, mid * (1 - off[k]) / scale, 0);
    }
}

/* Formats of more numbers are taken in parts, but for the ends of the format and of its binades. */
enum { ALWAYS = 256, PARTS = 8 };

void cases_numbers(cases *c, const oracle_format *of, double scale, size_t limit)
{
    const uint64_t n = of->max_code + 1;
    if (n <= ALWAYS && n <= limit) {
        for (uint64_t i = 0; i < n; i++)
            push_interval(c, of, i, scale);
        return;
    }
    const size_t third = limit / 3;
    /* The ends of the format. */
    for (uint64_t i = 0; i < 32; i++) {
        push_interval(c, of, i, scale);
        push_interval(c, of, of->max_code - i, scale);
    }
    /* The ends of its binades. */
    const uint64_t binade = (uint64_t)1 << (of->precision - 1);
    const uint64_t binades = n / binade;
    const uint64_t skip = binades * 3 > third ? binades * 3 / third + 1 : 1;
    for (uint64_t k = 1; k < binades; k += skip) {
        push_interval(c, of, k * binade - 1, scale);
        push_interval(c, of, k * binade, scale);
        push_interval(c, of, k * binade + 1, scale);
    }
    /* Everywhere: a stride that is odd, and so meets odd and even codes. */
    const uint64_t stride = n <= limit ? 1 : (n / (limit - third)) | 1;
    for (uint64_t i = stride / 2, k = 0; i < n; i += stride, k++)
        if (test_in_part(k, PARTS))
            push_interval(c, of, i, scale);
}

void cases_sweep(cases *c, const oracle_format *of, size_t n, uint64_t seed)
{
    uint64_t state = seed;
    if (c->width == 32) {
        /* A prime near 2^32 / phi: any n of its multiples are spread evenly. */
        uint32_t u = (uint32_t)test_random(&state);
        for (size_t i = 0; i < n; i++, u += 2654435761u)
            push_bits(c, u);
        return;
    }
    const int low = of->emin - of->precision - 3;
    int high;
    (void)frexp(of->max, &high);
    for (size_t i = 0; i < n; i++) {
        uint64_t u = test_random(&state);
        if (i % 4 != 0) {
            const uint64_t range = (uint64_t)(high + 3 - low);
            int e = low + (int)(test_random(&state) % range) + 1023;
            e = e < 0 ? 0 : e > 2046 ? 2046 : e;
            u = (u & 0x800fffffffffffff) | (uint64_t)e << 52;
        }
        push_bits(c, u);
    }
}

double cases_value(const cases *c, size_t i)
{
    return c->width == 32 ? oracle_widen((uint32_t)c->u[i]) : f64_of_bits(c->u[i]);
}

uint64_t encode_bits(const mpsim_format *f, const mpsim_rounding *r, int width, uint64_t u, uint32_t random,
                     unsigned *flags)
{
    return width == 32 ? mpsim_encode_f32(f, r, f32_of_bits((uint32_t)u), random, flags)
                       : mpsim_encode_f64(f, r, f64_of_bits(u), random, flags);
}

const char *mode_name(int mode)
{
    static const char *const names[] = {"nearest-even", "nearest-away", "toward-zero",  "up",          "down",
                                        "to-odd",       "stochastic-a", "stochastic-b", "stochastic-c"};
    return mode >= 0 && mode < MPSIM_ROUND_MODES ? names[mode] : "?";
}

int is_stochastic(int mode)
{
    return mode == MPSIM_ROUND_STOCHASTIC_A || mode == MPSIM_ROUND_STOCHASTIC_B || mode == MPSIM_ROUND_STOCHASTIC_C;
}

uint32_t cases_word(size_t i)
{
    static const uint32_t extremes[] = {0, 0xffffffff, 0x80000000, 0x7fffffff, 1};
    const size_t k = i % 11;
    if (k < sizeof extremes / sizeof extremes[0])
        return extremes[k];
    uint64_t state = i;
    return (uint32_t)test_random(&state);
}

void tally_code(tally *t, const oracle_format *of, const mpsim_rounding *r, int width, size_t i, uint64_t u,
                uint32_t random, uint64_t want, unsigned want_flags, uint64_t got, unsigned got_flags)
{
    t->compared++;
    if (want == got && want_flags == got_flags)
        return;
    if (t->wrong++)
        return;
    const double x = width == 32 ? oracle_widen((uint32_t)u) : f64_of_bits(u);
    snprintf(t->first, sizeof t->first,
             "%s %s sr_bits=%d overflow=%d infinity=%d no_inf=%d nan=%d no_nan=%d "
             "negative=%d no_zero=%d flush_input=%d flush_output=%d "
             "flush_below=%a scale=%a seed=%" PRIu64 ": input %zu binary%d %a = 0x%0*" PRIx64 " random=0x%08" PRIx32
             ": expected 0x%" PRIx64 " (%a) flags 0x%x, got 0x%" PRIx64 " flags 0x%x",
             of->name, mode_name(r->mode), r->sr_bits, r->overflow, r->infinity, r->no_inf, r->nan, r->no_nan,
             r->negative, r->no_zero, r->flush_input, r->flush_output, r->flush_below, r->scale, test_seed(), i, width,
             x, width / 4, u, random, want, oracle_decode(of, want), want_flags, got, got_flags);
}

void tally_case(tally *t, const mpsim_format *f, const oracle_format *of, const mpsim_rounding *r, const cases *c,
                size_t i, uint32_t random)
{
    unsigned want_flags, got_flags = 0xdead;
    const uint64_t want = oracle_encode(of, r, cases_value(c, i), c->width == 32, random, &want_flags);
    const uint64_t got = encode_bits(f, r, c->width, c->u[i], random, &got_flags);
    tally_code(t, of, r, c->width, i, c->u[i], random, want, want_flags, got, got_flags);
}

void tally_cases(tally *t, const mpsim_format *f, const oracle_format *of, const mpsim_rounding *r, const cases *c,
                 int thresholds)
{
    for (size_t i = 0; i < c->n; i++) {
        tally_case(t, f, of, r, c, i, cases_word(i));
        if (!thresholds || !is_stochastic(r->mode))
            continue;
        /* R = 2^N - nu 2^N is where the decision changes, give or take one. The bits
         * below the top N must not matter. */
        oracle_rounded at;
        oracle_round_defined(&at, of, r, cases_value(c, i), c->width == 32, 0);
        const int n = r->sr_bits;
        const uint64_t all = (uint64_t)1 << n, change = all - (at.fraction >> (32 - n));
        const uint32_t junk = n < 32 ? cases_word(2 * i + 1) >> n : 0;
        for (uint64_t d = 0; d < 3; d++) {
            const uint64_t word = (change + d - 1) & (all - 1);
            tally_case(t, f, of, r, c, i, (uint32_t)(word << (32 - n)) | junk);
        }
    }
}

int cannot_be_nan(const oracle_format *of, const oracle_rounded *in)
{
    return in->kind == ORACLE_IS_FINITE && of->zeros && (of->is_signed || !in->negative);
}
