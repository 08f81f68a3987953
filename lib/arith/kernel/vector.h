/* vector.h -- the kernel of kernel.h in the words of lib/simd/generic.h, written once.
 *
 * Included by one unit for each instruction set, after its header. A block goes through three
 * loops: codes to numbers, the operation, its result to codes. */
#include "kernel.h"

V_INLINE vu32 load_codes(const void *from, size_t bytes, size_t i)
{
    const unsigned char *p = (const unsigned char *)from + i * bytes;
    return bytes == 1 ? v_load_u8(p) : bytes == 2 ? v_load_u16(p) : v_load_u32(p);
}

V_INLINE void store_codes(void *to, size_t bytes, size_t i, vu32 code)
{
    unsigned char *p = (unsigned char *)to + i * bytes;
    if (bytes == 1)
        v_store_u8(p, code);
    else if (bytes == 2)
        v_store_u16(p, code);
    else
        v_store_u32(p, code);
}

#define LANE_BITS 64
#include "lanes.h"
#undef LANE_BITS
#define LANE_BITS 32
#include "lanes.h"
#undef LANE_BITS

size_t V_NAME(mpsim_arith_run)(const mpsim_arith_kernel *k, void *codes, uint64_t *left, mpsim_counts *counts,
                               const void *const from[3], const uint32_t *words, size_t n)
{
    n -= n % V_LANES;
    if (k->lane_bits == 64)
        run_64(k, codes, left, counts, from, words, n);
    else
        run_32(k, codes, left, counts, from, words, n);
    return n;
}
