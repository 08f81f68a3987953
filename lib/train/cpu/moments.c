/* moments.c -- the CPU engine: Muon, moments in few bits. */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

/* ---- Muon ---- */

static int failed(train_engine *e, mpsim_status s)
{
    return s ? cpu_fail(e, "muon: %s", mpsim_status_string(s)) : 0;
}

/* How many elements the update of binary64, u's, would move, and which of them stay. */
static mpsim_status count(const mpsim_muon *o, const train_tensor *p, const float *u, double *wide,
                          unsigned char *moves)
{
    const float *x = cpu_values(p);
    const size_t n = cpu_size(p);
    const double step = o->lr * mpsim_muon_factor(o, p->rows, p->cols), kept = 1 - o->lr * o->weight_decay;
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)u[i];
    const mpsim_status s = mpsim_muon_reference(o, wide, wide, p->rows, p->cols);
    for (size_t i = 0; !s && i < n; i++)
        moves[i] = (double)x[i] * kept - step * wide[i] != (double)x[i];
    return s;
}

/* A step from the gradient in u; with room (wide) what it moves, in *updates, and what it should have, in *lost. */
static mpsim_status step(train_engine *e, const train_update *t, const mpsim_muon *o, float *u, double *wide,
                         uint64_t *updates, uint64_t *lost)
{
    const size_t n = cpu_size(t->param), rows = t->param->rows, cols = t->param->cols;
    float *p = cpu_values(t->param), *before = u + n;
    unsigned char *moves = (unsigned char *)(before + n);
    mpsim_status s = mpsim_muon_momentum(o, cpu_values(t->m), u, u, n);
    if (!s && wide)
        s = count(o, t->param, u, wide, moves);
    if (!s)
        s = mpsim_muon_orthogonalise(o, u, u, rows, cols, e->pool);
    memcpy(before, p, n * sizeof *p);
    if (!s)
        s = mpsim_muon_apply(o, p, u, rows, cols);
    for (size_t i = 0; !s && wide && i < n; i++) {
        *updates += moves[i];
        *lost += moves[i] && p[i] == before[i] ? 1 : 0;
    }
    return s;
}

int cpu_muon(train_engine *e, const train_update *u, const mpsim_muon *o, uint64_t *updates, uint64_t *lost)
{
    const size_t n = cpu_size(u->param);
    const float *g = cpu_values(u->grad), scale = (float)u->optim->grad_scale;
    uint64_t moved = 0, stayed = 0;
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    float *x = malloc((n ? n : 1) * (2 * sizeof *x + 1));
    double *wide = updates || lost ? malloc((n ? n : 1) * sizeof *wide) : NULL;
    mpsim_status s = x && (wide || !(updates || lost)) ? MPSIM_OK : MPSIM_ENOMEM;
    for (size_t i = 0; !s && i < n; i++)
        x[i] = u->optim->grad_scale != 1 ? g[i] / scale : g[i];
    if (!s)
        s = mpsim_round_array_f32(&o->param, &nearest, NULL, x, x, n, NULL);
    if (!s && n)
        s = step(e, u, o, x, wide, &moved, &stayed);
    if (updates)
        *updates += moved;
    if (lost)
        *lost += stayed;
    free(x);
    free(wide);
    return failed(e, s);
}

/* ---- moments in few bits ---- */

mpsim_status cpu_keep_values(const mpsim_states *s, float *kept, float *m, float *v, float *vmax, size_t n)
{
    const struct {
        const mpsim_state *as;
        float *x;
    } all[] = {{s->kept, kept}, {s->m, m}, {s->v, v}, {s->v, vmax}};
    mpsim_status status = MPSIM_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++)
        if (all[i].x && mpsim_states_apply(s, all[i].as, n))
            status = mpsim_state_quantise(all[i].as, all[i].x, n, NULL, NULL, all[i].x);
    return status;
}

int cpu_keep(train_engine *e, const mpsim_states *s, train_tensor *kept, train_tensor *m, train_tensor *v,
             train_tensor *vmax)
{
    train_tensor *const all[] = {kept, m, v, vmax};
    float *x[4] = {NULL};
    for (size_t i = 0; i < 4; i++)
        x[i] = all[i] ? cpu_values(all[i]) : NULL;
    const mpsim_status status = cpu_keep_values(s, x[0], x[1], x[2], x[3], cpu_size(kept));
    return status ? cpu_fail(e, "keep: states %s: %s", s->name, mpsim_status_string(status)) : 0;
}
