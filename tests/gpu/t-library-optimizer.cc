/* t-library-optimizer.cc -- mpsim_cuda_optimizer, its kernels on a CPU, beside mpsim_optim_step: every variant with each of its
 * algorithms, stores, options and formats, bit for bit. */
#include "tap.h"

#include "../../gpu/library/norm.cu"
#include "../../gpu/library/optimizer.cu"
#include <mpsim/gradient.h>
#include "support/extent.h"

#include <string>
#include <vector>

namespace
{

/* Of a tensor: a body of vectors and a tail; fours that begin in the middle of a block of random words. */
enum { N = 1101, TENSORS = 3, STEPS = 2 };
const size_t sizes[TENSORS] = {N, 0, 64};

struct formats {
    const char *param, *state;
};
const formats all_formats[] = {
    {"binary32", "binary32"}, {"bf16", "bf16"}, {"bf16", "binary32"}, {"fp16", "fp16"}, {"e5m2", "fp16"}};

/* Options; those that a variant lacks are left out by mpsim_optim_check. */
struct options {
    const char *name;
    double decay, momentum, dampening, grad_scale;
    int nesterov, amsgrad, maximize, float_powers;
};
const options all_options[] = {
    {"plain", 0, 0, 0, 1, 0, 0, 0, 0},
    {"decay, momentum", 0.1, 0.9, 0, 1, 0, 0, 0, 0},
    {"nesterov", 0.01, 0.9, 0, 1, 1, 0, 1, 0},
    {"dampening", 0, 0.9, 0.9, 1, 0, 0, 0, 0},
    {"amsgrad", 0.1, 0, 0, 1, 0, 1, 0, 0},
    {"scale", 0.1, 0.9, 0.5, 1000, 0, 0, 0, 0},
    {"scale, maximize", 0.1, 0, 0, 3, 0, 1, 1, 0},
    {"float powers", 0.1, 0, 0, 1, 0, 0, 0, 1},
};

/* An array of codes on the device and of values on the host. */
struct array {
    const mpsim_format *format = nullptr;
    std::vector<float> values;
    unsigned char *codes = nullptr;
    size_t bytes = 0;

    void set(const char *name, const std::vector<float> &x, size_t shift)
    {
        mpsim_rounding r;
        format = mpsim_format_find(name);
        values = x;
        bytes = mpsim_format_code_bytes(format);
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        std::vector<unsigned char> host(x.size() * bytes + 1);
        (void)mpsim_round_array_f32(format, &r, NULL, values.data(), values.data(), x.size(), NULL);
        (void)mpsim_encode_array_f32(format, &r, NULL, host.data(), values.data(), x.size(), NULL);
        (void)cudaMalloc(&codes, host.size() + shift * bytes);
        codes += shift * bytes;
        (void)cudaMemcpy(codes, host.data(), x.size() * bytes, cudaMemcpyHostToDevice);
        codes -= shift * bytes;
        at = shift * bytes;
    }
    void *data() const
    {
        return codes + at;
    }
    size_t at = 0;
    ~array()
    {
        (void)cudaFree(codes);
    }
    array() = default;
    array(const array &) = delete;
    array &operator=(const array &) = delete;

    /* Elements that differ from the values. */
    size_t differing() const
    {
        std::vector<double> wide(values.size());
        std::vector<unsigned char> host(values.size() * bytes + 1);
        (void)cudaMemcpy(host.data(), data(), values.size() * bytes, cudaMemcpyDeviceToHost);
        mpsim_decode_array(format, wide.data(), host.data(), values.size());
        size_t n = 0;
        for (size_t i = 0; i < values.size(); i++) {
            const float a = float(wide[i]), b = values[i];
            n += !(a != a && b != b) && mpsim_bits_f32(a) != mpsim_bits_f32(b);
        }
        return n;
    }
};

uint32_t drawn(uint64_t stream, uint64_t i)
{
    uint32_t words[4];
    mpsim_rng_block(words, 48, stream, i / 4);
    return words[i % 4];
}

/* Numbers of about `size`, and some that are none, zeros, or far away. */
std::vector<float> numbers(size_t n, uint64_t stream, float size, int all)
{
    static const float odd[] = {0, -0.0f, INFINITY, NAN, 1e-41f, 3e38f, -1e-30f, 1e30f};
    std::vector<float> x(n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t w = drawn(stream, i);
        x[i] = size * (float(int32_t(w)) / 2147483648.0f) * (w & 8 ? 1 : 1e-3f);
        if (all && w % 61 == 0)
            x[i] = odd[w / 61 % 8];
    }
    return x;
}

std::vector<float> positive(std::vector<float> x)
{
    for (float &v : x)
        v = v < 0 ? -v : v;
    return x;
}

struct tensor {
    array param, grad, m, v, vmax, kahan, model;
    size_t n;
    mpsim_rng rng;

