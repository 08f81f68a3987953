/* temporary.h -- files and folders that are there for a while: SIGINT, SIGTERM and SIGHUP remove them.
 *
 * Then the program ends by that signal, as it would without them. A signal that comes while one is
 * made, renamed or removed waits until that is done, in whichever thread it comes. Everything here is
 * for one thread, but for the signals.
 *
 * Signals are not masked, so the handler may run in any thread. The end for want of memory removes the files, too. */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/types.h>

/* Belongs to the caller, and its path, too, until it is kept or removed. */
typedef struct temporary {
    struct temporary *next; /* older */
    const char *path;       /* NULL: nothing is there */
    int at;                 /* an open folder in which the path begins, as openat has it */
    int is_folder;
} temporary;

/* trace_temporary_watch -- from now on the signals are caught, but for those that are ignored (nohup). */
void trace_temporary_watch(void);
/* trace_temporary_ask -- the next of the signals is the caller's: *number becomes its number, and nothing is
 * removed. The one after it ends the program. NULL takes that back. */
void trace_temporary_ask(atomic_int *number);
/* trace_temporary_last -- what the handler calls before one of the signals ends the program, after all is removed; only calls that
 * a handler may make. NULL: nothing. */
void trace_temporary_last(void (*words)(int number));

/* trace_temporary_create -- a file that nobody has, to be written: a descriptor, or -1 and errno. The path begins in the open folder
 * `at` (AT_FDCWD: where the program is), which stays open as long as it is there. The mode is left to the umask, as for any
 * file that a program creates. */
int trace_temporary_create(temporary *t, int at, const char *path);
/* trace_temporary_folder -- the same for a folder, whose name ends in XXXXXX. 0, or -1 and errno. */
int trace_temporary_folder(temporary *t, char *path);
/* trace_temporary_make -- the same for a folder that stays, if trace_temporary_stay is called once there is something in it. */
int trace_temporary_make(temporary *t, const char *path);
void trace_temporary_stay(temporary *t);
/* trace_temporary_expect -- a file that a program in a temporary folder may write. */
void trace_temporary_expect(temporary *t, const char *path);
/* trace_temporary_keep -- rename it to what it shall be, in the same open folder. 0; or -1 and errno, and it is temporary still. */
int trace_temporary_keep(temporary *t, const char *path);
/* trace_temporary_remove -- remove it if it is there; it may have been kept. */
void trace_temporary_remove(temporary *t);

/* trace_temporary_abandon -- remove all of it, and end the program that writes there: this one ends, too. */
void trace_temporary_abandon(void);

/* trace_temporary_own_folder -- make a folder in TMPDIR, once, where files without a name (unnamed.h) are made from now on: its path, or NULL and errno, and
 * nothing has changed. It is removed with the rest of what is temporary, or by trace_temporary_end, at the end of the program. */
const char *trace_temporary_own_folder(void);
void trace_temporary_end(void);

/* trace_temporary_spawn -- start a program that writes temporary files, in a group of processes of its own,
 * which a signal kills first; one at a time. As posix_spawnp. */
int trace_temporary_spawn(pid_t *child, const posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes,
                          char *const argv[]);
/* trace_temporary_wait -- wait for it. As waitpid. */
pid_t trace_temporary_wait(pid_t child, int *status);
