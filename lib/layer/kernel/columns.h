/* columns.h -- sums over the rows of a matrix in vectors, some columns side by side. Columns with a NaN are computed
 * again with CAREFUL operations. Included by vector.h. */
#pragma once

#include "rounding.h"

#include "../shared.h"

enum { COLUMN_VECTORS = MPSIM_COLUMNS_WIDTH / V_LANES };

typedef struct vcolumns {
    vf32 s[COLUMN_VECTORS];
} vcolumns;

V_INLINE void add_to(const vround *m, vcolumns *s, const vcolumns *term)
{
    for (int k = 0; k < COLUMN_VECTORS; k++)
        s->s[k] = add(m, s->s[k], term->s[k]);
}

/* Numbers of row i, +0 of columns that the matrix has not; lanes with a NaN are added to `nan`. */
V_INLINE vcolumns row_numbers(const vround *m, const mpsim_columns *c, const float *x, size_t i, m32 *nan)
{
    const float *const from = x + i * c->stride + c->at;
    vcolumns v;
    for (size_t k = 0; k < COLUMN_VECTORS; k++) {
        v.s[k] = k * V_LANES < c->width ? take(from + k * V_LANES, c->width - k * V_LANES) : v_f32(0.0f);
        *nan = m32_or(*nan, is_nan(v.s[k]));
        v.s[k] = to(m, v.s[k]);
    }
    return v;
}

/* A number of row i, or those of the columns; lanes with a NaN are added to `nan`. */
V_INLINE vf32 statistic(const vround *m, const mpsim_columns *c, const float *x, size_t i, size_t k, m32 *nan)
{
    const vf32 v = c->kind == MPSIM_COLUMNS_ROWS ? v_f32(x ? x[i] : 0.0f) : v_load_f32(x + k * V_LANES);
    *nan = m32_or(*nan, is_nan(v));
    return to(m, v);
}

/* What products of row i are. */
V_INLINE vcolumns row_products(const vround *m, const mpsim_columns *c, const vcolumns *dy, size_t i, m32 *nan)
{
    const vcolumns x = row_numbers(m, c, c->x, i, nan);
    vcolumns v;
    for (size_t k = 0; k < COLUMN_VECTORS; k++) {
        const vf32 d = sub(m, x.s[k], statistic(m, c, c->mean, i, k, nan));
        v.s[k] = c->kind == MPSIM_COLUMNS_SQUARES ? mul(m, d, d)
                                                  : mul(m, dy->s[k], mul(m, d, statistic(m, c, c->inverse, i, k, nan)));
    }
    return v;
}

/* The tree over the lanes. */
V_INLINE void columns_sum(const vround *m, const mpsim_columns *c, vcolumns *s, float *sum)
{
    for (size_t h = mpsim_lanes_used(c->rows) / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            add_to(m, &s[t], &s[t + h]);
    memcpy(sum, s[0].s, c->width * sizeof *sum);
}

enum { AHEAD = 16 }; /* rows: a column of a large matrix is a page for each */

V_INLINE void fetch_row(const mpsim_columns *c, size_t i)
{
    if (i >= c->rows)
        return;
    __builtin_prefetch(c->dy + i * c->stride + c->at);
    if (c->x)
        __builtin_prefetch(c->x + i * c->stride + c->at);
}

V_INLINE int columns_loop(int how, const mpsim_columns *c, float *sums, float *products)
{
    const vround m = rounding_of(how, c->m);
    const size_t lanes = mpsim_lanes_used(c->rows);
    vcolumns s[MPSIM_LANES_ALL], p[MPSIM_LANES_ALL];
    m32 nan = no_lane();
    memset(s, 0, sums ? lanes * sizeof s[0] : 0);
    memset(p, 0, products ? lanes * sizeof p[0] : 0);
    for (size_t i = 0; i < c->rows; i++) {
        fetch_row(c, i + AHEAD);
        const vcolumns dy = row_numbers(&m, c, c->dy, i, &nan);
        if (sums)
            add_to(&m, &s[i % MPSIM_LANES_ALL], &dy);
        if (products) {
            const vcolumns term = row_products(&m, c, &dy, i, &nan);
            add_to(&m, &p[i % MPSIM_LANES_ALL], &term);
        }
    }
    if (!m.careful && m32_any(nan))
        return 0;
    if (sums)
        columns_sum(&m, c, s, sums);
    if (products)
        columns_sum(&m, c, p, products);
    return 1;
}

static void V_NAME(columns)(const mpsim_columns *c, float *sums, float *products)
{
    int done = 0;
    BY_CARE(how_of(c->m), how, done, columns_loop(how, c, sums, products));
    if (!done)
        mpsim_columns_plain(c, sums, products);
}
