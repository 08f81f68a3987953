/* t-judge-products.c -- mpsim/judge.h: matrix products, computed here by loops of fma, in binary64, and by mpsim_torch_mm_run. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>
#include <mpsim/torchmm.h>

#include <math.h>
#include <stdlib.h>

static mpsim_judgement j;

static int found(const char *cause)
{
    return judged_found(&j, cause);
}

CASE("products", 20);

enum { M = 7, L = 9, K = 96 };

static float a[M * K], b[K * L], d[M * L];

static void make_operands(void)
{
    uint64_t state = 7;
    for (size_t i = 0; i < M * K; i++)
        a[i] = (float)(int32_t)(test_random(&state) >> 44) * 0x1p-19f - 1;
    for (size_t i = 0; i < K * L; i++)
        b[i] = (float)(int32_t)(test_random(&state) >> 44) * 0x1p-19f - 1;
}

/* Parts of the depth, each a chain of fma, added in order; cut: bits of the operands that are cleared. */
static void multiply(size_t parts, uint32_t cut)
{
    for (size_t i = 0; i < M; i++)
        for (size_t n = 0; n < L; n++) {
            float sum = 0;
            for (size_t p = 0; p < parts; p++) {
                float s = 0;
                for (size_t k = p * K / parts; k < (p + 1) * K / parts; k++)
                    s = fmaf(f32_of_bits(bits_of_f32(a[i * K + k]) & ~cut),
                             f32_of_bits(bits_of_f32(b[k * L + n]) & ~cut), s);
                sum = p ? sum + s : s;
            }
            d[i * L + n] = sum;
        }
}

static void ask_product(const char *like, int turned)
{
    static float t[K * L];
    const mpsim_format *f = mpsim_format_find("binary32");
    char why[256] = "";
    for (size_t i = 0; i < K * L; i++)
        t[i % L * K + i / L] = b[i];
    const mpsim_judge_array arrays[] = {
        {"a", f, a, M, K}, {"b", f, turned ? t : b, turned ? L : K, turned ? K : L}, {"d", f, d, M, L}};
    ck_assert_msg(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, like, NULL, why, sizeof why) == MPSIM_OK, "%s", why);
}

TEST(sums_are_found)
{
    make_operands();
    multiply(1, 0);
    for (int turned = 0; turned < 2; turned++) {
        ask_product(NULL, turned);
        ck_assert(j.differ == 0 && judged_in_class(&j, "fma"));
        ck_assert_uint_eq(j.results, M * L);
    }
    multiply(3, 0);
    ask_product(NULL, 0);
    ck_assert(j.differ == 0 && judged_in_class(&j, "fma+split=3"));
    ask_product("fma+split=3", 0);
    ck_assert_uint_eq(j.differ, 0);
    ask_product("fma", 0);
    ck_assert(j.differ > 0 && j.nearest_differ == 0 && found("sum-order"));
    multiply(1, 0x1fff); /* these operands are cut, which no row does */
    ask_product("fma", 0);
    ck_assert(j.differ > 0 && !found("format"));
}

TEST(operands_are_rounded_first)
{
    make_operands();
    for (size_t i = 0; i < M * K; i++)
        a[i] = f32_of_bits(bits_of_f32(a[i]) & ~0x1fffu);
    multiply(1, 0);
    for (size_t i = 0; i < K * L; i++) /* as if b had been tf32, rounded to nearest; halfway is not there */
        b[i] = f32_of_bits((bits_of_f32(b[i]) & ~0x1fffu) | 0x7ff);
    multiply(1, 0x1fff);
    ask_product(NULL, 0);
    ck_assert(j.differ == 0 && judged_in_class(&j, "fma+operands=tf32"));
    ask_product("fma", 0);
    ck_assert(found("format") && !found("formula"));
}

TEST(results_that_are_cut)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    static uint16_t cut[M * L];
    make_operands();
    multiply(1, 0);
    for (size_t i = 0; i < M * L; i++)
        cut[i] = (uint16_t)(bits_of_f32(d[i]) >> 16);
    const mpsim_judge_array arrays[] = {
        {"a", f, a, M, K}, {"b", f, b, K, L}, {"d", mpsim_format_find("bf16"), cut, M, L}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, "fma", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(j.differ > 0 && found("mode") && !found("formula"));
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, "fma+round=toward-zero", NULL, NULL, 0) == MPSIM_OK);
    ck_assert_uint_eq(j.differ, 0);
}

