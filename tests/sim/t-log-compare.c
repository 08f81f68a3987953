/* t-log-compare.c -- two runs of one process that remembers its last steps are not called apart more often than 95 % says; a real
 * gap is. */
#include "sim/log/compare.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 400, PAIRS = 800, FEW = 100 };

static uint64_t state;

/* Normal by twelve uniform ones. */
static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(test_random(&state) >> 11) * 0x1p-53;
    return sum;
}

/* AR(1) of variance 1, above a loss that falls. */
static void fill(sample *at, size_t n, double memory)
{
    double x = normal();
    for (size_t i = 0; i < n; i++) {
        at[i] = (sample){.line = i + 1, .step = (int64_t)i + 1, .value = 50 * exp(-(double)i / ((double)n / 12)) + x};
        x = memory * x + sqrt(1 - memory * memory) * normal();
    }
}

/* A pair of runs; to the second comes gap(i / n). */
static const comparison *compared(size_t n, double memory, double (*gap)(double))
{
    static comparison c;
    static sample at[2][STEPS];
    log_runs r = {.count = 2, .n = n, .what = "loss"};
    for (int k = 0; k < 2; k++) {
        fill(at[k], n, memory);
        r.run[k].at = at[k];
    }
    for (size_t i = 0; gap && i < n; i++)
        at[1][i].value += gap((double)i / (double)n);
    log_compare(&c, &r);
    return &c;
}

static double percent_apart(int pairs, size_t n, double memory, double (*gap)(double))
{
    int apart = 0;
    for (int i = 0; i < pairs; i++) {
        const run_verdict v = compared(n, memory, gap)->verdict;
        apart += v == RUNS_APART || v == RUNS_SMALL;
    }
    return 100.0 * apart / pairs;
}

START_TEST(chance_is_no_gap)
{
    static const double memories[] = {0, 0.5, 0.9, 0.97};
    state = 42; /* the rates are quoted on a page */
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) {
        const double apart = percent_apart(PAIRS, STEPS, memories[i], NULL);
        printf("# correlation %.2f: %.1f %% of %d pairs of %d steps are apart\n", memories[i], apart, PAIRS, STEPS);
        ck_assert_msg(apart > 1 && apart < 7, "%g: %g %%", memories[i], apart);
    }
    const double fewer = percent_apart(PAIRS, 120, 0.9, NULL);
    ck_assert_msg(fewer < 7, "120 steps: %g %%", fewer);
}

static double constant(double t)
{
    return t < 0 ? 0 : 1;
}

static double drift(double t)
{
    return 6 * t;
}

static double explodes(double t)
{
    return t < 0.8 ? 0 : 40 * (t - 0.8) / 0.2;
}

START_TEST(gaps_show)
{
    state = test_seed() + 7;
    ck_assert(percent_apart(FEW, STEPS, 0, constant) >= 99);
    ck_assert(percent_apart(FEW, STEPS, 0.5, constant) > 95);
    ck_assert(percent_apart(FEW, STEPS, 0.5, drift) >= 99);
    ck_assert(percent_apart(FEW, STEPS, 0.9, drift) > 90);
    ck_assert(percent_apart(FEW, STEPS, 0.5, explodes) > 95);
}

int main(void)
{
    TCase *c = tcase_create("compare");
    tcase_add_test(c, chance_is_no_gap);
    tcase_add_test(c, gaps_show);
    TCase *const cases[] = {c, NULL};
    return test_main("log-compare", cases);
}
