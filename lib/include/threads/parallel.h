/* parallel.h -- the only place that knows threads.
 *
 * Work is split by index; what a task computes may depend on its index only. Which thread runs it may
 * decide where it keeps its buffers, and its sums where these merge exactly.
 *
 * Threads that have nothing to do sleep. The caller begins at once and waits only for tasks that another
 * thread has begun, never for a thread that has not woken yet: beside other busy processes work takes
 * its share of the machine and no longer. Work of less than some 50 us stays with its caller. */
#ifndef MPSIM_THREADS_PARALLEL_H
#define MPSIM_THREADS_PARALLEL_H

#include <mpsim/dot.h>

/* parallel_init -- use `threads` threads. 0: as many as parallel_default said, else as many processors as
 * the process may use (affinity, the quota of its control group) less those that others keep busy (the
 * load average of the last minute), but at least half of them. Not while parallel_for runs. */
void parallel_init(unsigned threads);
void parallel_default(unsigned threads); /* 0: as at first */

/* parallel_eager -- 1: wake the others for any work: tests of threads. */
void parallel_eager(int eager);

/* parallel_for -- call task(i, context) for 0 <= i < n, in any order, on at most n threads. Within a task (of
 * more than one), or while another thread is in parallel_for: on the calling thread alone. */
void parallel_for(int n, void (*task)(int i, void *context), void *context);

/* parallel_team -- threads of one caller's own instead of those of the process: for libraries, whose callers know nothing of each
 * other. They are made when there is work for them, and know no signals.
 *
 *   parallel_team_new   `threads` as above, but for parallel_default; each thread calls begin(context) first (NULL: nothing).
 *                       NULL without memory
 *   parallel_team_use   from now on all here, called by this thread, is of the team; NULL: of the process. The one before
 *   parallel_team_free  its threads end; nobody may use it */
typedef struct parallel_team parallel_team;
parallel_team *parallel_team_new(unsigned threads, void (*begin)(void *context), void *context);
void parallel_team_free(parallel_team *t);
parallel_team *parallel_team_use(parallel_team *t);

/* parallel_threads -- how many threads there may be; parallel_self -- which of those of a parallel_for,
 * from 0, below its n, runs the task that asks. */
int parallel_threads(void);
int parallel_self(void);

/* parallel_pool -- the same threads, lent to the library. */
extern const mpsim_pool parallel_pool;

#endif
