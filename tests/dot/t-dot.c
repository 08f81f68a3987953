/* t-dot.c -- dot products under every model against the oracle, which computes them from the
 * sentences of dot.h with GMP, and the exact one against GMP alone. */
#include "sim/verify/oracles/oracle_dot.h"
#include "support/dotcases.h"
#include "support/support.h"

#include <mpsim/dot.h>
#include <mpsim/rng.h>
#include <gmp.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

enum { NMAX = 1024 };

/* Two formats with their oracles. */
typedef struct operand {
    mpsim_format f;
    const oracle_format *of;
} operand;

static int find_operand(operand *o, const mpsim_format *f)
{
    o->f = *f;
    o->of = oracle_dot_format(f->name);
    return o->of != NULL;
}

static uint32_t word(void *self, uint64_t j)
{
    const mpsim_rng *rng = self;
    return mpsim_rng_word(rng->seed, rng->stream, rng->index + j);
}

/* One dot product of n random products: the library and the oracle. 1 and a text if they differ. */
static int differs(const mpsim_model *m, const oracle_model *om, const operand *oa, const operand *ob, size_t n,
                   int kind, uint64_t *seed, char *text, size_t room)
{
    static uint64_t a[NMAX], b[NMAX];
    static unsigned char pa[8 * NMAX + 1], pb[8 * NMAX + 1];
    mpsim_rng rng = {test_random(seed), test_random(seed), test_random(seed)};
    const uint64_t start = *seed;
    verify_kinds_fill(&oa->f, a, &ob->f, b, n, &m->result.format, kind, seed);
    const uint64_t c = verify_kinds_addend(&m->result.format, kind, seed);
    dot_pack(&oa->f, pa + 1, 0, a, n); /* odd addresses: any alignment will do */
    dot_pack(&ob->f, pb + 1, 0, b, n);
    uint64_t d = ~(uint64_t)0;
    const mpsim_status s = mpsim_dot(m, &oa->f, pa + 1, &ob->f, pb + 1, n, c, &rng, &d);
    const uint64_t want = oracle_dot(om, oa->of, a, ob->of, b, n, c, word, &rng);
    if (s == MPSIM_OK && d == want)
        return 0;
    int used = snprintf(text, room,
                        "%s, %s x %s, %s, n = %zu, seed %llx: %s, c = %llx: "
                        "got %llx, expected %llx;",
                        m->name, oa->f.name, ob->f.name, verify_kinds_name(kind), n, (unsigned long long)start,
                        mpsim_status_string(s), (unsigned long long)c, (unsigned long long)d, (unsigned long long)want);
    for (size_t i = 0; i < n && i < 8 && used > 0 && (size_t)used < room; i++)
        used += snprintf(text + used, room - (size_t)used, " %llx*%llx", (unsigned long long)a[i],
                         (unsigned long long)b[i]);
    return 1;
}

/* Lengths at which something happens: around additions and chunks. */
static size_t a_length(const mpsim_model *m, uint64_t *seed)
{
    const size_t l = m->addition >= MPSIM_ADDITION_FUSED || m->length ? m->length : 4;
    const size_t chunk = m->chunk && m->chunk < 200 ? m->chunk : 16;
    const size_t near[] = {0,     1,         2,         3,         l - 1, l,         l + 1,     2 * l - 1,
                           2 * l, 2 * l + 1, 3 * l + 2, chunk - 1, chunk, chunk + 1, 2 * chunk, 2 * chunk + 3};
    const uint64_t u = test_random(seed);
    return u % 4 ? near[u / 4 % COUNT(near)] : (size_t)(u / 4 % 70);
}

/* `count` dot products by m, with operands out of the list. */
static void compare(const mpsim_model *m, const operand *list, size_t formats, size_t count, uint64_t *seed)
{
    char text[1000];
    oracle_model om;
    ck_assert_msg(oracle_model_init(&om, m), "%s: a format that the oracle does not know", m->name);
    for (size_t i = 0; i < count; i++) {
        const operand *oa = &list[test_random(seed) % formats];
        const operand *ob = &list[test_random(seed) % formats];
        const int kind = (int)(test_random(seed) % KINDS);
        if (differs(m, &om, oa, ob, a_length(m, seed), kind, seed, text, sizeof text))
            ck_abort_msg("%s", text);
    }
}

