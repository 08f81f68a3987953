/* t-accumulate.c -- gradients of micro-batches and of ranks: added and reduced by hand from those of single
 * batches, which a run that does not move gives one after the other. */
#include "support/textruns.h"

static const char *const params[] = {"wte.weight",         "wpe.weight",       "h0.ln1.bias",
                                     "h0.attn.qkv.weight", "h0.mlp.proj.bias", "lnf.weight"};
enum { PARAMS = sizeof params / sizeof *params, MOST = 8 };

typedef struct taken {
    float *v[PARAMS];
    size_t n[PARAMS];
    float loss;
} taken;

/* Step after step of a run that does not move: gradients under a name. */
static void take(const train_run *r, const char *kind, size_t steps, taken *all)
{
    train_engine e;
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(r, &e);
    for (size_t i = 0; i < steps; i++) {
        all[i].loss = next(t).loss;
        for (size_t k = 0; k < PARAMS; k++) {
            char name[96];
            snprintf(name, sizeof name, "%s:%s", kind, params[k]);
            all[i].v[k] = values_of(t, name, &all[i].n[k]);
        }
    }
    train_close(t);
    train_engine_close(&e);
}

static void drop(taken *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < PARAMS; k++)
            free(all[i].v[k]);
}

static float rounded(const char *format, float x)
{
    mpsim_format f;
    float y;
    ck_assert_int_eq(mpsim_format_parse(&f, format), MPSIM_OK);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert_int_eq(mpsim_round_array_f32(&f, &r, NULL, &y, &x, 1, NULL), MPSIM_OK);
    return y;
}

/* ---- by hand ---- */

static float plus(const char *format, float a, float b)
{
    return rounded(format, a + b);
}

/* The sum over ranks of element i of n. */
static float over_ranks(const train_decoder *d, const float *g, size_t i, size_t n)
{
    const size_t ranks = d->ranks, chunk = (n + ranks - 1) / ranks;
    const size_t first = d->reduce == MPSIM_REDUCE_RING ? i / chunk : 0;
    float v[MOST];
    for (size_t k = 0; k < ranks; k++)
        v[k] = rounded(d->wire, g[k]);
    if (d->reduce == MPSIM_REDUCE_TREE) {
        for (size_t step = 1; step < ranks; step *= 2)
            for (size_t k = 0; k + step < ranks; k += 2 * step)
                v[k] = plus(d->sum, v[k], v[k + step]);
        return v[0] / (float)ranks;
    }
    float sum = v[first];
    for (size_t k = 1; k < ranks; k++)
        sum = plus(d->sum, sum, v[(first + k) % ranks]);
    return sum / (float)ranks;
}

/* Single batch number m * ranks + r is micro-batch m of rank r. */
static float expected(const train_decoder *d, const taken *single, size_t k, size_t i)
{
    float g[MOST];
    for (size_t r = 0; r < d->ranks; r++) {
        g[r] = single[r].v[k][i];
        if (d->accumulate > 1)
            g[r] = rounded(d->accumulate_format, g[r]);
        for (size_t m = 1; m < d->accumulate; m++)
            g[r] = plus(d->accumulate_format, g[r], single[m * d->ranks + r].v[k][i]);
    }
    return d->ranks > 1 ? over_ranks(d, g, i, single[0].n[k]) : g[0];
}

static float mean_loss(const train_decoder *d, const taken *single)
{
    double sum = 0;
    for (size_t r = 0; r < d->ranks; r++)
        for (size_t m = 0; m < d->accumulate; m++)
            sum += (double)single[m * d->ranks + r].loss;
    return (float)(sum / ((double)d->accumulate * d->ranks));
}

