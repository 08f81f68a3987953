/* cmd.c -- mpsim scaler: loss scalers over recorded gradients, patterns and logs. */
#include "../array/need.h"
#include "../commands.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../operand/target.h"
#include "../process/textfile.h"
#include "../trace/inputs.h"
#include "adaptive.h"
#include "../traininglog/judge.h"
#include "../traininglog/match.h"
#include "pattern.h"
#include "record.h"
#include "spec.h"
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char more[] =
    "TRACE is files or directories of recorded gradients (wgrad tensors, unless --kind or --match select\n"
    "others). In each step, gradients are multiplied by the current scale and rounded to --format; Inf or\n"
    "NaN is an overflow. A file that holds no tensors, or --log, is a training log: its loss scales are\n"
    "checked for jumps and compared with the rules of every scaler. Lines of Apex, DeepSpeed, Megatron\n"
    "and fairseq are recognised, and named values: 'step 12 scale 65536 skipped 0', 'loss_scale: 64'.\n"
    "Losses and gradient norms serve as evidence. A log without a loss scale is read as by 'mpsim log',\n"
    "which also compares runs.\n"
    "\n"
    "Log patterns are POSIX extended regular expressions. A name in braces is a value without blanks:\n"
    "{scale}, or {before} and {after} of an overflow; {overflow} (1, yes, true), {skipped} (a count),\n"
    "{step}, {epoch}, {rank}, {loss}, {norm}.\n"
    "\n"
    "Scalers: a name of --list, with changes after a ':' as torch:init=2^10,window=500. Keys: init,\n"
    "growth, backoff, window, hysteresis, floor, ceiling, tolerance, threshold; skip, dynamic, guard (0\n"
    "or 1); refill (clean, growth, backoff joined by '+', or never); growth-rule, floor-rule, order,\n"
    "unscale, arithmetic, check: see lib/include/mpsim/scaler.h.\n"
    "\n"
    "Patterns: 0 or . is a clean step, 1 or x an overflow, {S} a step that overflows above scale S;\n"
    "(ITEMS) a group, ITEM*N the item N times; blanks, commas and # comments are ignored; at most 10^8\n"
    "steps.\n"
    "\n"
    "Verdicts: start-up search (overflows only at the beginning), steady (overflows only after growth),\n"
    "spikes (overflows elsewhere, too), runaway (overflow at every scale: Inf or NaN has another source),\n"
    "floor reached (the framework stops with an error). For logs also: diverging (the scale collapses\n"
    "late, or falls while the loss rises), scaler state lost (on resume), not enough to tell (with the\n"
    "missing values). Each verdict names its lines and its certainty. Scale stuck: the scale is far from\n"
    "one that fits; the report names the setting to change and the steps to recover.\n"
    "\n"
    "Examples:\n"
    "  mpsim scaler data/digits-cnn                      torch's GradScaler over a recorded run\n"
    "  mpsim scaler data/amp-mlp/sgd                     the run's own scaler and scale\n"
    "  mpsim scaler --compare torch,apex,megatron,deepspeed data/digits-cnn\n"
    "  mpsim scaler --pattern '{2^14}*100000' -s keras   gradients that fit a scale of 2^14\n"
    "  mpsim scaler --pattern '1*3,0*2000,1' --amp       a status line per step\n"
    "  mpsim scaler train.log                            is this overflow normal?\n"
    "  mpsim scaler --adaptive data/digits-cnn           a loss scale for every layer\n"
    "  mpsim scaler --list\n";

enum { BY_STEP = 40, PATTERN_MAX = 1 << 24 };

typedef struct options {
    option_list scalers, compare, log_patterns, logs;
    const char *pattern, *log, *format, *state_in, *state_out;
    uint64_t repeat;
    int list, amp, amp_stats, all, adaptive;
    report_options form;
} options;

typedef struct run {
    const options *o;
    scalerrun scalers;
    training_log log;
    log_pattern *own;
    log_judgement judgement;
    log_match *matches;
    size_t n_matches;
    char *pattern; /* its text */
    input in;
    output out;
    report_style style;
} run;

/* ---- scalers ---- */

static int make_scalers(run *r, const char *otherwise)
{
    const options *o = r->o;
    int code = 0;
    for (size_t i = 0; i < o->scalers.count && !code; i++)
        code = scaler_spec_add(&r->scalers, o->scalers.items[i]);
    for (size_t i = 0; i < o->compare.count && !code; i++)
        code = scaler_spec_add_list(&r->scalers, o->compare.items[i]);
    return code || r->scalers.count ? code : scaler_spec_add_list(&r->scalers, otherwise);
}

