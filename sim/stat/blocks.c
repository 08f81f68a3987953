/* blocks.c -- see blocks.h. */
#include "stat.h"

#include "../array/array.h"
#include "../cli/options.h"

#include <stdlib.h>

typedef enum phase_kind { LOOK, LOOK_AGAIN, QUANTISE } phase_kind;

typedef struct phase {
    phase_kind kind;
    size_t target; /* LOOK_AGAIN: which */
    block_unit unit;
    block_tiling tilings[BLOCK_PARTS];
    size_t parts;
} phase;

struct blockrun {
    const block_list *list;
    blockrun_of of;
    elements from;
    int scattered; /* elements have random bits by their places in the file, which are not those in `from` */
    block_views views;
    phase *looks, *passes; /* the phases: those that look, those that quantise */
    size_t n_looks, n_passes;
    size_t *pass_of; /* of each target */
};

struct blocklane {
    block_buffers buffers;
    mpsim_block_stats *found; /* of each target */
    size_t count;
};

/* ---- lanes ---- */

blocklane *stat_blocklane_new(const target_list *targets)
{
    blocklane *l = array_zeros(1, sizeof *l);
    if (!l)
        return NULL;
    l->count = targets->blocks.count;
    l->found = array_zeros(l->count, sizeof *l->found);
    if (stat_block_buffers_make(&l->buffers, &targets->blocks) == 0 && l->found)
        return l;
    stat_blocklane_free(l);
    return NULL;
}

void stat_blocklane_free(blocklane *l)
{
    if (!l)
        return;
    stat_block_buffers_clear(&l->buffers);
    free(l->found);
    free(l);
}

void stat_blocklane_begin(blocklane *l)
{
    for (size_t i = 0; i < l->count; i++)
        mpsim_block_stats_init(&l->found[i]);
}

/* ---- phases ---- */

/* Elements `first` to `end` - 1 in tiles. */
static void lay_tiles(const blockrun *r, phase *p, uint64_t first, uint64_t end)
{
    block_part parts[BLOCK_PARTS];
    p->parts = pass_block_parts(parts, &r->views.m, first, end);
    for (size_t i = 0; i < p->parts; i++)
        p->tilings[i] = pass_block_tile(&parts[i], p->unit);
}

/* Recipes with a common tile go into one pass. */
static void divide(blockrun *r)
{
    const block_list *l = r->list;
    r->n_passes = 1;
    r->passes[0] = (phase){.kind = QUANTISE, .unit = {1, 1}};
    for (size_t i = 0; i < l->count; i++) {
        const block_unit own = pass_block_unit_of(&l->items[i], r->views.m.transposed);
        size_t p = 0;
        if (!stat_block_views_applies(&r->views, &l->items[i]))
            continue;
        for (; p < r->n_passes; p++) {
            const block_unit both = pass_block_unit_join(r->passes[p].unit, own);
            if ((both.rows == own.rows && both.cols == own.cols) || both.rows <= BLOCK_TILE / both.cols)
                break;
        }
        if (p == r->n_passes)
            r->passes[r->n_passes++] = (phase){.kind = QUANTISE, .unit = own};
        r->passes[p].unit = pass_block_unit_join(r->passes[p].unit, own);
        r->pass_of[i] = p;
    }
}

/* Whether each tile has whole rows, or whole columns, of the matrix. */
static void see_tiles(const blockrun *r, const phase *p, int *whole_rows, int *whole_cols)
{
    for (size_t i = 0; i < p->parts; i++) {
        *whole_rows &= p->tilings[i].cols == r->views.m.cols;
        *whole_cols &= p->tilings[i].rows == r->views.m.rows;
    }
}

static void add_looks(blockrun *r, uint64_t all)
{
    block_unit unit;
    if (stat_block_views_looks(&r->views, &unit))
        r->looks[r->n_looks++] = (phase){.kind = LOOK, .unit = unit};
    for (size_t i = 0; i < r->list->count; i++)
        if (stat_block_views_looks_again(&r->views, i))
            r->looks[r->n_looks++] = (phase){.kind = LOOK_AGAIN, .target = i, .unit = r->passes[r->pass_of[i]].unit};
    for (size_t i = 0; i < r->n_looks; i++)
        lay_tiles(r, &r->looks[i], 0, all);
}

static int plan(blockrun *r, trace_error *error)
{
    const uint64_t all = r->views.m.rows * r->views.m.cols;
    int whole_rows = 1, whole_cols = 1;
    divide(r);
    for (size_t i = 0; i < r->n_passes; i++) {
        lay_tiles(r, &r->passes[i], 0, all);
        see_tiles(r, &r->passes[i], &whole_rows, &whole_cols);
        lay_tiles(r, &r->passes[i], r->of.first, r->of.first + r->of.n);
        see_tiles(r, &r->passes[i], &whole_rows, &whole_cols);
    }
    const int bad = stat_block_views_plan(&r->views, whole_rows, whole_cols);
    if (bad < 0)
        return trace_no_memory(r->of.t, error);
    if (bad)
        return trace_error_set(error, EXIT_DATA, trace_path(r->of.t), UINT64_MAX,
                               "tensor '%.400s': a recipe with a scale for each row, of which there are more than %d "
                               "long ones",
                               trace_at(r->of.t, r->of.i)->name, BLOCK_ROWS_MOST);
    add_looks(r, all);
    return 0;
}

