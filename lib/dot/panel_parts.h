/* panel_parts.h -- the ways to pack a panel (see panel.h), which panel.c chooses from. */
#pragma once

#include "../base/codes.h"
#include "cut.h"
#include "scalar.h"

enum { N = MPSIM_PANEL };

/* Where product k of the model's order stands in the operands. */
static inline size_t mpsim_source_of_product(const mpsim_panels *to, size_t k)
{
    const size_t chunk = to->quads;
    return chunk ? k - k % chunk + mpsim_fused_quads(k % chunk, chunk) : k;
}

static inline void mpsim_put_range(const mpsim_panels *to, size_t l, int low, int high)
{
    to->low[l] = (int16_t)(low - 1023);
    to->high[l] = (int16_t)(high - 1023);
}

/* n codes become the bits of binary32 values, in `raw` itself if the codes are such values, else in `bits`; returns where. */
static inline uint32_t *mpsim_enter_codes(const mpsim_entry *e, uint32_t *bits, void *raw, size_t n)
{
    float *values = (float *)(e->as_values ? raw : bits);
    if (!e->as_values)
        mpsim_decode_array_f32(e->from, values, raw, n);
    if (e->rounds)
        (void)mpsim_ready_run(&e->ready, values, values, n);
    return (uint32_t *)(void *)values;
}

/* mpsim_pack_... -- line l, or lines first to first + n - 1 of a panel: k after k, or k-major (across); _together: k after k, which
 * returns 0 where one must be packed alone. */
void mpsim_pack_any_line(const mpsim_lines *x, const mpsim_panels *to, size_t l);
void mpsim_pack_any_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n);
/* Values of binary32 from codes of at most 32 bits. */
void mpsim_pack_f32_line(const mpsim_lines *x, const mpsim_panels *to, size_t l);
int mpsim_pack_f32_together(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n);
void mpsim_pack_f32_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n);
/* Codes that are values. */
void mpsim_pack_values_line(const mpsim_lines *x, const mpsim_panels *to, size_t l);
int mpsim_pack_values_together(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n);
void mpsim_pack_values_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n);
