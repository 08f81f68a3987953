/* tiles.c -- see tiles.h.
 *
 * A tile lies in memory as blocks want it: lines along which they are, so that blocks along columns are those of
 * the tile transposed. The amax of a tensor, of which its scale is, or that of a block that is the whole tensor, comes
 * from a first pass. */
#include "tiles.h"

#include <train/parallel.h>

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 1 << 18, WIDE = 1 << 20 }; /* elements: what a tile should have, and may have */

/* What a thread has of its own. */
typedef struct lane {
    unsigned char *codes, *scale_codes, *room;
    void *stored; /* elements as they are stored */
    float *x, *other, *inverses;
    mpsim_counts counts;
    mpsim_block_stats found; /* in the tile at hand */
    int failed_at; /* the tile of the error, or INT_MAX */
    trace_error error;
} lane;

typedef struct work {
    quantising *q;
    mpsim_block_recipe block; /* of the turned matrix; sides of whole dimensions are 0 */
    uint64_t tile_rows, tile_cols, down, across;
    uint64_t inner; /* codes of a line of the whole matrix */
    const mpsim_format *source;
    float *amax; /* of each tile, in the first pass */
    lane *lanes;
    int n_lanes;
    atomic_int failed;
} work;

static int no_memory(const work *k, trace_error *error)
{
    return trace_error_set(error, EXIT_IO, trace_path(k->q->from), UINT64_MAX, "out of memory");
}

/* ---- tiles ---- */

/* The smallest multiple of both, but at most n. */
static uint64_t common(uint64_t a, uint64_t b, uint64_t n)
{
    uint64_t x = a, y = b;
    while (y) {
        const uint64_t r = x % y;
        x = y;
        y = r;
    }
    return a >= n || b / x > n / a ? n : a / x * b < n ? a / x * b : n;
}

/* The largest multiple of a that is at most `fit`, or a; at most n. */
static uint64_t multiple(uint64_t a, uint64_t fit, uint64_t n)
{
    const uint64_t m = fit / a * a;
    return m < a ? a : m < n ? m : n;
}

static int is_whole(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

static void cut(work *k)
{
    const quantising *q = k->q;
    const mpsim_block_recipe *b = &k->block;
    const uint64_t lines_all = q->columns ? q->cols : q->rows;
    uint64_t line = is_whole(b) ? 1 : b->block_rows ? b->block_rows : lines_all;
    uint64_t inner = is_whole(b) ? 1 : b->block_cols ? b->block_cols : k->inner;
    line = common(line, 4, lines_all);
    inner = common(inner, 4, k->inner);
    if (q->how->transform)
        inner = common(inner, q->how->transform, k->inner);
    if (b->element_mode >= MPSIM_ROUND_STOCHASTIC_A)
        inner = k->inner; /* random bits are counted along the matrix */
    uint64_t rows = q->columns ? inner : line, cols = q->columns ? line : inner;
    if (q->g && q->g->swizzled) {
        const int down = q->g->block_rows > q->g->block_cols;
        rows = common(rows, down ? 4 * q->g->block_rows : 128, q->rows);
        cols = common(cols, down ? 128 : 4 * q->g->block_cols, q->cols);
    }
    k->tile_cols = q->cols <= WIDE / rows ? q->cols : multiple(cols, TILE / rows, q->cols);
    k->tile_rows = multiple(rows, TILE / k->tile_cols, q->rows);
    k->down = quant_up(q->rows, k->tile_rows);
    k->across = quant_up(q->cols, k->tile_cols);
}

static tile tile_at(const work *k, int i)
{
    const quantising *q = k->q;
    const uint64_t row = (uint64_t)i / k->across * k->tile_rows, col = (uint64_t)i % k->across * k->tile_cols;
    return (tile){row, q->rows - row < k->tile_rows ? q->rows - row : k->tile_rows, col,
                  q->cols - col < k->tile_cols ? q->cols - col : k->tile_cols};
}

/* ---- reading ---- */

static int read_codes(const work *k, uint64_t first, void *to, size_t n, trace_error *error)
{
    const size_t bytes = mpsim_format_code_bytes(k->source);
    if (!k->q->whole)
        return trace_codes(k->q->from, k->q->index, first, to, n, error);
    memcpy(to, k->q->whole + first * bytes, n * bytes);
    return 0;
}

static void decode(const work *k, float *x, const void *codes, size_t n)
{
    enum { PIECE = 1024 };
    const size_t bytes = mpsim_format_code_bytes(k->source);
    double wide[PIECE];
    if (strcmp(k->source->name, "binary32") == 0) {
        memcpy(x, codes, n * sizeof *x);
        return;
    }
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = n - i < PIECE ? n - i : PIECE;
        (void)mpsim_decode_array(k->source, wide, (const char *)codes + i * bytes, m);
        for (size_t j = 0; j < m; j++)
            x[i + j] = (float)wide[j];
    }
}

