/* worker.c -- see worker.h. */
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* What a worker says, a byte each. It waits for GO_ON behind OPENED and DONE, so that never both touch the
 * shared memory. The numbers of items are not said: both count the wanted ones. */
enum { OPENED = 'o', REFUSED = 'r', ALIVE = 'a', DONE = 'd', SPOILT = 's', GO_ON = 'g' };

static int to_caller = -1, from_caller = -1;

void *gpu_shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- the worker's side ---- */

static void send_word(int to, char word)
{
    while (write(to, &word, 1) < 0 && errno == EINTR)
        ;
}

static void say(char word)
{
    send_word(to_caller, word);
}

/* 0, or -1: the caller has ended. */
static int wait_for_caller(void)
{
    char word;
    ssize_t n;
    while ((n = read(from_caller, &word, 1)) < 0 && errno == EINTR)
        ;
    return n == 1 ? 0 : -1;
}

void gpu_worker_alive(void)
{
    if (to_caller >= 0)
        say(ALIVE);
}

static size_t next_wanted(const gpu_items *items, size_t i)
{
    while (i < items->count(items->context) && !items->is_wanted(items->context, i))
        i++;
    return i;
}

static int is_item(const gpu_items *items, size_t i)
{
    return i < items->count(items->context);
}

/* Items from i on, until one spoils the process. */
static void work_from(const gpu_items *items, size_t i)
{
    if (items->open(items->context)) {
        say(REFUSED);
        return;
    }
    say(OPENED);
    if (wait_for_caller())
        return;
    for (i = next_wanted(items, i); is_item(items, i); i = next_wanted(items, i + 1)) {
        const int spoilt = items->run(items->context, i) != 0;
        say(spoilt ? SPOILT : DONE);
        if (spoilt || wait_for_caller())
            return;
    }
}

/* ---- the caller's side ---- */

typedef struct worker {
    pid_t pid;
    int from, to; /* pipes */
    int status;   /* of waitpid, once it has ended */
} worker;

/* In the new process, which ends with its caller, however that ends. */
static void be_worker(const gpu_items *items, size_t i, pid_t caller)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() == caller)
        work_from(items, i);
    fflush(NULL);
    _exit(0); /* without what the caller registered for its own end */
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static int start(worker *w, const gpu_items *items, size_t i)
{
    int up[2], down[2];
    if (pipe(up))
        return -1;
    if (pipe(down)) {
        close_both(up);
        return -1;
    }
    fflush(NULL);
    const pid_t caller = getpid();
    w->pid = fork();
    if (w->pid == 0) {
        close(up[0]);
        close(down[1]);
        to_caller = up[1];
        from_caller = down[0];
        be_worker(items, i, caller);
    }
    if (w->pid < 0) {
        const int failed = errno;
        close_both(up);
        close_both(down);
        errno = failed;
        return -1;
    }
    close(up[1]);
    close(down[0]);
    w->from = up[0];
    w->to = down[1];
    return 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Its next word; 0: it has ended; -1: silent for so long. */
static int next_word(const worker *w, double seconds)
{
    const double end = now() + seconds;
    for (;;) {
        struct pollfd p = {.fd = w->from, .events = POLLIN};
        const double left = end - now();
        char word;
        const int ready = poll(&p, 1, left > 0 ? (int)(left * 1e3) + 1 : 0);
        if (ready > 0) {
            const ssize_t n = read(w->from, &word, 1);
            if (n >= 0)
                return n ? word : 0;
        } else if (ready == 0 && now() >= end) {
            return -1;
        }
    }
}

/* A process that waits in a driver may not die at once: it is left behind after a while. */
static void reap(worker *w, int kill_it)
{
    const double end = now() + 10;
    const struct timespec pause = {0, 5000000};
    close(w->from);
    close(w->to);
    if (kill_it)
        kill(w->pid, SIGKILL);
    while (waitpid(w->pid, &w->status, WNOHANG) == 0 && now() < end)
        nanosleep(&pause, NULL);
}

/* Item i, begun by the worker: 0: the worker goes on with the next; 1: another must. */
static int follow(worker *w, const gpu_items *items, size_t i)
{
    char why[160];
    const double seconds = items->seconds(items->context, i);
    int word;
    do {
        word = next_word(w, seconds);
    } while (word == ALIVE);
    if (word == DONE) {
        items->done(items->context, i, 0);
        return 0;
    }
    reap(w, word < 0);
    if (word == SPOILT) {
        items->done(items->context, i, -1);
        return 1;
    }
    if (word < 0)
        snprintf(why, sizeof why, "hung: no answer within %g s, its process was killed", seconds);
    else if (WIFSIGNALED(w->status))
        snprintf(why, sizeof why, "its process ended by signal %d (%s)", WTERMSIG(w->status),
                 strsignal(WTERMSIG(w->status)));
    else
        snprintf(why, sizeof why, "its process ended with exit code %d", WEXITSTATUS(w->status));
    items->failed(items->context, i, why);
    return 1;
}

/* What `open` says, then items from *i on, which becomes the one that another worker begins with. As gpu_work. */
static int follow_all(worker *w, const gpu_items *items, size_t *i, char *why, size_t size)
{
    const int word = next_word(w, items->open_seconds);
    if (word != OPENED) {
        reap(w, word < 0);
        if (word < 0)
            snprintf(why, size, "the device: no answer within %g s", items->open_seconds);
        else if (word == 0)
            snprintf(why, size, "the process that opens the device ended");
        return -1;
    }
    const int stop = items->opened(items->context);
    if (!stop)
        send_word(w->to, GO_ON);
    for (*i = next_wanted(items, *i); !stop && is_item(items, *i); *i = next_wanted(items, *i + 1)) {
        if (follow(w, items, *i)) {
            *i = next_wanted(items, *i + 1);
            return 0;
        }
        send_word(w->to, GO_ON);
    }
    reap(w, 0);
    return stop;
}

/* ---- both ---- */

static int work_here(const gpu_items *items)
{
    int spoilt = 0;
    if (items->open(items->context) || items->opened(items->context))
        return -1;
    for (size_t i = next_wanted(items, 0); is_item(items, i); i = next_wanted(items, i + 1)) {
        if (spoilt) {
            items->failed(items->context, i, "not run: an item before it spoilt the process");
        } else {
            spoilt = items->run(items->context, i);
            items->done(items->context, i, spoilt);
        }
    }
    return 0;
}

int gpu_work(const gpu_items *items, char *why, size_t size)
{
    size_t i = 0;
    why[0] = 0;
    signal(SIGPIPE, SIG_IGN); /* a word to a worker that has just died */
    if (!items->isolated)
        return work_here(items);
    do { /* once also without an item: the device is opened */
        worker w = {0};
        if (start(&w, items, i)) {
            snprintf(why, size, "no process for the device: %s", strerror(errno));
            return -1;
        }
        if (follow_all(&w, items, &i, why, size))
            return -1;
    } while (is_item(items, i));
    return 0;
}
