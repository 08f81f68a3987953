/* x-sweep.c -- all 2^32 binary32 inputs, against MPFR. For make check-long.
 *
 *     x-sweep [--jobs N] [--format NAME] [--mode NAME] [--stride S] [--every N]
 *
 * Without options: every row of the table of at most 32 bits in nearest-even; fp16, bf16,
 * e4m3 and e5m2 in the other modes that draw no random bits, too. One process per pair, N
 * at a time (default: one per CPU). --stride S takes every S-th input only, --every N gives every N-th
 * to the scalar function. TAP on stdout,
 * exit status 1 if anything differs.
 * MPSIM_ISA chooses the instruction set of the array function.
 *
 * The library runs on every input by mpsim_encode_array_f32 (codes, and the counters over
 * all inputs); by mpsim_encode_f32 (code and flags) on every input for those four formats in
 * nearest-even and for any format named by --format, otherwise on both ends of each interval
 * (below), on the exact input in it, and on every 61st. MPFR cannot do all: 2^32 calls
 * are seven minutes per pair, and would still say the same thing about most neighbours.
 * Rounding is monotonic. Between two inputs of one sign for which the oracle gives the same
 * code (and the same overflow flag, which is monotonic as well) every input has that code.
 * So the inputs fall into intervals, two or so per code, whose ends are found by bisection
 * with direct MPFR results. Within an interval one input at most is exact: the value of the
 * code. NaNs: the oracle's answer for every 4099th and at both ends, which must be one and
 * the same per sign. */
#include "sim/verify/oracles/oracle.h"
#include "support/cases.h"
#include "support/support.h"
#include "support/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/round.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct item {
    const mpsim_format *f;
    const oracle_format *of;
    mpsim_rounding r;
    uint64_t stride;
    uint64_t scalar; /* of these, every scalar-th goes through the scalar function as well */
} item;

/* The answer of the oracle for one input, inexactness apart. */
typedef struct label {
    uint64_t code;
    unsigned flags;
    int exact;
} label;

static label label_of(const item *it, uint64_t u)
{
    label l;
    unsigned flags;
    l.code = oracle_encode(it->of, &it->r, oracle_widen((uint32_t)u), 1, 0, &flags);
    l.flags = flags & ~(unsigned)MPSIM_FLAG_INEXACT;
    l.exact = !(flags & MPSIM_FLAG_INEXACT);
    return l;
}

static int same_label(const label *a, const label *b)
{
    return a->code == b->code && a->flags == b->flags;
}

/* Consecutive inputs that share a label. */
typedef struct interval {
    uint64_t first, last;
    label l;
    uint64_t exact; /* the one input that is not inexact, or UINT64_MAX: none */
    int all_exact;  /* NaNs and infinities: inexactness is about finite inputs */
} interval;

enum { INFINITE = 0x7f800000 };

/* NaN patterns first to last: one code, or the rule is not what it says it is. */
static int nan_interval(const item *it, interval *v)
{
    v->last = v->first | 0x7fffffff;
    v->l = label_of(it, v->first);
    v->all_exact = 1;
    for (uint64_t u = v->first; u <= v->last; u += u + 4099 > v->last && u < v->last ? v->last - u : 4099) {
        const label l = label_of(it, u);
        if (!same_label(&l, &v->l))
            return 0;
    }
    return 1;
}

/* Every number of binary32 is its own code in binary32: no two inputs share one. The rule
 * for all of them, the oracle for every 4099th. */
static int own_interval(const item *it, interval *v)
{
    const uint64_t magnitude = v->first & 0x7fffffff;
    v->last = v->exact = v->first;
    v->l.code = v->first;
    v->l.flags = magnitude && magnitude < 0x00800000 ? MPSIM_FLAG_SUBNORMAL : 0;
    v->l.exact = 1;
    if (v->first % 4099 && magnitude < INFINITE - 4 && magnitude > 4)
        return 1;
    const label l = label_of(it, v->first);
    return same_label(&l, &v->l) && l.exact;
}

/* The interval that begins at `first`. Returns 0 if the oracle contradicts itself. */
static int find_interval(const item *it, uint64_t first, interval *v)
{
    const uint64_t end = (first & 0x80000000) | INFINITE; /* of the numbers of that sign */
    *v = (interval){.first = first, .exact = UINT64_MAX};
    if (first > end)
        return nan_interval(it, v);
    if (it->of->bits == 32 && it->of->precision == 24 && it->of->emin == -126)
        return own_interval(it, v);
    v->l = label_of(it, first);
    if (first == end) {
        v->last = end;
        v->all_exact = 1;
        return 1;
    }
    /* Gallop to an input beyond the interval, bisect back. Infinity stands apart. */
    uint64_t in = first, out = end, step = 1;
    while (in + step < end) {
        const label l = label_of(it, in + step);
        if (!same_label(&l, &v->l)) {
            out = in + step;
            break;
        }
        in += step;
        step *= 2;
    }
    while (out - in > 1) {
        const uint64_t mid = in + (out - in) / 2;
        const label l = label_of(it, mid);
        if (same_label(&l, &v->l))
            in = mid;
        else
            out = mid;
    }
    v->last = in;
    /* The value of the code, if it lies here, is the candidate for being exact. */
    const double y = oracle_decode(it->of, v->l.code);
    if (isfinite(y) && (double)(float)y == y) {
        /* -0 gives the code of +0 in a format that has one zero only. */
        const uint64_t u = y == 0 ? v->first & 0x80000000u : bits_of_f32((float)y);
        if (u >= v->first && u <= v->last && label_of(it, u).exact)
            v->exact = u;
    }
    return 1;
}