/* The numbers of a tile in l->x, turned and transformed. */
static int read_tile(const work *k, const tile *t, lane *l)
{
    const quantising *q = k->q;
    const size_t lines = (size_t)(q->columns ? t->cols : t->rows), n = (size_t)(q->columns ? t->rows : t->cols);
    const size_t bytes = mpsim_format_code_bytes(k->source);
    float *x = q->columns ? l->other : l->x;
    if (t->cols == q->cols) {
        if (read_codes(k, t->row * q->cols, l->stored, (size_t)(t->rows * t->cols), &l->error))
            return -1;
    } else {
        for (uint64_t i = 0; i < t->rows; i++)
            if (read_codes(k, (t->row + i) * q->cols + t->col, (char *)l->stored + i * t->cols * bytes,
                           (size_t)t->cols, &l->error))
                return -1;
    }
    decode(k, x, l->stored, (size_t)(t->rows * t->cols));
    if (q->columns)
        turn(l->x, x, (size_t)t->rows, (size_t)t->cols, sizeof *x);
    for (size_t i = 0; i < lines && q->how->transform; i++)
        (void)mpsim_hadamard_groups(l->x + i * n, n, q->how->transform, q->seed);
    return 0;
}

/* ---- the first pass ---- */

/* The largest magnitude of n numbers, as the rule sees it. */
static float amax_of(const work *k, const float *x, size_t n)
{
    mpsim_block_recipe all = k->block;
    const mpsim_rng rng = {0};
    float amax = 0;
    all.block_rows = all.block_cols = 0;
    (void)mpsim_block_quantize(&all, x, 1, n, 1, k->q->how->given, &rng, &(mpsim_blocks){.amax = &amax}, NULL);
    return amax;
}

static void find_amax(const work *k, const tile *t, int i, const lane *l)
{
    k->amax[i] = amax_of(k, l->x, (size_t)(t->rows * t->cols));
}

/* ---- the second ---- */

static int lay_values(const work *k, const tile *t, lane *l, size_t lines, size_t n)
{
    const quantising *q = k->q;
    float *values = l->other;
    for (size_t i = 0; i < lines && q->how->transform; i++)
        (void)mpsim_hadamard_groups_back(values + i * n, n, q->how->transform, q->seed);
    if (q->columns) {
        turn(l->x, values, lines, n, sizeof *values);
        values = l->x;
    }
    trace_to_little_endian((unsigned char *)values, sizeof *values, lines * n);
    for (uint64_t i = 0, m = t->cols == q->cols ? t->rows : 1; i < t->rows; i += m)
        if (spool_put(q->to, q->at[0] + ((t->row + i) * q->cols + t->col) * sizeof *values, values + i * t->cols,
                      (size_t)(m * t->cols) * sizeof *values, &l->error))
            return -1;
    return 0;
}

static void count(mpsim_counts *to, const mpsim_counts *counts)
{
    to->inexact += counts->inexact;
    to->underflow += counts->underflow;
    to->subnormal += counts->subnormal;
    to->overflow += counts->overflow;
    to->nan += counts->nan;
}

/* As stat says it: by what elements stand for, which scales of 0, infinities and NaN decide beside codes. */
static void count_found(mpsim_counts *to, const mpsim_block_stats *s)
{
    mpsim_counts counts = s->casts.counts;
    counts.underflow = s->underflow;
    counts.overflow = s->saturated + s->spoilt;
    count(to, &counts);
}

static void quantise(const work *k, const tile *t, lane *l, size_t lines, size_t n)
{
    quantising *q = k->q;
    const mpsim_rng rng = {q->seed, q->stream, (q->columns ? t->col : t->row) * k->inner};
    const mpsim_blocks out = {.codes = q->g ? l->codes : NULL, .values = q->g ? NULL : l->other,
                              .scale_codes = l->scale_codes, .inverses = l->inverses,
                              .stats = q->counted ? &l->found : NULL,
                              .block_amax = is_whole(&k->block) ? &q->amax : NULL};
    mpsim_block_stats_init(&l->found);
    (void)mpsim_block_quantize(&k->block, l->x, lines, n, q->how->tensor_scale ? q->amax : -1, q->how->given, &rng, &out,
                               NULL);
    count_found(&l->counts, &l->found);
}

static int write_tile(const work *k, const tile *t, lane *l)
{
    const quantising *q = k->q;
    const size_t lines = (size_t)(q->columns ? t->cols : t->rows), n = (size_t)(q->columns ? t->rows : t->cols);
    quantise(k, t, l, lines, n);
    if (!q->g)
        return lay_values(k, t, l, lines, n);
    const int numbers = strcmp(q->g->form->scale, "binary32") == 0 || strcmp(q->how->scale, "binary32") == 0;
    const mpsim_block_recipe *b = &k->block;
    const laid what = {.g = q->g, .to = q->to, .at = {q->at[0], q->at[1], q->at[2]}, .t = *t, .turned = q->columns,
                       .codes = l->codes, .scale_codes = numbers ? NULL : l->scale_codes, .scales = l->inverses,
                       .block_lines = b->block_rows ? b->block_rows : lines,
                       .block_codes = b->block_cols ? b->block_cols : n, .room = l->room};
    return lay_codes(&what, &l->error) || lay_scales(&what, &l->error) ? -1 : 0;
}

