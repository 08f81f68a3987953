/* t-logprob.c -- what mpsim diff --logprob takes differences for: log-probabilities of tokens that are drawn from seeded
 * distributions, with a fault of each sort beside sound ones. */
#include "sim/diff/logjudge.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 40, LENGTH = 64, SEQUENCES = 24, STEPS = 4, PER_STEP = SEQUENCES / STEPS };

static uint64_t state;

static double uniform(void)
{
    return ((double)(test_random(&state) >> 11) + 0.5) * 0x1p-53;
}
static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979323846 * uniform());
}

/* ---- a side ---- */

typedef struct policy {
    double temperature, top_p; /* 0: none        */
    int top_k;                 /* 0: none        */
    const char *logits;        /* NULL: as they are */
    double drift;              /* of logits: another policy, times the step where by_step */
    int by_step;
} policy;

static int larger_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The smallest logit that is kept. */
static double limit_of(const policy *p, const double *x)
{
    double sorted[WORDS], sum = 0, part = 0;
    memcpy(sorted, x, sizeof sorted);
    qsort(sorted, WORDS, sizeof *sorted, larger_first);
    if (p->top_k)
        return sorted[p->top_k - 1];
    for (int i = 0; i < WORDS; i++)
        sum += exp(sorted[i]);
    for (int i = 0; i < WORDS && p->top_p > 0; i++)
        if ((part += exp(sorted[i])) >= p->top_p * sum)
            return sorted[i];
    return -HUGE_VAL;
}

static void distribution(const policy *p, const double *logits, const double *other, int step, double log_p[WORDS])
{
    double x[WORDS], sum = 0;
    for (int i = 0; i < WORDS; i++) {
        x[i] = logits[i] + p->drift * other[i] * (p->by_step ? step + 1 : 1);
        if (p->logits) {
            mpsim_rounding r;
            mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
            const mpsim_format *f = mpsim_format_find(p->logits);
            x[i] = mpsim_decode(f, mpsim_encode_f32(f, &r, (float)x[i], 0, NULL));
        }
        x[i] /= p->temperature > 0 ? p->temperature : 1;
    }
    const double limit = limit_of(p, x);
    for (int i = 0; i < WORDS; i++)
        sum += x[i] >= limit ? exp(x[i]) : 0;
    for (int i = 0; i < WORDS; i++)
        log_p[i] = x[i] >= limit ? x[i] - log(sum) : -HUGE_VAL;
}

static int draw(const double *log_p)
{
    double u = uniform();
    int last = 0;
    for (int i = 0; i < WORDS; i++) {
        if (log_p[i] == -HUGE_VAL)
            continue;
        last = i;
        if ((u -= exp(log_p[i])) < 0)
            break;
    }
    return last;
}

/* ---- what becomes of what was recorded ---- */

typedef void changing(double *a, double *b);

static void base_2(double *a, double *b)
{
    (void)a;
    for (int i = 0; i < LENGTH; i++)
        b[i] /= log(2);
}
static void losses(double *a, double *b)
{
    (void)a;
    for (int i = 0; i < LENGTH; i++)
        b[i] = -b[i];
}
static void no_logarithms(double *a, double *b)
{
    (void)b;
    for (int i = 0; i < LENGTH; i++)
        a[i] = exp(a[i]);
}
static void half(double *a, double *b)
{
    (void)a;
    for (int i = 0; i < LENGTH; i++)
        b[i] /= 2;
}
static void offset(double *a, double *b)
{
    (void)a;
    for (int i = 0; i < LENGTH; i++)
        b[i] -= 0.25;
}
static void shift(double *a, double *b)
{
    (void)a;
    memmove(b + 1, b, (LENGTH - 1) * sizeof *b);
    b[0] = -1;
}
static void mask(double *a, double *b)
{
    (void)a;
    for (int i = LENGTH / 2; i < LENGTH / 2 + 9; i++)
        b[i] = 0;
}
static void zeros(double *a, double *b)
{
    (void)a;
    memset(b, 0, LENGTH * sizeof *b);
}
static void infinite(double *a, double *b)
{
    (void)a;
    for (int i = 3; i < 9; i++)
        b[i] = -HUGE_VAL;
}
static void garbage(double *a, double *b)
{
    (void)a;
    for (int i = 0; i < LENGTH; i++)
        b[i] = -5 * uniform();
}
static void logits_alone(double *a, double *b)
{
    (void)a;
    for (int i = 0; i < LENGTH; i++)
        b[i] += 6 + normal();
}

