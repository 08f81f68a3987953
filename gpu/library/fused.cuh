/* fused.cuh -- fused additions (lib/dot/scalar.h) by fused multiply-adds of binary64 that round toward -infinity: one for each
 * product. The scheme is that of lib/dot/cut.h, `wide`.
 *
 * With units of 2^(E - F), the last bit that alignment keeps, a sum begins with 1.5 2^52 units: it is positive and has no smaller
 * bit, so adding a product takes the integer below. For a positive product that is its truncation. Values of b have their last bit
 * set: products become larger by less than their own last bit, so the integer below a negative product is its truncation - 1, always,
 * and the number of negative products is what is missing. It is the lower word of the first value: the bits of two words of signs.
 * The accumulator is one more term of this kind. Zeros are 2^-500, with exponents to match: their products are less than a unit
 * whatever E is, and count like others.
 *
 * Exponents of products are pairs of 16 bits: the maximum of a sum is one instruction for two products (DPX). They have binary64's
 * bias, so that E becomes the exponent field of 1.5 2^52 units by one multiply-add; so does that of the accumulator, read from its
 * field. Sums are rounded by clearing bits; below the normal numbers of the accumulator's format, and beyond them, by a branch.
 *
 * What bounds it: instructions, 3 to 12 a product, most of them for short sums (gpu/sassproducts.sh counts them). An H100 issues
 * 3.0 10^13 a second at 1.755 GHz, and half as many of binary64 or of integers. Devices with two units for binary64 a multiprocessor
 * (sm_86, sm_89, sm_120) are bound by these: 6 10^11 products a second. */
#pragma once

#include "fused.h"

namespace library
{

enum { FUSED_THREADS = 256, FUSED_SIDE = 4, FUSED_ZERO = 0x20b00000, FUSED_BIAS = 1023 };

template <int L>
struct fused_stage {
    enum { DEEP = L > 16 ? L : 16, GROUPS = DEEP / L };
};

/* ---- the workspace ---- */

/* Lines i and products k, in the order of additions. One thread for a line and a stage of DEEP products. */
struct fused_packing {
    int length, deep_of_stage, odd, is_b, least, quads, has_scales;
    int most;          /* lines with larger exponents are special */
    int block, filled; /* 0: no blocks with factors */
    int64_t deep, lines, padded, chunk;
};

/* Element k of a line that has not been read: where it comes from; -1: a zero that fills up. */
static __device__ __forceinline__ int64_t fused_from(const fused_packing &w, int64_t k, int64_t depth)
{
    if (w.quads) {
        const int64_t first = k / w.chunk * w.chunk;
        k = first +
            static_cast<int64_t>(mpsim_fused_quads(static_cast<size_t>(k - first), static_cast<size_t>(w.chunk)));
    }
    if (w.block)
        k = k % w.filled < w.block ? k / w.filled * w.block + k % w.filled : depth;
    return k < depth ? k : -1;
}

struct fused_element {
    uint32_t value;
    int exponent, special;
};

static __device__ __forceinline__ fused_element fused_element_of(const mpsim_format &f, const mpsim_term &t, int odd)
{
    fused_element e = {odd ? static_cast<uint32_t>(FUSED_ZERO) : 0u, -500, t.kind != MPSIM_NUMBER_FINITE};
    if (t.kind == MPSIM_NUMBER_FINITE && t.s != 0) {
        const int top = 63 - mpsim_clz64(t.s); /* value: s 2^(e - mbits) */
        e.value = static_cast<uint32_t>(t.e - f.mbits + top + FUSED_BIAS) << 20 |
                  (static_cast<uint32_t>(t.s << (63 - top) >> 43) & 0xfffff);
        e.exponent = t.e;
    }
    e.value |= t.sign ? 0x80000000u : 0;
    return e;
}

GPU_KERNEL void fused_pack_kernel(GPU_CONSTANT(product_operand) o, GPU_CONSTANT(product_shape) g, fused_packing w,
                                  const unsigned char *entered, fused_operand to, int *any)
{
    const int64_t stages = w.deep / w.deep_of_stage, n = g.matrices * stages * w.padded;
    const int bytes = o.multiplied.bits <= 8 ? 1 : o.multiplied.bits <= 16 ? 2 : 4;
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t i = e % w.padded, stage = e / w.padded % stages, matrix = e / w.padded / stages;
        const int64_t first = offset_of(g, o.at, matrix);
        const int64_t base = matrix * w.deep + stage * w.deep_of_stage;
        const scales_line scales = {
            w.has_scales ? &o.scales : nullptr,
            w.has_scales && i < w.lines
                ? o.factors + ((o.matrix ? first / o.matrix : 0) * o.grid_rows + i / o.block_rows) * o.grid_cols
                : nullptr};
        mpsim_term scale = {MPSIM_NUMBER_FINITE, 0, 0, 1};
        int64_t scaled_block = -1;
        uint32_t signs = 0;
        int low = 0, special = 0;
        for (int k = 0; k < w.deep_of_stage; k++) {
            const int64_t from = i < w.lines ? fused_from(w, stage * w.deep_of_stage + k, g.depth) : -1;
            mpsim_term t = {MPSIM_NUMBER_FINITE, 0, 0, 0};
            if (from >= 0) {
                const uint64_t code = entered ? load_code(entered, bytes, (matrix * w.lines + i) * g.depth + from)
                                              : load_code(o.codes, o.bytes, first + i * o.at.row + from * o.at.col);
                t = mpsim_scalar_term(&o.multiplied, w.least, code);
                if (w.has_scales && from / o.block_cols != scaled_block) {
                    scaled_block = from / o.block_cols;
                    scale = scale_at(scales, scaled_block);
                }
                t = scaled(t, scale);
            }
            const fused_element x = fused_element_of(o.multiplied, t, w.odd);
            special |= x.special | (x.exponent > w.most);
            to.values[(base + k) * w.padded + i] = x.value;
            const int biased = x.exponent + (w.is_b ? FUSED_BIAS : 0);
            if (k & 1)
                to.exponents[(base + k) / 2 * w.padded + i] = (static_cast<uint32_t>(low) & 0xffff) |
                                                              static_cast<uint32_t>(biased) << 16;
            low = biased;
            signs |= (w.odd ? x.value >> 31 : 0u) << (k % w.length);
            if (k % w.length == w.length - 1) {
                to.signs[(base + k) / w.length * w.padded + i] = signs;
                signs = 0;
            }
        }
        if (special) {
            to.special[matrix * w.padded + i] = 1;
            *any = 1;
        }
    }
}

