/* cmd.c -- mpsim verify: the proofs that a user can run. */
#include "../array/need.h"
#include "../commands.h"
#include "../process/output.h"
#include "../process/progress.h"
#include "../cli/reportoptions.h"
#include "../dot/models.h"
#include "impl.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char more[] =
    "Groups are mpfr, nvidia, cpu, vectors and gpu (default: all). Groups that cannot run here are listed as\n"
    "skipped, with the reason. Exit code: 1 if any bit differs, 5 if nothing was compared.\n"
    "\n"
    "--vectors reads npz files with arrays TYPE.a, TYPE.b [n, K], TYPE.c [n], TYPE.d_fp32, TYPE.d_fp16 [n],\n"
    "where TYPE is a format such as fp16, bf16, tf32, e4m3, e5m2, and d = c + a b is the result of the GPU.\n"
    "The file's name tells the GPU: a100.npz, h200-sxm.npz, rtx4090.npz. A set is reproduced if one model\n"
    "of that architecture gives every bit. If the recording used no c (8-bit types with a binary32 result),\n"
    "the table says c = 0.\n"
    "\n"
    "Examples:\n"
    "  mpsim verify                                 all groups, in seconds\n"
    "  mpsim verify --thorough nvidia               all 2^32 binary32 inputs\n"
    "  mpsim verify cpu                             compare this CPU's instructions with their models\n"
    "  mpsim verify vectors --vectors recorded/     replay outputs of real tensor cores\n"
    "  mpsim verify vectors --vectors recorded/ --model '*'    all models that give every bit of a set\n"
    "  mpsim verify vectors --vectors recorded/ \\\n"
    "            --model hopper-fp16-fp32,hopper-fp16-fp32:F=24    what a wrong parameter gives\n";

/* ---- the command line ---- */

static const verify_group *find_group(const char *name)
{
    for (const verify_group *g = verify_groups; g->name; g++)
        if (strcmp(g->name, name) == 0)
            return g;
    return NULL;
}

static int check_groups(char **names)
{
    for (; *names; names++) {
        suggestion s;
        if (find_group(*names))
            continue;
        suggestion_init(&s, *names);
        for (const verify_group *g = verify_groups; g->name; g++)
            suggestion_consider(&s, g->name);
        return fail(EXIT_USAGE, "verify: '%s' is not a group%s", *names, suggestion_end(&s, "; see --list"));
    }
    return 0;
}

/* Whether the operands, or the lack of them, ask for a group. */
static int wants(char **names, const char *group)
{
    if (!*names)
        return 1;
    for (; *names; names++)
        if (strcmp(*names, group) == 0)
            return 1;
    return 0;
}

static int read_architecture(void *architecture, const char *where, const char *text)
{
    const char *found = verify_architecture_find(text);
    *(const char **)architecture = found;
    return found ? 0 : fail(EXIT_USAGE, "%s: '%s' is not one of %s", where, text, verify_architecture_list());
}

static void print_list(const verify *v, FILE *to)
{
    table *t = table_new("<group|<proves|2<needs|<here");
    for (const verify_group *g = verify_groups; g->name; g++) {
        char here[200];
        (void)g->here(v, here, sizeof here);
        table_cell(t, "%s", g->name);
        table_cell(t, "%s", g->proves);
        table_cell(t, "%s", g->needs);
        table_cell(t, "%s", here);
    }
    table_print(t, to, "");
    table_free(t);
}

/* ---- the run ---- */

/* What the command line asks for. */
typedef struct request {
    verify v;
    option_list names; /* of --model, each a list of names */
    model_list models;
    const char *vectors, *record;
    report_options form;
    int list;
} request;

/* What is replayed: the models of --model, and the recordings of --vectors or of the environment. */
static int find_replayed(request *q)
{
    const char *set = getenv("MPSIM_HWVECTORS");
    char *names = need_join(q->names.items, q->names.count, ",");
    const int code = q->names.count ? dot_model_list_make(&q->models, "verify", names, NULL, NULL) : 0;
    free(names);
    q->v.vectors = q->vectors ? q->vectors : set && *set ? set : NULL;
    q->v.models = q->models.items;
    q->v.n_models = q->models.count;
    return code;
}

