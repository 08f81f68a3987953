/* t-optim.c -- optimizer steps against sequences of operations that MPFR rounds
 * (optimoracle.h), and what <mpsim/optim.h> promises beside: statuses, powers, stores, the
 * split master, the reference. */
#include "optimexact.h"
#include "optimkernels.h"
#include "support.h"

#include <inttypes.h>
#include <mpsim/optim.h>
#include <stdio.h>

#define INFINITE ((double)INFINITY)
#define NOTANUMBER ((double)NAN)

enum { VECTOR = 32, N = 45, STEPS = 6 }; /* 45: a vector body of a CPU, and a tail */

static const uint64_t steps[STEPS] = {1, 2, 3, 17, 1000, 100003};

/* ------------------------------------------------------------------------------- the inputs */

static const double edges[] = {
    0.0, -0.0, 0x1p-149, -0x1p-149, 0x1p-133, 0x1p-126, -0x1.8p-127, 0x1p-24, -0x1p-25, 1, -1,
    0x1p-75,
    -0x1p70, 0x1.fep127, -0x1.fffffep127, 65504, -65520, INFINITE, -INFINITE, NOTANUMBER, 0x1p-11,
    3, 0x1p64
};

static double unit(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

/* A number of f: of both signs, about 2^lo to 2^hi; or any finite one; or an edge. */
static double draw(int f, uint64_t *random, int kind, int lo, int hi)
{
    const double sign = test_random(random) & 1 ? -1 : 1;
    if (kind == 2)
        return to(f, edges[test_random(random) % (sizeof edges / sizeof edges[0])]);
    const int span = (int)(shapes[f].emax - shapes[f].emin);
    const int e = kind == 1 ? (int)shapes[f].emin + (int)(test_random(random) % (uint64_t)span)
                            : lo + (int)(test_random(random) % (uint64_t)(hi - lo + 1));
    return to(f, sign * ldexp(0.5 + unit(random) / 2, e));
}

static const mpsim_format *format_of(int f)
{
    const mpsim_format *found = mpsim_format_find(shapes[f].name);
    ck_assert_ptr_nonnull(found);
    return found;
}

typedef struct arrays {
    float p[N], g[N], m[N], v[N], x[N], k[N];
} arrays;

static int any_gradient(const char *variant)
{
    return strcmp(variant, "ieee") == 0 || strncmp(variant, "torch-fused", 11) == 0 ||
           strcmp(variant, "apex") == 0 || strcmp(variant, "torchao") == 0;
}

static void fill(arrays *a, const mpsim_optim *o, int pf, int sf, int zero_state, uint64_t *random)
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

/* Arrays that are not needed are NULL. */
static mpsim_optim_tensor tensor(arrays *a, const mpsim_optim *o, size_t first, size_t n)
{
    mpsim_optim_tensor t = {a->p + first, a->g + first, NULL, NULL, NULL, NULL, n};
    if (is_adam(o) || o->momentum != 0)
        t.m = a->m + first;
    if (is_adam(o))
        t.v = a->v + first;
    if (is_adam(o) && o->amsgrad)
        t.vmax = a->x + first;
    if (o->store == MPSIM_STORE_KAHAN)
        t.kahan = a->k + first;
    return t;
}

/* ----------------------------------------------------------------- bits of the table's variants */

/* `n` elements at once: of VECTOR all are in the vector body of a CPU, of TAIL none. */
enum { TAIL = 7 };

typedef struct comparison {
    const sequence *s;
    int adam;
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

static void remember(comparison *c, const mpsim_optim *o, uint64_t step, const element *in,
                     const element *want, const arrays *got, size_t i)
{
    const int n =
        snprintf(c->first, sizeof c->first,
                 "%s %s %s/%s store %d nesterov %d amsgrad %d maximize %d lr %a wd %a eps %a\n"
                 "# momentum %a dampening %a scale %a betas %a %a step %" PRIu64 "\n",
                 o->variant->name, mpsim_optim_name(o->algorithm), o->param.name, o->state.name,
                 o->store, o->nesterov, o->amsgrad, o->maximize, o->lr, o->weight_decay, o->eps,
                 o->momentum, o->dampening, o->grad_scale, o->beta1, o->beta2, step);
    if (n < 0 || (size_t)n >= sizeof c->first)
        return;
    snprintf(c->first + n, sizeof c->first - (size_t)n,
             "# from p %a g %a m %a v %a x %a k %a\n"
             "# p %a, expected %a, m %a, %a, v %a, %a, x %a, %a, k %a, %a", in->p, in->g, in->m,
             in->v, in->x, in->k, (double)got->p[i], want->p, (double)got->m[i], want->m,
             (double)got->v[i], want->v, (double)got->x[i], want->x, (double)got->k[i], want->k);
}

static element element_of(const arrays *a, size_t i, uint32_t random)
{
    const element e = {(double)a->p[i], (double)a->g[i], (double)a->m[i], (double)a->v[i],
                       (double)a->x[i], (double)a->k[i], random};
    return e;
}

static void compare_alternative(comparison *c, plan *q, const arrays *before, const arrays *after,
                                const mpsim_rng *rng)
{
    memset(q->pick, 0, sizeof q->pick);
    if (c->adam)
        c->s->adam_scalars(q);
    else
        c->s->sgd_scalars(q);
    for (size_t i = 0; i < c->n; i++) {
        const uint32_t word = mpsim_rng_word(rng->seed, rng->stream, rng->index + i);
        const element in = element_of(before, i, word);
        element e = in;
        if (c->adam)
            c->s->adam(q, &e);
        else
            c->s->sgd(q, &e);
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
    fill(&a, o, pf, sf, fresh, random);
    for (size_t k = 0; k < STEPS && c->left > 0; k++) {
        if (test_random(random) & 1)
            continue;
        arrays next;
        fill(&next, o, pf, sf, 0, random);
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

static double pick(uint64_t *random, const double *values, size_t n)
{
    return values[test_random(random) % n];
}
#define PICK(random, ...)                                                                          \
    pick(random, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static void numbers(mpsim_optim *o, unsigned options, uint64_t *random)
{
    o->lr = PICK(random, 1e-3, 1e-3, 3e-4, 0.1, 1, 6e-5);
    o->beta1 = PICK(random, 0.9, 0.9, 0.95, 0.5, 0.4, 0.0, 0.875);
    o->beta2 = PICK(random, 0.999, 0.999, 0.99, 0.95, 0.0, 0.98);
    o->eps = PICK(random, 1e-8, 1e-8, 1e-6, 0.0, 1e-15);
    o->amsgrad = is_adam(o) && (options & 1) != 0;
    o->nesterov = !is_adam(o) && (options & 1) != 0;
    o->momentum = !is_adam(o) && (options & 3) != 0 ? PICK(random, 0.9, 0.99, 0.3) : 0;
    o->dampening = !is_adam(o) && (options & 3) == 2 ? PICK(random, 0.0, 0.1, 0.7) : 0;
    o->maximize = (options & 4) != 0;
    o->weight_decay = options & 8 ? PICK(random, 1e-2, 0.1, 5e-4) : 0;
    o->grad_scale = options & 16 ? PICK(random, 65536, 0x1.8p10, 45875.2001953125, 7) : 1;
}

/* What of the options is a matter of the variant: those that it has not are left out. */
static void compare_all(comparison *c, mpsim_optim_algorithm algorithm, uint64_t *random)
{
    static const int pairs[][2] = {{BF16, BF16}, {FP16, FP16}, {B32, B32}, {B32, BF16}, {BF16, B32},
                                   {B32, FP16}};
    const mpsim_optim_variant *v = mpsim_optim_variant_find(c->s->variant);
    for (unsigned k = 0; k < 32 * 6 * 3; k++) {
        mpsim_optim o;
        mpsim_optim_init(&o, algorithm, v);
        const int *formats = pairs[k / 32 % 6];
        numbers(&o, k % 32, random);
        if (k % 32 == 0)
            mpsim_optim_init(&o, algorithm, v); /* the defaults */
        o.param = *format_of(formats[0]);
        o.state = *format_of(formats[1]);
        o.store = (uint8_t)(k / 192);
        if (strncmp(v->name, "optimi", 6) == 0 && o.dampening != 0)
            o.dampening = o.momentum; /* a switch there */
        /* Operation by operation on CPU torch has one format, and nothing is recorded of two. */
        if (formats[0] != formats[1] && (c->s->adam == aten_adam || c->s->adam == optimi_adam) &&
            strstr(v->name, "cpu"))
            continue;
        if (mpsim_optim_check(&o) == MPSIM_OK)
            for (size_t i = 0; i < test_scaled(1) && c->left > 0; i++)
                compare(c, &o, formats[0], formats[1], random);
    }
}

static void compare_family(const sequence *s, int adam, size_t n, uint64_t *random)
{
    comparison c = {.s = s, .adam = adam, .n = n};
    c.alternatives = adam ? s->adam_alternatives : s->sgd_alternatives;
    if (n == TAIL && !strstr(s->variant, "default") &&
        (adam ? s->adam == aten_adam || s->adam == optimi_adam
              : s->sgd == aten_sgd || s->sgd == optimi_sgd))
        c.alternatives *= FMA_ALL + 1;
    c.left = c.alternatives;
    ck_assert_uint_le(c.alternatives, ALTERNATIVES);
    if (c.alternatives == 0)
        return;
    const mpsim_optim_variant *v = mpsim_optim_variant_find(s->variant);
    ck_assert_msg(v != NULL, "no variant %s", s->variant);
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        if ((v->algorithms >> a & 1) && (a != MPSIM_OPTIM_SGD) == adam)
            compare_all(&c, (mpsim_optim_algorithm)a, random);
    printf("# %s %s%s: %" PRIu64 " configurations, %" PRIu64 " elements, %u of %u alternatives:",
           s->variant, adam ? "adam" : "sgd", n == TAIL ? " tail" : "", c.configurations,
           c.values, c.left, c.alternatives);
    for (unsigned i = 0, shown = 0; i < c.alternatives && shown < 6; i++)
        if (!c.dead[i]) {
            printf(" %u", i);
            shown++;
        }
    printf("\n");
    fflush(stdout);
    ck_assert_msg(c.left > 0, "no alternative is left; the last one failed at\n# %s", c.first);
}

START_TEST(bits_are_the_sequence_of_operations)
{
    uint64_t random = test_seed() + (uint64_t)_i;
    const int cpu = strstr(sequences[_i].variant, "cpu") != NULL;
    compare_family(&sequences[_i], 1, cpu ? VECTOR : VECTOR / 2, &random);
    compare_family(&sequences[_i], 0, cpu ? VECTOR : VECTOR / 2, &random);
    if (cpu) {
        compare_family(&sequences[_i], 1, TAIL, &random);
        compare_family(&sequences[_i], 0, TAIL, &random);
    }
}
END_TEST

/* ------------------------------------------------------------------------------- mathematics */

static int far(double want, double got, double allowed)
{
    return !(fabs(want - got) <= allowed);
}

/* Numbers of the run that have few bits, so that no variant loses any by reading them early. */
static void plain_numbers(mpsim_optim *o, unsigned options, uint64_t *random)
{
    numbers(o, options, random);
    o->lr = 0x1p-10;
    o->beta1 = 0.875;
    o->beta2 = 1 - 0x1p-10;
    o->eps = 0x1p-26;
    o->momentum = o->momentum != 0 ? 0.875 : 0;
    o->dampening = o->dampening != 0 ? 0.25 : 0;
    o->weight_decay = o->weight_decay != 0 ? 0x1p-7 : 0;
    o->grad_scale = o->grad_scale != 1 ? 0x1.8p10 : 1;
}

static const uint64_t plain_steps[] = {1, 2, 20000}; /* 1 - beta^step loses nothing */

static void near_mathematics(const mpsim_optim *o, uint64_t *random, uint64_t *values)
{
    arrays a, before;
    fill(&a, o, B32, B32, 0, random);
    for (size_t i = 0; i < N; i++) {
        a.p[i] = (float)draw(B32, random, 0, -8, 2);
        a.g[i] = (float)draw(B32, random, 0, -12, 0);
        a.m[i] = (float)draw(B32, random, 0, -12, 0);
        a.v[i] = (float)fabs(draw(B32, random, 0, -20, 0));
        a.x[i] = (float)fabs(draw(B32, random, 0, -20, 0));
    }
    before = a;
    const size_t from = strncmp(o->variant->name, "optimi", 6) == 0;
    for (size_t k = from; k < sizeof plain_steps / sizeof plain_steps[0]; k++) {
        a = before;
        const mpsim_optim_tensor t = tensor(&a, o, 0, N);
        ck_assert_int_eq(mpsim_optim_step(o, plain_steps[k], &t, NULL), MPSIM_OK);
        for (size_t i = 0; i < N; i++) {
            const element e = element_of(&before, i, 0);
            const exact y = exact_step(o, plain_steps[k], &e);
            const double ulps = 8 * 0x1p-24;
            int bad = far(y.p, (double)a.p[i], ulps * y.p_scale);
            if (t.m)
                bad |= far(y.m, (double)a.m[i], ulps * y.m_scale);
            if (t.v) /* v takes (1 - b2) g g, with the error of a g that decays */
                bad |= far(y.v, (double)a.v[i], 4 * ulps * (y.v_scale + y.m_scale * y.m_scale));
            ck_assert_msg(!bad, "%s %s step %d options %d%d%d: p %a %a m %a %a v %a %a",
                          o->variant->name, mpsim_optim_name(o->algorithm), (int)plain_steps[k],
                          o->nesterov, o->amsgrad, o->maximize, y.p, (double)a.p[i], y.m,
                          (double)a.m[i], y.v, (double)a.v[i]);
            ++*values;
        }
    }
}

/* Every variant that keeps binary32 is the mathematics to a few ulp, whatever its order; this
 * is all that is known of torch-fused-cpu, whose contractions differ between vector body and
 * tail. optimi keeps debiased moments, so that m and v are others, and its SGD starts from a
 * buffer of 0. */
START_TEST(every_variant_is_near_the_mathematics)
{
    uint64_t random = test_seed() + 100, values = 0;
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        const int optimi = strncmp(v->name, "optimi", 6) == 0;
        for (int a = 0; a < (optimi ? 1 : MPSIM_OPTIM_ALGORITHMS); a++)
            for (unsigned options = 0; options < 32; options++) {
                mpsim_optim o;
                mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
                plain_numbers(&o, options, &random);
                if (optimi && o.dampening != 0) /* a switch there */
                    o.dampening = o.momentum;
                if (mpsim_optim_check(&o) == MPSIM_OK)
                    near_mathematics(&o, &random, &values);
            }
    }
    printf("# %" PRIu64 " elements near the mathematics\n", values);
    ck_assert_uint_gt(values, 10000);
}
END_TEST

START_TEST(the_reference_is_the_mathematics)
{
    uint64_t random = test_seed() + 101;
    const mpsim_optim_variant *v = mpsim_optim_variant_find("torch");
    for (unsigned k = 0; k < 3 * 16 * 8; k++) {
        mpsim_optim o;
        mpsim_optim_init(&o, (mpsim_optim_algorithm)(k % 3), v);
        numbers(&o, k / 3 % 16, &random);
        const uint64_t step = steps[k / 48 % STEPS];
        enum { M = 40 };
        double p[M], g[M], m[M], s[M], x[M];
        element e[M];
        for (size_t i = 0; i < M; i++) {
            e[i].p = p[i] = draw(B64, &random, 0, -8, 2);
            e[i].g = g[i] = draw(B64, &random, 0, -18, 0);
            e[i].m = m[i] = draw(B64, &random, 0, -18, 0);
            e[i].v = s[i] = fabs(draw(B64, &random, 0, -30, 0));
            e[i].x = x[i] = fabs(draw(B64, &random, 0, -30, 0));
        }
        const int adam = is_adam(&o);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
        ck_assert_int_eq(mpsim_optim_reference(&o, step, p, g, adam || o.momentum != 0 ? m : NULL,
                                               adam ? s : NULL, o.amsgrad ? x : NULL, M),
                         MPSIM_OK);
        for (size_t i = 0; i < M; i++) {
            const exact y = exact_step(&o, step, &e[i]);
            int bad = far(y.p, p[i], 1e-11 * y.p_scale);
            if (adam || o.momentum != 0)
                bad |= far(y.m, m[i], 1e-14 * y.m_scale);
            if (adam)
                bad |= far(y.v, s[i], 1e-14 * (y.v_scale + y.m_scale * y.m_scale));
            if (o.amsgrad)
                bad |= far(y.x, x[i], 1e-14 * (y.x + y.v_scale + y.m_scale * y.m_scale));
            ck_assert_msg(!bad, "%s options %u step %d: p %a %a m %a %a v %a %a",
                          mpsim_optim_name(o.algorithm), k / 3 % 16, (int)step, y.p, p[i], y.m,
                          m[i],
                          y.v, s[i]);
        }
    }
}
END_TEST

/* -------------------------------------------------------------------------- table and statuses */

START_TEST(table_and_names)
{
    static const char *const names[] = {
        "ieee", "torch", "torch-foreach", "torch-capturable", "torch-cpu", "torch-cpu-default",
        "torch-cpu-foreach", "torch-cpu-foreach-default", "torch-fused-a", "torch-fused-b",
        "torch-fused-c", "torch-fused-cpu", "torch-fused-cpu-default", "apex", "torchao",
        "torchao-cpu", "optimi", "optimi-cpu", "optimi-cpu-default", "optimi-cpu-foreach",
        "optimi-cpu-foreach-default", "optimi-triton"};
    ck_assert_uint_eq(mpsim_optim_variant_count(), sizeof names / sizeof names[0]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_find(names[i]);
        ck_assert_msg(v && strcmp(v->name, names[i]) == 0, "%s", names[i]);
        ck_assert_ptr_eq(mpsim_optim_variant_find(mpsim_optim_variant_at(i)->name),
                         mpsim_optim_variant_at(i));
        ck_assert(v->what && v->source && v->ulps >= 0 && v->algorithms != 0 && v->stores != 0);
        ck_assert(v->algorithms < 1 << MPSIM_OPTIM_ALGORITHMS && v->stores < 8);
    }
    ck_assert_ptr_null(mpsim_optim_variant_at(mpsim_optim_variant_count()));
    ck_assert_ptr_null(mpsim_optim_variant_find("torch-fused"));
    static const char *const algorithms[] = {"sgd", "adam", "adamw"};
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++) {
        mpsim_optim_algorithm parsed = MPSIM_OPTIM_ALGORITHMS;
        ck_assert_str_eq(mpsim_optim_name((mpsim_optim_algorithm)a), algorithms[a]);
        ck_assert_int_eq(mpsim_optim_parse(&parsed, algorithms[a]), MPSIM_OK);
        ck_assert_int_eq(parsed, a);
    }
    mpsim_optim_algorithm a = MPSIM_OPTIM_ADAM;
    ck_assert_int_eq(mpsim_optim_parse(&a, "adamx"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(a, MPSIM_OPTIM_ADAM);
}
END_TEST

START_TEST(defaults_are_those_of_torch)
{
    const mpsim_optim_variant *v = mpsim_optim_variant_find("torch");
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++) {
        mpsim_optim o;
        memset(&o, 0xff, sizeof o);
        mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
        ck_assert_ptr_eq(o.variant, v);
        ck_assert(o.algorithm == a && o.store == MPSIM_STORE_NEAREST);
        ck_assert(o.lr == 1e-3 && o.momentum == 0 && o.dampening == 0);
        ck_assert(o.weight_decay == (a == MPSIM_OPTIM_ADAMW ? 1e-2 : 0.0));
        ck_assert(o.beta1 == 0.9 && o.beta2 == 0.999 && o.eps == 1e-8 && o.grad_scale == 1);
        ck_assert(!o.nesterov && !o.amsgrad && !o.maximize);
        ck_assert_str_eq(o.param.name, "binary32");
        ck_assert_str_eq(o.state.name, "binary32");
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    }
}
END_TEST

/* What a variant has, where the specification says it: algorithms and stores are those of its
 * row. */
START_TEST(what_a_variant_has)
{
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
            for (int s = 0; s <= MPSIM_STORE_KAHAN; s++) {
                mpsim_optim o;
                mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
                o.store = (uint8_t)s;
                if (s != MPSIM_STORE_NEAREST)
                    o.param = o.state = *format_of(BF16);
                const int has = (v->algorithms >> a & 1) && (v->stores >> s & 1);
                ck_assert_msg(mpsim_optim_check(&o) == (has ? MPSIM_OK : MPSIM_EUNAVAILABLE),
                              "%s %s store %d: %s", v->name, mpsim_optim_name(o.algorithm), s,
                              mpsim_status_string(mpsim_optim_check(&o)));
            }
    }
}
END_TEST

static mpsim_status checked(const char *variant, mpsim_optim_algorithm a, int amsgrad, int maximize,
                            int nesterov, double scale)
{
    mpsim_optim o;
    mpsim_optim_init(&o, a, mpsim_optim_variant_find(variant));
    o.amsgrad = (uint8_t)amsgrad;
    o.maximize = (uint8_t)maximize;
    o.nesterov = (uint8_t)nesterov;
    o.momentum = nesterov ? 0.9 : 0;
    o.grad_scale = scale;
    return mpsim_optim_check(&o);
}

START_TEST(what_torch_has)
{
    static const char *const torch[] = {"torch", "torch-foreach", "torch-capturable", "torch-cpu",
                                        "torch-cpu-default", "torch-fused-a", "torch-fused-b",
                                        "torch-fused-c", "torch-fused-cpu"};
    for (size_t i = 0; i < sizeof torch / sizeof torch[0]; i++) {
        ck_assert_int_eq(checked(torch[i], MPSIM_OPTIM_ADAM, 1, 1, 0, 1), MPSIM_OK);
        ck_assert_int_eq(checked(torch[i], MPSIM_OPTIM_ADAMW, 1, 1, 0, 1), MPSIM_OK);
        const int fused = strncmp(torch[i], "torch-fused-", 12) == 0;
        ck_assert_msg(checked(torch[i], MPSIM_OPTIM_ADAM, 0, 0, 0, 65536) ==
                          (fused ? MPSIM_OK : MPSIM_EUNAVAILABLE), "%s with a scale", torch[i]);
        if (i < 5 && i != 2)
            ck_assert_int_eq(checked(torch[i], MPSIM_OPTIM_SGD, 0, 1, 1, 1), MPSIM_OK);
    }
    ck_assert_int_eq(checked("apex", MPSIM_OPTIM_ADAM, 1, 0, 0, 1), MPSIM_EUNAVAILABLE);
    ck_assert_int_eq(checked("apex", MPSIM_OPTIM_SGD, 0, 0, 1, 1), MPSIM_OK);
}
END_TEST

START_TEST(numbers_out_of_their_domain)
{
    const mpsim_optim_variant *v = mpsim_optim_variant_find("torch-fused-b");
    static const size_t fields[] = {
        offsetof(mpsim_optim, lr), offsetof(mpsim_optim, momentum), offsetof(mpsim_optim,
                                                                             dampening),
        offsetof(mpsim_optim, weight_decay), offsetof(mpsim_optim, beta1),
        offsetof(mpsim_optim, beta2), offsetof(mpsim_optim, eps), offsetof(mpsim_optim,
                                                                           grad_scale)};
    static const double wrong[] = {NOTANUMBER, INFINITE, -INFINITE};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, v);
            memcpy((char *)&o + fields[i], &wrong[k], sizeof wrong[k]);
            ck_assert_msg(mpsim_optim_check(&o) == MPSIM_EINVAL, "field %d: %g", (int)i, wrong[k]);
        }
    /* lr, weight decay, betas, eps: not negative; betas below 1; 0 is in the domain. */
    static const size_t signs[] = {offsetof(mpsim_optim, lr), offsetof(mpsim_optim, weight_decay),
                                   offsetof(mpsim_optim, beta1), offsetof(mpsim_optim, beta2),
                                   offsetof(mpsim_optim, eps)};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        mpsim_optim o;
        const double negative = -0x1p-1074, zero = 0, one = 1, below = 1 - 0x1p-53;
        mpsim_optim_init(&o, MPSIM_OPTIM_ADAMW, v);
        memcpy((char *)&o + signs[i], &negative, sizeof negative);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
        memcpy((char *)&o + signs[i], &zero, sizeof zero);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
        memcpy((char *)&o + signs[i], &one, sizeof one);
        ck_assert_int_eq(mpsim_optim_check(&o), i == 2 || i == 3 ? MPSIM_EINVAL : MPSIM_OK);
        memcpy((char *)&o + signs[i], &below, sizeof below);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    }
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("torch"));
    o.nesterov = 1;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
    o.momentum = 0.9;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    o.dampening = 0.1;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
    o.nesterov = 0;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    o.momentum = -0.9;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
}
END_TEST

