/* convolution_positions.c -- sums over images and positions, the gradients of weights: what positions read, a few columns
 * and a piece of the positions at a time. */
#include "convolution.h"

#include <stdlib.h>

enum {
    CHANNELS = 64, /* of a run                               */
    COLUMNS = 128, /* of a tile                              */
    ROWS = 256,    /* of a tile                              */
    LEAST_ROWS = 32
};

typedef struct work {
    const mpsim_convolving *v;
    mpsim_summing s;
    mpsim_operand x;           /* what windows are of    */
    unsigned char *lines;      /* of the other tensor: for each channel, all positions of all images */
    size_t n_lines, of_window; /* channels of a group: of lines, of windows */
    mpsim_window window;
    mpsim_run *runs;
    size_t n_runs, depth;
    size_t rows, runs_each, row_tiles, column_tiles;
} work;

/* ---- a tile ---- */

static size_t width_of(const mpsim_run *runs, size_t n)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        width += runs[i].n;
    return width;
}

static void place_runs(const work *w, mpsim_place *to, const mpsim_run *runs, size_t n)
{
    const mpsim_geometry *g = w->v->g;
    const ptrdiff_t *stride = w->v->result.stride;
    for (size_t i = 0; i < n; i++) {
        mpsim_place p = {0, 0, 0};
        for (size_t d = 0; d < MPSIM_DIMS; d++) {
            p.at += (ptrdiff_t)runs[i].tap[d] * stride[2 + d];
            p.number = p.number * g->kernel[d] + runs[i].tap[d];
        }
        for (size_t c = runs[i].channel; c < runs[i].channel + runs[i].n; c++)
            *to++ = (mpsim_place){p.at + (ptrdiff_t)c * stride[1], p.number + c * mpsim_product3(g->kernel), 0};
    }
}

static void place_lines(const work *w, mpsim_place *to, size_t first, size_t n)
{
    const uint64_t each = (uint64_t)w->of_window * mpsim_product3(w->v->g->kernel);
    for (size_t i = 0; i < n; i++)
        to[i] = (mpsim_place){(ptrdiff_t)(first + i) * w->v->result.stride[0], (first + i) * each, 0};
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
    const int transposed = w->v->g->transposed;
    const mpsim_format *of_lines = transposed ? w->s.b : w->s.a;
    const mpsim_matrix lines = {of_lines, t->lines + k * mpsim_format_code_bytes(of_lines), w->depth, transposed};
    const mpsim_matrix read = {w->x.format, t->read, t->width, transposed};
    mpsim_window_gather(&w->window, t->runs, t->n_runs, t->width, t->group * w->of_window, k, n, t->read);
    if (mpsim_convolving_is_random(w->v))
        return mpsim_sumtile_dots(&t->sums, transposed ? t->read : t->lines, transposed ? t->lines : t->read, n);
    return mpsim_sumtile_add(&t->sums, transposed ? &read : &lines, transposed ? &lines : &read, n, k == 0);
}

static size_t piece_of(const work *w)
{
    return w->s.piece && w->s.piece < w->depth && !mpsim_convolving_is_random(w->v) ? w->s.piece : w->depth;
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
    const int transposed = w->v->g->transposed;
    t->lines = w->lines + first * w->depth * mpsim_format_code_bytes(transposed ? w->s.b : w->s.a);
    t->read = (unsigned char *)malloc(piece_of(w) * t->width * w->window.bytes + 1);
    const int is_open = mpsim_sumtile_open(&t->sums, &w->s, transposed ? t->width : n, transposed ? n : t->width);
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
    const mpsim_geometry *g = w->v->g;
    const size_t *extent = g->transposed ? g->out : g->in, *positions = g->transposed ? g->in : g->out;
    w->window = (mpsim_window){.codes = w->x.codes,
                               .bytes = mpsim_format_code_bytes(w->x.format),
                               .image = w->x.stride[0],
                               .channel = w->x.stride[1]};
    w->depth = g->images * mpsim_product3(positions);
    for (size_t d = 0; d < MPSIM_DIMS; d++) {
        w->window.axis[d] = (mpsim_axis){.extent = extent[d],
                                         .positions = positions[d],
                                         .taps = g->kernel[d],
                                         .step = (ptrdiff_t)g->stride[d],
                                         .shift = -(ptrdiff_t)g->padding[d],
                                         .dilation = (ptrdiff_t)g->dilation[d]};
        w->window.stride[d] = w->x.stride[2 + d];
    }
}

static int put_lines(work *w, const mpsim_strided *x, size_t channels)
{
    const mpsim_geometry *g = w->v->g;
    const size_t *positions = g->transposed ? g->in : g->out;
    mpsim_axes axes = {.format = x->format, .codes = (const unsigned char *)x->codes, .rounded = x->rounded};
    mpsim_axes_add(&axes, channels, x->stride[1]);
    mpsim_axes_add(&axes, g->images, x->stride[0]);
    for (size_t d = 0; d < MPSIM_DIMS; d++)
        mpsim_axes_add(&axes, positions[d], x->stride[2 + d]);
    w->lines = (unsigned char *)malloc(mpsim_axes_count(&axes) * mpsim_format_code_bytes(mpsim_axes_format(&axes)) + 1);
    if (w->lines)
        mpsim_axes_put(&axes, w->lines, w->v->how->pool);
    return w->lines != NULL;
}

static int set_runs(work *w)
{
    const int random = mpsim_convolving_is_random(w->v);
    const mpsim_turns turns = {w->of_window, random || w->x.stride[1] != 1 ? 1 : CHANNELS, 0};
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
    mpsim_tasks t = {w->v->g->groups * w->column_tiles * w->row_tiles, task, w, NULL};
    return mpsim_tasks_run(&t, w->v->how->pool);
}

mpsim_status mpsim_convolve_positions(const mpsim_convolving *v)
{
    const mpsim_geometry *g = v->g;
    const int transposed = g->transposed;
    work w = {.v = v,
              .n_lines = (transposed ? g->channels : g->outputs) / g->groups,
              .of_window = (transposed ? g->outputs : g->channels) / g->groups};
    if (w.n_lines == 0 || w.of_window == 0 || mpsim_product3(g->kernel) == 0)
        return MPSIM_OK;
    mpsim_summing_init(&w.s, v->how, mpsim_operand_format(&v->first), mpsim_operand_format(&v->second), &v->result);
    const mpsim_strided *seen = transposed ? &v->first : &v->second, *other = transposed ? &v->second : &v->first;
    mpsim_status s = mpsim_operand_open(&w.x, seen, g->images, g->groups * w.of_window, transposed ? g->out : g->in,
                                        w.of_window == 1, v->how->pool) &&
                             put_lines(&w, other, g->groups * w.n_lines)
                         ? MPSIM_OK
                         : MPSIM_ENOMEM;
    if (s == MPSIM_OK) {
        set_window(&w);
        s = add_all(&w);
    }
    free(w.x.own);
    free(w.lines);
    free(w.runs);
    return s;
}
