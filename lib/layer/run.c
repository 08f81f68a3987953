/* run.c -- operations on arrays in memory, in parts: each is taken into dense rows of binary32, computed and stored. What
 * a part is depends on the shape and on how arrays lie; no result depends on the parts.
 *
 * The trainer's CPU engine calls the same functions on dense rows. A part is some rows, or some columns where a sum
 * goes over rows. If columns are adjacent in memory, a part has at least 16 rows, and squares of 16 bytes a line
 * are transposed (lib/base/turn.c): 0.2 to 0.6 of the time of element by element. The rest is memory: one cache
 * line and one TLB entry for every 16 binary32 numbers. */
#include "run.h"

#include "../base/matrix.h"
#include "shared.h"

#include <stdlib.h>

enum {
    PIECES = 64,        /* at most, of threads                                  */
    ELEMENTS = 1 << 12, /* of a part by rows: they stay in the cache            */
    SOME = 1 << 16,     /* of a part by columns that are turned                 */
    ABREAST = 16,       /* columns of a part at least, and rows that are turned, unless they are very long */
    TALL = 1 << 20,     /* elements of a part by columns                        */
    SMALLEST = 1 << 14, /* elements of a piece at least: waking a thread must be worth it */
    SCALAR_ALIGNMENT = sizeof(float)
};

typedef struct run {
    const mpsim_between *o;
    const mpsim_layer_row *kind;
    const mpsim_strided *arrays;
    mpsim_layer_shape shape;
    size_t flat[2];                      /* the shape of elements */
    int turned;                          /* columns of an array lie side by side */
    uint8_t dense[MPSIM_BETWEEN_ARRAYS]; /* without gaps */
    uint8_t plain[MPSIM_BETWEEN_ARRAYS]; /* dense, and binary32: used where it lies */
    uint32_t *index;
    size_t things, step, piece; /* rows or columns: all, of a part, of a piece */
    mpsim_status status[PIECES];
    uint64_t found[PIECES][2];
} run;

static int by_columns(const run *r)
{
    return r->kind->cut == MPSIM_CUT_COLUMNS;
}

/* ---- a part of an array ---- */

typedef struct window {
    size_t row, rows, column, cols;
    void *room; /* for as many numbers */
} window;

static window window_of(const run *r, size_t first, size_t n)
{
    return by_columns(r) ? (window){0, r->shape.rows, first, n, NULL} : (window){first, n, 0, r->shape.cols, NULL};
}

static ptrdiff_t last_stride(const run *r, const mpsim_strided *a)
{
    return a->stride[r->shape.dims - 1];
}

typedef void mover(const mpsim_strided *a, const mpsim_strided_rows *m, float *x);

static void bytes(const mpsim_strided *a, const mpsim_strided_rows *m, float *x)
{
    mpsim_strided_bytes(a, m, (uint8_t *)x);
}

static ptrdiff_t row_stride(const run *r, const mpsim_strided *a)
{
    return r->shape.dims > 1 ? a->stride[r->shape.dims - 2] : 0;
}

/* Rows of the array, some that are evenly apart at a time; `size` of an element in x. */
static void rows(const run *r, const mpsim_strided *a, window w, size_t size, float *x, mover *how)
{
    for (size_t i = 0, some; i < w.rows; i += some) {
        const size_t even = mpsim_strided_run(a, &r->shape, w.row + i), left = w.rows - i;
        some = left < even ? left : even;
        const mpsim_strided_rows m = {.at = mpsim_strided_at(a, &r->shape, w.row + i) +
                                            (ptrdiff_t)w.column * last_stride(r, a),
                                      .row = row_stride(r, a),
                                      .col = last_stride(r, a),
                                      .rows = some,
                                      .cols = w.cols,
                                      .room = w.room};
        how(a, &m, (float *)((unsigned char *)x + i * w.cols * size));
    }
}

/* All columns of rows that follow one another. */
static void dense_rows(const mpsim_strided *a, window w, float *x, mover *how)
{
    how(a, &(mpsim_strided_rows){.at = (ptrdiff_t)(w.row * w.cols), .col = 1, .rows = 1, .cols = w.rows * w.cols}, x);
}

