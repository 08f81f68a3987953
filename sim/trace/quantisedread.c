/* quantisedread.c -- elements of tensors that are codes and scales: see quantised.h.
 *
 * What is asked for is cut into rectangles of the matrix, runs of elements of one row or whole rows; the codes of one are
 * one read (one for each column where the file has the matrix transposed), its scales one too where they lie close
 * together, else the rectangle's grid is halved until they do. Memory is that of a rectangle for each caller. */
#include "packed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 32 << 10, SPAN = 128 << 10 }; /* elements of a rectangle; bytes of a read */

typedef struct rectangle {
    uint64_t row, col, rows, cols;
} rectangle;

typedef struct reader {
    const trace *t;
    trace_error *error;
    const quantised *q;
    quant_geometry g;
    uint64_t tensors;  /* scales of tensors: one for each so many rows */
    float values[256]; /* of the codes                               */
    float scales[256]; /* of the codes of scales of 8 bits           */
    unsigned char codes[CHUNK + 8];
    float factors[CHUNK];
    _Alignas(16) unsigned char bytes[SPAN]; /* as they are stored */
} reader;

/* Of the tensor that an entry is. */
static void geometry_of(const trace_entry *e, quant_geometry *g)
{
    const quantised *q = (const quantised *)(const void *)e->tensor.quantised;
    char why[256];
    if (quant_geometry_of(g, q->form, e->tensor.rank, e->tensor.shape, q->block_rows, q->block_cols, q->swizzled, why,
                          sizeof why))
        memset(g, 0, sizeof *g); /* it was found with these sizes: this cannot be */
}

static const trace_entry *part(const reader *r, quant_part p)
{
    const uint32_t at = r->q->parts[p];
    return at == QUANTISED_ABSENT ? NULL : &r->t->entries[at];
}

static reader *begin(const trace *t, const trace_entry *e, trace_error *error)
{
    reader *r = malloc(sizeof *r);
    if (!r) {
        trace_no_memory(t, error);
        return NULL;
    }
    r->t = t;
    r->error = error;
    r->q = (const quantised *)(const void *)e->tensor.quantised;
    geometry_of(e, &r->g);
    for (unsigned code = 0; code < 256; code++) {
        r->values[code] = (float)mpsim_decode(r->q->said.element, code);
        r->scales[code] = (float)mpsim_decode(r->q->said.scale, code);
    }
    const trace_entry *tensor = part(r, QUANT_TENSOR_SCALE);
    r->tensors = tensor ? tensor->tensor.count : 0;
    return r;
}

/* ---- scales ---- */

/* Part of the grid. */
typedef struct box {
    uint64_t i, j, rows, cols;
} box;

/* What the stored scale at `bytes` is. */
static float scale_at(const reader *r, const unsigned char *bytes, size_t width)
{
    double value = 0;
    if (width == 1)
        return r->scales[*bytes];
    mpsim_decode_array(r->q->said.scale, &value, bytes, 1);
    return (float)value;
}

