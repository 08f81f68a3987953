/* mask.h -- which keys each query sees, from a file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct attention_mask {
    uint8_t *seen; /* queries x keys, 0 or 1; NULL: there is no mask */
    char label[256];
} attention_mask;

/* attention_mask_read -- the tensor of a file, of any dtype: [queries, keys], 0 where a query does not see a key. 0, or an exit code
 * after a message. */
int attention_mask_read(attention_mask *m, const char *path, size_t queries, size_t keys);
void attention_mask_clear(attention_mask *m);
