/* convolution_taps.c -- sums over taps and channels: lines of weights by what positions read, a tile of positions and
 * channels of the result after the other. */
#include "convolution.h"

#include "panel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = MPSIM_CONVOLUTION_BLOCK,
    NARROW = 8,         /* channels for fewer of which positions are the columns of a product */
    GATHERED = 1 << 19, /* bytes that a tile's positions read, but for one of a few           */
    FEWEST = 32,        /* positions of a tile                                               */
    MOST_ROWS = 4096,
    MOST_COLUMNS = 512,
    LEAST_COLUMNS = 64
};

/* ---- phases: positions of a dimension that meet the same taps ---- */

typedef struct phase {
    mpsim_axis axis;
    size_t first, next;      /* of its positions in the result */
    ptrdiff_t tap, tap_next; /* of its taps in the weight      */
} phase;

static size_t count_phases(const mpsim_convolving *g, size_t d, int turned)
{
    return !turned ? 1 : g->stride[d] < g->out[d] ? g->stride[d] : g->out[d];
}

static size_t divisor(size_t a, size_t b)
{
    for (size_t rest; b; a = b, b = rest)
        rest = a % b;
    return a;
}

/* Taps t with t dilation = at (modulo stride): the first, and how far they are apart. */
static size_t count_taps(const mpsim_convolving *g, size_t d, size_t at, size_t *first, size_t *apart)
{
    const size_t s = g->stride[d], n = g->kernel[d];
    *apart = s / divisor(s, g->dilation[d]);
    for (*first = 0; *first < n && *first < *apart; ++*first)
        if (*first * g->dilation[d] % s == at % s)
            return (n - 1 - *first) / *apart + 1;
    return 0;
}

/* Positions r, r + stride, ... */
static phase turned_phase(const mpsim_convolving *g, size_t d, size_t r)
{
    const ptrdiff_t s = (ptrdiff_t)g->stride[d], dilation = (ptrdiff_t)g->dilation[d];
    const size_t at = r + g->padding[d];
    size_t first, apart;
    phase p = {.first = r, .next = g->stride[d]};
    p.axis = (mpsim_axis){.extent = g->in[d], .positions = (g->out[d] - r - 1) / g->stride[d] + 1, .step = 1};
    p.axis.taps = count_taps(g, d, at, &first, &apart);
    if (p.axis.taps == 0)
        return p;
    const int as_read = g->c->taps == MPSIM_TAPS_AS_READ;
    p.tap = (ptrdiff_t)(as_read ? first + (p.axis.taps - 1) * apart : first);
    p.tap_next = as_read ? -(ptrdiff_t)apart : (ptrdiff_t)apart;
    p.axis.shift = ((ptrdiff_t)at - p.tap * dilation) / s;
    p.axis.dilation = -p.tap_next * dilation / s;
    return p;
}

static phase phase_of(const mpsim_convolving *g, size_t d, int turned, size_t r)
{
    if (turned)
        return turned_phase(g, d, r);
    return (phase){.next = 1,
                   .tap_next = 1,
                   .axis = {.extent = g->in[d],
                            .positions = g->out[d],
                            .taps = g->kernel[d],
                            .step = (ptrdiff_t)g->stride[d],
                            .shift = -(ptrdiff_t)g->padding[d],
                            .dilation = (ptrdiff_t)g->dilation[d]}};
}

/* ---- the sums of a phase ---- */

typedef struct work {
    mpsim_convolving *v;
    int turned, order;
    size_t sources, results; /* channels of a group */
    phase phase[MPSIM_DIMS];
    mpsim_window window;
    mpsim_run *runs;
    size_t n_runs, depth, positions;
    unsigned char *lines; /* of weights: for each channel of the result, as the sums go */
    int narrow;
    size_t rows, columns, row_tiles, column_tiles; /* of a tile; tiles of a group */
} work;

static int order_of(const mpsim_convolving *g, size_t sources)
{
    if (sources == 1)
        return MPSIM_CHANNELS_TAPS;
    return g->c->order == MPSIM_BLOCKS_TAPS_CHANNELS && sources <= BLOCK ? MPSIM_TAPS_CHANNELS : g->c->order;
}

