/* t-mismatch-cache.c -- hidden states of attention whose K and V a side keeps in a format: beside nested loops in long double, whose
 * numbers of the cache come from oracle/. */
#include "oracle/core.h"
#include "sim/mismatch/measure.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, QUERIES = 5, KEYS = 9, DIM = 6, VALUE = 3, WORDS = 11 };
enum { COUNT = BATCH * QUERIES, SIZE = HEADS * VALUE };

enum scale { TENSOR, HEAD, TOKEN, ONE };

static const struct {
    const char *words, *format;
    enum scale scale;
} sides[] = {
    {"fma", NULL, ONE},
    {"fma,kv=e4m3", "e4m3", TENSOR},
    {"fma,kv=e4m3,kv-scale=head", "e4m3", HEAD},
    {"fma,kv=e5m2,kv-scale=token", "e5m2", TOKEN},
    {"fma,kv=e4m3,kv-scale=1", "e4m3", ONE},
    {"fma,kv=bf16,kv-scale=1", "bf16", ONE},
};
enum { SIDES = sizeof sides / sizeof sides[0] };

/* ---- operands ---- */

static size_t row_of(int tokens_first, size_t heads, size_t tokens, size_t b, size_t h, size_t t)
{
    return tokens_first ? (b * tokens + t) * heads + h : (b * heads + h) * tokens + t;
}

/* Numbers whose magnitude grows with the head and the token, so that scales differ. */
static heads_part part(uint64_t *state, size_t heads, size_t tokens, size_t size, int tokens_first)
{
    const size_t rows = BATCH * heads * tokens;
    heads_part p = {.batch = BATCH, .heads = heads, .tokens = tokens, .size = size, .tokens_first = tokens_first};
    p.of = (operand){.x = malloc(rows * size * sizeof *p.of.x), .rows = rows, .depth = size};
    for (size_t b = 0; b < BATCH; b++)
        for (size_t h = 0; h < heads; h++)
            for (size_t t = 0; t < tokens; t++)
                for (size_t c = 0; c < size; c++)
                    p.of.x[row_of(tokens_first, heads, tokens, b, h, t) * size + c] =
                        (double)(float)(((double)(test_random(state) % 2001) / 1000 - 1) * (double)(1 + h) *
                                        (1 + 0.2 * (double)t));
    return p;
}

static operand numbers(uint64_t *state, size_t rows, size_t depth, double size)
{
    operand o = {.x = malloc(rows * depth * sizeof *o.x), .rows = rows, .depth = depth};
    for (size_t i = 0; i < rows * depth; i++)
        o.x[i] = (double)(float)(((double)(test_random(state) % 2001) / 1000 - 1) * size);
    return o;
}

static mismatch_operands make(uint64_t seed, int tokens_first, double residual)
{
    uint64_t state = seed;
    mismatch_operands o = {.count = COUNT, .vocabulary = WORDS, .size = SIZE, .length = QUERIES, .attends = 1};
    o.heads.q = part(&state, HEADS, QUERIES, DIM, tokens_first);
    o.heads.k = part(&state, KV_HEADS, KEYS, DIM, tokens_first);
    o.heads.v = part(&state, KV_HEADS, KEYS, VALUE, tokens_first);
    o.heads.groups = HEADS / KV_HEADS;
    o.hidden = numbers(&state, COUNT, SIZE, residual);
    o.head = numbers(&state, WORDS, SIZE, 1);
    return o;
}

/* ---- again ---- */

static const double *row(const heads_part *p, size_t b, size_t h, size_t t)
{
    return p->of.x + row_of(p->tokens_first, p->heads, p->tokens, b, h, t) * p->size;
}

/* The largest magnitude beside the number of that place, as far as a scale reaches. */
static double largest(const heads_part *p, enum scale scale, size_t b, size_t h, size_t t)
{
    double most = 0;
    for (size_t i = 0; i < BATCH; i++)
        for (size_t j = 0; j < p->heads; j++)
            for (size_t k = 0; k < p->tokens; k++)
                for (size_t c = 0; c < p->size; c++)
                    if (scale == TENSOR || (scale == HEAD && j == h) || (scale == TOKEN && i == b && j == h && k == t))
                        most = fmax(most, fabs(row(p, i, j, k)[c]));
    return most;
}

