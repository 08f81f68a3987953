/* memory.c -- see memory.h. */
#include "memory.h"

#include "array.h"
#include "lacking.h"

#include <stdlib.h>
#include <sys/types.h>

typedef struct kept {
    array_bytes bytes;
    char **text;
    size_t *n;
} kept;

static ssize_t keep(void *of, const char *p, size_t n)
{
    kept *k = of;
    array_put(&k->bytes, p, n);
    if (k->bytes.failed)
        (void)host_no_memory();
    else
        *k->n = k->bytes.n;
    return k->bytes.failed ? 0 : (ssize_t)n;
}

/* The text, with its end, is the caller's from now on. */
static int hand_over(void *of)
{
    kept *k = of;
    const int failed = keep(k, "", 1) == 0;
    if (failed) {
        free(k->bytes.p);
    } else {
        *k->text = (char *)k->bytes.p;
        *k->n = k->bytes.n - 1; /* without the end */
    }
    free(k);
    return failed ? -1 : 0;
}

FILE *memory_open(char **text, size_t *n)
{
    const cookie_io_functions_t calls = {.write = keep, .close = hand_over};
    kept *k = array_zeros(1, sizeof *k);
    *text = NULL;
    *n = 0;
    if (!k)
        return NULL;
    k->text = text;
    k->n = n;
    FILE *f = fopencookie(k, "w", calls);
    if (!f)
        free(k);
    return f;
}
