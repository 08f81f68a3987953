/* cmd.c -- mpsim advise: formats, loss scale and recipe that a recorded run bears. */
#include "advise.h"

#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../commands.h"
#include "../trace/outfile.h"
#include "gate.h"

#include <stdlib.h>
#include <string.h>

static const char more[] =
    "Each tensor of each step is cast to every format; one fits a tensor if it keeps the bounds in all\n"
    "steps. What saturates is an error like others (SQNR); overflow is what becomes Inf or NaN. What bf16\n"
    "makes zero is below 2^-134, subnormal in binary32, too, and no reason against it.\n"
    "Formats, in the order of bytes: mxfp4 nvfp4 mxfp6 e4m3 e5m2 mxfp8 blockwise bf16 fp16; e4m3 and e5m2\n"
    "have one scale a tensor. Gradients in fp16 may be multiplied by any power of two from 2^-8 to 2^32.\n"
    "No model is run: that a format fits says that it can hold the numbers, not that the run converges.\n"
    "\n"
    "--fail-if takes NAME[OP VALUE[%]] as stat's; NAME alone is NAME>0:\n"
    "  binary32   tensors that nothing narrower fits\n"
    "  excluded   linear layers that the recipe leaves out; all, where none is advised\n"
    "  unscaled   gradients that the loss scale does not keep within the bounds\n"
    "  lost       updates that bf16 weights without masters would lose in the worst step\n"
    "  broken     bounds that the advice does not keep in the steps held back\n"
    "\n"
    "Examples:\n"
    "  mpsim advise trace/                           what fits, what does not, and why\n"
    "  mpsim advise --hold-back 3 trace/             and how often that is kept in every third step\n"
    "  mpsim advise --policy-out mine.yaml trace/    the same as a policy\n"
    "  mpsim replay --policy mine.yaml trace/        and what it would have lost\n"
    "  mpsim advise -q --fail-if 'binary32>0,unscaled>1%' trace/    in a test of one's own\n";

typedef struct options {
    const char *formats, *compute, *policy;
    const char *underflow, *overflow, *sqnr, *lost;
    uint64_t hold_back;
    int tensors;
    option_list fail_if;
    input_options from;
    report_options form;
} options;

void advise_clear(advise *a)
{
    for (size_t i = 0; i < a->n_tensors; i++) {
        free(a->tensors[i].name);
        free(a->tensors[i].layer);
    }
    for (size_t i = 0; i < a->n_layers; i++)
        free(a->layers[i].name);
    nameindex_clear(&a->names);
    nameindex_clear(&a->layer_names);
    free(a->tensors);
    free(a->layers);
    free(a->held);
}

/* ---- the command line ---- */

/* A number without the unit that may follow it: 0, or an exit code after a message. */
static int read_number(double *x, const char *option, const char *typed, const char *unit, const char *example)
{
    char text[64];
    if (!typed)
        return 0;
    size_t n = strlen(typed);
    const size_t length = strlen(unit);
    if (n > length && strcmp(typed + n - length, unit) == 0)
        n -= length;
    while (n > 0 && typed[n - 1] == ' ')
        n--;
    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : 0), typed);
    return parse_number(x, text) == 0
               ? 0
               : fail(EXIT_USAGE, "advise: --%s: '%s' is not a number, as %s", option, typed, example);
}

/* "0.1%", or a share, "0.001". */
static int read_share(double *x, const char *option, const char *typed)
{
    const size_t n = typed ? strlen(typed) : 0;
    const int code = read_number(x, option, typed, "%", "0.1%");
    if (code || !typed)
        return code;
    *x /= typed[n - 1] == '%' ? 100 : 1;
    return *x >= 0 && *x <= 1 ? 0
                              : fail(EXIT_USAGE, "advise: --%s: '%s' is not a share from 0 to 100%%", option, typed);
}

static int check_compute(const advise *a)
{
    if (!a->compute)
        return 0;
    if (strcmp(a->compute, "bf16") != 0 && strcmp(a->compute, "fp16") != 0)
        return fail(EXIT_USAGE, "advise: --compute is bf16 or fp16, not '%s'", a->compute);
    return candidates_find(&a->candidates, a->compute) >= 0
               ? 0
               : fail(EXIT_USAGE, "advise: --compute %s: -f leaves it out", a->compute);
}

static int resolve(advise *a, const options *o)
{
    int code = candidates_make(&a->candidates, o->formats);
    a->bounds = (advise_bounds){.underflow = 0.01, .sqnr = 25, .lost = 0.1};
    a->hold_back = o->hold_back;
    a->compute = o->compute;
    if (code || (code = read_share(&a->bounds.underflow, "max-underflow", o->underflow)) ||
        (code = read_share(&a->bounds.overflow, "max-overflow", o->overflow)) ||
        (code = read_share(&a->bounds.lost, "max-lost", o->lost)) ||
        (code = read_number(&a->bounds.sqnr, "min-sqnr", o->sqnr, "dB", "25dB")) || (code = check_compute(a)))
        return code;
    return a->hold_back == 1 ? fail(EXIT_USAGE, "advise: --hold-back 1 would hold all steps back: 2 or more") : 0;
}

/* ---- what is written ---- */

