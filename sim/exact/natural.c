/* natural.c -- see natural.h. */
#include "natural.h"

#include <assert.h>
#include <string.h>

void natural_set(natural *x, uint64_t value)
{
    for (x->n = 0; value; value >>= 32)
        x->word[x->n++] = (uint32_t)value;
}

static void push(natural *x, uint64_t word)
{
    assert(x->n < NATURAL_WORDS);
    x->word[x->n++] = (uint32_t)word;
}

void natural_grow(natural *x, uint32_t m, uint32_t a)
{
    uint64_t carry = a;
    for (size_t i = 0; i < x->n; i++) {
        carry += (uint64_t)x->word[i] * m;
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        push(x, carry);
}

void natural_shift(natural *x, size_t n)
{
    const size_t words = n / 32;
    if (!x->n)
        return;
    natural_grow(x, (uint32_t)1 << n % 32, 0);
    assert(x->n + words <= NATURAL_WORDS);
    memmove(x->word + words, x->word, x->n * sizeof *x->word);
    memset(x->word, 0, words * sizeof *x->word);
    x->n += words;
}

static void trim(natural *x)
{
    while (x->n && !x->word[x->n - 1])
        x->n--;
}

void natural_halve(natural *x)
{
    for (size_t i = 0; i < x->n; i++)
        x->word[i] = x->word[i] >> 1 | (i + 1 < x->n ? x->word[i + 1] << 31 : 0);
    trim(x);
}

void natural_drop(natural *x, size_t n)
{
    const size_t words = n / 32;
    memmove(x->word, x->word + words, (x->n - words) * sizeof *x->word);
    x->n -= words;
    for (size_t i = 0; i < n % 32; i++)
        natural_halve(x);
}

void natural_multiply(natural *z, const natural *a, const natural *b)
{
    assert(a->n + b->n <= NATURAL_WORDS);
    z->n = a->n + b->n;
    memset(z->word, 0, z->n * sizeof *z->word);
    for (size_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b->n; k++) {
            carry += (uint64_t)a->word[i] * b->word[k] + z->word[i + k];
            z->word[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        z->word[i + b->n] = (uint32_t)carry;
    }
    trim(z);
}

void natural_add(natural *a, const natural *b)
{
    uint64_t carry = 0;
    while (a->n < b->n)
        push(a, 0);
    for (size_t i = 0; i < a->n; i++) {
        carry += (uint64_t)a->word[i] + (i < b->n ? b->word[i] : 0);
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        push(a, carry);
}

void natural_subtract(natural *a, const natural *b)
{
    uint64_t borrow = 0;
    for (size_t i = 0; i < a->n; i++) {
        const uint64_t take = (i < b->n ? b->word[i] : 0) + borrow;
        borrow = a->word[i] < take;
        a->word[i] = (uint32_t)(a->word[i] - take);
    }
    assert(!borrow);
    trim(a);
}

int natural_compare(const natural *a, const natural *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (size_t i = a->n; i-- > 0;)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

size_t natural_bits(const natural *x)
{
    size_t bits = 32 * x->n;
    if (x->n)
        for (uint32_t top = x->word[x->n - 1]; !(top >> 31); top <<= 1)
            bits--;
    return bits;
}

size_t natural_zeros(const natural *x)
{
    size_t zeros = 0;
    while (zeros < 32 * x->n && !(x->word[zeros / 32] >> zeros % 32 & 1))
        zeros++;
    return zeros;
}
