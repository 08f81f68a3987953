/* plan.c -- see plan.h. */
#include "plan.h"

#include "../text/words.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *count_text(const plan_count *c, char *out, size_t size)
{
    if (c->share > 0)
        snprintf(out, size, "%g %%", c->share);
    else
        snprintf(out, size, "%" PRIu64, c->n);
    return out;
}

/* The first pattern that fits, or NULL. */
static const policy_pattern *find_pattern(const policy_patterns *list, const char *layer)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (fnmatch(list->items[i].glob, layer, 0) == 0)
            return &list->items[i];
    return NULL;
}

layer_kind policy_layer(const plan *p, const char *layer, int weight_rank)
{
    const policy_pattern *pattern = find_pattern(p->layer_kinds, layer);
    layer_kind kind = LAYER_OTHER;
    if (pattern)
        return pattern->kind;
    if (policy_layer_kind_of_name(layer, &kind))
        return kind;
    switch (weight_rank) {
    case 1:
        return LAYER_NORM;
    case 2:
        return LAYER_LINEAR;
    case 3:
    case 4:
    case 5:
        return LAYER_CONV;
    case POLICY_TABLE:
        return LAYER_EMBEDDING;
    default:
        return LAYER_OTHER;
    }
}

static const mpsim_block_recipe *block_recipe(const char *name)
{
    return name ? mpsim_block_find(name) : NULL;
}

int policy_plan_is_kept(const plan *p, const char *layer)
{
    return find_pattern(p->keep_fp32, layer) != NULL;
}

int policy_plan_casts_all(const plan *p)
{
    const unsigned weights = 1u << TRAIN_WEIGHT;
    return (p->autocast->low[LAYER_OTHER] & weights) != 0;
}

void policy_plan_place(const plan *p, layer_kind k, const char *layer, train_placement *to)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const int kept = policy_plan_is_kept(p, layer);
    const unsigned low = kept ? 0 : p->autocast->low[k];
    const recipe_row *recipe = p->recipe;
    memset(to, 0, sizeof *to);
    for (unsigned role = 0; role < TRAIN_ROLES; role++)
        to->format[role] = !(low >> role & 1) ? *fp32 : role == TRAIN_WGRAD ? p->grads : p->compute;
    to->storage = low >> TRAIN_WEIGHT & 1 ? p->params : *fp32;
    to->kept = p->master == TRAIN_NO_MASTER ? to->storage : *fp32;
    to->state = p->optimizer.state_given ? p->optimizer.state : to->kept;
    to->states = p->optimizer.states;
    if (!recipe || k != LAYER_LINEAR || kept || find_pattern(p->fp8_exclude, layer))
        return;
    to->recipe[TRAIN_ACT] = block_recipe(recipe->act);
    to->recipe[TRAIN_WEIGHT] = block_recipe(p->without_2d ? recipe->act : recipe->weight);
    to->recipe[TRAIN_AGRAD] = block_recipe(p->without_sr ? recipe->act
                                           : p->fp8_e4m3 ? recipe->agrad_e4m3
                                                         : recipe->agrad_hybrid);
    to->hadamard = p->without_rht ? 0 : recipe->hadamard;
    to->promote = recipe->promote;
}

static int has_one_scale(const mpsim_block_recipe *r)
{
    return !r || (r->block_rows == 0 && r->block_cols == 0);
}

int policy_plan_attends(const plan *p)
{
    const recipe_row *r = p->recipe;
    return p->fp8_attention && r && has_one_scale(block_recipe(r->act)) && has_one_scale(block_recipe(r->weight));
}

static void drop_recipe(train_placement *to)
{
    memset(to->recipe, 0, sizeof to->recipe);
    to->hadamard = to->promote = 0;
}

void policy_plan_place_attention(const plan *p, train_placement *to)
{
    if (!policy_plan_attends(p))
        drop_recipe(to);
}

/* ---- layers at the ends ---- */

/* Digits from `text` on, up to `end`: their number; 0 where there are none or too many. */
static int number_of(const char *text, const char *end, uint64_t *n)
{
    *n = 0;
    for (const char *c = text; c < end; c++) {
        if (*c < '0' || *c > '9' || c - text >= 9)
            return 0;
        *n = 10 * *n + (uint64_t)(*c - '0');
    }
    return end > text;
}

static int layer_number(const char *layer, uint64_t *n)
{
    const char *at = layer, *end;
    for (;; at = end + 1) {
        end = at + strcspn(at, ".");
        if (number_of(at, end, n))
            return 1;
        if (!*end)
            break;
    }
    for (at = end; at > layer && at[-1] >= '0' && at[-1] <= '9';)
        at--;
    return number_of(at, end, n) ||
           (layer[0] == 'h' && layer[strcspn(layer, ".")] && number_of(layer + 1, layer + strcspn(layer, "."), n));
}

int policy_depth_add(policy_depth *d, const char *layer)
{
    const policy_depth before = *d;
    uint64_t n;
    if (!layer_number(layer, &n))
        return 0;
    d->first = !d->known || n < d->first ? n : d->first;
    d->last = !d->known || n > d->last ? n : d->last;
    d->known = 1;
    return !before.known || d->first != before.first || d->last != before.last;
}

static uint64_t layers_of(const plan_count *c, uint64_t all)
{
    const uint64_t share = (uint64_t)ceil(c->share * (double)all / 100);
    return c->n ? c->n : share;
}

