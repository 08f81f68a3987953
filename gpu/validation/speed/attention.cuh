/* attention.cuh -- measurements of causal attention in tiles of columns, as trainings have it (lib/train/decoder/tiles.c):
 * scores of a tile, its softmax, its part of the sums. bf16 by the device's model of bf16 products. The first rows of the
 * first head, which need no others, are compared with the CPU's engine. */
#pragma once

#include "layers.cuh"

namespace
{

enum { Q = 1, K, V, S, P, O, ROW_MAX, ROW_SUM, LSE, Y, DY, DP, DS, DK, DV, DOTS_OF_ROWS, NULLS, INFINITES };

enum { TILES = 8, CPU_TILES = 2 };

/* Of order 4096: 64 heads of 2048 rows and 128 columns, tiles of 256 columns. */
void size_of_attention(layer *l, const gpu_speed_plan *plan)
{
    l->tile = train_tile{plan->order / 64, plan->order / 2, 0, 0, std::min(plan->order, size_t(128)), 0, 1};
    l->tile.scale = 1 / sqrtf(static_cast<float>(l->tile.size));
    l->n = l->tile.matrices * l->tile.length * l->tile.size;
    l->sample = l->tile.length / TILES * CPU_TILES * l->tile.size;
    const char *name = model_of_device("bf16-fp32", plan->sm);
    if (name)
        (void)mpsim_model_parse(&l->model, name);
}

double flops_of_attention(const gpu_speed_plan *plan, int products)
{
    layer l = {};
    size_of_attention(&l, plan);
    const double length = static_cast<double>(l.tile.length);
    return products * static_cast<double>(l.tile.matrices * l.tile.size) * length * length; /* half of 2 n^2 d */
}

/* Columns of a tile: the CPU has fewer rows, in tiles of the same size. */
size_t columns_of_tile(const layer *l)
{
    return l->n == l->sample ? l->tile.length / CPU_TILES : l->tile.length / TILES;
}

struct attention_tensor {
    int at;
    const char *format;
    size_t rows, cols;
    layer_numbers numbers;
};

int make_infinities(layer *l, size_t rows)
{
    std::vector<float> values(rows, -INFINITY);
    train_tensor *t = &l->t[INFINITES];
    *t = train_tensor{mpsim_format_find("binary32"), rows, 1, NULL, 1};
    return l->e.ops->alloc(&l->e, t) || l->e.ops->put(&l->e, t, values.data());
}

/* The CPU's part is a head whose length is that of the sample. */
int make_attention(layer *l, const layer_case *)
{
    if (l->n == l->sample) {
        l->tile.matrices = 1;
        l->tile.length = l->sample / l->tile.size;
    }
    l->tile.cols = columns_of_tile(l);
    const size_t rows = l->n / l->tile.size, size = l->tile.size, wide = l->tile.cols;
    const attention_tensor tensors[] = {{0, "bf16", rows, size, ZEROS},
                                        {Q, "bf16", rows, size, NUMBERS},
                                        {K, "bf16", rows, size, NUMBERS},
                                        {V, "bf16", rows, size, NUMBERS},
                                        {S, "binary32", rows, wide, ZEROS},
                                        {P, "bf16", rows, wide, ZEROS},
                                        {O, "binary32", rows, size, ZEROS},
                                        {ROW_MAX, "binary32", rows, 1, ZEROS},
                                        {ROW_SUM, "binary32", rows, 1, ZEROS},
                                        {LSE, "binary32", rows, 1, ZEROS},
                                        {Y, "bf16", rows, size, ZEROS},
                                        {DY, "bf16", rows, size, NUMBERS},
                                        {DP, "binary32", rows, wide, ZEROS},
                                        {DS, "bf16", rows, wide, ZEROS},
                                        {DK, "bf16", rows, size, ZEROS},
                                        {DV, "bf16", rows, size, ZEROS},
                                        {DOTS_OF_ROWS, "binary32", rows, 1, ZEROS},
                                        {NULLS, "binary32", rows, size, ZEROS}};
    for (const attention_tensor &x : tensors) {
        train_tensor *t = &l->t[x.at];
        *t = train_tensor{mpsim_format_find(x.format), x.rows, x.cols, NULL, 1};
        if (x.numbers == ZEROS ? l->e.ops->alloc(&l->e, t)
                               : make_repeated(&l->e, t, l->sample / size, BELL, (uint64_t)x.at << 32))
            return -1;
    }
    return make_infinities(l, rows);
}

train_tensor view_of(const layer *l, int k, size_t rows, size_t cols)
{
    train_tensor t = l->t[k];
    t.rows = rows;
    t.cols = cols;
    return t;
}

/* A tile from column `first` on: its scores and what becomes of them. */
struct tile_views {
    train_tile tile;
    train_part columns, below;
    train_tensor s, p, dp, ds;
};

tile_views tile_at(const layer *l, size_t first)
{
    const size_t left = l->tile.length - first, n = std::min(left, columns_of_tile(l)), rows = l->tile.matrices * left;
    tile_views x = {l->tile,
                    {first, n},
                    {first, left},
                    view_of(l, S, rows, n),
                    view_of(l, P, rows, n),
                    view_of(l, DP, rows, n),
                    view_of(l, DS, rows, n)};
    x.tile.first = first;
    x.tile.cols = n;
    return x;
}

/* d = a b of each head; without a part, all rows. */
int multiply(layer *l, train_tensor *d, train_part d_part, const train_tensor *a, train_part a_part, int a_transposed,
             const train_tensor *b, train_part b_part, int b_transposed, train_start start)
{
    train_gemm g = {};
    g.model = &l->model;
    g.a = a;
    g.b = b;
    g.a_transposed = a_transposed;
    g.b_transposed = b_transposed;
    g.a_part = a_part;
    g.b_part = b_part;
    g.d_part = d_part;
    g.stacks = l->tile.matrices;
    g.start = static_cast<uint8_t>(start);
    return l->e.ops->gemm(&l->e, d, &g, NULL);
}

const train_part ALL_OF_IT = {0, 0};

int scores(layer *l, tile_views *x)
{
    return multiply(l, &x->s, ALL_OF_IT, &l->t[Q], x->below, 0, &l->t[K], x->columns, 1, TRAIN_FROM_ZERO);
}

int begin_attention(layer *l)
{
    const train_tensor zeros = view_of(l, NULLS, l->t[NULLS].rows, 1);
    const train_pair list[] = {
        {&l->t[O], &l->t[NULLS], NULL}, {&l->t[ROW_MAX], &l->t[INFINITES], NULL}, {&l->t[ROW_SUM], &zeros, NULL}};
    return l->e.ops->cast_list(&l->e, list, 3, MPSIM_ROUND_NEAREST_EVEN);
}

int forward_into(layer *l, train_tensor *y)
{
    const train_ops *ops = l->e.ops;
    if (begin_attention(l))
        return -1;
    for (size_t first = 0; first < l->tile.length; first += columns_of_tile(l)) {
        tile_views x = tile_at(l, first);
        if (scores(l, &x) ||
            ops->tile_forward(&l->e, &x.tile, &x.p, &l->t[O], &l->t[ROW_MAX], &l->t[ROW_SUM], &x.s, NULL) ||
            multiply(l, &l->t[O], x.below, &x.p, ALL_OF_IT, 0, &l->t[V], x.columns, 0, TRAIN_FROM_SUM))
            return -1;
    }
    return ops->tile_end(&l->e, &l->tile, y, &l->t[LSE], &l->t[O], &l->t[ROW_MAX], &l->t[ROW_SUM], NULL);
}

int run_attention(layer *l)
{
    return forward_into(l, &l->t[0]);
}

int make_attention_backward(layer *l, const layer_case *c)
{
    return make_attention(l, c) || forward_into(l, &l->t[Y]);
}

/* P and dS of a tile, and what they give to dV, dK and dQ. */
int tile_back(layer *l, tile_views *x)
{
    const train_ops *ops = l->e.ops;
    const train_tiled p = {&x->tile, &x->p, &x->s, &l->t[LSE], NULL, NULL, NULL};
    const train_tiled ds = {&x->tile, &x->ds, &x->s, &l->t[LSE], &x->dp, &l->t[DOTS_OF_ROWS], NULL};
    return scores(l, x) ||
           multiply(l, &x->dp, ALL_OF_IT, &l->t[DY], x->below, 0, &l->t[V], x->columns, 1, TRAIN_FROM_ZERO) ||
           ops->tile_again(&l->e, &p, 1) || ops->tile_backward(&l->e, &ds, 1) ||
           multiply(l, &l->t[DV], x->columns, &x->p, ALL_OF_IT, 1, &l->t[DY], x->below, 0, TRAIN_FROM_ZERO) ||
           multiply(l, &l->t[DK], x->columns, &x->ds, ALL_OF_IT, 1, &l->t[Q], x->below, 0, TRAIN_FROM_ZERO) ||
           multiply(l, &l->t[O], x->below, &x->ds, ALL_OF_IT, 0, &l->t[K], x->columns, 0, TRAIN_ADD_TO);
}

int run_attention_backward(layer *l)
{
    if (begin_attention(l) || l->e.ops->tile_dots(&l->e, &l->tile, &l->t[DOTS_OF_ROWS], &l->t[DY], &l->t[Y]))
        return -1;
    for (size_t first = 0; first < l->tile.length; first += columns_of_tile(l)) {
        tile_views x = tile_at(l, first);
        if (tile_back(l, &x))
            return -1;
    }
    return l->e.ops->cast(&l->e, &l->t[0], &l->t[O], MPSIM_ROUND_NEAREST_EVEN, NULL);
}

/* Two products forward; five backward, of which two are computed again. */
const layer_case attention_cases[] = {
    {"forward",
     "attention",
     0,
     size_of_attention,
     make_attention,
     run_attention,
     "the first rows of the first head",
     {}},
    {"backward",
     "attention, backward",
     0,
     size_of_attention,
     make_attention_backward,
     run_attention_backward,
     "dQ of the first rows of the first head; dK and dV are computed, too",
     {}},
};

void list_attention(item_list *list, const gpu_speed_plan *plan)
{
    if (!model_of_device("bf16-fp32", plan->sm))
        return;
    layer l = {};
    size_of_attention(&l, plan);
    for (const layer_case &c : attention_cases) {
        item *it = add_item(list, c.group, measure_layer);
        snprintf(it->name, sizeof it->name, "attention, bf16, %zu x %zu x %zu, causal, %s", l.tile.matrices,
                 l.tile.length, l.tile.size, c.name);
        it->layer = &c;
        it->flops = flops_of_attention(plan, &c == attention_cases ? 2 : 5);
    }
}

} // namespace
