/* cmd.c -- mpsim advise: formats, loss scale and recipe that a recorded run tolerates. */
#include "advise.h"

#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../commands.h"
#include "../trace/outfile.h"
#include "gate.h"
#include "record.h"

#include <stdlib.h>
#include <string.h>

static const char more[] =
    "advise casts each tensor of each step to every format. A format fits a tensor if the tensor is\n"
    "within the bounds in all steps. Elements that saturate count in SQNR; overflow is elements that\n"
    "become Inf or NaN. Numbers that bf16 makes zero are subnormal in binary32 and do not count against\n"
    "bf16. Formats, by bytes: mxfp4 nvfp4 mxfp6 e4m3 e5m2 mxfp8 blockwise bf16 fp16. e4m3 and e5m2 have\n"
    "one scale a tensor. In fp16 a loss scale from 2^-8 to 2^32 may multiply gradients. No model is run:\n"
    "a format that fits can hold the numbers, but the run need not converge.\n"
    "\n"
    "Conditions of --fail-if, NAME[OP VALUE[%]]; NAME alone means > 0:\n"
    "  binary32   tensors that fit no narrower format\n"
    "  excluded   linear layers that the recipe excludes; all, if no recipe is advised\n"
    "  unscaled   gradients that exceed the bounds at the advised loss scale\n"
    "  lost       updates that bf16 weights without masters lose in the worst step\n"
    "  broken     bounds that the advice exceeds in steps held back\n"
    "\n"
    "Examples:\n"
    "  mpsim advise trace/                           what fits, what does not, and why\n"
    "  mpsim advise --hold-back 3 trace/             check the advice on every third step\n"
    "  mpsim advise --policy-out mine.yaml trace/    write the advice as a policy\n"
    "  mpsim replay --policy mine.yaml trace/        what that policy loses\n"
    "  mpsim advise -q --fail-if 'binary32>0,unscaled>1%' trace/    as a test\n";

typedef struct options {
    advise_words words;
    const char *policy;
    int tensors;
    option_list fail_if;
    input_options from;
    report_options form;
} options;

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
    const int code = report_options_open(&out, &o->form);
    if (code)
        return code;
    if (style == REPORT_TEXT)
        advise_print(a, o->tensors, out.file);
    else
        advise_write(a, in, style, out.file);
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
        trace_outfile_abandon(held);
    return held && !code ? output_keep(held) : code;
}

static void tell_note(void *context, const char *text)
{
    (void)context;
    note("%s", text);
}

static void tell(const advise *a, const input *in)
{
    advise_notes(a, tell_note, NULL);
    input_note_empty(in->first_empty, in->empty);
}

static int work(advise *a, const options *o, report_style style, const gate *g, char **operands, int n)
{
    input in = {0};
    int code = input_open(&in, "advise", &o->from, operands, n);
    in.needs_kinds = in.lists_unread = 1;
    if (!code && !(code = output_check(o->form.path)) && o->policy)
        code = output_check(o->policy);
    const output_named written[] = {{"--policy-out", o->policy}, {"the report", o->form.path ? o->form.path : "-"}};
    if (!code)
        code = output_apart("advise", written, sizeof written / sizeof *written);
    if (!code)
        code = advise_run(a, &in);
    if (!code)
        code = write_all(a, &in, o, style);
    if (!code) {
        tell(a, &in);
        code = advise_gate_tell(g, a);
        const int unseen = g->count ? unread_gate(&in.unread, "advise") : 0;
        code = code ? code : unseen;
    }
    input_close(&in);
    return code;
}

static int run(const options *o, char **operands, int n)
{
    advise a = {.once = 0};
    gate g;
    report_options_threads(&o->form);
    int code = advise_begin(&a, "advise", &o->words);
    if (!code && !(code = advise_gate_make(&g, &o->fail_if)))
        code = work(&a, o, report_options_style(&o->form), &g, operands, n);
    advise_clear(&a);
    return code;
}

int cmd_advise(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row rows[] = {
        COMMON(
            "max-underflow max-overflow min-sqnr max-lost format compute match kind fail-if tensors policy-out json output"),
        {0, "Bounds", OPTION_HEADING, NULL, NULL, NULL},
        ADVISE_BOUND_ROWS(o.words),
        {0, "What is tried", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.words.formats, "LIST",
         "formats and recipes (default nvfp4,e4m3,e5m2,mxfp8,blockwise,bf16,fp16)"},
        ADVISE_COMPUTE_ROW(o.words),
        {0, "hold-back", OPTION_COUNT, &o.words.hold_back, "K",
         "hold back every K-th step: the advice is made without it and checked on it"},
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        LOSS_SCALE_OPTION_ROW(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "fail-if", OPTION_LIST, &o.fail_if, "LIST",
         "exit code 1 if a condition holds, as 'lost>10%,unscaled'; see below"},
        {'t', "tensors", OPTION_FLAG, &o.tensors, NULL, "text: list every tensor with its worst values"},
        {0, "policy-out", OPTION_OUTPUT, &o.policy, "FILE", "write the advice as a policy for replay and train"},
        JSON_OPTION_ROW(o.form, "mpsim.advise/1"),
        NDJSON_OPTION_ROW(o.form, "tensor"),
        CSV_OPTION_ROW(o.form, ": a row per tensor"),
        COLUMNS("Columns with --tensors", &advise_row_record, 0),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        QUIET_OPTION_ROW(o.form, "notes"),
        NEEDS("", "TRACE", NULL),
        EXCLUDES("tensors", "json ndjson csv", "these forms list every tensor"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
    };
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code < 0)
        code = run(&o, argv + first, argc - first);
    option_list_clear(&o.fail_if);
    input_options_clear(&o.from);
    return code;
}
