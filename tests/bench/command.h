/* command.h -- commands of the program, run inside a benchmark. */
#pragma once

/* bench_command -- run "stat -f fp16 FILE" and return its exit code; no word has a blank. */
int bench_command(const char *line);
