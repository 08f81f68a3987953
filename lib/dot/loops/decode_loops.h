/* decode_loops.h -- codes to binary32 values in vectors: see panel.h. Included by one unit per instruction
 * set, after its vectors (lib/simd). The operations are those of panel_decode.h: exact in every
 * environment. */

/* V_LANES codes; returns which are special. */
static ALWAYS_INLINE unsigned decode_lanes(const mpsim_unpacker *u, float *values, int16_t *e, int lowest, vu32 code)
{
    const vu32 m = code & v_u32((uint32_t)u->magnitude), bits = m << u->shift;
    const vu32 negative = code >> u->sign_shift & v_u32((uint32_t)u->is_signed);
    const vu32 one = v_u32(150u << 23); /* 2^23, | m: + m */
    const m32 is_small = v_gt_u32(v_u32(u->same_bias ? 0 : 1u << 23), bits);
    const m32 special = m32_or(v_gt_u32(m, v_u32((uint32_t)u->max_finite)),
                               v_gt_u32(negative & v_u32((uint32_t)u->negzero), m));
    const vf32 small = ((vf32)(one | v_keep_u32(is_small, m)) - (vf32)one) * v_f32((float)u->unit);
    const vu32 value = v_keep_u32(
        m32_not(special),
        v_pick_u32(is_small, (vu32)small & v_u32(0x7fffffff), bits + v_u32((uint32_t)u->rebias)) | negative << 31);
    v_store_u32(values, value);
    if (e) {
        const vi32 above = v_max_i32((vi32)((value << 1) >> 24) - v_i32(127), v_i32(lowest));
        v_store_u16(e, v_pick_u32(v_eq_u32(value << 1, v_u32(0)), v_u32((uint32_t)MPSIM_EXPONENT_ZERO), (vu32)above));
    }
    return m32_bits(special);
}

static unsigned decode(const mpsim_unpacker *u, float *values, int16_t *e, int lowest, const void *codes)
{
    const unsigned char *p = (const unsigned char *)codes;
    unsigned special = 0;
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        const vu32 code = u->bytes == 1   ? v_load_u8(p + j)
                          : u->bytes == 2 ? v_load_u16(p + 2 * j)
                                          : v_load_u32(p + 4 * j);
        special |= decode_lanes(u, values + j, e ? e + j : NULL, lowest, code) << j;
    }
    return special;
}
