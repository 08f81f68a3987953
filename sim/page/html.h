/* html.h -- HTML that nothing from a file can break: text, and tables that sort.
 *
 * All text enters through page_html_text. Style and script are constant and the page's policy has their digests, so
 * that a mistake in escaping would run nothing. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* page_html_text -- a text as a reader sees it: made safe by escape_text, and then for HTML, in elements and in attributes in double quotes. */
void page_html_text(FILE *to, const char *text);
/* page_html_print -- the same of a format. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void page_html_print(FILE *to, const char *format, ...);

/* page_html_begin, page_html_end -- a text in memory that grows as it is written; it is whole, or the program ends for want of memory. */
FILE *page_html_begin(char **text, size_t *size);
void page_html_end(FILE *to, char *const *text);

/* A table. Columns as one string, as table_new's: titles between '|', '<' before those of texts, '>' before those of numbers.
 * A title of "GROUP/NAME" stands under GROUP, which neighbours may share. The first column names the row. */
typedef struct html_table {
    FILE *to;
    const char *columns;
    size_t n, at; /* columns; cells of the row */
    uint64_t rows;
    unsigned long long texts; /* columns of texts: bit i */
} html_table;

enum { HTML_COLUMNS_MOST = 64, HTML_PAGE_ROWS = 200 };

/* page_html_table_begin -- `id` is of the page's own, `caption` text. Rows after HTML_PAGE_ROWS wait for a button, where a script runs. */
void page_html_table_begin(html_table *t, FILE *to, const char *id, const char *caption, const char *columns);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void page_html_cell(html_table *t, const char *format, ...); /* the next; rows fill up by themselves */
void page_html_mark_cell(html_table *t, const char *mark,
                         const char *text); /* in the colour of a class of the page's own */
void page_html_table_end(html_table *t);
