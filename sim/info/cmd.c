/* cmd.c -- mpsim info: what is in files of tensors. */
#include "../commands.h"
#include "../cli/input.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../text/words.h"
#include "quantised.h"

#include <inttypes.h>
#include <string.h>

static const char more[] = "Examples:\n"
                           "  mpsim info trace/                    every file of a trace\n"
                           "  mpsim info -v x.safetensors          with its metadata\n"
                           "  mpsim info -m 'wgrad:*' x.safetensors --csv\n"
                           "  mpsim info --scales model.safetensors    a quantised model\n";

typedef struct context {
    FILE *to;
    report_style style;
    int metadata;   /* text: print it */
    int scales;     /* those of quantised tensors are read */
    int quantised;  /* the file has such                   */
    table *summary; /* text: a row for each file */
    uint64_t files, tensors, elements;
} context;

/* What is selected of one file. */
enum { KINDS_MAX = 16 };
typedef struct selection {
    uint64_t tensors, elements;
    const char *kinds[KINDS_MAX]; /* by rank; NULL where there is none */
} selection;

static void add_to_selection(selection *s, const trace_tensor *t)
{
    const int rank = t->kind ? trace_kind_rank(t->kind) : KINDS_MAX;
    s->tensors++;
    s->elements += t->count;
    if (rank < KINDS_MAX)
        s->kinds[rank] = t->kind;
}

/* Whether names mean something only by a convention or a map: mpsim's own say it themselves. */
static int is_foreign(const trace *t)
{
    return trace_convention(t) && strcmp(trace_convention(t), "mpsim-trace/1") != 0;
}

/* Tensors of floating-point numbers that have a name and no kind. */
static uint64_t count_without_kind(const trace *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        n += x->format && x->name[0] && !x->kind;
    }
    return n;
}

static json_t *file_json(const trace *t)
{
    json_t *v = json_object(), *metadata = json_object();
    const int64_t step = trace_step(t);
    for (size_t i = 0; trace_metadata_key(t, i); i++)
        json_object_set_new(metadata, trace_metadata_key(t, i), json_string(trace_metadata_value(t, i)));
    json_object_set_new(v, "file", json_of_path(trace_path(t)));
    json_object_set_new(v, "layout", json_string(trace_layout(t)));
    json_object_set_new(v, "bytes", json_of_count(trace_size(t)));
    json_object_set_new(v, "step", step >= 0 ? json_integer(step) : json_null());
    json_object_set_new(v, "names", trace_convention(t) ? json_string(trace_convention(t)) : json_null());
    json_object_set_new(v, "without_kind", json_of_count(count_without_kind(t)));
    if (trace_clash(t))
        json_object_set_new(v, "clash", json_of_path(trace_clash(t)));
    if (trace_quantised_note(t))
        json_object_set_new(v, "not_quantised", json_of_path(trace_quantised_note(t)));
    if (trace_unread_note(t))
        json_object_set_new(v, "not_read", json_of_path(trace_unread_note(t)));
    json_object_set_new(v, "metadata", metadata);
    return v;
}

static json_t *tensor_json(const trace_tensor *t, const trace_scale_stats *scales)
{
    json_t *v = json_object(), *shape = json_array();
    for (size_t i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_of_count(t->shape[i]));
    json_object_set_new(v, "name", json_string(t->name));
    json_object_set_new(v, "kind", t->kind ? json_string(t->kind) : json_null());
    json_object_set_new(v, "fqn", json_string(t->fqn));
    json_object_set_new(v, "dtype", json_string(t->dtype));
    json_object_set_new(v, "format", t->format ? json_string(t->format->name) : json_null());
    json_object_set_new(v, "shape", shape);
    json_object_set_new(v, "count", json_of_count(t->count));
    json_object_set_new(v, "offset", json_of_count(t->offset));
    json_object_set_new(v, "big_endian", json_boolean(t->big_endian));
    json_object_set_new(v, "fortran", json_boolean(t->fortran));
    if (t->unread) {
        json_object_set_new(v, "unread", json_string(t->unread));
        json_object_set_new(v, "unseen", json_boolean(t->unseen));
    }
    if (t->quantised)
        json_object_set_new(v, "quantised", quantised_json(t->quantised, scales));
    return v;
}

static void add_summary_row(table *rows, const trace *t, const selection *s)
{
    char path[1024], tensors[32], elements[32], step[32] = "", kinds[256] = "";
    if (trace_step(t) >= 0)
        snprintf(step, sizeof step, "%" PRId64, trace_step(t));
    for (int i = 0; i < KINDS_MAX; i++)
        if (s->kinds[i])
            text_add(kinds, sizeof kinds, "%s%s", *kinds ? " " : "", s->kinds[i]);
    table_cell(rows, "%s", escape_text(path, sizeof path, trace_path(t)));
    table_cell(rows, "%s", trace_layout(t));
    table_cell(rows, "%s", step);
    table_cell(rows, "%s", text_count(tensors, s->tensors));
    table_cell(rows, "%s", text_count(elements, s->elements));
    table_cell(rows, "%s", kinds);
}

