/* scalar.h -- a digest of outputs that does not depend on their order: the sum modulo 2^64
 * of a mix of index and output. Integers only, C17 and CUDA. */
#pragma once

#include "../round/scalar.h"

/* Two rounds of the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline MPSIM_HD uint64_t mpsim_mix(uint64_t index, uint64_t output)
{
    uint64_t z = index * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    z ^= output * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