static size_t operands_of(const mpsim_model *m, operand *list, size_t room)
{
    mpsim_format formats[16];
    size_t known = 0;
    const size_t n = dot_formats(m, formats, COUNT(formats));
    for (size_t i = 0; i < n && known < room; i++)
        known += (size_t)find_operand(&list[known], &formats[i]);
    ck_assert_uint_eq(known, n);
    return known;
}

CASE("dot", 20);

TEST(every_row)
{
    mpsim_model m;
    operand list[16];
    uint64_t seed = test_seed();
    ck_assert_uint_gt(mpsim_model_count(), 30);
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        const size_t formats = operands_of(&m, list, COUNT(list));
        ck_assert_uint_gt(formats, 0);
        compare(&m, list, formats, test_scaled(m.addition == MPSIM_ADDITION_FUSED ? 4000 : 2000), &seed);
    }
}
/* clang-format off */

/* Names that a user types: software models in other formats, rows with changes. */
static const char *const typed[] = {
    "exact:fp16", "exact:binary64", "exact:e4m3", "exact:bf16:result-round=down",
    "exact:fp16:result-round=stochastic-a:7", "exact:chunk=5:acc=e5m7", "exact:chunk=1:fp16",
    "exact:chunk=3:acc=e2m1:outer=fp16:result=bf16",
    "fma:bf16", "fma:fp16:round=toward-zero", "fma:e5m2", "fma:e4m3fnuz", "fma:e6m9:round=down",
    "fma:acc=binary64", "fma:bf16:chunk=8", "fma:round=sr:9",
    "fma:fp16:round=up:chunk=4:outer=bf16",
    "sequential:fp16", "sequential:e5m2:round=to-odd", "sequential:product=bf16:product-round=up",
    "sequential:product=fp16:product-round=srb:5:acc=bf16:round=sra:3",
    "sequential:fp16:chunk=7:outer-round=down:outer=e8m13",
    "pairwise:e5m2", "pairwise:fp16", "pairwise:bf16:round=toward-zero", "pairwise:chunk=8",
    "pairwise:product=e4m3:acc=e5m7:round=src:12:chunk=6:outer-round=sr:4",
    "pairwise:fp16:product-round=sra:2",
    "chunked", "chunked:chunk=3", "chunked:acc=e5m7:outer=binary32", "chunked:order=pairwise",
    "hopper-fp16-fp32:round=nearest-even", "hopper-fp16-fp32:F=50", "hopper-fp16-fp32:F=1",
    "hopper-fp16-fp32:L=1", "hopper-fp16-fp32:L=128", "hopper-bf16-fp32:floor=-126",
    "hopper-bf16-fp32:floor=none:align=nearest", "hopper-bf16-fp32:floor=20:align=floor",
    "hopper-bf16-fp32:normalised=1", "hopper-fp16-fp16:result=binary32",
    "hopper-fp16-fp32:acc=binary64:F=30", "hopper-fp16-fp32:acc=bf16:round=sr:6:F=9",
    "hopper-mma-fp8-fp32:chunk=8:L=3", "hopper-mma-fp8-fp16:chunk=12",
    "hopper-mma-fp8-fp32:chunk=40",
    "hopper-mma-fp8-fp32:acc=binary32:F=13:chunk=64:round=up",
    "hopper-wgmma-fp8-promoted:chunk=32:outer=bf16", "hopper-wgmma-fp8-fp32:chunk=5:outer-round=up",
    "ada-fp8-fp32:round=down", "ada-fp8-fp32:acc=e8m5", "ada-fp8-fp32:round=sra:31:result-round=up",
};
/* clang-format on */

TEST(typed_models)
{
    mpsim_model m;
    operand list[16];
    uint64_t seed = test_seed() + 2;
    for (size_t i = 0; i < COUNT(typed); i++) {
        ck_assert_msg(mpsim_model_parse(&m, typed[i]) == MPSIM_OK, "%s", typed[i]);
        ck_assert_str_eq(m.name, typed[i]);
        ck_assert(mpsim_model_check(&m) == MPSIM_OK);
        compare(&m, list, operands_of(&m, list, COUNT(list)), test_scaled(500), &seed);
    }
}

