/* temporary.c -- see temporary.h. */
#include "temporary.h"

#include "unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

/* The list and the child change only between enter and leave, `busy` counts who is there. A handler tells its
 * signal first and looks at `busy` then; enter and leave do it the other way round: one of them sees the other,
 * whatever their threads, and ends the program while nothing changes. */
static atomic_int busy, stop;
static temporary *newest;
static pid_t running; /* a child, or 0 */
static atomic_int *_Atomic asked;
static void (*_Atomic last_words)(int number);

/* ---- the end: nothing here but calls that a signal's handler may make ---- */

/* Whether a folder is still there: a child of the child may have been about to write. */
static int remove_all(void)
{
    int left = 0;
    for (const temporary *t = newest; t; t = t->next)
        if (!t->is_folder)
            (void)unlinkat(t->at, t->path, 0);
        else if (rmdir(t->path) != 0 && errno != ENOENT)
            left = 1;
    return left;
}

static void clean(void)
{
    if (running) {
        kill(-running, SIGKILL);
        while (waitpid(running, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    for (int i = 0; remove_all() && i < 50; i++)
        (void)poll(NULL, 0, 10);
}

static void end(int number)
{
    void (*words)(int number) = atomic_load(&last_words);
    clean();
    if (words)
        words(number);
    signal(number, SIG_DFL);
    raise(number);
    _exit(128 + number);
}

static void on_signal(int number)
{
    const int error_number = errno;
    atomic_int *mine = atomic_exchange(&asked, NULL);
    if (mine) {
        *mine = number;
    } else {
        atomic_store(&stop, number);
        if (!atomic_load(&busy))
            end(number);
    }
    errno = error_number;
}

static void leave(void)
{
    const int error_number = errno;
    if (atomic_fetch_sub(&busy, 1) == 1 && atomic_load(&stop))
        end(atomic_load(&stop));
    errno = error_number;
}

static void enter(void)
{
    atomic_fetch_add(&busy, 1);
    while (atomic_load(&stop)) { /* the last that leaves ends the program */
        leave();
        (void)poll(NULL, 0, 1000);
        atomic_fetch_add(&busy, 1);
    }
}

void trace_temporary_watch(void)
{
    struct sigaction a, old;
    trace_unnamed_guard(enter, leave);
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = (int)(SA_RESTART | SA_NODEFER); /* NODEFER: raise in the handler is at once */
    sigemptyset(&a.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &a, NULL);
}

void trace_temporary_ask(atomic_int *number)
{
    atomic_store(&asked, number);
}

void trace_temporary_last(void (*words)(int number))
{
    atomic_store(&last_words, words);
}

/* ---- files and folders ---- */

static void add(temporary *t, int at, const char *path, int is_folder)
{
    t->path = path;
    t->at = at;
    t->is_folder = is_folder;
    t->next = newest;
    newest = t;
}

static void forget(temporary *t)
{
    temporary **at = &newest;
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    t->path = NULL;
}

int trace_temporary_create(temporary *t, int at, const char *path)
{
    enter();
    const int fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0)
        add(t, at, path, 0);
    leave();
    return fd;
}

int trace_temporary_folder(temporary *t, char *path)
{
    enter();
    const int made = mkdtemp(path) != NULL;
    if (made)
        add(t, AT_FDCWD, path, 1);
    leave();
    return made ? 0 : -1;
}

int trace_temporary_make(temporary *t, const char *path)
{
    enter();
    const int bad = mkdir(path, 0777);
    if (!bad)
        add(t, AT_FDCWD, path, 1);
    leave();
    return bad;
}

void trace_temporary_stay(temporary *t)
{
    if (!t->path)
        return;
    enter();
    forget(t);
    leave();
}

void trace_temporary_expect(temporary *t, const char *path)
{
    enter();
    add(t, AT_FDCWD, path, 0);
    leave();
}

int trace_temporary_keep(temporary *t, const char *path)
{
    enter();
    const int bad = renameat(t->at, t->path, t->at, path);
    if (!bad)
        forget(t);
    leave();
    return bad;
}

void trace_temporary_remove(temporary *t)
{
    if (!t->path)
        return;
    enter();
    (void)(t->is_folder ? rmdir(t->path) : unlinkat(t->at, t->path, 0));
    forget(t);
    leave();
}

void trace_temporary_abandon(void)
{
    enter();
    clean();
    newest = NULL;
    leave();
}

enum { NAME = 4096 };
static char own_path[NAME];
static temporary own;

const char *trace_temporary_own_folder(void)
{
    if (own.path)
        return own_path;
    if ((size_t)snprintf(own_path, NAME, "%s/mpsim-XXXXXX", trace_unnamed_place()) >= NAME) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (trace_temporary_folder(&own, own_path))
        return NULL;
    trace_unnamed_in(own_path);
    return own_path;
}

void trace_temporary_end(void)
{
    trace_unnamed_in(NULL);
    trace_temporary_remove(&own);
}

/* ---- a program ---- */

int trace_temporary_spawn(pid_t *child, const posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes,
                          char *const argv[])
{
    short flags = 0;
    int error = posix_spawnattr_getflags(attributes, &flags);
    if (!error)
        error = posix_spawnattr_setflags(attributes, (short)(flags | POSIX_SPAWN_SETPGROUP));
    if (error)
        return error;
    enter();
    error = posix_spawnp(child, argv[0], files, attributes, argv, environ);
    if (!error)
        running = *child;
    leave();
    return error;
}

pid_t trace_temporary_wait(pid_t child, int *status)
{
    const pid_t result = waitpid(child, status, 0);
    enter();
    if (result == child)
        running = 0;
    leave();
    return result;
}
