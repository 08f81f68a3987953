/* t-step.c -- what a step does: counts, shapes, bytes; initial values, scales, clipping, masters. Gradients:
 * t-gradients.c. */
#include "support/trainruns.h"

#include <train/digests.h>

static void end(train *t, train_engine *e, train_run *r)
{
    train_close(t);
    train_engine_close(e);
    train_run_clear(r);
}

static uint64_t count_nonzero(train *t, const char *const *names, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        size_t m;
        float *x = values_of(t, names[i], &m);
        for (size_t k = 0; k < m; k++)
            all += x[k] != 0 && isfinite(x[k]);
        free(x);
    }
    return all;
}

CASE("values", 20);

/* In binary32 nothing is lost, and what is not zero can be counted in the tensors. */
TEST(counts_by_hand)
{
    static const char *const act[] = {"out:fc1",        "out:fc2",     "out:head",    "weight.in:fc1", "weight.in:fc2",
                                      "weight.in:head", "bias.in:fc1", "bias.in:fc2", "bias.in:head"};
    static const char *const agrad[] = {"dgrad:loss", "dgrad:head", "dgrad:fc2"};
    static const char *const wgrad[] = {"wgrad:fc1.weight", "wgrad:fc2.weight", "wgrad:head.weight",
                                        "wgrad:fc1.bias",   "wgrad:fc2.bias",   "wgrad:head.bias"};
    train_engine e;
    train_run r;
    make_run(&r, &runs[1]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    const train_step s = next(t);
    ck_assert_uint_eq(s.act.nonzero, count_nonzero(t, act, 9));
    ck_assert_uint_eq(s.agrad.nonzero, count_nonzero(t, agrad, 3));
    ck_assert_uint_eq(s.wgrad.nonzero, count_nonzero(t, wgrad, 6));
    ck_assert_uint_gt(s.wgrad.nonzero, 500);
    ck_assert_uint_eq(s.act.lost + s.agrad.lost + s.wgrad.lost, 0);
    ck_assert_uint_eq(s.act.overflow + s.agrad.overflow + s.wgrad.overflow, 0);
    ck_assert_uint_eq(s.act.nonfinite + s.agrad.nonfinite + s.wgrad.nonfinite, 0);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

static void expect_shape(train *t, const char *name, size_t rank, size_t a, size_t b, size_t c, size_t d)
{
    const size_t shape[4] = {a, b, c, d};
    wanted w = {.name = name};
    ck_assert_msg(train_visit(t, look, &w) == 1, "no %s", name);
    ck_assert_msg(w.rank == rank, "%s has rank %zu", name, w.rank);
    ck_assert_mem_eq(w.shape, shape, rank * sizeof *shape);
}

TEST(shapes)
{
    train_engine e;
    train_run r;
    make_run(&r, &runs[11]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    expect_shape(t, "act:conv1", 4, 20, 8, 8, 1);
    expect_shape(t, "out:conv2", 4, 20, 4, 4, 8);
    expect_shape(t, "dgrad:conv2", 4, 20, 4, 4, 4);
    expect_shape(t, "out:pool2", 4, 20, 2, 2, 8);
    expect_shape(t, "out:flatten", 2, 20, 32, 0, 0);
    expect_shape(t, "weight:conv2.weight", 4, 8, 3, 3, 4);
    expect_shape(t, "wgrad:conv2.weight", 4, 8, 3, 3, 4);
    expect_shape(t, "wgrad:bn2.bias", 1, 8, 0, 0, 0);
    expect_shape(t, "opt.m:head.weight", 2, 10, 32, 0, 0);
    expect_shape(t, "master:head.bias", 1, 10, 0, 0, 0);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

/* mlp 64-24-24-10: 2410 parameters; fp16 with a binary32 master and momentum, batch 20. What is
 * kept: pixels in fp16, and two layers of 24. */
TEST(bytes)
{
    train_engine e;
    train_run r;
    train_bytes b;
    make_run(&r, &runs[0]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    train_measure_bytes(t, &b);
    ck_assert_uint_eq(b.weights, 2 * 2410);
    ck_assert_uint_eq(b.master, 4 * 2410);
    ck_assert_uint_eq(b.gradients, 2 * 2410);
    ck_assert_uint_eq(b.state, 4 * 2410);
    ck_assert_uint_eq(b.activations, 20 * 2 * (64 + 24 + 24));
    end(t, &e, &r);
    make_run(&r, &runs[1]);
    r.settings.tf32 = 1;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    t = begin(&r, &e);
    train_measure_bytes(t, &b);
    ck_assert_uint_eq(b.weights, 4 * 2410);
    ck_assert_uint_eq(b.master, 0);
    ck_assert_uint_eq(b.state, 8 * 2410);
    ck_assert_uint_eq(b.activations, 20 * 4 * (64 + 24 + 24));
    end(t, &e, &r);
}

/* ---- scaling ---- */

CASE("rules", 20);

/* Gradients of a scaled loss are the gradients times scale and factor: exactly, for powers of two
 * in binary32. Unscaled ones keep the factor. */
TEST(scale_and_factor)
{
    const recipe_of_run plain = {.net = "mlp", .low = "binary32", .optimizer = "sgd"};
    const recipe_of_run scaled = {.net = "mlp", .low = "binary32", .optimizer = "sgd", .scaler = "static:init=1024"};
    static const char *const names[] = {"fc1.weight", "fc2.bias", "head.weight"};
    train_engine e;
    train_run r[2];
    make_run(&r[0], &plain);
    make_run(&r[1], &scaled);
    r[1].settings.loss_factor = 0.25;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t[2] = {begin(&r[0], &e), begin(&r[1], &e)};
    const train_step a = next(t[0]), b = next(t[1]);
    ck_assert(a.loss == b.loss && a.scale == 1 && b.scale == 1024);
    for (int i = 0; i < 3; i++) {
        char wgrad[64], grad[64];
        size_t n;
        snprintf(wgrad, sizeof wgrad, "wgrad:%s", names[i]);
        snprintf(grad, sizeof grad, "grad:%s", names[i]);
        float *x = values_of(t[0], wgrad, &n), *y = values_of(t[1], wgrad, &n);
        float *z = values_of(t[1], grad, &n);
        for (size_t k = 0; k < n; k++)
            ck_assert(x[k] * 256 == y[k] && x[k] / 4 == z[k]);
        free(x);
        free(y);
        free(z);
    }
    for (int k = 0; k < 2; k++) {
        train_close(t[k]);
        train_run_clear(&r[k]);
    }
    train_engine_close(&e);
}

/* A scale that is too large: the step is skipped, weights and ages stay, the scale is halved. */
TEST(overflow_is_skipped)
{
    const recipe_of_run c = {
        .net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd", .scaler = "torch:init=2^30"};
    train_engine e;
    train_run r;
    size_t n;
    make_run(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    float *before = values_of(t, "master:fc1.weight", &n);
    train_step s = next(t);
    float *after = values_of(t, "master:fc1.weight", &n);
    ck_assert_int_eq(s.skipped, 1);
    ck_assert_uint_eq(s.events, MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | MPSIM_SCALER_BACKOFF);
    ck_assert(s.scale == 0x1p30 && s.next_scale == 0x1p29);
    ck_assert_str_eq(s.cause, "fc1.weight");
    ck_assert_mem_eq(before, after, n * sizeof *before);
    ck_assert_uint_gt(s.agrad.overflow + s.agrad.nonfinite, 0);
    for (int i = 0; i < 40 && s.skipped; i++)
        s = next(t);
    ck_assert(!s.skipped && s.scale >= 1024 && s.cause == NULL);
    char text[2048];
    train_state_save(t, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\nage fc1.weight 1\n"));
    free(before);
    free(after);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

TEST(new_plan_rounds)
{
    train_engine e;
    train_run r;
    char error[TRAIN_ERROR];
    size_t n;
    make_run(&r, &runs[9]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_eq(next(t).plan, &r.plans[0]);
    float *before = values_of(t, "weight:fc2.weight", &n);
    ck_assert_int_eq(train_prepare(t, error), 0);
    float *after = values_of(t, "weight:fc2.weight", &n);
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f32(mpsim_format_find("bf16"), &nearest, NULL, before, before, n, NULL);
    ck_assert_mem_eq(before, after, n * sizeof *before);
    ck_assert_ptr_eq(next(t).plan, &r.plans[1]);
    free(before);
    free(after);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

/* ---- rules ---- */

TEST(initial_values)
{
    static const char *const names[] = {"fc1.weight", "fc1.bias", "head.weight", "head.bias"};
    static const double fan_in[] = {64, 64, 24, 24}, gain[] = {3, 1, 3, 1};
    train_engine e;
    train_run r;
    make_run(&r, &runs[1]);
    r.settings.gain = 3;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 4; i++) {
        char purpose[64], name[64];
        size_t n;
        snprintf(purpose, sizeof purpose, "init %s", names[i]);
        snprintf(name, sizeof name, "weight:%s", names[i]);
        float *x = values_of(t, name, &n);
        for (size_t k = 0; k < n; k++) {
            const uint32_t w = mpsim_rng_word(11, train_stream(purpose), k);
            const double u = ldexp((double)(w >> 8), -23) - 1;
            ck_assert(x[k] == (float)(u * (gain[i] / sqrt(fan_in[i]))));
        }
        free(x);
    }
    end(t, &e, &r);
}

/* DeepSpeed unscales with the scale of the next step: where it grows, gradients are halved. */
TEST(unscaled_with_the_new_scale)
{
    const recipe_of_run c = {
        .net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd", .scaler = "deepspeed:init=16,window=2"};
    train_engine e;
    train_run r;
    size_t n;
    int grown = 0;
    make_run(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 8; i++) {
        const train_step s = next(t);
        float *x = values_of(t, "wgrad:fc2.weight", &n), *y = values_of(t, "grad:fc2.weight", &n);
        grown += s.next_scale > s.scale;
        for (size_t k = 0; k < n; k++)
            ck_assert(y[k] == x[k] / (float)s.next_scale);
        free(x);
        free(y);
    }
    ck_assert_int_gt(grown, 0);
    end(t, &e, &r);
}

/* A scaler with the same settings goes on: it has grown in step 2, and grows next in step 5. Another one begins anew. */
TESTS(new_plan_keeps_the_scaler, 2)
{
    static const double scales[2][7] = {{1024, 1024, 1024, 2048, 2048, 2048, 4096},
                                        {1024, 1024, 1024, 2048, 1024, 1024, 1024}};
    train_engine e;
    train_run r;
    make_run(&r, &runs[10]);
    r.plans[1].scaler.guard = !_i;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 7; i++) {
        const train_step s = next(t);
        ck_assert_ptr_eq(s.plan, &r.plans[i >= 4]);
        ck_assert(s.scale == scales[_i][i]);
    }
    end(t, &e, &r);
}

/* A fused optimizer divides by the scale itself. */
TEST(fused_unscales)
{
    const recipe_of_run c = {.net = "mlp",
                             .low = "fp16",
                             .kept = "binary32",
                             .optimizer = "adam",
                             .variant = "torch-fused-b",
                             .scaler = "static:init=1024"};
    train_engine e;
    train_run r;
    size_t n;
    make_run(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    next(t);
    float *x = values_of(t, "wgrad:fc2.weight", &n), *y = values_of(t, "grad:fc2.weight", &n);
    float *m = values_of(t, "opt.m:fc2.weight", &n);
    ck_assert_mem_eq(x, y, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        ck_assert(fabs((double)m[i] - 0.1 * (double)x[i] / 1024) <= 1e-6 * fabs((double)m[i]));
    free(x);
    free(y);
    free(m);
    end(t, &e, &r);
}

/* The norm of all gradients is reported, and cut to the largest that is allowed. */
TEST(clipped)
{
    const recipe_of_run c = {.net = "mlp", .low = "binary32", .optimizer = "sgd", .clip = "torch"};
    static const char *const names[] = {"fc1.weight", "fc2.weight", "head.weight", "fc1.bias", "fc2.bias", "head.bias"};
    train_engine e;
    train_run r;
    int seen = 0;
    make_run(&r, &c);
    r.plans[0].max_norm = 0.2;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 12; i++) {
        const train_step s = next(t);
        double before = 0, after = 0;
        for (int k = 0; k < 6; k++) {
            char wgrad[64], grad[64];
            size_t n;
            snprintf(wgrad, sizeof wgrad, "wgrad:%s", names[k]);
            snprintf(grad, sizeof grad, "grad:%s", names[k]);
            float *x = values_of(t, wgrad, &n), *y = values_of(t, grad, &n);
            for (size_t j = 0; j < n; j++) {
                before += (double)x[j] * (double)x[j];
                after += (double)y[j] * (double)y[j];
            }
            free(x);
            free(y);
        }
        ck_assert_msg(fabs(sqrt(before) - s.norm) < 1e-6, "%g and %g", sqrt(before), s.norm);
        ck_assert_int_eq(s.clipped, s.norm > 0.2);
        ck_assert(fabs(sqrt(after) - fmin(s.norm, 0.2)) < 1e-5);
        seen += s.clipped;
    }
    ck_assert_int_gt(seen, 0);
    end(t, &e, &r);
}

/* Clipped before they are unscaled, gradients of a scale of 2^10 are cut to a 2^10-th of what is allowed, and each is the scaled one times
 * the factor of all, rounded, over the scale. */
TEST(clipped_before_unscaling)
{
    const recipe_of_run c = {
        .net = "mlp", .low = "binary32", .optimizer = "sgd", .clip = "torch", .scaler = "static:init=1024"};
    static const char *const names[] = {"fc1.weight", "fc2.weight", "head.weight", "fc1.bias", "fc2.bias", "head.bias"};
    train_engine e;
    train_run r;
    make_run(&r, &c);
    r.plans[0].max_norm = 0.2;
    r.plans[0].clip_scaled = 1;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 5; i++) {
        const train_step s = next(t);
        const float factor = 0.2f * (1 / ((float)(s.norm * 1024) + 1e-6f)); /* as torch divides by a tensor */
        double before = 0, after = 0;
        for (int k = 0; k < 6; k++) {
            char wgrad[64], grad[64];
            size_t n;
            snprintf(wgrad, sizeof wgrad, "wgrad:%s", names[k]);
            snprintf(grad, sizeof grad, "grad:%s", names[k]);
            float *x = values_of(t, wgrad, &n), *y = values_of(t, grad, &n);
            for (size_t j = 0; j < n; j++) {
                before += (double)x[j] * (double)x[j];
                after += (double)y[j] * (double)y[j];
                ck_assert(y[j] == x[j] * factor * 0x1p-10f);
            }
            free(x);
            free(y);
        }
        ck_assert(s.clipped && fabs(sqrt(before) / 1024 - s.norm) < 1e-6 * s.norm);
        ck_assert(fabs(sqrt(after) - 0.2 / 1024) < 1e-5 * 0.2 / 1024);
    }
    end(t, &e, &r);
}

/* The stream of a parameter in step N, written out; the update from its gradient, done again. */
TEST(stochastic_stores)
{
    const recipe_of_run c = {.net = "mlp", .low = "bf16", .optimizer = "sgd", .store = MPSIM_STORE_STOCHASTIC};
    train_engine e;
    train_run r;
    make_run(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (unsigned step = 0; step < 3; step++) {
        size_t n;
        float *p = values_of(t, "weight:fc2.weight", &n), *m = values_of(t, "opt.m:fc2.weight", &n);
        uint64_t stream = 0xcbf29ce484222325u;
        for (int i = 0; i < 8; i++)
            stream = (stream ^ (i ? 0 : step + 1)) * 0x100000001b3u;
        for (const char *a = "fc2.weight"; *a; a++)
            stream = (stream ^ (unsigned char)*a) * 0x100000001b3u;
        next(t);
        float *g = values_of(t, "grad:fc2.weight", &n), *q = values_of(t, "weight:fc2.weight", &n);
        mpsim_optim o = r.plans[0].optimizer;
        const mpsim_rng rng = {.seed = 11, .stream = stream};
        const mpsim_optim_tensor u = {.param = p, .grad = g, .m = m, .n = n};
        o.param = o.state = *mpsim_format_find("bf16");
        ck_assert_int_eq(mpsim_optim_step(&o, step + 1, &u, &rng), MPSIM_OK);
        ck_assert_mem_eq(p, q, n * sizeof *p);
        free(p);
        free(m);
        free(g);
        free(q);
    }
    end(t, &e, &r);
}

/* In torch's form the scale of a kernel is that of the matrix that its update has: 8 x 36. */
TEST(muon_of_a_kernel)
{
    const recipe_of_run c = {.net = "cnn", .low = "binary32", .optimizer = "sgd"};
    train_engine e;
    train_run r;
    size_t n;
    make_run(&r, &c);
    mpsim_muon *o = &r.plans[0].muon;
    mpsim_muon_init(o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch"));
    o->scale = MPSIM_MUON_MATCH_RMS_ADAMW;
    for (size_t i = 0; i < r.n_layers; i++)
        r.plans[0].layers[i].muon = r.layers[i].type == TRAIN_CONV;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    float *p = values_of(t, "weight:conv2.weight", &n);
    next(t);
    float *g = values_of(t, "grad:conv2.weight", &n), *q = values_of(t, "weight:conv2.weight", &n);
    float *b = calloc(n, sizeof *b);
    ck_assert(b != NULL && n == (size_t)8 * 36);
    ck_assert_int_eq(mpsim_muon_momentum(o, b, g, g, n), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_orthogonalise(o, g, g, 8, 36, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_apply(o, p, g, 8, 36), MPSIM_OK);
    ck_assert_mem_eq(p, q, n * sizeof *p);
    free(p);
    free(g);
    free(q);
    free(b);
    end(t, &e, &r);
}

/* Halfway masters: nearest takes the even one of two neighbours, a split master the larger. */
TEST(split_master)
{
    for (int split = 0; split < 2; split++) {
        const recipe_of_run c = {.net = "mlp", .low = "bf16", .kept = "binary32", .optimizer = "sgd"};
        train_engine e;
        train_run r;
        size_t n;
        wanted w = {.name = "master:fc2.bias"};
        make_run(&r, &c);
        r.plans[0].master = split ? TRAIN_SPLIT_MASTER : TRAIN_MASTER;
        r.plans[0].optimizer.lr = 0;
        ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
        train *t = begin(&r, &e);
        ck_assert_int_eq(train_visit(t, look, &w), 1);
        float *x = values_of(t, "master:fc2.bias", &n);
        for (size_t i = 0; i < n; i++)
            x[i] = 1 + 0x1p-8f * (float)(2 * i + 1); /* bf16 has a unit of 2^-7 here */
        ck_assert_int_eq(e.ops->put(&e, w.tensor, x), 0);
        next(t);
        float *y = values_of(t, "weight:fc2.bias", &n);
        for (size_t i = 0; i < n; i++)
            ck_assert(y[i] == 1 + 0x1p-7f * (float)(split || i % 2 ? i + 1 : i));
        free(x);
        free(y);
        end(t, &e, &r);
    }
}

/* A tensor is cast with the scale that its older steps leave, evaluations left out. */
TEST(delayed_scales)
{
    char error[TRAIN_ERROR];
    train_engine e;
    train_run r;
    double loss, accuracy;
    float history[4], second[4];
    mpsim_delayed d[2];
    make_run(&r, &runs[4]);
    mpsim_delayed_config c = r.plans[0].history;
    c.fp8_max = 448;
    ck_assert_int_eq(mpsim_delayed_init(&d[0], &c, history), MPSIM_OK);
    ck_assert_int_eq(mpsim_delayed_init(&d[1], &c, second), MPSIM_OK);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < 10; i++) {
        static const char *const names[] = {"act:fc2", "agrad:fc2"};
        static const char *const copies[] = {"act.q:fc2", "agrad.q:fc2"};
        next(t);
        for (int k = 0; k < 2; k++) {
            size_t n;
            wanted w = {.name = copies[k]};
            float *x = values_of(t, names[k], &n);
            ck_assert_int_eq(train_visit(t, look, &w), 1);
            ck_assert_str_eq(w.tensor->format->name, "e4m3");
            ck_assert_msg(w.tensor->inverse == 1 / d[k].scale, "step %d: %a", i, (double)w.tensor->inverse);
            mpsim_delayed_record(&d[k], mpsim_amax(x, n));
            mpsim_delayed_update(&d[k], 0);
            free(x);
        }
        ck_assert_int_eq(train_evaluate(t, &loss, &accuracy, error), 0);
    }
    ck_assert(d[0].scale != d[1].scale && d[0].scale > 1);
    end(t, &e, &r);
}

/* ---- other trainings that are the same ---- */

CASE("same", 20);

/* Where tensors take memory one after the other: what a checkpoint holds, and what two steps say. */
TESTS(lean, RUNS)
{
    kept_state k[2] = {{.n = 0}, {.n = 0}};
    train_step s[2];
    train_engine e;
    train_run r;
    make_run(&r, &runs[_i]);
    r.plans[0].scaler.init = fmin(r.plans[0].scaler.init, 1024); /* products of infinities are slow */
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    for (int is = 0; is < 2; is++) {
        char error[TRAIN_ERROR] = "";
        train *t = train_open(&r, &e, TRAIN_COUNT | (is ? TRAIN_LEAN : 0), error);
        ck_assert_msg(t != NULL, "%s", error);
        next(t);
        s[is] = next(t);
        k[is].e = &e;
        ck_assert_int_eq(train_visit(t, keep, &k[is]), 0);
        train_close(t);
    }
    ck_assert(s[0].loss == s[1].loss && memcmp(&s[0].norm, &s[1].norm, sizeof s->norm) == 0);
    ck_assert_mem_eq(&s[0].act, &s[1].act, sizeof s->act);
    ck_assert_uint_eq(k[0].n, k[1].n);
    for (size_t i = 0; i < k[0].n; i++) {
        ck_assert_msg(memcmp(k[0].values[i], k[1].values[i], k[0].sizes[i]) == 0, "tensor %zu", i);
        free(k[0].values[i]);
        free(k[1].values[i]);
    }
    train_engine_close(&e);
    train_run_clear(&r);
}

TEST(digests_of_a_step)
{
    char error[TRAIN_ERROR] = "";
    train_step_digests d = {0};
    train_engine e;
    train_run r;
    make_run(&r, &runs[1]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (unsigned i = 1; i <= 2; i++) {
        const train_step s = next(t);
        ck_assert_int_eq(train_digests_take(&d, t, &s, error), 0);
        ck_assert(d.step == i && d.loss == bits_of_f32(s.loss) && d.all == digest(t, &s));
        ck_assert_uint_gt(d.count, 30);
        ck_assert_str_eq(d.tensors[0].name, "act:fc1");
    }
    train_digests_free(&d);
    end(t, &e, &r);
}

/* ---- learning ---- */

CASE("values", 20);

TEST(fp32_learns)
{
    char error[TRAIN_ERROR] = "";
    const recipe_of_run c = {.net = "mlp", .low = "binary32", .optimizer = "sgd"};
    train_engine e;
    train_run r;
    double loss, accuracy;
    make_run(&r, &c);
    r.settings.width = 128;
    r.settings.batch = 64;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    train_step s = next(t);
    ck_assert_msg(fabs((double)s.loss - log(10)) < 0.1, "begins at %g", (double)s.loss);
    for (int i = 1; i < 300; i++)
        s = next(t);
    ck_assert_msg(s.loss < 0.5f, "loss %g after 300 steps", (double)s.loss);
    ck_assert_msg(train_evaluate(t, &loss, &accuracy, error) == 0, "%s", error);
    ck_assert_msg(accuracy > 0.85, "%g of the test images", accuracy);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

/* ---- plans that nothing can be done with ---- */

CASE("rules", 20);

TEST(blocks_that_do_not_fit)
{
    static const struct {
        const char *recipe;
        uint32_t hadamard, promote;
        const char *expected;
    } rows[] = {
        {"nvfp4", 8, 0, "fc1: Hadamard transform must be 16, not 8"},
        {"te-current", 16, 0, "fc1: a Hadamard transform needs recipes with blocks"},
        {NULL, 16, 0, "fc1: a Hadamard transform needs recipes with blocks"},
        {NULL, 0, 128, "fc1: promotion needs recipes with blocks"},
        {"te-block-1x128", 0, 64,
         "fc1: promotion every 64 products: recipe te-block-1x128 has no blocks of that many "
         "one-byte codes"},
        {"mxfp4", 0, 32, "fc1: promotion every 32 products: recipe mxfp4 has no blocks of that many one-byte codes"},
        {"mxfp8", 16, 32, NULL},
        {"deepgemm-128x128", 0, 128, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const recipe_of_run c = {.net = "mlp", .low = "bf16", .optimizer = "sgd", .recipe = rows[i].recipe};
        char error[TRAIN_ERROR] = "";
        train_engine e;
        train_run r;
        make_run(&r, &c);
        r.plans[0].layers[0].hadamard = rows[i].hadamard;
        r.plans[0].layers[0].promote = rows[i].promote;
        ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
        train *t = train_open(&r, &e, 0, error);
        ck_assert_msg((t != NULL) == (rows[i].expected == NULL), "row %zu", i);
        if (rows[i].expected)
            ck_assert_str_eq(error, rows[i].expected);
        else
            (void)next(t);
        train_close(t);
        train_engine_close(&e);
        train_run_clear(&r);
    }
}

TEST_MAIN("train-step");
