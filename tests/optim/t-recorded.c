/* t-recorded.c -- optimizer steps against what torch, optimi, torchao and lion-pytorch did.
 *
 * data/vectors/optim, optim-lowp and optim-lion hold parameters and states step by step; their
 * READMEs say how they were recorded and in which order everything is rounded. Every run, stored or
 * named as equal to a stored one, is repeated by the variant that claims it: bit for bit, NaN
 * payloads aside. Trainings and published figures: t-training.c, t-figures.c. */
#include "support/recorded.h"
#include "support/support.h"

#include <mpsim/gradient.h>
#include <mpsim/optim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors of a run ---- */

enum { P, M, V, VMAX, KAHAN, TENSORS };
static const char *const letters[TENSORS] = {"p", "m", "v", "vmax", "kahan"};

typedef struct run {
    mpsim_optim o;
    mpsim_optim_tensor t;
    float *of[TENSORS];
} run;

static void run_start(run *r, recorded *file, const char *name)
{
    size_t n = 0;
    r->of[P] = recorded_floats(file, name, "p.0", &n);
    ck_assert_msg(r->of[P] != NULL, "%s: no p.0", name);
    for (int k = M; k < TENSORS; k++) {
        r->of[k] = calloc(n, sizeof(float));
        ck_assert(r->of[k] != NULL);
    }
    r->t = (mpsim_optim_tensor){
        .param = r->of[P], .m = r->of[M], .v = r->of[V], .vmax = r->of[VMAX], .kahan = r->of[KAHAN], .n = n};
}

static void run_end(run *r)
{
    for (int k = P; k < TENSORS; k++)
        free(r->of[k]);
}

static float *tensor_after(recorded *file, const char *name, const char *letter, unsigned step)
{
    char text[32];
    snprintf(text, sizeof text, "%s.%u", letter, step);
    return recorded_floats(file, name, text, NULL);
}

typedef struct tally {
    size_t runs, values, wrong;
    char first[200]; /* the first mismatch */
} tally;

/* Compare with what was recorded after a step and go on from that, so that errors do not pile
 * up. */
static void compare(run *r, recorded *file, const char *name, unsigned step, tally *t)
{
    for (int k = P; k < TENSORS; k++) {
        float *want = tensor_after(file, name, letters[k], step);
        for (size_t i = 0; want && i < r->t.n; i++, t->values++) {
            if (recorded_same(want[i], r->of[k][i]))
                continue;
            if (t->wrong++ == 0)
                snprintf(t->first, sizeof t->first, "%s, %s.%u[%zu] is %a, recorded %a", name, letters[k], step, i,
                         (double)r->of[k][i], (double)want[i]);
        }
        if (want)
            memcpy(r->of[k], want, r->t.n * sizeof *want);
        free(want);
    }
}

static void set_format(mpsim_optim *o, const char *facts)
{
    char text[16];
    recorded_text(facts, "dtype", "", text, sizeof text);
    const char *format = strcmp(text, "f16") == 0 ? "fp16" : strcmp(text, "f32") == 0 ? "binary32" : text;
    ck_assert_msg(mpsim_format_find(format) != NULL, "dtype %s", text);
    o->param = o->state = *mpsim_format_find(format);
}

static void set_options(mpsim_optim *o, const char *facts, const char *variant)
{
    char text[16];
    mpsim_optim_algorithm a;
    recorded_text(facts, "optimizer", "", text, sizeof text);
    ck_assert_msg(mpsim_optim_parse(&a, text) == MPSIM_OK, "optimizer %s", text);
    ck_assert_msg(mpsim_optim_variant_find(variant) != NULL, "no variant %s", variant);
    mpsim_optim_init(o, a, mpsim_optim_variant_find(variant));
    set_format(o, facts);
    o->lr = recorded_number(facts, "lr", -1);
    o->momentum = recorded_number(facts, "momentum", 0);
    o->dampening = recorded_number(facts, "dampening", 0);
    o->weight_decay = recorded_number(facts, "weight_decay", 0);
    o->beta1 = recorded_number(facts, "beta1", 0);
    o->beta2 = recorded_number(facts, "beta2", 0);
    o->eps = recorded_number(facts, "eps", 0);
    o->grad_scale = recorded_number(facts, "grad_scale", 1);
    o->nesterov = recorded_number(facts, "nesterov", 0) == 1;
    o->amsgrad = recorded_number(facts, "amsgrad", 0) == 1;
    o->maximize = recorded_number(facts, "maximize", 0) == 1;
    ck_assert_msg(mpsim_optim_check(o) == MPSIM_OK, "%s, %s: %s", variant, facts,
                  mpsim_status_string(mpsim_optim_check(o)));
}

