/* kinds.c -- see kinds.h. */
#include "kinds.h"

#include "../base/turn.h"
#include "binary32.h"
#include "panel_parts.h"

enum { BITS = 64, BLOCK = BITS * MPSIM_KINDS_WORDS };

mpsim_kinds_reader mpsim_kinds_reader_of(const mpsim_lines *x, int flushes)
{
    const mpsim_format *f = x->entry ? &mpsim_binary32 : x->numbers;
    const uint64_t sign = mpsim_sign_bit(f, 1);
    uint64_t zeros = f->zero != MPSIM_ZERO_NONE;
    if (zeros && flushes)
        zeros = x->entry ? mpsim_bits_f32((float)mpsim_format_min_normal(x->numbers)) : (uint64_t)1 << f->mbits;
    return (mpsim_kinds_reader){.bytes = mpsim_format_code_bytes(f),
                                .magnitude = mpsim_magnitude_mask(f),
                                .sign = sign,
                                .most = f->max_finite,
                                .infinity = f->inf ? f->max_finite + 1 : UINT64_MAX,
                                .zeros = zeros,
                                .negzero = f->nan == MPSIM_NAN_NEGZERO};
}

/* ---- codes of more than 32 bits ---- */

static void read_word(const mpsim_kinds_reader *r, const uint64_t *codes, mpsim_kinds *to)
{
    *to = (mpsim_kinds){0, 0, 0, 0};
    for (size_t i = 0; i < BITS; i++) {
        const uint64_t m = codes[i] & r->magnitude, minus = (codes[i] & r->sign) != 0, infinite = m == r->infinity;
        const uint64_t nan = (m > r->most && !infinite) || (r->negzero && minus && m == 0);
        to->infinite |= infinite << i;
        to->nan |= nan << i;
        to->zero |= (uint64_t)(m < r->zeros && !nan) << i;
        to->minus |= minus << i;
    }
}

/* ---- lines ---- */

typedef union block {
    unsigned char bytes[8 * BLOCK];
    uint32_t words[BLOCK];
    uint64_t codes[BLOCK];
} block;

/* `count` codes of n lines from product k on, and zeros after them. */
static void gather(const mpsim_lines *x, size_t first, size_t n, size_t k, size_t count, block *to)
{
    const size_t apart = sizeof to[0] / x->bytes, at = first * x->line + k * x->next;
    memset(to, 0, n * sizeof to[0]);
    mpsim_turn_codes(to, (int64_t)apart, x->codes, x->bytes, (int64_t)at, (int64_t)x->line, (int64_t)x->next, n, count);
}

/* Codes of the format that is looked at: in their block, or as the operand has them. */
static const void *codes_of(const mpsim_lines *x, size_t l, size_t k, int lie, block *from, uint32_t *entered)
{
    if (lie)
        return (const unsigned char *)x->codes + (l * x->line + k) * x->bytes;
    return x->entry ? mpsim_enter_codes(x->entry, entered, from, BLOCK) : (const void *)from;
}

void mpsim_read_kinds(const mpsim_lines *x, const mpsim_kinds_reader *r, mpsim_kinds_function *read, size_t first,
                      size_t n, size_t word, mpsim_kinds (*to)[MPSIM_KINDS_WORDS])
{
    block blocks[N];
    uint32_t entered[BLOCK];
    const size_t k = word * BITS, count = x->depth - k < BLOCK ? x->depth - k : BLOCK, words = (count - 1) / BITS + 1;
    const int lie = x->next == 1 && !x->entry && r->bytes <= 4 && count % BITS == 0;
    if (!lie)
        gather(x, first, n, k, count, blocks);
    for (size_t l = 0; l < n; l++) {
        const void *codes = codes_of(x, first + l, k, lie, &blocks[l], entered);
        if (r->bytes <= 4)
            read(r, codes, to[l], words);
        else
            for (size_t i = 0; i < words; i++)
                read_word(r, blocks[l].codes + i * BITS, &to[l][i]);
    }
}