/* What the rows of rules do not say: groups that there are, recordings for --model, outputs that are not the same. */
static int check(const request *q, char **groups)
{
    const output_named written[] = {{"--record", q->record}, {"the report", q->form.path ? q->form.path : "-"}};
    const int code = check_groups(groups);
    if (code)
        return code;
    if (q->v.n_models && !q->v.vectors)
        return fail(EXIT_USAGE, "verify: --model replays recorded vectors: name them with --vectors DIR");
    return output_apart("verify", written, sizeof written / sizeof *written);
}

static int report_groups(request *q, char **groups, FILE *to)
{
    int code = 0;
    for (const verify_group *g = verify_groups; !code && g->name; g++)
        if (wants(groups, g->name))
            code = verify_run(&q->v, g);
    if (!code)
        verify_print(&q->v, report_options_style(&q->form), to);
    return code;
}

/* 1 for mismatches; that of a bad file; 4 for what could not be compared though it should have been;
 * 5 if nothing was compared at all. */
static int verdict(const verify *v)
{
    int failed = 0, done = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (v->rows[i].mismatches)
            return EXIT_CHECK;
        failed |= v->rows[i].status == VERIFY_FAILED;
        done |= v->rows[i].status == VERIFY_DONE;
    }
    if (v->bad_file) /* it has been reported */
        return v->bad_file;
    if (failed)
        return fail(EXIT_IO, "verify: something could not be compared; see the table");
    return done ? 0 : EXIT_PARTIAL;
}

/* Both outputs appear, or none does. */
static int write_outputs(request *q, char **groups)
{
    output out, record = {0};
    int code = report_options_open(&out, &q->form);
    if (code)
        return code;
    if (q->record && (code = output_open(&record, q->record)))
        return output_end(&out, code);
    q->v.record = record.file;
    if (q->list)
        print_list(&q->v, out.file);
    else
        code = report_groups(q, groups, out.file);
    code = output_end(&out, code);
    if (q->record)
        code = output_end(&record, code);
    return code || q->list ? code : verdict(&q->v);
}

int cmd_verify(const command *self, int argc, char **argv)
{
    static char vectors_group[] = "vectors", *only_vectors[] = {vectors_group, NULL};
    request q = {.v = {.seed = 1}};
    int first;
    const option_row table_of_options[] = {
        {0, "list", OPTION_FLAG, &q.list, NULL, "list the groups, their requirements, and which can run here"},
        {0, "thorough", OPTION_FLAG, &q.v.thorough, NULL, "test more inputs: minutes instead of seconds"},
        {0, "seed", OPTION_COUNT, &q.v.seed, "N", "seed of random inputs (default 1)"},
        {0, "Recorded outputs", OPTION_HEADING, NULL, NULL, NULL},
        {0, "vectors", OPTION_INPUT, &q.vectors, "DIR",
         "folder of npz files, or one npz file (default: MPSIM_HWVECTORS)"},
        {0, "architecture", OPTION_READ, READS(read_architecture, &q.v.architecture, NULL), "NAME",
         "architecture of files whose names do not say it: volta, ampere, hopper, ..."},
        {0, "model", OPTION_LIST, &q.names, "NAME",
         "replay vectors with these models: names, patterns as 'hopper-*', names with changes as "
         "hopper-fp16-fp32:F=24"},
        {0, "Instructions of this CPU", OPTION_HEADING, NULL, NULL, NULL},
        {0, "record", OPTION_OUTPUT, &q.record, "FILE",
         "write results of this CPU's instructions, as in data/cpu; group cpu"},
        EXCLUDES("list", "GROUP model json ndjson csv record", NULL),
        EXCLUSIVE("model architecture", NULL),
        NEEDS("vectors architecture model", "GROUP=vectors !GROUP", NULL),
        NEEDS("record", "GROUP=cpu !GROUP+!model", NULL),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(q.form, "mpsim.verify/1"),
        NDJSON_OPTION_ROW(q.form, "row"),
        CSV_OPTION_ROW(q.form, ""),
        OUTPUT_OPTION_ROW(q.form),
        THREADS_OPTION_ROW(q.form, ""),
        QUIET_OPTION_ROW(q.form, "progress"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        progress_steps("", 0);
        report_options_threads(&q.form);
        code = find_replayed(&q);
        char **groups = q.names.count && first == argc ? only_vectors : argv + first;
        if (!code && !(code = check(&q, groups)))
            code = write_outputs(&q, groups);
    }
    verify_clear(&q.v);
    dot_model_list_clear(&q.models);
    option_list_clear(&q.names);
    return code;
}
