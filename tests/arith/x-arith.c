/* x-arith.c -- all 2^32 pairs of fp16 operands of add, sub, mul and div, as the array function
 * computes them: codes and counters. For make check-long.
 *
 *     x-arith [--jobs N] [--op NAME] [--mode NAME] [--stride S]
 *
 * Without options: add, mul and div in nearest-even; sub, and all four toward zero, with every
 * seventh first operand. One process per pair of operation and mode, N at a time (default: one
 * per CPU). --stride S takes every S-th first operand; what --op or --mode names is complete.
 * TAP on stdout, exit status 1 if anything differs. MPSIM_ISA as elsewhere.
 *
 * MPFR would take half an hour per operation. What judges instead is the binary64 operation of
 * the machine, whose result is then rounded to fp16 by the few lines of `rounded` below. Why that
 * is one rounding:
 *
 *   add, sub  fp16 numbers are multiples of 2^-24 below 2^16; a sum is a multiple of 2^-24 below
 *             2^17, at most 41 bits: exact in binary64.
 *   mul       at most 22 bits, between 2^-48 and 2^32: exact.
 *   div       The quotient q = a / b lies between 2^-40 and 2^40: no overflow or underflow. Let m
 *             be an fp16 number or the midpoint of two neighbours, with unbounded exponent: M 2^k
 *             with an integer M < 2^12, in the subnormal range as well. With a = A 2^i and
 *             b = B 2^j, A and B < 2^11, q / m = A 2^s / (B M) for an integer s. If q != m,
 *             |q / m - 1| = |A 2^s - B M| / (B M): for s >= 0 at least 1 / (B M) > 2^-23; for
 *             s < 0 it is |A - B M 2^-s| / (B M 2^-s), and where that is below 1/2, B M 2^-s is
 *             less than 2 A < 2^12: at least 2^-12. binary64 moves q by less than 2^-52 of
 *             itself: q' lies on the same side of every m, and equals m only if q does. So q'
 *             rounds as q does in every mode, is exact when q is, and overflows (beyond 65520, a
 *             midpoint, or from 65536 on, an fp16 number with unbounded exponent) when q does.
 *
 * The rounding: with e the exponent of v, not below -14, v / 2^(e - 10) has at most 11 integer
 * bits, and adding and subtracting 3 * 2^51 in binary64 rounds it to the nearest even integer;
 * multiplying by powers of two is exact. A sample of 2^22 pairs per sweep is compared with the
 * oracle, which shares nothing with this. */
#include "oracle/integers.h"
#include "support/cases.h"
#include "support/support.h"
#include "support/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CODES = 65536 };

typedef struct item {
    int op, mode;
    uint32_t stride;
} item;

typedef struct result {
    uint64_t pairs, wrong, sampled, sample_wrong;
    char first[300];
} result;

static double value[CODES]; /* of each code; NaN, infinity and -0 as themselves */

/* The neighbour of v in fp16 with unbounded exponent that the mode asks for; v is not 0, and in
 * the range of the argument above. Modes nearest-even and toward-zero. */
static double rounded(double v, int mode)
{
    const uint64_t bits = bits_of_f64(v);
    int e = (int)(bits >> 52 & 0x7ff) - 1023;
    e = e < -14 ? -14 : e;
    const double up = f64_of_bits((uint64_t)(1023 + 10 - e) << 52);   /* 2^(10 - e) */
    const double down = f64_of_bits((uint64_t)(1023 - 10 + e) << 52); /* 2^(e - 10) */
    const double x = fabs(v) * up;
    volatile double sum = x + 0x1.8p52; /* volatile: nothing may simplify it */
    double n = sum - 0x1.8p52;
    if (mode == MPSIM_ROUND_TOWARD_ZERO && n > x)
        n -= 1;
    return copysign(n * down, v);
}

