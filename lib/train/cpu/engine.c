/* engine.c -- the CPU engine: tensors, casts, quantising. Everything is the library's arithmetic on
 * binary32 values. */
#include "../../base/transpose.h"
#include "cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

static int cpu_alloc(train_engine *e, train_tensor *x)
{
    mpsim_rounding r;
    float zero = 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_status s = mpsim_round_array_f32(x->format, &r, NULL, &zero, &zero, 1, NULL);
    if (s)
        return cpu_fail(e, "alloc: a tensor of %s: %s", x->format->name, mpsim_status_string(s));
    const size_t n = cpu_size(x);
    cpu_data *d = calloc(1, sizeof *d + n * sizeof(float));
    if (!d)
        return cpu_fail(e, "alloc: out of memory (%zu x %zu elements)", x->rows, x->cols);
    d->of.n = n;
    x->data = d;
    x->inverse = 1;
    return 0;
}

static void cpu_release(train_engine *e, train_tensor *x)
{
    (void)e;
    if (!x)
        return;
    free(x->data);
    x->data = NULL;
}

static int cpu_put(train_engine *e, train_tensor *x, const float *values)
{
    const size_t n = cpu_size(x);
    float *rounded = cpu_floats(e, 0, n);
    if (!rounded || cpu_round(e, x->format, MPSIM_ROUND_NEAREST_EVEN, rounded, values, n, NULL))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!(rounded[i] == values[i] || (isnan(rounded[i]) && isnan(values[i]))))
            return cpu_fail(e, "put: element %zu, %a, is not a number of %s", i, (double)values[i], x->format->name);
    x->inverse = 1;
    if (n)
        memcpy(cpu_values(x), rounded, n * sizeof *rounded);
    return 0;
}

static int cpu_get(train_engine *e, const train_tensor *x, float *values)
{
    (void)e;
    if (cpu_size(x))
        memcpy(values, cpu_values(x), cpu_size(x) * sizeof *values);
    return 0;
}

static int cpu_digest(train_engine *e, const train_tensor *x, uint64_t *digest)
{
    const void *codes = cpu_codes(e, 0, x);
    if (!codes)
        return -1;
    *digest = mpsim_digest(x->format, codes, cpu_size(x), 0);
    return 0;
}

static int cpu_finish(train_engine *e)
{
    (void)e;
    return 0;
}

static int cpu_cast(train_engine *e, train_tensor *y, const train_tensor *x, mpsim_round_mode mode,
                    train_counts *counts)
{
    if (mode == MPSIM_ROUND_NEAREST_EVEN)
        return cpu_store(e, y, cpu_values(x), counts);
    y->inverse = 1;
    return cpu_round(e, y->format, mode, cpu_values(y), cpu_values(x), cpu_size(x), counts);
}

static int cpu_cast_list(train_engine *e, const train_pair *list, size_t n, mpsim_round_mode mode)
{
    for (size_t i = 0; i < n; i++)
        if (cpu_cast(e, list[i].y, list[i].x, mode, list[i].counts))
            return -1;
    return 0;
}

/* ---- quantising ---- */

/* A matrix, quantised by pieces: rows of whole blocks. */
typedef struct quantising {
    const train_quantize *q;
    const train_tensor *y;
    const float *x;
    float amax;         /* of NVFP4; -1: of the piece, which is all then */
    float decoded[256]; /* what codes of one byte stand for */
    uint8_t *codes;     /* buffer 1; NULL: values, in y */
    float *inverses, inverse;
    uint8_t *scale_codes; /* buffer 4, of blocks; NULL: not wanted */
    size_t grid_cols;     /* blocks of a row */
    int counting;
    mpsim_status status[CPU_PIECES];
    train_counts counts[CPU_PIECES];
} quantising;