static int has_random_bits(const target_list *targets)
{
    int any = 0;
    for (size_t i = 0; i < targets->count; i++)
        any |= targets->items[i].rounding.mode >= MPSIM_ROUND_STOCHASTIC_A;
    return any;
}

blockrun *stat_blockrun_new(const blockrun_of *of, const target_list *targets, const atomic_int *asked,
                            trace_error *error)
{
    const block_list *l = &targets->blocks;
    const trace_tensor *x = trace_at(of->t, of->i);
    const block_matrix m = pass_block_matrix_of(x);
    const elements_order order = pass_block_in_rows(x) ? ELEMENTS_ROWS : ELEMENTS_STORED;
    blockrun *r = array_zeros(1, sizeof *r);
    if (!r) {
        trace_no_memory(of->t, error);
        return NULL;
    }
    r->list = l;
    r->of = *of;
    r->scattered = pass_block_in_rows(x) && has_random_bits(targets);
    r->looks = array_zeros(l->count, sizeof *r->looks);
    r->passes = array_zeros(l->count, sizeof *r->passes);
    r->pass_of = array_zeros(l->count, sizeof *r->pass_of);
    if (stat_block_views_make(&r->views, l, &m, of->seed, of->stream) || !r->looks || !r->passes || !r->pass_of)
        trace_no_memory(of->t, error);
    else if (!plan(r, error) && pass_elements_open(&r->from, of->t, of->i, order, asked, error) == 0)
        return r;
    stat_blockrun_free(r);
    return NULL;
}

void stat_blockrun_free(blockrun *r)
{
    if (!r)
        return;
    stat_block_views_clear(&r->views);
    pass_elements_close(&r->from);
    free(r->looks);
    free(r->passes);
    free(r->pass_of);
    free(r);
}

int stat_blockrun_phases(const blockrun *r)
{
    return (int)(r->n_looks + r->n_passes);
}

static const phase *phase_at(const blockrun *r, int k)
{
    return (size_t)k < r->n_looks ? &r->looks[k] : &r->passes[(size_t)k - r->n_looks];
}

uint64_t stat_blockrun_tiles(const blockrun *r, int k)
{
    const phase *p = phase_at(r, k);
    uint64_t n = 0;
    for (size_t i = 0; i < p->parts; i++)
        n += p->tilings[i].count;
    return n;
}

int stat_blockrun_whole(const blockrun *r)
{
    return r->n_passes == 1;
}

/* ---- a tile ---- */

static block_part tile_at(const phase *p, uint64_t k)
{
    size_t i = 0;
    while (k >= p->tilings[i].count)
        k -= p->tilings[i++].count;
    return pass_block_tile_at(&p->tilings[i], k);
}

/* The summary learns of elements. */
typedef struct told {
    const blockrun *of;
    mpsim_summary *summary;
} told;

static int tell(void *context, uint64_t first, const void *codes, size_t n, trace_error *error)
{
    const told *to = context;
    const elements *from = &to->of->from;
    const size_t most = to->of->scattered ? 1 : n;
    mpsim_rng rng = {to->of->of.seed, to->of->of.stream, first};
    for (size_t i = 0; i < n; i += most) {
        if (to->of->scattered)
            rng.index = pass_block_stored(trace_at(from->t, from->i), first + i);
        if (mpsim_summary_add_codes(to->summary, from->format, &rng, (const char *)codes + i * from->width, most) !=
            MPSIM_OK)
            return trace_no_memory(from->t, error);
    }
    return 0;
}

int stat_blockrun_tile(blockrun *r, int k, uint64_t tile, blocklane *l, const blocktile_how *how, uint64_t *n,
                       trace_error *error)
{
    const phase *p = phase_at(r, k);
    const block_part of = tile_at(p, tile);
    const int tells = (size_t)k == r->n_looks;
    told to = {r, how->summary};
    const block_reader reader = {&r->from, r->views.m.cols, how->codes, how->bytes, tells ? tell : NULL, &to};
    pass_elements_begin(&l->buffers.beyond);
    if (pass_block_read(&reader, &of, l->buffers.x, &l->buffers.beyond, error))
        return -1;
    if (p->kind == LOOK)
        stat_block_views_look(&r->views, &of, &l->buffers);
    else if (p->kind == LOOK_AGAIN)
        stat_block_views_look_again(&r->views, &of, &l->buffers, p->target);
    else
        stat_block_views_quantise(&r->views, &of, &l->buffers, r->pass_of, (size_t)k - r->n_looks, l->found);
    *n += tells ? of.rows * of.cols : 0;
    return 0;
}

/* ---- what was found ---- */

void stat_blocklane_take(const blocklane *l, group *g)
{
    for (size_t i = 0; i < l->count; i++)
        mpsim_block_stats_merge(&g->blocks[i].stats, &l->found[i]);
}

/* A tensor of one dimension has no columns: all of its squares are left out there. Behind a transform they are added, too;
 * see blockviews.h. */
void stat_blockrun_end(const blockrun *r, group *g, uint64_t n)
{
    for (size_t i = 0; i < g->n_blocks; i++) {
        block_sums *b = &g->blocks[i];
        const int is = stat_block_views_applies(&r->views, &r->list->items[i]);
        b->elements = is ? n : 0;
        if (!is || r->list->items[i].transform)
            mpsim_sum_merge(&b->stats.casts.sum_squares_left_out, &g->stats.sum_squares);
    }
}
