/* library_gemm.h -- random products for the tests of mpsim_cuda_gemm: arrays of any strides, and the comparison with
 * mpsim_product_run in every bit. */
#pragma once

#include "tap.h"

#include "../../gpu/include/mpsim/cudagemm.h"
#include "../../gpu/kernels/cuda.cuh"

#include <mpsim/mpsim.h>

#include <string>
#include <vector>

inline uint64_t test_seed = 1;

inline uint64_t random_word()
{
    test_seed = test_seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = test_seed ^ test_seed >> 29;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

inline size_t random_below(size_t n)
{
    return static_cast<size_t>(random_word() % n);
}

inline int chance(size_t one_in)
{
    return random_below(one_in) == 0;
}

/* What numbers are like. */
enum test_numbers {
    TEST_BELL,     /* of moderate size, some zeros */
    TEST_SPREAD,   /* any exponent               */
    TEST_ANY_BITS, /* NaN and infinities, too    */
    TEST_TIES      /* near powers of two not far from 1: sums that cancel, ties */
};

/* Products of two numbers are near the largest of binary32 (1; most are positive then), its smallest (-1), or 1 (0); if the format has
 * such exponents. Exponents differ by less than `far`. Zeros come in runs, too. */
inline int test_center = 0, test_far = 5, test_zeros = 0;

inline uint64_t near_power_of_two(const mpsim_format *f, const mpsim_rounding *r)
{
    const int most = f->ebits < 8 ? (1 << (f->ebits - 1)) - 1 : 126, bits = 1 + static_cast<int>(random_below(12));
    const int far =
        chance(3) ? 0
                  : static_cast<int>(random_below(static_cast<size_t>(test_center > 0 && test_far < 9 ? 2 : test_far)));
    const int e = test_center * most / 2 - (test_center > 0) + (test_center <= 0 && chance(2) ? far : -far);
    const float x = ldexpf(1, e < most ? e : most - 1), y = chance(2) ? x : x + ldexpf(chance(2) ? x : -x, -bits);
    if (test_zeros > 0 ? test_zeros-- : chance(60) ? (test_zeros = static_cast<int>(random_below(60))) : 0)
        return mpsim_encode_f32(f, r, chance(2) ? 0.0f : -0.0f, 0, NULL);
    return mpsim_encode_f32(f, r, chance(test_center > 0 ? 6 : 2) ? -y : y, 0, NULL);
}

inline uint64_t random_code(const mpsim_format *f, test_numbers how)
{
    const uint64_t bits = random_word() & (((uint64_t)2 << (f->bits - 1)) - 1);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (chance(12))
        return mpsim_encode_f32(f, &r, chance(2) ? 0.0f : -0.0f, 0, NULL);
    if (how == TEST_TIES && !chance(40))
        return near_power_of_two(f, &r);
    if (how == TEST_ANY_BITS && chance(8))
        return bits;
    if (how != TEST_BELL || chance(16)) {
        if (mpsim_classify(f, bits) > MPSIM_CLASS_INF)
            return bits;
    }
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += static_cast<float>(random_word() >> 40) * 0x1p-24f - 0.5f;
    return mpsim_encode_f32(f, &r, sum, 0, NULL);
}

inline void store_at(void *codes, size_t bytes, int64_t i, uint64_t code)
{
    memcpy(static_cast<char *>(codes) + i * static_cast<int64_t>(bytes), &code, bytes);
}

/* An array in the device's memory, which is the host's on the executor. */
struct test_array {
    mpsim_format format;
    mpsim_stack x;
    unsigned char *memory;
    size_t bytes;

    test_array() : memory(nullptr), bytes(0)
    {
        memset(&x, 0, sizeof x);
        memset(&format, 0, sizeof format);
    }
    test_array(const test_array &) = delete;
    test_array &operator=(const test_array &) = delete;
    ~test_array()
    {
        (void)cudaFree(memory);
    }

    /* strange: dimensions in any order of memory, gaps, negative strides; else row after row. */
    void shape(const char *name, const std::vector<size_t> &dims, int strange)
    {
        int order[MPSIM_STACK_RANK];
        int64_t step = 1, first = 0;
        if (mpsim_format_parse(&format, name) != MPSIM_OK)
            printf("Bail out! %s\n", name);
        x.format = &format;
        x.rank = static_cast<uint32_t>(dims.size());
        const int rank = static_cast<int>(x.rank);
        for (int i = 0; i < rank; i++)
            order[i] = i;
        for (int i = 0; strange && i + 1 < rank; i++)
            std::swap(order[i], order[i + static_cast<int>(random_below(static_cast<size_t>(rank - i)))]);
        for (int i = rank; i-- > 0;) {
            const int d = order[i];
            x.shape[d] = dims[static_cast<size_t>(d)];
            x.strides[d] = step;
            step = step * static_cast<int64_t>(x.shape[d]) + (strange ? static_cast<int64_t>(random_below(3)) : 0);
            if (strange && chance(4)) {
                first += x.strides[d] * (static_cast<int64_t>(x.shape[d]) - 1);
                x.strides[d] = -x.strides[d];
            }
        }
        bytes = static_cast<size_t>(step + 1) * mpsim_format_code_bytes(&format);
        (void)cudaMalloc(&memory, bytes);
        memset(memory, 0xee, bytes);
        x.codes = memory + first * static_cast<int64_t>(mpsim_format_code_bytes(&format));
    }

    void fill(test_numbers how)
    {
        size_t n = 1;
        for (uint32_t i = 0; i < x.rank; i++)
            n *= x.shape[i];
        for (size_t e = 0; e < n; e++) {
            size_t rest = e;
            int64_t at = 0;
            for (uint32_t i = x.rank; i-- > 0; rest /= x.shape[i])
                at += static_cast<int64_t>(rest % x.shape[i]) * x.strides[i];
            store_at(x.codes, mpsim_format_code_bytes(&format), at, random_code(&format, how));
        }
    }

    /* Rows of finite numbers, a third of them with two infinities in different places, of the same sign or not. */
    void few_infinities()
    {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        for (size_t i = 0; i < x.shape[0]; i++) {
            fill_row(i);
            for (int k = 0; i % 3 == 0 && k < 2; k++)
                store_at(x.codes, mpsim_format_code_bytes(&format),
                         static_cast<int64_t>(i) * x.strides[0] +
                             static_cast<int64_t>(random_below(x.shape[1])) * x.strides[1],
                         mpsim_encode_f32(&format, &r, chance(2) ? HUGE_VALF : -HUGE_VALF, 0, NULL));
        }
    }

    void fill_row(size_t i)
    {
        for (size_t k = 0; k < x.shape[1]; k++)
            store_at(x.codes, mpsim_format_code_bytes(&format),
                     static_cast<int64_t>(i) * x.strides[0] + static_cast<int64_t>(k) * x.strides[1],
                     random_code(&format, TEST_BELL));
    }

    /* Number k of each row is given[2 k]. */
    void give(const double *given)
    {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        for (size_t i = 0; i < x.shape[0]; i++)
            for (size_t k = 0; k < x.shape[1]; k++)
                store_at(x.codes, mpsim_format_code_bytes(&format),
                         static_cast<int64_t>(i) * x.strides[0] + static_cast<int64_t>(k) * x.strides[1],
                         mpsim_encode_f64(&format, &r, given[2 * k], 0, NULL));
    }

    /* The same places and bytes again. */
    void copy(const test_array &of)
    {
        format = of.format;
        x = of.x;
        x.format = &format;
        bytes = of.bytes;
        (void)cudaMalloc(&memory, bytes);
        memcpy(memory, of.memory, bytes);
        x.codes = memory + (static_cast<unsigned char *>(of.x.codes) - of.memory);
    }
};

/* A product. Names are formats; NULL: none, or as it is. */
struct test_product {
    const char *model;
    const char *a, *b, *d;
    size_t rows, columns, depth;
    const char *a_as, *b_as; /* what is multiplied */
    mpsim_round_mode mode;   /* of that */
    const char *numbers, *bias, *add;
    int start, counts, strange, batch, factors;
    int infinities; /* a few in each matrix, beside finite numbers */
    size_t limit;
    float factor, add_factor, inverse;
    test_numbers how;
    int center, far;     /* of TEST_TIES; far = 0: at random */
    const double *given; /* or NULL: products of every row and column, by pairs */
};

inline test_product product_of(const char *model, const char *a, const char *b, const char *d, size_t rows,
                               size_t columns, size_t depth)
{
    test_product t = {};
    t.model = model;
    t.a = a;
    t.b = b;
    t.d = d;
    t.rows = rows;
    t.columns = columns;
    t.depth = depth;
    t.factor = t.add_factor = t.inverse = 1;
    t.how = TEST_SPREAD;
    return t;
}

inline std::string describe(const test_product &t)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "%s: %s%s%s x %s%s%s -> %s%s%s, %zu x %zu x %zu, limit %zu, bias %s, add %s, start %d, counts %d, strange %d, "
        "batch %d, factors %d, inverse %g, numbers %d",
        t.model, t.a, t.a_as ? " as " : "", t.a_as ? t.a_as : "", t.b, t.b_as ? " as " : "", t.b_as ? t.b_as : "", t.d,
        t.numbers ? " of " : "", t.numbers ? t.numbers : "", t.rows, t.columns, t.depth, t.limit, t.bias ? t.bias : "-",
        t.add ? t.add : "-", t.start, t.counts, t.strange, t.batch, t.factors, static_cast<double>(t.inverse), t.how);
    return text;
}