/* ---- models that nobody would think of ---------------------------------------------------- */

TEST(any_models)
{
    operand list[DOT_FORMATS];
    uint64_t seed = test_seed() + 3;
    for (size_t i = 0; i < DOT_FORMATS; i++) {
        const mpsim_format f = dot_format(i);
        ck_assert_msg(find_operand(&list[i], &f), "%s", f.name);
    }
    for (size_t i = 0; i < test_scaled(20000); i++) {
        char text[1000];
        mpsim_model m;
        oracle_model om;
        dot_any_model(&m, &seed);
        ck_assert_msg(mpsim_model_check(&m) == MPSIM_OK, "%s", m.name);
        ck_assert(oracle_model_init(&om, &m));
        for (int k = 0; k < 4; k++) {
            const operand *oa = &list[test_random(&seed) % DOT_FORMATS];
            const operand *ob = &list[test_random(&seed) % DOT_FORMATS];
            if (!dot_can(&m, &oa->f, &ob->f))
                continue;
            const int kind = (int)(test_random(&seed) % KINDS);
            if (differs(&m, &om, oa, ob, a_length(&m, &seed), kind, &seed, text, sizeof text)) {
                dot_print_model(&m);
                ck_abort_msg("%s", text);
            }
        }
    }
}

/* An overflow is an infinity in every mode also where the magnitude of a negative number is rounded. */
TEST(bug_20261126_overflow_of_a_magnitude)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    const uint16_t a = 0xfbff, b = 0x7bff; /* -65504, 65504 */
    mpsim_model m;
    uint64_t d = 0;
    ck_assert(mpsim_model_parse(&m, "fma:round=toward-zero") == MPSIM_OK);
    ck_assert(mpsim_format_parse(&m.accumulator.format, "e4m4:unsigned") == MPSIM_OK);
    m.accumulator.rounding.negative = MPSIM_NEGATIVE_ABS;
    m.traits = MPSIM_TRAIT_OVERFLOW;
    ck_assert(mpsim_dot(&m, f, &a, f, &b, 1, 0, NULL, &d) == MPSIM_OK);
    ck_assert_uint_eq(d, 0x7f800000);
}

/* Halfway between the two largest numbers below the smallest normal one, if there were a bit more, the random bit decides
 * whether a sum is tiny. */
TEST(flushed_sums_are_random)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    const float a = 0x1p-14f - 0x1p-26f, one = 1;
    mpsim_model m;
    mpsim_rng rng = {.seed = 5, .stream = 7};
    ck_assert(mpsim_model_parse(&m, "fma:fp16:round=sra:1") == MPSIM_OK);
    m.traits = MPSIM_TRAIT_FLUSH_SUMS;
    for (rng.index = 0; rng.index < 64; rng.index++) {
        const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index);
        uint64_t d = 1;
        ck_assert(mpsim_dot(&m, f, &a, f, &one, 1, 0, &rng, &d) == MPSIM_OK);
        ck_assert_uint_eq(d, word >> 31 ? 0x400 : 0);
    }
}

/* ---- the exact model by GMP alone --------------------------------------------------------- */

