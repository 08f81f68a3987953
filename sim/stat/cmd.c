/* cmd.c -- mpsim stat: what casts would do to recorded tensors. */
#include "../commands.h"
#include "../cli/input.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "gate.h"
#include "report.h"
#include "tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "Counts: underflow, a non-zero number that becomes zero; subnormal, a result in the subnormal\n"
    "range; overflow, a finite number beyond the largest one after rounding, saturated or not;\n"
    "inexact, a result that differs. Shares are of all elements. SQNR and MSE compare x with\n"
    "cast(x * scale) / scale where both are finite. amin is the smallest non-zero magnitude;\n"
    "amax, amin, mean and l2 leave out NaN and infinities. With --keep-going the tensors of a\n"
    "file that were read before it failed count. Text lists tensors with NaN or Inf first.\n"
    "\n"
    "A loss scale multiplies gradients: agrad, dgrad, wgrad, and tensors without a kind. The others\n"
    "are cast as they are, with the scale 1, unless --scale-kinds names them.\n"
    "\n"
    "Conditions of --fail-if: [LEVEL:]NAME, or NAME with > < >= or <= and a value. Names: nan, inf,\n"
    "zero, underflow, subnormal, overflow, saturated (overflow where the cast saturates), inexact:\n"
    "elements, or with % a share of all; alone they mean > 0. amax, amin; of a cast sqnr (dB), mse,\n"
    "max_rel_err. One holds if it holds for any tensor and any cast; LEVEL is tensor, kind, step or\n"
    "total: of these sums instead. Each that holds is a line on standard error.\n"
    "\n"
    "Examples:\n"
    "  mpsim stat trace/                                all files below, usual formats\n"
    "  mpsim stat -f fp16 -s 1,2^10,2^16 -k agrad,wgrad trace/\n"
    "  mpsim stat -f fp16 -s 2^0..2^32 --json -o sweep.json trace/    for mpsim plot sweep\n"
    "  mpsim stat -f fp16 -s 2^16 --fail-if nan,inf,'underflow>1%',total:sqnr'<40' trace/\n"
    "  mpsim stat -f e4m3@cuda,e5m2@cuda,e2m1 --json -o report.json grads.safetensors\n"
    "  zcat dump.bin.gz | mpsim stat --dtype bf16 --shape 1024,4096 -\n";

static const char default_formats[] = "fp16,bf16,e4m3,e5m2";

/* Up to so many tensors are listed in text without being asked for, if they have no kinds. */
enum { FEW = 30 };

typedef struct options {
    target_options to;
    input_options from;
    report_options form;
    option_list scaled, fail_if;
    const char *level;
    int histogram, tensors, counts;
} options;

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
    const option_list *scaled; /* kinds that the scale multiplies */
    statreport *report;
    tensorstat *stat;
    input *in;
    const trace *failed; /* nothing more is told of it */
    gate gate;
    group total;
    keyed_list kinds, steps;
    int histogram, by_tensor, show_file;
    const char *level; /* CSV: the one level that is written */
    uint64_t files, left_out; /* left_out: selected tensors that are not floating-point */
    uint64_t broken;          /* tensors with NaN or Inf                                */
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

static int wants(const run *r, const char *level)
{
    return !r->level || strcmp(r->level, level) == 0;
}

/* What tells tensors of the same name in several files apart where there is no step. */
static const char *file_and_name(char both[1024], const trace *t, const trace_tensor *tensor)
{
    snprintf(both, 1024, "%s%s%s", trace_path(t), tensor->name[0] ? ": " : "", tensor->name);
    return both;
}

/* An entry of the report; also judges the tensor. In text few are listed without being asked for, but
 * always those with NaN or Inf. */