/* The scalers of the command line, else `otherwise`; the state of --state-in. */
static int restore(run *r, const char *otherwise)
{
    char spec[STATE_SPEC], state[STATE_TEXT] = "", name[512];
    int code;
    if (!r->o->state_in)
        return make_scalers(r, otherwise);
    if ((code = scaler_state_read(r->o->state_in, spec, state)) || (code = make_scalers(r, spec)))
        return code;
    if (r->scalers.count == 0)
        return fail(EXIT_DATA, "%s: not the saved state of a scaler", escape_text(name, sizeof name, r->o->state_in));
    if (r->scalers.count > 1)
        return fail(EXIT_USAGE, "scaler: --state-in is the state of one scaler");
    track *t = &r->scalers.tracks[0];
    if (strcmp(t->label, spec) != 0)
        return fail(EXIT_USAGE, "scaler: --state-in is a state of %s, not of %s", escape_text(name, sizeof name, spec),
                    t->label);
    if (mpsim_scaler_load(&t->scaler, state) != MPSIM_OK)
        return fail(EXIT_DATA, "%s: not a state of %s", escape_text(name, sizeof name, r->o->state_in), t->label);
    t->least = t->most = t->last = t->scaler.scale;
    return 0;
}

/* ---- inputs ---- */

/* Nothing that is written is one of the inputs that have been opened. */
static int check_written(const options *o)
{
    const int code = output_check(o->form.path);
    return code || !o->state_out ? code : output_check(o->state_out);
}

/* "@FILE" is the pattern in a file. */
static int read_pattern(run *r, uint64_t *steps)
{
    const char *text = r->o->pattern, *reason = "";
    char name[512];
    size_t at = 0;
    trace_error error;
    r->pattern = text[0] == '@' ? text_file_read(text + 1, PATTERN_MAX, NULL, &error) : need_text(text);
    if (!r->pattern)
        return fail(error.exit, "%s", error.text);
    if (scaler_pattern_each(r->pattern, NULL, NULL, steps, &at, &reason))
        return text[0] == '@'
                   ? fail(EXIT_DATA, "%s: offset %zu: %s", escape_text(name, sizeof name, text + 1), at, reason)
                   : fail(EXIT_USAGE, "scaler: --pattern: at character %zu: %s", at + 1, reason);
    return *steps           ? 0
           : text[0] == '@' ? fail(EXIT_DATA, "%s: the pattern holds no step", escape_text(name, sizeof name, text + 1))
                            : fail(EXIT_USAGE, "scaler: --pattern holds no step");
}

static void tell_status(const track *t, int64_t number, const mpsim_scaler_result *result, void *context)
{
    fprintf((FILE *)context, "[AMP] step %" PRId64 ": scale %.17g, growth_tracker %" PRIu64 ", skipped %s\n", number,
            result->next, t->scaler.clean, result->events & MPSIM_SCALER_SKIP ? "Y" : "n");
}

/* The fewest digits that give the number back, with ".0" after a whole one, as Python prints it; an
 * exponent from 1e16 up and below 1e-4. */
static const char *python_number(char out[40], double x)
{
    int digits = 1;
    do
        snprintf(out, 32, "%.*e", digits - 1, x);
    while (strtod(out, NULL) != x && digits++ < 17);
    const char *e = strchr(out, 'e');
    const int exponent = e ? atoi(e + 1) : 0;
    if (!isfinite(x)) {
        strcpy(out, x > 0 ? "inf" : "nan");
    } else if (exponent >= -4 && exponent < 16) {
        const int decimals = digits - 1 - exponent;
        snprintf(out, 40, "%.*f", decimals > 0 ? decimals : 1, x);
    }
    return out;
}

/* The line as a guide to mixed precision prints it for GradScaler. */
static void tell_stats(const track *t, int64_t number, const mpsim_scaler_result *result, void *context)
{
    char scale[40];
    (void)number;
    fprintf((FILE *)context, "[AMP Stats] Scale: %s, Growth tracker: %" PRIu64 "\n", python_number(scale, result->next),
            t->scaler.clean);
}