START_TEST(wrong_formats_and_selectors)
{
    mpsim_optim good, o;
    mpsim_optim_init(&good, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("ieee"));
    ck_assert_int_eq(mpsim_optim_check(&good), MPSIM_OK);
    o = good;
    o.param = *format_of(B64);
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_ERANGE);
    o = good;
    o.state = *format_of(B64);
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_ERANGE);
    o = good;
    o.param.ebits = 0;
    ck_assert_int_ne(mpsim_optim_check(&o), MPSIM_OK);
    o = good;
    o.algorithm = 99;
    ck_assert_int_ne(mpsim_optim_check(&o), MPSIM_OK);
    o = good;
    o.store = 99;
    ck_assert_int_ne(mpsim_optim_check(&o), MPSIM_OK);
    o = good;
    o.variant = NULL;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
}
END_TEST

/* What is refused leaves every array as it was. */
START_TEST(a_refused_step_touches_nothing)
{
    uint64_t random = test_seed() + 3;
    mpsim_optim o;
    arrays a, before;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("torch"));
    o.amsgrad = 1;
    fill(&a, &o, B32, B32, 0, &random);
    before = a;
    for (int missing = 0; missing < 5; missing++) {
        mpsim_optim_tensor t = tensor(&a, &o, 0, N);
        if (missing == 0)
            t.param = NULL;
        if (missing == 1)
            t.grad = NULL;
        if (missing == 2)
            t.m = NULL;
        if (missing == 3)
            t.v = NULL;
        if (missing == 4)
            t.vmax = NULL;
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, NULL), MPSIM_EINVAL);
    }
    const mpsim_optim_tensor t = tensor(&a, &o, 0, N);
    ck_assert_int_eq(mpsim_optim_step(&o, 1, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_optim_step(NULL, 1, &t, NULL), MPSIM_EINVAL);
    mpsim_optim bad = o;
    bad.beta2 = 1;
    ck_assert_int_eq(mpsim_optim_step(&bad, 1, &t, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(memcmp(&a, &before, sizeof a), 0);
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("torchao"));
    o.store = MPSIM_STORE_STOCHASTIC;
    o.param = *format_of(BF16);
    const mpsim_optim_tensor s = tensor(&a, &o, 0, N);
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &s, NULL), MPSIM_EINVAL); /* no random bits */
    ck_assert_int_eq(memcmp(&a, &before, sizeof a), 0);
    mpsim_optim_tensor none = {0};
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("torch"));
    const mpsim_status empty = mpsim_optim_step(&o, 1, &none, NULL);
    ck_assert(empty == MPSIM_OK || empty == MPSIM_EINVAL); /* n = 0 with NULL: either */
    ck_assert_int_eq(mpsim_optim_reference(NULL, 1, NULL, NULL, NULL, NULL, NULL, 0), MPSIM_EINVAL);
}
END_TEST

