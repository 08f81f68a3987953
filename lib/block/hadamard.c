/* hadamard.c -- random Hadamard transforms of groups of elements; see mpsim/block.h. */
#include <mpsim/block.h>

enum { LARGEST = 128 };

static const float te_signs[16] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

static void transform(float *v, size_t size, const float *sign, float norm)
{
    for (size_t i = 0; i < size; i++)
        v[i] *= sign[i];
    for (size_t half = 1; half < size; half *= 2)
        for (size_t i = 0; i < size; i++)
            if (!(i & half)) {
                const float a = v[i], b = v[i + half];
                v[i] = a + b;
                v[i + half] = a - b;
            }
    for (size_t i = 0; i < size; i++)
        v[i] *= norm;
}

/* The number nearest to 1 / sqrt(size); 0: there is no such group. */
static float norm_of(unsigned size)
{
    switch (size) {
    case 16:
        return 0.25f;
    case 32:
        return 0x1.6a09e6p-3f;
    case 64:
        return 0.125f;
    case LARGEST:
        return 0x1.6a09e6p-4f;
    default:
        return 0;
    }
}

mpsim_status mpsim_hadamard_groups(float *x, size_t n, unsigned size, uint64_t seed)
{
    const float norm = norm_of(size);
    float room[LARGEST];
    const float *sign = size == 16 ? te_signs : room;
    if (norm == 0 || (n > 0 && !x))
        return MPSIM_EINVAL;
    for (unsigned i = 0; i < size; i++)
        room[i] = mpsim_rng_word(seed, 0, i) & 1 ? -1 : 1;
    for (size_t g = 0; g + size <= n; g += size)
        transform(x + g, size, sign, norm);
    return MPSIM_OK;
}

mpsim_status mpsim_hadamard(float *x, size_t n)
{
    return n % 16 ? MPSIM_EINVAL : mpsim_hadamard_groups(x, n, 16, 0);
}
