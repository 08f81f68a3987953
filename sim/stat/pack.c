/* pack.c -- see pack.h. */
#include "pack.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- exact sums ---- */

/* In the one form in which a number has no others: merging brings sums into it. */
static void put_sum(array_bytes *b, const mpsim_sum *s)
{
    mpsim_sum m = *s, nothing;
    mpsim_sum_init(&nothing);
    mpsim_sum_merge(&m, &nothing);
    stat_bytes_put_count(b, m.first);
    stat_bytes_put_count(b, m.end);
    for (int i = m.first; i + 1 < m.end; i++)
        stat_bytes_put_word(b, (uint32_t)m.limb[i]);
    if (m.end)
        stat_bytes_put_signed(b, m.limb[m.end - 1]);
}

static void take_sum(taker *t, mpsim_sum *s)
{
    mpsim_sum again, nothing;
    mpsim_sum_init(s);
    s->first = (uint16_t)stat_take_number(t, MPSIM_SUM_LIMBS);
    s->end = (uint16_t)stat_take_number(t, MPSIM_SUM_LIMBS);
    for (int i = s->first; i + 1 < s->end; i++)
        s->limb[i] = stat_take_word(t);
    if (s->end > s->first) {
        const int64_t top = stat_take_signed(t), most = (int64_t)1 << 32;
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
    const double x = stat_take_double(t);
    t->bad |= isnan(x) || signbit(x);
    return t->bad ? 0 : x;
}

/* ---- what an accumulator consists of ---- */

typedef enum member_type { END, COUNT, MAGNITUDE, FINITE, SUM, EXPONENTS, SCALES } member_type; /* the last two: bins */

/* What bounds a count: nothing, the elements of the group, or else the count at this offset. */
enum { OF_NOTHING = -1, OF_GROUP = -2 };

typedef struct member {
    member_type type;
    size_t at;
    ptrdiff_t of;
} member;

#define AT(member) offsetof(mpsim_stats, member)
static const member stats_members[] = {
    {COUNT, AT(count), OF_NOTHING}, {COUNT, AT(zero), AT(count)},       {COUNT, AT(nan), AT(count)},
    {COUNT, AT(inf), AT(count)},    {FINITE, AT(amax), OF_NOTHING},     {FINITE, AT(amin), OF_NOTHING},
    {SUM, AT(sum), OF_NOTHING},     {SUM, AT(sum_squares), OF_NOTHING}, {0}};
#undef AT

#define AT(member) offsetof(mpsim_histogram, member)
static const member histogram_members[] = {{COUNT, AT(zero), OF_GROUP},
                                           {COUNT, AT(inf), OF_GROUP},
                                           {COUNT, AT(nan), OF_GROUP},
                                           {EXPONENTS, AT(bin), OF_GROUP},
                                           {0}};
#undef AT

#define AT(member) offsetof(mpsim_cast_stats, member)
#define CAST_MEMBERS(PLACE)                                                                                 \
    {COUNT, PLACE + AT(counts.inexact), OF_GROUP}, {COUNT, PLACE + AT(counts.underflow), OF_GROUP},         \
        {COUNT, PLACE + AT(counts.subnormal), OF_GROUP}, {COUNT, PLACE + AT(counts.overflow), OF_GROUP},    \
        {COUNT, PLACE + AT(counts.nan), OF_GROUP}, {COUNT, PLACE + AT(compared), OF_GROUP},                 \
        {MAGNITUDE, PLACE + AT(max_rel_err), OF_NOTHING}, {SUM, PLACE + AT(sum_squared_error), OF_NOTHING}, \
    {                                                                                                       \
        SUM, PLACE + AT(sum_squares_left_out), OF_NOTHING                                                   \
    }
static const member cast_members[] = {CAST_MEMBERS(0), {0}};
enum { BLOCK_CASTS = offsetof(block_sums, stats.casts) };

#define IN(member) offsetof(block_sums, member)
static const member block_members[] = {{COUNT, IN(elements), OF_GROUP},
                                       CAST_MEMBERS(BLOCK_CASTS),
                                       {COUNT, IN(stats.underflow), IN(elements)},
                                       {COUNT, IN(stats.saturated), IN(elements)},
                                       {COUNT, IN(stats.spoilt), IN(elements)},
                                       {COUNT, IN(stats.blocks), OF_NOTHING},
                                       {COUNT, IN(stats.zero_blocks), IN(stats.blocks)},
                                       {COUNT, IN(stats.saturated_blocks), IN(stats.blocks)},
                                       {COUNT, IN(stats.lost_blocks), IN(stats.blocks)},
                                       {COUNT, IN(stats.nonfinite_blocks), IN(stats.blocks)},
                                       {COUNT, IN(stats.least_scales), IN(stats.blocks)},
                                       {COUNT, IN(stats.largest_scales), IN(stats.blocks)},
                                       {COUNT, IN(stats.scale_zero), IN(stats.blocks)},
                                       {COUNT, IN(stats.scale_nonfinite), IN(stats.blocks)},
                                       {SCALES, IN(stats.scales), IN(stats.blocks)},
                                       {0}};
#undef IN
#undef AT

static size_t bins_of(const member *m)
{
    return m->type == EXPONENTS ? MPSIM_HISTOGRAM_BINS : MPSIM_SCALE_BINS;
}

static void put_bins(array_bytes *b, const uint64_t *bins, size_t n)
{
    size_t first = 0, end = n;
    while (first < end && bins[first] == 0)
        first++;
    while (end > first && bins[end - 1] == 0)
        end--;
    stat_bytes_put_count(b, first);
    stat_bytes_put_count(b, end);
    for (size_t k = first; k < end; k++)
        stat_bytes_put_count(b, bins[k]);
}

static void take_bins(taker *t, uint64_t *bins, size_t n, uint64_t most)
{
    const size_t first = (size_t)stat_take_number(t, n), end = (size_t)stat_take_number(t, n);
    for (size_t k = first; k < end && !t->bad; k++)
        bins[k] = stat_take_number(t, most);
}

static void put_member(array_bytes *b, const member *m, const void *value)
{
    switch (m->type) {
    case COUNT:
        stat_bytes_put_count(b, *(const uint64_t *)value);
        break;
    case MAGNITUDE:
    case FINITE:
        stat_bytes_put_double(b, *(const double *)value);
        break;
    case SUM:
        put_sum(b, value);
        break;
    default:
        put_bins(b, value, bins_of(m));
        break;
    }
}

static void take_member(taker *t, const member *m, void *value, uint64_t most)
{
    switch (m->type) {
    case COUNT:
        *(uint64_t *)value = stat_take_number(t, most);
        break;
    case MAGNITUDE:
    case FINITE:
        *(double *)value = take_magnitude(t);
        t->bad |= m->type == FINITE && isinf(*(double *)value);
        break;
    case SUM:
        take_sum(t, value);
        break;
    default:
        take_bins(t, value, bins_of(m), most);
        break;
    }
}

/* ---- rows ---- */

static size_t one(const group *g)
{
    (void)g;
    return 1;
}

static const void *stats_at(const group *g, size_t i)
{
    (void)i;
    return &g->stats;
}

static size_t one_if_histogram(const group *g)
{
    return g->histogram != NULL;
}

static const void *histogram_at(const group *g, size_t i)
{
    (void)i;
    return g->histogram;
}

static size_t count_casts(const group *g)
{
    size_t n;
    stat_group_own(g, &n);
    return n;
}

static const void *cast_at(const group *g, size_t i)
{
    size_t n;
    return &stat_group_own(g, &n)[i];
}

static size_t count_blocks(const group *g)
{
    return g->n_blocks;
}

static const void *block_at(const group *g, size_t i)
{
    return &g->blocks[i];
}

/* What a group accumulates. The first row has the count of its elements, which bounds what follows. */
static const struct {
    char tag;
    size_t (*count)(const group *g);
    const void *(*at)(const group *g, size_t i);
    const member *members;
} rows[PACK_ROWS] = {
    {'s', one, stats_at, stats_members},
    {'h', one_if_histogram, histogram_at, histogram_members},
    {'c', count_casts, cast_at, cast_members},
    {'b', count_blocks, block_at, block_members},
};

/* ---- groups ---- */

char stat_pack_tag(int row)
{
    return rows[row].tag;
}

size_t stat_pack_count(int row, const group *g)
{
    return rows[row].count(g);
}

void stat_pack_put(array_bytes *b, int row, const group *g, size_t i)
{
    const char *at = rows[row].at(g, i);
    for (const member *m = rows[row].members; m->type; m++)
        put_member(b, m, at + m->at);
}

int stat_pack_take(taker *t, int row, group *g, size_t i)
{
    char *at = (char *)(uintptr_t)rows[row].at(g, i);
    for (const member *m = rows[row].members; m->type; m++) {
        const uint64_t most = m->of == OF_GROUP     ? g->stats.count
                              : m->of == OF_NOTHING ? UINT64_MAX
                                                    : *(const uint64_t *)(const void *)(at + m->of);
        take_member(t, m, at + m->at, most);
    }
    return stat_take_end(t);
}

void stat_pack_begin(group *g, int scaled)
{
    stat_group_reset(g);
    g->tensors = 1;
    g->scaled = scaled != 0;
}
