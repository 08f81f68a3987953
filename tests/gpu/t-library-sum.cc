/* t-library-sum.cc -- mpsim_cuda_sum, its kernels on a CPU, beside mpsim_sum_lanes, mpsim_mean, mpsim_column_sums, mpsim_dot and exact sums. */
#include "tap.h"

#include "../../gpu/library/sum.cu"
#include "support/extent.h"

#include <mpsim/dot.h>
#include <mpsim/layer.h>
#include <mpsim/stats.h>

#include <string>
#include <vector>

namespace
{

const mpsim_format *format(const char *name)
{
    return mpsim_format_find(name);
}

/* Numbers of a format; `kind` 1: also zeros, infinities, NaNs and far ones; 2: terms that cancel. */
std::vector<float> numbers(const mpsim_format *f, size_t n, unsigned seed, int kind)
{
    static const float odd[] = {0, -0.0f, INFINITY, NAN, 1e-41f, 3e38f, -3e38f, -INFINITY};
    std::vector<float> x(n);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++) {
        uint32_t w[4];
        mpsim_rng_block(w, 48, seed, i);
        x[i] = float(int32_t(w[0])) * (1 / 2147483648.0f) * ldexpf(1, int(w[1] % 24) - 12);
        if (kind == 1 && w[2] % 97 == 0)
            x[i] = odd[w[3] % 8];
        if (kind == 2)
            x[i] = i % 2 ? -x[i - 1] : ldexpf(x[i], int(w[1] % 200) - 100);
    }
    (void)mpsim_round_array_f32(f, &r, NULL, x.data(), x.data(), n, NULL);
    return x;
}

unsigned char *on_device(const mpsim_format *f, const std::vector<float> &x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    std::vector<unsigned char> host(x.size() * mpsim_format_code_bytes(f) + 1);
    unsigned char *p = nullptr;
    (void)mpsim_encode_array_f32(f, &r, NULL, host.data(), x.data(), x.size(), NULL);
    (void)cudaMalloc(&p, host.size());
    (void)cudaMemcpy(p, host.data(), host.size(), cudaMemcpyHostToDevice);
    return p;
}

float rounded(const mpsim_format *f, float x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_round_array_f32(f, &r, NULL, &x, &x, 1, NULL);
    return x;
}

float pairwise(const char *math, const std::vector<float> &line)
{
    mpsim_model m;
    const std::string name = std::string("pairwise:") + math;
    const mpsim_format *const b = format("binary32"), *const to = format(math);
    const std::vector<float> ones(line.size(), 1.0f);
    uint64_t d = 0;
    double wide = 0;
    unsigned char code[8] = {0};
    if (mpsim_model_parse(&m, name.c_str()) || mpsim_dot(&m, b, line.data(), b, ones.data(), line.size(), 0, NULL, &d))
        return -12345;
    memcpy(code, &d, sizeof d); /* little-endian, as all machines of these tests */
    mpsim_decode_array(to, &wide, code, 1);
    return float(wide);
}

/* The exact sum, rounded once; +0 if it is 0, a sum that rounds to 0 keeps its sign. */
float exact(const mpsim_format *f, const std::vector<float> &line)
{
    mpsim_sum s;
    double found = 0;
    int special = 0;
    mpsim_sum_init(&s);
    for (float x : line) {
        if (x - x != 0)
            special = 1, found += double(x);
        else
            mpsim_sum_add(&s, double(x));
    }
    /* binary64's rounding first: formats here have at most 24 bits; a tie that it makes shows in the remainder */
    double v = special ? found : mpsim_sum_value(&s);
    if (!special && v == 0)
        return 0;
    if (!special) {
        mpsim_sum rest = s;
        mpsim_sum_add(&rest, -v);
        const double left = mpsim_sum_value(&rest);
        uint64_t u = mpsim_bits_f64(v);
        if (left != 0 && !(u & 1)) /* round to odd */
            v = mpsim_f64_bits((left > 0) == (v > 0) ? u + 1 : u - 1);
    }
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_round_array_f64(f, &r, NULL, &v, &v, 1, NULL);
    return float(v);
}

