/* gnuplot.h -- running gnuplot. */
#pragma once

/* What gnuplot is to draw: data and script may still have other names than PREFIX.dat and PREFIX.gp. */
typedef struct plot_files {
    const char *prefix, *data, *script;
    unsigned types;
} plot_files;

/* plot_gnuplot -- run the script and rename what it draws to PREFIX and the suffixes of its types. Nothing
 * appears unless all of them were drawn. 0, or an exit code after a message. *use: whether data and script are of use without
 * figures: there is no gnuplot, or it says what is wrong with them. */
int plot_gnuplot(const plot_files *f, int *use);

/* plot_has_gnuplot -- whether there is a gnuplot that can be run. */
int plot_has_gnuplot(void);

enum { PLOT_TYPES = 5, PLOT_DRAWN = 6 };
extern const char *const plot_types[PLOT_TYPES]; /* "pdf", ...: bit i of `types` */

/* A file that gnuplot draws. */
typedef struct plot_drawn {
    unsigned type;      /* the bit */
    const char *suffix; /* of its name */
    const char *end;    /* of its bytes, if all of them are there */
} plot_drawn;

extern const plot_drawn plot_files_drawn[PLOT_DRAWN];
