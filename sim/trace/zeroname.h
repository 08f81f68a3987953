/* zeroname.h -- names of the files of a ZeRO checkpoint. */
#pragma once

#include <stdint.h>

typedef struct zero_name {
    int optimizer; /* optimizer states, else model states */
    int expert;
    int other;                 /* optimizer states without ZeRO: mp_rank_00_optim_states.pt */
    uint64_t rank, model_rank; /* data-parallel (0 of stages 1 and 2), model-parallel */
} zero_name;

/* trace_zero_name_parse -- 0, or -1: it is no such name. */
int trace_zero_name_parse(const char *file, zero_name *name);
