/* table.h -- what a table is made of, for table.c and narrow.c. */
#pragma once

#include "cells.h"

enum { COLUMNS_MAX = 32 };

typedef struct table_column {
    char *title, *above; /* above: the line over the titles, or NULL                                   */
    int left;            /* aligned                                                                    */
    int spare;           /* on a terminal: 0: never left out; else columns with larger numbers go first */
} table_column;

struct table {
    table_column of[COLUMNS_MAX];
    int columns;
    char **cells;
    size_t count;
};

/* table_narrow -- as table_print, in at most `room` columns behind `indent`, as far as that is possible. */
void table_narrow(const table *t, FILE *to, const char *indent, int room);
