/* host.h -- who runs the work and gets its messages: the program (host.c), or a caller of the library (sim/tracelib/host.c). What
 * both share, stat and what it needs, prints nothing and ends nothing itself, but calls these. Each of the two has
 * functions of its own for them, and a link has one of the two files. They are for the thread that began the
 * work. */
#pragma once

#include "../array/lacking.h"

#include <stdatomic.h>
#include <stdint.h>

/* Exit codes of the program. */
enum {
    EXIT_OK = 0,
    EXIT_CHECK = 1,  /* a check failed                 */
    EXIT_USAGE = 2,  /* the command line is wrong      */
    EXIT_DATA = 3,   /* bad input data                 */
    EXIT_IO = 4,     /* input, output or out of memory */
    EXIT_PARTIAL = 5 /* some inputs failed             */
};

/* fail -- tell why the work fails, one line made safe by escape_text, and return the exit code: the program writes
 * "mpsim: MESSAGE" on stderr. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int fail(int exit_code, const char *message, ...);

/* note -- the same of what is not an error. The program: silent after note_quiet. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void note(const char *message, ...);

/* note_quiet -- no notes, and no progress: in the program alone. */
void note_quiet(void);

/* host_warn -- a note that the work is not to be without, whoever wants no notes. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void host_warn(const char *message, ...);

/* host_expect -- bytes of files that will be read, more of them. host_again -- some of them once more: any thread. host_reach --
 * so many are done, if not more. */
void host_expect(uint64_t bytes);
void host_again(uint64_t bytes);
void host_reach(uint64_t done);

/* host_worked -- so many bytes of elements are done, where host_reach does not come for long: any thread. */
void host_worked(uint64_t bytes);

/* host_ask -- from now on *number becomes other than 0 once the work is to end, instead of what happens then otherwise: a signal's
 * number. NULL takes that back. */
void host_ask(atomic_int *number);

/* host_processes -- that do the work together (world.h). */
int host_processes(void);
