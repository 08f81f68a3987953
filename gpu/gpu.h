/* gpu.h -- the cross-check with a CUDA device, as plain C for the programs that run it.
 *
 * A check runs one operation of the hardware and the reference (scalar.h of lib's modules, compiled for the
 * device) on the same inputs and compares every bit of the results. Nothing here prints or exits;
 * nothing changes a setting of the device. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_device {
    char name[128];       /* "NVIDIA H200"                           */
    int sm;               /* compute capability, 90                  */
    int driver;           /* CUDA version of the driver, 13000       */
    int runtime;          /* CUDA version of the toolkit             */
    uint64_t memory;      /* bytes                                   */
    char driver_name[64]; /* "580.65.06", or ""                  */
} gpu_device;

/* gpu_open -- use the current device of the thread: in a program the first that CUDA_VISIBLE_DEVICES names. 0, or -1 with one line in `why`: no driver, no device, or a
 * device that the compiled code does not run on. */
int gpu_open(gpu_device *d, char *why, size_t size);

/* gpu_is_lost -- 1: a kernel has faulted, and no CUDA call of this process succeeds any more. Waits for the
 * device. */
int gpu_is_lost(void);

typedef enum gpu_status {
    GPU_DONE,
    GPU_SKIPPED, /* this device lacks the instruction, or it has no model: `text` says  */
    GPU_FAILED   /* a CUDA call failed, or the layout of operands is wrong: `text` says */
} gpu_status;

/* Digests are sums modulo 2^64 of a mixed (index, output), see lib/digest/scalar.h: of any order of outputs the
 * same. `all` is that of all outputs; `sample` that of the outputs whose index is below sample_end
 * and a multiple of sample_step, so that a CPU can repeat it; `large` the same with large_step. */
/* Mismatches that are kept whole, so that a model can be corrected without the device. Inputs follow
 * from the index. */
enum { GPU_KEPT = 64 };

typedef struct gpu_result {
    gpu_status status;
    uint64_t count, mismatches;
    uint64_t digest_all, digest_sample, digest_large; /* of the hardware's outputs                */
    uint64_t sample_end, sample_step, large_step;
    uint64_t first; /* index of the first mismatch                                            */
    uint32_t kept;  /* some mismatches, in no order: index, and the hardware's output          */
    uint64_t kept_index[GPU_KEPT];
    uint32_t kept_output[GPU_KEPT];
    int question;    /* 1: mismatches answer a question (which bits are below a tf32?)         */
    char text[1024]; /* first mismatch: inputs, hardware's and reference's result in hex and %a */
    double seconds;
} gpu_result;

/* The checks, in order: name ("convert fp16", "mul bf16", "mma.k16 bf16-fp32 random"). NULL past the
 * end; the name is valid until the fourth call after this one. `quick` is how much to run. */
enum {
    GPU_RUN_FULL,
    GPU_RUN_QUICK, /* a thousandth of the inputs */
    GPU_RUN_TINY   /* what a CPU repeats in a second or two, for tests */
};
const char *gpu_check_name(size_t i);
void gpu_check_run(size_t i, int quick, gpu_result *r);

/* Probes: single instructions whose answer decides what is not known about a model. Up to
 * GPU_PROBE_K products; the codes are of the operands' formats. */
enum { GPU_PROBE_K = 32 };

typedef struct gpu_probe {
    char id[24];                   /* "P2d", see probes.c                                */
    const char *instruction;       /* "mma.m16n8k16"                                      */
    const char *operands, *result; /* names of formats                               */
    const char *question;
    const char *meaning; /* what which answer says                              */
    int k;               /* products                                            */
    uint32_t a[GPU_PROBE_K], b[GPU_PROBE_K], c;
    gpu_status status;
    uint32_t d;     /* the hardware's answer                               */
    char text[160]; /* why there is no answer, or ""                        */
} gpu_probe;

size_t gpu_probe_count(void);
/* gpu_probe_run -- fill *p with probe i and the device's answer. */
void gpu_probe_run(size_t i, gpu_probe *p);
/* gpu_probe_agrees -- whether the answer is that of the model row of a device of compute capability
 * sm: 1, 0, or -1 without answer or row. *reference is what the row says. */
int gpu_probe_agrees(const gpu_probe *p, size_t i, int sm, uint32_t *reference);

/* Orders: 32 numbers are added to one place in memory; from the sums follows the order of the additions, see
 * checks/orders.h. */
enum { GPU_ORDER_LANES = 32, GPU_ORDER_RESULTS = 512 };

typedef struct gpu_order {
    char name[64];      /* "red.global.add.f32, a warp"                                              */
    const char *format; /* of numbers and sums                                                       */
    int sums, rounds;   /* how many sums; how often each was asked for                               */
    int changed;        /* sums that were not the same each time                                     */
    int uneven;         /* sums that were not the same in all elements of a pair or vector           */
    gpu_status status;
    uint32_t result[GPU_ORDER_RESULTS]; /* codes: sum i, of the first round and the first element    */
    char text[160];                     /* why there is no answer, or ""                             */
} gpu_order;

size_t gpu_order_count(void);
/* gpu_order_list -- *o without an answer: 1, or 0 past the end. */
int gpu_order_list(size_t i, gpu_order *o);
/* gpu_order_run -- fill *o with order i and the device's answer. */
void gpu_order_run(size_t i, gpu_order *o);
/* gpu_order_fits -- the next way of adding that gives all sums of *o, NULL: there is no further one; *next: at first 0. */
const char *gpu_order_fits(size_t i, const gpu_order *o, size_t *next);
/* gpu_order_is_wrong -- 1: one thread adds, and not in the order of its program. */
int gpu_order_is_wrong(size_t i, const gpu_order *o);
/* gpu_order_chain -- 1: the sums name a chain of lanes, one after the other, and all sums are this chain's. */
int gpu_order_chain(size_t i, const gpu_order *o, int lanes[GPU_ORDER_LANES]);

#ifdef __cplusplus
}
#endif
