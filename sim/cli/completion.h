/* completion.h -- help as scripts that complete words in shells, on standard output (help.h). A program's script holds
 * those of its commands, which are asked one after the other: what a command prints stands where its part belongs. */
#pragma once

#include "help.h"

void completion_command(help_form form, const command *c, const option_row *table, const option_row own[HELP_OWN]);
void completion_program(help_form form, const program *p);