/* Bytes and words that begin as zeros. */
GPU_KERNEL void fused_clear_kernel(unsigned char *a, int64_t n_a, unsigned char *b, int64_t n_b, int *any)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t i = first; i < n_a; i += step)
        a[i] = 0;
    for (int64_t i = first; i < n_b; i += step)
        b[i] = 0;
    if (first == 0)
        *any = 0;
}

/* ---- an addition ---- */

static __device__ __forceinline__ int high_of(double x)
{
    return __double2hiint(x);
}

static __device__ __forceinline__ double with_low_bit(double x, uint32_t bit)
{
    return __longlong_as_double(__double_as_longlong(x) | bit);
}

/* What the formats of accumulators differ in. */
template <fused_kind KIND>
struct fused_format {
    enum {
        DROPPED = KIND == FUSED_BINARY32 ? 29
                  : KIND == FUSED_E8M13  ? 39
                                         : 42,
        EMIN = KIND == FUSED_FP16 ? -14 : -126,
        EMAX = KIND == FUSED_FP16 ? 15 : 127,
        NEAREST = KIND == FUSED_FP16
    };
};

template <int DROPPED, int NEAREST>
static __device__ __forceinline__ double rounded_bits(double x)
{
    unsigned long long u = static_cast<unsigned long long>(__double_as_longlong(x));
    if (NEAREST)
        u += (1ull << (DROPPED - 1)) - 1 + (u >> DROPPED & 1);
    return __longlong_as_double(static_cast<long long>(u >> DROPPED << DROPPED));
}

/* The sum t where it may be no normal number of the format; s: the accumulator before. A zero is +0. */
template <fused_kind KIND>
static __device__ GPU_NOINLINE double fused_rare(double t, double s)
{
    typedef fused_format<KIND> F;
    const double size = __longlong_as_double(__double_as_longlong(t) & 0x7fffffffffffffffll);
    if (t != t) /* an infinity whose last bit was set */
        return s;
    double y = rounded_bits<F::DROPPED, F::NEAREST>(t);
    if ((high_of(size) >> 20) - FUSED_BIAS < F::EMIN) {
        /* 2^(52 + EMIN - mbits): its last bit is that of the smallest numbers */
        const double large = __hiloint2double((F::EMIN + F::DROPPED + FUSED_BIAS) << 20, 0);
        const double sum = F::NEAREST ? __dadd_rn(size, large) : __dadd_rd(size, large);
        y = __dadd_rn(sum, -large);
        y = high_of(t) < 0 ? -y : y;
    }
    if ((high_of(y) >> 20 & 0x7ff) - FUSED_BIAS > F::EMAX)
        return __hiloint2double((high_of(t) & INT32_MIN) | 0x7ff00000, 0);
    return y == 0 ? 0.0 : y;
}

