/* environment.h -- what the program was started in and must not depend on, or obeys.
 *
 * The program sets the default floating-point environment before any thread starts. Functions of the library that
 * need it say so; the others give the same bits under any rounding mode and flushing (tests/base/t-env.c). */
#pragma once

/* environment_floats -- the default floating-point environment, whatever was left by who started the
 * program or by a library that was loaded into it: round to nearest, subnormals kept, no traps. To be
 * called before any thread is, since a thread begins with that of the one that starts it. */
void environment_floats(void);

/* environment_threads -- how many threads there are where no option says it: OMP_NUM_THREADS, as programs
 * with OpenMP read it; unset or no number: what parallel_init makes of 0. MPSIM_TEST_EAGER: parallel_eager. */
void environment_threads(void);

/* environment_screen -- how wide texts are (text/screen.h), where standard output is a terminal: as COLUMNS says, else as the terminal
 * says. A terminal without a size is as wide as a file. */
void environment_screen(void);

/* environment_isa -- use the instruction set that MPSIM_ISA names. 0, also where it is unset or empty,
 * or EXIT_USAGE after a message if it is unknown or the machine lacks it. */
int environment_isa(void);
