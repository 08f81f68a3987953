/* yaml.c -- see yaml.h. */
#include "yaml.h"

#include "../array/lacking.h"
#include "../array/want.h"
#include "../cli/options.h"
#include "../process/textfile.h"

#include <stdarg.h>
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

__attribute__((format(printf, 3, 4))) static int bad(loader *l, unsigned line, const char *message, ...)
{
    char text[256];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    return trace_error_set(l->error, EXIT_DATA, l->path, UINT64_MAX, "line %u: %s", line, text);
}

void policy_tree_free(yaml_value *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->count; i++) {
        free(v->items[i].key);
        policy_tree_free(v->items[i].value);
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
        if (key->type != YAML_SCALAR_NODE || strlen(text) != key->data.scalar.length)
            return bad(l, line_of(key), "a key must be a word");
        for (size_t i = 0; i < v->count; i++)
            if (strcmp(v->items[i].key, text) == 0)
                return bad(l, line_of(key), "'%.60s' stands twice", text);
        item->key = want_text(text);
        item->line = line_of(key);
    }
    item->value = key && !item->key ? NULL : convert(l, index, depth + 1);
    if (item->value && !key)
        item->line = item->value->line;
    v->count++;
    return item->value ? 0 : -1;
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

static int make_room(yaml_value *v, size_t more)
{
    return want_room(&v->items, v->count, more, sizeof *v->items);
}

static const char too_deep[] = "nested too deeply", too_many[] = "too many keys and values";

static int check_size(loader *l, unsigned line, int depth)
{
    return depth > MAX_DEPTH || l->nodes > MAX_NODES ? bad(l, line, "%s", depth > MAX_DEPTH ? too_deep : too_many) : 0;
}

/* The pairs of a map, or those whose keys v has not; merge keys are left to add_merged. */
static int add_pairs(loader *l, yaml_value *v, const yaml_node_t *map, int only_new, int depth)
{
    if (make_room(v, count_of(map)))
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
            if (!is_map)
                return bad(l, line_of(key), "<<: 'key: value' pairs are needed, or an alias of them");
            if (check_size(l, line_of(key), depth))
                return -1;
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
    if (make_room(v, count_of(n)))
        return -1;
    for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++)
        if (add_item(l, v, NULL, *i, depth))
            return -1;
    return 0;
}

static int convert_text(loader *l, yaml_value *v, const yaml_node_t *n)
{
    v->type = YAML_TEXT;
    v->text = want_text((const char *)n->data.scalar.value);
    if (!v->text)
        return -1;
    if (strlen(v->text) != n->data.scalar.length)
        return bad(l, v->line, "a zero byte in the text");
    for (size_t k = n->data.scalar.length; k > 0 && v->text[k - 1] == '\n'; k--)
        v->text[k - 1] = '\0'; /* of a folded or literal text */
    return 0;
}

static yaml_value *convert(loader *l, int index, int depth)
{
    const yaml_node_t *n = yaml_document_get_node(l->document, index);
    yaml_value *v = want_memory(1, sizeof *v);
    if (!v)
        return NULL;
    v->line = line_of(n);
    v->type = n->type == YAML_MAPPING_NODE ? YAML_MAP : YAML_LIST;
    l->nodes++;
    if (check_size(l, v->line, depth) ||
        (n->type == YAML_SCALAR_NODE ? convert_text(l, v, n) : add_items(l, v, n, depth))) {
        policy_tree_free(v);
        return NULL;
    }
    return v;
}

/* The line of the first of too many directives, or 0: libyaml compares each with all others before it says a word. */
static unsigned too_many_directives(const unsigned char *text, size_t n)
{
    unsigned line = 0;
    int found = 0;
    for (const unsigned char *p = n ? text : NULL, *next; p; p = next) {
        line++;
        found += p < text + n && *p == '%';
        if (found > MAX_DIRECTIVES)
            return line;
        next = memchr(p, '\n', (size_t)(text + n - p));
        next = next ? next + 1 : NULL;
    }
    return 0;
}

static int no_memory(void)
{
    (void)host_no_memory();
    return -1;
}

static int begin(yaml_parser_t *parser)
{
    return yaml_parser_initialize(parser) ? 0 : no_memory();
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
    if (line)
        return bad(l, line, "too many lines that begin with %%");
    if (begin(&parser))
        return -1;
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
        const char *why = anchors > MAX_ANCHORS ? "too many anchors"
                          : depth > MAX_DEPTH   ? too_deep
                          : nodes > MAX_NODES   ? too_many
                                                : NULL;
        refused = why ? bad(l, (unsigned)e.start_mark.line + 1, "%s", why) : 0;
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

static int syntax_error(loader *l, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR || !parser->problem) /* other errors say what is wrong */
        return no_memory();
    return bad(l, problem_line(parser, l->text, l->n), "not valid YAML: %.150s", parser->problem);
}

/* 0 if nothing follows the first document, else -1. */
static int end_of_stream(loader *l, yaml_parser_t *parser)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second))
        return syntax_error(l, parser);
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root)
        bad(l, line_of(root), "a second document");
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
    if (is_refused(l, text, n) || begin(&parser))
        return NULL;
    yaml_parser_set_input_string(&parser, text, n);
    if (!yaml_parser_load(&parser, &document)) {
        syntax_error(l, &parser);
        yaml_parser_delete(&parser);
        return NULL;
    }
    l->document = &document;
    if (yaml_document_get_root_node(&document)) {
        v = convert(l, 1, 0);
    } else {
        v = want_memory(1, sizeof *v);
        if (v)
            v->type = YAML_MAP;
    }
    if (v && end_of_stream(l, &parser)) {
        policy_tree_free(v);
        v = NULL;
    }
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return v;
}

yaml_value *policy_tree_load(const char *path, trace_error *error)
{
    size_t n;
    char *text = text_file_read(path, MAX_BYTES, &n, error);
    yaml_value *v = text ? policy_tree_read(path, text, n, error) : NULL;
    free(text);
    return v;
}

yaml_value *policy_tree_read(const char *path, const char *text, size_t n, trace_error *error)
{
    loader l = {.path = path, .error = error};
    if (n > MAX_BYTES) {
        trace_error_set(error, EXIT_DATA, path, UINT64_MAX, "more than %d bytes", (int)MAX_BYTES);
        return NULL;
    }
    return parse(&l, (const unsigned char *)text, n);
}
