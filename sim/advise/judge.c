/* judge.c -- from measured tensors to advice; see advise.h. */
#include "advise.h"

#include "../operand/scalelist.h"

#include <string.h>

/* ---- formats ---- */

static void choose(const advise *a, advise_tensor *t)
{
    const size_t last = a->candidates.count - 1;
    const int fp16 = advise_candidates_find(&a->candidates, "fp16");
    if (t->gradient && fp16 >= 0 && (a->bad_scale || t->scales == 0))
        t->fits &= ~(1u << fp16); /* no scale fits every step */
    t->choice = 0;
    while (t->choice < last && !(t->steps && t->fits >> t->choice & 1))
        t->choice++;
}

/* ---- the loss scale ---- */

/* The scales that most gradients bear, the widest run of those: one scale serves all. */
static void find_window(advise *a)
{
    uint64_t fits[SCALES] = {0};
    scale_run run = {.first = 1};
    for (size_t i = 0; i < a->n_tensors; i++) {
        const advise_tensor *t = &a->tensors[i];
        if (!t->gradient || !t->steps)
            continue;
        a->gradients++;
        for (int k = 0; k < SCALES; k++)
            fits[k] += t->scales >> k & 1;
    }
    for (int k = 0; k < SCALES; k++)
        a->scale_fits = fits[k] > a->scale_fits ? fits[k] : a->scale_fits;
    for (size_t k = 0; k < SCALES && a->scale_fits && !a->bad_scale; k++)
        scale_run_see(&run, k, fits[k] == a->scale_fits);
    a->scale_low = (int)run.first + SCALE_LOW;
    a->scale_high = (int)run.last + SCALE_LOW;
}

/* Two powers of two below the end, where gradients may grow; not below the other end. */
static void choose_scale(advise *a)
{
    enum { HEADROOM = 2 };
    const int e = a->scale_high - HEADROOM;
    a->scale = e < a->scale_low ? a->scale_low : e;
    a->needs_most = a->bears_least = a->n_tensors;
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_tensor *t = &a->tensors[i];
        if (!t->gradient || !t->steps)
            continue;
        t->at_scale = a->scale_low <= a->scale_high && (t->scales >> (a->scale - SCALE_LOW) & 1);
        if (!t->at_scale)
            continue;
        if (a->needs_most == a->n_tensors || t->low.exponent > a->tensors[a->needs_most].low.exponent)
            a->needs_most = i;
        if (a->bears_least == a->n_tensors || t->high.exponent < a->tensors[a->bears_least].high.exponent)
            a->bears_least = i;
    }
}

/* ---- what is computed in 16 bits ---- */

/* Tensors that a layer reads and writes, whose format is that of the computation. */
static int is_computed(const advise_tensor *t)
{
    static const char *const kinds[] = {"act", "out", "agrad", "dgrad", "wgrad", "weight"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(t->kind, kinds[i]) == 0)
            return 1;
    return 0;
}

static int fits_format(const advise *a, const advise_tensor *t, const char *format)
{
    const int c = advise_candidates_find(&a->candidates, format);
    const int scaled = t->gradient && strcmp(format, "fp16") == 0;
    return c >= 0 && (!t->steps || (scaled ? t->at_scale : t->fits >> c & 1));
}

static uint64_t misfits(const advise *a, const char *format)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        n += is_computed(&a->tensors[i]) && !fits_format(a, &a->tensors[i], format);
    return n;
}

/* bf16 needs no loss scale, so fp16 has to fit more. */
static void choose_compute(advise *a, const char *wanted)
{
    const int bf16 = advise_candidates_find(&a->candidates, "bf16") >= 0,
              fp16 = advise_candidates_find(&a->candidates, "fp16") >= 0;
    a->compute = wanted                                                       ? wanted
                 : fp16 && (!bf16 || misfits(a, "fp16") < misfits(a, "bf16")) ? "fp16"
                 : bf16                                                       ? "bf16"
                                                                              : "binary32";
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_tensor *t = &a->tensors[i];
        advise_layer *l = &a->layers[nameindex_find(&a->layer_names, t->layer)];
        if (is_computed(t) && strcmp(a->compute, "binary32") != 0 && !fits_format(a, t, a->compute))
            t->keeps_layer = l->kept = 1;
    }
}

