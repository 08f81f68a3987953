/* t-blockstats.c -- statistics of blocks against exact rationals (GMP), over the oracle of oracle/block.h:
 * every recipe, sides that are no multiple of the block, zeros, subnormal numbers, NaN, infinities; the
 * same accumulator for every split and order. */
#include "oracle/block.h"
#include "support/blockcompare.h"
#include "support/blockinput.h"
#include "support/plainsummary.h"
#include "support/support.h"

#include <gmp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { MOST = 20000 };

static float x[MOST], origin[MOST];

/* ---- the judge ---- */

typedef struct judged {
    uint64_t inexact, underflow, subnormal, overflow, nan, compared, vanished, saturates, spoilt;
    uint64_t blocks, zero, saturated, lost, nonfinite, least, largest, scale_zero, scale_nonfinite;
    uint64_t scales[MPSIM_SCALE_BINS];
    double relative;
    mpq_t squares, left_out;
} judged;

/* What of a block is seen. */
typedef struct seen {
    int nonzero, nonfinite, saturated, kept;
} seen;

static void add_square(mpq_t sum, double d)
{
    static mpq_t q;
    static int ready;
    if (!ready++)
        mpq_init(q);
    mpq_set_d(q, d);
    mpq_mul(q, q, q);
    mpq_add(sum, sum, q);
}

static void judge_error(judged *j, float from, float value)
{
    if (!isfinite(from))
        return;
    if (!isfinite(value)) {
        add_square(j->left_out, (double)from);
        return;
    }
    j->compared++;
    const double d = (double)from - (double)value; /* by definition: one operation of binary64 */
    add_square(j->squares, d);
    if (from != 0 && fabs(d) / fabs((double)from) > j->relative)
        j->relative = fabs(d) / fabs((double)from);
}

static void judge_element(judged *j, seen *b, float v, float from, const element *e, float value)
{
    const int over = isfinite(v) && (e->overflow || !isfinite(value));
    b->nonzero |= v != 0;
    b->nonfinite |= !isfinite(v);
    b->saturated |= over && isfinite(value) && value != 0;
    j->saturates += (uint64_t)(over && isfinite(value) && value != 0);
    j->spoilt += (uint64_t)(isfinite(v) && !isfinite(value));
    j->vanished += (uint64_t)(isfinite(v) && v != 0 && value == 0);
    b->kept |= value != 0;
    j->nan += isnan(v) != 0;
    j->overflow += (uint64_t)over;
    if (isfinite(v)) {
        j->underflow += v != 0 && e->underflow;
        j->subnormal += (uint64_t)e->subnormal;
        j->inexact += (uint64_t)e->inexact;
    }
    judge_error(j, from, value);
}

/* The least and the largest code of the scales of a rule; 0, 0: they are binary32. */
static void extremes(const row *r, unsigned *least, unsigned *largest)
{
    *least = *largest = 0;
    switch (r->rule) {
    case MPSIM_SCALE_AMAX_TE:
    case MPSIM_SCALE_AMAX_TORCHAO:
    case MPSIM_SCALE_AMAX_DEEPSEEK:
    case MPSIM_SCALE_MSAMP:
        break;
    case MPSIM_SCALE_NVFP4_TE:
    case MPSIM_SCALE_NVFP4_TORCHAO:
    case MPSIM_SCALE_NVFP4_1LEVEL:
        *least = r->rule == MPSIM_SCALE_NVFP4_TE ? 1 : 8;
        *largest = 126;
        break;
    default:
        *least = r->rule == MPSIM_SCALE_E8M0_DEEPGEMM;
        *largest = 254;
    }
}

static void judge_scale(judged *j, const row *r, const scale *s)
{
    unsigned least, largest;
    extremes(r, &least, &largest);
    j->least += largest && s->code <= least;
    j->largest += largest && s->code == largest;
    if (!isfinite(s->inverse))
        j->scale_nonfinite++;
    else if (s->inverse == 0)
        j->scale_zero++;
    else
        j->scales[floor_log2((double)s->inverse) + 149]++;
}

