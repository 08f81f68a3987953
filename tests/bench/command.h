/* command.h -- commands of the program, run inside a benchmark. */
#ifndef MPSIM_TESTS_BENCH_COMMAND_H
#define MPSIM_TESTS_BENCH_COMMAND_H

/* bench_command -- run "stat -f fp16 FILE" and return its exit code; no word has a blank. */
int bench_command(const char *line);

#endif
