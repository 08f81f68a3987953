/* record.h -- what a device answered, as a file: JSON of schema mpsim.gpu/1, see
 * data/gpu/keys.tsv. */
#pragma once

#include "../../gpu.h"
#include "../speed/speed.h"
#include "training.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_record {
    gpu_device device;
    char date[32]; /* UTC, "2026-11-20T12:00:00Z" */
    int quick;     /* GPU_RUN_FULL, ... */
    size_t checks, probes, orders, trainings, speeds;
    const gpu_result *result; /* of check i */
    const gpu_probe *probe;
    const gpu_order *order;
    const gpu_training *training;
    const gpu_speed_row *speed;
} gpu_record;

/* gpu_record_write -- 0, or -1 if something could not be written. */
int gpu_record_write(FILE *to, const gpu_record *r);

#ifdef __cplusplus
}
#endif
