/* cmd.h -- the commands; one cmd_*.c each. argv[0] is the command's name. */
#ifndef MPSIM_SIM_CMD_H
#define MPSIM_SIM_CMD_H

int cmd_formats(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_cast(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_plot(int argc, char **argv);

#endif
