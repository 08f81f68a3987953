/* schema.c -- the JSON Schema of a report; see record.h. */
#include "field.h"

#include <string.h>

enum { DEFINED_MOST = 64 };

typedef struct schema {
    FILE *to;
    const record_kind *defined[DEFINED_MOST]; /* what "$defs" has or will have */
    size_t count;
} schema;

static void define(schema *s, const record_kind *r)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->defined[i] == r)
            return;
    if (s->count < DEFINED_MOST)
        s->defined[s->count++] = r;
}

/* ---- the type of a field ---- */

static void put_reference(jsonout *o, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "#/$defs/%s", name);
    jsonout_text(o, "$ref", path);
}

/* One of several records, or of their lines. */
static void put_one_of(jsonout *o, const record_kind *const *kinds, const char *suffix)
{
    char name[64];
    jsonout_begin(o, "anyOf", '[');
    for (size_t i = 0; kinds[i]; i++) {
        snprintf(name, sizeof name, "%s%s", kinds[i]->name, suffix);
        jsonout_begin(o, NULL, '{');
        put_reference(o, name);
        jsonout_end(o, '}');
    }
    jsonout_end(o, ']');
}

/* The record of f, or one of several. */
static void put_record(jsonout *o, const record_field *f)
{
    if (f->either)
        put_one_of(o, f->either, "");
    else
        put_reference(o, f->record->name);
}

/* Whether the words of f are those of its items. */
static int of_items(const record_field *f)
{
    return f->type == FIELD_TEXTS || f->type == FIELD_SET || f->type == FIELD_TALLY;
}

static void put_words(jsonout *o, const record_field *f)
{
    jsonout_begin(o, "enum", '[');
    for (size_t i = 0; f->words[i]; i++)
        if (*f->words[i] || f->type != FIELD_SET)
            jsonout_text(o, NULL, f->words[i]);
    if (f->in & FIELD_NULL && !of_items(f))
        jsonout_null(o, NULL);
    jsonout_end(o, ']');
}

static void put_text_or_null(jsonout *o)
{
    jsonout_begin(o, "type", '[');
    jsonout_text(o, NULL, "string");
    jsonout_text(o, NULL, "null");
    jsonout_end(o, ']');
}

static void put_pair(jsonout *o)
{
    jsonout_text(o, "type", "array");
    jsonout_begin(o, "items", '{');
    put_reference(o, "count");
    jsonout_end(o, '}');
    jsonout_count(o, "minItems", 2);
    jsonout_count(o, "maxItems", 2);
}

static void put_map(jsonout *o, const record_field *f)
{
    jsonout_text(o, "type", "object");
    jsonout_begin(o, "additionalProperties", '{');
    if (f->type == FIELD_LISTS) {
        jsonout_text(o, "type", "array");
        jsonout_begin(o, "items", '{');
    }
    jsonout_text(o, "type", "string");
    if (f->type == FIELD_LISTS)
        jsonout_end(o, '}');
    jsonout_end(o, '}');
}

static void put_tally(jsonout *o, const record_field *f)
{
    jsonout_text(o, "type", "object");
    jsonout_begin(o, "propertyNames", '{');
    put_words(o, f);
    jsonout_end(o, '}');
    jsonout_begin(o, "additionalProperties", '{');
    put_reference(o, "count");
    jsonout_end(o, '}');
}

static void put_type(jsonout *o, const record_field *f);

static void put_items(jsonout *o, const record_field *f)
{
    size_t size;
    jsonout_text(o, "type", "array");
    jsonout_begin(o, "items", '{');
    if (f->words)
        put_words(o, f);
    else if (f->in & FIELD_GAPS)
        put_text_or_null(o);
    else if (f->type == FIELD_PAIRS)
        put_pair(o);
    else if (f->type == FIELD_CODES)
        put_reference(o, "code");
    else if (f->type == FIELD_LIST)
        put_record(o, f);
    else
        put_type(o, &(const record_field){.type = field_item(f, &size).type});
    jsonout_end(o, '}');
}

