/* parallel.c -- see parallel.h. */
#include "parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static int threads = 1;

void parallel_init(unsigned wanted)
{
#ifdef _OPENMP
    threads = wanted ? (int)wanted : omp_get_max_threads();
#else
    (void)wanted;
#endif
}

void parallel_for(int n, void (*task)(int i, void *context), void *context)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1 && n > 1)
#endif
    for (int i = 0; i < n; i++)
        task(i, context);
}
