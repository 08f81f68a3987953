/* version.c -- see mpsim/mpsim.h. */
#include "config.h"

#include <mpsim/mpsim.h>

const char *mpsim_version(void)
{
    return PACKAGE_VERSION;
}
