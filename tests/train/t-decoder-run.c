/* t-decoder-run.c -- runs of transformers: they learn; the optimizer's rate and what decays; validation;
 * checkpoints go on with the same bits. */
#include "support/textruns.h"

#include "lib/train/trainer.h"

static train *start(const train_run *r, train_engine *e)
{
    ck_assert_int_eq(train_engine_cpu(e, NULL), 0);
    return begin(r, e);
}

static void end(train *t, train_engine *e)
{
    train_close(t);
    train_engine_close(e);
}

static const struct {
    const char *net, *low, *scaler;
} all_runs[] = {{"gpt", "binary32", "none"},
                {"gpt", "bf16", "none"},
                {"gpt", "fp16", "torch:init=2^10"},
                {"llama", "binary32", "none"},
                {"llama", "fp16", "torch:init=2^10"}};
enum { ALL_RUNS = sizeof all_runs / sizeof *all_runs };

static void evaluate(train *t, double *loss)
{
    char error[TRAIN_ERROR] = "";
    double accuracy;
    const int code = train_evaluate(t, loss, &accuracy, error);
    ck_assert_msg(code == 0, "%s", error);
    ck_assert(accuracy >= 0 && accuracy <= 1);
}

CASE("all", 60);

TESTS(learns, ALL_RUNS)
{
    train_engine e;
    train_run r;
    double before, after;
    text_run(&r, all_runs[_i].net, all_runs[_i].low, all_runs[_i].scaler);
    r.settings.steps = 20;
    r.settings.batch = 8;
    r.plans[0].optimizer.lr = 0.02;
    train *t = start(&r, &e);
    evaluate(t, &before);
    for (uint64_t i = 0; i < 20; i++) {
        const train_step s = next(t);
        ck_assert(s.lr == 0.02 * train_schedule(&r.settings, i));
    }
    evaluate(t, &after);
    ck_assert_msg(after < before - 0.5, "%g to %g", before, after);
    end(t, &e);
    train_run_clear(&r);
}

/* ---- validation ---- */

/* The loss of windows first to first + n - 1 of what is held back, in passes of `batch`. */
static double held_loss(train_run *r, size_t first, uint32_t n, uint32_t batch)
{
    train_text x = *train_text_bundled();
    train_engine e;
    double loss;
    r->settings.batch = batch;
    r->settings.decoder.validation = n;
    x.trained += first * r->settings.decoder.context;
    x.held -= first * r->settings.decoder.context;
    r->text = &x;
    train *t = start(r, &e);
    evaluate(t, &loss);
    end(t, &e);
    r->text = NULL;
    return loss;
}

TEST(validation)
{
    train_run r;
    text_run(&r, "gpt", "bf16", "none");
    double sum = 0;
    for (size_t i = 0; i < 5; i++)
        sum += held_loss(&r, i, 1, 1);
    ck_assert(held_loss(&r, 0, 5, 1) == sum / 5);
    const double two = held_loss(&r, 0, 2, 2), third = held_loss(&r, 2, 2, 2);
    ck_assert(held_loss(&r, 0, 5, 2) == (two * 2 + third * 2 + held_loss(&r, 4, 1, 1)) / 5);
    ck_assert_double_eq_tol(held_loss(&r, 0, 5, 8), sum / 5, 1e-6);
    train_run_clear(&r);
}

TEST(evaluation_changes_nothing)
{
    train_engine e[2];
    train_run r;
    double loss;
    text_run(&r, "llama", "fp16", "torch:init=2^10");
    train *t = start(&r, &e[0]), *u = start(&r, &e[1]);
    for (int i = 0; i < 3; i++) {
        const train_step a = next(t), b = next(u);
        ck_assert(digest(t, &a) == digest(u, &b));
        evaluate(u, &loss);
        ck_assert(digest(t, &a) == digest(u, &b));
    }
    end(t, &e[0]);
    end(u, &e[1]);
    train_run_clear(&r);
}

/* ---- what decays ---- */

static float one_step(const char *name, double decay, uint8_t decay_all)
{
    train_engine e;
    train_run r;
    size_t n;
    text_run(&r, "gpt", "binary32", "none");
    r.settings.decoder.decay_all = decay_all;
    r.plans[0].optimizer.weight_decay = decay;
    train *t = start(&r, &e);
    next(t);
    float *v = values_of(t, name, &n);
    const float first = v[0];
    free(v);
    end(t, &e);
    train_run_clear(&r);
    return first;
}

TEST(norms_and_biases_do_not)
{
    static const char *const norm = "weight:h0.ln1.weight", *const matrix = "weight:h0.attn.qkv.weight";
    ck_assert(one_step(norm, 0, 0) == one_step(norm, 0.5, 0));
    ck_assert(one_step(norm, 0, 1) > one_step(norm, 0.5, 1));
    ck_assert(one_step(matrix, 0, 0) != one_step(matrix, 0.5, 0));
    ck_assert(one_step(matrix, 0.5, 1) == one_step(matrix, 0.5, 0));
}

/* ---- checkpoints, texts ---- */

TESTS(checkpoint_goes_on, 3 * ALL_RUNS)
{
    static const int splits[] = {0, 1, 3};
    const int split = splits[_i % 3];
    train_engine e[2];
    train_run r;
    text_run(&r, all_runs[_i / 3].net, all_runs[_i / 3].low, all_runs[_i / 3].scaler);
    r.settings.decoder.accumulate = 2;
    r.settings.decoder.ranks = 2;
    strcpy(r.settings.decoder.wire, "bf16");
    r.settings.steps = 8;
    train *t = start(&r, &e[0]);
    ck_assert_int_eq(train_engine_cpu(&e[1], NULL), 0);
    for (int i = 0; i < split; i++)
        next(t);
    train *u = restored(t, &r, &e[1]);
    for (int i = split; i < split + 3; i++) {
        const train_step a = next(t), b = next(u);
        ck_assert_msg(digest(t, &a) == digest(u, &b), "split %d, step %d", split, i);
    }
    end(t, &e[0]);
    end(u, &e[1]);
    train_run_clear(&r);
}

TEST(another_text)
{
    char error[TRAIN_ERROR] = "";
    train_text x = *train_text_bundled();
    train_engine e;
    train_run r;
    text_run(&r, "gpt", "binary32", "none");
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    x.digest++;
    r.text = &x;
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_msg(strstr(error, "is not the text of the run"), "%s", error);
    train_engine_close(&e);
    train_run_clear(&r);
}

TEST_MAIN("train-decoder-run");
