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

/* ---- what a side makes of hidden states and logits ---- */

typedef struct made {
    const char *words;
    double temperature, top_p;
    size_t top_k, chunk, ranks;
    int tree;
    const char *reduce, *cache;
    int tensor;
} made;

static const made makes[] = {
    {"fma,temperature=0.7", 0.7, 1, 0, 0, 1, 0, NULL, NULL, 0},
    {"fma,top-k=9", 1, 1, 9, 0, 1, 0, NULL, NULL, 0},
    {"fma,top-p=0.8,top-k=30,temperature=1.5", 1.5, 0.8, 30, 0, 1, 0, NULL, NULL, 0},
    {"fma,chunk=7", 1, 1, 0, 7, 1, 0, NULL, NULL, 0},
    {"fma,chunk=16,top-p=0.9", 1, 0.9, 0, 16, 1, 0, NULL, NULL, 0},
    {"fma,ranks=5,reduce=bf16", 1, 1, 0, 0, 5, 0, "bf16", NULL, 0},
    {"fma,ranks=8,order=tree", 1, 1, 0, 0, 8, 1, NULL, NULL, 0},
    {"fma,cache=e4m3", 1, 1, 0, 0, 1, 0, NULL, "e4m3", 0},
    {"fma,cache=e5m2,scale=tensor", 1, 1, 0, 0, 1, 0, NULL, "e5m2", 1},
};
enum { MAKES = sizeof makes / sizeof makes[0] };

