/* t-engine-errors.c -- what the CPU engine refuses, and says. */
#include "support/trainengine.h"

#include <math.h>

/* Operands of 4 x 6 and 6 x 3, results of 4 x 3 and 1 x 2; `none` has no memory, y and small are
 * e4m3. */
static train_tensor a, b, d, one, y, small, none, untouched;

static void make_all(void)
{
    a = any("fp16", 4, 6, 0);
    b = any("bf16", 6, 3, 0);
    d = make(format("fp16"), 4, 3, NULL);
    one = make(format("fp16"), 1, 2, NULL);
    y = make(format("e4m3"), 4, 6, NULL);
    small = make(format("e4m3"), 1, 6, NULL);
    untouched = d;
    none = a;
    none.data = NULL;
}

/* A failed call leaves its result's description alone. */
static void drop_all(void)
{
    ck_assert(memcmp(&untouched, &d, sizeof d) == 0);
    train_tensor *const all[] = {&a, &b, &d, &one, &y, &small};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}

START_TEST(test_errors_of_tensors)
{
    make_all();
    uint64_t digest;
    float values[24];
    FAILS(ops->alloc(&engine, NULL), "NULL");
    train_tensor odd = {.format = format("binary64"), .rows = 1, .cols = 1};
    FAILS(ops->alloc(&engine, &odd), "binary64");
    odd.format = format("e8m0");
    FAILS(ops->alloc(&engine, &odd), "no zero");
    odd.format = NULL;
    FAILS(ops->alloc(&engine, &odd), "NULL");
    odd.format = format("fp16");
    odd.rows = odd.cols = SIZE_MAX / 2;
    FAILS(ops->alloc(&engine, &odd), "too many");
    FAILS(ops->put(&engine, &none, values), "NULL");
    FAILS(ops->put(&engine, &a, NULL), "NULL");
    FAILS(ops->get(&engine, &none, values), "NULL");
    FAILS(ops->get(&engine, &a, NULL), "NULL");
    FAILS(ops->digest(&engine, &none, &digest), "NULL");
    FAILS(ops->digest(&engine, &a, NULL), "result pointer is NULL");
    FAILS(ops->cast(&engine, &d, &a, MPSIM_ROUND_NEAREST_EVEN, NULL), "4 x 6, not 4 x 3");
    FAILS(ops->cast(&engine, NULL, &a, MPSIM_ROUND_NEAREST_EVEN, NULL), "NULL");
    drop_all();
}

START_TEST(test_errors_of_products)
{
    make_all();
    mpsim_model m;
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK);
    train_gemm g = {.model = &m, .a = &a, .b = &b};
    OK(ops->gemm(&engine, &d, &g, NULL));
    g.b_transposed = 1;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "a has depth 6, b has depth 3");
    g.b_transposed = 0;
    FAILS(ops->gemm(&engine, &one, &g, NULL), "must be 4 x 3");
    g.bias = &one;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "bias");
    g.bias = NULL;
    g.model = NULL;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "model");
    ck_assert(mpsim_model_parse(&m, "fma:fp16") == MPSIM_OK);
    g.model = &m;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "binary32");
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK);
    g.a = &none;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "NULL");
    train_tensor view = d;
    view.cols = 6;
    g.a = &view;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "4 x 6 elements are beyond a tensor of 12");
    drop_all();
}

START_TEST(test_errors_of_quantising)
{
    make_all();
    train_quantize q = {.recipe = mpsim_block_find("te-current")};
    FAILS(ops->quantize(&engine, &a, &a, &q, NULL, NULL), "fp16 and e4m3");
    q.recipe = mpsim_block_find("mxfp8");
    FAILS(ops->quantize(&engine, &a, &a, &q, NULL, NULL), "fp16 and bf16");
    q.recipe = NULL;
    FAILS(ops->quantize(&engine, &a, &a, &q, NULL, NULL), "recipe");
    mpsim_block_recipe given = *mpsim_block_find("te-current");
    given.rule = MPSIM_SCALE_GIVEN;
    q.recipe = &given;
    q.given = NAN;
    FAILS(ops->quantize(&engine, &y, &a, &q, NULL, NULL), "nan");
    FAILS(ops->quantize(&engine, &y, &y, &q, NULL, NULL), "result and operand must be different tensors");
    FAILS(ops->quantize(&engine, &d, &a, &q, NULL, NULL), "not 4 x 3");
    drop_all();
}

