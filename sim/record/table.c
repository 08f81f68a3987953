/* table.c -- aligned text tables; see cells.h. */
#include "table.h"

#include "../array/array.h"
#include "../array/lacking.h"
#include "../text/escape.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Column c, as it is written from `text` on, of n bytes: 0, or -1 without memory. */
static int set_title(table_column *c, const char *text, size_t n)
{
    const char *line = memchr(text, '\n', n);
    const size_t above = line ? (size_t)(line - text) : 0;
    c->above = line ? strndup(text, above) : NULL;
    c->title = line ? strndup(line + 1, n - above - 1) : strndup(text, n);
    return c->title && (!line || c->above) ? 0 : -1;
}

table *table_new(const char *columns)
{
    table *t = array_zeros(1, sizeof *t);
    int lacking = !t;
    while (!lacking && *columns && t->columns < COLUMNS_MAX) {
        table_column *c = &t->of[t->columns++];
        while (*columns >= '0' && *columns <= '9')
            c->spare = 10 * c->spare + (*columns++ - '0');
        c->left = *columns++ == '<';
        const size_t n = strcspn(columns, "|");
        lacking = set_title(c, columns, n);
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

static int width(const char *s)
{
    return text_columns(s, strlen(s));
}

/* One row, of titles (row 0) or cells; blanks wait until there is something to print behind them. */
static void print_row(const table *t, size_t row, const int *widths, FILE *to)
{
    int blanks = 0;
    for (int c = 0; c < t->columns; c++) {
        const char *cell = row == 0 ? t->of[c].title : t->cells[(row - 1) * (size_t)t->columns + (size_t)c];
        const int w = width(cell);
        if (widths[c] == 0)
            continue;
        const int before = t->of[c].left ? 0 : widths[c] - w;
        if (w > 0) {
            fprintf(to, "%*s%s", blanks + before, "", cell);
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
        if (widths[c] > 0 && t->of[c].above) {
            fprintf(to, "%s%*s%s", any ? "" : indent, at - written, "", t->of[c].above);
            written = at + width(t->of[c].above);
            any = 1;
        }
        at += widths[c] > 0 ? widths[c] + 2 : 0;
    }
    if (any)
        fputc('\n', to);
}

/* Columns of each column, 0 where no cell has text; of all together with two blanks between them. */
static int measure(const table *t, int widths[COLUMNS_MAX])
{
    int all = -2;
    for (size_t i = 0; i < t->count; i++) {
        const int c = (int)(i % (size_t)t->columns), w = width(t->cells[i]);
        if (w > widths[c])
            widths[c] = w;
    }
    for (int c = 0; c < t->columns; c++) {
        if (widths[c] > 0 && width(t->of[c].title) > widths[c])
            widths[c] = width(t->of[c].title);
        all += widths[c] > 0 ? widths[c] + 2 : 0;
    }
    return all;
}

/* Whether a table before this one, on the same terminal, left out a column that this one has. */
static int lacks_column(const table *t, FILE *to)
{
    for (int c = 0; c < t->columns; c++)
        if (t->of[c].spare && screen_leaves_out(to, t->of[c].title))
            return 1;
    return 0;
}

void table_print(const table *t, FILE *to, const char *indent)
{
    int widths[COLUMNS_MAX] = {0};
    if (!t)
        return;
    const int all = measure(t, widths), room = screen_width(to, INT_MAX) - (int)strlen(indent);
    if (all > room || lacks_column(t, to)) {
        table_narrow(t, to, indent, room);
        return;
    }
    print_above(t, widths, to, indent);
    for (size_t row = 0; row <= t->count / (size_t)t->columns; row++) {
        fputs(indent, to);
        print_row(t, row, widths, to);
    }
}

void table_free(table *t)
{
    if (!t)
        return;
    for (int c = 0; c < t->columns; c++) {
        free(t->of[c].title);
        free(t->of[c].above);
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
    const int columns = screen_width(to, 100); /* not at the commas of 12,345 */
    text_wrap(to, (int)strlen(title), columns, columns < 100 ? " " : ", ", text);
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
