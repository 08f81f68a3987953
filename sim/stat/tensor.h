/* tensor.h -- statistics of tensors, on all threads. */
#pragma once

#include "../trace/trace.h"
#include "group.h"

#include <mpsim/report.h>
#include <stdatomic.h>

/* n elements of tensor i of t from element `first` on. */
typedef struct tensorstat_piece {
    trace *t;
    size_t i;
    uint64_t ordinal; /* the caller's */
    int scaled;       /* or cast with the scale 1, once for each format, which stands for all scales */
    uint64_t first, n;
} tensorstat_piece;

/* Called for what was put, in that order. 0, or an exit code to stop with.
 *
 *   tensor  a piece and what it holds; `of` is NULL if it has no numbers, or if `error` says why they could not
 *           be read
 *   file    file i is t; t is NULL if it could not be opened, and `error` says why; or it holds no tensors */
typedef struct tensorstat_told {
    int (*tensor)(void *context, const tensorstat_piece *piece, const group *of, const trace_error *error);
    int (*file)(void *context, trace *t, size_t i, const trace_error *error);
} tensorstat_told;

/* tensorstat -- reads tensors and accounts for them. Small ones wait for others, so that threads have
 * something to do. */
typedef struct tensorstat tensorstat;

/* `want` is a set of MPSIM_SUMMARY_*. `targets` must outlive it. NULL without memory, which was told (host.h), as all below that
 * give EXIT_IO for it. */
tensorstat *stat_tensorstat_new(const target_list *targets, uint64_t seed, unsigned want, const tensorstat_told *told,
                                void *context);
void stat_tensorstat_free(tensorstat *s); /* accepts NULL; what waits is forgotten */

/* stat_tensorstat_ask -- once *asked is the number of a signal, the work ends as soon as may be: what was read is told
 * (of.n: how many elements), the rest is not, and the functions below give 128 and the number. */
void stat_tensorstat_ask(tensorstat *s, const atomic_int *asked);

/* stat_tensorstat_count -- the elements of arrays in memory are elsewhere: `count` is asked instead, by the thread that puts or flushes. Not with
 * recipes. */
void stat_tensorstat_count(tensorstat *s, mpsim_count *count, void *context);

/* stat_tensorstat_put -- account for a piece, whose trace stays open until it is told of; for all of the tensor where
 * the trace is not flat. 0, or what `told` gave. */
int stat_tensorstat_put(tensorstat *s, const tensorstat_piece *piece);
/* stat_tensorstat_put_file -- file i is t, whose tensors follow, or NULL and why, or NULL. */
int stat_tensorstat_put_file(tensorstat *s, trace *t, size_t i, const trace_error *error);
/* stat_tensorstat_flush -- tell of all that waits. */
int stat_tensorstat_flush(tensorstat *s);