enum { BLOCK = 1 << 16 };

typedef struct result {
    uint64_t inputs, scalars, wrong, intervals;
    mpsim_counts want, got;
    char first[400];
} result;

static void complain(result *s, const item *it, uint64_t u, const char *how, const label *want, int exact, uint64_t got,
                     unsigned flags)
{
    if (s->wrong++)
        return;
    snprintf(s->first, sizeof s->first,
             "%s: 0x%08" PRIx64 " %a: expected 0x%" PRIx64 " (%a) flags 0x%x, got 0x%" PRIx64 " flags 0x%x", how, u,
             oracle_widen((uint32_t)u), want->code, oracle_decode(it->of, want->code),
             want->flags | (exact ? 0u : MPSIM_FLAG_INEXACT), got, flags);
}

/* The scalar function on input u of the interval v. */
static void scalar(result *s, const item *it, const interval *v, uint64_t u)
{
    unsigned flags;
    const uint64_t c = mpsim_encode_f32(it->f, &it->r, f32_of_bits((uint32_t)u), 0, &flags);
    const int exact = v->all_exact || u == v->exact;
    s->scalars++;
    if (c != v->l.code || flags != (v->l.flags | (exact ? 0u : MPSIM_FLAG_INEXACT)))
        complain(s, it, u, "scalar", &v->l, exact, c, flags);
}

typedef union block_codes {
    uint8_t u8[BLOCK];
    uint16_t u16[BLOCK];
    uint32_t u32[BLOCK];
} block_codes;

static uint64_t code_at(const block_codes *b, size_t bytes, size_t i)
{
    return bytes == 1 ? b->u8[i] : bytes == 2 ? b->u16[i] : b->u32[i];
}

/* The array function on a block, with counts and without, which are loops of their own. -1 if it refuses. */
static int array(result *s, const item *it, const uint32_t *x, const block_codes *want, size_t n)
{
    static float block[BLOCK];
    static block_codes got, lean;
    const size_t bytes = mpsim_format_code_bytes(it->f);
    memcpy(block, x, n * sizeof x[0]);
    if (mpsim_encode_array_f32(it->f, &it->r, NULL, &lean, block, n, NULL) != MPSIM_OK)
        return -1;
    if (mpsim_encode_array_f32(it->f, &it->r, NULL, &got, block, n, &s->got) != MPSIM_OK)
        return -1;
    if (memcmp(want, &got, n * bytes) == 0 && memcmp(want, &lean, n * bytes) == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const label l = {code_at(want, bytes, i), 0, 1};
        const uint64_t counted = code_at(&got, bytes, i);
        const uint64_t c = counted != l.code ? counted : code_at(&lean, bytes, i);
        if (c != l.code)
            complain(s, it, x[i], "array", &l, 1, c, 0);
    }
    return 0;
}

static void compare_counts(result *s)
{
    const mpsim_counts *a = &s->want, *b = &s->got;
    const int same = a->inexact == b->inexact && a->underflow == b->underflow && a->subnormal == b->subnormal &&
                     a->overflow == b->overflow && a->nan == b->nan;
    if (!same && !s->wrong++)
        snprintf(s->first, sizeof s->first,
                 "counters: expected inexact %" PRIu64 " underflow %" PRIu64 " subnormal %" PRIu64 " overflow %" PRIu64
                 " nan %" PRIu64 ", got %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                 a->inexact, a->underflow, a->subnormal, a->overflow, a->nan, b->inexact, b->underflow, b->subnormal,
                 b->overflow, b->nan);
}

