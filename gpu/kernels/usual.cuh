/* usual.cuh -- the usual formats as types: what a kernel knows of a format when it is compiled. Values of codes, and
 * codes of four numbers at once, by the device's packed conversions where it has them.
 *
 * The functions take numbers that do not overflow, no infinity and no NaN, unless they say otherwise. The bits are those of
 * mpsim_encode_f32. */
#pragma once

#include "codes.cuh"

enum { GPU_STOCHASTIC = GPU_AWAY + 1 }; /* as gpu_mode: all three modes, see gpu_draw */

template <int BITS_, int MBITS_, int BIAS_, uint32_t MAX_, int INF_, int NAN_>
struct gpu_usual {
    static constexpr int BITS = BITS_, MBITS = MBITS_, BIAS = BIAS_, INF = INF_, NANS = NAN_;
    static constexpr int BYTES = BITS <= 8 ? 1 : BITS <= 16 ? 2 : 4, SHIFT = 23 - MBITS;
    static constexpr int FLAT = BIAS == 127; /* codes are the leading bits of binary32 */
    static constexpr uint32_t MAX = MAX_, SIGN = 1u << (BITS - 1), MASK = SIGN - 1;
    static constexpr uint32_t LEAST = (uint32_t)(FLAT ? 1 : 128 - BIAS) << 23; /* bits of the smallest normal number */
    static constexpr uint32_t REBIAS = FLAT ? 0 : (LEAST >> SHIFT) - (1u << MBITS);

    static MPSIM_HD constexpr uint32_t half_place()
    {
        return SHIFT ? 1u << (SHIFT ? SHIFT - 1 : 0) : 0;
    }
    /* Bits of the smallest number that overflows. */
    static MPSIM_HD constexpr uint32_t limit(int mode)
    {
        return SHIFT == 0 ? 0x7f800000u
                          : ((MAX + REBIAS) << SHIFT) + half_place() + (mode == GPU_AWAY || (MAX & 1) ? 0 : 1);
    }
    /* The value of the first code that is no number, by gpu_finite: of an infinity or a NaN, or of none. */
    static MPSIM_HD constexpr uint32_t end()
    {
        return (MAX + 1 + REBIAS) << SHIFT;
    }
    /* Bits of the largest number that becomes zero. */
    static MPSIM_HD constexpr uint32_t lost(int mode)
    {
        const int e = 127 - BIAS - MBITS; /* exponent field of half the smallest number */
        const uint32_t half = SHIFT == 0 ? 0 : e > 0 ? (uint32_t)e << 23 : 1u << (22 + e);
        return half && mode == GPU_AWAY ? half - 1 : half;
    }
};

typedef gpu_usual<32, 23, 127, 0x7f7fffffu, 1, MPSIM_NAN_TOP> gpu_binary32;
typedef gpu_usual<19, 10, 127, 0x3fbffu, 1, MPSIM_NAN_TOP> gpu_tf32;
typedef gpu_usual<16, 7, 127, 0x7f7fu, 1, MPSIM_NAN_TOP> gpu_bf16;
typedef gpu_usual<16, 10, 15, 0x7bffu, 1, MPSIM_NAN_TOP> gpu_fp16;
typedef gpu_usual<8, 3, 7, 0x7eu, 0, MPSIM_NAN_TOP> gpu_e4m3;
typedef gpu_usual<8, 2, 15, 0x7bu, 1, MPSIM_NAN_TOP> gpu_e5m2;
typedef gpu_usual<4, 1, 1, 7u, 0, MPSIM_NAN_NONE> gpu_e2m1;

/* Whether f is that format. */
template <class T>
static inline int gpu_is_usual(const mpsim_format *f)
{
    return f->bits == T::BITS && f->ebits == T::BITS - 1 - T::MBITS && f->mbits == T::MBITS && f->bias == T::BIAS &&
           f->inf == T::INF && f->nan == T::NANS && f->zero == MPSIM_ZERO_SIGNED && f->max_finite == T::MAX;
}

/* ---- memory ---- */

template <int BYTES>
static __device__ __forceinline__ uint32_t gpu_load_bytes(const void *p, size_t i)
{
    if constexpr (BYTES == 1)
        return static_cast<const uint8_t *>(p)[i];
    else if constexpr (BYTES == 2)
        return static_cast<const uint16_t *>(p)[i];
    else
        return static_cast<const uint32_t *>(p)[i];
}

template <int BYTES>
static __device__ __forceinline__ void gpu_store_bytes(void *p, size_t i, uint32_t code)
{
    if constexpr (BYTES == 1)
        static_cast<uint8_t *>(p)[i] = (uint8_t)code;
    else if constexpr (BYTES == 2)
        static_cast<uint16_t *>(p)[i] = (uint16_t)code;
    else
        static_cast<uint32_t *>(p)[i] = code;
}