TEST(products_that_are_left_out)
{
    make_operands();
    multiply(1, 0);
    for (size_t i = 0; i < M; i++) /* the last 8 */
        for (size_t n = 0; n < L; n++) {
            float s = 0;
            for (size_t k = 0; k < K - 8; k++)
                s = fmaf(a[i * K + k], b[k * L + n], s);
            d[i * L + n] = s;
        }
    ask_product("fma", 0);
    ck_assert(found("tail"));
}

TEST(products_that_are_wrong)
{
    make_operands();
    multiply(1, 0);
    for (size_t i = 0; i < M * L; i++)
        d[i] += 0.25f;
    ask_product("fma", 0);
    ck_assert(found("offset") && !found("sum-order"));
    multiply(1, 0);
    for (size_t i = 0; i < M * L; i++)
        d[i] += (float)(i * i % 5);
    ask_product("fma", 0);
    ck_assert(found("formula") && !found("sum-order") && !found("offset"));
    for (size_t i = 0; i < M * L; i++)
        d[i] = i % 2 ? 0.0f : -0.0f;
    ask_product("fma", 0);
    ck_assert(found("zeros"));
    multiply(1, 0);
    for (size_t n = 0; n < L; n++) {
        const float kept = d[n];
        d[n] = d[2 * L + n];
        d[2 * L + n] = kept;
    }
    ask_product("fma", 0);
    ck_assert(found("rows-permuted"));
}

/* ---- products, beside other formulas ---- */

CASE("formulas", 20);

enum { N = 2400, SIDE = 20, M2 = 16, K2 = 44, L2 = 24 };

static float x[2 * N], y[N], bias[L2];

/* Numbers around one half, also negative. */
static void make_formula(void)
{
    uint64_t state = 11;
    for (size_t i = 0; i < 2 * N; i += 2) {
        double pair[2];
        test_normal_pair(&state, pair);
        x[i] = (float)(pair[0] + 0.5);
        x[i + 1] = (float)(pair[1] + 0.5);
    }
    for (size_t c = 0; c < L2; c++)
        bias[c] = (float)(0.5 * cos((double)c));
}

static mpsim_judge_array of(const char *role, const float *codes, size_t rows, size_t columns)
{
    return (mpsim_judge_array){role, mpsim_format_find("binary32"), codes, rows, columns};
}

static void judge_arrays(const char *like, const mpsim_judge_array *arrays, size_t n)
{
    char why[256] = "";
    ck_assert_msg(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, n, like, NULL, why, sizeof why) == MPSIM_OK, "%s", why);
}

static float bf16_of(float value)
{
    const mpsim_format *f = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (float)mpsim_decode(f, mpsim_encode_f32(f, &r, value, 0, NULL));
}

typedef struct product_fault {
    double bias, scale_a, scale_b; /* powers of the scales; how often the bias is added */
    int a_turned, b_turned, swapped, relu;
    size_t left_out;
} product_fault;

static float scale_a[M2 * 2], scale_b[L2];

/* d in y, of a in x and b in x + N: m x k and k x n; sums in binary64, rounded once. */
static void compute(size_t rows, size_t k, size_t n, product_fault f)
{
    const float *left = f.swapped ? x + N : x, *right = f.swapped ? x : x + N;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < n; c++) {
            double s = 0;
            for (size_t i = 0; i < k - f.left_out; i++)
                s += (double)left[f.a_turned ? i * k + r : r * k + i] *
                     (double)right[f.b_turned ? c * n + i : i * n + c];
            s = s * pow((double)scale_a[r], f.scale_a) * pow((double)scale_b[c], f.scale_b) + f.bias * (double)bias[c];
            y[r * n + c] = (float)(f.relu && s < 0 ? 0 : s);
        }
}

static void ask_formula(size_t rows, size_t k, size_t n, int has_bias, int has_scales)
{
    const mpsim_judge_array arrays[] = {
        of("a", x, rows, k), of("b", x + N, k, n), of("d", y, rows, n),
        of(has_bias ? "bias" : "scale_a", has_bias ? bias : scale_a, 1, has_bias ? n : rows),
        of("scale_b", scale_b, n, 1)};
    judge_arrays("fma", arrays, has_scales ? 5 : has_bias ? 4 : 3);
}

static void make_scales(void)
{
    make_formula();
    for (size_t i = 0; i < L2; i++) {
        scale_b[i] = 0.75f + (float)i;
        scale_a[i] = 3 - 0.1f * (float)i;
    }
}

