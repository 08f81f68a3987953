/* mmset.h -- operands of a matrix product of fp8 by a generator, from a few words: see dotset.h. */
#pragma once

#include "dotcases.h"

#include <mpsim/scaledmm.h>

typedef struct mm_set {
    size_t m, n, k;
    mpsim_format fa, fb;
    int kind; /* sim/verify/kinds.h */
    uint64_t seed;
    unsigned char *a, *b; /* m x k and n x k codes */
} mm_set;

/* mm_set_parse -- M N K FORMAT_A FORMAT_B KIND SEED: NULL, or what is wrong. */
const char *mm_set_parse(mm_set *s, char *const *words);
void mm_set_fill(mm_set *s);
void mm_set_clear(mm_set *s);

/* mm_set_run -- the product's codes; scale_result: a number, or NULL. */
mpsim_status mm_set_run(const mm_set *s, const mpsim_scaled_mm *p, float scale_a, float scale_b,
                        const char *scale_result, void *d);
