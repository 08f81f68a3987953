/* attendscore.c -- see attendscore.h. */
#include "attendscore.h"

#include "../array/want.h"

#include <mpsim/layer.h>
#include <mpsim/transformer.h>

#include <math.h>
#include <stdlib.h>

void judge_attend_scale(float *x, const mpsim_format *f, size_t n, float by)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++)
        x[i] *= by;
    (void)mpsim_round_array_f32(f, &r, NULL, x, x, n, NULL);
}

double judge_attend_distance(const attend_row *row, const attend_shape *s, size_t query, size_t key)
{
    const double own = (double)query + (row->causal == ATTEND_FIRST ? 0 : (double)s->keys - (double)s->queries);
    return fabs(own - (double)key);
}

void judge_attend_adjust(const attend_row *row, const attend_shape *s, const attend_arrays *x, const mpsim_format *f,
                         const size_t at[3], size_t n, float *scores)
{
    const size_t head = at[0], query = at[1], first = at[2];
    const float cap = (float)row->softcap, *bias = judge_attend_bias(s, x, head, query);
    for (size_t i = 0; i < n && cap > 0; i++)
        scores[i] /= cap;
    if (cap > 0)
        judge_attend_scale(scores, f, n, 1);
    for (size_t i = 0; i < n && cap > 0; i++)
        scores[i] = mpsim_tanh(scores[i]);
    if (cap > 0) {
        judge_attend_scale(scores, f, n, 1);
        judge_attend_scale(scores, f, n, cap);
    }
    for (size_t i = 0; i < n && bias; i++)
        scores[i] += bias[first + i];
    if (bias)
        judge_attend_scale(scores, f, n, 1);
    for (size_t i = 0; i < n && x->slopes; i++) {
        const float less = x->slopes[head] * (float)judge_attend_distance(row, s, query, first + i);
        scores[i] -= less;
    }
    if (x->slopes)
        judge_attend_scale(scores, f, n, 1);
}

float judge_attend_lse(const float *x, const uint8_t *mask, size_t n)
{
    float most = -HUGE_VALF, sum = 0;
    float *e = want_memory(n + 1, sizeof *e);
    for (size_t i = 0; i < n; i++)
        if (!mask || mask[i])
            most = isnan(x[i]) || isnan(most) ? NAN : x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n && e; i++)
        e[i] = mask && !mask[i] ? 0 : mpsim_exp(x[i] - (most == -HUGE_VALF ? 0 : most));
    sum = e ? mpsim_sum_lanes(NULL, e, n, 1, MPSIM_LANES_ROW) : NAN;
    free(e);
    return most + mpsim_log(sum);
}
