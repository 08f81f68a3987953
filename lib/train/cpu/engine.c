/* engine.c -- the CPU engine: tensors, casts, quantising. Everything is the library's arithmetic on
 * binary32 values. */
#include "cpu.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

/* Memory is written before it is read: a page of zeros that is read first costs two faults, and the threads' attention. */
static void begin_pages(void *values, size_t piece, size_t first, size_t n)
{
    volatile float *const x = values;
    (void)piece;
    for (size_t i = first; i < first + n; i += 1024)
        x[i] = 0;
}

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
    cpu_pieces(e, n, 1 << 16, 1, begin_pages, d->values);
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

/* Values as numbers of a format: the first that is none; of all pieces before one is stored. */
typedef struct putting {
    const mpsim_format *f;
    const float *values;
    float *to; /* NULL: only looked at */
    size_t bad[CPU_PIECES];
    mpsim_status status[CPU_PIECES];
} putting;

/* The first of n numbers that rounding has changed, or n. */
static size_t first_changed(const float *rounded, const float *values, size_t n)
{
    size_t i = 0;
    while (i < n && (rounded[i] == values[i] || (isnan(rounded[i]) && isnan(values[i]))))
        i++;
    return i;
}

static void put_piece(void *job, size_t piece, size_t first, size_t n)
{
    putting *p = job;
    mpsim_rounding r;
    float rounded[CPU_IN_CACHE];
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    p->bad[piece] = SIZE_MAX;
    for (size_t i = first; i < first + n && p->bad[piece] == SIZE_MAX && !p->status[piece]; i += CPU_IN_CACHE) {
        const size_t left = first + n - i, some = left < CPU_IN_CACHE ? left : CPU_IN_CACHE;
        p->status[piece] = mpsim_round_array_f32(p->f, &r, NULL, rounded, p->values + i, some, NULL);
        const size_t changed = p->status[piece] ? some : first_changed(rounded, p->values + i, some);
        if (changed < some)
            p->bad[piece] = i + changed;
        else if (p->to)
            memcpy(p->to + i, rounded, some * sizeof *rounded);
    }
}

/* What one pass over all pieces finds. */
static int put_all(train_engine *e, const train_tensor *x, const float *values, float *to)
{
    putting p = {.f = x->format, .values = values, .to = to};
    for (size_t i = 0; i < CPU_PIECES; i++)
        p.bad[i] = SIZE_MAX;
    cpu_pieces(e, cpu_size(x), CPU_IN_CACHE, 1, put_piece, &p);
    for (size_t i = 0; i < CPU_PIECES; i++) {
        if (p.status[i])
            return cpu_fail(e, "rounding to %s: %s", x->format->name, mpsim_status_string(p.status[i]));
        if (p.bad[i] != SIZE_MAX)
            return cpu_fail(e, "put: element %zu, %a, is not a number of %s", p.bad[i], (double)values[p.bad[i]],
                            x->format->name);
    }
    return 0;
}

static int cpu_put(train_engine *e, train_tensor *x, const float *values)
{
    if (!cpu_is_binary32(x->format) && put_all(e, x, values, NULL))
        return -1;
    x->inverse = 1;
    return put_all(e, x, values, cpu_values(x));
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
    *digest = e->digests == TRAIN_DIGEST_CODES ? mpsim_digest(x->format, codes, cpu_size(x), 0)
                                               : mpsim_digest_blocks(x->format, codes, cpu_size(x), 0);
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

/* The values of x, or of x transposed. */
static mpsim_stack stack_of(const train_tensor *x, int transposed)
{
    const int64_t cols = (int64_t)x->cols;
    mpsim_stack s = {.format = mpsim_format_find("binary32"), .codes = cpu_values(x), .rank = 2};
    s.shape[transposed] = x->rows;
    s.strides[transposed] = cols;
    s.shape[!transposed] = x->cols;
    s.strides[!transposed] = 1;
    return s;
}

/* Codes, one after the other, that become the values of a tensor. */
typedef struct decoding {
    const train_tensor *y;
    const mpsim_operand *o;
    mpsim_status status[CPU_PIECES];
} decoding;

static void decode_some(void *job, size_t piece, size_t first, size_t n)
{
    decoding *d = job;
    const mpsim_stack *s = &d->o->stack;
    d->status[piece] = mpsim_decode_array_f32(s->format, cpu_values(d->y) + first,
                                              (const char *)s->codes + first * mpsim_format_code_bytes(s->format), n);
}

/* y holds what has entered. */
static mpsim_status take(train_engine *e, train_tensor *y, const mpsim_operand *o)
{
    decoding d = {.y = y, .o = o};
    cpu_pieces(e, cpu_size(y), CPU_IN_CACHE, 1, decode_some, &d);
    for (size_t i = 0; i < CPU_PIECES; i++)
        if (d.status[i])
            return d.status[i];
    y->inverse = o->inverse;
    return MPSIM_OK;
}

static int cpu_quantize(train_engine *e, train_tensor *y, const train_tensor *x, const train_quantize *q, float *amax,
                        train_counts *counts)
{
    const mpsim_stack s = stack_of(x, q->transposed != 0);
    const mpsim_block_use use = q->scale_codes ? MPSIM_BLOCKS_SCALED
                                : q->blocks    ? MPSIM_BLOCKS_AS_CODES
                                               : MPSIM_BLOCKS_AS_VALUES;
    const mpsim_entering how = {.recipe = q->recipe, .use = (uint8_t)use, .given = q->given, .rng = q->rng};
    mpsim_entered entered = {0, 0, 0, 0};
    const mpsim_entry_stats stats = {.amax = amax, .counts = counts ? &entered : NULL};
    mpsim_operand o;
    mpsim_status status = mpsim_operand_enter(&o, &s, &how, &stats, e->pool);
    if (!status) {
        status = take(e, y, &o);
        if (q->blocks && o.factors)
            memcpy(cpu_values(q->blocks), o.factors, cpu_size(q->blocks) * sizeof(float));
        mpsim_operand_free(&o);
    }
    if (status)
        return cpu_fail(e, "quantize: %s (scale %g): %s", q->recipe->name, (double)q->given,
                        mpsim_status_string(status));
    if (counts)
        cpu_add_counts(counts, &(train_counts){entered.nonzero, entered.lost, entered.overflow, entered.nonfinite});
    return 0;
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
    const mpsim_stack s = stack_of(x, transposed != 0);
    const mpsim_entering how = {.format = x->format, .hadamard = 16};
    mpsim_operand o;
    mpsim_status status = mpsim_operand_enter(&o, &s, &how, NULL, e->pool);
    if (!status) {
        status = take(e, y, &o);
        mpsim_operand_free(&o);
    }
    return status ? cpu_fail(e, "hadamard: %s", mpsim_status_string(status)) : 0;
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
