/* plan.c -- casts for the kernel of binary32 elements, and its counts; see plan.h. */
#include "plan.h"

#include "../../lib/stats/loops/loops.h"
#include "../../lib/stats/target.h"

#include <math.h>
#include <string.h>

int stats_plan(stats_cast *to, const mpsim_cast *cast)
{
    mpsim_target t;
    if (!mpsim_target_init(&t, cast, 0, NULL))
        return 0;
    *to = (stats_cast){.least = t.least,
                       .normal = t.normal,
                       .over = t.over,
                       .drop = t.drop,
                       .floor = t.floor,
                       .scale = t.drop > 0 ? 1u << (32 - t.drop) : 0,
                       .shift = t.drop > 0 && t.drop <= STATS_MOST_DROPPED ? 2 * (STATS_MOST_DROPPED - t.drop) : 0,
                       .truncates = t.kind == MPSIM_CELL_TRUNCATED,
                       .flushes = t.cuts_zero,
                       .saturates = t.saturates,
                       .largest_exp = t.largest_exp,
                       .largest = ldexp((double)t.largest, t.largest_exp)};
    return 1;
}

/* s += the limbs */
static void add_limbs(mpsim_sum *s, const unsigned long long *limbs)
{
    for (int i = 0; i < STATE_LIMBS; i++) {
        const int64_t v = (int64_t)limbs[i];
        const double high = (double)(v >> 32), low = (double)(v & 0xffffffff);
        mpsim_sum_add(s, ldexp(high, 32 * (i + 1) + STATE_LOWEST));
        mpsim_sum_add(s, ldexp(low, 32 * i + STATE_LOWEST));
    }
}

static double number_of(unsigned long long word)
{
    const uint32_t u = (uint32_t)word;
    float x;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

static void read_array(const unsigned long long *state, uint64_t n, unsigned want, mpsim_stats *to)
{
    mpsim_stats s = {.count = n, .zero = state[STATE_ZERO], .nan = state[STATE_NAN], .inf = state[STATE_INF]};
    if (state[STATE_UNMIN]) {
        s.amax = number_of(state[STATE_MAX]);
        s.amin = number_of(0xffffffffu - state[STATE_UNMIN]);
    }
    if (want & MPSIM_SUMMARY_SUMS) {
        add_limbs(&s.sum, state + STATE_SUM);
        add_limbs(&s.sum_squares, state + STATE_SQUARES);
    }
    mpsim_stats_merge(to, &s);
}

static void read_histogram(const unsigned long long *state, mpsim_histogram *to)
{
    to->zero += state[STATE_ZERO];
    to->inf += state[STATE_INF];
    to->nan += state[STATE_NAN];
    for (int i = 0; i < STATE_BINS; i++)
        to->bin[i - 149 - MPSIM_HISTOGRAM_MIN] += state[STATE_HISTOGRAM + i];
}

static void read_cast(const unsigned long long *state, const unsigned long long *of, uint64_t n, unsigned want,
                      mpsim_cast_stats *to)
{
    const uint64_t numbers = n - state[STATE_INF] - state[STATE_NAN];
    mpsim_cast_stats c = {.counts = {.inexact = numbers - state[STATE_ZERO] - of[STATE_EXACT],
                                     .underflow = of[STATE_UNDERFLOW],
                                     .subnormal = of[STATE_SUBNORMAL],
                                     .overflow = of[STATE_OVERFLOW],
                                     .nan = state[STATE_NAN]}};
    if (want & MPSIM_SUMMARY_ERRORS) {
        const uint64_t ratio = of[STATE_RATIO];
        c.compared = numbers - of[STATE_LEFT];
        memcpy(&c.max_rel_err, &ratio, sizeof ratio);
        add_limbs(&c.sum_squared_error, of + STATE_ERRORS);
        add_limbs(&c.sum_squares_left_out, of + STATE_LEFT_SQUARES);
    }
    mpsim_cast_stats_merge(to, &c);
}

void stats_read(const unsigned long long *state, uint64_t n, unsigned want, size_t n_casts, mpsim_stats *stats,
                mpsim_histogram *histogram, mpsim_cast_stats *casts)
{
    read_array(state, n, want, stats);
    if (histogram && want & MPSIM_SUMMARY_HISTOGRAM)
        read_histogram(state, histogram);
    for (size_t i = 0; i < n_casts; i++)
        read_cast(state, state + STATE_CASTS + i * STATE_CAST, n, want, &casts[i]);
}
