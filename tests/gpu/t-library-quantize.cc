/* t-library-quantize.cc -- mpsim_cuda_quantize and mpsim_cuda_enter, their kernels on a CPU, beside mpsim_block_quantize and
 * mpsim_operand_enter. */
#include "tap.h"

#include "support/extent.h"

#include "../../gpu/library/enter.cu"
#include "../../gpu/library/quantize.cu"

#include <float.h>

#include <string>
#include <vector>

namespace
{

/* ---- memory of the device ---- */

template <class T>
struct device_array {
    T *p = nullptr;
    size_t n;
    explicit device_array(size_t count) : n(count)
    {
        if (cudaMalloc(&p, (n ? n : 1) * sizeof(T)) != cudaSuccess)
            printf("Bail out! memory\n");
        std::vector<T> zero(n);
        put(zero);
    }
    ~device_array()
    {
        (void)cudaFree(p);
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    void put(const std::vector<T> &from)
    {
        if (!from.empty())
            (void)cudaMemcpy(p, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
    }
    std::vector<T> get() const
    {
        std::vector<T> to(n);
        if (n)
            (void)cudaMemcpy(to.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
        return to;
    }
};

/* A call with a workspace of `bytes`; what a runtime sees of it. */
struct calling {
    char why[256] = "";
    device_array<unsigned char> room;
    mpsim_cuda_call call;
    size_t memory;
    uint64_t waits;

    explicit calling(size_t bytes) : room(bytes), memory(gpu_host.memory.size()), waits(gpu_host.waits)
    {
        call = mpsim_cuda_call{nullptr, bytes ? room.p : nullptr, bytes, why, sizeof why};
    }
    int is_silent() const
    {
        return gpu_host.memory.size() == memory && gpu_host.waits == waits && gpu_host.error == cudaSuccess;
    }
};

/* ---- numbers ---- */

uint32_t state = 1;

uint32_t next()
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

float number_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

enum { NORMAL, WIDE, ZEROS, SUBNORMAL, INFINITIES, NANS, HALVES, KINDS };
const char *const kind_names[] = {"normal",        "wide",      "zeros", "subnormal numbers",
                                  "with infinity", "with NaNs", "halves"};

/* The exponents of a kind; specials are rare, so that blocks without them remain. */
float hard(int kind)
{
    const uint32_t r = next(), sign = (r & 1) << 31, m = next() & 0x7fffff;
    if (kind == ZEROS && r % 5)
        return r & 2 ? -0.0f : 0.0f;
    if (kind == SUBNORMAL)
        return number_of(sign | (next() % 3 ? m >> next() % 23 : 1u << 23 | m));
    if (kind == INFINITIES && next() % 150 == 0)
        return number_of(sign | 0x7f800000u);
    if (kind == NANS && next() % 150 == 0)
        return number_of(sign | 0x7f800001u | m);
    if (kind == WIDE)
        return number_of(sign | (1 + next() % 254) << 23 | m);
    if (kind == HALVES)
        return number_of(sign | (120 + next() % 12) << 23 | (m & 0x600000u));
    return number_of(sign | (118 + next() % 14) << 23 | m);
}

std::vector<float> hard_array(size_t n, int kind)
{
    std::vector<float> x(n);
    for (float &v : x)
        v = hard(kind);
    return x;
}

/* Whether both are the same bits; NaNs of any bits are one if they `may` be. */
int same(const std::vector<float> &a, const std::vector<float> &b, int may)
{
    for (size_t i = 0; i < a.size(); i++)
        if (bits_of(a[i]) != bits_of(b[i]) && !(may && a[i] != a[i] && b[i] != b[i])) {
            printf("# number %zu: %a (%08x), expected %a (%08x)\n", i, double(a[i]), bits_of(a[i]), double(b[i]),
                   bits_of(b[i]));
            return 0;
        }
    return 1;
}

int same_codes(const std::vector<uint8_t> &a, const std::vector<uint8_t> &b)
{
    for (size_t i = 0; i < a.size(); i++)
        if (a[i] != b[i]) {
            printf("# code %zu: %02x, expected %02x\n", i, a[i], b[i]);
            return 0;
        }
    return 1;
}

int same_counts(const mpsim_entered &a, const mpsim_entered &b)
{
    if (memcmp(&a, &b, sizeof a) == 0)
        return 1;
    printf("# counts %llu %llu %llu %llu, expected %llu %llu %llu %llu\n", (unsigned long long)a.nonzero,
           (unsigned long long)a.lost, (unsigned long long)a.overflow, (unsigned long long)a.nonfinite,
           (unsigned long long)b.nonzero, (unsigned long long)b.lost, (unsigned long long)b.overflow,
           (unsigned long long)b.nonfinite);
    return 0;
}

/* ---- quantising ---- */

/* What a quantisation gives. */
struct quantised {
    std::vector<uint8_t> codes, scale_codes;
    std::vector<float> values, scales, inverses, amax, tensor_scale;
    mpsim_entered counts = {0, 0, 0, 0};

    quantised(const mpsim_block_recipe &b, size_t rows, size_t cols)
    {
        size_t down, across;
        mpsim_block_grid(&b, rows, cols, &down, &across);
        const size_t n = rows * cols, blocks = n ? down * across : 0;
        codes.resize(n);
        values.resize(n);
        scale_codes.resize(blocks);
        scales.resize(blocks);
        inverses.resize(blocks);
        amax.resize(blocks);
        tensor_scale.resize(1);
    }
    int is(const quantised &o) const
    {
        return same_codes(scale_codes, o.scale_codes) && same(amax, o.amax, 0) && same(scales, o.scales, 0) &&
               same(inverses, o.inverses, 0) && same(tensor_scale, o.tensor_scale, 0) && same_codes(codes, o.codes) &&
               same(values, o.values, 1) && same_counts(counts, o.counts);
    }
};

/* A question: a matrix, and what it is given. */
struct question {
    mpsim_block_recipe b;
    size_t rows, cols;
    std::vector<float> x;
    float given;
    mpsim_rng rng;
    float tensor_amax; /* -1: of x */
};

quantised of_cpu(const question &q)
{
    quantised r(q.b, q.rows, q.cols);
    mpsim_counts counts = {0, 0, 0, 0, 0};
    mpsim_blocks out = {};
    out.codes = r.codes.data();
    out.values = r.values.data();
    out.scale_codes = r.scale_codes.data();
    out.scales = r.scales.data();
    out.inverses = r.inverses.data();
    out.amax = r.amax.data();
    out.counts = &counts;
    if (mpsim_block_quantize(&q.b, q.x.data(), q.rows, q.cols, q.tensor_amax, q.given, &q.rng, &out,
                             r.tensor_scale.data()) != MPSIM_OK)
        printf("# %s: refused by the CPU\n", q.b.name);
    r.counts.lost = counts.underflow;
    r.counts.overflow = counts.overflow;
    for (size_t i = 0; i < q.x.size(); i++) {
        r.counts.nonzero += isfinite(q.x[i]) && q.x[i] != 0;
        r.counts.nonfinite += !isfinite(r.values[i]);
    }
    return r;
}

mpsim_stack stack_of(const mpsim_format *f, void *codes, size_t rows, size_t cols)
{
    mpsim_stack s = {};
    s.format = f;
    s.codes = codes;
    s.rank = 2;
    s.shape[0] = rows;
    s.shape[1] = cols;
    s.strides[0] = int64_t(cols);
    s.strides[1] = 1;
    return s;
}

/* Codes of x, row-major or column-major. */
std::vector<uint8_t> codes_of(const question &q, const mpsim_format *f, int turned)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    std::vector<uint8_t> codes(q.x.size() * bytes);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    std::vector<float> in_order(q.x);
    for (size_t i = 0; i < q.x.size() && turned; i++)
        in_order[i % q.cols * q.rows + i / q.cols] = q.x[i];
    if (bytes == 4) /* NaNs as they are */
        memcpy(codes.data(), in_order.data(), codes.size());
    else
        mpsim_encode_array_f32(f, &r, NULL, codes.data(), in_order.data(), in_order.size(), NULL);
    return codes;
}

/* The same question of numbers of a format. */
question rounded_to(const question &q, const mpsim_format *f)
{
    question r = q;
    std::vector<uint8_t> codes = codes_of(q, f, 0);
    mpsim_decode_array_f32(f, r.x.data(), codes.data(), r.x.size());
    return r;
}

int of_device(quantised *r, const question &q, const mpsim_format *f, int turned)
{
    const std::vector<uint8_t> codes = codes_of(q, f, turned);
    device_array<uint8_t> x(codes.size()), to(r->codes.size()), scale_codes(r->scale_codes.size());
    device_array<float> values(r->values.size()), scales(r->scales.size()), inverses(r->inverses.size()),
        amax(r->amax.size()), numbers(2), tensor(1);
    device_array<mpsim_entered> counts(1);
    x.put(codes);
    numbers.put({q.given, q.tensor_amax});
    mpsim_stack s = stack_of(f, x.p, q.rows, q.cols);
    if (turned) {
        s.strides[0] = 1;
        s.strides[1] = int64_t(q.rows);
    }
    calling c(mpsim_cuda_quantize_room(&q.b, q.rows, q.cols));
    mpsim_cuda_blocks out = {};
    out.codes = to.p;
    out.values = values.p;
    out.scale_codes = scale_codes.p;
    out.scales = scales.p;
    out.inverses = inverses.p;
    out.amax = amax.p;
    out.tensor_amax = q.tensor_amax < 0 ? NULL : numbers.p + 1;
    out.tensor_scale = tensor.p;
    out.counts = counts.p;
    const mpsim_status status = mpsim_cuda_quantize(&q.b, &s, numbers.p, &q.rng, &out, &c.call);
    if (status != MPSIM_OK || !c.is_silent()) {
        printf("# %s: %s: %s (%s)\n", q.b.name, mpsim_status_string(status), c.why, cudaGetErrorString(gpu_host.error));
        return 0;
    }
    r->codes = to.get();
    r->values = values.get();
    r->scale_codes = scale_codes.get();
    r->scales = scales.get();
    r->inverses = inverses.get();
    r->amax = amax.get();
    r->tensor_scale = tensor.get();
    r->counts = counts.get()[0];
    return 1;
}

int agrees(const question &q, const mpsim_format *f, int turned)
{
    quantised got(q.b, q.rows, q.cols);
    return of_device(&got, q, f, turned) && got.is(of_cpu(q));
}

std::vector<mpsim_block_recipe> recipes()
{
    static const char *const more[] = {"mxfp8-e5m2:even",   "mxfp6-e2m3:rceil",  "mxfp4:ceil",      "mxfp4:te",
                                       "mxfp6-e3m2:microx", "nvfp4:2d:sr",       "nvfp4:1level",    "e4m3/3x5",
                                       "e5m2/row",          "e4m3/tensor",       "e2m3/7x32:ue8m0", "e3m2/1x16:floor",
                                       "e2m1/2x64:te",      "e4m3/1x8:rceil",    "e4m3fnuz/4x4",    "e3m4/1x48",
                                       "e5m2/64x1:microx",  "e4m3/128x128:even", "e2m1/1x16:microx"};
    std::vector<mpsim_block_recipe> list;
    unsigned transform;
    for (size_t i = 0; i < mpsim_block_count(); i++)
        list.push_back(*mpsim_block_at(i));
    for (const char *text : more) {
        mpsim_block_recipe b;
        char why[256];
        if (mpsim_block_parse(&b, &transform, text, why, sizeof why) == MPSIM_OK)
            list.push_back(b);
        else
            printf("Bail out! %s\n", why);
    }
    for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) { /* of no row of the table */
        mpsim_block_recipe b = *mpsim_block_find("mxfp8-floor");
        snprintf(b.name, sizeof b.name, "mxfp8-floor, mode %d", mode);
        b.element_mode = uint8_t(mode);
        b.sr_bits = 5;
        list.push_back(b);
    }
    mpsim_block_recipe given = *mpsim_block_find("te-current");
    given.rule = MPSIM_SCALE_GIVEN;
    list.push_back(given);
    given = *mpsim_block_find("te-block-1x128");
    given.amax_epsilon = 0.25;
    list.push_back(given);
    given = *mpsim_block_find("torchao-tensorwise");
    given.power_of_two = 1;
    list.push_back(given);
    given = *mpsim_block_find("ms-amp");
    given.margin = 100;
    list.push_back(given);
    return list;
}

question ask(const mpsim_block_recipe &b, size_t rows, size_t cols, int kind)
{
    question q = {b, rows, cols, hard_array(rows * cols, kind), 0.375f, {7, 3, 5}, -1};
    return q;
}

void ask_recipes()
{
    static const size_t shapes[][2] = {{5, 160}, {33, 70}, {1, 1}, {17, 131}};
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    unsigned index = 0;
    for (const mpsim_block_recipe &b : recipes()) {
        int good = 1;
        for (int kind = 0; kind < KINDS; kind++) {
            if (!test_in_part(index++, 2))
                continue;
            const size_t *shape = shapes[size_t(kind) % 4];
            const question q = ask(b, shape[0], shape[1], kind);
            if (!agrees(q, binary32, kind % 2)) {
                printf("# %s, %zu x %zu, %s\n", b.name, q.rows, q.cols, kind_names[kind]);
                good = 0;
            }
        }
        for (int kind = 0; kind < KINDS; kind++) { /* whole blocks: kernels for the usual recipes */
            if (!test_in_part(index++, 2))
                continue;
            const char *const formats[] = {"binary32", "bf16", "fp16"};
            const mpsim_format *f = mpsim_format_find(formats[kind % 3]);
            question whole = ask(b, kind == NORMAL ? 130 : 19, 256 + (kind == ZEROS ? 8 : 0), kind);
            whole = kind % 3 ? rounded_to(whole, f) : whole;
            if (!agrees(whole, f, 0)) {
                printf("# %s, %zu x %zu, %s\n", b.name, whole.rows, whole.cols, kind_names[kind]);
                good = 0;
            }
        }
        question q = ask(b, 16, 128, NORMAL);
        q.tensor_amax = 3;
        for (const char *format : {"bf16", "fp16"})
            good &= agrees(rounded_to(q, mpsim_format_find(format)), mpsim_format_find(format), 0);
        q.rows = q.cols = 0;
        q.x.clear();
        good &= agrees(q, binary32, 0);
        OK(good, "%s: as mpsim_block_quantize", b.name);
    }
}

/* Blocks whose amax is near a number where scales of powers of two change, in all binades; beside it small numbers and zeros. */
std::vector<float> turning_array(size_t blocks, size_t width)
{
    static const uint32_t turns[] = {0, 0x200000, 0x400000, 0x600000, 0x700000, 0x780000, 0x7c0000};
    std::vector<float> x(blocks * width);
    for (size_t i = 0; i < blocks; i++) {
        const uint32_t turn = turns[i % 7] + uint32_t(i / 7 % 5) - 2, amax = uint32_t(i * 251 / blocks + 3) << 23;
        for (size_t k = 1; k < width; k++)
            x[i * width + k] = k % 5 ? mpsim_f32_bits((amax & 0x7f800000u) >> k % 3 | uint32_t(k * 0x9e3779b9u) >> 9)
                                     : 0;
        x[i * width + i % width] = mpsim_f32_bits(amax + turn);
        for (size_t k = 0; k < width; k++)
            x[i * width + k] = fminf(fabsf(x[i * width + k]), mpsim_f32_bits(amax + turn)) * (k % 2 ? -1.0f : 1.0f);
    }
    return x;
}

void ask_turns()
{
    unsigned index = 0;
    int good = 1;
    for (const mpsim_block_recipe &b : recipes()) {
        if (b.block_rows != 1 || b.block_cols < 16 || mpsim_is_stochastic(b.element_mode) || !test_in_part(index++, 4))
            continue;
        for (const char *format : {"binary32", "bf16"}) {
            const mpsim_format *f = mpsim_format_find(format);
            question q = ask(b, 4, 16 * b.block_cols, NORMAL);
            q.rows = 44;
            q.x = turning_array(44 * 16, b.block_cols);
            q = f->bits == 32 ? q : rounded_to(q, f);
            const int same = agrees(q, f, 0);
            if (!same)
                printf("# %s of %s\n", b.name, format);
            good &= same;
        }
    }
    OK(good, "scales near where they change: as mpsim_block_quantize");
}

/* Recipes whose blocks lie in a row: one launch, two where the tensor's amax comes first. */
void ask_launches()
{
    for (size_t i = 0; i < mpsim_block_count(); i++) {
        const mpsim_block_recipe &b = *mpsim_block_at(i);
        if (b.block_rows != 1 || b.block_cols < 16 || b.rule == MPSIM_SCALE_E8M0_MICROX ||
            b.rule == MPSIM_SCALE_TORCHAO_018_RCEIL)
            continue; /* scales by a logarithm in binary32 */
        question q = ask(b, 2, 256, NORMAL);
        q.rng.index = 4;
        const uint64_t before = gpu_host.launches;
        const int same = agrees(q, mpsim_format_find("binary32"), 0);
        const uint64_t launches = gpu_host.launches - before;
        OK(same && launches == 1 + (b.rule == MPSIM_SCALE_NVFP4_TE || b.rule == MPSIM_SCALE_NVFP4_TORCHAO),
           "%s: a kernel of its own (%u launches)", b.name, unsigned(launches));
    }
}

/* ---- entering ---- */

struct entered {
    std::vector<uint8_t> codes;
    std::vector<float> factors;
    float inverse = 1, amax = 0;
    mpsim_entered counts = {0, 0, 0, 0};
};

size_t count_of(const mpsim_stack &s)
{
    size_t n = 1;
    for (uint32_t i = 0; i < s.rank; i++)
        n *= s.strides[i] || i + 2 >= s.rank ? s.shape[i] : 1;
    return n;
}

size_t factors_of(const mpsim_operand &o)
{
    size_t n = o.factors ? o.grid_rows * o.grid_cols : 0;
    for (uint32_t i = 0; i + 2 < o.stack.rank; i++)
        n *= o.stack.strides[i] ? o.stack.shape[i] : 1;
    return n;
}

/* Whether both operands are of the same shape, and codes lie alike. */
int alike(const mpsim_operand &a, const mpsim_operand &b)
{
    return mpsim_format_same(a.format, b.format) && mpsim_format_same(a.stack.format, b.stack.format) &&
           a.stack.rank == b.stack.rank && memcmp(a.stack.strides, b.stack.strides, a.stack.rank * 8) == 0 &&
           memcmp(a.stack.shape, b.stack.shape, a.stack.rank * 8) == 0 && !a.factors == !b.factors &&
           a.block_rows == b.block_rows && a.block_cols == b.block_cols && a.grid_rows == b.grid_rows &&
           a.grid_cols == b.grid_cols && a.scales == b.scales;
}

/* Codes whose NaNs are one: the largest magnitude of the format's codes with its sign gone. */
void unify(std::vector<uint8_t> *codes, const mpsim_format *f)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < codes->size(); i += bytes) {
        uint64_t code = 0;
        memcpy(&code, codes->data() + i, bytes);
        if (mpsim_classify(f, code) == MPSIM_CLASS_NAN)
            memset(codes->data() + i, 0xff, bytes);
    }
}

