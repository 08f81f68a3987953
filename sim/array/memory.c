/* memory.c -- see memory.h. */
#include "memory.h"

#include "lacking.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef struct kept {
    char **text;
    size_t *n, room;
} kept;

static ssize_t keep(void *of, const char *p, size_t n)
{
    kept *k = of;
    if (k->room - *k->n <= n) {
        const size_t room = 2 * (*k->n + n) + 1;
        char *more = realloc(*k->text, room);
        if (!more) {
            (void)host_no_memory();
            return 0;
        }
        *k->text = more;
        k->room = room;
    }
    memcpy(*k->text + *k->n, p, n);
    *k->n += n;
    (*k->text)[*k->n] = '\0';
    return (ssize_t)n;
}

static int end(void *of)
{
    free(of);
    return 0;
}

FILE *memory_open(char **text, size_t *n)
{
    const cookie_io_functions_t calls = {.write = keep, .close = end};
    kept *k = malloc(sizeof *k);
    *n = 0;
    *text = calloc(1, 1);
    FILE *f = NULL;
    if (k && *text) {
        *k = (kept){text, n, 1};
        f = fopencookie(k, "w", calls);
    }
    if (f)
        return f;
    free(k);
    free(*text);
    *text = NULL;
    return NULL;
}
