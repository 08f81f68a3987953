/* t-update.c -- a step of many parameters at once (mpsim/update.h): the bits of single steps, on any threads; updates that are lost; gradients that
 * are checked, unscaled and clipped where they lie; errors. */
#include "support/support.h"

#include <mpsim/mpsim.h>
#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- optimizers: one call for a list beside a call each ---- */

enum { PARAMS = 5, ARRAYS = 6 };

static const size_t sizes[PARAMS] = {1, 0, 30000, 4097, 37};

typedef struct row {
    const char *variant, *format, *state, *states;
    mpsim_optim_algorithm algorithm;
    mpsim_store store;
    int amsgrad;
} row;

static const row rows[] = {
    {"ieee", "binary32", "binary32", NULL, MPSIM_OPTIM_ADAMW, MPSIM_STORE_NEAREST, 1},
    {"torch-cpu", "binary32", "binary32", NULL, MPSIM_OPTIM_ADAM, MPSIM_STORE_NEAREST, 0},
    {"torch", "bf16", "bf16", NULL, MPSIM_OPTIM_ADAMW, MPSIM_STORE_NEAREST, 0},
    {"ieee", "bf16", "binary32", NULL, MPSIM_OPTIM_ADAMW, MPSIM_STORE_STOCHASTIC, 0},
    {"optimi", "bf16", "bf16", NULL, MPSIM_OPTIM_ADAMW, MPSIM_STORE_KAHAN, 0},
    {"torchao", "binary32", "binary32", "torchao-8bit", MPSIM_OPTIM_ADAMW, MPSIM_STORE_NEAREST, 0},
    {"lion-pytorch", "bf16", "bf16", NULL, MPSIM_OPTIM_LION, MPSIM_STORE_NEAREST, 0},
    {"ieee", "binary32", "binary32", NULL, MPSIM_OPTIM_ADAFACTOR, MPSIM_STORE_NEAREST, 0}};

typedef struct arrays {
    float *of[PARAMS][ARRAYS]; /* param, grad, m, v, vmax, kahan */
} arrays;

static void round_to(const mpsim_format *f, float *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert_int_eq(mpsim_round_array_f32(f, &r, NULL, x, x, n, NULL), MPSIM_OK);
}

/* Small gradients, so that some updates are lost; second moments are positive. */
static void fill(arrays *a, const mpsim_optim *o)
{
    for (size_t p = 0; p < PARAMS; p++)
        for (size_t k = 0; k < ARRAYS; k++) {
            float *x = a->of[p][k] = calloc(sizes[p] + 1, sizeof *x);
            const mpsim_rng rng = {7, k, 1000000 * p};
            mpsim_normal_array(&rng, k == 0 ? 1.0f : 1e-3f, x, sizes[p]);
            for (size_t i = 0; i < sizes[p]; i++)
                x[i] = k == 3 || k == 4 ? fabsf(x[i]) * 1e-3f : k == 5 ? 0 : x[i];
            round_to(k >= 2 && k <= 4 ? &o->state : &o->param, x, sizes[p]);
        }
}

static void drop(arrays *a)
{
    for (size_t p = 0; p < PARAMS; p++)
        for (size_t k = 0; k < ARRAYS; k++)
            free(a->of[p][k]);
}

static mpsim_optim optim_of(const row *r)
{
    mpsim_optim o;
    mpsim_optim_init(&o, r->algorithm, mpsim_optim_variant_find(r->variant));
    o.store = (uint8_t)r->store;
    o.amsgrad = (uint8_t)r->amsgrad;
    o.param = *mpsim_format_find(r->format);
    o.state = *mpsim_format_find(r->state);
    return o;
}

static mpsim_optim_tensor tensor_of(const mpsim_optim *o, float **x, size_t n)
{
    const unsigned needs = mpsim_optim_needs(o, &o->param);
    return (mpsim_optim_tensor){.param = x[0],
                                .grad = x[1],
                                .m = needs & MPSIM_OPTIM_M ? x[2] : NULL,
                                .v = needs & MPSIM_OPTIM_V ? x[3] : NULL,
                                .vmax = needs & MPSIM_OPTIM_VMAX ? x[4] : NULL,
                                .kahan = needs & MPSIM_OPTIM_KAHAN ? x[5] : NULL,
                                .n = n};
}

