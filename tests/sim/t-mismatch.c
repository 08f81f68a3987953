/* t-mismatch.c -- log-probabilities of two arithmetics: every bit as nested loops over an own tensor core give it; exact
 * ones and the divergence beside MPFR. */
#include "oracle/core.h"
#include "sim/mismatch/measure.h"
#include "support/support.h"

#include <math.h>
#include <mpfr.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 37, WORDS = 53, SIZE = 40, BITS = 300 };

/* ---- a side, again ---- */

typedef struct wanted {
    const char *words; /* as mismatch_arithmetic_parse takes them */
    const char *architecture, *operands, *result;
    int parts;
    const char *workspace, *sum, *logits, *softmax;
} wanted;

static const wanted sides[] = {
    {"fma", NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL},
    {"hopper-bf16-fp32", "hopper", "bf16", NULL, 1, NULL, NULL, NULL, NULL},
    {"ampere-fp16-fp32,split=3", "ampere", "fp16", NULL, 3, NULL, NULL, NULL, NULL},
    {"hopper-fp16-fp32,logits=fp16", "hopper", "fp16", NULL, 1, NULL, NULL, "fp16", NULL},
    {"hopper-bf16-fp32,logits=bf16,softmax=bf16", "hopper", "bf16", NULL, 1, NULL, NULL, "bf16", "bf16"},
    {"ampere-bf16-fp32,split=6,workspace=bf16,sum=bf16", "ampere", "bf16", NULL, 6, "bf16", "bf16", NULL, NULL},
    {"hopper-bf16-fp32:result=bf16,softmax=fp16,split=2", "hopper", "bf16", "bf16", 2, NULL, NULL, NULL, "fp16"},
};
enum { SIDES = sizeof sides / sizeof sides[0] };

static const oracle_core chain = {NULL, 0, 0, 1};

static float product(const wanted *w, const double *a, const double *b, size_t n)
{
    const oracle_format *f = oracle_format_find(w->operands);
    oracle_part x[SIZE], y[SIZE];
    for (size_t i = 0; i < n; i++) {
        x[i] = oracle_take_apart(f, oracle_to(f, a[i]));
        y[i] = oracle_take_apart(f, oracle_to(f, b[i]));
    }
    const oracle_core *core = w->architecture ? oracle_core_of(w->architecture, w->operands) : &chain;
    return oracle_to(oracle_format_find(w->result), (double)core_dot(core, f->precision, x, 1, f->precision, y, 1, n));
}

static float logit(const wanted *w, const double *a, const double *b)
{
    const size_t length = (SIZE - 1) / (size_t)w->parts + 1;
    const oracle_format *workspace = oracle_format_find(w->workspace), *sum = oracle_format_find(w->sum);
    if (w->parts == 1)
        return oracle_to(oracle_format_find(w->logits), (double)product(w, a, b, SIZE));
    float s = 0;
    for (size_t k = 0; k < SIZE; k += length) {
        const float part = product(w, a + k, b + k, SIZE - k < length ? SIZE - k : length);
        s = oracle_to(sum, (double)s + (double)oracle_to(workspace, (double)part));
    }
    s = oracle_to(oracle_format_find(w->result), (double)s);
    return oracle_to(oracle_format_find(w->logits), (double)s);
}

static double log_probability(const wanted *w, const float *x, uint32_t token)
{
    float loss, dx[WORDS];
    uint64_t correct;
    oracle_xent(oracle_format_find(w->softmax), oracle_format_find(NULL), 1, WORDS, x, &token, 1, &loss, dx, &correct);
    return -(double)loss;
}

/* ---- MPFR ---- */

/* log of the sum of exp(x[i]). */
static void log_sum(mpfr_t to, mpfr_t *x)
{
    mpfr_t e;
    mpfr_init2(e, BITS);
    mpfr_set_zero(to, 1);
    for (size_t i = 0; i < WORDS; i++) {
        mpfr_exp(e, x[i], MPFR_RNDN);
        mpfr_add(to, to, e, MPFR_RNDN);
    }
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_clear(e);
}

static void init_all(mpfr_t *x)
{
    for (size_t i = 0; i < WORDS; i++)
        mpfr_init2(x[i], BITS);
}

