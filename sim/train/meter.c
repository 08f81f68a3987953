/* meter.c -- see meter.h. */
#include "meter.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor_time(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double train_meter_clock(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* ---- giving up ---- */

enum { PATIENCE = 500000000 }; /* nanoseconds that a step has to end by itself */

/* Whether products are to end now. On any thread. */
static int is_over(train_meter *m)
{
    if (!m->may_stop || !*m->asked)
        return 0;
    const long long now = (long long)(1e9 * train_meter_clock()) | 1;
    long long since = 0;
    if (atomic_compare_exchange_strong(&m->since, &since, now) || now - since < PATIENCE)
        return 0;
    atomic_store(&m->stopped, 1);
    return 1;
}

typedef struct lent {
    train_meter *meter;
    void (*task)(size_t i, void *job);
    void *job;
} lent;

static void run_task(size_t i, void *context)
{
    const lent *l = context;
    if (!is_over(l->meter))
        l->task(i, l->job);
}

static void lend(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    train_meter *m = self;
    lent l = {m, task, job};
    m->threads->run(m->threads->self, n, run_task, &l);
}

static size_t lent_threads(void *self)
{
    const mpsim_pool *threads = ((train_meter *)self)->threads;
    return threads->threads ? threads->threads(threads->self) : 2;
}

/* ---- measuring ---- */

/* Rows of each matrix of a stack that a product takes. */
static size_t rows_of(const train_tensor *x, size_t stacks, const train_part *part)
{
    return part->n ? part->n : x->rows / stacks;
}

static uint64_t multiply_adds(const train_tensor *d, const train_gemm *g)
{
    const size_t stacks = g->stacks ? g->stacks : 1;
    const size_t depth = g->a_transposed ? rows_of(g->a, stacks, &g->a_part) : g->a->cols;
    return (uint64_t)stacks * rows_of(d, stacks, &g->d_part) * d->cols * depth;
}

/* The engine's own products, between two looks at the clock. */
static int gemm_list(train_engine *e, const train_multiply *list, size_t n)
{
    train_meter *m = (train_meter *)e;
    const double before = processor_time();
    const int bad = is_over(m) || m->inner->gemm_list(e, list, n) || atomic_load(&m->stopped);
    if (atomic_load(&m->stopped))
        snprintf(e->error, sizeof e->error, "it was told to stop");
    m->product_seconds += processor_time() - before;
    for (size_t i = 0; i < n; i++)
        m->products += multiply_adds(list[i].d, list[i].g);
    return bad ? -1 : 0;
}

static int gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    const train_multiply one = {d, g, counts};
    return gemm_list(e, &one, 1);
}

int train_meter_open(train_meter *m, train_opener device, const mpsim_pool *threads, const atomic_int *asked, char *why,
                     size_t size)
{
    memset(m, 0, sizeof *m);
    m->threads = threads;
    m->pool = (mpsim_pool){lend, m, lent_threads};
    m->asked = asked;
    snprintf(why, size, "out of memory");
    if (device ? device(&m->engine, why, size) : train_engine_cpu(&m->engine, &m->pool))
        return -1;
    m->inner = m->engine.ops;
    m->ops = *m->inner;
    m->ops.gemm = gemm;
    m->ops.gemm_list = gemm_list;
    m->engine.ops = &m->ops;
    m->began = processor_time();
    return 0;
}

void train_meter_close(train_meter *m)
{
    m->engine.ops = m->inner;
    train_engine_close(&m->engine);
}

double train_meter_seconds(const train_meter *m)
{
    return processor_time() - m->began;
}
