/* blockquant.c -- see blockquant.h.
 *
 * A scale that is of more than the tile holds is brought about by two elements more, the largest magnitudes of all that
 * share it, whose part of the statistics is subtracted; sums are exact. What becomes of such a block as a whole follows
 * from these magnitudes alone, since rounding keeps the order. */
#include "blockquant.h"

#include <stdlib.h>
#include <string.h>

enum { EXTRA = 2, ROOM = 1 << 16 };

int block_room_make(block_room *r)
{
    r->x = malloc(ROOM * sizeof *r->x);
    r->origin = malloc(ROOM * sizeof *r->origin);
    r->values = malloc(ROOM * sizeof *r->values);
    return r->x && r->origin && r->values ? 0 : -1;
}

void block_room_clear(block_room *r)
{
    free(r->x);
    free(r->origin);
    free(r->values);
}

int block_needs_tensor(const mpsim_block_recipe *b)
{
    return target_has_tensor_scale(b) || b->block_rows == 0;
}

int block_needs_rows(const mpsim_block_recipe *b)
{
    return b->block_rows > 0 && b->block_cols == 0;
}

/* Recipes were checked when the targets were made. */
static void quantise(const mpsim_block_recipe *b, const float *x, const float *origin, size_t rows, size_t cols,
                     float amax, const mpsim_rng *rng, float *values, mpsim_block_stats *to)
{
    const mpsim_blocks out = {.values = values, .stats = to, .origin = origin};
    mpsim_block_quantize(b, x, rows, cols, amax, 1, rng, &out, NULL);
}

/* ---- scales of whole rows, or of the tensor ---- */

/* Elements, not blocks. */
static void subtract(mpsim_block_stats *of, const mpsim_block_stats *extra)
{
    mpsim_cast_stats *from = &of->casts;
    const mpsim_cast_stats *c = &extra->casts;
    of->underflow -= extra->underflow;
    of->saturated -= extra->saturated;
    of->spoilt -= extra->spoilt;
    from->counts.inexact -= c->counts.inexact;
    from->counts.underflow -= c->counts.underflow;
    from->counts.subnormal -= c->counts.subnormal;
    from->counts.overflow -= c->counts.overflow;
    from->counts.nan -= c->counts.nan;
    from->compared -= c->compared;
    mpsim_sum_subtract(&from->sum_squared_error, &c->sum_squared_error);
    mpsim_sum_subtract(&from->sum_squares_left_out, &c->sum_squares_left_out);
}

/* Elements of n rows with the magnitudes that their scales are of. */
static void copy_rows(float *to, const float *from, size_t n, size_t cols, const peak *peaks)
{
    for (size_t i = 0; i < n; i++, to += cols + EXTRA) {
        if (cols)
            memcpy(to, from + i * cols, cols * sizeof *to);
        to[cols] = peak_float(peaks[i].number);
        to[cols + 1] = peak_float(peaks[i].all);
    }
}

static void take_values(float *to, const float *from, size_t n, size_t cols)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * cols, from + i * (cols + EXTRA), cols * sizeof *to);
}

/* n rows, or parts of them, a scale for each. */
static void quantise_rows(const mpsim_block_recipe *b, const float *x, const float *origin, float *values, size_t n,
                          size_t cols, const peak *peaks, block_room *room, mpsim_block_stats *to)
{
    copy_rows(room->x, x, n, cols, peaks);
    if (origin)
        copy_rows(room->origin, origin, n, cols, peaks);
    mpsim_block_stats_init(&room->found);
    quantise(b, room->x, origin ? room->origin : NULL, n, cols + EXTRA, -1, NULL, values ? room->values : NULL,
             to ? &room->found : NULL);
    if (values)
        take_values(values, room->values, n, cols);
    if (!to)
        return;
    copy_rows(room->x, NULL, n, 0, peaks);
    mpsim_block_stats_init(&room->extra);
    quantise(b, room->x, NULL, n, EXTRA, -1, NULL, NULL, &room->extra);
    subtract(&room->found, &room->extra);
    mpsim_cast_stats_merge(&to->casts, &room->found.casts);
    to->underflow += room->found.underflow;
    to->saturated += room->found.saturated;
    to->spoilt += room->found.spoilt;
}

/* What becomes of n whole rows as blocks. */
static void see_rows(const mpsim_block_recipe *b, const peak *peaks, size_t n, block_room *room,
                     mpsim_block_stats *to)
{
    enum { ALL = 3 };
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < ROOM / ALL ? n - i : ROOM / ALL;
        for (size_t k = 0; k < m; k++) {
            room->x[ALL * k] = peak_float(peaks[i + k].finite);
            room->x[ALL * k + 1] = peak_float(peaks[i + k].number);
            room->x[ALL * k + 2] = peak_float(peaks[i + k].all);
        }
        mpsim_block_stats_init(&room->extra);
        quantise(b, room->x, NULL, m, ALL, -1, NULL, NULL, &room->extra);
        mpsim_cast_stats_init(&room->extra.casts);
        room->extra.underflow = room->extra.saturated = room->extra.spoilt = 0;
        mpsim_block_stats_merge(to, &room->extra);
    }
}

