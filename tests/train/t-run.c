/* t-run.c -- runs of the trainer: the same bits on any threads, through checkpoints and
 * changes of plan; gradients against differences in binary64; two engines that part. */
#include "support/onebyone.h"
#include "support/trainruns.h"

#include <pthread.h>

/* ---- threads ---- */

typedef struct job {
    void (*task)(size_t i, void *job);
    void *arg;
    size_t n, first, step;
} job;

static void *work(void *p)
{
    const job *j = p;
    for (size_t i = j->first; i < j->n; i += j->step)
        j->task(i, j->arg);
    return NULL;
}

static void run_threads(void *self, size_t n, void (*task)(size_t i, void *job), void *arg)
{
    enum { THREADS = 3 };
    pthread_t id[THREADS];
    job jobs[THREADS];
    (void)self;
    for (size_t k = 0; k < THREADS; k++) {
        jobs[k] = (job){task, arg, n, k, THREADS};
        ck_assert_int_eq(pthread_create(&id[k], NULL, work, &jobs[k]), 0);
    }
    for (size_t k = 0; k < THREADS; k++)
        pthread_join(id[k], NULL);
}

CASE("same", 20);

TESTS(same_bits_again_and_on_threads, RUNS)
{
    const mpsim_pool pool = {.run = run_threads};
    train_engine e[3];
    train_run r;
    train *t[3];
    make_run(&r, &runs[_i]);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(train_engine_cpu(&e[k], k == 2 ? &pool : NULL), 0);
        t[k] = begin(&r, &e[k]);
    }
    uint64_t before = 0;
    const int steps = _i == 0 || test_expensive() ? 20 : 6;
    for (int i = 0; i < steps; i++) {
        uint64_t d[3];
        for (int k = 0; k < 3; k++) {
            const train_step s = next(t[k]);
            d[k] = digest(t[k], &s);
        }
        ck_assert_msg(d[0] == d[1] && d[0] == d[2], "step %d", i);
        ck_assert(d[0] != before);
        before = d[0];
    }
    for (int k = 0; k < 3; k++) {
        train_close(t[k]);
        train_engine_close(&e[k]);
    }
    train_run_clear(&r);
}

/* ---- checkpoints ---- */

TESTS(checkpoint_goes_on, 4 * RUNS)
{
    static const int splits[] = {0, 1, 4, 6};
    const recipe_of_run *c = &runs[_i / 4];
    const int split = splits[_i % 4], steps = _i < 4 || test_expensive() ? 6 : 2;
    train_engine e[2];
    train_run r;
    make_run(&r, c);
    ck_assert_int_eq(train_engine_cpu(&e[0], NULL) || train_engine_cpu(&e[1], NULL), 0);
    train *t = begin(&r, &e[0]);
    for (int i = 0; i < split; i++)
        next(t);
    train *u = restored(t, &r, &e[1]);
    for (int i = split; i < split + steps; i++) {
        const train_step a = next(t), b = next(u);
        ck_assert_msg(digest(t, &a) == digest(u, &b), "run %d, split %d, step %d", _i / 4, split, i);
    }
    train_close(t);
    train_close(u);
    train_engine_close(&e[0]);
    train_engine_close(&e[1]);
    train_run_clear(&r);
}