static void report_tensor(run *r, const trace *t, const trace_tensor *tensor, const group *g)
{
    char shape[256], both[1024];
    const group_label l = {.level = "tensor",
                           .file = trace_path(t),
                           .name = r->show_file && trace_step(t) < 0 ? file_and_name(both, t, tensor)
                                                            : tensor->name,
                           .kind = tensor->kind,
                           .dtype = tensor->dtype,
                           .shape = shape_text(shape, sizeof shape, tensor),
                           .step = trace_step(t),
                           .tensor = tensor};
    const int broken = statreport_is_broken(g);
    r->broken += (uint64_t)broken;
    gate_see(&r->gate, &l, g);
    if (wants(r, "tensor") &&
        (r->by_tensor || r->total.tensors <= FEW || (broken && r->broken <= FEW)))
        statreport_entry(r->report, &l, g);
}

/* Whether the scale multiplies tensors of a kind (NULL: without one, which nothing tells from a
 * gradient). A loss scale reaches gradients, and neither parameters nor activations. */
static int is_scaled(const option_list *kinds, const char *kind)
{
    static const char *const gradients[] = {"agrad", "dgrad", "wgrad"};
    int is = !kind || option_list_has(kinds, kind) || option_list_has(kinds, "all");
    for (size_t i = 0; i < sizeof gradients / sizeof gradients[0]; i++)
        is |= !kinds->count && kind && strcmp(kind, gradients[i]) == 0;
    return is;
}

/* Told of a tensor, or of a file: see tensorstat_told. */
static int account(void *context, trace *t, size_t i, const group *g, const trace_error *error)
{
    run *r = context;
    if (t && t == r->failed)
        return 0;
    if (error) {
        r->failed = t;
        return input_failed(r->in, error);
    }
    if (!g) {
        r->left_out++;
        return 0;
    }
    const trace_tensor *tensor = trace_at(t, i);
    group *kind = find_group(r, &r->kinds, tensor->kind, 0);
    group *at_step = find_group(r, &r->steps, NULL, trace_step(t));
    if (!kind || !at_step)
        return fail(EXIT_IO, "out of memory");
    group_merge(kind, g);
    group_merge(at_step, g);
    group_merge(&r->total, g);
    report_tensor(r, t, tensor, g);
    return 0;
}

static int put_file(run *r, const input_file *f)
{
    int code = 0;
    if (!f->t)
        return tensorstat_put_error(r->stat, &f->error);
    r->files++;
    for (size_t i = 0; i < trace_count(f->t) && !code && f->t != r->failed; i++)
        if (input_selects(r->in, trace_at(f->t, i)))
            code = tensorstat_put(r->stat, f->t, i,
                                  is_scaled(r->scaled, trace_at(f->t, i)->kind));
    return code;
}

static int visit_files(input *in, input_file *files, size_t n, void *context)
{
    run *r = context;
    int code = 0;
    r->in = in;
    r->failed = NULL;
    for (size_t i = 0; i < n && !code; i++)
        code = put_file(r, &files[i]);
    return code ? code : tensorstat_flush(r->stat);
}

/* ---- the report ---- */

static json_t *config_json(const options *all, const target_list *targets)
{
    const target_options *o = &all->to;
    const input_options *in = &all->from;
    json_t *v = json_object(), *scales = json_array(), *match = json_array(),
           *kinds = json_array(), *labels = json_array(), *scaled = json_array();
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
    const char *kind;
    for (int i = 0; (kind = trace_kind_at(i)); i++)
        if (is_scaled(&all->scaled, kind))
            json_array_append_new(scaled, json_string(kind));
    const mpsim_rounding *r = &targets->items[0].rounding;
    json_object_set_new(v, "mpsim", json_string(mpsim_version()));
    json_object_set_new(v, "formats", labels);
    json_object_set_new(v, "scales", scales);
    json_object_set_new(v, "scaled_kinds", scaled);
    json_object_set_new(v, "round",
                        json_string(mpsim_round_mode_name((mpsim_round_mode)r->mode)));
    json_object_set_new(v, "random_bits", json_integer(r->sr_bits));
    json_object_set_new(v, "seed", json_of_count(o->seed));
    json_object_set_new(v, "overflow", o->overflow ? json_string(o->overflow) : json_null());
    json_object_set_new(v, "flush_subnormals", json_boolean(r->flush_output));
    json_object_set_new(v, "flush_inputs", json_boolean(r->flush_input));
    json_object_set_new(v, "match", match);
    json_object_set_new(v, "kinds", kinds);
    if (all->counts)
        json_object_set_new(v, "counts", json_true());
    return v;
}

