/* progress.h -- how far a command is, on standard error: "1.2 GiB of 16.0 GiB, 7 %, 2.1 GiB a second, 7 s left".
 *
 * A line that is written over, on a terminal, from the second on that the work takes, and erased at its end; with
 * --progress=always elsewhere, too, a new line each time. What is counted are the bytes read of the files that
 * input_open found, or what a command says it does. Nothing of a report depends on it.
 *
 * No thread and no timer: bytes are counted where files are read (trace_watch_reads). */
#pragma once

#include <stdint.h>

/* progress_option -- "auto", "always" or "never". 0, or -1 for any other word. */
int progress_option(const char *word);

/* progress_expect -- bytes of files that will be read, more of them. progress_steps -- work that is no reading:
 * `total` things, called as `what` says ("steps"). Both begin the clock, if it does not run. */
void progress_expect(uint64_t bytes);
void progress_steps(const char *what, uint64_t total);

/* progress_again -- so many of the bytes that are expected will be read once more; any thread. */
void progress_again(uint64_t bytes);

/* progress_add -- n more are done; any thread. progress_reach -- so many are, if not more. */
void progress_add(uint64_t n);
void progress_reach(uint64_t done);

/* progress_say -- what is being done, in front of the numbers; one thread. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void progress_say(const char *words, ...);

/* progress_hide -- erase the line; it comes back. progress_end -- erase it; nothing is counted any more. A signal that
 * ends the program erases it, too. */
void progress_hide(void);
void progress_end(void);