static int all_equal(const char *what, const tally *t)
{
    printf("# %-26s %3zu runs, %6zu values, %zu mismatches\n", what, t->runs, t->values, t->wrong);
    if (t->wrong)
        printf("# %s\n", t->first);
    return t->wrong == 0 && t->values > 0;
}

/* ---- torch on CPU ---- */

static const char *const torch_files[] = {"data/vectors/optim/sgd.safetensors", "data/vectors/optim/adam.safetensors",
                                          "data/vectors/optim/adamw.safetensors"};

/* Who reproduces an implementation with a capability, and a variant that must not. */
static const struct {
    const char *impl, *capability, *variant, *other;
} torch_rows[] = {
    {"forloop", "default", "torch-cpu-default", "torch-cpu"},
    {"forloop", "avx2", "torch-cpu", "torch-cpu-default"},
    {"forloop", "avx512", "torch-cpu", "torch"},
    {"foreach", "default", "torch-cpu-foreach-default", "torch-cpu-default"},
    {"foreach", "avx2", "torch-cpu-foreach", "torch-cpu"},
    {"foreach", "avx512", "torch-cpu-foreach", "torch-foreach"},
    {"fused", "default", "torch-fused-cpu-default", "torch-fused-cpu"},
    {"fused", "avx2", "torch-fused-cpu", "torch-fused-cpu-default"},
    {"fused", "avx512", "torch-fused-cpu", "torch-fused-c"},
};
enum { TORCH_ROWS = sizeof torch_rows / sizeof torch_rows[0] };

/* Whether a case stands for impl/capability: by itself, or in the list `also`. */
static int stands_for(const char *facts, const char *impl, const char *capability)
{
    char text[200], own[40], name[40];
    snprintf(name, sizeof name, "%s/%s", impl, capability);
    recorded_text(facts, "impl", "", own, sizeof own);
    recorded_text(facts, "capability", "", own + strlen(own) + 1, 10);
    own[strlen(own)] = '/';
    recorded_text(facts, "also", "", text, sizeof text);
    const char *at = strstr(text, name);
    const char after = at ? at[strlen(name)] : 'x';
    return strcmp(own, name) == 0 || after == ',' || after == 0;
}

static void repeat_torch(recorded *file, const char *name, const char *variant, tally *t)
{
    run r;
    const char *facts = recorded_facts(file, name);
    const unsigned steps = (unsigned)recorded_number(facts, "steps", 0);
    const unsigned skipped = (unsigned)recorded_number(facts, "found_inf_at", 0);
    uint64_t done = 0;
    run_start(&r, file, name);
    set_options(&r.o, facts, variant);
    for (unsigned step = 1; step <= steps; step++) {
        float *g = tensor_after(file, name, "g", step);
        ck_assert_msg(g != NULL, "%s: no g.%u", name, step);
        r.t.grad = g;
        if (step != skipped)
            ck_assert(mpsim_optim_step(&r.o, ++done, &r.t, NULL) == MPSIM_OK);
        compare(&r, file, name, step, t);
        free(g);
    }
    t->runs++;
    run_end(&r);
}

