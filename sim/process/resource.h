/* resource.h -- the folders of what comes with the program: policies, templates of figures. */
#pragma once

#include <stddef.h>

typedef enum resource { RESOURCE_POLICIES, RESOURCE_PLOTS, RESOURCES } resource;

enum { RESOURCE_PATH = 4096 };

/* resource_folder -- the i-th folder to look in, which need not be there: the one that a variable of the environment (MPSIM_POLICIES,
 * MPSIM_PLOTS) names and no other; or those beside the program: in the source tree, in a build folder of it, in an
 * installation that was moved; and last where they were to be installed. NULL after the last; the text may be `folder`. */
const char *resource_folder(resource what, size_t i, char folder[RESOURCE_PATH]);
