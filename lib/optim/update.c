/* update.c -- see mpsim/update.h: the parameters of a step, in pieces, with counts of updates that are lost.
 *
 * The CPU engine and Python both call this. Gradients are checked, unscaled and clipped in place; pieces of all
 * parameters are one list for the threads; a step in binary64 beside it counts the updates that are lost. */
#include <mpsim/update.h>

#include "../base/extent.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a piece, a multiple of what a vector body takes (optim.h), and worth waking a thread; those that are counted at a time, and those of
 * them whose step is taken in binary64, for which a thread's stack has room. */
enum { SOME = 4096, WORTH = 2, COUNTED = 2048, WIDE = 512, PIECES = 64 };

/* One of the pieces of all parameters. */
typedef struct piece {
    mpsim_update *u;
    size_t first, n;
    int count;
    mpsim_status status;
    uint64_t updates, lost;
} piece;

static mpsim_optim_tensor part_of(const mpsim_optim_tensor *t, size_t first, size_t n)
{
    mpsim_optim_tensor part = *t;
    float **const all[] = {&part.param, &part.m, &part.v, &part.vmax, &part.kahan};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = *all[i] ? *all[i] + first : NULL;
    part.grad += first;
    part.n = n;
    return part;
}

static double *widen(double *y, const float *x, size_t n)
{
    for (size_t i = 0; x && i < n; i++)
        y[i] = (double)x[i];
    return x ? y : NULL;
}

/* Of the elements of a step that is counted. */
typedef struct room {
    double *param, *grad, *m, *v, *vmax;
    size_t wide; /* elements that these have room for */
    float *before, *kahan;
    uint32_t *moves;
} room;

/* moves[i]: the same step in binary64 changes the parameter. */
static mpsim_status reference(const mpsim_update *u, const mpsim_optim_tensor *t, const room *w, uint32_t *moves)
{
    const mpsim_optim *o = u->optim;
    const size_t n = t->n, m = (size_t)mpsim_optim_elements(o, MPSIM_OPTIM_M, n),
                 v = (size_t)mpsim_optim_elements(o, MPSIM_OPTIM_V, n);
    const mpsim_status s = mpsim_optim_reference(o, u->step, widen(w->param, t->param, n), widen(w->grad, t->grad, n),
                                                 widen(w->m, t->m, m), widen(w->v, t->v, v), widen(w->vmax, t->vmax, n),
                                                 n);
    for (size_t i = 0; !s && i < n; i++)
        moves[i] = w->param[i] != (double)t->param[i];
    return s;
}

/* The same of all elements: by kernels, and what they leave. */
static mpsim_status find_moves(const mpsim_update *u, const mpsim_optim_tensor *t, const room *w)
{
    mpsim_status s = MPSIM_OK;
    for (size_t k = mpsim_optim_moves(u->optim, u->step, t, w->moves); k < t->n && !s; k += w->wide) {
        const mpsim_optim_tensor part = part_of(t, k, t->n - k < w->wide ? t->n - k : w->wide);
        s = reference(u, &part, w, w->moves + k);
    }
    return s;
}

static mpsim_status remember(const mpsim_update *u, const mpsim_optim_tensor *t, const room *w)
{
    const mpsim_status s = find_moves(u, t, w);
    memcpy(w->before, t->param, t->n * sizeof *w->before);
    if (t->kahan)
        memcpy(w->kahan, t->kahan, t->n * sizeof *w->kahan);
    return s;
}

static void add_lost(piece *p, const mpsim_optim_tensor *t, const room *w)
{
    uint64_t updates = 0, lost = 0;
    for (size_t i = 0; t->kahan && i < t->n; i++)
        lost -= w->moves[i] & (t->param[i] == w->before[i]) & (t->kahan[i] != w->kahan[i]);
    for (size_t i = 0; i < t->n; i++) {
        updates += w->moves[i];
        lost += w->moves[i] & (t->param[i] == w->before[i]);
    }
    p->updates += updates;
    p->lost += lost;
}

static mpsim_status step_elements(piece *p, size_t first, size_t n, const room *w)
{
    const mpsim_update *u = p->u;
    const mpsim_optim_tensor t = part_of(&u->t, first, n);
    mpsim_rng rng = {0, 0, 0};
    if (u->rng) {
        rng = *u->rng;
        rng.index += first;
    }
    mpsim_status s = p->count ? remember(u, &t, w) : MPSIM_OK;
    if (!s)
        s = mpsim_optim_step(u->optim, u->step, &t, u->rng ? &rng : NULL);
    if (!s && u->states)
        s = mpsim_states_keep(u->states, t.param, t.m, t.v, t.vmax, n);
    if (!s && p->count)
        add_lost(p, &t, w);
    return s;
}

