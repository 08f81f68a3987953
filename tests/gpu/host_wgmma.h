/* host_wgmma.h -- the instructions of gpu/validation/checks/wgmma_forms.cuh on the host executor: operands are read from shared
 * memory by their descriptors, as the PTX ISA says ("Strides", "Canonical layouts", "Swizzling modes"), sums are
 * computed by the models, an instruction at a time. It shares no code with gpu/validation/checks/packing.h. */
#pragma once

#include "../../gpu/validation/checks/checks.h"
#include "../../gpu/validation/checks/instructions.h"
#include "host_mma.h"

struct gpu_host_form { /* the arguments of X in gpu/validation/checks/variants.h */
    int types, n, in_registers, mn_a, mn_b, negate_a, negate_b;
};

/* The byte `byte` of element k of a line. A piece has 128, 64, 32 or (without swizzle) 16 bytes. K-major: 8 lines of a
 * piece each, then the stride dimension offset; the depth goes on within the piece, or without swizzle behind the leading
 * offset. MN-major: 8 depths of a piece each. */
inline size_t gpu_host_address(uint64_t descriptor, int mn, int size, int line, int k)
{
    static const int pieces[] = {16, 128, 64, 32};
    const int mode = int(descriptor >> 62), piece = pieces[mode];
    const size_t leading = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
    size_t at = (descriptor & 0x3fff) << 4;
    if (!mn) {
        const int byte = k * size;
        at += size_t(line / 8) * stride + size_t(line % 8 * piece);
        at += mode ? size_t(byte) : size_t(byte / 16) * leading + size_t(byte % 16);
    } else {
        const size_t across = size_t(line * size / piece), deep = size_t(k / 8);
        at += across * (mode ? leading : stride) + deep * (mode ? stride : leading);
        at += size_t(k % 8 * piece + line * size % piece);
    }
    switch (mode) { /* bits of an address that are changed by others */
    case 1:
        return at ^ (at >> 3 & 0x70);
    case 2:
        return at ^ (at >> 3 & 0x30);
    case 3:
        return at ^ (at >> 3 & 0x10);
    default:
        return at;
    }
}

/* The codes of a line of one instruction, of `size` bytes each, from shared memory. */
inline void gpu_host_line(uint64_t descriptor, int mn, int size, int line, unsigned char to[32])
{
    for (int k = 0; k < 32 / size; k++) {
        const size_t at = gpu_host_address(descriptor, mn, size, line, k);
        if (at + size_t(size) > gpu_host.dynamic_bytes) {
            gpu_host_fail(cudaErrorLaunchFailure, "wgmma reads beside the shared memory");
            return;
        }
        memcpy(to + k * size, gpu_host.shared + at, size_t(size));
    }
}

struct gpu_host_types { /* of GPU_WGMMA_*: what a multiplication needs */
    mpsim_model model;
    const mpsim_format *a, *b;
    int size; /* bytes of an element */
};

inline const gpu_host_types *gpu_host_types_of(int types)
{
    static gpu_host_types known[GPU_DMMA_FIRST];
    gpu_host_types *t = &known[types];
    if (!t->a) {
        const gpu_instruction *in = gpu_instruction_at(types);
        if (gpu_model(&t->model, 90, in) != 0)
            gpu_host_fail(cudaErrorLaunchFailure, "no model of this wgmma");
        t->a = mpsim_format_find(in->a);
        t->b = mpsim_format_find(in->b);
        t->size = 32 / in->k;
    }
    return t;
}

/* Whether a sum is a small integer, which all models keep when they add zeros. */
inline int gpu_host_is_small(uint32_t c, int is_half)
{
    const uint32_t field = is_half ? c >> 10 & 31 : c >> 23 & 255, one = is_half ? 15 : 127;
    return c == 0 || (field >= one && field < one + 8 && (c & (is_half ? 7u : 0xffffu)) == 0);
}

inline int gpu_host_is_zero(const unsigned char line[32])
{
    static const unsigned char zeros[32] = {0};
    return memcmp(line, zeros, 32) == 0;
}

/* As mpsim_dot takes them: a tf32 is the top 19 bits of its word; negated ones have the other sign. */
inline void gpu_host_codes(const mpsim_format *f, int negate, unsigned char line[32])
{
    const size_t size = mpsim_format_code_bytes(f);
    for (size_t k = 0; k < 32 / size; k++) {
        uint32_t code = 0;
        memcpy(&code, line + k * size, size);
        code = f->bits == 19 ? code >> 13 : code;
        code ^= negate ? 1u << (f->bits - 1) : 0;
        memcpy(line + k * size, &code, size);
    }
}

inline int gpu_host_is_finite(const mpsim_format *f, const unsigned char line[32])
{
    const size_t size = mpsim_format_code_bytes(f);
    for (size_t k = 0; k < 32 / size; k++) {
        uint32_t code = 0;
        memcpy(&code, line + k * size, size);
        if ((code & ((1u << (f->bits - 1)) - 1)) > f->max_finite)
            return 0;
    }
    return 1;
}

