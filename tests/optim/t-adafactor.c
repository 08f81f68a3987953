/* t-adafactor.c -- Adafactor: the bits of ieee as operations that MPFR rounds, the reference in binary64 beside them,
 * recorded steps of torch.optim.Adafactor, what factored moments hold, tensors that are refused. */
#include "oracle/rounded.h"
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/optim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200 };

typedef struct tensors {
    size_t n, rows, cols; /* rows 0: a vector */
    float p[MOST], g[MOST], m[MOST], v[MOST];
} tensors;

static mpsim_optim_tensor arrays_of(tensors *t)
{
    return (mpsim_optim_tensor){.param = t->p, .grad = t->g, .m = t->m, .v = t->v, .n = t->n};
}

/* ---- the oracle ---- */

/* Sums of x or x^2, exact and then rounded to binary64. */
static double sum_of(const float *x, size_t n, size_t stride, int squared, double scale)
{
    mpfr_t s, y;
    mpfr_inits2(1200, s, y, (mpfr_ptr)NULL);
    mpfr_set_zero(s, 1);
    for (size_t i = 0; i < n; i++) {
        mpfr_set_d(y, scale == 1 ? (double)x[i * stride] : quo(B32, (double)x[i * stride], scale), MPFR_RNDN);
        if (squared)
            mpfr_sqr(y, y, MPFR_RNDN);
        mpfr_add(s, s, y, MPFR_RNDN);
    }
    const double sum = to(B64, mpfr_get_d(s, MPFR_RNDN));
    mpfr_clears(s, y, (mpfr_ptr)NULL);
    return sum;
}

static double norm_of(const float *x, size_t n, size_t stride, double scale)
{
    return to(B32, root(B64, sum_of(x, n, stride, 1, scale)));
}

static double weight_of(uint64_t step, double decay)
{
    mpfr_t x, y;
    mpfr_inits2(200, x, y, (mpfr_ptr)NULL);
    mpfr_set_d(y, decay, MPFR_RNDN);
    mpfr_ui_pow(x, (unsigned long)step, y, MPFR_RNDN);
    const double w = to(B32, mpfr_get_d(x, MPFR_RNDN));
    mpfr_clears(x, y, (mpfr_ptr)NULL);
    return w;
}

static float followed(float moment, double norm, size_t n, double w)
{
    const double mean = quo(B32, mul(B32, norm, norm), (double)n), d = sub(B32, mean, (double)moment);
    return (float)(w < 0.5 ? add(B32, (double)moment, mul(B32, w, d)) : add(B32, mean, mul(B32, sub(B32, w, 1), d)));
}

static void follow(const mpsim_optim *o, tensors *t, double w)
{
    const double s = to(B32, o->grad_scale);
    const size_t rows = t->rows ? t->rows : 1, cols = t->rows ? t->cols : 1, each = rows * cols;
    for (size_t i = 0; t->rows && i < t->n / cols; i++)
        t->m[i] = followed(t->m[i], norm_of(t->g + i * cols, cols, 1, s), cols, w);
    for (size_t k = 0; k < t->n / each; k++)
        for (size_t c = 0; c < cols; c++)
            t->v[k * cols + c] = followed(t->v[k * cols + c], norm_of(t->g + k * each + c, rows, cols, s), rows, w);
}

static void find_updates(const mpsim_optim *o, const tensors *t, float *u)
{
    const double eps = to(B32, o->eps), least = to(B32, mul(B64, o->eps, o->eps));
    const size_t each = t->rows * t->cols;
    for (size_t i = 0; i < t->n; i++) {
        double v = (double)t->v[i % MOST];
        if (each) {
            const size_t k = i / each;
            double mean = quo(B32, to(B32, sum_of(t->m + k * t->rows, t->rows, 1, 0, 1)), (double)t->rows);
            mean = mean < eps ? eps : mean;
            v = mul(B32, (double)t->m[i / t->cols], (double)t->v[k * t->cols + i % t->cols]);
            v = quo(B32, v, mean);
        }
        const double g = o->grad_scale == 1 ? (double)t->g[i] : quo(B32, (double)t->g[i], to(B32, o->grad_scale));
        u[i] = (float)mul(B32, quo(B32, 1, root(B32, v < least ? least : v)), o->maximize ? -g : g);
    }
}

