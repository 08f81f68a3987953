/* onednn.c -- see onednn.h: AMX where the left operand lies by rows. A plan divides rows, depth and columns among threads. In a thread
 * one side passes by in strips, and meets what is kept of the other in the second level of the cache:
 *
 *     by_rows: strips of rows pass, columns are kept            else: strips of columns pass, rows are kept
 *
 * Each plan gets a score, peak over expected cycles; the best one's block of the depth is the chunk. */
#include "onednn.h"

#include "../base/environment.h"

enum {
    L1 = 5 * (48 << 10) / 6, /* of the first level what a plan may fill        */
    WAYS = 3 * 16 / 4,       /* of the second level's ways                     */
    WAY = 2048 * 64,         /* bytes                                          */
    PAGE = 4096,
    LINE = 64,
    WIDE = 16,        /* columns, and rows at most, of a tile                          */
    LEAST = 32,       /* rows or columns of a thread                                   */
    LEAST_DEPTH = 128 /* and its depth; of less, it needs that many columns            */
};

/* Cycles a byte takes are 1 over these, by the number of threads that share what is read. */
static const float hit = (float)106.41, load_miss = (float)(106.41 / 2.28), store_miss = (float)(106.41 / 2.85);
static const float third_level = 6;

static float from_memory(int64_t threads)
{
    static const struct {
        int64_t threads;
        float bytes;
    } seen[] = {{1, 2.28F}, {2, 0.9F}, {4, 2.39F}, {8, 2.98F}, {16, 3.31F}, {32, 4.06F}};
    size_t i = 0;
    while (i < 6 && seen[i].threads < threads)
        i++;
    if (i == 0 || i == 6)
        return seen[i ? 5 : 0].bytes;
    return seen[i - 1].bytes + (seen[i].bytes - seen[i - 1].bytes) * (float)(threads - seen[i - 1].threads) /
                                   (float)(seen[i].threads - seen[i - 1].threads);
}

/* Rows, or columns. */
typedef struct side {
    int64_t all, threads, own; /* of the product; threads that share them; of a thread  */
    int64_t strip, block;      /* two tiles; what one call multiplies                   */
} side;

typedef struct plan {
    const mpsim_onednn_shape *s;
    side rows, columns;
    int64_t k_threads, k; /* of the depth */
    int64_t tile_rows, tile_depth;
    int by_rows;                       /* strips of rows pass, not of columns */
    int64_t k_block, k_blocks, chunks; /* of the depth what one call multiplies; so many in a piece; of strips */
    int left_passes;                   /* past the first level of the cache             */
    int copies_left, pads;             /* what becomes of tiles that are not full       */
    float score;
} plan;

static const side *side_of(const plan *p, int rows)
{
    return rows ? &p->rows : &p->columns;
}

static void divide(plan *p, int64_t m, int64_t k, int64_t n)
{
    p->rows.threads = m;
    p->k_threads = k;
    p->columns.threads = n;
    p->rows.own = mpsim_up(p->s->rows, m);
    p->k = mpsim_up(p->s->depth, k);
    p->columns.own = mpsim_up(p->s->columns, n);
}

static int64_t tile_of(int64_t n, int64_t full) /* equal ones */
{
    return mpsim_up(n, mpsim_up(n, full));
}

static void set_tiles(plan *p)
{
    p->tile_rows = tile_of(p->rows.own, WIDE);
    p->tile_depth = mpsim_least(MPSIM_ONEDNN_TILE, p->s->depth);
    p->rows.strip = mpsim_least(p->s->rows, 2 * p->tile_rows);
    p->columns.strip = mpsim_least(p->s->columns, 2 * WIDE);
}

static int is_worth_it(const plan *p)
{
    const int64_t least_columns = p->k_threads == 1 && p->k < LEAST_DEPTH ? LEAST_DEPTH : LEAST;
    return !(p->rows.threads > 1 && mpsim_whole(p->rows.own, p->tile_rows) < LEAST) &&
           !(p->k_threads > 1 && p->k < LEAST_DEPTH) &&
           !(p->columns.threads > 1 && mpsim_whole(p->columns.own, WIDE) < least_columns);
}