static void print_summary(const context *c)
{
    char tensors[32], elements[32];
    const char *const cells[] = {"total", "", "", text_count(tensors, c->tensors), text_count(elements, c->elements),
                                 ""};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        table_cell(c->summary, "%s", cells[i]);
    fputc('\n', c->to);
    table_print(c->summary, c->to, "");
}

static void print_names(FILE *to, const trace *t)
{
    char n[32], text[1024];
    const uint64_t without = count_without_kind(t);
    if (!is_foreign(t) && !without)
        return;
    fprintf(to, "  names: %s",
            trace_convention(t) ? escape_text(text, sizeof text, trace_convention(t))
                                : "of no convention that is known");
    if (without)
        fprintf(to, "; %s tensor%s without a kind (see --map)", text_count(n, without), text_plural(without));
    fputc('\n', to);
    if (trace_clash(t))
        fprintf(to, "  not told apart: %s\n", escape_text(text, sizeof text, trace_clash(t)));
}

/* The group of an item of param_groups, which is not a setting of it; -1: it is something else. */
static long group_of(const char *key)
{
    static const char list[] = "param_groups/";
    const char *at = key ? strstr(key, list) : NULL;
    unsigned group, place;
    return at && sscanf(at + sizeof list - 1, "%5u/params/%u", &group, &place) == 2 ? (long)group : -1;
}

/* "; group 0 has 0 to 14, group 1 15 to 20", of the first groups. */
static void print_groups(FILE *to, const trace *t)
{
    enum { SHOWN = 4 };
    char text[2][32];
    for (size_t i = 0, next, n = 0; trace_metadata_key(t, i) && n < SHOWN; i = next) {
        const long group = group_of(trace_metadata_key(t, i));
        for (next = i + 1; group >= 0 && group_of(trace_metadata_key(t, next)) == group; next++)
            ;
        if (group < 0)
            continue;
        fprintf(to, "%s %ld%s %s to %s", n ? ", group" : "; group", group, n ? "" : " has",
                escape_text(text[0], sizeof text[0], trace_metadata_value(t, i)),
                escape_text(text[1], sizeof text[1], trace_metadata_value(t, next - 1)));
        n++;
    }
}

/* Whether an optimizer's own file knows a tensor's parameter by its number alone. In a name of ours, KIND:FQN, a number is a
 * module of a torch.nn.Sequential. */
static int is_numbered(const trace_tensor *x)
{
    const size_t n = x->kind ? strlen(x->kind) : 0;
    return n && x->fqn[0] && strspn(x->fqn, "0123456789") == strlen(x->fqn) &&
           !(strncmp(x->name, x->kind, n) == 0 && x->name[n] == ':');
}

static void print_numbered(FILE *to, const trace *t)
{
    char n[32];
    uint64_t numbered = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        numbered += is_numbered(trace_at(t, i)) ? 1 : 0;
    if (!numbered)
        return;
    fprintf(
        to,
        "  numbered: %s tensor%s are of parameters whose names this file does not have: the order of the optimizer's "
        "groups numbers them",
        text_count(n, numbered), text_plural(numbered));
    print_groups(to, t);
    fputc('\n', to);
}

static void print_file_head(FILE *to, const trace *t, int metadata)
{
    char path[1024], key[128], value[256], bytes[32];
    fprintf(to, "%s: %s, %s bytes, %zu tensor%s", escape_text(path, sizeof path, trace_path(t)), trace_layout(t),
            text_count(bytes, trace_size(t)), trace_count(t), text_plural(trace_count(t)));
    if (trace_step(t) >= 0)
        fprintf(to, ", step %" PRId64, trace_step(t));
    fputc('\n', to);
    print_names(to, t);
    print_numbered(to, t);
    quantised_line(to, t);
    if (trace_unread_note(t))
        fprintf(to, "  not read: %s\n", escape_text(path, sizeof path, trace_unread_note(t)));
    for (size_t i = 0; metadata && trace_metadata_key(t, i); i++)
        fprintf(to, "  %s = %s\n", escape_text(key, sizeof key, trace_metadata_key(t, i)),
                escape_text(value, sizeof value, trace_metadata_value(t, i)));
}

