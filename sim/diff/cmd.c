/* cmd.c -- mpsim diff: where two files or runs begin to differ, and what it looks like. */
#include "../commands.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "logprob.h"
#include "ratiosreport.h"
#include "diff.h"
#include "report.h"

#include <string.h>

static const char more[] =
    "A and B are files, or folders with the files of a run. Tensors are compared in the order in which\n"
    "training computes them: by step, then weights and state, forward pass, backward pass. The first\n"
    "tensor that differs is described, with a verdict and its evidence; the others are listed. Verdicts:\n"
    "'equal', or for each tensor dtype, reshaped, codes, step-shifted, step-skipped, scalar, constant,\n"
    "flipped-bit, byte-order, reinterpreted, negated, signs, scaled, offset, affine, quantised, rounded,\n"
    "computed, zeroed, dropout, clipped, transposed, reversed, shifted, permuted, rearranged, resized,\n"
    "non-finite, sum-order, partial, corrupted, close, related, unrelated, integers, bytes, missing, extra,\n"
    "incomparable, not-compared (doc/explanations/differences.md). Tensors are matched by name, by kind and\n"
    "parameter, by name without its prefix, by content, then by shape. Different names alone are no\n"
    "difference.\n"
    "\n"
    "Integer tensors are compared as integers. Tensors whose numbers are not read are compared as bytes.\n"
    "Exit code: 0 equal, or within the tolerance; 1 different; 5 equal in the compared tensors, but data of\n"
    "others are missing; 3 nothing can be compared.\n"
    "\n"
    "With --logprob, A holds log-probabilities of a sampler and B those of a trainer: d = B - A, a token's\n"
    "ratio is exp(d), a sequence's ratio is the product over its tokens. Zeros at the end of a row are\n"
    "padding. The verdict is one of equal, too-few, negated, probabilities, no-logarithms, base, scaled,\n"
    "offset, shifted, masked, renormalised, tempered, stale, rounding, other-policy, unexplained.\n"
    "\n"
    "Examples:\n"
    "  mpsim diff run-a/ run-b/                       two recorded runs\n"
    "  mpsim diff --logprob --clip 0.8,1.28 sampler.safetensors trainer.safetensors\n"
    "  mpsim diff --tolerance 4ulp old.safetensors new.safetensors\n"
    "  mpsim diff -k wgrad --json -o diff.json run-a/ run-b/     for mpsim plot diff\n";

typedef struct options {
    input_options from;
    report_options form;
    const char *tolerance, *clip;
    double dual, truncated;
    int tensors, logprob;
} options;

static int nothing_compared(const diffreport *r, int failed)
{
    const int code = failed ? EXIT_PARTIAL : EXIT_DATA;
    return diff_report_unseen(r) ? fail(code, "diff: no tensor can be compared: %s", diff_report_first_unseen(r))
                                 : fail(code, "diff: no tensor is selected, or left");
}

static int compare(side sides[2], const options *o, report_style style, output *out, char **operands)
{
    const diffreport_head head = {.paths = {operands[0], operands[1]},
                                  .sides = sides,
                                  .tolerance = o->tolerance,
                                  .match = o->from.wanted.match,
                                  .kinds = o->from.wanted.kinds};
    tolerance within;
    int code = diff_tolerance_parse(&within, o->tolerance, "diff");
    diffreport *r = NULL;
    for (int k = 0; k < 2 && !code; k++)
        code = diff_side_open(&sides[k], "diff", &o->from, operands[k]);
    if (!code) {
        r = diff_report_new(out->file, style, &head, &within, o->tensors);
        code = diff_sequence_run(&sides[0], &sides[1], &within, diff_report_told, r);
    }
    const int failed = sides[0].in.failed + sides[1].in.failed;
    if (!code && diff_report_compared(r) == 0 && (diff_report_differing(r) == 0 || failed))
        code = nothing_compared(r, failed);
    if (!code)
        diff_report_end(r, failed);
    code = output_end(out, code);
    if (!code)
        code = failed                     ? EXIT_PARTIAL
               : diff_report_differing(r) ? EXIT_CHECK
               : diff_report_unseen(r)    ? EXIT_PARTIAL
                                          : EXIT_OK;
    diff_report_free(r);
    return code;
}

