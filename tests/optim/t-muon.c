/* t-muon.c -- Muon against torch.optim.Muon and the iteration of KellerJordan/Muon (data/vectors/optim-states), bit for
 * bit where products are exact sums, or torch's own on CPUs; models, bad arguments. */
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUON "data/vectors/optim-states/muon.safetensors"

static size_t different(const float *a, const float *b, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += !recorded_same(a[i], b[i]);
    return wrong;
}

/* The largest difference, relative to the largest magnitude. */
static double farthest(const float *a, const float *b, size_t n)
{
    double most = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    return most / scale;
}

static void set_options(mpsim_muon *o, const char *facts)
{
    char text[32];
    mpsim_muon_init(o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch-cpu"));
    o->lr = recorded_number(facts, "lr", 1e-3);
    o->weight_decay = recorded_number(facts, "weight_decay", 0.1);
    o->momentum = recorded_number(facts, "momentum", 0.95);
    o->nesterov = recorded_number(facts, "nesterov", 1) == 1;
    if (strcmp(recorded_text(facts, "param", "", text, sizeof text), "bf16") == 0)
        o->param = *mpsim_format_find("bf16");
    if (strcmp(recorded_text(facts, "scale", "", text, sizeof text), "match_rms_adamw") == 0)
        o->scale = MPSIM_MUON_MATCH_RMS_ADAMW;
}

static size_t repeat(recorded *file, const char *name, size_t *values)
{
    const char *facts = recorded_facts(file, name);
    const size_t rows = (size_t)recorded_number(facts, "rows", 0),
                 columns = (size_t)recorded_number(facts, "columns", 0);
    size_t n = 0, wrong = 0;
    mpsim_muon o;
    set_options(&o, facts);
    float *p = recorded_floats(file, name, "p.0", &n), *m = calloc(n, sizeof *m), *u = malloc(n * sizeof *u);
    ck_assert(p && m && u && n == rows * columns);
    for (unsigned step = 1; step <= 2; step++) {
        char text[16];
        snprintf(text, sizeof text, "g.%u", step);
        float *g = recorded_floats(file, name, text, NULL);
        snprintf(text, sizeof text, "p.%u", step);
        float *want = recorded_floats(file, name, text, NULL);
        snprintf(text, sizeof text, "m.%u", step);
        float *buffer = recorded_floats(file, name, text, NULL);
        ck_assert_int_eq(mpsim_muon_momentum(&o, m, u, g, n), MPSIM_OK);
        ck_assert_int_eq(mpsim_muon_orthogonalise(&o, u, u, rows, columns, NULL), MPSIM_OK);
        ck_assert_int_eq(mpsim_muon_apply(&o, p, u, rows, columns), MPSIM_OK);
        wrong += different(p, want, n) + different(m, buffer, n);
        *values += 2 * n;
        free(g);
        free(want);
        free(buffer);
    }
    free(p);
    free(m);
    free(u);
    return wrong;
}

static size_t repeat_all(const char *path, size_t *runs, size_t *values)
{
    recorded *file = recorded_open(path);
    size_t wrong = 0;
    for (size_t i = 0; i < recorded_count(file); i++) {
        const char *name = recorded_case(file, i);
        if (recorded_number(recorded_facts(file, name), "iteration", 0) == 1)
            continue;
        wrong += repeat(file, name, values);
        ++*runs;
    }
    recorded_close(file);
    return wrong;
}

START_TEST(torch_step_by_step)
{
    size_t runs = 0, values = 0;
    const size_t wrong = repeat_all(MUON, &runs, &values);
    printf("# torch.optim.Muon, exact products: %zu runs, %zu values, %zu mismatches\n", runs, values, wrong);
    ck_assert_uint_eq(runs, 6);
    ck_assert_uint_eq(wrong, 0);
}

/* The update of a matrix with more rows than columns is a transposed view, which torch adds by scalars. */
START_TEST(bug_20261127_tall_bf16)
{
    size_t runs = 0, values = 0;
    const size_t wrong = repeat_all("data/vectors/optim-states/muon-bf16.safetensors", &runs, &values);
    printf("# torch.optim.Muon, bf16 parameters: %zu runs, %zu values, %zu mismatches\n", runs, values, wrong);
    ck_assert_uint_eq(runs, 4);
    ck_assert_uint_eq(wrong, 0);
}

/* Both forms with exact products bit for bit, which torch's own are at these sizes; in binary64 as rounded to
 * binary32. */
START_TEST(iterations)
{
    static const char *const names[] = {"wide", "tall", "square"};
    recorded *file = recorded_open(MUON);
    for (size_t k = 0; k < 3; k++) {
        const char *facts = recorded_facts(file, names[k]);
        const size_t rows = (size_t)recorded_number(facts, "rows", 0);
        const size_t columns = (size_t)recorded_number(facts, "columns", 0);
        size_t n = 0, wrong = 0;
        float *u = recorded_floats(file, names[k], "u", &n), *torch = recorded_floats(file, names[k], "torch", NULL);
        float *keller = recorded_floats(file, names[k], "keller", NULL);
        float *plain = recorded_floats(file, names[k], "plain", NULL);
        float *wide = recorded_floats(file, names[k], "double", NULL), *y = malloc(n * sizeof *y);
        double *x = malloc(n * sizeof *x), *z = malloc(n * sizeof *z);
        ck_assert(y && x && z && n == rows * columns);
        mpsim_muon o;
        mpsim_muon_init(&o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch-cpu"));
        ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, rows, columns, NULL), MPSIM_OK);
        wrong += different(y, torch, n);
        const double own = farthest(y, plain, n);
        o.form = MPSIM_MUON_KELLER;
        ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, rows, columns, NULL), MPSIM_OK);
        wrong += different(y, keller, n);
        for (size_t i = 0; i < n; i++)
            x[i] = (double)u[i];
        o.form = MPSIM_MUON_TORCH;
        ck_assert_int_eq(mpsim_muon_reference(&o, z, x, rows, columns), MPSIM_OK);
        for (size_t i = 0; i < n; i++)
            y[i] = (float)z[i];
        const double far = farthest(y, wide, n);
        o.format = *mpsim_format_find("binary32");
        ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, rows, columns, NULL), MPSIM_OK);
        const double single = farthest(y, wide, n);
        printf("# %s: %zu values, %zu mismatches; torch's own bf16 products %.2g away, binary64 %.1g, binary32 %.1g\n",
               names[k], 2 * n, wrong, own, far, single);
        ck_assert_uint_eq(wrong, 0);
        ck_assert(own == 0 && far < 1e-7 && single < 1e-4);
        free(u);
        free(torch);
        free(keller);
        free(plain);
        free(wide);
        free(y);
        free(x);
        free(z);
    }
    recorded_close(file);
}

