/* layer.c -- the ranks of the weights of layers, which tell what a layer is; see state.h.
 *
 * A layer's weight is LAYER.weight; else the first tensor of two dimensions and more whose name speaks
 * of a weight (in_proj_weight of an attention, weight_ih_l0 of an LSTM); or that of the parameter whose
 * alias it is. Of an embedding the recorder says that its input is not recorded, since it is one of
 * integers: "tokens (Embedding): ..." in mpsim.not_recorded. */
#include "impl.h"

#include "../array/need.h"

#include <stdlib.h>
#include <string.h>

/* "LAYER.weight", as tensors or aliases have it. */
static void add(replay *r, const char *layer, size_t n, size_t rank)
{
    char name[REPLAY_NAME_MAX + 16];
    if (n > REPLAY_NAME_MAX)
        return;
    snprintf(name, sizeof name, "%.*s", (int)n, layer);
    if (nameindex_find(&r->weight_ranks, name) >= 0)
        return;
    need_room(&r->layer_names, r->n_layer_names, sizeof *r->layer_names);
    char *copy = r->layer_names[r->n_layer_names++] = need_text(name);
    nameindex_add(&r->weight_ranks, copy, rank);
}

/* The weights of a file: those named so, or the others. */
static void add_weights(replay *r, const trace *t, int others)
{
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if (!tensor->kind || strcmp(tensor->kind, "weight") != 0)
            continue;
        const char *dot = strrchr(tensor->fqn, '.');
        if (!dot)
            continue;
        const int named = strcmp(dot + 1, "weight") == 0;
        if (named ? !others : others && tensor->rank >= 2 && strstr(dot + 1, "weight"))
            add(r, tensor->fqn, (size_t)(dot - tensor->fqn), tensor->rank);
    }
}

static void add_embeddings(replay *r, const trace *t)
{
    static const char class[] = " (Embedding";
    const char *text = trace_metadata(t, "mpsim.not_recorded");
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        const char *at = memmem(text, length, class, sizeof class - 1);
        if (at)
            add(r, text, (size_t)(at - text), POLICY_TABLE);
        text += length + (text[length] == ',');
    }
}

static void add_aliases(replay *r)
{
    const char *alias;
    json_t *name;
    json_object_foreach(r->groups.tied, alias, name)
    {
        const char *to = json_string_value(name), *dot = strrchr(to, '.');
        const char *alias_dot = strrchr(alias, '.');
        if (!dot || !alias_dot || dot - to > REPLAY_NAME_MAX)
            continue;
        char layer[REPLAY_NAME_MAX + 16];
        snprintf(layer, sizeof layer, "%.*s", (int)(dot - to), to);
        int rank = replay_weight_rank(r, layer);
        if (rank == POLICY_TABLE)
            rank = 2; /* the other use of the table is a product */
        if (rank >= 0)
            add(r, alias, (size_t)(alias_dot - alias), (size_t)rank);
    }
}

void replay_index_weights(replay *r, const trace *t)
{
    replay_forget_weights(r);
    add_embeddings(r, t);
    for (int others = 0; others < 2; others++)
        add_weights(r, t, others);
    add_aliases(r);
}

void replay_forget_weights(replay *r)
{
    nameindex_clear(&r->weight_ranks);
    for (size_t i = 0; i < r->n_layer_names; i++)
        free(r->layer_names[i]);
    free(r->layer_names);
    r->layer_names = NULL;
    r->n_layer_names = 0;
}

int replay_weight_rank(const replay *r, const char *layer)
{
    return (int)nameindex_find(&r->weight_ranks, layer);
}
