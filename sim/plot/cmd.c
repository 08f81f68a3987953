/* cmd.c -- mpsim plot: figures from a report of another command. */
#include "../array/need.h"
#include "../commands.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../process/textfile.h"
#include "../text/words.h"
#include "figures.h"
#include "gnuplot.h"
#include "impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "FIGURE is one of\n"
    "  histogram     share of elements by binary exponent, before and after scaling, with the ranges of the\n"
    "                formats; needs a report with --histogram\n"
    "  ruler         range of each format over the range of each kind of tensor, or with --match of each\n"
    "                tensor, over all steps\n"
    "  sweep         underflow, overflow and SQNR over the loss scale, and the window of safe scales:\n"
    "                no overflow, at most --underflow per cent underflow\n"
    "  scales        scales of blocks by binary exponent for each block recipe, with saturated blocks and\n"
    "                elements; needs a report with block recipes\n"
    "  sqnr          SQNR of formats and block recipes side by side, for each kind of tensor (or --by)\n"
    "  heatmap       underflow, SQNR or the largest magnitude (--column), a row for each tensor (or layer),\n"
    "                a column for each step; of one format or block recipe\n"
    "  accumulation  relative error of dot products over their length K, a curve for each accumulation\n"
    "                model; needs a report with several K\n"
    "  training      training loss, loss scale with skipped steps, and losses by rounding over the steps, a\n"
    "                curve for each policy (and report)\n"
    "  lossscale     loss scales over the steps, with skipped steps, for each scaler or policy, and the\n"
    "                gradient norm if known; of mpsim scaler, log, train or replay\n"
    "  updates       share of lost weight updates over the steps, a curve for each policy\n"
    "  amax          largest magnitude of tensors over the steps, and the FP8 scales of a replay\n"
    "  memory        bytes by component, a bar for each policy; of mpsim memory\n"
    "  ranking       formats and block recipes by SQNR: median and range over tensors and steps, with their\n"
    "                losses\n"
    "  attention     errors and bias of attention in tiles, a row for each model (and tile, of several\n"
    "                reports); of mpsim attention\n"
    "  diff          distance of two runs, a row for each tensor that differs (or layer), a column for each\n"
    "                step; of mpsim diff\n"
    "REPORT is a report of mpsim stat --json or --ndjson or of mpsim.watch; accumulation takes mpsim dot\n"
    "--json, training mpsim train --json, other figures --json of the commands named above. A report has at\n"
    "most 256 MiB, which takes about as much memory. Plot writes PREFIX.dat (data), PREFIX.gp (a script for\n"
    "gnuplot, which you may edit and run again) and the figures. It runs gnuplot 5.4 or later\n"
    "(MPSIM_GNUPLOT: another program) with mpsim's templates (MPSIM_PLOTS: another folder).\n"
    "\n"
    "Examples:\n"
    "  mpsim stat --json --histogram --scale 1,2^16 trace/ -o report.json\n"
    "  mpsim plot histogram --kind agrad -o agrad report.json\n"
    "  mpsim stat --json -f fp16 -s 2^0..2^32 trace/ -o sweep.json\n"
    "  mpsim plot sweep --venue icml sweep.json\n"
    "  mpsim stat --json -f fp16,e4m3,mxfp8:rceil,mxfp8:floor,nvfp4 trace/ \\\n"
    "            -o blocks.json\n"
    "  mpsim plot scales blocks.json; mpsim plot sqnr --venue icml blocks.json\n"
    "  mpsim train --json -P fp32 -P fp16-unscaled -P pytorch-amp-fp16 -o runs.json\n"
    "  mpsim plot training runs.json\n"
    "  mpsim diff --json -o diff.json run-a/ run-b/; mpsim plot diff diff.json\n"
    "  mpsim log --json -o log.json train.log\n"
    "  mpsim plot lossscale --preview log.json\n";

/* Widths of text in inches, of a column and of the page; sources in plots/README.md. */
#define VENUES "none|aaai|acm|aistats|cvpr|eccv|iclr|icml|ieee|jmlr|neurips|tmlr|uai"
static const double venues[][2] = {{5.0, 5.0}, {3.3, 6.975}, {3.337, 7.001}, {3.25, 6.75},  {3.25, 6.875},
                                   {4.8, 4.8}, {5.5, 5.5},   {3.25, 6.75},   {3.487, 7.14}, {6.0, 6.0},
                                   {5.5, 5.5}, {6.5, 6.5},   {3.25, 6.75}};

