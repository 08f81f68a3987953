/* t-engine-update.c -- gradients and optimizer steps of the CPU engine against loops
 * that say the same in the words of lib/include/train/engine.h, one element after the other. */
#include "support/trainengine.h"

#include <math.h>

START_TEST(test_gradients)
{
    const mpsim_format *f = format(_i % 2 ? "fp16" : "binary32");
    const mpsim_unscale_rule rules[] = {MPSIM_UNSCALE_RECIPROCAL, MPSIM_UNSCALE_DIVIDE, MPSIM_UNSCALE_ROUNDED};
    const double scales[] = {1, 3, 0x1p16, 0x1p-100};
    static float want[400];
    for (size_t k = 0; k < 12; k++) {
        const mpsim_unscale_rule rule = rules[k % 3];
        const double scale = scales[k / 3];
        const float inverse = rule == MPSIM_UNSCALE_ROUNDED ? rounded(f, (float)(1 / scale), NULL) : (float)(1 / scale);
        static float v[400];
        fill(format("binary32"), v, 400, k % 2 ? 2 : 18, 6, _i >= 2); /* 2^18: beyond fp16 */
        train_tensor x = make(format("binary32"), 20, 20, v), y = make(f, 20, 20, NULL);
        unsigned found = 8, expected = 8;
        for (size_t i = 0; i < 400; i++) {
            want[i] = rounded(f, rule == MPSIM_UNSCALE_DIVIDE ? v[i] / (float)scale : v[i] * inverse, NULL);
            expected |= isfinite(v[i]) ? 0 : MPSIM_FOUND_INPUT;
            expected |= isfinite(want[i]) ? 0 : MPSIM_FOUND_OUTPUT;
        }
        const train_pair both = {.y = &y, .x = &x};
        const train_tensor *const of = &y;
        train_tensor *const to = &y;
        OK(ops->unscale(&engine, &both, 1, rule, scale, &found));
        engine_same("unscale", get(&y), want, 400);
        ck_assert_uint_eq(found, expected);
        float norm = 0;
        OK(ops->norm(&engine, &of, 1, &f, &norm));
        const float norm_ = mpsim_norm(f, want, 400);
        engine_same("norm", &norm, &norm_, 1);
        for (size_t i = 0; i < 400; i++)
            want[i] = rounded(f, want[i] * 0.3f, NULL);
        OK(ops->scale(&engine, &to, 1, 0.3f));
        engine_same("scale", get(&y), want, 400);
        drop(&x);
        drop(&y);
    }
}

/* Plain SGD in bf16: p - lr g, by hand; an update is lost where that rounds to p. */
START_TEST(test_optim_sgd)
{
    const mpsim_format *f = format("bf16");
    const size_t n = 400;
    static float p[400], g[400], want[400];
    mpsim_optim o;
    uint64_t updates = 5, lost = 7, expected_updates = 5, expected_lost = 7;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    o.grad_scale = _i ? 1024 : 1;
    o.lr = 0x1p-8 * o.grad_scale;
    o.param = o.state = *f;
    fill(f, p, n, 3, 6, 0);
    fill(f, g, n, 3, 6, 0);
    g[7] = g[9] = 0;
    g[11] = NAN;
    for (size_t i = 0; i < n; i++) {
        const float step = (float)o.lr * (g[i] / (float)o.grad_scale);
        want[i] = rounded(f, p[i] - step, NULL);
        expected_updates += i != 7 && i != 9;
        expected_lost += i != 7 && i != 9 && want[i] == p[i];
    }
    train_tensor param = make(f, 20, 20, p), grad = make(f, 20, 20, g);
    const train_update u = {.param = &param, .grad = &grad, .optim = &o, .step = 1};
    OK(ops->optim(&engine, &u, 1, &updates, &lost));
    engine_same("sgd", get(&param), want, n);
    ck_assert_uint_eq(updates, expected_updates);
    ck_assert_uint_eq(lost, expected_lost);
    ck_assert(lost > 7 + 50 && lost < n);
    drop(&param);
    drop(&grad);
}

static const struct optim_case {
    const char *variant, *param, *state;
    mpsim_optim_algorithm algorithm;
    mpsim_store store;
    int amsgrad;
} optim_cases[] = {
    {"torch", "binary32", "binary32", MPSIM_OPTIM_SGD, MPSIM_STORE_NEAREST, 0},
    {"torch-foreach", "bf16", "bf16", MPSIM_OPTIM_ADAM, MPSIM_STORE_NEAREST, 1},
    {"apex", "fp16", "binary32", MPSIM_OPTIM_ADAMW, MPSIM_STORE_NEAREST, 0},
    {"torchao", "bf16", "bf16", MPSIM_OPTIM_ADAMW, MPSIM_STORE_STOCHASTIC, 0},
    {"optimi", "bf16", "bf16", MPSIM_OPTIM_ADAM, MPSIM_STORE_KAHAN, 0},
    {"torch-fused-a", "binary32", "binary32", MPSIM_OPTIM_ADAM, MPSIM_STORE_NEAREST, 0},
};

