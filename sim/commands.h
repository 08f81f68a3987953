/* commands.h -- the table of commands (commands.c), and their functions; each in its folder's cmd.c. argv[0] is
 * the command's name. */
#pragma once

#include "cli/help.h"

extern const command commands[]; /* both end with a NULL name */
extern const help_topic topics[];

int cmd_formats(const command *self, int argc, char **argv);
int cmd_info(const command *self, int argc, char **argv);
int cmd_calc(const command *self, int argc, char **argv);
int cmd_cast(const command *self, int argc, char **argv);
int cmd_stat(const command *self, int argc, char **argv);
int cmd_diff(const command *self, int argc, char **argv);
int cmd_merge(const command *self, int argc, char **argv);
int cmd_dot(const command *self, int argc, char **argv);
int cmd_attention(const command *self, int argc, char **argv);
int cmd_emulate(const command *self, int argc, char **argv);
int cmd_judge(const command *self, int argc, char **argv);
int cmd_mismatch(const command *self, int argc, char **argv);
int cmd_replay(const command *self, int argc, char **argv);
int cmd_advise(const command *self, int argc, char **argv);
int cmd_report(const command *self, int argc, char **argv);
int cmd_memory(const command *self, int argc, char **argv);
int cmd_scaler(const command *self, int argc, char **argv);
int cmd_log(const command *self, int argc, char **argv);
int cmd_explain(const command *self, int argc, char **argv);
int cmd_train(const command *self, int argc, char **argv);
int cmd_plot(const command *self, int argc, char **argv);
int cmd_verify(const command *self, int argc, char **argv);