static int parse_target(run *r)
{
    const char *name = r->o->format ? r->o->format : "fp16";
    r->scalers.given = r->o->format != NULL;
    mpsim_rounding rounding;
    if (strchr(name, ','))
        return fail(EXIT_USAGE, "scaler: --format: '%s': one format only", name);
    if (format_read(&r->scalers.format, "scaler: --format", name))
        return EXIT_USAGE;
    mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
    const double beyond = mpsim_decode(&r->scalers.format,
                                       mpsim_encode_f64(&r->scalers.format, &rounding, (double)INFINITY, 0, NULL));
    return isfinite(beyond)
               ? fail(EXIT_USAGE, "scaler: --format: %s has neither infinity nor NaN, so overflow cannot be seen", name)
               : 0;
}

static int open_trace(run *r, input_options *from, char **operands, int n)
{
    static const char *const gradients = "wgrad";
    int code = parse_target(r);
    if (!from->wanted.match.count && !from->wanted.kinds.count) {
        from->wanted.kinds.items = need_memory(1, sizeof *from->wanted.kinds.items);
        from->wanted.kinds.items[from->wanted.kinds.count++] = gradients;
    }
    r->scalers.in = &r->in;
    r->scalers.repeat = r->o->repeat ? r->o->repeat : 1;
    if (code || (code = input_open(&r->in, "scaler", from, operands, n)) || (code = check_written(r->o)))
        return code;
    r->in.lists_unread = 1;
    return 0;
}

static int run_adaptive(run *r, const input_options *from, char **operands, int n)
{
    adaptive_run layers = {.count = 0};
    int code = input_open(&r->in, "scaler", from, operands, n);
    if (code || (code = check_written(r->o)))
        return code;
    if (!(code = scaler_adaptive_trace(&layers, &r->in)))
        scaler_adaptive_report(r->out.file, &layers, &r->in, r->style);
    scaler_adaptive_clear(&layers);
    return code;
}

static int run_trace(run *r)
{
    if (r->in.tree.count <= BY_STEP && r->scalers.repeat <= BY_STEP / (r->in.tree.count + 1))
        for (size_t i = 0; i < r->scalers.count; i++)
            r->scalers.tracks[i].by_step = 1;
    return scaler_run_trace(&r->scalers);
}

/* The best first; those that are as good in the order of the table. */
static void sort_matches(log_match *m, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const log_match x = m[i];
        size_t k = i;
        for (; k > 0 && m[k - 1].agreed * x.compared < x.agreed * m[k - 1].compared; k--)
            m[k] = m[k - 1];
        m[k] = x;
    }
}

static int make_patterns(run *r)
{
    const option_list *texts = &r->o->log_patterns;
    const char *reason;
    for (size_t i = 0; i < texts->count; i++)
        if (traininglog_pattern_add(&r->own, texts->items[i], &reason))
            return fail(EXIT_USAGE, "scaler: --log-pattern: %s", reason);
    return 0;
}

static int run_log(run *r, const char *path)
{
    trace_inputs_add_path(path);
    int code = check_written(r->o);
    if (code || (code = make_scalers(r, "all")) || (code = make_patterns(r)) ||
        (code = traininglog_training_log_read(&r->log, path, r->own)))
        return code;
    traininglog_judge(&r->judgement, &r->log);
    r->matches = need_memory(r->scalers.count, sizeof *r->matches);
    for (size_t i = 0; i < r->scalers.count; i++)
        traininglog_match_scaler(&r->matches[r->n_matches++], r->scalers.tracks[i].label,
                                 &r->scalers.tracks[i].scaler.config, &r->log.recorded, 1);
    sort_matches(r->matches, r->n_matches);
    return 0;
}

/* Whether an operand is a file, but not of tensors. Of one that cannot be read: 0, and opening it says why. */
static int is_text(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    errno = 0;
    return !trace_probe(path, NULL) && !errno;
}

/* A single operand that is no file of tensors is a log; of several, none may be. */
static int log_of(const options *o, const input_options *from, char **operands, int n, const char **path)
{
    char name[512];
    int texts = 0;
    *path = o->log;
    if (o->log || from->wanted.dtype)
        return 0;
    for (int i = 0; i < n; i++)
        texts += is_text(operands[i]);
    if (n == 1 && texts)
        *path = operands[0];
    return n > 1 && texts == n ? fail(EXIT_USAGE,
                                      "scaler: '%s' and the others are not files of tensors; if they "
                                      "are logs: one at a time, or 'mpsim log'",
                                      escape_text(name, sizeof name, operands[0]))
                               : 0;
}

