/* memory.c -- see memory.h. */
#include "memory.h"

#include "../trace/temporary.h"
#include "options.h"
#include "world.h"

#include <jansson.h>
#include <stdlib.h>

static int done;

static void *allocate(size_t n)
{
    void *p = malloc(n);
    if (p)
        return p;
    temporary_abandon();
    world_end(fail(EXIT_IO, "out of memory"));
    return NULL;
}

static void exiting(void)
{
    if (done)
        return;
    temporary_abandon();
    world_end(EXIT_IO);
}

void memory_watch(void)
{
    json_set_alloc_funcs(allocate, free);
    (void)atexit(exiting);
}

void memory_done(void)
{
    done = 1;
}