    tensor(const mpsim_optim &o, const char *grad_format, size_t elements, uint64_t k, size_t shift, int odd = 1)
        : n(elements)
    {
        rng = {7, k, k % 2 ? 6u : 4u};
        param.set(o.param.name, numbers(n, 10 * k, 1, 0), shift);
        grad.set(grad_format, numbers(n, 10 * k + 1, 0.1f, odd), shift);
        m.set(o.state.name, numbers(n, 10 * k + 2, 0.1f, 0), shift);
        v.set(o.state.name, positive(numbers(n, 10 * k + 3, 0.01f, 0)), shift);
        vmax.set(o.state.name, positive(numbers(n, 10 * k + 4, 0.01f, 0)), shift);
        kahan.set(o.param.name, numbers(n, 10 * k + 5, 1e-3f, 0), shift);
        model.set("bf16", numbers(n, 10 * k, 1, 0), shift);
    }
    mpsim_cuda_parameter on_device()
    {
        return {param.data(), grad.data(), m.data(), v.data(), vmax.data(), kahan.data(), model.data(), NULL, n, rng};
    }
    mpsim_status step(const mpsim_optim &o, uint64_t s)
    {
        const mpsim_optim_tensor t = {param.values.data(),
                                      grad.values.data(),
                                      m.values.data(),
                                      v.values.data(),
                                      vmax.values.data(),
                                      kahan.values.data(),
                                      n};
        const mpsim_status status = mpsim_optim_step(&o, s, &t, &rng);
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        (void)mpsim_round_array_f32(model.format, &r, NULL, model.values.data(), param.values.data(), n, NULL);
        return status;
    }
    size_t differing() const
    {
        return param.differing() + m.differing() + v.differing() + vmax.differing() + kahan.differing() +
               model.differing();
    }
};

struct workspace {
    void *at = nullptr;
    size_t bytes;
    explicit workspace(size_t n) : bytes(n)
    {
        if (n)
            (void)cudaMalloc(&at, n);
    }
    ~workspace()
    {
        (void)cudaFree(at);
    }
    workspace(const workspace &) = delete;
    workspace &operator=(const workspace &) = delete;
};

struct tally {
    size_t cases = 0, elements = 0, differing = 0, failed = 0;
};

void run_case(const mpsim_optim &o, const char *grad_format, int scale_on_device, size_t shift, tally *to,
              const size_t (&lengths)[TENSORS] = sizes, int odd = 1)
{
    std::vector<tensor *> all;
    std::vector<mpsim_cuda_parameter> list;
    float *scale = nullptr;
    const float host_scale = float(o.grad_scale);
    char why[256] = "";
    for (size_t k = 0; k < TENSORS; k++)
        all.push_back(new tensor(o, grad_format, lengths[k], k + 1, shift, odd));
    for (tensor *t : all)
        list.push_back(t->on_device());
    if (scale_on_device) {
        (void)cudaMalloc(&scale, sizeof *scale);
        (void)cudaMemcpy(scale, &host_scale, sizeof *scale, cudaMemcpyHostToDevice);
    }
    mpsim_optim other = o;
    if (scale_on_device)
        other.grad_scale = 1;
    const mpsim_cuda_optim how = {&other, mpsim_format_find(grad_format), NULL, scale};
    const workspace room(mpsim_cuda_optimizer_room(&other, list.data(), list.size()));
    const mpsim_cuda_call call = {NULL, room.at, room.bytes, why, sizeof why};
    const size_t memory = gpu_host.memory.size();
    const uint64_t waits = gpu_host.waits;
    for (uint64_t s = 1; s <= STEPS; s++) {
        const mpsim_status status = mpsim_cuda_optimizer(&how, s, list.data(), list.size(), &call);
        to->failed += status != MPSIM_OK;
        for (tensor *t : all)
            to->failed += t->step(o, s) != MPSIM_OK;
    }
    to->failed += gpu_host.memory.size() != memory || gpu_host.waits != waits;
    if (why[0])
        printf("# %s\n", why);
    for (tensor *t : all) {
        const size_t differs = t->differing();
        if (differs)
            printf("# %s %s, store %d, %s %s: %zu of %zu: p %zu, m %zu, v %zu, vmax %zu, kahan %zu, model %zu\n",
                   o.variant->name, mpsim_optim_name(mpsim_optim_algorithm(o.algorithm)), o.store, o.param.name,
                   o.state.name, differs, t->n, t->param.differing(), t->m.differing(), t->v.differing(),
                   t->vmax.differing(), t->kahan.differing(), t->model.differing());
        to->differing += differs;
        to->elements += t->n;
        delete t;
    }
    (void)cudaFree(scale);
    to->cases++;
}

mpsim_optim optim_of(const mpsim_optim_variant *v, int algorithm, int store, const formats &f, const options &x)
{
    mpsim_optim o;
    mpsim_optim_init(&o, mpsim_optim_algorithm(algorithm), v);
    o.store = uint8_t(store);
    o.param = *mpsim_format_find(f.param);
    o.state = *mpsim_format_find(f.state);
    o.lr = 0.01;
    o.weight_decay = x.decay;
    o.momentum = algorithm == MPSIM_OPTIM_SGD ? x.momentum : 0;
    o.dampening = algorithm == MPSIM_OPTIM_SGD ? x.dampening : 0;
    o.grad_scale = x.grad_scale;
    o.nesterov = algorithm == MPSIM_OPTIM_SGD && x.nesterov;
    o.amsgrad = algorithm != MPSIM_OPTIM_SGD && x.amsgrad;
    o.maximize = uint8_t(x.maximize);
    o.float_powers = uint8_t(x.float_powers);
    return o;
}

/* All options of a variant in a format; a row of the table that is printed. */
void run_variant(const mpsim_optim_variant *v, int algorithm, int store, const formats &f, tally *to)
{
    for (const options &x : all_options) {
        const mpsim_optim o = optim_of(v, algorithm, store, f, x);
        if (mpsim_optim_check(&o) != MPSIM_OK)
            continue;
        const size_t shift = to->cases % 3 == 2; /* not aligned to fours */
        run_case(o, f.param, o.grad_scale != 1 && to->cases % 2, shift, to);
    }
}

const char *const stores[] = {"nearest", "stochastic", "kahan"};

void ask_variants()
{
    unsigned index = 0;
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *const v = mpsim_optim_variant_at(i);
        for (int a = 0; a < MPSIM_OPTIM_ADAFACTOR; a++)
            for (int s = 0; s <= MPSIM_STORE_KAHAN; s++) {
                tally all;
                if (!(v->algorithms >> a & 1) || !(v->stores >> s & 1) || !test_in_part(index++, 4))
                    continue;
                for (const formats &f : all_formats)
                    run_variant(v, a, s, f, &all);
                OK(all.cases && !all.failed && !all.differing, "%-26s %-5s %-10s %3zu cases, %6zu elements: %zu differ",
                   v->name, mpsim_optim_name(mpsim_optim_algorithm(a)), stores[s], all.cases, all.elements,
                   all.differing);
            }
    }
}

