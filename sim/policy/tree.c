/* tree.c -- see tree.h. */
#include "tree.h"

#include "../array/need.h"

#include <string.h>

const yaml_item *tree_find(const yaml_value *map, const char *key)
{
    for (size_t i = 0; map && map->type == YAML_MAP && i < map->count; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

yaml_value *tree_new(yaml_type type, unsigned line, const char *text)
{
    yaml_value *v = need_memory(1, sizeof *v);
    v->type = type;
    v->line = line;
    v->text = text ? need_text(text) : NULL;
    return v;
}

void tree_add(yaml_value *to, const char *key, yaml_value *v)
{
    to->items = need_more(to->items, to->count + 1, sizeof *to->items);
    to->items[to->count++] = (yaml_item){key ? need_text(key) : NULL, v->line, v};
}

void tree_add_text(yaml_value *to, unsigned line, const char *key, const char *text)
{
    tree_add(to, key, tree_new(YAML_TEXT, line, text));
}

yaml_value *tree_copy(const yaml_value *v)
{
    yaml_value *c = tree_new(v->type, v->line, v->text);
    for (size_t i = 0; i < v->count; i++) {
        tree_add(c, v->items[i].key, tree_copy(v->items[i].value));
        c->items[i].line = v->items[i].line;
    }
    return c;
}