static int pads_tiles(int64_t depth, int64_t block)
{
    const int64_t rest = depth % block;
    return depth % MPSIM_ONEDNN_TILE != 0 &&
           !(mpsim_fills_equal_tiles(block) && (rest == 0 || mpsim_fills_equal_tiles(rest)));
}

/* ---- bytes ---- */

static int64_t result_strip(int64_t columns)
{
    return mpsim_whole(2 * columns, LINE);
}

/* Of a strip by a strip: two of sums and a result, beside which operands stay in the first level. */
static int64_t first_level_results(const plan *p)
{
    return 8 * p->rows.strip * p->columns.strip + p->rows.strip * result_strip(p->columns.strip);
}

/* The depth of a block whose strips, of so many rows or columns, stay in the first level. */
static int64_t block_of_depth(const plan *p, int64_t strip)
{
    const int64_t room = L1 - first_level_results(p);
    const int64_t tiles = mpsim_up(mpsim_up(p->s->depth, p->tile_depth), p->k_threads);
    const int64_t most = room / (strip * 2) / p->tile_depth;
    return mpsim_least(mpsim_up(tiles, mpsim_up(tiles, most)) * p->tile_depth, p->s->depth);
}

/* What a piece of `blocks` blocks takes of the second level, whose operand that stays there has `kept` columns or rows; with the
 * form it was in before, too, where that is asked for. */
static int64_t second_level(const plan *p, int by_rows, int64_t block, int64_t blocks, int64_t kept, int both_forms)
{
    const int64_t strip = side_of(p, by_rows)->strip;
    const int64_t depth = mpsim_least(block * blocks, p->k);
    const int64_t operands = 2 * strip * depth * 2 + kept * depth * 2 + (both_forms ? kept * block * blocks * 2 : 0);
    const int64_t results = by_rows ? 2 * p->rows.strip * result_strip(kept)
                                    : 2 * result_strip(p->columns.strip) * kept;
    const int64_t sums = block == p->s->depth ? 2 * p->rows.strip * p->columns.strip * 4 : 2 * strip * kept * 4;
    return operands + sums + results;
}

/* The same where all sums stay there. */
static int64_t second_level_sums(const plan *p, int by_rows, int64_t block, int64_t blocks, int64_t kept)
{
    const int64_t passing = side_of(p, by_rows)->own, depth = mpsim_least(block * blocks, p->k);
    return 2 * passing * depth * 2 + 2 * kept * depth * 2 + passing * kept * 4;
}

/* ---- blocks of one direction ---- */

typedef struct blocks {
    int possible;
    float ratio;            /* products a byte                                  */
    int64_t block;          /* of the depth                                     */
    int64_t k_blocks, kept; /* of a piece; strips of the operand that is kept   */
} blocks;

static float ratio_of(const plan *p, int by_rows, int64_t block, int64_t k_blocks, int64_t kept, int both_forms)
{
    const int64_t strip = side_of(p, by_rows)->strip;
    const int64_t depth = mpsim_least(block * k_blocks, p->k);
    if (second_level(p, by_rows, block, k_blocks, kept, both_forms) > MPSIM_ONEDNN_L2)
        return 0;
    const int sums_stay = p->k_threads == 1 && (depth == p->s->depth ||
                                                second_level_sums(p, by_rows, block, k_blocks, kept) < MPSIM_ONEDNN_L2);
    return (float)(strip * depth * kept) /
           (float)(strip * depth * 2 + kept * depth * 2 + (sums_stay ? 0 : strip * kept * 4));
}

/* Of the lengths of groups, ceil(all / 1), ceil(all / 2), ..., the next below one of them; 0 after 1. */
static int64_t next_group(int64_t all, int64_t group)
{
    return group == 1 ? 0 : mpsim_up(all, mpsim_up(all, group - 1));
}