static void sweep(const item *it, result *s)
{
    static uint32_t x[BLOCK];
    static block_codes want;
    const size_t bytes = mpsim_format_code_bytes(it->f);
    interval v = {.first = 1, .last = 0};
    size_t n = 0;
    uint64_t u = 0;
    while (u <= UINT32_MAX) {
        if (s->inputs == 0 || u > v.last) {
            /* With a stride whole intervals may be stepped over. */
            if (!find_interval(it, u, &v)) {
                complain(s, it, u, "the oracle contradicts itself", &v.l, 1, 0, 0);
                return;
            }
            s->intervals++;
        }
        /* This interval, as far as the block reaches. */
        const uint64_t room = u + (BLOCK - n - 1) * it->stride;
        const uint64_t last = v.last < room ? v.last : room;
        const uint64_t code = v.l.code;
        const uint64_t from = u;
        uint64_t k = 0;
        for (; u <= last; u += it->stride, k++, n++) {
            x[n] = (uint32_t)u;
            if (bytes == 1)
                want.u8[n] = (uint8_t)code;
            else if (bytes == 2)
                want.u16[n] = (uint16_t)code;
            else
                want.u32[n] = (uint32_t)code;
        }
        const uint64_t step = it->stride * it->scalar, final = u - it->stride;
        for (uint64_t w = from; w <= last; w += step)
            scalar(s, it, &v, w);
        scalar(s, it, &v, final);
        const int has_exact = v.exact >= from && v.exact <= final && (v.exact - from) % it->stride == 0;
        if (has_exact)
            scalar(s, it, &v, v.exact);
        s->inputs += k;
        s->want.inexact += v.all_exact ? 0 : k - (uint64_t)has_exact;
        s->want.underflow += v.l.flags & MPSIM_FLAG_UNDERFLOW ? k : 0;
        s->want.subnormal += v.l.flags & MPSIM_FLAG_SUBNORMAL ? k : 0;
        s->want.overflow += v.l.flags & MPSIM_FLAG_OVERFLOW ? k : 0;
        s->want.nan += v.l.flags & MPSIM_FLAG_NAN ? k : 0;
        if (n < BLOCK && u <= UINT32_MAX)
            continue;
        if (array(s, it, x, &want, n)) {
            complain(s, it, u, "array status", &v.l, 1, 0, 0);
            return;
        }
        n = 0;
    }
    compare_counts(s);
}

/* One pair, in its own process: its line of the report goes into the pipe `to`. */
static int run_item(const item *it, int to)
{
    result s = {0};
    char line[800];
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    sweep(it, &s);
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    const int n = snprintf(line, sizeof line,
                           "%s %s %" PRIu64 " inputs, %" PRIu64 " mismatches, %.1f s"
                           " (%" PRIu64 " intervals, %" PRIu64 " scalar calls)%s%s",
                           it->of->name, mode_name(it->r.mode), s.inputs, s.wrong, seconds, s.intervals, s.scalars,
                           s.wrong ? "\n# first: " : "", s.wrong ? s.first : "");
    if (write(to, line, (size_t)n) != n) /* shorter than PIPE_BUF: in one piece */
        return 1;
    return s.wrong != 0;
}

static size_t make_items(item *items, size_t room, const char *format, const char *mode, uint64_t stride,
                         uint64_t every)
{
    static const char *const thorough[] = {"fp16", "bf16", "e4m3", "e5m2"};
    size_t n = 0;
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        int all_modes = format != NULL && mode != NULL;
        for (size_t k = 0; k < 4; k++)
            all_modes |= strcmp(f->name, thorough[k]) == 0;
        if (f->bits > 32 || (format && mpsim_format_find(format) != f))
            continue;
        for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
            if (is_stochastic(m) || (m != MPSIM_ROUND_NEAREST_EVEN && !all_modes) ||
                (mode && strcmp(mode, mode_name(m)) != 0) || n == room)
                continue;
            item *it = &items[n++];
            *it = (item){.f = f, .of = oracle_find(f->name), .stride = stride, .scalar = 61};
            if (format || (all_modes && m == MPSIM_ROUND_NEAREST_EVEN))
                it->scalar = 1;
            if (every)
                it->scalar = every;
            mpsim_rounding_init(&it->r, (mpsim_round_mode)m);
            if (!it->of) {
                fprintf(stderr, "x-sweep: the oracle does not know %s\n", f->name);
                exit(EXIT_FAILURE);
            }
        }
    }
    return n;
}

static item items[SWEEP_MOST];

static int run_one(size_t i, int to)
{
    return run_item(&items[i], to);
}

static void name_one(size_t i, char *text, size_t size)
{
    snprintf(text, size, "%s %s", items[i].of->name, mode_name(items[i].r.mode));
}

int main(int argc, char **argv)
{
    const char *format = NULL, *mode = NULL;
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t stride = 1, every = 0;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--jobs") == 0)
            jobs = strtol(value, NULL, 10);
        else if (value && strcmp(argv[i], "--format") == 0)
            format = value;
        else if (value && strcmp(argv[i], "--mode") == 0)
            mode = value;
        else if (value && strcmp(argv[i], "--stride") == 0)
            stride = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--every") == 0)
            every = strtoull(value, NULL, 10);
        else
            jobs = 0, argc = 0;
    }
    if (stride < 1 || stride > UINT32_MAX)
        jobs = 0;
    const size_t n = jobs > 0 ? make_items(items, SWEEP_MOST, format, mode, stride, every) : 0;
    if (n == 0) {
        fprintf(stderr, "usage: x-sweep [--jobs N] [--format NAME] [--mode NAME] [--stride S] [--every N]\n"
                        "NAME: a format of at most 32 bits, a mode without random bits\n");
        return 2;
    }
    const sweep_plan plan = {"x-sweep", n, run_one, name_one};
    return sweep_run(&plan, jobs);
}