TEST(products_by_other_formulas)
{
    make_scales();
    compute(M2, K2, L2, (product_fault){.bias = 1});
    ask_formula(M2, K2, L2, 1, 0);
    ck_assert(j.differ > 0 && found("sum-order"));
    ask_formula(M2, K2, L2, 0, 0);
    judged_has(&j, "offset", "of each column");
    compute(M2, K2, L2, (product_fault){.bias = 0});
    ask_formula(M2, K2, L2, 1, 0);
    judged_has(&j, "bias", "left out");
    compute(M2, K2, L2, (product_fault){.bias = 2});
    ask_formula(M2, K2, L2, 1, 0);
    judged_has(&j, "bias", "twice");
    compute(M2, K2, L2, (product_fault){.bias = 1, .relu = 1});
    ask_formula(M2, K2, L2, 1, 0);
    judged_has(&j, "epilogue", "ReLU");
    compute(M2, K2, L2, (product_fault){.left_out = 1});
    ask_formula(M2, K2, L2, 0, 0);
    judged_has(&j, "tail", "last product of");
    compute(M2, K2, L2, (product_fault){.left_out = K2 - 32});
    ask_formula(M2, K2, L2, 0, 0);
    judged_has(&j, "tail", "tile of 16");
    compute(SIDE, SIDE, SIDE, (product_fault){.b_turned = 1});
    ask_formula(SIDE, SIDE, SIDE, 0, 0);
    judged_has(&j, "operands", "b is taken as its transpose");
    compute(SIDE, SIDE, SIDE, (product_fault){.a_turned = 1});
    ask_formula(SIDE, SIDE, SIDE, 0, 0);
    judged_has(&j, "operands", "a is taken as its transpose");
    compute(SIDE, SIDE, SIDE, (product_fault){.swapped = 1});
    ask_formula(SIDE, SIDE, SIDE, 0, 0);
    judged_has(&j, "operands", "changed places");
    compute(SIDE, SIDE, SIDE, (product_fault){.bias = 0});
    for (size_t i = 0; i < SIDE * SIDE; i++)
        y[i] += bias[i / SIDE];
    ask_formula(SIDE, SIDE, SIDE, 1, 0);
    judged_has(&j, "bias", "along the rows");
}

TEST(parts_of_a_product_in_bf16)
{
    const size_t depth = 96;
    make_scales();
    for (size_t i = 0; i < 2 * N; i++)
        x[i] = bf16_of(x[i]);
    for (size_t r = 0; r < M2; r++)
        for (size_t c = 0; c < L2; c++) {
            float s = 0;
            for (size_t p = 0; p < 3; p++) {
                double part = 0;
                for (size_t k = p * 32; k < p * 32 + 32; k++)
                    part += (double)x[r * depth + k] * (double)x[N + k * L2 + c];
                s = bf16_of(s + bf16_of((float)part));
            }
            y[r * L2 + c] = s;
        }
    ask_formula(M2, depth, L2, 0, 0);
    ck_assert(strstr(j.nearest, "split=3+partials=bf16"));
    judged_has(&j, "format", "whose sums are kept in bf16");
}

TEST(products_with_scales)
{
    static const struct {
        product_fault f;
        const char *words;
    } faults[] = {{{.scale_a = 0}, "both scales"},
                  {{.scale_b = 1}, "scale of a"},
                  {{.scale_a = 1}, "scale of b"},
                  {{.scale_a = -1, .scale_b = -1}, "divided"},
                  {{.scale_a = 2, .scale_b = 2}, "twice"}};
    make_scales();
    compute(M2, K2, L2, (product_fault){.scale_a = 1, .scale_b = 1});
    ask_formula(M2, K2, L2, 0, 1);
    ck_assert(j.differ > 0 && found("sum-order"));
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        compute(M2, K2, L2, faults[i].f);
        ask_formula(M2, K2, L2, 0, 1);
        judged_has(&j, "scale", faults[i].words);
    }
    for (size_t i = 0; i < M2 * L2; i++) { /* (s b) a in binary32, of sums that are exact */
        x[i] = (float)(i % 7);
        x[N + i] = (float)(i % 5);
    }
    for (size_t i = 0; i < M2 * L2; i++) {
        const size_t r = i / L2, c = i % L2;
        float s = 0;
        for (size_t k = 0; k < 8; k++)
            s += x[r * 8 + k] * x[N + k * L2 + c];
        y[i] = s * scale_b[c] * scale_a[r];
    }
    const mpsim_judge_array arrays[] = {of("a", x, M2, 8), of("b", x + N, 8, L2), of("d", y, M2, L2),
                                        of("scale_a", scale_a, M2, 1), of("scale_b", scale_b, 1, L2)};
    judge_arrays(NULL, arrays, 5);
    ck_assert(j.differ == 0 && judged_in_class(&j, "fma+scales=b-a"));
}

