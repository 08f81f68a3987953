/* plot.c -- writing the data and the script of a figure. */
#include "plot.h"

#include "../array/need.h"
#include "../process/output.h"
#include "../process/resource.h"
#include "../text/escape.h"
#include "../text/words.h"
#include "../trace/inputs.h"
#include "../trace/outfile.h"
#include "../trace/whole.h"
#include "gnuplot.h"
#include "impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEMPLATE_MAX = 1 << 20, PATH_SIZE = 4096 };

/* "OPTION VALUE" for each value; *n counts what the comment has. */
static void put_selection(FILE *to, int *n, const char *option, const char **values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(to, "%s%s ", (*n)++ ? ", " : "", option);
        plot_put_comment(to, values[i]);
    }
}

/* Where the figure comes from, in comments. */
static void put_origin(FILE *to, const plot_figure *figure, const plot_input *in, const plot_request *r)
{
    fprintf(to, "# mpsim plot %s\n# report: ", figure->name);
    const char *path = in->report.path;
    plot_put_comment(to, strcmp(path, "-") == 0 ? "standard input" : plot_base(path));
    fputs(" (", to);
    plot_put_comment(to, in->report.schema);
    if (in->report.version) {
        fputs(", mpsim ", to);
        plot_put_comment(to, in->report.version);
    }
    fputs(")\n# selection: ", to);
    const char *step = r->selection->step;
    int n = 0;
    put_selection(to, &n, "kind", r->selection->kinds.items, r->selection->kinds.count);
    put_selection(to, &n, "match", r->selection->match.items, r->selection->match.count);
    put_selection(to, &n, "step", &step, step ? 1 : 0);
    if (n == 0)
        fputs("everything", to);
    fputc('\n', to);
}

/* ---- templates ---- */

/* What every script begins with, and the figure's own part. */
typedef struct templates {
    char *style, *figure;
} templates;

static void templates_clear(templates *t)
{
    free(t->style);
    free(t->figure);
    t->style = t->figure = NULL;
}

/* The text of folder/name.gp. 0, an exit code after a message, or -1 if it is not there: then
 * `path` and errno tell. */
static int read_template(char **text, char path[PATH_SIZE], const char *folder, const char *name)
{
    if (snprintf(path, PATH_SIZE, "%s/%s.gp", folder, name) >= PATH_SIZE) {
        errno = ENAMETOOLONG;
        return -1;
    }
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    trace_inputs_add(fileno(f));
    *text = need_memory(TEMPLATE_MAX, 1);
    const ssize_t n = trace_whole_read_at(fileno(f), *text, TEMPLATE_MAX, 0);
    const int why = n < 0 ? errno : 0, bad = n <= 0 || n == TEMPLATE_MAX;
    fclose(f);
    if (why)
        return fail(EXIT_IO, "%s: %s", path, text_error(why));
    (*text)[bad ? 0 : n] = '\0';
    return bad ? fail(EXIT_IO, "%s: not a template", path) : 0;
}

/* Both from one folder: a style of another version would not fit. Results as above. */
static int read_folder(templates *t, char path[PATH_SIZE], const char *folder, const char *figure)
{
    int code = read_template(&t->style, path, folder, "style");
    if (!code)
        code = read_template(&t->figure, path, folder, figure);
    const int why = errno;
    if (code)
        templates_clear(t);
    errno = why;
    return code;
}

static int find_templates(templates *t, const char *figure)
{
    char path[PATH_SIZE] = "", place[RESOURCE_PATH];
    const char *folder;
    int code = -1;
    for (size_t i = 0; code < 0 && (folder = resource_folder(RESOURCE_PLOTS, i, place)); i++)
        code = read_folder(t, path, folder, figure);
    if (code < 0)
        code = fail(EXIT_IO, "%s: %s: set MPSIM_PLOTS to the folder of the templates", path, text_error(errno));
    return code;
}

/* ---- script ---- */

