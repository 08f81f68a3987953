/* program.h -- what the programs have in common: mpsim, and mpsim-mpi, which has few of its commands. */
#pragma once

#include "cli/options.h"

/* program_main -- finds the command that the words name in a table that ends with a NULL name, and runs it; the exit
 * code of all processes. `usage` is how the program is called, for its help, which `more` ends. */
int program_main(int argc, char **argv, const command *commands, const char *usage, const char *more);
