/* session.h -- one run of mpsim-gpu-functions: its request and its results, in memory that workers share. */
#pragma once

#include "functions.h"

#include <stdio.h>

enum { GPU_MOST_TABLES = 64, GPU_TEXT = 160 };

typedef struct gpu_functions_options {
    const char *output, *tables, *only;
    size_t most; /* bytes of tables */
    double limit;
    int tiny, one_process;
} gpu_functions_options;

/* What an item ended with. */
typedef struct gpu_outcome {
    int is_asked;
    gpu_status status;
    double seconds;
    char text[GPU_TEXT];
} gpu_outcome;

typedef struct gpu_functions_session {
    gpu_functions_options options;
    gpu_extent extent;
    gpu_device device;
    char date[24], refused[GPU_TEXT];
    int is_met, trouble, is_unwritable;
    gpu_outcome digests_of[GPU_OPERATIONS], distances_of[GPU_FUNCTIONS], table_of[GPU_MOST_TABLES];
    gpu_binade digests[GPU_OPERATIONS][GPU_BINADES];
    gpu_distance distances[GPU_FUNCTIONS][GPU_BINADES];
    struct {
        size_t offset, bytes;
        uint64_t digest; /* of mpsim_mix(operand, result) */
    } table[GPU_MOST_TABLES];
    size_t used, written;
    uint8_t *packed; /* shared, options.most bytes */
} gpu_functions_session;

/* record.c: the record, JSON of schema mpsim.gpu-functions/1. 0, or -1. */
int gpu_functions_write(FILE *to, const gpu_functions_session *s);

/* tables.c: results of table i, packed behind the others. */
void gpu_functions_keep(gpu_functions_session *s, size_t i);
