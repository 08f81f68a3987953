/* t-parallel.c -- threads: every task once, numbers of threads, nested and competing calls, that who waits
 * sleeps; how many processors a process has, by control groups of our own making. */
#include "support/support.h"

#include "lib/threads/processors.c"

#include <threads/parallel.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(double seconds)
{
    const double end = wall_seconds() + seconds;
    while (wall_seconds() < end)
        ;
}

static void doze(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

/* ---- every task once ---- */

enum { TASKS = 3000, THREADS = 5 };

typedef struct seen {
    atomic_int times[TASKS], bad;
    int n;
    double seconds; /* of a task */
} seen;

static void see(int i, void *context)
{
    seen *s = context;
    if (s->seconds > 0)
        work(s->seconds);
    atomic_fetch_add(&s->times[i], 1);
    if (parallel_self() < 0 || parallel_self() >= (s->n < THREADS ? s->n : THREADS))
        atomic_fetch_add(&s->bad, 1);
}

static void check_all(int n, double seconds)
{
    static seen s;
    memset(&s, 0, sizeof s);
    s.n = n;
    s.seconds = seconds;
    parallel_for(n, see, &s);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(atomic_load(&s.times[i]), 1);
    ck_assert_int_eq(atomic_load(&s.bad), 0);
    ck_assert_int_eq(parallel_self(), 0);
}

/* Long tasks after short ones, and the reverse: what is remembered of them is wrong then. */
START_TEST(every_task_once)
{
    parallel_init(THREADS);
    ck_assert_int_eq(parallel_threads(), THREADS);
    for (int round = 0; round < 300; round++)
        for (int n = 0; n < 9; n++)
            check_all(n, 0);
    check_all(TASKS, 0);
    check_all(200, 1e-4);
    check_all(TASKS, 0);
    check_all(3, 1e-3);
    for (int round = 0; round < 100; round++)
        check_all(TASKS, round % 10 == 9 ? 1e-6 : 0);
    parallel_eager(1);
    for (int round = 0; round < 30; round++)
        check_all(TASKS, 0);
    parallel_init(1);
    check_all(1, 0);
}

static void count_size(size_t i, void *job)
{
    atomic_fetch_add((atomic_llong *)job, (long long)i);
}

START_TEST(more_tasks_than_an_int_of_calls)
{
    const size_t n = (size_t)3 << 20;
    atomic_llong sum = 0;
    parallel_init(3);
    parallel_pool.run(parallel_pool.self, n, count_size, &sum);
    ck_assert_int_eq(atomic_load(&sum), (long long)n * (long long)(n - 1) / 2);
}

/* ---- calls within tasks, and of two threads at once ---- */

static atomic_int inner_tasks, inner_bad;

static void inner(int i, void *context)
{
    (void)i;
    atomic_fetch_add(&inner_tasks, 1);
    if (parallel_self() != 0 || !pthread_equal(*(pthread_t *)context, pthread_self()))
        atomic_fetch_add(&inner_bad, 1);
}

static void outer(int i, void *context)
{
    pthread_t me = pthread_self();
    const int number = parallel_self();
    (void)i;
    (void)context;
    parallel_for(10, inner, &me);
    if (parallel_self() != number)
        atomic_fetch_add(&inner_bad, 1);
    work(1e-4);
}

START_TEST(nested)
{
    parallel_init(4);
    parallel_for(40, outer, NULL);
    ck_assert_int_eq(atomic_load(&inner_tasks), 400);
    ck_assert_int_eq(atomic_load(&inner_bad), 0);
}

static atomic_int enough;

static void *other_caller(void *unused)
{
    while (!atomic_load(&enough))
        parallel_for(40, outer, unused);
    return NULL;
}

START_TEST(two_callers)
{
    pthread_t t;
    parallel_init(3);
    ck_assert_int_eq(pthread_create(&t, NULL, other_caller, NULL), 0);
    for (int round = 0; round < 20; round++)
        parallel_for(40, outer, NULL);
    atomic_store(&enough, 1);
    pthread_join(t, NULL);
    ck_assert_int_eq(atomic_load(&inner_tasks) % 400, 0);
    ck_assert_int_eq(atomic_load(&inner_bad), 0);
}

/* ---- who waits sleeps ---- */

static void first_dozes(int i, void *context)
{
    (void)context;
    if (i == 0)
        doze(0.5);
    else
        doze(0.01); /* long enough for all threads to come */
}

START_TEST(waiting_sleeps)
{
    double least = 1;
    parallel_init(4);
    for (int i = 0; i < 5 && least >= 0.1; i++) { /* a busy machine may count some of others' time */
        const double began = cpu_seconds();
        parallel_for(4, first_dozes, NULL);
        doze(0.3); /* between two calls, too */
        least = fmin(least, cpu_seconds() - began);
    }
    ck_assert_msg(least < 0.1, "%.3f s of CPU time went by while all threads slept", least);
}

/* A long task is handed out at once, and all go on side by side: each waits until all have come, or for as long as a busy
 * machine could need. */
static atomic_int come, met;

static void meets(int i, void *context)
{
    (void)i;
    (void)context;
    atomic_fetch_add(&come, 1);
    for (int k = 0; k < 1000 && atomic_load(&come) < 4; k++)
        doze(0.01);
    atomic_fetch_add(&met, atomic_load(&come) >= 4);
}

START_TEST(tasks_go_on_side_by_side)
{
    parallel_init(4);
    for (int call = 0; call < 2; call++) {
        atomic_store(&come, 0);
        atomic_store(&met, 0);
        parallel_for(4, meets, NULL);
        ck_assert_int_eq(atomic_load(&met), 4);
    }
}

/* ---- where threads begin ---- */

#ifdef __linux__

/* The processors that two tasks are on, both of which run at once. */
typedef struct pair {
    atomic_int here;
    int on[2]; /* by the number of the thread */
} pair;

static void note_processor(int i, void *context)
{
    pair *p = context;
    p->on[parallel_self()] = sched_getcpu();
    atomic_fetch_add(&p->here, 1);
    (void)i;
    while (atomic_load(&p->here) < 2)
        ;
}

/* Whether the other thread began elsewhere; -1: this one has moved. */
static int begins_elsewhere(parallel_team *t)
{
    pair p = {0};
    parallel_team *before = parallel_team_use(t);
    const int on = sched_getcpu();
    parallel_for(2, note_processor, &p);
    (void)parallel_team_use(before);
    return p.on[0] != on || sched_getcpu() != on ? -1 : p.on[1] != on;
}

static void check_elsewhere(const char *what, const int count[2])
{
    ck_assert_msg(count[0] * 10 <= count[0] + count[1], "%s: %d of %d began on their caller's processor", what,
                  count[0], count[0] + count[1]);
}

/* New threads stayed on the processor of their creator for 17 ms. */
START_TEST(bug_20261127_threads_begin_on_another_processor)
{
    int old[2] = {0}, new[2] = {0};
    if (in_affinity() < 2)
        return;
    parallel_eager(1);
    parallel_team *pool = parallel_team_new(2, NULL, NULL);
    for (int i = 0; i < 40; i++) {
        parallel_team *fresh = parallel_team_new(2, NULL, NULL);
        const int of_new = begins_elsewhere(fresh), of_old = begins_elsewhere(pool);
        parallel_team_free(fresh);
        if (of_new >= 0)
            new[of_new]++;
        if (of_old >= 0)
            old[of_old]++;
    }
    parallel_team_free(pool);
    check_elsewhere("new threads", new);
    check_elsewhere("threads that slept", old);
}

static void note_mask(int i, void *context)
{
    cpu_set_t *masks = context;
    (void)sched_getaffinity(0, sizeof masks[0], &masks[i]);
    doze(0.002); /* so that each thread has one */
}

/* A thread that was sent away may use all processors that it could use before. */
START_TEST(threads_keep_their_processors)
{
    cpu_set_t mine, masks[3];
    parallel_init(3);
    parallel_eager(1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof mine, &mine), 0);
    for (int call = 0; call < 3; call++) {
        parallel_for(3, note_mask, masks);
        for (int i = 0; i < 3; i++)
            ck_assert(CPU_EQUAL(&masks[i], &mine));
    }
}

