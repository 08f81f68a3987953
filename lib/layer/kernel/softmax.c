/* softmax.c -- rows of softmax, of its logarithm and of their gradients, one number at a time: what softmax.h computes in
 * vectors. */
#include "../rows.h"
#include "kernel.h"

#include <math.h>

typedef mpsim_softmax_row row;

static inline int sees(const row *r, size_t c)
{
    return !r->mask || r->mask[c];
}

/* value in columns that it does not see. */
static void hide(const row *r, float *y, float value)
{
    for (size_t c = 0; c < r->n && r->mask; c++)
        y[c] = r->mask[c] ? y[c] : value;
}

static inline void round_to(const row *r, const mpsim_math *m, float *x, size_t n)
{
    if (m->kind != MPSIM_MATH_BINARY32)
        r->kernels->round(m, x, n);
}

/* ---- forward ---- */

/* x of columns that it sees, -infinity of others; y may be s. Whether there is one that it sees. */
static inline int scores(const mpsim_math *m, const row *r, float *y, const float *s)
{
    int any = r->n > 0 && !r->mask;
    for (size_t c = 0; c < r->n; c++)
        y[c] = mpsim_causal_x(m, r->scale, mpsim_math_round(m, s[c]));
    for (size_t c = 0; c < r->n && r->mask; c++) {
        any |= r->mask[c] != 0;
        y[c] = r->mask[c] ? y[c] : -INFINITY;
    }
    return any;
}

enum { ABREAST = 16 };

/* The largest of n numbers, NaN if one is, some side by side; of two zeros either. */
static float largest(const float *x, size_t n)
{
    float some[ABREAST], max = -INFINITY;
    size_t c = 0;
    for (size_t t = 0; t < ABREAST; t++)
        some[t] = -INFINITY;
    for (; c + ABREAST <= n; c += ABREAST)
        for (size_t t = 0; t < ABREAST; t++)
            some[t] = mpsim_softmax_max(some[t], x[c + t]);
    for (size_t t = 0; t < ABREAST; t++)
        max = mpsim_softmax_max(max, some[t]);
    for (; c < n; c++)
        max = mpsim_softmax_max(max, x[c]);
    return max;
}

/* x - m in y, -infinity of masked columns. */
static inline int differences(const mpsim_math *m, const row *r, float *y, const float *s)
{
    const int any = scores(m, r, y, s);
    const float max = largest(y, r->n);
    for (size_t c = 0; c < r->n; c++)
        y[c] = mpsim_math_sub(m, y[c], max);
    for (size_t c = 0; c < r->n && r->mask; c++)
        y[c] = r->mask[c] ? y[c] : -INFINITY;
    return any;
}

static inline void forward_row(const mpsim_math *m, const row *r, float *p, const float *s)
{
    mpsim_lanes a = {{0}};
    const int any = differences(m, r, p, s);
    r->kernels->exp(p, p, r->n);
    round_to(r, m, p, r->n);
    for (size_t c = 0; c < r->n; c += MPSIM_LANES_ROW)
        mpsim_lanes_add(m, &a, p + c, mpsim_rows_width(r->n, c));
    const float z = mpsim_lanes_sum(m, &a);
    for (size_t c = 0; any && c < r->n; c++)
        p[c] = mpsim_causal_p(m, p[c], z);
    round_to(r, r->out, p, r->n);
    hide(r, p, 0.0f);
}

static inline void log_row(const mpsim_math *m, const row *r, float *y, const float *s)
{
    mpsim_lanes a = {{0}};
    float e[MPSIM_LANES_ROW];
    (void)differences(m, r, y, s);
    for (size_t c = 0; c < r->n; c += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(r->n, c);
        r->kernels->exp(e, y + c, width);
        round_to(r, m, e, width);
        mpsim_lanes_add(m, &a, e, width);
    }
    const float log_z = mpsim_math_round(m, mpsim_log_f32(mpsim_lanes_sum(m, &a)));
    for (size_t c = 0; c < r->n; c++)
        y[c] = mpsim_softmax_log(m, y[c], log_z);
    hide(r, y, -INFINITY);
    round_to(r, r->out, y, r->n);
}

/* ---- backward ---- */

