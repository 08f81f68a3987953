/* threads.c -- threads that are lent to the library by who has none of their own; see mpsim/threads.h. */
#include <mpsim/threads.h>
#include <threads/parallel.h>

#include <stdlib.h>

typedef struct lent {
    mpsim_pool pool;
    parallel_team *team;
} lent;

static void run(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    const lent *l = self;
    parallel_team *before = parallel_team_use(l->team);
    parallel_pool.run(parallel_pool.self, n, task, job);
    (void)parallel_team_use(before);
}

static size_t threads(void *self)
{
    const lent *l = self;
    parallel_team *before = parallel_team_use(l->team);
    const size_t n = (size_t)parallel_threads();
    (void)parallel_team_use(before);
    return n;
}

const mpsim_pool *mpsim_threads_new(unsigned wanted)
{
    lent *l = malloc(sizeof *l);
    if (!l)
        return NULL;
    l->team = parallel_team_new(wanted, NULL, NULL);
    l->pool = (mpsim_pool){run, l, threads};
    if (l->team)
        return &l->pool;
    free(l);
    return NULL;
}

void mpsim_threads_free(const mpsim_pool *pool)
{
    lent *l = pool ? pool->self : NULL;
    if (l)
        parallel_team_free(l->team);
    free(l);
}
