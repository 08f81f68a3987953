/* t-in-step.c -- gpu/validation/program/training.c: a run on a "device" and the CPU in step. The device is the CPU's engine
 * with a fault: a product that is wrong, then one that fails. */
#include "support/onebyone.h"
#include "support/support.h"

#include "gpu/validation/program/training.h"

#include <string.h>

static const train_ops *right;
static train_ops wrong;
static long products, wrong_at, failing_at;

static int faulty_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    train_gemm less = *g;
    products += g->depth_limit == 0; /* else: a product that is looked at again */
    if (products == failing_at && g->depth_limit == 0) {
        snprintf(e->error, sizeof e->error, "a product that fails");
        return -1;
    }
    if (products >= wrong_at)
        less.depth_limit = 7;
    return right->gemm(e, d, &less, counts);
}

static int open_faulty(train_engine *e, char *why, size_t size)
{
    if (train_engine_cpu(e, NULL)) {
        snprintf(why, size, "out of memory");
        return -1;
    }
    right = e->ops;
    wrong = *right;
    wrong.gemm = faulty_gemm;
    wrong.gemm_list = one_by_one;
    e->ops = &wrong;
    products = 0;
    return 0;
}

/* A step of the run has eight products. */
static gpu_training train_with(long wrong_product, long failing_product)
{
    const gpu_training_how how = {.open = open_faulty, .part = 1, .most = 5, .timed = 2};
    gpu_training t;
    memset(&t, 0, sizeof t);
    snprintf(t.run, sizeof t.run, "mlp-fp32");
    wrong_at = wrong_product;
    failing_at = failing_product;
    gpu_training_run(&t, test_source_path("gpu/runs"), &how);
    return t;
}

CASE("plans", 20);

TEST(equal)
{
    const gpu_training t = train_with(1000, 0);
    ck_assert_msg(t.status == GPU_TRAINING_EQUAL, "%s", t.report);
    ck_assert_str_eq(t.report, "");
    ck_assert_uint_eq(t.compared, 5);
    ck_assert(t.seconds_step > 0);
}

TEST(differs)
{
    const gpu_training t = train_with(9, 0);
    ck_assert_int_eq(t.status, GPU_TRAINING_DIFFERS);
    ck_assert_uint_eq(t.compared, 1);
    ck_assert_msg(strncmp(t.report, "step 1: out:fc1[", 16) == 0 && !strstr(t.report, "then"), "%s", t.report);
    ck_assert(t.seconds_step > 0);
}

TEST(fails)
{
    const gpu_training t = train_with(1000, 20);
    ck_assert_int_eq(t.status, GPU_TRAINING_FAILED);
    ck_assert_str_eq(t.report, "step 3: dgrad:head: a product that fails");
    ck_assert_uint_eq(t.compared, 2);
    ck_assert(t.seconds_step == 0);
}

/* Nothing is measured on an engine that has failed; the report has both. */
TEST(differs_and_fails)
{
    const gpu_training t = train_with(9, 30);
    ck_assert_int_eq(t.status, GPU_TRAINING_DIFFERS);
    ck_assert_msg(strncmp(t.report, "step 1: out:fc1[", 16) == 0, "%s", t.report);
    ck_assert_msg(strstr(t.report, "; then step 4: ") && strstr(t.report, "a product that fails"), "%s", t.report);
    ck_assert(t.seconds_step == 0);
}

TEST_MAIN("gpu/runs");
