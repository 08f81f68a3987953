/* parallel.h -- the only place that knows threads.
 *
 * Work is split by index; what a task computes may depend on its index only. Which thread runs it may
 * decide where it keeps its buffers, and its sums where these merge exactly. */
#ifndef MPSIM_TRAIN_PARALLEL_H
#define MPSIM_TRAIN_PARALLEL_H

#include <mpsim/dot.h>

/* parallel_init -- use `threads` threads; 0: as many as OMP_NUM_THREADS or the processors
 * allow. */
void parallel_init(unsigned threads);

/* parallel_for -- call task(i, context) for 0 <= i < n, in any order, on all threads. */
void parallel_for(int n, void (*task)(int i, void *context), void *context);

/* parallel_threads -- how many threads there may be; parallel_self -- which of them, from 0, runs the
 * task that asks. */
int parallel_threads(void);
int parallel_self(void);

/* parallel_pool -- the same threads, lent to the library. */
extern const mpsim_pool parallel_pool;

#endif
