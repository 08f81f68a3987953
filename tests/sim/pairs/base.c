/* base.c -- what the tensors of pairs begin as. */
#include "sim/pairs/pairs.h"

#include "support/support.h"

#include <math.h>
#include <mpsim/format.h>
#include <mpsim/round.h>

double pair_normal(uint64_t *random)
{
    double x[2];
    test_normal_pair(random, x);
    return x[0];
}

double pair_rounded(const char *format, double x)
{
    const mpsim_format *f = mpsim_format_find(format);
    mpsim_rounding r;
    double y = 0;
    ck_assert_ptr_nonnull(f);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f64(f, &r, NULL, &y, &x, 1, NULL);
    return y;
}

void pair_shape(pair_tensor *t, const char *format, size_t rows, size_t columns)
{
    t->format = format;
    t->shape[0] = rows, t->shape[1] = columns, t->shape[2] = 0;
    t->n = rows * (columns ? columns : 1);
}

static void normals(pair_tensor *t, uint64_t *random, double deviation)
{
    for (size_t i = 0; i < t->n; i++)
        t->x[i] = pair_rounded(t->format, deviation * pair_normal(random));
}

static void gradients(pair_tensor *t, uint64_t *random)
{
    for (size_t i = 0; i < t->n; i++)
        t->x[i] = pair_rounded(t->format, ldexp(pair_normal(random), -6 - (int)(test_random(random) % 12)));
}

static void constant(pair_tensor *t, double x)
{
    for (size_t i = 0; i < t->n; i++)
        t->x[i] = x;
}

void pair_weight(pair_tensor *t, uint64_t *random) { pair_shape(t, "binary32", 64, 48), normals(t, random, 0.02); }
void pair_hidden(pair_tensor *t, uint64_t *random) { pair_shape(t, "binary32", 32, 96), normals(t, random, 1); }
void pair_weight_bf16(pair_tensor *t, uint64_t *random) { pair_shape(t, "bf16", 64, 48), normals(t, random, 0.02); }
void pair_gradient(pair_tensor *t, uint64_t *random) { pair_shape(t, "binary32", 64, 48), gradients(t, random); }
void pair_gradient_bf16(pair_tensor *t, uint64_t *random) { pair_shape(t, "bf16", 64, 48), gradients(t, random); }
void pair_scalar(pair_tensor *t, uint64_t *random) { (void)random, pair_shape(t, "binary32", 1, 0), constant(t, 4); }
void pair_ones(pair_tensor *t, uint64_t *random) { (void)random, pair_shape(t, "binary32", 128, 0), constant(t, 1); }
void pair_zeros(pair_tensor *t, uint64_t *random) { (void)random, pair_shape(t, "binary32", 128, 0), constant(t, 0); }
void pair_empty(pair_tensor *t, uint64_t *random) { (void)random, pair_shape(t, "binary32", 0, 0); }

void pair_activation(pair_tensor *t, uint64_t *random)
{
    pair_hidden(t, random);
    for (size_t i = 0; i < t->n; i++)
        t->x[i] = fmax(t->x[i], 0);
}