/* torch's own products of both capabilities (data/vectors/optim-states/products.safetensors), bit for bit; neither the
 * other's kernels nor exact sums give them. */
START_TEST(bug_20261125_products_of_cpus)
{
    static const char *const names[] = {"wide", "tall"}, *const tensors[] = {"", "y.default", "y.avx2", "y.onednn"};
    recorded *file = recorded_open("data/vectors/optim-states/products.safetensors");
    size_t n = 0, wrong[4] = {0}, others = 0;
    mpsim_muon o;
    mpsim_muon_init(&o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch-cpu"));
    for (size_t k = 0; k < 2; k++) {
        const trace_tensor *t = recorded_tensor(file, names[k], "u");
        const size_t rows = (size_t)t->shape[0], columns = (size_t)t->shape[1];
        float *u = recorded_floats(file, names[k], "u", &n), *y = malloc(n * sizeof *y);
        ck_assert(u && y && n == rows * columns);
        for (int by = MPSIM_MUON_ATEN; by <= MPSIM_MUON_ONEDNN; by++) {
            float *want = recorded_floats(file, names[k], tensors[by], NULL);
            for (o.products = 0; o.products <= MPSIM_MUON_ONEDNN; o.products++) {
                ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, rows, columns, NULL), MPSIM_OK);
                const size_t differ = different(y, want, n);
                wrong[o.products == by ? by : 0] += differ;
                others += o.products != by && differ == 0;
            }
            free(want);
        }
        free(u);
        free(y);
    }
    recorded_close(file);
    printf("# torch's products: 2 x %zu values by each, %zu, %zu and %zu mismatches; by others %zu\n", n, wrong[1],
           wrong[2], wrong[3], wrong[0]);
    ck_assert(wrong[1] == 0 && wrong[2] == 0 && wrong[3] == 0 && wrong[0] > 0 && others == 0);
    o.products = MPSIM_MUON_ATEN;
    o.form = MPSIM_MUON_KELLER;
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EINVAL);
}