static void oracle_step(const mpsim_optim *o, uint64_t step, tensors *t)
{
    float u[MOST];
    const double root_n = root(B64, (double)t->n), rho = quo(B64, 1, root(B64, (double)step));
    const double size = quo(B64, norm_of(t->p, t->n, 1, 1), root_n);
    const double alpha = mul(B64, size > o->eps2 ? size : o->eps2, rho < o->lr ? rho : o->lr);
    follow(o, t, weight_of(step, o->beta2_decay));
    find_updates(o, t, u);
    const double clip = quo(B64, norm_of(u, t->n, 1, 1), mul(B64, root_n, o->d));
    const double by = to(B32, -quo(B64, alpha, clip > 1 ? clip : 1));
    const double kept = to(B32, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
    for (size_t i = 0; i < t->n; i++) {
        const double p = o->weight_decay != 0 ? mul(B32, (double)t->p[i], kept) : (double)t->p[i];
        t->p[i] = (float)add(B32, p, mul(B32, by, (double)u[i]));
    }
}

/* ---- drawn tensors ---- */

static double unit(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

static void draw(tensors *t, uint64_t *random)
{
    static const size_t drawn[][3] = {{7, 0, 0}, {1, 0, 0}, {64, 8, 8}, {35, 5, 7}, {9, 1, 9}, {9, 9, 1}, {120, 4, 5}};
    const size_t *s = drawn[test_random(random) % 7];
    memset(t, 0, sizeof *t);
    t->n = s[0];
    t->rows = s[1];
    t->cols = s[2];
    for (size_t i = 0; i < t->n; i++) {
        t->p[i] = (float)((unit(random) - 0.5) * ldexp(1, -(int)(test_random(random) % 10)));
        t->g[i] = (float)((unit(random) - 0.5) * ldexp(1, -(int)(test_random(random) % 20)));
    }
}

static void draw_settings(mpsim_optim *o, const tensors *t, uint64_t *random)
{
    mpsim_optim_init(o, MPSIM_OPTIM_ADAFACTOR, mpsim_optim_variant_find("ieee"));
    const uint64_t bits = test_random(random);
    o->rows = t->rows;
    o->cols = t->cols;
    o->lr = bits & 1 ? 0.5 : 1e-2;
    o->beta2_decay = bits & 2 ? -0.5 : -0.8;
    o->weight_decay = bits & 4 ? 0.1 : 0;
    o->maximize = bits >> 3 & 1;
    o->grad_scale = bits & 16 ? 3 : 1;
    o->d = bits & 32 ? 1.5 : 1;
    o->eps2 = bits & 64 ? 0.5 : 1e-3;
    o->eps = bits & 128 ? 1e-4 : 0x1p-23;
}

static int same(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

CASE("adafactor", 60);

TEST(bits_are_the_sequence_of_operations)
{
    uint64_t random = test_seed() + 40;
    for (size_t k = 0; k < test_scaled(60); k++) {
        tensors t, want;
        mpsim_optim o;
        draw(&t, &random);
        draw_settings(&o, &t, &random);
        want = t;
        for (uint64_t step = 1; step < 200; step = 2 * step + 1) {
            const mpsim_optim_tensor a = arrays_of(&t);
            ck_assert_int_eq(mpsim_optim_step(&o, step, &a, NULL), MPSIM_OK);
            oracle_step(&o, step, &want);
            ck_assert_msg(same(t.p, want.p, MOST) && same(t.m, want.m, MOST) && same(t.v, want.v, MOST),
                          "%zu x %zu of %zu, step %d: p %a, expected %a", t.rows, t.cols, t.n, (int)step,
                          (double)t.p[0], (double)want.p[0]);
        }
    }
}

/* An error of binary32's operations is far below 1e-4 of a step. */
TEST(the_reference_is_near)
{
    uint64_t random = test_seed() + 41;
    for (size_t k = 0; k < test_scaled(60); k++) {
        tensors t;
        mpsim_optim o;
        double p[MOST], g[MOST], m[MOST] = {0}, v[MOST] = {0};
        draw(&t, &random);
        draw_settings(&o, &t, &random);
        for (size_t i = 0; i < t.n; i++) {
            p[i] = (double)t.p[i];
            g[i] = (double)t.g[i];
        }
        for (uint64_t step = 1; step < 9; step++) {
            const mpsim_optim_tensor a = arrays_of(&t);
            ck_assert_int_eq(mpsim_optim_step(&o, step, &a, NULL), MPSIM_OK);
            ck_assert_int_eq(mpsim_optim_reference(&o, step, p, g, m, v, NULL, t.n), MPSIM_OK);
            for (size_t i = 0; i < t.n; i++)
                ck_assert_msg(fabs(p[i] - (double)t.p[i]) <= 1e-5 * (fabs(p[i]) + o.lr), "step %d, element %zu: %a, %a",
                              (int)step, i, p[i], (double)t.p[i]);
        }
    }
}

TEST(parts_of_matrices_are_refused)
{
    static tensors t = {.n = 64};
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAFACTOR, mpsim_optim_variant_find("ieee"));
    mpsim_optim_tensor a = arrays_of(&t);
    o.rows = o.cols = 8;
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &a, NULL), MPSIM_OK);
    a.n = 63;
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &a, NULL), MPSIM_EINVAL);
    o.cols = 0;
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &a, NULL), MPSIM_EINVAL);
    a.n = 0;
    o.rows = 0;
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &a, NULL), MPSIM_OK);
}

