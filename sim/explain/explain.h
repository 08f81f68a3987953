/* explain.h -- the report of mpsim explain. */
#pragma once

#include "../record/record.h"

extern const report_kind explain_kind;