/* All runs of a row by a variant; runs with an option that it lacks are left out. */
static tally repeat_row(size_t row, const char *variant)
{
    tally t = {0, 0, 0, ""};
    for (size_t f = 0; f < 3; f++) {
        recorded *file = recorded_open(torch_files[f]);
        for (size_t i = 0; i < recorded_count(file); i++) {
            const char *name = recorded_case(file, i);
            if (stands_for(recorded_facts(file, name), torch_rows[row].impl, torch_rows[row].capability))
                repeat_torch(file, name, variant, &t);
        }
        recorded_close(file);
    }
    return t;
}

CASE("recorded", 60);

TESTS(torch_on_cpu, TORCH_ROWS)
{
    char what[64];
    const size_t row = (size_t)_i;
    const tally t = repeat_row(row, torch_rows[row].variant);
    snprintf(what, sizeof what, "%s, %s", torch_rows[row].variant, torch_rows[row].capability);
    ck_assert_msg(all_equal(what, &t), "%s", t.first);
}

/* 351 runs are stored or stand for stored ones: 345564 values, as the recorder counts them. */
TEST(every_run_is_repeated)
{
    size_t runs = 0;
    for (size_t f = 0; f < 3; f++) {
        recorded *file = recorded_open(torch_files[f]);
        for (size_t i = 0; i < recorded_count(file); i++)
            for (size_t row = 0; row < TORCH_ROWS; row++)
                runs += (size_t)stands_for(recorded_facts(file, recorded_case(file, i)), torch_rows[row].impl,
                                           torch_rows[row].capability);
        recorded_close(file);
    }
    ck_assert_uint_eq(runs, 351);
}

TEST(other_variants_differ)
{
    for (size_t row = 0; row < TORCH_ROWS; row++) {
        const tally t = repeat_row(row, torch_rows[row].other);
        printf("# %s/%s by %s: %zu of %zu values differ\n", torch_rows[row].impl, torch_rows[row].capability,
               torch_rows[row].other, t.wrong, t.values);
        ck_assert_uint_gt(t.wrong, 0);
    }
}

/* ---- optimi, torchao and lion-pytorch ---- */

/* optimi has options of its own: a decay that is decoupled in SGD, a decay that does not depend on
 * lr, a momentum buffer that starts as the gradient. The caller can do each of them. */
static void optimi_options(run *r, recorded *file, const char *name, const char *facts)
{
    if (recorded_number(facts, "kahan", 0) == 1)
        r->o.store = MPSIM_STORE_KAHAN;
    if (r->o.dampening == 1)
        r->o.dampening = r->o.momentum;
    if (recorded_number(facts, "decouple_lr", 0) == 1)
        r->o.weight_decay /= recorded_number(facts, "max_lr", -1);
    if (recorded_number(facts, "torch_init", 0) == 1) { /* lerp from the gradient to itself: m.1 */
        float *m = tensor_after(file, name, "m", 1);
        memcpy(r->of[M], m, r->t.n * sizeof *m);
        free(m);
    }
}

static void optimi_decay(run *r, const char *facts)
{
    if (recorded_number(facts, "decouple_wd", 0) != 1)
        return;
    const double decay = 1 - r->o.lr * recorded_number(facts, "weight_decay", 0);
    r->o.weight_decay = 0;
    mpsim_scale_array(&r->o.param, r->of[P], r->of[P], r->t.n, (float)decay);
}

static void repeat_optimi(recorded *file, const char *name, const char *variant, tally *t)
{
    run r;
    const char *facts = recorded_facts(file, name);
    const unsigned steps = (unsigned)recorded_number(facts, "steps", 0);
    char plain[400];
    snprintf(plain, sizeof plain, "%s", facts);
    char *dampening = strstr(plain, " dampening=1"); /* a switch there */
    if (dampening)
        memset(dampening, ' ', strlen(" dampening=1"));
    run_start(&r, file, name);
    set_options(&r.o, plain, variant);
    r.o.dampening = dampening ? 1 : 0;
    optimi_options(&r, file, name, facts);
    for (unsigned step = 1; step <= steps; step++) {
        float *g = tensor_after(file, name, "g", step);
        r.t.grad = g;
        optimi_decay(&r, facts);
        ck_assert(mpsim_optim_step(&r.o, step, &r.t, NULL) == MPSIM_OK);
        compare(&r, file, name, step, t);
        free(g);
    }
    t->runs++;
    run_end(&r);
}

