/* parallel.c -- see parallel.h. Our own, because an OpenMP runtime decides when it is loaded how its threads wait
 * (most turn, which on a machine with other work to do costs a hundred times the work itself), and ends a
 * region only when every thread of it has come by. */
#include <train/parallel.h>

#include "processors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { MOST = 1024 };

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

static struct {
    pthread_mutex_t lock; /* of all below, and of `joined` and `working` of the region */
    pthread_cond_t work, end;
    region *now; /* NULL: none that a thread may join */
    int started; /* threads that there are, but for the caller */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

static int threads = 1, by_default;             /* by_default: 0: processors that are free */
static int is_eager;                            /* tests: every region wakes the others */
static atomic_flag is_taken = ATOMIC_FLAG_INIT; /* one caller at a time has the pool */
static _Thread_local int self, is_inside;

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

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (!pool.now || pool.now->joined >= pool.now->threads)
            pthread_cond_wait(&pool.work, &pool.lock);
        region *r = pool.now;
        const int number = r->joined++;
        r->working++;
        pthread_mutex_unlock(&pool.lock);
        run_tasks(r, number);
        pthread_mutex_lock(&pool.lock);
        if (--r->working == 0)
            pthread_cond_signal(&pool.end);
    }
    return NULL;
}

/* Threads that cannot be made are done without. The lock is held. */
static void start_workers(int n)
{
    pthread_attr_t detached;
    if (pool.started >= n || pthread_attr_init(&detached))
        return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (pthread_t t; pool.started < n && pthread_create(&t, &detached, worker, NULL) == 0;)
        pool.started++;
    pthread_attr_destroy(&detached);
}

/* Tasks from `first` on, by all threads. */
static void run_together(int first, int n, void (*task)(int i, void *context), void *context)
{
    region r = {.task = task, .context = context, .n = n, .joined = 1};
    r.threads = threads < n - first ? threads : n - first;
    atomic_init(&r.next, first);
    pthread_mutex_lock(&pool.lock);
    start_workers(r.threads - 1);
    pool.now = &r;
    for (int i = 1; i < r.threads && i <= pool.started; i++)
        pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    run_tasks(&r, 0);
    pthread_mutex_lock(&pool.lock);
    pool.now = NULL; /* who has not woken by now finds nothing */
    while (r.working)
        pthread_cond_wait(&pool.end, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* ---- is it worth waking anyone? ---- */

/* What a task of each kind took when it was run last, in nanoseconds: a table by the task's address, where a
 * kind that meets another's place takes it over. */
typedef struct kind {
    uintptr_t task;
    int64_t each;
} kind;

static kind *kind_of(uintptr_t task)
{
    static kind known[256];
    kind *k = &known[(task >> 4 ^ task >> 12) % (sizeof known / sizeof *known)];
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

static void run_measured(kind *k, int n, void (*task)(int i, void *context), void *context)
{
    const int64_t began = now();
    const int is_short = !is_eager && k->each <= WORTH / n;
    const int first = is_short ? run_alone(n, task, context) : 0;
    if (first < n)
        run_together(first, n, task, context);
    const int64_t took = now() - began;
    /* of all threads together at most so much: too much wakes them once in vain, too little costs more */
    k->each = (first < n ? took * (threads < n ? threads : n) : took) / n;
}

static void run_all(uintptr_t of, int n, void (*task)(int i, void *context), void *context)
{
    const int outer = self, was_inside = is_inside;
    if (threads > 1 && n > 1 && !is_inside && !atomic_flag_test_and_set_explicit(&is_taken, memory_order_acquire)) {
        run_measured(kind_of(of), n, task, context);
        atomic_flag_clear_explicit(&is_taken, memory_order_release);
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
    threads = n ? n : at_most((unsigned)train_processors_free());
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
    return threads;
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

const mpsim_pool parallel_pool = {lend, NULL};
