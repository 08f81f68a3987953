/* speed.h -- how fast the kernels are on a device, as shares of what the device can do: of the
 * bytes a second of its own copy, of the operations a second of cuBLAS. A table of rows, each of which can
 * be measured in a process of its own, so that one that hangs or spoils the device's context costs no
 * other. What is measured is compared with the CPU, too. */
#pragma once

#include "../../gpu.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_speed_row {
    char name[64];
    char group[32];      /* the kernel: "copy", "wgmma fp16"; after a fault the others of it are not worth trying */
    gpu_status status;   /* SKIPPED: "not reached", or what is missing; FAILED: a call failed; `text` says */
    double bytes, flops; /* read and written, done in a run; one of them is 0 */
    double seconds;      /* the median of the runs; 0: not measured */
    double share;        /* of the fastest copy's bytes a second, or of the fastest of NVIDIA's libraries
                            for these operands, of the rows before and this; 0: none */
    int checked;         /* 1: what is compared is equal in every bit, 0: it is not, -1: none */
    uint64_t compared;   /* all results, with the copy's source, or with those of the first path of
                            the same matrix product; 0: not done */
    uint64_t differing;  /* those that are not equal */
    double difference;   /* libraries only: of some elements the largest |its - model's| / largest |model's|;
                            infinite: no number; else 0 */
    unsigned sm_clock, memory_clock; /* MHz, right behind the runs that count, the device still busy; */
    unsigned power, temperature;     /* mW, degrees Celsius; all 0: not known (no NVML)               */
    uint64_t throttle;               /* NVML's mask of what holds the clocks down                     */
    char throttle_text[128];         /* in words: "power cap, thermal (hardware)"; "": nothing        */
    char text[192];                  /* "cuBLAS not found", where it is, what was compared            */
} gpu_speed_row;

enum { GPU_SPEED_ROWS = 128 };

typedef struct gpu_speed_plan {
    int sm;                        /* compute capability, 90 */
    size_t elements;               /* of a tensor; 2^28 binary32 are 1 GiB: far more than an L2 cache; a
                           multiple of 1024, and of 2^20 if it is more; 0: no tensors */
    size_t order;                  /* of the matrices: 4096; a multiple of 128; 0: no products */
    int before, runs;              /* runs that do not count, 3 (0: no warming up either); runs, at most 100: 20 */
    const char *cublas, *cublaslt; /* names of the libraries, or NULL: as library.h; */
    const char *nvml;              /* or NULL: libnvidia-ml.so.1                     */
} gpu_speed_plan;

/* gpu_speed_list -- the rows of a plan, none of them measured: status SKIPPED, "not reached". Touches no
 * device. Their number, at most `max`; 0 if the plan is out of range. */
size_t gpu_speed_list(gpu_speed_row *rows, size_t max, const gpu_speed_plan *plan);

/* gpu_speed_measure -- measure row i of the `count` that gpu_speed_list gave for the same plan. Rows before it
 * are read: those that are measured are what shares refer to, and a path of a product is compared with the
 * first path, which is computed again. 0, or -1 where the row FAILED. A result that differs from the CPU's
 * is no failure here: its row says so. Memory is given back. */
int gpu_speed_measure(gpu_speed_row *rows, size_t count, size_t i, const gpu_speed_plan *plan);

#ifdef __cplusplus
}
#endif
