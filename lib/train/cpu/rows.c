/* rows.c -- see cpu.h: results by pieces of rows, each computed, rounded and counted by one thread. What
 * a piece is depends on the shape only, and no result depends on the pieces. */
#include "cpu.h"

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

int cpu_rows(train_engine *e, const char *name, train_tensor *y, size_t unit, cpu_rows_of *of, const void *operation,
             train_counts *counts)
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
