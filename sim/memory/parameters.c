/* parameters.c -- weights, gradients and what the optimizer keeps; see count.h.
 *
 * What a parameter needs is what train_bytes_add says of one element; so a replay, a training and this
 * count by one rule. */
#include "count.h"

#include <mpsim/block.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of a layer, while its parameters come. */
typedef struct layer_sum {
    char name[512];
    ledger own; /* COPIES and GATHERED of it */
} layer_sum;

typedef struct counting {
    ledger *l;
    const plan *p;
    const optimizer_row *o;
    const count_setting *how;
    layer_sum layer;
    ledger largest; /* of a layer, with ZeRO 3 */
} counting;

static uint64_t cut(const counting *c, unsigned from_stage, uint64_t n)
{
    const uint64_t ranks = c->how->ranks;
    return c->how->zero >= from_stage ? n / ranks + (n % ranks != 0) : n;
}

#if defined(__GNUC__)
__attribute__((format(printf, 6, 7)))
#endif
static void
add(ledger *l, ledger_component c, uint64_t each, uint64_t n, uint64_t whole, const char *what, ...)
{
    ledger_term t = {.each = each, .n = n, .whole = whole};
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(t.what, sizeof t.what, what, arguments);
    va_end(arguments);
    if (each)
        memory_ledger_add(l, c, t);
}

static void add_blocks(ledger *l, ledger_component c, uint64_t bytes, const char *what, const char *recipe)
{
    ledger_term t = {.bytes = bytes};
    snprintf(t.what, sizeof t.what, "%s%s", recipe, what);
    memory_ledger_add(l, c, t);
}

/* Of a matrix of unknown shape: one whose blocks are whole, in as few rows as a block has. */
static uint64_t block_bytes(const mpsim_block_recipe *b, const shape_tensor *t, int transposed)
{
    uint64_t rows = transposed ? t->cols : t->rows, cols = transposed ? t->rows : t->cols;
    if (t->rank == 0) {
        rows = b->block_rows ? b->block_rows : 1;
        cols = t->n / rows + (t->n % rows != 0);
    }
    return mpsim_block_bytes(b, rows, cols);
}

/* ---- with ZeRO 3 a layer is whole while it is at work; the largest counts ---- */

static void end_layer(counting *c)
{
    if (memory_ledger_total(&c->layer.own) > memory_ledger_total(&c->largest))
        c->largest = c->layer.own;
    c->layer.own = (ledger){0};
}

static void begin_layer(counting *c, const char *name)
{
    if (strncmp(c->layer.name, name, sizeof c->layer.name - 1) == 0)
        return;
    end_layer(c);
    snprintf(c->layer.name, sizeof c->layer.name, "%s", name);
}

/* ---- one parameter ---- */

/* Copies that products read: those of autocast, which it keeps until the step is over, or the quantised
 * ones along both dimensions, as TransformerEngine holds them from the forward pass to the backward
 * pass. */
static void count_copies(counting *c, ledger *to, const shape_tensor *t, const train_placement *place,
                         int quantised_weights)
{
    const mpsim_block_recipe *b = place->recipe[TRAIN_WEIGHT];
    const mpsim_format *f = &place->format[TRAIN_WEIGHT];
    if (b && (t->rank == 0 || t->rank == 2)) {
        if (!quantised_weights)
            add_blocks(to, LEDGER_COPIES, block_bytes(b, t, 0), ", blocks and scales", b->name);
        if (!c->how->no_transposes)
            add_blocks(to, LEDGER_COPIES, block_bytes(b, t, 1), " transposed, blocks and scales", b->name);
    } else if (mpsim_format_code_bytes(f) < mpsim_format_code_bytes(&place->storage)) {
        add(to, LEDGER_COPIES, mpsim_format_code_bytes(f), t->n, t->n, "%s of autocast", f->name);
    }
}

/* With ZeRO 3 weights that are read are whole, and so are their copies; before it these are of the model. */
static void count_reading(counting *c, const shape_tensor *t, const train_placement *place, uint64_t each,
                          const char *storage, const mpsim_block_recipe *quantised)
{
    const uint64_t blocks = quantised ? block_bytes(quantised, t, 0) : 0;
    ledger *whole = c->how->zero >= 3 ? &c->layer.own : c->l;
    if (c->how->zero >= 3 && t->rank == 0)
        return; /* no layer is known */
    if (c->how->zero >= 3 && quantised)
        add_blocks(whole, LEDGER_GATHERED, blocks, ", largest layer", quantised->name);
    else if (c->how->zero >= 3)
        add(whole, LEDGER_GATHERED, each, t->n, t->n, "%s, largest layer", storage);
    count_copies(c, whole, t, place, quantised != NULL);
}

static void count_weights(counting *c, const shape_tensor *t, const train_placement *place, uint64_t each,
                          const char *storage, const mpsim_block_recipe *quantised)
{
    const uint64_t ranks = c->how->zero >= 3 ? c->how->ranks : 1;
    const uint64_t blocks = quantised ? block_bytes(quantised, t, 0) : 0;
    if (quantised)
        add_blocks(c->l, LEDGER_WEIGHTS, blocks / ranks + (blocks % ranks != 0), ", blocks and scales",
                   quantised->name);
    else
        add(c->l, LEDGER_WEIGHTS, each, cut(c, 3, t->n), t->n, "%s", storage);
    count_reading(c, t, place, each, storage, quantised);
}

