/* parallel.c -- see parallel.h. Our own, because an OpenMP runtime decides when it is loaded how its threads wait
 * (most turn, which on a machine with other work to do costs a hundred times the work itself), and ends a
 * region only when every thread of it has come by.
 *
 * A call that took less than 50 us the last time wakes nobody. Affinity, the quota of the control group and the
 * load average decide how many threads there are. A child of fork has no threads and touches no lock of its
 * parent's. */
#include <threads/parallel.h>

#include "placing.h"
#include "processors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024 };

/* The least stack of a thread: several times what the deepest tasks take, some 100 KiB (frames of 70 at most, and files that are opened
 * within a pass). musl gives 128 KiB unless asked, macOS 512, and glibc what `ulimit -s` says. */
enum { STACK = 1 << 20 };

/* Nanoseconds of work for which another thread is woken: several times what that costs. */
enum { WORTH = 50000 };

/* ---- one parallel_for ---- */

typedef struct region {
    void (*task)(int i, void *context);
    void *context;
    int n;
    atomic_int next; /* the first task that nobody has begun */
    int threads;     /* at most, the caller among them */
    int joined;      /* so far: the number that the next one gets */
    int working;     /* but for the caller */
} region;

/* What a task of each kind took when it was run last, in nanoseconds: a table by the task's address, where a
 * kind that meets another's place takes it over. */
typedef struct kind {
    uintptr_t task;
    int64_t each;
} kind;

/* A thread that there is, but for the caller. */
typedef struct member {
    parallel_team *team;
    pthread_t thread;
    threads_place place; /* the team's lock is held */
    struct member *next;
} member;

struct parallel_team {
    pthread_mutex_t lock; /* of all below, and of `joined` and `working` of the region */
    pthread_cond_t work, end;
    region *now; /* NULL: none that a thread may join */
    member *members;
    int started;   /* so many */
    pid_t process; /* whose threads they are: a child has none of them */
    int leaves;    /* they are to end */
    int threads;
    atomic_flag is_taken; /* one caller at a time has the team */
    kind known[256];
    /* of a team that is not the process's: */
    void (*begin)(void *context);
    void *context;
};

/* That of the process, and that which a thread has instead. */
static parallel_team common = {.lock = PTHREAD_MUTEX_INITIALIZER,
                               .work = PTHREAD_COND_INITIALIZER,
                               .end = PTHREAD_COND_INITIALIZER,
                               .threads = 1,
                               .is_taken = ATOMIC_FLAG_INIT};
static _Thread_local parallel_team *own;

static int by_default; /* 0: processors that are free */
static int is_eager;   /* tests: every region wakes the others */
static _Thread_local int self, is_inside;

static parallel_team *team(void)
{
    return own ? own : &common;
}

static void run_tasks(region *r, int number)
{
    self = number;
    is_inside = 1;
    for (int i; (i = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed)) < r->n;)
        r->task(i, r->context);
    is_inside = 0;
    self = 0;
}

/* ---- threads that sleep until there is a region with room ---- */