/* ---- torch ---- */

static void set_shape(mpsim_optim *o, const char *facts)
{
    char text[32];
    unsigned long d[4] = {0};
    const int rank = sscanf(recorded_text(facts, "shape", "", text, sizeof text), "%lux%lux%lux%lu", &d[0], &d[1],
                            &d[2], &d[3]);
    o->rows = rank > 1 ? d[rank - 2] : 0;
    o->cols = rank > 1 ? d[rank - 1] : 0;
}

static void set_options(mpsim_optim *o, const char *facts, const char *variant)
{
    char text[8];
    mpsim_optim_init(o, MPSIM_OPTIM_ADAFACTOR, mpsim_optim_variant_find(variant));
    for (int s = 0; s < MPSIM_OPTIM_NUMBERS; s++)
        if (mpsim_optim_has(o->algorithm, (mpsim_optim_setting)s))
            mpsim_optim_set(o, (mpsim_optim_setting)s,
                            recorded_number(facts, mpsim_optim_setting_name((mpsim_optim_setting)s), -1));
    o->maximize = strcmp(recorded_text(facts, "maximize", "0", text, sizeof text), "1") == 0;
    set_shape(o, facts);
    ck_assert_msg(mpsim_optim_check(o) == MPSIM_OK, "%s", facts);
}

typedef struct tally {
    size_t values, equal;
    double worst; /* in 2^-23 of the larger of what is recorded and what was before */
} tally;

/* And go on from what is recorded. */
static void compare(float *own, const float *before, recorded *file, const char *name, const char *letter,
                    unsigned step, tally *t)
{
    char text[16];
    size_t n = 0;
    snprintf(text, sizeof text, "%s.%u", letter, step);
    float *want = recorded_floats(file, name, text, &n);
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)own[i] - (double)want[i]);
        t->values++;
        t->equal += bits_of_f32(own[i]) == bits_of_f32(want[i]);
        t->worst = d > 0 ? fmax(t->worst, d / fmax(fabs((double)before[i]), fabs((double)want[i])) * 0x1p23) : t->worst;
    }
    if (n)
        memcpy(own, want, n * sizeof *own);
    free(want);
}