/* Several steps: the engine's tensors and arrays that the library steps. */
START_TEST(test_optim)
{
    const struct optim_case *c = &optim_cases[_i];
    const mpsim_format *fp = format(c->param), *fs = format(c->state);
    enum { N = 260 };
    static float p[N], g[N], m[N], v[N], x[N], k[N], before[N], kept[N];
    static double p64[N], g64[N], m64[N], v64[N], x64[N];
    const mpsim_rng rng = {.seed = 1, .stream = 2, .index = 3};
    const int adam = c->algorithm != MPSIM_OPTIM_SGD, kahan = c->store == MPSIM_STORE_KAHAN;
    mpsim_optim o;
    mpsim_optim_init(&o, c->algorithm, mpsim_optim_variant_find(c->variant));
    o.momentum = adam ? 0 : 0.9;
    o.lr = 0x1p-7;
    o.store = (uint8_t)c->store;
    o.amsgrad = (uint8_t)c->amsgrad;
    o.param = *fp;
    o.state = *fs;
    o.grad_scale = strncmp(c->variant, "torch-fused", 11) == 0 ? 65536 : 1;
    fill(fp, p, N, 2, 8, 0);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    memset(x, 0, sizeof x);
    memset(k, 0, sizeof k);
    train_tensor tp = make(fp, 13, 20, p), tg = make(fp, 13, 20, NULL), tm = make(fs, 13, 20, NULL);
    train_tensor tv = make(fs, 13, 20, NULL), tx = make(fs, 13, 20, NULL);
    train_tensor tk = make(fp, 13, 20, NULL);
    train_update u = {.param = &tp,
                      .grad = &tg,
                      .m = &tm,
                      .v = adam ? &tv : NULL,
                      .vmax = c->amsgrad ? &tx : NULL,
                      .kahan = kahan ? &tk : NULL,
                      .optim = &o,
                      .rng = &rng};
    uint64_t updates = 0, lost = 0, expected_updates = 0, expected_lost = 0;
    for (uint64_t t = 1; t <= 4; t++) {
        fill(fp, g, N, 0, 20, 0);
        OK(ops->put(&engine, &tg, g));
        for (size_t i = 0; i < N; i++) {
            p64[i] = (double)p[i];
            g64[i] = (double)g[i];
            m64[i] = (double)m[i];
            v64[i] = (double)v[i];
            x64[i] = (double)x[i];
        }
        memcpy(before, p, sizeof p);
        memcpy(kept, k, sizeof k);
        ck_assert(mpsim_optim_reference(&o, t, p64, g64, m64, v64, x64, N) == MPSIM_OK);
        const mpsim_optim_tensor at_ = {.param = p,
                                        .grad = g,
                                        .m = m,
                                        .v = adam ? v : NULL,
                                        .vmax = c->amsgrad ? x : NULL,
                                        .kahan = kahan ? k : NULL,
                                        .n = N};
        ck_assert(mpsim_optim_step(&o, t, &at_, &rng) == MPSIM_OK);
        for (size_t i = 0; i < N; i++) {
            const int moves = p64[i] != (double)before[i];
            expected_updates += (uint64_t)moves;
            expected_lost += moves && p[i] == before[i] && k[i] == kept[i] ? 1 : 0;
        }
        u.step = t;
        OK(ops->optim(&engine, &u, 1, t % 2 ? &updates : NULL, t % 2 ? &lost : NULL));
        if (t % 2 == 0) {
            updates = expected_updates;
            lost = expected_lost;
        }
        engine_same(c->variant, get(&tp), p, N);
        engine_same("m", get(&tm), m, N);
        engine_same("v", get(&tv), v, N);
        engine_same("vmax", get(&tx), x, N);
        engine_same("kahan", get(&tk), k, N);
        ck_assert_uint_eq(updates, expected_updates);
        ck_assert_uint_eq(lost, expected_lost);
    }
    train_tensor *const all[] = {&tp, &tg, &tm, &tv, &tx, &tk};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_gradients, 0, 4);
    tcase_add_loop_test(t, test_optim_sgd, 0, 2);
    tcase_add_loop_test(t, test_optim, 0, (int)COUNT(optim_cases));
}

int main(void)
{
    return engine_main("train-engine-update", add);
}