static void count_state(counting *c, const shape_tensor *t, const train_placement *place, const mpsim_optim *o,
                        uint64_t each)
{
    const uint64_t n = cut(c, 1, t->n), kahan = mpsim_optim_needs(o, &place->kept) & MPSIM_OPTIM_KAHAN
                                                    ? mpsim_format_code_bytes(&place->kept)
                                                    : 0;
    if (each > kahan)
        add(c->l, LEDGER_STATE, each - kahan, n, t->n, "%u of %s",
            (unsigned)((each - kahan) / mpsim_format_code_bytes(&place->state)), place->state.name);
    add(c->l, LEDGER_STATE, kahan, n, t->n, "%s of Kahan", place->kept.name);
    if (c->o->state)
        c->o->state(c->l, c->o, t, n, place);
}

/* TransformerEngine fp8.py: three tensors of the forward and two of the backward pass have a history of
 * amaxes and a scale, of binary32. */
static void count_scaling(counting *c, const shape_tensor *t, const train_placement *place)
{
    const recipe_row *r = c->p->recipe;
    if (r && r->delayed && place->recipe[TRAIN_WEIGHT] && t->rank == 2)
        add(c->l, LEDGER_SCALING, 4 * 5 * ((uint64_t)c->p->delayed.history + 1), 1, 1,
            "5 histories and scales of a layer");
}

/* What accumulates updates, where the optimizer has it in fewer bits, or NULL. */
static const mpsim_state *kept_in(const counting *c, train_bytes *each)
{
    const mpsim_states *s = c->o->states ? mpsim_states_find(c->o->states) : NULL;
    if (!s || !s->kept)
        return NULL;
    *(each->master ? &each->master : &each->weights) = s->kept->bits / 8u;
    return s->kept;
}

/* A layer that reads the parameter of another one, which counts it: autocast casts it for this layer. */
static void count_tied(counting *c, const shape_tensor *t)
{
    train_placement place, own;
    policy_plan_place(c->p, LAYER_EMBEDDING, t->of, &own);
    policy_plan_place(c->p, LAYER_LINEAR, t->layer, &place);
    place.storage = own.storage;
    begin_layer(c, t->layer);
    count_reading(c, t, &place, mpsim_format_code_bytes(&own.storage), own.storage.name, NULL);
    count_scaling(c, t, &place);
}

static void count_parameter(const shape_tensor *t, void *context)
{
    counting *c = context;
    if (t->of) {
        count_tied(c, t);
        return;
    }
    const layer_kind kind = policy_layer(c->p, t->layer, t->weight_rank);
    const int is_matrix = c->p->optimizer.has_muon && t->rank
                              ? policy_plan_is_muon(c->p, kind, t->layer, (uint64_t)t->rank)
                              : t->rank != 1 && (kind == LAYER_LINEAR || kind == LAYER_CONV);
    const mpsim_optim o = memory_optimizer_settings(c->o, c->p, is_matrix);
    train_placement place;
    train_bytes each = {0}; /* of an element */
    policy_plan_place(c->p, kind, t->layer, &place);
    place.states = NULL; /* the optimizer's own count; of what is kept below */
    const mpsim_block_recipe *b = place.recipe[TRAIN_WEIGHT];
    const mpsim_block_recipe *quantised = c->p->fp8_params && (t->rank == 0 || t->rank == 2) ? b : NULL;
    train_bytes_add(&each, &place, c->p->master, &o, 1, quantised != NULL);
    const mpsim_state *kept = kept_in(c, &each);
    begin_layer(c, t->layer);
    count_weights(c, t, &place, each.weights, kept && !each.master ? kept->name : place.storage.name, quantised);
    add(c->l, LEDGER_MASTER, each.master, cut(c, 1, t->n), t->n, "%s",
        c->p->master == TRAIN_SPLIT_MASTER ? "other bits"
        : kept                             ? kept->name
                                           : place.kept.name);
    if (kept)
        add(c->l, LEDGER_SCALING, 4 * kept->numbers, 1, 1, "scale of a tensor");
    add(c->l, LEDGER_GRADIENTS, each.gradients, cut(c, 2, t->n), t->n, "%s",
        each.gradients == 4 ? "binary32" : place.format[TRAIN_WGRAD].name);
    if (c->how->master_gradients && each.master && each.gradients < 4)
        add(c->l, LEDGER_MASTER_GRADIENTS, 4, cut(c, 1, t->n), t->n, "binary32");
    count_state(c, t, &place, &o, each.state);
    count_scaling(c, t, &place);
}

static void merge(ledger *to, const ledger *from)
{
    for (int c = 0; c < LEDGER_COMPONENTS; c++)
        for (size_t i = 0; i < from->count[c]; i++)
            memory_ledger_add(to, (ledger_component)c, from->terms[c][i]);
}

void memory_count_parameters(ledger *l, const shape *s, const plan *p, const optimizer_row *o, const count_setting *how)
{
    counting c = {.l = l, .p = p, .o = o, .how = how};
    memory_shape_each(s, count_parameter, &c);
    end_layer(&c);
    merge(l, &c.largest);
    l->overflow |= c.largest.overflow;
}