static void judge_block(judged *j, const row *r, const tensor *t, size_t cols, const size_t box[4],
                        const float *against, const mpsim_rng *rng)
{
    const grid *g = grid_of(r->element);
    const scale s = oracle_scale(r, g, t, block_amax(r, x, cols, box), 4);
    seen b = {0, 0, 0, 0};
    for (size_t i = box[0]; i < box[1]; i++)
        for (size_t k = i * cols + box[2]; k < i * cols + box[3]; k++) {
            const unsigned random = mpsim_rng_word(rng->seed, rng->stream, rng->index + k) >> 24;
            element e = oracle_cast(g, r->mode, oracle_scaled(r, &s, x[k]), random);
            const float value = oracle_value(r, &s, e.value);
            e.inexact = !oracle_is_exact(r, &s, x[k], e.value) || !isfinite(value);
            judge_element(j, &b, x[k], against[k], &e, value);
        }
    j->blocks++;
    j->zero += !b.nonzero;
    j->saturated += (uint64_t)b.saturated;
    j->nonfinite += (uint64_t)b.nonfinite;
    j->lost += b.nonzero && !b.nonfinite && !b.kept;
    if (b.nonzero)
        judge_scale(j, r, &s);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void judge(judged *j, const row *r, float amax, size_t rows, size_t cols, const float *against,
                  const mpsim_rng *rng)
{
    const tensor t = oracle_tensor(r, amax);
    const size_t high = r->rows ? r->rows : rows, wide = r->cols ? r->cols : cols;
    for (size_t i = 0; i < rows; i += high)
        for (size_t k = 0; k < cols; k += wide) {
            const size_t box[4] = {i, least_of(i + high, rows), k, least_of(k + wide, cols)};
            judge_block(j, r, &t, cols, box, against, rng);
        }
}

/* ---- comparing ---- */

/* The sum as it is kept, in 2^-2176. */
static int same_sum(const mpsim_sum *s, const mpq_t want)
{
    mpq_t got;
    mpq_init(got);
    plain_sum(mpq_numref(got), s);
    mpq_div_2exp(got, got, 2176);
    const int same = mpq_equal(got, want);
    mpq_clear(got);
    return same;
}

static const char *difference(const mpsim_block_stats *s, const judged *j)
{
    const struct {
        const char *what;
        uint64_t got, want;
    } counts[] = {
        {"inexact", s->casts.counts.inexact, j->inexact},
        {"underflow", s->casts.counts.underflow, j->underflow},
        {"subnormal", s->casts.counts.subnormal, j->subnormal},
        {"overflow", s->casts.counts.overflow, j->overflow},
        {"nan", s->casts.counts.nan, j->nan},
        {"compared", s->casts.compared, j->compared},
        {"elements that vanish", s->underflow, j->vanished},
        {"elements that saturate", s->saturated, j->saturates},
        {"elements that are spoilt", s->spoilt, j->spoilt},
        {"blocks", s->blocks, j->blocks},
        {"zero blocks", s->zero_blocks, j->zero},
        {"saturated blocks", s->saturated_blocks, j->saturated},
        {"lost blocks", s->lost_blocks, j->lost},
        {"nonfinite blocks", s->nonfinite_blocks, j->nonfinite},
        {"least scales", s->least_scales, j->least},
        {"largest scales", s->largest_scales, j->largest},
        {"scales of 0", s->scale_zero, j->scale_zero},
        {"nonfinite scales", s->scale_nonfinite, j->scale_nonfinite},
    };
    for (size_t i = 0; i < COUNT(counts); i++)
        if (counts[i].got != counts[i].want)
            return counts[i].what;
    if (memcmp(s->scales, j->scales, sizeof j->scales) != 0)
        return "scales";
    if (s->casts.max_rel_err != j->relative)
        return "largest relative error";
    if (!same_sum(&s->casts.sum_squared_error, j->squares))
        return "sum of squared errors";
    if (!same_sum(&s->casts.sum_squares_left_out, j->left_out))
        return "squares left out";
    return NULL;
}

/* Band after band of whole blocks, some in one accumulator, others in another, merged. */
static void split(mpsim_block_stats *to, const row *r, float amax, size_t rows, size_t cols, const float *against,
                  const mpsim_rng *rng, uint64_t *random)
{
    static mpsim_block_stats parts[3];
    const mpsim_block_recipe b = oracle_recipe(r);
    const size_t high = r->rows ? r->rows : rows ? rows : 1;
    for (int i = 0; i < 3; i++)
        mpsim_block_stats_init(&parts[i]);
    for (size_t i = 0, n; i < rows; i += n) {
        n = least_of(high * (1 + test_random(random) % 3), rows - i);
        mpsim_rng at = *rng;
        at.index += i * cols;
        const mpsim_blocks wanted = {.stats = &parts[test_random(random) % 3],
                                     .origin = against == x ? NULL : against + i * cols};
        ck_assert_int_eq(mpsim_block_quantize(&b, x + i * cols, n, cols, amax, 4, &at, &wanted, NULL), MPSIM_OK);
    }
    const int first = (int)(test_random(random) % 3);
    mpsim_block_stats_init(to);
    for (int i = 0; i < 3; i++)
        mpsim_block_stats_merge(to, &parts[(first + 2 * i) % 3]);
}

static uint64_t elements, blocks;

static void compare(const row *r, size_t rows, size_t cols, const float *against, uint64_t *random)
{
    static mpsim_block_stats whole, merged;
    const mpsim_block_recipe b = oracle_recipe(r);
    const mpsim_rng rng = {test_seed(), 77, rows * 1000 + cols};
    const size_t all[4] = {0, rows, 0, cols};
    const float amax = block_amax(r, x, cols, all);
    const mpsim_blocks wanted = {.stats = &whole, .origin = against == x ? NULL : against};
    /* what the source does not say, see t-block.c */
    if (r->rule == MPSIM_SCALE_NVFP4_TORCHAO && !(isfinite(amax) && amax > 0x1p-116f))
        return;
    judged j = {.relative = 0};
    mpq_inits(j.squares, j.left_out, (mpq_ptr)0);
    mpsim_block_stats_init(&whole);
    ck_assert_int_eq(mpsim_block_quantize(&b, x, rows, cols, amax, 4, &rng, &wanted, NULL), MPSIM_OK);
    judge(&j, r, amax, rows, cols, against, &rng);
    const char *wrong = difference(&whole, &j);
    ck_assert_msg(!wrong, "%s, %zu x %zu%s: %s", r->name, rows, cols, against == x ? "" : ", origin", wrong);
    split(&merged, r, amax, rows, cols, against, &rng, random);
    ck_assert_msg(memcmp(&merged, &whole, sizeof whole) == 0, "%s, %zu x %zu: bands", r->name, rows, cols);
    mpq_clears(j.squares, j.left_out, (mpq_ptr)0);
    elements += rows * cols;
    blocks += j.blocks;
}

/* ---- tests ---- */

static const size_t shapes[][2] = {{1, 1},  {1, 7},   {5, 1},     {3, 32},  {17, 31}, {33, 48}, {2, 129},
                                   {40, 3}, {19, 83}, {129, 130}, {1, 300}, {0, 8},   {7, 0}};

/* Blocks that are zero, lost, hold NaN or infinity, among others. */
static void fill(size_t n, int kind, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = block_input(kind % FILLS, i, random);
        if (kind >= FILLS && i / 32 % 3 == 0)
            x[i] = i & 1 ? 0 : -0.0f;
        if (kind >= FILLS && i / 32 % 7 == 1)
            x[i] = ldexpf(x[i], -120);
        const uint64_t w = test_random(random);
        origin[i] = w % 9 == 0 ? block_input(ANY, i, random) : x[i] * (1 + (float)(w % 64) / 512);
    }
}

