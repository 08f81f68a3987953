/* yaml.c -- see yaml.h. */
#include "yaml.h"

#include "../cli/options.h"
#include "../cli/textfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 16, MAX_NODES = 20000, MAX_ANCHORS = 256, MAX_DIRECTIVES = 16 };

typedef struct loader {
    const unsigned char *text;
    size_t n;
    const char *path;
    yaml_document_t *document;
    int nodes; /* converted so far: an alias is the value again */
    trace_error *error;
} loader;

static unsigned line_of(const yaml_node_t *n)
{
    return (unsigned)n->start_mark.line + 1;
}

static void set_error(loader *l, int exit_code, unsigned line, const char *message, const char *word)
{
    char text[256];
    snprintf(text, sizeof text, message, word);
    if (line)
        trace_error_set(l->error, exit_code, l->path, UINT64_MAX, "line %u: %s", line, text);
    else
        trace_error_set(l->error, exit_code, l->path, UINT64_MAX, "%s", text);
}

void tree_free(yaml_value *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->count; i++) {
        free(v->items[i].key);
        tree_free(v->items[i].value);
    }
    free(v->items);
    free(v->text);
    free(v);
}

static yaml_value *convert(loader *l, int index, int depth);

static int add_item(loader *l, yaml_value *v, const yaml_node_t *key, int index, int depth)
{
    yaml_item *item = &v->items[v->count];
    memset(item, 0, sizeof *item);
    if (key) {
        const char *text = (const char *)key->data.scalar.value;
        if (key->type != YAML_SCALAR_NODE || strlen(text) != key->data.scalar.length) {
            set_error(l, EXIT_DATA, line_of(key), "a key must be a word%s", "");
            return -1;
        }
        for (size_t i = 0; i < v->count; i++)
            if (strcmp(v->items[i].key, text) == 0) {
                set_error(l, EXIT_DATA, line_of(key), "'%.60s' stands twice", text);
                return -1;
            }
        item->key = strdup(text);
        item->line = line_of(key);
    }
    item->value = convert(l, index, depth + 1);
    if (item->value && !key)
        item->line = item->value->line;
    v->count++;
    if (!item->value)
        return -1;
    if (key && !item->key) {
        set_error(l, EXIT_IO, 0, "out of memory%s", "");
        return -1;
    }
    return 0;
}

static size_t count_of(const yaml_node_t *n)
{
    return n->type == YAML_MAPPING_NODE ? (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start)
                                        : (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
}

static int is_merge(const yaml_node_t *key)
{
    return key->type == YAML_SCALAR_NODE && strcmp((const char *)key->data.scalar.value, "<<") == 0;
}

static int has_key(const yaml_value *v, const yaml_node_t *key)
{
    for (size_t i = 0; key->type == YAML_SCALAR_NODE && i < v->count; i++)
        if (strcmp(v->items[i].key, (const char *)key->data.scalar.value) == 0)
            return 1;
    return 0;
}

static int make_room(loader *l, yaml_value *v, size_t more)
{
    yaml_item *items = realloc(v->items, (v->count + more + 1) * sizeof *items);
    if (!items) {
        set_error(l, EXIT_IO, 0, "out of memory%s", "");
        return -1;
    }
    v->items = items;
    return 0;
}

/* The pairs of a map, or those whose keys v has not; merge keys are left to add_merged. */
static int add_pairs(loader *l, yaml_value *v, const yaml_node_t *map, int only_new, int depth)
{
    if (make_room(l, v, count_of(map)))
        return -1;
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(l->document, p->key);
        if (!is_merge(key) && !(only_new && has_key(v, key)) && add_item(l, v, key, p->value, depth))
            return -1;
    }
    return 0;
}

