/* spool.h -- the data of a file that is being written, in any order, wherever it goes. */
#ifndef MPSIM_SIM_CAST_SPOOL_H
#define MPSIM_SIM_CAST_SPOOL_H

#include "../trace/trace.h"

/* What is written to has places, or it is a pipe: then the data wait in a file without a name. */
typedef struct spool {
    trace_writer *to;
    int fd; /* of that file, or -1 */
    uint64_t bytes;
} spool;

/* spool_open -- of `bytes` of data. 0, or -1 with *error filled. */
int spool_open(spool *s, trace_writer *to, uint64_t bytes, trace_error *error);
/* spool_put -- bytes of the data from `at` on; from several threads, each byte once. */
int spool_put(const spool *s, uint64_t at, const void *bytes, size_t n, trace_error *error);
/* spool_close -- all is there; or, if `failed`, is not needed. Returns `failed`, or -1 with *error filled. */
int spool_close(spool *s, int failed, trace_error *error);

#endif
