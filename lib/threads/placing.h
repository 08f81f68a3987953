/* placing.h -- where a thread begins to work. Linux puts a thread that is new, or wakes, on the processor of who started it more often than one
 * expects (the idle processors of a virtual machine look taken to it), and there it waits for a tick, or for the 17 ms until
 * processors are balanced. So the caller moves a thread to another processor; once it runs, the thread may move freely. */
#pragma once

#include <pthread.h>
#ifdef __linux__
#include <sched.h>
#endif

typedef struct threads_place {
#ifdef __linux__
    cpu_set_t own; /* the processors that the thread may use */
#endif
    int is_away;
} threads_place;

/* threads_place_away -- from now on `thread` stays off the caller's processor, if it may use another.
 * threads_place_back -- the calling thread may use all of its own again. A thread is not sent away while it comes back. */
void threads_place_away(threads_place *p, pthread_t thread);
void threads_place_back(threads_place *p);