/* Adafactor: matrices of these sizes, several of them in a tensor, and vectors. */
const struct {
    size_t rows, cols, matrices;
} shapes[] = {{1, 1, 3}, {1, 40, 2}, {40, 1, 2}, {5, 300, 1}, {70, 33, 2}, {9, 70, 2}, {0, 0, 1}};

/* All shapes of a variant, store and format. */
void ask_adafactor(const mpsim_optim_variant *v, int store, const formats &f)
{
    tally all;
    for (const auto &shape : shapes)
        for (const double decay : {0.0, 0.1}) {
            const size_t n = shape.rows ? shape.rows * shape.cols * shape.matrices : size_t(N);
            const size_t lengths[TENSORS] = {n, 0, shape.rows ? shape.rows * shape.cols : 7};
            mpsim_optim o;
            mpsim_optim_init(&o, MPSIM_OPTIM_ADAFACTOR, v);
            o.store = uint8_t(store);
            o.param = *mpsim_format_find(f.param);
            o.state = *mpsim_format_find(f.state);
            o.rows = shape.rows, o.cols = shape.cols;
            o.weight_decay = decay;
            o.maximize = uint8_t(decay != 0 && all.cases % 4 == 1);
            o.lr = decay != 0 ? 0.01 : 1;
            if (mpsim_optim_check(&o) == MPSIM_OK)
                run_case(o, f.param, 0, all.cases % 3 == 2, &all, lengths, all.cases % 4 == 3);
        }
    OK(all.cases && !all.failed && !all.differing, "%-26s adafactor %s, %s, %s: %zu elements: %zu differ", v->name,
       stores[store], f.param, f.state, all.elements, all.differing);
}

