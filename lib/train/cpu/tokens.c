/* tokens.c -- the CPU engine: sums of tensors, rows of tables and their gradients, sums over ranks. */
#include "cpu.h"

#include <string.h>

/* y[j] = a[j] + b[j]; y may be either. */
static void add(float *y, const float *a, const float *b, size_t n)
{
    for (size_t j = 0; j < n; j++)
        y[j] = a[j] + b[j];
}

/* ---- sums of two ---- */

typedef struct sum {
    float *y;
    const float *a, *b;
    size_t cols, period; /* rows of b, which are repeated */
} sum;

static mpsim_status add_some(const void *operation, size_t first, size_t n)
{
    const sum *s = operation;
    for (size_t i = first; i < first + n; i++)
        add(s->y + i * s->cols, s->a + i * s->cols, s->b + i % s->period * s->cols, s->cols);
    return MPSIM_OK;
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
    for (size_t t = first; t < first + n; t++) {
        float *row = s->table + t * s->cols;
        for (size_t j = 0; j < s->cols; j++)
            row[j] = 0;
        for (size_t r = t; r < s->rows; r += s->period)
            add(row, row, s->dy + r * s->cols, s->cols);
    }
    return MPSIM_OK;
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
    size_t cols;
} rows_of_table;

static mpsim_status take_some(const void *operation, size_t first, size_t n)
{
    const rows_of_table *t = operation;
    for (size_t i = first; i < first + n; i++)
        memcpy(t->y + i * t->cols, t->table + t->index[i] * t->cols, t->cols * sizeof *t->y);
    return MPSIM_OK;
}

int cpu_embed(train_engine *e, train_tensor *y, const train_tensor *table, const uint32_t *index, train_counts *counts)
{
    const rows_of_table t = {cpu_values(y), cpu_values(table), index, y->cols};
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
    float *table = t->table + first * t->cols;
    if (!t->added && t->cols)
        memset(table, 0, n * t->cols * sizeof *table);
    for (size_t r = 0; r < t->rows; r++) {
        const size_t v = t->index[r];
        if (v >= first && v - first < n)
            add(table + (v - first) * t->cols, table + (v - first) * t->cols, t->dy + r * t->cols, t->cols);
    }
    return MPSIM_OK;
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
