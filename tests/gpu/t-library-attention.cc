/* t-library-attention.cc -- mpsim_cuda_attention_forward and _backward, their kernels on a CPU, beside mpsim_attention_forward and
 * _backward: random shapes, settings, formats and models, bit for bit. */
#include "tap.h"

#include "../../gpu/library/attention.cu"
#include "support/extent.h"

#include <string>
#include <vector>

namespace
{

uint64_t draws;

uint32_t drawn(uint32_t below)
{
    uint32_t w[4];
    mpsim_rng_block(w, 49, 1, draws++);
    return w[0] % below;
}

/* Memory of the device. */
struct memory {
    unsigned char *p;
    size_t n;
    explicit memory(size_t bytes) : p(nullptr), n(bytes)
    {
        (void)cudaMalloc(&p, bytes ? bytes : 1);
        memset(p, 0x5a, bytes);
    }
    ~memory()
    {
        (void)cudaFree(p);
    }
    float *f() const
    {
        return reinterpret_cast<float *>(p);
    }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
};

/* A matrix of random codes, some of them special, some with gaps between rows or transposed. */
struct matrix {
    mpsim_matrix m;
    memory at;
    matrix(const mpsim_format *f, size_t rows, size_t cols, int odd)
        : at((rows + 3) * (cols + 3) * mpsim_format_code_bytes(f))
    {
        const size_t bytes = mpsim_format_code_bytes(f);
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        m.format = f;
        m.codes = at.p;
        m.transposed = uint8_t(drawn(4) == 0);
        m.stride = (m.transposed ? rows : cols) + drawn(3);
        for (size_t i = 0; i < (rows + 3) * (cols + 3); i++) {
            float x = float(int32_t(drawn(2001)) - 1000) / 500.0f;
            if (odd && drawn(40) == 0)
                x = drawn(2) ? INFINITY : 0.0f;
            (void)mpsim_encode_array_f32(f, &r, NULL, at.p + i * bytes, &x, 1, NULL);
        }
    }
};

size_t differing(const float *x, const float *y, size_t n)
{
    size_t bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += !(x[i] != x[i] && y[i] != y[i]) && mpsim_bits_f32(x[i]) != mpsim_bits_f32(y[i]);
    return bad;
}

/* What numbers settings use. */
const char *const inputs[] = {"bf16", "fp16", "bf16", "binary32"};
const char *const models[] = {"hopper-bf16-fp32", "hopper-fp16-fp32", "fma:bf16", "fma:binary32"};

size_t ask(unsigned kind, const std::string &model, const mpsim_format *f, int odd)
{
    const mpsim_attention_shape s = {1 + drawn(37), 1 + drawn(45), 1 + drawn(20), 1 + drawn(20)};
    mpsim_model m;
    if (mpsim_model_parse(&m, model.c_str()))
        return 1;
    const matrix q(f, s.queries, s.dim, odd), k(f, s.keys, s.dim, odd), v(f, s.keys, s.size, odd),
        dy(f, s.queries, s.size, odd);
    mpsim_attention a;
    mpsim_attention_init(&a, s.dim);
    a.scores = a.context = &m;
    a.p.format = *f;
    a.tile = drawn(5) ? 1 + drawn(20) : 0;
    a.causal = kind & 1;
    a.exp2 = kind >> 1 & 1;
    a.sum_rounded = kind >> 2 & 1;
    a.separate = kind >> 3 & 1;
    a.reciprocal = kind >> 4 & 1;
    a.reverse = uint8_t(drawn(2));
    a.p_scale = drawn(2) ? 1.0f : 3.5f;
    a.left = drawn(3) ? SIZE_MAX : drawn(30);
    a.right = drawn(3) ? SIZE_MAX : drawn(30);
    char why[256] = "";
    memory y(s.queries * s.size * 4), lse(s.queries * 4), dq(s.queries * s.dim * 4), dk(s.keys * s.dim * 4),
        dv(s.keys * s.size * 4);
    std::vector<float> y2(s.queries * s.size), lse2(s.queries), dq2(s.queries * s.dim), dk2(s.keys * s.dim),
        dv2(s.keys * s.size);
    size_t bytes = mpsim_cuda_attention_forward_room(&a, &s, &q.m, &k.m, &v.m);
    const memory room(bytes);
    mpsim_cuda_call call = {NULL, room.p, bytes, why, sizeof why};
    size_t held = gpu_host.memory.size();
    const uint64_t waits = gpu_host.waits;
    size_t bad = mpsim_cuda_attention_forward(&a, &s, &q.m, &k.m, &v.m, y.f(), lse.f(), &call) != MPSIM_OK;
    bad += gpu_host.memory.size() != held;
    bad += mpsim_attention_forward(&a, &s, &q.m, &k.m, &v.m, y2.data(), lse2.data(), NULL, NULL, NULL, NULL) !=
           MPSIM_OK;
    const size_t forward = differing(y.f(), y2.data(), y2.size()) + differing(lse.f(), lse2.data(), lse2.size());
    mpsim_attention_gradient g;
    mpsim_attention_gradient_init(&g, &a);
    g.dp = g.dvalue = g.dkey = g.dquery = &m;
    g.p.format = g.ds.format = *f;
    g.scale_last = uint8_t(drawn(2));
    bytes = mpsim_cuda_attention_backward_room(&g, &s, &q.m, &k.m, &v.m, &dy.m);
    const memory room2(bytes);
    call.room = room2.p;
    call.bytes = bytes;
    held = gpu_host.memory.size();
    bad += mpsim_cuda_attention_backward(&g, &s, &q.m, &k.m, &v.m, &dy.m, y.f(), lse.f(), dq.f(), dk.f(), dv.f(),
                                         &call) != MPSIM_OK;
    bad += gpu_host.memory.size() != held || gpu_host.waits != waits;
    bad += mpsim_attention_backward(&g, &s, &q.m, &k.m, &v.m, &dy.m, y2.data(), NULL, lse2.data(), dq2.data(),
                                    dk2.data(), dv2.data(), NULL, NULL) != MPSIM_OK;
    const size_t backward = differing(dq.f(), dq2.data(), dq2.size()) + differing(dk.f(), dk2.data(), dk2.size()) +
                            differing(dv.f(), dv2.data(), dv2.size());
    if (bad || forward || backward)
        printf("# %s, kind %u, %zu x %zu x %zu x %zu, tile %zu, odd %d: %zu wrong, forward %zu, backward %zu: %s\n",
               model.c_str(), kind, s.queries, s.keys, s.dim, s.size, a.tile, odd, bad, forward, backward, why);
    return bad + forward + backward;
}

void ask_all()
{
    for (unsigned i = 0; i < 4; i++) {
        size_t bad = 0;
        size_t cases = 0;
        for (unsigned kind = 0; kind < 32; kind++) {
            draws = uint64_t(32 * i + kind) << 32;
            if (!test_in_part(kind + i, 6))
                continue;
            bad += ask(kind, models[i], mpsim_format_find(inputs[i]), kind % 3 == 2);
            cases++;
        }
        OK(cases && !bad, "%s of %s: forward and backward, %zu cases", models[i], inputs[i], cases);
    }
}

void refused(const mpsim_attention &a, const mpsim_matrix &x, mpsim_status status, const char *name)
{
    const mpsim_attention_shape s = {4, 4, 4, 4};
    char why[256] = "";
    float y[16], lse[4];
    const mpsim_cuda_call call = {NULL, NULL, 0, why, sizeof why};
    const uint64_t launches = gpu_host.launches;
    const mpsim_status got = mpsim_cuda_attention_forward(&a, &s, &x, &x, &x, y, lse, &call);
    OK(got == status && why[0] && gpu_host.launches == launches, "%s: %s", name, why);
}

void ask_refusals()
{
    mpsim_model m;
    mpsim_attention a, b;
    const uint8_t mask[16] = {0};
    const matrix x(mpsim_format_find("bf16"), 4, 4, 0);
    (void)mpsim_model_parse(&m, "hopper-bf16-fp32");
    mpsim_attention_init(&a, 4);
    a.p.format = *mpsim_format_find("bf16");
    a.scores = a.context = &m;
    b = a, b.mask = mask;
    refused(b, x.m, MPSIM_ERANGE, "a mask");
    b = a, b.beta = 2;
    refused(b, x.m, MPSIM_ERANGE, "beta");
    b = a, b.softmax = mpsim_format_find("bf16");
    refused(b, x.m, MPSIM_ERANGE, "a softmax in bf16");
    b = a, b.p.rounding.mode = MPSIM_ROUND_TOWARD_ZERO;
    refused(b, x.m, MPSIM_ERANGE, "P toward zero");
    b = a, b.scores = NULL;
    refused(b, x.m, MPSIM_EINVAL, "no model");
    refused(a, x.m, MPSIM_ENOMEM, "no workspace");
}

} // namespace

int main()
{
    ask_all();
    ask_refusals();
    OK(gpu_host_check() == cudaSuccess, "no write beside an array");
    return tap_end();
}
