/* cmd.c -- mpsim report: one page that tells what casts do to a recorded run, for a browser. */
#include "../process/output.h"
#include "../commands.h"
#include "page.h"

#include <string.h>

static const char more[] =
    "The page begins with verdicts: what each format loses, which loss scales keep the gradients, whether\n"
    "bf16 weights stall. Then come the advice as a policy, tables by kind and step, figures, the loss\n"
    "scaler over the steps, a table of all tensors, and the commands that give each number. A click on a\n"
    "title sorts a table.\n"
    "\n"
    "The page is one file of less than 5 MB that loads nothing from elsewhere. Its numbers are those of\n"
    "mpsim stat, advise and scaler. gnuplot draws the figures; without gnuplot the page has tables alone.\n"
    "The same files give the same page. A date appears only if SOURCE_DATE_EPOCH is set.\n"
    "\n"
    "Without --scale, tensors are cast as recorded, and in fp16 also at the advised loss scale.\n"
    "\n"
    "A folder that report.save of mpsim.emulate has written holds statistics instead of tensors. Its page\n"
    "has the text of the report, the training, figures and a row for each tensor, with the casts and\n"
    "bounds of the run.\n"
    "\n"
    "Examples:\n"
    "  mpsim report trace/                           then open report.html in a browser\n"
    "  mpsim report -f fp16,bf16,nvfp4,mxfp4 -k wgrad,agrad trace/ -o gradients.html\n"
    "  mpsim report --min-sqnr 20dB --title 'run 7, 124M' trace/ -o report.html\n";

/* The files are read several times. */
static int check_files(const input *in)
{
    for (size_t i = 0; i < in->tree.count; i++)
        if (!input_is_file(in->tree.paths[i]))
            return fail(EXIT_USAGE,
                        "report: '%s' can be read only once, but a file is needed: store the data in a file",
                        in->tree.paths[i]);
    return 0;
}

static int write_page(const page *p)
{
    output out;
    int code = output_open(&out, p->options->form.path);
    if (code)
        return code;
    page_write(p, out.file);
    return output_close(&out);
}

static int told(const page *p, int code)
{
    if (!code && p->options->unnamed)
        note("report: the page is %s: open it in a browser", p->options->form.path);
    return code;
}

static int work(page *p)
{
    const page_options *o = p->options;
    report_options_threads(&o->form);
    if (page_is_saved(p))
        return told(p, page_saved(p));
    int code = input_open(&p->in, "report", &o->settings.from, p->operands, p->n_operands);
    p->in.needs_kinds = 1;
    if (!code)
        input_plan(&p->in, o->no_digests ? 2 : 3); /* stat, advise, digests */
    if (!code && !(code = output_check(o->form.path)) && !(code = check_files(&p->in)) &&
        !(code = page_begin_figures(p)) && !(code = page_measure(p)) && !(code = page_find_history(p)) &&
        !(code = page_draw(p)) && !(code = page_digest(p)))
        code = told(p, write_page(p));
    if (!code)
        input_note_empty(p->in.first_empty, p->in.empty);
    return code;
}

int cmd_report(const command *self, int argc, char **argv)
{
    page_options o = {.settings = {.from = {.names_files = 1}}};
    int first;
    const option_row rows[] = {
        COMMON("format scale max-underflow max-overflow min-sqnr max-lost compute match kind title no-figures output"),
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.settings.to.formats, "LIST",
         "number formats and block recipes, as for mpsim stat (default fp16,bf16,e4m3,e5m2,mxfp8,nvfp4)"},
        {'s', "scale", OPTION_STRING, &o.settings.to.scales, "LIST",
         "loss scales that multiply gradients before the cast, as 1,2^16 (default: 1, and the advised "
         "scale)"},
        {0, "scale-kinds", OPTION_LIST, &o.settings.scaled, "LIST",
         "kinds of tensors that the loss scale multiplies (default agrad,dgrad,wgrad), or all"},
        TARGET_OPTION_ROWS(o.settings.to),
        {0, "rht", OPTION_STRING, &o.settings.to.hadamard, "N",
         "also apply each recipe after a random Hadamard transform of groups of N: 16, 32, 64 or 128"},
        {0, "axis", OPTION_STRING, &o.settings.to.axis, "AXIS",
         "block direction: rows (the last dimension; default), columns, or both"},
        {0, "Bounds", OPTION_HEADING, NULL, NULL, NULL},
        ADVISE_BOUND_ROWS(o.words),
        ADVISE_COMPUTE_ROW(o.words),
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.settings.from),
        LOSS_SCALE_OPTION_ROW(o.settings.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "title", OPTION_STRING, &o.title, "TEXT", "title of the page (default: the name of the trace)"},
        {0, "no-figures", OPTION_FLAG, &o.no_figures, NULL, "leave out figures"},
        {0, "no-digests", OPTION_FLAG, &o.no_digests, NULL,
         "leave out SHA-256 digests, which need another reading of all files"},
        {'o', "output", OPTION_OUTPUT, &o.form.path, "FILE",
         "write the page to FILE (default report.html; - is standard output)"},
        THREADS_OPTION_ROW(o.form, ""),
        QUIET_OPTION_ROW(o.form, "notes"),
        NEEDS("", "TRACE", NULL),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, rows, argc, argv, &first, more);
    o.unnamed = !o.form.path;
    if (o.unnamed)
        o.form.path = "report.html";
    if (code < 0) {
        page p = {.options = &o, .operands = argv + first, .n_operands = argc - first};
        code = work(&p);
        page_clear_figures(&p);
        page_clear_history(&p);
        page_clear_measured(&p);
    }
    stat_settings_clear(&o.settings);
    return code;
}