static __device__ __forceinline__ int field_of(double x)
{
    return high_of(x) >> 20 & 0x7ff;
}

/* acc - its first value: the sum. */
static __device__ __forceinline__ double fused_sum(double acc)
{
    return __dadd_rn(acc, -__hiloint2double((high_of(acc) & 0x7ff00000) | 0x80000, 0));
}

/* Whether the exponent field of the higher word is outside least to most. */
static __device__ __forceinline__ int is_outside(int high, int least, int most)
{
    return static_cast<unsigned>(high) * 2u - (static_cast<unsigned>(least) << 21) >=
           static_cast<unsigned>(most - least + 1) << 21;
}

/* Whether t may be no normal number of the format. */
template <fused_kind KIND>
static __device__ __forceinline__ int is_rare(double t)
{
    typedef fused_format<KIND> F;
    const double y = F::NEAREST ? rounded_bits<F::DROPPED, F::NEAREST>(t) : t;
    return is_outside(high_of(y), F::EMIN + FUSED_BIAS, F::EMAX + FUSED_BIAS) ||
           (F::NEAREST && field_of(t) < F::EMIN + FUSED_BIAS);
}

/* The exponent of the next addition's accumulator, with bias; of a zero: 0, which is below every floor. */
template <fused_kind KIND>
static __device__ __forceinline__ int fused_exponent_of(double y)
{
    enum { LEAST = fused_format<KIND>::EMIN + FUSED_BIAS };
    const int field = field_of(y), most = field > LEAST ? field : int(LEAST);
    return field ? most : 0;
}

/* ---- a tile ---- */

template <int L>
struct fused_shared {
    enum { DEEP = fused_stage<L>::DEEP, GROUPS = fused_stage<L>::GROUPS };
    double values[2][DEEP][FUSED_LINES];
    uint32_t exponents[2][DEEP / 2][FUSED_LINES], signs[2][GROUPS][FUSED_LINES];
};

struct alignas(16) fused_four {
    uint32_t v[4];
};
struct alignas(16) fused_two {
    double v[2];
};

/* Four values of one operand to shared memory, as binary64. */
static __device__ __forceinline__ void fused_expand(double *to, const fused_four from, uint32_t low)
{
    GPU_UNROLL
    for (int h = 0; h < 2; h++) {
        fused_two two;
        GPU_UNROLL
        for (int i = 0; i < 2; i++)
            two.v[i] = __hiloint2double(static_cast<int>(from.v[2 * h + i]), static_cast<int>(low));
        reinterpret_cast<fused_two *>(to)[h] = two;
    }
}

/* A thread's part of a stage: four lines of a row, and of the row 16 further on. */
struct fused_part {
    int row, column;
    unsigned offset; /* of words */
};

static __device__ __forceinline__ fused_part fused_part_of(int64_t pitch)
{
    enum { PIECES = FUSED_LINES / 4 };
    const int row = static_cast<int>(threadIdx.x) / PIECES, column = static_cast<int>(threadIdx.x) % PIECES * 4;
    const fused_part p = {row, column, static_cast<unsigned>(row * pitch + column)};
    return p;
}

template <int ROWS>
static __device__ __forceinline__ void fused_copy(uint32_t (*to)[FUSED_LINES], const uint32_t *from,
                                                  const fused_part &p)
{
    if (p.row >= ROWS)
        return;
    const fused_four x = *reinterpret_cast<const fused_four *>(from + p.offset);
    *reinterpret_cast<fused_four *>(&to[p.row][p.column]) = x;
}

/* A stage of an operand from product k on, of the lines of this tile. */
template <int L>
static __device__ __forceinline__ void fused_load(fused_shared<L> *to, int which, const fused_operand &x, int64_t k,
                                                  int64_t pitch, int64_t line, const fused_part &p, uint32_t low)
{
    enum { DEEP = fused_stage<L>::DEEP, ROWS = FUSED_THREADS * 4 / FUSED_LINES };
    GPU_UNROLL
    for (int n = 0; n < DEEP; n += ROWS) {
        const uint32_t *from = x.values + (k + n) * pitch + line;
        const fused_four four = *reinterpret_cast<const fused_four *>(from + p.offset);
        fused_expand(&to->values[which][n + p.row][p.column], four, low);
    }
    fused_copy<DEEP / 2>(to->exponents[which], x.exponents + k / 2 * pitch + line, p);
    fused_copy<fused_stage<L>::GROUPS>(to->signs[which], x.signs + k / L * pitch + line, p);
}

