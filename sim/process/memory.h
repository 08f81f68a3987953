/* memory.h -- libraries that take no memory for granted, or end the program: out of memory is exit code 4.
 *
 * Commands ask for memory by need_memory (sim/array/need.h), which ends the program with one line; jansson's
 * allocator does the same, since jansson would leave members out of a report. Readers of files, lib/ and what
 * libmpsim-trace shares return an error. */
#pragma once

/* memory_watch -- once, by main. Where there is no memory that a command needs (sim/array/need.h), or that jansson needs, which
 * would leave a member out in silence or call it a syntax error, the program ends with a message. Where the threads'
 * library calls exit() for want of memory or threads, which it has said then, the code is the program's own. Temporary
 * files are removed in both cases. */
void memory_watch(void);
/* memory_done -- by main, before it returns. */
void memory_done(void);