/* The scales of a box whose grid's rows are `step` floats apart in `to`. */
static int fetch_scales(reader *r, box b, float *to, size_t step)
{
    const trace_entry *e = part(r, QUANT_SCALES);
    const size_t width = mpsim_format_code_bytes(r->q->said.scale);
    uint64_t low = UINT64_MAX, high = 0;
    for (uint64_t i = b.i; i < b.i + b.rows; i++)
        for (uint64_t j = b.j; j < b.j + b.cols; j++) {
            const uint64_t at = quant_scale_at(&r->g, i, j);
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
    if (high - low >= SPAN / width) {
        box first = b, second = b;
        if (b.rows > 1) {
            first.rows = b.rows / 2;
            second.i += first.rows;
            second.rows -= first.rows;
        } else {
            first.cols = b.cols / 2;
            second.j += first.cols;
            second.cols -= first.cols;
        }
        return fetch_scales(r, first, to, step) ||
                       fetch_scales(r, second, to + (second.i - b.i) * step + (second.j - b.j), step)
                   ? -1
                   : 0;
    }
    if (trace_stored(r->t, e, low, r->bytes, (size_t)(high - low + 1), r->error))
        return -1;
    for (uint64_t i = 0; i < b.rows; i++)
        for (uint64_t j = 0; j < b.cols; j++)
            to[i * step + j] = scale_at(r, r->bytes + (quant_scale_at(&r->g, b.i + i, b.j + j) - low) * width, width);
    return 0;
}

/* The scale of the tensor, or of the matrix that a row is of; 1 where there is none. */
static int tensor_scale(const reader *r, uint64_t row, float *scale)
{
    const trace_entry *e = part(r, QUANT_TENSOR_SCALE);
    *scale = 1;
    if (!e)
        return 0;
    const uint64_t at = r->tensors > 1 ? row / (r->g.rows / r->tensors) : 0;
    if (trace_stored(r->t, e, at, scale, 1, r->error))
        return -1;
    if (isfinite(*scale) && *scale >= 0 && (*scale > 0 || r->q->form->tensor_scale != QUANT_DIVIDE))
        return 0;
    return trace_fail(r->t, r->error, TRACE_NO_OFFSET, "the scale of a whole tensor, '%s', is %g", e->tensor.name,
                      (double)*scale);
}

/* What the codes of a rectangle are multiplied by, block by block. */
static int fetch_factors(reader *r, const rectangle *a, box *b)
{
    const quant_geometry *g = &r->g;
    uint64_t known = UINT64_MAX;
    float whole = 1;
    b->i = a->row / g->block_rows;
    b->j = a->col / g->block_cols;
    b->rows = (a->row + a->rows - 1) / g->block_rows - b->i + 1;
    b->cols = (a->col + a->cols - 1) / g->block_cols - b->j + 1;
    if (fetch_scales(r, *b, r->factors, (size_t)b->cols))
        return -1;
    for (uint64_t i = 0; i < b->rows; i++) {
        const uint64_t row = (b->i + i) * g->block_rows, of = r->tensors > 1 ? row / (g->rows / r->tensors) : 0;
        if (of != known && tensor_scale(r, row, &whole))
            return -1;
        known = of;
        for (uint64_t j = 0; j < b->cols; j++)
            r->factors[i * b->cols + j] = quant_factor(r->q->form, r->factors[i * b->cols + j], whole);
    }
    return 0;
}

/* ---- codes ---- */

/* n codes of a stored line from `from` on; `bytes` begins with the byte that the first of them begins in, or with that
 * of the group that it is of. */
static void unpack(const reader *r, unsigned char *codes, const unsigned char *bytes, size_t skip, size_t n)
{
    unsigned char group[4];
    const size_t each = 4, left = skip ? each - skip : 0, first = n < left ? n : left;
    if (first) { /* of a group that begins earlier */
        quant_unpack(r->q->form->packing, group, bytes, skip + first);
        memcpy(codes, group + skip, first);
        bytes += quant_packed(r->q->form->packing, each);
    }
    quant_unpack(r->q->form->packing, codes + first, bytes, n - first);
}

/* Whether the file's reader has unpacked the codes already: they are numbers of a format, as in F4 of safetensors. */
static int is_unpacked(const reader *r)
{
    return r->q->form->packing != QUANT_BYTES && part(r, QUANT_CODES)->tensor.format;
}

/* Codes [first, first + n) of stored line `line`, through r->bytes. */
static int fetch_run(reader *r, uint64_t line, uint64_t first, size_t n, unsigned char *codes)
{
    const quant_packing p = r->q->form->packing;
    if (is_unpacked(r))
        return trace_stored(r->t, part(r, QUANT_CODES), line * r->g.line_codes + first, codes, n, r->error);
    const size_t skip = p == QUANT_BYTES ? 0 : first % 4;
    const uint64_t at = line * r->g.line_bytes + quant_packed(p, first - skip);
    if (trace_stored(r->t, part(r, QUANT_CODES), at, r->bytes, (size_t)quant_packed(p, skip + n), r->error))
        return -1;
    unpack(r, codes, r->bytes, skip, n);
    return 0;
}

/* Whole stored lines, through r->bytes, which they fit. */
static int fetch_lines(reader *r, uint64_t line, size_t n, unsigned char *codes)
{
    const size_t bytes = (size_t)r->g.line_bytes, each = (size_t)r->g.line_codes;
    if (is_unpacked(r))
        return trace_stored(r->t, part(r, QUANT_CODES), line * each, codes, n * each, r->error);
    if (trace_stored(r->t, part(r, QUANT_CODES), line * bytes, r->bytes, n * bytes, r->error))
        return -1;
    for (size_t i = 0; i < n; i++)
        quant_unpack(r->q->form->packing, codes + i * each, r->bytes + i * bytes, each);
    return 0;
}

/* A rectangle of a matrix whose columns are stored as lines. */
static int fetch_transposed(reader *r, const rectangle *a)
{
    unsigned char line[CHUNK + 8];
    for (uint64_t j = 0; j < a->cols; j++) {
        if (fetch_run(r, a->col + j, a->row, (size_t)a->rows, line))
            return -1;
        for (uint64_t i = 0; i < a->rows; i++)
            r->codes[i * a->cols + j] = line[i];
    }
    return 0;
}

static int fetch_codes(reader *r, const rectangle *a)
{
    if (r->q->form->code_shape == QUANT_TRANSPOSED)
        return fetch_transposed(r, a);
    return a->rows == 1 ? fetch_run(r, a->row, a->col, (size_t)a->cols, r->codes)
                        : fetch_lines(r, a->row, (size_t)a->rows, r->codes);
}

/* ---- values ---- */

/* n codes times a factor, rounded once; a NaN has one code whatever made it. */
static void multiply(const reader *r, float *values, const unsigned char *codes, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float value = r->values[codes[i]] * factor;
        values[i] = value == value ? value : NAN;
    }
}

