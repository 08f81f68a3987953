/* stored.h -- a safetensors file as its header describes it: tensors of any dtype, as bytes. It shares nothing with the
 * program's reader. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stored_file {
    json_t *header;
    unsigned char *bytes, *data;
} stored_file;

typedef struct stored_tensor {
    const char *dtype;
    size_t rank;
    uint64_t sides[8];
    const unsigned char *data;
    size_t bytes;
} stored_tensor;

/* stored_open -- a file of at most 1 MiB; what cannot be read fails the test that runs. */
stored_file stored_open(const char *path);
void stored_close(stored_file *s);

/* stored_find -- 1, or 0 if there is no such tensor: then t is all 0. */
int stored_find(const stored_file *s, const char *name, stored_tensor *t);

/* stored_text -- a value of its metadata, or NULL. */
const char *stored_text(const stored_file *s, const char *key);
