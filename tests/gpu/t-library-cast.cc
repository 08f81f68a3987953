/* t-library-cast.cc -- mpsim_cuda_cast, its kernels on a CPU, beside mpsim_encode_array_f32, mpsim_encode_array_f64 and
 * mpsim_round_array_f32. */
#include "tap.h"

#include "../../gpu/library/cast.cu"

#include "../../lib/base/codes.h"

#include <string>
#include <vector>

namespace
{

/* ---- memory of the device ---- */

struct bytes_on_device {
    unsigned char *p = nullptr;
    size_t n;
    explicit bytes_on_device(const std::vector<unsigned char> &from) : n(from.size())
    {
        if (cudaMalloc(&p, n ? n : 1) != cudaSuccess)
            printf("Bail out! memory\n");
        if (n)
            (void)cudaMemcpy(p, from.data(), n, cudaMemcpyHostToDevice);
    }
    ~bytes_on_device()
    {
        (void)cudaFree(p);
    }
    bytes_on_device(const bytes_on_device &) = delete;
    bytes_on_device &operator=(const bytes_on_device &) = delete;
    std::vector<unsigned char> get() const
    {
        std::vector<unsigned char> to(n);
        if (n)
            (void)cudaMemcpy(to.data(), p, n, cudaMemcpyDeviceToHost);
        return to;
    }
};

/* ---- numbers ---- */

uint32_t state = 1;

uint32_t next()
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

uint32_t word()
{
    return next() << 16 ^ next();
}

/* Codes of a format: all of them if there are at most 2^16, else any. */
std::vector<uint32_t> codes_of(const mpsim_format *f, size_t most)
{
    std::vector<uint32_t> codes;
    const size_t all = f->bits <= 16 ? size_t(1) << f->bits : most + 1;
    for (size_t i = 0; i < (all <= most ? all : most); i++)
        codes.push_back(all <= most ? uint32_t(i) : word() & uint32_t((uint64_t(1) << f->bits) - 1));
    return codes;
}

/* Bits of binary32 near the numbers of a format and halfway between them, and of everything that is special. */
std::vector<uint32_t> hard_bits(const mpsim_format *f, size_t n)
{
    const uint32_t least = mpsim_bits_f32(float(mpsim_format_min_positive(f) / 2));
    const uint32_t most = mpsim_bits_f32(float(mpsim_format_max(f) * (1 + mpsim_format_epsilon(f) / 4)));
    std::vector<uint32_t> bits = {/* of four that are cast together */
                                  least - 1,   least,       least + 1,   2 * least,   most - 2,    most - 1,
                                  0,           1,           most,        most + 1,    0x80000000u, 0x80000001u,
                                  0x007fffffu, 0x00800000u, 0x00400000u, 0x00400001u, 0x7f7fffffu, 0xff7fffffu,
                                  0x7f800000u, 0xff800000u, 0x7f800001u, 0xff800001u, 0x7fc00000u, 0xffc12345u,
                                  0x7fffffffu, 0xffffffffu};
    while (bits.size() < n) {
        const uint64_t code = (uint64_t(word()) << 20 ^ word()) & ((uint64_t(1) << f->bits) - 1);
        const double a = mpsim_decode(f, code), b = mpsim_decode(f, mpsim_next_up(f, code));
        const float v = float(next() % 2 ? a : a + (b - a) / 2);
        const uint32_t u = mpsim_bits_f32(v);
        bits.push_back(next() % 4 ? u + next() % 5 - 2 : word());
    }
    return bits;
}

std::vector<unsigned char> as_bytes(const std::vector<uint32_t> &codes, size_t bytes)
{
    std::vector<unsigned char> to(codes.size() * bytes);
    for (size_t i = 0; i < codes.size(); i++)
        mpsim_code_store(to.data(), bytes, i, codes[i]);
    return to;
}

/* ---- what the CPU makes of a row of codes ---- */

struct expected {
    std::vector<uint32_t> codes;
    mpsim_entered counts = {};
};

int is_binary32(const mpsim_format *f)
{
    return mpsim_format_same(f, mpsim_format_find("binary32"));
}

/* Codes of `to` and what happened. */
void encode(expected *e, const mpsim_format *from, const std::vector<uint32_t> &x, const mpsim_cast *to,
            const mpsim_rng *rng)
{
    const size_t n = x.size(), bytes = mpsim_format_code_bytes(to->format);
    const std::vector<unsigned char> codes = as_bytes(x, mpsim_format_code_bytes(from));
    std::vector<unsigned char> y(n * bytes);
    std::vector<float> v(n);
    std::vector<double> wide(n);
    mpsim_counts c = {0, 0, 0, 0, 0};
    (void)mpsim_decode_array(from, wide.data(), codes.data(), n);
    if (is_binary32(from))
        memcpy(v.data(), x.data(), 4 * n);
    else if (mpsim_decode_array_f32(from, v.data(), codes.data(), n) != MPSIM_OK)
        v.clear();
    (void)(v.size() == n ? mpsim_encode_array_f32(to->format, &to->rounding, rng, y.data(), v.data(), n, &c)
                         : mpsim_encode_array_f64(to->format, &to->rounding, rng, y.data(), wide.data(), n, &c));
    for (size_t i = 0; i < n; i++) {
        e->codes.push_back(uint32_t(mpsim_code_load(y.data(), bytes, i)));
        e->counts.nonzero += wide[i] - wide[i] == 0 && wide[i] != 0;
        e->counts.nonfinite += mpsim_classify(to->format, e->codes[i]) < MPSIM_CLASS_ZERO;
    }
    e->counts.lost = c.underflow;
    e->counts.overflow = c.overflow;
}

expected expect(const mpsim_format *y, const mpsim_format *from, const std::vector<uint32_t> &x, const mpsim_cast *to,
                const mpsim_rng *rng)
{
    expected e;
    mpsim_rounding plain;
    mpsim_rounding_init(&plain, MPSIM_ROUND_NEAREST_EVEN);
    encode(&e, from, x, to, rng);
    if (mpsim_format_same(y, to->format))
        return e;
    std::vector<float> v(x.size());
    if (is_binary32(y) && is_binary32(from)) {
        memcpy(v.data(), x.data(), 4 * x.size());
        (void)mpsim_round_array_f32(to->format, &to->rounding, rng, v.data(), v.data(), v.size(), NULL);
        memcpy(e.codes.data(), v.data(), 4 * x.size());
        return e;
    }
    for (uint32_t &code : e.codes) {
        const double value = mpsim_decode(to->format, code);
        code = is_binary32(y) ? mpsim_bits_f32(mpsim_number_to_f32(mpsim_number_f64(value)))
                              : uint32_t(mpsim_encode_f64(y, &plain, value, 0, NULL));
    }
    return e;
}

/* ---- calls ---- */

struct asked {
    mpsim_status status;
    std::string why;
    int is_silent; /* nothing was allocated or waited for */
    uint64_t atomics;
};

asked ask(const mpsim_stack *y, const mpsim_stack *x, const mpsim_cast *to, const mpsim_rng *rng, mpsim_entered *counts)
{
    char why[256] = "";
    const mpsim_cuda_call call = {nullptr, nullptr, 0, why, sizeof why};
    const size_t memory = gpu_host.memory.size();
    const uint64_t waits = gpu_host.waits, atomics = gpu_host.atomics;
    const mpsim_status s = mpsim_cuda_cast(y, x, to, rng, counts, &call);
    return asked{s, why, gpu_host.memory.size() == memory && gpu_host.waits == waits, gpu_host.atomics - atomics};
}

mpsim_stack row_of(const mpsim_format *f, void *codes, size_t n)
{
    mpsim_stack s = {};
    s.format = f;
    s.codes = codes;
    s.rank = 2;
    s.shape[0] = 1;
    s.shape[1] = n;
    s.strides[0] = int64_t(n);
    s.strides[1] = 1;
    return s;
}

/* A row of codes, `off` codes from where memory is aligned: the same codes and counts as on the CPU, and nothing else. */
int agrees(const mpsim_format *y, const mpsim_format *from, const std::vector<uint32_t> &x, const mpsim_cast *to,
           const mpsim_rng *rng, size_t off = 0)
{
    const expected e = expect(y, from, x, to, rng);
    const size_t in = mpsim_format_code_bytes(from), out = mpsim_format_code_bytes(y);
    std::vector<unsigned char> given = as_bytes(x, in), wanted = as_bytes(e.codes, out);
    given.insert(given.begin(), off * in, 0);
    wanted.insert(wanted.begin(), off * out, 0xff);
    const bytes_on_device a(given), b(std::vector<unsigned char>(wanted.size(), 0xff)),
        c(std::vector<unsigned char>(sizeof(mpsim_entered), 0));
    const mpsim_stack xs = row_of(from, a.p + off * in, x.size()), ys = row_of(y, b.p + off * out, x.size());
    const asked got = ask(&ys, &xs, to, rng, reinterpret_cast<mpsim_entered *>(c.p));
    const int good = got.status == MPSIM_OK && got.is_silent && b.get() == wanted &&
                     memcmp(c.get().data(), &e.counts, sizeof e.counts) == 0;
    if (!good) {
        const std::vector<unsigned char> found = b.get();
        mpsim_entered n;
        memcpy(&n, c.get().data(), sizeof n);
        printf(
            "# %s to %s in %s, %s, %zu elements: status %d %s; counts %llu %llu %llu %llu, not %llu %llu %llu %llu\n",
            from->name, to->format->name, y->name, mpsim_round_mode_name(mpsim_round_mode(to->rounding.mode)), x.size(),
            int(got.status), got.why.c_str(), (unsigned long long)n.nonzero, (unsigned long long)n.lost,
            (unsigned long long)n.overflow, (unsigned long long)n.nonfinite, (unsigned long long)e.counts.nonzero,
            (unsigned long long)e.counts.lost, (unsigned long long)e.counts.overflow,
            (unsigned long long)e.counts.nonfinite);
        for (size_t i = 0, shown = 0; i < x.size() && shown < 4; i++)
            if (mpsim_code_load(found.data(), out, off + i) != e.codes[i] && ++shown)
                printf("#   element %zu, %x: %x, not %x\n", i, x[i],
                       unsigned(mpsim_code_load(found.data(), out, off + i)), e.codes[i]);
    }
    return good;
}

const mpsim_format *format(const char *name)
{
    return mpsim_format_find(name);
}

mpsim_cast cast_of(const mpsim_format *f, int mode)
{
    mpsim_cast c = {};
    c.format = f;
    mpsim_rounding_init(&c.rounding, mpsim_round_mode(mode));
    return c;
}

/* ---- the usual kernels ---- */

struct pair {
    const char *from, *to, *y;
    int stochastic, scaled;
};

/* All that cast.cu has a kernel for. */
std::vector<pair> usual_pairs()
{
    static const char *const names[] = {"binary32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e2m1"};
    std::vector<pair> pairs;
    for (const library::casting::row &row : library::casting::rows) {
        pair p = {nullptr, nullptr, nullptr, row.mode == GPU_STOCHASTIC, row.scaled};
        for (const char *name : names) {
            p.from = row.from(format(name)) ? name : p.from;
            p.to = row.to(format(name)) ? name : p.to;
            p.y = row.y(format(name)) ? name : p.y;
        }
        pairs.push_back(p);
    }
    return pairs;
}

/* Enough for every loop of a block, and a tail. */
enum { MANY = 4 * 8 * 5 * 256 + 1277 };

std::vector<uint32_t> operands_of(const mpsim_format *from, const mpsim_format *to, size_t n)
{
    std::vector<uint32_t> x = is_binary32(from) ? hard_bits(to, n) : codes_of(from, n);
    while (x.size() < n)
        x.push_back(x[x.size() % 251]);
    return x;
}

void ask_usual()
{
    const std::vector<pair> pairs = usual_pairs();
    OK(pairs.size() > 40, "%zu usual casts have kernels", pairs.size());
    for (const pair &p : pairs) {
        const mpsim_format *from = format(p.from), *to = format(p.to), *y = format(p.y);
        if (p.scaled)
            continue;
        const size_t n = from->bits == 16 ? size_t(1) << 16 : p.stochastic ? MANY / 2 : MANY;
        const std::vector<uint32_t> x = operands_of(from, to, n);
        const mpsim_rng rng = {7, 9, 1 << 20};
        int good = 1;
        if (p.stochastic) {
            for (int mode = MPSIM_ROUND_STOCHASTIC_A; mode <= MPSIM_ROUND_STOCHASTIC_C; mode++) {
                const mpsim_cast c = cast_of(to, mode);
                good = good && agrees(y, from, x, &c, &rng);
            }
        } else {
            const mpsim_cast even = cast_of(to, MPSIM_ROUND_NEAREST_EVEN), away = cast_of(to, MPSIM_ROUND_NEAREST_AWAY);
            good = agrees(y, from, x, &even, NULL) && (strcmp(p.to, "tf32") != 0 || agrees(y, from, x, &away, NULL));
        }
        OK(good, "%s to %s in %s%s: codes and counts", p.from, p.to, p.y, p.stochastic ? ", stochastic" : "");
    }
}

/* ---- scales ---- */

/* Powers of two to both ends of binary32, scales with few and with all bits, and any. */
std::vector<float> hard_scales(size_t n)
{
    std::vector<float> scales = {0x1p-149f, 0x1.8p-148f,    0x1p-126f,      0x1.fffffep-127f, 0x1p-30f,
                                 0x1p-1f,   0x1.fffffep-1f, 0x1.000002p0f,  0x1.fffffep0f,    0x1p1f,
                                 0x1.8p1f,  0x1p14f,        448.0f / 3.7f,  448.0f / 0.01f,   57344.0f / 7e4f,
                                 0x1p100f,  0x1p127f,       0x1.fffffep127f};
    while (scales.size() < n) {
        const uint32_t bits = word() & 0x7fffffffu;
        if (bits && bits < 0x7f800000u)
            scales.push_back(
                mpsim_f32_bits(next() % 2 ? bits : (bits & 0x00ffffffu) + 0x3e000000u + (next() % 4 << 24)));
    }
    return scales;
}

/* Numbers whose products with the scale are close to what decides: numbers of `to`, halves between them, the ends. */
std::vector<uint32_t> hard_factors(const mpsim_format *from, const mpsim_format *to, float scale, size_t n)
{
    if (!is_binary32(from))
        return operands_of(from, to, n);
    std::vector<uint32_t> x = hard_bits(to, n);
    for (size_t i = 0; i < n; i++)
        if (i % 4) /* the quotient and its neighbours; the others as they are */
            x[i] = mpsim_bits_f32(mpsim_f32_bits(x[i]) / scale) + uint32_t(i % 4) - 2;
    return x;
}

void ask_scales()
{
    const char *part = getenv("MPSIM_TEST_PART");
    const int all = part && strcmp(part, "all") == 0;
    int wrong = 0, rows = 0;
    for (const pair &p : usual_pairs()) {
        const mpsim_format *from = format(p.from), *to = format(p.to), *y = format(p.y);
        if (!p.scaled)
            continue;
        rows++;
        int good = 1;
        for (float scale : hard_scales(all ? 400 : 40)) {
            mpsim_cast c = cast_of(to, MPSIM_ROUND_NEAREST_EVEN);
            c.rounding.scale = double(scale);
            good = good && agrees(y, from, hard_factors(from, to, scale, 1 + next() % 700), &c, NULL, next() % 3 == 0);
        }
        if (from->bits == 16) {
            mpsim_cast c = cast_of(to, MPSIM_ROUND_NEAREST_EVEN);
            c.rounding.scale = double(448.0f / 3.7f);
            good = good && agrees(y, from, operands_of(from, to, size_t(1) << 16), &c, NULL);
        }
        wrong += !good;
        OK(good, "%s to %s in %s, times a scale: codes and counts", p.from, p.to, p.y);
    }
    mpsim_cast c = cast_of(format("e4m3"), MPSIM_ROUND_NEAREST_EVEN);
    for (double scale : {0x1.000000001p0, 0x1p-160, 0x1p200, 1e-300}) { /* no numbers of binary32 */
        c.rounding.scale = scale;
        wrong += !agrees(c.format, format("binary32"), hard_bits(c.format, 300), &c, NULL);
    }
    c.rounding.scale = double(448.0f / 3.7f);
    c.rounding.overflow = MPSIM_OVERFLOW_MAX;
    c.rounding.nan = MPSIM_NANS_POSITIVE;
    wrong += !agrees(c.format, format("binary32"), hard_bits(c.format, 300), &c, NULL);
    OK(wrong == 0 && rows >= 19, "%d casts have kernels with a scale; other scales are taken by the general kernel",
       rows);
}

/* x * scale rounded to odd, beside the exact product, whatever becomes of the bits below binary32's. */
void ask_odd()
{
    const std::vector<uint32_t> x = hard_bits(format("fp16"), 3000);
    int wrong = 0;
    for (float scale : hard_scales(60))
        for (uint32_t u : x) {
            const float v = mpsim_f32_bits(u), y = gpu_times_odd(v, scale);
            const double exact = double(v) * double(scale);
            if (!(v - v == 0))
                continue;
            double odd = double(__fmul_rz(v, scale));
            if (odd != exact)
                odd = double(mpsim_f32_bits(mpsim_bits_f32(float(odd)) | 1));
            wrong += double(y) != odd || signbit(y) != signbit(v);
        }
    OK(wrong == 0, "products rounded to odd");
}

/* Every choice about what is no rounded number. */
void ask_choices()
{
    int good = 1;
    for (const char *name : {"fp16", "e4m3", "e5m2", "e2m1", "tf32"})
        for (unsigned k = 0; k < 2 * 2 * 2 * MPSIM_NAN_RULES * 3; k++) {
            mpsim_cast c = cast_of(format(name), MPSIM_ROUND_NEAREST_EVEN);
            c.rounding.overflow = uint8_t(k & 1);
            c.rounding.infinity = uint8_t(k >> 1 & 1);
            c.rounding.no_inf = uint8_t(k >> 2 & 1);
            c.rounding.nan = uint8_t(k / 8 % MPSIM_NAN_RULES);
            c.rounding.no_nan = uint8_t(k / 8 / MPSIM_NAN_RULES);
            const std::vector<uint32_t> x = hard_bits(c.format, 123);
            good = good && agrees(c.format, format("binary32"), x, &c, NULL) &&
                   agrees(format("binary32"), format("binary32"), x, &c, NULL);
        }
    OK(good, "every choice for overflow, infinities and NaNs");
    for (size_t i = 0; i < mpsim_preset_count(); i++)
        for (const char *name : {"fp16", "bf16", "e4m3", "e5m2"}) {
            mpsim_cast c = cast_of(format(name), 0);
            mpsim_rounding_preset_from(&c.rounding, mpsim_preset_at(i), c.format, format("binary32"));
            good = good && agrees(c.format, format("binary32"), hard_bits(c.format, 300), &c, NULL);
        }
    OK(good, "every preset");
}

void ask_ends()
{
    int good = 1;
    for (size_t n = 0; n <= 40; n++)
        for (size_t off = 0; off < 3; off++) {
            const mpsim_cast c = cast_of(format("e4m3"), MPSIM_ROUND_NEAREST_EVEN);
            const mpsim_cast r = cast_of(format("e4m3"), MPSIM_ROUND_STOCHASTIC_C);
            const mpsim_rng rng = {1, 2, 4 * n};
            const std::vector<uint32_t> x = hard_bits(c.format, 40), some(x.begin(), x.begin() + long(n));
            const std::vector<uint32_t> all = codes_of(format("bf16"), 1 << 16), few(all.end() - long(n), all.end());
            good = good && agrees(c.format, format("binary32"), some, &c, NULL, off) &&
                   agrees(c.format, format("bf16"), few, &c, NULL, off) &&
                   agrees(r.format, format("binary32"), some, &r, &rng, off);
        }
    OK(good, "0 to 40 elements, aligned or not");
}

/* Random bits: their number, where they begin, numbers far below the least. */
void ask_random()
{
    for (int mode = MPSIM_ROUND_STOCHASTIC_A; mode <= MPSIM_ROUND_STOCHASTIC_C; mode++) {
        int good = 1;
        for (const char *name : {"fp16", "bf16", "e4m3", "e5m2", "e2m1", "e3m4", "e8m0"})
            for (uint8_t bits : {1, 2, 8, 23, 31, 32})
                for (uint64_t index : {uint64_t(0), uint64_t(4), uint64_t(5), UINT64_MAX - 99}) {
                    mpsim_cast c = cast_of(format(name), mode);
                    const mpsim_rng rng = {3, 4, index};
                    std::vector<uint32_t> x = hard_bits(c.format, 300);
                    for (int i = 0; i < 300; i++)
                        x.push_back(word());
                    c.rounding.sr_bits = bits;
                    good = good && agrees(c.format, format("binary32"), x, &c, &rng);
                }
        OK(good, "mode %s, 1 to 32 random bits, from any index on", mpsim_round_mode_name(mpsim_round_mode(mode)));
    }
    /* nu 2^32 is halfway between two integers, or near: a word of 0, or of all ones, is one in 2^32, so the kernel's own function */
    int good = 1;
    unsigned seen = 0;
    for (int mode = 0; mode < 3; mode++)
        for (int e = 1; e < 160; e++)
            for (uint32_t t : {0u, 1u, 0x400000u, 0x400001u, 0x7fffffu, 0x200000u, 0x600000u})
                for (uint32_t random :
                     {0u, 1u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu, ~(1u << 8), ~(3u << 7)}) {
                    mpsim_cast c = cast_of(format("e4m3"), MPSIM_ROUND_STOCHASTIC_A + mode);
                    const mpsim_rng rng = {};
                    gpu_casting how;
                    unsigned flags;
                    gpu_casting_set(&how, c.format, &c.rounding, &rng, c.format);
                    const uint32_t a = uint32_t(e) << 23 | t, m = gpu_stochastic<gpu_e4m3>(how.draw, a, random);
                    const uint64_t code = mpsim_encode_f32(c.format, &c.rounding, mpsim_f32_bits(a), random, &flags);
                    good = good && ((flags & MPSIM_FLAG_OVERFLOW) ? m > 0x7e : m == code);
                    seen += m == 1 && e < 90;
                }
    OK(good && seen > 20, "random words at their ends, for numbers of any size");
}

/* ---- any format ---- */

void ask_formats()
{
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->bits > 32)
            continue;
        int good = 1;
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            const mpsim_cast c = cast_of(f, mode);
            const mpsim_rng rng = {5, 6, 1};
            good = good && agrees(f, format("binary32"), hard_bits(f, 200), &c, &rng);
        }
        const mpsim_cast to = cast_of(format("binary8p4se"), MPSIM_ROUND_TOWARD_ZERO);
        const mpsim_cast values = cast_of(f, MPSIM_ROUND_UP);
        good = good && agrees(to.format, f, codes_of(f, 256), &to, NULL) &&
               (!mpsim_is_within(f, format("binary32")) ||
                agrees(format("binary32"), format("binary32"), hard_bits(f, 200), &values, NULL));
        OK(good, "%s: every mode, as a source, and as values", f->name);
    }
}