static int compare_logprobs(side sides[2], const options *o, report_style style, output *out, char **operands)
{
    logprob_options lo = {.paths = {operands[0], operands[1]}, .dual = o->dual, .truncated = o->truncated};
    int differ = 0, code = diff_ratios_band(&lo.band[0], &lo.band[1], "diff", o->clip);
    for (int k = 0; k < 2 && !code; k++)
        code = diff_side_open(&sides[k], "diff", &o->from, operands[k]);
    if (!code)
        code = diff_logprob_run(out->file, style, &lo, &sides[0], &sides[1], &differ);
    code = output_end(out, code);
    return code ? code : sides[0].in.failed + sides[1].in.failed ? EXIT_PARTIAL : differ ? EXIT_CHECK : EXIT_OK;
}

static int run(const options *o, char **operands)
{
    const report_style style = report_options_style(&o->form);
    side sides[2];
    output out;
    memset(sides, 0, sizeof sides);
    int code = 0;
    report_options_threads(&o->form);
    if (strcmp(operands[0], "-") == 0 && strcmp(operands[1], "-") == 0)
        code = fail(EXIT_USAGE, "diff: standard input cannot be both A and B");
    if (!code)
        code = input_check_kinds("diff", "kind", &o->from.wanted.kinds, NULL);
    if (!code)
        code = report_options_open(&out, &o->form);
    if (!code)
        code = (o->logprob ? compare_logprobs : compare)(sides, o, style, &out, operands);
    diff_side_close(&sides[0]);
    diff_side_close(&sides[1]);
    return code;
}

int cmd_diff(const command *self, int argc, char **argv)
{
    options o = {.from = {.may_keep_going = 1}, .dual = RATIOS_DUAL, .truncated = RATIOS_TRUNCATED};
    int first;
    const option_row rows[] = {
        COMMON("tolerance logprob match kind map tensors json output"),
        {0, "What is a difference", OPTION_HEADING, NULL, NULL, NULL},
        {0, "tolerance", OPTION_STRING, &o.tolerance, "HOW",
         "largest difference that counts as equal: 4ulp, 1e-3 (relative), or 60dB (SQNR of a tensor)"},
        {0, "logprob", OPTION_FLAG, &o.logprob, NULL,
         "compare log-probabilities of the same tokens, a row for each sequence: differences, ratios, "
         "products"},
        {0, "clip", OPTION_STRING, &o.clip, "LOW,HIGH|E",
         "logprob: clipping band of ratios, or E for 1 - E to 1 + E (default 0.8,1.2)"},
        {0, "dual-clip", OPTION_NUMBER, &o.dual, "X", "logprob: a dual clip cuts ratios above X (default 3)"},
        {0, "truncate", OPTION_NUMBER, &o.truncated, "X", "logprob: a truncation cuts ratios above X (default 2)"},
        NEEDS("", "FILE=2", NULL),
        NEEDS("clip dual-clip truncate", "logprob", NULL),
        ABOVE("dual-clip truncate", 0),
        EXCLUDES("tolerance", "logprob", NULL),
        {0, "Files and tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        KEEP_GOING_OPTION_ROW(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {'t', "tensors", OPTION_FLAG, &o.tensors, NULL, "list all tensors that differ (default: the first 20)"},
        JSON_OPTION_ROW(o.form, "mpsim.diff/1"),
        NDJSON_OPTION_ROW(o.form, "tensor"),
        CSV_OPTION_ROW(o.form, ", a line for each tensor"),
        COLUMNS("Columns", record_rows(&diff_kind), 0),
        COLUMNS("Columns with --logprob", record_rows(&diff_logprob_kind), 0),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code < 0)
        code = run(&o, argv + first);
    input_options_clear(&o.from);
    return code;
}