/* ---- a recipe for linear layers ---- */

/* What its operands have in common. */
static void gather_operands(advise *a)
{
    const plan none = {.layer_kinds = NULL};
    for (size_t i = 0; i < a->n_layers; i++) {
        advise_layer *l = &a->layers[i];
        l->kind = policy_layer(&none, l->name, l->rank);
        l->fits[0] = l->fits[1] = l->fits[2] = ~0u;
    }
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_tensor *t = &a->tensors[i];
        advise_layer *l = &a->layers[nameindex_find(&a->layer_names, t->layer)];
        t->is_operand = t->is_operand && t->steps && l->kind == LAYER_LINEAR;
        if (!t->is_operand)
            continue;
        l->operands |= 1u << t->role;
        l->fits[t->role] &= t->fits;
        l->elements += t->count;
    }
}

static int layer_fits(const advise *a, const advise_layer *l, const advise_recipe *r)
{
    const int forward = advise_candidates_find(&a->candidates, r->forward),
              gradient = advise_candidates_find(&a->candidates, r->gradient);
    return forward >= 0 && gradient >= 0 && !l->kept && (l->fits[ROLE_WEIGHT] >> forward & 1) &&
           (l->fits[ROLE_ACT] >> forward & 1) && (l->fits[ROLE_GRAD] >> gradient & 1);
}

static int is_judged(const advise_layer *l)
{
    return l->operands == (1u << ROLE_WEIGHT | 1u << ROLE_ACT | 1u << ROLE_GRAD);
}

/* Bits of all operands with a recipe, the layers that do not fit it in 16 bits; *fits: elements of those that do. */
static double cost(const advise *a, const advise_recipe *r, uint64_t *fits)
{
    const int c = advise_candidates_find(&a->candidates, r->forward);
    double bits = 0;
    *fits = 0;
    for (size_t i = 0; i < a->n_layers; i++) {
        const advise_layer *l = &a->layers[i];
        const int is = is_judged(l) && layer_fits(a, l, r);
        bits += is_judged(l) ? (double)l->elements * (is ? a->candidates.items[c].bits : 16) : 0;
        *fits += is ? l->elements : 0;
    }
    return bits;
}

static void use_recipe(advise *a)
{
    for (size_t i = 0; i < a->n_layers; i++) {
        advise_layer *l = &a->layers[i];
        l->excluded = l->kind == LAYER_LINEAR && l->operands && !(is_judged(l) && layer_fits(a, l, a->recipe));
        a->fitting_layers += is_judged(l) && !l->excluded;
    }
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_tensor *t = &a->tensors[i];
        t->in_recipe = t->is_operand && !a->layers[nameindex_find(&a->layer_names, t->layer)].excluded;
    }
}

/* Of those that have at least half of the elements the one with the fewest bytes. */
static void choose_recipe(advise *a)
{
    const advise_recipe *r;
    double least = 0;
    for (size_t i = 0; i < a->n_layers; i++) {
        const advise_layer *l = &a->layers[i];
        a->operands += is_judged(l) ? l->elements : 0;
        a->operand_layers += is_judged(l) != 0;
        a->unjudged_layers += l->operands && !is_judged(l);
    }
    if (!a->operand_layers) {
        a->no_recipe = "not known: the trace has no linear layer with weights, activations and activation gradients";
        return;
    }
    for (size_t i = 0; (r = advise_recipe_at(i)); i++) {
        uint64_t n;
        const double bits = cost(a, r, &n);
        if (n && n >= a->operands - n && (!a->recipe || bits < least)) {
            a->recipe = r;
            least = bits;
        }
    }
    if (a->recipe)
        use_recipe(a);
    else
        a->no_recipe = "no recipe keeps half of the operands of linear layers within the bounds";
}

void advise_judge(advise *a)
{
    const char *wanted = a->compute;
    for (size_t i = 0; i < a->n_tensors; i++)
        choose(a, &a->tensors[i]);
    find_window(a);
    choose_scale(a);
    choose_compute(a, wanted);
    gather_operands(a);
    choose_recipe(a);
}
