/* window.c -- see window.h. */
#include "window.h"

#include <string.h>

/* ---- runs ---- */

size_t mpsim_window_taps(const mpsim_window *w)
{
    return w->axis[0].taps * w->axis[1].taps * w->axis[2].taps;
}

static size_t blocks_of(const mpsim_turns *t)
{
    return t->channels ? (t->channels - 1) / t->block + 1 : 0;
}

size_t mpsim_window_count_runs(const mpsim_window *w, const mpsim_turns *t)
{
    return mpsim_window_taps(w) * blocks_of(t);
}

static mpsim_run run_of(const mpsim_window *w, const mpsim_turns *t, size_t tap, size_t block)
{
    const size_t channel = block * t->block, left = t->channels - channel;
    mpsim_run r = {.n = left < t->block ? left : t->block, .channel = channel};
    r.at = (ptrdiff_t)channel * w->channel;
    for (size_t d = 3; d-- > 0; tap /= w->axis[d].taps) {
        r.tap[d] = tap % w->axis[d].taps;
        r.place[d] = w->axis[d].shift + (ptrdiff_t)r.tap[d] * w->axis[d].dilation;
        r.at += r.place[d] * w->stride[d];
    }
    return r;
}

void mpsim_window_runs(const mpsim_window *w, const mpsim_turns *t, mpsim_run *runs)
{
    const size_t taps = mpsim_window_taps(w), blocks = blocks_of(t);
    for (size_t i = 0; i < taps * blocks; i++)
        runs[i] = t->blocks_first ? run_of(w, t, i % taps, i / taps) : run_of(w, t, i / blocks, i % blocks);
}

/* ---- positions ---- */

typedef struct position {
    size_t j[3];
    ptrdiff_t image, origin[3];
} position;

static position find(const mpsim_window *w, size_t i)
{
    position p;
    for (size_t d = 3; d-- > 0; i /= w->axis[d].positions) {
        p.j[d] = i % w->axis[d].positions;
        p.origin[d] = (ptrdiff_t)p.j[d] * w->axis[d].step;
    }
    p.image = (ptrdiff_t)i;
    return p;
}

static void advance(const mpsim_window *w, position *p)
{
    for (size_t d = 3; d-- > 0;) {
        p->origin[d] += w->axis[d].step;
        if (++p->j[d] < w->axis[d].positions)
            return;
        p->j[d] = 0;
        p->origin[d] = 0;
    }
    p->image++;
}

/* Whether all taps read inside of the tensor. */
static int is_inside(const mpsim_window *w, const position *p)
{
    for (size_t d = 0; d < 3; d++) {
        const mpsim_axis *a = &w->axis[d];
        const ptrdiff_t first = p->origin[d] + a->shift, last = first + ((ptrdiff_t)a->taps - 1) * a->dilation;
        if (first < 0 || last < 0 || (size_t)first >= a->extent || (size_t)last >= a->extent)
            return 0;
    }
    return 1;
}

static int reads(const mpsim_window *w, const position *p, const mpsim_run *r)
{
    return (size_t)(p->origin[0] + r->place[0]) < w->axis[0].extent &&
           (size_t)(p->origin[1] + r->place[1]) < w->axis[1].extent &&
           (size_t)(p->origin[2] + r->place[2]) < w->axis[2].extent;
}

/* ---- gathering ---- */

/* One line; `bytes` is a constant where this is inlined. */
static inline void gather(const size_t bytes, const mpsim_window *w, const position *p, const mpsim_run *runs, size_t n,
                          const unsigned char *from, unsigned char *to)
{
    const int inside = is_inside(w, p);
    for (size_t i = 0; i < n; to += runs[i].n * bytes, i++) {
        const ptrdiff_t at = runs[i].at * (ptrdiff_t)bytes;
        if (!inside && !reads(w, p, &runs[i]))
            memset(to, 0, runs[i].n * bytes);
        else if (runs[i].n == 1)
            memcpy(to, from + at, bytes);
        else
            memcpy(to, from + at, runs[i].n * bytes);
    }
}

static void gather_line(const mpsim_window *w, const position *p, const mpsim_run *runs, size_t n,
                        const unsigned char *from, unsigned char *to)
{
    if (w->bytes == 1)
        gather(1, w, p, runs, n, from, to);
    else if (w->bytes == 2)
        gather(2, w, p, runs, n, from, to);
    else if (w->bytes == 4)
        gather(4, w, p, runs, n, from, to);
    else
        gather(8, w, p, runs, n, from, to);
}

void mpsim_window_gather(const mpsim_window *w, const mpsim_run *runs, size_t n_runs, size_t width, size_t channel,
                         size_t first, size_t n, unsigned char *to)
{
    if (n == 0)
        return;
    position p = find(w, first);
    for (size_t i = 0; i < n; i++, advance(w, &p)) {
        ptrdiff_t at = p.image * w->image + (ptrdiff_t)channel * w->channel;
        for (size_t d = 0; d < 3; d++)
            at += p.origin[d] * w->stride[d];
        if (!w->columns || p.j[2] < w->columns)
            gather_line(w, &p, runs, n_runs, w->codes + at * (ptrdiff_t)w->bytes, to + i * width * w->bytes);
        else
            memset(to + i * width * w->bytes, 0, width * w->bytes);
    }
}
