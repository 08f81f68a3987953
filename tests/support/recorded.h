/* recorded.h -- recorded vectors: safetensors files with a line of facts for every case.
 *
 * A case is a metadata key whose value is words "name=value" separated by spaces; keys that begin
 * with "mpsim." and values without a '=' are about the whole file. Its tensors are named
 * CASE/TENSOR. */
#pragma once

#include "sim/trace/trace.h"

#include <stddef.h>
#include <stdint.h>

typedef struct recorded recorded;

/* recorded_open -- a file, from its path below the top of the source tree. A file that cannot be
 * read fails the test that runs. */
recorded *recorded_open(const char *path);
void recorded_close(recorded *r);

/* Cases, in the order of their names; NULL past the end. */
size_t recorded_count(const recorded *r);
const char *recorded_case(const recorded *r, size_t i);
const char *recorded_facts(const recorded *r, const char *name);   /* its value, or NULL         */
const char *recorded_metadata(const recorded *r, const char *key); /* any key: "mpsim.framework" */

/* A fact: the text after "key=" up to the next space, cut to size - 1 characters, or `otherwise` if
 * there is no such word; *text is returned. As a number, `otherwise` if absent; a text that is no
 * number fails the test. */
const char *recorded_text(const char *facts, const char *key, const char *otherwise, char *text, size_t size);
double recorded_number(const char *facts, const char *key, double otherwise);

/* The tensor CASE/NAME, or NULL: dtype, shape, count. name NULL: the tensor CASE itself. */
const trace_tensor *recorded_tensor(const recorded *r, const char *case_name, const char *name);

/* Its elements; NULL if there is no such tensor, n (which may be NULL) untouched then. A tensor
 * that cannot be read, or whose elements are not binary32 numbers, fails the test. To be freed. */
float *recorded_floats(recorded *r, const char *case_name, const char *name, size_t *n);

/* Its bytes as they stand in the file, for any dtype: *bytes of them. To be freed. */
unsigned char *recorded_bytes(recorded *r, const char *case_name, const char *name, size_t *bytes);
/* The same as n codes of `each` bytes in the byte order of this machine. */
unsigned char *recorded_codes(recorded *r, const char *case_name, const char *name, size_t each, size_t *n);

/* recorded_same -- whether two values are the same number: equal bits, or both NaN. */
int recorded_same(float a, float b);