/* ----------------------------------------------------------------------------- splits, orders */

START_TEST(any_split_gives_the_same_bits)
{
    uint64_t random = test_seed() + 4;
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        const int whole_tensors = strstr(v->name, "-cpu") && !strstr(v->name, "default");
        for (int k = 0; k < 3 * MPSIM_OPTIM_ALGORITHMS; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, (mpsim_optim_algorithm)(k / 3), v);
            o.store = (uint8_t)(k % 3);
            o.param = o.state = *format_of(o.store == MPSIM_STORE_NEAREST ? B32 : BF16);
            if (mpsim_optim_check(&o) != MPSIM_OK)
                continue;
            arrays whole, split;
            fill(&whole, &o, BF16, BF16, 0, &random);
            split = whole;
            const mpsim_rng rng = {1, 2, 1001};
            const mpsim_optim_tensor t = tensor(&whole, &o, 0, N);
            ck_assert_int_eq(mpsim_optim_step(&o, 5, &t, &rng), MPSIM_OK);
            for (size_t first = 0; first < N;) {
                size_t n = whole_tensors ? VECTOR : 1 + test_random(&random) % 9;
                n = n > N - first ? N - first : n;
                const mpsim_rng at = {1, 2, 1001 + first};
                const mpsim_optim_tensor part = tensor(&split, &o, first, n);
                ck_assert_int_eq(mpsim_optim_step(&o, 5, &part, &at), MPSIM_OK);
                first += n;
            }
            ck_assert_msg(memcmp(&whole, &split, sizeof whole) == 0, "%s store %d", v->name,
                          o.store);
        }
    }
}
END_TEST