static int read_rectangle(reader *r, const rectangle *a, float *values)
{
    box b;
    if (fetch_factors(r, a, &b) || fetch_codes(r, a))
        return -1;
    const uint64_t block = r->g.block_cols;
    for (uint64_t i = 0; i < a->rows; i++) {
        const float *factor = r->factors + ((a->row + i) / r->g.block_rows - b.i) * b.cols;
        for (uint64_t j = 0; j < a->cols;) {
            const uint64_t left = block - (a->col + j) % block, n = left < a->cols - j ? left : a->cols - j;
            multiply(r, values + i * a->cols + j, r->codes + i * a->cols + j, *factor++, (size_t)n);
            j += n;
        }
    }
    return 0;
}

int trace_quantised_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n,
                          trace_error *error)
{
    if (n == 0)
        return 0;
    if (((const quantised *)(const void *)e->tensor.quantised)->packed)
        return trace_packed_read(t, e, first, codes, n, error);
    reader *r = begin(t, e, error);
    int failed = !r;
    while (n && !failed) {
        const uint64_t cols = r->g.cols;
        rectangle a = {.row = first / cols, .col = first % cols, .rows = 1};
        const uint64_t room = n < CHUNK ? n : CHUNK;
        if (a.col == 0 && room >= cols) {
            a.rows = room / cols;
            a.cols = cols;
        } else {
            a.cols = room < cols - a.col ? room : cols - a.col;
        }
        failed = read_rectangle(r, &a, codes);
        const size_t done = (size_t)(a.rows * a.cols);
        codes = (float *)codes + done;
        first += done;
        n -= done;
    }
    free(r);
    return failed ? -1 : 0;
}

/* ---- what scales are ---- */

static void add_scale(trace_scale_stats *s, const mpsim_format *f, double value)
{
    const int finite = isfinite(value) != 0;
    s->count++;
    s->nonfinite += !finite;
    s->zeros += value == 0;
    s->negative += value < 0;
    if (f->bits <= 8) {
        s->least_codes += value >= 0 && value <= mpsim_format_min_positive(f);
        s->largest_codes += value == mpsim_format_max(f);
    }
    if (value > 0 && finite) {
        s->least = s->least == 0 || value < s->least ? value : s->least;
        s->largest = value > s->largest ? value : s->largest;
    }
}

int trace_scales(const trace *t, size_t i, trace_scale_stats *stats, trace_error *error)
{
    const trace_entry *e = i < t->count ? &t->entries[i] : NULL;
    memset(stats, 0, sizeof *stats);
    if (e && e->tensor.quantised && !e->tensor.quantised->scale)
        return 0;
    if (!e || !e->tensor.quantised)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor %zu has no scales", i);
    reader *r = e->tensor.count ? begin(t, e, error) : NULL;
    int failed = e->tensor.count && !r;
    box b = {.rows = 1};
    while (r && !failed && b.i < r->g.grid_rows) {
        const uint64_t left = r->g.grid_cols - b.j, below = r->g.grid_rows - b.i;
        b.cols = left < CHUNK ? left : CHUNK;
        b.rows = b.j || left > CHUNK ? 1 : CHUNK / left < below ? CHUNK / left : below;
        failed = fetch_scales(r, b, r->factors, (size_t)b.cols);
        for (size_t k = 0; k < b.rows * b.cols && !failed; k++)
            add_scale(stats, r->q->said.scale, (double)r->factors[k]);
        b.j = b.cols < left ? b.j + b.cols : 0;
        b.i += b.j ? 0 : b.rows;
    }
    free(r);
    return failed ? -1 : 0;
}
