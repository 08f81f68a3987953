/* cmd.c -- mpsim stat: what casts would do to recorded tensors. */
#include "cmd.h"

#include "../process/world.h"
#include "shard.h"
#include "walk.h"

#include <stdlib.h>

static const char more[] =
    "Shares are of all elements. SQNR and MSE compare x with cast(x * scale) / scale where both are\n"
    "finite. With --keep-going, tensors read before a file failed are counted. Text lists tensors with\n"
    "NaN or Inf first.\n"
    "\n"
    "A loss scale multiplies gradients (agrad, dgrad, wgrad) and tensors without a kind. Other tensors\n"
    "are cast with the scale 1, unless --scale-kinds names them.\n"
    "\n"
    "Block recipes, NAME[:WORD]...:\n"
    "  mxfp8 mxfp8e5m2 mxfp6e3m2 mxfp6e2m3 mxfp4  :floor :even :ceil :rceil :te :microx, or :* for all\n"
    "  nvfp4                                      :2d (blocks of 16 x 16) :1level (no tensor scale) :sr\n"
    "  e4m3/1x128 e4m3/128x128 e5m2/row e4m3/tensor and other ELEMENT/RxC  :f32 (default) :ue8m0\n"
    "  any of them                                :rht16 :rht32 :rht64 :rht128, a Hadamard transform\n"
    "  recipes of libraries                       te-current te-block-128x128 torchao-rowwise ... (mpsim help recipes)\n"
    "With a Hadamard transform all counts and errors describe the transformed tensor. Elements wider than\n"
    "binary32 are first rounded to binary32. Blocks at the edges are smaller. A tensor of one dimension\n"
    "has no columns.\n"
    "\n"
    "Conditions of --fail-if: [LEVEL:]NAME, or NAME with > < >= or <= and a value. NAME alone means > 0.\n"
    "  elements, % a share  nan inf zero underflow subnormal overflow saturated inexact\n"
    "  values               amax amin sqnr (dB) mse max_rel_err\n"
    "  block recipes alone  spoilt saturated_blocks lost_blocks nonfinite_blocks (% of all blocks)\n"
    "A condition holds if one tensor under one cast fulfils it; with LEVEL (tensor, kind, step or total),\n"
    "if one sum at that level does. Each condition that holds is reported on standard error. Exit code:\n"
    "1 if a condition holds; 5 if none holds, but a selected tensor of floating-point numbers was not\n"
    "read.\n"
    "\n"
    "Examples:\n"
    "  mpsim stat trace/                                all files below, usual formats\n"
    "  mpsim stat -f fp16 -s 1,2^10,2^16 -k agrad,wgrad trace/\n"
    "  mpsim stat -f fp16 -s 2^0..2^32 --json -o sweep.json trace/    for mpsim plot sweep\n"
    "  mpsim stat -f 'mxfp8:*' trace/                   floor or rceil?\n"
    "  mpsim stat -f mxfp8:rceil,nvfp4,e4m3/128x128 --axis both --rht 16 trace/\n"
    "  mpsim stat -f fp16 -s 2^16 --fail-if nan,inf,'underflow>1%',total:sqnr'<40' \\\n"
    "            trace/\n"
    "  mpsim stat -f e4m3@cuda,e5m2@cuda,e2m1 --json -o report.json grads.safetensors\n"
    "  zcat dump.bin.gz | mpsim stat --dtype bf16 --shape 1024,4096 -\n";

/* ---- everything at once ---- */

static int tell_file(void *context, const trace *t, uint64_t i)
{
    (void)i;
    stat_tally_file(context, trace_path(t), trace_count(t));
    return 0;
}

static int tell_tensor(void *context, const stat_place *place, const walk_piece *piece, const group *of)
{
    tally *t = context;
    t->cut += piece->n < place->tensor->count;
    return stat_tally_tensor(t, place, of);
}

static int tell_failed(void *context, uint64_t i, const trace_error *error)
{
    (void)i;
    (void)error;
    stat_tally_failed(context);
    return 0;
}

int stat_files(const stat_settings *settings, const stat_form *form, char **operands, int n)
{
    static const walk_sink sink = {tell_file, tell_tensor, tell_failed, NULL};
    target_list targets = {0};
    input in = {0};
    tally t = {0};
    stat_output to;
    stat_settings known = *settings;
    char names[600], *rules = NULL;
    int code = stat_settings_targets(settings, &targets, "stat");
    if (!code && !(code = stat_tally_init(&t, "stat", &known, &form->fail_if, &targets)) &&
        !(code = input_open(&in, "stat", &settings->from, operands, n))) {
        code = stat_settings_names(&known, settings, &in, &rules);
        t.failed = in.failed;
        t.in = &in;
        if (!code && !(code = stat_output_begin(&to, form, &t, in.tree.count, mpsim_version()))) {
            code = stat_walk(&in, settings, &targets, NULL, &sink, &t);
            code = stat_output_end(&to, &t, code, input_names(&in, names, sizeof names));
        }
    }
    stat_tally_clear(&t);
    free(rules);
    input_close(&in);
    target_list_clear(&targets);
    return code;
}