void ask_adafactors()
{
    unsigned index = 0;
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *const v = mpsim_optim_variant_at(i);
        for (int s = 0; s < MPSIM_STORE_KAHAN; s++)
            for (const formats &f : all_formats)
                if ((v->algorithms >> MPSIM_OPTIM_ADAFACTOR & 1) && (v->stores >> s & 1) && test_in_part(index++, 4))
                    ask_adafactor(v, s, f);
    }
}

/* Masters of binary32 and gradients of bf16; a master in two halves. */
void ask_masters()
{
    tally all;
    const mpsim_optim_variant *const apex = mpsim_optim_variant_find("apex");
    mpsim_optim o = optim_of(apex, MPSIM_OPTIM_ADAMW, MPSIM_STORE_NEAREST, all_formats[0], all_options[5]);
    o.dampening = 0;
    run_case(o, "bf16", 1, 0, &all);
    run_case(o, "fp16", 0, 1, &all);
    OK(!all.failed && !all.differing, "masters in binary32 take gradients in bf16 and fp16, and round their models");

    tensor t(o, "bf16", N, 3, 0);
    std::vector<uint16_t> model(N);
    std::vector<int16_t> rest(N);
    for (size_t i = 0; i < N; i++)
        mpsim_master_split(&model[i], &rest[i], t.param.values[i]);
    int16_t *remainder = nullptr;
    uint16_t *upper = nullptr;
    (void)cudaMalloc(&remainder, N * sizeof *remainder);
    (void)cudaMalloc(&upper, N * sizeof *upper);
    (void)cudaMemcpy(remainder, rest.data(), N * sizeof *remainder, cudaMemcpyHostToDevice);
    (void)cudaMemcpy(upper, model.data(), N * sizeof *upper, cudaMemcpyHostToDevice);
    mpsim_cuda_parameter p = t.on_device();
    p.param = NULL, p.model = upper, p.remainder = remainder;
    const mpsim_cuda_call call = {NULL, NULL, 0, NULL, 0};
    const mpsim_cuda_optim how = {&o, mpsim_format_find("bf16"), NULL, NULL};
    size_t differs = mpsim_cuda_optimizer(&how, 1, &p, 1, &call) != MPSIM_OK;
    (void)t.step(o, 1);
    (void)cudaMemcpy(rest.data(), remainder, N * sizeof *remainder, cudaMemcpyDeviceToHost);
    (void)cudaMemcpy(model.data(), upper, N * sizeof *upper, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < N; i++) {
        const float x = t.param.values[i];
        differs += x == x && mpsim_bits_f32(mpsim_master_join(model[i], rest[i])) != mpsim_bits_f32(x);
    }
    OK(differs == 0, "a master in two halves is updated as mpsim_master_split keeps it");
    (void)cudaFree(remainder);
    (void)cudaFree(upper);
}