/* ---- values of codes ---- */

/* A finite code. Others give numbers from end() on, or infinities or NaNs. */
template <class T>
static __device__ __forceinline__ float gpu_finite(uint32_t code)
{
    const uint32_t top = code << (32 - T::BITS);
    if constexpr (T::FLAT)
        return __uint_as_float(top);
    const uint32_t up = (uint32_t)(254 - T::BIAS) << 23;
    const uint32_t low = (uint32_t)((int32_t)top >> (32 - T::BITS - T::SHIFT)) & (0x80000000u | T::MASK << T::SHIFT);
    return __fmul_rn(__uint_as_float(low), __uint_as_float(up)); /* exact */
}

/* Any code; a NaN keeps its sign alone. */
template <class T>
static __device__ __forceinline__ float gpu_any(uint32_t code)
{
    const uint32_t m = code & T::MASK, sign = (code & T::SIGN) << (32 - T::BITS);
    if (m <= T::MAX)
        return gpu_finite<T>(code);
    return __uint_as_float(sign | (T::INF && m == T::MAX + 1 ? 0x7f800000u : 0x7fc00000u));
}

/* Code t of words that hold codes one behind the other. */
template <class T>
static __device__ __forceinline__ uint32_t gpu_code_at(const uint32_t *words, int t)
{
    if constexpr (T::BYTES == 4)
        return words[t];
    if constexpr (T::BYTES == 2)
        return t % 2 ? words[t / 2] >> 16 : words[t / 2] & 0xffffu;
    return words[t / 4] >> t % 4 * 8 & 0xffu;
}

/* Four of them as values; what is no number as by gpu_finite, or an infinity or NaN. */
template <class T>
static __device__ __forceinline__ void gpu_unpack(const uint32_t *words, float v[4])
{
    GPU_UNROLL
    for (int t = 0; t < 4; t++) {
#if defined(__CUDA_ARCH__)
        if constexpr (T::BITS == 16 && !T::FLAT) {
            asm("cvt.f32.f16 %0, %1;" : "=f"(v[t]) : "h"((unsigned short)gpu_code_at<T>(words, t)));
            continue;
        }
#endif
        v[t] = gpu_finite<T>(gpu_code_at<T>(words, t));
    }
}

/* ---- codes of values ---- */

template <class T, int MODE>
static __device__ __forceinline__ uint32_t gpu_nearest(float x)
{
    const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu;
    static_assert(MODE == GPU_NEAREST || T::FLAT, "ties away: formats with the exponents of binary32");
    if constexpr (T::SHIFT == 0)
        return u;
    if constexpr (MODE == GPU_AWAY)
        return (u + T::half_place()) >> T::SHIFT;
    if constexpr (T::FLAT)
        return (u + (T::half_place() - 1) + (u >> T::SHIFT & 1)) >> T::SHIFT;
    const uint32_t sign = u >> 31 << (T::BITS - 1);
    const float units = __uint_as_float((uint32_t)(150 - T::BIAS - T::MBITS + 1) << 23);
    const uint32_t low = __float_as_uint(__fadd_rn(__uint_as_float(a), units)) - __float_as_uint(units);
    const uint32_t high = ((a + (T::half_place() - 1) + (a >> T::SHIFT & 1)) >> T::SHIFT) - T::REBIAS;
    return sign | (a < T::LEAST ? low : high);
}

/* Two codes of 16 bits, two codes of 8 bits in 16: the second in the higher bits. */
template <class T>
static __device__ __forceinline__ uint32_t gpu_pair_of(float low, float high)
{
#if defined(__CUDA_ARCH__)
    uint32_t y;
    unsigned short h;
    if constexpr (T::BITS == 16 && T::MBITS == 10) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
        return y;
    }
    if constexpr (T::BITS == 16 && T::MBITS == 7) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
        return y;
    }
#if __CUDA_ARCH__ >= 890
    if constexpr (T::BITS == 8 && T::MBITS == 3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(high), "f"(low));
        return h;
    }
    if constexpr (T::BITS == 8 && T::MBITS == 2) {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(h) : "f"(high), "f"(low));
        return h;
    }
#endif
#endif
    return gpu_nearest<T, GPU_NEAREST>(low) | gpu_nearest<T, GPU_NEAREST>(high) << 8 * T::BYTES;
}