static void add_taps(const work *w, mpsim_axes *x)
{
    for (size_t d = 0; d < MPSIM_DIMS; d++)
        mpsim_axes_add(x, w->phase[d].axis.taps, w->phase[d].tap_next * w->v->b.x.stride[2 + d]);
}

/* The axes of a line of weights: of `n` channels that are `stride` apart. */
static void add_line(const work *w, mpsim_axes *x, size_t n, ptrdiff_t stride)
{
    if (w->order == MPSIM_CHANNELS_TAPS)
        mpsim_axes_add(x, n, stride);
    if (w->order == MPSIM_BLOCKS_TAPS_CHANNELS)
        mpsim_axes_add(x, n < BLOCK ? 1 : n / BLOCK, BLOCK * stride);
    add_taps(w, x);
    if (w->order != MPSIM_CHANNELS_TAPS)
        mpsim_axes_add(x, w->order == MPSIM_BLOCKS_TAPS_CHANNELS && n > BLOCK ? BLOCK : n, stride);
}

static mpsim_axes weights_of(const work *w)
{
    mpsim_axes x = mpsim_factor_axes(&w->v->b);
    int64_t at = 0;
    for (size_t d = 0; d < MPSIM_DIMS; d++)
        at += w->phase[d].tap * w->v->b.x.stride[2 + d];
    x.codes += at * (int64_t)mpsim_format_code_bytes(x.format);
    return x;
}

/* Lines whose last block of channels is short: each of them in two parts. */
static void put_short_blocks(const work *w, mpsim_axes first, ptrdiff_t of_line, ptrdiff_t stride, size_t n,
                             unsigned char *to)
{
    const size_t whole = w->sources / BLOCK * BLOCK, taps = mpsim_window_taps(&w->window);
    const size_t bytes = mpsim_format_code_bytes(w->v->c->b->format);
    const ptrdiff_t each = (ptrdiff_t)mpsim_format_code_bytes(first.format);
    for (size_t i = 0; i < n; i++, first.codes += of_line * each, to += w->depth * bytes) {
        mpsim_axes a = first, b = first;
        b.codes += (ptrdiff_t)whole * stride * each;
        add_line(w, &a, whole, stride);
        add_line(w, &b, w->sources - whole, stride);
        mpsim_axes_put(&a, to, NULL);
        mpsim_axes_put(&b, to + whole * taps * bytes, NULL);
    }
}

static void put_lines(const work *w)
{
    const int64_t *stride = w->v->b.x.stride, group = (int64_t)w->sources * stride[0];
    const size_t groups = w->v->c->groups, bytes = mpsim_format_code_bytes(w->v->c->b->format);
    const ptrdiff_t of_line = stride[w->turned], of_channel = stride[!w->turned];
    mpsim_axes x = weights_of(w);
    if (w->order != MPSIM_BLOCKS_TAPS_CHANNELS || w->sources % BLOCK == 0) {
        if (w->turned)
            mpsim_axes_add(&x, groups, group);
        mpsim_axes_add(&x, w->turned ? w->results : groups * w->results, of_line);
        add_line(w, &x, w->sources, of_channel);
        mpsim_axes_put(&x, w->lines, w->v->pool);
        return;
    }
    const ptrdiff_t next = w->turned ? group : (ptrdiff_t)w->results * of_line;
    for (size_t i = 0; i < groups; i++, x.codes += next * (ptrdiff_t)mpsim_format_code_bytes(x.format))
        put_short_blocks(w, x, of_line, of_channel, w->results, w->lines + i * w->results * w->depth * bytes);
}

/* Whether a line of weights has no NaN: which of two NaNs a product gives is a matter of their order. */
static int has_numbers(const work *w)
{
    enum { SOME = 256 };
    const size_t n = w->v->c->groups * w->results * w->depth, bytes = mpsim_format_code_bytes(w->v->c->b->format);
    double values[SOME];
    for (size_t i = 0; i < n; i += SOME) {
        const size_t some = n - i < SOME ? n - i : SOME;
        mpsim_decode_array(w->v->c->b->format, values, w->lines + i * bytes, some);
        for (size_t j = 0; j < some; j++)
            if (isnan(values[j]))
                return 0;
    }
    return 1;
}

