/* t-scaledmm.c -- products as torch._scaled_mm that mmaemu computed (data/vectors/mmaemu), and the rules by hand. */
#include "support/extent.h"
#include "support/mmset.h"
#include "support/recorded.h"
#include "sim/text/sha256.h"
#include "support/dotcases.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mpsim_scaled_mm parsed(const char *name)
{
    mpsim_scaled_mm p;
    ck_assert_msg(mpsim_scaled_mm_parse(&p, name) == MPSIM_OK, "%s", name);
    return p;
}

/* M,N,K,... as words. */
static void split_words(char *text, char *words[7])
{
    for (int i = 0; i < 7; i++) {
        words[i] = text;
        text = strchr(text, ',');
        ck_assert(text || i == 6);
        if (text)
            *text++ = 0;
    }
}

static void check_inputs(const mm_set *s, const char *want)
{
    sha256 digest;
    char hex[65];
    sha256_init(&digest);
    sha256_add(&digest, s->a, s->m * s->k);
    sha256_add(&digest, s->b, s->n * s->k);
    sha256_hex(&digest, hex);
    ck_assert_str_eq(hex, want);
}

CASE("scaledmm", 30);

TEST(every_recorded_product)
{
    recorded *r = recorded_open("data/vectors/mmaemu/results.safetensors");
    ck_assert_uint_eq(recorded_count(r), 90);
    for (size_t i = 0; i < recorded_count(r); i++) {
        const char *facts = recorded_facts(r, recorded_case(r, i));
        char name[100], text[100], scale_a[40], scale_b[40], scale_result[40], inputs[80], *words[7];
        mm_set s;
        size_t n = 0;
        if (!test_in_part(i, 2))
            continue;
        const mpsim_scaled_mm p = parsed(recorded_text(facts, "name", "", name, sizeof name));
        recorded_text(facts, "words", "", text, sizeof text);
        recorded_text(facts, "scale_a", "", scale_a, sizeof scale_a);
        recorded_text(facts, "scale_b", "", scale_b, sizeof scale_b);
        recorded_text(facts, "scale_result", "", scale_result, sizeof scale_result);
        split_words(text, words);
        ck_assert(mm_set_parse(&s, words) == NULL);
        mm_set_fill(&s);
        check_inputs(&s, recorded_text(facts, "inputs", "", inputs, sizeof inputs));
        const size_t each = mpsim_format_code_bytes(&p.out);
        unsigned char *want = recorded_codes(r, recorded_case(r, i), "d", each, &n), *d = malloc(n * each + 1);
        ck_assert(want && d);
        ck_assert_uint_eq(n, s.m * s.n);
        ck_assert(mm_set_run(&s, &p, strtof(scale_a, NULL), strtof(scale_b, NULL),
                             scale_result[0] ? scale_result : NULL, d) == MPSIM_OK);
        ck_assert_msg(memcmp(d, want, n * each) == 0, "case %s, %s", recorded_case(r, i), name);
        free(want);
        free(d);
        mm_set_clear(&s);
    }
    recorded_close(r);
}

enum { K = 512 };

/* A product of one row and one column of e4m3: ones, then numbers at some places. */
static uint64_t one(const char *name, const uint8_t *a, const uint8_t *b, float scale_a, float scale_b,
                    const float *scale_result)
{
    const mpsim_scaled_mm p = parsed(name);
    const mpsim_format *f = mpsim_format_find("e4m3");
    const mpsim_matrix ma = {f, a, K, 0}, mb = {f, b, 1, 0};
    uint64_t d = 0;
    ck_assert(mpsim_scaled_mm_run(&p, 1, 1, K, &ma, &mb, scale_a, scale_b, scale_result, &d, NULL) == MPSIM_OK);
    return dot_unpack(&p.out, &d, 0);
}

TEST(chains_and_parts)
{
    uint8_t a[K] = {0}, b[K] = {0};
    /* 256 256 = 2^16, then 1 in each of the other chains of 128: 13 bits below 2^16 is 2^3, so that one chain loses
     * them and binary32 keeps them. */
    a[0] = b[0] = 0x78;
    for (size_t k = 128; k < K; k += 128)
        a[k] = b[k] = 0x38;
    ck_assert_uint_eq(one("torch-scaled-mm:fast:S=1:out=binary32", a, b, 1, 1, NULL), 0x47800000);
    ck_assert_uint_eq(one("torch-scaled-mm:slow:S=1:out=binary32", a, b, 1, 1, NULL), 0x47800180);
    /* contiguous parts of 4 tiles of 128: 2 of 2; the second has 2. Tiles of 64 in turn: those from 128 on are even */
    ck_assert_uint_eq(one("torch-scaled-mm:fast:S=2:out=binary32", a, b, 1, 1, NULL), 0x47800100);
    ck_assert_uint_eq(one("torch-scaled-mm:fast:S=4:out=binary32", a, b, 1, 1, NULL), 0x47800180);
    ck_assert_uint_eq(one("torch-scaled-mm:fast:S=3:out=binary32", a, b, 1, 1, NULL), 0x47800100);
    ck_assert_uint_eq(one("torch-scaled-mm:fast:S=7:out=binary32", a, b, 1, 1, NULL), 0x47800180);
    ck_assert_uint_eq(one("torch-scaled-mm:ada:fast:S=2:out=binary32", a, b, 1, 1, NULL), 0x47800000);
    ck_assert_uint_eq(one("torch-scaled-mm:ada:fast:S=8:pairwise:out=binary32", a, b, 1, 1, NULL), 0x47800180);
}

