/* convolution_positions.c -- sums over images and positions, the gradients of weights: what positions read, a few columns
 * and a piece of the positions at a time. */
#include "convolution.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHANNELS = 64, /* of a run                               */
    COLUMNS = 128, /* of a tile                              */
    ROWS = 256,    /* of a tile                              */
    LEAST_ROWS = 32
};

typedef struct work {
    mpsim_convolving *v;
    mpsim_factor *seen, *other; /* what windows are of, the other tensor */
    int transposed;
    unsigned char *lines;      /* of the other: for each channel, all positions of all images */
    size_t columns;            /* of a row of positions, with what fills it                   */
    size_t n_lines, of_window; /* channels of a group: of lines, of windows */
    mpsim_window window;
    mpsim_run *runs;
    size_t n_runs, depth;
    size_t rows, runs_each, row_tiles, column_tiles;
} work;

static const mpsim_format *format_of(const mpsim_factor *f)
{
    return f->rounds ? &f->rounded.format : f->x.format;
}

/* ---- a tile ---- */

static size_t width_of(const mpsim_run *runs, size_t n)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        width += runs[i].n;
    return width;
}

static void place_runs(const work *w, mpsim_spot *to, const mpsim_run *runs, size_t n)
{
    const mpsim_convolving *g = w->v;
    const int64_t *stride = w->v->d.stride;
    for (size_t i = 0; i < n; i++) {
        mpsim_spot p = {0, 0, 0};
        for (size_t d = 0; d < MPSIM_DIMS; d++) {
            p.at += (int64_t)runs[i].tap[d] * stride[2 + d];
            p.number = p.number * g->kernel[d] + runs[i].tap[d];
        }
        for (size_t c = runs[i].channel; c < runs[i].channel + runs[i].n; c++)
            *to++ = (mpsim_spot){p.at + (int64_t)c * stride[1], p.number + c * mpsim_product3(g->kernel), 0};
    }
}

static void place_lines(const work *w, mpsim_spot *to, size_t first, size_t n)
{
    const uint64_t each = (uint64_t)w->of_window * mpsim_product3(w->v->kernel);
    for (size_t i = 0; i < n; i++)
        to[i] = (mpsim_spot){(int64_t)(first + i) * w->v->d.stride[0], (first + i) * each, 0};
}

typedef struct tile {
    const work *w;
    const mpsim_run *runs;
    size_t n_runs, width, group;
    const unsigned char *lines;
    unsigned char *read; /* what some positions read */
    mpsim_sumtile sums;
} tile;

/* Positions k to k + n - 1. */
static mpsim_status add_piece(tile *t, size_t k, size_t n)
{
    const work *w = t->w;
    const int transposed = w->transposed;
    const mpsim_format *of_lines = format_of(w->other);
    const mpsim_matrix lines = {of_lines, t->lines + k * mpsim_format_code_bytes(of_lines), w->depth, transposed};
    const mpsim_matrix read = {format_of(w->seen), t->read, t->width, transposed};
    mpsim_window_gather(&w->window, t->runs, t->n_runs, t->width, t->group * w->of_window, k, n, t->read);
    if (mpsim_convolving_is_random(w->v))
        return mpsim_sumtile_dots(&t->sums, transposed ? t->read : t->lines, transposed ? t->lines : t->read, n);
    return mpsim_sumtile_add(&t->sums, transposed ? &read : &lines, transposed ? &lines : &read, n, k == 0);
}

static size_t piece_of(const work *w)
{
    return w->v->s.piece && w->v->s.piece < w->depth && !mpsim_convolving_is_random(w->v) ? w->v->s.piece : w->depth;
}

static mpsim_status add_up(tile *t)
{
    const size_t depth = t->w->depth, piece = piece_of(t->w);
    mpsim_status s = MPSIM_OK;
    size_t k = 0;
    do {
        const size_t n = depth - k < piece ? depth - k : piece;
        s = add_piece(t, k, n);
        k += n;
    } while (s == MPSIM_OK && k < depth);
    return s;
}

/* Lines from `first` on, all of the group. */
static mpsim_status do_tile(tile *t, size_t first, size_t n)
{
    const work *w = t->w;
    const int transposed = w->transposed;
    t->lines = w->lines + first * w->depth * mpsim_format_code_bytes(format_of(w->other));
    t->read = (unsigned char *)malloc(piece_of(w) * t->width * w->window.bytes + 1);
    const int is_open = mpsim_sumtile_open(&t->sums, &w->v->s, transposed ? t->width : n, transposed ? n : t->width);
    mpsim_status s = t->read && is_open ? MPSIM_OK : MPSIM_ENOMEM;
    if (s == MPSIM_OK) {
        place_runs(w, transposed ? t->sums.row : t->sums.column, t->runs, t->n_runs);
        place_lines(w, transposed ? t->sums.column : t->sums.row, first, n);
        s = add_up(t);
    }
    if (s == MPSIM_OK)
        mpsim_sumtile_store(&t->sums);
    mpsim_sumtile_close(&t->sums);
    free(t->read);
    return s;
}

