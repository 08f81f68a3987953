/* t-torch.c -- the networks against PyTorch's autograd in float64: loss, every gradient and
 * the running statistics of three steps, to the accuracy of binary32 (data/vectors/train). It judges
 * what is computed; other tests judge the bits. */
#include "sim/train/policy.h"
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cases[] = {"mlp", "mlp-batchnorm", "cnn", "cnn-plain"};

/* ||x - y|| may be so much of ||y||. */
static const double TOLERANCE = 2e-5;

typedef struct comparison {
    recorded *file;
    uint64_t step;
    double worst;
    size_t tensors, values;
    train *t;
} comparison;

static double metadata(const recorded *r, const char *key)
{
    const char *text = recorded_metadata(r, key);
    ck_assert_msg(text != NULL, "%s is missing", key);
    return strtod(text, NULL);
}

static void open_run(train_run *r, const recorded *file, const char *arch)
{
    trace_error trouble;
    train_overrides o;
    train_settings s;
    policy p;
    char error[TRAIN_ERROR];
    train_settings_init(&s, recorded_metadata(file, "mpsim.net"));
    s.depth = (uint32_t)metadata(file, "mpsim.depth");
    s.width = (uint32_t)metadata(file, "mpsim.width");
    s.batchnorm = (uint32_t)metadata(file, "mpsim.batchnorm");
    s.batch = (uint32_t)metadata(file, "mpsim.batch");
    s.seed = (uint64_t)metadata(file, "mpsim.seed");
    s.steps = (uint64_t)metadata(file, "mpsim.steps");
    snprintf(s.arch, sizeof s.arch, "%s", arch);
    train_overrides_init(&o);
    o.optimizer = "sgd";
    o.lr = metadata(file, "mpsim.lr");
    o.momentum = metadata(file, "mpsim.momentum");
    ck_assert_msg(policy_load(&p, test_source_path("data/policies/fp32.yaml"), 0, &trouble) == 0, "%s", trouble.text);
    ck_assert_msg(train_run_of_policy(r, &p, &s, &o, error) == 0, "%s", error);
    policy_clear(&p);
}

static int compare(const train_item *x, void *context)
{
    comparison *c = context;
    char name[160];
    const int gradient = strncmp(x->name, "wgrad:", 6) == 0;
    if (!gradient && strncmp(x->name, "running:", 8) != 0)
        return 0;
    snprintf(name, sizeof name, "%s:%llu:%s", gradient ? "wgrad" : "running", (unsigned long long)c->step,
             strchr(x->name, ':') + 1);
    size_t n = 0;
    const size_t have = x->tensor->rows * x->tensor->cols;
    float *want = recorded_floats(c->file, name, NULL, &n);
    float *got = malloc(have * sizeof *got);
    double error = 0, norm = 0;
    train_engine *e = train_engine_of(c->t);
    ck_assert_msg(want != NULL, "%s is not recorded", name);
    ck_assert_uint_eq(n, have);
    ck_assert_msg(e->ops->get(e, x->tensor, got) == 0, "%s", e->error);
    for (size_t i = 0; i < n; i++) {
        error += pow((double)got[i] - (double)want[i], 2);
        norm += (double)want[i] * (double)want[i];
    }
    /* a bias before batch normalisation moves nothing: its gradient is 0 but for rounding */
    const int nothing = norm < 1e-24;
    ck_assert_msg(!nothing || (gradient && strstr(name, ".bias")), "%s is all zeros", name);
    error = nothing ? sqrt(error) : sqrt(error / norm);
    ck_assert_msg(error < TOLERANCE, "%s: relative difference %g", name, error);
    c->worst = fmax(c->worst, error);
    c->tensors++;
    c->values += n;
    free(want);
    free(got);
    return 0;
}

static void follow(const char *name, const char *arch)
{
    char path[128], error[TRAIN_ERROR], key[32];
    train_engine e;
    train_run r;
    snprintf(path, sizeof path, "data/vectors/train/%s.safetensors", name);
    comparison c = {.file = recorded_open(path)};
    open_run(&r, c.file, arch);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    c.t = train_open(&r, &e, 0, error);
    ck_assert_msg(c.t != NULL, "%s", error);
    for (c.step = 0; c.step < r.settings.steps; c.step++) {
        train_step s;
        size_t n;
        ck_assert_msg(train_next(c.t, &s, error) == 0, "%s", error);
        snprintf(key, sizeof key, "loss:%llu", (unsigned long long)c.step);
        float *loss = recorded_floats(c.file, key, NULL, &n);
        ck_assert(loss != NULL);
        ck_assert_msg(fabs((double)(s.loss - loss[0])) < TOLERANCE * (double)loss[0], "%s: loss %.9g, not %.9g", key,
                      (double)s.loss, (double)loss[0]);
        free(loss);
        train_visit(c.t, compare, &c);
    }
    printf("# %s, %s: %zu tensors, %zu values, largest relative difference %.1e\n", name, arch, c.tensors, c.values,
           c.worst);
    ck_assert_uint_gt(c.tensors, 0);
    train_close(c.t);
    train_engine_close(&e);
    train_run_clear(&r);
    recorded_close(c.file);
}

CASE("float64", 60);

TESTS(chain, sizeof cases / sizeof cases[0])
{
    follow(cases[_i], "hopper");
}

TESTS(exact, sizeof cases / sizeof cases[0])
{
    follow(cases[_i], "exact");
}

TEST_MAIN("train-torch");
