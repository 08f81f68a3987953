/* norm.c -- the norm of all gradients as ATen's CPU kernels sum it; see state.h.
 *
 * Squares are added in eight lanes, whatever the CPU has; the lanes in their order; then what is left
 * over, of which groups of four are multiplied before they are added, and the others contracted to
 * an FMA where kernels are compiled with it. As recorded with torch 2.15.0, ATEN_CPU_CAPABILITY
 * default, avx2 and avx512, in tensors of 1 to 1,000,000 elements of any shape. */
#include "impl.h"

#include "../array/need.h"
#include "../process/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, FOURS = 4 };

static float lane_norm(const float *x, size_t n, int contracts)
{
    float lane[LANES] = {0};
    const size_t body = n - n % LANES, fours = body + n % LANES / FOURS * FOURS;
    size_t i = 0;
    for (; i < body; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            lane[k] += x[i + k] * x[i + k];
    float sum = lane[0];
    for (size_t k = 1; k < LANES; k++)
        sum += lane[k];
    for (; i < n; i++)
        sum = contracts && i >= fours ? fmaf(x[i], x[i], sum) : sum + x[i] * x[i];
    return sqrtf(sum);
}

static float largest(const float *x, size_t n)
{
    float max = 0;
    for (size_t i = 0; i < n && !isnan(max); i++)
        max = isnan(x[i]) || fabsf(x[i]) > max ? fabsf(x[i]) : max;
    return max;
}

/* ---- the order of the tensors: that of the only group ---- */

typedef struct place {
    const parameter *p;
    size_t at;
} place;

static int by_place(const void *a, const void *b)
{
    const size_t x = ((const place *)a)->at, y = ((const place *)b)->at;
    return x < y ? -1 : x > y;
}

/* As model.parameters() gave them: one group has that order, several need not. */
static int order(const replay *r, parameter *const *list, size_t n, place *out)
{
    int known = r->groups.n == 1 || n < 2;
    for (size_t i = 0; i < n; i++) {
        const ptrdiff_t at = nameindex_find(&r->groups.names, list[i]->name);
        out[i] = (place){list[i], (size_t)at};
        known &= at >= 0 || n < 2;
    }
    qsort(out, n, sizeof *out, by_place);
    return known ? 0 : -1;
}

int replay_cpu_norm(const replay *r, parameter *const *list, size_t n, double *norm)
{
    const step_record *m = &r->record;
    const int infinite = isinf(m->grad_norm_type);
    int code = 0;
    *norm = (double)NAN;
    for (size_t i = 0; i < n; i++)
        if (list[i]->place.kept.mbits != 23)
            return 0;
    if (!infinite && (m->grad_norm_type != 2 || m->device != DEVICE_CPU || m->contracts < 0))
        return 0;
    place *places = need_memory(n, sizeof *places);
    float *norms = need_memory(n, sizeof *norms);
    if (order(r, list, n, places) == 0 || infinite) {
        for (size_t i = 0; i < n; i++) {
            const parameter *p = places[i].p;
            norms[i] = infinite ? largest(p->g, p->n) : lane_norm(p->g, p->n, m->contracts);
        }
        code = world_unite(norms, n * sizeof *norms); /* 0 without elements here */
        if (!code)
            *norm = (double)(infinite ? largest(norms, n) : lane_norm(norms, n, m->contracts));
    }
    free(places);
    free(norms);
    return code;
}
