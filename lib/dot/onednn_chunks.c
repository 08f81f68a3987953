/* onednn_chunks.c -- see onednn.h: AMX where the left operand lies by columns, and AVX512. Blocks of rows and columns are tried
 * one after the other; the depth of a chunk follows from their size, or is fixed. */
#include "onednn.h"

#include "../base/environment.h"

#include <math.h>

/* ---- AMX ---- */

enum { BLOCK = 64, MOST = 8, BUCKETS = 13, DEEP = 1024 };

/* What is tried, and what came of it. */
typedef struct trial {
    const mpsim_onednn_shape *s;
    int64_t m, n, n_block; /* rows and columns of a chunk                         */
    int64_t k_threads;
    int64_t k_block, blocks; /* a chunk of the depth is so many blocks            */
} trial;

/* Bytes of a chunk: operands, the forms they are copied into, results and their sums. */
static int64_t chunk_bytes(const trial *t, int64_t block, int64_t blocks)
{
    const int64_t depth = block * blocks, sum = t->s->depth > depth || t->s->depth % block ? 4 * t->m * t->n : 0;
    int64_t line = mpsim_whole(block, MPSIM_ONEDNN_TILE);
    if (line >= 512 && (line & (line - 1)) == 0)
        line += MPSIM_ONEDNN_TILE;
    return 2 * depth * t->m + 2 * line * blocks * t->m + 2 * depth * t->n + 2 * t->n_block * depth + 2 * t->m * t->n +
           sum;
}

static void set_depth(trial *t)
{
    const int64_t depth = t->s->depth;
    t->k_block = mpsim_least(mpsim_whole(mpsim_up(depth, t->k_threads), 2), MPSIM_ONEDNN_TILE);
    t->blocks = 1;
    if (depth < MPSIM_ONEDNN_TILE)
        return;
    const int64_t all = mpsim_up(mpsim_up(depth, t->k_block), t->k_threads), rest = depth % t->k_block;
    const int64_t bytes = chunk_bytes(t, t->k_block, all);
    t->blocks = all;
    if (bytes >= MPSIM_ONEDNN_L2 && all > 1) {
        const int64_t fewer = mpsim_up(all, mpsim_up(bytes, MPSIM_ONEDNN_L2));
        const int64_t more = mpsim_most(all / (bytes / MPSIM_ONEDNN_L2), 1);
        const int even = all % more == 0 ||
                         all % fewer < all % more; /* the rest of the longer ones, or less with the others */
        t->blocks = !even || all % fewer == 0 ? fewer : more;
    }
    if (rest == 0 && depth % (t->k_block * t->blocks) == 0) {
        t->k_block *= t->blocks;
        t->blocks = 1;
    } else if (t->k_threads == 1 && depth == t->k_block * t->blocks + rest) {
        t->k_block *= t->blocks;
        t->blocks = 2;
    }
}

/* How well the chunk fits the second level of the cache, what is copied is used again, and threads have equal work. */
static float score(const trial *t)
{
    const mpsim_onednn_shape *s = t->s;
    const int64_t bytes = chunk_bytes(t, t->k_block, t->blocks), team = s->threads / t->k_threads;
    const float threads = (float)mpsim_least(s->threads, 100), balance = (threads - 1) / threads, cache = 1 / threads;
    const float far = fabsf((float)MPSIM_ONEDNN_L2 - (float)bytes) / (float)mpsim_most(MPSIM_ONEDNN_L2, bytes);
    const float used_m = fminf((float)t->m / (float)mpsim_least(s->rows, 256), 1);
    const float used_n = fminf((float)t->n / (float)mpsim_least(s->columns, 256), 1);
    float sum = cache * (1 - far) + 0.5F * (used_m + used_n);
    if (balance > 0) {
        const int64_t chunks = mpsim_up(s->rows, t->m) * mpsim_up(s->columns, t->n), depth = t->k_block * t->blocks;
        const float work = (float)s->rows / (float)t->m * ((float)s->columns / (float)t->n) /
                           (float)mpsim_whole(chunks, team) * (float)team;
        float deep = 1;
        if (t->k_threads > 1)
            deep = 0.8F * ((float)s->depth / (float)depth) /
                   (float)mpsim_whole(mpsim_up(s->depth, depth), t->k_threads) * (float)t->k_threads;
        sum += balance * (work * deep / (float)s->threads);
    }
    return sum / (1 + balance + cache);
}

/* Lengths of blocks of rows are tried in the order of a hash table, as which they are kept there; of equal scores the first wins. */
typedef struct lengths {
    int64_t length[MOST];
    size_t n;
} lengths;

static void keep_length(lengths *l, int64_t length)
{
    size_t at = l->n;
    for (size_t i = l->n; i-- > 0;) {
        if (l->length[i] == length)
            return;
        at = l->length[i] % BUCKETS == length % BUCKETS ? i : at;
    }
    at = at == l->n ? 0 : at;
    for (size_t i = l->n++; i > at; i--)
        l->length[i] = l->length[i - 1];
    l->length[at] = length;
}

/* Rows of the largest block. */
static int64_t most_rows(int64_t rows)
{
    for (int64_t tile = 16; tile >= 13; tile--)
        for (int64_t tiles = 4; tiles >= 2; tiles--)
            if (rows % (tile * tiles) == 0)
                return tile * tiles;
    return mpsim_least(rows, BLOCK);
}

typedef struct best {
    float score;
    trial t;
} best;

