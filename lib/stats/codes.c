/* codes.c -- counting codes; see codes.h. */
#include "codes.h"

#include "../base/codes.h"

#include <stdlib.h>
#include <string.h>

enum { TABLES = 4, BLOCK = 1024 };

static size_t codes_of(const mpsim_format *f)
{
    return (size_t)1 << f->bits;
}

static void count_bytes(uint32_t *counts, size_t size, const unsigned char *codes, size_t n)
{
    size_t i = 0;
    const size_t mask = size - 1;
    for (; i + 4 <= n; i += 4) {
        uint32_t u;
        memcpy(&u, codes + i, sizeof u);
        counts[u & 0xff & mask]++;
        counts[size + (u >> 8 & 0xff & mask)]++;
        counts[2 * size + (u >> 16 & 0xff & mask)]++;
        counts[3 * size + (u >> 24 & mask)]++;
    }
    for (; i < n; i++)
        counts[codes[i] & mask]++;
}

static void count_words(uint32_t *counts, size_t size, const unsigned char *codes, size_t n)
{
    size_t i = 0;
    const uint64_t mask = size - 1;
    for (; i + 4 <= n; i += 4) {
        uint64_t u;
        memcpy(&u, codes + 2 * i, sizeof u);
        counts[u & mask]++;
        counts[size + (u >> 16 & mask)]++;
        counts[2 * size + (u >> 32 & mask)]++;
        counts[3 * size + (u >> 48 & mask)]++;
    }
    for (; i < n; i++)
        counts[mpsim_code_load(codes, 2, i) & mask]++;
}

mpsim_status mpsim_code_counts_add(mpsim_code_counts *c, mpsim_cells *m, const mpsim_format *f, const void *codes,
                                   size_t n)
{
    const uint64_t most = UINT32_MAX;
    const size_t bytes = mpsim_format_code_bytes(f);
    const unsigned char *from = codes;
    if (c->n && !mpsim_format_same(&c->format, f))
        mpsim_code_counts_settle(c, m);
    if (!c->counts) {
        c->counts = calloc((size_t)TABLES << 16, sizeof *c->counts);
        if (!c->counts)
            return MPSIM_ENOMEM;
    }
    c->format = *f;
    while (n) {
        const size_t part = n < most - c->n ? n : (size_t)(most - c->n);
        if (bytes == 1)
            count_bytes(c->counts, codes_of(f), from, part);
        else
            count_words(c->counts, codes_of(f), from, part);
        c->n += part;
        n -= part;
        from += part * bytes;
        if (c->n == most)
            mpsim_code_counts_settle(c, m);
    }
    return MPSIM_OK;
}

/* Codes from `first` on, each as often as its weight says; those of one sign ascend. */
static void add_weighted(mpsim_cells *m, const mpsim_format *f, size_t first, const uint64_t *weights, size_t n)
{
    uint32_t words[BLOCK];
    uint64_t w[BLOCK];
    size_t there = 0;
    for (size_t i = 0; i < n; i++)
        if (weights[i]) {
            words[there] = mpsim_bits_f32(mpsim_number_to_f32(mpsim_scalar_unpack(f, first + i)));
            w[there++] = weights[i];
        }
    mpsim_cells_add_weighted(m, words, w, there);
}

void mpsim_cells_add_codes(mpsim_cells *m, const mpsim_format *f, const uint64_t *weights)
{
    for (size_t code = 0; code < codes_of(f); code += BLOCK)
        add_weighted(m, f, code, weights + code, codes_of(f) - code < BLOCK ? codes_of(f) - code : BLOCK);
}

void mpsim_code_counts_settle(mpsim_code_counts *c, mpsim_cells *m)
{
    uint64_t weights[BLOCK];
    const size_t size = c->n ? codes_of(&c->format) : 0;
    for (size_t code = 0; code < size; code += BLOCK) {
        const size_t n = size - code < BLOCK ? size - code : BLOCK;
        for (size_t i = 0; i < n; i++) {
            weights[i] = 0;
            for (size_t t = 0; t < TABLES; t++)
                weights[i] += c->counts[t * size + code + i];
        }
        add_weighted(m, &c->format, code, weights, n);
    }
    mpsim_code_counts_forget(c);
}

void mpsim_code_counts_forget(mpsim_code_counts *c)
{
    if (c->n)
        memset(c->counts, 0, TABLES * codes_of(&c->format) * sizeof *c->counts);
    c->n = 0;
}