/* The same with AMX (products-amx.safetensors): tiles that are equal, or of 32 products where X is a transposed view. */
START_TEST(products_of_amx)
{
    static const char *const names[] = {"wide", "tall"}, *const tensors[] = {"y.onednn", "y.amx"};
    recorded *file = recorded_open("data/vectors/optim-states/products-amx.safetensors");
    mpsim_muon o;
    mpsim_muon_init(&o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch-cpu"));
    for (size_t k = 0; k < 4; k++) {
        size_t n = 0;
        const trace_tensor *t = recorded_tensor(file, names[k / 2], "u");
        const size_t rows = (size_t)t->shape[0], columns = (size_t)t->shape[1];
        float *u = recorded_floats(file, names[k / 2], "u", &n), *y = malloc(n * sizeof *y);
        float *want = recorded_floats(file, names[k / 2], tensors[k % 2], NULL);
        ck_assert(u && y && want && n == rows * columns);
        for (size_t by = 0; by < 2; by++) {
            o.products = (uint8_t)(MPSIM_MUON_ONEDNN + by);
            ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, rows, columns, NULL), MPSIM_OK);
            ck_assert_uint_eq(different(y, want, n) != 0, by != k % 2);
        }
        free(want);
        free(u);
        free(y);
    }
    recorded_close(file);
}

/* Every model that takes bf16: near to each other; a pool of threads changes nothing. */
static void run_backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    while (n-- > 0)
        task(n, job);
}

START_TEST(models)
{
    enum { ROWS = 20, COLUMNS = 50, N = ROWS * COLUMNS };
    static const char *const names[] = {
        "exact", "fma", "sequential", "pairwise", "hopper-bf16-fp32", "fma:bf16", "blackwell-bf16-fp32"};
    const mpsim_pool pool = {.run = run_backwards};
    uint64_t random = test_seed();
    float u[N], y[N], z[N], first[N];
    mpsim_muon o;
    mpsim_muon_init(&o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch"));
    for (size_t i = 0; i < N; i++)
        u[i] = (float)((double)(int64_t)test_random(&random) * 0x1p-66);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        ck_assert_int_eq(mpsim_model_parse(&o.model, names[k]), MPSIM_OK);
        ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_OK);
        ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, ROWS, COLUMNS, NULL), MPSIM_OK);
        ck_assert_int_eq(mpsim_muon_orthogonalise(&o, z, u, ROWS, COLUMNS, &pool), MPSIM_OK);
        ck_assert_uint_eq(different(y, z, N), 0);
        if (k == 0)
            memcpy(first, y, sizeof first);
        ck_assert_msg(farthest(y, first, N) < 0.3, "%s: %g", names[k], farthest(y, first, N));
    }
}

