/* diff.h -- the reports of mpsim diff. */
#pragma once

#include "../record/record.h"

extern const report_kind diff_kind, diff_logprob_kind; /* diff_logprob_kind: of --logprob */
