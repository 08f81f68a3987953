/* ranks.h -- mpsim stat by several processes (cli/world.h): each is a shard, the first puts the parts together. */
#pragma once

#include "../cli/options.h"

/* cmd_stat_ranks -- cmd_stat: the same options, report, messages and exit code. */
int cmd_stat_ranks(const command *self, int argc, char **argv);