inline uint32_t gpu_host_sum(const gpu_host_types *t, const unsigned char a[32], const unsigned char b[32], int is_half,
                             uint32_t c)
{
    uint64_t d = 0;
    if (gpu_host_is_small(c, is_half) && gpu_host_is_zero(a) && gpu_host_is_finite(t->b, b))
        return c;
    if (mpsim_dot(&t->model, t->a, a, t->b, b, size_t(32 / t->size), c, NULL, &d) != MPSIM_OK)
        gpu_host_fail(cudaErrorLaunchFailure, "mpsim_dot refuses");
    return uint32_t(d);
}

/* One instruction of a warpgroup, as this thread sees it: its sums are those of rows lane / 4 and 8 below, columns
 * 2 (lane mod 4) and the next of every eight. */
inline void gpu_host_variant(const gpu_host_form &f, const uint32_t x[4], uint64_t a, uint64_t b, uint32_t scale_d,
                             uint32_t *d)
{
    const gpu_host_types *t = gpu_host_types_of(f.types);
    const unsigned lane = gpu_host_lane(), warp = gpu_host.now->number / 32;
    const int is_half = t->model.result.format.bits == 16, row = int(16 * warp + lane / 4);
    uint32_t all[32][4];
    unsigned char lines[2][32] = {}, column[32] = {};
    gpu_host_meet(32 * warp, 32, 0xffffffffu, x, sizeof all[0], all, __FILE__, __LINE__);
    for (int i = 0; i < 2; i++) {
        if (f.in_registers)
            for (int w = 0; w < 8; w++)
                memcpy(lines[i] + 4 * w, &all[lane / 4 * 4 + unsigned(w % 4)][i + 2 * (w / 4)], 4);
        else
            gpu_host_line(a, f.mn_a, t->size, row + 8 * i, lines[i]);
        gpu_host_codes(t->a, f.negate_a, lines[i]);
    }
    for (int j = 0; j < f.n / 8; j++)
        for (int c = 0; c < 2; c++) {
            gpu_host_line(b, f.mn_b, t->size, 8 * j + int(2 * (lane % 4)) + c, column);
            gpu_host_codes(t->b, f.negate_b, column);
            for (int i = 0; i < 2; i++) {
                uint32_t *const at = is_half ? &d[2 * j + i] : &d[4 * j + 2 * i + c];
                const int shift = is_half ? 16 * c : 0;
                const uint32_t mask = is_half ? 0xffff : 0xffffffff, old = *at >> shift & mask;
                const uint32_t sum = gpu_host_sum(t, lines[i], column, is_half, scale_d ? old : 0);
                *at = (*at & ~(mask << shift)) | sum << shift;
            }
        }
}

/* A sparse one, N = 16: a line of A has 32 bytes, of B 64; metadata of a warp are those of mma.sync (host_mma.h). */
inline uint32_t gpu_host_sparse_code(const gpu_dots &j, uint64_t descriptor, int line, int k)
{
    const int size = 32 / j.k;
    const size_t at = gpu_host_address(descriptor, 0, size, line, k);
    uint32_t code = 0;
    if (at + size_t(size) > gpu_host.dynamic_bytes)
        gpu_host_fail(cudaErrorLaunchFailure, "wgmma reads beside the shared memory");
    else
        memcpy(&code, gpu_host.shared + at, size_t(size));
    return j.a.bits == 19 ? code >> 13 : code;
}

inline void gpu_host_sparse_wgmma(const gpu_dots &j, uint64_t a, uint64_t b, uint32_t metadata, uint32_t d[8])
{
    const unsigned lane = gpu_host_lane(), warp = gpu_host.now->number / 32;
    const int is_half = j.sum.result.format.bits == 16;
    uint32_t all[32];
    gpu_host_lanes l = {};
    gpu_host_meet(32 * warp, 32, 0xffffffffu, &metadata, sizeof metadata, all, __FILE__, __LINE__);
    for (int i = 0; i < 32; i++)
        l.lane[i].metadata = all[i];
    for (int e = 0; e < 8; e++) { /* element e: column 8 (e / 4) + 2 (lane mod 4) + e mod 2 */
        const int row = int(lane / 4) + 8 * (e / 2 % 2), column = 8 * (e / 4) + int(2 * (lane % 4)) + e % 2;
        uint32_t x[GPU_DEPTH], y[GPU_DEPTH], *const at = is_half ? &d[e / 2] : &d[e];
        const int shift = is_half ? 16 * (e % 2) : 0;
        const uint32_t mask = is_half ? 0xffff : 0xffffffff;
        for (int k = 0; k < j.k; k++) {
            x[k] = gpu_host_sparse_code(j, a, int(16 * warp) + row, k);
            y[k] = gpu_host_sparse_code(j, b, column, gpu_host_depth(j, l, row, k));
        }
        const uint32_t sum = gpu_dot_reference(&j, x, y, *at >> shift & mask);
        *at = (*at & ~(mask << shift)) | sum << shift;
    }
}