/* "<<: *base", "<<: [*a, *b]": pairs of those maps whose keys are not given, the first map's before the next's. */
static int add_merged(loader *l, yaml_value *v, const yaml_node_t *map, int depth)
{
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(l->document, p->key);
        const yaml_node_t *from = yaml_document_get_node(l->document, p->value);
        if (!is_merge(key))
            continue;
        const int list = from->type == YAML_SEQUENCE_NODE;
        for (size_t i = 0; i < (list ? count_of(from) : 1); i++) {
            const yaml_node_t *one = list ? yaml_document_get_node(l->document, from->data.sequence.items.start[i])
                                          : from;
            const int is_map = one->type == YAML_MAPPING_NODE;
            l->nodes += is_map ? (int)count_of(one) + 1 : 0; /* also where it brings no new key */
            if (!is_map || depth > MAX_DEPTH || l->nodes > MAX_NODES) {
                set_error(l, EXIT_DATA, line_of(key),
                          !is_map             ? "<<: 'key: value' pairs are needed, or an alias of them%s"
                          : depth > MAX_DEPTH ? "nested too deeply%s"
                                              : "too many keys and values%s",
                          "");
                return -1;
            }
            if (add_pairs(l, v, one, 1, depth) || add_merged(l, v, one, depth + 1))
                return -1;
        }
    }
    return 0;
}

static int add_items(loader *l, yaml_value *v, const yaml_node_t *n, int depth)
{
    if (n->type == YAML_MAPPING_NODE)
        return add_pairs(l, v, n, 0, depth) || add_merged(l, v, n, depth) ? -1 : 0;
    if (make_room(l, v, count_of(n)))
        return -1;
    for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++)
        if (add_item(l, v, NULL, *i, depth))
            return -1;
    return 0;
}

static yaml_value *convert(loader *l, int index, int depth)
{
    const yaml_node_t *n = yaml_document_get_node(l->document, index);
    yaml_value *v = calloc(1, sizeof *v);
    if (!v) {
        set_error(l, EXIT_IO, 0, "out of memory%s", "");
        return NULL;
    }
    v->line = line_of(n);
    int bad = 0;
    if (depth > MAX_DEPTH || ++l->nodes > MAX_NODES) {
        set_error(l, EXIT_DATA, v->line, depth > MAX_DEPTH ? "nested too deeply%s" : "too many keys and values%s", "");
        bad = 1;
    } else if (n->type == YAML_SCALAR_NODE) {
        v->type = YAML_TEXT;
        v->text = strdup((const char *)n->data.scalar.value);
        bad = !v->text || strlen(v->text) != n->data.scalar.length;
        for (size_t k = bad ? 0 : n->data.scalar.length; k > 0 && v->text[k - 1] == '\n'; k--)
            v->text[k - 1] = '\0'; /* of a folded or literal text */
        if (bad)
            set_error(l, v->text ? EXIT_DATA : EXIT_IO, v->line,
                      v->text ? "a zero byte in the text%s" : "out of memory%s", "");
    } else {
        v->type = n->type == YAML_MAPPING_NODE ? YAML_MAP : YAML_LIST;
        bad = add_items(l, v, n, depth);
    }
    if (!bad)
        return v;
    tree_free(v);
    return NULL;
}

/* The line of the first of too many directives, or 0: libyaml compares each with all others before it says a word. */
static unsigned too_many_directives(const unsigned char *text, size_t n)
{
    unsigned line = 0;
    int found = 0;
    for (const unsigned char *p = text, *next; p; p = next) {
        line++;
        found += p < text + n && *p == '%';
        if (found > MAX_DIRECTIVES)
            return line;
        next = memchr(p, '\n', (size_t)(text + n - p));
        next += next != NULL;
    }
    return 0;
}

/* What would make the tree larger than the file, endless or slow to build is refused before the
 * document is built: many anchors (libyaml searches all of them for each, and for each alias), depth (its
 * scanner looks at every open bracket for each token) and a large number of nodes. What aliases repeat
 * counts again when it is converted. */
