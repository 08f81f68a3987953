/* pack.c -- see pack.h. */
#include "pack.h"

#include <math.h>
#include <string.h>

/* ---- exact sums ---- */

/* In the one form in which a number has no others: merging brings sums into it. */
static void put_sum(array_bytes *b, const mpsim_sum *s)
{
    mpsim_sum m = *s, nothing;
    mpsim_sum_init(&nothing);
    mpsim_sum_merge(&m, &nothing);
    bytes_put_count(b, m.first);
    bytes_put_count(b, m.end);
    for (int i = m.first; i + 1 < m.end; i++)
        bytes_put_word(b, (uint32_t)m.limb[i]);
    if (m.end)
        bytes_put_signed(b, m.limb[m.end - 1]);
}

static void take_sum(taker *t, mpsim_sum *s)
{
    mpsim_sum again, nothing;
    mpsim_sum_init(s);
    s->first = (uint16_t)take_number(t, MPSIM_SUM_LIMBS);
    s->end = (uint16_t)take_number(t, MPSIM_SUM_LIMBS);
    for (int i = s->first; i + 1 < s->end; i++)
        s->limb[i] = take_word(t);
    if (s->end > s->first) {
        const int64_t top = take_signed(t), most = (int64_t)1 << 32;
        t->bad |= top < -most || top > most;
        s->limb[s->end - 1] = t->bad ? 0 : top;
    }
    again = *s;
    mpsim_sum_init(&nothing);
    mpsim_sum_merge(&again, &nothing);
    t->bad |= again.first != s->first || again.end != s->end || memcmp(again.limb, s->limb, sizeof s->limb) != 0;
}

/* A magnitude: no NaN, no sign. */
static double take_magnitude(taker *t)
{
    const double x = take_double(t);
    t->bad |= isnan(x) || signbit(x);
    return t->bad ? 0 : x;
}

/* ---- rows ---- */

static size_t one(const group *g)
{
    (void)g;
    return 1;
}

static void put_stats(array_bytes *b, const group *g, size_t i)
{
    const mpsim_stats *s = &g->stats;
    (void)i;
    bytes_put_count(b, s->count);
    bytes_put_count(b, s->zero);
    bytes_put_count(b, s->nan);
    bytes_put_count(b, s->inf);
    bytes_put_double(b, s->amax);
    bytes_put_double(b, s->amin);
    put_sum(b, &s->sum);
    put_sum(b, &s->sum_squares);
}

static void take_stats(taker *t, group *g, size_t i)
{
    mpsim_stats *s = &g->stats;
    (void)i;
    s->count = take_count(t);
    s->zero = take_number(t, s->count);
    s->nan = take_number(t, s->count);
    s->inf = take_number(t, s->count);
    s->amax = take_magnitude(t);
    s->amin = take_magnitude(t);
    t->bad |= isinf(s->amax) || isinf(s->amin);
    take_sum(t, &s->sum);
    take_sum(t, &s->sum_squares);
}

static size_t one_if_histogram(const group *g)
{
    return g->histogram != NULL;
}

static void put_histogram(array_bytes *b, const group *g, size_t i)
{
    const mpsim_histogram *h = g->histogram;
    size_t first = 0, end = MPSIM_HISTOGRAM_BINS;
    (void)i;
    while (first < end && h->bin[first] == 0)
        first++;
    while (end > first && h->bin[end - 1] == 0)
        end--;
    bytes_put_count(b, h->zero);
    bytes_put_count(b, h->inf);
    bytes_put_count(b, h->nan);
    bytes_put_count(b, first);
    bytes_put_count(b, end);
    for (size_t k = first; k < end; k++)
        bytes_put_count(b, h->bin[k]);
}

static void take_histogram(taker *t, group *g, size_t i)
{
    mpsim_histogram *h = g->histogram;
    const uint64_t most = g->stats.count;
    (void)i;
    h->zero = take_number(t, most);
    h->inf = take_number(t, most);
    h->nan = take_number(t, most);
    const size_t first = (size_t)take_number(t, MPSIM_HISTOGRAM_BINS);
    const size_t end = (size_t)take_number(t, MPSIM_HISTOGRAM_BINS);
    for (size_t k = first; k < end && !t->bad; k++)
        h->bin[k] = take_number(t, most);
}

static size_t count_casts(const group *g)
{
    size_t n;
    group_own(g, &n);
    return n;
}

static void put_cast_stats(array_bytes *b, const mpsim_cast_stats *c)
{
    bytes_put_count(b, c->counts.inexact);
    bytes_put_count(b, c->counts.underflow);
    bytes_put_count(b, c->counts.subnormal);
    bytes_put_count(b, c->counts.overflow);
    bytes_put_count(b, c->counts.nan);
    bytes_put_count(b, c->compared);
    bytes_put_double(b, c->max_rel_err);
    put_sum(b, &c->sum_squared_error);
    put_sum(b, &c->sum_squares_left_out);
}