/* The generations of the fused kernel and Apex's order differ in last bits, and agree to 1e-6. */
START_TEST(orders_differ_in_last_bits_only)
{
    static const char *const names[] = {"torch-fused-a", "torch-fused-b", "torch-fused-c", "apex"};
    enum { NAMES = 4, M = 2000 };
    static float p[NAMES][M], m[NAMES][M], v[NAMES][M], g[M];
    uint64_t random = test_seed() + 5;
    for (size_t i = 0; i < M; i++) {
        const float x = (float)draw(B32, &random, 0, -3, 1);
        for (size_t k = 0; k < NAMES; k++)
            p[k][i] = x;
    }
    for (uint64_t step = 1; step <= 20; step++) {
        for (size_t i = 0; i < M; i++)
            g[i] = (float)draw(B32, &random, 0, -8, -3);
        for (size_t k = 0; k < NAMES; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find(names[k]));
            const mpsim_optim_tensor t = {p[k], g, m[k], v[k], NULL, NULL, M};
            ck_assert_int_eq(mpsim_optim_step(&o, step, &t, NULL), MPSIM_OK);
        }
    }
    for (size_t a = 0; a < NAMES; a++)
        for (size_t b = 0; b < a; b++) {
            size_t differ = 0;
            for (size_t i = 0; i < M; i++) {
                differ += bits_of_f32(p[a][i]) != bits_of_f32(p[b][i]);
                const double x = (double)p[a][i], y = (double)p[b][i];
                ck_assert_msg(fabs(x - y) <= 1e-6 * fabs(x), "%s %a, %s %a", names[a], x, names[b],
                              y);
            }
            printf("# %s, %s: %d of %d differ\n", names[b], names[a], (int)differ, (int)M);
            ck_assert_msg(differ > 0, "%s equals %s", names[a], names[b]);
        }
}
END_TEST