/* x, whose codes lie in memory of the host, through both. */
int enters_alike(const mpsim_stack &x, size_t bytes, const mpsim_entering &how, int measures)
{
    entered cpu, dev;
    mpsim_operand o = {};
    mpsim_cuda_operand d = {};
    const mpsim_entry_stats stats = {&cpu.amax, &cpu.counts, NULL};
    const mpsim_status expected = mpsim_operand_enter(&o, &x, &how, measures ? &stats : NULL, NULL);
    device_array<uint8_t> codes(bytes);
    device_array<float> amax(1);
    device_array<mpsim_entered> counts(1);
    codes.put(std::vector<uint8_t>(static_cast<uint8_t *>(x.codes), static_cast<uint8_t *>(x.codes) + bytes));
    mpsim_stack s = x;
    s.codes = codes.p;
    calling c(mpsim_cuda_enter_room(&s, &how));
    const mpsim_status status = mpsim_cuda_enter(&d, &s, &how, measures ? amax.p : NULL, measures ? counts.p : NULL,
                                                 &c.call);
    if (status != expected || !c.is_silent()) {
        printf("# %s, expected %s: %s (%s)\n", mpsim_status_string(status), mpsim_status_string(expected), c.why,
               cudaGetErrorString(gpu_host.error));
        return 0;
    }
    if (status != MPSIM_OK)
        return 1;
    if (d.of.stack.codes == codes.p) { /* in place: nothing was written */
        mpsim_operand_free(&o);
        return same_counts(counts.get()[0], cpu.counts) && same(amax.get(), {cpu.amax}, 0);
    }
    const size_t width = mpsim_format_code_bytes(o.format), n = count_of(o.stack) * width, m = factors_of(o);
    cpu.codes.assign(static_cast<uint8_t *>(o.stack.codes), static_cast<uint8_t *>(o.stack.codes) + n);
    dev.codes.assign(static_cast<uint8_t *>(d.of.stack.codes), static_cast<uint8_t *>(d.of.stack.codes) + n);
    unify(&cpu.codes, o.format);
    unify(&dev.codes, o.format);
    cpu.factors.assign(o.factors, o.factors + m);
    if (m)
        dev.factors.assign(d.of.factors, d.of.factors + m);
    cpu.inverse = o.inverse;
    dev.inverse = d.inverse ? *d.inverse : d.of.inverse;
    const int good = alike(o, d.of) && same_codes(dev.codes, cpu.codes) && same(dev.factors, cpu.factors, 0) &&
                     same({dev.inverse}, {cpu.inverse}, 0) && same_counts(counts.get()[0], cpu.counts) &&
                     same(amax.get(), {cpu.amax}, 0);
    mpsim_operand_free(&o);
    return good;
}

