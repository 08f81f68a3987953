/* arith.c -- speed of arrays of operations, on one core.
 *
 * Operations per second of mpsim_arith_array for each instruction set, and the bytes that they move
 * per second as a ratio to those of memcpy in the same run; medians of the repeats. Operands: codes
 * of 0.02 * (sum of 12 uniform - 6), half of them times 64. The goal: 300 million of add, sub, mul
 * and fma in fp16, bf16 and fp8. CSV. */
#include "timing.h"

#include <mpsim/mpsim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 18, REPEATS = 9 };

typedef struct work {
    mpsim_arith o;
    void *x[3], *z; /* room for codes of 4 bytes */
    size_t n;
} work;

static void do_memcpy(work *w)
{
    memcpy(w->z, w->x[0], N);
    __asm__ volatile("" : : "r"(w->z) : "memory");
}

static void do_operation(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    if (mpsim_arith_array(&w->o, &rng, w->z, w->x[0], w->x[1], w->x[2], w->n, NULL) != MPSIM_OK)
        abort();
}

static double median(work *w, void (*run)(work *))
{
    double t[REPEATS];
    run(w);
    for (int i = 0; i < REPEATS; i++) {
        const double t0 = now();
        run(w);
        t[i] = now() - t0;
    }
    return middle(t, REPEATS);
}

static void prepare(work *w, const mpsim_format *f)
{
    uint64_t index = 0;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < N; i++) {
            double sum = -6;
            for (int j = 0; j < 12; j++)
                sum += mpsim_rng_word(1, 0, index++ % 1000003) * 0x1p-32;
            const double x = sum * (i % 2 ? 0.02 : 1.28);
            (void)mpsim_encode_array_f64(f, &r, NULL,
                                         (unsigned char *)w->x[k] + i * mpsim_format_code_bytes(f),
                                         &x, 1, NULL);
        }
}

static void report(work *w, const char *format, mpsim_op op, mpsim_round_mode mode, double copy)
{
    mpsim_arith_init(&w->o, op, mpsim_format_find(format), mode);
    w->n = strcmp(mpsim_isa_active(), "scalar") == 0 ? N / 16 : N;
    const double t = median(w, do_operation) / (double)w->n;
    const double bytes = (double)(mpsim_op_operands(op) + 1) *
                         (double)mpsim_format_code_bytes(mpsim_format_find(format));
    printf("%s,%s,%s,%s,%zu,%.3f,%.1f\n", mpsim_isa_active(), mpsim_op_name(op), format,
           mpsim_round_mode_name(mode), w->n, copy * bytes / 2 / t, 1e-6 / t);
    fflush(stdout);
}

int main(void)
{
    static const char *const formats[] = {"fp16", "bf16", "e4m3", "e5m2", "binary32"};
    work w;
    w.z = malloc(N * 4);
    for (int k = 0; k < 3; k++)
        w.x[k] = malloc(N * 4);
    if (!w.z || !w.x[0] || !w.x[1] || !w.x[2]) {
        fputs("bench: out of memory\n", stderr);
        return 1;
    }
    printf("isa,operation,format,mode,elements,ratio_to_memcpy,million_elements_per_second\n");
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        prepare(&w, mpsim_format_find(formats[f]));
        const double copy = median(&w, do_memcpy) / N;
        for (size_t k = 0; mpsim_isa_at(k); k++) {
            if (mpsim_isa_use(mpsim_isa_at(k)) != MPSIM_OK)
                continue;
            for (int op = MPSIM_OP_ADD; op < MPSIM_OPS; op++)
                report(&w, formats[f], (mpsim_op)op, MPSIM_ROUND_NEAREST_EVEN, copy);
            report(&w, formats[f], MPSIM_OP_ADD, MPSIM_ROUND_TOWARD_ZERO, copy);
            report(&w, formats[f], MPSIM_OP_ADD, MPSIM_ROUND_STOCHASTIC_C, copy);
        }
    }
    for (int k = 0; k < 3; k++)
        free(w.x[k]);
    free(w.z);
    return 0;
}
