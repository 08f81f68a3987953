/* entrylines.c -- numbers of any stack, read line by line and rounded: see entry.h. */
#include "../base/environment.h"
#include "../base/turn.h"
#include "entry.h"

#include <mpsim/layer.h>
#include <stdlib.h>

/* ---- lines: their numbers, rounded ---- */

/* Where line i of all begins. */
static int64_t line_at(const mpsim_entering_work *e, size_t i)
{
    return mpsim_matrix_at(&e->outer, &e->steps, i / e->rows) + (int64_t)(i % e->rows) * e->steps.row;
}

enum {
    SOME = 1024,
    TURNED = 1 << 14, /* bytes of a tile of lines that lie across */
    ACROSS = 64       /* of it that are read side by side: a cache line */
};

/* Codes of n numbers of a line. */
typedef struct segment {
    const void *codes;
    int64_t at, step;
    size_t line, k, n; /* of all lines; from column k on */
} segment;

typedef mpsim_status segment_task(mpsim_entering_work *e, size_t piece, const segment *s, void *to);

/* A task for the segments of a line. */
static void each_of_line(mpsim_entering_work *e, size_t piece, size_t i, segment_task *task, void *to)
{
    const int64_t at = line_at(e, i);
    for (size_t k = 0; k < e->cols && !e->status[piece]; k += SOME) {
        const segment s = {e->x->codes, at + (int64_t)k * e->steps.col,         e->steps.col, i,
                           k,           e->cols - k < SOME ? e->cols - k : SOME};
        e->status[piece] = task(e, piece, &s, to);
    }
}

/* Of some neighbouring lines of a matrix that lie across, copied tile by tile. */
static void each_of_tiles(mpsim_entering_work *e, size_t piece, size_t i, size_t lines, segment_task *task, void *to)
{
    const size_t bytes = mpsim_format_code_bytes(e->x->format), most = TURNED / ACROSS;
    const int64_t at = line_at(e, i);
    uint64_t tile[TURNED / sizeof(uint64_t)];
    for (size_t k = 0; k < e->cols; k += most) {
        const size_t n = e->cols - k < most ? e->cols - k : most;
        mpsim_turn_codes(tile, (int64_t)n, e->x->codes, bytes, at + (int64_t)k * e->steps.col, e->steps.row,
                         e->steps.col, lines, n);
        for (size_t r = 0; r < lines && !e->status[piece]; r++) {
            const segment s = {tile, (int64_t)(r * n), 1, i + r, k, n};
            e->status[piece] = task(e, piece, &s, to);
        }
    }
}

/* A task for all segments of n lines; `to` is where the first line's results go. */
static void each_segment(mpsim_entering_work *e, size_t piece, size_t first, size_t n, segment_task *task, void *to)
{
    const size_t together = mpsim_lies_across(e) ? ACROSS / mpsim_format_code_bytes(e->x->format) : 1;
    for (size_t i = 0, some; i < n && !e->status[piece]; i += some) {
        const size_t left = e->rows - (first + i) % e->rows, rest = left < n - i ? left : n - i;
        some = together < rest ? together : rest;
        if (together > 1)
            each_of_tiles(e, piece, first + i, some, task, to);
        else
            each_of_line(e, piece, first + i, task, to);
    }
}

/* Whether segments are rounded one by one, and not all lines of a batch at once. */
static int rounds_each(const mpsim_entering_work *e)
{
    return e->rounds && (mpsim_is_wide(e) || (!e->how->recipe && (e->counting || e->casts)));
}

static mpsim_status values_of(const mpsim_entering_work *e, float *to, const segment *s, mpsim_counts *counts)
{
    double wide[SOME];
    mpsim_status status = MPSIM_OK;
    if (!mpsim_is_wide(e)) {
        mpsim_read_f32(to, e->x->format, s->codes, s->at, s->step, s->n);
        return rounds_each(e) ? mpsim_round_array_f32(e->format, &e->rounding, NULL, to, to, s->n, counts) : MPSIM_OK;
    }
    mpsim_read_f64(wide, e->x->format, s->codes, s->at, s->step, s->n);
    if (e->rounds)
        status = mpsim_round_array_f64(e->format, &e->rounding, NULL, wide, wide, s->n, counts);
    for (size_t i = 0; i < s->n; i++)
        to[i] = (float)wide[i];
    return status;
}

