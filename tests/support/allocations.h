/* allocations.h -- allocations that fail, or are not freed: of the one test that includes this and of all libraries in it. Where they can
 * be taken over CAN_FAIL is defined. */
#pragma once

#include "sanitized.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__GLIBC__) && !SANITIZED_MEMORY && !SANITIZED_THREADS
#define CAN_FAIL 1
static atomic_long until; /* allocations until one fails; 0: none */
static atomic_long live;  /* that were not freed */
static atomic_int failed;
#pragma GCC visibility push(default)
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
extern void __libc_free(void *p);

static int fails(void)
{
    if (until == 0 || atomic_fetch_sub(&until, 1) != 1)
        return 0;
    failed = 1;
    errno = ENOMEM;
    return 1;
}

static void *count(void *p)
{
    live += p != NULL;
    return p;
}

void *malloc(size_t n)
{
    return fails() ? NULL : count(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : count(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    if (fails())
        return NULL;
    live -= p != NULL;
    return count(__libc_realloc(p, n));
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : count(__libc_memalign(alignment, n));
}

void free(void *p)
{
    live -= p != NULL;
    __libc_free(p);
}
#pragma GCC visibility pop
#endif
