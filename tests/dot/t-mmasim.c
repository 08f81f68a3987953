/* t-mmasim.c -- dot products that MMA-Sim computed, of every row that it has: data/vectors/mmasim. */
#include "support/dotset.h"
#include "support/extent.h"
#include "support/recorded.h"
#include "sim/text/sha256.h"
#include "sim/trace/trace.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char file[] = "data/vectors/mmasim/results.safetensors";

typedef struct recorded_dots {
    char name[80];
    dot_set s;
    int any_nan;
    char digest[80];
    unsigned char *d;
    size_t n;
} recorded_dots;

static const char *fact(const char *facts, const char *key, const char *otherwise, char *text)
{
    return recorded_text(facts, key, otherwise, text, 80);
}

static void load(recorded_dots *x, recorded *r, size_t i)
{
    char model[80], a[80], b[80], k[80], seed[80], scale[80], nan[80], results[80];
    snprintf(x->name, sizeof x->name, "%s", recorded_case(r, i));
    const char *facts = recorded_facts(r, x->name);
    fact(facts, "scale", "", scale);
    const char *wrong = dot_set_parse(&x->s, fact(facts, "model", "", model), fact(facts, "a", "", a),
                                      fact(facts, "b", "", b), fact(facts, "k", "", k), fact(facts, "seed", "", seed),
                                      scale[0] ? scale : NULL);
    ck_assert_msg(!wrong, "%s: %s", x->name, wrong);
    x->any_nan = strcmp(fact(facts, "nan", "", nan), "any") == 0;
    fact(facts, "inputs", "", x->digest);
    x->d = recorded_codes(r, fact(facts, "results", x->name, results), "d",
                          mpsim_format_code_bytes(&x->s.m.result.format), &x->n);
    ck_assert_msg(x->d, "%s: no results", x->name);
}

static uint64_t result(const recorded_dots *x, size_t i)
{
    return dot_unpack(&x->s.m.result.format, x->d, i);
}

/* How many of DOT_SET_BLOCK cases from `first` on differ, from mpsim_dot or mpsim_gemm. */
static int wrong_in_block(const recorded_dots *x, const dot_set *s, size_t first)
{
    static dot_case cases[DOT_SET_BLOCK];
    uint64_t got[DOT_SET_BLOCK];
    int wrong = 0;
    for (size_t j = 0; j < DOT_SET_BLOCK; j++)
        dot_set_case(s, first + j, &cases[j]);
    dot_set_gemm(s, cases, got);
    for (size_t j = 0; j < DOT_SET_BLOCK && first + j < x->n; j++) {
        const uint64_t want = result(x, first + j), one = dot_set_dot(s, &cases[j]);
        if (!dot_set_same(s, one, want, x->any_nan) || !dot_set_same(s, got[j], want, x->any_nan))
            wrong += one != got[j] || !dot_set_dropped(s, &cases[j], want);
    }
    return wrong;
}

CASE("recorded", 60);

/* The first 9 blocks, with every kind, each time; the others take turns. */
TEST(every_family)
{
    recorded *r = recorded_open(file);
    size_t compared = 0;
    ck_assert_uint_gt(recorded_count(r), 100);
    for (size_t i = 0; i < recorded_count(r); i++) {
        recorded_dots x;
        load(&x, r, i);
        ck_assert_uint_ge(x.n, 396);
        for (size_t first = 0; first < x.n; first += DOT_SET_BLOCK) {
            if (first >= 9 * DOT_SET_BLOCK && !test_in_part(first / DOT_SET_BLOCK, 4))
                continue;
            ck_assert_msg(wrong_in_block(&x, &x.s, first) == 0, "%s: cases %zu to %zu", x.name, first,
                          first + DOT_SET_BLOCK - 1);
            compared += DOT_SET_BLOCK;
        }
        free(x.d);
    }
    printf("# %zu dot products\n", compared);
    recorded_close(r);
}

