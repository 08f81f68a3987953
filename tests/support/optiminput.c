/* optiminput.c -- see optiminput.h. */
#include "optiminput.h"

#include <string.h>

const uint64_t steps[STEPS] = {1, 2, 3, 17, 1000, 100003};

static const double edges[] = {0.0,         -0.0,       0x1p-149,        -0x1p-149, 0x1p-133, 0x1p-126,
                               -0x1.8p-127, 0x1p-24,    -0x1p-25,        1,         -1,       0x1p-75,
                               -0x1p70,     0x1.fep127, -0x1.fffffep127, 65504,     -65520,   INFINITE,
                               -INFINITE,   NOTANUMBER, 0x1p-11,         3,         0x1p64};

double unit(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

double draw(int f, uint64_t *random, int kind, int lo, int hi)
{
    const double sign = test_random(random) & 1 ? -1 : 1;
    if (kind == 2)
        return to(f, edges[test_random(random) % (sizeof edges / sizeof edges[0])]);
    const int span = (int)(shapes[f].emax - shapes[f].emin);
    const int e = kind == 1 ? (int)shapes[f].emin + (int)(test_random(random) % (uint64_t)span)
                            : lo + (int)(test_random(random) % (uint64_t)(hi - lo + 1));
    return to(f, sign * ldexp(0.5 + unit(random) / 2, e));
}

const mpsim_format *optim_format(int f)
{
    const mpsim_format *found = mpsim_format_find(shapes[f].name);
    ck_assert_ptr_nonnull(found);
    return found;
}

static int any_gradient(const char *variant)
{
    return strcmp(variant, "ieee") == 0 || strncmp(variant, "torch-fused", 11) == 0 || strcmp(variant, "apex") == 0 ||
           strcmp(variant, "torchao") == 0;
}

void optim_fill(arrays *a, const mpsim_optim *o, int pf, int sf, int zero_state, uint64_t *random)
{
    const int gf = any_gradient(o->variant->name) ? B32 : pf;
    for (size_t i = 0; i < N; i++) {
        const int kind = i % 4 == 3 ? 2 : i % 4 == 2 ? 1 : 0;
        const int same = (test_random(random) & 3) != 0;
        a->p[i] = (float)draw(pf, random, same ? kind : 0, -8, 2);
        a->g[i] = (float)draw(gf, random, kind, -18, 0);
        a->m[i] = zero_state ? 0 : (float)draw(sf, random, same ? 0 : kind, -18, 0);
        a->v[i] = zero_state ? 0 : (float)fabs(draw(sf, random, same ? 0 : kind, -36, 0));
        a->x[i] = zero_state ? 0 : (float)fabs(draw(sf, random, same ? 0 : kind, -36, 0));
        a->k[i] = zero_state ? 0 : (float)draw(pf, random, 0, -18, -10);
    }
}

mpsim_optim_tensor tensor(arrays *a, const mpsim_optim *o, size_t first, size_t n)
{
    mpsim_optim_tensor t = {a->p + first, a->g + first, NULL, NULL, NULL, NULL, n};
    if (family_of(o) != MPSIM_OPTIM_SGD || o->momentum != 0)
        t.m = a->m + first;
    if (is_adam(o) || o->algorithm == MPSIM_OPTIM_ADAFACTOR)
        t.v = a->v + first;
    if (is_adam(o) && o->amsgrad)
        t.vmax = a->x + first;
    if (o->store == MPSIM_STORE_KAHAN)
        t.kahan = a->k + first;
    return t;
}

element element_of(const arrays *a, size_t i, uint32_t random)
{
    const element e = {(double)a->p[i], (double)a->g[i], (double)a->m[i], (double)a->v[i],
                       (double)a->x[i], (double)a->k[i], random,          0};
    return e;
}

static double pick(uint64_t *random, const double *values, size_t n)
{
    return values[test_random(random) % n];
}
#define PICK(random, ...) pick(random, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

void numbers(mpsim_optim *o, unsigned options, uint64_t *random)
{
    o->lr = PICK(random, 1e-3, 1e-3, 3e-4, 0.1, 1, 6e-5);
    o->beta1 = PICK(random, 0.9, 0.9, 0.95, 0.5, 0.4, 0.0, 0.875);
    o->beta2 = PICK(random, 0.999, 0.999, 0.99, 0.95, 0.0, 0.98);
    o->eps = PICK(random, 1e-8, 1e-8, 1e-6, 0.0, 1e-15);
    o->amsgrad = is_adam(o) && (options & 1) != 0;
    o->nesterov = family_of(o) == MPSIM_OPTIM_SGD && (options & 1) != 0;
    o->momentum = family_of(o) == MPSIM_OPTIM_SGD && (options & 3) != 0 ? PICK(random, 0.9, 0.99, 0.3) : 0;
    o->dampening = family_of(o) == MPSIM_OPTIM_SGD && (options & 3) == 2 ? PICK(random, 0.0, 0.1, 0.7) : 0;
    o->maximize = (options & 4) != 0;
    o->weight_decay = options & 8 ? PICK(random, 1e-2, 0.1, 5e-4, 1) : 0;
    o->grad_scale = options & 16 ? PICK(random, 65536, 0x1.8p10, 45875.2001953125, 7) : 1;
}