static void put_script(FILE *to, const plot_figure *figure, const plot_input *in, const plot_request *r,
                       const templates *t)
{
    const char *base = plot_base(r->prefix);
    char *quoted = plot_quote(base), *shown = need(escape_all(r->title ? r->title : ""));
    char *title = plot_quote(shown);
    put_origin(to, figure, in, r);
    fputs("# To draw it again, in this folder: gnuplot ", to);
    plot_put_comment(to, base);
    fputs(".gp   (gnuplot 5.4 or later)\n\n# ---- variables ----\n"
          "# figures are written to this name with .pdf, .png, .svg, .txt, -latex.tex; data are read from that\n",
          to);
    fprintf(to, "if (!exists('figure')) figure = './'.%s\n", quoted);
    fprintf(to, "if (!exists('data')) data = './'.%s.'.dat'\n", quoted);
    fputs("types = '", to);
    const char *space = "";
    for (int i = 0; i < PLOT_TYPES; i++)
        if (r->types & 1u << i) {
            fprintf(to, "%s%s", space, plot_types[i]);
            space = " ";
        }
    fprintf(to, "'\ntitle = %s\nwidth = %.6g # inches\nis_dark = %d # 1: light on a dark ground\n", title, r->width,
            r->dark);
    figure->put_variables(to, in, r);
    fprintf(to, "\n%s\n%s", t->style, t->figure);
    free(title);
    free(shown);
    free(quoted);
}

/* Open PREFIX + suffix. */
static int open_beside(output *o, char **path, const char *prefix, const char *suffix)
{
    *path = need_memory(strlen(prefix) + strlen(suffix) + 1, 1);
    strcpy(stpcpy(*path, prefix), suffix);
    return output_open(o, *path);
}

/* Both files under temporary names, or neither if one cannot be. */
static int write_files(const plot_figure *figure, const plot_input *in, const plot_request *r, const templates *t,
                       outfile *held[2])
{
    output data, script;
    char *data_path = NULL, *script_path = NULL;
    int code = open_beside(&data, &data_path, r->prefix, ".dat");
    if (!code) {
        code = open_beside(&script, &script_path, r->prefix, ".gp");
        if (code)
            output_abandon(&data);
    }
    if (!code) {
        put_origin(data.file, figure, in, r);
        figure->put_data(data.file, in, r);
        put_script(script.file, figure, in, r, t);
        code = output_hold(&data, &held[0]);
        if (code)
            output_abandon(&script);
        else if ((code = output_hold(&script, &held[1])))
            trace_outfile_abandon(held[0]);
    }
    free(data_path);
    free(script_path);
    return code;
}

/* Figures from the two files, which stay where they are of use. */
static int draw_files(const plot_request *r, outfile *held[2])
{
    const plot_files files = {r->prefix, trace_outfile_name(held[0]), trace_outfile_name(held[1]), r->types};
    int use, kept = 0;
    const int code = plot_gnuplot(&files, &use);
    for (int i = 0; i < 2; i++)
        if ((code && !use) || kept)
            trace_outfile_abandon(held[i]);
        else
            kept = output_keep(held[i]);
    return code ? code : kept;
}

/* What is written replaces no input, and nothing is written twice. */
static int check_outputs(const plot_request *r)
{
    const char *suffixes[2 + PLOT_DRAWN] = {".dat", ".gp"};
    char *paths[2 + PLOT_DRAWN] = {NULL};
    size_t n = 2;
    int code = 0;
    for (int i = 0; i < PLOT_DRAWN; i++)
        if (r->types & plot_files_drawn[i].type)
            suffixes[n++] = plot_files_drawn[i].suffix;
    for (size_t i = 0; i < n && !code; i++) {
        paths[i] = need_format("%s%s", r->prefix, suffixes[i]);
        code = output_check(paths[i]);
        for (size_t k = 0; k < i && !code; k++)
            if (output_is_same(paths[k], paths[i]))
                code = fail(EXIT_USAGE, "plot: '%s' and '%s' are the same file", paths[k], paths[i]);
    }
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    return code;
}

void plot_input_clear(plot_input *in)
{
    plot_groups_clear(&in->groups);
    plot_sweep_clear(&in->sweep);
    plot_runs_clear(&in->runs);
    plot_grid_clear(&in->grid);
    plot_courses_clear(&in->courses);
    plot_ledger_clear(&in->ledger);
    plot_ranges_clear(&in->ranges);
    plot_report_clear(&in->report);
}

int plot_draw(const plot_figure *figure, const plot_input *in, const plot_request *r)
{
    templates t = {NULL, NULL};
    outfile *held[2];
    int code = find_templates(&t, figure->template ? figure->template : figure->name);
    if (!code)
        code = check_outputs(r);
    if (!code)
        code = write_files(figure, in, r, &t, held);
    templates_clear(&t);
    return code ? code : draw_files(r, held);
}
