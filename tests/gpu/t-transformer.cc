/* t-transformer.cc -- whole steps of transformers: the CPU engine and the CUDA engine, on the host executor, in
 * step. Every tensor after every step, loss, scale and flag must be equal; a wrong kernel must be found
 * and named. */
#include "steps.h"

#define SGD "sgd", "ieee"
#define ADAMW "adamw", "ieee"
#define PLAIN MPSIM_STORE_NEAREST, TRAIN_NO_MASTER
#define MASTER MPSIM_STORE_NEAREST, TRAIN_MASTER

/* clang-format off */
static const row rows[] = {
    {"gpt", "binary32", NULL, ADAMW, "none", NULL, NULL, "torch", 0, 0, PLAIN, 0, 2, NULL, 0, 0, NULL},
    {"gpt", "binary32", NULL, ADAMW, "none", NULL, NULL, NULL, 0, 0, PLAIN, 0, 1, NULL, 0, 0, NULL, 3},
    {"llama", "binary32", NULL, ADAMW, "none", NULL, NULL, NULL, 0, 0, PLAIN, 1, 1, NULL, 0, 0, NULL, 0, 1},
    {"llama", "binary32", NULL, ADAMW, "none", NULL, NULL, NULL, 0, 0, PLAIN, 1, 1, NULL, 0, 0, NULL, 3, 1},
    {"gpt", "bf16", "binary32", ADAMW, "none", NULL, NULL, "torch", 0, 0, MASTER, 0, 2, NULL, 0, 0, NULL},
    {"llama", "bf16", "binary32", ADAMW, "none", NULL, NULL, NULL, 0, 0, MASTER, 0, 1, NULL, 0, 0, "binary32", 3,
     1, 2, 2},
    {"gpt", "bf16", "binary32", ADAMW, "none", NULL, NULL, NULL, 0, 0, MASTER, 0, 1, NULL, 0, 0, "bf16", 0, 0, 1,
     3},
    {"gpt", "fp16", "binary32", SGD, "torch:init=2^12", NULL, NULL, "torch", 0, 0, MASTER, 0, 2, NULL, 0, 0,
     "binary32"},
    {"llama", "fp16", "binary32", SGD, "torch:init=2^30", NULL, NULL, NULL, 0, 0, MASTER, 0, 2, NULL, 0, 0, NULL, 4,
     2},
    {"gpt", "bf16", "binary32", ADAMW, "none", "te-current", "te-current-e5m2", NULL, 0, 0, MASTER, 0, 1, NULL, 0,
     0, "binary32"},
    {"gpt", "bf16", "binary32", ADAMW, "none", "te-current", "te-current-e5m2", NULL, 1, 0, MASTER, 0, 2, NULL, 0,
     0, "binary32", 0, 0, 0, 0, 1},
    {"llama", "bf16", "binary32", ADAMW, "none", "te-current", "te-current-e5m2", NULL, 0, 0, MASTER, 0, 1, NULL,
     0, 0, "binary32", 3, 1, 0, 0, 1},
    {"gpt", "bf16", "binary32", ADAMW, "none", "mxfp8", "mxfp8", NULL, 0, 0, MASTER, 0, 1, NULL, 0, 0, "binary32"},
    {"llama", "bf16", "binary32", ADAMW, "none", "nvfp4", "nvfp4-sr", NULL, 0, 0, MASTER, 0, 1, "nvfp4-2d", 16, 0,
     "binary32", 3},
    {"llama", "bf16", "binary32", ADAMW, "none", "te-block-1x128", "te-block-1x128", NULL, 0, 0, MASTER, 0, 1,
     "te-block-128x128", 0, 128, "binary32"},
};
/* clang-format on */

/* ---- mutants: a wrong number in the last product of a stack, a gradient of tokens without the last ---- */

static int wrong_stack(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    if (right->gemm(e, d, g, counts))
        return -1;
    if (g->stacks <= 1 || !g->b_transposed || g->a_transposed)
        return 0;
    std::vector<float> v(d->rows * d->cols);
    if (right->get(e, d, v.data()))
        return -1;
    v[v.size() - 2] = v[v.size() - 2] != 0 ? 0 : 1;
    return right->put(e, d, v.data());
}

static int lost_token(train_engine *e, train_tensor *dtable, const train_tensor *dy, const uint32_t *index, int added,
                      train_counts *counts)
{
    train_tensor fewer = *dy;
    fewer.rows--;
    return right->embed_backward(e, dtable, &fewer, index, added, counts);
}

static void test_mutants()
{
    train_ops wrong = *right;
    wrong.gemm = wrong_stack;
    wrong.gemm_list = one_by_one;
    test_mutant(rows[0], wrong, "attn.scores", "a wrong number in a stack of products");
    wrong = *right;
    wrong.embed_backward = lost_token;
    test_mutant(rows[0], wrong, "wte", "a token that is left out");
}

int main()
{
    return test_steps(rows, test_mutants);
}
