/* engine_attention.cuh -- operations of attention beside its products. */
#pragma once

#include "attention.cuh"
#include "engine_rows.cuh"
#include "flat_softmax.cuh"

/* ---- heads ---- */

/* x: rows of places, y: heads. */
static void heads_set(gpu_heads *g, const train_heads *h, const train_tensor *x, const train_tensor *y)
{
    g->length = h->length;
    g->heads = h->heads;
    g->size = h->size;
    g->first = h->first;
    g->cols = x->cols;
    g->n = size_of(y);
    g->cos = h->cos ? floats_of(h->cos) : NULL;
    g->sin = h->sin ? floats_of(h->sin) : NULL;
}

/* Whether flat_heads_kernel has it. */
static int is_flat_turn(const train_turn *t)
{
    const train_heads *h = t->heads;
    return is_flat(t->x) && is_flat(t->y) && h->first % 8 == 0 && h->size % (h->cos ? 16 : 8) == 0 &&
           (!h->cos || (gpu_flat_at(floats_of(h->cos)) && gpu_flat_at(floats_of(h->sin))));
}

static int alike_turns(const train_turn *a, const train_turn *b)
{
    return is_flat_turn(a) == is_flat_turn(b) && mpsim_format_same(a->x->format, b->x->format) &&
           mpsim_format_same(a->y->format, b->y->format);
}

/* back: y holds the rows of places */
static int turn_heads(train_engine *e, const char *operation, const train_turn *list, size_t n, int back)
{
    gpu_heads_list now;
    size_t first = 0;
    unsigned blocks;
    int failed = 0;
    unsigned char *taken = untaken(e, n);
    if (!taken || reserve_slots(e, n))
        return -1;
    const auto alike = [&](size_t a, size_t b) { return alike_turns(&list[a], &list[b]); };
    const auto fill = [&](gpu_heads *to, size_t i) {
        const train_turn *t = &list[i];
        heads_set(to, t->heads, back ? t->y : t->x, back ? t->x : t->y);
        to->y = at_of(t->y);
        to->x = at_of(t->x);
        to->counts = slot_of(e, t->counts, &failed);
        t->y->inverse = 1;
        return gpu_list_blocks(is_flat_turn(t) ? to->n / 8 : to->n);
    };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0)
        GPU_LAUNCH(is_flat_turn(&list[first]) ? flat_heads_kernel : heads_kernel, blocks, GPU_LIST_THREADS, 0,
                   format_of(list[first].y), format_of(list[first].x), now, back);
    return failed ? -1 : cuda_launched(e, operation);
}

static int cuda_split(train_engine *e, const train_turn *list, size_t n)
{
    return turn_heads(e, "split", list, n, 0);
}

static int cuda_join(train_engine *e, const train_turn *list, size_t n)
{
    return turn_heads(e, "join", list, n, 1);
}

/* ---- softmax ---- */

static int causal_set(train_engine *e, const char *operation, gpu_causal *q, const mpsim_format *math, float scale,
                      const train_tensor *x, const train_tensor *y)
{
    if (math_set(e, operation, &q->math, math))
        return -1;
    q->from = format_of(x);
    q->to = format_of(y);
    q->rows = x->rows;
    q->length = x->cols;
    q->scale = mpsim_math_round(&q->math.math, scale);
    return 0;
}

/* Whether the kernels of flat_softmax.cuh compute it. */
static int is_flat_softmax(const mpsim_format *math, std::initializer_list<const train_tensor *> tensors)
{
    int flat = is_binary32(math);
    for (const train_tensor *t : tensors)
        flat = flat && is_flat(t);
    return flat;
}

static int cuda_causal(train_engine *e, const mpsim_format *math, float scale, train_tensor *p, const train_tensor *s,
                       train_counts *counts)
{
    gpu_causal q;
    int failed = 0;
    memset(&q, 0, sizeof q);
    if (causal_set(e, "causal", &q, math, scale, s, p))
        return -1;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    const size_t room = gpu_flat_room(q.length, sizeof(float));
    if (q.rows && is_flat_softmax(math, {p, s}))
        GPU_LAUNCH(flat_causal_kernel, blocks_of(q.rows, GPU_FLAT_ROWS), GPU_FLAT_THREADS, room, q, at_of(p), at_of(s),
                   slot, room != 0);
    else
        GPU_LAUNCH_BY_MATH(q.math, causal_kernel, blocks_of(q.rows, GPU_ROW_WARPS), GPU_ROW_THREADS, q, at_of(p),
                           at_of(s), slot);
    return wrote(e, "causal", p);
}

static int cuda_causal_backward(train_engine *e, const mpsim_format *math, float scale, train_tensor *ds,
                                const train_tensor *dp, const train_tensor *p, train_counts *counts)
{
    const char *name = "causal_backward";
    gpu_causal q;
    int failed = 0;
    memset(&q, 0, sizeof q);
    if (causal_set(e, name, &q, math, scale, dp, ds))
        return -1;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    q.p = format_of(p);
    const size_t of_p = gpu_flat_room(q.length, q.p.bytes), of_dp = gpu_flat_room(q.length, q.from.bytes);
    const size_t room = of_p && of_dp && of_p + of_dp <= GPU_FLAT_ROOM ? of_p + of_dp : 0;
    if (q.rows && is_flat_softmax(math, {ds, dp, p}))
        GPU_LAUNCH(flat_causal_backward_kernel, blocks_of(q.rows, GPU_FLAT_ROWS), GPU_FLAT_THREADS, room, q, at_of(ds),
                   at_of(dp), at_of(p), slot, room ? (unsigned)(of_p / 16) : 0u);
    else
        GPU_LAUNCH_BY_MATH(q.math, causal_backward_kernel, blocks_of(q.rows, GPU_ROW_WARPS), GPU_ROW_THREADS, q,
                           at_of(ds), at_of(dp), at_of(p), slot);
    return wrote(e, name, ds);
}

