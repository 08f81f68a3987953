/* arith.c -- speed of operations on arrays of codes.
 *
 * Operands: codes of 0.02 * (sum of 4 uniform - 2), as gradients may be, half of them times 64; in the
 * rows "any codes" all codes at random, so NaN and infinities, too. */
#include "frame.h"

#include <mpsim/mpsim.h>

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"fp16", "bf16", "e4m3", "e5m2", "tf32", "binary32"};

typedef struct row {
    mpsim_op op;
    const char *format;
    mpsim_round_mode mode;
} row;

/* Beside every operation to nearest-even. */
static const row modes[] = {
    {MPSIM_OP_ADD, "fp16", MPSIM_ROUND_TOWARD_ZERO},  {MPSIM_OP_MUL, "e5m2", MPSIM_ROUND_UP},
    {MPSIM_OP_FMA, "bf16", MPSIM_ROUND_TO_ODD},       {MPSIM_OP_ADD, "fp16", MPSIM_ROUND_STOCHASTIC_C},
    {MPSIM_OP_MUL, "e4m3", MPSIM_ROUND_STOCHASTIC_C},
};

/* With any codes, and on the other instruction sets. */
static const row few[] = {
    {MPSIM_OP_ADD, "fp16", MPSIM_ROUND_NEAREST_EVEN},
    {MPSIM_OP_MUL, "e4m3", MPSIM_ROUND_NEAREST_EVEN},
    {MPSIM_OP_FMA, "bf16", MPSIM_ROUND_NEAREST_EVEN},
    {MPSIM_OP_DIV, "fp16", MPSIM_ROUND_NEAREST_EVEN},
};

#define COUNT(table) (sizeof table / sizeof *table)

enum { WIDEST = 4 }; /* bytes of a code here */

typedef struct work {
    bench *b;
    size_t n;
    mpsim_arith o;
    float *values;      /* 3 n */
    char *codes;        /* of them */
    const char *format; /* that they are in; "" if they are codes at random */
    bench_job copy;
} work;

static void run_operation(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = {1, 2, from};
    const size_t size = mpsim_format_code_bytes(&w->o.result), at = from * size;
    const char *a = w->codes + at, *b = a + w->n * size, *c = b + w->n * size;
    (void)mpsim_arith_array(&w->o, &g, (char *)w->b->y + at, a, b, c, n, NULL);
}

static void make_values(work *w)
{
    uint64_t four;
    for (size_t i = 0; i < 3 * w->n; i++) {
        memcpy(&four, (char *)w->codes + i % (w->n / 2) * sizeof four, sizeof four); /* still random */
        double sum = -2;
        for (int k = 0; k < 64; k += 16)
            sum += (double)(four >> k & 0xffff) * 0x1p-16;
        w->values[i] = (float)(sum * (i % 2 ? 0.02 : 1.28));
    }
}

static void prepare(work *w, const char *format, int any)
{
    const mpsim_format *f = mpsim_format_find(format);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    if (any && *w->format)
        bench_random(w->codes, 3 * w->n * WIDEST, 2);
    else if (!any && strcmp(w->format, format) != 0)
        (void)mpsim_encode_array_f32(f, &r, NULL, w->codes, w->values, 3 * w->n, NULL);
    w->format = any ? "" : format;
}

static void run_row(work *w, const row *r, int any)
{
    const mpsim_format *f = mpsim_format_find(r->format);
    char how[64];
    if (!bench_wants(w->b, mpsim_op_name(r->op), r->format))
        return;
    prepare(w, r->format, any);
    mpsim_arith_init(&w->o, r->op, f, r->mode);
    snprintf(how, sizeof how, "%s%s", mpsim_round_mode_name(r->mode), any ? " any codes" : "");
    const double arrays = mpsim_op_operands(r->op) + 1;
    const bench_job j = {.operation = mpsim_op_name(r->op),
                         .what = r->format,
                         .how = how,
                         .n = w->n,
                         .bytes = arrays * (double)mpsim_format_code_bytes(f),
                         .run = run_operation,
                         .context = w,
                         .to = &w->copy};
    bench_run(w->b, &j);
}

static void run_rows(work *w)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        for (int op = 0; op < MPSIM_OPS; op++) {
            const row r = {(mpsim_op)op, formats[i], MPSIM_ROUND_NEAREST_EVEN};
            run_row(w, &r, 0);
        }
    for (size_t i = 0; i < COUNT(modes); i++)
        run_row(w, &modes[i], 0);
    for (size_t i = 0; i < COUNT(few); i++)
        run_row(w, &few[i], 1);
    const char *const best = mpsim_isa_active();
    for (size_t k = 0; mpsim_isa_at(k); k++)
        for (size_t i = 0; strcmp(mpsim_isa_at(k), best) != 0 && i < COUNT(few); i++)
            if (mpsim_isa_use(mpsim_isa_at(k)) == MPSIM_OK)
                run_row(w, &few[i], 0);
    (void)mpsim_isa_use(best);
}

int main(int argc, char **argv)
{
    bench b;
    const int code = bench_begin(&b, argc, argv, "arith");
    if (code)
        return code;
    work w = {.b = &b, .n = b.n / 8, .format = ""};
    w.values = malloc(3 * w.n * sizeof *w.values);
    w.codes = malloc(3 * w.n * WIDEST);
    if (!w.values || !w.codes || bench_data(&b))
        return 1;
    bench_random(w.codes, 3 * w.n * WIDEST, 2);
    make_values(&w);
    w.copy = bench_copy(&b);
    bench_part(&b, "Operations on arrays of codes; ratios of bytes a second");
    run_rows(&w);
    free(w.values);
    free(w.codes);
    return bench_end(&b);
}
