/* memory.c -- see memory.h. */
#include "memory.h"

#include "../array/need.h"
#include "../trace/temporary.h"
#include "world.h"
#include "host.h"

#include <jansson.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

static int done;

/* One thread says so; another that comes meanwhile waits for the end. */
static void end(void)
{
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&ending))
        (void)poll(NULL, 0, 1000);
    trace_temporary_abandon();
    world_end(fail(EXIT_IO, "out of memory"));
}

static void *allocate(size_t n)
{
    return need(malloc(n));
}

static void exiting(void)
{
    if (done)
        return;
    trace_temporary_abandon();
    world_end(EXIT_IO);
}

void memory_watch(void)
{
    need_end_with(end);
    json_set_alloc_funcs(allocate, free);
    (void)atexit(exiting);
}

void memory_done(void)
{
    done = 1;
}