/* ---- a tile ---- */

static void place_positions(const work *w, mpsim_spot *to, size_t first, size_t n)
{
    const mpsim_convolving *g = w->v;
    const int64_t *stride = w->v->d.stride;
    for (size_t i = 0; i < n; i++) {
        size_t at = first + i, number = 0, q[MPSIM_DIMS];
        to[i] = (mpsim_spot){0, 0, 0};
        for (size_t d = MPSIM_DIMS; d-- > 0; at /= w->phase[d].axis.positions) {
            q[d] = w->phase[d].first + at % w->phase[d].axis.positions * w->phase[d].next;
            to[i].at += (int64_t)q[d] * stride[2 + d];
        }
        to[i].at += (int64_t)at * stride[0];
        for (size_t d = 0; d < MPSIM_DIMS; d++)
            number = number * g->out[d] + q[d];
        to[i].number = (uint64_t)at * g->outputs * mpsim_product3(g->out) + number;
    }
}

static void place_channels(const work *w, mpsim_spot *to, size_t first, size_t n)
{
    const mpsim_convolving *g = w->v;
    for (size_t i = 0; i < n; i++)
        to[i] = (mpsim_spot){(int64_t)(first + i) * w->v->d.stride[1], (uint64_t)(first + i) * mpsim_product3(g->out),
                             first + i};
}

/* The products of `rows` lines at x and `columns` lines of weights. */
static mpsim_status multiply(const work *w, mpsim_sumtile *t, const void *x, const void *lines)
{
    const mpsim_matrix positions = {w->v->c->a->format, x, w->depth, w->narrow};
    const mpsim_matrix weights = {w->v->c->b->format, lines, w->depth, !w->narrow};
    if (mpsim_convolving_is_random(w->v))
        return mpsim_sumtile_dots(t, x, lines, w->depth);
    return w->narrow ? mpsim_sumtile_whole(t, &weights, &positions, w->depth)
                     : mpsim_sumtile_whole(t, &positions, &weights, w->depth);
}

