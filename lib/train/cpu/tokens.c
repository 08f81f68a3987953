/* tokens.c -- the CPU engine: sums of tensors, rows of tables and their gradients, sums over ranks. */
#include "cpu.h"

/* ---- sums of two ---- */

typedef struct sum {
    float *y;
    const float *a, *b;
    size_t cols, period; /* rows of b, which are repeated */
} sum;

static mpsim_status add_some(const void *operation, size_t first, size_t n)
{
    const sum *s = operation;
    mpsim_status status = MPSIM_OK;
    for (size_t i = first, some; i < first + n && !status; i += some) { /* rows up to the table's last */
        const size_t left = first + n - i, of_table = s->period - i % s->period;
        some = left < of_table ? left : of_table;
        status = mpsim_add_array(NULL, NULL, s->y + i * s->cols, s->a + i * s->cols, s->b + i % s->period * s->cols,
                                 some * s->cols);
    }
    return status;
}

int cpu_add(train_engine *e, train_tensor *y, const train_tensor *a, const train_tensor *b, train_counts *counts)
{
    const sum s = {cpu_values(y), cpu_values(a), cpu_values(b), y->cols, y->rows};
    return cpu_rows(e, "add", y, 1, add_some, &s, counts);
}

int cpu_add_rows(train_engine *e, train_tensor *y, const train_tensor *x, const train_tensor *table,
                 train_counts *counts)
{
    const sum s = {cpu_values(y), cpu_values(x), cpu_values(table), y->cols, table->rows};
    return cpu_rows(e, "add_rows", y, 1, add_some, &s, counts);
}

typedef struct table_sum {
    float *table;
    const float *dy;
    size_t rows, period, cols;
} table_sum;

static mpsim_status add_periods(const void *operation, size_t first, size_t n)
{
    const table_sum *s = operation;
    mpsim_status status = MPSIM_OK;
    for (size_t t = first; t < first + n && !status; t++) {
        const size_t rows = t < s->rows ? (s->rows - t - 1) / s->period + 1 : 0;
        status = mpsim_period_sums(NULL, NULL, s->table + t * s->cols, rows ? s->dy + t * s->cols : NULL, rows, s->cols,
                                   s->period * s->cols, 1, 0);
    }
    return status;
}

int cpu_add_rows_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, train_counts *counts)
{
    const char *name = "add_rows_backward";
    const table_sum s = {cpu_values(dtable), cpu_values(dy), dy->rows, dtable->rows, dy->cols};
    return cpu_rows(e, name, dtable, 1, add_periods, &s, counts);
}

/* ---- rows of a table ---- */

typedef struct rows_of_table {
    float *y;
    const float *table;
    const uint32_t *index;
    size_t cols, entries;
} rows_of_table;

static mpsim_status take_some(const void *operation, size_t first, size_t n)
{
    const rows_of_table *t = operation;
    return mpsim_embed(NULL, t->y + first * t->cols, t->table, t->index + first, n, t->cols, t->entries);
}

int cpu_embed(train_engine *e, train_tensor *y, const train_tensor *table, const uint32_t *index, train_counts *counts)
{
    const rows_of_table t = {cpu_values(y), cpu_values(table), index, y->cols, table->rows};
    return cpu_rows(e, "embed", y, 1, take_some, &t, counts);
}

typedef struct table_rows {
    float *table;
    const float *dy;
    const uint32_t *index;
    size_t rows, cols;
    int added;
} table_rows;

/* Every row of dy that belongs to these of the table. */
static mpsim_status collect_some(const void *operation, size_t first, size_t n)
{
    const table_rows *t = operation;
    return mpsim_embed_backward(NULL, t->table + first * t->cols, t->dy, t->index, t->rows, t->cols, first, n,
                                t->added);
}

int cpu_embed_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, const uint32_t *index, int added,
                       train_counts *counts)
{
    const char *name = "embed_backward";
    const table_rows t = {cpu_values(dtable), cpu_values(dy), index, dy->rows, dy->cols, added};
    return cpu_rows(e, name, dtable, 1, collect_some, &t, counts);
}

/* ---- sums over ranks ---- */

static int reduce_one(train_engine *e, const mpsim_reduce *r, train_tensor *y, const train_tensor *const *x,
                      size_t ranks)
{
    const float **values = cpu_buffer(e, 0, ranks * sizeof *values);
    if (!values)
        return -1;
    for (size_t i = 0; i < ranks; i++)
        values[i] = cpu_values(x[i]);
    const mpsim_status s = mpsim_reduce_array(r, cpu_values(y), values, ranks, cpu_size(y));
    if (s)
        return cpu_fail(e, "reduce: %s", mpsim_status_string(s));
    y->inverse = 1;
    return 0;
}

int cpu_reduce(train_engine *e, const mpsim_reduce *r, const train_sum *list, size_t n, size_t ranks)
{
    for (size_t i = 0; i < n; i++)
        if (reduce_one(e, r, list[i].y, list[i].x, ranks))
            return -1;
    return 0;
}
