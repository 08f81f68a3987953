/* yaml.h -- a YAML file as a small tree that knows its lines.
 *
 * Scalars stay text; an alias is its anchor's value again, and "<<" merges maps, as in YAML 1.1. A file of
 * more than 1 MiB, of more than one document, nested deeper than 16 or with more than 20,000 keys and
 * values (aliases written out), and a key that is no scalar or stands twice are errors. */
#pragma once

#include "../trace/trace.h"

#include <stddef.h>

typedef enum yaml_type { YAML_TEXT, YAML_LIST, YAML_MAP } yaml_type;

typedef struct yaml_value yaml_value;

typedef struct yaml_item {
    char *key;     /* of a map; NULL in a list */
    unsigned line; /* of the key, or of the item; from 1 */
    yaml_value *value;
} yaml_item;

struct yaml_value {
    yaml_type type;
    unsigned line;
    char *text; /* YAML_TEXT */
    yaml_item *items;
    size_t count;
};

/* policy_tree_load -- the tree of a file, to be freed with policy_tree_free; NULL with *error filled: one line
 * "FILE: line N: ...". An empty file gives an empty map. */
yaml_value *policy_tree_load(const char *path, trace_error *error);
/* policy_tree_read -- the same of n bytes in memory, which errors call `path`. */
yaml_value *policy_tree_read(const char *path, const char *text, size_t n, trace_error *error);
void policy_tree_free(yaml_value *v); /* accepts NULL */
