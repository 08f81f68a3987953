/* meter.h -- an engine that counts the multiply-adds of its matrix products and the time they
 * take, and the time of steps on a device; and that gives up, if it may, when it is asked to. */
#pragma once

#include <train/train.h>

#include <signal.h>
#include <stdatomic.h>

typedef struct train_meter {
    train_engine engine; /* the first member: what a trainer is given */
    train_ops ops;
    const train_ops *inner;
    uint64_t products;      /* multiply-adds of matrix products                       */
    double product_seconds; /* processor time in them, of all threads together        */
    double began;           /* processor time at train_meter_open                     */
    mpsim_pool pool;        /* what the products get                                  */
    const mpsim_pool *threads;
    const atomic_int *asked; /* not 0: products are to end soon            */
    int may_stop;            /* set before a step; 0: they go on all the same          */
    atomic_int stopped;      /* a product was not finished: the step is void           */
    atomic_llong since;      /* when `asked` was first seen, in nanoseconds; 0: not yet */
} train_meter;

/* train_opener -- opens the engine of a device: 0, or -1 with one line in `why`. */
typedef int (*train_opener)(train_engine *e, char *why, size_t size);

/* train_meter_open -- an engine with a meter: that of `device`, or the CPU's if it is NULL. 0, or -1
 * with one line in `why`. The meter must stay where it is. `asked`: a signal's number, or 0. */
int train_meter_open(train_meter *m, train_opener device, const mpsim_pool *threads, const atomic_int *asked, char *why,
                     size_t size);
void train_meter_close(train_meter *m);
/* train_meter_seconds -- processor time since train_meter_open, of all threads together. */
double train_meter_seconds(const train_meter *m);
/* train_meter_clock -- seconds of a clock that goes on while a device works. */
double train_meter_clock(void);