/* ---- a shard ---- */

static int check_shard(const char *word, uint64_t *k, uint64_t *n)
{
    if (world_size() > 1)
        return fail(EXIT_USAGE, "stat: --shard needs one process: MPI ranks divide the work themselves");
    if (stat_share_parse(k, n, word))
        return fail(EXIT_USAGE, "stat: --shard must be K/N with 1 <= K <= N <= %d, not '%s'", SHARDS_MOST, word);
    return 0;
}

static int stat_shard(const stat_settings *settings, const stat_form *form, const char *word, char **operands,
                      int count)
{
    shards s = {0};
    output out;
    uint64_t k, n;
    int code = check_shard(word, &k, &n);
    if (!code && !(code = stat_shards_open(&s, settings, operands, count, n)) &&
        !(code = output_open(&out, form->out.path))) {
        code = stat_shards_write(&s, k, out.file);
        if (code && code != EXIT_PARTIAL) {
            output_abandon(&out);
        } else {
            const int failed = output_close(&out);
            code = failed ? failed : code;
        }
    }
    stat_shards_close(&s);
    return code;
}

/* ---- the command ---- */

int stat_command(const command *self, int argc, char **argv, stat_work *files)
{
    stat_settings s = {.from = {.may_keep_going = 1, .names_files = 1}};
    stat_form f = {0};
    const char *shard = NULL;
    int first;
    const option_row table_of_options[] = {
        COMMON("format scale round preset axis rht match kind map fail-if tensors json csv output"),
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &s.to.formats, "LIST",
         "number formats, as fp16,e4m3@cuda,e5m7:fn, and block recipes, as mxfp8:rceil,nvfp4,e4m3/128x128 "
         "(default fp16,bf16,e4m3,e5m2); see below"},
        {'s', "scale", OPTION_STRING, &s.to.scales, "LIST",
         "loss scales that multiply gradients before the cast, as 1,1024,2^16, or a range of powers of "
         "two, as 2^0..2^32 (default 1)"},
        {0, "scale-kinds", OPTION_LIST, &s.scaled, "LIST",
         "kinds of tensors that the loss scale multiplies (default agrad,dgrad,wgrad), or all"},
        TARGET_OPTION_ROWS(s.to),
        {0, "rht", OPTION_STRING, &s.to.hadamard, "N",
         "also apply each recipe after a random Hadamard transform of groups of N: 16, 32, 64 or 128"},
        {0, "axis", OPTION_STRING, &s.to.axis, "AXIS",
         "block direction: rows (the last dimension; default), columns, or both; both also requantises "
         "along columns, as for a transposed use"},
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(s.from),
        KEEP_GOING_OPTION_ROW(s.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        EXCLUDES("shard", "json ndjson csv level tensors fail-if",
                 "a shard is a part of a report; mpsim merge writes the report"),
        STAT_FORM_ROWS(f),
        {0, "shard", OPTION_STRING, &shard, "K/N",
         "write part K of N of the report for mpsim merge, from a share of the bytes"},
        {0, "counts", OPTION_FLAG, &s.counts, NULL,
         "counts, amax and amin alone, which is faster: no mean, l2, SQNR, MSE or max rel err"},
        {0, "histogram", OPTION_FLAG, &s.histogram, NULL, "add histograms of floor(log2 |x|) to JSON, for mpsim plot"},
        {0, "without-roundoff", OPTION_FLAG, &s.without_roundoff, NULL,
         "ignore elements of gradients that consist of rounding errors alone, as advise does "
         "(doc/explanations/statistics.md)"},
        JSON_OPTION_ROW(f.out, "mpsim.stat/1"),
        NDJSON_OPTION_ROW(f.out, "line, as they come"),
        CSV_OPTION_ROW(f.out, ": a row per tensor, format and scale; see --level"),
        COLUMNS("Columns", &stat_holds_record, SHOW_SUMS),
        COLUMNS("Columns of casts", &stat_loses_record, SHOW_SUMS | SHOW_CASTS),
        COLUMNS("Columns of block recipes", &stat_blocks_record, SHOW_SUMS | SHOW_RECIPES | SHOW_AXES),
        OUTPUT_OPTION_ROW(f.out),
        THREADS_OPTION_ROW(f.out, ""),
        QUIET_OPTION_ROW(f.out, "notes"),
        NEEDS("histogram", "json ndjson shard", NULL),
        EXCLUDES("without-roundoff", "shard", "a part of a tensor does not show its rounding errors"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        f.style = report_options_style(&f.out);
        report_options_threads(&f.out);
        if (s.without_roundoff && world_size() > 1)
            code = fail(
                EXIT_USAGE,
                "stat: --without-roundoff needs one process: a part of a tensor does not show its rounding errors");
        else
            code = shard ? stat_shard(&s, &f, shard, argv + first, argc - first)
                         : files(&s, &f, argv + first, argc - first);
    }
    stat_settings_clear(&s);
    stat_form_clear(&f);
    return code;
}

int cmd_stat(const command *self, int argc, char **argv)
{
    return stat_command(self, argc, argv, stat_files);
}
