/* mpsim/threads.h -- threads for callers that have none of their own (mpsim_pool of mpsim/dot.h): in libmpsim-trace.
 *
 * Threads are made when there is work, sleep when there is none and take no signals. Several threads may pass the pool at once:
 * one of these calls has the threads and the others work alone. Work of less than some 50 us stays with its caller. After fork the child works alone. */
#ifndef MPSIM_THREADS_H
#define MPSIM_THREADS_H

#include <mpsim/dot.h>

MPSIM_BEGIN

/* mpsim_threads_new -- at most so many, at most 1024, the caller's among them. 0: as many processors as the process may use (affinity,
 * the quota of its control group) less those that others keep busy, but at least half of them. NULL without memory.
 * mpsim_threads_free -- they end; nobody may use them. NULL: nothing. */
MPSIM_API const mpsim_pool *mpsim_threads_new(unsigned threads);
MPSIM_API void mpsim_threads_free(const mpsim_pool *pool);

MPSIM_END

#endif