static void repeat(recorded *file, const char *name, const char *variant, tally tallies[2])
{
    static tensors t, before;
    mpsim_optim o;
    const char *facts = recorded_facts(file, name);
    float *p = recorded_floats(file, name, "p.0", &t.n);
    ck_assert_msg(p && t.n <= MOST, "%s: %zu", name, t.n);
    memset(t.m, 0, sizeof t.m);
    memset(t.v, 0, sizeof t.v);
    memcpy(t.p, p, t.n * sizeof *p);
    free(p);
    set_options(&o, facts, variant);
    for (unsigned step = 1; step <= (unsigned)recorded_number(facts, "steps", 0); step++) {
        char text[16];
        snprintf(text, sizeof text, "g.%u", step);
        float *g = recorded_floats(file, name, text, NULL);
        memcpy(t.g, g, t.n * sizeof *g);
        free(g);
        const mpsim_optim_tensor a = arrays_of(&t);
        before = t;
        ck_assert_int_eq(mpsim_optim_step(&o, step, &a, NULL), MPSIM_OK);
        compare(t.p, before.p, file, name, "p", step, &tallies[0]);
        compare(t.m, before.m, file, name, "m", step, &tallies[1]);
        compare(t.v, before.v, file, name, "v", step, &tallies[1]);
    }
}

static const struct {
    const char *path, *variant;
} files[] = {{"data/vectors/optim-adafactor/adafactor.safetensors", "torch-cpu-adafactor"},
             {"data/vectors/optim-adafactor/adafactor-default.safetensors", "torch-cpu-adafactor-default"}};

/* Rows and columns whose product wraps, or of which one is 0: a step divided by the product, and the reference, which did not
 * ask, read and wrote what was not there. */
TEST(bug_20261126_matrices_that_are_none)
{
    static const size_t sizes[][2] = {{(size_t)1 << (sizeof(size_t) * 4), (size_t)1 << (sizeof(size_t) * 4)},
                                      {SIZE_MAX / 2 + 1, 2},
                                      {SIZE_MAX / 2 + 2, 2},
                                      {SIZE_MAX, SIZE_MAX},
                                      {4, 4},
                                      {0, 3},
                                      {3, 0}};
    static tensors t = {.n = 2};
    double p[2] = {1, 2}, g[2] = {1, 1}, m[2] = {0}, v[2] = {0};
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAFACTOR, mpsim_optim_variant_find("ieee"));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        mpsim_optim_tensor a = arrays_of(&t);
        o.rows = sizes[i][0];
        o.cols = sizes[i][1];
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &a, NULL), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_optim_reference(&o, 1, p, g, m, v, NULL, 2), MPSIM_EINVAL);
        a.n = 0;
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &a, NULL), MPSIM_OK);
        ck_assert_int_eq(mpsim_optim_reference(&o, 1, p, g, m, v, NULL, 0), MPSIM_OK);
        ck_assert(mpsim_optim_elements(&o, MPSIM_OPTIM_M, 0) == 0 && mpsim_optim_elements(&o, MPSIM_OPTIM_V, 0) == 0);
    }
    ck_assert(p[0] == 1 && p[1] == 2 && m[0] == 0 && v[0] == 0);
}

TESTS(steps_of_torch, 2)
{
    tally t[2] = {{0, 0, 0}, {0, 0, 0}};
    recorded *file = recorded_open(files[_i].path);
    for (size_t i = 0; i < recorded_count(file); i++)
        repeat(file, recorded_case(file, i), files[_i].variant, t);
    recorded_close(file);
    for (int k = 0; k < 2; k++) {
        printf("# %s: %s: %zu of %zu values equal, the others within %.2f ulp\n", files[_i].variant,
               k ? "moments" : "parameters", t[k].equal, t[k].values, t[k].worst);
        /* a dozen roundings, of which the norms' differ */
        ck_assert(t[k].worst <= 8 && 10 * t[k].equal >= 9 * t[k].values);
    }
    ck_assert_uint_gt(t[0].values, 3000);
}

TEST_MAIN("optim-adafactor");
