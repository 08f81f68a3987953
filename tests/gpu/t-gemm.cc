/* t-gemm.cc -- the kernels of matrix products on the host executor, whose tensor cores are the
 * models: every element is what mpsim_gemm gives, in every bit, and so are the counters. */
extern "C" {
#include "support/support.h"
}

#include "../../gpu/kernels/gemm_path.cuh"

#include <mpsim/mpsim.h>

#include <string>
#include <vector>

/* ---- a product, on the device and by the library ---- */

struct problem {
    const char *model;
    int sm;
    gpu_gemm_path path;
    const char *fa, *fb, *fd;
    size_t rows, columns, depth, limit;
    int transposed_a, transposed_b;
    float factor;
    const char *bias;
    size_t more;   /* elements from line to line that belong to nobody */
    size_t offset; /* elements before the first */
    int specials;  /* NaN and infinities among the operands */
};

static uint64_t seed;
static uint64_t values, mismatches, odd;

static const mpsim_format *format_of(const char *name)
{
    const mpsim_format *f = mpsim_format_find(name);
    ck_assert_ptr_nonnull(f);
    return f;
}

/* A bell, zeros, now and then a number of any exponent; every bit pattern with specials. */
static uint64_t random_code(const mpsim_format *f, int specials)
{
    const uint64_t r = test_random(&seed);
    mpsim_rounding to;
    mpsim_rounding_init(&to, MPSIM_ROUND_NEAREST_EVEN);
    if (r % 16 == 0)
        return 0;
    if (r % 16 == 1 || (specials && r % 64 == 3)) {
        const uint64_t code = test_random(&seed) & (((uint64_t)2 << (f->bits - 1)) - 1);
        return specials || mpsim_classify(f, code) > MPSIM_CLASS_INF ? code : 0;
    }
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += static_cast<float>(test_random(&seed) >> 40) * 0x1p-24f - 0.5f;
    return mpsim_encode_f32(f, &to, sum, 0, NULL);
}

/* Codes in the device's memory, and on the host (both begin at the first element). */
struct array {
    size_t bytes; /* of a code */
    std::vector<unsigned char> host;
    unsigned char *device;

    array(const mpsim_format *f, size_t n, int filled, int specials)
        : bytes(mpsim_format_code_bytes(f)), host(n * bytes + 16, 0xee)
    {
        for (size_t i = 0; filled && i < n; i++)
            code_store(&host[i * bytes], bytes, random_code(f, specials));
        host.resize(n * bytes);
        ck_assert_int_eq(cudaMalloc(&device, n * bytes), cudaSuccess);
        cudaMemcpy(device, host.data(), n * bytes, cudaMemcpyHostToDevice);
    }
    ~array()
    {
        cudaFree(device);
    }
    array(const array &) = delete;
    array &operator=(const array &) = delete;
};

static std::string name_of(const problem &p)
{
    char text[256];
    snprintf(text, sizeof text,
             "%s sm_%d path %d %s x %s -> %s, %zu x %zu x %zu limit %zu, "
             "transposed %d %d, more %zu offset %zu",
             p.model, p.sm, p.path, p.fa, p.fb, p.fd, p.rows, p.columns, p.depth, p.limit, p.transposed_a,
             p.transposed_b, p.more, p.offset);
    return text;
}

static mpsim_matrix matrix(const mpsim_format *f, const unsigned char *codes, size_t offset, size_t stride,
                           int transposed)
{
    return mpsim_matrix{f, codes + offset * mpsim_format_code_bytes(f), stride, transposed};
}

