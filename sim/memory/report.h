/* report.h -- what mpsim memory writes. */
#pragma once

#include "../record/cells.h"
#include "count.h"

#include <stdio.h>

/* A model under a policy. */
typedef struct memory_case {
    const char *policy;
    uint64_t from; /* the step that the plan is in force from, of a schedule */
    int scheduled;
    char plan[1024];
    optimizer_row optimizer;
    ledger bytes;
    char unmatched[512]; /* patterns of the policy that fit no layer */
    uint64_t fp32;       /* what all takes under the policy fp32     */
} memory_case;

typedef struct memory_report {
    const shape *shape;
    const shape_transformer *transformer; /* of the activations, or NULL */
    const count_setting *how;
    const char *source; /* "--params", the files, ... */
    const memory_case *cases;
    size_t count;
} memory_report;

void memory_print(const memory_report *r, report_style style, FILE *to);
