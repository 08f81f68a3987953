/* t-model.c -- the table of models and their names. */
#include "support/support.h"

#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

static const mpsim_format *format(const char *name)
{
    const mpsim_format *f = mpsim_format_find(name);
    ck_assert_msg(f, "%s", name);
    return f;
}

static mpsim_model parsed(const char *name)
{
    mpsim_model m;
    const mpsim_status s = mpsim_model_parse(&m, name);
    ck_assert_msg(s == MPSIM_OK, "%s: %s", name, mpsim_status_string(s));
    return m;
}

static int same_place(const mpsim_rounded *x, const mpsim_rounded *y)
{
    return strcmp(x->format.name, y->format.name) == 0 && x->rounding.mode == y->rounding.mode &&
           x->rounding.sr_bits == y->rounding.sr_bits && x->rounding.overflow == y->rounding.overflow &&
           x->rounding.nan == y->rounding.nan;
}

/* The same but for the name. */
static int same(const mpsim_model *x, const mpsim_model *y)
{
    return x->addition == y->addition && x->order == y->order && x->alignment == y->alignment &&
           x->normalised == y->normalised && x->length == y->length && x->fraction == y->fraction &&
           x->floor == y->floor && x->chunk == y->chunk && x->operand_emin == y->operand_emin &&
           same_place(&x->product, &y->product) && same_place(&x->accumulator, &y->accumulator) &&
           same_place(&x->outer, &y->outer) && same_place(&x->result, &y->result) &&
           x->architecture == y->architecture && x->instruction == y->instruction && x->operands == y->operands &&
           x->evidence == y->evidence;
}

CASE("models", 5);

TEST(rows)
{
    /* clang-format off */
    static const char *const expected[] = {
        "exact", "fma", "sequential", "pairwise", "chunked", "volta-fp16-fp32", "volta-fp16-fp16",
        "turing-fp16-fp32", "turing-fp16-fp16", "ampere-fp16-fp32", "ampere-fp16-fp16",
        "ampere-bf16-fp32", "ampere-tf32-fp32", "ada-fp16-fp32", "ada-fp16-fp16", "ada-bf16-fp32",
        "ada-tf32-fp32", "ada-fp8-fp32", "ada-fp8-fp16", "hopper-fp16-fp32", "hopper-fp16-fp16",
        "hopper-bf16-fp32", "hopper-tf32-fp32", "hopper-wgmma-fp8-fp32", "hopper-wgmma-fp8-fp16",
        "hopper-wgmma-fp8-promoted", "hopper-mma-fp8-fp32", "hopper-mma-fp8-fp16",
        "blackwell-fp16-fp32", "blackwell-fp16-fp16", "blackwell-bf16-fp32", "blackwell-tf32-fp32",
        "blackwell-mma-fp8-fp32", "blackwell-mma-fp8-fp16", "blackwell-tcgen05-fp8-fp32",
        "blackwell-tcgen05-fp8-fp16", "rtx-blackwell-fp16-fp32", "cdna1-fp16-fp32", "cdna2-fp64",
        "cdna3-fp8-fp32", "rtx-blackwell-mxf8f6f4", "rtx-blackwell-mxf4nvf4"};
    mpsim_model m;
    const size_t n = mpsim_model_count();
    memset(&m, 1, sizeof m);
    mpsim_model kept = m;
    ck_assert(mpsim_model_at(&m, n) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_model_at(&m, SIZE_MAX) == MPSIM_ENOTFOUND);
    ck_assert_int_eq(memcmp(&m, &kept, sizeof m), 0);
    ck_assert(mpsim_model_at(NULL, 0) == MPSIM_EINVAL);
    for (size_t i = 0; i < COUNT(expected); i++)
        parsed(expected[i]);
    for (size_t i = 0; i < n; i++) {
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        ck_assert_msg(mpsim_model_check(&m) == MPSIM_OK, "%s", m.name);
        ck_assert(strchr(m.name, ':') == NULL && strchr(m.name, '_') == NULL);
        const int hardware = m.architecture != NULL;
        ck_assert_msg((hardware || m.addition != MPSIM_ADDITION_FUSED) && (m.instruction != NULL) == hardware &&
                          (m.operands != NULL) == hardware && m.source && *m.source &&
                          (m.evidence == MPSIM_EVIDENCE_DEFINED) == !hardware,
                      "%s", m.name);
        if (hardware)
            ck_assert_msg(strncmp(m.name, m.architecture, strlen(m.architecture)) == 0, "%s",
                          m.name);
        for (size_t j = 0; j < i; j++) {
            mpsim_model other;
            ck_assert(mpsim_model_at(&other, j) == MPSIM_OK);
            ck_assert_str_ne(m.name, other.name);
        }
        /* The name in any letter case, with '_' for '-'. */
        char name[sizeof m.name];
        mpsim_model again = parsed(m.name);
        ck_assert_msg(same(&m, &again) && strcmp(m.name, again.name) == 0, "%s", m.name);
        for (size_t k = 0; k < sizeof name; k++)
            name[k] = m.name[k] == '-' ? '_'
                      : m.name[k] >= 'a' && m.name[k] <= 'z' && k % 2 ? (char)(m.name[k] - 32)
                                                                      : m.name[k];
        again = parsed(name);
        ck_assert_msg(same(&m, &again) && strcmp(m.name, again.name) == 0, "%s", name);
    }
    /* clang-format on */
}

