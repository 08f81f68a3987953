/* rows.c -- see cpu.h: results by pieces of rows, each computed, rounded and counted by one thread. What
 * a piece is depends on the shape only, and no result depends on the pieces. */
#include "cpu.h"

/* ---- pieces ---- */

/* Elements of a piece at least: waking a thread must be worth it. */
enum { SMALLEST = 1 << 13 };

typedef struct split {
    size_t n, size; /* things, and things a piece */
    cpu_task *task;
    void *job;
} split;

static void run_piece(size_t piece, void *context)
{
    const split *s = context;
    const size_t first = piece * s->size, left = s->n - first;
    s->task(s->job, piece, first, left < s->size ? left : s->size);
}

void cpu_pieces(train_engine *e, size_t n, size_t unit, size_t cost, cpu_task *task, void *job)
{
    const size_t units = (n - 1) / unit + 1, elements = unit * (cost ? cost : 1);
    const size_t worth = elements < SMALLEST ? (SMALLEST - 1) / elements + 1 : 1;
    const size_t share = (units - 1) / CPU_PIECES + 1;
    split s = {.n = n, .size = unit * (worth > share ? worth : share), .task = task, .job = job};
    if (n == 0)
        return;
    const size_t pieces = (n - 1) / s.size + 1;
    if (e->pool && pieces > 1) {
        e->pool->run(e->pool->self, pieces, run_piece, &s);
        return;
    }
    for (size_t i = 0; i < pieces; i++)
        run_piece(i, &s);
}

void cpu_add_counts(train_counts *to, const train_counts *from)
{
    to->nonzero += from->nonzero;
    to->lost += from->lost;
    to->overflow += from->overflow;
    to->nonfinite += from->nonfinite;
}

/* ---- rows ---- */

typedef struct rows {
    cpu_rows_of *of;
    const void *operation;
    const train_tensor *y;
    int counting;
    mpsim_status status[CPU_PIECES];
    train_counts counts[CPU_PIECES];
} rows;

static void some_rows(void *job, size_t piece, size_t first, size_t n)
{
    rows *r = job;
    const train_tensor *y = r->y;
    r->status[piece] = r->of ? r->of(r->operation, first, n) : MPSIM_OK;
    if (!r->status[piece])
        r->status[piece] = cpu_round_here(y->format, cpu_values(y) + first * y->cols, n * y->cols,
                                          r->counting ? &r->counts[piece] : NULL);
}

int cpu_rows(train_engine *e, const char *name, train_tensor *y, size_t unit, cpu_rows_of *of,
             const void *operation, train_counts *counts)
{
    rows r = {.of = of, .operation = operation, .y = y, .counting = counts != NULL};
    if (y->rows)
        cpu_pieces(e, y->rows, unit ? unit : 1, y->cols, some_rows, &r);
    for (size_t i = 0; i < CPU_PIECES; i++)
        if (r.status[i])
            return cpu_fail(e, "%s: %s", name, mpsim_status_string(r.status[i]));
    for (size_t i = 0; counts && i < CPU_PIECES; i++)
        cpu_add_counts(counts, &r.counts[i]);
    y->inverse = 1;
    return 0;
}