static mpsim_status task(void *context, size_t i)
{
    const work *w = (const work *)context;
    const size_t run = i % w->column_tiles * w->runs_each, row = i / w->column_tiles % w->row_tiles * w->rows;
    tile t = {.w = w, .runs = w->runs + run, .group = i / w->column_tiles / w->row_tiles};
    t.n_runs = w->n_runs - run < w->runs_each ? w->n_runs - run : w->runs_each;
    t.width = width_of(t.runs, t.n_runs);
    return do_tile(&t, t.group * w->n_lines + row, w->n_lines - row < w->rows ? w->n_lines - row : w->rows);
}

/* ---- all ---- */

static void set_window(work *w)
{
    const mpsim_convolving *v = w->v;
    const mpsim_tensor *x = &w->seen->x;
    const size_t *positions = w->other->x.size + 2;
    w->window = (mpsim_window){.codes = x->codes,
                               .bytes = mpsim_format_code_bytes(format_of(w->seen)),
                               .image = (ptrdiff_t)x->stride[0],
                               .channel = (ptrdiff_t)x->stride[1]};
    w->window.columns = positions[2];
    w->depth = v->images * positions[0] * positions[1] * w->columns;
    for (size_t d = 0; d < MPSIM_DIMS; d++) {
        w->window.axis[d] = (mpsim_axis){.extent = x->size[2 + d],
                                         .positions = d == 2 ? w->columns : positions[d],
                                         .taps = v->kernel[d],
                                         .step = (ptrdiff_t)v->stride[d],
                                         .shift = -(ptrdiff_t)v->padding[d],
                                         .dilation = (ptrdiff_t)v->dilation[d]};
        w->window.stride[d] = (ptrdiff_t)x->stride[2 + d];
    }
}

/* Rows of n codes become rows of `columns`; +0 behind them. */
static void widen_rows(unsigned char *rows, size_t count, size_t n, size_t columns, size_t bytes)
{
    for (size_t i = n < columns ? count : 0; i-- > 0;) {
        unsigned char *to = rows + i * columns * bytes;
        memmove(to, rows + i * n * bytes, n * bytes);
        memset(to + n * bytes, 0, (columns - n) * bytes);
    }
}

static int put_lines(work *w)
{
    static const uint8_t turns[MPSIM_TENSOR] = {1, 0, 2, 3, 4};
    const mpsim_tensor *x = &w->other->x;
    const size_t n = x->size[4], rows = x->size[0] * x->size[1] * x->size[2] * x->size[3];
    mpsim_axes axes = mpsim_factor_axes(w->other);
    for (size_t i = 0; i < MPSIM_TENSOR; i++)
        mpsim_axes_add(&axes, x->size[turns[i]], (ptrdiff_t)x->stride[turns[i]]);
    const size_t bytes = mpsim_format_code_bytes(mpsim_axes_format(&axes));
    if ((double)rows * (double)w->columns * (double)bytes < (double)(SIZE_MAX / 2))
        w->lines = (unsigned char *)malloc(rows * w->columns * bytes + 1);
    if (!w->lines)
        return 0;
    mpsim_axes_put(&axes, w->lines, w->v->pool);
    widen_rows(w->lines, rows, n, w->columns, bytes);
    return 1;
}

static int set_runs(work *w)
{
    const int random = mpsim_convolving_is_random(w->v);
    const mpsim_turns turns = {w->of_window, random || w->window.channel != 1 ? 1 : CHANNELS, 0};
    w->n_runs = mpsim_window_count_runs(&w->window, &turns);
    w->runs = (mpsim_run *)malloc((w->n_runs + 1) * sizeof *w->runs);
    if (w->runs)
        mpsim_window_runs(&w->window, &turns, w->runs);
    const size_t longest = turns.block < w->of_window ? turns.block : w->of_window;
    w->runs_each = random ? 1 : (COLUMNS - 1) / longest + 1;
    return w->runs != NULL;
}

static mpsim_status add_all(work *w)
{
    if (!set_runs(w))
        return MPSIM_ENOMEM;
    w->column_tiles = (w->n_runs - 1) / w->runs_each + 1;
    w->rows = mpsim_tile_side(w->n_lines, ROWS, LEAST_ROWS, w->v->threads > 1 ? w->v->threads : 0);
    w->row_tiles = (w->n_lines - 1) / w->rows + 1;
    return mpsim_tasks_run(w->v->c->groups * w->column_tiles * w->row_tiles, task, w, w->v->pool);
}

mpsim_status mpsim_convolve_positions(mpsim_convolving *v)
{
    const int transposed = v->c->transposed;
    const size_t groups = v->c->groups;
    work w = {
        .v = v, .transposed = transposed, .seen = transposed ? &v->a : &v->b, .other = transposed ? &v->b : &v->a};
    w.n_lines = w.other->x.size[1] / groups;
    w.of_window = w.seen->x.size[1] / groups;
    w.columns = (w.other->x.size[4] + v->c->row_multiple - 1) / v->c->row_multiple * v->c->row_multiple;
    if (w.n_lines == 0 || w.of_window == 0 || mpsim_product3(v->kernel) == 0)
        return MPSIM_OK;
    mpsim_status s = MPSIM_ENOMEM;
    if (mpsim_factor_open(w.seen, w.of_window == 1, v->pool) && put_lines(&w)) {
        set_window(&w);
        s = add_all(&w);
    }
    free(w.lines);
    free(w.runs);
    return s;
}
