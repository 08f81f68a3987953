/* decoderoptim.c -- see decoderoptim.h. */
#include "decoderoptim.h"

#include "optimkernels.h"

#include <stdlib.h>

/* Which of a variant's alternatives is meant, by family: what optim/t-optim finds. */
static const struct {
    const char *variant;
    unsigned of[MPSIM_OPTIM_ALGORITHMS];
} chosen[] = {{"apex", {[MPSIM_OPTIM_ADAM] = 1, [MPSIM_OPTIM_SGD] = 7}},
              {"torchao", {[MPSIM_OPTIM_ADAM] = 34}},
              {"optimi", {[MPSIM_OPTIM_SGD] = 1}}};

static int shape_of(const char *name)
{
    for (int i = 0; i < SHAPES; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return i;
    abort();
}

static const sequence *sequence_of(const char *name)
{
    for (size_t i = 0; i < SEQUENCES; i++)
        if (strcmp(sequences[i].variant, name) == 0)
            return &sequences[i];
    abort();
}

static unsigned alternative(const char *name, const sequence *s, int family)
{
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (strcmp(chosen[i].variant, name) == 0)
            return chosen[i].of[family];
    if (s->of[family].alternatives != 1)
        abort();
    return 0;
}

void oracle_optim(const mpsim_optim *o, uint64_t step, const oracle_step_of *t)
{
    const int family = family_of(o);
    const sequence *s = sequence_of(o->variant->name);
    plan q = {.o = o,
              .s = s,
              .step = step,
              .pf = shape_of(o->param.name),
              .sf = shape_of(o->state.name),
              .alt = alternative(o->variant->name, s, family)};
    if (o->amsgrad)
        abort();
    s->of[family].scalars(&q);
    for (size_t i = 0; i < t->n; i++) {
        element e = {.p = (double)t->p[i],
                     .g = (double)t->g[i],
                     .m = t->m ? (double)t->m[i] : 0,
                     .v = t->v ? (double)t->v[i] : 0,
                     .k = t->k ? (double)t->k[i] : 0,
                     .random = mpsim_rng_word(t->rng.seed, t->rng.stream, t->rng.index + i)};
        s->of[family].step(&q, &e);
        t->p[i] = (float)e.p;
        if (t->m)
            t->m[i] = (float)e.m;
        if (t->v)
            t->v[i] = (float)e.v;
        if (t->k)
            t->k[i] = (float)e.k;
    }
}

double oracle_exp64(double x)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    return rounded_end(B64, n->r[B64], mpfr_exp(n->r[B64], n->a, MPFR_RNDN));
}

double oracle_log64(double x)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    return rounded_end(B64, n->r[B64], mpfr_log(n->r[B64], n->a, MPFR_RNDN));
}
