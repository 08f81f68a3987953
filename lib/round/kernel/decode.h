/* decode.h -- codes to binary64 values. */
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

/* Whole vectors, up to the first special code. */
size_t V_NAME(mpsim_decode)(const mpsim_decoder *given, double *y, const void *codes, size_t n)
{
    const mpsim_decoder here = *given, *d = &here; /* that no store changes */
    unsigned char *to = (unsigned char *)y;
    const unsigned char *from = codes;
    size_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES) {
        const vu32 code = decode_load(from + i * (size_t)d->bytes, d->bytes);
        const vu32 m = code & d->magnitude, sign = (code & d->sign) << d->sign_shift;
        const m32 nan = m32_and(v_eq_u32(code & (d->magnitude | d->sign), v_u32(d->nan)),
                                v_test_u32(v_u32(d->nan), v_u32(d->nan)));
        if (__builtin_expect(m32_any(m32_or(nan, v_gt_u32(m, v_u32(d->max_finite)))), 0))
            break;
        const vu32 t = (vu32)v_f32_of_i32((vi32)(m & 0xffffff));
        v_store_u64(to + 8 * i, decode_half(d, v_first_u64(m), v_first_u64(t), v_first_u64(sign) << 32));
        v_store_u64(to + 8 * i + sizeof(vu64), decode_half(d, v_last_u64(m), v_last_u64(t), v_last_u64(sign) << 32));
    }
    return i;
}