/* With exact products in binary32 both forms are near their own reference, also where eps is large beside the norm. */
START_TEST(bug_20261122_keller_adds_eps)
{
    enum { ROWS = 20, COLUMNS = 50, N = ROWS * COLUMNS };
    uint64_t random = test_seed();
    float u[N], y[N];
    double x[N], wide[N], signal = 0, noise = 0;
    mpsim_muon o;
    mpsim_muon_init(&o, (mpsim_muon_form)_i, mpsim_optim_variant_find("torch"));
    o.format = *mpsim_format_find("binary32");
    o.eps = 0.1;
    for (size_t i = 0; i < N; i++) {
        u[i] = (float)((double)(int64_t)test_random(&random) * 0x1p-73);
        x[i] = (double)u[i];
    }
    ck_assert_int_eq(mpsim_muon_orthogonalise(&o, y, u, ROWS, COLUMNS, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_reference(&o, wide, x, ROWS, COLUMNS), MPSIM_OK);
    for (size_t i = 0; i < N; i++) {
        signal += wide[i] * wide[i];
        noise += (wide[i] - (double)y[i]) * (wide[i] - (double)y[i]);
    }
    ck_assert_msg(10 * log10(signal / noise) > 110, "form %d: %g dB", _i, 10 * log10(signal / noise));
}

START_TEST(arguments)
{
    const mpsim_optim_variant *v = mpsim_optim_variant_find("torch");
    mpsim_muon good, o;
    float x[4] = {1, 2, 3, 4};
    mpsim_muon_init(&good, MPSIM_MUON_KELLER, v);
    ck_assert(good.lr == 0.02 && good.weight_decay == 0);
    mpsim_muon_init(&good, MPSIM_MUON_TORCH, v);
    ck_assert_int_eq(mpsim_muon_check(&good), MPSIM_OK);
    ck_assert(good.lr == 1e-3 && good.weight_decay == 0.1 && good.momentum == 0.95 && good.steps == 5);
    o = good;
    o.lr = (double)NAN;
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EINVAL);
    o = good;
    o.momentum = 1.5;
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EINVAL);
    o = good;
    o.b = -1e39; /* no binary32 number */
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EINVAL);
    o = good;
    o.steps = 100;
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EINVAL);
    o = good;
    o.variant = mpsim_optim_variant_find("apex");
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EUNAVAILABLE);
    o = good;
    o.momentum = 0;
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_EUNAVAILABLE);
    o = good;
    o.format = *mpsim_format_find("binary64");
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_ERANGE);
    o = good;
    ck_assert_int_eq(mpsim_model_parse(&o.model, "hopper-fp16-fp32"), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_check(&o), MPSIM_ERANGE); /* bf16 operands */
    const mpsim_pool no_threads = {NULL, NULL, NULL};
    ck_assert_int_eq(mpsim_muon_orthogonalise(&good, x, x, 2, 2, &no_threads), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_check(NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_momentum(NULL, x, x, x, 4), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_orthogonalise(NULL, x, x, 2, 2, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_apply(NULL, x, x, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_reference(NULL, NULL, NULL, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_momentum(&good, NULL, x, x, 4), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_orthogonalise(&good, NULL, x, 2, 2, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_orthogonalise(&good, NULL, NULL, 0, 2, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_muon_reference(&good, NULL, NULL, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_muon_apply(&good, x, NULL, 2, 2), MPSIM_EINVAL);
    ck_assert(mpsim_muon_work(&good, 10, 20) == 5 * (2 * 2000 + 1000) && mpsim_muon_factor(&good, 8, 2) == 2);
    good.scale = MPSIM_MUON_MATCH_RMS_ADAMW;
    ck_assert(fabs(mpsim_muon_factor(&good, 4, 25) - 1) < 1e-15);
    good.scale = MPSIM_MUON_SPECTRAL;
    ck_assert(mpsim_muon_factor(&good, 4, 16) == 0.5);
}

int main(void)
{
    TCase *const t = test_case("muon", 60);
    tcase_add_test(t, torch_step_by_step);
    tcase_add_test(t, bug_20261127_tall_bf16);
    tcase_add_test(t, iterations);
    tcase_add_test(t, bug_20261125_products_of_cpus);
    tcase_add_test(t, products_of_amx);
    tcase_add_test(t, models);
    tcase_add_loop_test(t, bug_20261122_keller_adds_eps, MPSIM_MUON_TORCH, MPSIM_MUON_KELLER + 1);
    tcase_add_test(t, arguments);
    TCase *const cases[] = {t, NULL};
    return test_main("optim-muon", cases);
}