static int in_one_block(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

/* Rows of a piece that is whole: of blocks whose scales are their own, or the caller's. 0: all rows. */
static size_t rows_of_piece(const mpsim_block_recipe *b)
{
    if (b->rule == MPSIM_SCALE_GIVEN)
        return b->block_rows ? b->block_rows : 1;
    return b->rule == MPSIM_SCALE_NVFP4_TORCHAO ? 0 : b->block_rows;
}

/* Rows first to first + n - 1. */
static void quantize_some(void *job, size_t piece, size_t first, size_t n)
{
    quantising *o = job;
    const mpsim_block_recipe *b = o->q->recipe;
    const size_t cols = o->y->cols, at = first * cols, all = n * cols;
    float *y = cpu_values(o->y) + at, inverse = 1;
    mpsim_counts cast = {0, 0, 0, 0, 0};
    mpsim_rng rng = o->q->rng;
    rng.index += at;
    mpsim_blocks out = {.counts = o->counting ? &cast : NULL};
    out.codes = o->codes ? o->codes + at : NULL;
    out.values = o->codes ? NULL : y;
    if (o->scale_codes)
        out.scale_codes = o->scale_codes + first / b->block_rows * o->grid_cols;
    else if (o->inverses)
        out.inverses = o->inverses + first / b->block_rows * o->grid_cols;
    else if (o->codes && all)
        out.inverses = &inverse;
    o->status[piece] = mpsim_block_quantize(b, o->x + at, n, cols, o->amax, o->q->given, &rng, &out,
                                            o->scale_codes ? &inverse : NULL);
    if (o->status[piece])
        return;
    for (size_t i = 0; out.codes && i < all; i++)
        y[i] = o->decoded[out.codes[i]];
    if (out.values)
        o->status[piece] = cpu_round_here(o->y->format, y, all, NULL);
    if (piece == 0)
        o->inverse = inverse;
    if (o->counting) {
        cpu_count(&o->counts[piece], o->x + at, y, all);
        o->counts[piece].lost += cast.underflow;
        o->counts[piece].overflow += cast.overflow;
    }
}

/* y from x, which has y's shape. */
static int quantize(train_engine *e, train_tensor *y, const float *x, const train_quantize *q, train_counts *counts)
{
    const size_t n = cpu_size(y), unit = rows_of_piece(q->recipe);
    const int codes = q->blocks || in_one_block(q->recipe);
    size_t grid_rows;
    quantising o = {.q = q, .y = y, .x = x, .amax = -1, .inverse = 1, .counting = counts != NULL};
    mpsim_block_grid(q->recipe, y->rows, y->cols, &grid_rows, &o.grid_cols);
    if (codes && !(o.codes = cpu_buffer(e, 1, n)))
        return -1;
    for (uint64_t code = 0; codes && code < 256; code++)
        o.decoded[code] = (float)mpsim_decode(y->format, code);
    o.inverses = q->blocks ? cpu_values(q->blocks) : NULL;
    if (q->scale_codes && !(o.scale_codes = cpu_buffer(e, 4, grid_rows * o.grid_cols)))
        return -1;
    if (q->recipe->rule == MPSIM_SCALE_NVFP4_TE)
        o.amax = mpsim_amax(x, n);
    cpu_pieces(e, y->rows, unit ? unit : y->rows + 1, y->cols, quantize_some, &o);
    for (size_t i = 0; i < CPU_PIECES; i++) {
        if (o.status[i])
            return cpu_fail(e, "quantize: %s (scale %g): %s", q->recipe->name, (double)q->given,
                            mpsim_status_string(o.status[i]));
        if (counts)
            cpu_add_counts(counts, &o.counts[i]);
    }
    const mpsim_format *scales = q->scale_codes ? mpsim_block_scale_format(q->recipe) : NULL;
    for (size_t i = 0; scales && i < grid_rows * o.grid_cols; i++)
        o.inverses[i] = (float)mpsim_decode(scales, o.scale_codes[i]);
    y->inverse = o.inverse;
    return 0;
}

static int cpu_quantize(train_engine *e, train_tensor *y, const train_tensor *x, const train_quantize *q, float *amax,
                        train_counts *counts)
{
    const float most = amax ? mpsim_amax(cpu_values(x), cpu_size(x)) : 0;
    if (amax && most > *amax)
        *amax = most;
    if (!q->transposed)
        return quantize(e, y, cpu_values(x), q, counts);
    float *transposed = cpu_floats(e, 0, cpu_size(x));
    if (!transposed)
        return -1;
    mpsim_transpose(transposed, cpu_values(x), x->rows, x->cols);
    return quantize(e, y, transposed, q, counts);
}

static int cpu_quantize_list(train_engine *e, const train_quantized *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const train_quantized *t = &list[i];
        if (cpu_quantize(e, t->y, t->x, t->how, t->amax, t->counts))
            return -1;
    }
    return 0;
}

