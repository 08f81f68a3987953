/* grouped.cuh -- additions of groups with scales (lib/dot/grouped.h; NVIDIA's block-scaled fp4): 64 x 64 results a block of
 * threads, 4 x 4 a thread.
 *
 * Elements are bytes, in units of their smallest number. Four instructions (DP4A) add the products of a group: P. A term P S 2^e is
 * P times the scale of a, exact in binary64, times that of b, added by a multiply-add as in fused.cuh: the sum begins with
 * 1.5 2^52 units, the last bit of b's scale is set, and the number of negative terms is what is missing. The exponent e counts
 * if a product of the group is not zero: a word of each line has e in the place of binary64's exponent and a bit for each element
 * that is not zero.
 *
 * What bounds it: instructions (gpu/sassproducts.sh): about 1.2 a product. */
#pragma once

#include "fused.cuh"

namespace library
{

enum {
    GROUPED_LENGTH = 64,
    GROUPED_GROUP = 16,
    GROUPED_WORDS = GROUPED_GROUP / 4,
    GROUPED_GROUPS = GROUPED_LENGTH / GROUPED_GROUP,
    GROUPED_ABOVE = 20 /* |P| is below 2^20 */
};

/* ---- the workspace: an operand's bytes (values), exponents and bits (exponents), scales as higher words of binary64 (signs) ---- */

static __device__ __forceinline__ uint32_t grouped_scale(const product_operand &o, const mpsim_term &scale, int bits)
{
    if (scale.s == 0)
        return 0;
    const int top = 63 - mpsim_clz64(scale.s);
    const int e = scale.e - bits + top + mpsim_emin(&o.multiplied) - o.multiplied.mbits + FUSED_BIAS;
    return static_cast<uint32_t>(e) << 20 | (static_cast<uint32_t>(scale.s << (63 - top) >> 43) & 0xfffff);
}

/* One thread for a line and a group. */
GPU_KERNEL void grouped_pack_kernel(GPU_CONSTANT(product_operand) o, GPU_CONSTANT(product_shape) g, fused_packing w,
                                    const unsigned char *entered, fused_operand to, int *any)
{
    const int64_t groups = w.deep / GROUPED_GROUP, n = g.matrices * groups * w.padded;
    const int bytes = 1, is_scaled = w.has_scales;
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t i = e % w.padded, q = e / w.padded % groups, matrix = e / w.padded / groups;
        const int64_t first = offset_of(g, o.at, matrix), k0 = q * GROUPED_GROUP;
        mpsim_term scale = {MPSIM_NUMBER_FINITE, 0, 0, 1};
        if (is_scaled && i < w.lines && k0 < g.depth) {
            const scales_line scales = {
                &o.scales,
                o.factors + ((o.matrix ? first / o.matrix : 0) * o.grid_rows + i / o.block_rows) * o.grid_cols};
            scale = scale_at(scales, k0 / o.block_cols);
        }
        int special = scale.kind != MPSIM_NUMBER_FINITE;
        uint32_t bits = 0;
        for (int j = 0; j < GROUPED_WORDS; j++) {
            uint32_t word = 0;
            for (int k = 4 * j; k < 4 * j + 4; k++) {
                if (i >= w.lines || k0 + k >= g.depth)
                    continue;
                const uint64_t code = entered ? load_code(entered, bytes, (matrix * w.lines + i) * g.depth + k0 + k)
                                              : load_code(o.codes, o.bytes, first + i * o.at.row + (k0 + k) * o.at.col);
                const mpsim_term t = mpsim_scalar_term(&o.multiplied, MPSIM_MODEL_OWN_EMIN, code);
                const int64_t x = scale.s ? mpsim_grouped_integer(t, mpsim_emin(&o.multiplied)) : 0;
                special |= t.kind != MPSIM_NUMBER_FINITE;
                word |= (static_cast<uint32_t>(x) & 0xff) << (8 * (k % 4));
                bits |= (x != 0 ? 1u : 0u) << k;
            }
            to.values[((matrix * groups + q) * GROUPED_WORDS + j) * w.padded + i] = word;
        }
        const int64_t at = (matrix * groups + q) * w.padded + i;
        to.exponents[at] = static_cast<uint32_t>(scale.e + (w.is_b ? FUSED_BIAS : 0)) << 20 | bits;
        to.signs[at] = grouped_scale(o, scale, is_scaled ? o.scales.mbits : 0);
        if (special && i < w.lines) {
            to.special[matrix * w.padded + i] = 1;
            *any = 1;
        }
    }
}

