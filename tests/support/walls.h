/* walls.h -- arrays between pages that nobody may touch: a read or a write beyond either end of one is a crash. */
#pragma once

#include <stddef.h>

typedef struct walls {
    unsigned char *low; /* the first byte behind the lower wall */
    size_t size;        /* bytes up to the upper wall           */
} walls;

/* walls_make -- room for `size` bytes and a page. Lives until the program ends. */
walls walls_make(size_t size);

/* walls_place -- where an array of n bytes lies: `off` bytes behind the lower wall (upper = 0), or so
 * that its end is `off` bytes before the upper one. The rest of the room is filled with a pattern. */
unsigned char *walls_place(const walls *w, size_t n, int upper, size_t off);

/* walls_kept -- 1 if the pattern around the n bytes at p is as walls_place left it, up to a page on both sides. */
int walls_kept(const walls *w, const unsigned char *p, size_t n);
