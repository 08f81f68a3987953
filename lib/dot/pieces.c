/* pieces.c -- see pieces.h. */
#include "pieces.h"

/* Elements of a piece at least: waking a thread must be worth it. */
enum { SMALLEST = 1 << 14 };

typedef struct split {
    size_t n, size; /* things, and things a piece */
    mpsim_piece *task;
    void *job;
} split;

static void run_piece(size_t piece, void *context)
{
    const split *s = (const split *)context;
    const size_t first = piece * s->size, left = s->n - first;
    s->task(s->job, piece, first, left < s->size ? left : s->size);
}

static size_t size_of_piece(size_t n, size_t unit, double cost)
{
    const double elements = (double)unit * (cost > 1 ? cost : 1);
    const size_t units = (n - 1) / unit + 1, share = (units - 1) / MPSIM_PIECES + 1;
    const size_t worth = elements < SMALLEST ? (size_t)(SMALLEST / elements) + 1 : 1,
                 most = worth > share ? worth : share;
    return most >= units ? n : unit * most;
}

void mpsim_pieces(const mpsim_pool *pool, size_t n, size_t unit, double cost, mpsim_piece *task, void *job)
{
    if (n == 0)
        return;
    split s = {n, unit == 0 || unit >= n ? n : size_of_piece(n, unit, cost), task, job};
    const size_t pieces = (n - 1) / s.size + 1;
    if (pool && pieces > 1) {
        pool->run(pool->self, pieces, run_piece, &s);
        return;
    }
    for (size_t i = 0; i < pieces; i++)
        run_piece(i, &s);
}
