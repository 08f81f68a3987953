/* host_mma.h -- the instructions of gpu/validation/checks/mma_variants.cu on the host executor: fragments and metadata are read as
 * the PTX ISA says ("Sparse matrix storage", "Matrix fragments for ... sparse"), sums are the reference's. */
#pragma once

#include "../../gpu/validation/checks/reference.h"

struct gpu_host_lanes { /* what the lanes of a warp give */
    struct {
        uint32_t x[4], y[4], metadata;
    } lane[32];
};

/* Element i of a line of fragments: `high` chooses the registers of rows 8 to 15, `each` is from a register to the next. */
inline uint32_t gpu_host_element(const uint32_t *(*registers)(const gpu_host_lanes &l, int lane),
                                 const gpu_host_lanes &l, int bits, int line, int i, int high, int each)
{
    const int p = bits == 19 ? 1 : 32 / bits;
    const uint32_t word = registers(l, 4 * line + i % (4 * p) / p)[high + each * (i / (4 * p))];
    return bits == 19 ? word >> 13 : word >> (bits * (i % p)) & ((1u << bits) - 1);
}

/* The four bits of a group of four elements (tf32: two) of a row. */
inline uint32_t gpu_host_group(const gpu_dots &j, const gpu_host_lanes &l, int row, int group)
{
    const int g = row % 8, high = row / 8, lanes = 2 * j.k / j.variant.sparse / 4;
    if (j.a.bits == 8)
        return l.lane[4 * g + high + 2 * (group / 8)].metadata >> (4 * (group % 8)) & 15;
    return l.lane[4 * g + lanes * j.variant.selector + group / 4].metadata >> (16 * high + 4 * (group % 4)) & 15;
}

/* Where element k of a row is in the depth. */
inline int gpu_host_depth(const gpu_dots &j, const gpu_host_lanes &l, int row, int k)
{
    if (!j.variant.sparse)
        return k;
    const int group = j.variant.sparse == 4 ? k / 2 : k;
    const uint32_t bits = gpu_host_group(j, l, row, group);
    if (j.variant.sparse == 4 ? (bits & 3) >= bits >> 2 : bits != 4 && bits != 14)
        gpu_host_fail(cudaErrorLaunchFailure, "metadata that are not ordered");
    return j.variant.sparse == 4 ? 4 * group + int(bits >> (2 * (k % 2)) & 3) : 2 * k + (bits == 14);
}

inline void gpu_host_mma_variant(const gpu_dots &j, const uint32_t x[4], const uint32_t y[4], uint32_t metadata,
                                 uint32_t d[4])
{
    const unsigned lane = gpu_host_lane(), first = gpu_host.now->number / 32 * 32;
    gpu_host_lanes l;
    memcpy(l.lane[0].x, x, 16);
    memcpy(l.lane[0].y, y, 16);
    l.lane[0].metadata = metadata;
    const auto mine = l.lane[0];
    gpu_host_meet(first, 32, 0xffffffffu, &mine, sizeof mine, l.lane, __FILE__, __LINE__);
    for (int i = 0; i < 4; i++) {
        const int row = int(lane / 4) + 8 * (i / 2), column = int(2 * (lane % 4)) + i % 2;
        uint32_t a[GPU_DEPTH], b[GPU_DEPTH];
        for (int k = 0; k < j.k; k++) {
            a[k] = gpu_host_element([](const gpu_host_lanes &all, int at) { return all.lane[at].x; }, l, j.a.bits,
                                    row % 8, k, row / 8, 2);
            b[k] = gpu_host_element([](const gpu_host_lanes &all, int at) { return all.lane[at].y; }, l, j.b.bits,
                                    column, gpu_host_depth(j, l, row, k), 0, 1);
        }
        d[i] = gpu_dot_reference(&j, a, b, d[i]);
    }
}

/* mma.sync of binary64: fma by fma. */
inline void gpu_host_dmma(const gpu_dots &j, const double x[8], const double y[4], double d[4])
{
    struct {
        double x[8], y[4];
    } mine, all[32];
    memcpy(mine.x, x, sizeof mine.x);
    memcpy(mine.y, y, sizeof mine.y);
    const unsigned lane = gpu_host_lane();
    gpu_host_meet(gpu_host.now->number / 32 * 32, 32, 0xffffffffu, &mine, sizeof mine, all, __FILE__, __LINE__);
    for (unsigned i = 0; i < unsigned(j.rows) / 4; i++) {
        const unsigned row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        for (unsigned k = 0; k < unsigned(j.k); k++)
            d[i] = fma(all[4 * (row % 8) + k % 4].x[j.rows == 8 ? 0 : row / 8 + 2 * (k / 4)],
                       all[4 * column + k % 4].y[k / 4], d[i]);
        if (d[i] != d[i]) /* the model's NaN */
            d[i] = __longlong_as_double(0x7fffffffffffffff);
    }
}