static void clear_all(mpfr_t *x)
{
    for (size_t i = 0; i < WORDS; i++)
        mpfr_clear(x[i]);
}

static double exactly(const double *hidden, const double *head, uint32_t token)
{
    mpfr_t x[WORDS], term, lse;
    init_all(x);
    mpfr_inits2(BITS, term, lse, (mpfr_ptr)NULL);
    for (size_t i = 0; i < WORDS; i++) {
        mpfr_set_zero(x[i], 1);
        for (size_t k = 0; k < SIZE; k++) {
            mpfr_set_d(term, hidden[k], MPFR_RNDN);
            mpfr_mul_d(term, term, head[i * SIZE + k], MPFR_RNDN);
            mpfr_add(x[i], x[i], term, MPFR_RNDN);
        }
    }
    log_sum(lse, x);
    mpfr_sub(lse, x[token], lse, MPFR_RNDN);
    const double result = mpfr_get_d(lse, MPFR_RNDN);
    clear_all(x);
    mpfr_clears(term, lse, (mpfr_ptr)NULL);
    return result;
}

static double divergence(const float *a, const float *b)
{
    mpfr_t x[WORDS], y[WORDS], la, lb, term, p, sum;
    init_all(x);
    init_all(y);
    mpfr_inits2(BITS, la, lb, term, p, sum, (mpfr_ptr)NULL);
    for (size_t i = 0; i < WORDS; i++) {
        mpfr_set_flt(x[i], a[i], MPFR_RNDN);
        mpfr_set_flt(y[i], b[i], MPFR_RNDN);
    }
    log_sum(la, x);
    log_sum(lb, y);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < WORDS; i++) {
        mpfr_sub(x[i], x[i], la, MPFR_RNDN);
        mpfr_sub(y[i], y[i], lb, MPFR_RNDN);
        mpfr_sub(term, x[i], y[i], MPFR_RNDN);
        mpfr_exp(p, x[i], MPFR_RNDN);
        mpfr_mul(term, term, p, MPFR_RNDN);
        mpfr_add(sum, sum, term, MPFR_RNDN);
    }
    const double result = mpfr_get_d(sum, MPFR_RNDN);
    clear_all(x);
    clear_all(y);
    mpfr_clears(la, lb, term, p, sum, (mpfr_ptr)NULL);
    return result;
}

/* ---- all of it ---- */

static void compare(const mismatch *m, const wanted *const w[2])
{
    double worst_kl = 0, worst = 0;
    for (size_t i = 0; i < TOKENS; i++) {
        const mismatch_token *t = &m->tokens[i];
        float x[2][WORDS];
        size_t most[2] = {0, 0};
        for (int s = 0; s < 2; s++) {
            for (size_t v = 0; v < WORDS; v++) {
                x[s][v] = logit(w[s], m->o->hidden.x + i * SIZE, m->o->head.x + v * SIZE);
                most[s] = x[s][v] > x[s][most[s]] ? v : most[s];
            }
            ck_assert_msg(log_probability(w[s], x[s], t->id) == t->lp[s], "%s: token %zu: %a, expected %a", w[s]->words,
                          i, t->lp[s], log_probability(w[s], x[s], t->id));
        }
        ck_assert_int_eq(t->differs, most[0] != most[1]);
        worst = fmax(worst, fabs(t->exact - exactly(m->o->hidden.x + i * SIZE, m->o->head.x, t->id)));
        const double kl = divergence(x[0], x[1]);
        worst_kl = fmax(worst_kl, fabs(t->kl - kl) / (kl > 0 ? kl : 1));
    }
    printf("# %s beside %s: exact %.1e away, KL %.1e of itself\n", w[0]->words, w[1]->words, worst, worst_kl);
    ck_assert(worst < 1e-13 && worst_kl < 1e-7);
}

static void make(mismatch_operands *o, uint64_t seed)
{
    const mismatch_source from = {.count = TOKENS, .vocabulary = WORDS, .size = SIZE, .spread = 3, .seed = seed};
    ck_assert_int_eq(mismatch_operands_make(o, &from), 0);
}

CASE("mismatch", 30);