static void put_type(jsonout *o, const record_field *f)
{
    static const char *const types[FIELD_TALLY + 1] = {
        [FIELD_TEXT] = "string",  [FIELD_CHARS] = "string",    [FIELD_BOOLEAN] = "boolean",
        [FIELD_FLAG] = "boolean", [FIELD_INTEGER] = "integer", [FIELD_LONG] = "integer"};
    static const char *const defined[FIELD_TALLY + 1] = {
        [FIELD_CODE] = "code",   [FIELD_COUNT] = "count", [FIELD_COUNT32] = "count", [FIELD_SIZE] = "count",
        [FIELD_SHARE] = "count", [FIELD_STEP] = "count",  [FIELD_REAL] = "number",   [FIELD_REAL32] = "number"};
    if (types[f->type])
        jsonout_text(o, "type", types[f->type]);
    else if (defined[f->type])
        put_reference(o, defined[f->type]);
    else if (f->type == FIELD_RECORD)
        put_reference(o, f->record->name);
    else if (f->type == FIELD_MAP || f->type == FIELD_LISTS)
        put_map(o, f);
    else if (f->type == FIELD_TALLY)
        put_tally(o, f);
    else if (f->type != FIELD_WORD && f->type != FIELD_WORD8) /* their words are all of the type */
        put_items(o, f);
}

static void put_either(jsonout *o, const record_field *f)
{
    jsonout_begin(o, "anyOf", '[');
    jsonout_begin(o, NULL, '{');
    put_type(o, f);
    jsonout_end(o, '}');
    jsonout_begin(o, NULL, '{');
    jsonout_text(o, "type", "null");
    jsonout_end(o, '}');
    jsonout_end(o, ']');
}

/* ---- members ---- */

static void put_property(schema *s, const record_field *f, const char *before)
{
    jsonout o = {.to = s->to};
    fputs(before, s->to);
    jsonout_begin(&o, f->key, '{');
    if (f->what)
        jsonout_text(&o, "description", f->what);
    if (f->words && !of_items(f))
        put_words(&o, f);
    else if (f->in & FIELD_NULL)
        put_either(&o, f);
    else
        put_type(&o, f);
    jsonout_end(&o, '}');
    if (f->record)
        define(s, f->record);
    for (size_t i = 0; f->either && f->either[i]; i++)
        define(s, f->either[i]);
}

/* The members of r, those of inline records among them; how many there were so far. */
static size_t put_properties(schema *s, const record_kind *r, unsigned in, const char *indent, size_t n)
{
    for (const record_field *f = r->fields; !field_end(f); f++) {
        char before[32];
        if (!(f->in & in))
            continue;
        if (f->in & FIELD_INLINE) {
            n = put_properties(s, f->record, in, indent, n);
            continue;
        }
        snprintf(before, sizeof before, "%s\n%s", n++ ? "," : "", indent);
        put_property(s, f, before);
    }
    return n;
}

static void put_required(jsonout *o, const record_kind *r, unsigned in)
{
    const unsigned may_lack = FIELD_OPTIONAL | FIELD_LOOSE | FIELD_FOREIGN;
    for (const record_field *f = r->fields; !field_end(f); f++) {
        if (!(f->in & in) || f->in & may_lack)
            continue;
        if (f->in & FIELD_INLINE)
            put_required(o, f->record, in);
        else
            jsonout_text(o, NULL, f->key);
    }
}

