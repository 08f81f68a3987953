/* cmd_stat.c -- mpsim stat: what casts would do to recorded tensors. */
#include "cmd.h"
#include "input.h"
#include "output.h"
#include "parallel.h"
#include "statreport.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "Counts: underflow, a non-zero number that becomes zero; subnormal, a result in the subnormal\n"
    "range; overflow, a finite number beyond the largest one after rounding, saturated or not;\n"
    "inexact, a result that differs. Shares are of all elements. SQNR and MSE compare x with\n"
    "cast(x * scale) / scale where both are finite. amin is the smallest non-zero magnitude;\n"
    "amax, amin, mean and l2 leave out NaN and infinities.\n"
    "\n"
    "Examples:\n"
    "  mpsim stat trace/                                all files below, usual formats\n"
    "  mpsim stat -f fp16 -s 1,2^10,2^16 -k agrad -k wgrad trace/\n"
    "  mpsim stat -f e4m3@cuda,e5m2@cuda,e2m1 --json -o report.json grads.safetensors\n"
    "  zcat dump.bin.gz | mpsim stat --dtype bf16 --shape 1024,4096 -\n";

static const char default_formats[] = "fp16,bf16,e4m3,e5m2";

/* Groups by kind, in the order of the vocabulary, or by step, in their order. */
typedef struct keyed {
    const char *kind;
    int64_t step;
    group g;
} keyed;

typedef struct keyed_list {
    keyed *items;
    size_t count;
} keyed_list;

typedef struct run {
    const target_list *targets;
    statreport *report;
    tensorstat *stat;
    group tensor, total;
    keyed_list kinds, steps;
    int histogram, by_tensor;
    uint64_t files, left_out; /* left_out: selected tensors that are not floating-point */
} run;

/* ---- grouping ---- */

static int compare_keys(const keyed *a, const keyed *b)
{
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return trace_kind_rank(a->kind) - trace_kind_rank(b->kind);
}

/* The entry of a key, inserted in order if it is new; NULL if out of memory. */
static group *find_group(run *r, keyed_list *l, const char *kind, int64_t step)
{
    const keyed key = {.kind = kind, .step = step};
    size_t at = 0;
    while (at < l->count && compare_keys(&l->items[at], &key) < 0)
        at++;
    if (at < l->count && compare_keys(&l->items[at], &key) == 0)
        return &l->items[at].g;
    keyed *items = realloc(l->items, (l->count + 1) * sizeof *items);
    if (!items)
        return NULL;
    l->items = items;
    keyed fresh = key;
    if (group_init(&fresh.g, r->targets->count, r->histogram))
        return NULL;
    memmove(items + at + 1, items + at, (l->count - at) * sizeof *items);
    items[at] = fresh;
    l->count++;
    return &items[at].g;
}

static void clear_groups(keyed_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        group_clear(&l->items[i].g);
    free(l->items);
}

/* ---- tensors ---- */

static void report_tensor(run *r, const trace *t, const trace_tensor *tensor, int64_t step)
{
    char shape[256];
    const group_label l = {.level = "tensor",
                           .file = trace_path(t),
                           .name = tensor->name,
                           .kind = trace_kind(tensor->name),
                           .dtype = tensor->dtype,
                           .shape = shape_text(shape, sizeof shape, tensor),
                           .step = step,
                           .tensor = tensor};
    statreport_entry(r->report, &l, &r->tensor);
}

static int visit_file(input *in, trace *t, void *context)
{
    run *r = context;
    const int64_t step = trace_step(t);
    trace_error error;
    r->files++;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if (!input_selects(in, tensor))
            continue;
        if (!tensor->format) {
            r->left_out++;
            continue;
        }
        if (tensorstat_run(r->stat, t, i, &r->tensor, &error))
            return input_failed(in, &error);
        group *kind = find_group(r, &r->kinds, trace_kind(tensor->name), 0);
        group *at_step = find_group(r, &r->steps, NULL, step);
        if (!kind || !at_step)
            return fail(EXIT_IO, "out of memory");
        group_merge(kind, &r->tensor);
        group_merge(at_step, &r->tensor);
        group_merge(&r->total, &r->tensor);
        if (r->by_tensor)
            report_tensor(r, t, tensor, step);
    }
    return 0;
}