/* A stack of 3 x 2 matrices, the first dimension with stride 0, of 9 rows and 150 columns, turned or not. */
int enters(const char *from, const mpsim_entering &how, int kind, int turned, int measures)
{
    enum { ROWS = 9, COLS = 150, ALL = 2 * ROWS * COLS };
    const mpsim_format *f = mpsim_format_find(from);
    const question q = {*mpsim_block_at(0), 1, ALL, hard_array(ALL, kind), 1, {0, 0, 0}, -1};
    std::vector<uint8_t> codes = codes_of(q, f, 0);
    mpsim_stack x = {};
    x.format = f;
    x.codes = codes.data();
    x.rank = 4;
    const size_t shape[] = {3, 2, ROWS, COLS};
    const int64_t strides[] = {0, ROWS * COLS, turned ? 1 : COLS, turned ? ROWS : 1};
    memcpy(x.shape, shape, sizeof shape);
    memcpy(x.strides, strides, sizeof strides);
    return enters_alike(x, codes.size(), how, measures);
}

void ask_entering()
{
    static const char *const names[] = {NULL,       "mxfp8", "te-current",    "te-block-128x128", "nvfp4",
                                        "nvfp4-2d", "mxfp4", "nvfp4-torchao", "torchao-rowwise",  "deepseek-1x128",
                                        "ms-amp"};
    static const unsigned transforms[] = {0, 16, 32, 64, 128};
    for (const char *name : names) {
        int good = 1;
        for (int use = 0; use <= MPSIM_BLOCKS_AS_NUMBERS; use++)
            for (int kind = 0; kind < KINDS; kind++) {
                mpsim_entering how = {};
                how.recipe = name ? mpsim_block_find(name) : NULL;
                how.use = uint8_t(use);
                how.given = 0.25f;
                how.hadamard = kind == INFINITIES || kind == NANS ? 0 : transforms[(kind + use) % 5];
                how.format = kind % 2 ? mpsim_format_find("bf16") : NULL;
                const char *from = kind % 3 == 2 ? "fp16" : "binary32";
                if (!enters(from, how, kind, use % 2, (kind + use) % 3 != 0)) {
                    printf("# use %d, %s of %s, transform %u\n", use, kind_names[kind], from, how.hadamard);
                    good = 0;
                }
            }
        OK(good, "%s: as mpsim_operand_enter", name ? name : "no recipe");
    }
    mpsim_entering how = {};
    how.format = mpsim_format_find("bf16");
    int good = 1;
    for (int mode = 0; mode < MPSIM_ROUND_STOCHASTIC_A; mode++) {
        how.mode = uint8_t(mode);
        good &= enters("binary32", how, WIDE, mode % 2, mode % 3 == 0);
    }
    OK(good, "all modes of rounding");
    how.format = mpsim_format_find("binary64");
    OK(enters("binary32", how, WIDE, 0, 0), "numbers of binary32 as numbers of binary64");
}

