/* axes.c -- see axes.h. */
#include "axes.h"

#include "panel.h"
#include "stack.h"

enum { BUFFER = 1024 /* numbers that are rounded at once */, TASK = 1 << 15 /* those of a task, at least */ };

size_t mpsim_axes_count(const mpsim_axes *x)
{
    size_t n = 1;
    for (size_t i = 0; i < x->dims; i++)
        n *= x->size[i];
    return n;
}

/* ---- lines: what runs along the fastest axis ---- */

typedef union buffer {
    double f64[BUFFER];
    float f32[BUFFER];
} buffer;

static void round_codes(const mpsim_axes *x, unsigned char *to, const uint64_t *codes, size_t n)
{
    const mpsim_rounded *r = x->rounded;
    buffer values;
    if (mpsim_in_binary32(x->format)) {
        mpsim_decode_array_f32(x->format, values.f32, codes, n);
        mpsim_encode_array_f32(&r->format, &r->rounding, NULL, to, values.f32, n, NULL);
    } else {
        mpsim_decode_array(x->format, values.f64, codes, n);
        mpsim_encode_array_f64(&r->format, &r->rounding, NULL, to, values.f64, n, NULL);
    }
}

/* Numbers that wait for being rounded, and where they go to. */
typedef struct waiting {
    const mpsim_axes *x;
    size_t from, into; /* bytes of a code */
    unsigned char *to;
    size_t n;
    uint64_t codes[BUFFER];
} waiting;

static void flush(waiting *w)
{
    if (w->n)
        round_codes(w->x, w->to, w->codes, w->n);
    w->to += w->n * w->into;
    w->n = 0;
}

static void add_line(waiting *w, const unsigned char *line, size_t n, ptrdiff_t stride)
{
    if (!w->x->rounded) {
        mpsim_read_codes(w->to, line, w->from, 0, stride, n);
        w->to += n * w->into;
        return;
    }
    for (size_t some; n; n -= some, line += (ptrdiff_t)some * stride * (ptrdiff_t)w->from) {
        some = n < BUFFER - w->n ? n : BUFFER - w->n;
        mpsim_read_codes((unsigned char *)w->codes + w->n * w->from, line, w->from, 0, stride, some);
        w->n += some;
        if (w->n == BUFFER)
            flush(w);
    }
}

/* Where line i begins, in codes; at: its place on each axis but the last. */
static ptrdiff_t find_line(const mpsim_axes *x, size_t i, size_t *at)
{
    ptrdiff_t first = 0;
    for (size_t d = x->dims - 1; d-- > 0; i /= x->size[d]) {
        at[d] = i % x->size[d];
        first += (ptrdiff_t)at[d] * x->stride[d];
    }
    return first;
}

static ptrdiff_t next_line(const mpsim_axes *x, ptrdiff_t first, size_t *at)
{
    for (size_t d = x->dims - 1; d-- > 0;) {
        first += x->stride[d];
        if (++at[d] < x->size[d])
            break;
        first -= (ptrdiff_t)x->size[d] * x->stride[d];
        at[d] = 0;
    }
    return first;
}

typedef struct putting {
    const mpsim_axes *x;
    unsigned char *to;
    size_t lines, each; /* lines of a task */
} putting;

static void put_lines(size_t task, void *context)
{
    const putting *p = (const putting *)context;
    const mpsim_axes *x = p->x;
    const size_t first = task * p->each, n = p->lines - first < p->each ? p->lines - first : p->each;
    const size_t length = x->size[x->dims - 1];
    size_t at[MPSIM_AXES];
    waiting w;
    w.x = x;
    w.from = mpsim_format_code_bytes(x->format);
    w.into = mpsim_format_code_bytes(mpsim_axes_format(x));
    w.to = p->to + first * length * w.into;
    w.n = 0;
    ptrdiff_t line = find_line(x, first, at);
    for (size_t i = 0; i < n; i++, line = next_line(x, line, at))
        add_line(&w, x->codes + line * (ptrdiff_t)w.from, length, x->stride[x->dims - 1]);
    flush(&w);
}

void mpsim_axes_put(const mpsim_axes *x, void *to, const mpsim_pool *pool)
{
    const size_t n = mpsim_axes_count(x), length = x->size[x->dims - 1];
    if (n == 0)
        return;
    putting p = {x, (unsigned char *)to, n / length, TASK / length + 1};
    const size_t tasks = (p.lines - 1) / p.each + 1;
    if (pool && tasks > 1) {
        pool->run(pool->self, tasks, put_lines, &p);
        return;
    }
    for (size_t i = 0; i < tasks; i++)
        put_lines(i, &p);
}
