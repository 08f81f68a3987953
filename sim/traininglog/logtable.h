/* logtable.h -- tables in a log, as names with values: files of CSV with a header, columns between bars as a notebook
 * shows them, columns between blanks under a line of their names as Ultralytics prints them. */
#pragma once

#include "reader.h"

enum { LOG_COLUMNS = 128, LOG_COLUMN = 64 };

typedef struct log_table {
    char names[LOG_COLUMNS][LOG_COLUMN];
    size_t columns;  /* 0: no header has come yet */
    char between;    /* what lies between columns: , ; | a tab, or a blank for any number of them */
    const char *tag; /* what the number of a file of TensorBoard is, by the name of the file; NULL */
} log_table;

/* traininglog_log_table_line -- the line as "name: value name: value" in `out` if it is a row of the table, NULL if it is not. A
 * line of names begins a table. */
const char *traininglog_log_table_line(log_table *t, const char *text, char out[LOG_WIDTH + 1]);
