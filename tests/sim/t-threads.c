/* t-threads.c -- threads that are lent: every task once, from several threads at once, in a child, within a task. */
#include "support/support.h"

#include <mpsim/threads.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 1000 };

typedef struct work {
    const mpsim_pool *pool;
    atomic_int times[TASKS];
    int inner; /* tasks within each */
    atomic_int inside;
} work;

static void within(size_t i, void *job)
{
    (void)i;
    atomic_fetch_add(&((work *)job)->inside, 1);
}

static void once(size_t i, void *job)
{
    work *w = job;
    atomic_fetch_add(&w->times[i], 1);
    if (w->inner)
        w->pool->run(w->pool->self, (size_t)w->inner, within, w);
}

static void *all(void *job)
{
    work *w = job;
    for (int i = 0; i < 20; i++)
        w->pool->run(w->pool->self, TASKS, once, w);
    return NULL;
}

static int is_right(const work *w)
{
    for (size_t i = 0; i < TASKS; i++)
        if (atomic_load(&w->times[i]) != 20)
            return 0;
    return atomic_load(&w->inside) == 20 * TASKS * w->inner;
}

CASE("threads", 30);

TEST(every_task_once)
{
    static work w[3];
    pthread_t other[2];
    memset(w, 0, sizeof w);
    const mpsim_pool *pool = mpsim_threads_new(4);
    ck_assert(pool && pool->threads(pool->self) == 4);
    for (size_t i = 0; i < 3; i++)
        w[i].pool = pool;
    w[1].inner = 3;
    for (size_t i = 0; i < 2; i++)
        ck_assert(pthread_create(&other[i], NULL, all, &w[i]) == 0);
    all(&w[2]);
    for (size_t i = 0; i < 2; i++)
        pthread_join(other[i], NULL);
    for (size_t i = 0; i < 3; i++)
        ck_assert(is_right(&w[i]));
    memset(&w[0], 0, sizeof w[0]);
    w[0].pool = pool;
    const pid_t child = fork();
    if (child == 0) {
        all(&w[0]);
        mpsim_threads_free(pool); /* whose threads are the parent's */
        _exit(is_right(&w[0]) ? 0 : 1);
    }
    int status;
    ck_assert(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    mpsim_threads_free(pool);
    mpsim_threads_free(NULL);
}

TEST(as_many_as_are_free)
{
    const mpsim_pool *pool = mpsim_threads_new(0);
    ck_assert(pool && pool->threads(pool->self) >= 1);
    mpsim_threads_free(pool);
}

TEST_MAIN("threads");