TEST(rounded_twice)
{
    uint8_t a[K] = {0x38}, b[K] = {0x38};
    /* 1 (1 + 2^-8 + 2^-23) = halfway of bf16 and a bit: up to 1 + 2^-7; (1 + 2^-8) to even */
    ck_assert_uint_eq(one("torch-scaled-mm:S=1", a, b, 0x1.010002p0f, 1, NULL), 0x3f81);
    ck_assert_uint_eq(one("torch-scaled-mm:S=1", a, b, 0x1.01p0f, 1, NULL), 0x3f80);
    /* alpha = (1 + 2^-12) (1 - 2^-12 + 2^-8) is rounded before: what is left below binary32 does not count */
    ck_assert_uint_eq(one("torch-scaled-mm:S=1", a, b, 0x1.001p0f, 0x1.00efp0f, NULL), 0x3f80);
    /* fp8: the scale of the result, then the largest number; NaN */
    const float two = 2, many = 1e30f;
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=e4m3", a, b, 1, 1, &two), 0x40);
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=e4m3", a, b, 1, 1, NULL), 0x38);
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=e4m3", a, b, -1e30f, 1, &many), 0xfe);
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=bf16", a, b, 1, 1, &two), 0x3f80); /* not of others */
    a[1] = 0x7f;
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=e5m2", a, b, 1, 1, NULL), 0x7f);
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=fp16", a, b, 1, 1, NULL), 0x7fff);
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=binary32", a, b, 1, 1, NULL), 0x7fffffff);
    /* an exact zero is +0 */
    a[0] = a[1] = 0;
    ck_assert_uint_eq(one("torch-scaled-mm:S=1:out=binary32", a, b, -1, 1, NULL), 0);
}

TEST(names)
{
    static const char *const bad[] = {"torch-scaled-mm:",
                                      "torch-scaled-mm:S=0",
                                      "torch-scaled-mm:S=",
                                      "torch-scaled-mm:S=x",
                                      "torch-scaled-mm:fast:slow",
                                      "torch-scaled-mm:hopper:serial",
                                      "torch-scaled-mm:ada:contiguous",
                                      "torch-scaled-mm:out=tf32",
                                      "torch-scaled-mm:S=1:S=1",
                                      "torch-scaled-mm:S=9999999"};
    mpsim_scaled_mm p = parsed("Torch_Scaled_MM:ADA:Fast:S=12:pairwise:out=fp16"), q;
    ck_assert(p.fast && p.parts == 12 && p.order == MPSIM_SPLIT_PAIRWISE && p.out.bits == 16);
    ck_assert_str_eq(p.model.name, "ada-fp8-fp32");
    p = parsed("torch-scaled-mm");
    ck_assert(!p.fast && p.parts == 0 && p.order == MPSIM_SPLIT_CONTIGUOUS && strcmp(p.out.name, "bf16") == 0);
    q = p;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(mpsim_scaled_mm_parse(&q, bad[i]) == MPSIM_EINVAL, "%s", bad[i]);
    ck_assert(mpsim_scaled_mm_parse(&q, "scaled-mm") == MPSIM_ENOTFOUND &&
              mpsim_scaled_mm_parse(&q, NULL) == MPSIM_EINVAL);
    ck_assert(memcmp(&p, &q, sizeof p) == 0);
    /* a number of parts that nobody said is no number */
    const uint8_t x[4] = {0};
    const mpsim_matrix m = {mpsim_format_find("e4m3"), x, 2, 0}, h = {mpsim_format_find("fp16"), x, 1, 0};
    uint32_t d = 7;
    ck_assert(mpsim_scaled_mm_run(&p, 1, 1, 2, &m, &m, 1, 1, NULL, &d, NULL) == MPSIM_EINVAL);
    p = parsed("torch-scaled-mm:S=1");
    ck_assert(mpsim_scaled_mm_run(&p, 1, 1, 2, &m, &h, 1, 1, NULL, &d, NULL) == MPSIM_ERANGE);
    ck_assert(mpsim_scaled_mm_run(&p, 1, 1, 2, NULL, &m, 1, 1, NULL, &d, NULL) == MPSIM_EINVAL);
    /* one that would take for ever; a stride that is less than a row, also where rows are gathered */
    const mpsim_matrix narrow = {m.format, x, 1, 0};
    const mpsim_pool no_threads = {NULL, NULL, NULL};
    p.parts = UINT32_MAX;
    ck_assert(mpsim_scaled_mm_run(&p, 1, 1, 2, &m, &m, 1, 1, NULL, &d, NULL) == MPSIM_EINVAL);
    p = parsed("torch-scaled-mm:ada:S=2");
    ck_assert(mpsim_scaled_mm_run(&p, 2, 1, 2, &narrow, &m, 1, 1, NULL, &d, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_scaled_mm_run(&p, 1, 1, 2, &m, &m, 1, 1, NULL, &d, &no_threads) == MPSIM_EINVAL);
    ck_assert_uint_eq(d, 7);
}

TEST_MAIN("scaledmm");