static mpsim_status codes_of(const mpsim_entering_work *e, void *to, const segment *s)
{
    union {
        float f32[SOME];
        double f64[SOME];
    } v;
    if (!e->rounds) {
        mpsim_read_codes(to, s->codes, mpsim_format_code_bytes(e->format), s->at, s->step, s->n);
        return MPSIM_OK;
    }
    if (mpsim_is_wide(e)) {
        mpsim_read_f64(v.f64, e->x->format, s->codes, s->at, s->step, s->n);
        return mpsim_encode_array_f64(e->format, &e->rounding, NULL, to, v.f64, s->n, NULL);
    }
    mpsim_read_f32(v.f32, e->x->format, s->codes, s->at, s->step, s->n);
    return mpsim_encode_array_f32(e->format, &e->rounding, NULL, to, v.f32, s->n, NULL);
}

/* The errors of rounding. */
static mpsim_status measure(const mpsim_entering_work *e, mpsim_cast_stats *c, const segment *s)
{
    double x[SOME];
    mpsim_read_f64(x, e->x->format, s->codes, s->at, s->step, s->n);
    return mpsim_cast_stats_add(c, e->format, &e->rounding, NULL, x, s->n);
}

/* What rounding did to numbers that are `after` now. */
static void count(const mpsim_entering_work *e, mpsim_entered *to, const float *after, const segment *s,
                  const mpsim_counts *cast)
{
    float before[SOME];
    if (mpsim_is_wide(e)) {
        double wide[SOME];
        mpsim_read_f64(wide, e->x->format, s->codes, s->at, s->step, s->n);
        for (size_t i = 0; i < s->n; i++) /* finite numbers that are not zero stay so */
            before[i] = wide[i] == 0 ? 0.0F : wide[i] - wide[i] == 0 ? 1.0F : (float)(wide[i] - wide[i]);
    } else {
        mpsim_read_f32(before, e->x->format, s->codes, s->at, s->step, s->n);
    }
    to->nonzero += mpsim_count_numbers(before, s->n).nonzero;
    to->nonfinite += s->n - mpsim_count_numbers(after, s->n).finite;
    to->lost += cast->underflow;
    to->overflow += cast->overflow;
}

/* ---- pieces: lines first to first + n - 1 ---- */

static mpsim_status encode_segment(mpsim_entering_work *e, size_t piece, const segment *s, void *to)
{
    (void)piece;
    (void)to;
    return codes_of(e, e->codes + (s->line * e->cols + s->k) * mpsim_format_code_bytes(e->format), s);
}

void mpsim_encode_lines(void *job, size_t piece, size_t first, size_t n)
{
    each_segment((mpsim_entering_work *)job, piece, first, n, encode_segment, NULL);
}

/* Lines that are values now, from line `first` on. */
typedef struct lines {
    size_t first;
    float *values;
} lines;

static mpsim_status value_segment(mpsim_entering_work *e, size_t piece, const segment *s, void *to)
{
    const lines *l = (const lines *)to;
    float *values = l->values + (s->line - l->first) * e->cols + s->k;
    const int alone = !e->how->recipe, counting = e->counting && alone;
    mpsim_counts cast = {0, 0, 0, 0, 0};
    mpsim_status status = values_of(e, values, s, counting ? &cast : NULL);
    if (!status && counting)
        count(e, &e->counts[piece], values, s, &cast);
    if (!status && e->casts && alone)
        status = measure(e, &e->casts[piece], s);
    return status;
}

static mpsim_status transform(const mpsim_entering_work *e, float *line)
{
    const mpsim_status s = mpsim_hadamard_groups(line, e->cols, e->how->hadamard, 0);
    return s ? s : mpsim_round_array_f32(e->format, &e->rounding, NULL, line, line, e->cols, NULL);
}