/* A number a row: runs of rows that are evenly apart. */
static void scalars(const run *r, const mpsim_strided *a, window w, float *x, mover *how)
{
    for (size_t i = 0, some; i < w.rows; i += some) {
        const size_t even = mpsim_strided_run(a, &r->shape, w.row + i), left = w.rows - i;
        some = left < even ? left : even;
        how(a,
            &(mpsim_strided_rows){
                .at = mpsim_strided_at(a, &r->shape, w.row + i), .col = row_stride(r, a), .rows = 1, .cols = some},
            x + i);
    }
}

/* n rows of a table, or of one row. */
static void table(const run *r, const mpsim_strided *a, window w, size_t n, float *x, mover *how)
{
    const ptrdiff_t col = last_stride(r, a);
    how(a,
        &(mpsim_strided_rows){
            .at = (ptrdiff_t)w.column * col, .row = a->stride[0], .col = col, .rows = n, .cols = w.cols},
        x);
}

static void taken(const run *r, const mpsim_strided *a, window w, float *x, mover *how)
{
    for (size_t i = 0; i < w.rows; i++)
        how(a,
            &(mpsim_strided_rows){.at = (ptrdiff_t)r->index[w.row + i] * a->stride[0],
                                  .col = last_stride(r, a),
                                  .rows = 1,
                                  .cols = w.cols},
            x + i * w.cols);
}

static void move(const run *r, size_t k, window w, float *x, mover *how)
{
    const mpsim_strided *a = &r->arrays[k];
    switch ((mpsim_layer_use)r->kind->arrays[k].use) {
    case MPSIM_USE_ROWS:
        if (r->dense[k] && w.cols == r->shape.cols)
            dense_rows(a, w, x, how);
        else
            rows(r, a, w, sizeof *x, x, how);
        break;
    case MPSIM_USE_COLUMNS:
        table(r, a, w, 1, x, how);
        break;
    case MPSIM_USE_SCALARS:
        scalars(r, a, w, x, how);
        break;
    case MPSIM_USE_TABLE:
        table(r, a, w, r->o->entries, x, how);
        break;
    case MPSIM_USE_TAKEN:
        taken(r, a, w, x, how);
        break;
    case MPSIM_USE_MASK:
        rows(r, a, w, 1, x, bytes);
    }
}

/* Numbers that a part of array k has at most. */
static size_t numbers_of(const run *r, size_t k)
{
    const window w = window_of(r, 0, r->step);
    const size_t of[] = {[MPSIM_USE_ROWS] = w.rows * w.cols,  [MPSIM_USE_COLUMNS] = w.cols,
                         [MPSIM_USE_SCALARS] = w.rows,        [MPSIM_USE_TABLE] = r->o->entries * w.cols,
                         [MPSIM_USE_TAKEN] = w.rows * w.cols, [MPSIM_USE_MASK] = w.rows * w.cols / sizeof(float) + 1};
    return of[r->kind->arrays[k].use];
}

/* Whether the function is to have room for array k. */
static int wanted(const run *r, size_t k)
{
    return r->arrays[k].data || r->kind->arrays[k].how & (MPSIM_USE_ONES | MPSIM_USE_ZEROS | MPSIM_USE_ROOM);
}

static int lies_there(const run *r, size_t k)
{
    return r->plain[k] && (!by_columns(r) || r->step == r->shape.cols);
}

/* ---- a part ---- */

static void take(const run *r, size_t k, window w, float *x)
{
    const mpsim_layer_operand *a = &r->kind->arrays[k];
    if (!r->arrays[k].data)
        for (size_t i = 0; a->how & (MPSIM_USE_ONES | MPSIM_USE_ZEROS) && i < w.cols; i++)
            x[i] = a->how & MPSIM_USE_ONES ? 1.0f : 0.0f;
    else if (a->how & MPSIM_USE_IN && (!(a->how & MPSIM_USE_OUT) || a->use != MPSIM_USE_TABLE || r->o->added))
        move(r, k, w, x, mpsim_strided_take);
}