/* Factors of blocks, of an array without gaps. */
struct test_factors {
    float *at = nullptr;
    mpsim_format scales;

    ~test_factors()
    {
        (void)cudaFree(at);
    }
    void set(mpsim_operand *o, const mpsim_model *m, size_t block, size_t rows, size_t depth, size_t matrices)
    {
        o->block_rows = m->block ? 1 : 1 + random_below(3);
        o->block_cols = block;
        o->grid_rows = (rows - 1) / o->block_rows + 1;
        o->grid_cols = (depth - 1) / block + 1;
        const size_t n = o->grid_rows * o->grid_cols * matrices;
        (void)cudaMalloc(&at, n * sizeof *at);
        if (m->scales) {
            char word[32] = "";
            (void)sscanf(m->scales, "%31s", word);
            (void)mpsim_format_parse(&scales, word);
            o->scales = &scales;
        }
        for (size_t i = 0; i < n; i++)
            at[i] = ldexpf(m->scales && !strchr(m->scales, '3') ? 1 : 1 + static_cast<float>(random_below(8)) / 8,
                           static_cast<int>(random_below(9)) - 4);
        for (size_t i = 0; m->scales && i < n; i++)
            at[i] = chance(30) ? 0 : chance(99) ? NAN : at[i];
        o->factors = at;
    }
};

