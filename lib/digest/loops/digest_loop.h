/* digest_loop.h -- the loop over a block, for the vectors of the unit that includes it. A product of 32 by 64 bits is that
 * with the lower half of a key, and that with the upper half times 2^32, which are summed apart. Four multiplications a
 * vector: at 16 words a vector they, and not the memory, are the bound in the first level of the cache alone. */
#include "loops.h"

V_INLINE uint64_t total(vu64 v)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof v / sizeof sum; i++)
        sum += v[i];
    return sum;
}

uint64_t V_NAME(mpsim_digest_loop)(const mpsim_digest_format *f, const mpsim_digest_keys *keys, const void *words)
{
    enum { LANES = sizeof(vu32) / sizeof(uint32_t) };
    const unsigned char *p = words;
    vu64 low = {0}, high = {0};
    for (size_t i = 0; i < MPSIM_DIGEST_WORDS; i += LANES) {
        const vu32 word = v_load_u32(p + 4 * i);
        const vu32 nans = (((word & f->magnitude) | f->high) - f->nan) & f->high;
        const vu32 x = (word | (nans + nans - (nans >> f->shift))) & f->ones;
        const vu32 l = v_load_u32(keys->low + i), h = v_load_u32(keys->high + i);
        low += v_mul_even_u32(x, l) + v_mul_odd_u32(x, l);
        high += v_mul_even_u32(x, h) + v_mul_odd_u32(x, h);
    }
    return total(low) + (total(high) << 32);
}