static void put_cast(array_bytes *b, const group *g, size_t i)
{
    size_t n;
    put_cast_stats(b, &group_own(g, &n)[i]);
}

static void take_cast_stats(taker *t, mpsim_cast_stats *c, uint64_t most)
{
    c->counts.inexact = take_number(t, most);
    c->counts.underflow = take_number(t, most);
    c->counts.subnormal = take_number(t, most);
    c->counts.overflow = take_number(t, most);
    c->counts.nan = take_number(t, most);
    c->compared = take_number(t, most);
    c->max_rel_err = take_magnitude(t);
    take_sum(t, &c->sum_squared_error);
    take_sum(t, &c->sum_squares_left_out);
}

static void take_cast(taker *t, group *g, size_t i)
{
    size_t n;
    take_cast_stats(t, &group_own(g, &n)[i], g->stats.count);
}

static size_t count_blocks(const group *g)
{
    return g->n_blocks;
}

/* The counts of blocks: those of all first, which bounds the others. */
enum { BLOCK_COUNTS = 9 };

static void block_counts(uint64_t *counts[BLOCK_COUNTS], mpsim_block_stats *s)
{
    uint64_t *const all[BLOCK_COUNTS] = {&s->blocks,         &s->zero_blocks,      &s->saturated_blocks,
                                         &s->lost_blocks,    &s->nonfinite_blocks, &s->least_scales,
                                         &s->largest_scales, &s->scale_zero,       &s->scale_nonfinite};
    memcpy(counts, all, sizeof all);
}

static void put_block(array_bytes *b, const group *g, size_t i)
{
    mpsim_block_stats *s = &g->blocks[i].stats;
    uint64_t *counts[BLOCK_COUNTS];
    size_t first = 0, end = MPSIM_SCALE_BINS;
    bytes_put_count(b, g->blocks[i].elements);
    put_cast_stats(b, &s->casts);
    bytes_put_count(b, s->underflow);
    bytes_put_count(b, s->saturated);
    bytes_put_count(b, s->spoilt);
    block_counts(counts, s);
    for (size_t k = 0; k < BLOCK_COUNTS; k++)
        bytes_put_count(b, *counts[k]);
    while (first < end && s->scales[first] == 0)
        first++;
    while (end > first && s->scales[end - 1] == 0)
        end--;
    bytes_put_count(b, first);
    bytes_put_count(b, end);
    for (size_t k = first; k < end; k++)
        bytes_put_count(b, s->scales[k]);
}

static void take_block(taker *t, group *g, size_t i)
{
    mpsim_block_stats *s = &g->blocks[i].stats;
    uint64_t *counts[BLOCK_COUNTS];
    g->blocks[i].elements = take_number(t, g->stats.count);
    take_cast_stats(t, &s->casts, g->stats.count);
    s->underflow = take_number(t, g->blocks[i].elements);
    s->saturated = take_number(t, g->blocks[i].elements);
    s->spoilt = take_number(t, g->blocks[i].elements);
    block_counts(counts, s);
    for (size_t k = 0; k < BLOCK_COUNTS; k++)
        *counts[k] = take_number(t, k ? s->blocks : UINT64_MAX);
    const size_t first = (size_t)take_number(t, MPSIM_SCALE_BINS);
    const size_t end = (size_t)take_number(t, MPSIM_SCALE_BINS);
    for (size_t k = first; k < end && !t->bad; k++)
        s->scales[k] = take_number(t, s->blocks);
}

/* What a group accumulates. The first row has the count of its elements, which bounds what follows. */
static const struct {
    char tag;
    size_t (*count)(const group *g);
    void (*put)(array_bytes *b, const group *g, size_t i);
    void (*take)(taker *t, group *g, size_t i);
} rows[PACK_ROWS] = {
    {'s', one, put_stats, take_stats},
    {'h', one_if_histogram, put_histogram, take_histogram},
    {'c', count_casts, put_cast, take_cast},
    {'b', count_blocks, put_block, take_block},
};

/* ---- groups ---- */

char pack_tag(int row)
{
    return rows[row].tag;
}

size_t pack_count(int row, const group *g)
{
    return rows[row].count(g);
}

void pack_put(array_bytes *b, int row, const group *g, size_t i)
{
    rows[row].put(b, g, i);
}

int pack_take(taker *t, int row, group *g, size_t i)
{
    rows[row].take(t, g, i);
    return take_end(t);
}

void pack_begin(group *g, int scaled)
{
    group_reset(g);
    g->tensors = 1;
    g->scaled = scaled != 0;
}
