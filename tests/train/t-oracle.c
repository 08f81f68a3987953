/* t-oracle.c -- the trainer on the CPU engine, and the same steps computed again as nested
 * loops (oracle/train.h): every tensor, loss and scale in every bit. */
#include "oracle/core.h"
#include "oracle/train.h"
#include "support/support.h"
#include "support/trainscenarios.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- side by side ---- */

typedef struct both {
    const scenario *s;
    oracle_train *o;
    train_engine *e;
    uint64_t step;
    size_t tensors, values;
    char others[2000], seen[4000]; /* names the oracle has not; names that were compared */
} both;

static void note(char *list, size_t size, const char *name)
{
    char word[2 * TRAIN_NAME + 2];
    (void)snprintf(word, sizeof word, " %s", name);
    const char *at = strstr(list, word);
    while (at && at[strlen(word)] != ' ' && at[strlen(word)] != 0)
        at = strstr(at + 1, word);
    if (!at && strlen(list) + strlen(word) < size)
        strcat(list, word);
}

static int compare(const train_item *x, void *context)
{
    both *b = context;
    oracle_tensor t;
    if (!oracle_train_find(b->o, x->name, &t)) {
        note(b->others, sizeof b->others, x->name);
        return 0;
    }
    note(b->seen, sizeof b->seen, x->name);
    const size_t n = x->tensor->rows * x->tensor->cols;
    ck_assert_msg(x->tensor->rows == t.rows && x->tensor->cols == t.cols, "%s, step %llu, %s: %zu x %zu, not %zu x %zu",
                  b->s->name, (unsigned long long)b->step, x->name, x->tensor->rows, x->tensor->cols, t.rows, t.cols);
    ck_assert_msg(strcmp(x->tensor->format->name, t.format->name) == 0, "%s, %s: %s, not %s", b->s->name, x->name,
                  x->tensor->format->name, t.format->name);
    ck_assert_msg(oracle_same(x->tensor->inverse, t.inverse), "%s, step %llu, %s: inverse %a, not %a", b->s->name,
                  (unsigned long long)b->step, x->name, (double)x->tensor->inverse, (double)t.inverse);
    float *v = malloc(n * sizeof *v);
    ck_assert(v && b->e->ops->get(b->e, x->tensor, v) == 0);
    const size_t i = oracle_differs(v, t.values, n);
    ck_assert_msg(i == n, "%s, step %llu, %s: number %zu of %zu x %zu is %a, not %a", b->s->name,
                  (unsigned long long)b->step, x->name, i, t.rows, t.cols, (double)v[i], (double)t.values[i]);
    free(v);
    b->tensors++;
    b->values += n;
    return 0;
}

static void compare_report(const both *b, const train_step *a, const oracle_step *want)
{
    const unsigned long long step = b->step;
    ck_assert_msg(oracle_same(a->loss, want->loss), "%s, step %llu: loss %a, not %a", b->s->name, step, (double)a->loss,
                  (double)want->loss);
    ck_assert_msg(a->accuracy == want->accuracy, "%s, step %llu: accuracy %g, not %g", b->s->name, step, a->accuracy,
                  want->accuracy);
    ck_assert_msg(a->scale == want->scale && a->next_scale == want->next_scale,
                  "%s, step %llu: scale %g then %g, not %g then %g", b->s->name, step, a->scale, a->next_scale,
                  want->scale, want->next_scale);
    ck_assert_msg(a->skipped == want->skipped, "%s, step %llu: skipped is %d", b->s->name, step, a->skipped);
    ck_assert_msg(isnan(want->norm) ? isnan(a->norm) : a->norm == want->norm, "%s, step %llu: norm %a, not %a",
                  b->s->name, step, a->norm, want->norm);
    ck_assert_msg(!a->skipped || a->cause, "%s, step %llu: skipped without a cause", b->s->name, step);
}

static void compare_evaluation(const both *b, train *t)
{
    char error[TRAIN_ERROR] = "";
    double loss, accuracy, want_loss, want_accuracy;
    ck_assert_msg(train_evaluate(t, &loss, &accuracy, error) == 0, "%s: %s", b->s->name, error);
    oracle_train_evaluate(b->o, &want_loss, &want_accuracy);
    ck_assert_msg(loss == want_loss || (isnan(loss) && isnan(want_loss)), "%s: test loss %a, not %a", b->s->name, loss,
                  want_loss);
    ck_assert_msg(accuracy == want_accuracy, "%s: test accuracy %g, not %g", b->s->name, accuracy, want_accuracy);
}