static void print_tensor(context *c, const trace *t, const trace_tensor *tensor, const trace_scale_stats *scales,
                         table *rows)
{
    char shape[256], name[512], fqn[512], count[32];
    if (c->style == REPORT_NDJSON) {
        json_t *v = tensor_json(tensor, scales);
        json_object_set_new(v, "file", json_of_path(trace_path(t)));
        json_write(c->to, v);
        fputc('\n', c->to);
    } else if (c->style == REPORT_CSV) {
        csv_text(c->to, trace_path(t));
        fputc(',', c->to);
        csv_text(c->to, tensor->name);
        fprintf(c->to, ",%s,%s,%s,", tensor->kind ? tensor->kind : "", tensor->dtype,
                tensor->format ? tensor->format->name : "");
        csv_text(c->to, shape_text(shape, sizeof shape, tensor));
        fprintf(c->to, ",%" PRIu64 ",%" PRIu64 "\n", tensor->count, tensor->offset);
    } else {
        table_cell(rows, "%s", escape_text(name, sizeof name, tensor->name));
        if (is_foreign(t))
            table_cell(rows, "%s%s%s", tensor->kind ? tensor->kind : "-", tensor->kind ? ":" : "",
                       tensor->kind ? escape_text(fqn, sizeof fqn, tensor->fqn) : "");
        table_cell(rows, "%s", tensor->dtype);
        table_cell(rows, "%s", tensor->format ? tensor->format->name : "-");
        table_cell(rows, "%s", shape_text(shape, sizeof shape, tensor));
        table_cell(rows, "%s", text_count(count, tensor->count));
        table_cell(rows, "%s%s", tensor->big_endian ? "big-endian " : "", tensor->fortran ? "column-major" : "");
        if (c->quantised)
            quantised_cells(rows, tensor->quantised, scales);
    }
}

#define COLUMNS(names) names "|<dtype|<format|<shape|>elements|<order"

static int visit_file(input *in, trace *t, void *p)
{
    context *c = p;
    static const char *const columns[2][2] = {{COLUMNS("<name"), COLUMNS("<name") QUANTISED_COLUMNS},
                                              {COLUMNS("<name|<is"), COLUMNS("<name|<is") QUANTISED_COLUMNS}};
    table *rows = NULL;
    selection s = {0};
    int code = 0;
    c->quantised = quantised_is(t);
    if (c->style == REPORT_JSON) {
        fputs(c->files ? ",\n {\"info\": " : "\n {\"info\": ", c->to);
        json_write(c->to, file_json(t));
        fputs(",\n  \"tensors\": [", c->to);
    } else if (c->style == REPORT_TEXT) {
        if (c->files)
            fputc('\n', c->to);
        print_file_head(c->to, t, c->metadata);
        rows = table_new(columns[is_foreign(t)][c->quantised]);
    }
    c->files++;
    for (size_t i = 0; i < trace_count(t) && !code; i++) {
        const trace_tensor *tensor = trace_at(t, i);
        trace_scale_stats stats, *scales = c->scales && tensor->quantised ? &stats : NULL;
        trace_error error;
        if (!input_selects(in, tensor))
            continue;
        if (scales && trace_scales(t, i, scales, &error)) {
            code = input_failed(in, &error);
            scales = NULL;
        }
        if (c->style == REPORT_JSON) {
            fputs(s.tensors ? ",\n   " : "\n   ", c->to);
            json_write(c->to, tensor_json(tensor, scales));
        } else {
            print_tensor(c, t, tensor, scales, rows);
        }
        add_to_selection(&s, tensor);
    }
    c->tensors += s.tensors;
    c->elements += s.elements;
    if (c->style == REPORT_JSON)
        fputs("]}", c->to);
    if (c->style == REPORT_TEXT) {
        if (s.tensors)
            table_print(rows, c->to, "  ");
        add_summary_row(c->summary, t, &s);
    }
    table_free(rows);
    return code;
}

int cmd_info(const command *self, int argc, char **argv)
{
    int metadata = 0, scales = 0, first;
    input_options from = {.may_keep_going = 1, .names_files = 1};
    report_options form = {0};
    const option_row table_of_options[] = {
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(from),
        KEEP_GOING_OPTION_ROW(from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {'v', "metadata", OPTION_FLAG, &metadata, NULL, "list the metadata of files too (JSON always does)"},
        {0, "scales", OPTION_FLAG, &scales, NULL,
         "read the block scales of quantised tensors: the least, the largest, those at the ends of their format"},
        JSON_OPTION_ROW(form, "mpsim.info/1"),
        NDJSON_OPTION_ROW(form, "tensor and line"),
        CSV_OPTION_ROW(form, ""),
        OUTPUT_OPTION_ROW(form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    input in = {0};
    output out = {0};
    context c = {.metadata = metadata, .scales = scales};
    if (code >= 0)
        goto done;
    if ((code = report_options_style(&c.style, &form, 0, "info", "--json, --ndjson and --csv exclude each other")) ||
        (code = input_open(&in, "info", &from, argv + first, argc - first)) || (code = output_open(&out, form.path)))
        goto done;
    c.to = out.file;
    c.summary = table_new("<file|<layout|>step|>tensors|>elements|<kinds");
    if (c.style == REPORT_JSON) {
        json_begin(c.to, "mpsim.info/1");
        fputs("\"files\": [", c.to);
    }
    if (c.style == REPORT_CSV)
        fputs("file,name,kind,dtype,format,shape,count,offset\n", c.to);
    code = input_each(&in, visit_file, &c);
    if (c.style == REPORT_JSON)
        fputs("]}\n", c.to);
    if (c.style == REPORT_TEXT && c.files > 1)
        print_summary(&c);
    if (code)
        output_abandon(&out);
    else if ((code = output_close(&out)) == 0 && in.failed)
        code = EXIT_PARTIAL;
done:
    table_free(c.summary);
    input_close(&in);
    input_options_clear(&from);
    return code;
}
