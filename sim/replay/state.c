/* state.c -- see state.h: what the files of a replay have in common. */
#include "impl.h"

#include "../array/need.h"
#include "../operand/stream.h"
#include "../process/world.h"

#include <threads/parallel.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- tasks of many threads ---- */

void replay_fails(replay_problem *p, int code, const char *message, ...)
{
    va_list list;
    va_start(list, message);
    p->code = code;
    vsnprintf(p->text, sizeof p->text, message, list);
    va_end(list);
}

typedef struct each {
    replay *r;
    void (*task)(replay *r, parameter *p, replay_weight *w);
} each;

static void run_task(int i, void *context)
{
    const each *e = context;
    e->task(e->r, &e->r->parameters[i], &e->r->weights[i]);
}

int replay_each(replay *r, void (*task)(replay *r, parameter *p, replay_weight *w))
{
    each e = {r, task};
    parallel_for((int)r->n_parameters, run_task, &e);
    for (size_t i = 0; i < r->n_parameters; i++, world_pass(1))
        if (r->parameters[i].problem.code)
            return fail(r->parameters[i].problem.code, "%s", r->parameters[i].problem.text);
    return 0;
}

int replay_is_muon(const replay *r, const parameter *p)
{
    return policy_plan_is_muon(r->plan, p->kind, p->layer, p->shape_rank);
}

replay_worker *replay_self(const replay *r)
{
    return &r->workers[parallel_self()];
}

void replay_hire(replay *r)
{
    const int n = parallel_threads();
    r->workers = need_memory((size_t)n, sizeof *r->workers);
    for (int i = 0; i < n; i++) {
        r->workers[i].summary = need(mpsim_summary_new());
        r->workers[i].distances = need_memory(4, sizeof *r->workers[i].distances);
    }
}

void replay_dismiss(replay *r)
{
    for (int i = 0; r->workers && i < parallel_threads(); i++) {
        mpsim_summary_free(r->workers[i].summary);
        free(r->workers[i].distances);
    }
    free(r->workers);
}

/* ---- numbers ---- */

mpsim_rng replay_rng(const replay *r, const char *name)
{
    return (mpsim_rng){.seed = r->options->seed, .stream = name_stream(r->step, NULL, name)};
}

void replay_round(const mpsim_format *f, double factor, float *y, const record_values *x, size_t first, size_t n)
{
    enum { BLOCK = 512 };
    mpsim_rounding nearest;
    double block[BLOCK];
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    nearest.scale = factor;
    if (x->narrow) {
        mpsim_round_array_f32(f, &nearest, NULL, y, x->narrow + first, n, NULL);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        mpsim_round_array_f64(f, &nearest, NULL, block, x->wide + first + i, m, NULL);
        for (size_t j = 0; j < m; j++)
            y[i + j] = (float)block[j];
    }
}