static int larger_first(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static void drop(const made *w, float x[WORDS])
{
    float sorted[WORDS];
    double sum = 0, part = 0;
    size_t kept = 0;
    const size_t most = w->top_k ? w->top_k : WORDS;
    memcpy(sorted, x, sizeof sorted);
    qsort(sorted, WORDS, sizeof *sorted, larger_first);
    for (size_t i = 0; i < most; i++)
        sum += exp((double)sorted[i]);
    while (kept < most && part < w->top_p * sum * (1 - 1e-15))
        part += exp((double)sorted[kept++]);
    for (size_t i = 0; i < WORDS; i++)
        x[i] = x[i] >= sorted[kept - 1] ? x[i] : -INFINITY;
}

static float exponentials(const float *x, size_t n, float m)
{
    float e[WORDS];
    for (size_t i = 0; i < n; i++)
        e[i] = mpsim_exp(x[i] - m);
    return mpsim_sum_lanes(mpsim_format_find("binary32"), e, n, 1, MPSIM_LANES_ROW);
}

static float most_of(const float *x, size_t n)
{
    float m = -INFINITY;
    for (size_t i = 0; i < n; i++)
        m = fmaxf(m, x[i]);
    return m;
}

static float sum_in_chunks(const made *w, const float *x, float *m)
{
    float s = 0;
    *m = -INFINITY;
    for (size_t k = 0; k < WORDS; k += w->chunk) {
        const size_t n = WORDS - k < w->chunk ? WORDS - k : w->chunk;
        const float now = fmaxf(*m, most_of(x + k, n));
        if (isinf(now))
            continue;
        const float old = s * mpsim_exp(*m - now);
        s = old + exponentials(x + k, n, now);
        *m = now;
    }
    return s;
}

static float sum_of_ranks(const made *w, const float *x, float *m)
{
    const oracle_format *reduce = oracle_format_find(w->reduce);
    const size_t each = (WORDS + w->ranks - 1) / w->ranks;
    float part[16] = {0};
    size_t n = 0;
    *m = most_of(x, WORDS);
    for (size_t k = 0; k < WORDS; k += each)
        part[n++] = oracle_to(reduce, (double)exponentials(x + k, WORDS - k < each ? WORDS - k : each, *m));
    if (w->tree) {
        for (size_t apart = 1; apart < n; apart *= 2)
            for (size_t i = 0; i + apart < n; i += 2 * apart)
                part[i] = oracle_to(reduce, (double)part[i] + (double)part[i + apart]);
        return part[0];
    }
    for (size_t i = 1; i < n; i++)
        part[0] = oracle_to(reduce, (double)part[0] + (double)part[i]);
    return part[0];
}

static void cached(const made *w, const mismatch_operands *o, size_t token, double to[SIZE])
{
    const double *x = o->hidden.x + token * SIZE, *of = w->tensor ? o->hidden.x : x;
    const double largest = mpsim_format_max(mpsim_format_find(w->cache ? w->cache : "binary32"));
    double most = 0;
    for (size_t i = 0; i < (w->tensor ? TOKENS * (size_t)SIZE : SIZE); i++)
        most = fmax(most, fabs(of[i]));
    const float s = (float)(most / largest);
    for (size_t i = 0; i < SIZE && w->cache; i++) {
        const double y = (double)((float)x[i] / s);
        to[i] = (double)(oracle_to(oracle_format_find(w->cache), fmax(-largest, fmin(largest, y))) * s);
    }
    if (!w->cache)
        memcpy(to, x, SIZE * sizeof *to);
}

static double made_log_probability(const made *w, const mismatch_operands *o, size_t token, uint32_t word)
{
    float x[WORDS], m, s;
    double h[SIZE];
    cached(w, o, token, h);
    for (size_t v = 0; v < WORDS; v++)
        x[v] = logit(&sides[0], h, o->head.x + v * SIZE) / (float)w->temperature;
    drop(w, x);
    if (w->chunk == 0 && w->ranks == 1)
        return log_probability(&sides[0], x, word);
    s = w->chunk ? sum_in_chunks(w, x, &m) : sum_of_ranks(w, x, &m);
    return -(double)(mpsim_log(s) - (x[word] - m));
}

TEST(keys_of_a_side)
{
    for (size_t k = 0; k < MAKES; k++) {
        mismatch_operands o;
        arithmetic a[2];
        make(&o, k);
        ck_assert_int_eq(mismatch_arithmetic_parse(&a[0], "-a", makes[k].words), 0);
        ck_assert_int_eq(mismatch_arithmetic_parse(&a[1], "-b", "fma"), 0);
        mismatch m = {.o = &o, .sides = a, .seed = k};
        ck_assert_int_eq(mismatch_measure(&m), 0);
        for (size_t i = 0; i < TOKENS; i++) {
            const double expected = made_log_probability(&makes[k], &o, i, m.tokens[i].id);
            ck_assert_msg(isfinite(expected) && m.tokens[i].lp[0] == expected, "%s: token %zu: %a, expected %a",
                          makes[k].words, i, m.tokens[i].lp[0], expected);
        }
        mismatch_clear(&m);
        mismatch_operands_clear(&o);
    }
}

/* A chunk of all words is no chunk; what both sides drop, exact drops as well; a word that B drops has no probability there. */
TEST(sides_that_agree)
{
    static const char *const pairs[][2] = {{"fma,chunk=53", "fma"},
                                           {"fma,temperature=0.5,top-p=0.9", "exact,temperature=0.5,top-p=0.9"},
                                           {"fma", "fma,top-k=3"}};
    for (size_t k = 0; k < 3; k++) {
        mismatch_operands o;
        arithmetic a[2];
        uint64_t none = 0;
        make(&o, k);
        for (int s = 0; s < 2; s++)
            ck_assert_int_eq(mismatch_arithmetic_parse(&a[s], "-a", pairs[k][s]), 0);
        mismatch m = {.o = &o, .sides = a, .seed = k};
        ck_assert_int_eq(mismatch_measure(&m), 0);
        for (size_t i = 0; i < TOKENS; i++) {
            ck_assert(k != 0 || m.tokens[i].lp[0] == m.tokens[i].lp[1]);
            ck_assert(k != 1 || fabs(m.tokens[i].lp[0] - m.tokens[i].exact) < 1e-5);
            none += m.tokens[i].lp[1] == -HUGE_VAL && isinf(m.tokens[i].kl);
        }
        ck_assert(k == 2 ? none > 0 : none == 0);
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