/* Formats that binary32 does not hold, choices that the usual kernels do not know. */
void ask_unusual()
{
    int good = 1;
    for (const char *name : {"e9m10", "e11m20", "e10m5:fn", "e5m10:bias=200", "e4m3:fnuz:inf", "e8m23:bias=140"}) {
        mpsim_format f;
        good = good && mpsim_format_parse(&f, name) == MPSIM_OK;
        for (int mode = 0; good && mode < MPSIM_ROUND_MODES; mode++)
            for (int via = 0; via < 2; via++) {
                mpsim_cast c = cast_of(&f, mode), d = cast_of(format("e5m2"), mode);
                const mpsim_rng rng = {8, 9, 2};
                d.rounding.via_binary32 = uint8_t(via);
                good = good && agrees(&f, format("binary32"), hard_bits(format("binary32"), 200), &c, &rng) &&
                       agrees(d.format, &f, codes_of(&f, 300), &d, &rng);
            }
    }
    OK(good, "formats that binary32 does not hold, with and without a route through it");
    for (const char *name : {"e4m3", "fp16", "e8m0", "bf16"})
        for (int mode = 0; mode < MPSIM_ROUND_STOCHASTIC_A; mode++)
            for (double scale : {0.25, 3.7, 1e-30, 0x1p100}) {
                mpsim_cast c = cast_of(format(name), mode);
                c.rounding.scale = scale;
                good = good && agrees(c.format, format("binary32"), hard_bits(c.format, 200), &c, NULL);
                c.rounding.scale = 1;
                c.rounding.by_field = scale < 1;
                c.rounding.flush_input = scale > 1;
                c.rounding.flush_output = scale > 4;
                c.rounding.negative = uint8_t(mode % 3);
                c.rounding.no_zero = uint8_t(mode / 2);
                good = good && agrees(c.format, format("binary32"), hard_bits(c.format, 200), &c, NULL) &&
                       agrees(c.format, format("bf16"), codes_of(format("bf16"), 200), &c, NULL);
            }
    OK(good, "scales, flushing, exponent fields, unsigned formats");
    const mpsim_cast c = cast_of(format("e2m1"), MPSIM_ROUND_NEAREST_EVEN);
    OK(agrees(format("e4m3"), format("fp16"), codes_of(format("fp16"), 4096), &c, NULL) &&
           agrees(format("bf16"), format("e4m3"), codes_of(format("e4m3"), 256), &c, NULL),
       "values in a wider format");
}