/* ---- refusals ---- */

void ask_refusals()
{
    const mpsim_block_recipe *b = mpsim_block_find("nvfp4-sr");
    device_array<float> x(64);
    device_array<uint8_t> codes(64);
    mpsim_stack s = stack_of(mpsim_format_find("binary32"), x.p, 4, 16);
    const mpsim_rng rng = {1, 2, 3};
    mpsim_cuda_blocks out = {};
    out.codes = codes.p;
    const size_t bytes = mpsim_cuda_quantize_room(b, 4, 16);
    calling c(bytes + 256);
    const uint64_t launches = gpu_host.launches;
    OK(mpsim_cuda_quantize(b, &s, NULL, &rng, &out, NULL) == MPSIM_EINVAL, "no call is refused");
    OK(mpsim_cuda_quantize(b, &s, NULL, NULL, &out, &c.call) == MPSIM_EINVAL && strstr(c.why, "random bits"),
       "a stochastic recipe without random bits is refused: %s", c.why);
    OK(mpsim_cuda_quantize(mpsim_block_find("ms-amp"), &s, NULL, &rng, &out, &c.call) == MPSIM_EINVAL,
       "a recipe without its given scale is refused: %s", c.why);
    OK(mpsim_cuda_quantize(b, &s, NULL, &rng, NULL, &c.call) == MPSIM_EINVAL, "no place for results is refused");
    mpsim_block_recipe bad = *b;
    bad.rule = 99;
    OK(mpsim_cuda_quantize(&bad, &s, NULL, &rng, &out, &c.call) == MPSIM_EINVAL &&
           mpsim_cuda_quantize_room(&bad, 4, 16) == 0,
       "an invalid recipe is refused: %s", c.why);
    mpsim_stack wide = s;
    wide.format = mpsim_format_find("binary64");
    OK(mpsim_cuda_quantize(b, &wide, NULL, &rng, &out, &c.call) == MPSIM_ERANGE, "binary64 is refused: %s", c.why);
    c.call.bytes = bytes - 1;
    OK(mpsim_cuda_quantize(b, &s, NULL, &rng, &out, &c.call) == MPSIM_ENOMEM, "a small workspace is refused: %s",
       c.why);
    c.call.bytes = bytes;
    c.call.room = c.room.p + 8;
    OK(mpsim_cuda_quantize(b, &s, NULL, &rng, &out, &c.call) == MPSIM_EINVAL,
       "a workspace beside its alignment is refused: %s", c.why);
    mpsim_cuda_operand o;
    mpsim_entering how = {};
    how.hadamard = 17;
    OK(mpsim_cuda_enter(&o, &s, &how, NULL, NULL, &c.call) == MPSIM_EINVAL && mpsim_cuda_enter_room(&s, &how) == 0,
       "a transform of 17 is refused: %s", c.why);
    how.hadamard = 0;
    OK(gpu_host.launches == launches, "nothing is launched");
    OK(mpsim_cuda_enter(&o, &s, &how, NULL, NULL, &c.call) == MPSIM_OK && o.of.stack.codes == x.p &&
           mpsim_cuda_enter_room(&s, &how) == 0 && gpu_host.launches == launches,
       "where nothing is to be done numbers stay where they lie");
}

} // namespace

int main()
{
    ask_recipes();
    ask_turns();
    ask_launches();
    ask_entering();
    ask_refusals();
    return tap_end();
}
