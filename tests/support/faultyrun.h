/* faultyrun.h -- a small training recorded twice, the second time with something gone wrong in it.
 *
 * A perceptron of three layers and binary32 throughout, SGD with momentum, four steps. What goes wrong
 * happens to one tensor while it is computed, and the training goes on from there, so that all that
 * depends on it differs, too. The tensors are recorded as mpsim-trace/1 says. */
#pragma once

#include <stdint.h>

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_FLIP,      /* a bit of an element                            */
    FAULT_ROUND,     /* to bf16, fp16, e4m3 or e5m2, to nearest        */
    FAULT_SCALE,     /* by a power of two                              */
    FAULT_RATIO,     /* by something else: 1/3, 1.5, 0.1, ...          */
    FAULT_ORDER,     /* sums from the other end                        */
    FAULT_SKIP,      /* no update of one weight, or of all             */
    FAULT_TRANSPOSE, /* of a square tensor                             */
    FAULT_PERMUTE,   /* rows, or all elements                          */
    FAULT_ZERO,      /* never written: all of it, or the tail          */
    FAULT_NONFINITE, /* an element becomes NaN or an infinity          */
    FAULT_SIGN,      /* of all elements                                */
    FAULT_CLIP,      /* to [-c, c], which some elements exceed         */
    FAULT_SHIFT,     /* element i stands where i + 1 belongs           */
    FAULT_UNRELATED, /* other numbers of the same size                 */
    FAULT_KINDS
} fault_kind;

typedef struct fault {
    fault_kind kind;
    uint64_t seed;
    /* filled in: where it happened first */
    int step;
    char tensor[32];    /* "wgrad:fc2.weight" */
    double amount;      /* FAULT_SCALE, FAULT_RATIO: the factor */
    const char *format; /* FAULT_ROUND */
} fault;

/* What a recording looks like, which is no fault. */
typedef struct recorded_as {
    const char *prefix; /* in front of the names of parameters: "module."             */
    int flat;           /* DIR/run-stepN.safetensors, not DIR/step_N/rank_00000...     */
    int reversed;       /* tensors in the file from the last to the first             */
    int wide;           /* binary64, which holds the same numbers                     */
} recorded_as;

/* faulty_run -- record the training `model` (a seed: weights, data) in a new directory. *f may be NULL:
 * nothing goes wrong. */
void faulty_run(const char *directory, uint64_t model, fault *f, const recorded_as *as);
