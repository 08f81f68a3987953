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

/* The engine's own product, between two looks at the clock. */
static int gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    train_meter *m = (train_meter *)e;
    const size_t depth = g->a_transposed ? g->a->rows : g->a->cols;
    const double before = processor_time();
    const int bad = m->inner->gemm(e, d, g, counts);
    m->product_seconds += processor_time() - before;
    m->products += (uint64_t)d->rows * d->cols * depth;
    return bad;
}

int train_meter_open(train_meter *m, train_opener device, const mpsim_pool *pool, char *why,
                     size_t size)
{
    memset(m, 0, sizeof *m);
    snprintf(why, size, "out of memory");
    if (device ? device(&m->engine, why, size) : train_engine_cpu(&m->engine, pool))
        return -1;
    m->inner = m->engine.ops;
    m->ops = *m->inner;
    m->ops.gemm = gemm;
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
