/* heads.c -- the CPU engine: heads of attention, rows of tokens to matrices of heads and back. */
#include "cpu.h"

#include <string.h>

typedef struct turn {
    const train_heads *h;
    const float *from, *cos, *sin; /* cos NULL: no rotation */
    float *to;
    size_t cols; /* of the tensor whose rows are tokens */
} turn;

/* The row of a head, and its columns in the rows of tokens. */
static size_t place_of(const turn *t, size_t row)
{
    const train_heads *h = t->h;
    const size_t place = row % h->length, head = row / h->length % h->heads;
    const size_t sequence = row / h->length / h->heads;
    return (sequence * h->length + place) * t->cols + h->first + head * h->size;
}

static void rotate(float *y, const float *x, const float *cos, const float *sin, size_t half, int back)
{
    for (size_t c = 0; c < half; c++) {
        const float s = back ? -sin[c] : sin[c];
        const float low = x[c] * cos[c] - x[c + half] * s;
        y[c + half] = x[c + half] * cos[c] + x[c] * s;
        y[c] = low;
    }
}

static void one_head(const turn *t, float *y, const float *x, size_t row, int back)
{
    const size_t size = t->h->size, half = size / 2, place = row % t->h->length;
    if (t->cos)
        rotate(y, x, t->cos + place * half, t->sin + place * half, half, back);
    else
        memcpy(y, x, size * sizeof *y);
}

static mpsim_status split_some(const void *operation, size_t first, size_t n)
{
    const turn *t = operation;
    for (size_t i = first; i < first + n; i++)
        one_head(t, t->to + i * t->h->size, t->from + place_of(t, i), i, 0);
    return MPSIM_OK;
}

static turn turn_of(const train_heads *h, const float *from, float *to, size_t cols)
{
    return (turn){.h = h,
                  .from = from,
                  .to = to,
                  .cols = cols,
                  .cos = h->cos ? cpu_values(h->cos) : NULL,
                  .sin = h->sin ? cpu_values(h->sin) : NULL};
}

static int split_one(train_engine *e, train_tensor *y, const train_tensor *x, const train_heads *h,
                     train_counts *counts)
{
    const turn t = turn_of(h, cpu_values(x), cpu_values(y), x->cols);
    return cpu_rows(e, "split", y, 1, split_some, &t, counts);
}

int cpu_split(train_engine *e, const train_turn *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (split_one(e, list[i].y, list[i].x, list[i].heads, list[i].counts))
            return -1;
    return 0;
}

/* ---- back: the heads of a token, side by side ---- */

typedef struct joined {
    turn t;
    const train_tensor *dx;
    train_counts *counts; /* a piece each, as status */
    mpsim_status *status;
    int counting;
    float *side; /* tokens x (heads * size) */
} joined;

static void join_some(void *job, size_t piece, size_t first, size_t n)
{
    joined *j = job;
    const train_heads *h = j->t.h;
    const size_t width = h->heads * h->size;
    float *side = j->side + first * width, *to = cpu_values(j->dx) + h->first;
    for (size_t i = 0; i < n; i++) {
        const size_t place = (first + i) % h->length, sequence = (first + i) / h->length;
        for (size_t k = 0; k < h->heads; k++) {
            const size_t row = (sequence * h->heads + k) * h->length + place;
            one_head(&j->t, side + i * width + k * h->size, j->t.from + row * h->size, row, 1);
        }
    }
    j->status[piece] = cpu_round_here(j->dx->format, side, n * width, j->counting ? &j->counts[piece] : NULL);
    for (size_t i = 0; i < n; i++)
        memcpy(to + (first + i) * j->t.cols, side + i * width, width * sizeof *to);
}

static int join_one(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_heads *h,
                    train_counts *counts)
{
    train_counts pieces[CPU_PIECES] = {{0, 0, 0, 0}};
    mpsim_status status[CPU_PIECES] = {MPSIM_OK};
    float *side = cpu_floats(e, 0, cpu_size(dy));
    if (!side)
        return -1;
    joined j = {.t = turn_of(h, cpu_values(dy), NULL, dx->cols),
                .dx = dx,
                .counts = pieces,
                .status = status,
                .counting = counts != NULL,
                .side = side};
    cpu_pieces(e, dx->rows, 1, h->heads * h->size, join_some, &j);
    for (size_t i = 0; i < CPU_PIECES; i++)
        if (status[i])
            return cpu_fail(e, "join: %s", mpsim_status_string(status[i]));
    for (size_t i = 0; counts && i < CPU_PIECES; i++)
        cpu_add_counts(counts, &pieces[i]);
    dx->inverse = 1;
    return 0;
}

int cpu_join(train_engine *e, const train_turn *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (join_one(e, list[i].y, list[i].x, list[i].heads, list[i].counts))
            return -1;
    return 0;
}

/* ---- heads that share keys and values ---- */

typedef struct groups {
    float *y;
    const float *x;
    size_t matrix, cols, group; /* elements of a matrix */
} groups;

/* Whole matrices. */
static mpsim_status add_some(const void *operation, size_t first, size_t n)
{
    const groups *g = operation;
    const size_t length = g->matrix / g->cols;
    for (size_t m = first / length; m < (first + n) / length; m++) {
        float *y = g->y + m * g->matrix;
        const float *x = g->x + m * g->group * g->matrix;
        memcpy(y, x, g->matrix * sizeof *y);
        for (size_t k = 1; k < g->group; k++)
            for (size_t i = 0; i < g->matrix; i++)
                y[i] += x[k * g->matrix + i];
    }
    return MPSIM_OK;
}

int cpu_add_groups(train_engine *e, train_tensor *y, const train_tensor *x, size_t length, size_t group,
                   train_counts *counts)
{
    const groups g = {cpu_values(y), cpu_values(x), length * y->cols, y->cols, group};
    return cpu_rows(e, "add_groups", y, length, add_some, &g, counts);
}