/* ---- strides ---- */

/* Dimensions with strides of both arrays against a dense copy: the same codes in the same places. */
int strided(const std::vector<size_t> &shape, const std::vector<int64_t> &xs, const std::vector<int64_t> &ys, int mode)
{
    const mpsim_cast c = cast_of(format("e5m2"), mode);
    const mpsim_rng rng = {1, 1, 3};
    const std::vector<uint32_t> room = hard_bits(c.format, 4000);
    size_t n = 1, most = 2000;
    for (size_t k : shape)
        n *= k;
    std::vector<uint32_t> x(n);
    std::vector<size_t> place(n);
    for (size_t i = 0; i < n; i++) {
        int64_t from = 2000, to = 1000;
        size_t rest = i;
        for (size_t k = shape.size(); k-- > 0; rest /= shape[k]) {
            from += int64_t(rest % shape[k]) * xs[k];
            to += int64_t(rest % shape[k]) * ys[k];
        }
        x[i] = room[size_t(from)];
        place[i] = size_t(to);
    }
    const expected e = expect(c.format, format("binary32"), x, &c, &rng);
    std::vector<unsigned char> wanted(most, 0xff);
    for (size_t i = 0; i < n; i++)
        wanted[place[i]] = (unsigned char)e.codes[i];
    const bytes_on_device a(as_bytes(room, 4)), b(std::vector<unsigned char>(most, 0xff)),
        counts(std::vector<unsigned char>(sizeof(mpsim_entered), 0));
    mpsim_stack from = row_of(format("binary32"), a.p + 4 * 2000, 0), to = row_of(c.format, b.p + 1000, 0);
    from.rank = to.rank = uint32_t(shape.size());
    for (size_t k = 0; k < shape.size(); k++) {
        from.shape[k] = to.shape[k] = shape[k];
        from.strides[k] = xs[k];
        to.strides[k] = ys[k];
    }
    const asked got = ask(&to, &from, &c, &rng, reinterpret_cast<mpsim_entered *>(counts.p));
    return got.status == MPSIM_OK && b.get() == wanted && memcmp(counts.get().data(), &e.counts, sizeof e.counts) == 0;
}