/* Positions first to first + n - 1, channels from `channel` on, of the group that they are of. */
static mpsim_status do_tile(const work *w, size_t first, size_t n, size_t channel, size_t channels)
{
    const size_t group = channel / w->results, bytes = w->window.bytes;
    unsigned char *x = (unsigned char *)malloc(n * w->depth * bytes + 1);
    mpsim_sumtile t;
    int is_open = mpsim_sumtile_open(&t, &w->v->s, w->narrow ? channels : n, w->narrow ? n : channels);
    mpsim_status s = x && is_open ? MPSIM_OK : MPSIM_ENOMEM;
    if (s == MPSIM_OK) {
        t.bias_by_row = w->narrow;
        place_positions(w, w->narrow ? t.column : t.row, first, n);
        place_channels(w, w->narrow ? t.row : t.column, channel, channels);
        mpsim_window_gather(&w->window, w->runs, w->n_runs, w->depth, group * w->sources, first, n, x);
        s = multiply(w, &t, x, w->lines + channel * w->depth * mpsim_format_code_bytes(w->v->c->b->format));
    }
    if (s == MPSIM_OK)
        mpsim_sumtile_store(&t);
    mpsim_sumtile_close(&t);
    free(x);
    return s;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static mpsim_status task(void *context, size_t i)
{
    const work *w = (const work *)context;
    const size_t row = i % w->row_tiles * w->rows, column = i / w->row_tiles % w->column_tiles * w->columns;
    const size_t group = i / w->row_tiles / w->column_tiles;
    return do_tile(w, row, least(w->rows, w->positions - row), group * w->results + column,
                   least(w->columns, w->results - column));
}

static void cut_tiles(work *w)
{
    const size_t line = (w->depth + 1) * w->window.bytes, fits = GATHERED / line, threads = w->v->threads;
    const size_t wanted = threads > 1 ? 3 * threads / w->v->c->groups + 1 : 0;
    w->columns = mpsim_tile_side(w->results, MOST_COLUMNS, LEAST_COLUMNS, threads > 1 ? threads : 0);
    w->column_tiles = (w->results - 1) / w->columns + 1;
    w->rows = mpsim_tile_side(w->positions, fits > FEWEST ? least(fits, MOST_ROWS) : FEWEST, FEWEST,
                              wanted ? wanted / w->column_tiles + 1 : 0);
    w->row_tiles = (w->positions - 1) / w->rows + 1;
}

/* ---- all ---- */

static void set_window(work *w)
{
    const mpsim_tensor *x = &w->v->a.x;
    w->window = (mpsim_window){.codes = x->codes,
                               .bytes = mpsim_format_code_bytes(w->v->c->a->format),
                               .image = (ptrdiff_t)x->stride[0],
                               .channel = (ptrdiff_t)x->stride[1]};
    w->positions = w->v->images;
    for (size_t d = 0; d < MPSIM_DIMS; d++) {
        w->window.axis[d] = w->phase[d].axis;
        w->window.stride[d] = (ptrdiff_t)x->stride[2 + d];
        w->positions *= w->phase[d].axis.positions;
    }
    w->depth = mpsim_window_taps(&w->window) * w->sources;
}

static mpsim_turns turns_of(const work *w)
{
    const size_t block = w->order == MPSIM_CHANNELS_TAPS ? 1 : w->order == MPSIM_TAPS_CHANNELS ? w->sources : BLOCK;
    return (mpsim_turns){w->sources, block, w->order != MPSIM_TAPS_CHANNELS};
}

static mpsim_status do_phases(work *w)
{
    const mpsim_convolving *g = w->v;
    set_window(w);
    if (w->positions == 0)
        return MPSIM_OK;
    const mpsim_turns turns = turns_of(w);
    w->n_runs = w->depth ? mpsim_window_count_runs(&w->window, &turns) : 0;
    w->runs = (mpsim_run *)malloc((w->n_runs + 1) * sizeof *w->runs);
    w->lines = (unsigned char *)malloc(g->outputs * w->depth * mpsim_format_code_bytes(w->v->c->b->format) + 1);
    mpsim_status s = w->runs && w->lines ? MPSIM_OK : MPSIM_ENOMEM;
    if (s == MPSIM_OK) {
        if (w->depth) {
            mpsim_window_runs(&w->window, &turns, w->runs);
            put_lines(w);
        }
        w->narrow = w->results <= NARROW && !mpsim_convolving_is_random(w->v) && has_numbers(w);
        cut_tiles(w);
        s = mpsim_tasks_run(g->c->groups * w->row_tiles * w->column_tiles, task, w, w->v->pool);
    }
    free(w->runs);
    free(w->lines);
    return s;
}

static mpsim_status each_phase(work *w)
{
    const mpsim_convolving *g = w->v;
    size_t n[MPSIM_DIMS];
    mpsim_status s = MPSIM_OK;
    for (size_t d = 0; d < MPSIM_DIMS; d++)
        n[d] = count_phases(g, d, w->turned);
    for (size_t i = 0; i < mpsim_product3(n) && s == MPSIM_OK; i++) {
        const size_t r[MPSIM_DIMS] = {i / n[2] / n[1], i / n[2] % n[1], i % n[2]};
        for (size_t d = 0; d < MPSIM_DIMS; d++)
            w->phase[d] = phase_of(g, d, w->turned, r[d]);
        s = do_phases(w);
    }
    return s;
}

mpsim_status mpsim_convolve_taps(mpsim_convolving *v, int turned)
{
    const size_t groups = v->c->groups;
    work w = {.v = v, .turned = turned, .sources = v->channels / groups, .results = v->outputs / groups};
    if (w.results == 0 || v->images == 0)
        return MPSIM_OK;
    w.order = order_of(v, w.sources);
    if (!mpsim_factor_open(&v->a, w.order == MPSIM_CHANNELS_TAPS, v->pool))
        return MPSIM_ENOMEM;
    return each_phase(&w);
}