inline std::vector<size_t> dims_of(int batch, int which, size_t rows, size_t cols)
{
    /* batch 1: three matrices each; 2: 2 x 3, of which b has 3 and a has 2 x 1; 3: b has one */
    switch (batch) {
    case 1:
        return {3, rows, cols};
    case 2:
        return which == 0   ? std::vector<size_t>{2, 1, rows, cols}
               : which == 1 ? std::vector<size_t>{3, rows, cols}
                            : std::vector<size_t>{2, 3, rows, cols};
    case 3:
        return which == 1 ? std::vector<size_t>{rows, cols} : std::vector<size_t>{3, rows, cols};
    default:
        return {rows, cols};
    }
}

/* How the statuses, d, what lies around it, and the counts of both compare: "" if they are equal. */
inline std::string compare_product(const test_product &t, mpsim_status *status = nullptr, std::string *kernel = nullptr)
{
    mpsim_model m;
    test_array a, b, d, want, bias, add, start;
    test_factors fa, fb;
    mpsim_format a_as, b_as, numbers;
    mpsim_entered counts[2] = {{1, 2, 3, 4}, {1, 2, 3, 4}}, *on_device = nullptr;
    mpsim_rng rng = {7, 9, 11};
    float *inverse = nullptr;
    char why[256] = "";
    mpsim_product p;
    if (mpsim_model_parse(&m, t.model) != MPSIM_OK)
        return "no model";
    a.shape(t.a, dims_of(t.batch, 0, t.rows, t.depth), t.strange && !t.factors);
    b.shape(t.b, dims_of(t.batch, 1, t.columns, t.depth), t.strange && !t.factors);
    d.shape(t.d, dims_of(t.batch, 2, t.rows, t.columns), t.strange);
    test_center = t.far ? t.center : chance(2) ? 0 : static_cast<int>(random_below(3)) - 1;
    test_far = t.far ? t.far : chance(2) ? 5 : 29;
    a.fill(t.how);
    b.fill(t.how);
    if (t.given) {
        a.give(t.given);
        b.give(t.given + 1);
    }
    if (t.infinities)
        a.few_infinities();
    want.copy(d);
    mpsim_cuda_operand oa = {}, ob = {};
    if (t.a_as)
        (void)mpsim_format_parse(&a_as, t.a_as);
    if (t.b_as)
        (void)mpsim_format_parse(&b_as, t.b_as);
    mpsim_operand_init(&oa.of, &a.x, t.a_as ? &a_as : NULL, t.mode);
    mpsim_operand_init(&ob.of, &b.x, t.b_as ? &b_as : NULL, t.mode);
    oa.of.inverse = t.inverse;
    (void)cudaMalloc(&inverse, sizeof *inverse);
    *inverse = t.inverse;
    ob.inverse = t.inverse != 1 ? inverse : nullptr; /* a's on the host, b's on the device */
    if (t.factors) {
        fa.set(&oa.of, &m, static_cast<size_t>(t.factors), t.rows, t.depth, t.batch == 0 ? 1 : t.batch == 2 ? 2 : 3);
        fb.set(&ob.of, &m, static_cast<size_t>(t.factors), t.columns, t.depth, t.batch == 1 || t.batch == 2 ? 3 : 1);
    }
    mpsim_product_init(&p);
    p.model = &m;
    p.d = &d.x;
    if (t.numbers) {
        (void)mpsim_format_parse(&numbers, t.numbers);
        p.numbers = &numbers;
    }
    if (t.bias) {
        bias.shape(t.bias, dims_of(t.batch, 2, chance(2) ? 1 : t.rows, chance(4) ? 1 : t.columns), t.strange);
        bias.fill(t.how);
        p.bias = &bias.x;
    }
    if (t.add) {
        add.shape(t.add, dims_of(t.batch == 2 ? 0 : t.batch, 0, t.rows, t.columns), t.strange);
        add.fill(t.how);
        p.add = &add.x;
    }
    if (t.start) {
        start.shape(m.result.format.name, dims_of(t.batch, 2, t.rows, chance(4) ? 1 : t.columns), t.strange);
        start.fill(t.how);
        p.start = &start.x;
    }
    p.factor = t.factor;
    p.add_factor = t.add_factor;
    p.depth_limit = t.limit;
    p.rng = t.factors ? NULL : &rng;
    (void)cudaMalloc(&on_device, sizeof *on_device);
    memcpy(static_cast<void *>(on_device), counts, sizeof *counts);
    p.counts = t.counts ? on_device : NULL;
    mpsim_cuda_call call = {};
    call.why = why;
    call.why_size = sizeof why;
    call.bytes = mpsim_cuda_gemm_room(&p, &oa, &ob);
    if (call.bytes)
        (void)cudaMalloc(reinterpret_cast<unsigned char **>(&call.room), call.bytes);
    const char *const by = mpsim_cuda_gemm_kernel(&p, &oa, &ob);
    if (kernel)
        *kernel = by ? by : "";
    const mpsim_status got = mpsim_cuda_gemm(&p, &oa, &ob, &call);
    memcpy(static_cast<void *>(counts + 1), on_device, sizeof *counts);
    mpsim_operand whole_a = oa.of, whole_b = ob.of;
    if (ob.inverse)
        whole_b.inverse = t.inverse;
    p.a = &whole_a;
    p.b = &whole_b;
    p.d = &want.x;
    p.counts = t.counts ? counts : NULL;
    const mpsim_status wanted = mpsim_product_run(&p, NULL);
    (void)cudaFree(call.room);
    (void)cudaFree(inverse);
    (void)cudaFree(on_device);
    if (status)
        *status = got;
    if (got != wanted)
        return std::string("status ") + mpsim_status_string(got) + ", not " + mpsim_status_string(wanted) + ": " + why;
    const size_t size = mpsim_format_code_bytes(&d.format);
    for (size_t i = 0; i < d.bytes; i++)
        if (d.memory[i] != want.memory[i]) {
            uint64_t x = 0, y = 0;
            memcpy(&x, d.memory + i / size * size, size);
            memcpy(&y, want.memory + i / size * size, size);
            char text[128];
            snprintf(text, sizeof text, "code %zu of the memory of d: %llx, not %llx", i / size,
                     static_cast<unsigned long long>(x), static_cast<unsigned long long>(y));
            return text;
        }
    if (t.counts && memcmp(&counts[0], &counts[1], sizeof counts[0]) != 0)
        return "counts";
    return "";
}
