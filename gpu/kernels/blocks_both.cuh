/* blocks_both.cuh -- blocks of 32 whose scales are powers of two (MXFP8), in the rows of x and in the rows of its transpose, by one
 * reading of x.
 *
 * A warp has 32 rows of 8 groups of 16 bytes, so that whole blocks of both directions are its own. A lane has 8 rows of one group: the 8
 * numbers of each of its columns are 16 bytes of a row of the transpose, turned in registers, and 8 bytes of codes. */
#pragma once

#include "blocks.cuh"

/* x in its rows (row.x NULL: not), and transposed: column.x is x as it lies, the extents and results are those of the transpose. */
struct gpu_both {
    gpu_blocked row, column;
};

typedef gpu_list<gpu_both, 8> gpu_both_list;
static_assert(sizeof(gpu_both_list) + sizeof(gpu_recipe) <= GPU_LIST_PARAMETERS, "too many");

/* DOWN x ACROSS warps of a block of threads lie side by side. */
template <int IN>
struct gpu_both_tile {
    enum { E = gpu_group<IN>::E, R = 8, ROWS = 32, COLS = 8 * E, LANES = 32 / E, DOWN = 4, ACROSS = 2 };

    /* Rows half * E to half * E + E - 1 of column k of a lane's groups. */
    static __device__ __forceinline__ gpu_group<IN> turned(const gpu_group<IN> g[R], int k, int half)
    {
        gpu_group<IN> t;
        GPU_UNROLL
        for (int r = 0; r < 4; r++)
            t.u[r] = IN == GPU_INPUT_F32
                         ? g[(4 * half + r) & 7].u[k & 3]
                         : __byte_perm(g[2 * r].u[k / 2 & 3], g[2 * r + 1].u[k / 2 & 3], k & 1 ? 0x7632 : 0x5410);
        return t;
    }

    /* The amax of each column of the warp, or NaN. */
    static __device__ __forceinline__ void columns(const gpu_group<IN> g[R], float m[E])
    {
        GPU_UNROLL
        for (int w = 0; w < 4; w++) {
            if constexpr (IN == GPU_INPUT_F32) {
                m[w] = fabsf(__uint_as_float(g[0].u[w]));
                GPU_UNROLL
                for (int j = 1; j < R; j++)
                    m[w] = gpu_larger_or_nan(m[w], __uint_as_float(g[j].u[w]));
                GPU_UNROLL
                for (int h = 8; h < 32; h *= 2)
                    m[w] = gpu_larger_or_nan(m[w], __shfl_xor_sync(0xffffffffu, m[w], h));
            } else {
                uint32_t both = g[0].u[w];
                GPU_UNROLL
                for (int j = 1; j < R; j++)
                    both = gpu_extreme_pair<IN, GPU_LARGER>(both, g[j].u[w]);
                GPU_UNROLL
                for (int h = 8; h < 32; h *= 2)
                    both = gpu_extreme_pair<IN, GPU_LARGER>(both, __shfl_xor_sync(0xffffffffu, both, h));
                m[2 * w] = fabsf(gpu_code_value<IN>(both & 0xffffu));
                m[2 * w + 1] = fabsf(gpu_code_value<IN>(both >> 16));
            }
        }
    }
};

/* What a rare block counts, and its largest magnitude. */
struct gpu_both_counted {
    gpu_counter c;
    unsigned most;
};

/* A rare block by the reference: its numbers are `step` apart from `from` on, its results lie from `to` on. */
template <int IN, int ELEMENT>
static __device__ GPU_NOINLINE gpu_both_counted gpu_both_rare(const gpu_recipe &q, const gpu_blocked &b, size_t from,
                                                              size_t step, size_t to)
{
    gpu_both_counted n;
    unsigned all = 0, number = 0;
    n.most = 0;
    for (size_t k = 0; k < 32; k++) {
        const float v = gpu_number_at<IN>(b.x, from + k * step);
        const unsigned bits = gpu_number_bits<IN>(v, 1), dropped = gpu_number_bits<IN>(v, 0);
        all = bits > all ? bits : all;
        number = dropped > number ? dropped : number;
    }
    if (!gpu_power_scale<ELEMENT>(q.power, __uint_as_float(all)).odd)
        return n;
    const unsigned as_ruled = q.keeps_nan ? all : number;
    n.most = number;
    const mpsim_block_scale scale = gpu_rule_apart(q.env, __uint_as_float(as_ruled));
    for (size_t k = 0; k < 32; k++)
        gpu_recipe_element(q, b.to, b.rng, to + k, gpu_number_at<IN>(b.x, from + k * step), scale.factor, scale.inverse,
                           &n.c);
    gpu_store_scale(q, b.to, to / 32, as_ruled, scale);
    return n;
}

