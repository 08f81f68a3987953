/* t-library-between.cc -- mpsim_cuda_between, its kernels on a CPU, beside mpsim_between_run: every operation, shapes, strides, formats. */
#include "tap.h"

#include "../../gpu/library/between.cu"

#include <mpsim/round.h>

#include <string>
#include <vector>

namespace
{

const mpsim_format *format(const char *name)
{
    return mpsim_format_find(name);
}

/* What an array is in an operation's shape. */
enum use { NONE, ROWS, COLUMNS, SCALARS, TABLE, MASK };

struct row {
    const char *name;
    use arrays[8];
    unsigned results; /* bits of arrays */
    unsigned may;     /* bits of arrays that may be missing */
};

const row rows[] = {
    {"rownorm", {ROWS, COLUMNS, COLUMNS, ROWS, SCALARS, SCALARS}, 0x38, 0x36},
    {"rownorm_backward", {ROWS, ROWS, SCALARS, SCALARS, COLUMNS, ROWS}, 0x20, 0x10},
    {"rownorm_gradients", {ROWS, ROWS, SCALARS, SCALARS, COLUMNS, COLUMNS}, 0x30, 0x30},
    {"activate", {ROWS, ROWS, ROWS}, 0x04, 0},
    {"activate_backward", {ROWS, ROWS, ROWS, ROWS, ROWS}, 0x18, 0},
    {"softmax", {ROWS, MASK, ROWS}, 0x04, 0x02},
    {"softmax_backward", {ROWS, ROWS, MASK, ROWS}, 0x08, 0x04},
    {"log_softmax", {ROWS, MASK, ROWS}, 0x04, 0x02},
    {"log_softmax_backward", {ROWS, ROWS, MASK, ROWS}, 0x08, 0x04},
    {"cross_entropy", {ROWS, SCALARS, ROWS}, 0x06, 0x06},
    {"embed", {TABLE, ROWS}, 0x02, 0},
    {"embed_backward", {ROWS, TABLE}, 0x02, 0},
    {"add", {ROWS, ROWS, ROWS}, 0x04, 0},
    {"multiply", {ROWS, ROWS, ROWS}, 0x04, 0},
    {"dropout", {NONE}, 0, 0},
    {"column_sums", {ROWS, COLUMNS}, 0x02, 0},
    {"period_sums", {ROWS, TABLE}, 0x02, 0},
    {"batchnorm", {ROWS, COLUMNS, COLUMNS, ROWS, COLUMNS, COLUMNS, COLUMNS, COLUMNS}, 0xf8, 0x36},
    {"batchnorm_backward", {ROWS, ROWS, COLUMNS, COLUMNS, COLUMNS, ROWS, COLUMNS, COLUMNS}, 0xe0, 0xf0},
    {"batchnorm_inference", {ROWS, COLUMNS, COLUMNS, COLUMNS, COLUMNS, ROWS}, 0x20, 0x18},
};

uint32_t word(unsigned seed, size_t i)
{
    uint32_t w[4];
    mpsim_rng_block(w, 50, seed, i / 4);
    return w[i % 4];
}

/* Codes of numbers, some of them zeros, infinities, NaNs and subnormal ones. */
std::vector<unsigned char> codes(const mpsim_format *f, size_t n, unsigned seed, int odd)
{
    static const float some[] = {0, -0.0f, INFINITY, NAN, 1e-41f, 30.0f, -90.0f};
    std::vector<unsigned char> to(n * mpsim_format_code_bytes(f) + 8);
    std::vector<float> x(n);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++) {
        const uint32_t w = word(seed, i);
        x[i] = float(int32_t(w)) * (3 / 2147483648.0f);
        if (odd && w % 41 == 0)
            x[i] = some[w / 41 % 7];
    }
    (void)mpsim_encode_array_f32(f, &r, NULL, to.data(), x.data(), n, NULL);
    return to;
}

/* An operation with its arrays, here and there. */
struct trial {
    mpsim_between o;
    const row *r;
    size_t n_rows = 1;
    std::vector<unsigned char> bytes[8], found[8];
    std::vector<int64_t> index;
    mpsim_strided here[8], there[8];
    size_t elements[8];
    const mpsim_format *formats[8];

    trial(int kind, std::vector<size_t> shape) : r(&rows[kind])
    {
        memset(&o, 0, sizeof o);
        o.kind = uint8_t(kind);
        o.dims = uint8_t(shape.size());
        o.eps = 1e-3f;
        o.momentum = 0.1f;
        o.scale = 0.75f;
        for (size_t d = 0; d < shape.size(); d++)
            o.shape[d] = shape[d];
        for (size_t d = 0; d + 1 < shape.size(); d++)
            n_rows *= shape[d];
    }