/* The inputs are those that MMA-Sim had. */
TEST(same_inputs)
{
    recorded *r = recorded_open(file);
    for (size_t i = 0; i < recorded_count(r); i++) {
        recorded_dots x;
        if (!test_in_part(i, 4))
            continue;
        load(&x, r, i);
        const size_t q = dot_set_scales(&x.s);
        sha256 digest;
        char hex[65];
        sha256_init(&digest);
        for (int array = 0; array < 5; array++)
            for (size_t k = 0; k < x.n; k++) {
                static dot_case c;
                dot_set_case(&x.s, k, &c);
                const mpsim_format *f = array == 0   ? &x.s.fa
                                        : array == 1 ? &x.s.fb
                                        : array < 4  ? &x.s.scale
                                                     : &x.s.m.result.format;
                const uint64_t *codes = array == 0   ? c.a
                                        : array == 1 ? c.b
                                        : array == 2 ? c.scales_a
                                        : array == 3 ? c.scales_b
                                                     : &c.c;
                const size_t n = array < 2 ? x.s.k : array < 4 ? q : 1, bytes = n ? mpsim_format_code_bytes(f) : 0;
                uint64_t packed[DOT_SET_DEPTH];
                if (n)
                    dot_pack(f, packed, 0, codes, n);
                trace_to_little_endian((unsigned char *)packed, bytes, n);
                sha256_add(&digest, packed, n * bytes);
            }
        sha256_hex(&digest, hex);
        ck_assert_msg(strcmp(hex, x.digest) == 0, "%s: %s, recorded %s", x.name, hex, x.digest);
        free(x.d);
    }
    recorded_close(r);
}

/* One rule of a row changed: how many of the first 4,500 cases differ. Where none does, the cases cannot tell:
 * a bound of the exponent below what the result keeps. */
static const struct {
    const char *family, *model;
    int wrong;
} controls[] = {
    {"cdna1-fp16-fp32", "cdna1-fp16-fp32:L=8", 586},
    {"cdna1-bf16-fp32", "cdna1-bf16-fp32:L=4", 362},
    {"cdna1-fp16-fp32", "cdna1-fp16-fp32:round=toward-zero", 2081},
    {"cdna2-bf16-fp32", "cdna2-bf16-fp32:flush=none", 514},
    {"cdna2-fp16-fp32", "cdna2-fp16-fp32:L=8", 389},
    {"cdna2-bf16-2-fp32", "cdna2-bf16-fp32", 240},
    {"cdna3-fp16-fp32", "cdna3-fp16-fp32:kept=30", 2},
    {"cdna3-fp16-fp32", "cdna3-fp16-fp32:F=25", 651},
    {"cdna3-fp16-fp32", "cdna3-fp16-fp32:L=16", 755},
    {"cdna3-fp16-fp32", "cdna3-fp16-fp32:drop=1", 191},
    {"cdna3-fp16-fp32", "cdna3-fp16-fp32:ways=2", 325},
    {"cdna3-fp8-fp32.e4m3fnuz.e4m3fnuz", "cdna3-fp8-fp32:drop=0", 90},
    {"cdna3-fp8-fp32.e5m2fnuz.e5m2fnuz", "cdna3-fp8-fp32:ways=1", 110},
    {"rtx-blackwell-mxf4", "rtx-blackwell-mxf4:F=34", 12},
    {"rtx-blackwell-mxf4", "rtx-blackwell-mxf4:group=32", 4},
    {"rtx-blackwell-mxf4nvf4", "rtx-blackwell-mxf4nvf4:L=128", 491},
    {"rtx-blackwell-mxf4nvf4", "rtx-blackwell-mxf4nvf4:floor=none", 0},
    {"rtx-blackwell-mxf8f6f4.e4m3.e4m3", "rtx-blackwell-mxf8f6f4:F=24", 30},
    {"rtx-blackwell-mxf8f6f4.e5m2.e5m2", "rtx-blackwell-mxf8f6f4:floor=none", 0},
};

TEST(one_rule_changed)
{
    recorded *r = recorded_open(file);
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        recorded_dots x = {.n = 0};
        for (size_t k = 0; !x.n && k < recorded_count(r); k++)
            if (strcmp(recorded_case(r, k), controls[i].family) == 0)
                load(&x, r, k);
        ck_assert_msg(x.n, "%s", controls[i].family);
        dot_set changed = x.s;
        int wrong = 0;
        ck_assert_msg(mpsim_model_parse(&changed.m, controls[i].model) == MPSIM_OK, "%s", controls[i].model);
        for (size_t first = 0; first < x.n && first < 4500; first += DOT_SET_BLOCK)
            wrong += wrong_in_block(&x, &changed, first);
        ck_assert_msg(wrong == controls[i].wrong, "%s of %s: %d differ, known to be %d", controls[i].model, x.name,
                      wrong, controls[i].wrong);
        free(x.d);
    }
    recorded_close(r);
}

TEST_MAIN("mmasim");