/* ---- the command ---- */

/* Outputs replace no input and not each other; a state may go back to where it came from. */
static int check_outputs(const options *o)
{
    const char *pattern = o->pattern && o->pattern[0] == '@' ? o->pattern + 1 : NULL;
    trace_inputs_add_path(pattern);
    trace_inputs_add_path(o->state_in);
    trace_inputs_renew(o->state_in, o->state_out);
    const int code = check_written(o);
    const output_named written[] = {{"--state-out", o->state_out}, {"the report", o->form.path ? o->form.path : "-"}};
    return code ? code : output_apart("scaler", written, sizeof written / sizeof *written);
}

static void write_report(run *r, const scaler_report *report)
{
    if (r->style == REPORT_TEXT)
        scaler_report_text(r->out.file, report);
    else
        scaler_report_records(r->out.file, r->style, report);
}

static int run_all(run *r, input_options *from, char **operands, int n)
{
    const options *o = r->o;
    scaler_report report = {.run = &r->scalers, .all = o->all};
    char name[512];
    int code = log_of(o, from, operands, n, &report.log_path);
    if (code)
        return code;
    if (report.log_path && (o->amp || o->state_in || o->state_out || o->repeat || o->format))
        return fail(EXIT_USAGE,
                    "scaler: '%s' is not a file of tensors; --amp, --state-in, "
                    "--state-out, --repeat and --format do not go with a log",
                    escape_text(name, sizeof name, report.log_path));
    if (!report.log_path && o->log_patterns.count)
        return fail(EXIT_USAGE, "scaler: --log-pattern needs a log");
    if (report.log_path) {
        code = run_log(r, report.log_path);
        report.log = &r->log;
        report.judgement = &r->judgement;
    } else {
        char own[STATE_SPEC] = "torch";
        if (!o->pattern && (code = open_trace(r, from, operands, n)))
            return code;
        if (!o->pattern && (code = scaler_run_own(&r->in, own, sizeof own, &report.own)))
            return code;
        report.own = report.own && !o->scalers.count && !o->compare.count && !o->state_in;
        if ((code = restore(r, own)))
            return code;
        if (o->state_out && r->scalers.count > 1)
            return fail(EXIT_USAGE, "scaler: --state-out writes the state of one scaler");
        if (o->amp) {
            r->scalers.told = o->amp_stats ? tell_stats : tell_status;
            r->scalers.context = r->out.file;
        }
        if (o->pattern && !(code = read_pattern(r, &report.pattern_steps)))
            scaler_run_pattern(&r->scalers, r->pattern);
        else if (!o->pattern)
            code = run_trace(r);
    }
    report.pattern = o->pattern;
    report.format = r->scalers.format.name;
    report.matches = r->matches;
    report.n_matches = r->n_matches;
    report.several = r->scalers.count > 1;
    if (!code && !o->amp)
        write_report(r, &report);
    return code;
}

static void clear(run *r)
{
    for (size_t i = 0; i < r->scalers.count; i++)
        traininglog_track_clear(&r->scalers.tracks[i]);
    free(r->scalers.tracks);
    scaler_run_clear(&r->scalers);
    traininglog_training_log_clear(&r->log);
    traininglog_pattern_free(r->own);
    free(r->matches);
    free(r->pattern);
    input_close(&r->in);
}

static int run_command(run *r, input_options *from, char **operands, int n)
{
    const options *o = r->o;
    int code;
    r->style = report_options_style(&o->form);
    if ((code = check_outputs(o)) || (code = report_options_open(&r->out, &o->form)))
        return code;
    code = o->list       ? scaler_list(r->out.file, r->style, operands, n)
           : o->adaptive ? run_adaptive(r, from, operands, n)
                         : run_all(r, from, operands, n);
    if (code) {
        output_abandon(&r->out);
        return code;
    }
    if ((code = output_close(&r->out)) ||
        (o->state_out && (code = scaler_state_write(o->state_out, &r->scalers.tracks[0]))))
        return code;
    return r->in.failed ? EXIT_PARTIAL : 0;
}

/* What logs have not. */
#define OF_TRACES "state-in state-out amp amp-stats"

