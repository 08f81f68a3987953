/* array.c -- see array.h. */
#include "array.h"

#include <stdint.h>
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
