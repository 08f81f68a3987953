/* cmd.c -- mpsim replay: a recorded run through policies. */
#include "../commands.h"
#include "../array/need.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../input/steps.h"
#include "../process/world.h"
#include "../policy/list.h"
#include "impl.h"

#include <threads/parallel.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char more[] =
    "In each step, tensors are cast as the policy says, gradients times the loss scale. Gradients are\n"
    "then checked, unscaled and clipped; the optimizer updates the weights; the loss scaler and the FP8\n"
    "scales are updated. No model is run: recorded gradients belong to recorded weights.\n"
    "\n"
    "Reference runs in fp32 and binary64 use the same gradients, the policy's optimizer and clipping, in\n"
    "mpsim's own order (variant ieee). In fp32, too, an update below half an ulp of its weight changes\n"
    "nothing. Stochastic rounding loses single updates, not their mean.\n"
    "\n"
    "uncompared    recorded numbers that the policy keeps in another format\n"
    "most, lacks   tensors that differ most from the record; facts that the record lacks, and values that\n"
    "              may differ for that reason\n"
    "policy's      settings of the policy that replace recorded settings\n"
    "blank cells   nothing to count (no such tensors, or a skipped step)\n"
    "\n"
    "Memory: about 150 bytes for each weight, 110 with --no-reference.\n"
    "\n"
    "Examples:\n"
    "  mpsim replay --policy pytorch-amp-fp16 trace/      a bundled policy by its name\n"
    "  mpsim replay --policy mine.yaml --tensors trace/   every tensor\n"
    "  mpsim replay --policy data/policies trace/         all of a folder, side by side\n"
    "  mpsim replay --policy mine.yaml --amp trace/       one [AMP] line per step\n";

typedef struct run {
    replay_report report;
    policy_list policies;
    replay_total *totals; /* of each */
    size_t now;
} run;

static int add_policies(run *r, const option_list *paths)
{
    const int code = policy_list_add_all(&r->policies, "replay", paths);
    const size_t n = r->policies.count;
    if (code)
        return code;
    r->totals = need_memory(n, sizeof *r->totals);
    for (size_t i = 0; i < n; i++)
        replay_total_init(&r->totals[i]);
    return 0;
}

