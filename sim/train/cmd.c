/* cmd.c -- mpsim train: training, emulated. */
#include "../array/memory.h"
#include "../array/need.h"
#include "../commands.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../process/textfile.h"
#include "../policy/list.h"
#include "../text/words.h"
#include "../trace/inputs.h"
#include "checkpoint.h"
#include "describe.h"
#include "train.h"
#include "policy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLAN_MOST = 16 << 20 }; /* bytes of a run as text */

static const char more[] =
    "Trains a network on 1,437 handwritten digits of 8 x 8 pixels and tests it on 360 others. Every\n"
    "tensor has the format of the policy, and every matrix product is summed as the chosen hardware sums\n"
    "it. A run gives the same bits on every machine, with any number of threads. Defaults of policies:\n"
    "SGD with learning rate 0.1 and momentum 0.9; Adam, AdamW: 0.001; Lion: 0.0001; Adafactor: 0.01.\n"
    "\n"
    "--net gpt and llama are decoders as GPT-2 and Llama. They learn to continue a text. They have 0.1 M\n"
    "parameters by default, 124 M with --gpt2. Defaults of policies: AdamW with learning rate 0.001,\n"
    "betas 0.9 and 0.95, weight decay 0.1 (matrices alone), gradient norm clipped at 1.\n"
    "\n"
    "arch          volta, turing, ampere, ada, hopper, blackwell, rtx-blackwell, cdna1, cdna2, cdna3:\n"
    "              tensor cores for low precision, fma in binary32 for binary32; or one model for all\n"
    "              products: exact, fp32-sequential, or a model of 'mpsim help models'. Block recipes\n"
    "              (MXFP8, NVFP4) are multiplied as bf16 numbers; blackwell-scaled and\n"
    "              rtx-blackwell-scaled multiply codes with their scales. DeepSeek-V3 recipes multiply\n"
    "              codes and promote sums to fp32 every 128 products; fp8 per tensor sums without\n"
    "              promotion (TransformerEngine promotes in the backward pass)\n"
    "at the end    mean loss of the last tenth of the steps\n"
    "validation    loss on the validation text; perplexity is e to that loss\n"
    "scale         loss scale; skipped: steps without an update, after gradients overflowed\n"
    "act           lost activations: results that rounding makes zero, as a share of non-zero results;\n"
    "              softmax and normalisation (--math) are not counted\n"
    "agrad, wgrad  lost gradients of activations and of weights, in the same way\n"
    "updates       lost: weights that would move in binary64 and do not\n"
    "diverged      the loss is NaN or infinite from that step to the last\n"
    "activations   bytes that the forward pass keeps for the backward pass\n"
    "multiplies    multiply-adds of matrix products, forward and backward, by the formats or recipes of\n"
    "              their operands\n"
    "speed         speed of the emulator: the only line that differs between two runs\n"
    "\n"
    "SIGINT, SIGTERM and SIGHUP end a run after the current step, or without it after half a\n"
    "second. The run saves its checkpoint, reports, and exits with 130, 143 or 129. A second signal ends\n"
    "it at once. --compare takes a minute, with\n"
    "--net cnn two; a policy with gpt or llama takes half a minute to minutes, less with smaller --width,\n"
    "--context, --steps. A trace contains the optimizer and its numbers, but not --clip, --variant,\n"
    "--loss-scaling and --seed: the policy of a replay must contain these.\n"
    "\n"
    "Examples:\n"
    "  mpsim train -P pytorch-amp-fp16                 a bundled policy by its name\n"
    "  mpsim train --compare                           common policies side by side\n"
    "  mpsim train -P fp32 -P mine.yaml --net cnn --steps 100\n"
    "  mpsim train -P bf16-pure --lr 0.01 --trace run  then: mpsim replay -P bf16-pure run\n"
    "  mpsim train -P fp32 --steps 100 --checkpoint half\n"
    "  mpsim train --resume half --steps 200\n"
    "  mpsim train --net gpt --compare -P fp32 -P pytorch-amp-fp16 --steps 50\n"
    "  mpsim train --net llama -P te-mxfp8 --text book.txt --accumulate 2 --ranks 4\n";

/* ---- the command line ---- */

typedef struct request {
    train_words words;
    train_settings settings;
    train_overrides overrides;
    policy_list policies;
    train_job *jobs;
    train_total *totals;
    size_t n_jobs;
    const char *run, *write_run, *resume, *checkpoint, *trace, *trace_steps, *digests, *check;
    uint64_t trace_every, checkpoint_every, every;
    train_opener device; /* NULL: the CPU */
    int compare, as_published, digest_tensors, digest_blocks;
    report_options form;
} request;