static mpsim_status part(run *r, size_t piece, size_t first, size_t n, float *const *room)
{
    window w = window_of(r, first, n);
    w.room = room[MPSIM_BETWEEN_ARRAYS];
    mpsim_layer_part p = {.first = w.row, .rows = w.rows, .cols = w.cols, .index = r->index ? r->index + w.row : NULL};
    for (size_t k = 0; k < r->kind->n; k++) {
        p.x[k] = room[k];
        if (lies_there(r, k))
            p.x[k] = (float *)r->arrays[k].data + w.row * w.cols;
        else if (room[k])
            take(r, k, w, room[k]);
        if (r->kind->arrays[k].use == MPSIM_USE_MASK)
            p.mask = (const uint8_t *)p.x[k];
    }
    const mpsim_status s = r->kind->some(r->o, &p);
    for (size_t k = 0; s == MPSIM_OK && k < r->kind->n; k++)
        if (r->kind->arrays[k].how & MPSIM_USE_OUT && r->arrays[k].data && !lies_there(r, k))
            move(r, k, w, p.x[k], mpsim_strided_give);
    r->found[piece][0] += p.found[0];
    r->found[piece][1] += p.found[1];
    return s;
}

/* Room of each array, and of the codes of one. */
static float *memory(const run *r, float **room)
{
    const window w = window_of(r, 0, r->step);
    size_t codes = 0, n = 1;
    for (size_t k = 0; k < r->kind->n; k++)
        if (wanted(r, k) && !lies_there(r, k)) {
            n += numbers_of(r, k);
            codes = r->kind->arrays[k].use == MPSIM_USE_ROWS ? w.rows * w.cols : codes;
        }
    float *const all = malloc((n + codes) * sizeof *all), *next = all;
    for (size_t k = 0; all && k < r->kind->n; k++) {
        room[k] = wanted(r, k) && !lies_there(r, k) ? next : NULL;
        next += room[k] ? numbers_of(r, k) : 0;
    }
    room[MPSIM_BETWEEN_ARRAYS] = codes ? next : NULL;
    return all;
}

static void run_piece(size_t piece, void *job)
{
    run *const r = job;
    const size_t begin = piece * r->piece, left = r->things - begin, end = begin + (left < r->piece ? left : r->piece);
    float *room[MPSIM_BETWEEN_ARRAYS + 1] = {NULL};
    float *const all = memory(r, room);
    mpsim_status s = all ? MPSIM_OK : MPSIM_ENOMEM;
    for (size_t i = begin; s == MPSIM_OK && i < end; i += r->step)
        s = part(r, piece, i, end - i < r->step ? end - i : r->step, room);
    free(all);
    r->status[piece] = s;
}

/* ---- how much is a part, a piece ---- */

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static void cut(run *r)
{
    const size_t across = at_least_one(by_columns(r) ? r->shape.rows : r->shape.cols);
    r->things = by_columns(r) ? r->shape.cols : r->shape.rows;
    r->step = at_least_one((!by_columns(r) ? ELEMENTS : r->turned ? SOME : TALL) / across);
    if (r->turned && r->step < ABREAST)
        r->step = at_least_one(TALL / across < ABREAST ? TALL / across : ABREAST);
    const size_t units = (by_columns(r) || r->turned) && r->step >= ABREAST ? ABREAST : 1;
    const size_t worth = at_least_one(SMALLEST / across), share = at_least_one((r->things + PIECES - 1) / PIECES);
    r->piece = ((worth > share ? worth : share) + units - 1) / units * units;
    r->step -= r->step > units ? r->step % units : 0;
}

static mpsim_status work(run *r, uint64_t *found, const mpsim_pool *pool)
{
    cut(r);
    const int alone = !pool || r->piece >= r->things;
    if (alone)
        r->piece = r->things;
    r->step = r->step < r->piece ? r->step : r->piece;
    const size_t pieces = (r->things + r->piece - 1) / r->piece;
    if (alone)
        run_piece(0, r);
    else
        pool->run(pool->self, pieces, run_piece, r);
    uint64_t sum[2] = {0, 0};
    for (size_t i = 0; i < pieces; i++) {
        if (r->status[i] != MPSIM_OK)
            return r->status[i];
        sum[0] += r->found[i][0];
        sum[1] += r->found[i][1];
    }
    if (found)
        memcpy(found, sum, sizeof sum);
    return MPSIM_OK;
}

/* ---- checks ---- */