void policy_plan_keep_ends(const plan *p, const policy_depth *d, const char *layer, train_placement *to)
{
    uint64_t n;
    if (!p->ends_kept || !d->known || !layer_number(layer, &n) || n < d->first || n > d->last)
        return;
    const uint64_t all = d->last - d->first + 1;
    if (n - d->first >= layers_of(&p->at_start, all) && d->last - n >= layers_of(&p->at_end, all))
        return;
    drop_recipe(to);
}

/* torch's takes matrices alone. */
int policy_plan_is_muon(const plan *p, layer_kind k, const char *layer, uint64_t rank)
{
    const int fits = p->optimizer.muon.form == MPSIM_MUON_KELLER ? rank >= 2 : rank == 2;
    return p->optimizer.has_muon && fits && (k == LAYER_LINEAR || k == LAYER_CONV) &&
           !find_pattern(p->muon_exclude, layer);
}

static layer_kind kind_of(const plan *p, const plan_layer *l)
{
    const policy_pattern *said = l->kind >= 0 ? find_pattern(p->layer_kinds, l->name) : NULL;
    return said ? said->kind : l->kind >= 0 ? (layer_kind)l->kind : policy_layer(p, l->name, l->rank);
}

void policy_plan_place_layer(const plan *p, const policy_depth *d, const plan_layer *l, train_placement *to)
{
    const layer_kind kind = kind_of(p, l);
    policy_plan_place(p, kind, l->name, to);
    to->muon = l->weighs && policy_plan_is_muon(p, kind, l->name, (uint64_t)l->rank);
    if (!l->weighs)
        to->states = NULL;
    policy_plan_keep_ends(p, d, l->name, to);
    if (l->attends)
        policy_plan_place_attention(p, to);
    if (!l->multiplies)
        drop_recipe(to);
}

const char *policy_plan_optimizers(char *out, size_t size, const char *last)
{
    *out = '\0';
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        text_add(out, size, "%s%s",
                 a == 0                           ? ""
                 : a + 1 < MPSIM_OPTIM_ALGORITHMS ? ", "
                                                  : last,
                 mpsim_optim_traits_of(a)->name);
    return out;
}

const mpsim_optim_variant *policy_variant(const plan_optimizer *c, int algorithm)
{
    for (size_t i = 0; i < c->n_variants; i++)
        if ((c->variants[i]->algorithms >> algorithm & 1) && (c->variants[i]->stores >> c->store & 1))
            return c->variants[i];
    return NULL;
}

/* What the plan leaves out of NVFP4's recipe; which layers it keeps. */
static void describe_blocks(const plan *p, char *out, size_t size)
{
    static const char *const words[] = {"", " without RHT", " without 2D scales", " without stochastic rounding"};
    char start[32], end[32];
    if (!p->recipe)
        return;
    text_add(out, size, "%s%s%s", words[p->without_rht], words[2 * p->without_2d], words[3 * p->without_sr]);
    if (p->ends_kept)
        text_add(out, size, ", first %s and last %s layers in %s", count_text(&p->at_start, start, sizeof start),
                 count_text(&p->at_end, end, sizeof end), p->compute.name);
}

const char *policy_plan_amax_algorithm(const plan *p)
{
    return p->delayed.algorithm == MPSIM_AMAX_MAX ? "max" : "most_recent";
}

/* What decides the scales of delayed scaling. */
static void describe_delayed(const plan *p, char *out, size_t size)
{
    text_add(out, size, ", FP8 margin %d, history %" PRIu32 ", amax %s", p->delayed.margin, p->delayed.history,
             policy_plan_amax_algorithm(p));
}

const char *policy_plan_describe(const plan *p, char *out, size_t size)
{
    static const char *const masters[] = {"", ", fp32 master", ", split master"};
    static const char *const stores[] = {"", ", stochastic rounding", ", Kahan"};
    static const char *const orders[] = {"sequence", "a ring", "a tree"};
    snprintf(out, size, "precision %s: compute %s, autocast %s, parameters %s%s%s, gradients %s, scaler %s",
             p->precision, p->compute.name, p->autocast->name, p->params.name, masters[p->master],
             stores[p->optimizer.store], p->grads.name, p->scaler.name);
    if (p->recipe)
        text_add(out, size, ", %s%s", p->recipe->name,
                 !p->recipe->agrad_hybrid ? ""
                 : p->fp8_e4m3            ? " e4m3"
                                          : " hybrid");
    if (p->fp8_attention)
        text_add(out, size, ", attention too");
    describe_blocks(p, out, size);
    if (p->recipe && p->recipe->delayed)
        describe_delayed(p, out, size);
    if (p->reduce_given)
        text_add(out, size, ", ranks added in %s%s%s", orders[p->reduce.order], " over a wire of ",
                 p->reduce.wire.name);
    if (p->reduce_given && strcmp(p->reduce.wire.name, p->reduce.accumulator.name) != 0)
        text_add(out, size, " with sums in %s", p->reduce.accumulator.name);
    if (p->optimizer.has_muon)
        text_add(out, size, ", matrices by muon");
    if (p->optimizer.states)
        text_add(out, size, ", moments %s", p->optimizer.states->name);
    if (p->clip != MPSIM_CLIP_NONE)
        text_add(out, size, ", clip %g (%s%s)", p->max_norm, mpsim_clip_name(p->clip),
                 p->clip_scaled ? ", before unscaling" : "");
    return out;
}