static inline void backward_row(const mpsim_math *m, const row *r, float *ds, const float *dp, const float *p)
{
    mpsim_lanes a = {{0}};
    for (size_t at = 0; at < r->n; at += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(r->n, at);
        for (size_t t = 0; t < width; t++) {
            const float term = mpsim_causal_term(m, mpsim_math_round(m, p[at + t]), mpsim_math_round(m, dp[at + t]));
            a.s[t] = mpsim_math_add(m, a.s[t], sees(r, at + t) ? term : 0.0f);
        }
    }
    const float d = mpsim_lanes_sum(m, &a);
    for (size_t c = 0; c < r->n; c++)
        ds[c] = mpsim_causal_ds(m, mpsim_math_round(m, p[c]), mpsim_math_round(m, dp[c]), d, r->scale);
    round_to(r, r->out, ds, r->n);
    hide(r, ds, 0.0f);
}

static inline void log_backward_row(const mpsim_math *m, const row *r, float *ds, const float *dy, const float *y)
{
    mpsim_lanes a = {{0}};
    for (size_t at = 0; at < r->n; at += MPSIM_LANES_ROW)
        for (size_t t = 0; t < mpsim_rows_width(r->n, at); t++)
            a.s[t] = mpsim_math_add(m, a.s[t], sees(r, at + t) ? mpsim_math_round(m, dy[at + t]) : 0.0f);
    const float d = mpsim_lanes_sum(m, &a);
    for (size_t at = 0; at < r->n; at += MPSIM_LANES_ROW) {
        float e[MPSIM_LANES_ROW];
        const size_t width = mpsim_rows_width(r->n, at);
        for (size_t t = 0; t < width; t++)
            e[t] = mpsim_math_round(m, y[at + t]);
        r->kernels->exp(e, e, width);
        round_to(r, m, e, width);
        for (size_t t = 0; t < width; t++)
            ds[at + t] = mpsim_softmax_log_ds(m, e[t], mpsim_math_round(m, dy[at + t]), d, r->scale);
    }
    round_to(r, r->out, ds, r->n);
    hide(r, ds, 0.0f);
}

/* ---- whole rows ---- */

void mpsim_softmax_p_plain(const row *r, float *p, const float *s, const float *unused)
{
    (void)unused;
    MPSIM_ROWS_BY_MATH(r->m, m, forward_row(m, r, p, s));
}

void mpsim_softmax_log_plain(const row *r, float *y, const float *s, const float *unused)
{
    (void)unused;
    MPSIM_ROWS_BY_MATH(r->m, m, log_row(m, r, y, s));
}

void mpsim_softmax_back_plain(const row *r, float *ds, const float *dp, const float *p)
{
    MPSIM_ROWS_BY_MATH(r->m, m, backward_row(m, r, ds, dp, p));
}

void mpsim_softmax_log_back_plain(const row *r, float *ds, const float *dy, const float *y)
{
    MPSIM_ROWS_BY_MATH(r->m, m, log_backward_row(m, r, ds, dy, y));
}

float mpsim_softmax_zero(const row *r, const float *s)
{
    const size_t whole = r->n - r->n % ABREAST;
    for (size_t i = 0; i < r->n; i++) {
        const size_t lane = i * ABREAST / (whole ? whole : ABREAST);
        const size_t c = i < whole ? i % (whole / ABREAST) * ABREAST + lane : i;
        const float x = mpsim_causal_x(r->m, r->scale, mpsim_math_round(r->m, s[c]));
        if (x == 0 && sees(r, c))
            return x;
    }
    return 0.0f;
}

/* As `largest`: of the rest after ABREAST lanes the last one, else of the last lane. */
float mpsim_softmax_nan(const row *r, const float *s)
{
    const size_t whole = r->n - r->n % ABREAST;
    for (size_t i = r->n; i > 0; i--) {
        const size_t lane = whole ? (i - 1) / (whole / ABREAST) : 0;
        const size_t c = i > whole ? i - 1 : (i - 1) % (whole / ABREAST) * ABREAST + lane;
        if (s[c] != s[c] && sees(r, c))
            return mpsim_causal_x(r->m, r->scale, mpsim_math_round(r->m, s[c]));
    }
    return 0.0f;
}
