/* fixed.c -- see fixed.h. Written to be read: a few hundred words are multiplied, not millions. */
#include "fixed.h"

#include <string.h>

mpsim_fixed mpsim_fixed_integer(int n, uint32_t x)
{
    mpsim_fixed a;
    memset(&a, 0, sizeof a);
    a.n = n;
    a.limb[n - 1] = x;
    return a;
}

mpsim_fixed mpsim_fixed_power(int n, uint64_t m, int e)
{
    mpsim_fixed a = mpsim_fixed_integer(n, 0);
    for (int i = 0; i < 64; i++) {
        const int at = 32 * (n - 1) + e + i;
        if ((m >> i & 1) && at >= 0 && at < 32 * n)
            a.limb[at / 32] |= (uint32_t)1 << at % 32;
    }
    return a;
}

/* The words of log 2 behind the point, from the first one down, without those that follow (t-function.c asks MPFR). */
static const uint32_t log_2[MPSIM_FIXED_LIMBS - 1] = {
    0xb17217f7, 0xd1cf79ab, 0xc9e3b398, 0x03f2f6af, 0x40f34326, 0x7298b62d, 0x8a0d175b, 0x8baafa2b, 0xe7b87620,
    0x6debac98, 0x559552fb, 0x4afa1b10, 0xed2eae35, 0xc1382144, 0x27573b29, 0x1169b825, 0x3e96ca16, 0x224ae8c5,
    0x1acbda11, 0x317c387e, 0xb9ea9bc3, 0xb136603b, 0x256fa0ec, 0x7657f74b, 0x72ce87b1, 0x9d6548ca, 0xf5dfa6bd,
    0x38303248, 0x655fa187, 0x2f20e3a2, 0xda2d97c5, 0x0f3fd5c6, 0x07f4ca11, 0xfb5bfb90, 0x610d30f8, 0x8fe551a2,
    0xee569d6d, 0xfc1efa15, 0x7d2e23de, 0x1400b396, 0x17460775, 0xdb8990e5, 0xc943e732, 0xb479cd33, 0xcccc4e65,
    0x9393514c, 0x4c1a1e0b, 0xd1d6095d, 0x25669b33, 0x3564a337, 0x6a9c7f8a};

mpsim_fixed mpsim_fixed_log_2(int n)
{
    mpsim_fixed a = mpsim_fixed_integer(n, 0);
    for (int i = 0; i < n - 1; i++)
        a.limb[n - 2 - i] = log_2[i];
    return a;
}

int mpsim_fixed_is_zero(const mpsim_fixed *a)
{
    uint32_t any = 0;
    for (int i = 0; i < a->n; i++)
        any |= a->limb[i];
    return any == 0;
}

int mpsim_fixed_less(const mpsim_fixed *a, const mpsim_fixed *b)
{
    for (int i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i];
    return 0;
}

void mpsim_fixed_add(mpsim_fixed *a, const mpsim_fixed *b)
{
    uint64_t carry = 0;
    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] + b->limb[i];
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

void mpsim_fixed_subtract(mpsim_fixed *a, const mpsim_fixed *b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        const uint64_t d = (uint64_t)a->limb[i] - b->limb[i] - borrow;
        a->limb[i] = (uint32_t)d;
        borrow = d >> 63;
    }
}

void mpsim_fixed_multiply(mpsim_fixed *a, const mpsim_fixed *b)
{
    uint32_t product[2 * MPSIM_FIXED_LIMBS] = {0};
    for (int i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < b->n; j++) {
            carry += (uint64_t)a->limb[i] * b->limb[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + b->n] = (uint32_t)carry;
    }
    memcpy(a->limb, product + a->n - 1, (size_t)a->n * sizeof *product);
}

void mpsim_fixed_multiply_by(mpsim_fixed *a, uint32_t x)
{
    uint64_t carry = 0;
    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] * x;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

void mpsim_fixed_divide_by(mpsim_fixed *a, uint32_t x)
{
    uint64_t rest = 0;
    for (int i = a->n - 1; i >= 0; i--) {
        rest = rest << 32 | a->limb[i];
        a->limb[i] = (uint32_t)(rest / x);
        rest %= x;
    }
}

void mpsim_fixed_shift(mpsim_fixed *a, int bits)
{
    const int words = bits / 32, rest = bits % 32;
    for (int i = 0; i < a->n; i++) {
        const uint64_t low = i + words < a->n ? a->limb[i + words] : 0;
        const uint64_t high = i + words + 1 < a->n ? a->limb[i + words + 1] : 0;
        a->limb[i] = (uint32_t)((high << 32 | low) >> rest);
    }
}

/* A bit of the quotient at a time, from that of 1 down. */
void mpsim_fixed_divide(mpsim_fixed *a, const mpsim_fixed *b)
{
    mpsim_fixed rest = *a;
    *a = mpsim_fixed_integer(a->n, 0);
    for (int i = 32 * (a->n - 1); i >= 0; i--) {
        if (!mpsim_fixed_less(&rest, b)) {
            mpsim_fixed_subtract(&rest, b);
            a->limb[i / 32] |= (uint32_t)1 << i % 32;
        }
        mpsim_fixed_add(&rest, &rest);
    }
}