static group_label kind_label(const run *r, size_t i)
{
    return (group_label){.level = "kind", .kind = r->kinds.items[i].kind, .step = -1};
}

static group_label step_label(const run *r, size_t i)
{
    return (group_label){.level = "step", .step = r->steps.items[i].step};
}

/* The conditions of --fail-if on sums, once these are known. */
static void judge_sums(run *r)
{
    const group_label total = {.level = "total", .step = -1};
    for (size_t i = 0; i < r->kinds.count; i++) {
        const group_label l = kind_label(r, i);
        gate_see(&r->gate, &l, &r->kinds.items[i].g);
    }
    for (size_t i = 0; i < r->steps.count; i++) {
        const group_label l = step_label(r, i);
        gate_see(&r->gate, &l, &r->steps.items[i].g);
    }
    gate_see(&r->gate, &total, &r->total);
}

static void report_kinds(run *r)
{
    statreport_list(r->report, "kinds", "By kind");
    for (size_t i = 0; i < r->kinds.count && wants(r, "kind"); i++) {
        const group_label l = kind_label(r, i);
        statreport_entry(r->report, &l, &r->kinds.items[i].g);
    }
    statreport_list_end(r->report);
}

static void report_steps(run *r)
{
    for (size_t i = 0; i < r->steps.count && wants(r, "step"); i++) {
        const group_label l = step_label(r, i);
        statreport_entry(r->report, &l, &r->steps.items[i].g);
    }
}

/* Which of the kinds at hand the scales multiply, if there are scales. */
static void print_scaled(FILE *to, const run *r)
{
    int n[2] = {0, 0}, scales = 0;
    for (size_t i = 0; i < r->targets->count; i++)
        scales |= r->targets->items[i].rounding.scale != 1;
    for (int scaled = 1; scales && scaled >= 0; scaled--)
        for (size_t i = 0; i < r->kinds.count; i++) {
            const char *kind = r->kinds.items[i].kind;
            if (is_scaled(r->scaled, kind) != scaled)
                continue;
            fprintf(to, "%s%s", n[scaled]++ ? ", " : scaled ? "Scaled: "
                                                 : n[1]     ? "; as they are: "
                                                            : "Nothing is scaled: ",
                    kind ? kind : "tensors without a kind");
        }
    if (scales)
        fprintf(to, "%s.\n", n[0] ? " (see --scale-kinds)" : "");
}

static void print_head(FILE *to, const run *r, int failed)
{
    char a[32], b[32], c[32], d[32], e[64] = "";
    const target *first = &r->targets->items[0];
    const char *preset = first->preset;
    const size_t steps = r->steps.count - (r->steps.items[0].step < 0); /* the first is "none" */
    for (size_t i = 1; i < r->targets->count; i++)
        if (strcmp(preset, r->targets->items[i].preset) != 0)
            preset = "several";
    if (steps)
        snprintf(e, sizeof e, ", %s step%s", text_count(d, steps), steps == 1 ? "" : "s");
    fprintf(to, "%s file%s, %s tensor%s, %s element%s%s; rounding %s, preset %s\n",
            text_count(a, r->files), r->files == 1 ? "" : "s", text_count(b, r->total.tensors),
            r->total.tensors == 1 ? "" : "s", text_count(c, r->total.stats.count),
            r->total.stats.count == 1 ? "" : "s", e,
            mpsim_round_mode_name((mpsim_round_mode)first->rounding.mode), preset);
    if (failed)
        fprintf(to, "%d file%s failed and %s not, or not wholly, in these numbers\n", failed,
                failed == 1 ? "" : "s", failed == 1 ? "is" : "are");
    fputs("Shares are of all elements.\n", to);
    print_scaled(to, r);
}