/* ---- the report ---- */

static json_t *config_json(const target_options *o, const target_list *targets,
                           const input_options *in)
{
    json_t *v = json_object(), *scales = json_array(), *match = json_array(),
           *kinds = json_array(), *labels = json_array();
    for (size_t i = 0; i < targets->count; i++)
        if (i == 0 || targets->items[i].label != targets->items[i - 1].label)
            json_array_append_new(labels, json_string(targets->items[i].label));
    for (size_t i = 0; i < targets->count && targets->items[i].label == targets->items[0].label;
         i++)
        json_array_append_new(scales, json_of_double(targets->items[i].rounding.scale));
    for (size_t i = 0; i < in->match.count; i++)
        json_array_append_new(match, json_string(in->match.items[i]));
    for (size_t i = 0; i < in->kinds.count; i++)
        json_array_append_new(kinds, json_string(in->kinds.items[i]));
    const mpsim_rounding *r = &targets->items[0].rounding;
    json_object_set_new(v, "mpsim", json_string(mpsim_version()));
    json_object_set_new(v, "formats", labels);
    json_object_set_new(v, "scales", scales);
    json_object_set_new(v, "round",
                        json_string(mpsim_round_mode_name((mpsim_round_mode)r->mode)));
    json_object_set_new(v, "random_bits", json_integer(r->sr_bits));
    json_object_set_new(v, "seed", json_of_count(o->seed));
    json_object_set_new(v, "overflow", o->overflow ? json_string(o->overflow) : json_null());
    json_object_set_new(v, "flush_subnormals", json_boolean(r->flush_output));
    json_object_set_new(v, "flush_inputs", json_boolean(r->flush_input));
    json_object_set_new(v, "match", match);
    json_object_set_new(v, "kinds", kinds);
    return v;
}

static void report_groups(run *r)
{
    statreport_list(r->report, "kinds", "By kind");
    for (size_t i = 0; i < r->kinds.count; i++) {
        const group_label l = {.level = "kind", .kind = r->kinds.items[i].kind, .step = -1};
        statreport_entry(r->report, &l, &r->kinds.items[i].g);
    }
    statreport_list_end(r->report);
    statreport_list(r->report, "steps", "By step, and in total");
    for (size_t i = 0; i < r->steps.count; i++) {
        const group_label l = {.level = "step", .step = r->steps.items[i].step};
        statreport_entry(r->report, &l, &r->steps.items[i].g);
    }
    if (r->report->style == REPORT_TEXT) { /* the last line of the table */
        statreport_total(r->report, &r->total);
        statreport_list_end(r->report);
    } else {
        statreport_list_end(r->report);
        statreport_total(r->report, &r->total);
    }
}

static void print_head(FILE *to, const run *r, const target_list *targets)
{
    char a[32], b[32], c[32], d[32];
    const mpsim_rounding *m = &targets->items[0].rounding;
    const char *preset = targets->items[0].preset;
    for (size_t i = 1; i < targets->count; i++)
        if (strcmp(preset, targets->items[i].preset) != 0)
            preset = "several";
    fprintf(to, "%s file%s, %s tensor%s, %s elements, %s step%s; rounding %s, preset %s\n",
            text_count(a, r->files), r->files == 1 ? "" : "s", text_count(b, r->total.tensors),
            r->total.tensors == 1 ? "" : "s", text_count(c, r->total.stats.count),
            text_count(d, r->steps.count), r->steps.count == 1 ? "" : "s",
            mpsim_round_mode_name((mpsim_round_mode)m->mode), preset);
}

static int run_all(run *r, input *in, const target_list *targets, output *out)
{
    if (r->by_tensor)
        statreport_list(r->report, "tensors", "By tensor");
    const int code = input_each(in, visit_file, r);
    if (code)
        return code;
    if (r->report->style == REPORT_TEXT)
        print_head(out->file, r, targets);
    if (r->by_tensor)
        statreport_list_end(r->report);
    report_groups(r);
    return 0;
}

