/* mpsim/threads.h -- threads for who has none of their own to lend (mpsim_pool of mpsim/dot.h): in libmpsim-trace.
 *
 * They are made when there is work for them, sleep when there is none, take no signals, and may be lent to calls of several
 * threads at once, of which one at a time has them and the others work alone. Work that is not worth waking anyone (some 50 us)
 * stays with its caller. After fork the child works alone. */
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
