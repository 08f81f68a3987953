/* failmalloc.c -- loaded before glibc (LD_PRELOAD): memory runs out at a chosen allocation after main began; a disk has
 * little room.
 *
 * MPSIM_FAIL_AT=N: the N-th fails, and with MPSIM_FAIL_ON all after it. MPSIM_FAIL_COUNT=FILE: how many
 * there were is written there. MPSIM_FAIL_ROOM=N: file systems say that they have N bytes left. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

typedef int start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

#ifdef __GLIBC__
#pragma GCC visibility push(default)

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

static atomic_ulong count;
static unsigned long at;
static int counting, on;
static int (*program)(int, char **, char **);

static int fails(void)
{
    if (!counting)
        return 0;
    const unsigned long i = atomic_fetch_add(&count, 1) + 1;
    const int failed = at && (i == at || (on && i > at));
    if (failed)
        errno = ENOMEM;
    return failed;
}

void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
    *p = fails() ? NULL : __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}

int fstatvfs(int fd, struct statvfs *v)
{
    int (*next)(int, struct statvfs *);
    *(void **)&next = dlsym(RTLD_NEXT, "fstatvfs");
    const char *room = getenv("MPSIM_FAIL_ROOM");
    const int failed = next(fd, v);
    if (!failed && room)
        v->f_bavail = strtoul(room, NULL, 10) / v->f_frsize;
    return failed;
}

static int counted(int argc, char **argv, char **environment)
{
    const char *text = getenv("MPSIM_FAIL_AT"), *file = getenv("MPSIM_FAIL_COUNT");
    at = text ? strtoul(text, NULL, 10) : 0;
    on = getenv("MPSIM_FAIL_ON") != NULL;
    counting = 1;
    const int code = program(argc, argv, environment);
    counting = 0;
    FILE *f = file ? fopen(file, "w") : NULL;
    if (f) {
        fprintf(f, "%lu\n", atomic_load(&count));
        fclose(f);
    }
    return code;
}

start __libc_start_main;

int __libc_start_main(int (*f)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*end)(void), void *stack)
{
    start *next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program = f;
    return next(counted, argc, argv, init, fini, end, stack);
}
#endif
