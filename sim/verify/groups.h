/* groups.h -- the table of groups. A group that is not built is there, too, and says why. */
#ifndef MPSIM_SIM_VERIFY_GROUPS_H
#define MPSIM_SIM_VERIFY_GROUPS_H

#include "verify.h"

extern const verify_group verify_groups[]; /* ends with a NULL name */

#endif
