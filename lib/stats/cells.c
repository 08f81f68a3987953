/* cells.c -- elements into cells; see cells.h. */
#include "config.h"

#include "cells.h"

#include "../base/isa.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 1 << 15 };

static const mpsim_cell_loops *const loops_of[MPSIM_ISAS] = {
    [MPSIM_ISA_GENERIC] = &mpsim_cell_loops_generic,
    [MPSIM_ISA_NEON] = &mpsim_cell_loops_generic,
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = &mpsim_cell_loops_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = &mpsim_cell_loops_avx512,
#endif
};

const mpsim_cell_loops *mpsim_cells_loops(void)
{
    return loops_of[mpsim_isa_choice()];
}

void mpsim_cells_forget(mpsim_cells *m)
{
    for (size_t i = 0; i < m->n_used; i++) {
        mpsim_cell *c = mpsim_cells_of(m, m->used[i]);
        for (uint32_t k = 0; k < m->binades[m->used[i]].cells; k++)
            c[k].n = 0;
    }
    m->n_used = 0;
    m->zero = m->inf = m->nan = 0;
    m->min = ~0u;
    m->max = 0;
    for (uint32_t i = 0; i < MPSIM_BUFFERS && m->pending; i++)
        m->at[i] = i * MPSIM_CELL_BLOCK;
    m->pending = 0;
}

/* ---- buffers ---- */

/* Zeros and subnormal numbers. */
static void flush_tiny(mpsim_cells *m, uint32_t *words, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        words[left] = words[i];
        left += words[i] << 1 != 0;
    }
    m->zero += n - left;
    if (left)
        m->leave(m->context, NULL, words, left);
}

static void flush_special(mpsim_cells *m, const uint32_t *words, size_t n)
{
    size_t inf = 0;
    for (size_t i = 0; i < n; i++)
        inf += words[i] << 9 == 0;
    m->inf += inf;
    m->nan += n - inf;
}

static void flush_binade(mpsim_cells *m, uint32_t key, uint32_t *words, size_t n)
{
    uint32_t room[2][MPSIM_CELL_ROOM];
    const mpsim_binade *b = &m->binades[key];
    const uint32_t sign = words[0] & 0x80000000u;
    mpsim_cell *c = mpsim_cells_of(m, key);
    for (size_t i = 0; i < m->n_targets && b->left; i++)
        if (mpsim_target_leaves(&m->targets[i], (int)key))
            m->leave(m->context, &m->targets[i], words, n);
    for (uint32_t i = 0; i + 1 < b->cells && n; i++) {
        const size_t stay = m->loops->split(words, room[i % 2], n, sign | c[i].below);
        mpsim_cell_add(m, key, &c[i], words, stay);
        words = room[i % 2];
        n -= stay;
    }
    mpsim_cell_add(m, key, &c[b->cells - 1], words, n);
}

static void flush(mpsim_cells *m, uint32_t buffer)
{
    const uint32_t key = buffer & 255;
    uint32_t *words = m->buffers + (size_t)buffer * MPSIM_CELL_BLOCK;
    const size_t n = m->at[buffer] - buffer * MPSIM_CELL_BLOCK;
    m->at[buffer] = buffer * MPSIM_CELL_BLOCK;
    if (key == 0)
        flush_tiny(m, words, n);
    else if (key == 255)
        flush_special(m, words, n);
    else
        flush_binade(m, key, words, n);
}

/* Of few elements, two buffers each would be flushed with too few. */
mpsim_status mpsim_cells_add(mpsim_cells *m, const mpsim_cell_loops *loops, const void *x, size_t n)
{
    const uint32_t second = n < FEW ? 0 : MPSIM_KEYS;
    if (!m->buffers) {
        m->buffers = malloc((size_t)MPSIM_BUFFERS * MPSIM_CELL_BLOCK * sizeof *m->buffers);
        if (!m->buffers)
            return MPSIM_ENOMEM;
    }
    m->loops = loops;
    m->pending |= n > 0;
    for (size_t i = 0; i < n;) {
        uint32_t full;
        i += loops->distribute(m->buffers, m->at, (const unsigned char *)x + 4 * i, n - i, second, &full);
        if (full < MPSIM_BUFFERS)
            flush(m, full);
    }
    return MPSIM_OK;
}

void mpsim_cells_settle(mpsim_cells *m)
{
    for (uint32_t i = 0; i < MPSIM_BUFFERS && m->pending; i++)
        if (m->at[i] != i * MPSIM_CELL_BLOCK)
            flush(m, i);
    m->pending = 0;
}

/* ---- weights ---- */

/* A zero, an infinity, a NaN, a subnormal number; or one of a binade that has to be left. */
static void add_special(mpsim_cells *m, const mpsim_target *t, uint32_t word, uint64_t weight)
{
    const uint32_t key = word >> 23 & 255;
    if (word << 1 == 0)
        m->zero += weight;
    else if (key == 255 && word << 9 == 0)
        m->inf += weight;
    else if (key == 255)
        m->nan += weight;
    else
        m->repeat(m->context, t, word, weight);
}

void mpsim_cells_add_weighted(mpsim_cells *m, const uint32_t *words, const uint64_t *weights, size_t n)
{
    for (size_t i = 0, next; i < n; i = next) {
        const uint32_t key = words[i] >> 23 & 255, sign = words[i] & 0x80000000u;
        const mpsim_binade *b = &m->binades[key];
        next = i + 1;
        if (key == 0 || key == 255) {
            add_special(m, NULL, words[i], weights[i]);
            continue;
        }
        while (next < n && words[next] >> 23 == words[i] >> 23)
            next++;
        for (size_t k = 0; k < m->n_targets && b->left; k++)
            for (size_t j = i; j < next && mpsim_target_leaves(&m->targets[k], (int)key); j++)
                add_special(m, &m->targets[k], words[j], weights[j]);
        for (uint32_t k = 0; k < b->cells; k++) {
            mpsim_cell *c = mpsim_cells_of(m, key) + k;
            size_t end = i;
            while (end < next && words[end] < (sign | c->below))
                end++;
            mpsim_cell_add_weighted(m, key, c, words + i, weights + i, end - i);
            i = end;
        }
    }
}

/* ---- merging ---- */

void mpsim_cells_merge(mpsim_cells *to, const mpsim_cells *from)
{
    for (size_t i = 0; i < from->n_used; i++) {
        const uint32_t key = from->used[i];
        for (uint32_t k = 0; k < from->binades[key].cells; k++)
            mpsim_cell_merge(to, key, mpsim_cells_of(to, key) + k, mpsim_cells_of(from, key) + k);
    }
    to->zero += from->zero;
    to->inf += from->inf;
    to->nan += from->nan;
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
}