static void *worker(void *its)
{
    member *m = its;
    parallel_team *t = m->team;
    own = t == &common ? NULL : t;
    if (t->begin)
        t->begin(t->context);
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->leaves && (!t->now || t->now->joined >= t->now->threads))
            pthread_cond_wait(&t->work, &t->lock);
        threads_place_back(&m->place);
        if (t->leaves)
            break;
        region *r = t->now;
        const int number = r->joined++;
        r->working++;
        pthread_mutex_unlock(&t->lock);
        run_tasks(r, number);
        pthread_mutex_lock(&t->lock);
        if (--r->working == 0)
            pthread_cond_signal(&t->end);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int start_worker(member *m, const pthread_attr_t *how)
{
    sigset_t all, before;
    if (m->team == &common)
        return pthread_create(&m->thread, how, worker, m);
    sigfillset(&all); /* signals are for the threads that the process has made itself */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int bad = pthread_create(&m->thread, how, worker, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

static int add_member(parallel_team *t, const pthread_attr_t *how)
{
    member *m = calloc(1, sizeof *m);
    if (!m)
        return -1;
    m->team = t;
    if (start_worker(m, how)) {
        free(m);
        return -1;
    }
    m->next = t->members;
    t->members = m;
    t->started++;
    return 0;
}

/* Threads that cannot be made are done without. The lock is held. */
static void start_workers(parallel_team *t, int n)
{
    pthread_attr_t how;
    size_t stack;
    if (t->started >= n || pthread_attr_init(&how))
        return;
    t->process = getpid();
    if (pthread_attr_getstacksize(&how, &stack) == 0 && stack < STACK)
        pthread_attr_setstacksize(&how, STACK);
    if (t == &common)
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    while (t->started < n && add_member(t, &how) == 0)
        ;
    pthread_attr_destroy(&how);
}

/* n of the threads begin, on other processors than this one. The lock is held. */
static void wake_workers(parallel_team *t, int n)
{
    start_workers(t, n);
    for (member *m = t->members; m && n > 0; m = m->next, n--) {
        threads_place_away(&m->place, m->thread);
        pthread_cond_signal(&t->work);
    }
}

/* A child has the memory of its parent's threads, of which one may have held the lock, but not the threads. */
static int is_child(const parallel_team *t)
{
    return t->started > 0 && t->process != getpid();
}

/* Tasks from `first` on, by all threads. */
static void run_together(parallel_team *t, int first, int n, void (*task)(int i, void *context), void *context)
{
    region r = {.task = task, .context = context, .n = n, .joined = 1};
    r.threads = t->threads < n - first ? t->threads : n - first;
    atomic_init(&r.next, first);
    if (is_child(t)) {
        run_tasks(&r, 0);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->now = &r;
    wake_workers(t, r.threads - 1);
    pthread_mutex_unlock(&t->lock);
    run_tasks(&r, 0);
    pthread_mutex_lock(&t->lock);
    t->now = NULL; /* who has not woken by now finds nothing */
    while (r.working)
        pthread_cond_wait(&t->end, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* ---- is it worth waking anyone? ---- */

static kind *kind_of(parallel_team *t, uintptr_t task)
{
    kind *k = &t->known[(task >> 4 ^ task >> 12) % (sizeof t->known / sizeof *t->known)];
    if (k->task != task)
        *k = (kind){task, INT64_MAX};
    return k;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Tasks that are thought to be short, on this thread until they have taken long: the first that is left. */
static int run_alone(int n, void (*task)(int i, void *context), void *context)
{
    const int64_t end = now() + 2 * WORTH;
    int i = 0;
    is_inside = 1;
    do {
        task(i++, context);
    } while (i < n && (i + 1 == n || now() < end));
    is_inside = 0;
    return i;
}

static void run_measured(parallel_team *t, kind *k, int n, void (*task)(int i, void *context), void *context)
{
    const int64_t began = now();
    const int is_short = !is_eager && k->each <= WORTH / n;
    const int first = is_short ? run_alone(n, task, context) : 0;
    if (first < n)
        run_together(t, first, n, task, context);
    const int64_t took = now() - began;
    /* of all threads together at most so much: too much wakes them once in vain, too little costs more */
    k->each = (first < n ? took * (t->threads < n ? t->threads : n) : took) / n;
}

static void run_all(uintptr_t of, int n, void (*task)(int i, void *context), void *context)
{
    parallel_team *t = team();
    const int outer = self, was_inside = is_inside;
    if (t->threads > 1 && n > 1 && !is_inside &&
        !atomic_flag_test_and_set_explicit(&t->is_taken, memory_order_acquire)) {
        run_measured(t, kind_of(t, of), n, task, context);
        atomic_flag_clear_explicit(&t->is_taken, memory_order_release);
        return;
    }
    self = 0; /* of a parallel_for of one thread */
    is_inside = was_inside || n > 1;
    for (int i = 0; i < n; i++)
        task(i, context);
    is_inside = was_inside;
    self = outer;
}

/* ---- the interface ---- */

static int at_most(unsigned n)
{
    return n < MOST ? (int)n : MOST;
}

void parallel_init(unsigned wanted)
{
    const int n = wanted ? at_most(wanted) : by_default;
    common.threads = n ? n : at_most((unsigned)threads_processors_free());
}

parallel_team *parallel_team_new(unsigned wanted, void (*begin)(void *context), void *context)
{
    parallel_team *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->threads = wanted ? at_most(wanted) : at_most((unsigned)threads_processors_free());
    t->begin = begin;
    t->context = context;
    atomic_flag_clear(&t->is_taken);
    if (pthread_mutex_init(&t->lock, NULL) == 0) {
        if (pthread_cond_init(&t->work, NULL) == 0) {
            if (pthread_cond_init(&t->end, NULL) == 0)
                return t;
            pthread_cond_destroy(&t->work);
        }
        pthread_mutex_destroy(&t->lock);
    }
    free(t);
    return NULL;
}

static void end_threads(parallel_team *t)
{
    pthread_mutex_lock(&t->lock);
    t->leaves = 1;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (const member *m = t->members; m; m = m->next)
        pthread_join(m->thread, NULL);
    pthread_cond_destroy(&t->end);
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
}

void parallel_team_free(parallel_team *t)
{
    if (!is_child(t))
        end_threads(t);
    for (member *m; (m = t->members) != NULL;) {
        t->members = m->next;
        free(m);
    }
    free(t);
}

parallel_team *parallel_team_use(parallel_team *t)
{
    parallel_team *before = own;
    own = t;
    return before;
}

void parallel_default(unsigned wanted)
{
    by_default = at_most(wanted);
}

void parallel_eager(int eager)
{
    is_eager = eager;
}

void parallel_for(int n, void (*task)(int i, void *context), void *context)
{
    run_all((uintptr_t)task, n, task, context);
}

int parallel_threads(void)
{
    return team()->threads;
}

int parallel_self(void)
{
    return self;
}

/* ---- for the library: a count of tasks that may be larger than an int ---- */

typedef struct lent {
    size_t n, share; /* tasks, and tasks a call */
    void (*task)(size_t i, void *job);
    void *job;
} lent;

static void run_share(int i, void *context)
{
    const lent *l = context;
    const size_t first = (size_t)i * l->share;
    const size_t end = l->n - first < l->share ? l->n : first + l->share;
    for (size_t k = first; k < end; k++)
        l->task(k, l->job);
}

static void lend(void *unused, size_t n, void (*task)(size_t i, void *job), void *job)
{
    enum { CALLS = 1 << 20 };
    lent l = {n, n / CALLS + 1, task, job};
    (void)unused;
    if (n > 0)
        run_all((uintptr_t)task, (int)((n - 1) / l.share + 1), run_share, &l);
}

static size_t lent_threads(void *unused)
{
    (void)unused;
    return (size_t)parallel_threads();
}

const mpsim_pool parallel_pool = {lend, NULL, lent_threads};
