/* t-training.cc -- whole steps of training: the CPU engine and the CUDA engine, on the host
 * executor, in step. Every tensor after every step, loss, scale and flag must be equal; a wrong
 * kernel must be found and named. */
#include "pairs.h"

#include <train/train.h>

struct row {
    const char *net, *low, *kept, *optimizer, *variant, *scaler, *recipe, *gradients, *clip;
    int delayed, batchnorm;
    mpsim_store store;
    train_master master;
    int tf32;
    unsigned steps;
    const char *weights; /* their recipe, NULL: that of all */
    unsigned hadamard, promote;
};

static const row rows[] = {
    {"mlp", "binary32", NULL, "sgd", "ieee", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_NEAREST,
     TRAIN_NO_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "fp16", "binary32", "sgd", "torch", "torch:init=2^30", NULL, NULL, "torch", 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 4, NULL, 0, 0},
    {"mlp", "fp16", "binary32", "adamw", "ieee", "torch", NULL, NULL, "deepspeed", 0, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "adamw", "torch-foreach", "none", NULL, NULL, NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_SPLIT_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", NULL, "adamw", "ieee", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_STOCHASTIC,
     TRAIN_NO_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "adam", "ieee", "none", "te-current", "te-current-e5m2", NULL, 1, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 4, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "adam", "ieee", "none", "te-current", "te-current-e5m2", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "sgd", "ieee", "none", "mxfp8", "mxfp8", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "sgd", "ieee", "none", "nvfp4", "nvfp4-sr", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 3, "nvfp4-2d", 16, 0},
    {"mlp", "bf16", "binary32", "sgd", "ieee", "none", "mxfp8-floor", "mxfp8-rceil", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 3, "mxfp8-even", 16, 0},
    {"mlp", "bf16", "binary32", "adam", "ieee", "none", "te-block-1x128", "te-block-1x128", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, "te-block-128x128", 0, 128},
    {"mlp", "binary32", NULL, "adam", "torch", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_NEAREST,
     TRAIN_NO_MASTER, 1, 2, NULL, 0, 0},
    {"cnn", "binary32", NULL, "adamw", "ieee", "none", NULL, NULL, NULL, 0, 1, MPSIM_STORE_NEAREST,
     TRAIN_NO_MASTER, 0, 2, NULL, 0, 0},
    {"cnn", "fp16", "binary32", "sgd", "torch", "torch", NULL, NULL, NULL, 0, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, NULL, 0, 0},
    {"cnn", "bf16", "binary32", "sgd", "ieee", "none", "mxfp8", "mxfp8", NULL, 0, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, NULL, 0, 0},
    {"cnn", "bf16", "binary32", "sgd", "ieee", "none", "nvfp4", "nvfp4-sr", NULL, 0, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, "nvfp4-2d", 16, 0},
    {"cnn", "bf16", "binary32", "sgd", "ieee", "none", "te-block-1x128", "te-block-1x128", NULL, 0, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 1, "te-block-128x128", 0, 128},
    {"cnn", "bf16", "binary32", "adam", "ieee", "none", "te-current", "te-current-e5m2", NULL, 1, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, NULL, 0, 0},
};

static int fill(train_run *r, train_plan *p, const row &c)
{
    mpsim_optim_algorithm a;
    memset(r, 0, sizeof *r);
    memset(p, 0, sizeof *p);
    char error[TRAIN_ERROR] = "";
    train_settings_init(&r->settings, c.net);
    const int cnn = strcmp(c.net, "cnn") == 0;
    r->settings.width = cnn ? 4 : 40;
    r->settings.batch = cnn ? 6 : 20;
    r->settings.seed = 3;
    r->settings.batchnorm = (uint32_t)c.batchnorm;
    r->settings.tf32 = (uint32_t)c.tf32;
    r->n_layers = train_network(&r->settings, r->layers, error);
    r->plans = p;
    r->n_plans = 1;
    for (size_t i = 0; i < r->n_layers; i++) {
        train_placement *l = &p->layers[i];
        for (int k = 0; k < TRAIN_ROLES; k++)
            l->format[k] = *format(c.low);
        l->storage = *format(c.low);
        l->kept = l->state = *format(c.kept ? c.kept : c.low);
        if (c.recipe && (r->layers[i].type == TRAIN_LINEAR || r->layers[i].type == TRAIN_CONV)) {
            l->recipe[TRAIN_ACT] = l->recipe[TRAIN_WEIGHT] = mpsim_block_find(c.recipe);
            l->recipe[TRAIN_AGRAD] = mpsim_block_find(c.gradients);
            if (c.weights)
                l->recipe[TRAIN_WEIGHT] = mpsim_block_find(c.weights);
            l->hadamard = c.hadamard;
            l->promote = c.promote;
        }
    }
    snprintf(p->precision, sizeof p->precision, "test");
    p->master = c.master;
    p->max_norm = 0.5;
    p->delayed = c.delayed;
    mpsim_delayed_config_init(&p->history, format("e4m3"));
    p->history.history = 4;
    if (mpsim_optim_parse(&a, c.optimizer) || mpsim_scaler_parse(&p->scaler, c.scaler) ||
        (c.clip && mpsim_clip_parse(&p->clip, c.clip)))
        return -1;
    mpsim_optim_init(&p->optimizer, a, mpsim_optim_variant_find(c.variant));
    p->optimizer.store = (uint8_t)c.store;
    p->optimizer.lr = a == MPSIM_OPTIM_SGD ? 0.1 : 2e-3;
    p->optimizer.momentum = a == MPSIM_OPTIM_SGD ? 0.9 : 0;
    if (r->n_layers == 0)
        printf("# %s\n", error);
    return r->n_layers ? 0 : -1;
}