void ask_strides()
{
    int good = 1;
    for (int mode : {int(MPSIM_ROUND_NEAREST_EVEN), int(MPSIM_ROUND_STOCHASTIC_A)})
        good = good && strided({20, 30}, {1, 20}, {30, 1}, mode) && strided({20, 30}, {30, 1}, {1, 20}, mode) &&
               strided({20, 30}, {-31, 1}, {40, -1}, mode) && strided({20, 30}, {0, 1}, {30, 1}, mode) &&
               strided({5, 4, 30}, {120, 30, 1}, {120, 30, 1}, mode) && strided({7, 1}, {2, 99}, {1, 5}, mode) &&
               strided({2, 3, 1, 2, 2, 2, 2, 3}, {300, 72, 9, 36, 18, 9, 4, 1}, {1, 2, 0, 6, 12, 24, 48, 96}, mode) &&
               strided({1, 1}, {9, 9}, {7, 7}, mode) && strided({0, 3}, {3, 1}, {3, 1}, mode);
    OK(good, "transposed, reversed, broadcast, with gaps, of eight dimensions");
    const std::vector<uint32_t> x = hard_bits(format("e4m3"), MANY);
    const mpsim_cast c = cast_of(format("e4m3"), MPSIM_ROUND_NEAREST_EVEN);
    const expected e = expect(format("binary32"), format("binary32"), x, &c, NULL);
    const bytes_on_device a(as_bytes(x, 4));
    const mpsim_stack s = row_of(format("binary32"), a.p, x.size());
    OK(ask(&s, &s, &c, NULL, NULL).status == MPSIM_OK && a.get() == as_bytes(e.codes, 4), "values in place, uncounted");
}

