/* tolerance.h -- the largest error that a correct kernel of a row can have (mpsim/judge.h). */
#pragma once

#include "../cli/reportoptions.h"
#include "judge.h"

mpsim_status judge_tolerance_run(mpsim_judge_tolerance *t, const char *row, const mpsim_format *from,
                                 const mpsim_format *to, size_t depth, char *error, size_t size);

/* judge_tolerance_command -- mpsim judge --tolerance. */
int judge_tolerance_command(const char *row, const mpsim_format *from, const mpsim_format *to, size_t depth,
                            const report_options *form);