static int is_refused(loader *l, const unsigned char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_event_t e;
    int refused = 0, end = 0, depth = -1, nodes = 0, anchors = 0;
    const unsigned line = too_many_directives(text, n);
    if (line) {
        set_error(l, EXIT_DATA, line, "too many lines that begin with %%%s", "");
        return 1;
    }
    if (!yaml_parser_initialize(&parser))
        return 0; /* the second attempt says so */
    yaml_parser_set_input_string(&parser, text, n);
    while (!refused && !end && yaml_parser_parse(&parser, &e)) {
        const int begins = e.type == YAML_SEQUENCE_START_EVENT || e.type == YAML_MAPPING_START_EVENT;
        anchors += (e.type == YAML_SCALAR_EVENT && e.data.scalar.anchor) ||
                   (e.type == YAML_SEQUENCE_START_EVENT && e.data.sequence_start.anchor) ||
                   (e.type == YAML_MAPPING_START_EVENT && e.data.mapping_start.anchor);
        end = e.type == YAML_STREAM_END_EVENT;
        depth += begins;
        depth -= e.type == YAML_SEQUENCE_END_EVENT || e.type == YAML_MAPPING_END_EVENT;
        nodes += begins || e.type == YAML_SCALAR_EVENT || e.type == YAML_ALIAS_EVENT;
        refused = 1;
        if (anchors > MAX_ANCHORS)
            set_error(l, EXIT_DATA, (unsigned)e.start_mark.line + 1, "too many anchors%s", "");
        else if (depth > MAX_DEPTH)
            set_error(l, EXIT_DATA, (unsigned)e.start_mark.line + 1, "nested too deeply%s", "");
        else if (nodes > MAX_NODES)
            set_error(l, EXIT_DATA, (unsigned)e.start_mark.line + 1, "too many keys and values%s", "");
        else
            refused = 0;
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    return refused;
}

/* The line of a parser's problem; its reader only knows an offset (in bytes). */
static unsigned problem_line(const yaml_parser_t *parser, const unsigned char *text, size_t n)
{
    unsigned line = 1;
    if (parser->error != YAML_READER_ERROR)
        return (unsigned)parser->problem_mark.line + 1;
    for (size_t i = 0; i < n && i < parser->problem_offset; i++)
        line += text[i] == '\n';
    return line;
}

static void syntax_error(loader *l, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR || !parser->problem) /* other errors say what is wrong */
        set_error(l, EXIT_IO, 0, "out of memory%s", "");
    else
        set_error(l, EXIT_DATA, problem_line(parser, l->text, l->n), "not valid YAML: %.150s", parser->problem);
}

/* 0 if nothing follows the first document, else -1. */
static int end_of_stream(loader *l, yaml_parser_t *parser)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second)) {
        syntax_error(l, parser);
        return -1;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root)
        set_error(l, EXIT_DATA, line_of(root), "a second document%s", "");
    yaml_document_delete(&second);
    return root ? -1 : 0;
}

static yaml_value *parse(loader *l, const unsigned char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_document_t document;
    yaml_value *v = NULL;
    l->text = text;
    l->n = n;
    if (is_refused(l, text, n))
        return NULL;
    if (!yaml_parser_initialize(&parser)) {
        set_error(l, EXIT_IO, 0, "out of memory%s", "");
        return NULL;
    }
    yaml_parser_set_input_string(&parser, text, n);
    if (!yaml_parser_load(&parser, &document)) {
        syntax_error(l, &parser);
        yaml_parser_delete(&parser);
        return NULL;
    }
    l->document = &document;
    if (yaml_document_get_root_node(&document))
        v = convert(l, 1, 0);
    else
        v = calloc(1, sizeof *v);
    if (v && !yaml_document_get_root_node(&document))
        v->type = YAML_MAP;
    if (v && end_of_stream(l, &parser)) {
        tree_free(v);
        v = NULL;
    }
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return v;
}

yaml_value *tree_load(const char *path, trace_error *error)
{
    loader l = {.path = path, .error = error};
    size_t n;
    char *text = text_file_read(path, MAX_BYTES, &n, error);
    yaml_value *v = text ? parse(&l, (const unsigned char *)text, n) : NULL;
    free(text);
    return v;
}