/* Formats of arrays, and of the arithmetic. */
static mpsim_status check_arrays(const mpsim_between *o, const mpsim_layer_row *kind, const mpsim_strided *arrays,
                                 int any)
{
    mpsim_math m, f;
    mpsim_status s = mpsim_layer_begin(&m, o->math, &f, o->f, 0, NULL, 0);
    for (size_t k = 0; s == MPSIM_OK && k < kind->n; k++) {
        const uint8_t may = MPSIM_USE_OPTIONAL | MPSIM_USE_ONES | MPSIM_USE_ZEROS | MPSIM_USE_ROOM;
        if (!arrays[k].data && any && !(kind->arrays[k].how & may))
            s = MPSIM_EINVAL;
        else if (arrays[k].data && kind->arrays[k].use != MPSIM_USE_MASK)
            s = mpsim_math_init(&f, arrays[k].format);
    }
    return s;
}

/* Whether memory can hold an array that takes part so. */
static int is_held(const mpsim_between *o, const mpsim_strided *a, mpsim_layer_use use)
{
    const size_t last = o->dims - 1u, cols = o->shape[last];
    const size_t bytes = use == MPSIM_USE_MASK ? 1 : a->format ? mpsim_format_code_bytes(a->format) : sizeof(float);
    size_t shape[MPSIM_BETWEEN_DIMS];
    int64_t strides[MPSIM_BETWEEN_DIMS];
    if (use == MPSIM_USE_TABLE || use == MPSIM_USE_TAKEN)
        return mpsim_strides_fit(2, (const size_t[]){o->entries, cols},
                                 (const int64_t[]){a->stride[0], a->stride[last]}, bytes);
    for (size_t d = 0; d <= last; d++) {
        const int counts = use == MPSIM_USE_COLUMNS ? d == last : use != MPSIM_USE_SCALARS || d < last;
        shape[d] = counts ? o->shape[d] : 1;
        strides[d] = a->stride[d];
    }
    return mpsim_strides_fit(o->dims, shape, strides, bytes);
}

/* The shape, and every array. */
static int are_held(const mpsim_between *o, const mpsim_layer_row *kind, const mpsim_strided *arrays)
{
    const int64_t none[MPSIM_BETWEEN_DIMS] = {0};
    int all = mpsim_strides_fit(o->dims, o->shape, none, 1);
    for (size_t k = 0; all && k < kind->n; k++)
        all = !arrays[k].data || is_held(o, &arrays[k], (mpsim_layer_use)kind->arrays[k].use);
    return all;
}

/* What the functions would refuse, before anything is done; what depends on the shape they refuse at once. */
static mpsim_status check(const mpsim_between *o, const mpsim_strided *arrays, size_t n)
{
    const mpsim_layer_row *kind = o ? mpsim_layer_row_of(o->kind) : NULL;
    if (!kind || !arrays || n < kind->n || o->dims < 1 || o->dims > MPSIM_BETWEEN_DIMS)
        return MPSIM_EINVAL;
    const int swiglu = o->activation == MPSIM_SWIGLU;
    const int activates = o->kind == MPSIM_BETWEEN_ACTIVATE || o->kind == MPSIM_BETWEEN_ACTIVATE_BACKWARD;
    if (activates && (!swiglu != !arrays[o->kind == MPSIM_BETWEEN_ACTIVATE ? 1 : 2].data))
        return MPSIM_EINVAL;
    if (o->kind == MPSIM_BETWEEN_ACTIVATE_BACKWARD && !swiglu != !arrays[4].data)
        return MPSIM_EINVAL;
    if (o->norm > MPSIM_NORM_RMS || o->activation > MPSIM_EXP || !(o->p >= 0 && o->p <= 1))
        return MPSIM_EINVAL;
    const int tables = o->kind == MPSIM_BETWEEN_EMBED || o->kind == MPSIM_BETWEEN_EMBED_BACKWARD;
    if ((o->kind == MPSIM_BETWEEN_PERIOD_SUMS && o->entries == 0) || (tables && o->entries > UINT32_MAX))
        return MPSIM_EINVAL;
    if (o->kind == MPSIM_BETWEEN_BATCHNORM && !arrays[6].data != !arrays[7].data)
        return MPSIM_EINVAL;
    size_t any = 1;
    for (size_t d = 0; d < o->dims; d++)
        any = any && o->shape[d];
    if ((o->kind == MPSIM_BETWEEN_ROWNORM_BACKWARD || o->kind == MPSIM_BETWEEN_ROWNORM_GRADIENTS) && any &&
        o->norm == MPSIM_NORM_LAYER && !arrays[2].data)
        return MPSIM_EINVAL;
    const mpsim_status s = check_arrays(o, kind, arrays, (int)any);
    return s == MPSIM_OK && !are_held(o, kind, arrays) ? MPSIM_EINVAL : s;
}