/* What the result should be; the counters are added up. */
static void expected(const problem &p, const mpsim_model *m, const mpsim_matrix *a, const mpsim_matrix *b,
                     const mpsim_format *fd, const array *bias, std::vector<uint32_t> *codes, uint64_t counts[4])
{
    std::vector<float> s(p.rows * p.columns);
    mpsim_rounding to;
    mpsim_rounding_init(&to, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert_int_eq(
        mpsim_gemm(m, p.rows, p.columns, p.limit ? p.limit : p.depth, a, b, NULL, s.data(), p.columns, NULL, NULL),
        MPSIM_OK);
    for (size_t i = 0; i < s.size(); i++) {
        float x = s[i];
        if (p.factor != 1)
            x = x * p.factor;
        if (bias) {
            double y;
            mpsim_decode_array(format_of(p.bias), &y, &bias->host[i % p.columns * bias->bytes], 1);
            x = x + static_cast<float>(y);
        }
        unsigned flags;
        const uint64_t code = mpsim_encode_f32(fd, &to, x, 0, &flags);
        const mpsim_class c = mpsim_classify(fd, code);
        (*codes)[i] = static_cast<uint32_t>(code);
        counts[0] += isfinite(x) && x != 0;
        counts[1] += isfinite(x) && x != 0 && c == MPSIM_CLASS_ZERO;
        counts[2] += isfinite(x) && (flags & MPSIM_FLAG_OVERFLOW);
        counts[3] += c == MPSIM_CLASS_NAN || c == MPSIM_CLASS_INF;
    }
}

static void compare(const problem &p, const mpsim_format *fd, const array &d, size_t stride,
                    const std::vector<uint32_t> &want)
{
    uint64_t wrong = 0, first = 0;
    for (size_t i = 0; i < want.size(); i++) {
        const size_t row = i / p.columns, column = i % p.columns;
        const uint64_t got = code_load(&d.host[(row * stride + column) * d.bytes], d.bytes);
        const int both_nan = mpsim_classify(fd, got) == MPSIM_CLASS_NAN &&
                             mpsim_classify(fd, want[i]) == MPSIM_CLASS_NAN;
        if (got != want[i] && !both_nan && wrong++ == 0)
            first = i;
        odd += got != want[i] && both_nan;
    }
    values += want.size();
    mismatches += wrong;
    if (wrong)
        printf("# %s: %llu wrong, first (%zu, %zu)\n", name_of(p).c_str(), static_cast<unsigned long long>(wrong),
               static_cast<size_t>(first) / p.columns, static_cast<size_t>(first) % p.columns);
    ck_assert_msg(wrong == 0, "%s", name_of(p).c_str());
    /* nothing between the rows has been touched */
    for (size_t i = 0; i < d.host.size() / d.bytes; i++)
        if (i % stride >= p.columns)
            ck_assert_uint_eq(d.host[i * d.bytes], 0xee);
}

static void run(const problem &p)
{
    mpsim_model m;
    char why[256] = "";
    const mpsim_format *fa = format_of(p.fa), *fb = format_of(p.fb), *fd = format_of(p.fd);
    ck_assert_int_eq(mpsim_model_parse(&m, p.model), MPSIM_OK);
    const size_t sa = (p.transposed_a ? p.rows : p.depth) + p.more;
    const size_t sb = (p.transposed_b ? p.depth : p.columns) + p.more;
    const size_t sd = p.columns + p.more;
    array a(fa, sa * (p.transposed_a ? p.depth : p.rows) + p.offset, 1, p.specials);
    array b(fb, sb * (p.transposed_b ? p.columns : p.depth) + p.offset, 1, p.specials);
    array d(fd, sd * p.rows, 0, 0);
    const mpsim_format *fbias = format_of(p.bias ? p.bias : "binary32");
    array bias(fbias, p.columns, 1, 0);
    gpu_product g = {};
    unsigned long long *counts;
    uint64_t got[4], want[4] = {1, 2, 3, 4};
    ck_assert_int_eq(cudaMalloc(&counts, sizeof want), cudaSuccess);
    cudaMemcpy(counts, want, sizeof want, cudaMemcpyHostToDevice);
    g.model = &m;
    g.rows = p.rows;
    g.columns = p.columns;
    g.depth = p.depth;
    g.depth_limit = p.limit;
    g.a = matrix(fa, a.device, p.offset, sa, p.transposed_a);
    g.b = matrix(fb, b.device, p.offset, sb, p.transposed_b);
    g.factor = p.factor;
    g.bias_format = fbias;
    g.bias = p.bias ? bias.device : NULL;
    g.format = fd;
    g.d = d.device;
    g.d_stride = sd;
    g.counts = counts;
    const int status = gpu_gemm(&g, p.sm, p.path, why, sizeof why);
    ck_assert_msg(status == 0, "%s: %s", name_of(p).c_str(), why);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
    cudaMemcpy(d.host.data(), d.device, d.host.size(), cudaMemcpyDeviceToHost);
    cudaMemcpy(got, counts, sizeof got, cudaMemcpyDeviceToHost);
    cudaFree(counts);

    std::vector<uint32_t> codes(p.rows * p.columns);
    g.a = matrix(fa, a.host.data(), p.offset, sa, p.transposed_a);
    g.b = matrix(fb, b.host.data(), p.offset, sb, p.transposed_b);
    expected(p, &m, &g.a, &g.b, fd, p.bias ? &bias : NULL, &codes, want);
    compare(p, fd, d, sd, codes);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(got[i] == want[i], "%s: counter %d", name_of(p).c_str(), i);
}

/* Both ways of each operand. */
static void run_transposed(problem p)
{
    for (int i = 0; i < 4; i++) {
        p.transposed_a = i / 2;
        p.transposed_b = i % 2;
        run(p);
    }
}

static void report(const char *what)
{
    printf("# %s: %llu values, %llu mismatches, %llu NaN of another payload, %llu steps\n", what,
           static_cast<unsigned long long>(values), static_cast<unsigned long long>(mismatches),
           static_cast<unsigned long long>(odd), static_cast<unsigned long long>(gpu_host_cores.dots));
}

/* ---- mma.sync, any shape ---- */

static const struct {
    const char *model, *fa, *fb, *fd, *bias;
    int sm;
} every_row[] = {
    {"ampere-fp16-fp32", "fp16", "fp16", "fp16", NULL, 80},
    {"ampere-bf16-fp32", "bf16", "bf16", "bf16", "binary32", 80},
    {"ampere-tf32-fp32", "tf32", "tf32", "binary32", NULL, 80},
    {"ada-fp16-fp32", "fp16", "fp16", "fp16", "fp16", 89},
    {"ada-bf16-fp32", "bf16", "bf16", "binary32", NULL, 89},
    {"ada-tf32-fp32", "tf32", "tf32", "tf32", NULL, 89},
    {"ada-fp8-fp32", "e4m3", "e5m2", "e4m3", NULL, 89},
    {"ada-fp8-fp32", "e5m2", "e5m2", "e5m2", "bf16", 89},
    {"hopper-fp16-fp32", "fp16", "fp16", "binary32", NULL, 90},
    {"hopper-bf16-fp32", "bf16", "bf16", "bf16", NULL, 90},
    {"hopper-tf32-fp32", "tf32", "tf32", "fp16", NULL, 90},
    {"hopper-mma-fp8-fp32", "e4m3", "e4m3", "bf16", NULL, 90},
    {"hopper-mma-fp8-fp32", "e5m2", "e4m3", "fp16", NULL, 90},
    {"blackwell-mma-fp8-fp32", "e4m3", "e5m2", "e5m2fnuz", NULL, 100},
    {"rtx-blackwell-tf32-fp32", "tf32", "tf32", "binary32", NULL, 120},
    {"rtx-blackwell-fp8-fp32", "e4m3", "e4m3", "e4m3fnuz", NULL, 120},
};

START_TEST(mma_every_row)
{
    for (const auto &r : every_row) {
        problem p = {r.model, r.sm, GPU_GEMM_MMA, r.fa, r.fb, r.fd, 19, 37, 45, 0, 0, 0, 1, r.bias, 3, 0, 0};
        run_transposed(p);
    }
    report("mma.sync");
}

START_TEST(mma_shapes)
{
    static const size_t shapes[][4] = {{1, 1, 1, 0},    {64, 64, 32, 0}, {65, 1, 33, 0}, {1, 66, 64, 7},
                                       {70, 67, 96, 0}, {2, 3, 0, 0},    {5, 9, 40, 31}, {7, 8, 17, 40}};
    for (const auto &s : shapes) {
        problem p = {"hopper-fp16-fp32",
                     90,
                     GPU_GEMM_MMA,
                     "fp16",
                     "fp16",
                     "fp16",
                     s[0],
                     s[1],
                     s[2],
                     s[3] < s[2] ? s[3] : 0,
                     0,
                     0,
                     0.37f,
                     "binary32",
                     1,
                     1,
                     1};
        run_transposed(p);
    }
    report("mma.sync");
}

/* ---- the fast kernel ---- */

START_TEST(fast)
{
    static const size_t shapes[][4] = {
        {128, 128, 32, 0}, {8, 16, 232, 0}, {136, 24, 40, 0}, {24, 136, 48, 37}, {3, 130, 9, 0}};
    for (const auto &s : shapes)
        for (unsigned which = 0; which < 4; which++) {
            const int bf16 = which / 2;
            if (!test_in_part(which, 2))
                continue;
            const char *f = bf16 ? "bf16" : "fp16";
            problem p = {bf16 ? "hopper-bf16-fp32" : "ampere-fp16-fp32",
                         bf16 ? 90 : 80,
                         which % 2 ? GPU_GEMM_SQUARE : GPU_GEMM_FAST,
                         f,
                         f,
                         f,
                         s[0],
                         s[1],
                         s[2],
                         s[3],
                         0,
                         0,
                         1,
                         NULL,
                         0,
                         8,
                         s[2] == 40};
            for (int i = 0; i < 4; i++) {
                p.transposed_a = i / 2;
                p.transposed_b = i % 2;
                const size_t a = p.transposed_a ? p.rows : p.depth;
                const size_t b = p.transposed_b ? p.depth : p.columns;
                if (a % 8 == 0 && b % 8 == 0)
                    run(p);
            }
        }
    report("fast");
}

/* ---- wgmma ---- */

START_TEST(wgmma)
{
    static const struct {
        const char *model, *fa, *fb;
    } rows90[] = {{"hopper-fp16-fp32", "fp16", "fp16"},         {"hopper-bf16-fp32", "bf16", "bf16"},
                  {"hopper-wgmma-fp8-fp32", "e4m3", "e4m3"},    {"hopper-wgmma-fp8-fp32", "e4m3", "e5m2"},
                  {"hopper-wgmma-fp8-fp32", "e5m2", "e4m3"},    {"hopper-wgmma-fp8-fp32", "e5m2", "e5m2"},
                  {"hopper-wgmma-fp8-promoted", "e5m2", "e4m3"}};
    unsigned index = 0;
    for (const auto &r : rows90) {
        if (!test_in_part(index++, 2))
            continue;
        problem p = {r.model, 90, GPU_GEMM_WGMMA, r.fa, r.fb, "fp16", 21, 45, 141, 0, 0, 0, 1, NULL, 0, 0, 0};
        run_transposed(p);
    }
    report("wgmma");
}

/* Contiguous depth and whole pieces: cp.async; more stages than there is room for. Promoted sums
 * take two stages a turn: an odd number, too. */
START_TEST(wgmma_stages)
{
    static const struct {
        const char *model, *format, *to;
        gpu_gemm_path path;
        size_t rows, columns, depth, limit;
    } rows[] = {
        {"hopper-wgmma-fp8-fp32", "e4m3", "bf16", GPU_GEMM_WGMMA, 130, 9, 1168, 0},
        {"hopper-fp16-fp32", "fp16", "fp16", GPU_GEMM_WGMMA, 130, 9, 584, 0},
        {"hopper-fp16-fp32", "fp16", "fp16", GPU_GEMM_WIDE, 4, 258, 392, 0},
        {"hopper-wgmma-fp8-fp32", "e5m2", "bf16", GPU_GEMM_WIDE, 33, 9, 640, 0},
        {"hopper-wgmma-fp8-promoted", "e5m2", "bf16", GPU_GEMM_WGMMA, 4, 9, 1000, 801},
        {"hopper-wgmma-fp8-promoted", "e4m3", "binary32", GPU_GEMM_WGMMA, 4, 9, 1024, 0},
        {"hopper-wgmma-fp8-promoted", "e4m3", "binary32", GPU_GEMM_WGMMA, 4, 9, 80, 0},
    };
    unsigned index = 0;
    for (const auto &r : rows) {
        if (!test_in_part(index++, 2))
            continue;
        const problem p = {r.model, 90, r.path, r.format, r.format, r.to, r.rows, r.columns, r.depth,
                           r.limit, 0,  1,      0.5f,     "bf16",   0,    16,     0};
        run(p);
    }
    report("wgmma");
}

/* ---- wgmma, operands by TMA ---- */

/* Pairs of tiles of rows, more tiles than clusters; stages more than there are places; tails of everything; results of every
 * way to store them. ways: the layouts of a and b, a bit each. */
START_TEST(tma)
{
    static const struct {
        const char *model, *fa, *fb, *to, *bias;
        size_t rows, columns, depth, limit, more;
        float factor;
        int ways;
    } rows[] = {
        {"hopper-fp16-fp32", "fp16", "fp16", "fp16", NULL, 8, 264, 584, 0, 0, 1, 15},
        {"hopper-bf16-fp32", "bf16", "bf16", "binary32", "bf16", 264, 24, 72, 0, 8, 1, 15},
        {"hopper-fp16-fp32", "fp16", "fp16", "e5m2", "binary32", 8, 520, 64, 51, 0, 0.37f, 15},
        {"hopper-bf16-fp32", "bf16", "bf16", "bf16", NULL, 72, 264, 16, 0, 16, 1, 15},
        {"hopper-fp16-fp32", "fp16", "fp16", "binary32", NULL, 136, 272, 72, 0, 0, 1, 1},
        {"hopper-wgmma-fp8-fp32", "e4m3", "e4m3", "fp16", NULL, 136, 272, 144, 0, 16, 1, 2},
        {"hopper-wgmma-fp8-fp32", "e4m3", "e5m2", "bf16", "fp16", 16, 32, 128, 77, 0, 1, 2},
        {"hopper-wgmma-fp8-fp32", "e5m2", "e4m3", "binary32", NULL, 272, 16, 48, 0, 0, 3, 2},
        {"hopper-wgmma-fp8-fp32", "e5m2", "e5m2", "bf16", NULL, 8, 264, 1168, 0, 0, 1, 2},
        {"hopper-wgmma-fp8-promoted", "e5m2", "e4m3", "fp16", NULL, 144, 136, 144, 0, 0, 1, 2},
        {"hopper-wgmma-fp8-promoted", "e4m3", "e4m3", "binary32", "bf16", 16, 400, 272, 260, 16, 1, 2},
        {"hopper-wgmma-fp8-promoted", "e4m3", "e5m2", "bf16", NULL, 8, 136, 656, 0, 0, 1, 2},
    };
    unsigned index = 0;
    for (const auto &r : rows)
        for (int way = 0; way < 4; way++) {
            problem p = {r.model, 90,      GPU_GEMM_TMA, r.fa,     r.fb,   r.to,   r.rows, r.columns,    r.depth,
                         r.limit, way / 2, way % 2,      r.factor, r.bias, r.more, 16,     r.depth == 72};
            gpu_host_driver_now.processors = r.rows > 100 ? 5 : 1; /* two clusters, one */
            if (r.ways >> way & 1 && test_in_part(index++, 2))
                run(p);
        }
    gpu_host_driver_now.processors = 1;
    report("tma");
}

/* An element: a chain of each stack, or blocks of 128 with factors, from +0. */
struct numbers {
    std::vector<float> host;
    float *device;

    explicit numbers(size_t n) : host(n)
    {
        for (float &x : host)
            x = ldexpf(1.0f + static_cast<float>(test_random(&seed) >> 41) * 0x1p-23f,
                       (int)(test_random(&seed) % 9) - 4);
        ck_assert_int_eq(cudaMalloc(&device, 4 * n), cudaSuccess);
        cudaMemcpy(device, host.data(), 4 * n, cudaMemcpyHostToDevice);
    }
    ~numbers()
    {
        cudaFree(device);
    }
    numbers(const numbers &) = delete;
    numbers &operator=(const numbers &) = delete;
};

static float chain_of(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, const unsigned char *a,
                      const unsigned char *b, size_t depth)
{
    uint64_t d;
    ck_assert_int_eq(mpsim_dot(m, fa, a, fb, b, depth, 0, NULL, &d), MPSIM_OK);
    return f32_of_bits(static_cast<uint32_t>(d));
}

/* Factors of each row and of `lines` columns together. */
static void run_factors(gpu_gemm_path path, const char *na, const char *nb, size_t rows, size_t columns, size_t depth,
                        size_t lines)
{
    const mpsim_format *fa = format_of(na), *fb = format_of(nb), *fd = format_of("binary32");
    const size_t blocks = (depth + 127) / 128, stride = blocks + 1, every = (columns + lines - 1) / lines;
    mpsim_model m;
    char why[256] = "";
    gpu_product g = {};
    ck_assert_int_eq(mpsim_model_parse(&m, "hopper-wgmma-fp8-fp32"), MPSIM_OK);
    array a(fa, rows * depth, 1, 0), b(fb, columns * depth, 1, 0), d(fd, rows * columns, 0, 0);
    numbers fa_s(rows * stride), fb_s(every * stride);
    g.model = &m;
    g.rows = rows;
    g.columns = columns;
    g.depth = depth;
    g.a = matrix(fa, a.device, 0, depth, 0);
    g.b = matrix(fb, b.device, 0, depth, 1);
    g.factor = 1;
    g.format = fd;
    g.d = d.device;
    g.d_stride = columns;
    g.a_factors = gpu_factors{fa_s.device, 1, stride};
    g.b_factors = gpu_factors{fb_s.device, lines, stride};
    ck_assert_msg(gpu_gemm(&g, 90, path, why, sizeof why) == 0, "%s", why);
    cudaMemcpy(d.host.data(), d.device, d.host.size(), cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < rows * columns; i++) {
        const size_t row = i / columns, column = i % columns;
        float s = 0;
        for (size_t k = 0; k < blocks; k++) {
            const size_t n = depth - 128 * k < 128 ? depth - 128 * k : 128;
            const float p = chain_of(&m, fa, fb, &a.host[row * depth + 128 * k], &b.host[column * depth + 128 * k], n);
            s = fmaf(fa_s.host[row * stride + k] * fb_s.host[column / lines * stride + k], p, s);
        }
        values++;
        ck_assert_msg(code_load(&d.host[4 * i], 4) == bits_of_f32(s), "factors, path %d, (%zu, %zu)", path, row,
                      column);
    }
}

START_TEST(tma_factors_of_blocks)
{
    run_factors(GPU_GEMM_TMA, "e4m3", "e4m3", 140, 21, 592, 1);
    run_factors(GPU_GEMM_TMA, "e5m2", "e4m3", 9, 136, 128, 128);
    gpu_host_driver_now.processors = 4;
    run_factors(GPU_GEMM_TMA, "e4m3", "e5m2", 9, 656, 272, 64);
    gpu_host_driver_now.processors = 1;
    run_factors(GPU_GEMM_WGMMA, "e4m3", "e4m3", 9, 21, 272, 1);
    report("factors");
}

/* Matrices of b that two of a share; those of a stand side by side in lines, as heads do. */
START_TEST(tma_stacks)
{
    enum { STACKS = 5, SHARED = 2, ROWS = 24, COLUMNS = 40, DEPTH = 72 };
    const mpsim_format *f = format_of("fp16");
    mpsim_model m;
    char why[256] = "";
    ck_assert_int_eq(mpsim_model_parse(&m, "hopper-fp16-fp32"), MPSIM_OK);
    for (int transposed = 0; transposed < 2; transposed++) {
        array a(f, ROWS * STACKS * DEPTH, 1, 0), b(f, (STACKS + 1) / SHARED * COLUMNS * DEPTH, 1, 0);
        array d(f, STACKS * ROWS * COLUMNS, 0, 0);
        std::vector<uint16_t> want(ROWS * COLUMNS);
        gpu_product g = {};
        g.model = &m;
        g.rows = ROWS;
        g.columns = COLUMNS;
        g.depth = DEPTH;
        g.a = matrix(f, a.device, 0, DEPTH * STACKS, 0);
        g.b = matrix(f, b.device, 0, transposed ? DEPTH : COLUMNS, transposed);
        g.factor = 1;
        g.format = f;
        g.d = d.device;
        g.d_stride = COLUMNS;
        g.stacks = STACKS;
        g.shared = SHARED;
        g.a_apart = DEPTH;
        g.b_apart = COLUMNS * DEPTH;
        g.d_apart = ROWS * COLUMNS;
        ck_assert_msg(gpu_gemm(&g, 90, GPU_GEMM_TMA, why, sizeof why) == 0, "%s", why);
        cudaMemcpy(d.host.data(), d.device, d.host.size(), cudaMemcpyDeviceToHost);
        for (size_t s = 0; s < STACKS; s++) {
            const mpsim_matrix x = matrix(f, a.host.data(), s * DEPTH, DEPTH * STACKS, 0);
            const mpsim_matrix y = matrix(f, b.host.data(), s / SHARED * COLUMNS * DEPTH, g.b.stride, transposed);
            std::vector<float> sums(ROWS * COLUMNS);
            ck_assert_int_eq(mpsim_gemm(&m, ROWS, COLUMNS, DEPTH, &x, &y, NULL, sums.data(), COLUMNS, NULL, NULL),
                             MPSIM_OK);
            mpsim_rounding to;
            mpsim_rounding_init(&to, MPSIM_ROUND_NEAREST_EVEN);
            for (size_t i = 0; i < ROWS * COLUMNS; i++)
                ck_assert_uint_eq(code_load(&d.host[2 * (s * ROWS * COLUMNS + i)], 2),
                                  mpsim_encode_f32(f, &to, sums[i], 0, NULL));
        }
    }
}

/* What TMA cannot address is refused, and an unconfirmed path is not chosen. */
START_TEST(tma_refuses)
{
    gpu_job j;
    memset(static_cast<void *>(&j), 0, sizeof j);
    j.depth = 128;
    j.a.along = j.a.aligned = j.b.along = j.b.aligned = 1;
    const model_row *fp16 = row_of("hopper-fp16-fp32", 90), *fp8 = row_of("hopper-wgmma-fp8-promoted", 90);
    ck_assert_int_eq(can(fp8, &j, GPU_GEMM_TMA), 1);
    j.b.along = 0;
    ck_assert_int_eq(can(fp8, &j, GPU_GEMM_TMA), 0);
    j.a.shift = j.b.shift = 1;
    ck_assert_int_eq(can(fp16, &j, GPU_GEMM_TMA), 1);
    j.out.start = TRAIN_FROM_SUM;
    ck_assert_int_eq(can(fp16, &j, GPU_GEMM_TMA), 0);
    j.out.start = TRAIN_ADD_TO;
    ck_assert_int_eq(can(fp16, &j, GPU_GEMM_TMA), 1);
    j.a.aligned = 0;
    ck_assert_int_eq(can(fp16, &j, GPU_GEMM_TMA), 0);
    j.a.aligned = 1;
    j.depth = 0;
    ck_assert_int_eq(can(fp16, &j, GPU_GEMM_TMA), 0);
    for (const auto &c : choices)
        ck_assert_int_eq(c.confirmed, c.path != GPU_GEMM_TMA && c.path != GPU_GEMM_SQUARE);
}

/* ---- what AUTO takes ---- */

static gpu_gemm_path chosen(const char *model, size_t rows, size_t columns, size_t stacks, int along, int aligned,
                            int start)
{
    gpu_job j;
    memset(static_cast<void *>(&j), 0, sizeof j);
    j.out.rows = rows;
    j.out.columns = columns;
    j.out.start = start;
    j.a.along = j.b.along = along;
    j.a.aligned = j.b.aligned = aligned;
    return path_for(row_of(model, 90), &j, stacks);
}

START_TEST(choices_by_size)
{
    for (const char *m : {"hopper-fp16-fp32", "hopper-bf16-fp32"}) {
        ck_assert_int_eq(chosen(m, 128, 128 * 31, 1, 1, 1, 0), GPU_GEMM_MMA);
        ck_assert_int_eq(chosen(m, 128, 128 * 32, 1, 1, 1, 0), GPU_GEMM_FAST);
        ck_assert_int_eq(chosen(m, 128, 128 * 131, 1, 1, 1, 0), GPU_GEMM_FAST);
        ck_assert_int_eq(chosen(m, 128, 128 * 132, 1, 1, 1, 0), GPU_GEMM_WGMMA);
        ck_assert_int_eq(chosen(m, 1, 1, 132, 1, 1, 0), GPU_GEMM_WGMMA);
        ck_assert_int_eq(chosen(m, 129, 128 * 264, 1, 1, 1, 0), GPU_GEMM_WIDE);
        ck_assert_int_eq(chosen(m, 4096, 4096, 1, 1, 1, TRAIN_FROM_SUM), GPU_GEMM_WGMMA);
        ck_assert_int_eq(chosen(m, 4096, 4096, 1, 0, 1, 0), GPU_GEMM_FAST);
        ck_assert_int_eq(chosen(m, 4096, 4096, 1, 1, 0, 0), GPU_GEMM_MMA);
    }
    ck_assert_int_eq(chosen("hopper-wgmma-fp8-fp32", 1, 1, 1, 0, 0, 0), GPU_GEMM_WGMMA);
    ck_assert_int_eq(chosen("hopper-wgmma-fp8-fp32", 4096, 4096, 1, 0, 1, 0), GPU_GEMM_WIDE);
    ck_assert_int_eq(chosen("hopper-wgmma-fp8-promoted", 4096, 4096, 1, 0, 1, 0), GPU_GEMM_WGMMA);
    for (const model_row &r : model_rows) /* every row has something for every product */
        for (int i = 0; i < 8; i++) {
            gpu_job j;
            memset(static_cast<void *>(&j), 0, sizeof j);
            j.out.rows = i & 1 ? 1 : 4096;
            j.out.columns = 4096;
            j.out.start = i & 2 ? TRAIN_FROM_SUM : TRAIN_FROM_ZERO;
            j.a.along = j.a.aligned = j.b.along = j.b.aligned = i >> 2;
            ck_assert_msg(path_for(&r, &j, 1) != GPU_GEMM_AUTO, "%s", r.model);
        }
}

/* So large that AUTO takes wgmma: what the library gives, as every path does. */
START_TEST(choices_equal)
{
    for (const char *f : {"fp16", "bf16"})
        for (size_t columns : {(size_t)16896 - 120, (size_t)67584 - 121}) {
            const std::string model = std::string("hopper-") + f + "-fp32";
            if (!test_in_part((columns > 20000) + 2 * (f[0] == 'b'), 4))
                continue;
            problem p = {model.c_str(), 90, GPU_GEMM_AUTO, f, f, f, 2, columns, 40, 0, 0, 1, 1, "binary32", 0, 0, 0};
            ck_assert_int_eq(chosen(p.model, p.rows, p.columns, 1, 1, 1, 0),
                             columns > 20000 ? GPU_GEMM_WIDE : GPU_GEMM_WGMMA);
            run(p);
        }
    report("AUTO");
}

/* Formats that kernels know when compiled are those of the table. */
START_TEST(fixed_formats)
{
    gpu_format f, g;
    for (const char *name : {"binary32", "fp16", "bf16"}) {
        ck_assert_int_eq(gpu_format_set(&f, format_of(name)), 0);
        const gpu_format blank = {};
        const gpu_result r = name[0] == 'f' ? GPU_RESULT_F16 : name[1] == 'f' ? GPU_RESULT_BF16 : GPU_RESULT_BINARY32;
        g = r == GPU_RESULT_F16    ? gpu_fixed<GPU_RESULT_F16>(blank)
            : r == GPU_RESULT_BF16 ? gpu_fixed<GPU_RESULT_BF16>(blank)
                                   : gpu_fixed<GPU_RESULT_BINARY32>(blank);
        ck_assert(g.kind == f.kind && g.convert == f.convert && g.bytes == f.bytes && g.mbits == f.mbits);
        ck_assert(g.shift == f.shift && g.mask == f.mask && g.sign == f.sign && g.max == f.max);
        ck_assert(g.inf == f.inf && (r == GPU_RESULT_BINARY32 || (g.least == f.least && g.limit == f.limit)));
    }
}

/* ---- binary32 ---- */

START_TEST(binary32)
{
    static const char *const formats[][2] = {
        {"binary32", "binary32"}, {"fp16", "bf16"}, {"e4m3", "tf32"}, {"bf16", "e5m2fnuz"}};
    for (const auto &f : formats)
        for (int fused = 0; fused < 2; fused++) {
            problem p = {fused ? "fma" : "sequential",
                         80,
                         GPU_GEMM_AUTO,
                         f[0],
                         f[1],
                         "binary32",
                         67,
                         70,
                         41,
                         0,
                         0,
                         0,
                         1,
                         NULL,
                         2,
                         1,
                         f[0][0] == 'f'};
            run_transposed(p);
            p.limit = 19;
            p.fd = "fp16";
            p.factor = 3.3f;
            p.bias = "fp16";
            run_transposed(p);
        }
    report("binary32");
}

/* An underflow to -0 stays: nothing is added to it. */
START_TEST(negative_zero)
{
    const float host[] = {-0x1p-100f, 0x1p-100f};
    float *x, d;
    mpsim_model m;
    char why[256];
    gpu_product g = {};
    const mpsim_format *f = format_of("binary32");
    ck_assert_int_eq(mpsim_model_parse(&m, "fma"), MPSIM_OK);
    ck_assert_int_eq(cudaMalloc(&x, 12), cudaSuccess);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    g.model = &m;
    g.rows = g.columns = g.depth = g.d_stride = 1;
    g.a = mpsim_matrix{f, x, 1, 0};
    g.b = mpsim_matrix{f, x + 1, 1, 0};
    g.factor = 1;
    g.format = f;
    g.d = x + 2;
    ck_assert_int_eq(gpu_gemm(&g, 80, GPU_GEMM_AUTO, why, sizeof why), 0);
    cudaMemcpy(&d, x + 2, sizeof d, cudaMemcpyDeviceToHost);
    ck_assert_uint_eq(bits_of_f32(d), 0x80000000);
    cudaFree(x);
}

/* What the host executor leaves out, since it changes nothing: products 0 * 0; by wgmma those of 0 and any finite number. */
static void idle_by_wgmma(const gpu_host_cores_state *s, int types, uint32_t c)
{
    const mpsim_format *fa = s->a[types], *fb = s->b[types];
    const size_t size = mpsim_format_code_bytes(fa), n = 32 / size;
    for (int other = 0; other < 2; other++) {
        unsigned char zeros[32] = {0}, codes[32];
        uint64_t d;
        for (size_t i = 0; i < n; i++)
            code_store(codes + i * size, size, random_code(other ? fa : fb, 0));
        ck_assert_int_eq(
            mpsim_dot(&s->wgmma[types], fa, other ? codes : zeros, fb, other ? zeros : codes, n, c, NULL, &d),
            MPSIM_OK);
        ck_assert_msg(d == c, "wgmma, types %d: %x becomes %llx", types, c, (unsigned long long)d);
    }
}

START_TEST(idle_steps)
{
    static const uint32_t sums[] = {0, 1, 0x80000001, 0x007fffff, 0x3f801c00, 0xff7fe000, 0x7f800000};
    for (int sm : {80, 89, 90, 100, 120}) {
        gpu_host_cores_set(sm);
        for (int i = 0; i < 2 * GPU_TYPES_COUNT; i++) {
            const int types = i % GPU_TYPES_COUNT, wgmma_row = i >= GPU_TYPES_COUNT;
            const gpu_host_cores_state *s = &gpu_host_cores;
            const mpsim_model *m = wgmma_row ? &s->wgmma[types] : &s->mma[types];
            if (!(wgmma_row ? s->has_wgmma : s->has_mma)[types])
                continue;
            for (uint32_t c : sums) {
                const uint32_t zero[8] = {0};
                uint64_t d;
                if (strcmp(m->accumulator.format.name, "e8m13") == 0)
                    c &= c == 0x80000001 ? 0 : ~(uint32_t)0x3ff; /* its numbers, in binary32 */
                ck_assert_int_eq(mpsim_dot(m, s->a[types], zero, s->b[types], zero,
                                           32 / mpsim_format_code_bytes(s->a[types]), c, NULL, &d),
                                 MPSIM_OK);
                ck_assert_msg(d == c, "%s: %x becomes %llx", m->name, c, (unsigned long long)d);
                if (wgmma_row)
                    idle_by_wgmma(s, types, c);
            }
        }
    }
}

/* ---- what is refused, what is chosen ---- */

START_TEST(refused)
{
    mpsim_model m;
    char why[256];
    gpu_product g = {};
    const mpsim_format *fp16 = format_of("fp16"), *e4m3 = format_of("e4m3");
    g.model = &m;
    g.a = matrix(fp16, NULL, 0, 1, 0);
    g.b = matrix(fp16, NULL, 0, 1, 0);
    g.format = fp16;
    g.factor = 1;
    static const char *const names[] = {
        "hopper-fp16-fp32:F=24", "exact", "pairwise", "fma:bf16", "ampere-fp16-fp32", "blackwell-tcgen05-fp8-fp32"};
    for (const char *name : names) {
        ck_assert_int_eq(mpsim_model_parse(&m, name), MPSIM_OK);
        ck_assert_int_eq(gpu_gemm(&g, 90, GPU_GEMM_AUTO, why, sizeof why), -1);
        ck_assert_ptr_nonnull(strstr(why, name));
        ck_assert_int_eq(gpu_gemm_has(name, 90), 0);
    }
    ck_assert_int_eq(mpsim_model_parse(&m, "hopper-fp16-fp32"), MPSIM_OK);
    ck_assert_int_eq(gpu_gemm_has("hopper-fp16-fp32", 90), 1);
    g.b.format = e4m3;
    ck_assert_int_eq(gpu_gemm(&g, 90, GPU_GEMM_AUTO, why, sizeof why), -1);
    ck_assert_ptr_nonnull(strstr(why, "e4m3"));
    g.b.format = fp16;
    g.depth = (size_t)1 << 29;
    ck_assert_int_eq(gpu_gemm(&g, 90, GPU_GEMM_AUTO, why, sizeof why), 0); /* no rows */
    g.depth++;
    ck_assert_int_eq(gpu_gemm(&g, 90, GPU_GEMM_AUTO, why, sizeof why), -1);
    ck_assert_ptr_nonnull(strstr(why, "depth"));
}

int main(void)
{
    TCase *c = test_case("gemm", 20);
    seed = test_seed();
    tcase_add_test(c, mma_every_row);
    tcase_add_test(c, mma_shapes);
    tcase_add_test(c, fast);
    tcase_add_test(c, wgmma);
    tcase_add_test(c, wgmma_stages);
    tcase_add_test(c, tma);
    tcase_add_test(c, tma_factors_of_blocks);
    tcase_add_test(c, tma_stacks);
    tcase_add_test(c, tma_refuses);
    tcase_add_test(c, choices_by_size);
    tcase_add_test(c, choices_equal);
    tcase_add_test(c, fixed_formats);
    tcase_add_test(c, binary32);
    tcase_add_test(c, negative_zero);
    tcase_add_test(c, idle_steps);
    tcase_add_test(c, refused);
    TCase *cases[] = {c, NULL};
    return test_main("gpu/gemm", cases);
}
