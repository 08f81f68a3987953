/* table.c -- aligned text tables; see cells.h. */
#include "cells.h"

#include "../array/array.h"
#include "../array/lacking.h"
#include "../text/escape.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 32 };

struct table {
    char *titles[COLUMNS_MAX];
    char *above[COLUMNS_MAX]; /* the line above the titles, or NULL */
    int left[COLUMNS_MAX];
    int columns;
    char **cells;
    size_t count;
};

/* Column c, as it is written from `text` on, of n bytes: 0, or -1 without memory. */
static int set_title(table *t, int c, const char *text, size_t n)
{
    const char *line = memchr(text, '\n', n);
    const size_t above = line ? (size_t)(line - text) : 0;
    t->above[c] = line ? strndup(text, above) : NULL;
    t->titles[c] = line ? strndup(line + 1, n - above - 1) : strndup(text, n);
    return t->titles[c] && (!line || t->above[c]) ? 0 : -1;
}

table *table_new(const char *columns)
{
    table *t = array_zeros(1, sizeof *t);
    int lacking = !t;
    while (!lacking && *columns && t->columns < COLUMNS_MAX) {
        t->left[t->columns] = *columns++ == '<';
        const size_t n = strcspn(columns, "|");
        lacking = set_title(t, t->columns++, columns, n);
        columns += n + (columns[n] == '|');
    }
    if (!lacking)
        return t;
    (void)host_no_memory();
    table_free(t);
    return NULL;
}

/* A text that is the table's from now on, or NULL. */
static void put_cell(table *t, char *text)
{
    if (text && array_room(&t->cells, t->count, sizeof *t->cells) == 0) {
        t->cells[t->count++] = text;
        return;
    }
    free(text);
    (void)host_no_memory();
}

void table_cell(table *t, const char *format, ...)
{
    if (!t)
        return;
    char *text;
    va_list args;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    put_cell(t, n < 0 ? NULL : escape_all(text));
    if (n >= 0)
        free(text);
}

size_t table_rows(const table *t)
{
    return t ? t->count / (size_t)t->columns : 0;
}

void table_move(table *to, table *from)
{
    for (size_t i = 0; to && from && i < from->count; i++)
        put_cell(to, from->cells[i]);
    if (to && from)
        from->count = 0;
}

/* Columns that a UTF-8 text takes, one for each code point. */
static int width(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* One row; blanks wait until there is something to print behind them. */
static void print_row(const table *t, char *const *cells, const int *widths, FILE *to)
{
    int blanks = 0;
    for (int c = 0; c < t->columns; c++) {
        const int w = width(cells[c]);
        if (widths[c] == 0)
            continue;
        const int before = t->left[c] ? 0 : widths[c] - w;
        if (w > 0) {
            fprintf(to, "%*s%s", blanks + before, "", cells[c]);
            blanks = 0;
        }
        blanks += (w > 0 ? widths[c] - w - before : widths[c]) + 2;
    }
    fputc('\n', to);
}

/* The line above the titles, if a column with text in its cells has one; it begins where the column does. */
static void print_above(const table *t, const int *widths, FILE *to, const char *indent)
{
    int at = 0, written = 0, any = 0;
    for (int c = 0; c < t->columns; c++) {
        if (widths[c] > 0 && t->above[c]) {
            fprintf(to, "%s%*s%s", any ? "" : indent, at - written, "", t->above[c]);
            written = at + width(t->above[c]);
            any = 1;
        }
        at += widths[c] > 0 ? widths[c] + 2 : 0;
    }
    if (any)
        fputc('\n', to);
}

void table_print(const table *t, FILE *to, const char *indent)
{
    int widths[COLUMNS_MAX] = {0};
    if (!t)
        return;
    for (size_t i = 0; i < t->count; i++) {
        const int c = (int)(i % (size_t)t->columns), w = width(t->cells[i]);
        if (w > widths[c])
            widths[c] = w;
    }
    for (int c = 0; c < t->columns; c++)
        if (widths[c] > 0 && width(t->titles[c]) > widths[c])
            widths[c] = width(t->titles[c]);
    print_above(t, widths, to, indent);
    for (size_t row = 0; row <= t->count / (size_t)t->columns; row++) {
        char *const *cells = row == 0 ? t->titles : t->cells + (row - 1) * (size_t)t->columns;
        fputs(indent, to);
        print_row(t, cells, widths, to);
    }
}

void table_free(table *t)
{
    if (!t)
        return;
    for (int c = 0; c < t->columns; c++) {
        free(t->titles[c]);
        free(t->above[c]);
    }
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
}

/* ---- cells and lines ---- */

void table_share(table *t, uint64_t part, uint64_t whole)
{
    char text[32];
    if (whole)
        table_cell(t, "%s", text_share(text, part, whole));
    else
        table_cell(t, "%s", "");
}

void table_bytes(table *t, uint64_t n)
{
    char text[32];
    table_cell(t, "%s", n ? text_bytes(text, n) : "");
}

void text_wrapped(FILE *to, const char *title, const char *text)
{
    fputs(title, to);
    text_wrap(to, (int)strlen(title), 100, ", ", text); /* not at the commas of 12,345 */
}

void report_counts(FILE *to, const mpsim_counts *c, uint64_t elements)
{
    char count[32], share[32];
    const struct {
        const char *what;
        uint64_t n;
    } rows[] = {{"underflow", c->underflow},
                {"subnormal", c->subnormal},
                {"overflow", c->overflow},
                {"inexact", c->inexact},
                {"NaN", c->nan}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        fprintf(to, "  %-9s  %12s  %s\n", rows[i].what, text_count(count, rows[i].n),
                rows[i].n ? text_share(share, rows[i].n, elements) : "");
}