/* A thread's columns are two pairs, so that threads side by side read places side by side. */
enum { FUSED_APART = FUSED_LINES / 2 };

struct alignas(8) fused_pair {
    uint32_t v[2];
};

static __device__ __forceinline__ fused_four fused_columns(const uint32_t *from, int column)
{
    const fused_pair x = *reinterpret_cast<const fused_pair *>(from + column);
    const fused_pair y = *reinterpret_cast<const fused_pair *>(from + column + FUSED_APART);
    const fused_four z = {{x.v[0], x.v[1], y.v[0], y.v[1]}};
    return z;
}

struct fused_steps {
    int floor;    /* with bias */
    int high;     /* of 1.5 2^52 units, beside the exponent field */
    uint32_t odd; /* or-ed to the accumulator */
    int kept, last,
        near; /* staged.cuh: of units below the largest exponent, and below the sum's own; how far s may be from it */
};

/* The sums of 4 x 4 results of a thread. */
struct fused_results {
    double s[FUSED_SIDE][FUSED_SIDE];
};

/* Exponents, in pairs, become no less than those of a group's products. */
template <int L>
static __device__ __forceinline__ void fused_raise(uint32_t (*e)[FUSED_SIDE], const fused_shared<L> &m, int group,
                                                   int row, int column)
{
    enum { PAIRS = L / 2 };
    GPU_UNROLL
    for (int k = 0; k < PAIRS; k++) {
        const fused_four a = *reinterpret_cast<const fused_four *>(&m.exponents[0][group * PAIRS + k][row]);
        const fused_four b = fused_columns(m.exponents[1][group * PAIRS + k], column);
        GPU_UNROLL
        for (int i = 0; i < FUSED_SIDE; i++)
            GPU_UNROLL
        for (int j = 0; j < FUSED_SIDE; j++)
            e[i][j] = __viaddmax_s16x2(a.v[i], b.v[j], e[i][j]);
    }
}

/* The first values of the sums: 1.5 2^52 units and the number of negative terms; then the accumulators. */
template <int L, fused_kind KIND>
static __device__ __forceinline__ void fused_begin(double (*acc)[FUSED_SIDE], const fused_results &r,
                                                   const fused_shared<L> &m, int group, int row, int column,
                                                   const fused_steps &w)
{
    uint32_t e[FUSED_SIDE][FUSED_SIDE];
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
        e[i / FUSED_SIDE][i % FUSED_SIDE] =
            static_cast<uint32_t>(fused_exponent_of<KIND>(r.s[i / FUSED_SIDE][i % FUSED_SIDE])) |
            static_cast<uint32_t>(w.floor) << 16;
    fused_raise<L>(e, m, group, row, column);
    const fused_four a = *reinterpret_cast<const fused_four *>(&m.signs[0][group][row]);
    const fused_four b = fused_columns(m.signs[1][group], column);
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        const uint32_t most = __vmaxs2(e[i][j], e[i][j] << 16 | e[i][j] >> 16); /* its upper half is shifted out */
        const uint32_t minus = static_cast<uint32_t>(high_of(r.s[i][j])) >> 31;
        const int negative = __popc(a.v[i] ^ b.v[j]) + static_cast<int>(minus & w.odd);
        acc[i][j] =
            __dadd_rd(__hiloint2double(static_cast<int>(most * 0x100000u + static_cast<uint32_t>(w.high)), negative),
                      with_low_bit(r.s[i][j], w.odd));
    }
}

template <fused_kind KIND>
static __device__ __forceinline__ void fused_rare_all(fused_results *r, const double (*t)[FUSED_SIDE])
{
    typedef fused_format<KIND> F;
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        const int is = is_rare<KIND>(t[i][j]);
        r->s[i][j] = is ? fused_rare<KIND>(t[i][j], r->s[i][j]) : rounded_bits<F::DROPPED, F::NEAREST>(t[i][j]);
    }
}

/* Sums, still beside their first values, become accumulators. */
template <fused_kind KIND>
static __device__ __forceinline__ void fused_round(fused_results *r, double (*acc)[FUSED_SIDE])
{
    typedef fused_format<KIND> F;
    int rare = 0;
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        acc[i][j] = fused_sum(acc[i][j]);
        rare |= is_rare<KIND>(acc[i][j]);
    }
    if (rare)
        fused_rare_all<KIND>(r, acc);
    else
        GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
        r->s[i / FUSED_SIDE][i % FUSED_SIDE] =
            rounded_bits<F::DROPPED, F::NEAREST>(acc[i / FUSED_SIDE][i % FUSED_SIDE]);
}