/* The index in 32 bits; what is ignored as MPSIM_BETWEEN_IGNORED. */
static mpsim_status take_index(run *r)
{
    const mpsim_between *o = r->o;
    const size_t entries = o->kind == MPSIM_BETWEEN_CROSS_ENTROPY ? r->shape.cols : o->entries;
    if (!o->index || entries >= UINT32_MAX)
        return MPSIM_EINVAL;
    r->index = malloc(r->shape.rows * sizeof *r->index);
    if (!r->index)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < r->shape.rows; i++) {
        const int64_t v = o->index[i];
        const int ignored = o->ignores && v == o->ignored && o->kind != MPSIM_BETWEEN_EMBED;
        if (!ignored && (v < 0 || (uint64_t)v >= entries))
            return MPSIM_EINVAL;
        r->index[i] = ignored ? (uint32_t)MPSIM_BETWEEN_IGNORED : (uint32_t)v;
    }
    return MPSIM_OK;
}

/* ---- the call ---- */

/* Elements of arrays without gaps: rows of one. */
static void flatten(run *r)
{
    int all = r->kind->cut == MPSIM_CUT_ELEMENTS;
    for (size_t k = 0; k < r->kind->n; k++)
        all = all && (!r->arrays[k].data || r->dense[k]);
    if (!all)
        return;
    r->flat[0] = r->shape.rows * r->shape.cols;
    r->flat[1] = 1;
    r->shape = (mpsim_layer_shape){.dims = 2, .rows = r->flat[0], .cols = 1, .shape = r->flat};
}

static void look(run *r)
{
    const mpsim_between *o = r->o;
    r->shape = (mpsim_layer_shape){.dims = o->dims, .rows = 1, .cols = o->shape[o->dims - 1], .shape = o->shape};
    for (size_t d = 0; d + 1 < o->dims; d++)
        r->shape.rows *= o->shape[d];
    for (size_t k = 0; k < r->kind->n; k++) {
        const mpsim_strided *a = &r->arrays[k];
        r->dense[k] = a->data && r->kind->arrays[k].use == MPSIM_USE_ROWS && mpsim_strided_dense(a, &r->shape);
        r->turned |= a->data && r->kind->arrays[k].use == MPSIM_USE_ROWS && !r->dense[k] &&
                     mpsim_strided_turned(row_stride(r, a), last_stride(r, a));
        r->plain[k] = r->dense[k] && mpsim_strided_plain(a) && (uintptr_t)a->data % SCALAR_ALIGNMENT == 0;
    }
    flatten(r);
}

/* Results of a table or of columns are there even without rows. */
static int is_empty(const run *r)
{
    return r->shape.cols == 0 || (r->shape.rows == 0 && !by_columns(r));
}

/* Whether results of the whole shape are stored in the format that they are to be rounded to: one rounding does then. */
static int stores_as(const mpsim_between *o, const mpsim_layer_row *kind, const mpsim_strided *arrays)
{
    int found = 0, same = 1;
    for (size_t k = 0; k < kind->n; k++)
        if (kind->arrays[k].how & MPSIM_USE_OUT && kind->arrays[k].use == MPSIM_USE_ROWS && arrays[k].data) {
            found = 1;
            same = same && arrays[k].format && mpsim_format_same(arrays[k].format, o->f);
        }
    return found && same;
}

mpsim_status mpsim_between_run(const mpsim_between *o, const mpsim_strided *arrays, size_t n, uint64_t *found,
                               const mpsim_pool *pool)
{
    mpsim_status s = mpsim_is_pool(pool) ? check(o, arrays, n) : MPSIM_EINVAL;
    if (s != MPSIM_OK)
        return s;
    const mpsim_layer_row *const kind = mpsim_layer_row_of(o->kind);
    mpsim_between own = *o;
    if (own.f && stores_as(o, kind, arrays))
        own.f = NULL;
    run r = {.o = &own, .kind = kind, .arrays = arrays};
    look(&r);
    if (found)
        found[0] = found[1] = 0;
    if (r.kind->indexed && r.shape.rows > 0)
        s = take_index(&r);
    if (s == MPSIM_OK && !is_empty(&r))
        s = work(&r, found, pool);
    free(r.index);
    return s;
}
