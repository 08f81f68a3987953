/* array.h -- arrays that grow, and bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* array_room -- room for one more behind n items of `size` bytes each; `items` is the address of the pointer to them,
 * which is NULL before the first. It moves where n is 0 or a power of two, so nothing else may give the array its room.
 * 0, or -1 without memory: then the array is as it was. */
int array_room(void *items, size_t n, size_t size);

/* array_memory -- for n items of `size` bytes and one byte more, to be freed; NULL where there is no memory for them, or
 * where they cannot be counted, as more than 4 GiB on 32 bits: what a file says of its tensors is of 64 bits. */
void *array_memory(uint64_t n, uint64_t size);

/* array_zeros -- for n items of `size` bytes, at least one, all zero, to be freed; NULL likewise. */
void *array_zeros(uint64_t n, size_t size);

/* Bytes that grow; all zeros is an empty array. An error is reported at the end. */
typedef struct array_bytes {
    unsigned char *p;
    size_t n, room;
    int failed; /* out of memory: what is in it is not to be used */
} array_bytes;

void array_put(array_bytes *b, const void *from, size_t n);