CASE("statistics", 120);

TESTS(every_recipe, ORACLE_ROWS)
{
    uint64_t random = test_seed() + (uint64_t)_i;
    elements = blocks = 0;
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int kind = 0; kind < 2 * FILLS; kind++) {
            const size_t n = shapes[s][0] * shapes[s][1];
            if (n > 3000 && kind % 3 != _i % 3 && !test_expensive())
                continue;
            if (n > 64 && !test_in_part(s + (size_t)kind, 3))
                continue;
            fill(n, kind, &random);
            compare(&oracle_table[_i], shapes[s][0], shapes[s][1], x, &random);
            compare(&oracle_table[_i], shapes[s][0], shapes[s][1], origin, &random);
        }
    printf("# %s: %llu elements in %llu blocks\n", oracle_table[_i].name, (unsigned long long)elements,
           (unsigned long long)blocks);
}

/* By hand: mxfp8 floor, emax 8; a block of each kind. */
TEST(a_row_by_hand)
{
    static mpsim_block_stats s;
    const mpsim_blocks wanted = {.stats = &s};
    memset(x, 0, sizeof x);
    x[32] = 500; /* saturates: 448, scale 2^0                             */
    x[33] = 3;
    x[64] = INFINITY; /* scale NaN, which everything becomes                   */
    x[65] = 1;
    x[96] = 0x1p-149f;   /* scale 2^-127, code 0; below half of 2^-136            */
    x[128] = 0x1.fp127f; /* scale 2^119                                           */
    x[160] = -256;       /* the last, of 5 elements: 2^0                          */
    x[161] = 0x1p-11f;   /* becomes zero                                          */
    mpsim_block_stats_init(&s);
    ck_assert_int_eq(mpsim_block_quantize(mpsim_block_find("mxfp8-floor"), x, 1, 165, -1, 1, NULL, &wanted, NULL),
                     MPSIM_OK);
    ck_assert(s.blocks == 6 && s.zero_blocks == 1 && s.saturated_blocks == 2 && s.nonfinite_blocks == 1);
    ck_assert(s.saturated == 2 && s.spoilt == 31 && s.underflow == 2);
    ck_assert(s.lost_blocks == 1 && s.least_scales == 1 && s.largest_scales == 0);
    ck_assert(s.scale_zero == 0 && s.scale_nonfinite == 1);
    ck_assert(s.scales[0 + 149] == 2 && s.scales[-127 + 149] == 1 && s.scales[119 + 149] == 1);
    ck_assert(s.casts.compared == 165 - 32 && s.casts.counts.underflow == 2);
    ck_assert(s.casts.max_rel_err == 1);
    /* adding goes on; merging is adding */
    static mpsim_block_stats twice;
    twice = s;
    mpsim_block_stats_merge(&twice, &s);
    ck_assert_int_eq(mpsim_block_quantize(mpsim_block_find("mxfp8-floor"), x, 1, 165, -1, 1, NULL, &wanted, NULL),
                     MPSIM_OK);
    ck_assert(memcmp(&s, &twice, sizeof s) == 0);
}

/* The second error is larger by less than a unit in the last place of binary32, in another block of the same scale, 2^0. */
TEST(errors_that_are_nearly_equal)
{
    static mpsim_block_stats s;
    const mpsim_blocks wanted = {.stats = &s};
    const float first = 0x1.8597c6p-10f, second = 0x1.754856p-9f, least = 0x1p-9f; /* both become e4m3's least number */
    const double error = ((double)second - (double)least) / (double)second;
    ck_assert(error > ((double)least - (double)first) / (double)first);
    memset(x, 0, sizeof x);
    x[0] = x[32] = 256;
    x[1] = first;
    x[33] = second;
    mpsim_block_stats_init(&s);
    ck_assert_int_eq(mpsim_block_quantize(mpsim_block_find("mxfp8-floor"), x, 1, 64, -1, 1, NULL, &wanted, NULL),
                     MPSIM_OK);
    ck_assert(s.casts.max_rel_err == error);
}

TEST_MAIN("blockstats");
