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
    "Groups are mpfr, nvidia, cpu, vectors and gpu; without one all that can run here do. What cannot\n"
    "is listed as skipped, with the reason. The exit code is 1 if anything differs in any bit, 5 if\n"
    "nothing could be compared.\n"
    "\n"
    "--vectors reads the npz files of a folder (default: MPSIM_HWVECTORS): arrays TYPE.a, TYPE.b\n"
    "[n, K], TYPE.c [n], TYPE.d_fp32, TYPE.d_fp16 [n], TYPE a format such as fp16, bf16, tf32,\n"
    "e4m3, e5m2; d = c + a b as the GPU computed it. The file's name tells the GPU: a100.npz,\n"
    "h200-sxm.npz, rtx4090.npz. A set is reproduced if one model of that architecture gives every\n"
    "bit; where no c was used (8-bit types with a binary32 result) the table says c = 0.\n"
    "\n"
    "Examples:\n"
    "  mpsim verify                                 what can run here, in seconds\n"
    "  mpsim verify --thorough nvidia               all 2^32 binary32 inputs\n"
    "  mpsim verify cpu                             every instruction that this CPU has beside its model;\n"
    "                                               --thorough: 10^7 results of each\n"
    "  mpsim verify vectors --vectors recorded/     replay outputs of real tensor cores\n"
    "  mpsim verify vectors --vectors recorded/ --model '*'\n"
    "                                               all models that give every bit of a set\n"
    "  mpsim verify vectors --vectors recorded/ --model hopper-fp16-fp32,hopper-fp16-fp32:F=24\n"
    "                                               what a wrong parameter would give\n";

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

/* The models of --model, each of which is a list of names. */
static int parse_models(model_list *models, const option_list *names)
{
    size_t size = 1;
    for (size_t i = 0; i < names->count; i++)
        size += strlen(names->items[i]) + 1;
    char *all = need_memory(1, size), *at = all;
    for (size_t i = 0; i < names->count; i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), names->items[i]);
    const int code = names->count ? dot_model_list_make(models, "verify", all, NULL, NULL) : 0;
    free(all);
    return code;
}

static int read_architecture(void *architecture, const char *where, const char *text)
{
    const char *found = verify_architecture_find(text);
    *(const char **)architecture = found;
    return found ? 0 : fail(EXIT_USAGE, "%s: '%s' is not one of %s", where, text, verify_architecture_list());
}

static void print_list(const verify *v, FILE *to)
{
    table *t = table_new("<group|<proves|<needs|<here");
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

static int run_groups(verify *v, char **names)
{
    int code = 0;
    for (const verify_group *g = verify_groups; !code && g->name; g++)
        if (wants(names, g->name))
            code = verify_run(v, g);
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

int cmd_verify(const command *self, int argc, char **argv)
{
    int list = 0, first;
    const char *vectors = NULL, *record = NULL;
    report_options form = {0};
    option_list names = {0};
    verify v = {.seed = 1};
    const option_row table_of_options[] = {
        {0, "list", OPTION_FLAG, &list, NULL, "list the groups, what they need, and what is here"},
        {0, "thorough", OPTION_FLAG, &v.thorough, NULL, "more inputs: minutes instead of seconds"},
        {0, "seed", OPTION_COUNT, &v.seed, "N", "seed of random inputs (default 1)"},
        {0, "Recorded outputs", OPTION_HEADING, NULL, NULL, NULL},
        {0, "vectors", OPTION_INPUT, &vectors, "DIR", "folder of npz files, or one of them (default: MPSIM_HWVECTORS)"},
        {0, "architecture", OPTION_READ, READS(read_architecture, &v.architecture, NULL), "NAME",
         "of files whose names do not tell it: volta, ampere, hopper, ..."},
        {0, "model", OPTION_LIST, &names, "NAME",
         "replay with this model instead; a list of names, patterns as 'hopper-*', and names "
         "with changes, as hopper-fp16-fp32:F=24; only the group vectors runs"},
        {0, "Instructions of this CPU", OPTION_HEADING, NULL, NULL, NULL},
        {0, "record", OPTION_OUTPUT, &record, "FILE", "write what they gave, as the files of data/cpu; group cpu"},
        EXCLUDES("list", "GROUP model json ndjson csv record", NULL),
        EXCLUSIVE("model architecture", NULL),
        NEEDS("vectors architecture model", "GROUP=vectors !GROUP", NULL),
        NEEDS("record", "GROUP=cpu !GROUP+!model", NULL),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(form, "mpsim.verify/1"),
        NDJSON_OPTION_ROW(form, "row"),
        CSV_OPTION_ROW(form, ""),
        OUTPUT_OPTION_ROW(form),
        THREADS_OPTION_ROW(form, ""),
        QUIET_OPTION_ROW(form, "progress"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    model_list models = {0};
    output out = {0}, to_record = {0};
    if (code >= 0)
        goto done;
    const char *env = getenv("MPSIM_HWVECTORS");
    v.vectors = vectors ? vectors : env && *env ? env : NULL;
    progress_steps("", 0);
    static char vectors_group[] = "vectors", *only_vectors[] = {vectors_group, NULL};
    if ((code = parse_models(&models, &names)))
        goto done;
    v.models = models.items;
    v.n_models = models.count;
    char **groups = v.n_models && first == argc ? only_vectors : argv + first;
    report_options_threads(&form);
    if ((code = check_groups(groups)))
        goto done;
    if (v.n_models && !v.vectors) {
        code = fail(EXIT_USAGE, "verify: --model replays recorded vectors: say --vectors DIR");
        goto done;
    }
    const output_named written[] = {{"--record", record}, {"the report", form.path ? form.path : "-"}};
    if ((code = output_apart("verify", written, sizeof written / sizeof *written)) ||
        (code = output_open(&out, form.path)))
        goto done;
    if (record && (code = output_open(&to_record, record))) {
        output_abandon(&out);
        goto done;
    }
    v.record = to_record.file;
    if (!list && (code = run_groups(&v, groups))) {
        output_abandon(&out);
        if (record)
            output_abandon(&to_record);
        goto done;
    }
    if (list)
        print_list(&v, out.file);
    else
        verify_print(&v, report_options_style(&form), out.file);
    code = output_close(&out);
    if (record && !code)
        code = output_close(&to_record);
    else if (record)
        output_abandon(&to_record);
    if (!code && !list)
        code = verdict(&v);
done:
    verify_clear(&v);
    dot_model_list_clear(&models);
    option_list_clear(&names);
    return code;
}