TEST(exact_sums)
{
    mpsim_model m;
    uint64_t seed = test_seed() + 4;
    const mpsim_format *f = mpsim_format_find("fp16");
    ck_assert(mpsim_model_parse(&m, "exact:binary64") == MPSIM_OK);
    mpz_t sum, x;
    mpfr_t y;
    mpz_inits(sum, x, (mpz_ptr)0);
    mpfr_init2(y, 53);
    for (size_t i = 0; i < test_scaled(3000); i++) {
        uint16_t a[500], b[500];
        const size_t n = (size_t)(test_random(&seed) % 500);
        const double c = (double)(int64_t)test_random(&seed) * 0x1p-40;
        uint64_t d = 0;
        mpz_set_d(sum, c * 0x1p48); /* units of 2^-48 */
        for (size_t k = 0; k < n; k++) {
            a[k] = (uint16_t)(test_random(&seed) & 0xfbff); /* finite, any exponent */
            b[k] = (uint16_t)(test_random(&seed) & 0xfbff);
            mpz_set_d(x, mpsim_decode(f, a[k]) * mpsim_decode(f, b[k]) * 0x1p48);
            mpz_add(sum, sum, x);
        }
        ck_assert(mpsim_dot(&m, f, a, f, b, n, bits_of_f64(c), NULL, &d) == MPSIM_OK);
        mpfr_set_z_2exp(y, sum, -48, MPFR_RNDN);
        ck_assert_msg(d == bits_of_f64(mpfr_get_d(y, MPFR_RNDN)), "n = %zu: %a, expected %a", n, f64_of_bits(d),
                      mpfr_get_d(y, MPFR_RNDN));
    }
    mpfr_clear(y);
    mpz_clears(sum, x, (mpz_ptr)0);
    mpfr_free_cache();
}

/* Long ones: pairwise sums of more than any buffer on a stack, many chunks, many additions. */
TEST(long_sums)
{
    static const char *const models[] = {"exact",
                                         "fma:fp16",
                                         "sequential:bf16",
                                         "pairwise:fp16",
                                         "chunked",
                                         "hopper-fp16-fp32",
                                         "ada-fp8-fp32",
                                         "hopper-mma-fp8-fp16",
                                         "hopper-wgmma-fp8-promoted"};
    uint64_t seed = test_seed() + 5;
    char text[1000];
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        oracle_model om;
        operand list[16];
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK && oracle_model_init(&om, &m));
        operands_of(&m, list, COUNT(list));
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t n = NMAX - 3; n <= NMAX; n++)
                if (differs(&m, &om, &list[0], &list[0], n, kind, &seed, text, sizeof text))
                    ck_abort_msg("%s", text);
    }
}

/* ---- arguments ---------------------------------------------------------------------------- */

TEST(wrong_arguments)
{
    mpsim_model m, bad;
    const mpsim_format *f = mpsim_format_find("fp16"), *wide = mpsim_format_find("binary64");
    const mpsim_format *single = mpsim_format_find("binary32");
    mpsim_format broken = *f;
    const uint16_t a[2] = {0x3c00, 0x3c00};
    const uint64_t w[2] = {0};
    uint64_t d = 77;
    broken.mbits = 60;
    ck_assert(mpsim_model_parse(&m, "hopper-fp16-fp32") == MPSIM_OK);
    ck_assert(mpsim_dot(NULL, f, a, f, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, NULL, a, f, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, f, NULL, f, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, f, a, NULL, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, f, a, f, NULL, 2, 0, NULL, &d) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, f, a, f, a, 2, 0, NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, &broken, a, f, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    ck_assert(mpsim_dot(&m, f, a, &broken, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    bad = m;
    bad.length = 0;
    ck_assert(mpsim_dot(&bad, f, a, f, a, 2, 0, NULL, &d) == MPSIM_EINVAL);
    bad = m;
    bad.accumulator.rounding.mode = MPSIM_ROUND_STOCHASTIC_A;
    ck_assert(mpsim_dot(&bad, f, a, f, a, 2, 0, NULL, &d) == MPSIM_EINVAL);     /* no rng */
    ck_assert(mpsim_dot(&m, wide, w, wide, w, 2, 0, NULL, &d) == MPSIM_ERANGE); /* 104 bits */
    ck_assert(mpsim_dot(&m, wide, w, f, a, 2, 0, NULL, &d) == MPSIM_ERANGE);    /* 62 bits  */
    ck_assert_uint_eq(d, 77);
    ck_assert(mpsim_dot(&m, single, w, single, w, 2, 0, NULL, &d) == MPSIM_OK); /* 46 bits */
    ck_assert(mpsim_dot(&m, f, NULL, f, NULL, 0, 0x80000000, NULL, &d) == MPSIM_OK);
    ck_assert_uint_eq(d, 0x80000000);
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK); /* no limit for the others */
    ck_assert(mpsim_dot(&m, wide, w, wide, w, 2, 0, NULL, &d) == MPSIM_OK);
}

TEST_MAIN("dot");