/* The best blocks, those with at least so many of the depth. Where there are none, b->k_blocks stays. */
static void choose_blocks(blocks *b, const plan *p, int by_rows, int64_t block, int64_t least, int both_forms)
{
    const side *passing = side_of(p, by_rows), *stays = side_of(p, !by_rows);
    b->block = block;
    b->possible = mpsim_whole(passing->own, passing->strip) * (passing->threads - 1) < passing->all &&
                  mpsim_whole(p->k, block) * (p->k_threads - 1) < p->s->depth;
    if (!b->possible)
        return;
    b->ratio = 0;
    b->kept = 0;
    const int64_t all_kept = mpsim_up(stays->own, stays->strip), all_deep = mpsim_up(p->k, block);
    for (int64_t kept = all_kept; kept > 0; kept = next_group(all_kept, kept)) {
        for (int64_t deep = all_deep; deep > 0; deep = next_group(all_deep, deep)) {
            const float ratio = ratio_of(p, by_rows, block, deep, kept * stays->strip, both_forms);
            if (ratio > b->ratio && deep >= least) {
                b->ratio = ratio;
                b->k_blocks = deep;
                b->kept = kept;
            }
        }
    }
    b->possible = b->kept > 0 && mpsim_whole(stays->own, b->kept * stays->strip) * (stays->threads - 1) < stays->all &&
                  mpsim_whole(p->k, b->k_blocks * block) * (p->k_threads - 1) < p->s->depth;
}

/* Strips of columns: not where the depth is walked over again and again, nor where rows of the result meet in few ways. */
static int columns_are_possible(const plan *p, const blocks *b)
{
    const int64_t pieces = mpsim_up(p->s->depth, b->block * b->k_blocks), kept = b->kept * p->rows.strip;
    int64_t used = second_level_sums(p, 0, b->block, b->k_blocks, kept), stride = p->s->columns * 2 % PAGE;
    if (used > MPSIM_ONEDNN_L2)
        used = second_level(p, 0, b->block, b->k_blocks, kept, 0);
    stride = stride ? stride : PAGE;
    return !(pieces != 1 && (pieces != p->k_threads || used * p->k_threads >= MPSIM_ONEDNN_L2)) &&
           !(WAY % stride == 0 && mpsim_up(stride * p->rows.own, WAY) >= WAYS);
}

/* ---- the score ---- */

