/* walk.h -- the tensors that a command line selects, in their order: their statistics, on all threads. */
#pragma once

#include "settings.h"
#include "share.h"
#include "tally.h"

/* What of a tensor is at hand. */
typedef struct walk_piece {
    uint64_t file, ordinal; /* its file among all, it among those selected there */
    uint64_t first, n;      /* elements                                          */
} walk_piece;

/* Told of what is met, in its order. Each gives 0, or an exit code to stop with.
 *
 *   file    file i is open
 *   tensor  a piece of a tensor, or all of it; `of` is NULL if it has no numbers
 *   failed  file i failed, which was said; nothing more is told of it
 *   other   file i is no file of tensors (after input_list); may be NULL */
typedef struct walk_sink {
    int (*file)(void *context, const trace *t, uint64_t i);
    int (*tensor)(void *context, const stat_place *place, const walk_piece *piece, const group *of);
    int (*failed)(void *context, uint64_t i, const trace_error *error);
    int (*other)(void *context, uint64_t i);
} walk_sink;

/* walk -- the files of `in`, or where `of` is not NULL those of a shard. 0, or an exit code after a message, or
 * of the sink; 128 and the number of a signal that ended the work of one process: then what was read was told, of
 * the last tensors perhaps a part (piece.n). */
int stat_walk(input *in, const stat_settings *settings, const target_list *targets, const share *of,
              const walk_sink *sink, void *context);
