/* trainmeter.h -- an engine that counts the multiply-adds of its matrix products and the time they
 * take. */
#ifndef MPSIM_SIM_TRAINMETER_H
#define MPSIM_SIM_TRAINMETER_H

#include "train/train.h"

typedef struct train_meter {
    train_engine engine; /* the first member: what a trainer is given */
    train_ops ops;
    const train_ops *inner;
    uint64_t products;      /* multiply-adds of matrix products                       */
    double product_seconds; /* processor time in them, of all threads together        */
    double began;           /* processor time at train_meter_open                     */
} train_meter;

/* train_meter_open -- the CPU engine, with a meter: 0, or -1 (out of memory). The meter must stay
 * where it is. */
int train_meter_open(train_meter *m, const mpsim_pool *pool);
void train_meter_close(train_meter *m);
/* train_meter_seconds -- processor time since train_meter_open, of all threads together. */
double train_meter_seconds(const train_meter *m);

#endif