/* ---- torch's own products on a CPU ---- */

CASE("torch", 20);

enum { DEEP = 2400, TM = 3, TL = 4 };

static float deep_a[TM * DEEP], deep_b[DEEP * TL], deep_d[TM * TL];

static void make_deep(void)
{
    uint64_t state = 21;
    double pair[2];
    for (size_t i = 0; i < TM * DEEP; i++) {
        test_normal_pair(&state, pair);
        deep_a[i] = (float)pair[0];
    }
    for (size_t i = 0; i < DEEP * TL; i++) {
        test_normal_pair(&state, pair);
        deep_b[i] = (float)pair[0];
    }
}

/* Chains of fma over blocks, up to an end of 0, added in order; where a block begins a sum of its own, that is added in the end. */
static float sum_of(size_t row, size_t column, size_t depth, const size_t *ends, const int *begins)
{
    float sum = 0, own = 0;
    for (size_t i = 0, k = 0; ends[i]; i++) {
        float s = 0;
        for (; k < ends[i]; k++)
            s = fmaf(deep_a[row * depth + k], deep_b[k * TL + column], s);
        if (begins[i] && i) {
            sum = own;
            own = s;
        } else
            own = i ? own + s : s;
    }
    return begins[0] > 1 ? sum + own : own;
}

/* MKL: blocks of 384, of which the last two are alike where less than 768 are left; two threads have a half each. begins[0]: how many sums. */
static const struct {
    const char *row;
    size_t depth, ends[8];
    int begins[8];
} mkl[] = {{"mkl-fp32", 1000, {384, 692, 1000}, {1}},
           {"mkl-fp32", 1152, {384, 768, 1152}, {1}},
           {"mkl-fp32", 1150, {384, 767, 1150}, {1}},
           {"mkl-fp32:parts=2", 1601, {384, 593, 801, 1185, 1393, 1601}, {2, 0, 0, 1}},
           {"mkl-fp32:parts=2", 2300, {384, 767, 1150, 1534, 1917, 2300}, {2, 0, 0, 1}}};

TESTS(sums_of_mkl, sizeof mkl / sizeof mkl[0])
{
    const size_t depth = mkl[_i].depth;
    make_deep();
    for (size_t i = 0; i < TM * TL; i++)
        deep_d[i] = sum_of(i / TL, i % TL, depth, mkl[_i].ends, mkl[_i].begins);
    const mpsim_judge_array arrays[] = {of("a", deep_a, TM, depth), of("b", deep_b, depth, TL),
                                        of("d", deep_d, TM, TL)};
    judge_arrays(NULL, arrays, 3);
    ck_assert_msg(j.differ == 0, "%s: %d", mkl[_i].row, (int)j.differ);
    ck_assert(judged_in_class(&j, mkl[_i].row) && !judged_in_class(&j, "fma"));
    judge_arrays("fma", arrays, 3);
    ck_assert(j.differ > 0 && j.nearest_differ == 0);
    judged_has(&j, "sum-order", mkl[_i].begins[0] > 1 ? "in 2 parts" : mkl[_i].row);
}

/* oneDNN: its rule for AVX512, and for AMX with a depth that is cut. */
static const struct {
    const char *product, *row;
    size_t depth;
} onednn[] = {{"torch-mm:avx512", "avx512-bf16-fp32:chunk=512", 960},
              {"torch-mm:avx512", "avx512-bf16-fp32:chunk=1024", 1504},
              {"torch-mm:avx512:left-transposed", "avx512-bf16-fp32:chunk=512", 1504},
              {"torch-mm:amx:chunk=384", "amx-bf16-fp32+chunk=384", 1152},
              {"torch-mm:amx:part=576", "amx-bf16-fp32+split=2", 1152},
              {"torch-mm:amx:part=576:chunk=288", "amx-bf16-fp32+chunk=288+split=2", 1152}};