static mpsim_status some_elements(piece *p, size_t first, size_t n)
{
    double param[WIDE], grad[WIDE], m[WIDE], v[WIDE], vmax[WIDE];
    float before[COUNTED], kahan[COUNTED];
    uint32_t moves[COUNTED];
    const room w = {param, grad, m, v, vmax, WIDE, before, kahan, moves};
    return step_elements(p, first, n, &w);
}

/* Of an optimizer that steps tensors as a whole, and of arrays that are stored in blocks. */
static mpsim_status all_elements(piece *p)
{
    const size_t n = p->count ? p->u->t.n : 1;
    double *wide = malloc((n ? n : 1) * (5 * sizeof *wide + 2 * sizeof(float) + sizeof(uint32_t)));
    float *narrow = (float *)(wide + 5 * n);
    const room w = {
        wide, wide + n, wide + 2 * n, wide + 3 * n, wide + 4 * n, n, narrow, narrow + n, (uint32_t *)(narrow + 2 * n)};
    const mpsim_status s = wide ? step_elements(p, 0, p->u->t.n, &w) : MPSIM_ENOMEM;
    free(wide);
    return s;
}

static int is_whole(const mpsim_update *u)
{
    return u->states || mpsim_optim_traits_of(u->optim->algorithm)->factors;
}

static void run_piece(size_t i, void *job)
{
    piece *p = (piece *)job + i;
    const size_t most = p->count ? COUNTED : p->n;
    if (is_whole(p->u)) {
        p->status = all_elements(p);
        return;
    }
    for (size_t k = 0; k < p->n && !p->status; k += most)
        p->status = some_elements(p, p->first + k, p->n - k < most ? p->n - k : most);
}

/* ---- Muon ---- */

/* How many elements the update of binary64, u's, would move, and which of them stay. */
static mpsim_status count_muon(const mpsim_update *t, const float *u, double *wide, unsigned char *moves)
{
    const mpsim_muon *o = t->muon;
    const float *x = t->t.param;
    const size_t n = t->t.n;
    const double step = o->lr * mpsim_muon_factor(o, t->rows, t->cols), kept = 1 - o->lr * o->weight_decay;
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)u[i];
    const mpsim_status s = mpsim_muon_reference(o, wide, wide, t->rows, t->cols);
    for (size_t i = 0; !s && i < n; i++)
        moves[i] = (double)x[i] * kept - step * wide[i] != (double)x[i];
    return s;
}

/* A step from the gradient in u, behind which there is room for as many numbers and a byte each; with room (wide) what it moves is counted. */
static mpsim_status move_muon(mpsim_update *t, float *u, double *wide, const mpsim_pool *pool)
{
    const mpsim_muon *o = t->muon;
    const size_t n = t->t.n;
    float *p = t->t.param, *before = u + n;
    unsigned char *moves = (unsigned char *)(before + n);
    mpsim_status s = mpsim_muon_momentum(o, t->t.m, u, u, n);
    if (!s && wide)
        s = count_muon(t, u, wide, moves);
    if (!s)
        s = mpsim_muon_orthogonalise(o, u, u, t->rows, t->cols, pool);
    memcpy(before, p, n * sizeof *p);
    if (!s)
        s = mpsim_muon_apply(o, p, u, t->rows, t->cols);
    for (size_t i = 0; !s && wide && i < n; i++) {
        t->updates += moves[i];
        t->lost += moves[i] && p[i] == before[i] ? 1 : 0;
    }
    return s;
}

static mpsim_status run_muon(mpsim_update *t, int count, const mpsim_pool *pool)
{
    const size_t n = t->t.n;
    const double scale = t->optim ? t->optim->grad_scale : 1;
    const float *g = t->t.grad;
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    float *x = malloc((n ? n : 1) * (2 * sizeof *x + 1));
    double *wide = count ? malloc((n ? n : 1) * sizeof *wide) : NULL;
    mpsim_status s = x && (wide || !count) ? MPSIM_OK : MPSIM_ENOMEM;
    for (size_t i = 0; !s && i < n; i++)
        x[i] = scale != 1 ? g[i] / (float)scale : g[i];
    if (!s)
        s = mpsim_round_array_f32(&t->muon->param, &nearest, NULL, x, x, n, NULL);
    if (!s && n)
        s = move_muon(t, x, wide, pool);
    free(x);
    free(wide);
    return s;
}