/* ---- calls ---- */

void ask_calls()
{
    const bytes_on_device a(std::vector<unsigned char>(4096, 0)), b(std::vector<unsigned char>(4096, 0xff)),
        k(std::vector<unsigned char>(sizeof(mpsim_entered), 0));
    mpsim_entered *const counts = reinterpret_cast<mpsim_entered *>(k.p);
    const mpsim_cast good = cast_of(format("e4m3"), 0), random = cast_of(format("e4m3"), MPSIM_ROUND_STOCHASTIC_C);
    const mpsim_stack x = row_of(format("binary32"), a.p, 1024), y = row_of(format("e4m3"), b.p, 1024);
    mpsim_cast bad = good;
    mpsim_stack other = y;
    const uint64_t launches = gpu_host.launches;
    const auto refused = [&](const mpsim_stack *to, const mpsim_stack *from, const mpsim_cast *c, mpsim_status status,
                             const char *says) {
        const asked got = ask(to, from, c, NULL, counts);
        OK(got.status == status && got.why.find(says) != std::string::npos && gpu_host.launches == launches,
           "refused: %s", got.why.c_str());
    };
    OK(mpsim_cuda_cast(&y, &x, &good, NULL, NULL, NULL) == MPSIM_EINVAL, "refused: no call");
    refused(&y, &x, NULL, MPSIM_EINVAL, "the format or the rounding is invalid");
    bad.rounding.mode = MPSIM_ROUND_MODES;
    refused(&y, &x, &bad, MPSIM_EINVAL, "the format or the rounding is invalid");
    refused(NULL, &x, &good, MPSIM_EINVAL, "expected arrays of 2 to 8 dimensions");
    other.rank = 9;
    refused(&other, &x, &good, MPSIM_EINVAL, "expected arrays of 2 to 8 dimensions");
    other = y;
    other.strides[1] = 0;
    refused(&other, &x, &good, MPSIM_EINVAL, "expected arrays of 2 to 8 dimensions");
    other = y;
    other.codes = NULL;
    refused(&other, &x, &good, MPSIM_EINVAL, "expected arrays of 2 to 8 dimensions");
    other = row_of(format("e4m3"), b.p, 1023);
    refused(&other, &x, &good, MPSIM_EINVAL, "different shapes");
    refused(&y, &x, &random, MPSIM_EINVAL, "mode stochastic-c needs random bits");
    other = row_of(format("binary64"), b.p, 512);
    mpsim_stack half = row_of(format("binary32"), a.p, 512);
    refused(&other, &half, &good, MPSIM_EUNAVAILABLE, "no kernel for binary64");
    other = row_of(format("e5m2"), b.p, 1024);
    refused(&other, &x, &good, MPSIM_ERANGE, "e5m2 has not all numbers of e4m3");
    other = row_of(format("ue4m3"), b.p, 1024);
    if (other.format)
        refused(&other, &x, &good, MPSIM_ERANGE, "has not all numbers");

    gpu_host_stream graph = {};
    char why[64] = "";
    const mpsim_cuda_call call = {&graph, nullptr, 0, why, sizeof why};
    gpu_host_driver_now.capturing = &graph;
    const uint64_t atomics = gpu_host.atomics;
    OK(mpsim_cuda_cast(&y, &x, &good, NULL, counts, &call) == MPSIM_OK && gpu_host_driver_now.broken == 0 && !why[0],
       "a stream that captures a graph takes a cast");
    gpu_host_driver_now.capturing = nullptr;
    OK(gpu_host.launches == launches + 1 && gpu_host.atomics == atomics,
       "in one launch; zeros are counted by no addition");
    const std::vector<uint32_t> many(MANY, 0x7f000000u);
    const bytes_on_device c(as_bytes(many, 4)), d(std::vector<unsigned char>(MANY, 0));
    const mpsim_stack from = row_of(format("binary32"), c.p, MANY), to = row_of(format("e4m3"), d.p, MANY);
    const asked got = ask(&to, &from, &good, NULL, counts);
    OK(got.status == MPSIM_OK && got.atomics <= 3 * 5, "%llu additions to memory for three counters of five blocks",
       (unsigned long long)got.atomics);
    gpu_host_driver_now.last = cudaErrorLaunchFailure;
    OK(ask(&y, &x, &good, NULL, NULL).status == MPSIM_EIO, "a device that fails");
}

} // namespace

int main()
{
    ask_usual();
    ask_scales();
    ask_odd();
    ask_choices();
    ask_ends();
    ask_random();
    ask_formats();
    ask_unusual();
    ask_strides();
    ask_calls();
    return tap_end();
}