/* Standard input and pipes can be read once. */
static int check_once(const run *r, char **operands, int n)
{
    for (int i = 0; i < n; i++) {
        struct stat st;
        const int pipe = strcmp(operands[i], "-") == 0 ||
                         (stat(operands[i], &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
        const int twice = r->policies.from_stdin && strcmp(operands[i], "-") == 0;
        if (pipe && (r->policies.count > 1 || twice))
            return fail(EXIT_USAGE, "replay: '%s' can be read only once: give one policy, in a file", operands[i]);
    }
    return 0;
}

/* The same rank twice in a step: two runs, or a run and its copy. */
static int check_ranks_once(const input *in, const input_step *steps)
{
    for (size_t i = 1; i < in->tree.count; i++)
        if (steps[i].step >= 0 && steps[i].rank >= 0 && steps[i].step == steps[i - 1].step &&
            steps[i].rank == steps[i - 1].rank) {
            trace_error error;
            trace_error_set(&error, EXIT_DATA, in->tree.paths[i], UINT64_MAX,
                            "step %" PRId64 " of rank %" PRId64 " a second time: two runs at once?", steps[i].step,
                            steps[i].rank);
            return fail(error.exit, "%s", error.text);
        }
    return 0;
}

static int done(const replay_step *s, void *context)
{
    run *r = context;
    replay_total_add(&r->totals[r->now], s);
    replay_report_step(&r->report, s);
    return 0;
}

static void describe(replay_report *r, const replay_options *o, const input *in)
{
    r->document = (replay_document){.weights = replay_weights_words[o->weights],
                                    .seed = o->seed,
                                    .references = o->references,
                                    .inputs = (const char *const *)in->tree.paths,
                                    .n_inputs = in->tree.count,
                                    .unread = &in->unread};
}

/* A replay has no products, and of attention no scales. */
static void note_attention(const policy *p)
{
    int given = 0;
    for (size_t i = 0; i < p->count; i++)
        given |= p->plans[i].fp8_attention;
    if (given)
        note("%s: fp8_attention has no effect in a replay", p->name);
}

static int replay_policies(run *r, input *in, const replay_options *o)
{
    int code = 0;
    describe(&r->report, o, in);
    replay_report_begin(&r->report);
    for (r->now = 0; r->now < r->policies.count && !code; r->now++) {
        const policy *p = &r->policies.items[r->now];
        note_attention(p);
        replay_report_policy(&r->report, p);
        code = replay_run(p, in, o, done, r, r->totals[r->now].unmatched, sizeof r->totals[r->now].unmatched);
        if (!code && r->totals[r->now].steps == 0)
            code = fail(EXIT_DATA, "replay: no step with activations or gradients among the selected tensors");
        replay_total_sort(&r->totals[r->now]);
        if (!code)
            replay_report_total(&r->report, &r->totals[r->now]);
    }
    if (!code && r->report.compare)
        replay_report_compare(&r->report, r->policies.items, r->totals, r->policies.count);
    if (!code && replay_report_end(&r->report))
        code = ferror(r->report.file) ? output_failed() : fail(EXIT_IO, "out of memory");
    if (code)
        replay_report_abandon(&r->report);
    return code;
}

/* Standard input is one process's. */
static int check_request(const option_list *policies)
{
    for (size_t i = 0; i < policies->count && world_size() > 1; i++)
        if (strcmp(policies->items[i], "-") == 0)
            return fail(EXIT_USAGE, "replay: '-' can be read by one process only: give the policy in a file");
    return 0;
}

/* The files in the order of their steps, none twice, none of them written to. */
static int order_input(input *in, const char *path)
{
    input_step *steps = NULL;
    int code = output_check(path);
    if (!code)
        code = input_order_steps(in, &steps);
    if (!code)
        code = check_ranks_once(in, steps);
    free(steps);
    return code;
}

static int report_to(run *r, input *in, const replay_options *o, const char *path)
{
    const int several = r->policies.count > 1;
    output out = {0};
    const int rows = r->report.style == REPORT_JSON || r->report.style == REPORT_NDJSON;
    int code = r->report.style == REPORT_NDJSON ? output_open_stream(&out, path)
                                                : output_open_report(&out, path, r->report.style);
    if (code)
        return code;
    r->report.file = out.file;
    r->report.several = several;
    r->report.compare = several && !r->report.amp && !rows && !r->report.tensors;
    return output_end(&out, replay_policies(r, in, o));
}

/* Policies and operands read, replayed, reported. */
static int replay_operands(run *r, const option_list *policies, const input_options *io, const replay_options *o,
                           char **operands, int n, const char *path)
{
    input in = {0};
    parallel_init(0);
    int code = add_policies(r, policies);
    if (!code)
        code = check_once(r, operands, n);
    if (!code)
        code = input_open(&in, "replay", io, operands, n);
    in.needs_kinds = in.lists_unread = 1;
    if (!code)
        code = order_input(&in, path);
    if (!code)
        code = report_to(r, &in, o, path);
    input_close(&in);
    return code;
}

int cmd_replay(const command *self, int argc, char **argv)
{
    option_list policies = {0};
    input_options io = {0};
    replay_options o = {0};
    report_options form = {0};
    int weights = 0, tensors = 0, amp = 0, no_reference = 0, list = 0, first;
    const option_row rows[] = {
        POLICY_OPTION_ROW(policies),
        {0, "list", OPTION_FLAG, &list, NULL, "list the bundled policies"},
        {0, "weights", OPTION_WORD, &weights, "auto|recorded|carry",
         "weights at the start of a step: the replay's own over consecutive steps, else recorded (auto); "
         "always recorded; always the replay's own (carry)"},
        {0, "no-reference", OPTION_FLAG, &no_reference, NULL, "leave out the reference runs in fp32 and binary64"},
        {0, "seed", OPTION_COUNT, &o.seed, "N", "seed of stochastic rounding (default 0)"},
        COMMON("policy list weights no-reference match kind tensors json csv output"),
        {0, "Input", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(io),
        LOSS_SCALE_OPTION_ROW(io),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "tensors", OPTION_FLAG, &tensors, NULL, "list every tensor (default: those that lose most)"},
        {0, "amp", OPTION_FLAG, &amp, NULL,
         "print one line per step, as training scripts log it, with the scale after the step"},
        JSON_OPTION_ROW(form, "mpsim.replay/1"),
        NDJSON_OPTION_ROW(form, "step"),
        CSV_OPTION_ROW(form, ": a row per step, or with --tensors per tensor; of several policies, a row each"),
        COLUMNS("Columns of steps", &replay_step_record, SHOW_MASTER | SHOW_F64),
        COLUMNS("Columns of policies", &replay_total_record, 0),
        OUTPUT_OPTION_ROW(form),
        QUIET_OPTION_ROW(form, "notes"),
        NEEDS("", "policy list", "name one, as pytorch-amp-fp16; see 'mpsim help policies'"),
        NEEDS("", "TRACE list", NULL),
        EXCLUDES("amp", "json ndjson csv", NULL),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
    };
    run r = {.totals = NULL};
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code < 0 && list)
        code = policy_list_print(stdout);
    if (code < 0) {
        r.report.tensors = tensors;
        r.report.amp = amp;
        o.references = !no_reference;
        r.report.style = report_options_style(&form);
        o.weights = (replay_weights)weights;
        code = check_request(&policies);
        if (!code)
            code = replay_operands(&r, &policies, &io, &o, argv + first, argc - first, form.path);
    }
    for (size_t i = 0; r.totals && i < r.policies.count; i++)
        replay_total_clear(&r.totals[i]);
    free(r.totals);
    policy_list_clear(&r.policies);
    option_list_clear(&policies);
    input_options_clear(&io);
    return code;
}
