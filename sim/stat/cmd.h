/* cmd.h -- mpsim stat, whoever does its work. */
#pragma once

#include "../commands.h"
#include "form.h"

/* What the options ask for, of `n` operands, to where they say: an exit code. */
typedef int stat_work(const stat_settings *settings, const stat_form *form, char **operands, int n);

/* stat_command -- parse a command line, and have `files` do the work, unless it is that of a shard. */
int stat_command(const command *self, int argc, char **argv, stat_work *files);

/* stat_files -- of one process. */
stat_work stat_files;
