/* pair.h -- one dot product of numbers of the command line, with every step of it. */
#pragma once

#include "../record/record.h"
#include "models.h"

typedef struct pair_options {
    const char *a, *b, *c; /* c may be NULL: +0 */
    uint64_t seed;         /* of stochastic modes */
    int steps;
    mpsim_round_mode mode; /* of operands that are no numbers of the format */
    const mpsim_format *fa, *fb;
    const char *path; /* of the report */
} pair_options;

/* dot_pair_report -- the results of all models. 0, or an exit code after a message. */
int dot_pair_report(const pair_options *o, const model_list *models, report_style style);

extern const report_kind dot_pair_kind;
