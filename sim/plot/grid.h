/* grid.h -- what a heatmap shows: tensors or layers by step, from a report of mpsim diff (how far two runs are apart) or of
 * mpsim stat (what a cast loses, and how large tensors are). */
#pragma once

#include "select.h"

enum { PLOT_ROWS_MAX = 240, PLOT_STEPS_MAX = 200 };

/* What a cell holds, the least bad first: of several tensors and steps the worst is shown. */
typedef enum plot_cell_state {
    PLOT_CELL_NONE,  /* nothing was compared, or recorded  */
    PLOT_CELL_EQUAL, /* nothing is lost, or apart          */
    PLOT_CELL_APART, /* the value says how far             */
    PLOT_CELL_BROKEN /* NaN or Inf                         */
} plot_cell_state;

typedef struct plot_cell {
    plot_cell_state state;
    double value; /* in the measure's unit */
    int marked;   /* with a cross: the measure's words say what that means */
} plot_cell;

typedef struct plot_grid_row {
    char *name;
    plot_cell cells[PLOT_STEPS_MAX];
} plot_grid_row;

typedef enum plot_unit {
    PLOT_DECIBELS,
    PLOT_BINADES, /* the value is a log2 */
    PLOT_DECADES  /* of per cent: the value is a log10 */
} plot_unit;

/* What --column chooses. */
typedef struct plot_measure {
    const char *command, *name; /* of the report; of the column */
    const char *bar;            /* words beside the bar of colours, ... */
    const char *of_format;      /* and what follows the format; NULL: no format belongs to it */
    const char *pale, *mark;    /* what a pale cell and a cross mean */
    plot_unit unit;
    int less_is_worse;
} plot_measure;

/* The first difference. */
typedef struct plot_first {
    const char *name, *title; /* or NULL */
    int64_t step;             /* or -1 */
} plot_first;

typedef struct plot_grid {
    const plot_report *report;
    plot_settings settings; /* of stat */
    const plot_measure *measure;
    int by_layer;
    char *format; /* or recipe, of stat: NULL where no cast is shown */
    double scale;
    plot_grid_row *rows; /* of diff those that differ, in the order in which they begin to; of stat all */
    size_t n_rows;
    int64_t first[PLOT_STEPS_MAX], last[PLOT_STEPS_MAX]; /* the steps of a column; -1: none */
    size_t n_columns, n_steps;
    double least, most; /* values that occur; least > most: none */
    plot_first begin;
} plot_grid;

void plot_grid_clear(plot_grid *g);