/* -------------------------------------------------------------------------------------- powers */

START_TEST(powers_are_rounded_once)
{
    static const double betas[] = {0.9, 0.999, 0.99, 0.95, 0.98, 0.5, 0x1p-1074, 0x1p-1022,
                                   1 - 0x1p-53,
                                   1 - 0x1p-52, 0.25, 0.75, 1 - 0x1p-24, 0x1.fffffep-1, 1e-300,
                                   0.1};
    static const uint64_t exponents[] = {0, 1, 2, 3, 10, 1074, 1075, 7000, 7060, 7070, 7073, 7080,
                                         65536,
                                         744261, 1 << 24, (1 << 24) - 1};
    uint64_t random = test_seed() + 6;
    for (size_t i = 0; i < test_scaled(30000); i++) {
        const double beta = i % 3 == 0   ? betas[test_random(&random) % 16]
                            : i % 3 == 1 ? 1 - unit(&random) * ldexp(1, -(int)(i % 40))
                                         : unit(&random);
        const uint64_t n = i % 5 == 0 ? exponents[test_random(&random) % 16]
                                      : test_random(&random) >> (40 + test_random(&random) % 24);
        if (!(beta > 0 && beta < 1))
            continue;
        const double want = power(B64, beta, n), got = mpsim_power(beta, n);
        ck_assert_msg(want == got && !signbit(got), "%a^%" PRIu64 ": %a, expected %a", beta, n, got,
                      want);
    }
    for (size_t b = 0; b < 16; b++)
        for (size_t k = 0; k < 16; k++)
            ck_assert_msg(mpsim_power(betas[b], exponents[k]) == power(B64, betas[b], exponents[k]),
                          "%a^%" PRIu64, betas[b], exponents[k]);
}
END_TEST