int cmd_stat(int argc, char **argv)
{
    int json = 0, ndjson = 0, csv = 0, histogram = 0, tensors = 0, quiet = 0, first;
    const char *path = NULL;
    uint64_t threads = 0;
    target_options to = {0};
    input_options from = {0};
    const option_row table_of_options[] = {
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &to.formats, "LIST",
         "formats, as fp16,e4m3@cuda,e5m7:fn (default fp16,bf16,e4m3,e5m2)"},
        {'s', "scale", OPTION_STRING, &to.scales, "LIST",
         "loss scales that multiply the tensors first, as 1,1024,2^16 (default 1)"},
        TARGET_OPTION_ROWS(to),
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {'t', "tensors", OPTION_FLAG, &tensors, NULL,
         "list every tensor too (text; the other outputs always do)"},
        {0, "histogram", OPTION_FLAG, &histogram, NULL,
         "add histograms of floor(log2 |x|) (JSON); mpsim plot draws them"},
        {0, "json", OPTION_FLAG, &json, NULL, "write JSON (schema mpsim.stat/1)"},
        {0, "ndjson", OPTION_FLAG, &ndjson, NULL, "write one JSON object per line, as they come"},
        {0, "csv", OPTION_FLAG, &csv, NULL, "write CSV, one line per tensor, format and scale"},
        {'o', "output", OPTION_STRING, &path, "FILE", "write to FILE instead of standard output"},
        {0, "threads", OPTION_COUNT, &threads, "N",
         "threads (default: all processors); the report does not depend on it"},
        {'q', "quiet", OPTION_FLAG, &quiet, NULL, "no notes on standard error"},
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const command *self = &commands[3];
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0) {
        option_list_clear(&from.match);
        option_list_clear(&from.kinds);
        return code;
    }
    if (quiet)
        note_quiet();
    const int style = report_style_of(json, ndjson, csv);
    target_list targets = {0};
    input in = {0};
    output out = {0};
    statreport report = {0};
    run r = {.targets = &targets, .report = &report, .histogram = histogram,
             .by_tensor = tensors || style != REPORT_TEXT};
    if (style < 0) {
        code = fail(EXIT_USAGE, "stat: --json, --ndjson and --csv exclude each other");
        goto done;
    }
    if (threads > 1024) {
        code = fail(EXIT_USAGE, "stat: --threads: at most 1024");
        goto done;
    }
    parallel_init((unsigned)threads);
    if ((code = target_list_make(&targets, &to, "stat", default_formats)) ||
        (code = input_open(&in, "stat", &from, argv + first, argc - first)))
        goto done;
    r.stat = tensorstat_new(&targets, to.seed, histogram);
    if (!r.stat || group_init(&r.tensor, targets.count, histogram) ||
        group_init(&r.total, targets.count, histogram)) {
        code = fail(EXIT_IO, "out of memory");
        goto done;
    }
    code = style == REPORT_NDJSON ? output_open_stream(&out, path) : output_open(&out, path);
    if (code)
        goto done;
    statreport_begin(&report, out.file, (report_style)style, &targets,
                     config_json(&to, &targets, &from));
    code = run_all(&r, &in, &targets, &out);
    if (statreport_end(&report) && !code && !ferror(out.file))
        code = fail(EXIT_IO, "out of memory"); /* a failed write is output_close's to tell */
    if (code) {
        output_abandon(&out);
        goto done;
    }
    code = output_close(&out);
    if (!code && r.left_out)
        note("%" PRIu64 " tensors that do not hold floating-point numbers were left out",
             r.left_out);
    if (!code && r.total.tensors == 0)
        note("no tensor was selected");
    if (!code && in.failed)
        code = EXIT_PARTIAL;
done:
    tensorstat_free(r.stat);
    group_clear(&r.tensor);
    group_clear(&r.total);
    clear_groups(&r.kinds);
    clear_groups(&r.steps);
    input_close(&in);
    target_list_clear(&targets);
    option_list_clear(&from.match);
    option_list_clear(&from.kinds);
    return code;
}