TEST(as_nested_loops)
{
    uint64_t state = test_part_seed();
    for (size_t round = 0; round < SIDES + test_scaled(8); round++) {
        const wanted *const w[2] = {&sides[round % SIDES], &sides[test_random(&state) % SIDES]};
        mismatch_operands o;
        arithmetic a[2];
        make(&o, round);
        for (int s = 0; s < 2; s++)
            ck_assert_int_eq(mismatch_arithmetic_parse(&a[s], "-a", w[s]->words), 0);
        mismatch m = {.o = &o, .sides = a, .seed = round};
        ck_assert_int_eq(mismatch_measure(&m), 0);
        compare(&m, w);
        mismatch_clear(&m);
        mismatch_operands_clear(&o);
    }
}

/* Tokens that are given, and what is told of all of them. */
TEST(given_tokens)
{
    mismatch_operands o;
    arithmetic a[2];
    make(&o, 1);
    o.tokens = malloc(TOKENS * sizeof *o.tokens);
    for (uint32_t i = 0; i < TOKENS; i++)
        o.tokens[i] = i % 3 ? WORDS - 1 - i : i;
    ck_assert_int_eq(mismatch_arithmetic_parse(&a[0], "-a", "hopper-bf16-fp32"), 0);
    ck_assert_int_eq(mismatch_arithmetic_parse(&a[1], "-b", "hopper-fp16-fp32,logits=e5m2"), 0);
    mismatch m = {.o = &o, .sides = a};
    ck_assert_int_eq(mismatch_measure(&m), 0);
    double sum = 0, most = 0, kl = 0;
    uint64_t differ = 0;
    for (size_t i = 0; i < TOKENS; i++) {
        const mismatch_token *t = &m.tokens[i];
        ck_assert(t->id == o.tokens[i]);
        sum += t->lp[1] - t->exact;
        most = fmax(most, fabs(t->lp[1] - t->exact));
        kl += t->kl;
        differ += (uint64_t)t->differs;
    }
    ck_assert(m.errors[1].count == TOKENS && fabs(m.errors[1].mean - sum / TOKENS) < 1e-12 &&
              m.errors[1].largest == most);
    ck_assert(m.kl_count == TOKENS && fabs(m.mean_kl - kl / TOKENS) < 1e-12 && m.differing == differ && differ > 0);
    ck_assert(m.errors[1].largest > m.errors[0].largest);
    mismatch_clear(&m);
    mismatch_operands_clear(&o);
}

/* Tokens that A draws come as often as A says: those of a distribution of four words, 4096 times. */
TEST(drawn_tokens)
{
    enum { N = 4096, CHOICES = 4 };
    static const double logits[CHOICES] = {0, -1, 1, -3};
    mismatch_operands o = {.count = N, .length = N, .vocabulary = CHOICES, .size = 1};
    arithmetic a[2];
    uint64_t seen[CHOICES] = {0};
    double sum = 0;
    o.hidden = (operand){.x = malloc(N * sizeof *o.hidden.x), .rows = N, .depth = 1};
    o.head = (operand){.x = malloc(sizeof logits), .rows = CHOICES, .depth = 1};
    memcpy(o.head.x, logits, sizeof logits);
    for (size_t i = 0; i < N; i++)
        o.hidden.x[i] = 1;
    for (int s = 0; s < 2; s++)
        ck_assert_int_eq(mismatch_arithmetic_parse(&a[s], "-a", "fma"), 0);
    mismatch m = {.o = &o, .sides = a, .seed = 7};
    ck_assert_int_eq(mismatch_measure(&m), 0);
    for (size_t i = 0; i < N; i++)
        seen[m.tokens[i].id]++;
    for (size_t i = 0; i < CHOICES; i++)
        sum += exp(logits[i]);
    for (size_t i = 0; i < CHOICES; i++) {
        const double p = exp(logits[i]) / sum, deviation = sqrt(N * p * (1 - p));
        ck_assert_msg(fabs((double)seen[i] - N * p) < 5 * deviation, "word %zu: %llu times", i,
                      (unsigned long long)seen[i]);
    }
    mismatch_clear(&m);
    mismatch_operands_clear(&o);
}

TEST_MAIN("sim/t-mismatch");