/* --------------------------------------------------------------------- the split master, stores */

/* RNA from its definition: the nearer of two multiples of 2^16 units; exact in binary64. */
static uint16_t nearest_away(uint32_t bits)
{
    const uint32_t low = bits & 0x7fff0000u, high = low + 0x10000u;
    const double top = high == 0x7f800000u ? 0x1p128 : (double)f32_of_bits(high);
    const double x = (double)f32_of_bits(bits & 0x7fffffffu);
    const uint32_t y = x - (double)f32_of_bits(low) >= top - x ? high : low;
    return (uint16_t)((y | (bits & 0x80000000u)) >> 16);
}

/* Whether splitting and joining the master is right; the codes of NaN and infinity are only
 * lossless. */
static int split_is_right(uint32_t bits)
{
    uint16_t model = 0;
    int16_t rest = 0;
    mpsim_master_split(&model, &rest, f32_of_bits(bits));
    const uint32_t upper = bits >> 16, low = bits & 0xffff;
    return bits_of_f32(mpsim_master_join(model, rest)) == bits && (uint16_t)rest == low &&
           model == (uint16_t)(upper + (low >= 0x8000)) &&
           ((bits & 0x7f800000u) == 0x7f800000u || model == nearest_away(bits));
}

START_TEST(split_master_is_lossless_and_nearest_away)
{
    static const uint32_t lower[] = {0,      1,      2,      0x3fff, 0x4000, 0x7ffe, 0x7fff,
                                     0x8000, 0x8001, 0x8002, 0xc000, 0xfffe, 0xffff};
    enum { LOWER = sizeof lower / sizeof lower[0] };
    uint64_t random = test_seed() + 7, wrong = 0;
    uint32_t first = 0;
    for (uint32_t upper = 0; upper < 0x10000; upper++)
        for (size_t k = 0; k < LOWER + 3; k++) {
            const uint32_t low = k < LOWER ? lower[k] : (uint32_t)(test_random(&random) & 0xffff);
            if (!split_is_right(upper << 16 | low) && wrong++ == 0)
                first = upper << 16 | low;
        }
    for (uint32_t i = 0; i < 0x10000; i++) { /* a remainder with any code */
        const float x = mpsim_master_join((uint16_t)(i * 40503u), (int16_t)(uint16_t)i);
        if ((bits_of_f32(x) & 0xffff) != i && wrong++ == 0)
            first = bits_of_f32(x);
    }
    ck_assert_msg(wrong == 0, "%" PRIu64 " wrong, the first is %08x", wrong, first);
}
END_TEST