static void step_each(const row *r, const mpsim_optim *o, arrays *a)
{
    const mpsim_states *states = r->states ? mpsim_states_find(r->states) : NULL;
    for (size_t p = 0; p < PARAMS; p++) {
        const mpsim_rng rng = {1, p, 0};
        const mpsim_optim_tensor t = tensor_of(o, a->of[p], sizes[p]);
        ck_assert_int_eq(mpsim_optim_step(o, 3, &t, &rng), MPSIM_OK);
        if (states)
            ck_assert_int_eq(mpsim_states_keep(states, t.param, t.m, t.v, t.vmax, t.n), MPSIM_OK);
    }
}

/* Counts of all parameters. */
static void step_all(const row *r, const mpsim_optim *o, arrays *a, int count, const mpsim_pool *pool, uint64_t sums[2])
{
    mpsim_update list[PARAMS];
    mpsim_rng rng[PARAMS];
    size_t which = 99;
    for (size_t p = 0; p < PARAMS; p++) {
        rng[p] = (mpsim_rng){1, p, 0};
        list[p] = (mpsim_update){.optim = o,
                                 .states = r->states ? mpsim_states_find(r->states) : NULL,
                                 .rng = &rng[p],
                                 .step = 3,
                                 .t = tensor_of(o, a->of[p], sizes[p])};
    }
    ck_assert_int_eq(mpsim_update_run(list, PARAMS, count, pool, &which), MPSIM_OK);
    sums[0] = sums[1] = 0;
    for (size_t p = 0; p < PARAMS; p++) {
        sums[0] += list[p].updates;
        sums[1] += list[p].lost;
    }
}

static void same(const arrays *a, const arrays *b)
{
    for (size_t p = 0; p < PARAMS; p++)
        for (size_t k = 0; k < ARRAYS; k++)
            ck_assert_mem_eq(a->of[p][k], b->of[p][k], sizes[p] * sizeof(float));
}

/* What moves in binary64 and stays, by mpsim_optim_reference and what came out. */
static void count_by_hand(const mpsim_optim *o, const arrays *before, const arrays *after, uint64_t sums[2])
{
    sums[0] = sums[1] = 0;
    for (size_t p = 0; p < PARAMS; p++) {
        double *x[ARRAYS];
        for (size_t k = 0; k < ARRAYS; k++) {
            x[k] = calloc(sizes[p] + 1, sizeof **x);
            for (size_t i = 0; i < sizes[p]; i++)
                x[k][i] = (double)before->of[p][k][i];
        }
        ck_assert_int_eq(mpsim_optim_reference(o, 3, x[0], x[1], x[2], x[3], x[4], sizes[p]), MPSIM_OK);
        for (size_t i = 0; i < sizes[p]; i++) {
            const int moves = x[0][i] != (double)before->of[p][0][i];
            const int stays = before->of[p][0][i] == after->of[p][0][i] && before->of[p][5][i] == after->of[p][5][i];
            sums[0] += (uint64_t)moves;
            sums[1] += (uint64_t)(moves && stays);
        }
        for (size_t k = 0; k < ARRAYS; k++)
            free(x[k]);
    }
}

CASE("update", 60);

TESTS(a_list_is_its_parameters, (sizeof rows / sizeof *rows))
{
    const row *r = &rows[_i];
    const mpsim_optim o = optim_of(r);
    uint64_t sums[2], want[2];
    arrays before, each, all;
    fill(&before, &o);
    fill(&each, &o);
    step_each(r, &o, &each);
    count_by_hand(&o, &before, &each, want);
    for (int k = 0; k < 4; k++) {
        fill(&all, &o);
        parallel_init(3);
        step_all(r, &o, &all, k & 1, k & 2 ? &parallel_pool : NULL, sums);
        same(&all, &each);
        ck_assert_uint_eq(sums[0], k & 1 ? want[0] : 0);
        ck_assert_uint_eq(sums[1], k & 1 ? want[1] : 0);
        drop(&all);
    }
    if (strcmp(r->format, "bf16") == 0 && r->store == MPSIM_STORE_NEAREST)
        ck_assert_uint_gt(want[1], 1000);
    drop(&before);
    drop(&each);
}

/* ---- which elements move: estimates beside the step in binary64 ---- */

enum { LIST = 300, EACH = 37 };

static const double settings[][6] = {/* lr, weight_decay, beta1, eps, grad_scale, step */
                                     {1e-3, 0, 0.9, 1e-8, 1, 3},     {1e-3, 0.1, 0.9, 1e-8, 1, 1},
                                     {1e-12, 0.1, 0.9, 0, 1, 100},   {1e-16, 0, 0.9, 1e-8, 1, 3},
                                     {1e-3, 0.75, 0.5, 1, 1, 1},     {0, 0.1, 0.9, 1e-8, 1, 3},
                                     {10, 1e-30, 0, 1e-8, 8, 3},     {1e-3, 0.1, 0.9, 1e-8, 1e20, 50},
                                     {1e5, 1e-3, 0.9, 1e3, 0.25, 2}, {1e-3, 0, 0.9999999999, 0, 1, 1}};