/* Steps on both engines: 0, or what train_compare_step says; its report in text. */
static int run_both(const row &c, char *text, size_t size)
{
    static train_plan plan;
    static train_run r;
    char error[TRAIN_ERROR] = "";
    int result = -1;
    text[0] = 0;
    if (fill(&r, &plan, c)) {
        printf("# the row is invalid\n");
        return -1;
    }
    train *a = train_open(&r, &cpu, 1, error);
    train *b = a ? train_open(&r, &cuda, 1, error) : NULL;
    for (unsigned i = 0; a && b && i < c.steps; i++) {
        train_step x, y;
        result = train_compare_step(a, b, &x, &y, text, size, error);
        if (result)
            break;
    }
    if (result < 0)
        printf("# %s\n", error);
    if (a)
        train_close(a);
    if (b)
        train_close(b);
    return result;
}

/* ---- mutants: an operation of the CUDA engine that is wrong by one unit, or by one product ----
 */

static const train_ops *right;

static int nudged_sums(train_engine *e, train_tensor *d, const train_tensor *x,
                       train_counts *counts)
{
    if (right->column_sums(e, d, x, counts))
        return -1;
    std::vector<float> v(d->rows * d->cols);
    if (right->get(e, d, v.data()))
        return -1;
    v[v.size() / 2] = nextafterf(v[v.size() / 2], INFINITY);
    return right->put(e, d, v.data());
}

static int short_product(train_engine *e, train_tensor *d, const train_gemm *g,
                         train_counts *counts)
{
    train_gemm mutant = *g;
    const size_t depth = g->a_transposed ? g->a->rows : g->a->cols;
    if (depth == 64 && !g->depth_limit)
        mutant.depth_limit = 40;
    if (g->depth_limit > 40 && depth == 64)
        mutant.depth_limit = 40;
    return right->gemm(e, d, &mutant, counts);
}

static void test_mutants()
{
    char text[1000];
    train_ops wrong = *cuda.ops;
    right = cuda.ops;
    wrong.column_sums = nudged_sums;
    cuda.ops = &wrong;
    int result = run_both(rows[0], text, sizeof text);
    printf("# %s\n", text);
    OK(result == 1 && strstr(text, "bias"), "a wrong unit in a sum of columns is found and named");
    wrong = *right;
    wrong.gemm = short_product;
    result = run_both(rows[0], text, sizeof text);
    printf("# %s\n", text);
    OK(result == 1 && strstr(text, "fc1"), "a product with too few terms is found and named");
    cuda.ops = right;
}

int main()
{
    char text[1000];
    if (open_engines())
        return 1;
    for (const row &c : rows) {
        const int result = run_both(c, text, sizeof text);
        if (result)
            printf("# %s\n", text);
        OK(result == 0, "%s in %s%s%s%s, %s of %s: the same bits", c.net, c.low,
           c.master == TRAIN_SPLIT_MASTER ? " with split master"
           : c.kept                       ? " with master"
                                          : "",
           c.recipe ? " by " : "", c.recipe ? c.recipe : "", c.optimizer, c.variant);
    }
    test_mutants();
    OK(cuda.ops->finish(&cuda) == 0, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    return tap_end();
}
