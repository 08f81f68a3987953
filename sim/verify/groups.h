/* groups.h -- the table of groups. A group that is not built is there, too, and says why. */
#pragma once

#include "verify.h"

extern const verify_group verify_groups[]; /* ends with a NULL name */
