/* walls.c -- see walls.h. */
#include "walls.h"

#include "support.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATTERN = 0x5a };

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

walls walls_make(size_t size)
{
    const size_t p = page(), inner = (size + 2 * p - 1) / p * p;
    unsigned char *base = mmap(NULL, inner + 2 * p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(base != MAP_FAILED);
    ck_assert(mprotect(base, p, PROT_NONE) == 0);
    ck_assert(mprotect(base + p + inner, p, PROT_NONE) == 0);
    return (walls){base + p, inner};
}

/* The pattern is kept for a page around the array only: more would be slow for a large room. */
static void around(const walls *w, const unsigned char *p, size_t n, size_t *below, size_t *above)
{
    const size_t most = page(), before = (size_t)(p - w->low), after = w->size - before - n;
    *below = before < most ? before : most;
    *above = after < most ? after : most;
}

unsigned char *walls_place(const walls *w, size_t n, int upper, size_t off)
{
    if (n + off > w->size)
        ck_abort_msg("walls: %zu bytes at %zu in a room of %zu", n, off, w->size);
    unsigned char *p = upper ? w->low + w->size - off - n : w->low + off;
    size_t below, above;
    around(w, p, n, &below, &above);
    memset(p - below, PATTERN, below);
    memset(p + n, PATTERN, above);
    return p;
}

int walls_kept(const walls *w, const unsigned char *p, size_t n)
{
    size_t below, above;
    around(w, p, n, &below, &above);
    for (size_t i = 1; i <= below; i++)
        if (p[-(ptrdiff_t)i] != PATTERN)
            return 0;
    for (size_t i = 0; i < above; i++)
        if (p[n + i] != PATTERN)
            return 0;
    return 1;
}
