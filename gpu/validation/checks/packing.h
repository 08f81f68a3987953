/* packing.h -- where wgmma finds an operand in shared memory, and the descriptor that says so; C17 and CUDA.
 *
 * Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" (strides, canonical layouts, swizzling
 * modes, matrix descriptor). tests/gpu/t-packing reads operands as that chapter says.
 *
 * A line is a row of A or a column of B. The unit is the atom: eight pieces of `swizzle` bytes, or of 16 without swizzle.
 * K-major, a piece has consecutive elements of one line; the eight are eight lines. MN-major (16 bits only), a piece
 * has consecutive lines at one depth; the eight are eight depths. A swizzle of 32, 64, 128 bytes changes bits 4, 4-5,
 * 4-6 of an address by exclusive or with bits 7, 7-8, 7-9. An operand begins at a multiple of 1024. */
#pragma once

#include "checks.h"

#ifndef MPSIM_HD
#include "../../../lib/round/scalar.h"
#endif

typedef struct gpu_packing {
    int swizzle, mn;  /* of gpu_variant */
    int bytes;        /* of an element */
    int lines, depth; /* multiples of 8 and of what an instruction takes */
} gpu_packing;

static inline MPSIM_HD gpu_packing gpu_packing_of(const gpu_dots *j, int is_b)
{
    const gpu_packing p = {j->variant.swizzle, is_b ? j->variant.mn_b : j->variant.mn_a, 32 * j->variant.chain / j->k,
                           is_b ? j->columns : j->rows, j->k};
    return p;
}

static inline MPSIM_HD uint32_t gpu_swizzled(int swizzle, uint32_t at)
{
    return at ^ ((at >> 7 & (uint32_t)(swizzle / 16 - (swizzle != 0))) << 4);
}

static inline MPSIM_HD int gpu_piece(const gpu_packing *p)
{
    return p->swizzle ? p->swizzle : 16;
}

/* All its pieces, whole ones: where the depth is less, the rest is not read. */
static inline MPSIM_HD int gpu_packing_bytes(const gpu_packing *p)
{
    const int piece = gpu_piece(p), along = (p->mn ? p->lines : p->depth) * p->bytes;
    return (along + piece - 1) / piece * piece * (p->mn ? p->depth : p->lines);
}

/* Atoms follow each other along the lines, and then along the depth; MN-major the other way round. */
static inline MPSIM_HD uint32_t gpu_place(const gpu_packing *p, int line, int k)
{
    const int piece = gpu_piece(p), byte = (p->mn ? line : k) * p->bytes, other = p->mn ? k : line;
    const int atom = byte / piece * ((p->mn ? p->depth : p->lines) / 8) + other / 8;
    return gpu_swizzled(p->swizzle, (uint32_t)((atom * 8 + other % 8) * piece + byte % piece));
}

/* "Matrix Descriptor Format": bits 0-13 address, 16-29 leading, 32-45 stride dimension byte offset, each without its low
 * 4 bits; 62-63 swizzle (1: 128 bytes, 2: 64, 3: 32). From an atom to the next along the piece is `far`, across it
 * `near`. The leading one is `far`, but with MN-major operands without swizzle `near`; K-major with swizzle it is not
 * used (1). `swap`: the other way round. */
static inline MPSIM_HD uint64_t gpu_descriptor(const gpu_packing *p, uint32_t address, int swap)
{
    const uint32_t near = 8 * (uint32_t)gpu_piece(p), far = near * (uint32_t)((p->mn ? p->depth : p->lines) / 8);
    const int is_near = (p->mn && !p->swizzle) != (swap != 0);
    const uint32_t leading = p->swizzle && !p->mn ? 16 : is_near ? near : far;
    const uint32_t stride = is_near ? far : near;
    const uint64_t mode = p->swizzle ? (uint64_t)(p->swizzle == 128 ? 1 : p->swizzle == 64 ? 2 : 3) : 0;
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
           mode << 62;
}

/* Whether the two offsets are there to be confused. */
static inline MPSIM_HD int gpu_has_two_offsets(const gpu_packing *p)
{
    return p->mn || !p->swizzle;
}