/* ---- all of them ---- */

/* Elements of a piece of a parameter of n. */
static size_t size_of(const mpsim_update *u)
{
    const size_t units = (u->t.n - 1) / SOME + 1, share = (units - 1) / PIECES + 1;
    return is_whole(u) ? u->t.n : SOME * (share > WORTH ? share : WORTH);
}

/* Pieces are appended at p, or only counted (NULL). */
static size_t cut(mpsim_update *list, size_t n, int count, piece *p)
{
    size_t pieces = 0;
    for (size_t i = 0; i < n; i++) {
        mpsim_update *u = &list[i];
        u->updates = u->lost = 0;
        if (u->muon || !u->t.n)
            continue;
        const size_t size = size_of(u);
        for (size_t first = 0; first < u->t.n; first += size, pieces++)
            if (p)
                p[pieces] =
                    (piece){.u = u, .first = first, .n = u->t.n - first < size ? u->t.n - first : size, .count = count};
    }
    return pieces;
}

static mpsim_status fails(const mpsim_update *list, const mpsim_update *u, mpsim_status s, size_t *which)
{
    if (which)
        *which = (size_t)(u - list);
    return s;
}

static mpsim_status gather(const mpsim_update *list, piece *p, size_t n, size_t *which)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i].status)
            return fails(list, p[i].u, p[i].status, which);
        p[i].u->updates += p[i].updates;
        p[i].u->lost += p[i].lost;
    }
    return MPSIM_OK;
}

static mpsim_status run_pieces(mpsim_update *list, size_t n, int count, const mpsim_pool *pool, size_t *which)
{
    const size_t pieces = cut(list, n, count, NULL);
    piece *p = malloc((pieces ? pieces : 1) * sizeof *p);
    if (!p)
        return fails(list, list, MPSIM_ENOMEM, which);
    (void)cut(list, n, count, p);
    if (pool && pieces > 1)
        pool->run(pool->self, pieces, run_piece, p);
    else
        for (size_t i = 0; i < pieces; i++)
            run_piece(i, p);
    const mpsim_status s = gather(list, p, pieces, which);
    free(p);
    return s;
}

/* What mpsim_optim_step would refuse, before any of it is done. */
static mpsim_status check_one(const mpsim_update *u)
{
    const mpsim_optim_tensor *t = &u->t;
    if (!mpsim_fits(t->n, sizeof *t->param))
        return MPSIM_EINVAL;
    if (u->muon)
        return t->n != mpsim_elements(u->rows, u->cols) || (t->n && (!t->param || !t->grad || !t->m))
                   ? MPSIM_EINVAL
                   : mpsim_muon_check(u->muon);
    return !u->optim || (t->n && (!t->param || !t->grad)) ? MPSIM_EINVAL : mpsim_optim_check(u->optim);
}

mpsim_status mpsim_update_run(mpsim_update *list, size_t n, int count, const mpsim_pool *pool, size_t *which)
{
    if (!mpsim_fits(n, sizeof *list))
        return MPSIM_EINVAL;
    for (size_t i = 0; i < n; i++) {
        const mpsim_status s = check_one(&list[i]);
        if (s)
            return fails(list, &list[i], s, which);
    }
    const mpsim_status s = run_pieces(list, n, count, pool, which);
    if (s)
        return s;
    for (size_t i = 0; i < n; i++) {
        const mpsim_status own = list[i].muon ? run_muon(&list[i], count, pool) : MPSIM_OK;
        if (own)
            return fails(list, &list[i], own, which);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_states_keep(const mpsim_states *s, float *kept, float *m, float *v, float *vmax, size_t n)
{
    const struct {
        const mpsim_state *as;
        float *x;
    } all[] = {{s->kept, kept}, {s->m, m}, {s->v, v}, {s->v, vmax}};
    mpsim_status status = mpsim_fits(n, sizeof *kept) ? MPSIM_OK : MPSIM_EINVAL;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++)
        if (all[i].x && mpsim_states_apply(s, all[i].as, n))
            status = mpsim_state_quantise(all[i].as, all[i].x, n, NULL, NULL, all[i].x);
    return status;
}