/* A variant with SGD that can store stochastically, or NULL. */
static const mpsim_optim_variant *stochastic_sgd(void)
{
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        if ((v->algorithms >> MPSIM_OPTIM_SGD & 1) && (v->stores >> MPSIM_STORE_STOCHASTIC & 1))
            return v;
    }
    return NULL;
}

/* With lr 1, 1 - g is stored; g = -lo 2^-23 makes the binary32 number 1 + lo 2^-23, whose bits are
 * those of 1 with lo in the lower half: away with the probability lo / 65536. */
START_TEST(stochastic_store_has_its_probabilities)
{
    const mpsim_optim_variant *v = stochastic_sgd();
    ck_assert_ptr_nonnull(v);
    enum { DRAWS = 8192, LOWS = 96 };
    static float p[DRAWS], g[DRAWS];
    uint64_t random = test_seed() + 8;
    double chi = 0;
    int classes = 0;
    for (unsigned k = 0; k < LOWS; k++) {
        static const uint32_t chosen[] = {0, 1, 0xffff, 0x8000, 0x4000, 0x7fff, 0x8001, 0x100};
        const uint32_t low = k < 8 ? chosen[k] : (uint32_t)(test_random(&random) & 0xffff);
        for (size_t i = 0; i < DRAWS; i++) {
            p[i] = 1;
            g[i] = -(float)low * 0x1p-23f;
        }
        mpsim_optim o;
        mpsim_optim_init(&o, MPSIM_OPTIM_SGD, v);
        o.lr = 1;
        o.store = MPSIM_STORE_STOCHASTIC;
        o.param = *format_of(BF16);
        const mpsim_rng rng = {test_seed(), 77, (uint64_t)k * DRAWS};
        const mpsim_optim_tensor t = {p, g, NULL, NULL, NULL, NULL, DRAWS};
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, &rng), MPSIM_OK);
        size_t away = 0;
        for (size_t i = 0; i < DRAWS; i++) {
            const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index + i);
            const uint32_t up = ((uint64_t)low << 16) + word >= (uint64_t)1 << 32;
            ck_assert_uint_eq(bits_of_f32(p[i]), 0x3f800000u + (up << 16));
            away += up;
        }
        const double q = low / 65536.0, mean = DRAWS * q;
        ck_assert(low != 0 || away == 0);
        if (mean < 20 || mean > DRAWS - 20)
            continue;
        chi += ((double)away - mean) * ((double)away - mean) / (mean * (1 - q));
        classes++;
    }
    /* Chi-square of so many degrees of freedom: beyond six standard deviations is a fault. */
    printf("# chi-square %.1f of %d\n", chi, classes);
    ck_assert(fabs(chi - classes) < 6 * sqrt(2.0 * classes));
}
END_TEST

/* A sum of exactly 2^32 goes away: the word that completes the fraction. */
START_TEST(stochastic_store_at_the_border)
{
    const mpsim_optim_variant *v = stochastic_sgd();
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, v);
    o.lr = 1;
    o.store = MPSIM_STORE_STOCHASTIC;
    o.param = *format_of(BF16);
    unsigned found = 0;
    for (uint64_t index = 0; index < 400000 && found < 4; index++) {
        const uint32_t word = mpsim_rng_word(3, 4, index);
        if ((word & 0xffff) != 0 || word == 0)
            continue;
        const uint32_t low = 0x10000u - (word >> 16);
        for (uint32_t less = 0; less < 2; less++) {
            float p = 1;
            const float g = -(float)(low - less) * 0x1p-23f;
            const mpsim_rng rng = {3, 4, index};
            const mpsim_optim_tensor t = {&p, &g, NULL, NULL, NULL, NULL, 1};
            ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, &rng), MPSIM_OK);
            ck_assert_uint_eq(bits_of_f32(p), less ? 0x3f800000u : 0x3f810000u);
        }
        found++;
    }
    ck_assert_uint_gt(found, 0);
}
END_TEST

