/* placing.c -- see placing.h. What the system does not allow is done without. */
#include "placing.h"

#ifdef __linux__

void threads_place_away(threads_place *p, pthread_t thread)
{
    const int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || (!p->is_away && pthread_getaffinity_np(thread, sizeof p->own, &p->own) != 0))
        return;
    cpu_set_t others = p->own;
    CPU_CLR((size_t)here, &others);
    if (CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread, sizeof others, &others) == 0)
        p->is_away = 1;
}

void threads_place_back(threads_place *p)
{
    if (p->is_away)
        (void)sched_setaffinity(0, sizeof p->own, &p->own);
    p->is_away = 0;
}

#else

void threads_place_away(threads_place *p, pthread_t thread)
{
    (void)p, (void)thread;
}

void threads_place_back(threads_place *p)
{
    (void)p;
}

#endif
