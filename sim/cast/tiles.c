/* tiles.c -- see tiles.h.
 *
 * A tile lies in memory as blocks want it: lines along which they are, so that blocks along columns are those of
 * the tile transposed. The amax of a tensor, of which its scale is, or that of a block that is the whole tensor, comes
 * from a first pass. */
#include "tiles.h"

#include "../array/need.h"
#include "../process/host.h"
#include "../pass/pass.h"
#include "../pass/amax.h"
#include "cast.h"

#include <stdlib.h>
#include <string.h>

enum { READ = 512 << 10 }; /* bytes that a thread reads at once */

/* What a thread has of its own. */
typedef struct lane {
    void *stored;                              /* elements as they are stored */
    float *x, *other, *inverses;               /* one memory  */
    unsigned char *codes, *scale_codes, *room; /* likewise    */
    mpsim_counts counts;
    mpsim_block_stats found; /* in the tile at hand */
} lane;

typedef struct work {
    quantising *q;
    mpsim_block_recipe
        block;      /* of the matrix, transposed if blocks are along columns; sides of whole dimensions are 0 */
    uint64_t inner; /* codes of a line of it */
    block_tiling tiles;
    shared_amax3 amax;
    int looks; /* for that, in the first pass */
    lane *lanes;
    int n_lanes;
} work;

/* ---- tiles ---- */

