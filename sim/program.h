/* program.h -- what the programs have in common: mpsim, and mpsim-mpi, which has few of its commands. */
#pragma once

#include "cli/help.h"

/* program_main -- finds the command that the words name in the program's table, and runs it; the exit code of all
 * processes. */
int program_main(int argc, char **argv, const program *p);