/* Norms of arrays of several sizes and magnitudes, each in a format of its own, beside mpsim_norm. */
void ask_norms()
{
    enum { ARRAYS = 130 };
    static const char *const names[] = {"binary32", "bf16", "fp16", "e5m2", "e4m3"};
    static const size_t lengths[] = {1, 2, 77, 5000, 0};
    static const float magnitudes[] = {1, 1e-30f, 1e-42f, 1e25f, 300};
    std::vector<array> all(ARRAYS);
    std::vector<mpsim_cuda_array> list;
    std::vector<float> expected, got(ARRAYS);
    for (size_t i = 0; i < ARRAYS; i++) {
        const size_t n = lengths[i % 5];
        const mpsim_format *f = mpsim_format_find(names[i / 5 % 5]);
        all[i].set("binary32", numbers(n, i, magnitudes[i / 25 % 5], 0), 0);
        if (i % 5 == 2 && i % 3 == 0) /* between two numbers of bf16: 1 + 2^-8 + a little, and less */
            all[i].set("binary32", {256, 16, 16, i % 2 ? 0x1p-30f : 1}, 0);
        if (i % 41 == 3)
            all[i].set("binary32", {1, i % 2 ? NAN : INFINITY, 2}, 0);
        expected.push_back(mpsim_norm(f, all[i].values.data(), all[i].values.size()));
        list.push_back({static_cast<float *>(all[i].data()), all[i].values.size(), i % 25 < 5 ? NULL : f});
    }
    char why[256] = "";
    float *norms = nullptr;
    const workspace room(mpsim_cuda_norm_room(ARRAYS));
    const mpsim_cuda_call call = {NULL, room.at, room.bytes, why, sizeof why};
    (void)cudaMalloc(&norms, ARRAYS * sizeof *norms);
    const uint64_t waits = gpu_host.waits;
    size_t differs = mpsim_cuda_norm(norms, list.data(), ARRAYS, &call) != MPSIM_OK || gpu_host.waits != waits;
    (void)cudaMemcpy(got.data(), norms, ARRAYS * sizeof *norms, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < ARRAYS; i++)
        differs += !(got[i] != got[i] && expected[i] != expected[i]) &&
                   mpsim_bits_f32(got[i]) != mpsim_bits_f32(expected[i]);
    OK(differs == 0, "norms of %d arrays are those of mpsim_norm: %zu differ %s", int(ARRAYS), differs, why);
    list[1].x = NULL;
    OK(mpsim_cuda_norm(norms, list.data(), ARRAYS, &call) == MPSIM_EINVAL && strstr(why, "array 1"), "%s", why);
    const mpsim_cuda_call small = {NULL, room.at, 8, why, sizeof why};
    list[1].x = norms;
    OK(mpsim_cuda_norm(norms, list.data(), ARRAYS, &small) == MPSIM_ENOMEM && strstr(why, "workspace"), "%s", why);
    (void)cudaFree(norms);
}

/* Roots of sums of limbs in binary64: any bits, few bits, ties. */
void ask_roots()
{
    size_t differs = 0;
    for (uint64_t k = 0; k < 5000; k++) {
        gpu_word limb[GPU_SQUARES_LIMBS] = {};
        const size_t low = drawn(k, 0) % 17, n = 1 + drawn(k, 1) % 3;
        mpsim_sum sum;
        mpsim_sum_init(&sum);
        for (size_t i = low; i < low + n; i++)
            limb[i] = (gpu_word)drawn(k, 2 * i + 2) << (k % 3 ? 0 : 24) >> drawn(k, 2 * i + 3) % 32;
        if (k % 4 == 0) /* 53 bits, half a unit, and nothing or little below it */
            limb[low] = k % 8 ? 0 : 1, limb[low + 1] = 0x80000000u, limb[low + 2] = 0,
            limb[low + 3] = 1u << 20 | (k & 8 ? 1 : 0);
        if (k % 4 == 0)
            limb[low + 2] = drawn(k, 2) | (k & 16 ? 1 : 0);
        for (int i = 0; i < GPU_SQUARES_LIMBS; i++)
            mpsim_sum_add(&sum, ldexp(double(limb[i]), 32 * i + GPU_SQUARES_LOWEST));
        differs += gpu_squares_root(limb, 0) != sqrt(mpsim_sum_value(&sum));
    }
    OK(differs == 0, "roots of 5,000 sums of squares in binary64: %zu differ", differs);
}

