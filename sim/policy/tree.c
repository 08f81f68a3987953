/* tree.c -- see tree.h. */
#include "impl.h"

#include "../array/want.h"

#include <stdlib.h>
#include <string.h>

const yaml_item *policy_tree_find(const yaml_value *map, const char *key)
{
    for (size_t i = 0; map && map->type == YAML_MAP && i < map->count; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

unsigned policy_tree_line(const yaml_value *map, const char *key)
{
    const yaml_item *item = policy_tree_find(map, key);
    return item ? item->line : 0;
}

yaml_value *policy_tree_new(yaml_type type, unsigned line, const char *text)
{
    yaml_value *v = want_memory(1, sizeof *v);
    if (!v)
        return NULL;
    v->type = type;
    v->line = line;
    v->text = text ? want_text(text) : NULL;
    if (text && !v->text)
        v->type = YAML_LIST; /* a text has one */
    return v;
}

int policy_tree_add(yaml_value *to, const char *key, yaml_value *v)
{
    char *own = to && v && key ? want_text(key) : NULL;
    if (!to || !v || (key && !own) || want_room(&to->items, to->count, 1, sizeof *to->items)) {
        free(own);
        policy_tree_free(v);
        return -1;
    }
    to->items[to->count++] = (yaml_item){own, v->line, v};
    return 0;
}

int policy_tree_add_text(yaml_value *to, unsigned line, const char *key, const char *text)
{
    return policy_tree_add(to, key, policy_tree_new(YAML_TEXT, line, text));
}

yaml_value *policy_tree_copy(const yaml_value *v)
{
    yaml_value *c = policy_tree_new(v->type, v->line, v->text);
    for (size_t i = 0; c && i < v->count; i++) {
        if (policy_tree_add(c, v->items[i].key, policy_tree_copy(v->items[i].value)) == 0)
            c->items[c->count - 1].line = v->items[i].line;
    }
    return c;
}