static const struct {
    uint32_t accumulate, ranks;
    const char *format, *wire, *sum;
    uint8_t reduce;
    const char *low;
} cases[] = {{2, 1, "binary32", "bf16", "bf16", MPSIM_REDUCE_RING, "binary32"},
             {4, 1, "bf16", "binary32", "binary32", MPSIM_REDUCE_RING, "binary32"},
             {2, 1, "binary32", "binary32", "binary32", MPSIM_REDUCE_RING, "bf16"},
             {1, 3, "binary32", "bf16", "bf16", MPSIM_REDUCE_RING, "binary32"},
             {1, 3, "binary32", "bf16", "binary32", MPSIM_REDUCE_TREE, "bf16"},
             {1, 4, "bf16", "fp16", "fp16", MPSIM_REDUCE_SEQUENTIAL, "binary32"},
             {1, 5, "binary32", "binary32", "binary32", MPSIM_REDUCE_TREE, "binary32"},
             {2, 3, "binary32", "bf16", "bf16", MPSIM_REDUCE_TREE, "bf16"},
             {2, 4, "bf16", "bf16", "binary32", MPSIM_REDUCE_RING, "fp16"}};

CASE("all", 60);

TESTS(by_hand, sizeof cases / sizeof *cases)
{
    taken got[1], single[MOST], last[1];
    train_run r;
    text_run(&r, "gpt", cases[_i].low, "none");
    train_settings *s = &r.settings;
    train_decoder *d = &s->decoder;
    const size_t n = cases[_i].accumulate * cases[_i].ranks;
    r.plans[0].optimizer.lr = 0;
    s->loss_factor = 1.0 / cases[_i].accumulate;
    take(&r, "wgrad", n, single);
    s->loss_factor = 1;
    d->accumulate = cases[_i].accumulate;
    d->ranks = cases[_i].ranks;
    d->reduce = cases[_i].reduce;
    strcpy(d->accumulate_format, cases[_i].format);
    strcpy(d->wire, cases[_i].wire);
    strcpy(d->sum, cases[_i].sum);
    take(&r, "wgrad", 1, got);
    take(&r, "wgrad.micro", 1, last);
    ck_assert(got[0].loss == mean_loss(d, single));
    for (size_t k = 0; k < PARAMS; k++)
        for (size_t i = 0; i < got[0].n[k]; i++) {
            const float e = expected(d, single, k, i);
            ck_assert_msg(got[0].v[k][i] == e, "%s, element %zu: %a, not %a", params[k], i, (double)got[0].v[k][i],
                          (double)e);
            ck_assert(last[0].v[k][i] == single[n - 1].v[k][i]);
        }
    drop(got, 1);
    drop(last, 1);
    drop(single, n);
    train_run_clear(&r);
}

/* ---- one of each ---- */

TEST(one_is_as_without)
{
    train_engine e[2];
    train_run r[2];
    train *t[2];
    for (int k = 0; k < 2; k++) {
        text_run(&r[k], "llama", "bf16", "none");
        ck_assert_int_eq(train_engine_cpu(&e[k], NULL), 0);
    }
    train_decoder *d = &r[1].settings.decoder;
    strcpy(d->accumulate_format, "e5m2");
    strcpy(d->wire, "e5m2");
    strcpy(d->sum, "bf16");
    d->reduce = MPSIM_REDUCE_TREE;
    for (int k = 0; k < 2; k++)
        t[k] = begin(&r[k], &e[k]);
    for (int i = 0; i < 4; i++) {
        const train_step a = next(t[0]), b = next(t[1]);
        ck_assert(digest(t[0], &a) == digest(t[1], &b));
    }
    for (int k = 0; k < 2; k++) {
        train_close(t[k]);
        train_engine_close(&e[k]);
        train_run_clear(&r[k]);
    }
}

TEST(sums_take_bytes)
{
    train_bytes b[2];
    for (int k = 0; k < 2; k++) {
        train_engine e;
        train_run r;
        text_run(&r, "gpt", "bf16", "none");
        r.settings.decoder.accumulate = k ? 3 : 1;
        strcpy(r.settings.decoder.accumulate_format, "bf16");
        ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
        train *t = begin(&r, &e);
        train_measure_bytes(t, &b[k]);
        train_close(t);
        train_engine_close(&e);
        train_run_clear(&r);
    }
    ck_assert_uint_eq(b[1].gradients, b[0].gradients + b[0].weights / 2);
    ck_assert_uint_eq(b[1].activations, b[0].activations);
}

TEST_MAIN("train-accumulate");
