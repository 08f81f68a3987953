/* decode.h -- codes to binary64 and binary32 values. */
#pragma once

#include "kernel.h"

V_INLINE vu32 decode_load(const unsigned char *from, int bytes)
{
    return bytes == 1 ? v_load_u8(from) : bytes == 2 ? v_load_u16(from) : v_load_u32(from);
}

/* The values of half of the lanes: magnitude codes m, t as binary32 numbers, sign in the top bit. */
V_INLINE vu64 decode_half(const mpsim_decoder *d, vu64 m, vu64 t, vu64 sign)
{
    const vu64 normal = (m << (52 - d->mbits)) + d->rebias;
    const vu64 tiny = (t << 29) + ((uint64_t)(1023 - 127 + d->exp) << 52);
    const vu64 value = v_pick_u64(v_gt_i64(v_i64((int64_t)d->normal), (vi64)m), tiny, normal);
    return sign | v_keep_u64(d->normal ? v_gt_i64((vi64)m, v_i64(0)) : v_eq_u64(m, m), value);
}

/* The same where some are infinities or NaNs. */
V_INLINE vu64 decode_special_half(const mpsim_decoder *d, vu64 m, vu64 sign, vu64 value)
{
    const vu64 payload = (m << (52 - d->mbits)) & v_u64(0xfffffffffffff), quiet = v_u64(0x7ff8000000000000);
    const m64 above = v_gt_i64((vi64)m, v_i64((int64_t)d->max_finite));
    const vu64 nan = d->nan ? quiet : sign | quiet | payload;
    const vu64 none = v_pick_u64(v_eq_u64(m, v_u64(d->infinity)), sign | v_u64(0x7ff0000000000000), nan);
    const vu64 negzero = v_pick_u64(v_eq_u64(m | (sign ^ v_u64(0x8000000000000000)), v_u64(0)), quiet, value);
    return v_pick_u64(above, none, d->nan ? negzero : value);
}

V_INLINE vu32 decode_special(const mpsim_decoder *d, vu32 m, vu32 sign, vu32 value)
{
    const vu32 payload = (m << (23 - d->mbits)) & v_u32(0x7fffff), quiet = v_u32(0x7fc00000);
    const vu32 nan = d->nan ? quiet : sign | quiet | payload;
    const vu32 none = v_pick_u32(v_eq_u32(m, v_u32(d->infinity)), sign | v_u32(0x7f800000), nan);
    const vu32 negzero = v_pick_u32(v_eq_u32(m | (sign ^ v_u32(0x80000000)), v_u32(0)), quiet, value);
    return v_pick_u32(v_gt_u32(m, v_u32(d->max_finite)), none, d->nan ? negzero : value);
}

/* Codes of the lanes, their magnitudes, and their signs in the top bit; 0 where one is special. */
V_INLINE int decode_codes(const mpsim_decoder *d, const unsigned char *from, vu32 *m, vu32 *sign)
{
    const vu32 code = decode_load(from, d->bytes);
    const m32 nan = m32_and(v_eq_u32(code & (d->magnitude | d->sign), v_u32(d->nan)),
                            v_test_u32(v_u32(d->nan), v_u32(d->nan)));
    *m = code & d->magnitude;
    *sign = (code & d->sign) << d->sign_shift;
    return !m32_any(m32_or(nan, v_gt_u32(*m, v_u32(d->max_finite))));
}

/* Whole vectors. */
size_t V_NAME(mpsim_decode)(const mpsim_decoder *given, void *y, const void *codes, size_t n)
{
    const mpsim_decoder here = *given, *d = &here; /* that no store changes */
    unsigned char *to = (unsigned char *)y;
    const unsigned char *from = codes;
    size_t i = 0;
    for (vu32 m, sign; i + V_LANES <= n; i += V_LANES) {
        const int plain = decode_codes(d, from + i * (size_t)d->bytes, &m, &sign);
        const vu32 t = (vu32)v_f32_of_i32((vi32)(m & 0xffffff));
        const vu64 of_first = v_first_u64(sign) << 32, of_last = v_last_u64(sign) << 32;
        vu64 first = decode_half(d, v_first_u64(m), v_first_u64(t), of_first);
        vu64 last = decode_half(d, v_last_u64(m), v_last_u64(t), of_last);
        if (__builtin_expect(!plain, 0)) {
            first = decode_special_half(d, v_first_u64(m), of_first, first);
            last = decode_special_half(d, v_last_u64(m), of_last, last);
        }
        v_store_u64(to + 8 * i, first);
        v_store_u64(to + 8 * i + sizeof(vu64), last);
    }
    return i;
}

size_t V_NAME(mpsim_decode32)(const mpsim_decoder *given, void *y, const void *codes, size_t n)
{
    const mpsim_decoder here = *given, *d = &here;
    unsigned char *to = (unsigned char *)y;
    const unsigned char *from = codes;
    const vu32 least = v_u32(d->normal), zero = v_u32(0), exp = v_u32((uint32_t)d->exp << 23);
    size_t i = 0;
    for (vu32 m, sign; i + V_LANES <= n; i += V_LANES) {
        const int plain = decode_codes(d, from + i * (size_t)d->bytes, &m, &sign);
        vu32 value = (m << (23 - d->mbits)) + (uint32_t)d->rebias;
        if (d->normal) {
            const vu32 tiny = v_keep_u32(v_gt_u32(m, zero), (vu32)v_f32_of_i32((vi32)(m & 0xffffff)) + exp);
            value = v_pick_u32(v_gt_u32(least, m), tiny, value);
        }
        value |= sign;
        if (__builtin_expect(!plain, 0))
            value = decode_special(d, m, sign, value);
        v_store_u32(to + 4 * i, value);
    }
    return i;
}
