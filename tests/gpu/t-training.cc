/* t-training.cc -- whole steps of training: the CPU engine and the CUDA engine, on the host
 * executor, in step. Every tensor after every step, loss, scale and flag must be equal; a wrong
 * kernel must be found and named. */
#include "steps.h"

static const row rows[] = {
    {"mlp", "binary32", NULL, "sgd", "ieee", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, 0, 3,
     NULL, 0, 0},
    {"mlp", "fp16", "binary32", "sgd", "torch", "torch:init=2^30", NULL, NULL, "torch", 0, 0, MPSIM_STORE_NEAREST,
     TRAIN_MASTER, 0, 4, NULL, 0, 0},
    {"mlp", "fp16", "binary32", "adamw", "ieee", "torch", NULL, NULL, "deepspeed", 0, 1, MPSIM_STORE_NEAREST,
     TRAIN_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "adamw", "torch-foreach", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_NEAREST,
     TRAIN_SPLIT_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", NULL, "adamw", "ieee", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_STOCHASTIC, TRAIN_NO_MASTER, 0,
     3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "adam", "ieee", "none", "te-current", "te-current-e5m2", NULL, 1, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 4, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "adam", "ieee", "none", "te-current", "te-current-e5m2", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "sgd", "ieee", "none", "mxfp8", "mxfp8", NULL, 0, 0, MPSIM_STORE_NEAREST, TRAIN_MASTER,
     0, 3, NULL, 0, 0},
    {"mlp", "bf16", "binary32", "sgd", "ieee", "none", "nvfp4", "nvfp4-sr", NULL, 0, 0, MPSIM_STORE_NEAREST,
     TRAIN_MASTER, 0, 3, "nvfp4-2d", 16, 0},
    {"mlp", "bf16", "binary32", "sgd", "ieee", "none", "mxfp8-floor", "mxfp8-rceil", NULL, 0, 0, MPSIM_STORE_NEAREST,
     TRAIN_MASTER, 0, 3, "mxfp8-even", 16, 0},
    {"mlp", "bf16", "binary32", "adam", "ieee", "none", "te-block-1x128", "te-block-1x128", NULL, 0, 0,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, "te-block-128x128", 0, 128},
    {"mlp", "binary32", NULL, "adam", "torch", "none", NULL, NULL, NULL, 0, 0, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, 1,
     2, NULL, 0, 0},
    {"cnn", "binary32", NULL, "adamw", "ieee", "none", NULL, NULL, NULL, 0, 1, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, 0,
     2, NULL, 0, 0},
    {"cnn", "fp16", "binary32", "sgd", "torch", "torch", NULL, NULL, NULL, 0, 1, MPSIM_STORE_NEAREST, TRAIN_MASTER, 0,
     2, NULL, 0, 0},
    {"cnn", "bf16", "binary32", "sgd", "ieee", "none", "mxfp8", "mxfp8", NULL, 0, 1, MPSIM_STORE_NEAREST, TRAIN_MASTER,
     0, 2, NULL, 0, 0},
    {"cnn", "bf16", "binary32", "sgd", "ieee", "none", "nvfp4", "nvfp4-sr", NULL, 0, 1, MPSIM_STORE_NEAREST,
     TRAIN_MASTER, 0, 2, "nvfp4-2d", 16, 0},
    {"cnn", "bf16", "binary32", "sgd", "ieee", "none", "te-block-1x128", "te-block-1x128", NULL, 0, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 1, "te-block-128x128", 0, 128},
    {"cnn", "bf16", "binary32", "adam", "ieee", "none", "te-current", "te-current-e5m2", NULL, 1, 1,
     MPSIM_STORE_NEAREST, TRAIN_MASTER, 0, 2, NULL, 0, 0},
};

/* ---- mutants: an operation of the CUDA engine that is wrong by one unit, or by one product ----
 */

static int nudged_sums(train_engine *e, const train_pair *list, size_t n)
{
    if (right->column_sums(e, list, n))
        return -1;
    train_tensor *d = list[0].y;
    std::vector<float> v(d->rows * d->cols);
    if (right->get(e, d, v.data()))
        return -1;
    v[v.size() / 2] = nextafterf(v[v.size() / 2], INFINITY);
    return right->put(e, d, v.data());
}

static int short_product(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
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
    train_ops wrong = *right;
    wrong.column_sums = nudged_sums;
    test_mutant(rows[0], wrong, "bias", "a wrong unit in a sum of columns");
    wrong = *right;
    wrong.gemm = short_product;
    wrong.gemm_list = one_by_one;
    test_mutant(rows[0], wrong, "fc1", "a product with too few terms");
}

/* ---- a step that fails on its way ---- */

static int products_left, finished;

static int failing_product(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    if (products_left-- > 0)
        return right->gemm(e, d, g, counts);
    snprintf(e->error, sizeof e->error, "a product that fails");
    return -1;
}

static int counted_finish(train_engine *e)
{
    finished++;
    return right->finish(e);
}

/* An engine adds to counts when it is finished: those of a training must not be asked for after it is
 * closed, also where a step stopped between (under AddressSanitizer this test would end here). */
static void test_failed_step()
{
    static train_plan plan;
    static train_run r;
    char error[TRAIN_ERROR] = "", text[1000];
    train_step s;
    train_ops failing = *right;
    failing.gemm = failing_product;
    failing.gemm_list = one_by_one;
    failing.finish = counted_finish;
    cuda.ops = &failing;
    products_left = 4;
    train *t = fill(&r, &plan, rows[1]) ? NULL : train_open(&r, &cuda, 1, error);
    const int failed = t && train_next(t, &s, error) && strstr(error, "a product that fails");
    finished = 0;
    train_close(t);
    OK(failed && finished == 1, "a training that is closed after a failed step leaves no counts behind");
    cuda.ops = right;
    OK(run_both(rows[1], text, sizeof text) == 0, "and the engine trains on, to the bit");
}

static void test_faults()
{
    test_mutants();
    test_failed_step();
}

int main()
{
    return test_steps(rows, test_faults);
}