/* Codes that stand alone, one behind the other. */
template <class T>
static __device__ __forceinline__ void gpu_join(const uint32_t code[4], uint32_t *words)
{
    GPU_UNROLL
    for (int t = 0; t < T::BYTES; t++)
        words[t] = T::BYTES == 4   ? code[t]
                   : T::BYTES == 2 ? code[2 * t % 4] | code[(2 * t + 1) % 4] << 16
                                   : code[0] | code[1] << 8 | code[2] << 16 | code[3] << 24;
}

/* Four magnitudes' codes, one behind the other, with the signs of x. */
template <class T>
static __device__ __forceinline__ void gpu_join_signed(const uint32_t y[4], const float x[4], uint32_t *words)
{
    if constexpr (T::FLAT && T::BYTES == 2) {
        words[0] = __byte_perm(y[0], y[1], 0x7632);
        words[1] = __byte_perm(y[2], y[3], 0x7632);
    } else if constexpr (T::BYTES == 1) {
        const uint32_t top = __byte_perm(__byte_perm(__float_as_uint(x[0]), __float_as_uint(x[1]), 0x0073),
                                         __byte_perm(__float_as_uint(x[2]), __float_as_uint(x[3]), 0x0073), 0x5410);
        words[0] = (__byte_perm(__byte_perm(y[0], y[1], 0x0040), __byte_perm(y[2], y[3], 0x0040), 0x5410) &
                    T::MASK * 0x01010101u) |
                   (top & 0x80808080u) >> (8 - T::BITS);
    } else {
        uint32_t code[4];
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            code[t] = T::FLAT ? y[t] >> T::SHIFT : (y[t] & T::MASK) | __float_as_uint(x[t]) >> 31 << (T::BITS - 1);
        gpu_join<T>(code, words);
    }
}

/* The magnitude's code in the last byte. The number is added to a power of two whose last place is the step between codes of its
 * binade: the sum's last bits count steps, and the binade's bits are added. */
template <class T>
static __device__ __forceinline__ uint32_t gpu_nearest_lifted(float x)
{
    const uint32_t lift = (uint32_t)T::SHIFT << 23, least = T::LEAST + lift;
    const uint32_t own = (__float_as_uint(x) & 0x7f800000u) + lift, bits = own > least ? own : least;
    const uint32_t sum = __float_as_uint(__fadd_rn(fabsf(x), __uint_as_float(bits)));
    return sum + (bits >> T::SHIFT) - (least >> T::SHIFT);
}

/* Whether the device converts pairs. */
template <class T>
static MPSIM_HD constexpr int gpu_converts()
{
#if !defined(__CUDA_ARCH__)
    return 0;
#elif __CUDA_ARCH__ < 890
    return T::BITS == 16;
#else
    return T::BITS == 16 || T::BITS == 8;
#endif
}

/* Four numbers, to nearest. */
template <class T, int MODE>
static __device__ __forceinline__ void gpu_pack(const float v[4], uint32_t *words)
{
    if constexpr (T::BYTES == 4 || MODE == GPU_AWAY) {
        uint32_t code[4];
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            code[t] = gpu_nearest<T, MODE>(v[t]);
        gpu_join<T>(code, words);
    } else if constexpr (T::BYTES == 2) {
        words[0] = gpu_pair_of<T>(v[0], v[1]);
        words[1] = gpu_pair_of<T>(v[2], v[3]);
    } else if constexpr (!gpu_converts<T>()) {
        uint32_t code[4];
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            code[t] = gpu_nearest_lifted<T>(v[t]);
        gpu_join_signed<T>(code, v, words);
    } else {
        words[0] = gpu_pair_of<T>(v[0], v[1]) | gpu_pair_of<T>(v[2], v[3]) << 16;
    }
}

/* ---- random bits ----
 *
 * nu = the dropped bits of the significand b, as b / 2^d. Away if F + R >= 2^32, where R has the N random bits at its top
 * and F is nu 2^32: exactly, where d < 32. In mode B R has a bit below the N random ones, so that F may be cut; with N = 32
 * there is no room, and F is rounded to nearest instead: half away from zero in mode B, half to even in mode C. Mode C
 * of fewer random bits is not done here. */
struct gpu_draw {
    uint32_t mask, half; /* R = (word & mask) | half */
    int cut, even;       /* what is done to F        */
};

/* Whether d >= 32 rounds the number away. */
static __device__ __forceinline__ uint32_t gpu_far(const gpu_draw &how, uint32_t b, int d, uint32_t draw)
{
    const int k = d - 32;
    if (k >= 32)
        return 0;
    const uint32_t half = k > 0 && !how.cut ? (1u << (k > 0 ? k - 1 : 0)) - (how.even ? 1 - (b >> k & 1) : 0) : 0;
    return ((b + half) >> k) > ~draw;
}

