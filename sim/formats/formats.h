/* formats.h -- the reports of mpsim formats. */
#pragma once

#include "../record/record.h"

extern const report_kind formats_kind, formats_check_kind;
