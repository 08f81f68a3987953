/* blockquant.c -- see blockquant.h.
 *
 * A scale that is of more elements than the tile holds comes from the amax of all of them (mpsim_blocks.block_amax).
 * What becomes of such a block as a whole follows from its largest magnitudes alone, since rounding keeps the order:
 * these are quantised as a block of three elements, of which the statistics of blocks are taken. */
#include "stat.h"

#include <string.h>

enum { MAGNITUDES = 3 };

int stat_block_needs_tensor(const mpsim_block_recipe *b)
{
    return target_has_tensor_scale(b) || b->block_rows == 0;
}

int stat_block_needs_rows(const mpsim_block_recipe *b)
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

/* Blocks whose largest magnitudes are `amaxes`: room->amax has their amax as the rule sees it, with NaN or without, and
 * *to (NULL: nothing) learns what becomes of them. */
static void see_blocks(const mpsim_block_recipe *b, const amax3 *amaxes, size_t n, block_room *room,
                       mpsim_block_stats *to)
{
    mpsim_block_stats found;
    const mpsim_blocks out = {.amax = room->amax, .stats = to ? &found : NULL};
    const mpsim_rng none = {0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        room->x[MAGNITUDES * i] = pass_amax3_float(amaxes[i].finite);
        room->x[MAGNITUDES * i + 1] = pass_amax3_float(amaxes[i].number);
        room->x[MAGNITUDES * i + 2] = pass_amax3_float(amaxes[i].all);
    }
    mpsim_block_stats_init(&found);
    mpsim_block_quantize(b, room->x, n, MAGNITUDES, -1, 1, &none, &out, NULL);
    mpsim_cast_stats_init(&found.casts); /* not of elements */
    found.underflow = found.saturated = found.spoilt = 0;
    if (to)
        mpsim_block_stats_merge(to, &found);
}

static void quantise_whole(const mpsim_block_recipe *b, const block_rectangle *r, block_room *room,
                           mpsim_block_stats *to)
{
    mpsim_block_recipe of_row = *b;
    const int tensor = b->block_rows == 0, begins = tensor ? r->begins : r->col == 0;
    const size_t rows = tensor ? 1 : r->rows, cols = tensor ? r->rows * r->cols : r->cols;
    const amax3 *amaxes = tensor ? &r->tensor : r->of_rows;
    of_row.block_rows = 1;
    of_row.block_cols = 0;
    for (size_t i = 0, n; i < rows; i += n) {
        const size_t at = i * cols;
        n = rows - i < BLOCK_AMAXES ? rows - i : BLOCK_AMAXES;
        see_blocks(&of_row, amaxes + i, n, room, begins ? to : NULL);
        const mpsim_blocks out = {.values = r->values ? r->values + at : NULL,
                                  .stats = to,
                                  .origin = r->origin ? r->origin + at : NULL,
                                  .block_amax = room->amax};
        mpsim_block_quantize(&of_row, r->x + at, n, cols, -1, 1, NULL, &out, NULL);
    }
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
            quantise(b, room->x, r->origin ? room->origin : NULL, h, w, amax, &words, r->values ? room->values : NULL,
                     to);
            if (r->values)
                copy_block(r->values + at, room->values, h, w, r->cols, w);
        }
}

/* ---- all ---- */

void stat_block_quantise(const mpsim_block_recipe *b, const block_rectangle *r, const mpsim_rng *rng, block_room *room,
                         mpsim_block_stats *to)
{
    if (b->block_rows == 0 || b->block_cols == 0) {
        quantise_whole(b, r, room, to);
        return;
    }
    if (stat_block_needs_tensor(b))
        see_blocks(b, &r->tensor, 1, room, NULL);
    const float amax = stat_block_needs_tensor(b) ? room->amax[0] : 0;
    if (!is_stochastic(b))
        quantise(b, r->x, r->origin, r->rows, r->cols, amax, NULL, r->values, to);
    else if (b->block_rows == 1)
        quantise_lines(b, r, amax, rng, to);
    else
        quantise_squares(b, r, amax, rng, room, to);
}