/* The code and the flags of a result, by the default choices; of a NaN without its sign. */
static uint16_t encoded(double v, int mode, int nan_in, unsigned *flags)
{
    *flags = 0;
    if (isnan(v)) {
        *flags = MPSIM_FLAG_NAN | (nan_in ? 0 : MPSIM_FLAG_INVALID);
        return 0x7e00;
    }
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    if (isinf(v))
        return (uint16_t)(sign | 0x7c00);
    if (v == 0)
        return sign;
    const double y = fabs(rounded(v, mode));
    if (y != fabs(v))
        *flags |= MPSIM_FLAG_INEXACT;
    if (y >= 65536) {
        *flags |= MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_INEXACT;
        return (uint16_t)(sign | (mode == MPSIM_ROUND_TOWARD_ZERO ? 0x7bff : 0x7c00));
    }
    if (y == 0)
        *flags |= MPSIM_FLAG_UNDERFLOW;
    else if (y < 0x1p-14)
        *flags |= MPSIM_FLAG_SUBNORMAL;
    if (y < 0x1p-14)
        return (uint16_t)(sign | (unsigned)(y * 0x1p24));
    const uint64_t u = bits_of_f64(y); /* 5 bits of exponent, 10 of significand */
    return (uint16_t)(sign | ((u >> 52) - 1023 + 15) << 10 | (u >> 42 & 0x3ff));
}

static double operate(int op, double x, double y)
{
    switch (op) {
    case MPSIM_OP_ADD:
        return x + y;
    case MPSIM_OP_SUB:
        return x - y;
    case MPSIM_OP_MUL:
        return x * y;
    default:
        return x / y;
    }
}

/* What the result must be. */
static uint16_t expected(const item *it, uint32_t a, uint32_t b, unsigned *flags)
{
    const double x = value[a], y = value[b];
    const double v = operate(it->op, x, y);
    const int nan_in = isnan(x) || isnan(y);
    uint16_t code = encoded(v, it->mode, nan_in, flags);
    if (nan_in) /* the first NaN's sign */
        code |= (uint16_t)((isnan(x) ? a : b) & 0x8000);
    if (it->op == MPSIM_OP_DIV && y == 0 && x != 0 && isfinite(x))
        *flags |= MPSIM_FLAG_DIVBYZERO;
    return code;
}

static void mismatch(result *s, const item *it, const char *who, uint32_t a, uint32_t b, uint64_t want,
                     unsigned want_flags, uint64_t got, unsigned got_flags)
{
    if (s->first[0])
        return;
    snprintf(s->first, sizeof s->first,
             "%s: %d %s 0x%04x (%a) 0x%04x (%a): expected 0x%04x flags 0x%x, got 0x%04x flags "
             "0x%x",
             who, it->op, mode_name(it->mode), (unsigned)a, value[a], (unsigned)b, value[b], (unsigned)want, want_flags,
             (unsigned)got, got_flags);
}

/* The judge against the oracle: random pairs, a quarter of them with small exponents. */
static void sample(const item *it, const oracle_arith *o, result *s)
{
    uint64_t random = test_seed() + (uint64_t)it->op * 16 + (uint64_t)it->mode;
    for (s->sampled = 0; s->sampled < (uint64_t)1 << 22; s->sampled++) {
        const uint64_t u = test_random(&random);
        const uint32_t mask = u >> 62 ? 0xffff : 0x8fff;
        const uint32_t a = (uint32_t)u & mask, b = (uint32_t)(u >> 16) & mask;
        unsigned want_flags, flags;
        const uint64_t want = oracle_arith_apply(o, a, b, 0, 0, &want_flags);
        const uint64_t judged = expected(it, a, b, &flags);
        if (want != judged || want_flags != flags) {
            s->sample_wrong++;
            mismatch(s, it, "the judge", a, b, want, want_flags, judged, flags);
        }
    }
}

static void count(mpsim_counts *n, unsigned flags)
{
    n->inexact += flags & MPSIM_FLAG_INEXACT ? 1 : 0;
    n->underflow += flags & MPSIM_FLAG_UNDERFLOW ? 1 : 0;
    n->subnormal += flags & MPSIM_FLAG_SUBNORMAL ? 1 : 0;
    n->overflow += flags & MPSIM_FLAG_OVERFLOW ? 1 : 0;
    n->nan += flags & MPSIM_FLAG_NAN ? 1 : 0;
}

