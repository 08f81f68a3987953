/* cmd.c -- mpsim info: what is in files of tensors. */
#include "../commands.h"
#include "../input/input.h"
#include "../process/output.h"
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
    record_writer w;
    int metadata;       /* text: print it */
    int scales;         /* those of quantised tensors are read */
    table *summary;     /* text: a row for each file */
    info_summary total; /* of all files */
    uint64_t files;
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

static const char *const orders[2][2] = {{"", "column-major"}, {"big-endian ", "big-endian column-major"}};

static info_file file_of(const trace *t)
{
    const info_file file = {.file = trace_path(t),
                            .layout = trace_layout(t),
                            .names = trace_convention(t),
                            .clash = trace_clash(t),
                            .not_quantised = trace_quantised_note(t),
                            .not_read = trace_unread_note(t),
                            .bytes = trace_size(t),
                            .without_kind = count_without_kind(t),
                            .step = trace_step(t),
                            .metadata = json_object()};
    for (size_t i = 0; trace_metadata_key(t, i); i++)
        json_object_set_new(file.metadata, trace_metadata_key(t, i), json_string(trace_metadata_value(t, i)));
    return file;
}

static void fill_tensor(info_tensor *to, const trace *t, const trace_tensor *x)
{
    char fqn[512];
    *to = (info_tensor){
        .file = trace_path(t),
        .name = x->name,
        .kind = x->kind,
        .fqn = x->fqn,
        .dtype = x->dtype,
        .format = x->format ? x->format->name : NULL,
        .unread = x->unread,
        .dimensions = x->shape,
        .rank = x->rank,
        .count = x->count,
        .offset = x->offset,
        .big_endian = x->big_endian,
        .fortran = x->fortran,
        .unseen = x->unread ? x->unseen : -1,
        .order = orders[x->big_endian != 0][x->fortran != 0],
    };
    escape_text(to->shown, sizeof to->shown, x->name);
    if (is_foreign(t))
        snprintf(to->is, sizeof to->is, "%s%s%s", x->kind ? x->kind : "-", x->kind ? ":" : "",
                 x->kind ? escape_text(fqn, sizeof fqn, x->fqn) : "");
}

static void add_summary(const context *c, const trace *t, const selection *s)
{
    info_summary row = {trace_path(t), trace_layout(t), trace_step(t), s->tensors, s->elements, ""};
    for (int i = 0; i < KINDS_MAX; i++)
        if (s->kinds[i])
            text_add(row.kinds, sizeof row.kinds, "%s%s", *row.kinds ? " " : "", s->kinds[i]);
    record_cells(c->summary, &info_summary_record, &row, 0);
}

static void print_summary(const context *c)
{
    record_cells(c->summary, &info_summary_record, &c->total, 0);
    fputc('\n', c->w.to);
    table_print(c->summary, c->w.to, "");
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
    info_quantised_line(to, t);
    if (trace_unread_note(t))
        fprintf(to, "  not read: %s\n", escape_text(path, sizeof path, trace_unread_note(t)));
    for (size_t i = 0; metadata && trace_metadata_key(t, i); i++)
        fprintf(to, "  %s = %s\n", escape_text(key, sizeof key, trace_metadata_key(t, i)),
                escape_text(value, sizeof value, trace_metadata_value(t, i)));
}

static void begin_file(context *c, const trace *t)
{
    FILE *to = c->w.to;
    if (c->w.style == REPORT_JSON) {
        const info_file file = file_of(t);
        fputs(c->files ? ",\n {" : "\n {", to);
        record_json(&(jsonout){.to = to}, "info", &info_file_record, &file, IN_JSON);
        fputs(",\n  \"tensors\": [", to);
        json_decref(file.metadata);
    } else if (c->w.style == REPORT_TEXT) {
        if (c->files)
            fputc('\n', to);
        print_file_head(to, t, c->metadata);
    }
    c->files++;
}

/* rows: of a text; first: of a file. */
static void write_tensor(context *c, const info_tensor *x, table *rows, int first)
{
    const info_row row = {x};
    if (c->w.style == REPORT_JSON) {
        fputs(first ? "\n   " : ",\n   ", c->w.to);
        record_json(&(jsonout){.to = c->w.to}, NULL, &info_tensor_record, x, IN_JSON);
    } else if (c->w.style == REPORT_TEXT) {
        record_cells(rows, &info_tensor_record, x, 0);
    } else {
        record_row(&c->w, &row);
    }
}

static int visit_tensor(context *c, input *in, trace *t, size_t i, table *rows, int first)
{
    const trace_tensor *x = trace_at(t, i);
    trace_scale_stats stats, *scales = c->scales && x->quantised ? &stats : NULL;
    trace_error error;
    info_tensor row;
    info_quantised quantised;
    int code = 0;
    if (scales && trace_scales(t, i, scales, &error)) {
        code = input_failed(in, &error);
        scales = NULL;
    }
    fill_tensor(&row, t, x);
    if (x->quantised) {
        info_quantised_fill(&quantised, x->quantised, scales);
        row.quantised = &quantised;
    }
    write_tensor(c, &row, rows, first);
    return code;
}

static void end_file(context *c, const trace *t, const selection *s, table *rows)
{
    c->total.tensors += s->tensors;
    c->total.elements += s->elements;
    if (c->w.style == REPORT_JSON)
        fputs("]}", c->w.to);
    if (c->w.style != REPORT_TEXT)
        return;
    if (s->tensors)
        table_print(rows, c->w.to, "  ");
    add_summary(c, t, s);
}

static int visit_file(input *in, trace *t, void *p)
{
    context *c = p;
    table *rows = c->w.style == REPORT_TEXT ? record_table(&info_tensor_record, 0) : NULL;
    selection s = {0};
    int code = 0;
    begin_file(c, t);
    for (size_t i = 0; i < trace_count(t) && !code; i++)
        if (input_selects(in, trace_at(t, i))) {
            code = visit_tensor(c, in, t, i, rows, s.tensors == 0);
            add_to_selection(&s, trace_at(t, i));
        }
    end_file(c, t, &s, rows);
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
        {'v', "metadata", OPTION_FLAG, &metadata, NULL, "list the metadata of files (JSON always does)"},
        {0, "scales", OPTION_FLAG, &scales, NULL,
         "read the block scales of quantised tensors: smallest, largest, and how many are at the ends of "
         "their format"},
        JSON_OPTION_ROW(form, "mpsim.info/1"),
        NDJSON_OPTION_ROW(form, "tensor and line"),
        CSV_OPTION_ROW(form, ""),
        COLUMNS("Columns", &info_tensor_record, 0),
        OUTPUT_OPTION_ROW(form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    input in = {0};
    output out = {0};
    context c = {
        .w = {.kind = &info_kind}, .metadata = metadata, .scales = scales, .total = {"total", "", -1, 0, 0, ""}};
    if (code >= 0)
        goto done;
    c.w.style = report_options_style(&form);
    if ((code = input_open(&in, "info", &from, argv + first, argc - first)) ||
        (code = report_options_open(&out, &form)))
        goto done;
    c.w.to = out.file;
    c.summary = record_table(&info_summary_record, 0);
    record_begin(&c.w);
    code = input_each(&in, visit_file, &c);
    record_end(&c.w);
    if (c.w.style == REPORT_TEXT && c.files > 1)
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
