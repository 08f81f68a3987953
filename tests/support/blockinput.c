/* blockinput.c -- see blockinput.h. */
#include "blockinput.h"

#include "support.h"

#include <math.h>

float ordinary(uint64_t *state, int centre, int spread)
{
    const uint64_t w = test_random(state);
    const int e = centre - (int)((w >> 32) % (uint64_t)spread);
    const float m = 1 + (float)(w & 0x7fffff) * 0x1p-23f;
    return ldexpf(w >> 63 ? -m : m, e);
}

float block_input(int fill, size_t i, uint64_t *state)
{
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x80000000,
                                       0x00000000, 0x7f7fffff, 0xff7fffff, 0x00000001, 0x807fffff};
    const uint64_t w = test_random(state);
    switch (fill) {
    case ORDINARY:
        return ordinary(state, 4, 14);
    case FEW_BITS:
        return (float)((int)(w % 129) - 64) / 8;
    case WIDE:
        return ordinary(state, 100, 200);
    case ANY:
        return (w >> 23 & 255) == 255 ? 1.5f : f32_of_bits((uint32_t)w);
    case SMALL:
        return f32_of_bits((uint32_t)w & 0x83ffffff);
    case HUGE_ONES:
        return ldexpf(ordinary(state, 0, 5), 127);
    case SPECIALS:
        return w % 37 == 0 ? f32_of_bits(special[(w >> 8) % (sizeof special / sizeof special[0])])
                           : ordinary(state, 0, 12);
    default:
        return i % 3 ? 0.0f : -0.0f;
    }
}