/* For people: what repeats nothing. Without kinds the tensors themselves, if they are few;
 * without several steps only the total; of a single tensor or kind nothing more. */
static void report_text(run *r, FILE *to, int failed)
{
    const int kinds = r->kinds.count > 1 || r->kinds.items[0].kind;
    const int list = r->by_tensor || (!kinds && r->total.tensors <= FEW);
    print_head(to, r, failed);
    if (list)
        statreport_list_end(r->report);
    else
        statreport_list_broken(r->report, r->broken > FEW ? r->broken - FEW : 0);
    if (kinds)
        report_kinds(r);
    if (r->steps.count == 1 && ((list && r->total.tensors == 1) || (kinds && r->kinds.count == 1)))
        return;
    if (r->steps.count > 1) {
        statreport_list(r->report, "steps", "By step, and in total");
        report_steps(r);
    } else {
        statreport_list(r->report, "total", "In total");
    }
    statreport_total(r->report, &r->total, failed);
    statreport_list_end(r->report);
}

static int run_all(run *r, input *in, output *out)
{
    char names[600];
    statreport_list(r->report, "tensors", "By tensor");
    const int code = input_each_open(in, visit_files, r);
    if (code)
        return code;
    if (r->total.tensors == 0)
        return fail(in->failed ? EXIT_PARTIAL : EXIT_DATA,
                    "stat: %s: no tensor of floating-point numbers %s", input_names(in, names, sizeof names),
                    r->left_out || in->failed ? "is left" : "is selected");
    judge_sums(r);
    if (r->report->style == REPORT_TEXT) {
        report_text(r, out->file, in->failed);
        return 0;
    }
    statreport_list_end(r->report);
    report_kinds(r);
    statreport_list(r->report, "steps", NULL);
    report_steps(r);
    statreport_list_end(r->report);
    if (wants(r, "total"))
        statreport_total(r->report, &r->total, in->failed);
    return 0;
}

/* ---- the command ---- */

static int check_options(const options *o, report_style style)
{
    const char *level = o->level;
    if ((level && style != REPORT_CSV) ||
        (o->histogram && style != REPORT_JSON && style != REPORT_NDJSON))
        return fail(EXIT_USAGE,
                    "stat: --level goes with --csv, --histogram with --json or --ndjson");
    if (level && strcmp(level, "tensor") != 0 && strcmp(level, "kind") != 0 &&
        strcmp(level, "step") != 0 && strcmp(level, "total") != 0)
        return fail(EXIT_USAGE, "stat: --level is tensor, kind, step or total, not '%s'", level);
    return 0;
}

/* Room for the statistics of targets. */
static int make_groups(run *r, const options *o)
{
    const unsigned want = (o->counts ? 0 : MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS) |
                          (o->histogram ? MPSIM_SUMMARY_HISTOGRAM : 0);
    r->stat = tensorstat_new(r->targets, o->to.seed, want, account, r);
    if (!r->stat || group_init(&r->total, r->targets->count, o->histogram))
        return fail(EXIT_IO, "out of memory");
    return 0;
}

static void clear(run *r)
{
    tensorstat_free(r->stat);
    gate_clear(&r->gate);
    group_clear(&r->total);
    clear_groups(&r->kinds);
    clear_groups(&r->steps);
}

