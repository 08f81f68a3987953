/* common.c -- see cpu.h: what all operations of the CPU engine use. */
#include "cpu.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors, memory ---- */

int cpu_fail(train_engine *e, const char *message, ...)
{
    va_list arguments;
    int n = snprintf(e->error, sizeof e->error, "cpu: ");
    va_start(arguments, message);
    vsnprintf(e->error + n, sizeof e->error - (size_t)n, message, arguments);
    va_end(arguments);
    return -1;
}

float *cpu_values(const train_tensor *x)
{
    return ((cpu_data *)x->data)->values;
}

size_t cpu_size(const train_tensor *x)
{
    return x->rows * x->cols;
}

void *cpu_buffer(train_engine *e, int i, size_t bytes)
{
    cpu_self *self = e->self;
    if (!self->buffer[i] || self->bytes[i] < bytes) {
        free(self->buffer[i]);
        self->buffer[i] = malloc(bytes ? bytes : 1);
        self->bytes[i] = self->buffer[i] ? bytes : 0;
        if (!self->buffer[i])
            cpu_fail(e, "out of memory (%zu bytes)", bytes);
    }
    return self->buffer[i];
}

float *cpu_floats(train_engine *e, int i, size_t n)
{
    return cpu_buffer(e, i, n * sizeof(float));
}

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

/* ---- rounding ---- */

int cpu_is_binary32(const mpsim_format *f)
{
    return f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->bias == 127 && f->inf;
}

void cpu_count(train_counts *counts, const float *before, const float *after, size_t n)
{
    counts->nonzero += mpsim_count_numbers(before, n).nonzero;
    counts->nonfinite += n - mpsim_count_numbers(after, n).finite;
}

/* y = x, rounded unless f is NULL. */
static mpsim_status round_some(const mpsim_format *f, mpsim_round_mode mode, float *y, const float *x, size_t n,
                               mpsim_counts *counts)
{
    mpsim_rounding r;
    if (!f) {
        if (y != x && n)
            memcpy(y, x, n * sizeof *y);
        return MPSIM_OK;
    }
    mpsim_rounding_init(&r, mode);
    return mpsim_round_array_f32(f, &r, NULL, y, x, n, counts);
}

/* The same, and what it did; y may be x. */
static mpsim_status round_counting(const mpsim_format *f, mpsim_round_mode mode, float *y, const float *x, size_t n,
                                   train_counts *counts)
{
    for (size_t i = 0; i < n; i += CPU_IN_CACHE) {
        const size_t some = n - i < CPU_IN_CACHE ? n - i : CPU_IN_CACHE;
        mpsim_counts c = {0, 0, 0, 0, 0};
        counts->nonzero += mpsim_count_numbers(x + i, some).nonzero;
        const mpsim_status s = round_some(f, mode, y + i, x + i, some, &c);
        if (s)
            return s;
        counts->nonfinite += some - mpsim_count_numbers(y + i, some).finite;
        counts->lost += c.underflow;
        counts->overflow += c.overflow;
    }
    return MPSIM_OK;
}

mpsim_status cpu_round_here(const mpsim_format *f, float *x, size_t n, train_counts *counts)
{
    const mpsim_format *to = cpu_is_binary32(f) ? NULL : f;
    return counts ? round_counting(to, MPSIM_ROUND_NEAREST_EVEN, x, x, n, counts)
                  : round_some(to, MPSIM_ROUND_NEAREST_EVEN, x, x, n, NULL);
}

/* ---- rounding on threads ---- */

typedef struct rounding {
    const mpsim_format *f; /* NULL: copied */
    mpsim_round_mode mode;
    float *y;
    const float *x;
    int counting;
    mpsim_status status[CPU_PIECES];
    train_counts counts[CPU_PIECES];
} rounding;

static void round_piece(void *job, size_t piece, size_t first, size_t n)
{
    rounding *r = job;
    r->status[piece] = r->counting ? round_counting(r->f, r->mode, r->y + first, r->x + first, n, &r->counts[piece])
                                   : round_some(r->f, r->mode, r->y + first, r->x + first, n, NULL);
}

static int round_all(train_engine *e, rounding *r, size_t n, train_counts *counts)
{
    r->counting = counts != NULL;
    cpu_pieces(e, n, CPU_IN_CACHE, 1, round_piece, r);
    for (size_t i = 0; i < CPU_PIECES; i++) {
        if (r->status[i])
            return cpu_fail(e, "rounding to %s: %s", r->f ? r->f->name : "no format",
                            mpsim_status_string(r->status[i]));
        if (counts)
            cpu_add_counts(counts, &r->counts[i]);
    }
    return 0;
}

int cpu_round(train_engine *e, const mpsim_format *f, mpsim_round_mode mode, float *y, const float *x, size_t n,
              train_counts *counts)
{
    rounding r = {.f = f, .mode = mode, .y = y, .x = x};
    return round_all(e, &r, n, counts);
}

int cpu_store(train_engine *e, train_tensor *y, const float *x, train_counts *counts)
{
    rounding r = {.f = cpu_is_binary32(y->format) ? NULL : y->format,
                  .mode = MPSIM_ROUND_NEAREST_EVEN,
                  .y = cpu_values(y),
                  .x = x};
    y->inverse = 1;
    return r.f || counts || r.y != x ? round_all(e, &r, cpu_size(y), counts) : 0;
}
