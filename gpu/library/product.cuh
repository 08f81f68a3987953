/* product.cuh -- what all kernels of products on a device share: arguments, where numbers lie, the way from a sum to its place in
 * d (mpsim/product.h). */
#pragma once

#include "walk.cuh"

#include <mpsim/product.h>

namespace library
{

enum { OUTER = MPSIM_STACK_RANK - 2 };

/* ---- arguments ---- */

/* A matrix of an array: its first code is number offset(i) of matrix i, then by row and col. */
struct strided {
    int64_t outer[OUTER], row, col;
};

struct product_operand {
    mpsim_format stored, multiplied;
    mpsim_rounding rounding; /* of what is read, if `enters` */
    int enters, bytes;
    const unsigned char *codes; /* NULL: none */
    strided at;
    const float *factors;                                         /* or NULL */
    int64_t block_rows, block_cols, grid_rows, grid_cols, matrix; /* matrix: codes of one */
    mpsim_format scales;
    const float *inverse;
    float own_inverse;
};

struct product_addend {
    mpsim_format format;
    const unsigned char *codes; /* NULL: none */
    int bytes;
    strided at;
};

/* Factors of blocks, as kernels of tiles take them. */
struct block_factors {
    const float *at;
    int64_t block_rows, grid_rows, grid_cols, matrix;
    strided lies;
};

struct product_shape {
    int rank;
    int64_t outer[OUTER], rows, columns, depth, matrices;
};

struct product_ending {
    product_addend bias, add;
    mpsim_format numbers, lies;
    unsigned char *d;
    strided at;
    int bytes;
    int wide, narrow, same; /* as in lib/dot/epilogue.h; same: numbers and lies */
    int direct;             /* sums are stored as they are, unless an operand has an inverse on the device */
    int lies_f32;           /* d is binary32 */
    int plain;              /* sums, numbers and d are binary32 */
    float factor, add_factor;
    unsigned long long *counts; /* those of mpsim_entered, or NULL */
};

struct product_arguments {
    mpsim_model model;
    product_shape shape;
    product_operand a, b;
    product_addend start;
    product_ending end;
    uint64_t seed, stream, index;
};

/* ---- what a model asks for, on the host ---- */

static inline int is_ieee(const mpsim_format &f, int ebits, int mbits)
{
    return f.ebits == ebits && f.mbits == mbits && f.inf && f.nan == MPSIM_NAN_TOP && f.zero == MPSIM_ZERO_SIGNED &&
           f.bias == (1 << (ebits - 1)) - 1 && f.max_finite == (((1ull << ebits) - 1) << mbits) - 1;
}

static inline int is_place(const mpsim_rounded &p, int mode, int ebits, int mbits)
{
    return is_ieee(p.format, ebits, mbits) && p.rounding.mode == mode && p.rounding.overflow == 0 &&
           p.rounding.infinity == 0 && !p.rounding.flush_output;
}

static __host__ __device__ __forceinline__ int64_t offset_of(const product_shape &p, const strided &s, int64_t matrix)
{
    int64_t at = 0;
    for (int k = p.rank; k-- > 0; matrix /= p.outer[k])
        at += matrix % p.outer[k] * s.outer[k];
    return at;
}

/* ---- factors of blocks ---- */

static inline block_factors block_factors_of(const product_operand &o)
{
    const block_factors x = {o.factors, o.block_rows, o.grid_rows, o.grid_cols, o.matrix, o.at};
    return x;
}

/* Where those of a line begin; first: the code number at which the matrix begins. */
static __device__ __forceinline__ int factor_line(const block_factors &x, int64_t first, int64_t line, int64_t lines)
{
    const int64_t last = line < lines ? line : lines - 1, matrix = x.matrix ? first / x.matrix : 0;
    return static_cast<int>((matrix * x.grid_rows + last / x.block_rows) * x.grid_cols);
}

/* All of these places are numbers of 31 bits. */
static inline int has_small_grids(const product_arguments &p)
{
    const int64_t most = 0x7fffffff / (p.shape.matrices ? p.shape.matrices : 1);
    return p.b.block_cols == p.a.block_cols && p.a.grid_rows * p.a.grid_cols <= most &&
           p.b.grid_rows * p.b.grid_cols <= most;
}

/* ---- numbers that enter ---- */

static __device__ __forceinline__ mpsim_number number_at(const mpsim_format &f, const unsigned char *codes, int bytes,
                                                         int64_t i)
{
    return mpsim_scalar_unpack(&f, load_code(codes, bytes, i));
}

/* The code that is multiplied. */
static __device__ __forceinline__ uint64_t entered_code(const product_operand &o, int64_t i)
{
    const uint64_t code = load_code(o.codes, o.bytes, i);
    unsigned flags;
    return o.enters ? mpsim_scalar_encode(&o.multiplied, &o.rounding, o.rounding.mode,
                                          mpsim_scalar_unpack(&o.stored, code), 0, &flags)
                    : code;
}

/* ---- operations in binary32 and binary64 whose NaNs are x86's: the first operand's, made quiet; or the negative NaN ---- */

static __device__ __forceinline__ float quiet(float x)
{
    return __uint_as_float(__float_as_uint(x) | 0x00400000u);
}
static __device__ __forceinline__ double quiet(double x)
{
    return __longlong_as_double(__double_as_longlong(x) | 0x0008000000000000ll);
}
static __device__ __forceinline__ float no_number(float)
{
    return __uint_as_float(0xffc00000u);
}
static __device__ __forceinline__ double no_number(double)
{
    return __longlong_as_double(static_cast<long long>(0xfff8000000000000ull));
}

template <class T>
static __device__ __forceinline__ T settled(T result, T x, T y)
{
    if (result == result)
        return result;
    return x != x ? quiet(x) : y != y ? quiet(y) : no_number(result);
}

static __device__ __forceinline__ float times(float x, float y)
{
    return settled(__fmul_rn(x, y), x, y);
}
static __device__ __forceinline__ double times(double x, double y)
{
    return settled(__dmul_rn(x, y), x, y);
}
static __device__ __forceinline__ float plus(float x, float y)
{
    return settled(__fadd_rn(x, y), x, y);
}
static __device__ __forceinline__ double plus(double x, double y)
{
    return settled(__dadd_rn(x, y), x, y);
}
static __device__ __forceinline__ float with_fma(float x, float y, float z)
{
    const float s = __fmaf_rn(x, y, z);
    return s == s ? s : settled(s, x != x ? x : y, z);
}

/* ---- the end of a sum ---- */

struct end_counts {
    unsigned n[4]; /* nonzero, lost, overflow, nonfinite */
};

static __device__ __forceinline__ mpsim_number as_number(float x)
{
    return mpsim_number_f32(x);
}
static __device__ __forceinline__ mpsim_number as_number(double x)
{
    return mpsim_number_f64(x);
}
static __device__ __forceinline__ void number_to(mpsim_number x, float *y)
{
    *y = mpsim_number_to_f32(x);
}
static __device__ __forceinline__ void number_to(mpsim_number x, double *y)
{
    *y = mpsim_number_to_f64(x);
}

static __device__ __forceinline__ uint64_t nearest(const mpsim_format &f, mpsim_number x, unsigned *flags)
{
    mpsim_rounding r;
    memset(&r, 0, sizeof r); /* to nearest even, the default choices */
    r.scale = 1;
    return mpsim_scalar_encode(&f, &r, MPSIM_ROUND_NEAREST_EVEN, x, 0, flags);
}

/* Bits of a binary32 number, whose NaNs keep their payloads. */
static __device__ __forceinline__ uint64_t own_bits(float x)
{
    return __float_as_uint(x);
}
static __device__ __forceinline__ uint64_t own_bits(double)
{
    return 0;
}

template <class T>
static __device__ __forceinline__ int is_finite(T x)
{
    return x - x == 0;
}

/* s rounded to `numbers`, counted, as a code of d. `exact`: all numbers of T are. */
template <class T>
static __device__ __forceinline__ uint64_t end_code(const product_ending &e, T s, int is_exact, end_counts *c)
{
    unsigned flags = 0;
    const int nonzero = is_finite(s) && s != 0;
    T y = s;
    if ((e.counts || !e.same) && !is_exact)
        number_to(mpsim_scalar_unpack(&e.numbers, nearest(e.numbers, as_number(s), &flags)), &y);
    c->n[0] += static_cast<unsigned>(nonzero);
    c->n[1] += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
    c->n[2] += (flags & MPSIM_FLAG_OVERFLOW) != 0;
    c->n[3] += !is_finite(y);
    return sizeof(T) == 4 && e.lies_f32 ? own_bits(y) : nearest(e.lies, as_number(y), &flags);
}

static __device__ __forceinline__ void put(const product_ending &e, int64_t at, uint64_t code)
{
    store_code(e.d, e.bytes, at, code);
}

/* The value of element (i, j) of an addend. */
template <class T>
static __device__ __forceinline__ T addend_at(const product_addend &x, int64_t first, int64_t i, int64_t j)
{
    T y;
    const int64_t at = first + i * x.at.row + j * x.at.col;
    if (sizeof(T) == 4 && x.bytes == 4 && x.format.mbits == 23 && x.format.ebits == 8 && x.format.inf)
        return static_cast<T>(__uint_as_float(reinterpret_cast<const uint32_t *>(x.codes)[at]));
    number_to(number_at(x.format, x.codes, x.bytes, at), &y);
    return y;
}

/* Where a matrix's parts begin. */
struct matrix_places {
    int64_t a, b, start, bias, add, d;
};

static __device__ __forceinline__ matrix_places places_of(const product_arguments &p, int64_t matrix)
{
    matrix_places x;
    x.a = offset_of(p.shape, p.a.at, matrix);
    x.b = offset_of(p.shape, p.b.at, matrix);
    x.start = offset_of(p.shape, p.start.at, matrix);
    x.bias = offset_of(p.shape, p.end.bias.at, matrix);
    x.add = offset_of(p.shape, p.end.add.at, matrix);
    x.d = offset_of(p.shape, p.end.at, matrix);
    return x;
}

/* What sums are multiplied by, and whether. */
struct end_scales {
    float inverse;
    int scales;
};

static __device__ __forceinline__ end_scales scales_of(const product_arguments &p)
{
    const float a = p.a.inverse ? *p.a.inverse : p.a.own_inverse, b = p.b.inverse ? *p.b.inverse : p.b.own_inverse;
    const end_scales x = {__fmul_rn(a, b), a != 1 || b != 1};
    return x;
}

template <class T>
static __device__ __forceinline__ T end_sum(const product_arguments &p, const matrix_places &x, const end_scales &v,
                                            int64_t i, int64_t j, T s)
{
    const product_ending &e = p.end;
    if (v.scales)
        s = times(s, static_cast<T>(v.inverse));
    if (e.factor != 1)
        s = times(s, static_cast<T>(e.factor));
    if (e.bias.codes)
        s = plus(s, addend_at<T>(e.bias, x.bias, i, j));
    if (e.add.codes) {
        const T y = addend_at<T>(e.add, x.add, i, j);
        s = plus(s, e.add_factor != 1 ? times(y, static_cast<T>(e.add_factor)) : y);
    }
    return s;
}

/* A binary32 sum of element (i, j), or any code of the model's results. */
static __device__ __forceinline__ void finish_f32(const product_arguments &p, const matrix_places &x,
                                                  const end_scales &v, int64_t i, int64_t j, float s, end_counts *c)
{
    const product_ending &e = p.end;
    const int64_t at = x.d + i * e.at.row + j * e.at.col;
    s = end_sum(p, x, v, i, j, s);
    if (e.plain) {
        c->n[0] += is_finite(s) && s != 0;
        c->n[3] += !is_finite(s);
        reinterpret_cast<float *>(e.d)[at] = s;
    } else if (e.narrow) {
        put(e, at, end_code(e, s, e.numbers.bits == 32 && e.numbers.mbits == 23, c));
    } else {
        put(e, at, end_code(e, static_cast<double>(s), 0, c));
    }
}

static __device__ __forceinline__ void finish_code(const product_arguments &p, const matrix_places &x,
                                                   const end_scales &v, int64_t i, int64_t j, uint64_t code,
                                                   end_counts *c)
{
    const product_ending &e = p.end;
    if (e.direct && !v.scales) {
        put(e, x.d + i * e.at.row + j * e.at.col, code);
    } else if (e.wide) {
        double s;
        number_to(mpsim_scalar_unpack(&p.model.result.format, code), &s);
        put(e, x.d + i * e.at.row + j * e.at.col, end_code(e, end_sum(p, x, v, i, j, s), 0, c));
    } else {
        const mpsim_format &f = p.model.result.format;
        float s = __uint_as_float(static_cast<uint32_t>(code));
        if (!(f.bits == 32 && f.ebits == 8 && f.mbits == 23 && f.inf))
            number_to(mpsim_scalar_unpack(&f, code), &s);
        finish_f32(p, x, v, i, j, s, c);
    }
}

/* Every thread of a warp gives what it has counted. */
static __device__ __forceinline__ void give_counts(const product_ending &e, const end_counts &c)
{
    if (!e.counts)
        return;
    for (int k = 0; k < 4; k++) {
        const unsigned sum = __reduce_add_sync(0xffffffffu, c.n[k]);
        if (sum && threadIdx.x % 32 == 0)
            atomicAdd(e.counts + k, static_cast<unsigned long long>(sum));
    }
}

/* ---- one thread an element, by the reference ---- */

enum { WALK_THREADS = 128 };

static __device__ __forceinline__ walk walk_of(const product_arguments &p, const codes_line &a, const codes_line &b,
                                               int64_t matrix, int64_t i, int64_t j)
{
    const uint64_t place = static_cast<uint64_t>((matrix * p.shape.rows + i) * p.shape.columns + j);
    walk w = {&p.model, a, b, {nullptr, nullptr}, {nullptr, nullptr}, p.seed, p.stream, p.index + (place << 32)};
    return w;
}

/* Factors of the block of line i; matrix: the code number at which the matrix begins. */
static __device__ __forceinline__ const float *factors_of(const product_operand &o, int64_t first, int64_t line)
{
    const int64_t matrix = o.matrix ? first / o.matrix : 0;
    return o.factors + (matrix * o.grid_rows + line / o.block_rows) * o.grid_cols;
}

/* fma(both factors, the sum of a block, the sum so far), from +0. */
template <walk_kind KIND>
static __device__ float promoted(const product_arguments &p, walk &w, const float *fa, const float *fb)
{
    float s = 0;
    for (int64_t k = 0, q = 0; k < p.shape.depth; k += p.a.block_cols, q++) {
        const int64_t left = p.shape.depth - k;
        const uint64_t code = walk_dot<KIND>(w, k, left < p.a.block_cols ? left : p.a.block_cols, plus_zero());
        s = with_fma(times(fa[q], fb[q]), __uint_as_float(static_cast<uint32_t>(code)), s);
    }
    return s;
}

template <walk_kind KIND>
static __device__ void walk_element(const product_arguments &p, const codes_line &a, const codes_line &b,
                                    const matrix_places &x, const end_scales &v, int64_t matrix, int64_t i, int64_t j,
                                    end_counts *c)
{
    walk w = walk_of(p, a, b, matrix, i, j);
    const int has_scales = p.a.factors && p.model.block;
    if (p.a.factors && !has_scales) {
        finish_f32(p, x, v, i, j, promoted<KIND>(p, w, factors_of(p.a, x.a, i), factors_of(p.b, x.b, j)), c);
        return;
    }
    if (has_scales) {
        w.scales_a.format = &p.a.scales;
        w.scales_a.at = factors_of(p.a, x.a, i);
        w.scales_b.format = &p.b.scales;
        w.scales_b.at = factors_of(p.b, x.b, j);
    }
    const mpsim_number start = p.start.codes ? number_at(p.start.format, p.start.codes, p.start.bytes,
                                                         x.start + i * p.start.at.row + j * p.start.at.col)
                                             : plus_zero();
    finish_code(p, x, v, i, j, walk_dot<KIND>(w, 0, p.shape.depth, start), c);
}

/* Line i of an operand: where it lies, or as codes that have entered, line after line, matrix after matrix. */
static __device__ __forceinline__ codes_line line_of(const product_operand &o, const unsigned char *entered,
                                                     int64_t lines, int64_t depth, int64_t matrix, int64_t first,
                                                     int64_t i)
{
    const codes_line lies = {&o.multiplied, o.codes, o.bytes, first + i * o.at.row, o.at.col};
    const int bytes = o.multiplied.bits <= 8 ? 1 : o.multiplied.bits <= 16 ? 2 : o.multiplied.bits <= 32 ? 4 : 8;
    const codes_line copy = {&o.multiplied, entered, bytes, (matrix * lines + i) * depth, 1};
    return entered ? copy : lies;
}

/* Codes that have entered, in the order of the matrices of d. */
GPU_KERNEL void enter_kernel(GPU_CONSTANT(product_operand) o, GPU_CONSTANT(product_shape) p, int64_t lines,
                             unsigned char *to)
{
    const int bytes = o.multiplied.bits <= 8 ? 1 : o.multiplied.bits <= 16 ? 2 : o.multiplied.bits <= 32 ? 4 : 8;
    const int64_t n = p.matrices * lines * p.depth;
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t k = e % p.depth, i = e / p.depth % lines, matrix = e / p.depth / lines;
        store_code(to, bytes, e, entered_code(o, offset_of(p, o.at, matrix) + i * o.at.row + k * o.at.col));
    }
}

