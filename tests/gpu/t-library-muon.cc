/* t-library-muon.cc -- mpsim_cuda_muon, its kernels on a CPU, beside mpsim_update_run: forms, variants, models, formats and shapes, bit for bit. */
#include "tap.h"

#include <mpsim/update.h>

#include "../../gpu/library/muon.cu"
#include "support/extent.h"

#include <vector>

namespace
{

uint32_t drawn(uint64_t stream, uint64_t i)
{
    uint32_t words[4];
    mpsim_rng_block(words, 48, stream, i / 4);
    return words[i % 4];
}

/* An array of numbers of a format, on the host and on the device. */
struct array {
    std::vector<float> values;
    float *there = nullptr;

    array(const mpsim_format &f, size_t n, uint64_t stream, float size) : values(n)
    {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        for (size_t i = 0; i < n; i++)
            values[i] = size * (float(int32_t(drawn(stream, i))) / 2147483648.0f);
        (void)mpsim_round_array_f32(&f, &r, NULL, values.data(), values.data(), n, NULL);
        (void)cudaMalloc(&there, (n + 1) * sizeof *there);
        put();
    }
    void put()
    {
        (void)cudaMemcpy(there, values.data(), values.size() * sizeof *there, cudaMemcpyHostToDevice);
    }
    ~array()
    {
        (void)cudaFree(there);
    }
    array(const array &) = delete;
    array &operator=(const array &) = delete;