/* ---- on all threads ---- */

static void run_tile(int i, void *context)
{
    work *k = context;
    lane *l = &k->lanes[parallel_self()];
    const tile t = tile_at(k, i);
    if (atomic_load(&k->failed) < i)
        return;
    if (read_tile(k, &t, l) == 0) {
        if (k->amax)
            find_amax(k, &t, i, l);
        if (k->amax || write_tile(k, &t, l) == 0)
            return;
    }
    l->failed_at = i;
    int others = atomic_load(&k->failed);
    while (i < others && !atomic_compare_exchange_weak(&k->failed, &others, i))
        continue;
}

static int run(work *k, trace_error *error)
{
    parallel_for((int)(k->down * k->across), run_tile, k);
    for (int i = 0; i < k->n_lanes; i++)
        if (k->lanes[i].failed_at < INT_MAX && k->lanes[i].failed_at == atomic_load(&k->failed)) {
            *error = k->lanes[i].error;
            return -1;
        }
    return 0;
}

static int make_lanes(work *k)
{
    const tile largest = {0, k->tile_rows, 0, k->tile_cols};
    const size_t n = (size_t)(k->tile_rows * k->tile_cols);
    size_t grid_rows, grid_cols;
    const int columns = k->q->columns;
    mpsim_block_grid(&k->block, (size_t)(columns ? k->tile_cols : k->tile_rows),
                     (size_t)(columns ? k->tile_rows : k->tile_cols), &grid_rows, &grid_cols);
    const size_t blocks = grid_rows * grid_cols;
    const int threads = parallel_threads();
    const uint64_t tiles = k->down * k->across;
    k->n_lanes = tiles < (uint64_t)threads ? (int)tiles : threads;
    k->lanes = calloc((size_t)k->n_lanes + 1, sizeof *k->lanes);
    for (int i = 0; k->lanes && i < k->n_lanes; i++) {
        lane *l = &k->lanes[i];
        l->failed_at = INT_MAX;
        l->stored = malloc(n * mpsim_format_code_bytes(k->source));
        l->x = malloc(n * sizeof *l->x);
        l->other = malloc(n * sizeof *l->other);
        l->codes = malloc(n);
        l->scale_codes = malloc(blocks);
        l->inverses = malloc(blocks * sizeof *l->inverses);
        l->room = malloc(k->q->g ? lay_room(k->q->g, &largest) : 1);
        if (!l->stored || !l->x || !l->other || !l->codes || !l->scale_codes || !l->inverses || !l->room)
            return -1;
    }
    return k->lanes ? 0 : -1;
}

static void clear(work *k)
{
    for (int i = 0; k->lanes && i < k->n_lanes; i++) {
        lane *l = &k->lanes[i];
        free(l->stored);
        free(l->x);
        free(l->other);
        free(l->codes);
        free(l->scale_codes);
        free(l->inverses);
        free(l->room);
        count(&k->q->counts, &l->counts);
    }
    free(k->lanes);
    free(k->amax);
}

/* The largest magnitude of the tensor, and what NVFP4 makes of it. */
static int first_pass(work *k, trace_error *error)
{
    const size_t tiles = (size_t)(k->down * k->across);
    const float zero = 0;
    const mpsim_rng rng = {0};
    k->amax = malloc(tiles * sizeof *k->amax);
    if (!k->amax)
        return no_memory(k, error);
    if (run(k, error))
        return -1;
    k->q->amax = amax_of(k, k->amax, tiles);
    free(k->amax);
    k->amax = NULL;
    (void)mpsim_block_quantize(&k->block, &zero, 1, 1, k->q->amax, k->q->how->given, &rng, &(mpsim_blocks){0},
                               &k->q->tensor);
    return 0;
}

int tiles_run(quantising *q, trace_error *error)
{
    work k = {.q = q, .block = q->how->block, .failed = INT_MAX, .source = trace_at(q->from, q->index)->format,
              .inner = q->columns ? q->rows : q->cols};
    q->tensor = 1;
    cut(&k);
    int result = make_lanes(&k) || k.down > (uint64_t)(INT_MAX - 1) / k.across ? no_memory(&k, error) : 0;
    if (!result && (q->how->tensor_scale || is_whole(&k.block)))
        result = first_pass(&k, error);
    if (!result)
        result = run(&k, error);
    clear(&k);
    return result;
}