/* What another kernel has left alone: results whose byte of `left` is 1, or, if there is something (any), lines with a NaN or an
 * infinity. Both NULL: all results are wanted. */
struct walk_filter {
    const unsigned char *left;
    const int *any;
    const unsigned char *a, *b;
    int64_t rows, columns; /* from matrix to matrix */
};

template <walk_kind KIND>
GPU_KERNEL void __launch_bounds__(WALK_THREADS)
    walk_kernel(GPU_CONSTANT(product_arguments) p, const unsigned char *entered_a, const unsigned char *entered_b,
                walk_filter only)
{
    if (only.any && !*only.any)
        return;
    const product_shape &g = p.shape;
    const int64_t each = g.rows * g.columns, n = each * g.matrices;
    const end_scales v = scales_of(p);
    end_counts c = {{0, 0, 0, 0}};
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * WALK_THREADS + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * WALK_THREADS) {
        if (only.left && !only.left[e])
            continue;
        const int64_t matrix = e / each, i = e % each / g.columns, j = e % g.columns;
        if (only.any && !(only.a[matrix * only.rows + i] | only.b[matrix * only.columns + j]))
            continue;
        const matrix_places x = places_of(p, matrix);
        walk_element<KIND>(p, line_of(p.a, entered_a, g.rows, g.depth, matrix, x.a, i),
                           line_of(p.b, entered_b, g.columns, g.depth, matrix, x.b, j), x, v, matrix, i, j, &c);
    }
    give_counts(p.end, c);
}

} // namespace library