/* Values of both operands in product k of a stage. */
template <int L>
static __device__ __forceinline__ void fused_values(double *a, double *b, const fused_shared<L> &m, int k, int row,
                                                    int column)
{
    GPU_UNROLL
    for (int h = 0; h < 2; h++) {
        const fused_two x = *reinterpret_cast<const fused_two *>(&m.values[0][k][row + 2 * h]);
        const fused_two y = *reinterpret_cast<const fused_two *>(&m.values[1][k][column + FUSED_APART * h]);
        a[2 * h] = x.v[0], a[2 * h + 1] = x.v[1];
        b[2 * h] = y.v[0], b[2 * h + 1] = y.v[1];
    }
}

template <int L, fused_kind KIND>
static __device__ __forceinline__ void fused_addition(fused_results *r, const fused_shared<L> &m, int group, int row,
                                                      int column, const fused_steps &w)
{
    double acc[FUSED_SIDE][FUSED_SIDE];
    fused_begin<L, KIND>(acc, *r, m, group, row, column, w);
    GPU_UNROLL
    for (int k = 0; k < L; k++) {
        double a[FUSED_SIDE], b[FUSED_SIDE];
        fused_values<L>(a, b, m, group * L + k, row, column);
        GPU_UNROLL
        for (int i = 0; i < FUSED_SIDE; i++)
            GPU_UNROLL
        for (int j = 0; j < FUSED_SIDE; j++)
            acc[i][j] = __fma_rd(a[i], b[j], acc[i][j]);
    }
    fused_round<KIND>(r, acc);
}

/* ---- what kernels of tiles share ---- */

static __device__ __forceinline__ void fused_clear(fused_results *r)
{
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
        r->s[i / FUSED_SIDE][i % FUSED_SIDE] = 0;
}

static __device__ __forceinline__ fused_steps steps_of(const fused_product &f)
{
    const fused_steps w = {f.floor,
                           (52 - f.fraction) * 0x100000 + 0x80000,
                           static_cast<uint32_t>(f.odd),
                           (51 - f.kept) * 0x100000 + 0x80000,
                           (52 - f.kept) * 0x100000 + 0x80000,
                           f.near << 20};
    return w;
}

/* The tile of a block of threads and a thread's part of it. Tiles go in groups of eight rows, column by column: neighbours share
 * lines in the L2 cache. */
struct fused_place {
    int64_t matrix, row0, column0;
    int row, column;
};

static __device__ __forceinline__ fused_place fused_place_of(const fused_product &f)
{
    const int64_t tiles_m = f.rows / FUSED_LINES, tiles_n = f.columns / FUSED_LINES,
                  tile = blockIdx.x % (tiles_m * tiles_n);
    const int64_t group = tile / (8 * tiles_n), height = tiles_m - 8 * group < 8 ? tiles_m - 8 * group : 8;
    const fused_place x = {blockIdx.x / (tiles_m * tiles_n), (8 * group + tile % (8 * tiles_n) % height) * FUSED_LINES,
                           tile % (8 * tiles_n) / height * FUSED_LINES, static_cast<int>(threadIdx.x) / 16 * FUSED_SIDE,
                           static_cast<int>(threadIdx.x) % 16 * 2};
    return x;
}

/* Results to d, but those of special lines. Where the reference knows a NaN's bits, lines with one become special. */
static __device__ __forceinline__ void fused_store(const double (*s)[FUSED_SIDE], const fused_product &f,
                                                   const product_shape &g, const strided &to, const fused_places &at,
                                                   const fused_place &of, float *d, int again)
{
    d += offset_of(g, to, of.matrix);
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        const int64_t x = of.row0 + of.row + i, y = of.column0 + of.column + j / 2 * FUSED_APART + j % 2;
        if (x >= g.rows || y >= g.columns ||
            (at.a.special[of.matrix * f.rows + x] | at.b.special[of.matrix * f.columns + y]))
            continue;
        if (again && s[i][j] != s[i][j]) {
            at.a.special[of.matrix * f.rows + x] = 1;
            *at.any = 1;
        }
        d[x * to.row + y * to.col] = s[i][j] != s[i][j] ? f.not_a_number : static_cast<float>(s[i][j]);
    }
}

} // namespace library