static void quantise_whole(const mpsim_block_recipe *b, const block_rectangle *r, block_room *room,
                           mpsim_block_stats *to)
{
    mpsim_block_recipe of_row = *b;
    const int tensor = b->block_rows == 0;
    const size_t rows = tensor ? 1 : r->rows, cols = tensor ? r->rows * r->cols : r->cols;
    const peak *peaks = tensor ? &r->tensor : r->of_rows;
    const size_t width = cols < ROOM - EXTRA ? cols : ROOM - EXTRA, most = ROOM / (width + EXTRA);
    of_row.block_rows = 1;
    of_row.block_cols = 0;
    for (size_t i = 0, n; i < rows; i += n) {
        n = rows - i < most ? rows - i : most;
        for (size_t j = 0, w; j < cols; j += w) { /* parts of a row: then n is 1 */
            const size_t at = i * cols + j;
            w = cols - j < width ? cols - j : width;
            quantise_rows(&of_row, r->x + at, r->origin ? r->origin + at : NULL, r->values ? r->values + at : NULL, n,
                          w, peaks + i, room, to);
        }
    }
    if (to && (tensor ? r->begins : r->col == 0))
        see_rows(&of_row, peaks, rows, room, to);
}

/* ---- random bits ---- */

static int is_stochastic(const mpsim_block_recipe *b)
{
    return b->element_mode == MPSIM_ROUND_STOCHASTIC_A || b->element_mode == MPSIM_ROUND_STOCHASTIC_B ||
           b->element_mode == MPSIM_ROUND_STOCHASTIC_C;
}

/* Row by row. */
static void quantise_lines(const mpsim_block_recipe *b, const block_rectangle *r, float amax, const mpsim_rng *rng,
                           mpsim_block_stats *to)
{
    const int whole = r->cols == r->all_cols;
    const size_t n = whole ? r->rows : 1;
    for (size_t i = 0; i < r->rows; i += n) {
        const size_t at = i * r->cols;
        mpsim_rng words = *rng;
        words.index += (r->row + i) * r->all_cols + r->col;
        quantise(b, r->x + at, r->origin ? r->origin + at : NULL, n, r->cols, amax, &words,
                 r->values ? r->values + at : NULL, to);
    }
}

static void copy_block(float *to, const float *from, size_t rows, size_t cols, size_t to_stride, size_t from_stride)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(to + i * to_stride, from + i * from_stride, cols * sizeof *to);
}

/* Block by block. */
static void quantise_squares(const mpsim_block_recipe *b, const block_rectangle *r, float amax, const mpsim_rng *rng,
                             block_room *room, mpsim_block_stats *to)
{
    const uint64_t across = (r->all_cols - 1) / b->block_cols + 1, size = (uint64_t)b->block_rows * b->block_cols;
    for (size_t i = 0; i < r->rows; i += b->block_rows)
        for (size_t j = 0; j < r->cols; j += b->block_cols) {
            const size_t at = i * r->cols + j, h = r->rows - i < b->block_rows ? r->rows - i : b->block_rows;
            const size_t w = r->cols - j < b->block_cols ? r->cols - j : b->block_cols;
            mpsim_rng words = *rng;
            words.index += ((r->row + i) / b->block_rows * across + (r->col + j) / b->block_cols) * size;
            copy_block(room->x, r->x + at, h, w, w, r->cols);
            if (r->origin)
                copy_block(room->origin, r->origin + at, h, w, w, r->cols);
            quantise(b, room->x, r->origin ? room->origin : NULL, h, w, amax, &words,
                     r->values ? room->values : NULL, to);
            if (r->values)
                copy_block(r->values + at, room->values, h, w, r->cols, w);
        }
}

/* ---- all ---- */

/* The amax of the tensor as the rule sees it: with NaN, or without. */
static float tensor_amax(const mpsim_block_recipe *b, const peak *p)
{
    const float both[] = {peak_float(p->number), peak_float(p->all)};
    float amax = 0;
    const mpsim_blocks out = {.amax = &amax};
    const mpsim_rng none = {0, 0, 0};
    mpsim_block_quantize(b, both, 1, 2, -1, 1, &none, &out, NULL);
    return amax;
}

void block_quantise(const mpsim_block_recipe *b, const block_rectangle *r, const mpsim_rng *rng, block_room *room,
                    mpsim_block_stats *to)
{
    if (b->block_rows == 0 || b->block_cols == 0) {
        quantise_whole(b, r, room, to);
        return;
    }
    const float amax = block_needs_tensor(b) ? tensor_amax(b, &r->tensor) : 0;
    if (!is_stochastic(b))
        quantise(b, r->x, r->origin, r->rows, r->cols, amax, NULL, r->values, to);
    else if (b->block_rows == 1)
        quantise_lines(b, r, amax, rng, to);
    else
        quantise_squares(b, r, amax, rng, room, to);
}