/* What the recipe is given of n lines: where it is, or in `room`. */
static const float *values_at(mpsim_entering_work *e, size_t piece, size_t first, size_t n, float *room)
{
    if (e->values)
        return e->values + first * e->cols;
    lines l = {first, room};
    each_segment(e, piece, first, n, value_segment, &l);
    if (e->rounds && !rounds_each(e) && !e->status[piece])
        e->status[piece] = mpsim_round_array_f32(e->format, &e->rounding, NULL, room, room, n * e->cols, NULL);
    for (size_t i = 0; i < n && e->how->hadamard && !e->status[piece]; i++)
        e->status[piece] = transform(e, room + i * e->cols);
    return room;
}

/* Lines of a batch: a multiple of `unit`; 0: all. */
static size_t lines_of_batch(const mpsim_entering_work *e, size_t n, size_t unit)
{
    const size_t one = unit * (e->cols ? e->cols : 1);
    return unit == 0 ? n : one < MPSIM_ENTRY_BATCH ? MPSIM_ENTRY_BATCH / one * unit : unit;
}

void mpsim_each_batch(mpsim_entering_work *e, size_t piece, size_t first, size_t n, size_t unit, mpsim_batch_task *task,
                      const void *more)
{
    const size_t most = lines_of_batch(e, n, unit), some = most < n ? most : n;
    float *room = e->values || e->room ? NULL : (float *)malloc(some * e->cols * sizeof(float) + 1);
    const mpsim_environment before = mpsim_environment_default();
    if (!e->values && !e->room && !room)
        e->status[piece] = MPSIM_ENOMEM;
    for (size_t i = 0; i < n && !e->status[piece]; i += some) {
        const size_t here = n - i < some ? n - i : some;
        const float *values = values_at(e, piece, first + i, here, room ? room : e->room + (first + i) * e->cols);
        if (!e->status[piece])
            task(e, piece, first + i, here, values, more);
    }
    mpsim_environment_restore(before);
    free(room);
}

void mpsim_measure_most(mpsim_entering_work *e, size_t piece, const float *values, size_t n)
{
    const float most = e->measuring ? mpsim_amax(values, n) : 0;
    e->most[piece] = most > e->most[piece] ? most : e->most[piece];
}

static void encode_batch(mpsim_entering_work *e, size_t piece, size_t first, size_t n, const float *values,
                         const void *more)
{
    (void)more;
    mpsim_measure_most(e, piece, values, n * e->cols);
    e->status[piece] = mpsim_encode_array_f32(e->format, &e->rounding, NULL,
                                              e->codes + first * e->cols * mpsim_format_code_bytes(e->format), values,
                                              n * e->cols, NULL);
}

/* Rounded numbers without a recipe. */
void mpsim_round_lines(void *job, size_t piece, size_t first, size_t n)
{
    mpsim_each_batch((mpsim_entering_work *)job, piece, first, n, 1, encode_batch, NULL);
}

mpsim_status mpsim_entry_error(const mpsim_entering_work *e)
{
    for (size_t i = 0; i < MPSIM_PIECES; i++)
        if (e->status[i])
            return e->status[i];
    return MPSIM_OK;
}

/* ---- memory ---- */

/* Parts of one piece of memory, each as C asks. */
static size_t part(size_t *at, size_t bytes)
{
    const size_t from = *at;
    *at += (bytes + 63) / 64 * 64;
    return from;
}

/* The codes and, of blocks, factors: what stays. Others are e's own. */
mpsim_status mpsim_entry_allocate(mpsim_entering_work *e, unsigned char **kept, size_t bytes)
{
    const size_t n = e->lines * e->cols, blocks = (e->rows ? e->lines / e->rows : 0) * e->grid_rows * e->grid_cols;
    size_t at = 0;
    const size_t codes = part(&at, n * bytes), factors = part(&at, blocks * sizeof(float));
    *kept = (unsigned char *)malloc(at + 1);
    if (!*kept)
        return MPSIM_ENOMEM;
    e->codes = *kept + codes;
    e->factors = blocks ? (float *)(void *)(*kept + factors) : NULL;
    return MPSIM_OK;
}