/* Stochastic rounding by the draws that were recorded: away from zero if the draw is below the low
 * 16 bits. The step before it is done with a parameter in binary32. */
static void store_by_draws(const run *r, recorded *file, const char *name, unsigned step)
{
    float *draws = tensor_after(file, name, "r", step);
    ck_assert_msg(draws != NULL, "%s: no r.%u", name, step);
    for (size_t i = 0; i < r->t.n; i++) {
        const uint32_t u = bits_of_f32(r->of[P][i]), low = u & 0xffff;
        r->of[P][i] = f32_of_bits((u & 0xffff0000) + ((uint32_t)draws[i] < low ? 0x10000 : 0));
    }
    free(draws);
}

static void repeat_torchao(recorded *file, const char *name, const char *variant, tally *t)
{
    run r;
    const char *facts = recorded_facts(file, name);
    const unsigned steps = (unsigned)recorded_number(facts, "steps", 0);
    const int stochastic = recorded_number(facts, "sr", 0) == 1;
    run_start(&r, file, name);
    set_options(&r.o, facts, variant);
    if (stochastic)
        r.o.param = *mpsim_format_find("binary32");
    for (unsigned step = 1; step <= steps; step++) {
        float *g = tensor_after(file, name, "g", step);
        r.t.grad = g;
        ck_assert(mpsim_optim_step(&r.o, step, &r.t, NULL) == MPSIM_OK);
        if (stochastic)
            store_by_draws(&r, file, name, step);
        compare(&r, file, name, step, t);
        free(g);
    }
    t->runs++;
    run_end(&r);
}

typedef void repeat_function(recorded *file, const char *name, const char *variant, tally *t);

/* The cases of a file with foreach=0 or 1 (where that is a fact), the variant that repeats them,
 * how many there are at least. */
static const struct {
    const char *path;
    int foreach;
    const char *variant;
    repeat_function *repeat;
    size_t runs;
} lowp_rows[] = {
    {"data/vectors/optim-lowp/optimi.safetensors", 0, "optimi-cpu", repeat_optimi, 23},
    {"data/vectors/optim-lowp/optimi.safetensors", 1, "optimi-cpu-foreach", repeat_optimi, 6},
    {"data/vectors/optim-lowp/optimi-default.safetensors", 0, "optimi-cpu-default", repeat_optimi, 15},
    {"data/vectors/optim-lowp/optimi-default.safetensors", 1, "optimi-cpu-foreach-default", repeat_optimi, 2},
    {"data/vectors/optim-lowp/torchao.safetensors", 0, "torchao", repeat_torchao, 9},
    {"data/vectors/optim-lowp/torchao-default.safetensors", 0, "torchao-cpu", repeat_torchao, 3},
    {"data/vectors/optim-lion/lion.safetensors", 0, "lion-pytorch-cpu", repeat_torch, 6},
    {"data/vectors/optim-lion/lion-default.safetensors", 0, "lion-pytorch-cpu-default", repeat_torch, 6},
};
enum { LOWP_ROWS = sizeof lowp_rows / sizeof lowp_rows[0] };

TESTS(low_precision, LOWP_ROWS)
{
    tally t = {0, 0, 0, ""};
    recorded *file = recorded_open(lowp_rows[_i].path);
    for (size_t i = 0; i < recorded_count(file); i++) {
        const char *name = recorded_case(file, i);
        if (recorded_number(recorded_facts(file, name), "foreach", 0) == lowp_rows[_i].foreach)
            lowp_rows[_i].repeat(file, name, lowp_rows[_i].variant, &t);
    }
    recorded_close(file);
    ck_assert_uint_ge(t.runs, lowp_rows[_i].runs);
    ck_assert_msg(all_equal(lowp_rows[_i].variant, &t), "%s", t.first);
}

TEST_MAIN("optim-recorded");