    /* Strides: row-major, or turned: the first dimension runs fastest, with gaps. */
    void lay(int k, const mpsim_format *f, int turned, unsigned seed, int odd)
    {
        const int last = o.dims - 1;
        const use u = r->arrays[k];
        ptrdiff_t step = turned ? 2 : 1;
        memset(&here[k], 0, sizeof here[k]);
        if (u == TABLE) {
            here[k].stride[0] = turned ? step : ptrdiff_t(o.shape[last]);
            here[k].stride[last] = turned ? step * ptrdiff_t(o.entries) : 1;
            step = step * ptrdiff_t(o.entries * o.shape[last]);
        } else {
            for (int i = 0; i <= last; i++) {
                const int d = turned ? i : last - i;
                if ((u == COLUMNS && d != last) || (u == SCALARS && d == last))
                    continue;
                here[k].stride[d] = step;
                step *= ptrdiff_t(o.shape[d]);
            }
        }
        elements[k] = size_t(step);
        formats[k] = u == MASK ? NULL : f;
        here[k].format = f;
        bytes[k] = codes(f, size_t(step), seed, odd);
        if (u == MASK)
            for (size_t i = 0; i < size_t(step); i++)
                bytes[k][i] = word(seed, i) % 4 != 0;
    }

    void drop(int k)
    {
        here[k].data = NULL;
        bytes[k].clear();
    }

    /* Both; whether all results are equal, NaNs at the same places. */
    int same()
    {
        const size_t entries = o.kind == MPSIM_BETWEEN_CROSS_ENTROPY ? o.shape[o.dims - 1] : o.entries;
        int64_t *at = nullptr;
        uint64_t counted[2] = {0, 0}, *counts = nullptr;
        for (size_t i = 0; i < n_rows; i++)
            index.push_back(o.ignores && i % 5 == 2 ? o.ignored : int64_t(word(77, i) % (entries ? entries : 1)));
        (void)cudaMalloc(&at, n_rows * sizeof *at + 8);
        (void)cudaMalloc(&counts, sizeof counted);
        (void)cudaMemcpy(at, index.data(), n_rows * sizeof *at, cudaMemcpyHostToDevice);
        (void)cudaMemcpy(counts, counted, sizeof counted, cudaMemcpyHostToDevice);
        for (int k = 0; k < 8; k++) {
            there[k] = here[k];
            if (bytes[k].empty())
                continue;
            (void)cudaMalloc(&there[k].data, bytes[k].size());
            (void)cudaMemcpy(there[k].data, bytes[k].data(), bytes[k].size(), cudaMemcpyHostToDevice);
            here[k].data = bytes[k].data();
        }
        mpsim_between of = o;
        o.index = index.data();
        of.index = at;
        uint64_t expected[2] = {0, 0};
        const mpsim_status a = mpsim_between_run(&o, here, 8, expected, NULL);
        char why[256] = "";
        void *room = nullptr;
        const size_t size = mpsim_cuda_between_room(&of);
        (void)cudaMalloc(&room, size + 1);
        const mpsim_cuda_call call = {NULL, room, size, why, sizeof why};
        const mpsim_status b = mpsim_cuda_between(&of, there, 8, counts, &call);
        (void)cudaMemcpy(counted, counts, sizeof counted, cudaMemcpyDeviceToHost);
        int equal = a == MPSIM_OK && b == MPSIM_OK && counted[0] == expected[0] && counted[1] == expected[1];
        if (a != MPSIM_OK || b != MPSIM_OK)
            printf("# %s: status %d, %d: %s\n", r->name, a, b, why);
        for (int k = 0; k < 8; k++)
            equal = equal && (bytes[k].empty() || !formats[k] || equals(k));
        return equal;
    }

    int equals(int k)
    {
        const size_t n = elements[k];
        std::vector<unsigned char> back(bytes[k].size());
        std::vector<double> x(n), y(n);
        (void)cudaMemcpy(back.data(), there[k].data, back.size(), cudaMemcpyDeviceToHost);
        mpsim_decode_array(formats[k], x.data(), bytes[k].data(), n);
        mpsim_decode_array(formats[k], y.data(), back.data(), n);
        for (size_t i = 0; i < n; i++)
            if (mpsim_bits_f64(x[i]) != mpsim_bits_f64(y[i]) && !(x[i] != x[i] && y[i] != y[i])) {
                printf("# %s: array %d, element %zu: %a, expected %a\n", r->name, k, i, y[i], x[i]);
                return 0;
            }
        return 1;
    }
};

struct variant {
    const char *format, *rounded; /* of arrays of the whole shape; that they are rounded to, or NULL */
    int turned, missing, odd;
};

const variant variants[] = {{"binary32", NULL, 0, 0, 0},
                            {"binary32", NULL, 1, 0, 1},
                            {"bf16", NULL, 0, 1, 1},
                            {"binary32", "e4m3", 1, 1, 0},
                            {"fp16", "fp16", 0, 0, 1}};