/* What libmpsim says of a line. */
float expected(const mpsim_cuda_summing &how, const std::vector<float> &line)
{
    if (how.order == MPSIM_CUDA_SUM_EXACT)
        return exact(how.format, line);
    float s = how.order == MPSIM_CUDA_SUM_PAIRWISE ? pairwise(how.math->name, line)
              : how.counted && how.lanes == MPSIM_LANES_ALL
                  ? mpsim_mean(how.math, line.data(), line.size(), how.counted)
                  : mpsim_sum_lanes(how.math, line.data(), line.size(), 1, how.lanes);
    if (how.counted && (how.order == MPSIM_CUDA_SUM_PAIRWISE || how.lanes != MPSIM_LANES_ALL))
        s = rounded(how.math, s / rounded(how.math, float(how.counted)));
    return rounded(how.format, s);
}

struct shape {
    uint64_t outer, inner, terms;
    int columns; /* inner_stride 1 */
};
const shape shapes[] = {{3, 1, 1037, 0}, {1, 37, 530, 1}, {2, 9, 300, 1}, {7, 1, 31, 0}, {1, 3, 1, 1}, {2, 5, 0, 0}};

size_t differing(const mpsim_cuda_summing &how, const mpsim_format *f, const shape &s, int kind, unsigned seed)
{
    const size_t n = size_t(s.outer * s.inner * s.terms), sums = size_t(s.outer * s.inner);
    const std::vector<float> x = numbers(f, n, seed, kind);
    unsigned char *const device = on_device(f, x), *const y = on_device(how.format, std::vector<float>(sums, 7));
    char why[256] = "";
    const mpsim_cuda_call call = {NULL, NULL, 0, why, sizeof why};
    const int64_t outer = int64_t(s.inner * s.terms), inner = s.columns ? 1 : int64_t(s.terms),
                  stride = s.columns ? int64_t(s.inner) : 1;
    const mpsim_cuda_lines lines = {device, f, s.outer, s.inner, s.terms, outer, inner, stride};
    const size_t memory = gpu_host.memory.size();
    const uint64_t waits = gpu_host.waits, launches = gpu_host.launches;
    size_t bad = mpsim_cuda_sum(&how, y, &lines, &call) != MPSIM_OK || gpu_host.memory.size() != memory ||
                 gpu_host.waits != waits || gpu_host.launches != launches + 1;
    if (why[0])
        printf("# %s\n", why);
    std::vector<unsigned char> host(sums * 8);
    std::vector<double> wide(sums);
    (void)cudaMemcpy(host.data(), y, sums * mpsim_format_code_bytes(how.format), cudaMemcpyDeviceToHost);
    mpsim_decode_array(how.format, wide.data(), host.data(), sums);
    for (size_t i = 0; i < sums; i++) {
        std::vector<float> line;
        for (size_t k = 0; k < s.terms; k++)
            line.push_back(
                x[size_t(int64_t(i / s.inner) * outer + int64_t(i % s.inner) * inner + int64_t(k) * stride)]);
        const float a = float(wide[i]), b = expected(how, line);
        if (!(a != a && b != b) && mpsim_bits_f32(a) != mpsim_bits_f32(b)) {
            if (!bad++)
                printf("# order %d, lanes %zu, %s by %s to %s, sum %zu of %zu x %zu: %a, not %a\n", how.order,
                       how.lanes, f->name, how.math->name, how.format->name, i, sums, size_t(s.terms), double(a),
                       double(b));
        }
    }
    (void)cudaFree(device);
    (void)cudaFree(y);
    return bad;
}

void ask_orders()
{
    static const struct {
        mpsim_cuda_sum_order order;
        size_t lanes;
        const char *name;
    } rows[] = {{MPSIM_CUDA_SUM_LANES, 1, "one after the other"},
                {MPSIM_CUDA_SUM_LANES, 4, "4 lanes"},
                {MPSIM_CUDA_SUM_LANES, 32, "32 lanes"},
                {MPSIM_CUDA_SUM_LANES, 256, "256 lanes"},
                {MPSIM_CUDA_SUM_LANES, 1024, "1024 lanes"},
                {MPSIM_CUDA_SUM_PAIRWISE, 0, "pairwise"},
                {MPSIM_CUDA_SUM_EXACT, 0, "exact"}};
    static const char *const formats[][3] = {{"binary32", "binary32", "binary32"},
                                             {"bf16", "binary32", "bf16"},
                                             {"fp16", "fp16", "fp16"},
                                             {"e4m3", "bf16", "binary32"},
                                             {"binary32", "bf16", "e5m2"}};
    unsigned index = 0, seed = 0;
    for (const auto &row : rows)
        for (const auto &f : formats) {
            size_t bad = 0, cases = 0;
            if (!test_in_part(index++, 3))
                continue;
            for (const shape &s : shapes)
                for (int kind = 0; kind < 3; kind++)
                    for (uint64_t counted : {uint64_t(0), uint64_t(77)}) {
                        const mpsim_cuda_summing how = {row.order, row.lanes, format(f[1]), format(f[2]), counted};
                        if (counted && row.order == MPSIM_CUDA_SUM_EXACT)
                            continue;
                        bad += differing(how, format(f[0]), s, kind, ++seed);
                        cases++;
                    }
            OK(cases && !bad, "%s: %s added in %s to %s, %zu cases", row.name, f[0], f[1], f[2], cases);
        }
}