TEST(bad_states)
{
    char text[4096], error[TRAIN_ERROR];
    train_engine e;
    train_run r;
    make_run(&r, &runs[4]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    next(t);
    const size_t n = train_state_save(t, text, sizeof text);
    train_close(t);
    for (size_t i = 0; i < n; i += 1 + i % 7) {
        char bad[4096];
        memcpy(bad, text, n + 1);
        bad[i] = 0;
        t = begin(&r, &e);
        ck_assert_int_eq(train_state_load(t, bad, error), -1);
        ck_assert(strncmp(error, "training state", 14) == 0 && !strchr(error, '\n'));
        train_close(t);
    }
    t = begin(&r, &e);
    next(t);
    ck_assert_int_eq(train_state_load(t, text, error), -1);
    ck_assert_str_eq(error, "training state: the run has already begun");
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

TESTS(evaluation_changes_nothing, RUNS)
{
    const recipe_of_run *c = &runs[_i];
    char error[TRAIN_ERROR] = "";
    train_engine e[2];
    train_run r;
    double loss, accuracy;
    make_run(&r, c);
    ck_assert_int_eq(train_engine_cpu(&e[0], NULL) || train_engine_cpu(&e[1], NULL), 0);
    train *t = begin(&r, &e[0]), *u = begin(&r, &e[1]);
    for (int i = 0; i < 3; i++) {
        const train_step a = next(t), b = next(u);
        ck_assert_uint_eq(digest(t, &a), digest(u, &b));
        ck_assert_msg(train_evaluate(u, &loss, &accuracy, error) == 0, "%s", error);
        ck_assert(loss > 0 && loss < 10 && accuracy >= 0 && accuracy <= 1);
        ck_assert_uint_eq(digest(t, &a), digest(u, &b));
    }
    train_close(t);
    train_close(u);
    train_engine_close(&e[0]);
    train_engine_close(&e[1]);
    train_run_clear(&r);
}

/* ---- an engine with a fault ---- */

static struct fault {
    const train_ops *real;
    train_ops ops;
    unsigned calls, at;   /* products so far; the one that is wrong */
    size_t from, element; /* wrong as soon as this many products are added */
    const train_tensor *a, *b;
} fault;

static int faulty_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    if (fault.real->gemm(e, d, g, counts))
        return -1;
    if (fault.calls++ == fault.at) {
        fault.a = g->a;
        fault.b = g->b;
    }
    if (g->a != fault.a || g->b != fault.b || (g->depth_limit && g->depth_limit < fault.from))
        return 0;
    float *x = malloc(d->rows * d->cols * sizeof *x);
    ck_assert(x && fault.real->get(e, d, x) == 0);
    x[fault.element] = -x[fault.element]; /* one bit of its code */
    const int code = fault.real->put(e, d, x);
    free(x);
    return code;
}

/* A step of an mlp with two hidden layers has eight products: three forward, dx and dW of the head,
 * dx and dW of fc2, dW of fc1. */
TEST(fault_is_found)
{
    static const struct {
        unsigned product;
        size_t from, element;
        const char *expected;
    } faults[] = {
        {3 * 8 + 1, 17, 30, "step 3: out:fc2[1][6]: 0x"},
        {3 * 8 + 0, 64, 5, "step 3: out:fc1[0][5]: 0x"},
        {3 * 8 + 5, 1, 24 * 19 + 23, "step 3: dgrad:fc2[19][23]: 0x"},
        {3 * 8 + 6, 20, 24 * 7 + 3, "step 3: wgrad:fc2.weight[7][3]: 0x"},
        {3 * 8 + 1, 25, 0, "step 3: out:fc2[0][0]: 0x"},
    };
    static const char *const where[] = {"by cpu, 0x",
                                        "; they part at products k = 16..23",
                                        "; they part at products k = 48..63",
                                        "; they part at products k = 0..15",
                                        "; they part at products k = 16..19",
                                        "; computed anew they are equal before bias and rounding"};
    for (size_t i = 0; i < 5; i++) {
        char report[512] = "", error[TRAIN_ERROR] = "";
        train_engine e[2];
        train_run r;
        train_step a, b;
        int code = 0;
        make_run(&r, &runs[0]);
        ck_assert_int_eq(train_engine_cpu(&e[0], NULL) || train_engine_cpu(&e[1], NULL), 0);
        fault.real = e[1].ops;
        fault.ops = *e[1].ops;
        fault.ops.name = "faulty";
        fault.ops.gemm = faulty_gemm;
        fault.ops.gemm_list = one_by_one;
        e[1].ops = &fault.ops;
        fault.calls = 0;
        fault.a = fault.b = NULL;
        fault.at = faults[i].product;
        fault.from = faults[i].from;
        fault.element = faults[i].element;
        train *t = begin(&r, &e[0]), *u = begin(&r, &e[1]);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(train_compare_step(t, u, &a, &b, report, sizeof report, error) == 0, "%s%s", report, error);
        code = train_compare_step(t, u, &a, &b, report, sizeof report, error);
        ck_assert_msg(code == 1, "%d %s", code, error);
        ck_assert_msg(strncmp(report, faults[i].expected, strlen(faults[i].expected)) == 0, "%s", report);
        ck_assert_msg(strstr(report, where[0]) && strstr(report, " by faulty"), "%s", report);
        ck_assert_msg(strstr(report, where[i + 1]) != NULL, "%s", report);
        train_close(t);
        train_close(u);
        train_engine_close(&e[0]);
        train_engine_close(&e[1]);
        train_run_clear(&r);
    }
}

/* ---- what is refused ---- */

CASE("values", 20);

TEST(refused)
{
    const recipe_of_run c = {.net = "mlp", .low = "fp16", .optimizer = "sgd"};
    char error[TRAIN_ERROR];
    train_engine e;
    train_run r;
    make_run(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    strcpy(r.settings.arch, "kepler");
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_msg(strncmp(error, "fc1: arch 'kepler': neither", 27) == 0, "%s", error);
    strcpy(r.settings.arch, "hopper");
    mpsim_format_parse(&r.plans[0].layers[1].format[TRAIN_OUT], "e2m1");
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_msg(strncmp(error, "relu1: format e2m1", 18) == 0, "%s", error);
    mpsim_format_parse(&r.plans[0].layers[1].format[TRAIN_OUT], "fp16");
    r.plans[0].from = 1;
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    r.plans[0].from = 0;
    r.settings.width = 25;
    r.layers[0].type = TRAIN_CONV;
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_str_eq(error, "layers do not match the settings");
    train_engine_close(&e);
    train_run_clear(&r);
}

/* An engine as the CUDA one is: what it lacks is told when the training opens, of later plans, too. */
TEST(what_an_engine_lacks_is_refused)
{
    char error[TRAIN_ERROR];
    train_engine e;
    train_run r;
    make_run(&r, &runs[0]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train_ops ops = *e.ops;
    e.ops = &ops;
    ops.name = "device";
    ops.cuda = 1;
    ops.muon = NULL;
    ops.keep = NULL;
    train_placement *l = &r.plans[0].layers[0];
    l->muon = 1;
    mpsim_muon_init(&r.plans[0].muon, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch"));
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_str_eq(error, "device has no Muon, which the cpu has");
    l->muon = 0;
    l->states = mpsim_states_find("coat");
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_str_eq(error, "device keeps no moments in few bits (states coat), as the cpu does");
    l->states = NULL;
    mpsim_optim_init(&r.plans[0].optimizer, MPSIM_OPTIM_LION, mpsim_optim_variant_find("ieee"));
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_str_eq(error, "device has no Lion, which the cpu has");
    mpsim_optim_init(&r.plans[0].optimizer, MPSIM_OPTIM_ADAFACTOR, mpsim_optim_variant_find("ieee"));
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_str_eq(error, "device has no Adafactor, which the cpu has");
    train_engine_close(&e);
    train_run_clear(&r);
}

TEST_MAIN("train-run");
