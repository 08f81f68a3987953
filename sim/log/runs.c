/* runs.c -- see runs.h. */
#include "runs.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/escape.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one log ---- */

static int find_series(log_run *run, const char *what)
{
    static const char *const names[] = {"loss", "norm", "validation"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(what, names[i]) == 0)
            return traininglog_series_find(&run->all, run->log, (series_of)i), 0;
    const metric_values *m = &run->log->metrics;
    for (unsigned i = 0; i < m->n_names; i++)
        if (strcmp(what, m->names[i].name) == 0 || strcmp(what, m->names[i].name + m->names[i].shown) == 0)
            return traininglog_series_metric(&run->all, run->log, i), 0;
    double limit;
    run->all.name = what;
    return traininglog_metric_kind_of(what, &limit) <= METRIC_ENTROPY ? 0 : -1;
}

static int read_run(log_run *run, const char *path, const char *what)
{
    char name[512], word[64];
    run->path = path;
    run->log = need_memory(1, sizeof *run->log);
    const int code = traininglog_training_log_read(run->log, path, NULL);
    if (code)
        return code;
    if (find_series(run, what))
        return fail(EXIT_USAGE,
                    "log: --of: '%s' is not a number of logs: loss, norm, validation, reward, "
                    "kl, token_mult_prob_error and the others of 'mpsim log --help'",
                    escape_text(word, sizeof word, what));
    return run->all.n ? 0
                      : fail(EXIT_DATA, "%s: no %s in %" PRIu64 " lines", escape_text(name, sizeof name, path),
                             run->all.name, run->log->reader.lines);
}

/* ---- the steps of all ---- */

static int by_step(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step) : (x->line > y->line) - (x->line < y->line);
}

/* In the order of the steps, each once: what was told last. A run that was resumed goes on from there. */
static void sort_run(series *s)
{
    size_t kept = 0;
    qsort(s->at, s->n, sizeof *s->at, by_step);
    for (size_t i = 0; i < s->n; i++)
        if (i + 1 == s->n || s->at[i + 1].step != s->at[i].step)
            s->at[kept++] = s->at[i];
    s->n = kept;
}

static int has_steps(const series *s)
{
    size_t told = 0;
    for (size_t i = 0; i < s->n; i++)
        told += s->at[i].step >= 0;
    return told > s->n / 2;
}

static void number(series *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->at[i].step = (int64_t)i + 1;
}

static const sample *at_step(const series *s, int64_t step)
{
    const sample key = {.step = step, .line = UINT64_MAX};
    size_t low = 0, high = s->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (by_step(&s->at[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && s->at[low - 1].step == step ? &s->at[low - 1] : NULL;
}

/* The samples of one step in all runs, if all have it. */
static void take_step(log_runs *r, int64_t step)
{
    const sample *found[RUNS_MAX];
    for (size_t k = 0; k < r->count; k++)
        if (!(found[k] = at_step(&r->run[k].all, step)))
            return;
    for (size_t k = 0; k < r->count; k++)
        r->run[k].at[r->n] = *found[k];
    r->n++;
}

static int unit_of(const log_runs *r)
{
    enum { FAR = 400 };
    double most = 0;
    int e;
    for (size_t k = 0; k < r->count; k++)
        for (size_t i = 0; i < r->n; i++)
            most = fmax(most, fabs(r->run[k].at[i].value));
    (void)frexp(most, &e);
    return abs(e) > FAR ? e : 0;
}

static int match(log_runs *r)
{
    const series *first = &r->run[0].all;
    for (size_t k = 0; k < r->count; k++)
        r->by_order |= !has_steps(&r->run[k].all);
    for (size_t k = 0; k < r->count; k++) {
        if (r->by_order)
            number(&r->run[k].all);
        sort_run(&r->run[k].all);
    }
    for (size_t k = 0; k < r->count; k++)
        r->run[k].at = need_memory(first->n, sizeof *first->at);
    for (size_t i = 0; i < first->n; i++)
        take_step(r, first->at[i].step);
    r->unit = unit_of(r);
    return 0;
}

int log_runs_read(log_runs *r, const char *what, char **paths, size_t count)
{
    char a[256], b[256];
    int code = 0;
    *r = (log_runs){.count = 0};
    for (size_t i = 0; i < count && !code; i++) {
        r->count++;
        code = read_run(&r->run[i], paths[i], what);
    }
    if (code || (code = match(r)))
        return code;
    r->what = r->run[0].all.name;
    return r->n ? 0
                : fail(EXIT_DATA, "%s: no step in common with %s: nothing to compare",
                       escape_text(a, sizeof a, paths[0]),
                       escape_text(b, sizeof b, count > 2 ? "all the others" : paths[1]));
}

void log_runs_clear(log_runs *r)
{
    for (size_t k = 0; k < r->count; k++) {
        if (r->run[k].log)
            traininglog_training_log_clear(r->run[k].log);
        free(r->run[k].log);
        traininglog_series_clear(&r->run[k].all);
        free(r->run[k].at);
    }
}