#endif

/* ---- processors ---- */

START_TEST(defaults)
{
    parallel_default(7);
    parallel_init(0);
    ck_assert_int_eq(parallel_threads(), 7);
    parallel_init(2);
    ck_assert_int_eq(parallel_threads(), 2);
    parallel_default(0);
    parallel_init(0);
    ck_assert_int_ge(parallel_threads(), 1);
    ck_assert_int_le(parallel_threads(), threads_processors());
    parallel_init(5000);
    ck_assert_int_eq(parallel_threads(), 1024);
}

START_TEST(affinity)
{
    const int all = threads_processors();
    ck_assert_int_ge(all, 1);
    ck_assert_int_ge(threads_processors_free(), (all + 1) / 2);
    ck_assert_int_le(threads_processors_free(), all);
#ifdef __linux__
    cpu_set_t set, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET((size_t)i, &set))
            CPU_SET((size_t)i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(threads_processors(), 1);
    ck_assert_int_eq(threads_processors_free(), 1);
#endif
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static int groups(const char *mount, const char *path, int version)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", path);
    return in_groups(mount, copy, version);
}

START_TEST(quotas)
{
    char mount[] = "/tmp/t-parallel-XXXXXX", a[64], b[64];
    ck_assert_ptr_nonnull(mkdtemp(mount));
    snprintf(a, sizeof a, "%s/a", mount);
    snprintf(b, sizeof b, "%s/a/b", mount);
    ck_assert_int_eq(mkdir(a, 0777) | mkdir(b, 0777), 0);
    ck_assert_int_eq(groups(mount, "/a/b", 2), MOST); /* no file */
    write_file(b, "cpu.max", "max 100000\n");
    ck_assert_int_eq(groups(mount, "/a/b", 2), MOST);
    write_file(a, "cpu.max", "250000 100000\n");
    ck_assert_int_eq(groups(mount, "/a/b", 2), 3); /* 2.5, rounded up; the group above counts */
    ck_assert_int_eq(groups(mount, "/", 2), MOST);
    write_file(mount, "cpu.max", "50000 100000\n"); /* as a container sees its own group */
    ck_assert_int_eq(groups(mount, "/", 2), 1);
    ck_assert_int_eq(groups(mount, "/a/b", 2), 1);
    write_file(a, "cpu.cfs_quota_us", "400000\n");
    write_file(a, "cpu.cfs_period_us", "100000\n");
    write_file(b, "cpu.cfs_quota_us", "-1\n");
    write_file(b, "cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(groups(mount, "/a/b", 1), 4);
    static const char *const files[] = {"a/b/cpu.max",
                                        "a/b/cpu.cfs_quota_us",
                                        "a/b/cpu.cfs_period_us",
                                        "a/b",
                                        "a/cpu.max",
                                        "a/cpu.cfs_quota_us",
                                        "a/cpu.cfs_period_us",
                                        "a",
                                        "cpu.max",
                                        ""};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", mount, files[i]);
        ck_assert_int_eq(remove(path), 0);
    }
}

