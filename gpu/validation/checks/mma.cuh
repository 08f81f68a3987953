/* mma.cuh -- one mma.sync of a warp on codes in shared memory, for every instruction of instructions.h.
 *
 * Fragments are those of the PTX ISA, "Matrix Fragments for mma.m16n8k4 / k8 / k16 / k32". With
 * g = lane / 4, t = lane mod 4 and p elements a register (1 tf32, 2 of 16 bits, 4 of 8 bits):
 *
 *   A  register r: row g + 8 (r mod 2), from k = p t + 4 p (r / 2) on
 *   B  register r: column g, from k = p t + 4 p r on
 *   C  element i:  row g + 8 (i / 2), column 2 t + i mod 2
 *
 * Matrices of less depth have only the first half of the registers of A and B. */
#pragma once

#include "instructions.h"
#include "tally.cuh"

/* p codes from k on as a register. A code of tf32 has its 19 bits at the top, and what lies above
 * them (GPU_DIRTY) below. */
static __device__ inline uint32_t mma_register(const uint32_t *line, int k, int bits)
{
    if (bits == 19)
        return line[k] << 13 | line[k] >> 19;
    if (bits == 16)
        return line[k] | line[k + 1] << 16;
    return line[k] | line[k + 1] << 8 | line[k + 2] << 16 | line[k + 3] << 24;
}

#if !GPU_ON_HOST

#define MMA_F32(text, na, nb, ...)                                                         \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, " na ", " nb ", {%0,%1,%2,%3};" \
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])                          \
                 : __VA_ARGS__)
#define MMA_F16(text, na, nb, ...) \
    asm volatile("mma.sync.aligned." text " {%0,%1}, " na ", " nb ", {%0,%1};" : "+r"(h[0]), "+r"(h[1]) : __VA_ARGS__)
#define FULL_f32(text) \
    MMA_F32(text, "{%4,%5,%6,%7}", "{%8,%9}", "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
#define HALF_f32(text) MMA_F32(text, "{%4,%5}", "{%6}", "r"(x[0]), "r"(x[1]), "r"(y[0]))
#define FULL_f16(text) \
    MMA_F16(text, "{%2,%3,%4,%5}", "{%6,%7}", "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
#define HALF_f16(text) MMA_F16(text, "{%2,%3}", "{%4}", "r"(x[0]), "r"(x[1]), "r"(y[0]))

/* d = the four elements of this lane. a: 16 rows of k codes, b: 8 columns of k, c: 16 rows of 8.
 * All lanes of the warp call it, with the same instruction. */
static __device__ __noinline__ void mma_tile(int instruction, int k, int bits, const uint32_t *a, const uint32_t *b,
                                             const uint32_t *c, int half_c, uint32_t d[4])
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int p = bits == 19 ? 1 : 32 / bits, deep = k / (4 * p); /* 1 or 2 */
    uint32_t x[4] = {0, 0, 0, 0}, y[2] = {0, 0}, h[2];
    float f[4];
    for (int r = 0; r < 2 * deep; r++)
        x[r] = mma_register(a + (g + 8 * (r % 2)) * k, p * t + 4 * p * (r / 2), bits);
    for (int r = 0; r < deep; r++)
        y[r] = mma_register(b + g * k, p * t + 4 * p * r, bits);
    for (int i = 0; i < 4; i++)
        d[i] = c[(g + 8 * (i / 2)) * GPU_COLUMNS + 2 * t + i % 2];
    for (int i = 0; i < 4; i++)
        f[i] = __uint_as_float(d[i]);
    h[0] = d[0] | d[1] << 16;
    h[1] = d[2] | d[3] << 16;
    switch (instruction) {
#define MMA_CASE(ID, shape, k, a, b, d, size, ...)              \
    case GPU_##ID:                                              \
        size##_##d(#shape ".row.col." #d "." #a "." #b "." #d); \
        break;
        GPU_MMA_INSTRUCTIONS(MMA_CASE)
#if __CUDA_ARCH__ >= 890
        GPU_MMA_FP8_INSTRUCTIONS(MMA_CASE)
#endif
#undef MMA_CASE
    default:
        break;
    }
    for (int i = 0; i < 4; i++)
        d[i] = half_c ? h[i / 2] >> (16 * (i % 2)) & 0xffff : __float_as_uint(f[i]);
}

/* ---- what the kernels of mma.cu and wgmma.cu share ---- */

/* The codes of a tile, made by `lanes` threads. */
static __device__ __noinline__ void dots_fill(const gpu_dots &j, uint64_t tile, uint32_t *a, uint32_t *b, uint32_t *c,
                                              int lane, int lanes)
{
    for (int i = lane; i < j.rows * j.k; i += lanes)
        a[i] = gpu_operand(&j, tile, 0, i / j.k, i % j.k);
    for (int i = lane; i < GPU_COLUMNS * j.k; i += lanes)
        b[i] = gpu_operand(&j, tile, 1, i / j.k, i % j.k);
    for (int i = lane; i < j.rows * GPU_COLUMNS; i += lanes)
        c[i] = gpu_addend(&j, tile, i / GPU_COLUMNS, i % GPU_COLUMNS);
}

/* What element (row, column) should be. */
static __device__ __noinline__ uint32_t dots_expected(const gpu_dots &j, const uint32_t *a, const uint32_t *b,
                                                      const uint32_t *c, int row, int column)
{
    if (j.distribution == GPU_LAYOUT)
        return gpu_layout_answer(&j, row, column);
    return gpu_dot_reference(&j, a + row * j.k, b + column * j.k, c[row * GPU_COLUMNS + column]);
}

#endif