static int parse_types(unsigned *types, const char *list)
{
    for (const char *s = list; s;) {
        const size_t n = strcspn(s, ",");
        int known = 0;
        for (int i = 0; i < PLOT_TYPES; i++)
            if (strlen(plot_types[i]) == n && strncmp(s, plot_types[i], n) == 0) {
                *types |= 1u << i;
                known = 1;
            }
        if (!known)
            return fail(EXIT_USAGE, "plot: --type: '%.*s' is not one of pdf, png, svg, txt, cairolatex", (int)n, s);
        s = s[n] ? s + n + 1 : NULL;
    }
    return 0;
}

/* The type that the ending of a name says, or -1; *length is then what is before it. */
static int type_of_name(const char *name, size_t *length)
{
    const char *const dot = strrchr(plot_base(name), '.');
    for (int i = 0; dot && dot > plot_base(name) && i < PLOT_TYPES; i++)
        if (1u << i != PLOT_LATEX && strcmp(dot + 1, plot_types[i]) == 0) {
            *length = (size_t)(dot - name);
            return i;
        }
    return -1;
}

/* The prefix of the files; a folder (with its slash) gets the figure's name. LaTeX reads the last part of it. */
static int make_prefix(char **prefix, const char *wanted, const char *figure, unsigned types)
{
    const char *text = wanted ? wanted : figure;
    size_t n = strlen(text);
    type_of_name(text, &n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return fail(EXIT_USAGE, "plot: --output: a control character in the name");
    *prefix = need_memory(n + strlen(figure) + 1, 1);
    memcpy(*prefix, text, n); /* the rest is zero */
    if (n == 0 || text[n - 1] == '/')
        strcpy(*prefix + n, figure);
    const char *base = plot_base(*prefix);
    const size_t fine = strspn(base, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.+-_");
    if (types & PLOT_LATEX && base[fine])
        return fail(EXIT_USAGE,
                    "plot: --output: '%s' is not a name that LaTeX reads: letters, digits and . + - _ are expected",
                    base);
    return 0;
}

static const plot_figure *find_figure(const char *name)
{
    for (const plot_figure *f = plot_figures; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static int unknown_figure(const char *name)
{
    char known[256] = "";
    suggestion s;
    suggestion_init(&s, name);
    for (const plot_figure *f = plot_figures; f->name; f++) {
        suggestion_consider(&s, f->name);
        text_add(known, sizeof known, "%s%s", f == plot_figures ? ": " : ", ", f->name);
    }
    return fail(EXIT_USAGE, "plot: '%s' is not a figure%s", name, suggestion_end(&s, known));
}

/* An option that a figure would silently ignore is an error. */
static int check_selection(const plot_figure *figure, const plot_request *r, int reports)
{
    const plot_selection *c = r->selection;
    const struct {
        int given;
        const char *option;
    } given[] = {
        {c->kinds.count > 0, "kind"},
        {c->step != NULL, "step"},
        {c->formats.count > 0, "format"},
        {c->scales.count > 0, "scale"},
        {r->log, "log"},
        {c->column != NULL, "column"},
        {c->by != NULL, "by"},
        {c->underflow != NULL, "underflow"},
    };
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        if (given[i].given && !strstr(figure->options, given[i].option))
            return fail(EXIT_USAGE, "plot: --%s is not for %s", given[i].option, figure->name);
    if (reports > 1 && !figure->several)
        return fail(EXIT_USAGE, "plot: %s takes one report", figure->name);
    return 0;
}

/* Reports after the first join it. */
static int load(const plot_figure *figure, char **paths, int n, plot_report *r)
{
    int code = plot_report_load(r, paths[0], figure->commands, figure->name);
    for (int i = 1; i < n && !code; i++) {
        plot_report other;
        code = plot_report_load(&other, paths[i], figure->commands, figure->name);
        if (!code)
            plot_report_join(r, &other);
        plot_report_clear(&other);
    }
    return code;
}

static int draw(const plot_figure *figure, char **paths, int n, plot_request *r)
{
    plot_input in;
    memset(&in, 0, sizeof in);
    int code = check_selection(figure, r, n);
    if (!code)
        code = load(figure, paths, n, &in.report);
    if (!code)
        code = plot_figure_read(figure, &in, r->selection);
    if (!code)
        code = plot_draw(figure, &in, r);
    plot_input_clear(&in);
    return code;
}

/* The figure drawn with characters. */
static int print_preview(const char *prefix)
{
    enum { BYTES_MAX = 1 << 20 };
    trace_error error;
    output o;
    char *path = need_format("%s.txt", prefix);
    char *text = text_file_read(path, BYTES_MAX, NULL, &error);
    int code = text ? output_open(&o, NULL) : fail(error.exit, "%s", error.text);
    if (!code) {
        fputs(text + strspn(text, "\f"), o.file); /* gnuplot begins a page */
        code = output_close(&o);
    }
    free(text);
    free(path);
    return code;
}

int cmd_plot(const command *self, int argc, char **argv)
{
    plot_selection selection = {0};
    plot_request r = {.selection = &selection};
    const char *wanted = NULL, *types = NULL;
    char *prefix = NULL;
    int first, preview = 0, venue = 0, span = 0;
    const option_row rows[] = {
        {0, "match kind step format scale by column output type preview venue", OPTION_COMMON, NULL, NULL,
         "FIGURE is histogram, ruler, sweep, scales, sqnr, heatmap, accumulation, training, lossscale, updates, amax, "
         "memory, ranking, attention or diff; REPORT is what another command wrote with --json."},
        {0, "What to show", OPTION_HEADING, NULL, NULL, NULL},
        {'m', "match", OPTION_LIST, &selection.match, "GLOB",
         "only tensors, models or policies whose name matches, as 'wgrad:*'; may be repeated"},
        {'k', "kind", OPTION_LIST, &selection.kinds, "LIST", "only tensors of these kinds, as agrad,wgrad"},
        {0, "step", OPTION_STRING, &selection.step, "N", "only step N"},
        {'f', "format", OPTION_LIST, &selection.formats, "LIST",
         "formats of the report to show; the first is shaded (default: all)"},
        {'s', "scale", OPTION_LIST, &selection.scales, "LIST",
         "scales of the report to show (default: all); 1 is always shown, except in a sweep"},
        {0, "log", OPTION_FLAG, &r.log, NULL, "histogram: logarithmic share"},
        {0, "by", OPTION_STRING, &selection.by, "WHAT",
         "sweep: a curve for each kind (default), tensor (default with --match), or total; scales, sqnr: "
         "kind, tensor, layer, step or total; heatmap, diff: a row for each tensor (default) or layer"},
        {0, "underflow", OPTION_STRING, &selection.underflow, "PERCENT",
         "sweep: largest underflow of a safe scale, in per cent of a curve's elements (default 1)"},
        {0, "column", OPTION_STRING, &selection.column, "NAME",
         "accumulation: rel_err (default), max_rel_err or bias; training: losses of wgrad (default), "
         "agrad, act or updates (default if wgrad loses almost nothing); heatmap: underflow (default), "
         "sqnr or amax; diff: ulp (default) or sqnr"},
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {'o', "output", OPTION_OUTPUT, &wanted, "PREFIX",
         "prefix of the files (default: the figure's name); a name that ends in .pdf, .png, .svg or .txt "
         "is that file, and --type adds others"},
        {0, "type", OPTION_STRING, &types, "LIST",
         "file types: pdf, png, svg, txt (drawn with characters), cairolatex (PREFIX-latex.tex to \\input, "
         "and its picture PREFIX-latex.pdf) (default pdf,png,svg)"},
        {0, "terminal", OPTION_STRING, &types, "LIST", "the same as --type"},
        {0, "preview", OPTION_FLAG, &preview, NULL, "also print the figure, drawn with characters"},
        {0, "dark", OPTION_FLAG, &r.dark, NULL, "light lines on a dark ground, for slides and dark pages"},
        {0, "title", OPTION_STRING, &r.title, "TEXT", "title above the figure (default: none)"},
        {0, "venue", OPTION_WORD, &venue, VENUES, "width for a paper (default: none, 5 inches)"},
        {0, "span", OPTION_WORD, &span, "col|full", "columns spanned (default: col)"},
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code >= 0)
        goto done;
    const plot_figure *figure = first < argc ? find_figure(argv[first]) : NULL;
    if (first < argc && !figure)
        code = unknown_figure(argv[first]);
    else if (argc - first < 2)
        code = fail(EXIT_USAGE, "plot: takes a figure and a report; try 'mpsim plot --help'");
    else {
        size_t length;
        const int named = wanted ? type_of_name(wanted, &length) : -1;
        const unsigned own = (preview ? PLOT_TXT : 0) | (named < 0 ? 0 : 1u << named);
        r.width = venues[venue][span];
        r.types = types || own ? own : PLOT_PDF | PLOT_PNG | PLOT_SVG;
        code = types ? parse_types(&r.types, types) : 0;
        if (!code)
            code = make_prefix(&prefix, wanted, figure->name, r.types);
        r.prefix = prefix;
        if (!code)
            code = draw(figure, argv + first + 1, argc - first - 1, &r);
        if (!code && preview)
            code = print_preview(prefix);
    }
done:
    free(prefix);
    option_list_clear(&selection.kinds);
    option_list_clear(&selection.match);
    option_list_clear(&selection.formats);
    option_list_clear(&selection.scales);
    return code;
}