/* An object between its brackets; `known` is written before the members of r, and its keys are required, too. */
static void put_object(schema *s, const record_kind *r, unsigned in, const char *indent, const char *known)
{
    jsonout o = {.to = s->to};
    char deeper[32];
    snprintf(deeper, sizeof deeper, "%s  ", indent);
    fprintf(s->to, "%s\"type\": \"object\",\n%s\"properties\": {", indent, indent);
    if (known)
        fprintf(s->to,
                "\n%s\"schema\": {\"const\": \"%s\"},\n%s\"mpsim\": {\"description\": \"The version of mpsim.\", "
                "\"type\": \"string\"}",
                deeper, known, deeper);
    put_properties(s, r, in, deeper, known != NULL);
    fprintf(s->to, "\n%s},\n%s", indent, indent);
    jsonout_begin(&o, "required", '[');
    if (known) {
        jsonout_text(&o, NULL, "schema");
        jsonout_text(&o, NULL, "mpsim");
    }
    put_required(&o, r, in);
    jsonout_end(&o, ']');
    fprintf(s->to, ",\n%s\"additionalProperties\": false", indent);
}

static void put_definition(schema *s, const char *name, const record_kind *r, unsigned in)
{
    jsonout o = {.to = s->to};
    fprintf(s->to, ",\n    \"%s\": {\n", name);
    if (r->what) {
        fputs("      ", s->to);
        jsonout_text(&o, "description", r->what);
        fputs(",\n", s->to);
    }
    put_object(s, r, in, "      ", NULL);
    fputs("\n    }", s->to);
}

/* Whether a line has what the same record has in the JSON report. */
static int is_same(const record_kind *r)
{
    for (const record_field *f = r->fields; !field_end(f); f++)
        if (!(f->in & IN_JSON) != !(f->in & IN_LINE) ||
            (f->in & IN_TREE && f->in & FIELD_INLINE && !is_same(f->record)))
            return 0;
    return 1;
}

/* A line of NDJSON that is of several kinds. */
static void put_lines(schema *s, const record_kind *const *lines)
{
    jsonout o = {.to = s->to};
    char name[64];
    fputs(",\n    ", s->to);
    jsonout_begin(&o, "line", '{');
    put_one_of(&o, lines, "_line");
    jsonout_end(&o, '}');
    for (size_t i = 0; lines[i]; i++) {
        snprintf(name, sizeof name, "%s_line", lines[i]->name);
        put_definition(s, name, lines[i], IN_LINE);
    }
}

/* A line of NDJSON. */
static void put_line(schema *s, const report_kind *kind)
{
    const record_field *f = field_rows(kind->document);
    jsonout o = {.to = s->to};
    if (f && f->lines) {
        put_lines(s, f->lines);
        return;
    }
    if (f && f->record && !is_same(f->record))
        put_definition(s, "line", f->record, IN_LINE);
    if (!f || (f->record && !is_same(f->record)))
        return;
    fputs(",\n    ", s->to);
    jsonout_begin(&o, "line", '{');
    put_record(&o, f);
    jsonout_end(&o, '}');
}

void record_schema(FILE *to, const report_kind *kind)
{
    schema s = {.to = to};
    jsonout o = {.to = to};
    fputs("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  ", to);
    jsonout_text(&o, "title", kind->title);
    fputs(",\n  ", to);
    jsonout_text(&o, "description", kind->what);
    fputs(",\n", to);
    put_object(&s, kind->document, IN_JSON, "  ", kind->schema);
    fputs(
        ",\n  \"$defs\": {\n    \"code\": {\"description\": \"The bits of a number, in hexadecimal.\", \"type\": \"string\", \"pattern\": \"^0x[0-9a-f]+$\"},\n    \"count\": {\"type\": \"integer\", \"minimum\": 0},\n    \"number\": {\"description\": \"A number; "
        "what JSON has no number for is a string.\", \"anyOf\": [{\"type\": \"number\"}, {\"enum\": [\"NaN\", \"Infinity\", "
        "\"-Infinity\"]}]}",
        to);
    put_line(&s, kind);
    for (size_t i = 0; i < s.count; i++)
        put_definition(&s, s.defined[i]->name, s.defined[i], IN_JSON);
    fputs("\n  }\n}\n", to);
}