static int cpu_hadamard(train_engine *e, train_tensor *y, const train_tensor *x, int transposed)
{
    float *v = cpu_floats(e, 0, cpu_size(x));
    if (!v)
        return -1;
    if (transposed)
        mpsim_transpose(v, cpu_values(x), x->rows, x->cols);
    else if (cpu_size(x))
        memcpy(v, cpu_values(x), cpu_size(x) * sizeof *v);
    for (size_t i = 0; i < y->rows; i++)
        mpsim_hadamard_groups(v + i * y->cols, y->cols, 16, 0);
    return cpu_store(e, y, v, NULL);
}

/* ---- the engine ---- */

static void cpu_close(train_engine *e)
{
    cpu_self *self = e->self;
    for (int i = 0; self && i < CPU_BUFFERS; i++)
        free(self->buffer[i]);
    free(self);
}

static const train_ops cpu_ops = {
    .name = "cpu",
    .alloc = cpu_alloc,
    .release = cpu_release,
    .put = cpu_put,
    .get = cpu_get,
    .digest = cpu_digest,
    .finish = cpu_finish,
    .cast = cpu_cast,
    .cast_list = cpu_cast_list,
    .gemm = cpu_gemm,
    .gemm_list = cpu_gemm_list,
    .quantize = cpu_quantize,
    .quantize_list = cpu_quantize_list,
    .hadamard = cpu_hadamard,
    .index_new = cpu_index_new,
    .index_free = cpu_index_free,
    .gather = cpu_gather,
    .relu = cpu_relu,
    .relu_backward = cpu_relu_backward,
    .maxpool = cpu_maxpool,
    .maxpool_backward = cpu_maxpool_backward,
    .column_sums = cpu_column_sums,
    .softmax_xent = cpu_softmax_xent,
    .batchnorm = cpu_batchnorm,
    .batchnorm_backward = cpu_batchnorm_backward,
    .batchnorm_inference = cpu_batchnorm_inference,
    .unscale = cpu_unscale,
    .norm = cpu_norm,
    .scale = cpu_scale,
    .optim = cpu_optim,
    .muon = cpu_muon,
    .keep = cpu_keep,
    .add = cpu_add,
    .add_rows = cpu_add_rows,
    .add_rows_backward = cpu_add_rows_backward,
    .embed = cpu_embed,
    .embed_backward = cpu_embed_backward,
    .split = cpu_split,
    .join = cpu_join,
    .rownorm = cpu_rownorm,
    .rownorm_backward = cpu_rownorm_backward,
    .rownorm_gradients = cpu_rownorm_gradients,
    .activate = cpu_activate,
    .activate_backward = cpu_activate_backward,
    .causal = cpu_causal,
    .causal_backward = cpu_causal_backward,
    .add_groups = cpu_add_groups,
    .tile_forward = cpu_tile_forward,
    .tile_end = cpu_tile_end,
    .tile_dots = cpu_tile_dots,
    .tile_again = cpu_tile_again,
    .tile_backward = cpu_tile_backward,
    .reduce = cpu_reduce,
    .close = cpu_close,
};

int train_engine_cpu(train_engine *e, const mpsim_pool *pool)
{
    memset(e, 0, sizeof *e);
    e->pool = pool;
    e->self = calloc(1, sizeof(cpu_self));
    if (!e->self)
        return cpu_fail(e, "out of memory");
    train_engine_begin(e, &cpu_ops);
    return 0;
}

void train_engine_close(train_engine *e)
{
    if (e && e->ops && e->ops->close)
        e->ops->close(e);
    if (e)
        memset(e, 0, sizeof *e);
}
