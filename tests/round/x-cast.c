/* x-cast.c -- all 2^32 binary32 inputs: every instruction set gives the bits of the scalar reference, for codes and values, with
 * and without counters. For make check-long; x-sweep is its companion, which judges the codes by MPFR.
 *
 *     x-cast [--jobs N] [--format NAME] [--mode NAME] [--stride S]
 *
 * fp16, bf16, e4m3 and e5m2: all inputs in nearest-even, and every fifth (or with --format or --mode all) in nearest-even
 * flushed, in nearest-even saturated with a scale, and in the other modes that draw no random bits. One process each, N at a
 * time (default: one per CPU). --stride S takes every S-th input only. TAP on stdout, exit status 1 if anything
 * differs. */
#include "support/subjects.h"
#include "support/support.h"
#include "support/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

typedef struct item {
    const mpsim_format *f;
    mpsim_rounding r;
    uint64_t stride;
} item;

static item items[SWEEP_MOST];

typedef struct block {
    float x[BLOCK], y[BLOCK];
    size_t n, bytes;
    uint8_t codes[2 * BLOCK], out[2 * BLOCK];
    mpsim_counts counts;
} block;

/* The value of every code, as round_array gives it. */
static uint32_t values[65536];

static void decode_all(const mpsim_format *f)
{
    for (uint64_t c = 0; c >> f->bits == 0; c++) {
        const double y = mpsim_decode(f, c);
        const uint64_t u = bits_of_f64(y);
        values[c] = isnan(y) ? (uint32_t)(u >> 63) << 31 | 0x7f800000u | ((uint32_t)(u >> 29) & 0x7fffffu)
                             : bits_of_f32((float)y);
    }
}

/* A difference at input i, or with other counts, in words. */
static int differs(char *text, size_t size, const item *it, const block *b, const char *what, size_t i, uint64_t got)
{
    snprintf(text, size, "%s, %s, %s, input 0x%08x: code 0x%" PRIx64 ", got 0x%" PRIx64, mpsim_isa_active(), what,
             subject_text(it->f, &it->r), i < b->n ? bits_of_f32(b->x[i]) : 0,
             i < b->n ? code_load(b->codes + i * b->bytes, b->bytes) : 0, got);
    return 1;
}

/* Codes, codes and counters, values, values and counters in place. */
static int check(const item *it, block *b, char *text, size_t size)
{
    for (int counted = 0; counted < 2; counted++) {
        mpsim_counts n = {0, 0, 0, 0, 0}, m = n;
        mpsim_counts *c = counted ? &n : NULL, *d = counted ? &m : NULL;
        float *y = b->y;
        if (mpsim_encode_array_f32(it->f, &it->r, NULL, b->out, b->x, b->n, c) != MPSIM_OK)
            return differs(text, size, it, b, "status", b->n, 0);
        if (memcmp(b->out, b->codes, b->n * b->bytes) != 0)
            for (size_t i = 0; i < b->n; i++)
                if (memcmp(b->out + i * b->bytes, b->codes + i * b->bytes, b->bytes) != 0)
                    return differs(text, size, it, b, counted ? "encode, counted" : "encode", i,
                                   code_load(b->out + i * b->bytes, b->bytes));
        if (counted)
            memcpy(y, b->x, b->n * sizeof *y);
        if (mpsim_round_array_f32(it->f, &it->r, NULL, y, counted ? y : b->x, b->n, d) != MPSIM_OK)
            return differs(text, size, it, b, "status", b->n, 0);
        for (size_t i = 0; i < b->n; i++)
            if (bits_of_f32(y[i]) != values[code_load(b->codes + i * b->bytes, b->bytes)])
                return differs(text, size, it, b, counted ? "round, counted" : "round", i, bits_of_f32(y[i]));
        if (counted && (memcmp(&n, &b->counts, sizeof n) != 0 || memcmp(&m, &b->counts, sizeof m) != 0))
            return differs(text, size, it, b, "counters", 0, 0);
    }
    return 0;
}

static int run_one(size_t which, int to)
{
    static block b;
    const item *it = &items[which];
    char text[700] = "", line[800];
    uint64_t inputs = 0;
    int wrong = 0;
    b.bytes = mpsim_format_code_bytes(it->f);
    decode_all(it->f);
    for (uint64_t u = 0; u >> 32 == 0 && !wrong;) {
        for (b.n = 0; b.n < BLOCK && u >> 32 == 0; u += it->stride)
            b.x[b.n++] = f32_of_bits((uint32_t)u);
        inputs += b.n;
        memset(&b.counts, 0, sizeof b.counts);
        wrong = mpsim_isa_use("scalar") != MPSIM_OK ||
                mpsim_encode_array_f32(it->f, &it->r, NULL, b.codes, b.x, b.n, &b.counts) != MPSIM_OK;
        for (size_t k = 0; mpsim_isa_at(k) && !wrong; k++)
            if (mpsim_isa_use(mpsim_isa_at(k)) == MPSIM_OK)
                wrong = check(it, &b, text, sizeof text);
    }
    const int n = snprintf(line, sizeof line, "%s: %" PRIu64 " inputs%s%s", subject_text(it->f, &it->r), inputs,
                           wrong ? "; first: " : "", text);
    const size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    return write(to, line, length) != (ssize_t)length || wrong;
}

static void name_one(size_t i, char *text, size_t size)
{
    snprintf(text, size, "%.100s", subject_text(items[i].f, &items[i].r));
}

static size_t make_items(const char *format, const char *mode, uint64_t stride)
{
    static const char *const names[] = {"fp16", "bf16", "e4m3", "e5m2"};
    size_t n = 0;
    for (size_t k = 0; k < 4; k++)
        for (int m = 0; m < MPSIM_ROUND_STOCHASTIC_A; m++)
            for (int variant = 0; variant < (m == MPSIM_ROUND_NEAREST_EVEN ? 3 : 1); variant++) {
                item *it = &items[n];
                const int all = stride > 1 || format || mode || (m == MPSIM_ROUND_NEAREST_EVEN && variant == 0);
                *it = (item){.f = mpsim_format_find(names[k]), .stride = all ? stride : 5};
                mpsim_rounding_init(&it->r, (mpsim_round_mode)m);
                it->r.flush_output = variant == 1;
                it->r.flush_input = variant == 1;
                it->r.overflow = variant == 2 ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
                it->r.infinity = variant == 2 ? MPSIM_INFINITY_MAX : MPSIM_INFINITY_KEEP;
                it->r.scale = variant == 2 ? 0x1p-9 : 1;
                n += (!format || it->f == mpsim_format_find(format)) &&
                     (!mode || strcmp(mode, mpsim_round_mode_name((mpsim_round_mode)m)) == 0);
            }
    return n;
}

int main(int argc, char **argv)
{
    const char *format = NULL, *mode = NULL;
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t stride = 1;
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
        else
            jobs = 0, argc = 0;
    }
    const size_t n = jobs > 0 && stride > 0 && stride <= UINT32_MAX ? make_items(format, mode, stride) : 0;
    if (n == 0) {
        fprintf(stderr, "usage: x-cast [--jobs N] [--format NAME] [--mode NAME] [--stride S]\n"
                        "NAME: fp16, bf16, e4m3 or e5m2; a mode without random bits\n");
        return 2;
    }
    const sweep_plan plan = {"x-cast", n, run_one, name_one};
    return sweep_run(&plan, jobs);
}
