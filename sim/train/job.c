/* job.c -- see job.h. */
#include "job.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/progress.h"
#include "../trace/temporary.h"
#include "checkpoint.h"
#include "decoder.h"
#include "meter.h"
#include "operations.h"

#include <threads/parallel.h>

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- interrupts ---- */

static atomic_int interrupted; /* the signal's number */

void train_catch_interrupt(void)
{
    trace_temporary_ask(&interrupted);
}

int train_interrupted(void)
{
    return interrupted;
}

/* ---- adding up ---- */

static void add_counts(train_counts *to, const train_counts *c)
{
    to->nonzero += c->nonzero;
    to->lost += c->lost;
    to->overflow += c->overflow;
    to->nonfinite += c->nonfinite;
}

static void add_to_total(train_total *t, const train_step *s, double seconds)
{
    need_room(&t->losses, t->n_losses, sizeof *t->losses);
    need_room(&t->times, t->n_losses, sizeof *t->times);
    t->times[t->n_losses] = (float)seconds;
    t->losses[t->n_losses++] = s->loss;
    t->done = s->step + 1;
    t->overflows += (s->events & MPSIM_SCALER_OVERFLOW) != 0;
    t->backoffs += (s->events & MPSIM_SCALER_BACKOFF) != 0;
    t->growths += (s->events & MPSIM_SCALER_GROWTH) != 0;
    t->skipped += s->skipped != 0;
    t->clipped += s->clipped != 0;
    if (s->skipped && !t->first_skipped) {
        t->first_skipped = s->step + 1;
        snprintf(t->cause, sizeof t->cause, "%s", s->cause ? s->cause : "");
    }
    t->diverged = isfinite(s->loss) ? 0 : t->diverged ? t->diverged : s->step + 1;
    if (t->diverged == s->step + 1)
        t->infinite = isinf(s->loss) != 0;
    t->stopped = s->stopped;
    t->final_scale = s->next_scale;
    add_counts(&t->act, &s->act);
    add_counts(&t->agrad, &s->agrad);
    add_counts(&t->wgrad, &s->wgrad);
    t->updates += s->updates;
    t->lost += s->lost;
}

static void add_to_row(train_row *r, const train_step *s)
{
    const double n = (double)r->steps;
    r->step = *s;
    r->loss = (r->loss * n + (double)s->loss) / (n + 1);
    r->accuracy = (r->accuracy * n + s->accuracy) / (n + 1);
    r->steps++;
    r->skipped += s->skipped != 0;
    add_counts(&r->act, &s->act);
    add_counts(&r->agrad, &s->agrad);
    add_counts(&r->wgrad, &s->wgrad);
    r->updates += s->updates;
    r->lost += s->lost;
}

static void next_row(train_row *r)
{
    const uint64_t skipped = r->skipped;
    memset(r, 0, sizeof *r);
    r->skipped = skipped;
}