/* What --compare compares by itself. */
static const char *const compared[] = {
    "fp32",      "fp16-unscaled",       "fp16-static",    "pytorch-amp-fp16",    "apex-O1",          "apex-O2",
    "apex-O3",   "keras-mixed-float16", "deepspeed-fp16", "megatron-fp16",       "pytorch-amp-bf16", "megatron-bf16",
    "bf16-pure", "bf16-stochastic",     "bf16-kahan",     "nemo-fp8-hybrid-max", "te-mxfp8",
};

/* And of transformers: what is argued about there. */
static const char *const compared_decoders[] = {
    "fp32",           "fp16-unscaled",      "pytorch-amp-fp16", "apex-O2",
    "apex-O3",        "megatron-fp16",      "pytorch-amp-bf16", "megatron-bf16",
    "bf16-pure",      "bf16-stochastic",    "bf16-kahan",       "te-fp8-delayed",
    "te-fp8-current", "te-fp8-current-dpa", "deepseek-v3-fp8",  "te-mxfp8",
    "te-nvfp4",       "nvfp4-pretraining",
};

/* ---- what is trained ---- */

static void add_jobs(request *q, size_t n)
{
    q->jobs = need_memory(n, sizeof *q->jobs);
    q->totals = need_memory(n, sizeof *q->totals);
}

/* The run that a file of --write-run says; "-" is standard input. */
static int run_of_text(train_run *r, const char *path)
{
    char line[TRAIN_ERROR];
    trace_error error;
    int code = 0;
    char *text = text_file_read(path, PLAN_MOST, NULL, &error);
    if (!text)
        return fail(error.exit, "%s", error.text);
    FILE *f = need(fmemopen(text, text[0] ? strlen(text) : 1, "r"));
    if (train_run_read(r, f, line))
        code = fail(train_error_exit(line), "%s: %s", path, line);
    fclose(f);
    free(text);
    return code;
}

/* Say that a longer run has another learning rate from here on, where a schedule ends with the run. */
static void note_schedule(const train_settings *s, uint64_t planned)
{
    const train_decoder *d = &s->decoder;
    if (train_is_decoder(s) && s->steps != planned && (d->decay != TRAIN_CONSTANT || d->cooldown > 0))
        note("--steps: the learning rate now follows a run of %" PRIu64 " steps, not of %" PRIu64, s->steps, planned);
}

/* The run of a file: of --write-run, or a checkpoint, which --steps may make longer. */
static int job_of_file(request *q)
{
    trace_error error;
    const char *path = q->run ? q->run : q->resume, *slash = strrchr(path, '/');
    int code = 0;
    add_jobs(q, 1);
    q->jobs[0].name = slash ? slash + 1 : path;
    if (q->run) {
        code = run_of_text(&q->jobs[0].run, path);
    } else if (train_checkpoint_run(path, &q->jobs[0].run, &error)) {
        code = fail(error.exit, "%s", error.text);
    }
    q->n_jobs = !code;
    if (!code)
        code = train_words_text(&q->words, &q->jobs[0].run, path);
    const uint64_t planned = q->jobs[0].run.settings.steps;
    if (!code && !q->run)
        q->jobs[0].run.settings.steps = q->words.steps ? q->words.steps : planned;
    if (!code)
        note_schedule(&q->jobs[0].run.settings, planned);
    return code;
}

/* Side by side policies clip alike, so that it is precision that is compared. */
static void choose_clip(request *q)
{
    train_overrides *o = &q->overrides;
    const int decoder = train_is_decoder(&q->settings), several = q->compare || q->policies.count > 1;
    if (!several || q->as_published || o->clip_rule || !isnan(o->max_norm))
        return;
    o->clip_rule = mpsim_clip_name(decoder ? MPSIM_CLIP_TORCH : MPSIM_CLIP_NONE);
    if (decoder)
        o->max_norm = 1;
}

/* Say which policies have no loss scale that --loss-scaling could replace. */
static void note_unscaled(const request *q)
{
    char *names = NULL;
    size_t n;
    FILE *f = q->overrides.scaler ? memory_open(&names, &n) : NULL;
    for (size_t i = 0, several = 0; f && i < q->policies.count; i++)
        if (!train_policy_scales(&q->policies.items[i]))
            fprintf(f, "%s%s", several++ ? ", " : "", q->policies.items[i].name);
    if (f && fclose(f) == 0 && n)
        note("--loss-scaling: ignored for a policy without a loss scale: %s", names);
    free(names);
}

