/* operations.c -- see operations.h. */
#include "operations.h"

#include <stdio.h>
#include <string.h>

static int has_blocks(const mpsim_block_recipe *b)
{
    return b && (b->block_rows || b->block_cols);
}

const mpsim_format *train_operand(const train_settings *s, const train_placement *p, train_role role)
{
    const mpsim_block_recipe *b = p->recipe[role];
    if (b)
        return mpsim_format_find(has_blocks(b) && !p->promote ? "bf16" : b->element);
    return s->tf32 && strcmp(p->format[role].name, "binary32") == 0 ? mpsim_format_find("tf32") : &p->format[role];
}

static const char *operand_name(const train_settings *s, const train_placement *p, train_role role)
{
    return has_blocks(p->recipe[role]) ? p->recipe[role]->name : train_operand(s, p, role)->name;
}

static void add(train_operations *o, const char *a, const char *b, uint64_t n)
{
    char name[sizeof o->rows[0].name];
    size_t i = 0;
    snprintf(name, sizeof name, "%s x %s", a, b);
    while (i < o->count && strcmp(o->rows[i].name, name) != 0)
        i++;
    if (i > OPERATION_KINDS)
        i = OPERATION_KINDS;
    if (i == o->count)
        snprintf(o->rows[o->count++].name, sizeof name, "%s", i < OPERATION_KINDS ? name : "others");
    o->rows[i].n += n;
}

/* The pairs of places that a head of attention multiplies: all, or in tiles those from a tile's first column on. */
static uint64_t pairs(const train_decoder *d)
{
    uint64_t n = 0;
    for (uint64_t first = 0; d->tile && first < d->context; first += d->tile)
        n += (d->context - first) * (d->context - first < d->tile ? d->context - first : d->tile);
    return d->tile ? n : (uint64_t)d->context * d->context;
}

/* A layer's three products: n multiply-adds each. In tiles scores are computed again, and going back nothing is
 * quantised. */
static void add_layer(train_operations *o, const train_run *r, const train_placement *p, uint8_t type, uint64_t n)
{
    const train_settings *s = &r->settings;
    const int tiled = type != TRAIN_LINEAR && s->decoder.tile;
    train_placement back = *p;
    add(o, operand_name(s, p, TRAIN_ACT), operand_name(s, p, TRAIN_WEIGHT), n);
    if (tiled)
        memset(back.recipe, 0, sizeof back.recipe);
    const char *act = operand_name(s, &back, TRAIN_ACT), *weight = operand_name(s, &back, TRAIN_WEIGHT),
               *agrad = operand_name(s, &back, TRAIN_AGRAD);
    if (tiled && type == TRAIN_SCORES)
        add(o, act, weight, n);
    add(o, agrad, weight, n);
    add(o, agrad, act, n);
}

void train_operations_count(train_operations *o, const train_run *r, size_t i)
{
    const train_settings *s = &r->settings;
    const train_decoder *d = &s->decoder;
    const uint64_t sequences = (uint64_t)s->batch * d->accumulate * d->ranks;
    memset(o, 0, sizeof *o);
    for (size_t k = 0; k < r->n_layers; k++) {
        const train_layer *l = &r->layers[k];
        if (l->type == TRAIN_LINEAR)
            add_layer(o, r, &r->plans[i].layers[k], l->type, sequences * d->context * l->inputs * l->outputs);
        else if (l->type == TRAIN_SCORES || l->type == TRAIN_CONTEXT)
            add_layer(o, r, &r->plans[i].layers[k], l->type, sequences * s->width * pairs(d));
    }
}

uint64_t train_tokens_per_step(const train_settings *s)
{
    return (uint64_t)s->batch * s->decoder.context * s->decoder.accumulate * s->decoder.ranks;
}