/* Layers that pass numbers on have no copies of what enters. */
static int has_no_copy(const char *name)
{
    static const char *const known[] = {"act:relu",   "agrad:relu",  "act:pool",
                                        "agrad:pool", "act:flatten", "agrad:flatten"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(name, known[i], strlen(known[i])) == 0)
            return 1;
    return 0;
}

/* Every tensor of the oracle was compared, and the trainer has no others. */
static void nothing_is_left_out(const both *b)
{
    char name[2 * TRAIN_NAME], before[sizeof b->seen];
    for (size_t i = 0; oracle_train_name(b->o, i, name); i++) {
        memcpy(before, b->seen, sizeof before);
        note(before, sizeof before, name);
        ck_assert_msg(strcmp(before, b->seen) == 0 || has_no_copy(name), "%s: no %s", b->s->name, name);
    }
    ck_assert_msg(!*b->others, "%s: not in the oracle:%s", b->s->name, b->others);
    printf("# %s: %zu tensors, %zu values\n", b->s->name, b->tensors, b->values);
}

static void side_by_side(const scenario *s, const train_run *run)
{
    train_engine engine;
    memset(&engine, 0, sizeof engine);
    ck_assert_int_eq(train_engine_cpu(&engine, NULL), 0);
    char error[TRAIN_ERROR] = "";
    train *t = train_open(run, &engine, 0, error);
    ck_assert_msg(t != NULL, "%s: %s", s->name, error);
    both b = {.s = s, .o = oracle_train_open(run), .e = &engine};
    uint64_t skipped = 0;
    for (b.step = 0; b.step < run->settings.steps; b.step++) {
        train_step a;
        oracle_step want;
        ck_assert_msg(train_next(t, &a, error) == 0, "%s: %s", s->name, error);
        oracle_train_next(b.o, &want);
        (void)train_visit(t, compare, &b);
        compare_report(&b, &a, &want);
        skipped += want.skipped != 0;
    }
    if (s->skips)
        ck_assert_msg(skipped > 0 && skipped < run->settings.steps, "%s: %llu skipped", s->name,
                      (unsigned long long)skipped);
    compare_evaluation(&b, t);
    nothing_is_left_out(&b);
    oracle_train_close(b.o);
    train_close(t);
    train_engine_close(&engine);
}

CASE("steps", 60);

TESTS(every_tensor_of_every_step, SCENARIOS)
{
    train_run run;
    train_plan plan;
    if (!test_in_part((uint64_t)_i, 2))
        return;
    prepare(&scenarios[_i], &run, &plan);
    side_by_side(&scenarios[_i], &run);
}

/* One plan after the other: numbers are rounded to the new formats; the scaler and FP8 scales begin
 * anew where they changed. */
TEST(plans_one_after_the_other)
{
    static const char *const names[] = {
        "fp32", "fp16 amp", "bf16", "fp8 hybrid", "fp8 hybrid", "fp16 without masters", "bf16 split masters", "fp32"};
    enum { PLANS = sizeof names / sizeof *names };
    train_run run;
    train_plan plans[PLANS];
    for (size_t i = 0; i < PLANS; i++) {
        const scenario *s = scenarios;
        while (strcmp(s->name, names[i]) != 0)
            s++;
        if (i == 0)
            prepare(s, &run, plans);
        plan_of(s, &run, &plans[i]);
        plans[i].from = 3 * i;
    }
    run.n_plans = PLANS;
    run.settings.steps = 3 * PLANS;
    scenario s = scenarios[0];
    s.name = "plans";
    side_by_side(&s, &run);
}

/* ---- what a run begins with ---- */

CASE("begin", 20);

TEST(streams_and_orders_of_images)
{
    /* FNV-1a by its authors' test vectors. */
    ck_assert(train_stream("") == UINT64_C(0xcbf29ce484222325));
    ck_assert(train_stream("a") == UINT64_C(0xaf63dc4c8601ec8c));
    ck_assert(train_stream("foobar") == UINT64_C(0x85944171f73967e8));
    static const size_t batches[] = {1, 16, 64, 500, 1437};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        for (uint64_t step = 0; step < 200; step += 7) {
            uint32_t ours[TRAIN_IMAGES], want[TRAIN_IMAGES];
            train_batch(3 + i, step, batches[i], ours);
            oracle_batch(3 + i, step, batches[i], want);
            ck_assert(memcmp(ours, want, batches[i] * sizeof *ours) == 0);
        }
}