/* One trial, and whether it is the best so far. */
static int try(best *b, trial t, int64_t m_block, int64_t m_blocks, int64_t n_blocks)
{
    t.m = m_block * m_blocks;
    t.n = t.n_block * n_blocks;
    set_depth(&t);
    const float x = score(&t);
    if (!(x > b->score))
        return 0;
    *b = (best){x, t};
    return 1;
}

static void try_all(best *b, const mpsim_onednn_shape *s, int64_t k_threads, int64_t most_k_threads)
{
    const int64_t largest = most_rows(s->rows), team = s->threads / k_threads;
    const trial t = {.s = s, .k_threads = k_threads, .n_block = mpsim_least(s->columns, BLOCK)};
    const int64_t m_all = mpsim_up(s->rows, largest), n_all = mpsim_up(s->columns, t.n_block);
    const int64_t work = m_all * n_all * mpsim_least(mpsim_up(s->depth, DEEP), k_threads);
    const int64_t least = 2 * work < 3 * s->threads && largest > 32 ? mpsim_up(largest, 2) : largest;
    lengths l = {.n = 0};
    int found = 0;
    for (int64_t m = largest; m >= least; m = m > 1 ? mpsim_up(m, 2) : 0)
        keep_length(&l, m);
    for (int64_t m = mpsim_least(s->rows / 16 * 16, BLOCK); s->rows > 16 && m >= mpsim_whole(least, 16); m -= 16)
        keep_length(&l, m);
    for (size_t i = 0; i < l.n; i++) {
        for (int64_t n = mpsim_least(work > 16 * s->threads ? 6 : 4, n_all); n > 0; n--) {
            for (int64_t m = mpsim_least(4, m_all); m > 0; m--) {
                const int64_t chunks = mpsim_up(s->rows, l.length[i] * m) * mpsim_up(s->columns, t.n_block * n);
                if (most_k_threads > 1 || chunks >= 3 * team || chunks % team == 0)
                    found |= try(b, t, l.length[i], m, n);
            }
        }
    }
    if (!found)
        try(b, t, least, 1, 1);
}

void mpsim_onednn_by_chunks(mpsim_onednn_cuts *c, const mpsim_onednn_shape *s)
{
    const int64_t deep = mpsim_least(mpsim_most(1, mpsim_least(7, s->threads / 8)), mpsim_up(s->depth, DEEP));
    best b = {.score = 0};
    for (int64_t k_threads = 1; k_threads <= deep; k_threads++)
        try_all(&b, s, k_threads, deep);
    *c = (mpsim_onednn_cuts){
        .parts = b.t.k_threads, .piece = b.t.k_block * b.t.blocks, .chunk = b.t.k_block * b.t.blocks, .apart = 1};
}

/* ---- AVX512 ---- */

/* How far pieces of work are from filling a number of places. */
static float unevenness(int64_t work, int64_t places)
{
    const int64_t rest = work % places;
    return (float)(work < places ? places - rest : mpsim_least(places - rest, rest)) / (float)places;
}

/* The mean of all that may be uneven. */
static float imbalance(const mpsim_onednn_shape *s, int64_t k_threads, int64_t chunk, int64_t m_block, int64_t n_blocks)
{
    const int64_t team = s->threads / k_threads, n_block = mpsim_least(BLOCK, s->columns);
    const int64_t m_all = mpsim_up(s->rows, m_block), n_all = mpsim_up(s->columns, n_block);
    const float work = unevenness(m_all * mpsim_up(s->columns, n_block * n_blocks), team);
    const float rows = (float)(m_block * m_all % s->rows) / (float)s->rows;
    const float columns = ((float)mpsim_up(n_all, n_blocks) * (float)n_blocks - (float)n_all) / (float)n_all;
    const float idle = ((float)s->threads - (float)(team * k_threads)) / (float)s->threads;
    return (work + rows + columns + idle + unevenness(s->depth, k_threads * chunk)) / 5;
}

/* Among how many threads the depth is divided: only where rows and columns keep too few of them busy. */
static int64_t threads_of_depth(const mpsim_onednn_shape *s, int64_t chunk)
{
    const int64_t n_all = mpsim_up(s->columns, mpsim_least(BLOCK, s->columns)), depth = s->depth;
    int64_t chosen = 1;
    float least = 1;
    if (s->threads <= n_all || !s->left_transposed || depth < 2048 || (s->bf16 && depth & (depth - 1)))
        return 1;
    for (int64_t k_threads = mpsim_least(s->threads, 4); k_threads > 0; k_threads--) {
        for (int64_t n_blocks = mpsim_least(16, n_all); n_blocks > 0; n_blocks--) {
            for (int64_t m = mpsim_least(256, s->rows); m >= mpsim_least(16, s->rows); m--) {
                const float x = imbalance(s, k_threads, chunk, m, n_blocks);
                if (x < least) {
                    least = x;
                    chosen = k_threads;
                }
            }
        }
    }
    return chosen;
}

void mpsim_onednn_avx512(mpsim_onednn_cuts *c, const mpsim_onednn_shape *s)
{
    const mpsim_environment before = mpsim_environment_default();
    const int64_t cut = mpsim_onednn_chunk(s->depth, s->left_transposed), chunk = cut ? cut : s->depth;
    *c = (mpsim_onednn_cuts){.parts = threads_of_depth(s, chunk), .piece = chunk, .chunk = chunk};
    mpsim_environment_restore(before);
}