/* The policy, under a temporary name until the report is there; *held is NULL without --policy-out. */
static int hold_policy(const advise *a, const char *path, struct outfile **held)
{
    output out;
    *held = NULL;
    const int code = path ? output_open(&out, path) : 0;
    if (code || !path)
        return code;
    advise_write_policy(a, out.file);
    return output_hold(&out, held);
}

static int write_report(const advise *a, const input *in, const options *o, report_style style)
{
    output out;
    const int code = output_open(&out, o->form.path);
    if (code)
        return code;
    if (style == REPORT_JSON)
        advise_print_json(a, in, out.file);
    else if (style == REPORT_CSV)
        advise_print_csv(a, out.file);
    else
        advise_print(a, o->tensors, out.file);
    return output_close(&out);
}

static int write_all(const advise *a, const input *in, const options *o, report_style style)
{
    struct outfile *held;
    int code = hold_policy(a, o->policy, &held);
    if (code)
        return code;
    code = write_report(a, in, o, style);
    if (held && code)
        outfile_abandon(held);
    return held && !code ? output_keep(held) : code;
}

static void tell(const advise *a, const input *in)
{
    uint64_t broken = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        broken += a->tensors[i].broken > 0;
    if (a->left_out)
        note("%llu tensors without floating-point numbers left out", (unsigned long long)a->left_out);
    if (broken)
        note("gradients with Inf or NaN are left out: of %llu tensors, in some steps", (unsigned long long)broken);
    if (a->low_stored)
        note("gradients were recorded in %s: what that had lost is not seen", a->low_stored);
    input_note_empty(in->first_empty, in->empty);
}

static int is_same_output(const char *a, const char *b)
{
    return (strcmp(a, "-") == 0 && strcmp(b, "-") == 0) || output_is_same(a, b);
}

static int work(advise *a, const options *o, report_style style, const gate *g, char **operands, int n)
{
    input in = {0};
    int code = input_open(&in, "advise", &o->from, operands, n);
    in.needs_kinds = 1;
    if (!code && !(code = output_check(o->form.path)) && o->policy)
        code = output_check(o->policy);
    if (!code && o->policy && is_same_output(o->policy, o->form.path ? o->form.path : "-"))
        code = fail(EXIT_USAGE, "advise: --policy-out and --output are the same: say where each goes");
    if (!code && !(code = advise_measure(a, &in))) {
        advise_judge(a);
        advise_hold(a);
        code = advise_find_stall(a, &in);
    }
    if (!code)
        code = write_all(a, &in, o, style);
    if (!code) {
        tell(a, &in);
        code = gate_tell(g, a);
    }
    input_close(&in);
    return code;
}

static int run(const options *o, char **operands, int n)
{
    advise a = {.once = 0};
    gate g;
    report_style style;
    int code = report_options_style(&style, &o->form, 0, "advise", "--json and --csv exclude each other");
    if (!code && o->tensors && style != REPORT_TEXT)
        code = fail(EXIT_USAGE, "advise: --tensors goes with text: JSON and CSV have every tensor");
    if (!code && n == 0)
        code = fail(EXIT_USAGE, "advise: no trace given; try 'mpsim advise --help'");
    if (!code && !(code = resolve(&a, o)) && !(code = gate_make(&g, &o->fail_if)) &&
        !(code = report_options_threads(&o->form, "advise"))) {
        code = work(&a, o, style, &g, operands, n);
    }
    advise_clear(&a);
    return code;
}

int cmd_advise(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row rows[] = {
        {0, "Bounds", OPTION_HEADING, NULL, NULL, NULL},
        {0, "max-underflow", OPTION_STRING, &o.underflow, "SHARE", "of a tensor that may become zero (default 1%)"},
        {0, "max-overflow", OPTION_STRING, &o.overflow, "SHARE", "of a tensor that may become Inf or NaN (default 0)"},
        {0, "min-sqnr", OPTION_STRING, &o.sqnr, "DB", "signal to quantisation noise, at least (default 25dB)"},
        {0, "max-lost", OPTION_STRING, &o.lost, "SHARE",
         "of updates that bf16 weights may lose before masters are advised (default 10%)"},
        {0, "What is tried", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.formats, "LIST",
         "formats and recipes (default nvfp4,e4m3,e5m2,mxfp8,blockwise,bf16,fp16)"},
        {0, "compute", OPTION_STRING, &o.compute, "bf16|fp16",
         "of the layers (default: bf16, unless more tensors fit fp16)"},
        {0, "hold-back", OPTION_COUNT, &o.hold_back, "K",
         "every K-th step is held back: the advice does not know it, and is judged there"},
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "fail-if", OPTION_LIST, &o.fail_if, "LIST",
         "exit code 1 after the report where one of these holds, as 'lost>10%,unscaled'; see below"},
        {'t', "tensors", OPTION_FLAG, &o.tensors, NULL, "text: every tensor, with its worst numbers"},
        {0, "policy-out", OPTION_OUTPUT, &o.policy, "FILE", "write the advice as a policy for replay and train"},
        JSON_OPTION_ROW(o.form, "mpsim.advise/1"),
        CSV_OPTION_ROW(o.form, ": a row per tensor"),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        QUIET_OPTION_ROW(o.form, "notes"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
    };
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code < 0) {
        if (o.form.quiet)
            note_quiet();
        code = run(&o, argv + first, argc - first);
    }
    option_list_clear(&o.fail_if);
    input_options_clear(&o.from);
    return code;
}