static int add_compared(request *q)
{
    const int decoder = train_is_decoder(&q->settings);
    const char *const *names = decoder ? compared_decoders : compared;
    const size_t n = decoder ? sizeof compared_decoders / sizeof *names : sizeof compared / sizeof *names;
    int code = 0;
    for (size_t i = 0; i < n && !code; i++)
        code = policy_list_add(&q->policies, "train", names[i]);
    return code;
}

static int jobs_of_policies(request *q, const option_list *paths)
{
    char line[TRAIN_ERROR];
    int code = train_words_read(&q->words);
    const train_text *text = q->words.text.text.bytes ? &q->words.text.text : train_text_bundled();
    q->policies.steps_per_epoch = train_steps_per_pass(&q->settings, text->trained);
    if (!code)
        code = policy_list_add_all(&q->policies, "train", paths);
    if (paths->count == 0 && !code)
        code = add_compared(q);
    if (!code)
        choose_clip(q);
    if (!code)
        add_jobs(q, q->policies.count);
    for (size_t i = 0; i < q->policies.count && !code; i++) {
        train_job *j = &q->jobs[i];
        j->policy = &q->policies.items[i];
        j->name = j->policy->name;
        if (train_run_of_policy(&j->run, j->policy, &q->settings, &q->overrides, line))
            code = fail(train_error_exit(line), "train: %s: %s", j->name, line);
        else
            q->n_jobs++;
        j->run.text = q->words.text.text.bytes ? &q->words.text.text : NULL;
    }
    if (!code)
        note_unscaled(q);
    return code;
}

static int make_jobs(request *q, const option_list *paths)
{
    if (q->run || (q->resume && !paths->count && !q->compare))
        return job_of_file(q);
    return jobs_of_policies(q, paths);
}

/* ---- the runs ---- */

/* The folder of a policy's trace, to be freed: DIR; of several, DIR/NAME. NULL after a message. */
static char *trace_folder(const request *q, const train_job *j)
{
    if (q->n_jobs == 1)
        return need_text(q->trace);
    if (mkdir(q->trace, 0777) != 0 && errno != EEXIST) {
        fail(EXIT_IO, "%s: %s", q->trace, text_error(errno));
        return NULL;
    }
    char *path = need_format("%s/%s", q->trace, j->name);
    for (char *p = path + strlen(q->trace) + 1; *p; p++) /* a name is no path */
        if (*p == '/' || (*p == '.' && p[-1] == '/'))
            *p = '_';
    return path;
}

static int run_job(request *q, size_t i, FILE *digests, train_report *report)
{
    const train_job *j = &q->jobs[i];
    const uint64_t tenth = (j->run.settings.steps + 9) / 10;
    char *folder = q->trace ? trace_folder(q, j) : NULL;
    train_watch w = {
        .every = q->every          ? q->every
                 : report->compare ? 0
                                   : tenth,
        .device = q->device,
        .resume = q->resume,
        .checkpoint = q->checkpoint,
        .checkpoint_every = q->checkpoint_every,
        .recorder = {.folder = folder, .policy = j->name, .run = &j->run},
        .digests = {.to = digests, .tensors = q->digest_tensors, .blocks = q->digest_blocks, .path = q->check},
    };
    int code = q->trace && !folder ? EXIT_IO : 0;
    if (!code && q->trace_steps && train_step_selection_parse(&w.recorder.steps, q->trace_steps))
        code = fail(EXIT_USAGE, "train: --trace-steps: '%s' is not a list of steps, as 1,2,10-20", q->trace_steps);
    for (size_t k = 0; !code && k < w.recorder.steps.n_ranges; k++)
        if (w.recorder.steps.ranges[k].last > j->run.settings.steps)
            code = fail(EXIT_USAGE, "train: --trace-steps: the run has %" PRIu64 " steps", j->run.settings.steps);
    w.recorder.steps.every = q->trace_every ? q->trace_every : q->trace_steps ? 0 : tenth;
    train_report_run(report, j);
    if (!code)
        code = train_job_run(j, &w, train_report_step, train_report_row, report, &q->totals[i]);
    if (!code)
        train_report_total(report, &q->totals[i]);
    train_record_clear(&w.recorder);
    train_digests_clear(&w.digests);
    free(folder);
    return code;
}