static int is_whole(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

/* Whole blocks, groups of packed codes and groups of a transform; whole lines where random bits are counted along them. */
static block_unit unit_of(const work *k)
{
    const quantising *q = k->q;
    const mpsim_block_recipe *b = &k->block;
    const uint64_t lines = q->columns ? q->cols : q->rows, pack = 4;
    block_unit u = {b->block_rows ? b->block_rows
                    : is_whole(b) ? 1
                                  : lines,
                    b->block_cols ? b->block_cols
                    : is_whole(b) ? 1
                                  : k->inner};
    u = pass_block_unit_join(u, (block_unit){pack, q->how->transform ? q->how->transform : pack});
    if (b->element_mode >= MPSIM_ROUND_STOCHASTIC_A)
        u.cols = k->inner;
    if (q->columns)
        u = (block_unit){u.cols, u.rows};
    if (!q->g || !q->g->swizzled)
        return u;
    const int down = q->g->block_rows > q->g->block_cols;
    return pass_block_unit_join(u, (block_unit){down ? 4 * q->g->block_rows : 128, down ? 128 : 4 * q->g->block_cols});
}

/* The numbers of a tile in l->x: lines along which blocks are, transformed. */
static int read_tile(const work *k, const block_part *t, lane *l, trace_error *error)
{
    const quantising *q = k->q;
    const size_t lines = (size_t)(q->columns ? t->cols : t->rows), n = (size_t)(q->columns ? t->rows : t->cols);
    const block_reader reader = {.from = q->from, .cols = q->cols, .codes = l->stored, .bytes = READ};
    float *x = q->columns ? l->other : l->x;
    if (pass_block_read(&reader, t, x, NULL, error))
        return -1;
    if (q->columns)
        pass_block_transpose(l->x, x, (size_t)t->rows, (size_t)t->cols);
    for (size_t i = 0; i < lines && q->how->transform; i++)
        (void)mpsim_hadamard_groups(l->x + i * n, n, q->how->transform, q->seed);
    return 0;
}

/* ---- what is written ---- */

static int lay_values(const work *k, const block_part *t, lane *l, size_t lines, size_t n, trace_error *error)
{
    const quantising *q = k->q;
    float *values = l->other;
    for (size_t i = 0; i < lines && q->how->transform; i++)
        (void)mpsim_hadamard_groups_back(values + i * n, n, q->how->transform, q->seed);
    if (q->columns) {
        pass_block_transpose(l->x, values, lines, n);
        values = l->x;
    }
    trace_to_little_endian((unsigned char *)values, sizeof *values, lines * n);
    return cast_lay_lines(q->to, q->at[0] + (t->row * q->cols + t->col) * sizeof *values, q->cols * sizeof *values,
                          values, t->cols * sizeof *values, t->rows, error);
}

/* As stat says it: by what elements stand for, which scales of 0, infinities and NaN decide beside codes. */
static void count_found(mpsim_counts *to, const mpsim_block_stats *s)
{
    mpsim_counts counts = s->casts.counts;
    counts.underflow = s->underflow;
    counts.overflow = s->saturated + s->spoilt;
    cast_counts_add(to, &counts);
}

static void quantise(const work *k, const block_part *t, lane *l, size_t lines, size_t n)
{
    quantising *q = k->q;
    const mpsim_rng rng = {q->seed, q->stream, (q->columns ? t->col : t->row) * k->inner};
    const mpsim_blocks out = {.codes = q->g ? l->codes : NULL,
                              .values = q->g ? NULL : l->other,
                              .scale_codes = l->scale_codes,
                              .inverses = l->inverses,
                              .stats = q->counted ? &l->found : NULL,
                              .block_amax = is_whole(&k->block) ? &q->amax : NULL};
    mpsim_block_stats_init(&l->found);
    (void)mpsim_block_quantize(&k->block, l->x, lines, n, q->how->tensor_scale ? q->amax : -1, q->how->given, &rng,
                               &out, NULL);
    count_found(&l->counts, &l->found);
}

static int write_tile(const work *k, const block_part *t, lane *l, trace_error *error)
{
    const quantising *q = k->q;
    const size_t lines = (size_t)(q->columns ? t->cols : t->rows), n = (size_t)(q->columns ? t->rows : t->cols);
    quantise(k, t, l, lines, n);
    if (!q->g)
        return lay_values(k, t, l, lines, n, error);
    const int numbers = strcmp(q->g->form->scale, "binary32") == 0 || strcmp(q->how->scale, "binary32") == 0;
    const mpsim_block_recipe *b = &k->block;
    const laid what = {.g = q->g,
                       .to = q->to,
                       .at = {q->at[0], q->at[1], q->at[2]},
                       .t = *t,
                       .transposed = q->columns,
                       .codes = l->codes,
                       .scale_codes = numbers ? NULL : l->scale_codes,
                       .scales = l->inverses,
                       .block_lines = b->block_rows ? b->block_rows : lines,
                       .block_codes = b->block_cols ? b->block_cols : n,
                       .room = l->room};
    return cast_lay_codes(&what, error) || cast_lay_scales(&what, error) ? -1 : 0;
}

/* ---- on all threads ---- */

static int run_tile(void *context, uint64_t i, int lane_number, trace_error *error)
{
    work *k = context;
    lane *l = &k->lanes[lane_number];
    const block_part t = pass_block_tile_at(&k->tiles, i);
    amax3 found = {0, 0, 0};
    if (read_tile(k, &t, l, error))
        return -1;
    if (!k->looks)
        return write_tile(k, &t, l, error);
    pass_amax3_add(&found, l->x, (size_t)(t.rows * t.cols));
    pass_amax3_share(&k->amax, &found);
    return 0;
}

static int run(work *k, trace_error *error)
{
    return pass_pieces(k->tiles.count, k->n_lanes, run_tile, k, NULL, error);
}

static void make_lane(const work *k, lane *l)
{
    const quantising *q = k->q;
    const block_part largest = {0, 0, k->tiles.rows, k->tiles.cols};
    const size_t n = (size_t)(largest.rows * largest.cols);
    size_t rows, cols;
    mpsim_block_grid(&k->block, (size_t)(q->columns ? largest.cols : largest.rows),
                     (size_t)(q->columns ? largest.rows : largest.cols), &rows, &cols);
    const size_t blocks = rows * cols;
    l->stored = need_memory(READ, 1);
    l->x = need_memory(2 * n + blocks, sizeof *l->x);
    l->codes = need_memory(n + blocks + (q->g ? cast_lay_room(q->g, &largest) : 0), 1);
    l->other = l->x + n;
    l->inverses = l->other + n;
    l->scale_codes = l->codes + n;
    l->room = l->scale_codes + blocks;
}

static void make_lanes(work *k)
{
    const uint64_t most = (uint64_t)pass_lanes();
    k->n_lanes = (int)(k->tiles.count < most ? k->tiles.count : most);
    k->lanes = need_memory((uint64_t)k->n_lanes, sizeof *k->lanes);
    for (int i = 0; i < k->n_lanes; i++)
        make_lane(k, &k->lanes[i]);
}

static void clear(work *k)
{
    for (int i = 0; k->lanes && i < k->n_lanes; i++) {
        lane *l = &k->lanes[i];
        free(l->stored);
        free(l->x);
        free(l->codes);
        cast_counts_add(&k->q->counts, &l->counts);
    }
    free(k->lanes);
}

/* The amax of the tensor as the rule sees it, with NaN or without, and what NVFP4 makes of it. */
static int first_pass(work *k, trace_error *error)
{
    mpsim_block_recipe all = k->block;
    const mpsim_rng rng = {0};
    const float zero = 0;
    k->looks = 1;
    host_again(k->q->rows * k->q->cols * k->q->from->width);
    if (run(k, error))
        return -1;
    k->looks = 0;
    const amax3 found = pass_amax3_of(&k->amax);
    const float most[] = {pass_amax3_float(found.number), pass_amax3_float(found.all)};
    all.block_rows = all.block_cols = 0;
    (void)mpsim_block_quantize(&all, most, 1, 2, 1, k->q->how->given, &rng, &(mpsim_blocks){.amax = &k->q->amax}, NULL);
    (void)mpsim_block_quantize(&k->block, &zero, 1, 1, k->q->amax, k->q->how->given, &rng, &(mpsim_blocks){0},
                               &k->q->tensor);
    return 0;
}

int cast_tiles_run(quantising *q, trace_error *error)
{
    const block_part all = {0, 0, q->rows, q->cols};
    work k = {.q = q, .block = q->how->block, .inner = q->columns ? q->rows : q->cols};
    q->tensor = 1;
    k.tiles = pass_block_tile_lines(&all, unit_of(&k));
    int result = 0;
    make_lanes(&k);
    if ((q->how->tensor_scale || is_whole(&k.block)))
        result = first_pass(&k, error);
    if (!result)
        result = run(&k, error);
    clear(&k);
    return result;
}