static void finish_total(train_total *t)
{
    const size_t tenth = (size_t)((t->done + 9) / 10);
    const size_t n = tenth < t->n_losses ? tenth : t->n_losses;
    double sum = 0;
    for (size_t i = t->n_losses - n; i < t->n_losses; i++)
        sum += (double)t->losses[i];
    t->initial_loss = t->n_losses ? (double)t->losses[0] : (double)NAN;
    t->final_loss = n ? sum / (double)n : (double)NAN;
    t->tail = n;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Tokens by the seconds of steps, evaluations left out. */
static double tokens_per_second(const train_total *t, const train_settings *s)
{
    double seconds = 0;
    for (size_t i = 0; i < t->n_losses; i++)
        seconds += (double)t->times[i];
    return train_is_decoder(s) && seconds > 0 ? (double)(t->n_losses * train_tokens_per_step(s)) / seconds
                                              : (double)NAN;
}

/* The median; the first step, which warms a device up, counts only if it is alone. */
static double median_ms(const train_total *t)
{
    const size_t skip = t->n_losses > 1, n = t->n_losses - skip;
    if (n == 0)
        return (double)NAN;
    qsort(t->times + skip, n, sizeof *t->times, by_value);
    return 1e3 * (double)t->times[skip + n / 2];
}

void train_total_clear(train_total *t)
{
    free(t->losses);
    free(t->times);
    memset(t, 0, sizeof *t);
}

uint64_t train_count_parameters(const train_run *r)
{
    uint64_t n = 0;
    for (size_t i = 0; i < r->n_layers; i++) {
        const train_layer *l = &r->layers[i];
        const uint64_t matrix = (uint64_t)l->outputs * l->inputs;
        const int tied = r->settings.decoder.tied && strcmp(l->name, "head") == 0;
        n += l->type == TRAIN_LINEAR      ? (tied ? 0 : matrix) + (l->plain ? 0 : l->outputs)
             : l->type == TRAIN_CONV      ? matrix * 9
             : l->type == TRAIN_EMBED     ? matrix
             : l->type == TRAIN_POSITIONS ? matrix
             : l->type == TRAIN_BATCHNORM ? (uint64_t)l->outputs * 2
             : l->type == TRAIN_NORM      ? (uint64_t)l->outputs * (l->plain ? 1 : 2)
                                          : 0;
    }
    return n;
}

/* ---- the run ---- */

/* A run on its way. */
typedef struct going {
    const train_job *job;
    train_watch *watch;
    train *train;
    train_total *total;
    train_row row;
    checkpoint_note note;
    checkpoint point; /* the state before the step at hand, if that may be given up */
    train_meter meter;
    double seconds; /* that the last step took; NaN: there was none               */
    int done;       /* the step at hand has been: 1; given up: 0                  */
} going;

static int failed(const going *g, const char *line)
{
    return fail(train_error_exit(line), "train: %s: %s", g->job->name, line);
}

static int resume(going *g)
{
    trace_error error;
    if (g->watch->resume && train_checkpoint_read(g->watch->resume, &g->job->run, g->train, &g->note, &error))
        return fail(error.exit, "%s", error.text);
    g->watch->recorder.taken = g->note.taken;
    g->total->done = train_steps_done(g->train);
    g->total->first = g->total->done + 1;
    if (g->total->first > g->job->run.settings.steps)
        return fail(EXIT_USAGE, "train: '%s' has done %" PRIu64 " steps: --steps must be larger", g->watch->resume,
                    train_steps_done(g->train));
    return 0;
}

static int keep_state(going *g)
{
    trace_error error;
    g->note.step = train_steps_done(g->train);
    g->note.taken = g->watch->recorder.taken;
    return train_checkpoint_take(&g->point, g->watch->checkpoint, g->train, &g->note, &error)
               ? fail(error.exit, "%s", error.text)
               : 0;
}

static int write_state(going *g)
{
    trace_error error;
    return train_checkpoint_write(&g->point, g->watch->checkpoint, &g->job->run, &error)
               ? fail(error.exit, "%s", error.text)
               : 0;
}

static int save(going *g)
{
    const int code = keep_state(g);
    return code ? code : write_state(g);
}

/* A step of unknown or great length may be given up when a signal comes, since it changes what a
 * checkpoint holds before its end; that is kept, if there is to be one. */
static int ready_to_stop(going *g)
{
    const int is_long = isnan(g->seconds) || g->seconds > 0.25;
    g->meter.may_stop = is_long || !g->watch->checkpoint;
    return is_long && g->watch->checkpoint ? keep_state(g) : 0;
}

/* *done: 0: it was given up. */
static int evaluate(going *g, double *loss, double *accuracy, int *done)
{
    char line[TRAIN_ERROR];
    g->meter.may_stop = 1;
    *done = !train_evaluate(g->train, loss, accuracy, line);
    return *done || atomic_load(&g->meter.stopped) ? 0 : failed(g, line);
}

/* The step itself; g->done. */
static int take_step(going *g, train_step *s)
{
    char line[TRAIN_ERROR];
    train_step now;
    int code = ready_to_stop(g);
    if (code)
        return code;
    memset(&now, 0, sizeof now);
    const double began = train_meter_clock();
    g->done = !train_next(g->train, &now, line);
    g->seconds = train_meter_clock() - began;
    if (!g->done)
        return atomic_load(&g->meter.stopped) ? 0 : failed(g, line);
    *s = now;
    code = train_record_after(&g->watch->recorder, g->train, s);
    if (!code)
        code = train_digests_step(&g->watch->digests, g->train, s);
    if (!code)
        add_to_total(g->total, s, g->seconds);
    return code;
}

/* Tables, report and checkpoint after a step; *ends: it is the last. */
static int after_step(going *g, void (*each)(const train_row *r, void *context), void *context, const train_step *s,
                      int *ends)
{
    train_watch *w = g->watch;
    train_row alone = {.steps = 0};
    int code = 0;
    *ends = s->step + 1 >= g->job->run.settings.steps || s->stopped || interrupted || w->digests.difference[0];
    add_to_row(&g->row, s);
    add_to_row(&alone, s);
    if (w->checkpoint && (*ends || (w->checkpoint_every && (s->step + 1) % w->checkpoint_every == 0)))
        code = save(g);
    if (!code && (*ends || (w->every && (s->step == 0 || (s->step + 1) % w->every == 0)))) {
        code = evaluate(g, &alone.test_loss, &alone.test_accuracy, &alone.evaluated);
        if (alone.evaluated) {
            g->row.evaluated = 1;
            g->row.test_loss = g->total->test_loss = alone.test_loss;
            g->row.test_accuracy = g->total->test_accuracy = alone.test_accuracy;
        }
    }
    alone.skipped = g->row.skipped;
    if (!code && each)
        each(&alone, context);
    if (!code && interrupted && !*ends) { /* during the evaluation */
        *ends = 1;
        code = w->checkpoint ? save(g) : 0;
    }
    return code;
}

/* One step and what belongs to it; *ends: it is the last. */
static int do_step(going *g, void (*each)(const train_row *r, void *context), void *context, train_step *s, int *ends)
{
    int code = train_record_before(&g->watch->recorder, g->train);
    if (!code)
        code = take_step(g, s);
    if (code || g->done)
        return code ? code : after_step(g, each, context, s, ends);
    *ends = 1;
    return g->watch->checkpoint ? write_state(g) : 0;
}

static void say_step(const going *g, const train_step *s)
{
    char name[64];
    const train_settings *of = &g->job->run.settings;
    escape_text(name, sizeof name, g->job->name);
    if (train_is_decoder(of) && g->seconds > 0)
        progress_say("%.40s, loss %.4g, %.3g tokens a second", name, (double)s->loss,
                     (double)train_tokens_per_step(of) / g->seconds);
    else
        progress_say("%.40s, loss %.4g", name, (double)s->loss);
}

static int run_steps(going *g, void (*each)(const train_row *r, void *context),
                     void (*row)(const train_row *r, void *context), void *context)
{
    progress_steps("steps", g->job->run.settings.steps - train_steps_done(g->train));
    train_step s;
    int code = 0, ends = 0;
    while (!code && !ends) {
        code = do_step(g, each, context, &s, &ends);
        if (code)
            break;
        if (g->done) {
            say_step(g, &s);
            progress_add(1);
        }
        if (g->row.evaluated) {
            if (row)
                row(&g->row, context);
            next_row(&g->row);
        }
    }
    progress_end();
    if (!code && g->done)
        code = train_record_end(&g->watch->recorder, g->train, &s);
    g->total->interrupted = interrupted && g->total->done < g->job->run.settings.steps;
    return code;
}

/* Only the CPU counts lost updates. Where nothing looks at tensors of a pass, they need less memory. */
static int how_to_open(const train_watch *w)
{
    const int looks = w->recorder.folder || w->digests.to || w->digests.path;
    return w->device ? 0 : looks ? TRAIN_COUNT : TRAIN_COUNT | TRAIN_LEAN;
}

int train_job_run(const train_job *j, train_watch *w, void (*each)(const train_row *r, void *context),
                  void (*row)(const train_row *r, void *context), void *context, train_total *t)
{
    char line[TRAIN_ERROR];
    going g = {.job = j, .watch = w, .total = t, .seconds = (double)NAN};
    memset(t, 0, sizeof *t);
    t->parameters = train_count_parameters(&j->run);
    t->ms_per_step = t->tokens_per_second = t->test_loss = t->test_accuracy = (double)NAN;
    if (train_meter_open(&g.meter, w->device, &parallel_pool, &interrupted, line, sizeof line))
        return fail(EXIT_IO, "train: %s%s", w->device ? "--device: " : "", line);
    g.train = train_open(&j->run, &g.meter.engine, how_to_open(w), line);
    int code = g.train ? resume(&g) : failed(&g, line);
    if (!code)
        code = train_record_begin(&w->recorder, w->resume != NULL);
    if (!code)
        code = train_digests_begin(&w->digests, &j->run, &g.meter.engine);
    if (!code)
        code = run_steps(&g, each, row, context);
    if (!code)
        train_digests_finish(&w->digests);
    train_checkpoint_clear(&g.point);
    if (g.train) {
        train_measure_bytes(g.train, &t->bytes);
        train_close(g.train);
    }
    t->products = g.meter.products;
    t->product_seconds = g.meter.product_seconds;
    t->seconds = train_meter_seconds(&g.meter);
    train_meter_close(&g.meter);
    t->compared = w->digests.compared;
    memcpy(t->difference, w->digests.difference, sizeof t->difference);
    finish_total(t);
    t->tokens_per_second = tokens_per_second(t, &j->run.settings);
    if (w->device)
        t->ms_per_step = median_ms(t);
    return code;
}