/* ---- a tile ---- */

struct grouped_shared {
    uint32_t words[2][GROUPED_GROUPS * GROUPED_WORDS][FUSED_LINES], exponents[2][GROUPED_GROUPS][FUSED_LINES];
    double scales[2][GROUPED_GROUPS][FUSED_LINES],
        offsets[GROUPED_GROUPS][FUSED_LINES]; /* of a: scale times 2^52 + 2^20 */
};

/* An addition's products of one operand. */
static __device__ __forceinline__ void grouped_load(grouped_shared *to, int which, const fused_operand &x,
                                                    int64_t group, int64_t pitch, int64_t line, const fused_part &p)
{
    fused_copy<GROUPED_GROUPS * GROUPED_WORDS>(to->words[which], x.values + group * GROUPED_WORDS * pitch + line, p);
    fused_copy<GROUPED_GROUPS>(to->exponents[which], x.exponents + group * pitch + line, p);
    if (p.row >= GROUPED_GROUPS)
        return;
    const fused_four four = *reinterpret_cast<const fused_four *>(x.signs + group * pitch + line + p.offset);
    GPU_UNROLL
    for (int i = 0; i < 4; i++) {
        const double scale = __hiloint2double(static_cast<int>(four.v[i]), which);
        to->scales[which][p.row][p.column + i] = scale;
        if (which == 0)
            to->offsets[p.row][p.column + i] = -scale * (0x1p52 + (1 << GROUPED_ABOVE));
    }
}

typedef int grouped_sums[GROUPED_GROUPS][FUSED_SIDE][FUSED_SIDE];

/* The sums of the products of each group, + 2^20. */
static __device__ __forceinline__ void grouped_products(grouped_sums &p, const grouped_shared &m, int row, int column)
{
    GPU_UNROLL
    for (int g = 0; g < GROUPED_GROUPS; g++) {
        GPU_UNROLL
        for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
            p[g][i / FUSED_SIDE][i % FUSED_SIDE] = 1 << GROUPED_ABOVE;
        GPU_UNROLL
        for (int k = 0; k < GROUPED_WORDS; k++) {
            const fused_four a = *reinterpret_cast<const fused_four *>(&m.words[0][g * GROUPED_WORDS + k][row]);
            const fused_four b = fused_columns(m.words[1][g * GROUPED_WORDS + k], column);
            GPU_UNROLL
            for (int i = 0; i < FUSED_SIDE; i++)
                GPU_UNROLL
            for (int j = 0; j < FUSED_SIDE; j++)
                p[g][i][j] = __dp4a(static_cast<int>(a.v[i]), static_cast<int>(b.v[j]), p[g][i][j]);
        }
    }
}

