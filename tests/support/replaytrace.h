/* replaytrace.h -- traces for the tests of replay: recorded ones are read, synthetic ones made. */
#pragma once

#include "oracle/replay.h"
#include "sim/trace/trace.h"

#include <stddef.h>
#include <stdint.h>

/* open_step -- the file of rank 0 of a step in a folder (its path below the top of the source tree,
 * or from the root). number_of: a number of its metadata, or NaN. */
trace *open_step(const char *folder, long step);
double number_of(trace *t, const char *key);

/* Tensor i. floats: the tensor KIND:NAME; NULL, and *n untouched, if there is none. To be freed. */
double *elements(trace *t, size_t i, size_t *n);
float *floats(trace *t, const char *kind, const char *name, size_t *n);

typedef struct made_tensor {
    char name[64];
    const grid *format; /* fp32, fp16, bf16 */
    size_t rank, n;
    uint64_t shape[4];
    unsigned char data[4096];
} made_tensor;

/* A file under construction: between made_begin and made_end a test may change it. */
typedef struct made_trace {
    char path[700];
    size_t n, pairs;
    made_tensor tensor[16];
    char key[32][48], value[32][1024];
} made_trace;

extern made_trace made;

/* made_begin -- file `rank` of a step in a folder of the program's own, whose path is returned: of
 * SGD with lr 0.5 and no momentum, unless changed. made_set, made_unset: its metadata. made_put: a
 * tensor; cols 0: of one dimension. made_end writes it. */
const char *made_begin(const char *folder, int step, int rank);
void made_set(const char *key, const char *value);
void made_unset(const char *key);
void made_put(const char *name, const grid *g, const float *x, size_t rows, size_t cols);
void made_end(void);

#define W "weight:fc.weight"
#define G "wgrad:fc.weight"
#define M "opt.m:fc.weight"

extern const float ramp_w[8], ramp_g[8];