/* ---- tiles ---- */

/* The tile's own rows, or with `all` every row of its matrices. */
static gpu_tiles tiles_of(const train_tile *t, int all)
{
    gpu_tiles g;
    g.length = t->length;
    g.first = t->first;
    g.cols = t->cols;
    g.size = t->size;
    g.rows = t->matrices * (all ? t->length : t->length - t->first);
    g.scale = t->scale;
    g.p_scale = t->p_scale;
    g.back = mpsim_f32_div(1.0f, t->p_scale);
    return g;
}

static int cuda_tile_forward(train_engine *e, const train_tile *t, train_tensor *p, train_tensor *o, train_tensor *max,
                             train_tensor *sum, const train_tensor *s, train_counts *counts)
{
    const gpu_tiles g = tiles_of(t, 0);
    int failed = 0;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    const size_t room = gpu_flat_room(g.cols, sizeof(float));
    if (g.rows && is_flat_softmax(NULL, {p, o, s}))
        GPU_LAUNCH(flat_tile_forward_kernel, blocks_of(g.rows, GPU_FLAT_ROWS), GPU_FLAT_THREADS, room, g, format_of(p),
                   format_of(s), at_of(p), floats_of(o), floats_of(max), floats_of(sum), floats_of(s), slot, room != 0);
    else
        GPU_LAUNCH(tile_forward_kernel, blocks_of(g.rows, GPU_ROW_WARPS), GPU_ROW_THREADS, 0, g, format_of(p), at_of(p),
                   floats_of(o), floats_of(max), floats_of(sum), floats_of(s), slot);
    return wrote(e, "tile_forward", p);
}

static int cuda_tile_end(train_engine *e, const train_tile *t, train_tensor *y, train_tensor *lse,
                         const train_tensor *o, const train_tensor *max, const train_tensor *sum, train_counts *counts)
{
    const gpu_tiles g = tiles_of(t, 1);
    int failed = 0;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    lse->inverse = 1;
    GPU_LAUNCH(tile_end_kernel, blocks_of(g.rows * (g.size ? g.size : 1), 256), 256, 0, g, format_of(y), at_of(y),
               floats_of(lse), floats_of(o), floats_of(max), floats_of(sum), slot);
    return wrote(e, "tile_end", y);
}

static int cuda_tile_dots(train_engine *e, const train_tile *t, train_tensor *d, const train_tensor *dy,
                          const train_tensor *y)
{
    const gpu_tiles g = tiles_of(t, 1);
    GPU_LAUNCH(tile_dots_kernel, blocks_of(g.rows, GPU_ROW_WARPS), GPU_ROW_THREADS, 0, g, floats_of(d), format_of(dy),
               at_of(dy), format_of(y), at_of(y));
    return wrote(e, "tile_dots", d);
}

/* Of a list; backward: dP and d are read, too. */
static void tiled_set(gpu_tiled *g, const train_tiled *i, int backward)
{
    memset(g, 0, sizeof *g);
    g->t = tiles_of(i->tile, 0);
    g->y = at_of(i->y);
    g->s = floats_of(i->s);
    g->lse = floats_of(i->lse);
    g->dp = backward ? floats_of(i->dp) : NULL;
    g->d = backward ? floats_of(i->d) : NULL;
    g->n = size_of(i->y);
}

static int is_flat_tile(const train_tiled *i, int backward)
{
    return is_flat(i->y) && is_flat(i->s) && (!backward || is_flat(i->dp));
}

static int tiled_some(train_engine *e, const char *operation, const train_tiled *list, size_t n, int backward)
{
    gpu_tiled_list now;
    size_t first = 0;
    unsigned blocks;
    int failed = 0;
    unsigned char *taken = untaken(e, n);
    if (!taken || reserve_slots(e, n))
        return -1;
    const auto alike = [&](size_t a, size_t b) {
        return mpsim_format_same(list[a].y->format, list[b].y->format) &&
               is_flat_tile(&list[a], backward) == is_flat_tile(&list[b], backward);
    };
    const auto fill = [&](gpu_tiled *g, size_t i) {
        tiled_set(g, &list[i], backward);
        g->counts = slot_of(e, list[i].counts, &failed);
        list[i].y->inverse = 1;
        return gpu_list_blocks(is_flat_tile(&list[i], backward) ? g->n / 8 : g->n);
    };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0 && !failed)
        if (is_flat_tile(&list[first], backward))
            GPU_LAUNCH(backward ? flat_tile_kernel<1> : flat_tile_kernel<0>, blocks, GPU_LIST_THREADS, 0,
                       format_of(list[first].y), format_of(list[first].s), now);
        else
            GPU_LAUNCH(backward ? tile_backward_kernel : tile_again_kernel, blocks, GPU_LIST_THREADS, 0,
                       format_of(list[first].y), now);
    return failed ? -1 : cuda_launched(e, operation);
}

static int tiled(train_engine *e, const char *operation, const train_tiled *list, size_t n, int backward)
{
    for (size_t i = 0; i < n; i += CUDA_SLOTS)
        if (tiled_some(e, operation, list + i, n - i < CUDA_SLOTS ? n - i : size_t(CUDA_SLOTS), backward))
            return -1;
    return 0;
}

static int cuda_tile_again(train_engine *e, const train_tiled *list, size_t n)
{
    return tiled(e, "tile_again", list, n, 0);
}

static int cuda_tile_backward(train_engine *e, const train_tiled *list, size_t n)
{
    return tiled(e, "tile_backward", list, n, 1);
}
