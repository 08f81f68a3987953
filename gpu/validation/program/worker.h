/* worker.h -- a list of items, each done in another process, so that one which crashes, hangs or spoils
 * the device's context costs itself alone. Plain C, POSIX.
 *
 * A worker does item after item and says so after each. One that ends within an item, or is silent
 * for too long and is killed, is followed by another, which begins behind that item. What items find
 * they leave in memory that both processes share (gpu_shared). */
#pragma once

#include <stddef.h>

/* gpu_shared -- memory that workers write and the caller reads, zeros; NULL: none left. Never freed. */
void *gpu_shared(size_t bytes);

typedef struct gpu_items {
    void *context;
    int isolated;        /* 0: in this process, where nothing follows an item that spoils it */
    double open_seconds; /* the longest that `open` may be silent */

    /* In the worker. open: once, before the first item; 0, or -1: no item can be done. run: 0, or -1:
     * no further item can be done in this process, another shall go on. */
    int (*open)(void *context);
    int (*run)(void *context, size_t i);

    /* In both, after `open`, from shared memory. How many items there are; whether item i is to be done. */
    size_t (*count)(void *context);
    int (*is_wanted)(void *context, size_t i);

    /* In the caller's process, while the worker waits. opened: a worker has opened; 0, or -1: no item shall
     * be done. seconds: the longest that item i may be silent. done: run has returned; spoilt: -1.
     * failed: run has not, and never will; `why` is half a sentence. */
    int (*opened)(void *context);
    double (*seconds)(void *context, size_t i);
    void (*done)(void *context, size_t i, int spoilt);
    void (*failed)(void *context, size_t i, const char *why);
} gpu_items;

/* gpu_work -- do all items that are wanted, in their order. 0; -1: `open` or `opened` said so (`why` is ""),
 * no worker could be made, or one ended before it had opened (one line in `why`). */
int gpu_work(const gpu_items *items, char *why, size_t size);

/* gpu_worker_alive -- in a worker, within an item: it goes on, the time begins anew. */
void gpu_worker_alive(void);
