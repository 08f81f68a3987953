/* array.c -- see array.h. */
#include "array.h"

#include <stdlib.h>
#include <string.h>

int array_room(void *items, size_t n, size_t size)
{
    void *p;
    memcpy(&p, items, sizeof p); /* whatever it points to */
    if (n & (n - 1))
        return 0;
    if (n > SIZE_MAX / 2 / size || !(p = realloc(p, (n ? 2 * n : 1) * size)))
        return -1;
    memcpy(items, &p, sizeof p);
    return 0;
}

void *array_memory(uint64_t n, uint64_t size)
{
    return size && n > (SIZE_MAX - 1) / size ? NULL : malloc((size_t)(n * size) + 1);
}

void *array_zeros(uint64_t n, size_t size)
{
    return n > SIZE_MAX / size ? NULL : calloc((size_t)n + !n, size);
}

void array_put(array_bytes *b, const void *from, size_t n)
{
    if (b->room - b->n < n) {
        const size_t room = 2 * b->room + n + 256;
        unsigned char *p = b->failed || room < n ? NULL : realloc(b->p, room);
        if (!p) {
            b->failed = 1;
            return;
        }
        b->p = p;
        b->room = room;
    }
    if (n)
        memcpy(b->p + b->n, from, n);
    b->n += n;
}