template <int IN, int ELEMENT, int VALUES>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS, 2)
    both_blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_both_list) list)
{
    typedef gpu_both_tile<IN> tile;
    typedef gpu_line<IN, ELEMENT, VALUES, 32, GPU_LINE_POWER> line;
    enum { E = tile::E, R = tile::R, J = line::J, LANES = tile::LANES, DOWN = tile::DOWN, ACROSS = tile::ACROSS };
    const unsigned item = gpu_list_item(list), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const gpu_blocked &row = list.item[item].row, &column = list.item[item].column;
    const unsigned rows = (unsigned)column.cols, cols = (unsigned)column.rows;
    const unsigned across = (cols + ACROSS * tile::COLS - 1) / (ACROSS * tile::COLS);
    const unsigned tiles = (rows + DOWN * tile::ROWS - 1) / (DOWN * tile::ROWS) * across;
    const unsigned row_stores = gpu_scale_stores(row.to), column_stores = gpu_scale_stores(column.to);
    gpu_counter in_rows, in_columns;
    float most = 0;
    int odd = 0;
    for (unsigned t = gpu_list_block(list, item); t < tiles; t += gpu_list_own(list, item)) {
        const unsigned top = (t / across * DOWN + warp % DOWN) * tile::ROWS + lane / 8 * R;
        const unsigned left = (t % across * ACROSS + warp / DOWN) * tile::COLS + lane % 8 * E;
        const int is = top < rows && left < cols;
        gpu_group<IN> g[R];
        GPU_UNROLL
        for (int j = 0; j < R; j++)
            if (is)
                g[j].load(column.x, (size_t)(top + (unsigned)j) * cols + left);
            else
                g[j].clear();
        if (row.x) {
            float own[R / LANES] = {};
            GPU_UNROLL
            for (int j = 0; j < R; j += J) {
                float m[J];
                line::most(g + j, m);
                GPU_UNROLL
                for (int h = 0; h < J; h++) {
                    const int r = j + h;
                    const gpu_scaling s = gpu_power_scale<ELEMENT>(q.power, m[h]);
                    odd |= s.odd;
                    own[r / LANES] = lane % LANES == (unsigned)r % LANES ? m[h] : own[r / LANES];
                    gpu_group_put<IN, ELEMENT, VALUES, 1>(q, row, (size_t)(top + (unsigned)r) * cols + left, g[r], s, 0,
                                                          is && !s.odd, &in_rows);
                }
            }
            GPU_UNROLL
            for (int h = 0; h < R / LANES; h++) {
                const gpu_scaling s = gpu_power_scale<ELEMENT>(q.power, own[h]);
                const unsigned r = top + (unsigned)h * LANES + lane % LANES;
                if (is && !s.odd)
                    gpu_put_scale(q, row.to, row_stores, ((size_t)r * cols + left) / 32, own[h], s);
            }
        }
        float m[E], own[E / 4] = {};
        tile::columns(g, m);
        GPU_UNROLL
        for (int k = 0; k < E; k++) {
            const size_t i = (size_t)(left + (unsigned)k) * rows + top;
            const gpu_scaling s = gpu_power_scale<ELEMENT>(q.power, m[k]);
            odd |= s.odd;
            most = s.odd ? most : fmaxf(most, m[k]);
            own[k / 4] = lane / 8 == (unsigned)k % 4 ? m[k] : own[k / 4];
            GPU_UNROLL
            for (int half = 0; half < R / E; half++)
                gpu_group_put<IN, ELEMENT, VALUES, 1>(q, column, i + (unsigned)(half * E), tile::turned(g, k, half), s,
                                                      0, is && !s.odd, &in_columns);
        }
        GPU_UNROLL
        for (int h = 0; h < E / 4; h++) {
            const gpu_scaling s = gpu_power_scale<ELEMENT>(q.power, own[h]);
            const unsigned k = left + 4 * (unsigned)h + lane / 8;
            if (is && !s.odd)
                gpu_put_scale(q, column.to, column_stores, ((size_t)k * rows + top) / 32, own[h], s);
        }
    }
    unsigned bits = __float_as_uint(most);
    if (__any_sync(0xffffffffu, odd))
        for (unsigned t = gpu_list_block(list, item); t < tiles; t += gpu_list_own(list, item)) {
            const unsigned top = (t / across * DOWN + warp % DOWN) * tile::ROWS;
            const unsigned left = (t % across * ACROSS + warp / DOWN) * tile::COLS;
            for (unsigned k = left + lane; k < left + tile::COLS && k < cols && top < rows; k += 32) {
                const gpu_both_counted n = gpu_both_rare<IN, ELEMENT>(q, column, (size_t)top * cols + k, cols,
                                                                      (size_t)k * rows + top);
                gpu_count(&in_columns, n.c);
                bits = n.most > bits ? n.most : bits;
                const size_t i = (size_t)(top + lane) * cols + k - lane;
                if (row.x)
                    gpu_count(&in_rows, gpu_both_rare<IN, ELEMENT>(q, row, i, 1, i).c);
            }
        }
    gpu_give_all(in_rows, bits, row.to.counts, row.to.most);
    gpu_give_all(in_columns, bits, column.to.counts, column.to.most);
}
