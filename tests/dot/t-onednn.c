/* t-onednn.c -- products of bfloat16 matrices as torch gave them on a CPU with AVX512-BF16 (data/vectors/onednn),
 * by the models that its README names. */
#include "sim/verify/kinds.h"
#include "support/support.h"

#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE = 32, LANES = 16 };

typedef struct product {
    char call[20];
    size_t m, n, k;
    unsigned threads;
    uint64_t digest;
    uint16_t *a, *b; /* m x k and k x n codes */
} product;

static uint16_t code_of(uint64_t w)
{
    return (uint16_t)((w & 0x807f) | (124 + (w >> 20) % 6) << 7);
}

static size_t divisor(size_t a, size_t b)
{
    return b ? divisor(b, a % b) : a;
}

/* See record_onednn.py. */
static void make_operands(product *p)
{
    const size_t m = p->m, n = p->n, k = p->k, half = k / 2;
    uint64_t state = (uint64_t)m << 40 | (uint64_t)n << 20 | k;
    uint16_t *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b);
    size_t step = 7;
    ck_assert(a && b);
    for (size_t i = 0; i < m * k; i++)
        a[i] = code_of(kinds_word(&state));
    for (size_t i = 0; i < k * n; i++)
        b[i] = code_of(kinds_word(&state));
    for (size_t i = 0; i < half; i++) {
        for (size_t r = 0; r < m; r++)
            a[r * k + half + i] = a[r * k + i];
        for (size_t c = 0; c < n; c++)
            b[(half + i) * n + c] = b[i * n + c] ^ 0x8000;
    }
    while (divisor(step, k) != 1)
        step += 2;
    p->a = malloc(m * k * sizeof *a);
    p->b = malloc(k * n * sizeof *b);
    ck_assert(p->a && p->b);
    for (size_t i = 0; i < k; i++) {
        for (size_t r = 0; r < m; r++)
            p->a[r * k + i] = a[r * k + i * step % k];
        memcpy(p->b + i * n, b + i * step % k * n, n * sizeof *b);
    }
    free(a);
    free(b);
}

/* A product with a vector whose matrix lies by its rows of products: 16 sums of pairs, over all products, that are
 * added by halves down to four and then to neighbours. With the operands in this order it is order=lanes. */
static void put_in_lanes(product *p)
{
    static const size_t lane[LANES] = {0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15};
    const size_t k = p->k, whole = (k + WHOLE - 1) / WHOLE * WHOLE;
    uint16_t *a = calloc(p->m * whole, sizeof *a), *b = calloc(whole * p->n, sizeof *b);
    ck_assert(a && b);
    for (size_t i = 0; i < whole; i++) {
        const size_t from = i / WHOLE * WHOLE + 2 * lane[i % LANES] + (i % WHOLE < LANES);
        for (size_t r = 0; from < k && r < p->m; r++)
            a[r * whole + i] = p->a[r * k + from];
        if (from < k)
            memcpy(b + i * p->n, p->b + from * p->n, p->n * sizeof *b);
    }
    free(p->a);
    free(p->b);
    p->a = a;
    p->b = b;
    p->k = whole;
}

/* The model of a call, as the README of the vectors says. */
static void choose(char model[96], product *p)
{
    const int transposed = strcmp(p->call, "left-transposed") == 0, vector = p->m == 1 || p->n == 1;
    const size_t chunk = p->k > 1024 && !transposed ? 1024 : 512;
    if (vector && (p->n == 1 || strcmp(p->call, "linear") == 0)) {
        put_in_lanes(p);
        snprintf(model, 96, "avx512-bf16-fp32:order=lanes:L=16:chunk=%zu:result=bf16", p->k);
    } else if (vector) {
        snprintf(model, 96, "fma:result=bf16");
    } else if (p->k > chunk) {
        snprintf(model, 96, "avx512-bf16-fp32:chunk=%zu:result=bf16", chunk);
    } else {
        snprintf(model, 96, "avx512-bf16-fp32:result=bf16");
    }
}

static uint64_t digest_of(const uint16_t *codes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ codes[i]) * 0x100000001b3;
    return h;
}

static uint64_t product_digest(const product *p, const char *model, uint16_t *d)
{
    mpsim_model m;
    const mpsim_format *f = mpsim_format_find("bf16");
    const mpsim_matrix a = {f, p->a, p->k, 0}, b = {f, p->b, p->n, 0};
    ck_assert_msg(mpsim_model_parse(&m, model) == MPSIM_OK, "%s", model);
    ck_assert(mpsim_gemm(&m, p->m, p->n, p->k, &a, &b, NULL, d, p->n, NULL, NULL) == MPSIM_OK);
    return digest_of(d, p->m * p->n);
}

static void check_product(product *p, const char *line)
{
    char model[96];
    uint16_t *d = malloc(p->m * p->n * sizeof *d);
    ck_assert(d != NULL);
    make_operands(p);
    choose(model, p);
    /* orders that are near it are told apart; but at K = 1024, whose results in bf16 are
     * also those of single products */
    if (p->k >= 600 && p->m > 1 && p->n > 1)
        ck_assert(product_digest(p, "avx512-bf16-fp32:result=bf16", d) != p->digest &&
                  product_digest(p, "avx512-bf16-fp32:chunk=256:result=bf16", d) != p->digest &&
                  (p->k == 1024 || product_digest(p, "fma:chunk=512:result=bf16", d) != p->digest));
    ck_assert_msg(product_digest(p, model, d) == p->digest, "%s gives %04x %04x ..., recorded %s", model, d[0], d[1],
                  line);
    free(d);
    free(p->a);
    free(p->b);
}

START_TEST(as_recorded)
{
    char line[200];
    size_t n = 0;
    FILE *file = fopen(test_source_path("data/vectors/onednn/amd-zen5.txt"), "r");
    ck_assert(file && fgets(line, sizeof line, file) && strcmp(line, "mpsim-onednn/1\n") == 0);
    while (fgets(line, sizeof line, file)) {
        product p = {.k = 0};
        unsigned long long digest;
        if (line[0] == '#')
            continue;
        ck_assert(sscanf(line, "%19s %u %zu %zu %zu %llx", p.call, &p.threads, &p.m, &p.n, &p.k, &digest) == 6);
        p.digest = digest;
        n++;
        if (p.k < 600 || test_in_part(n, 4))
            check_product(&p, line);
    }
    fclose(file);
    ck_assert_uint_gt(n, 100);
}
END_TEST

int main(void)
{
    TCase *t = test_case("onednn", 20);
    tcase_add_test(t, as_recorded);
    TCase *const cases[] = {t, NULL};
    return test_main("onednn", cases);
}