void ask_columns()
{
    const mpsim_format *const f = format("bf16");
    const std::vector<float> x = numbers(f, 700 * 45, 5, 0);
    std::vector<float> sums(45), found(45);
    (void)mpsim_column_sums(NULL, NULL, sums.data(), x.data(), 700, 45, 45);
    unsigned char *const device = on_device(f, x), *const y = on_device(format("binary32"), sums);
    const mpsim_cuda_call call = {NULL, NULL, 0, NULL, 0};
    const mpsim_cuda_summing how = {MPSIM_CUDA_SUM_LANES, MPSIM_LANES_ALL, NULL, NULL, 0};
    const mpsim_cuda_lines lines = {device, f, 1, 45, 700, 0, 1, 45};
    (void)cudaMemset(y, 0, 45 * sizeof(float));
    const int good = mpsim_cuda_sum(&how, y, &lines, &call) == MPSIM_OK;
    (void)cudaMemcpy(found.data(), y, 45 * sizeof(float), cudaMemcpyDeviceToHost);
    OK(good && memcmp(found.data(), sums.data(), 45 * sizeof(float)) == 0, "columns as of mpsim_column_sums");
    (void)cudaFree(device);
    (void)cudaFree(y);
}

void refused(const mpsim_cuda_summing *how, void *y, const mpsim_cuda_lines *x, mpsim_status status, const char *word,
             const char *name)
{
    char why[256] = "";
    const mpsim_cuda_call call = {NULL, NULL, 0, why, sizeof why};
    const uint64_t launches = gpu_host.launches;
    const mpsim_status s = mpsim_cuda_sum(how, y, x, &call);
    OK(s == status && strstr(why, word) && gpu_host.launches == launches, "%s: %s", name, why);
}

void ask_refusals()
{
    float *p = nullptr;
    (void)cudaMalloc(&p, 64);
    const mpsim_format *const f = format("binary32");
    const mpsim_cuda_summing how = {MPSIM_CUDA_SUM_LANES, 32, NULL, NULL, 0};
    const mpsim_cuda_lines lines = {p, f, 2, 1, 4, 4, 1, 1};
    refused(NULL, p, &lines, MPSIM_EINVAL, "no order", "no order");
    refused(&how, p, NULL, MPSIM_EINVAL, "no lines", "no lines");
    refused(&how, NULL, &lines, MPSIM_EINVAL, "NULL", "no results");
    mpsim_cuda_summing bad = how;
    bad.lanes = 3;
    refused(&bad, p, &lines, MPSIM_EINVAL, "power of two", "3 lanes");
    bad = how, bad.order = mpsim_cuda_sum_order(9);
    refused(&bad, p, &lines, MPSIM_EINVAL, "order 9 is unknown", "order 9");
    bad = how, bad.order = MPSIM_CUDA_SUM_EXACT, bad.counted = 3;
    refused(&bad, p, &lines, MPSIM_EINVAL, "not divided", "an exact mean");
    bad = how, bad.math = format("binary64");
    refused(&bad, p, &lines, MPSIM_EUNAVAILABLE, "additions in binary64", "binary64");
    mpsim_cuda_lines many = lines;
    many.outer = uint64_t(1) << 31;
    refused(&how, p, &many, MPSIM_EINVAL, "2^31", "too many sums");
    OK(mpsim_cuda_sum(&how, p, &lines, NULL) == MPSIM_EINVAL, "no call");
    const mpsim_cuda_lines none = {NULL, f, 0, 1, 4, 4, 1, 1};
    const mpsim_cuda_call call = {NULL, NULL, 0, NULL, 0};
    OK(mpsim_cuda_sum(&how, NULL, &none, &call) == MPSIM_OK, "no sums are none");
    (void)cudaFree(p);
}

} // namespace

int main()
{
    ask_orders();
    ask_columns();
    ask_refusals();
    OK(gpu_host_check() == cudaSuccess, "no write beside an array");
    return tap_end();
}
