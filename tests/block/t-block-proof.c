/* t-block-proof.c -- mpsim_block_quantize on every instruction set: against the oracle, in shapes of every kind; the same
 * bytes as the scalar reference for any recipe, any missing outputs, any place, with nothing read or written beyond
 * the ends; blocks equal to matrices of their own; elements and values by the functions of one element. Written by
 * someone who had not seen a kernel. */
#include "support/blockcompare.h"
#include "support/blockinput.h"
#include "support/subjects.h"
#include "support/support.h"
#include "support/walls.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- the oracle, on every instruction set ---- */

static int specified(const row *r, float amax)
{
    return r->rule != MPSIM_SCALE_NVFP4_TORCHAO || (isfinite(amax) && amax > 0x1p-116f);
}

CASE("blocks", 120);

TEST(every_instruction_set_gives_what_the_oracle_gives)
{
    static float x[NMAX];
    uint64_t state = test_seed() + 1;
    report p = {0};
    for (size_t turn = 0; turn < test_scaled(test_expensive() ? 400 : 14); turn++) {
        const uint64_t w = test_random(&state);
        const size_t most = w % 4 == 0 ? 150 : 40;
        const size_t rows = (w >> 8) % (w % 8 == 1 ? 3 : most) + 1, cols = (w >> 16) % (w % 8 == 2 ? 3 : 2 * most) + 1;
        for (size_t i = 0; i < rows * cols; i++)
            x[i] = block_input((int)(turn % FILLS), i, &state);
        for (size_t k = 0; subject_isa(k) >= 0; k++)
            for (size_t i = 0; i < ORACLE_ROWS; i++) {
                const size_t all[4] = {0, rows, 0, cols};
                const row *r = &oracle_table[i];
                if ((i + k + turn) % 3 == 0 && specified(r, block_amax(r, x, cols, all)) && subject_isa(k))
                    block_compare(&p, r, x, rows, cols, -1, 4);
            }
    }
    block_finish("every instruction set", &p);
}

/* ---- any recipe ---- */

typedef struct problem {
    mpsim_block_recipe b;
    size_t rows, cols, blocks;
    float amax, given;
    mpsim_rng rng;
} problem;

