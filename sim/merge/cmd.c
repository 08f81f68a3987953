/* cmd.c -- mpsim merge: parts of a report put together. */
#include "../array/need.h"
#include "../commands.h"
#include "../process/textfile.h"
#include "merge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char more[] =
    "'mpsim stat --shard k/n' writes the parts. All n parts, in any order, give the report and the exit\n"
    "code of one run over all files, byte for byte. The parts hold the options that decide the numbers\n"
    "(formats, scales, rounding, selection). Options here decide how the report is shown; 'mpsim stat\n"
    "--help' explains --fail-if. A part that is damaged, missing, repeated, or made with other options or\n"
    "files is an error that names the part, exit code 3. Only the version of mpsim that wrote a part\n"
    "reads it.\n"
    "\n"
    "Examples:\n"
    "  mpsim stat --shard 1/2 -o part.1 trace/ & \\\n"
    "            mpsim stat --shard 2/2 -o part.2 trace/; wait\n"
    "  mpsim merge part.1 part.2                      the text of 'mpsim stat trace/'\n"
    "  mpsim merge --json -o report.json part.*\n"
    "  mpsim merge --partial -o node.1 part.1 part.2    a larger part, to merge again\n"
    "  mpsim merge --list part.*\n";

typedef struct options {
    stat_form form;
    int partial, list;
} options;

/* A part that comes through a pipe is kept in memory, since parts are read twice. */
static int take_pipe(part_source *source, const char *path)
{
    enum { MOST = 64 << 20 };
    struct stat st;
    trace_error error;
    source->name = path;
    if (strcmp(path, "-") != 0 && (stat(path, &st) != 0 || !S_ISFIFO(st.st_mode)))
        return 0;
    source->bytes = text_file_read(path, MOST, &source->n, &error);
    return source->bytes ? 0 : fail(error.exit, "%s", error.text);
}

static int merge_operands(const options *o, char **operands, int n)
{
    const char *path = o->form.out.path;
    part_source *sources = need_memory((size_t)n, sizeof *sources);
    int code = 0;
    for (int i = 0; i < n && !code; i++)
        code = take_pipe(&sources[i], operands[i]);
    if (!code)
        code = o->list      ? merge_list(sources, (size_t)n, path)
               : o->partial ? merge_part(sources, (size_t)n, path)
                            : merge_report("merge", sources, (size_t)n, &o->form);
    for (int i = 0; i < n; i++)
        free((void *)(uintptr_t)sources[i].bytes);
    free(sources);
    return code;
}

int cmd_merge(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row table_of_options[] = {
        STAT_FORM_ROWS(o.form),
        JSON_OPTION_ROW(o.form.out, "mpsim.stat/1"),
        NDJSON_OPTION_ROW(o.form.out, "line, as they come"),
        CSV_OPTION_ROW(o.form.out, ": a row per tensor, format and scale; see --level"),
        {0, "partial", OPTION_FLAG, &o.partial, NULL, "write one part that holds the shards of all PARTs"},
        {0, "list", OPTION_FLAG, &o.list, NULL, "describe each part"},
        OUTPUT_OPTION_ROW(o.form.out),
        QUIET_OPTION_ROW(o.form.out, "notes"),
        NEEDS("", "PART", NULL),
        EXCLUSIVE("partial list", NULL),
        EXCLUDES("partial list", "json ndjson csv tensors level fail-if", "--partial and --list write no report"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        o.form.style = report_options_style(&o.form.out);
        code = merge_operands(&o, argv + first, argc - first);
    }
    stat_form_clear(&o.form);
    return code;
}