static int run_jobs(request *q, train_report *report, FILE *digests)
{
    int code = 0;
    size_t done = 0;
    train_catch_interrupt();
    train_report_begin(report, &q->jobs[0].run.settings);
    while (done < q->n_jobs && !code && !train_interrupted())
        code = run_job(q, done++, digests, report);
    if (!code && report->compare)
        train_report_compare(report, q->jobs, q->totals, done);
    if (!code)
        train_report_end(report);
    if (!code && ferror(report->file))
        code = output_failed();
    train_report_abandon(report);
    return code;
}

static int verdict(const request *q)
{
    for (size_t i = 0; i < q->n_jobs; i++)
        if (q->totals[i].difference[0])
            return EXIT_CHECK;
    for (size_t i = 0; i < q->n_jobs; i++)
        if (q->totals[i].interrupted)
            return EXIT_INTERRUPTED + train_interrupted();
    if (train_interrupted() && q->totals[q->n_jobs - 1].done == 0)
        return EXIT_INTERRUPTED + train_interrupted();
    return q->check && q->totals[0].compared == 0 ? fail(EXIT_DATA, "%s: it holds no step of this run", q->check) : 0;
}

static int write_run(const request *q)
{
    output out;
    int code = output_open(&out, q->write_run);
    if (code)
        return code;
    if (train_run_write(&q->jobs[0].run, out.file)) {
        output_abandon(&out);
        return output_failed();
    }
    return output_close(&out);
}

static int train_all(request *q, train_report *report)
{
    output out = {0}, digests = {0};
    int code = report->style == REPORT_NDJSON ? output_open_stream(&out, q->form.path)
                                              : output_open_report(&out, q->form.path, report->style);
    if (code)
        return code;
    if (q->digests && (code = output_open(&digests, q->digests))) {
        output_abandon(&out);
        return code;
    }
    report->file = out.file;
    code = run_jobs(q, report, digests.file);
    if (code) {
        output_abandon(&out);
        if (q->digests)
            output_abandon(&digests);
        return code;
    }
    const int bad = q->digests ? output_close(&digests) : 0;
    code = output_close(&out);
    return bad ? bad : code ? code : verdict(q);
}

/* ---- checks ---- */

/* Nothing is written twice. */
static int check_outputs(const request *q)
{
    const output_named written[] = {{"--write-run", q->write_run},
                                    {"--digests", q->digests},
                                    {"--checkpoint", q->checkpoint},
                                    {"--trace", q->trace},
                                    {"the report", q->form.path   ? q->form.path
                                                   : q->write_run ? NULL
                                                                  : "-"}};
    return output_apart("train", written, sizeof written / sizeof *written);
}

/* What is written is not what is read, but for a checkpoint that goes on. */
static int check_inputs(const request *q)
{
    const char *const written[] = {q->digests, q->checkpoint, q->write_run};
    trace_inputs_add_path(q->check); /* what is read later */
    trace_inputs_add_path(q->resume);
    int code = output_check(q->form.path);
    for (size_t i = 0; !code && i < sizeof written / sizeof *written; i++)
        code = written[i] ? output_check(written[i]) : 0;
    return code;
}

/* A folder for each. */
static int check_names(const request *q)
{
    for (size_t i = 0; q->trace && i < q->n_jobs; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(q->jobs[i].name, q->jobs[k].name) == 0)
                return fail(EXIT_USAGE, "train: --trace: two policies are called '%s'", q->jobs[i].name);
    return 0;
}

/* ---- the command ---- */

/* The run, or its text, that was asked for. */
static int do_request(request *q, const option_list *policies, train_report *report)
{
    int code = check_outputs(q);
    trace_inputs_renew(q->resume, q->checkpoint);
    if (!code)
        code = make_jobs(q, policies);
    if (!code)
        code = check_inputs(q);
    if (!code)
        code = check_names(q);
    if (code)
        return code;
    report->compare = (q->compare || q->n_jobs > 1) && (report->style == REPORT_TEXT || report->style == REPORT_CSV);
    report->decoder = train_is_decoder(&q->jobs[0].run.settings);
    report->as_published = q->as_published;
    report->resumed = q->resume;
    report->checked = q->check;
    return q->write_run ? write_run(q) : train_all(q, report);
}

static void clear_request(request *q)
{
    for (size_t i = 0; i < q->n_jobs; i++) {
        train_run_clear(&q->jobs[i].run);
        train_total_clear(&q->totals[i]);
    }
    free(q->jobs);
    free(q->totals);
    policy_list_clear(&q->policies);
}

