/* plot.c -- writing the data and the script of a figure. */
#include "plot.h"

#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef MPSIM_PLOTS_DIR
#define MPSIM_PLOTS_DIR "plots" /* the makefile names the installed folder */
#endif

enum { TEMPLATE_MAX = 1 << 20 };

static const char *put_choice(FILE *to, const char *between, const char *name, const char *value)
{
    if (!value)
        return between;
    fprintf(to, "%s%s ", between, name);
    plot_put_comment(to, value);
    return ", ";
}

/* Where the figure comes from, in comments. */
static void put_origin(FILE *to, const plot_figure *figure, const plot_data *d,
                       const plot_request *r)
{
    fprintf(to, "# mpsim plot %s\n# report: ", figure->name);
    plot_put_comment(to, strcmp(d->path, "-") == 0 ? "standard input" : plot_base(d->path));
    fputs(" (", to);
    plot_put_comment(to, d->schema);
    if (d->version) {
        fputs(", mpsim ", to);
        plot_put_comment(to, d->version);
    }
    fputs(")\n# selection: ", to);
    const char *between = put_choice(to, "", "kind", r->choice->kind);
    between = put_choice(to, between, "tensor", r->choice->tensor);
    between = put_choice(to, between, "step", r->choice->step);
    if (!*between)
        fputs("everything", to);
    fputc('\n', to);
}

/* ---- templates ---- */

/* Copy a template to the script: of the folder MPSIM_PLOTS, or where it was installed. */
static int put_template(FILE *to, const char *name, const char *suffix)
{
    const char *folders[] = {getenv("MPSIM_PLOTS"), MPSIM_PLOTS_DIR};
    char path[4096] = "", block[8192];
    FILE *f = NULL;
    for (int i = 0; !f && i < 2; i++)
        if (folders[i] && *folders[i] &&
            snprintf(path, sizeof path, "%s/%s%s", folders[i], name, suffix) < (int)sizeof path)
            f = fopen(path, "r");
    if (!f)
        return fail(EXIT_IO, "%s: %s: set MPSIM_PLOTS to the folder of the templates", path,
                    strerror(errno));
    size_t n, all = 0;
    while ((n = fread(block, 1, sizeof block, f)) > 0 && (all += n) <= TEMPLATE_MAX)
        fwrite(block, 1, n, to);
    const int bad = ferror(f) || all > TEMPLATE_MAX || all == 0;
    fclose(f);
    return bad ? fail(EXIT_IO, "%s: not a template", path) : 0;
}

/* ---- script ---- */

static int put_script(FILE *to, const plot_figure *figure, const plot_data *d,
                      const plot_request *r)
{
    const char *base = plot_base(r->prefix);
    char *quoted = plot_quote(base);
    if (!quoted)
        return fail(EXIT_IO, "out of memory");
    put_origin(to, figure, d, r);
    fputs("# To draw it again, in this folder: gnuplot ", to);
    plot_put_comment(to, base);
    fputs(".gp   (gnuplot 5.4 or later)\n\n# ---- variables ----\n"
          "# figures are written to this name with .pdf, .png, .svg; data are read from that\n", to);
    fprintf(to, "if (!exists('figure')) figure = './'.%s\n", quoted);
    fprintf(to, "if (!exists('data')) data = './'.%s.'.dat'\n", quoted);
    free(quoted);
    fputs("types = '", to);
    const char *space = "";
    for (int i = 0; i < 3; i++)
        if (r->types & 1u << i) {
            fprintf(to, "%s%s", space, plot_suffixes[i]);
            space = " ";
        }
    fputs("'\ntitle = ", to);
    plot_put_script(to, r->title ? r->title : "");
    fprintf(to, "\nwidth = %.6g # inches\n", r->width);
    figure->put_variables(to, d, r);
    fputc('\n', to);
    int code = put_template(to, "style", ".gp");
    fputc('\n', to);
    if (!code)
        code = put_template(to, figure->name, ".gp");
    return code;
}

/* Open PREFIX + suffix. */
static int open_beside(output *o, char **path, const char *prefix, const char *suffix)
{
    *path = malloc(strlen(prefix) + strlen(suffix) + 1);
    if (!*path)
        return fail(EXIT_IO, "out of memory");
    strcat(strcpy(*path, prefix), suffix);
    return output_open(o, *path);
}

int plot_draw(const plot_figure *figure, const plot_data *d, const plot_request *r)
{
    output o;
    char *path = NULL;
    int code = open_beside(&o, &path, r->prefix, ".dat");
    if (!code) {
        put_origin(o.file, figure, d, r);
        figure->put_data(o.file, d, r);
        code = output_close(&o);
    }
    free(path);
    if (code)
        return code;
    code = open_beside(&o, &path, r->prefix, ".gp");
    if (!code) {
        code = put_script(o.file, figure, d, r);
        if (code)
            output_abandon(&o);
        else
            code = output_close(&o);
    }
    free(path);
    return code ? code : plot_run(r->prefix, r->types);
}