static float largest(const float *x, size_t n)
{
    float most = x[0];
    for (size_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* Cycles of a strip: of what takes longest. */
static float strip_cycles(const plan *p, float passing, float kept, float own)
{
    const side *passes = side_of(p, p->by_rows), *stays = side_of(p, !p->by_rows);
    const int64_t n_strips = mpsim_up(p->columns.block, p->columns.strip);
    const float reuse = (float)mpsim_up(stays->block, stays->strip),
                elements = (float)(p->rows.block * p->columns.block);
    const float missed = (float)(p->rows.block * n_strips * result_strip(p->columns.strip));
    const float written = (float)(p->rows.block * n_strips * mpsim_up(p->columns.strip, WIDE) * LINE);
    const float partial = 4 * elements * (float)p->k_blocks / (p->k_block == p->s->depth ? hit : store_miss);
    const float results = missed / store_miss + (written - missed) / hit + elements * 4 / hit + partial;
    const float first_level = passing * 2 / load_miss + passing * (reuse - 1) / hit + kept / load_miss + results;
    const int64_t sharing = mpsim_most(1, stays->threads);
    const float memory = p->by_rows ? passing / from_memory(sharing) + own / from_memory(1) : own / from_memory(1);
    const float third = (p->by_rows ? own + passing : own) / third_level;
    const int64_t products = passes->strip * p->k * stays->own;
    const int64_t lines = p->by_rows ? p->rows.strip * mpsim_up(p->columns.own, WIDE)
                                     : p->rows.own * mpsim_up(p->columns.strip, WIDE);
    const float tiles = (float)(products / (p->tile_rows * p->tile_depth * WIDE)) * (float)p->tile_rows;
    const float rounding = 4 * (float)lines / 1.2F;
    const float all[] = {memory, third, first_level, tiles, rounding};
    return largest(all, sizeof all / sizeof all[0]);
}

/* Cycles to add the sums of threads that share the depth, or less than 0 if they do not. */
static float reduction_cycles(const plan *p)
{
    const mpsim_onednn_shape *s = p->s;
    const int64_t operands = p->rows.own * p->k * 2 + p->columns.own * p->k * 2 + p->rows.own * p->columns.own * 2,
                  results = p->rows.threads * p->columns.threads;
    if (p->k_threads == 1)
        return 0;
    if (p->rows.own * p->columns.own * 4 * 2 >= MPSIM_ONEDNN_L2)
        return -1;
    const float read = (float)(s->rows * mpsim_whole(s->columns, WIDE) * 4 * (p->k_threads - 1) / results);
    const float reading = read / (operands < MPSIM_ONEDNN_L2 ? from_memory(2) : third_level);
    return reading + (float)(s->rows * s->columns * 2 / results) / from_memory(1) + 25000;
}

static float score_of(const plan *p)
{
    const mpsim_onednn_shape *s = p->s;
    const side *passes = side_of(p, p->by_rows), *stays = side_of(p, !p->by_rows);
    const int64_t size = p->k_threads == 1 ? 2 : 4;
    const int64_t own = size * passes->strip * stays->own;
    const int64_t passing = 2 * p->k * passes->strip;
    const int64_t strips = mpsim_up(passes->own, passes->strip);
    const float kept = (float)(2 * p->k * stays->own), others = (float)strips - 1;
    const float kept_read = kept / from_memory(passes->threads);
    const float strip = strip_cycles(p, (float)passing, kept, (float)own), reduction = reduction_cycles(p);
    float cycles;
    if (reduction < 0)
        return 0;
    if (p->by_rows) { /* all of the right operand is put into another form, with the first strip */
        const int fits = second_level(p, 1, p->k_block, p->k_blocks, p->columns.block, 1) < MPSIM_ONEDNN_L2;
        cycles = kept_read + (fits ? strip : kept / third_level) + others * strip;
    } else { /* each strip of it is, before it is used */
        const float read = (float)passing / from_memory(mpsim_most(1, p->rows.threads));
        cycles = kept_read + (float)(passing + own) / from_memory(1) + others * (read + strip);
    }
    return (float)(s->rows * s->depth * s->columns) / (float)(512 * s->threads) / (cycles + reduction);
}

/* ---- plans ---- */

static void set_rows(plan *p, blocks *b, int both_forms)
{
    const int64_t depth = p->s->depth, others = first_level_results(p), all = mpsim_up(depth, b->block);
    p->left_passes = 0;
    if (b->block < depth && all * b->block * p->rows.strip * 2 + others > L1) { /* then not in the first level */
        choose_blocks(b, p, 1, MPSIM_ONEDNN_TILE, b->block / MPSIM_ONEDNN_TILE, both_forms);
        b->block = mpsim_least(MPSIM_ONEDNN_TILE * b->k_blocks, depth);
        b->k_blocks = 1;
        p->left_passes = 1;
    }
    if (b->block * p->rows.strip * 2 + others <= L1 && !(p->k_threads == 1 && p->k < LEAST_DEPTH))
        p->left_passes = 0;
    p->columns.block = mpsim_least(b->kept * p->columns.strip, p->s->columns);
    p->rows.block = p->rows.strip;
    p->chunks = mpsim_up(p->rows.own, p->rows.block);
    p->copies_left = depth % MPSIM_ONEDNN_TILE != 0 && p->columns.block >= 3 * p->columns.strip &&
                     b->block >= LEAST_DEPTH;
}

static void set_columns(plan *p, const blocks *b)
{
    p->left_passes = 1;
    p->columns.block = p->columns.strip;
    p->rows.block = mpsim_least(b->kept * p->rows.strip, p->s->rows);
    p->chunks = mpsim_up(p->columns.own, p->columns.block);
    p->copies_left = 0;
}

/* The blocks of a plan, and its score; 0 if there are none. */
static int set_blocks(plan *p, int rows_only, int both_forms)
{
    blocks rows = {0}, columns = {0};
    choose_blocks(&rows, p, 1, block_of_depth(p, p->rows.strip), 0, both_forms);
    if (!rows_only) {
        choose_blocks(&columns, p, 0, block_of_depth(p, p->columns.strip), 0, 0);
        columns.possible = columns.possible && columns_are_possible(p, &columns);
    }
    if (!rows.possible && !columns.possible)
        return 0;
    p->by_rows = !rows.possible                       ? 0
                 : !columns.possible                  ? 1
                 : p->rows.own < 2 * p->tile_rows     ? 1
                 : p->columns.own < 2 * (int64_t)WIDE ? 0
                                                      : p->rows.own >= p->columns.own;
    blocks *b = p->by_rows ? &rows : &columns;
    if (p->by_rows)
        set_rows(p, b, both_forms);
    else
        set_columns(p, b);
    p->k_block = b->block;
    p->k_blocks = b->k_blocks;
    p->pads = !p->copies_left && pads_tiles(p->s->depth, p->k_block);
    p->score = score_of(p);
    return 1;
}

/* Rows and columns of a thread's left operand and results are few. */
static int is_low(const plan *p)
{
    return p->rows.own * p->s->depth + p->rows.own * p->s->columns < MPSIM_ONEDNN_L2;
}

static int is_better(const plan *p, const plan *than)
{
    if (p->score != than->score)
        return p->score > than->score;
    if (p->by_rows != than->by_rows)
        return p->by_rows ? !(is_low(than) && p->left_passes) : is_low(p) && than->left_passes;
    return p->chunks > than->chunks;
}

/* Small shapes, which are not cut. 0: it is not one. */
static int plan_small(plan *p)
{
    const mpsim_onednn_shape *s = p->s;
    const int64_t rows = mpsim_up(s->rows, s->threads);
    int64_t used;
    if (s->rows <= 32 && s->right_transposed) {
        used = mpsim_up(s->columns, mpsim_whole(mpsim_up(s->columns, s->threads), mpsim_least(s->columns, 2 * WIDE)));
        p->rows.block = s->rows;
        if (s->rows * s->depth > MPSIM_ONEDNN_L2)
            return 0;
    } else if (s->depth <= MPSIM_ONEDNN_TILE) {
        used = mpsim_up(s->rows, rows);
        p->rows.block = mpsim_least(s->rows, 2 * tile_of(mpsim_up(s->rows, used), WIDE));
    } else if (s->columns <= 32) {
        p->rows.block = tile_of(rows, 2 * WIDE);
        used = mpsim_up(s->rows, mpsim_whole(rows, p->rows.block));
    } else {
        return 0;
    }
    if (4 * used < 3 * s->threads)
        return 0;
    p->k_threads = p->k_blocks = 1;
    p->k_block = s->depth;
    p->copies_left = 0;
    p->pads = pads_tiles(s->depth, s->depth);
    p->score = 1;
    return 1;
}

static void plan_any(plan *best, const mpsim_onednn_shape *s)
{
    plan p = *best;
    for (int64_t threads = s->threads; threads > 0; threads--) {
        for (int64_t m = 1; m <= threads; m++) {
            for (int64_t k = 1; threads % m == 0 && k <= threads / m; k++) {
                if (threads / m % k)
                    continue;
                divide(&p, m, k, threads / m / k);
                set_tiles(&p);
                if (is_worth_it(&p) && set_blocks(&p, 0, 0) && is_better(&p, best))
                    *best = p;
            }
        }
    }
    if (!s->right_transposed && !best->by_rows) { /* with the tiles of one thread, as they are now */
        divide(&p, best->rows.threads, best->k_threads, best->columns.threads);
        for (int both_forms = 0; both_forms < 2; both_forms++)
            if (set_blocks(&p, 1, both_forms) && is_better(&p, best))
                *best = p;
    }
}

void mpsim_onednn_amx(mpsim_onednn_cuts *c, const mpsim_onednn_shape *s)
{
    const mpsim_environment before = mpsim_environment_default();
    plan best = {.s = s,
                 .chunks = 1,
                 .rows = {.all = s->rows, .own = s->rows},
                 .columns = {.all = s->columns, .own = s->columns}};
    if (s->left_transposed) {
        mpsim_onednn_by_chunks(c, s);
    } else {
        if (!plan_small(&best))
            plan_any(&best, s);
        *c = (mpsim_onednn_cuts){.parts = best.k_threads,
                                 .piece = best.k_block * best.k_blocks,
                                 .chunk = best.k_block,
                                 .equal = !best.pads && !best.copies_left,
                                 .avx512 = 2 * best.rows.block * s->depth <= 126};
    }
    mpsim_environment_restore(before);
}
