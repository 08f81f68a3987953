/* plot.h -- figures: a file of data, a gnuplot script that stands alone, and gnuplot's output. */
#pragma once

#include "course.h"
#include "grid.h"
#include "groups.h"
#include "ledger.h"
#include "ranges.h"
#include "runs.h"
#include "sweep.h"

#include <stdio.h>

enum { PLOT_PDF = 1, PLOT_PNG = 2, PLOT_SVG = 4, PLOT_TXT = 8, PLOT_LATEX = 16 };

typedef struct plot_request {
    const char *prefix; /* of the files to write */
    const char *title;  /* or NULL               */
    unsigned types;     /* PLOT_PDF | ...        */
    double width;       /* inches                */
    int log;            /* histogram: log y axis */
    int dark;           /* light on a dark ground */
    const plot_selection *selection;
} plot_request;

/* A report, and what its kind of figure shows of it. */
typedef struct plot_input {
    plot_report report;
    plot_groups groups;   /* of mpsim stat  */
    plot_sweep sweep;     /* of mpsim dot   */
    plot_runs runs;       /* of mpsim train */
    plot_grid grid;       /* of mpsim diff, mpsim stat */
    plot_ranges ranges;   /* of mpsim attention, or of the groups */
    plot_ledger ledger;   /* of mpsim memory */
    plot_courses courses; /* over the steps, of any of them */
} plot_input;

/* A figure is a template plots/TEMPLATE.gp, the blocks of data that it reads, and variables. */
typedef struct plot_figure {
    const char *name, *template; /* NULL: called as the figure is */
    const char *commands;        /* "train replay": it shows a report of one of them */
    int several;                 /* it takes several reports */
    const char *options;         /* of the command line that choose or change something in it */
    const plot_plan *plan;       /* the groups that it shows; or NULL */
    int (*read)(plot_input *in, const plot_selection *selection); /* what else it reads, or NULL: 0, or an exit code */
    void (*put_data)(FILE *to, const plot_input *in, const plot_request *r);
    void (*put_variables)(FILE *to, const plot_input *in, const plot_request *r);
} plot_figure;

/* plot_figure_read -- what a figure shows of in->report. 0, or an exit code after a message; plot_input_clear in both cases. */
int plot_figure_read(const plot_figure *f, plot_input *in, const plot_selection *selection);
void plot_input_clear(plot_input *in);

/* plot_draw -- find the templates, write PREFIX.dat and PREFIX.gp, run gnuplot. Without
 * templates nothing is written. 0, or an exit code after a message. */
int plot_draw(const plot_figure *figure, const plot_input *in, const plot_request *r);
