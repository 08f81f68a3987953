/* t-optim.c -- the bits of every variant of an optimizer step against sequences of operations that
 * MPFR rounds (oracle/optim.h, optimkernels.h). */
#include "oracle/optimkernels.h"
#include "support/optiminput.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/optim.h>
#include <stdio.h>
#include <string.h>

/* `n` elements at once: of VECTOR all are in the vector body of a CPU, of TAIL none. */
enum { TAIL = 7 };

typedef struct comparison {
    const sequence *s;
    int family;
    size_t n;
    unsigned alternatives, left;
    uint8_t dead[ALTERNATIVES];
    uint64_t configurations, values;
    char first[800];
} comparison;

static int differs(double want, float got)
{
    return isnan(want) ? !isnan(got) : bits_of_f32((float)want) != bits_of_f32(got);
}

static void remember(comparison *c, const mpsim_optim *o, uint64_t step, const element *in, const element *want,
                     const arrays *got, size_t i)
{
    const int n = snprintf(c->first, sizeof c->first,
                           "%s %s %s/%s store %d nesterov %d amsgrad %d maximize %d lr %a wd %a eps %a\n"
                           "# momentum %a dampening %a scale %a betas %a %a step %" PRIu64 "\n",
                           o->variant->name, mpsim_optim_name(o->algorithm), o->param.name, o->state.name, o->store,
                           o->nesterov, o->amsgrad, o->maximize, o->lr, o->weight_decay, o->eps, o->momentum,
                           o->dampening, o->grad_scale, o->beta1, o->beta2, step);
    if (n < 0 || (size_t)n >= sizeof c->first)
        return;
    snprintf(c->first + n, sizeof c->first - (size_t)n,
             "# from p %a g %a m %a v %a x %a k %a\n"
             "# p %a, expected %a, m %a, %a, v %a, %a, x %a, %a, k %a, %a",
             in->p, in->g, in->m, in->v, in->x, in->k, (double)got->p[i], want->p, (double)got->m[i], want->m,
             (double)got->v[i], want->v, (double)got->x[i], want->x, (double)got->k[i], want->k);
}

static void compare_alternative(comparison *c, plan *q, const arrays *before, const arrays *after, const mpsim_rng *rng)
{
    memset(q->pick, 0, sizeof q->pick);
    c->s->of[c->family].scalars(q);
    for (size_t i = 0; i < c->n; i++) {
        const uint32_t word = mpsim_rng_word(rng->seed, rng->stream, rng->index + i);
        element in = element_of(before, i, word);
        in.place = (unsigned)((c->n % 4 ? i / 512 : i) % 4);
        element e = in;
        c->s->of[c->family].step(q, &e);
        c->values++;
        if (differs(e.p, after->p[i]) || differs(e.m, after->m[i]) || differs(e.v, after->v[i]) ||
            differs(e.x, after->x[i]) || differs(e.k, after->k[i])) {
            c->dead[q->alt] = 1;
            c->left--;
            if (c->left == 0)
                remember(c, q->o, q->step, &in, &e, after, i);
            return;
        }
    }
}

/* Half of the steps of one configuration, drawn; the arrays run on. */
static void compare(comparison *c, const mpsim_optim *o, int pf, int sf, uint64_t *random)
{
    arrays a, before;
    const int fresh = (test_random(random) & 1) != 0;
    c->configurations++;
    optim_fill(&a, o, pf, sf, fresh, random);
    for (size_t k = 0; k < STEPS && c->left > 0; k++) {
        if (test_random(random) & 1)
            continue;
        arrays next;
        optim_fill(&next, o, pf, sf, 0, random);
        memcpy(a.g, next.g, sizeof a.g);
        before = a;
        const mpsim_rng rng = {7, 11, test_random(random) >> 20};
        const mpsim_optim_tensor t = tensor(&a, o, 0, c->n);
        ck_assert_int_eq(mpsim_optim_step(o, steps[k], &t, &rng), MPSIM_OK);
        plan q = {.o = o, .s = c->s, .step = steps[k], .pf = pf, .sf = sf, .tail = c->n == TAIL};
        for (q.alt = 0; q.alt < c->alternatives; q.alt++)
            if (!c->dead[q.alt])
                compare_alternative(c, &q, &before, &a, &rng);
    }
}