int cmd_train(const command *self, int argc, char **argv)
{
    option_list policies = {0};
    request q = {0};
    train_words *w = &q.words;
    *w = (train_words){.settings = &q.settings, .overrides = &q.overrides};
    const char *device = "cpu";
    int first;
    const option_row rows[] = {
        POLICY_OPTION_ROW(policies),
        {0, "compare", OPTION_FLAG, &q.compare, NULL,
         "run several policies side by side; without --policy: fp32, fp16 with every loss scaling, bf16 "
         "with and without masters, fp8; gpt and llama: also blocks"},
        {0, "as-published", OPTION_FLAG, &q.as_published, NULL,
         "with several policies, clip as each one says (default: --clip for all; without --clip none, for "
         "gpt and llama torch:1)"},
        TRAIN_WORD_ROWS(*w, q.settings, q.overrides),
        COMMON(
            "policy compare net steps batch seed depth width gpt2 text optimizer lr clip loss-scaling every trace checkpoint resume json output device"),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "every", OPTION_COUNT, &q.every, "N",
         "show a row of the table, with the test result, every N steps (default: ten rows)"},
        JSON_OPTION_ROW(q.form, "mpsim.train/1"),
        NDJSON_OPTION_ROW(q.form, "step"),
        CSV_OPTION_ROW(q.form, ": a row per step; of several policies, a row each"),
        OUTPUT_OPTION_ROW(q.form),
        {0, "trace", OPTION_OUTPUT, &q.trace, "DIR", "record tensors as a trace, for info, stat, replay and plot"},
        {0, "trace-every", OPTION_COUNT, &q.trace_every, "N",
         "record the first step and every N-th (default: ten steps)"},
        {0, "trace-steps", OPTION_STRING, &q.trace_steps, "LIST", "record these steps, as 1,2,10-20"},
        {0, "checkpoint", OPTION_OUTPUT, &q.checkpoint, "FILE", "save the run at its end"},
        {0, "checkpoint-every", OPTION_COUNT, &q.checkpoint_every, "N", "also save the run every N steps"},
        {0, "resume", OPTION_INPUT, &q.resume, "FILE",
         "continue from a checkpoint, with its options unless given. Bits equal an uninterrupted run, "
         "unless the schedule depends on --steps and --steps grew"},
        {0, "digests", OPTION_OUTPUT, &q.digests, "FILE", "write a digest of every step to FILE"},
        {0, "digests-tensors", OPTION_FLAG, &q.digest_tensors, NULL, "also write a digest of every tensor"},
        {0, "digests-blocks", OPTION_FLAG, &q.digest_blocks, NULL,
         "write digests of blocks of 2 KiB, which take less time. A file says which digests it has"},
        {0, "check-digests", OPTION_INPUT, &q.check, "FILE",
         "compare with the digests in FILE; stop at the first difference with exit code 1"},
        {0, "write-run", OPTION_OUTPUT, &q.write_run, "FILE", "write the whole run as text without training"},
        {0, "run", OPTION_INPUT, &q.run, "FILE", "train the run that --write-run wrote"},
        {0, "device", OPTION_CHOICE, &device, "cpu|cuda",
         "emulate on the CPU (default), or with CUDA kernels that are meant to give the same bits (tested "
         "devices: data/gpu); cuda times the steps and does not count lost updates"},
        THREADS_OPTION_ROW(q.form, ""),
        QUIET_OPTION_ROW(q.form, "progress and notes"),
        EXCLUDES("FILE", "", "no operand is taken"),
        NEEDS("", "policy compare run resume", "--policy FILE, as fp32 or pytorch-amp-fp16; or --compare"),
        EXCLUDES("run", "policy compare steps", "the file of --run describes the whole run"),
        EXCLUDES("run resume+!policy+!compare", TRAIN_WORDS, "their files describe the whole run"),
        NEEDS("as-published", "compare policy#1", NULL),
        EXCLUDES("as-published", "clip", NULL),
        EXCLUDES("policy#1 compare+!policy", "resume checkpoint digests check-digests write-run",
                 "these options need a single policy"),
        EXCLUDES("write-run", "output checkpoint trace digests check-digests", "nothing is trained"),
        EXCLUSIVE("trace-every trace-steps", NULL),
        NEEDS("trace-every trace-steps", "trace", NULL),
        NEEDS("checkpoint-every", "checkpoint", NULL),
        NEEDS("digests-tensors digests-blocks", "digests", NULL),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
    };
    train_report report = {0};
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code < 0) {
        report.style = report_options_style(&q.form);
        report_options_threads(&q.form);
        code = train_device_find(&q.device, device);
        if (!code)
            code = do_request(&q, &policies, &report);
    }
    clear_request(&q);
    option_list_clear(&policies);
    train_words_clear(w);
    return code;
}
