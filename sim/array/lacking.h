/* lacking.h -- what is done where memory is lacking. The program and the library each have a function of their own for it
 * (sim/process/host.c, sim/tracelib/host.c). */
#pragma once

/* host_no_memory -- the program ends here with one line and exit code 4. In a library it returns 4 (EXIT_IO), and the call
 * fails whatever is done then, so that callers without a way to say so may go on with less. Any thread. */
int host_no_memory(void);
