/* figures.c -- the figures of a page: `plot` draws them from the records of `stat` and `scaler`; see page.h. For each row of the table
 * below that says something of this page:
 *
 *     records -> plot_report -> figure-N.dat, .gp -> (gnuplot) figure-N.svg -> p->svg[N - 1], a part of the page
 *
 * The files, which gnuplot needs, are temporary. */
#include "page.h"

#include "../array/need.h"
#include "../plot/figures.h"
#include "../plot/gnuplot.h"
#include "../scaler/record.h"
#include "../text/words.h"
#include "../trace/temporary.h"
#include "../trace/textfile.h"
#include "../trace/unnamed.h"
#include "svg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATS_MOST = 20, SCALES_MOST = 5, BYTES_MOST = 256 * 1024, FILE_MOST = 1 << 26 };
static const double inches = 6.5;

/* Which report a figure is of, and what it needs. */
typedef enum source { OF_STAT, OF_SCALER } source;

/* Casts of the data as recorded, and no more than a figure shows. */
static int has_targets(const page *p)
{
    int recorded = p->targets.count == 0;
    for (size_t i = 0; i < p->targets.scales && p->targets.count; i++)
        recorded |= p->targets.items[i].rounding.scale == 1;
    return recorded && p->targets.formats + p->targets.blocks.count <= FORMATS_MOST;
}

static int has_formats(const page *p)
{
    return p->targets.formats > 0 && p->targets.formats <= FORMATS_MOST && p->targets.scales <= SCALES_MOST;
}

static int has_many(const page *p)
{
    return has_targets(p) && p->sums.total.tensors > 1;
}

/* The layers of the tensors; PLOT_ROWS_MAX + 1 where there are more than that. */
static size_t count_layers(const page *p)
{
    nameindex layers = {NULL};
    char *names[PLOT_ROWS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < p->n_tensors && n <= PLOT_ROWS_MAX; i++) {
        char *name = plot_layer_name(p->tensors[i].name, *p->tensors[i].kind ? p->tensors[i].kind : NULL);
        if (nameindex_find(&layers, name) < 0) {
            nameindex_add(&layers, name, n);
            names[n++] = name;
        } else {
            free(name);
        }
    }
    nameindex_clear(&layers);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    return n;
}

/* Several steps, and no more layers than a figure has rows. */
static int has_layers(const page *p)
{
    return page_has_steps(p) && has_targets(p) && count_layers(p) <= PLOT_ROWS_MAX;
}

static int has_history(const page *p)
{
    return p->has_history;
}

static const struct row {
    source of;
    int (*is)(const page *p);
    page_figure what;
} rows[PAGE_FIGURES] = {
    {OF_STAT,
     has_targets,
     {"sqnr", NULL, "Error of each format, by kind of tensor",
      "A table of colours: signal to quantisation noise of each format for each kind of tensor; its numbers are in the table "
      "By kind.",
      "Signal to quantisation noise in decibels, casts as recorded (no loss scale): the stronger the shade, the lower. A line under a "
      "number is the share of elements that become zero, Inf or NaN, of which the number says little. "}},
    {OF_STAT,
     has_formats,
     {"ruler", NULL, "Ranges of tensors and of formats",
      "Bars over powers of two: from the smallest to the largest magnitude of each kind of tensor, above those of the formats; the "
      "numbers are in the table What the kinds hold.",
      "Magnitudes, from the smallest to the largest that is not zero, a mark at the root mean square. What lies left of a format's bar "
      "becomes zero in it, what lies right of it is too large. "}},
    {OF_STAT,
     has_many,
     {"ranking", NULL, "Formats by their error, tensor by tensor",
      "Dots and lines: the median, middle half and range over all tensors and steps of each format's signal to quantisation "
      "noise, and of what is lost; the worst of each tensor is in the table Tensor by tensor.",
      "Each tensor of each step counts once: a dot is the median, the thick line the middle half, the thin one the range. "}},
    {OF_STAT,
     has_layers,
     {"heatmap", "layer", "What becomes zero, layer by step",
      "A grid of layers and steps: the share of elements that the first format makes zero; the worst step of each tensor is in the table "
      "Tensor by tensor.",
      "The share of elements that become zero, the worst tensor of each layer; a cross: some overflow, too. "}},
    {OF_SCALER,
     has_history,
     {"lossscale", NULL, "Loss scale",
      "A stair: the loss scale over the steps, with a mark at each step that is skipped; the numbers are in the table Loss scale "
      "over the steps.",
      "The scale that the loss scaler sets for each recorded step; a mark: the step is skipped. "}},
};

int page_begin_figures(page *p)
{
    if (p->options->no_figures) {
        p->no_figures = "they were not asked for (--no-figures)";
        return 0;
    }
    if (!plot_has_gnuplot()) {
        p->no_figures = "gnuplot, which draws them, was not found where the page was made";
        note("no figures: %s", p->no_figures);
        return 0;
    }
    p->folder = trace_temporary_own_folder();
    return p->folder ? 0 : fail(EXIT_IO, "%s: %s", trace_unnamed_place(), text_error(errno));
}

void page_clear_figures(page *p)
{
    record_keep_clear(&p->stat);
    for (int i = 0; i < PAGE_FIGURES; i++)
        free(p->svg[i]);
}

