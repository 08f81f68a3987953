/* cudastats.h -- statistics of tensors in the memory of a CUDA device: libmpsim-cuda.
 *
 * What mpsim/summary.h says of an array, of one that a device holds: it is counted there, in one pass on a stream, and
 * a few KiB come to the host, of codes of 8 and 16 bits 256 KiB. Every number equals that of mpsim_summary_add_codes and
 * mpsim_summary_read for the same elements, to the bit: all sums are sums of integers, or exact.
 *
 * CUDA's types do not appear: a stream is a cudaStream_t, or a CUstream, as a pointer; NULL is the default
 * stream. The device's runtime is part of this library, and shares the process's context with others.
 *
 * Each call leaves the thread's current device as it was. None ends the capture of a graph by a stream of any thread. */
#ifndef MPSIM_CUDASTATS_H
#define MPSIM_CUDASTATS_H

#include <mpsim/summary.h>

MPSIM_BEGIN

typedef struct mpsim_cuda mpsim_cuda;                 /* casts, on one device; one thread at a time            */
typedef struct mpsim_cuda_counted mpsim_cuda_counted; /* what is counted, or was, of an array                   */

/* mpsim_cuda_new -- n casts and what is wanted, as of mpsim_summary_begin, on a device (-1: the current one of this
 * thread). The casts are copied. NULL, and a line in `why`, without a device, memory or valid casts. */
MPSIM_API mpsim_cuda *mpsim_cuda_new(const mpsim_cast *casts, size_t n, unsigned want, int device, char *why,
                                     size_t size);

/* mpsim_cuda_free -- accepts NULL. Nothing that was counted by it may be read any more; it waits for what is on its way. */
MPSIM_API void mpsim_cuda_free(mpsim_cuda *c);

/* mpsim_cuda_can -- 1 if elements of format f can be counted on the device: binary32 under casts to nearest or toward
 * zero with powers of two as scales, into signed formats; formats of at most 16 bits under all but stochastic casts. */
MPSIM_API int mpsim_cuda_can(const mpsim_cuda *c, const mpsim_format *f);

/* mpsim_cuda_count -- begin to count n elements of format f, `stride` bytes from one to the next (0: one behind the
 * other), behind what is on the stream already; they must stay until that is done. Returns at once, but for the first
 * arrays, for which memory is allocated.
 *
 * A stream that captures a graph is refused: a graph is replayed without the host, which could read the counts of one
 * replay only. Nothing is allocated or launched then, and the capture goes on. The default stream is refused as long as
 * a stream that waits for it captures a graph.
 *
 * MPSIM_EUNAVAILABLE if mpsim_cuda_can says 0, or if the stream captures a graph (mpsim_cuda_error); MPSIM_EINVAL if data is no memory of the device, or an argument is
 * invalid; MPSIM_ERANGE from 2^32 elements on; MPSIM_ENOMEM; MPSIM_EIO if the device fails (mpsim_cuda_error). */
MPSIM_API mpsim_status mpsim_cuda_count(mpsim_cuda *c, const mpsim_format *f, const void *data, uint64_t n,
                                        int64_t stride, void *stream, mpsim_cuda_counted **counted);

/* mpsim_cuda_ready -- 1: counted, reading does not wait; 0: not yet; -1: the device fails (mpsim_cuda_error), and
 * mpsim_cuda_read will return MPSIM_EIO. Does not wait. */
MPSIM_API int mpsim_cuda_ready(const mpsim_cuda_counted *counted);

/* mpsim_cuda_read -- wait, and add what was counted to the caller's accumulators, as mpsim_summary_read. `counted` is
 * given back then, also where it fails. MPSIM_EIO if the device fails, MPSIM_ENOMEM. */
MPSIM_API mpsim_status mpsim_cuda_read(mpsim_cuda_counted *counted, mpsim_stats *stats, mpsim_histogram *histogram,
                                       mpsim_cast_stats *casts);

/* mpsim_cuda_drop -- give it back unread, without a wait; accepts NULL. */
MPSIM_API void mpsim_cuda_drop(mpsim_cuda_counted *counted);

/* mpsim_cuda_error -- what the device said last, a line; it belongs to c. */
MPSIM_API const char *mpsim_cuda_error(const mpsim_cuda *c);

MPSIM_END

#endif