/* What of the options is a matter of the variant: those that it has not are left out. */
static void compare_all(comparison *c, mpsim_optim_algorithm algorithm, uint64_t *random)
{
    static const int pairs[][2] = {{BF16, BF16}, {FP16, FP16}, {B32, B32}, {B32, BF16}, {BF16, B32}, {B32, FP16}};
    const mpsim_optim_variant *v = mpsim_optim_variant_find(c->s->variant);
    for (unsigned k = 0; k < 32 * 6 * 3; k++) {
        mpsim_optim o;
        mpsim_optim_init(&o, algorithm, v);
        const int *formats = pairs[k / 32 % 6];
        numbers(&o, k % 32, random);
        if (k % 32 == 0)
            mpsim_optim_init(&o, algorithm, v); /* the defaults */
        o.param = *optim_format(formats[0]);
        o.state = *optim_format(formats[1]);
        o.store = (uint8_t)(k / 192);
        if (strncmp(v->name, "optimi", 6) == 0 && o.dampening != 0)
            o.dampening = o.momentum; /* a switch there */
        /* Operation by operation on CPU torch has one format, and nothing is recorded of two. */
        if (formats[0] != formats[1] && c->s->on_tensors && strstr(v->name, "cpu"))
            continue;
        if (mpsim_optim_check(&o) == MPSIM_OK)
            for (size_t i = 0; i < test_scaled(1) && c->left > 0; i++)
                compare(c, &o, formats[0], formats[1], random);
    }
}

static void compare_family(const sequence *s, int family, size_t n, uint64_t *random)
{
    comparison c = {.s = s, .family = family, .n = n, .alternatives = s->of[family].alternatives};
    if (n == TAIL && !strstr(s->variant, "default") && s->on_tensors)
        c.alternatives *= FMA_ALL + 1;
    c.left = c.alternatives;
    ck_assert_uint_le(c.alternatives, ALTERNATIVES);
    if (c.alternatives == 0)
        return;
    const mpsim_optim_variant *v = mpsim_optim_variant_find(s->variant);
    ck_assert_msg(v != NULL, "no variant %s", s->variant);
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        if ((v->algorithms >> a & 1) && mpsim_optim_traits_of(a)->family == family)
            compare_all(&c, (mpsim_optim_algorithm)a, random);
    printf("# %s %s%s: %" PRIu64 " configurations, %" PRIu64 " elements, %u of %u alternatives:", s->variant,
           mpsim_optim_name((mpsim_optim_algorithm)family), n == TAIL ? " tail" : "", c.configurations, c.values,
           c.left, c.alternatives);
    for (unsigned i = 0, shown = 0; i < c.alternatives && shown < 6; i++)
        if (!c.dead[i]) {
            printf(" %u", i);
            shown++;
        }
    printf("\n");
    fflush(stdout);
    ck_assert_msg(c.left > 0, "no alternative is left; the last one failed at\n# %s", c.first);
}

CASE("bits", 60);

TESTS(bits_are_the_sequence_of_operations, SEQUENCES)
{
    uint64_t random = test_seed() + (uint64_t)_i;
    const int cpu = strstr(sequences[_i].variant, "cpu") != NULL;
    if (!test_in_part((uint64_t)_i, 1))
        return;
    for (int family = 0; family < MPSIM_OPTIM_ALGORITHMS; family++) {
        compare_family(&sequences[_i], family, cpu ? VECTOR : VECTOR / 2, &random);
        if (cpu)
            compare_family(&sequences[_i], family, TAIL, &random);
    }
}

TEST_MAIN("optim");