TESTS(sums_of_onednn, sizeof onednn / sizeof onednn[0])
{
    static uint16_t a16[TM * DEEP], b16[DEEP * TL * 2], d16[TM * TL * 2];
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    const size_t depth = onednn[_i].depth, columns = TL * 2;
    const mpsim_matrix ma = {bf16, a16, depth, 0}, mb = {bf16, b16, columns, 0};
    mpsim_torch_mm mm;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    make_deep();
    for (size_t i = 0; i < TM * DEEP; i++)
        a16[i] = (uint16_t)mpsim_encode_f32(bf16, &r, deep_a[i], 0, NULL);
    for (size_t i = 0; i < depth * columns; i++)
        b16[i] = (uint16_t)mpsim_encode_f32(bf16, &r, deep_b[i * 7 % (size_t)(DEEP * TL)], 0, NULL);
    for (size_t k = depth / 2; k < depth; k++) { /* all products cancel: what is left is rounding */
        for (size_t i = 0; i < TM; i++)
            a16[i * depth + k] = a16[i * depth + depth - 1 - k];
        for (size_t i = 0; i < columns; i++)
            b16[k * columns + i] = b16[(depth - 1 - k) * columns + i] ^ 0x8000;
    }
    ck_assert(mpsim_torch_mm_parse(&mm, onednn[_i].product) == MPSIM_OK);
    ck_assert(mpsim_torch_mm_run(&mm, TM, columns, depth, &ma, &mb, d16, NULL) == MPSIM_OK);
    const mpsim_judge_array arrays[] = {
        {"a", bf16, a16, TM, depth}, {"b", bf16, b16, depth, columns}, {"d", bf16, d16, TM, columns}};
    judge_arrays(onednn[_i].row, arrays, 3);
    ck_assert_msg(j.differ == 0, "%s: %d", onednn[_i].row, (int)j.differ);
    ck_assert_msg(judged_in_class(&j, onednn[_i].row), "%s", j.class_rows[0]);
}

/* Lanes of the judge beside those of mpsim_gemm, with subnormal numbers, zeros and infinities; a chunk that ends before the depth. */
static const struct {
    const char *row;
    size_t depth;
} of_lanes[] = {{"fma:chunk=77:order=lanes:L=8", 77},
                {"sequential:chunk=96:order=lanes:L=5", 83},
                {"fma:chunk=64:order=lanes:L=64", 64},
                {"sequential:chunk=40:order=lanes:L=4", 130}};

TESTS(sums_of_lanes, sizeof of_lanes / sizeof of_lanes[0])
{
    const mpsim_format *f = mpsim_format_find("binary32");
    const size_t depth = of_lanes[_i].depth;
    const mpsim_matrix ma = {f, deep_a, depth, 0}, mb = {f, deep_b, TL, 0};
    mpsim_model m;
    make_deep();
    for (size_t i = 0; i < TM * depth; i++)
        deep_a[i] *= i < depth ? 1 : i % 3 ? 0x1p-140f : -0.0f;
    deep_a[2 * depth + 5] = HUGE_VALF;
    for (size_t k = 0; k < depth; k++)
        deep_b[k * TL + 3] = k % 2 ? -0.0f : 0;
    ck_assert(mpsim_model_parse(&m, of_lanes[_i].row) == MPSIM_OK);
    ck_assert(mpsim_gemm(&m, TM, TL, depth, &ma, &mb, NULL, deep_d, TL, NULL, NULL) == MPSIM_OK);
    const mpsim_judge_array arrays[] = {of("a", deep_a, TM, depth), of("b", deep_b, depth, TL),
                                        of("d", deep_d, TM, TL)};
    judge_arrays(of_lanes[_i].row, arrays, 3);
    ck_assert_msg(j.differ == 0, "%s: %d", of_lanes[_i].row, (int)j.differ);
}

TEST(bad_rows_of_mkl)
{
    static const char *const bad[] = {"mkl-fp32:parts=3", "mkl-fp32+split=2", "mkl",        "mkl-fp32:chunk=8",
                                      "mkl-fp32+chunk=8", "fma+chunk=0",      "fma+chunk=x"};
    const mpsim_judge_array arrays[] = {of("a", deep_a, TM, 8), of("b", deep_b, 8, TL), of("d", deep_d, TM, TL)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, bad[i], NULL, NULL, 0), MPSIM_ENOTFOUND);
}

TEST_MAIN("judge-products");
