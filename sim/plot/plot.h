/* plot.h -- figures: a file of data, a gnuplot script that stands alone, and gnuplot's output.
 *
 * Strings from a report or the command line enter data and script only through the functions
 * plot_put_*: what they write is one inert string whatever it was. */
#ifndef MPSIM_SIM_PLOT_PLOT_H
#define MPSIM_SIM_PLOT_PLOT_H

#include "data.h"
#include "runs.h"
#include "sweep.h"

#include <stdio.h>

enum { PLOT_PDF = 1, PLOT_PNG = 2, PLOT_SVG = 4 };

typedef struct plot_request {
    const char *prefix; /* of the files to write */
    const char *title;  /* or NULL               */
    unsigned types;     /* PLOT_PDF | ...        */
    double width;       /* inches                */
    int log;            /* histogram: log y axis */
    const plot_choice *choice;
} plot_request;

/* A report, and what its kind of figure shows of it. */
typedef struct plot_input {
    plot_report report;
    plot_data tensors; /* of mpsim stat  */
    plot_sweep sweep;  /* of mpsim dot   */
    plot_runs runs;    /* of mpsim train */
} plot_input;

/* A figure is a template plots/NAME.gp, the blocks of data that it reads, and variables. */
typedef struct plot_figure {
    const char *name;
    const char *command; /* "stat": it shows a report of mpsim stat */
    const char *options; /* of the command line that choose or change something in it */
    int (*read)(plot_input *in, const plot_choice *choice); /* 0, or an exit code */
    void (*put_data)(FILE *to, const plot_input *in, const plot_request *r);
    void (*put_variables)(FILE *to, const plot_input *in, const plot_request *r);
} plot_figure;

extern const plot_figure plot_figures[]; /* ends with a NULL name */

void plot_put_training(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_training_variables(FILE *to, const plot_input *in, const plot_request *r);

void plot_put_accumulation(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_accumulation_variables(FILE *to, const plot_input *in, const plot_request *r);

/* plot_draw -- find the templates, write PREFIX.dat and PREFIX.gp, run gnuplot. Without
 * templates nothing is written. 0, or an exit code after a message. */
int plot_draw(const plot_figure *figure, const plot_input *in, const plot_request *r);

/* plot_run -- run PREFIX.gp and rename what it draws to PREFIX.pdf, .png, .svg. Nothing
 * appears unless all of them were drawn. 0, or an exit code after a message. */
int plot_run(const char *prefix, unsigned types);

extern const char *const plot_suffixes[3]; /* "pdf", ...: bit i of `types` */

/* plot_base -- the last component of a path. */
const char *plot_base(const char *path);

/* plot_text_clean -- copy printable UTF-8 text, at most size - 1 bytes of whole characters.
 * Controls, invisible and direction-changing characters and invalid bytes are left out. */
void plot_text_clean(char *to, size_t size, const char *from);

enum { PLOT_LABEL_MAX = 40 };

/* plot_text_shorten -- the same, but with at most n characters, the middle replaced by "…".
 * `size` > 4 n + 4. */
void plot_text_shorten(char *to, size_t size, const char *from, size_t n);

void plot_put_script(FILE *to, const char *text);  /* 'text' for a script: quotes doubled   */
void plot_put_data(FILE *to, const char *text);    /* "text" for data: " and \ replaced     */
void plot_put_label(FILE *to, const char *text, size_t n); /* data, shortened to n characters */
void plot_put_comment(FILE *to, const char *text); /* letters, digits and harmless others  */

/* plot_quote -- what plot_put_script writes, with bytes kept as they are (a file name), to
 * memory; NULL without memory. */
char *plot_quote(const char *text);

#endif
