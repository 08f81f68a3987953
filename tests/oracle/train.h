/* train.h -- whole training steps, computed again as nested loops from what train.h and
 * engine.h say.
 *
 * Arithmetic is layer.h's and core.h's, binary32 operations and fmaf of the compiler;
 * images come from train_digit, random words from mpsim_rng_word. From the library, and judged by
 * tests of their own, are also: exp and log, mpsim_norm and mpsim_clip_*, mpsim_power, the
 * quantiser mpsim_block_quantize, mpsim_delayed_* and scalers other than torch's. Hopper only. */
#pragma once

#include "layer.h"

#include <mpsim/mpsim.h>
#include <train/train.h>

typedef struct oracle_train oracle_train;

/* What a step reports. */
typedef struct oracle_step {
    float loss;
    double accuracy, scale, next_scale, norm;
    int skipped;
} oracle_step;

/* Parameters as train.h says; *r must stay. Aborts if a run needs what is not here. */
oracle_train *oracle_train_open(const train_run *r);
void oracle_train_close(oracle_train *o);
void oracle_train_next(oracle_train *o, oracle_step *out);

/* A tensor by its name in train_visit: 1, or 0 if there is none. */
typedef struct oracle_tensor {
    size_t rows, cols;
    const float *values;
    const oracle_format *format;
    float inverse;
} oracle_tensor;
int oracle_train_find(oracle_train *o, const char *name, oracle_tensor *t);

/* The i-th name that the oracle has; 0 past the end. */
int oracle_train_name(oracle_train *o, size_t i, char name[2 * TRAIN_NAME]);

/* Loss and accuracy of the test images. */
void oracle_train_evaluate(oracle_train *o, double *loss, double *accuracy);

/* The order of images and streams, from train.h. */
void oracle_batch(uint64_t seed, uint64_t step, size_t batch, uint32_t *images);
uint64_t oracle_stream(const char *purpose);
