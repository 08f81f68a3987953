/* patterns.c -- see patterns.h. */
#include "impl.h"

#include "../array/want.h"

static policy_patterns *new_patterns(policy_draft *d, const yaml_value *v)
{
    policy_patterns *list = want_memory(1, sizeof *list);
    if (!list)
        return NULL;
    list->items = want_memory(v->count, sizeof *list->items);
    list->next = d->policy->patterns;
    d->policy->patterns = list;
    d->patterns[d->key] = list;
    d->patterns_of[d->key] = v;
    return list->items ? list : NULL;
}

static int add_pattern(policy_patterns *list, const char *glob, layer_kind kind)
{
    char *own = want_text(glob);
    if (!own)
        return -1;
    list->items[list->count++] = (policy_pattern){.glob = own, .kind = kind};
    return 0;
}

/* A list of patterns; one that a plan inherits is read once. */
int policy_patterns_set(policy_draft *d, const yaml_value *v, void *to)
{
    if (v->type != YAML_LIST)
        return policy_bad(&d->r, v->line, "%s: a list of patterns is needed: ['*norm*', head]", d->name);
    if (d->patterns_of[d->key] != v) {
        policy_patterns *list = new_patterns(d, v);
        for (size_t i = 0; list && i < v->count; i++) {
            if (v->items[i].value->type != YAML_TEXT)
                return policy_bad(&d->r, v->items[i].line, "%s: a pattern is one word", d->name);
            if (add_pattern(list, v->items[i].value->text, LAYER_OTHER))
                return -1;
        }
        if (!list)
            return -1;
    }
    *(const policy_patterns **)to = d->patterns[d->key];
    return 0;
}

int policy_patterns_set_kinds(policy_draft *d, const yaml_value *v, void *to)
{
    if (v->type != YAML_MAP)
        return policy_bad(&d->r, v->line, "layer_kinds: 'pattern: kind' pairs are needed");
    if (d->patterns_of[d->key] != v) {
        policy_patterns *list = new_patterns(d, v);
        for (size_t i = 0; list && i < v->count; i++) {
            const char *word = NULL;
            if (policy_value_text(&d->r, d->name, v->items[i].value, &word))
                return -1;
            const int kind = policy_word(&d->r, v->items[i].line, d->name, word, &policy_layer_kinds);
            if (kind < 0 || add_pattern(list, v->items[i].key, (layer_kind)kind))
                return -1;
        }
        if (!list)
            return -1;
    }
    *(const policy_patterns **)to = d->patterns[d->key];
    return 0;
}