int cmd_scaler(const command *self, int argc, char **argv)
{
    options o = {0};
    input_options from = {.may_keep_going = 1};
    int first;
    const option_row table_of_options[] = {
        COMMON("scaler compare list adaptive pattern log format match kind amp all json csv output"),
        {0, "Which scalers", OPTION_HEADING, NULL, NULL, NULL},
        {'s', "scaler", OPTION_LIST, &o.scalers, "SPEC",
         "a scaler, as apex or torch:init=2^10 (default: the recorded one, else torch); may be repeated"},
        {'c', "compare", OPTION_LIST, &o.compare, "LIST",
         "several scalers side by side, as torch,apex,megatron; all: every dynamic one (default for logs)"},
        {'l', "list", OPTION_FLAG, &o.list, NULL, "list scalers; with operands, describe these"},
        {0, "adaptive", OPTION_FLAG, &o.adaptive, NULL,
         "a scale for each layer (Zhao et al.), from traces with agrad and weight tensors"},
        {0, "Instead of a trace", OPTION_HEADING, NULL, NULL, NULL},
        {0, "pattern", OPTION_STRING, &o.pattern, "TEXT",
         "an overflow pattern, as '1*3,0*2000,1'; @FILE: the pattern in a file"},
        {0, "log", OPTION_INPUTS, &o.logs, "FILE", "a training log; - is standard input"},
        {0, "log-pattern", OPTION_LIST, &o.log_patterns, "TEXT",
         "a pattern of lines of the log, as 'it {step} .* amp={scale} skip={overflow}'; may be repeated"},
        {0, "Traces", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.format, "FORMAT",
         "round gradients to FORMAT, nearest-even (default fp16; binary32: keep them as the run computed "
         "them)"},
        {0, "repeat", OPTION_COUNT, &o.repeat, "N", "replay the recorded steps N times"},
        INPUT_OPTION_ROWS(from),
        LOSS_SCALE_OPTION_ROW(from),
        KEEP_GOING_OPTION_ROW(from),
        {0, "State", OPTION_HEADING, NULL, NULL, NULL},
        {0, "state-in", OPTION_INPUT, &o.state_in, "FILE", "continue from a saved state"},
        {0, "state-out", OPTION_OUTPUT, &o.state_out, "FILE", "save the state at the end"},
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "amp", OPTION_FLAG, &o.amp, NULL,
         "print one line per step, as training scripts log it, with the scale after the step"},
        {0, "amp-stats", OPTION_FLAG, &o.amp_stats, NULL,
         "print one line per step, as '[AMP Stats] Scale: 65536.0, Growth tracker: 0'"},
        {'a', "all", OPTION_FLAG, &o.all, NULL, "print every row of a long trajectory"},
        JSON_OPTION_ROW(o.form, "mpsim.scaler/1"),
        NDJSON_OPTION_ROW(o.form, "scaler and run of steps"),
        CSV_OPTION_ROW(o.form, ": a row per scaler and run of steps"),
        COLUMNS("Columns with --adaptive", record_rows(&scaler_adaptive_kind), 0),
        OUTPUT_OPTION_ROW(o.form),
        QUIET_OPTION_ROW(o.form, "notes"),
        EXCLUDES("list", "pattern log adaptive state-in state-out amp amp-stats", "it takes names of scalers"),
        EXCLUDES("log#1", "", "'mpsim log A B' compares runs"),
        EXCLUSIVE("TRACE+!list pattern log", NULL),
        NEEDS("", "TRACE pattern log list", NULL),
        NEEDS("adaptive", "TRACE", NULL),
        EXCLUDES("adaptive", "scaler compare repeat format " OF_TRACES, NULL),
        EXCLUDES("amp amp-stats", "json ndjson csv compare scaler#1", "they are the status lines of one scaler"),
        EXCLUDES("log", "repeat format " OF_TRACES, NULL),
        EXCLUDES("pattern", "repeat format", NULL),
        RANGE("repeat", 0, UINT32_MAX),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        o.amp |= o.amp_stats;
        o.log = o.logs.count ? o.logs.items[0] : NULL;
        run *r = need_memory(1, sizeof *r);
        r->o = &o;
        code = run_command(r, &from, argv + first, argc - first);
        clear(r);
        free(r);
    }
    option_list_clear(&o.scalers);
    option_list_clear(&o.compare);
    option_list_clear(&o.log_patterns);
    option_list_clear(&o.logs);
    input_options_clear(&from);
    return code;
}