int tried(int kind, const variant &v, std::vector<size_t> shape, int more)
{
    trial t(kind, shape);
    const int activates = kind == MPSIM_BETWEEN_ACTIVATE || kind == MPSIM_BETWEEN_ACTIVATE_BACKWARD;
    t.o.entries = kind == MPSIM_BETWEEN_PERIOD_SUMS ? 3 : 7;
    t.o.activation = uint8_t(activates ? more : 0);
    t.o.norm = uint8_t(more % 2);
    t.o.length = more % 3 == 1 ? shape[shape.size() - 2] : 0;
    t.o.ignores = uint8_t(more % 2 && kind != MPSIM_BETWEEN_EMBED);
    t.o.ignored = more % 4 == 1 ? -100 : 1;
    t.o.added = uint8_t(more % 2);
    t.o.f = v.rounded ? format(v.rounded) : NULL;
    for (int k = 0; k < 8; k++) {
        memset(&t.here[k], 0, sizeof t.here[k]);
        if (t.r->arrays[k] == NONE)
            continue;
        const int whole = t.r->arrays[k] == ROWS, runs = kind == MPSIM_BETWEEN_BATCHNORM && k > 5;
        t.lay(k, format(whole ? v.format : "binary32"), v.turned && whole, unsigned(100 * kind + k), v.odd && !runs);
        if ((v.missing && t.r->may >> k & 1) ||
            (activates && more != MPSIM_SWIGLU && (kind == MPSIM_BETWEEN_ACTIVATE ? k == 1 : k == 2 || k == 4)))
            t.drop(k);
    }
    if (kind == MPSIM_BETWEEN_BATCHNORM_INFERENCE) /* variances */
        for (size_t i = 0; i < t.elements[2]; i++)
            t.bytes[2][4 * i + 3] &= 0x7f;
    return t.same();
}

void ask_all()
{
    for (int kind = 0; kind <= MPSIM_BETWEEN_BATCHNORM_INFERENCE; kind++) {
        int equal = 1, n = 0;
        for (const variant &v : variants)
            for (int more = 0; kind != MPSIM_BETWEEN_DROPOUT && more < (kind == 3 || kind == 4 ? 8 : 4); more++)
                for (const std::vector<size_t> &shape : {std::vector<size_t>{5, 37}, {2, 3, 4, 5}, {300, 3}, {1, 1}})
                    if (shape[0] < 300 || more == 0) /* more rows than lanes */
                        equal &= tried(kind, v, shape, more), n++;
        OK(equal, "%s: %d operations have the results of mpsim_between_run", rows[kind].name, n);
    }
}

void refused(mpsim_between o, const mpsim_strided *arrays, mpsim_status status, const char *word, const char *name)
{
    char why[256] = "";
    const mpsim_cuda_call call = {NULL, NULL, 0, why, sizeof why};
    const uint64_t launches = gpu_host.launches;
    const mpsim_status s = mpsim_cuda_between(&o, arrays, 8, NULL, &call);
    OK(s == status && strstr(why, word) && gpu_host.launches == launches, "%s: %s", name, why);
}

void ask_refusals()
{
    float x[4] = {1, 2, 3, 4};
    mpsim_between o;
    mpsim_strided a[8];
    memset(&o, 0, sizeof o);
    memset(a, 0, sizeof a);
    o.dims = 2, o.shape[0] = o.shape[1] = 2, o.kind = MPSIM_BETWEEN_ADD;
    refused(o, a, MPSIM_EINVAL, "missing", "no arrays");
    for (mpsim_strided &each : a)
        each.data = x;
    o.math = format("bf16");
    refused(o, a, MPSIM_EUNAVAILABLE, "bf16", "another format of the arithmetic");
    o.math = NULL, o.kind = MPSIM_BETWEEN_DROPOUT;
    refused(o, a, MPSIM_EUNAVAILABLE, "dropout", "dropout");
    o.kind = MPSIM_BETWEEN_ADD, o.dims = 9;
    refused(o, a, MPSIM_EINVAL, "operation", "nine dimensions");
    o.dims = 2, o.kind = MPSIM_BETWEEN_EMBED;
    refused(o, a, MPSIM_EINVAL, "missing", "no index");
    o.kind = MPSIM_BETWEEN_BATCHNORM;
    refused(o, a, MPSIM_ENOMEM, "workspace", "no workspace");
    o.kind = MPSIM_BETWEEN_ADD, a[2].format = format("binary64");
    refused(o, a, MPSIM_ERANGE, "binary32", "binary64");
    OK(mpsim_cuda_between(&o, a, 8, NULL, NULL) == MPSIM_EINVAL, "no call");
}

} // namespace

int main()
{
    ask_all();
    ask_refusals();
    OK(gpu_host_check() == cudaSuccess, "no write beside an array");
    return tap_end();
}
