/* error.c -- see error.h. */
#include "error.h"

#include "../cli/options.h"

#include <train/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All results of a model, as binary64 values. */
static mpsim_status run(double *d, const mpsim_model *m, const operand *a, const operand *b,
                        size_t depth)
{
    const mpsim_format *f = &m->result.format;
    const mpsim_matrix ma = {&a->format, a->codes, a->depth, 0};
    const mpsim_matrix mb = {&b->format, b->codes, b->depth, 1};
    const mpsim_rng rng = {1, 0, 0};
    const size_t n = a->rows * b->rows;
    void *codes = calloc(n + 1, mpsim_format_code_bytes(f));
    mpsim_status s = MPSIM_ENOMEM;
    if (codes)
        s = mpsim_gemm(m, a->rows, b->rows, depth, &ma, &mb, NULL, codes, b->rows, &rng,
                       &parallel_pool);
    if (s == MPSIM_OK)
        s = mpsim_decode_array(f, d, codes, n);
    free(codes);
    return s;
}

static int failed(const mpsim_model *m, const operand *a, const operand *b,
                  mpsim_status s)
{
    if (s == MPSIM_ERANGE)
        return fail(EXIT_USAGE, "dot: model '%s' cannot take %s and %s: more than 60 explicit "
                    "significand bits together", m->name, a->format.name, b->format.name);
    return fail(EXIT_IO, "dot: model '%s': %s", m->name, mpsim_status_string(s));
}

int dot_exact(double *exact, const operand *a, const operand *b, size_t depth)
{
    mpsim_model truth;
    mpsim_status s = mpsim_model_parse(&truth, "exact:binary64");
    if (s == MPSIM_OK)
        s = run(exact, &truth, a, b, depth);
    return s == MPSIM_OK ? 0 : failed(&truth, a, b, s);
}

/* a / b of two exact sums, whose values may lie beyond binary64; 0 if a is zero. */
static double ratio(const mpsim_sum *a, const mpsim_sum *b)
{
    int ea, eb;
    const double fa = mpsim_sum_frexp(a, &ea), fb = mpsim_sum_frexp(b, &eb);
    return fa == 0 ? 0 : ldexp(fa / fb, ea - eb);
}

static void measure(dot_error *e, const double *d, const double *exact, size_t n, int precision)
{
    mpsim_sum errors, squares, magnitudes, gained;
    mpsim_sum_init(&errors);
    mpsim_sum_init(&squares);
    mpsim_sum_init(&magnitudes);
    mpsim_sum_init(&gained);
    e->count = n;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(d[i]) || !isfinite(exact[i])) {
            e->not_finite++;
            continue;
        }
        const double error = d[i] - exact[i];
        if (exact[i] != 0 && fabs(error / exact[i]) > e->max_rel)
            e->max_rel = fabs(error / exact[i]);
        mpsim_sum_add_square(&errors, error);
        mpsim_sum_add_square(&squares, exact[i]);
        mpsim_sum_add(&magnitudes, fabs(exact[i]));
        mpsim_sum_add(&gained, fabs(d[i]));
        mpsim_sum_add(&gained, -fabs(exact[i]));
    }
    if (e->not_finite == n && n > 0) {
        e->max_rel = e->rel = e->bias = e->bits_lost = (double)NAN;
        return;
    }
    e->rel = sqrt(ratio(&errors, &squares));
    e->bias = ratio(&gained, &magnitudes);
    e->bits_lost = e->rel > 0 ? precision + log2(e->rel) : 0;
    e->bits_lost = e->bits_lost < 0 ? 0 : e->bits_lost > precision ? precision : e->bits_lost;
}

int dot_error_measure(dot_error *e, const mpsim_model *m, const operand *a,
                      const operand *b, size_t depth, const double *exact)
{
    const size_t n = a->rows * b->rows;
    double *d = malloc((n + 1) * sizeof *d);
    memset(e, 0, sizeof *e);
    const mpsim_status s = d ? run(d, m, a, b, depth) : MPSIM_ENOMEM;
    if (s == MPSIM_OK) {
        measure(e, d, exact, n, m->result.format.mbits + 1);
        e->first = n ? d[0] / (a->scale * b->scale) : 0;
    }
    free(d);
    return s == MPSIM_OK ? 0 : failed(m, a, b, s);
}
