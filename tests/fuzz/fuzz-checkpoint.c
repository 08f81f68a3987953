/* fuzz-checkpoint.c -- checkpoints of mpsim train: a small run goes on from what is accepted. */
#include "input.h"
#include "sim/train/checkpoint.h"

#include <train/parallel.h>
#include <train/train.h>

static void must_be_error(const trace_error *e)
{
    must(e->exit == 3 || e->exit == 4);
    must_be_line(e->text);
}

/* A run that takes no time. */
static int is_small(const train_run *r)
{
    const train_settings *s = &r->settings;
    return s->depth <= 2 && s->width <= 2 && s->batch <= 2;
}

static void resume(const char *path, const train_run *r)
{
    char line[TRAIN_ERROR];
    train_engine engine;
    train_step step;
    checkpoint_note note;
    trace_error e = {0};
    must(train_engine_cpu(&engine, &parallel_pool) == 0);
    train *t = train_open(r, &engine, 0, line);
    if (!t)
        must_be_line(line);
    else if (checkpoint_read(path, r, t, &note, &e))
        must_be_error(&e);
    else if (train_next(t, &step, line))
        must_be_line(line);
    else
        must(note.taken <= note.step && step.step == note.step);
    if (t)
        train_close(t);
    train_engine_close(&engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *path = input_path(data, n);
    trace_error e = {0};
    train_run r;
    if (checkpoint_run(path, &r, &e)) {
        must_be_error(&e);
        return 0;
    }
    if (is_small(&r))
        resume(path, &r);
    train_run_clear(&r);
    return 0;
}