/* Every row as the publications have it, typed here a second time: a row cannot change unseen, also
 * where no recorded output judges it. floor, emin: 0 stands for none. */
TEST(numbers)
{
    enum { RN = MPSIM_ROUND_NEAREST_EVEN, RZ = MPSIM_ROUND_TOWARD_ZERO };
    static const struct {
        const char *name, *operands;
        int L, F, floor, emin;
        const char *accumulator;
        int mode;
        unsigned chunk;
        int order;
        const char *result;
    } cores[] = {
        {"volta-fp16-fp32", "fp16", 4, 23, -131, 0, "binary32", RZ, 0, 0, "binary32"},
        {"volta-fp16-fp16", "fp16", 4, 23, -19, 0, "fp16", RN, 0, 0, "fp16"},
        {"turing-fp16-fp32", "fp16", 8, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"turing-fp16-fp16", "fp16", 8, 24, -20, 0, "fp16", RN, 0, 0, "fp16"},
        {"ampere-fp16-fp32", "fp16", 8, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"ampere-fp16-fp16", "fp16", 8, 24, -20, 0, "fp16", RN, 0, 0, "fp16"},
        {"ampere-bf16-fp32", "bf16", 8, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"ampere-tf32-fp32", "tf32", 4, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"ada-fp16-fp32", "fp16", 8, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"ada-fp16-fp16", "fp16", 8, 24, -20, 0, "fp16", RN, 0, 0, "fp16"},
        {"ada-bf16-fp32", "bf16", 8, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"ada-tf32-fp32", "tf32", 4, 24, -132, 0, "binary32", RZ, 0, 0, "binary32"},
        {"ada-fp8-fp32", "e4m3 e5m2", 16, 13, 0, 0, "e8m13", RZ, 0, 0, "binary32"},
        {"ada-fp8-fp16", "e4m3 e5m2", 16, 13, -20, 0, "fp16", RN, 0, 0, "fp16"},
        {"hopper-fp16-fp32", "fp16", 16, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"hopper-fp16-fp16", "fp16", 16, 25, -21, 0, "fp16", RN, 0, 0, "fp16"},
        {"hopper-bf16-fp32", "bf16", 16, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"hopper-tf32-fp32", "tf32", 8, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"hopper-k4-tf32-fp32", "tf32", 4, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"hopper-wgmma-fp8-fp32", "e4m3 e5m2", 32, 13, 0, 0, "e8m13", RZ, 0, 0, "binary32"},
        {"hopper-wgmma-fp8-fp16", "e4m3 e5m2", 32, 13, -21, 0, "fp16", RN, 0, 0, "fp16"},
        {"hopper-wgmma-fp8-promoted", "e4m3 e5m2", 32, 13, 0, 0, "e8m13", RZ, 128, 0, "binary32"},
        {"hopper-mma-fp8-fp32", "e4m3 e5m2", 16, 25, -133, -14, "binary32", RZ, 32, 2, "binary32"},
        {"hopper-mma-fp8-fp16", "e4m3 e5m2", 16, 25, -21, -14, "fp16", RN, 32, 2, "fp16"},
        {"blackwell-fp16-fp32", "fp16", 16, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"blackwell-fp16-fp16", "fp16", 16, 25, -21, 0, "fp16", RN, 0, 0, "fp16"},
        {"blackwell-bf16-fp32", "bf16", 16, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"blackwell-tf32-fp32", "tf32", 8, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"blackwell-tcgen05-fp8-fp32", "e4m3 e5m2 e3m2 e2m3 e2m1", 32, 25, 0, 0, "binary32", RZ, 0, 0, "binary32"},
        {"blackwell-tcgen05-fp8-fp16", "e4m3 e5m2 e3m2 e2m3 e2m1", 32, 25, -21, 0, "fp16", RN, 0, 0, "fp16"},
        {"blackwell-mma-fp8-fp32", "e4m3 e5m2", 16, 25, -133, -14, "binary32", RZ, 32, 2, "binary32"},
        {"blackwell-mma-fp8-fp16", "e4m3 e5m2", 16, 25, -21, -14, "fp16", RN, 32, 2, "fp16"},
        {"rtx-blackwell-fp16-fp32", "fp16", 16, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"rtx-blackwell-fp16-fp16", "fp16", 16, 25, -21, 0, "fp16", RN, 0, 0, "fp16"},
        {"rtx-blackwell-bf16-fp32", "bf16", 16, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"rtx-blackwell-tf32-fp32", "tf32", 8, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"rtx-blackwell-fp8-fp32", "e4m3 e5m2 e3m2 e2m3 e2m1", 32, 25, 0, 0, "binary32", RZ, 0, 0, "binary32"},
        {"rtx-blackwell-fp8-fp16", "e4m3 e5m2 e3m2 e2m3 e2m1", 32, 25, -21, 0, "fp16", RN, 0, 0, "fp16"},
        {"blackwell-tcgen05-mxf8f6f4", "e4m3 e5m2 e3m2 e2m3 e2m1", 32, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
        {"rtx-blackwell-mxf8f6f4", "e4m3 e5m2 e3m2 e2m3 e2m1", 32, 25, -133, 0, "binary32", RZ, 0, 0, "binary32"},
    };
    size_t hardware = 0;
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        hardware += m.addition == MPSIM_ADDITION_FUSED;
    ck_assert_uint_eq(hardware, COUNT(cores));
    for (size_t i = 0; i < COUNT(cores); i++) {
        m = parsed(cores[i].name);
        const int floor = m.floor == MPSIM_MODEL_NO_FLOOR ? 0 : m.floor;
        const int emin = m.operand_emin == MPSIM_MODEL_OWN_EMIN ? 0 : m.operand_emin;
        ck_assert_msg(m.addition == MPSIM_ADDITION_FUSED && m.alignment == MPSIM_ALIGN_TRUNCATE && !m.normalised &&
                          strcmp(m.operands, cores[i].operands) == 0 && m.length == cores[i].L &&
                          m.fraction == cores[i].F && floor == cores[i].floor && emin == cores[i].emin &&
                          m.chunk == cores[i].chunk && m.order == cores[i].order,
                      "%s", m.name);
        const mpsim_rounded *const places[] = {&m.accumulator, &m.outer, &m.result};
        for (size_t k = 0; k < COUNT(places); k++) {
            const mpsim_rounded *p = places[k];
            ck_assert_msg(strcmp(p->format.name, k ? cores[i].result : cores[i].accumulator) == 0 &&
                              p->rounding.mode == (k ? RN : cores[i].mode) && p->rounding.nan == MPSIM_NANS_ONES &&
                              p->rounding.overflow == MPSIM_OVERFLOW_INF && !p->rounding.flush_output,
                          "%s, place %zu", m.name, k);
        }
    }
}

enum { OTHERS = 21 }; /* rows of numbers_of_others */

/* The same of instructions of CPUs; all places are binary32. */
TEST(instructions)
{
    enum { RN = MPSIM_ROUND_NEAREST_EVEN, ODD = MPSIM_ROUND_TO_ODD, SUBNORMAL = 3 };
    static const struct {
        const char *name, *operands;
        int addition, order, L, chunk, traits, mode, nan;
    } table[] = {
        {"avx512-bf16-fp32", "bf16", MPSIM_ADDITION_FMA, MPSIM_ORDER_ODD_FIRST, 0, 0, SUBNORMAL | 16, RN, 2},
        {"amx-bf16-fp32", "bf16", MPSIM_ADDITION_FMA, MPSIM_ORDER_LANES, 2, 32, SUBNORMAL | 16, RN, 2},
        {"amx-fp16-fp32", "fp16", MPSIM_ADDITION_FMA, MPSIM_ORDER_LANES, 2, 32, 2 | 16, RN, 2},
        {"amx-fp8-fp32", "e4m3 e5m2", MPSIM_ADDITION_EXACT, MPSIM_ORDER_SEQUENTIAL, 0, 64, 2 | 16, RN, 2},
        {"arm-bf16-fp32", "bf16", MPSIM_ADDITION_MULADD, MPSIM_ORDER_PAIRWISE, 0, 2, SUBNORMAL | 4 | 8, ODD, 1},
        {"arm-ebf16-fp32", "bf16", MPSIM_ADDITION_EXACT, MPSIM_ORDER_SEQUENTIAL, 0, 2, 4, RN, 1},
        {"arm-bfmlal-fp32", "bf16", MPSIM_ADDITION_FMA, MPSIM_ORDER_SEQUENTIAL, 0, 0, 0, RN, 2},
        {"arm-fmlal-fp32", "fp16", MPSIM_ADDITION_FMA, MPSIM_ORDER_SEQUENTIAL, 0, 0, 0, RN, 2},
        {"arm-fp16-fp32", "fp16", MPSIM_ADDITION_EXACT, MPSIM_ORDER_SEQUENTIAL, 0, 2, 4, RN, 1},
    };
    mpsim_model m;
    size_t count = 0;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        count += m.architecture && m.addition != MPSIM_ADDITION_FUSED;
    ck_assert_uint_eq(count, COUNT(table) + OTHERS);
    for (size_t i = 0; i < COUNT(table); i++) {
        m = parsed(table[i].name);
        ck_assert_msg(strcmp(m.operands, table[i].operands) == 0 && m.addition == table[i].addition &&
                          m.order == table[i].order && m.length == table[i].L && (int)m.chunk == table[i].chunk &&
                          m.traits == table[i].traits,
                      "%s", m.name);
        const mpsim_rounded *const places[] = {&m.product, &m.accumulator, &m.outer, &m.result};
        for (size_t k = 0; k < COUNT(places); k++)
            ck_assert_msg(strcmp(places[k]->format.name, "binary32") == 0 && places[k]->rounding.nan == table[i].nan &&
                              places[k]->rounding.mode == (k < 3 ? table[i].mode : RN),
                          "%s, place %zu", m.name, k);
    }
}

/* The same of the rows with other additions. */
TEST(numbers_of_others)
{
    enum { RN = MPSIM_ROUND_NEAREST_EVEN, RZ = MPSIM_ROUND_TOWARD_ZERO };
    enum { EXACT = MPSIM_ADDITION_EXACT, FMA = MPSIM_ADDITION_FMA, MULADD = MPSIM_ADDITION_MULADD };
    enum { FLUSHED = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_PLUS_ZERO };
    enum { STAGED = MPSIM_ADDITION_STAGED, GROUPED = MPSIM_ADDITION_GROUPED };
    static const struct {
        const char *name, *operands, *scales, *result;
        int addition, order, L, F, floor, ways, kept, drop, group, flush, block, mode;
    } others[] = {
        {"ampere-fp64", "binary64", NULL, "binary64", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"hopper-fp64", "binary64", NULL, "binary64", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"blackwell-fp64", "binary64", NULL, "binary64", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"blackwell-tcgen05-mxf4", "e2m1", "e8m0", "binary32", GROUPED, 0, 64, 35, -139, 0, 0, 0, 16, 0, 32, RZ},
        {"blackwell-tcgen05-mxf4nvf4", "e2m1", "e4m3 e8m0", "binary32", GROUPED, 0, 64, 35, -139, 0, 0, 0, 16, 0, 16,
         RZ},
        {"rtx-blackwell-mxf4", "e2m1", "e8m0", "binary32", GROUPED, 0, 64, 35, -139, 0, 0, 0, 16, 0, 32, RZ},
        {"rtx-blackwell-mxf4nvf4", "e2m1", "e4m3 e8m0", "binary32", GROUPED, 0, 64, 35, -139, 0, 0, 0, 16, 0, 16, RZ},
        {"cdna1-fp16-fp32", "fp16", NULL, "binary32", EXACT, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"cdna1-bf16-fp32", "bf16", NULL, "binary32", EXACT, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"cdna1-fp32", "binary32", NULL, "binary32", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"cdna2-fp16-fp32", "fp16", NULL, "binary32", MULADD, 1, 4, 0, 0, 0, 0, 0, 0, 1, 0, RN},
        {"cdna2-bf16-fp32", "bf16", NULL, "binary32", MULADD, 1, 4, 0, 0, 0, 0, 0, 0, 1, 0, RN},
        {"cdna2-bf16-2-fp32", "bf16", NULL, "binary32", MULADD, 1, 2, 0, 0, 0, 0, 0, 0, 1, 0, RN},
        {"cdna2-fp32", "binary32", NULL, "binary32", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"cdna2-fp64", "binary64", NULL, "binary64", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"cdna3-fp16-fp32", "fp16", NULL, "binary32", STAGED, 0, 8, 24, 0, 1, 31, 0, 0, 0, 0, RN},
        {"cdna3-bf16-fp32", "bf16", NULL, "binary32", STAGED, 0, 8, 24, 0, 1, 31, 0, 0, 0, 0, RN},
        {"cdna3-xf32-fp32", "tf32", NULL, "binary32", STAGED, 0, 4, 24, 0, 1, 31, 0, 0, 0, 0, RN},
        {"cdna3-fp8-fp32", "e4m3fnuz e5m2fnuz", NULL, "binary32", STAGED, 0, 16, 24, 0, 2, 31, 1, 0, 0, 0, RN},
        {"cdna3-fp32", "binary32", NULL, "binary32", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
        {"cdna3-fp64", "binary64", NULL, "binary64", FMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RN},
    };
    ck_assert_uint_eq(COUNT(others), OTHERS);
    for (size_t i = 0; i < COUNT(others); i++) {
        const mpsim_model m = parsed(others[i].name);
        const int floor = m.floor == MPSIM_MODEL_NO_FLOOR ? 0 : m.floor;
        ck_assert_msg(m.addition == others[i].addition && m.order == others[i].order && m.length == others[i].L &&
                          m.fraction == others[i].F && floor == others[i].floor && m.ways == others[i].ways &&
                          m.kept == others[i].kept && m.drop == others[i].drop && m.group == others[i].group &&
                          m.traits == (others[i].flush ? FLUSHED : 0) && m.block == others[i].block && m.chunk == 0 &&
                          m.alignment == MPSIM_ALIGN_TRUNCATE && m.operand_emin == MPSIM_MODEL_OWN_EMIN,
                      "%s", m.name);
        ck_assert_str_eq(m.operands, others[i].operands);
        ck_assert_str_eq(m.accumulator.format.name, others[i].result);
        ck_assert_str_eq(m.result.format.name, others[i].result);
        ck_assert(m.accumulator.rounding.mode == others[i].mode && m.product.rounding.mode == RN);
        ck_assert((m.scales == NULL) == (others[i].scales == NULL));
        if (m.scales)
            ck_assert_str_eq(m.scales, others[i].scales);
    }
}

TEST(changes)
{
    mpsim_model m = parsed("fma:bf16"), x;
    ck_assert_str_eq(m.name, "fma:bf16");
    ck_assert_str_eq(m.accumulator.format.name, "bf16");
    ck_assert_str_eq(m.result.format.name, "bf16");
    m = parsed("pairwise:FP16");
    ck_assert_str_eq(m.name, "pairwise:FP16"); /* as typed */
    ck_assert_str_eq(m.product.format.name, "fp16");
    ck_assert_int_eq(m.order, MPSIM_ORDER_PAIRWISE);
    m = parsed("FMA:bf16");
    ck_assert_str_eq(m.name, "fma:bf16");

    /* Left to right: one place after all of them; all of them after one place. */
    m = parsed("sequential:fp16:acc=binary32");
    ck_assert_str_eq(m.accumulator.format.name, "binary32");
    ck_assert_str_eq(m.product.format.name, "fp16");
    ck_assert_str_eq(m.result.format.name, "fp16");
    m = parsed("sequential:acc=binary32:fp16");
    ck_assert_str_eq(m.accumulator.format.name, "fp16");

    m = parsed("chunked:product=e5m2:acc=bf16:outer=fp32:result=fp16:product-round=up:round=rd:"
               "result-round=rna");
    ck_assert_str_eq(m.product.format.name, "e5m2");
    ck_assert_str_eq(m.accumulator.format.name, "bf16");
    ck_assert_str_eq(m.outer.format.name, "binary32");
    ck_assert_str_eq(m.result.format.name, "fp16");
    ck_assert_int_eq(m.product.rounding.mode, MPSIM_ROUND_UP);
    ck_assert_int_eq(m.accumulator.rounding.mode, MPSIM_ROUND_DOWN);
    ck_assert_int_eq(m.outer.rounding.mode, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert_int_eq(m.result.rounding.mode, MPSIM_ROUND_NEAREST_AWAY);
    m = parsed("chunked:outer-round=rtz:chunk=0128");
    ck_assert_int_eq(m.outer.rounding.mode, MPSIM_ROUND_TOWARD_ZERO);
    ck_assert_uint_eq(m.chunk, 128);

    m = parsed("hopper-fp16-fp32:F=24:L=8:floor=-126:align=floor:normalised=1:round=rne");
    x = parsed("hopper-fp16-fp32");
    x.fraction = 24;
    x.length = 8;
    x.floor = -126;
    x.alignment = MPSIM_ALIGN_FLOOR;
    x.normalised = 1;
    x.accumulator.rounding.mode = MPSIM_ROUND_NEAREST_EVEN;
    /* What is known of a row says nothing about one with changes. */
    ck_assert(m.evidence == MPSIM_EVIDENCE_NONE && !m.instruction && !m.unconfirmed);
    ck_assert(strstr(m.source, "changes") && x.evidence == MPSIM_EVIDENCE_VECTORS);
    x.evidence = MPSIM_EVIDENCE_NONE;
    x.instruction = NULL;
    ck_assert(same(&m, &x));
    m = parsed("hopper-bf16-fp32:floor=none:align=nearest");
    ck_assert(m.floor == MPSIM_MODEL_NO_FLOOR && m.alignment == MPSIM_ALIGN_NEAREST);
    m = parsed("hopper-bf16-fp32:align=truncate:normalised=0:order=sequential");
    ck_assert(m.alignment == MPSIM_ALIGN_TRUNCATE && !m.normalised && m.order == MPSIM_ORDER_SEQUENTIAL);
    m = parsed("hopper-fp16-fp32:order=quads:chunk=16");
    ck_assert(m.order == MPSIM_ORDER_QUADS && m.chunk == 16);
    m = parsed("hopper-mma-fp8-fp32:chunk=0:order=sequential");
    ck_assert(m.order == MPSIM_ORDER_SEQUENTIAL && m.chunk == 0);

    /* Names with ':': as long as possible. */
    m = parsed("fma:e5m7:fn:round=sr:16");
    ck_assert(strcmp(m.accumulator.format.name, format("binary32")->name) != 0);
    ck_assert(m.accumulator.rounding.mode == MPSIM_ROUND_STOCHASTIC_C && m.accumulator.rounding.sr_bits == 16);
    m = parsed("fma:round=sra:acc=e5m2:bias=20:fn:result=fp16");
    ck_assert(m.accumulator.rounding.mode == MPSIM_ROUND_STOCHASTIC_A && m.accumulator.rounding.sr_bits == 32 &&
              m.accumulator.format.bias == 20 && m.result.format.bias == 15);
    m = parsed("hopper-fp16-fp32:round=stochastic-b:8:F=20");
    ck_assert(m.accumulator.rounding.mode == MPSIM_ROUND_STOCHASTIC_B && m.accumulator.rounding.sr_bits == 8 &&
              m.fraction == 20);
}

static const struct {
    const char *name;
    mpsim_status status;
} refusals[] = {
    {"", MPSIM_ENOTFOUND},
    {":", MPSIM_ENOTFOUND},
    {"fm", MPSIM_ENOTFOUND},
    {"fmaa", MPSIM_ENOTFOUND},
    {" fma", MPSIM_ENOTFOUND},
    {"hopper", MPSIM_ENOTFOUND},
    {"hopper-fp16-fp3", MPSIM_ENOTFOUND},
    {"hopper-fp16-fp322", MPSIM_ENOTFOUND},
    {"fma:nothing", MPSIM_ENOTFOUND},
    {"fma:acc=nothing", MPSIM_ENOTFOUND},
    {"fma:round=nothing", MPSIM_ENOTFOUND},
    {"fma:round=", MPSIM_ENOTFOUND},
    {"fma:colour=red", MPSIM_EINVAL},
    {"fma:bf16:", MPSIM_EINVAL},
    {"fma:bf16:fp16", MPSIM_EINVAL},
    {"fma:acc=bf16:acc=bf16", MPSIM_EINVAL},
    {"fma:round=up:round=up", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=24:F=24", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=0", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=51", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=256", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=281", MPSIM_EINVAL}, /* 25, were it a byte */
    {"hopper-fp16-fp32:F=-1", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=2x", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F= 2", MPSIM_EINVAL},
    {"hopper-fp16-fp32:F=99999999999999999999", MPSIM_EINVAL},
    {"hopper-fp16-fp32:L=0", MPSIM_EINVAL},
    {"hopper-fp16-fp32:L=129", MPSIM_EINVAL},
    {"hopper-fp16-fp32:L=272", MPSIM_EINVAL},
    {"hopper-fp16-fp32:floor=", MPSIM_EINVAL},
    {"hopper-fp16-fp32:floor=-32768", MPSIM_EINVAL},
    {"hopper-fp16-fp32:floor=99999", MPSIM_EINVAL},
    {"hopper-fp16-fp32:align=up", MPSIM_EINVAL},
    {"hopper-fp16-fp32:normalised=2", MPSIM_EINVAL},
    {"hopper-fp16-fp32:normalised=", MPSIM_EINVAL},
    {"hopper-fp16-fp32:order=random", MPSIM_EINVAL},
    {"hopper-fp16-fp32:order=pairwise", MPSIM_EINVAL},
    {"hopper-fp16-fp32:order=quads", MPSIM_EINVAL}, /* without chunks */
    {"hopper-fp16-fp32:order=quads:chunk=6", MPSIM_EINVAL},
    {"hopper-fp16-fp32:chunk=4294967296", MPSIM_EINVAL},
    {"hopper-fp16-fp32:chunk=-1", MPSIM_EINVAL},
    {"hopper-fp16-fp32:product=fp16", MPSIM_EINVAL}, /* without effect */
    {"hopper-fp16-fp32:outer=fp16", MPSIM_EINVAL},
    {"hopper-fp16-fp32:outer-round=up", MPSIM_EINVAL},
    {"fma:F=20", MPSIM_EINVAL},
    {"fma:L=4", MPSIM_EINVAL},
    {"fma:floor=0", MPSIM_EINVAL},
    {"fma:align=floor", MPSIM_EINVAL},
    {"fma:normalised=1", MPSIM_EINVAL},
    {"fma:product=fp16", MPSIM_EINVAL},
    {"fma:product-round=up", MPSIM_EINVAL},
    {"fma:outer=fp16", MPSIM_EINVAL},
    {"fma:order=pairwise", MPSIM_EINVAL},
    {"fma:order=quads:chunk=4", MPSIM_EINVAL},
    {"exact:acc=fp16", MPSIM_EINVAL},
    {"exact:order=sequential", MPSIM_EINVAL},
    {"fma:=bf16", MPSIM_EINVAL},
    {"fma:acc=e8m3:fn:bias=1200", MPSIM_ERANGE},
    {"fma:operand-emin=-14", MPSIM_EINVAL},
    {"hopper-fp16-fp32:operand-emin=none", MPSIM_EINVAL},
    {"hopper-mma-fp8-fp32:chunk=8192", MPSIM_EINVAL}, /* too long for order quads */
    {"exact:round=up", MPSIM_EINVAL},
};

TEST(refused)
{
    mpsim_model m;
    memset(&m, 1, sizeof m);
    const mpsim_model kept = m;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const mpsim_status s = mpsim_model_parse(&m, refusals[i].name);
        ck_assert_msg(s == refusals[i].status, "%s: %s", refusals[i].name, mpsim_status_string(s));
        ck_assert_msg(memcmp(&m, &kept, sizeof m) == 0, "%s: touched", refusals[i].name);
    }
    ck_assert(mpsim_model_parse(NULL, "fma") == MPSIM_EINVAL);
    ck_assert(mpsim_model_parse(&m, NULL) == MPSIM_EINVAL);
}

TEST(long_names)
{
    mpsim_model m;
    memset(&m, 1, sizeof m);
    const mpsim_model kept = m;
    /* A name of 95 bytes fits, one of 96 does not: zeros are free. */
    char name[120] = "chunked:product=binary32:acc=binary32:outer=binary32:round=nearest-even:"
                     "result-round=up:chunk=";
    const size_t start = strlen(name);
    memset(name + start, '0', 95 - start);
    name[94] = '8';
    name[95] = 0;
    ck_assert(mpsim_model_parse(&m, name) == MPSIM_OK);
    ck_assert_str_eq(m.name, name);
    ck_assert_uint_eq(m.chunk, 8);
    m = kept;
    name[94] = '0';
    name[95] = '8';
    name[96] = 0;
    ck_assert(mpsim_model_parse(&m, name) == MPSIM_ERANGE);
    ck_assert(memcmp(&m, &kept, sizeof m) == 0);
}

/* Every field out of its domain. */
TEST(checked)
{
    const mpsim_model good = parsed("hopper-mma-fp8-fp32");
    mpsim_model m;
    ck_assert(mpsim_model_check(NULL) == MPSIM_EINVAL);
#define BAD(statement)                                                          \
    do {                                                                        \
        m = good;                                                               \
        statement;                                                              \
        ck_assert_msg(mpsim_model_check(&m) == MPSIM_EINVAL, "%s", #statement); \
    } while (0)
    BAD(m.addition = MPSIM_ADDITION_GROUPED + 1);
    BAD(m.block = 32);
    BAD(m.addition = 255);
    BAD(m.order = MPSIM_ORDER_QUADS + 1);
    BAD(m.order = MPSIM_ORDER_PAIRWISE);
    BAD(m.alignment = MPSIM_ALIGN_NEAREST + 1);
    BAD(m.normalised = 2);
    BAD(m.length = 0);
    BAD(m.length = 129);
    BAD(m.fraction = 0);
    BAD(m.fraction = 51);
    BAD(m.chunk = 0);
    BAD(m.chunk = 30);
    BAD(m.addition = MPSIM_ADDITION_FMA);
    BAD(m.addition = MPSIM_ADDITION_EXACT);
    BAD(m.addition = MPSIM_ADDITION_MULADD);
    BAD(m.accumulator.format.bits = 0);
    BAD(m.accumulator.format.ebits = 12);
    BAD(m.outer.format.mbits = 53);
    BAD(m.result.format.bits = 65);
    BAD(m.accumulator.rounding.mode = MPSIM_ROUND_MODES);
    BAD(m.outer.rounding.nan = MPSIM_NAN_RULES);
    BAD(m.result.rounding.nan = MPSIM_NANS_ONES_OR_CUT);
    BAD(m.result.rounding.overflow = 2);
    BAD(m.accumulator.rounding.scale = 2);
    BAD(m.outer.rounding.scale = 0.5);
    BAD(m.result.rounding.scale = 0);
    BAD(m.accumulator.rounding.flush_input = 1);
    BAD(m.outer.rounding.flush_input = 1);
    BAD(m.result.rounding.flush_input = 1);
    BAD(m.result.rounding.mode = MPSIM_ROUND_STOCHASTIC_B; m.result.rounding.sr_bits = 0);
    BAD(m.result.rounding.mode = MPSIM_ROUND_STOCHASTIC_B; m.result.rounding.sr_bits = 33);
#undef BAD
    m = good;
    m.accumulator.rounding.flush_output = 1;
    m.result.rounding.overflow = MPSIM_OVERFLOW_MAX;
    m.name[0] = 0;
    m.source = m.operands = m.architecture = m.instruction = NULL;
    ck_assert(mpsim_model_check(&m) == MPSIM_OK);
}

TEST(operands)
{
    mpsim_model m = parsed("hopper-wgmma-fp8-fp32");
    ck_assert(mpsim_model_accepts(&m, format("e4m3"), format("e5m2")));
    ck_assert(mpsim_model_accepts(&m, format("e5m2"), format("e5m2")));
    ck_assert(!mpsim_model_accepts(&m, format("e4m3"), format("fp16")));
    ck_assert(!mpsim_model_accepts(&m, format("fp16"), format("e4m3")));
    ck_assert(!mpsim_model_accepts(&m, format("e4m3fnuz"), format("e4m3fnuz")));
    ck_assert(!mpsim_model_accepts(&m, format("e3m4"), format("e4m3")));
    ck_assert(!mpsim_model_accepts(&m, NULL, format("e4m3")) && !mpsim_model_accepts(&m, format("e4m3"), NULL));
    ck_assert(!mpsim_model_accepts(NULL, format("e4m3"), format("e4m3")));
    m = parsed("blackwell-tcgen05-fp8-fp32");
    ck_assert(mpsim_model_accepts(&m, format("e2m1"), format("e5m2")));
    m = parsed("fma");
    ck_assert(mpsim_model_accepts(&m, format("e8m0"), format("binary64")));

    /* The default row is the first one of the table that takes the operands to the result. */
    static const char *const names[] = {"fp16", "bf16", "tf32", "binary32", "e4m3", "e5m2", "e2m1"};
    static const char *const places[] = {"volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx-blackwell"};
    for (size_t p = 0; p < COUNT(places); p++)
        for (size_t i = 0; i < COUNT(names) * COUNT(names); i++)
            for (int half = 0; half < 2; half++) {
                const mpsim_format *fa = format(names[i % COUNT(names)]);
                const mpsim_format *fb = format(names[i / COUNT(names)]);
                const mpsim_format *fr = format(half ? "fp16" : "binary32");
                mpsim_model want;
                size_t k = 0;
                while (mpsim_model_at(&want, k++) == MPSIM_OK)
                    if (want.architecture && strcmp(want.architecture, places[p]) == 0 &&
                        mpsim_model_accepts(&want, fa, fb) && strcmp(want.result.format.name, fr->name) == 0)
                        break;
                const int found = k <= mpsim_model_count();
                const mpsim_status s = mpsim_model_for(&m, places[p], fa, fb, fr);
                ck_assert_msg(s == (found ? MPSIM_OK : MPSIM_ENOTFOUND), "%s %s %s %s: %s", places[p], fa->name,
                              fb->name, fr->name, mpsim_status_string(s));
                if (found)
                    ck_assert_str_eq(m.name, want.name);
            }
    ck_assert(mpsim_model_for(&m, "hopper", format("e4m3"), format("e5m2"), format("binary32")) == MPSIM_OK);
    ck_assert_str_eq(m.name, "hopper-wgmma-fp8-fp32");
    ck_assert(mpsim_model_for(&m, "blackwell", format("e4m3"), format("e4m3"), format("binary32")) == MPSIM_OK);
    ck_assert_str_eq(m.name, "blackwell-tcgen05-fp8-fp32");
    const mpsim_model kept = m;
    ck_assert(mpsim_model_for(&m, "volta", format("bf16"), format("bf16"), format("binary32")) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_model_for(&m, "kepler", format("fp16"), format("fp16"), format("binary32")) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_model_for(&m, "hopper", format("fp16"), format("fp16"), format("bf16")) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_model_for(NULL, "hopper", format("fp16"), format("fp16"), format("fp16")) == MPSIM_EINVAL);
    ck_assert(mpsim_model_for(&m, NULL, format("fp16"), format("fp16"), format("fp16")) == MPSIM_EINVAL);
    ck_assert(mpsim_model_for(&m, "hopper", NULL, format("fp16"), format("fp16")) == MPSIM_EINVAL);
    ck_assert(memcmp(&m, &kept, sizeof m) == 0);
}

TEST_MAIN("model");