/* ---- stacks ---- */

/* Both tasks at once, so that one of them is another thread's. */
static void use_stack(int i, void *context)
{
    atomic_int *here = context;
    volatile unsigned char room[600 << 10];
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < 2)
        doze(0.001);
    for (size_t at = sizeof room; at > 0; at -= 1024)
        room[at - 1] = (unsigned char)i;
}

/* Where threads have little stack unless they ask for more, as on musl: optimizer steps took 240 KiB. */
START_TEST(bug_20261126_small_stacks)
{
#ifdef __GLIBC__
    pthread_attr_t before, small;
    ck_assert(pthread_getattr_default_np(&before) == 0 && pthread_attr_init(&small) == 0);
    ck_assert(pthread_attr_setstacksize(&small, 128 << 10) == 0 && pthread_setattr_default_np(&small) == 0);
#endif
    parallel_team *const teams[] = {NULL, parallel_team_new(2, NULL, NULL)};
    parallel_init(2);
    parallel_eager(1);
    for (int i = 0; i < 2; i++) {
        atomic_int here = 0;
        parallel_team_use(teams[i]);
        parallel_for(2, use_stack, &here);
        ck_assert_int_eq(atomic_load(&here), 2);
    }
    parallel_team_use(NULL);
    parallel_team_free(teams[1]);
    parallel_eager(0);
#ifdef __GLIBC__
    ck_assert(pthread_setattr_default_np(&before) == 0);
    pthread_attr_destroy(&small);
    pthread_attr_destroy(&before);
#endif
}

int main(void)
{
    TCase *all = test_case("all", 20);
    tcase_add_test(all, every_task_once);
    tcase_add_test(all, more_tasks_than_an_int_of_calls);
    tcase_add_test(all, nested);
    tcase_add_test(all, bug_20261126_small_stacks);
    tcase_add_test(all, two_callers);
    tcase_add_test(all, waiting_sleeps);
    tcase_add_test(all, tasks_go_on_side_by_side);
#ifdef __linux__
    tcase_add_test(all, bug_20261127_threads_begin_on_another_processor);
    tcase_add_test(all, threads_keep_their_processors);
#endif
    tcase_add_test(all, defaults);
    tcase_add_test(all, affinity);
    tcase_add_test(all, quotas);
    TCase *const cases[] = {all, NULL};
    return test_main("train-parallel", cases);
}