/* A row of the table, or one with other blocks, elements and modes. */
static int any_recipe(mpsim_block_recipe *b, uint64_t *state)
{
    static const char *const elements[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz", "e3m4"};
    const uint64_t w = test_random(state), v = test_random(state);
    *b = *mpsim_block_at(w % mpsim_block_count());
    if (w >> 8 & 1) {
        const uint32_t sides[] = {0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 64, 127, 128, 130};
        b->block_rows = sides[v % COUNT(sides)];
        b->block_cols = sides[(v >> 8) % COUNT(sides)];
    }
    if (w >> 9 & 1) {
        b->element_mode = (uint8_t)((v >> 16) % MPSIM_ROUND_MODES);
        b->sr_bits = (uint8_t)((v >> 24) % 32 + 1);
    }
    if (w >> 10 & 1)
        snprintf(b->element, sizeof b->element, "%s", elements[(v >> 32) % COUNT(elements)]);
    if (w >> 11 & 1)
        b->power_of_two = v >> 40 & 1;
    return mpsim_block_check(b) == MPSIM_OK;
}

static walls source, walled[7];

typedef struct result {
    unsigned char bytes[6][4 * NMAX]; /* codes, values, scale codes, scales, inverses, amax */
    mpsim_cast_stats casts;
    mpsim_counts counts;
    float tensor_scale;
} result;

static size_t bytes_of(const problem *p, int k)
{
    const size_t n = p->rows * p->cols;
    return k == 0 ? n : k == 1 ? 4 * n : k == 2 ? p->blocks : 4 * p->blocks;
}

/* Quantise x; only the outputs of `wanted` are asked for, as bits. */
static void quantise(const problem *p, const float *x, unsigned wanted, uint64_t place, result *to)
{
    unsigned char *at[6];
    const size_t n = p->rows * p->cols;
    float *in = (float *)(void *)walls_place(&source, 4 * n, place & 1, place >> 8 & 60);
    memcpy(in, x, 4 * n);
    for (int k = 0; k < 6; k++) {
        const size_t off = place >> (12 + 4 * k) & 63;
        at[k] = walls_place(&walled[k], bytes_of(p, k), place >> 1 & 1, k == 0 || k == 2 ? off : off / 4 * 4);
    }
    mpsim_cast_stats_init(&to->casts);
    memset(&to->counts, 0, sizeof to->counts);
    const mpsim_blocks outs = {wanted & 1 ? at[0] : NULL,
                               wanted & 2 ? (float *)(void *)at[1] : NULL,
                               wanted & 4 ? at[2] : NULL,
                               wanted & 8 ? (float *)(void *)at[3] : NULL,
                               wanted & 16 ? (float *)(void *)at[4] : NULL,
                               wanted & 32 ? (float *)(void *)at[5] : NULL,
                               wanted & 64 ? &to->casts : NULL,
                               wanted & 256 ? &to->counts : NULL,
                               NULL,
                               NULL,
                               NULL};
    const mpsim_status s = mpsim_block_quantize(&p->b, in, p->rows, p->cols, p->amax, p->given, &p->rng, &outs,
                                                wanted & 128 ? &to->tensor_scale : NULL);
    if (s != MPSIM_OK)
        ck_abort_msg("%s: %s", p->b.name, mpsim_status_string(s));
    for (int k = 0; k < 6; k++) {
        if (!walls_kept(&walled[k], at[k], bytes_of(p, k)))
            ck_abort_msg("%s, %zu x %zu, %s: output %d was written beyond its ends", p->b.name, p->rows, p->cols,
                         mpsim_isa_active(), k);
        if (wanted >> k & 1)
            memcpy(to->bytes[k], at[k], bytes_of(p, k));
    }
}

/* The same numbers, however carries lie. */
static int same_casts(const mpsim_cast_stats *a, const mpsim_cast_stats *b)
{
    mpsim_cast_stats x, y;
    mpsim_cast_stats_init(&x);
    mpsim_cast_stats_init(&y);
    mpsim_cast_stats_merge(&x, a);
    mpsim_cast_stats_merge(&y, b);
    mpsim_sum_subtract(&x.sum_squared_error, &y.sum_squared_error);
    mpsim_sum_subtract(&x.sum_squares_left_out, &y.sum_squares_left_out);
    return memcmp(&x.counts, &y.counts, sizeof x.counts) == 0 && x.compared == y.compared &&
           bits_of_f64(x.max_rel_err) == bits_of_f64(y.max_rel_err) && mpsim_sum_value(&x.sum_squared_error) == 0 &&
           mpsim_sum_value(&x.sum_squares_left_out) == 0;
}

static const char *problem_text(const problem *p)
{
    static char text[300];
    snprintf(text, sizeof text,
             "%s (element %s mode %d sr_bits %d blocks %u x %u power %d), %zu x %zu, amax %a, "
             "given %a, isa %s",
             p->b.name, p->b.element, p->b.element_mode, p->b.sr_bits, p->b.block_rows, p->b.block_cols,
             p->b.power_of_two, p->rows, p->cols, (double)p->amax, (double)p->given, mpsim_isa_active());
    return text;
}

static void compare(const problem *p, const float *x, unsigned wanted, const result *want, const result *got)
{
    static const char *const names[] = {"codes", "values", "scale codes", "scales", "inverses", "amax"};
    for (int k = 0; k < 6; k++) {
        if (!(wanted >> k & 1) || memcmp(want->bytes[k], got->bytes[k], bytes_of(p, k)) == 0)
            continue;
        const size_t size = k == 0 || k == 2 ? 1 : 4;
        for (size_t i = 0; i < bytes_of(p, k) / size; i++) {
            const uint64_t a = code_load(want->bytes[k] + i * size, size),
                           b = code_load(got->bytes[k] + i * size, size);
            if (a != b)
                ck_abort_msg("%s, outputs 0x%x: %s %zu: expected 0x%" PRIx64 ", got 0x%" PRIx64 "; x there 0x%x",
                             problem_text(p), wanted, names[k], i, a, b, k < 2 ? bits_of_f32(x[i]) : 0);
        }
    }
    if (wanted & 64 && !same_casts(&want->casts, &got->casts))
        ck_abort_msg("%s, outputs 0x%x: statistics differ: expected %s, max_rel_err %a, got %s, %a", problem_text(p),
                     wanted, subject_counts(&want->casts.counts), want->casts.max_rel_err,
                     subject_counts(&got->casts.counts), got->casts.max_rel_err);
    if (wanted & 256 && memcmp(&want->casts.counts, &got->counts, sizeof got->counts) != 0)
        ck_abort_msg("%s, outputs 0x%x: counts differ: expected %s", problem_text(p), wanted,
                     subject_counts(&want->casts.counts));
    if (wanted & 128 && !block_same(want->tensor_scale, got->tensor_scale))
        ck_abort_msg("%s: tensor scale differs", problem_text(p));
}

/* Elements, by the functions of one element, where the rule says no more than code of x * s: finite x and s. */
static void elements(const problem *p, const float *x, const result *r)
{
    const mpsim_format *f = mpsim_format_find(p->b.element);
    const int rule = p->b.rule;
    if (rule == MPSIM_SCALE_E8M0_MICROX || rule == MPSIM_SCALE_NVFP4_TE || rule == MPSIM_SCALE_NVFP4_TORCHAO)
        return;
    mpsim_rounding m;
    mpsim_rounding_init(&m, (mpsim_round_mode)p->b.element_mode);
    m.sr_bits = p->b.sr_bits ? p->b.sr_bits : 32;
    m.overflow = MPSIM_OVERFLOW_MAX;
    m.infinity = MPSIM_INFINITY_MAX;
    size_t grid_rows, grid_cols;
    mpsim_block_grid(&p->b, p->rows, p->cols, &grid_rows, &grid_cols);
    ck_assert_uint_eq(grid_rows * grid_cols, p->blocks);
    const size_t high = p->b.block_rows ? p->b.block_rows : p->rows, wide = p->b.block_cols ? p->b.block_cols : p->cols;
    for (size_t i = 0; i < p->rows * p->cols; i++) {
        const size_t block = i / p->cols / high * grid_cols + i % p->cols / wide;
        const float factor = f32_of_bits((uint32_t)code_load(r->bytes[3] + 4 * block, 4));
        const float inverse = f32_of_bits((uint32_t)code_load(r->bytes[4] + 4 * block, 4));
        const int divides = rule == MPSIM_SCALE_AMAX_DEEPSEEK;
        const float s = divides ? inverse : factor, y = divides ? x[i] / s : x[i] * s;
        if (!isfinite(x[i]) || !isfinite(s) || s == 0)
            continue;
        const uint32_t word = mpsim_rng_word(p->rng.seed, p->rng.stream, p->rng.index + i);
        const uint64_t want = mpsim_encode_f32(f, &m, y, word, NULL);
        if (r->bytes[0][i] != want)
            ck_abort_msg("%s: element %zu, x %a (0x%x) scale %a: code 0x%x, by itself 0x%" PRIx64, problem_text(p), i,
                         (double)x[i], bits_of_f32(x[i]), (double)s, r->bytes[0][i], want);
    }
}

static void any_problem(problem *p, float *x, uint64_t *state)
{
    static const float globals[] = {-1, -1, -1, 2688, 3, 0.5f, 1e4f};
    while (!any_recipe(&p->b, state))
        continue;
    const uint64_t w = test_random(state), v = test_random(state);
    const size_t shapes[] = {1, 2, 3, 16, 17, 33, 130}, n = shapes[w % 7];
    p->rows = w >> 8 & 1 ? n : (w >> 9) % 40 + 1;
    p->cols = w >> 20 & 1 ? (w >> 21) % 270 + 1 : 16 * ((w >> 21) % 17 + 1) + (w >> 30 & 1 ? (w >> 31) % 3 - 1 : 0);
    size_t grid_rows, grid_cols;
    mpsim_block_grid(&p->b, p->rows, p->cols, &grid_rows, &grid_cols);
    p->blocks = grid_rows * grid_cols;
    p->amax = globals[v % COUNT(globals)];
    p->given = ldexpf(1 + (float)(v >> 40 & 1023) / 1024, (int)((v >> 8) % 40) - 20);
    p->rng = subject_rng(state);
    const int fill = (int)((v >> 16) % FILLS), spoilt = v >> 24 & 1;
    for (size_t i = 0; i < p->rows * p->cols; i++) /* rare specials, too: a block in which one is not finite */
        x[i] = block_input(spoilt && test_random(state) % 97 == 0 ? SPECIALS : fill, i, state);
}

/* Every output of every instruction set has the bytes of the scalar reference. */
TEST(any_recipe_has_the_bytes_of_the_reference)
{
    static float x[NMAX];
    static problem p;
    static result want, got;
    uint64_t state = test_seed() + 2;
    source = walls_make(4 * NMAX + 64);
    for (int k = 0; k < 7; k++)
        walled[k] = walls_make(4 * NMAX + 64);
    const size_t turns = test_scaled(test_expensive() ? 30000 : 700);
    for (size_t turn = 0; turn < turns; turn++) {
        any_problem(&p, x, &state);
        ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
        quantise(&p, x, 255, 0, &want);
        elements(&p, x, &want);
        for (size_t k = 0; mpsim_isa_at(k); k++) {
            if (!subject_isa(k))
                continue;
            quantise(&p, x, 255, test_random(&state), &got);
            compare(&p, x, 255, &want, &got);
            const unsigned some = (unsigned)(test_random(&state) % 256);
            quantise(&p, x, some, test_random(&state), &got);
            compare(&p, x, some, &want, &got);
            const unsigned counted = 256 | (some & 191); /* without casts, which the reference makes */
            quantise(&p, x, counted, test_random(&state), &got);
            compare(&p, x, counted, &want, &got);
        }
    }
}

/* A block is quantised as a matrix of its own is. */
TEST(blocks_are_matrices_of_their_own)
{
    static float x[NMAX], part[NMAX];
    static problem p, one;
    static result whole, alone;
    uint64_t state = test_seed() + 3;
    source = walls_make(4 * NMAX + 64);
    for (int k = 0; k < 7; k++)
        walled[k] = walls_make(4 * NMAX + 64);
    for (size_t turn = 0; turn < test_scaled(test_expensive() ? 3000 : 100); turn++) {
        any_problem(&p, x, &state);
        p.amax = 100; /* not of x itself, which a block does not know */
        if (p.b.element_mode >= MPSIM_ROUND_STOCHASTIC_A)
            p.b.element_mode = MPSIM_ROUND_NEAREST_EVEN;
        if (mpsim_block_check(&p.b) != MPSIM_OK)
            continue;
        const size_t isa = test_random(&state) % 8;
        if (!mpsim_isa_at(isa) || subject_isa(isa) != 1)
            (void)subject_isa(0);
        quantise(&p, x, 255, 0, &whole);
        const size_t high = p.b.block_rows ? p.b.block_rows : p.rows, wide = p.b.block_cols ? p.b.block_cols : p.cols;
        size_t block = 0;
        for (size_t i = 0; i < p.rows; i += high)
            for (size_t j = 0; j < p.cols; j += wide, block++) {
                if (p.blocks > 40 && test_random(&state) % (p.blocks / 20))
                    continue;
                one = p;
                one.rows = p.rows - i < high ? p.rows - i : high;
                one.cols = p.cols - j < wide ? p.cols - j : wide;
                one.blocks = 1;
                for (size_t k = 0; k < one.rows; k++)
                    memcpy(part + k * one.cols, x + (i + k) * p.cols + j, 4 * one.cols);
                quantise(&one, part, 255, test_random(&state), &alone);
                int wrong = whole.bytes[2][block] != alone.bytes[2][0];
                for (int k = 3; k < 6; k++)
                    wrong |= memcmp(whole.bytes[k] + 4 * block, alone.bytes[k], 4) != 0;
                for (size_t k = 0; k < one.rows; k++) {
                    const size_t at = (i + k) * p.cols + j;
                    wrong |= memcmp(whole.bytes[0] + at, alone.bytes[0] + k * one.cols, one.cols) != 0;
                    wrong |= memcmp(whole.bytes[1] + 4 * at, alone.bytes[1] + 4 * k * one.cols, 4 * one.cols) != 0;
                }
                if (wrong)
                    ck_abort_msg("%s: block %zu at row %zu, column %zu differs from a matrix of its own",
                                 problem_text(&p), block, i, j);
            }
    }
}

TEST_MAIN("block-proof");
