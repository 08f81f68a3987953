/* columns.c -- sums over the rows of a matrix, one number at a time: what columns.h computes in vectors. */
#include "../rows.h"
#include "kernel.h"

typedef mpsim_columns columns;
typedef float sums[MPSIM_LANES_ALL][MPSIM_COLUMNS_WIDTH];

/* dy, or what products are. */
static inline float term(const columns *c, const mpsim_math *m, int products, size_t row, size_t k)
{
    const size_t at = row * c->stride + c->at + k, of = c->kind == MPSIM_COLUMNS_ROWS ? row : k;
    const float dy = mpsim_math_round(m, c->dy[at]);
    if (!products)
        return dy;
    const float mean = c->mean ? mpsim_math_round(m, c->mean[of]) : 0.0f, x = mpsim_math_round(m, c->x[at]);
    if (c->kind == MPSIM_COLUMNS_SQUARES)
        return mpsim_batchnorm_square(m, x, mean);
    return mpsim_math_mul(m, dy, mpsim_batchnorm_normal(m, x, mean, mpsim_math_round(m, c->inverse[of])));
}

static inline void sum(const columns *c, const mpsim_math *m, int products, float *to)
{
    sums s;
    const size_t lanes = mpsim_lanes_used(c->rows);
    memset(s, 0, lanes * sizeof s[0]);
    for (size_t i = 0; i < c->rows; i++)
        for (size_t k = 0; k < c->width; k++)
            s[i % MPSIM_LANES_ALL][k] = mpsim_math_add(m, s[i % MPSIM_LANES_ALL][k], term(c, m, products, i, k));
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            for (size_t k = 0; k < c->width; k++)
                s[t][k] = mpsim_math_add(m, s[t][k], s[t + h][k]);
    memcpy(to, s[0], c->width * sizeof *to);
}

void mpsim_columns_plain(const columns *c, float *sums_of, float *products)
{
    if (sums_of)
        MPSIM_ROWS_BY_MATH(c->m, m, sum(c, m, 0, sums_of));
    if (products)
        MPSIM_ROWS_BY_MATH(c->m, m, sum(c, m, 1, products));
}
