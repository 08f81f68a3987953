/* speed.h -- how fast the kernels are on a device, as shares of what the device can do: of the
 * bytes a second of its own copy, of the operations a second of cuBLAS. What is measured is
 * compared with the CPU first. */
#ifndef MPSIM_GPU_SPEED_SPEED_H
#define MPSIM_GPU_SPEED_SPEED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_speed_row {
    char name[64];
    double bytes, flops; /* read and written, done in a run; one of them is 0 */
    double seconds;      /* the median of the runs; 0: not measured */
    double share;        /* of the copy's bytes a second, or of cuBLAS's operations; 0: none */
    int checked;         /* 1: what is compared is equal in every bit, 0: it is not, -1: none */
    uint64_t compared;   /* all results, with the copy's source, or with those of the first path of
                            the same matrix product; 0: not done */
    uint64_t differing;  /* those that are not equal */
    double difference;   /* cuBLAS only: largest |its - ours| / largest |ours|; else 0 */
    char text[128];      /* "cuBLAS not found", where it is, what was compared */
} gpu_speed_row;

enum { GPU_SPEED_ROWS = 32 };

typedef struct gpu_speed_plan {
    int sm;             /* compute capability, 90 */
    size_t elements;    /* of a tensor; 2^28 binary32 are 1 GiB: far more than an L2 cache; a
                           multiple of 8; 0: no tensors */
    size_t order;       /* of the matrices: 4096; a multiple of 128; 0: no products */
    int before, runs;   /* runs that do not count, 3; runs, at most 100: 20 */
    const char *cublas; /* name of the library, or NULL: as cublas.h */
} gpu_speed_plan;

/* gpu_speed_run -- rows[0 .. *count); at most `max` of them. 0, or -1 with one line in `why` if a
 * CUDA call failed. A result that differs from the CPU's is no failure here: its row says so. */
int gpu_speed_run(gpu_speed_row *rows, size_t max, size_t *count, const gpu_speed_plan *plan,
                  char *why, size_t size);

/* gpu_speed_table -- the rows as text for people; record.c writes them as JSON. */
void gpu_speed_table(FILE *to, const gpu_speed_row *rows, size_t count);

#ifdef __cplusplus
}
#endif

#endif
