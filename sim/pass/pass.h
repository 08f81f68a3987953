/* pass.h -- tensors on all threads: a large one in pieces, small ones in batches. Whatever the threads do, the
 * earliest error wins, and reports keep the order of the tensors.
 *
 * All commands that read tensors use this. Each thread reads its own pieces as they are stored (trace_codes);
 * members of archives and pipes are read by one thread. */
#pragma once

#include "../trace/trace.h"

#include <stdatomic.h>

/* A lane is what a thread needs for itself: buffers, and sums that merge exactly. pass_lanes -- how many there may be. */
int pass_lanes(void);

/* ---- pieces ---- */

/* Piece k, on a lane: 0, or -1 with *error. */
typedef int pass_piece(void *context, uint64_t k, int lane, trace_error *error);

/* pass_pieces -- pieces 0 to n - 1 on `lanes` lanes, 1 being this thread alone. 0, or -1 with the error of the first
 * piece that failed; those behind it may be left out. No piece is begun after *asked (NULL: never) is not 0. */
int pass_pieces(uint64_t n, int lanes, pass_piece *piece, void *context, const atomic_int *asked, trace_error *error);

/* ---- items ---- */

/* Items that wait until together they are work for all threads. They are the caller's, an array of `room`; the first n
 * of them wait, or are ready.
 *
 *   run   item k on a lane, several at a time; an item that is alone: on all lanes by pass_pieces
 *   tell  of item k, in their order; 0, or a code to stop with. `stopped`: such a code was given before */
typedef struct pass_queue {
    void (*run)(void *context, int k, int lane);
    int (*tell)(void *context, int k, int stopped);
    void *context;
    int room, n;
    uint64_t most, bytes; /* of those that wait: at most, now */
} pass_queue;

/* pass_alone -- the next item is to be alone: those that wait go first. 0, or a code. */
int pass_alone(pass_queue *q);
/* pass_put -- the next item, q->n, is there, of so many bytes. It waits, unless it is `alone` or many wait. 0, or a code. */
int pass_put(pass_queue *q, uint64_t bytes, int alone);
/* pass_flush -- nothing waits any more. 0, or a code. */
int pass_flush(pass_queue *q);
