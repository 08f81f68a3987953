/* hadamard.c -- random Hadamard transforms of groups of elements; see mpsim/block.h. */
#include <mpsim/block.h>

#include "../base/extent.h"

enum { LARGEST = 128 };

static const float te_signs[16] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

/* Neighbours at distance 1, then 2, of four numbers. */
static inline void first_stages(float *v)
{
    const float a = v[0] + v[1], b = v[0] - v[1], c = v[2] + v[3], d = v[2] - v[3];
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
}

/* What the elements of a group are multiplied by. */
typedef struct factors {
    float before[LARGEST], after[LARGEST];
} factors;

/* Of a size that the compiler knows. */
static inline void transform(float *x, const size_t size, const factors *f)
{
    float v[LARGEST];
    for (size_t i = 0; i < size; i++)
        v[i] = x[i] * f->before[i];
    for (size_t i = 0; i < size; i += 4)
        first_stages(v + i);
    for (size_t half = 4; half < size; half *= 2)
        for (size_t i = 0; i < size; i += 2 * half)
            for (size_t j = i; j < i + half; j += 4)
                for (size_t k = j; k < j + 4; k++) {
                    const float a = v[k], b = v[k + half];
                    v[k] = a + b;
                    v[k + half] = a - b;
                }
    for (size_t i = 0; i < size; i++)
        x[i] = v[i] * f->after[i];
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

/* Of Hadamard's matrix H, signs S and norm c: c H S, or back c S H. */
static mpsim_status groups(float *x, size_t n, unsigned size, uint64_t seed, int back)
{
    const float norm = norm_of(size);
    factors f;
    if (norm == 0 || (n > 0 && !x) || !mpsim_fits(n, sizeof *x))
        return MPSIM_EINVAL;
    for (unsigned i = 0; i < size && n >= size; i++) {
        const float sign = size == 16 ? te_signs[i] : mpsim_rng_word(seed, 0, i) & 1 ? -1 : 1;
        f.before[i] = back ? 1 : sign;
        f.after[i] = back ? norm * sign : norm;
    }
    for (size_t g = 0; g + size <= n; g += size)
        switch (size) {
        case 16:
            transform(x + g, 16, &f);
            break;
        case 32:
            transform(x + g, 32, &f);
            break;
        case 64:
            transform(x + g, 64, &f);
            break;
        default:
            transform(x + g, LARGEST, &f);
        }
    return MPSIM_OK;
}

mpsim_status mpsim_hadamard_groups(float *x, size_t n, unsigned size, uint64_t seed)
{
    return groups(x, n, size, seed, 0);
}

mpsim_status mpsim_hadamard_groups_back(float *x, size_t n, unsigned size, uint64_t seed)
{
    return groups(x, n, size, seed, 1);
}

mpsim_status mpsim_hadamard(float *x, size_t n)
{
    return n % 16 ? MPSIM_EINVAL : mpsim_hadamard_groups(x, n, 16, 0);
}