/* ---- drawing ---- */

static const plot_figure *find(const char *name)
{
    const plot_figure *f = plot_figures;
    while (strcmp(f->name, name) != 0)
        f++;
    return f;
}

/* The drawing that lies at `path`, as a part of the page. */
static int take(page *p, int i, const page_figure *what, const char *path)
{
    char prefix[16];
    trace_error error;
    char *drawn = trace_text_file_whole(path, FILE_MOST, NULL, &error);
    if (!drawn)
        return fail(error.exit, "%s", error.text);
    snprintf(prefix, sizeof prefix, "f%d-", i + 1);
    char *svg = page_svg_inline(drawn, prefix, what->shows);
    free(drawn);
    if (!svg)
        return fail(EXIT_IO, "report: what gnuplot drew of %s is not an SVG", what->name);
    if (strlen(svg) <= BYTES_MOST)
        p->svg[i] = svg;
    else
        free(svg);
    return 0;
}

static int draw(page *p, int i, const page_figure *what, plot_input *in, const char *prefix)
{
    static const char *const suffixes[] = {"dat", "gp", "svg"};
    const plot_selection all = {.by = what->by};
    const plot_request r = {.prefix = prefix, .types = PLOT_SVG, .width = inches, .selection = &all};
    const plot_figure *f = find(what->name);
    temporary files[3];
    char *paths[3];
    for (int k = 0; k < 3; k++) {
        paths[k] = need_format("%s.%s", prefix, suffixes[k]);
        trace_temporary_expect(&files[k], paths[k]);
    }
    int code = plot_figure_read(f, in, &all);
    if (!code)
        code = plot_draw(f, in, &r);
    if (!code)
        code = take(p, i, what, paths[2]);
    for (int k = 2; k >= 0; k--) {
        trace_temporary_remove(&files[k]);
        free(paths[k]);
    }
    return code;
}

int page_draw_one(page *p, int i, const page_figure *what, const plot_report *report)
{
    plot_input in;
    memset(&in, 0, sizeof in);
    in.report = *report;
    char *prefix = need_format("%s/figure-%d", p->folder, i + 1);
    const int code = draw(p, i, what, &in, prefix);
    free(prefix);
    memset(&in.report, 0, sizeof in.report);
    plot_input_clear(&in);
    return code;
}

/* All figures of one report, which has the name that the page gives its file. */
static int draw_all(page *p, source of, const record_keep *k, const char *file, const report_kind *kind)
{
    static const char *const verbs[] = {[OF_STAT] = "stat", [OF_SCALER] = "scaler"};
    plot_report report;
    int code = plot_report_kept(&report, k, file, verbs[of], kind->schema);
    for (int i = 0; i < PAGE_FIGURES && !code; i++)
        if (rows[i].of == of && rows[i].is(p))
            code = page_draw_one(p, i, &rows[i].what, &report);
    plot_report_clear(&report);
    return code;
}

static int draw_history(page *p)
{
    record_keep k;
    record_keep_begin(&k, &plot_scalers_record);
    scaler_report_take(&k.sink, &p->scaler_report);
    const int code = draw_all(p, OF_SCALER, &k, "scaler.json", &scaler_kind);
    record_keep_clear(&k);
    return code;
}

int page_draw(page *p)
{
    if (p->no_figures)
        return 0;
    const int code = draw_all(p, OF_STAT, &p->stat, "stat.json", &stat_kind);
    return code || !p->has_history ? code : draw_history(p);
}

/* ---- the section ---- */

void page_put_one(const page *p, int i, const page_figure *f, const char *file, FILE *to)
{
    if (p->svg[i]) {
        fprintf(to, "<figure id=\"figure-%s\">\n<div class=\"scroll drawing\" role=\"group\" aria-label=\"", f->name);
        page_html_text(to, f->title);
        fprintf(to, "\" tabindex=\"0\">%s</div>\n<figcaption><b>", p->svg[i]);
        page_html_text(to, f->title);
        fputs(".</b> ", to);
        page_html_text(to, f->caption);
    } else {
        fputs("<figure>\n<figcaption><b>", to);
        page_html_text(to, f->title);
        fputs(".</b> Left out: the drawing would make the page too large. ", to);
    }
    fprintf(to, "Again: <code>mpsim plot %s%s%s %s</code></figcaption>\n</figure>\n", f->name, f->by ? " --by " : "",
            f->by ? f->by : "", file);
}

void page_put_why_none(const page *p, FILE *to)
{
    if (p->no_figures) {
        fputs("<p class=\"note\">There are no figures: ", to);
        page_html_text(to, p->no_figures);
        fputs(". The tables have all numbers.</p>\n", to);
    }
}

void page_figures(const page *p, FILE *to)
{
    fputs("<section aria-labelledby=\"figures\">\n<h2 id=\"figures\">Figures</h2>\n", to);
    page_put_why_none(p, to);
    for (int i = 0; i < PAGE_FIGURES && !p->no_figures; i++)
        if (rows[i].is(p))
            page_put_one(p, i, &rows[i].what, rows[i].of == OF_STAT ? "stat.json" : "scaler.json", to);
    fputs("</section>\n", to);
}
