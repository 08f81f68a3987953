/* vectors.h -- recorded outputs of real tensor cores.
 *
 * An npz for each GPU, whose arrays <type>.a and <type>.b [n, K], <type>.c [n] and <type>.d_fp32,
 * <type>.d_fp16 [n] hold the operands and results of n dot products as binary32 numbers. They are
 * no part of the project: they are read from the folder that MPSIM_HWVECTORS names, else from
 * ../shared/hwvectors beside the source tree. */
#pragma once

#include <mpsim/format.h>
#include <stddef.h>
#include <stdint.h>

/* recorded_folder -- the folder, or NULL and a sentence in *why if there is none. */
const char *recorded_folder(const char **why);

/* One set: the rows of one array of results. */
typedef struct recorded_set {
    mpsim_format operand; /* fp16, bf16, tf32, e4m3, e5m2 */
    size_t n, k;
    void *a, *b; /* n rows of k codes of `operand`                                   */
    float *c;    /* not rounded, also for fp16 results                               */
    float *d;    /* d_fp16: the value of an fp16 number                              */
} recorded_set;

/* recorded_load -- the set `type`.`result` of file `gpu`.npz, e.g. ("h100", "e4m3", "d_fp32").
 * NULL, or a sentence on what is wrong: a missing array, a wrong shape, an operand that is no
 * number of its format. */
const char *recorded_load(recorded_set *v, const char *gpu, const char *type, const char *result);
void recorded_clear(recorded_set *v);
