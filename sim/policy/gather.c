/* gather.c -- see gather.h. */
#include "impl.h"

#include <stdlib.h>
#include <string.h>

/* What a key of a policy is in loss_scaling; NULL: not one of these. */
static const char *word_of(const char *key)
{
    static const char start[] = "grad_scaler_";
    static const char *const bare[] = {"scale_factor",  "skip",           /* GradScaler's arguments: */ "init_scale",
                                       "growth_factor", "backoff_factor", "growth_interval"};
    if (strncmp(key, start, sizeof start - 1) == 0)
        return key + sizeof start - 1;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (strcmp(key, bare[i]) == 0)
            return key;
    return NULL;
}

/* The map of loss_scaling: it is made, or made from a scaler's name. NULL without memory. */
static yaml_value *scaling_of(yaml_value *map, unsigned line)
{
    const yaml_item *item = policy_tree_find(map, "loss_scaling");
    if (item && item->value->type != YAML_TEXT)
        return item->value;
    yaml_value *scaling = policy_tree_new(YAML_MAP, item ? item->value->line : line, NULL);
    if (!scaling)
        return NULL;
    policy_tree_add_text(scaling, scaling->line, "scaler", item ? item->value->text : "dynamic");
    if (!item)
        return policy_tree_add(map, "loss_scaling", scaling) ? NULL : scaling;
    policy_tree_free(item->value);
    map->items[item - map->items].value = scaling;
    return scaling;
}

/* The first key to be moved is put there, and taken away here; 0: there is none. */
static int move_one(yaml_value *map)
{
    for (size_t i = 0; i < map->count; i++) {
        const char *word = word_of(map->items[i].key);
        if (!word)
            continue;
        yaml_value *scaling = scaling_of(map, map->items[i].line);
        if (!scaling || scaling->type != YAML_MAP)
            return 0;
        const unsigned line = map->items[i].line;
        if (policy_tree_add(scaling, word, map->items[i].value) == 0)
            scaling->items[scaling->count - 1].line = line;
        free(map->items[i].key);
        map->count--;
        memmove(&map->items[i], &map->items[i + 1], (map->count - i) * sizeof *map->items);
        return 1;
    }
    return 0;
}

void policy_gather_scaling(yaml_value *map)
{
    if (map->type != YAML_MAP)
        return;
    while (move_one(map))
        ;
    const yaml_item *schedule = policy_tree_find(map, "schedule");
    for (size_t i = 0; schedule && schedule->value->type == YAML_LIST && i < schedule->value->count; i++)
        policy_gather_scaling(schedule->value->items[i].value);
}