/* More tensors than a launch takes. */
void ask_launches()
{
    const mpsim_optim o = optim_of(mpsim_optim_variant_find("torch"), MPSIM_OPTIM_ADAMW, 0, all_formats[0],
                                   all_options[0]);
    const mpsim_cuda_optim how = {&o, NULL, NULL, NULL};
    tensor t(o, "binary32", 4 * 300, 1, 0);
    std::vector<mpsim_cuda_parameter> list;
    for (size_t i = 0; i < 300; i++) {
        mpsim_cuda_parameter p = t.on_device();
        p.param = static_cast<float *>(p.param) + 4 * i, p.grad = static_cast<const float *>(p.grad) + 4 * i;
        p.m = static_cast<float *>(p.m) + 4 * i, p.v = static_cast<float *>(p.v) + 4 * i;
        p.model = NULL, p.n = 4;
        list.push_back(p);
    }
    const mpsim_cuda_call call = {NULL, NULL, 0, NULL, 0};
    const uint64_t launches = gpu_host.launches;
    const mpsim_status s = mpsim_cuda_optimizer(&how, 1, list.data(), 300, &call);
    (void)t.step(o, 1);
    OK(s == MPSIM_OK && gpu_host.launches - launches == 2 && !t.param.differing() && !t.v.differing(),
       "300 tensors are two launches");
}

/* status, and a line with `word` */
void refused(const mpsim_cuda_optim *o, uint64_t step, const mpsim_cuda_parameter *t, mpsim_status status,
             const char *word, const char *name)
{
    char why[256] = "";
    const mpsim_cuda_call call = {NULL, NULL, 0, why, sizeof why};
    const uint64_t launches = gpu_host.launches;
    const mpsim_status s = mpsim_cuda_optimizer(o, step, t, 1, &call);
    OK(s == status && strstr(why, word) && !strchr(why, '\n') && gpu_host.launches == launches, "%s: %s", name, why);
}

void ask_refusals()
{
    mpsim_optim o = optim_of(mpsim_optim_variant_find("ieee"), MPSIM_OPTIM_ADAM, 0, all_formats[0], all_options[0]);
    const mpsim_cuda_optim how = {&o, NULL, NULL, NULL};
    tensor t(o, "binary32", 8, 1, 0);
    mpsim_cuda_parameter p = t.on_device();
    refused(&how, 0, &p, MPSIM_EINVAL, "step is 0", "step 0");
    refused(NULL, 1, &p, MPSIM_EINVAL, "no optimizer", "no optimizer");
    refused(&how, 1, NULL, MPSIM_EINVAL, "no tensors", "no tensors");
    p.v = NULL;
    refused(&how, 1, &p, MPSIM_EINVAL, "needs v", "no second moment");
    p = t.on_device(), p.remainder = reinterpret_cast<int16_t *>(p.m);
    refused(&how, 1, &p, MPSIM_EINVAL, "remainder", "a parameter twice");
    p = t.on_device();
    o.lr = -1;
    refused(&how, 1, &p, MPSIM_EINVAL, "ieee", "an invalid rate");
    o.lr = 1e-3, o.param = *mpsim_format_find("binary64");
    refused(&how, 1, &p, MPSIM_ERANGE, "binary32", "binary64");
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAFACTOR, mpsim_optim_variant_find("torch-cpu-adafactor"));
    refused(&how, 1, &p, MPSIM_ENOMEM, "workspace", "Adafactor without a workspace");
    o.rows = 3, o.cols = 2;
    refused(&how, 1, &p, MPSIM_EINVAL, "whole matrices", "Adafactor of half a matrix");
    mpsim_optim_init(&o, MPSIM_OPTIM_LION, mpsim_optim_variant_find("torch"));
    refused(&how, 1, &p, MPSIM_EUNAVAILABLE, "Lion of variant torch", "an algorithm that the variant lacks");
    OK(mpsim_cuda_optimizer(&how, 1, &p, 1, NULL) == MPSIM_EINVAL, "no call");
}

} // namespace

int main()
{
    ask_variants();
    ask_adafactors();
    ask_norms();
    ask_roots();
    ask_masters();
    ask_launches();
    ask_refusals();
    OK(gpu_host_check() == cudaSuccess, "no write beside an array");
    return tap_end();
}