/* ---- cases ---- */

static const struct {
    const char *name;
    policy a, b;
    changing *change;
    log_verdict verdict;
    const char *words; /* in the evidence */
    int from_b;        /* tokens are drawn from B */
} cases[] = {
    {"same", {.top_k = 0}, {.top_k = 0}, NULL, LOG_EQUAL, "", 0},
    {"bf16 logits", {.logits = "bf16"}, {.top_k = 0}, NULL, LOG_ROUNDING, "half an ULP of bf16", 0},
    {"fp16 logits", {.logits = "fp16"}, {.top_k = 0}, NULL, LOG_ROUNDING, "half an ULP of fp16", 0},
    {"both in bf16",
     {.logits = "bf16", .temperature = 0.7},
     {.temperature = 0.7},
     NULL,
     LOG_ROUNDING,
     "its standard error",
     0},
    {"both renormalised", {.top_k = 8}, {.top_k = 8, .drift = 1e-6}, NULL, LOG_ROUNDING, "sums of binary32", 0},
    {"noise of layers", {.drift = 0.03}, {.top_k = 0}, NULL, LOG_ROUNDING, "may be as near", 0},
    {"raw and 0.6", {.top_k = 0}, {.temperature = 0.6}, NULL, LOG_TEMPERED, "at a temperature of about 0.", 0},
    {"0.5 and raw, bf16",
     {.temperature = 0.5, .logits = "bf16"},
     {.top_k = 0},
     NULL,
     LOG_TEMPERED,
     "the tokens were drawn from A",
     0},
    {"raw and 1.5", {.top_k = 0}, {.temperature = 1.5}, NULL, LOG_TEMPERED, "temperature of about 1.", 0},
    {"top-p", {.top_p = 0.8}, {.top_k = 0}, NULL, LOG_RENORMALISED, "A is renormalised", 0},
    {"top-k", {.top_k = 4}, {.logits = "fp16"}, NULL, LOG_RENORMALISED, "A is renormalised", 0},
    {"top-p of B", {.top_k = 0}, {.top_p = 0.8}, NULL, LOG_RENORMALISED, "B is renormalised", 1},
    {"base 2", {.top_k = 0}, {.logits = "bf16"}, base_2, LOG_BASE, "B's are of base 2", 0},
    {"losses", {.top_k = 0}, {.logits = "bf16"}, losses, LOG_NEGATED, "B = -A", 0},
    {"probabilities", {.top_k = 0}, {.logits = "bf16"}, no_logarithms, LOG_PROBABILITIES, "B is the logarithm of A", 0},
    {"halves", {.top_k = 0}, {.logits = "bf16"}, half, LOG_SCALED, "B = A times 0.", 0},
    {"offset", {.top_k = 0}, {.logits = "fp16"}, offset, LOG_OFFSET, "B = A - 0.2", 0},
    {"shifted", {.top_k = 0}, {.logits = "bf16"}, shift, LOG_SHIFTED, "one token later", 0},
    {"masked", {.top_k = 0}, {.logits = "bf16"}, mask, LOG_MASKED, "B has 0 at ", 0},
    {"zeros", {.top_k = 0}, {.top_k = 0}, zeros, LOG_MASKED, "B has 0 at ", 0},
    {"infinite", {.top_k = 0}, {.logits = "bf16"}, infinite, LOG_MASKED, "finite number on one side only", 0},
    {"logits", {.top_k = 0}, {.top_k = 0}, logits_alone, LOG_NO_LOGARITHMS, "of B are above 0", 0},
    {"grows", {.top_k = 0}, {.drift = 0.15, .by_step = 1}, NULL, LOG_STALE, "grows from", 0},
    {"another policy", {.top_k = 0}, {.drift = 0.5}, NULL, LOG_OTHER_POLICY, "a stale policy, or weights", 0},
    {"random", {.top_k = 0}, {.top_k = 0}, garbage, LOG_UNEXPLAINED, "with a standard error of", 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void add_sequence(log_tokens *t, const policy *of_a, const policy *of_b, int step, int from_b, changing *change)
{
    double a[LENGTH], b[LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        double logits[WORDS], other[WORDS], log_a[WORDS], log_b[WORDS];
        const double spread = 1 + 3 * uniform();
        for (int w = 0; w < WORDS; w++) {
            logits[w] = spread * normal();
            other[w] = normal();
        }
        distribution(of_a, logits, other, step, log_a);
        distribution(of_b, logits, other, step, log_b);
        const int token = draw(from_b ? log_b : log_a);
        a[i] = log_a[token];
        b[i] = log_b[token];
    }
    if (change)
        change(a, b);
    diff_log_add(t, step, a, b, LENGTH);
}

static void make(log_tokens *t, size_t k)
{
    *t = (log_tokens){0};
    for (int s = 0; s < SEQUENCES; s++)
        add_sequence(t, &cases[k].a, &cases[k].b, s / PER_STEP, cases[k].from_b, cases[k].change);
}

CASE("logprob", 30);

TEST(verdicts)
{
    size_t wrong = 0;
    for (uint64_t round = 0; round < test_scaled(1); round++)
        for (size_t k = 0; k < CASES; k++) {
            log_tokens t;
            log_finding f;
            state = test_seed() + 977 * round + k;
            make(&t, k);
            diff_log_judge(&f, &t);
            diff_log_clear(&t);
            if (f.verdict == cases[k].verdict && strstr(f.said.evidence, cases[k].words))
                continue;
            wrong++;
            fprintf(stderr, "# %s: %s, %s\n", cases[k].name, diff_log_words[f.verdict], f.said.evidence);
        }
    ck_assert_msg(wrong == 0, "%zu cases are named otherwise", wrong);
}

/* Another policy, in whatever arithmetic and however far, is nothing that names a fault. */
TEST(no_false_alarms)
{
    static const double drifts[] = {0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.5};
    static const policy kinds[] = {
        {.top_k = 0}, {.logits = "bf16"}, {.temperature = 0.6, .logits = "fp16"}, {.temperature = 1.4}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < sizeof drifts / sizeof drifts[0]; i++) {
            policy a = kinds[k], b = kinds[k];
            log_tokens t = {0};
            log_finding f;
            b.drift = drifts[i];
            b.logits = i % 2 ? NULL : "bf16";
            state = test_seed() + 31 * i + k;
            for (int s = 0; s < SEQUENCES; s++)
                add_sequence(&t, &a, &b, s / PER_STEP, 0, NULL);
            diff_log_judge(&f, &t);
            diff_log_clear(&t);
            ck_assert_msg(f.verdict == LOG_EQUAL || f.verdict == LOG_ROUNDING || f.verdict == LOG_OTHER_POLICY ||
                              (f.verdict == LOG_UNEXPLAINED && drifts[i] > 0.5),
                          "%zu, drift %g: %s, %s", k, drifts[i], diff_log_words[f.verdict], f.said.evidence);
        }
}

TEST(few)
{
    const double a[] = {-1, -2, -3}, b[] = {-2, -4, -6};
    log_tokens t = {0};
    log_finding f;
    diff_log_add(&t, -1, a, b, 3);
    diff_log_judge(&f, &t);
    ck_assert_uint_eq(f.verdict, LOG_TOO_FEW);
    diff_log_clear(&t);
    diff_log_judge(&f, &t);
    ck_assert_uint_eq(f.verdict, LOG_EQUAL);
}

TEST_MAIN("sim/t-logprob");
