/* parallel.c -- see parallel.h. */
#include <train/parallel.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { MOST = 1024 };

static int threads = 1;

void parallel_init(unsigned wanted)
{
#ifdef _OPENMP
    threads = wanted ? (int)wanted : omp_get_max_threads();
    if (threads > MOST)
        threads = MOST;
#else
    (void)wanted;
#endif
}

void parallel_for(int n, void (*task)(int i, void *context), void *context)
{
#ifdef _OPENMP
    if (threads > 1 && n > 1) {
#pragma omp parallel for schedule(dynamic) num_threads(threads < n ? threads : n)
        for (int i = 0; i < n; i++)
            task(i, context);
        return;
    }
#endif
    for (int i = 0; i < n; i++)
        task(i, context);
}

int parallel_threads(void)
{
    return threads;
}

int parallel_self(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
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

static void lend(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    enum { CALLS = 1 << 20 };
    lent l = {n, n / CALLS + 1, task, job};
    (void)self;
    if (n > 0)
        parallel_for((int)((n - 1) / l.share + 1), run_share, &l);
}

const mpsim_pool parallel_pool = {lend, NULL};