static int stat_files(const options *o, report_style style, char **operands, int n)
{
    target_list targets = {0};
    input in = {0};
    output out = {0};
    statreport report = {0};
    run r = {.targets = &targets,
             .scaled = &o->scaled,
             .report = &report,
             .histogram = o->histogram,
             .by_tensor = o->tensors || style != REPORT_TEXT,
             .level = style == REPORT_CSV ? (o->level ? o->level : "tensor") : NULL};
    int code;
    if ((code = target_list_make(&targets, &o->to, "stat", default_formats)) ||
        (code = input_check_kinds("stat", "scale-kinds", &o->scaled, "all")) ||
        (code = gate_make(&r.gate, &o->fail_if, &targets, o->counts)) ||
        (code = input_open(&in, "stat", &o->from, operands, n)) ||
        (code = output_check(o->form.path)) || (code = make_groups(&r, o)))
        goto done;
    r.show_file = in.tree.count > 1;
    code = style == REPORT_NDJSON ? output_open_stream(&out, o->form.path)
                                  : output_open(&out, o->form.path);
    if (code)
        goto done;
    statreport_begin(&report, out.file, style, &targets, o->counts, config_json(o, &targets));
    code = run_all(&r, &in, &out);
    if (statreport_end(&report) && !code && !ferror(out.file))
        code = fail(EXIT_IO, "out of memory"); /* a failed write is output_close's to tell */
    if (code) {
        output_abandon(&out);
        goto done;
    }
    code = output_close(&out);
    if (!code && r.left_out)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", r.left_out,
             r.left_out == 1 ? "" : "s");
    if (!code && !(code = gate_tell(&r.gate)) && in.failed)
        code = EXIT_PARTIAL;
done:
    clear(&r);
    input_close(&in);
    target_list_clear(&targets);
    return code;
}

int cmd_stat(const command *self, int argc, char **argv)
{
    options o = {0};
    report_style style;
    int first;
    const option_row table_of_options[] = {
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.to.formats, "LIST",
         "formats, as fp16,e4m3@cuda,e5m7:fn (default fp16,bf16,e4m3,e5m2)"},
        {'s', "scale", OPTION_STRING, &o.to.scales, "LIST",
         "loss scales that multiply gradients first, as 1,1024,2^16, or every power of two of a "
         "range, as 2^0..2^32 (default 1); see below"},
        {0, "scale-kinds", OPTION_LIST, &o.scaled, "LIST",
         "the kinds that the scale multiplies (default agrad,dgrad,wgrad), or all"},
        TARGET_OPTION_ROWS(o.to),
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        KEEP_GOING_OPTION_ROW(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "fail-if", OPTION_LIST, &o.fail_if, "LIST",
         "exit code 1 after the report where one of these holds, as nan,inf,'underflow>1%'; see "
         "below"},
        {'t', "tensors", OPTION_FLAG, &o.tensors, NULL, "text: list every tensor too"},
        {0, "level", OPTION_STRING, &o.level, "LEVEL",
         "CSV: rows per tensor (default), kind, step or total"},
        {0, "counts", OPTION_FLAG, &o.counts, NULL,
         "counts, amax and amin alone, which is faster: no mean, l2, SQNR, MSE and max rel err"},
        {0, "histogram", OPTION_FLAG, &o.histogram, NULL,
         "add histograms of floor(log2 |x|) (JSON); mpsim plot draws them"},
        JSON_OPTION_ROW(o.form, "mpsim.stat/1"),
        NDJSON_OPTION_ROW(o.form, "line, as they come"),
        CSV_OPTION_ROW(o.form, ": a row per tensor, format and scale; see --level"),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, "; the report does not depend on it"),
        QUIET_OPTION_ROW(o.form, "notes"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        if (o.form.quiet)
            note_quiet();
        if (!(code = report_options_style(&style, &o.form, 0, "stat",
                                          "--json, --ndjson and --csv exclude each other")) &&
            !(code = check_options(&o, style)) &&
            !(code = report_options_threads(&o.form, "stat")))
            code = stat_files(&o, style, argv + first, argc - first);
    }
    option_list_clear(&o.from.match);
    option_list_clear(&o.from.kinds);
    option_list_clear(&o.scaled);
    option_list_clear(&o.fail_if);
    return code;
}
