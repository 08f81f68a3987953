/* manual.h -- help as manual pages, in the macros of man(7), on standard output (help.h). */
#pragma once

#include "help.h"

void manual_command(const command *c, const option_row *table, const option_row own[HELP_OWN], const char *more);
void manual_program(const program *p);
