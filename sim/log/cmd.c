/* cmd.c -- mpsim log: is this training log fine; how far are two runs apart? */
#include "../array/need.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../commands.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static const char more[] =
    "One FILE is judged as by 'mpsim scaler --log FILE': by its loss scale if the log has one, else by\n"
    "loss, gradient norm, KL, clipped shares and the gap between trainer and sampler.\n"
    "\n"
    "Of several FILEs, the last is compared with the others step by step: the gap in each quarter of the\n"
    "common steps, beside the noise of a run from step to step; the first step that differs; whether both\n"
    "runs read the same batches. Two runs show one difference, not the spread over seeds. Several runs\n"
    "before the last, alike but for their seeds, show that spread.\n"
    "\n"
    "Numbers for --of: loss, norm, validation; numbers of reinforcement learning by their names in the\n"
    "log, with or without their folder: reward, kl, actor/ppo_kl, pg_clipfrac, entropy,\n"
    "token_mult_prob_error, vllm_vs_local_logprob_diff_mean, ...\n"
    "\n"
    "Logs: lines of torchtitan, Megatron, DeepSpeed, Hugging Face, TRL, verl, NeMo RL, MaxText, nanochat,\n"
    "Composer, llm.c and other logs with named numbers; CSV with a header, as Weights & Biases exports\n"
    "it; JSON of TensorBoard and NeMo RL.\n"
    "\n"
    "Examples:\n"
    "  mpsim log train.log                        is this run fine?\n"
    "  mpsim log bf16.log fp8.log                 does fp8 train as bf16 does?\n"
    "  mpsim log seed1.log seed2.log seed3.log fp8.log    is it within what seeds give?\n"
    "  mpsim log --of norm a.csv b.csv\n";

typedef struct options {
    const char *of;
    report_options form;
    report_style style;
} options;

/* One log is the scaler's task: the same options, under its name. */
static int judge_one(const command *self, const options *o, char *path)
{
    static char styles[][16] = {[REPORT_JSON] = "--json", [REPORT_NDJSON] = "--ndjson", [REPORT_CSV] = "--csv"};
    char scaler[] = "scaler", log[] = "--log", place[] = "-o", quiet[] = "-q";
    char *to = need_text(o->form.path ? o->form.path : "-"), *argv[8] = {scaler, log, path};
    int argc = 3;
    if (o->style != REPORT_TEXT)
        argv[argc++] = styles[o->style];
    if (o->form.quiet)
        argv[argc++] = quiet;
    if (o->form.path) {
        argv[argc++] = place;
        argv[argc++] = to;
    }
    const int code = cmd_scaler(self, argc, argv);
    free(to);
    return code;
}

static int compare_all(const options *o, char **paths, int n)
{
    log_runs *r = need_memory(1, sizeof *r);
    comparison c;
    output out;
    int code = log_runs_read(r, o->of ? o->of : "loss", paths, (size_t)n);
    if (!code && !(code = report_options_open(&out, &o->form))) {
        log_compare(&c, r);
        log_report_write(out.file, o->style, r, &c);
        code = output_close(&out);
    }
    log_runs_clear(r);
    free(r);
    return code;
}

int cmd_log(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row table_of_options[] = {
        {0, "of", OPTION_STRING, &o.of, "NAME", "number by which runs are compared (default: loss)"},
        JSON_OPTION_ROW(o.form, "mpsim.log/1, of one file mpsim.scaler/1"),
        NDJSON_OPTION_ROW(o.form, "quarter, of one file per run of steps"),
        CSV_OPTION_ROW(o.form, ": a row per quarter, of one file per run of steps"),
        COLUMNS("Columns", record_rows(&log_kind), 0),
        OUTPUT_OPTION_ROW(o.form),
        QUIET_OPTION_ROW(o.form, "notes"),
        NEEDS("", "LOG", NULL),
        NEEDS("of", "LOG>1", "it names the number by which logs are compared"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const int code = options_parse(self, table_of_options, argc, argv, &first, more);
    const int n = argc - first;
    if (code >= 0)
        return code;
    o.style = report_options_style(&o.form);
    if (n > RUNS_MAX)
        return fail(EXIT_USAGE, "log: expected at most %d logs, not %d", RUNS_MAX, n);
    return n == 1 ? judge_one(self, &o, argv[first]) : compare_all(&o, argv + first, n);
}