/* The first values of the sums: 1.5 2^52 units and the number of negative terms; then the accumulators. */
static __device__ __forceinline__ void grouped_begin(double (*acc)[FUSED_SIDE], const grouped_sums &p,
                                                     const fused_results &r, const grouped_shared &m, int row,
                                                     int column, const fused_steps &w)
{
    uint32_t e[FUSED_SIDE][FUSED_SIDE];
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++) {
        const uint32_t s =
            static_cast<uint32_t>(fused_exponent_of<FUSED_BINARY32>(r.s[i / FUSED_SIDE][i % FUSED_SIDE]));
        const uint32_t floor = static_cast<uint32_t>(w.floor);
        e[i / FUSED_SIDE][i % FUSED_SIDE] = (s > floor ? s : floor) << 20;
    }
    GPU_UNROLL
    for (int g = 0; g < GROUPED_GROUPS; g++) {
        const fused_four a = *reinterpret_cast<const fused_four *>(&m.exponents[0][g][row]);
        const fused_four b = fused_columns(m.exponents[1][g], column);
        GPU_UNROLL
        for (int i = 0; i < FUSED_SIDE; i++)
            GPU_UNROLL
        for (int j = 0; j < FUSED_SIDE; j++) {
            const uint32_t sum = a.v[i] + b.v[j];
            if (a.v[i] & b.v[j] & 0xffffu)
                e[i][j] = sum > e[i][j] ? sum : e[i][j];
        }
    }
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        int negative = GROUPED_GROUPS + static_cast<int>(static_cast<uint32_t>(high_of(r.s[i][j])) >> 31);
        GPU_UNROLL
        for (int g = 0; g < GROUPED_GROUPS; g++)
            negative -= p[g][i][j] >> GROUPED_ABOVE;
        const uint32_t high = (e[i][j] & 0xfff00000u) + static_cast<uint32_t>(w.high);
        acc[i][j] = __dadd_rd(__hiloint2double(static_cast<int>(high), negative), with_low_bit(r.s[i][j], 1));
    }
}

/* P, as binary64, times the scales. */
static __device__ __forceinline__ void grouped_terms(double (*acc)[FUSED_SIDE], const grouped_sums &p,
                                                     const grouped_shared &m, int row, int column)
{
    GPU_UNROLL
    for (int g = 0; g < GROUPED_GROUPS; g++) {
        double a[FUSED_SIDE], b[FUSED_SIDE], offset[FUSED_SIDE];
        GPU_UNROLL
        for (int h = 0; h < 2; h++) {
            const fused_two x = *reinterpret_cast<const fused_two *>(&m.scales[0][g][row + 2 * h]);
            const fused_two y = *reinterpret_cast<const fused_two *>(&m.scales[1][g][column + FUSED_APART * h]);
            const fused_two z = *reinterpret_cast<const fused_two *>(&m.offsets[g][row + 2 * h]);
            a[2 * h] = x.v[0], a[2 * h + 1] = x.v[1];
            b[2 * h] = y.v[0], b[2 * h + 1] = y.v[1];
            offset[2 * h] = z.v[0], offset[2 * h + 1] = z.v[1];
        }
        GPU_UNROLL
        for (int i = 0; i < FUSED_SIDE; i++)
            GPU_UNROLL
        for (int j = 0; j < FUSED_SIDE; j++)
            acc[i][j] = __fma_rd(__fma_rn(__hiloint2double(0x43300000, p[g][i][j]), a[i], offset[i]), b[j], acc[i][j]);
    }
}

GPU_KERNEL void __launch_bounds__(FUSED_THREADS, 1)
    grouped_kernel(GPU_CONSTANT(fused_product) f, GPU_CONSTANT(product_shape) g, GPU_CONSTANT(strided) to,
                   GPU_CONSTANT(fused_places) at, float *d)
{
    GPU_SHARED(grouped_shared, m, [1]);
    const fused_place x = fused_place_of(f);
    const fused_steps w = steps_of(f);
    const fused_part part_a = fused_part_of(f.rows), part_b = fused_part_of(f.columns);
    fused_results r;
    fused_clear(&r);
    GPU_ROLLED
    for (int64_t k = 0; k < f.deep; k += GROUPED_LENGTH) {
        double acc[FUSED_SIDE][FUSED_SIDE];
        grouped_sums p;
        grouped_load(m, 0, at.a, (x.matrix * f.deep + k) / GROUPED_GROUP, f.rows, x.row0, part_a);
        grouped_load(m, 1, at.b, (x.matrix * f.deep + k) / GROUPED_GROUP, f.columns, x.column0, part_b);
        __syncthreads();
        grouped_products(p, *m, x.row, x.column);
        grouped_begin(acc, p, r, *m, x.row, x.column, w);
        grouped_terms(acc, p, *m, x.row, x.column);
        fused_round<FUSED_BINARY32>(&r, acc);
        __syncthreads();
    }
    fused_store(r.s, f, g, to, at, x, d, 0);
}

} // namespace library