    size_t differing() const
    {
        std::vector<float> x(values.size() + 1);
        (void)cudaMemcpy(x.data(), there, values.size() * sizeof *there, cudaMemcpyDeviceToHost);
        size_t n = 0;
        for (size_t i = 0; i < values.size(); i++)
            n += !(x[i] != x[i] && values[i] != values[i]) && mpsim_bits_f32(x[i]) != mpsim_bits_f32(values[i]);
        return n;
    }
};

const struct {
    size_t rows, cols;
} shapes[] = {{5, 9}, {33, 7}, {16, 16}, {1, 40}, {40, 1}, {1, 1}, {0, 4}};

const struct row {
    const char *variant, *param, *format, *model;
    int keller, nesterov;
    double grad_scale, odd; /* the size of gradients and momenta, or one gradient of this; 0: none of it */
} rows[] = {
    {"torch", "binary32", "bf16", "exact", 0, 1, 1, 0},
    {"torch", "bf16", "bf16", "hopper-bf16-fp32", 0, 0, 1, 0},
    {"torch-cpu", "bf16", "bf16", "avx512-bf16-fp32", 0, 1, 3, 0},
    {"torch-cpu-foreach", "bf16", "fp16", "fma", 1, 1, 1, 0},
    {"torch-cpu-default", "fp16", "binary32", "fma", 0, 1, 1000, 0},
    {"torch-cpu-foreach-default", "bf16", "bf16", "exact:bf16", 1, 0, 1, 0},
    {"torch", "binary32", "e5m2", "hopper-wgmma-fp8-fp32", 1, 1, 1, 0},
    {"torch", "binary32", "bf16", "exact", 0, 1, 1, 1e-9},
    {"torch-cpu", "binary32", "bf16", "exact", 1, 1, 1, 3e38},
    {"torch", "binary32", "bf16", "exact", 0, 1, 1, double(INFINITY)},
};

mpsim_muon settings_of(const row &x)
{
    mpsim_muon o;
    mpsim_muon_init(&o, x.keller ? MPSIM_MUON_KELLER : MPSIM_MUON_TORCH, mpsim_optim_variant_find(x.variant));
    o.param = *mpsim_format_find(x.param);
    o.format = *mpsim_format_find(x.format);
    o.nesterov = uint8_t(x.nesterov);
    o.steps = 3;
    o.lr = 0.1;
    if (mpsim_model_parse(&o.model, x.model) != MPSIM_OK)
        o.steps = 255;
    return o;
}

struct tally {
    size_t elements = 0, differing = 0, failed = 0, moved = 0;
};

void step(const mpsim_muon &o, const row &x, size_t rows, size_t cols, uint64_t k, tally *to)
{
    enum { STEPS = 2 };
    const size_t n = rows * cols;
    const float size = x.odd != 0 && x.odd < 1 ? float(x.odd) : 0.1f;
    array p(o.param, n, 10 * k, 1), m(o.param, n, 10 * k + 1, size), g(o.param, n, 10 * k + 2, size);
    const std::vector<float> before = p.values;
    mpsim_optim scaled;
    char why[256] = "";
    for (size_t i = 0; x.odd > 1 && i < n; i += 5)
        g.values[i] = float(x.odd);
    g.put();
    memset(&scaled, 0, sizeof scaled);
    scaled.grad_scale = x.grad_scale;
    const mpsim_cuda_matrix matrix = {p.there, m.there, g.there, rows, cols, x.grad_scale};
    mpsim_cuda_call call = {NULL, NULL, mpsim_cuda_muon_room(&o, &matrix), why, sizeof why};
    (void)cudaMalloc(&call.room, call.bytes + 1);
    const size_t memory = gpu_host.memory.size();
    const uint64_t waits = gpu_host.waits;
    for (int s = 0; s < STEPS; s++) {
        mpsim_update u;
        memset(&u, 0, sizeof u);
        u.optim = &scaled, u.muon = &o, u.step = 1, u.rows = rows, u.cols = cols;
        u.t.param = p.values.data(), u.t.grad = g.values.data(), u.t.m = m.values.data(), u.t.n = n;
        to->failed += mpsim_update_run(&u, 1, 0, NULL, NULL) != MPSIM_OK;
        to->failed += mpsim_cuda_muon(&o, &matrix, &call) != MPSIM_OK;
    }
    to->failed += gpu_host.memory.size() != memory || gpu_host.waits != waits;
    if (why[0])
        printf("# %s\n", why);
    to->differing += p.differing() + m.differing();
    to->elements += 2 * n;
    for (size_t i = 0; i < n; i++)
        to->moved += p.values[i] == p.values[i] && p.values[i] != before[i];
    (void)cudaFree(call.room);
}

void ask_steps()
{
    uint64_t k = 1;
    for (const row &x : rows) {
        const mpsim_muon o = settings_of(x);
        tally all;
        for (const auto &shape : shapes)
            step(o, x, shape.rows, shape.cols, k++, &all);
        OK(!all.failed && !all.differing && (all.moved || x.odd > 1e38), "%s of %s in %s, %s%s: %zu of %zu differ",
           x.variant, x.param, x.format, x.model, x.keller ? ", keller" : "", all.differing, all.elements);
    }
}

void refused(const mpsim_muon *o, const mpsim_cuda_matrix *t, mpsim_status status, const char *word)
{
    char why[256] = "";
    const mpsim_cuda_call call = {NULL, NULL, 0, why, sizeof why};
    const uint64_t launches = gpu_host.launches;
    const mpsim_status s = mpsim_cuda_muon(o, t, &call);
    OK(s == status && strstr(why, word) && !strchr(why, '\n') && gpu_host.launches == launches, "%s", why);
}

void ask_refusals()
{
    float *x = nullptr;
    (void)cudaMalloc(&x, 64);
    mpsim_muon o = settings_of(rows[0]);
    mpsim_cuda_matrix t = {x, x, x, 4, 4, 1};
    refused(NULL, &t, MPSIM_EINVAL, "no settings");
    refused(&o, NULL, MPSIM_EINVAL, "no matrix");
    refused(&o, &t, MPSIM_ENOMEM, "workspace");
    t.m = NULL;
    refused(&o, &t, MPSIM_EINVAL, "NULL");
    t.m = x, t.rows = SIZE_MAX / 2;
    refused(&o, &t, MPSIM_EINVAL, "too large");
    o.products = MPSIM_MUON_ONEDNN;
    refused(&o, &t, MPSIM_EUNAVAILABLE, "torch's own");
    o.products = 0;
    (void)mpsim_model_parse(&o.model, "fma:bf16:sr");
    o.steps = 100;
    refused(&o, &t, MPSIM_EINVAL, "variant torch");
    OK(mpsim_cuda_muon(&o, &t, NULL) == MPSIM_EINVAL, "no call");
    (void)cudaFree(x);
}

} // namespace

int main()
{
    ask_steps();
    ask_refusals();
    OK(gpu_host_check() == cudaSuccess, "no write beside an array");
    return tap_end();
}