/* ------------------------------------------------------------------------------- lost updates */

static float sgd_once(const mpsim_optim *o, float p, float g)
{
    const mpsim_optim_tensor t = {&p, &g, NULL, NULL, NULL, NULL, 1};
    ck_assert_int_eq(mpsim_optim_step(o, 1, &t, NULL), MPSIM_OK);
    return p;
}

/* Micikevicius et al. 2018, 3.1: an fp16 weight loses an update of 1/2048 of it. In [1, 2)
 * half a unit is 2^-11: less is lost, and half a unit itself goes to the even neighbour. */
START_TEST(updates_of_a_2048th_are_lost_in_fp16)
{
    mpsim_optim o, master;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    o.lr = 1;
    master = o;
    o.param = *format_of(FP16);
    for (int k = 0; k < 1024; k++) {
        const float w = 1 + (float)k * 0x1p-10f, up = w + 0x1p-10f;
        ck_assert(sgd_once(&o, w, -0x1.ffep-12f) == w);
        ck_assert(sgd_once(&o, w, -0x1p-11f) == (k % 2 ? up : w));
        ck_assert(sgd_once(&o, w, -w / 2048) == (k ? up : w));
        ck_assert(sgd_once(&o, w, -w / 4096) == w);
        ck_assert(sgd_once(&master, w, -w / 4096) > w);
    }
}
END_TEST

/* The parameter after n steps of Adam with a constant gradient: 1 less n lr, but for rounding. */
static double walk(const char *variant, mpsim_store store, int pf, int sf, unsigned n, double lr)
{
    enum { M = 512 };
    static float p[M], g[M], m[M], v[M], k[M];
    for (size_t i = 0; i < M; i++) {
        p[i] = 1;
        g[i] = 0.25f;
        m[i] = v[i] = k[i] = 0;
    }
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find(variant));
    o.lr = lr;
    o.store = (uint8_t)store;
    o.param = *format_of(pf);
    o.state = *format_of(sf);
    const mpsim_optim_tensor t = {p, g, m, v, NULL, store == MPSIM_STORE_KAHAN ? k : NULL, M};
    for (unsigned step = 1; step <= n; step++) {
        const mpsim_rng rng = {5, step, 0};
        ck_assert_int_eq(mpsim_optim_step(&o, step, &t, &rng), MPSIM_OK);
    }
    double sum = 0;
    for (size_t i = 0; i < M; i++)
        sum += (double)p[i];
    return sum / M;
}

/* Zamirai et al., 2010.06192: nearest rounding cancels small updates, a compensation or stochastic
 * rounding keeps them. Half a unit of bf16 below 1 is 2^-9. */
START_TEST(small_updates_survive_kahan_and_stochastic_rounding)
{
    const double lr = 0x1p-13, want = 1 - 300 * lr;
    ck_assert(walk("torch", MPSIM_STORE_NEAREST, BF16, BF16, 300, lr) == 1);
    ck_assert(walk("torchao", MPSIM_STORE_NEAREST, BF16, B32, 300, lr) == 1);
    ck_assert(fabs(walk("ieee", MPSIM_STORE_NEAREST, B32, B32, 300, lr) - want) < 1e-5);
    ck_assert(fabs(walk("optimi", MPSIM_STORE_KAHAN, BF16, BF16, 300, lr) - want) < 0x1p-8);
    ck_assert(fabs(walk("optimi-triton", MPSIM_STORE_KAHAN, BF16, BF16, 300, lr) - want) < 0x1p-8);
    /* Unbiased: 300 steps of standard deviation at most 2^-9, over 512 elements. */
    const double mean = walk("torchao", MPSIM_STORE_STOCHASTIC, BF16, B32, 300, lr);
    ck_assert_msg(fabs(mean - want) < 6 * 0x1p-9 * sqrt(300.0 / 512), "%a, expected %a", mean,
                  want);
}
END_TEST

int main(void)
{
    TCase *const bits = test_case("bits", 60);
    tcase_add_loop_test(bits, bits_are_the_sequence_of_operations, 0, SEQUENCES);
    TCase *const mathematics = test_case("mathematics", 60);
    tcase_add_test(mathematics, every_variant_is_near_the_mathematics);
    tcase_add_test(mathematics, the_reference_is_the_mathematics);
    tcase_add_test(mathematics, orders_differ_in_last_bits_only);
    tcase_add_test(mathematics, powers_are_rounded_once);
    TCase *const contract = test_case("contract", 30);
    tcase_add_test(contract, table_and_names);
    tcase_add_test(contract, defaults_are_those_of_torch);
    tcase_add_test(contract, what_a_variant_has);
    tcase_add_test(contract, what_torch_has);
    tcase_add_test(contract, numbers_out_of_their_domain);
    tcase_add_test(contract, wrong_formats_and_selectors);
    tcase_add_test(contract, a_refused_step_touches_nothing);
    tcase_add_test(contract, any_split_gives_the_same_bits);
    TCase *const stores = test_case("stores", 30);
    tcase_add_test(stores, split_master_is_lossless_and_nearest_away);
    tcase_add_test(stores, stochastic_store_has_its_probabilities);
    tcase_add_test(stores, stochastic_store_at_the_border);
    tcase_add_test(stores, updates_of_a_2048th_are_lost_in_fp16);
    tcase_add_test(stores, small_updates_survive_kahan_and_stochastic_rounding);
    TCase *const cases[] = {bits, mathematics, contract, stores, NULL};
    return test_main("optim", cases);
}