START_TEST(test_errors_of_layers)
{
    make_all();
    uint32_t labels[4] = {0, 0, 0, 0};
    float loss;
    FAILS(ops->relu(&engine, &d, &a), "not 4 x 3");
    FAILS(ops->relu(&engine, &y, &a), "must be equal");
    FAILS(ops->relu_backward(&engine, &y, &a, &a), "must be equal");
    FAILS(ops->relu_backward(&engine, &a, &d, &a), "not 4 x 3");
    const train_pool p = {.images = 1, .height = 2, .width = 2, .channels = 6, .size = 2};
    FAILS(ops->maxpool(&engine, &small, &a, &p), "must be equal");
    FAILS(ops->maxpool(&engine, &one, &a, &p), "must be 1 x 6");
    FAILS(ops->maxpool_backward(&engine, &a, &one, &a, &p), "must be 1 x 6");
    FAILS(ops->maxpool(&engine, &small, &a, NULL), "windows");
    const train_pair sums = {.y = &d, .x = &a};
    FAILS(ops->column_sums(&engine, &sums, 1), "must be 1 x 6");
    FAILS(ops->softmax_xent(&engine, &d, &a, labels, 1, NULL, &loss, NULL, NULL), "4 x 6");
    FAILS(ops->softmax_xent(&engine, NULL, &a, NULL, 1, NULL, &loss, NULL, NULL), "softmax");
    drop_all();
}

START_TEST(test_errors_of_updates)
{
    make_all();
    mpsim_optim o;
    float norm;
    const train_pair apart = {.y = &d, .x = &a};
    const train_tensor *const x[] = {&a, &none};
    train_tensor *const y_[] = {&none};
    FAILS(ops->unscale(&engine, &apart, 1, MPSIM_UNSCALE_DIVIDE, 1, NULL), "not 4 x 3");
    FAILS(ops->cast_list(&engine, &apart, 1, MPSIM_ROUND_NEAREST_EVEN), "not 4 x 3");
    FAILS(ops->norm(&engine, x, 1, NULL, NULL), "result pointer is NULL");
    FAILS(ops->norm(&engine, x + 1, 1, NULL, &norm), "NULL");
    FAILS(ops->scale(&engine, y_, 1, 1), "NULL");
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("ieee"));
    train_update u = {.param = &a, .grad = &a, .optim = &o, .step = 1};
    FAILS(ops->optim(&engine, &u, 1, NULL, NULL), "fp16 and binary32");
    o.param = *format("fp16");
    FAILS(ops->optim(&engine, &u, 1, NULL, NULL), "step 1 of ieee");
    u.m = u.v = &a;
    FAILS(ops->optim(&engine, &u, 1, NULL, NULL), "fp16 and binary32");
    u.m = u.v = &d;
    FAILS(ops->optim(&engine, &u, 1, NULL, NULL), "not 4 x 3");
    o.lr = -1;
    FAILS(ops->optim(&engine, &u, 1, NULL, NULL), "ieee of adam");
    u.optim = NULL;
    FAILS(ops->optim(&engine, &u, 1, NULL, NULL), "NULL");
    FAILS(ops->optim(&engine, NULL, 1, NULL, NULL), "NULL");
    drop_all();
}

static void add(TCase *t)
{
    tcase_add_test(t, test_errors_of_tensors);
    tcase_add_test(t, test_errors_of_products);
    tcase_add_test(t, test_errors_of_quantising);
    tcase_add_test(t, test_errors_of_layers);
    tcase_add_test(t, test_errors_of_updates);
}

int main(void)
{
    return engine_main("train-engine-errors", add);
}