/* The magnitude's code; one beyond MAX overflows. */
template <class T>
static __device__ __forceinline__ uint32_t gpu_stochastic(const gpu_draw &how, uint32_t a, uint32_t word)
{
    const uint32_t draw = (word & how.mask) | how.half;
    if (T::FLAT || a >= T::LEAST)
        return ((a + (draw >> (32 - T::SHIFT))) >> T::SHIFT) - T::REBIAS;
    const int e = a >> 23 ? (int)(a >> 23) : 1, d = T::SHIFT + (int)(T::LEAST >> 23) - e;
    const uint32_t b = (a & 0x7fffffu) | (a >> 23 ? 0x800000u : 0);
    return d < 32 ? (b + (draw >> (32 - d))) >> d : gpu_far(how, b, d, draw);
}

/* Whether one of four numbers is below the smallest subnormal one, or zero. */
template <class T>
static __device__ __forceinline__ int gpu_has_small(const float v[4])
{
    const float least = fminf(fminf(fabsf(v[0]), fabsf(v[1])), fminf(fabsf(v[2]), fabsf(v[3])));
    return !T::FLAT && least < __uint_as_float(T::LEAST - ((uint32_t)T::MBITS << 23));
}

/* Whether more than 31 bits of one of them are dropped; zero has none. */
template <class T>
static __device__ __forceinline__ int gpu_has_far(const float v[4])
{
    uint32_t least = 0xffffffffu;
    GPU_UNROLL
    for (int t = 0; t < 4; t++) {
        const uint32_t below = (__float_as_uint(v[t]) & 0x7fffffffu) - 1;
        least = below < least ? below : least;
    }
    return !T::FLAT && least < T::LEAST - ((uint32_t)(31 - T::SHIFT) << 23) - 1;
}

/* The magnitude's code of a number from the smallest subnormal one on, or of zero: the random part of a step is added and the sum
 * cut off, twice (23 bits of it matter). The last bits of a sum with 2^23 steps count steps; the binade's bits are added. */
template <class T>
static __device__ __forceinline__ uint32_t gpu_stochastic_fast(const gpu_draw &how, float x, uint32_t word)
{
    const uint32_t draw = (word & how.mask) | how.half;
    const int least = (int)(T::LEAST - ((uint32_t)T::MBITS << 23));
    const int own = (int)(__float_as_uint(x) & 0x7f800000u) - (T::MBITS << 23), bits = own > least ? own : least;
    const float step = __uint_as_float((uint32_t)bits);
    const float part = __fsub_rn(__uint_as_float((uint32_t)bits + (draw >> 9)), step);
    const float sum = __fmaf_rz(step, 0x1p23f, __fadd_rz(fabsf(x), part));
    return __float_as_uint(sum) + ((uint32_t)bits >> T::SHIFT) - ((uint32_t)least >> T::SHIFT);
}

/* A number that is not far: FLAT formats' codes are the leading bits of the result, with its sign; others' are magnitudes. Below
 * the least normal number a step has `more` halvings of the number's own; above, `binade` counts. */
template <class T>
static __device__ __forceinline__ uint32_t gpu_stochastic_signed(const gpu_draw &how, uint32_t u, uint32_t word)
{
    const uint32_t draw = (word & how.mask) | how.half;
    if constexpr (T::FLAT)
        return u + (draw >> (32 - T::SHIFT));
    const int e = (int)(u >> 23 & 0xff) - (int)(T::LEAST >> 23);
    const int more = -e > 0 ? (-e < 31 - T::SHIFT ? -e : 31 - T::SHIFT) : 0, binade = e > 0 ? e : 0;
    const uint32_t b = u & 0x7fffffu, is = (u & 0x7fffffffu) ? 0x800000u : 0;
    const uint32_t sum = (b | is) + (draw >> (32 - T::SHIFT - more));
    return (sum >> (T::SHIFT + more)) + ((uint32_t)binade << T::MBITS);
}

/* Whether one of four codes is zero. */
template <class T>
static __device__ __forceinline__ int gpu_has_zero_code(const uint32_t *words)
{
    if constexpr (T::BYTES == 4)
        return !(words[0] & T::MASK) || !(words[1] & T::MASK) || !(words[2] & T::MASK) || !(words[3] & T::MASK);
    const uint32_t ones = T::BYTES == 1 ? 0x01010101u : 0x00010001u, top = T::BYTES == 1 ? 0x80808080u : 0x80008000u;
    uint32_t all = top;
    GPU_UNROLL
    for (int t = 0; t < T::BYTES; t++)
        all &= (words[t] & T::MASK * ones) + (top - ones);
    return all != top;
}
