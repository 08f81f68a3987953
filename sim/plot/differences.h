/* differences.h -- what a figure shows: how far two runs are apart, tensor by step, from a report of mpsim diff. */
#pragma once

#include "select.h"

enum { PLOT_ROWS_MAX = 60, PLOT_STEPS_MAX = 200 };

/* What a cell holds, the least bad first: of several tensors and steps the worst is shown. */
typedef enum plot_cell_state {
    PLOT_CELL_NONE, /* nothing was compared              */
    PLOT_CELL_EQUAL,
    PLOT_CELL_APART,  /* the value says how far            */
    PLOT_CELL_BROKEN, /* NaN or Inf on one side only      */
    PLOT_CELL_ABSENT  /* nothing to compare it with        */
} plot_cell_state;

typedef struct plot_cell {
    plot_cell_state state;
    double value; /* log2 of the largest number of ULPs, or decibels */
} plot_cell;

typedef struct plot_difference_row {
    char *name;
    plot_cell cells[PLOT_STEPS_MAX];
} plot_difference_row;

typedef struct plot_differences {
    const plot_report *report;
    int by_sqnr, by_layer;
    plot_difference_row *rows; /* those that differ, in the order in which they begin to */
    size_t n_rows;
    int64_t first[PLOT_STEPS_MAX], last[PLOT_STEPS_MAX]; /* the steps of a column; -1: none */
    size_t n_columns, n_steps;
    double least, most;                   /* values that occur; least > most: none */
    const char *first_name, *first_title; /* of the first difference, or NULL */
    int64_t first_step;
} plot_differences;

/* plot_differences_read -- the tensors that `selection` takes, or the layers they belong to. 0, or an exit code
 * after a message; to be cleared in both cases. */
int plot_differences_read(plot_differences *d, const plot_report *report, const plot_selection *selection);
void plot_differences_clear(plot_differences *d);