TEST(images)
{
    size_t of_class[TRAIN_CLASSES] = {0};
    for (size_t i = 0; i < TRAIN_IMAGES + TRAIN_TESTS; i++) {
        float pixels[TRAIN_PIXELS], sum = 0;
        const uint32_t label = train_digit(i, pixels);
        ck_assert(label < TRAIN_CLASSES);
        of_class[label]++;
        for (size_t k = 0; k < TRAIN_PIXELS; k++) {
            const float x = pixels[k] * 16;
            ck_assert(x >= 0 && x <= 16 && x == floorf(x));
            sum += x;
        }
        ck_assert(sum > 0);
    }
    for (size_t c = 0; c < TRAIN_CLASSES; c++)
        ck_assert(of_class[c] > 150 && of_class[c] < 200);
}

/* ---- products alone: random operands of any size ---- */

static void random_matrix(train_engine *e, train_tensor *t, const oracle_format *f, float *v, uint64_t *state)
{
    const size_t n = t->rows * t->cols;
    t->format = mpsim_format_find(f->name);
    for (size_t i = 0; i < n; i++) {
        const double x = (double)(int64_t)test_random(state) * 0x1p-63;
        const int e2 = (int)(test_random(state) % 12) - (test_random(state) % 16 ? 6 : 14);
        v[i] = test_random(state) % 4 ? oracle_to(f, ldexp(x, e2)) : 0;
        if (test_random(state) % 600 == 0)
            v[i] = f->infinity ? INFINITY : NAN;
    }
    ck_assert(e->ops->alloc(e, t) == 0 && e->ops->put(e, t, v) == 0);
}

static void one_product(train_engine *e, const char *fa, const char *fb, uint64_t *state)
{
    enum { SIDE = 8, DEPTH = 100 };
    const size_t depth = 1 + test_random(state) % DEPTH;
    static float a[SIDE * DEPTH], b[SIDE * DEPTH], d[SIDE * SIDE];
    static oracle_part pa[SIDE * DEPTH], pb[SIDE * DEPTH];
    const oracle_format *of = oracle_format_find(fa), *og = oracle_format_find(fb);
    train_tensor ta = {.rows = SIDE, .cols = depth}, tb = {.rows = SIDE, .cols = depth};
    train_tensor td = {.format = mpsim_format_find("binary32"), .rows = SIDE, .cols = SIDE};
    random_matrix(e, &ta, of, a, state);
    random_matrix(e, &tb, og, b, state);
    for (size_t i = 0; i < SIDE * depth; i++) {
        pa[i] = oracle_take_apart(of, a[i]);
        pb[i] = oracle_take_apart(og, b[i]);
    }
    train_settings s;
    train_settings_init(&s, "mlp");
    mpsim_model m;
    char error[TRAIN_ERROR] = "";
    ck_assert_msg(train_model(&s, ta.format, tb.format, &m, error) == 0, "%s", error);
    const train_gemm g = {.model = &m, .a = &ta, .b = &tb, .b_transposed = 1};
    ck_assert(e->ops->alloc(e, &td) == 0 && e->ops->gemm(e, &td, &g, NULL) == 0);
    ck_assert(e->ops->get(e, &td, d) == 0);
    static const oracle_core fma = {"", 0, 0, 1};
    const oracle_core *core = oracle_core_find(fa);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        const float want = core_dot(core ? core : &fma, of->precision, pa + i / SIDE * depth, 1, og->precision,
                                    pb + i % SIDE * depth, 1, depth);
        ck_assert_msg(oracle_same(d[i], want), "%s %s, depth %zu: %a, not %a", fa, fb, depth, (double)d[i],
                      (double)want);
    }
    train_tensor *const all[] = {&ta, &tb, &td};
    for (size_t i = 0; i < 3; i++)
        e->ops->release(e, all[i]);
}

TEST(products)
{
    static const char *const pairs[][2] = {{"binary32", "binary32"}, {"fp16", "fp16"}, {"bf16", "bf16"},
                                           {"e4m3", "e4m3"},         {"e5m2", "e4m3"}, {"e4m3", "e5m2"}};
    train_engine e;
    memset(&e, 0, sizeof e);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    uint64_t state = test_seed();
    for (size_t i = 0; i < test_scaled(600); i++)
        one_product(&e, pairs[i % 6][0], pairs[i % 6][1], &state);
    train_engine_close(&e);
}

TEST_MAIN("train-oracle");
