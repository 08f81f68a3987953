/* tensor.h -- statistics of tensors, on all threads. */
#ifndef MPSIM_SIM_STAT_TENSOR_H
#define MPSIM_SIM_STAT_TENSOR_H

#include "../trace/trace.h"
#include "group.h"

/* Called for what was put, in that order: tensor i of t, with what it holds. `of` is NULL if the tensor
 * has no numbers, or if `error` says why they could not be read; t is NULL if its file could not be opened.
 * 0, or an exit code to stop with. */
typedef int tensorstat_told(void *context, trace *t, size_t i, const group *of, const trace_error *error);

/* tensorstat -- reads tensors and accounts for them. Small ones wait for others, so that threads have
 * something to do. */
typedef struct tensorstat tensorstat;

/* `want` is a set of MPSIM_SUMMARY_*. NULL if out of memory. `targets` must outlive it. */
tensorstat *tensorstat_new(const target_list *targets, uint64_t seed, unsigned want,
                           tensorstat_told *told, void *context);
void tensorstat_free(tensorstat *s); /* accepts NULL; what waits is forgotten */

/* tensorstat_put -- account for tensor i of t, which stays open until it is told of. Unless `scaled` it is
 * cast with the scale 1, once for each format, and that stands for all scales. 0, or what `told` gave. */
int tensorstat_put(tensorstat *s, trace *t, size_t i, int scaled);
/* tensorstat_put_error -- the next file could not be opened. */
int tensorstat_put_error(tensorstat *s, const trace_error *error);
/* tensorstat_flush -- tell of all that waits. */
int tensorstat_flush(tensorstat *s);

#endif