/* Numbers of all sizes, with zeros, infinities and NaNs; of some rows plain ones. p - lr (decay p + m) may be p again: of a part m is -3/4 p. */
static void fill_all_sizes(float x[5][LIST][EACH], uint64_t random)
{
    for (size_t k = 0; k < 5; k++)
        for (size_t i = 0; i < LIST; i++)
            for (size_t j = 0; j < EACH; j++) {
                const uint64_t r = test_random(&random);
                const uint32_t bits = (uint32_t)(r >> 32), way = (uint32_t)(i % 6);
                const int e = (int)(r % 60) - 45;
                const float some = (float)(1 + (bits & 0xffff)) * 0x1p-16f * (bits >> 31 ? -1.0f : 1.0f);
                float y = way < 2 ? some * (k == 0 ? 1.0f : 1e-3f) : way < 5 ? ldexpf(some, e) : f32_of_bits(bits);
                if (way == 4 && bits % 7 == 0)
                    y = 0;
                x[k][i][j] = k >= 3 && way < 5 ? fabsf(y) : y;
                if (way == 3 && k == 2)
                    x[2][i][j] = -0.75f * x[0][i][j];
                if (way == 3 && (k == 1 || k == 3))
                    x[k][i][j] = 0;
            }
}

static uint64_t moved_by(const mpsim_optim *o, uint64_t step, float x[5][LIST][EACH], size_t i)
{
    double y[5][EACH];
    uint64_t sum = 0;
    for (size_t k = 0; k < 5; k++)
        for (size_t j = 0; j < EACH; j++)
            y[k][j] = (double)x[k][i][j];
    ck_assert_int_eq(mpsim_optim_reference(o, step, y[0], y[1], y[2], y[3], y[4], EACH), MPSIM_OK);
    for (size_t j = 0; j < EACH; j++)
        sum += y[0][j] != (double)x[0][i][j];
    return sum;
}

static void compare_moves(const char *isa, const mpsim_optim *o, uint64_t step, uint64_t stream)
{
    static float x[5][LIST][EACH];
    static uint64_t want[LIST];
    static mpsim_update list[LIST];
    fill_all_sizes(x, stream);
    ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
    for (size_t i = 0; i < LIST; i++) {
        want[i] = moved_by(o, step, x, i);
        list[i] =
            (mpsim_update){.optim = o, .step = step, .t = {x[0][i], x[1][i], x[2][i], x[3][i], x[4][i], NULL, EACH}};
    }
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    ck_assert_int_eq(mpsim_update_run(list, LIST, 1, NULL, NULL), MPSIM_OK);
    for (size_t i = 0; i < LIST; i++)
        ck_assert_msg(list[i].updates == want[i], "%s, stream %d, %d: %d elements move, expected %d", isa, (int)stream,
                      (int)i, (int)list[i].updates, (int)want[i]);
}

TESTS(moves_of_any_numbers, (sizeof settings / sizeof *settings))
{
    const mpsim_optim_algorithm algorithms[] = {MPSIM_OPTIM_ADAM, MPSIM_OPTIM_ADAMW, MPSIM_OPTIM_SGD};
    const double *s = settings[_i];
    const char *before = mpsim_isa_active();
    for (size_t isa = 0; mpsim_isa_at(isa); isa++)
        for (int k = 0; k < 6; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, algorithms[k % 3], mpsim_optim_variant_find("ieee"));
            o.lr = s[0], o.weight_decay = s[1], o.beta1 = s[2], o.eps = s[3], o.grad_scale = s[4];
            o.amsgrad = o.maximize = k > 2 && k % 3 != 2;
            if (mpsim_isa_use(mpsim_isa_at(isa)) == MPSIM_OK && mpsim_optim_check(&o) == MPSIM_OK)
                compare_moves(mpsim_isa_at(isa), &o, (uint64_t)s[5], (uint64_t)(8 * _i + k));
        }
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
}

/* The compensation is as large as the parameter's half unit, the step a millionth of a unit of the compensation: nothing
 * keeps the step. */