static long double kept(const heads_part *p, size_t side, size_t b, size_t h, size_t t, size_t c)
{
    const double x = row(p, b, h, t)[c];
    if (!sides[side].format)
        return x;
    const double most = strcmp(sides[side].format, "e4m3") == 0   ? 448
                        : strcmp(sides[side].format, "e5m2") == 0 ? 57344
                                                                  : 0x1.fep127;
    const float s = sides[side].scale == ONE ? 1 : (float)(largest(p, sides[side].scale, b, h, t) / most);
    const double y = (double)((float)x / s);
    return (long double)oracle_to(oracle_format_find(sides[side].format), fmax(-most, fmin(most, y))) * s;
}

static void attend(long double *to, const mismatch_operands *o, size_t side, size_t b, size_t h, size_t t)
{
    const size_t kv = h / (HEADS / KV_HEADS);
    long double e[KEYS], sum = 0;
    for (size_t k = 0; k <= t + KEYS - QUERIES; k++) {
        long double s = 0;
        for (size_t c = 0; c < DIM; c++)
            s += row(&o->heads.q, b, h, t)[c] * kept(&o->heads.k, side, b, kv, k, c);
        e[k] = expl(s * (float)(1 / sqrt((double)DIM)));
        sum += e[k];
    }
    for (size_t c = 0; c < VALUE; c++) {
        to[c] = 0;
        for (size_t k = 0; k <= t + KEYS - QUERIES; k++)
            to[c] += e[k] / sum * kept(&o->heads.v, side, b, kv, k, c);
    }
}

static double log_probability(const mismatch_operands *o, size_t side, size_t at, uint32_t word)
{
    long double x[SIZE], squares = 0, logits[WORDS], sum = 0;
    for (size_t h = 0; h < HEADS; h++)
        attend(x + h * VALUE, o, side, at / QUERIES, h, at % QUERIES);
    for (size_t i = 0; i < SIZE; i++) {
        x[i] += o->hidden.x[at * SIZE + i];
        squares += x[i] * x[i];
    }
    for (size_t w = 0; w < WORDS; w++) {
        logits[w] = 0;
        for (size_t i = 0; i < SIZE; i++)
            logits[w] += x[i] / sqrtl(squares / SIZE) * o->head.x[w * SIZE + i];
        sum += expl(logits[w]);
    }
    return (double)(logits[word] - logl(sum));
}

CASE("mismatch cache", 10);

/* The arithmetic of a side is binary32, so a side is near, and farther from every other cache. */
TEST(as_nested_loops)
{
    double apart = 0, nearest_other = INFINITY;
    for (size_t k = 0; k < 2 * SIDES; k++) {
        mismatch_operands o = make(test_part_seed() + k, (int)(k & 1), k < SIDES ? 0 : 1);
        arithmetic a[2];
        double others[SIDES] = {0};
        ck_assert_int_eq(mismatch_arithmetic_parse(&a[0], "-a", sides[k % SIDES].words), 0);
        ck_assert_int_eq(mismatch_arithmetic_parse(&a[1], "-b", "fma"), 0);
        mismatch m = {.o = &o, .sides = a, .seed = k};
        ck_assert_int_eq(mismatch_measure(&m), 0);
        for (size_t i = 0; i < COUNT; i++) {
            const mismatch_token *t = &m.tokens[i];
            for (size_t s = 0; s < SIDES; s++)
                others[s] = fmax(others[s], fabs(t->lp[0] - log_probability(&o, s, i, t->id)));
            ck_assert(fabs(t->exact - log_probability(&o, 0, i, t->id)) < 1e-13);
        }
        for (size_t s = 0; s < SIDES; s++)
            if (s == k % SIDES)
                apart = fmax(apart, others[s]);
            else
                nearest_other = fmin(nearest_other, others[s]);
        mismatch_clear(&m);
        mismatch_operands_clear(&o);
    }
    printf("# %.1e away, %.1e from the next cache\n", apart, nearest_other);
    ck_assert(apart < 2e-5 && nearest_other > 10 * apart);
}

TEST_MAIN("sim/t-mismatch-cache");