/* One first operand with all second ones per call of the library. */
static void sweep(const item *it, result *s)
{
    static uint16_t as[CODES], bs[CODES], out[CODES];
    const mpsim_format *f = mpsim_format_find("fp16");
    const oracle_format *of = oracle_find("fp16");
    mpsim_arith lib;
    mpsim_arith_init(&lib, (mpsim_op)it->op, f, (mpsim_round_mode)it->mode);
    const oracle_arith o = {.op = it->op, .result = of, .operand = {of, of, of}, .r = lib.rounding};
    for (uint32_t i = 0; i < CODES; i++) {
        value[i] = oracle_decode(of, i);
        bs[i] = (uint16_t)i;
    }
    sample(it, &o, s);
    for (uint32_t a = 0; a < CODES; a += it->stride) {
        mpsim_counts want = {0}, got = {0};
        for (uint32_t b = 0; b < CODES; b++)
            as[b] = (uint16_t)a;
        if (mpsim_arith_array(&lib, NULL, out, as, bs, NULL, CODES, &got) != MPSIM_OK) {
            s->wrong += CODES;
            continue;
        }
        for (uint32_t b = 0; b < CODES; b++) {
            unsigned flags;
            const uint16_t code = expected(it, a, b, &flags);
            count(&want, flags);
            if (code != out[b]) {
                s->wrong++;
                mismatch(s, it, "the library", a, b, code, flags, out[b], 0);
            }
        }
        if (want.inexact != got.inexact || want.underflow != got.underflow || want.subnormal != got.subnormal ||
            want.overflow != got.overflow || want.nan != got.nan) {
            s->wrong++;
            if (!s->first[0])
                snprintf(s->first, sizeof s->first, "counters of 0x%04x with all others differ", (unsigned)a);
        }
        s->pairs += CODES;
    }
}

static const char *op_of(int op)
{
    const char *name = mpsim_op_name((mpsim_op)op);
    return name ? name : "?";
}

/* One sweep, in its own process: its line of the report goes into the pipe `to`. */
static int run_item(const item *it, int to)
{
    result s = {0};
    char line[700];
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    sweep(it, &s);
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    const int n = snprintf(line, sizeof line,
                           "fp16 %s %s %" PRIu64 " pairs, %" PRIu64 " mismatches, %.1f s"
                           " (%" PRIu64 " judged by the oracle, %" PRIu64 " mismatches)%s%s",
                           op_of(it->op), mode_name(it->mode), s.pairs, s.wrong, seconds, s.sampled, s.sample_wrong,
                           s.first[0] ? "\n# first: " : "", s.first);
    if (write(to, line, (size_t)n) != n) /* shorter than PIPE_BUF: in one piece */
        return 1;
    return s.wrong != 0 || s.sample_wrong != 0;
}

static size_t make_items(item *items, const char *op, const char *mode, uint32_t stride)
{
    static const int modes[] = {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_TOWARD_ZERO};
    size_t n = 0;
    for (int m = 0; m < 2; m++)
        for (int k = MPSIM_OP_ADD; k <= MPSIM_OP_DIV; k++) {
            if ((op && strcmp(op, op_of(k)) != 0) || (mode && strcmp(mode, mode_name(modes[m])) != 0))
                continue;
            const int thin = !op && !mode && (m == 1 || k == MPSIM_OP_SUB);
            items[n++] = (item){k, modes[m], thin ? 7 * stride : stride};
        }
    return n;
}

static item items[8];

static int run_one(size_t i, int to)
{
    return run_item(&items[i], to);
}

static void name_one(size_t i, char *text, size_t size)
{
    snprintf(text, size, "%s %s", op_of(items[i].op), mode_name(items[i].mode));
}

int main(int argc, char **argv)
{
    const char *op = NULL, *mode = NULL;
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t stride = 1;
    for (int i = 1; i < argc; i += 2) {
        const char *text = i + 1 < argc ? argv[i + 1] : NULL;
        if (text && strcmp(argv[i], "--jobs") == 0)
            jobs = strtol(text, NULL, 10);
        else if (text && strcmp(argv[i], "--op") == 0)
            op = text;
        else if (text && strcmp(argv[i], "--mode") == 0)
            mode = text;
        else if (text && strcmp(argv[i], "--stride") == 0)
            stride = strtoull(text, NULL, 10);
        else
            jobs = 0, argc = 0;
    }
    if (stride < 1 || stride > CODES)
        jobs = 0;
    const size_t n = jobs > 0 ? make_items(items, op, mode, (uint32_t)stride) : 0;
    if (n == 0) {
        fprintf(stderr, "usage: x-arith [--jobs N] [--op NAME] [--mode NAME] [--stride S]\n"
                        "op: add, sub, mul, div; mode: nearest-even, toward-zero\n");
        return 2;
    }
    (void)test_seed(); /* print it once, in this process */
    const sweep_plan plan = {"x-arith", n, run_one, name_one};
    return sweep_run(&plan, jobs);
}