TEST(what_the_compensation_loses_is_lost)
{
    enum { ELEMENTS = 300, KEPT = 7 };
    static float x[ELEMENTS], g[ELEMENTS], kahan[ELEMENTS];
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("optimi"));
    o.lr = 1;
    o.store = MPSIM_STORE_KAHAN;
    o.param = o.state = *mpsim_format_find("bf16");
    for (size_t i = 0; i < ELEMENTS; i++) {
        x[i] = 1;
        kahan[i] = 0x1p-10f;
        g[i] = i % KEPT ? 0x1p-30f : 0x1p-11f;
    }
    mpsim_update u = {.optim = &o, .step = 1, .t = {x, g, NULL, NULL, NULL, kahan, ELEMENTS}};
    ck_assert_int_eq(mpsim_update_run(&u, 1, 1, NULL, NULL), MPSIM_OK);
    ck_assert_uint_eq(u.updates, ELEMENTS);
    ck_assert_uint_eq(u.lost, ELEMENTS - (ELEMENTS + KEPT - 1) / KEPT);
}

/* ---- Muon ---- */

TEST(muon_is_its_parts)
{
    enum { ROWS = 24, COLS = 10, N = ROWS * COLS };
    float p[N], g[N], b[N] = {0}, want[N], buffer[N] = {0}, y[N];
    const mpsim_rng rng = {3, 0, 0};
    mpsim_muon o;
    mpsim_optim adam;
    mpsim_muon_init(&o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch"));
    mpsim_optim_init(&adam, MPSIM_OPTIM_ADAMW, mpsim_optim_variant_find("torch-fused-c"));
    adam.grad_scale = 4;
    mpsim_normal_array(&rng, 1, p, N);
    for (int i = 0; i < N; i++)
        g[i] = p[N - 1 - i];
    memcpy(want, p, sizeof p);
    for (int i = 0; i < N; i++)
        y[i] = g[i] / 4;
    ck_assert_int_eq(mpsim_muon_momentum(&o, buffer, y, y, N), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, y, ROWS, COLS, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_apply(&o, want, y, ROWS, COLS), MPSIM_OK);
    mpsim_update u = {.optim = &adam,
                      .muon = &o,
                      .step = 1,
                      .rows = ROWS,
                      .cols = COLS,
                      .t = {.param = p, .grad = g, .m = b, .n = N}};
    ck_assert_int_eq(mpsim_update_run(&u, 1, 1, NULL, NULL), MPSIM_OK);
    ck_assert_mem_eq(p, want, sizeof p);
    ck_assert_mem_eq(b, buffer, sizeof b);
    ck_assert_uint_eq(u.updates, N);
    u.cols++;
    ck_assert_int_eq(mpsim_update_run(&u, 1, 0, NULL, NULL), MPSIM_EINVAL);
}

/* ---- gradients ---- */

enum { N = 9000 };

static void make_gradients(mpsim_gradient g[2], float x[2][N], float y[2][N])
{
    const mpsim_rng rng = {5, 0, 0};
    for (int i = 0; i < 2; i++) {
        mpsim_normal_array(&rng, 1 + (float)i, x[i], N);
        g[i] = (mpsim_gradient){.format = mpsim_format_find(i ? "bf16" : "binary32"), .x = x[i], .y = y[i], .n = N};
    }
}

TEST(gradients_are_checked_and_clipped)
{
    static float x[2][N], y[2][N], want[2][N];
    mpsim_gradient g[2];
    mpsim_step_rules r = {.unscale = MPSIM_UNSCALE_RECIPROCAL,
                          .clip = MPSIM_CLIP_TORCH,
                          .max_norm = 0.5,
                          .variant = mpsim_optim_variant_find("ieee")};
    mpsim_readied ready;
    int64_t cause;
    float norms[2];
    make_gradients(g, x, y);
    ck_assert_int_eq(mpsim_gradients_check(g, 2, r.unscale, MPSIM_CHECK_ELEMENTS, 3, &parallel_pool, &cause), MPSIM_OK);
    ck_assert_int_eq(cause, MPSIM_CAUSE_NONE);
    for (int i = 0; i < 2; i++) {
        mpsim_unscale_array(r.unscale, 3, g[i].format, want[i], x[i], N);
        ck_assert_mem_eq(y[i], want[i], sizeof want[i]);
        norms[i] = mpsim_norm(g[i].format, want[i], N);
    }
    ck_assert_int_eq(mpsim_gradients_move(&r, g, 2, 3, 3, NULL, &ready), MPSIM_OK);
    const double norm = mpsim_clip_total(r.clip, NULL, norms, 2);
    const mpsim_clip c = mpsim_clip_factor(r.clip, NULL, norm, 0.5, 3);
    ck_assert(ready.clipped && c.clipped && ready.norm == norm && ready.in_optimizer == 1);
    for (int i = 0; i < 2; i++) {
        mpsim_scale_array(g[i].format, want[i], want[i], N, (float)c.factor);
        ck_assert_mem_eq(y[i], want[i], sizeof want[i]);
    }
    /* another scale begins with what backward left */
    r.clip = MPSIM_CLIP_NONE;
    ck_assert_int_eq(mpsim_gradients_move(&r, g, 2, 5, 3, NULL, &ready), MPSIM_OK);
    mpsim_unscale_array(r.unscale, 5, g[1].format, want[1], x[1], N);
    ck_assert_mem_eq(y[1], want[1], sizeof want[1]);
    ck_assert(isnan(ready.norm) && !ready.clipped);
}

TEST(overflows_have_a_cause)
{
    static float x[2][N], y[2][N];
    mpsim_gradient g[2];
    int64_t cause;
    make_gradients(g, x, y);
    x[1][77] = (float)INFINITY;
    ck_assert_int_eq(mpsim_gradients_check(g, 2, MPSIM_UNSCALE_DIVIDE, MPSIM_CHECK_ELEMENTS, 2, NULL, &cause),
                     MPSIM_OK);
    ck_assert_int_eq(cause, 1);
    ck_assert(g[1].found == (MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT) && g[0].found == 0);
    make_gradients(g, x, y);
    g[1].y = x[1]; /* in place */
    for (int i = 0; i < N; i++)
        x[1][i] = 3e38f;
    ck_assert_int_eq(mpsim_gradients_check(g, 2, MPSIM_UNSCALE_RECIPROCAL, MPSIM_CHECK_NORM, 1, NULL, &cause),
                     MPSIM_OK);
    ck_assert_int_eq(cause, MPSIM_CAUSE_NORM);
    make_gradients(g, x, y);
    g[0].y = NULL;
    ck_assert_int_eq(mpsim_gradients_check(g, 2, MPSIM_UNSCALE_RECIPROCAL, MPSIM_CHECK_NORM, 1, NULL, &cause),
                     MPSIM_EINVAL);
}

TEST(errors)
{
    const mpsim_optim o = optim_of(&rows[0]);
    mpsim_optim bad = o;
    float x = 1;
    size_t which = 99;
    bad.lr = -1;
    mpsim_update list[2] = {
        {.optim = &o, .step = 1, .t = {.param = &x, .grad = &x, .m = &x, .v = &x, .vmax = &x, .n = 1}}};
    list[1] = list[0];
    list[1].optim = &bad;
    ck_assert_int_eq(mpsim_update_run(list, 2, 0, NULL, &which), MPSIM_EINVAL);
    ck_assert_uint_eq(which, 1);
    ck_assert(x == 1);
    list[1].optim = &o;
    list[1].t.v = NULL;
    ck_assert_int_eq(mpsim_update_run(list, 2, 0, NULL, &which), MPSIM_EINVAL);
    ck_assert_uint_eq(which, 1);
    ck_assert_int_eq(mpsim_update_run(NULL, 0, 1, NULL, NULL), MPSIM_OK);
    ck_assert_str_eq(mpsim_placement_state(&(mpsim_placement){.state = *mpsim_format_find("bf16")}, 9)->name, "bf16");
    const mpsim_placement wide = {.kept = *mpsim_format_find("binary32"), .state = *mpsim_format_find("bf16")};
    mpsim_optim stochastic = optim_of(&rows[3]);
    stochastic = mpsim_optim_placed(&stochastic, &wide);
    ck_assert(stochastic.store == MPSIM_STORE_NEAREST && strcmp(stochastic.state.name, "bf16") == 0);
    const mpsim_step_rules fused = {.clip = MPSIM_CLIP_NONE, .variant = mpsim_optim_variant_find("torch-fused-c")};
    ck_assert(mpsim_unscaling_of(&fused, 8).in_optimizer == 8 && mpsim_unscaling_of(&fused, 8).before == 1);
    ck_assert(mpsim_norm_overflows(&(float){(float)INFINITY}, 1) && !mpsim_norm_overflows(&x, 1));
    const mpsim_gradients none = {0};
    mpsim_readied ready;
    ck_assert_int_eq(mpsim_gradients_ready(&fused, &none, 8, 1, (double)NAN, &ready), 0);
    ck_assert(ready.in_optimizer == 8);
}

TEST_MAIN("optim-update");
