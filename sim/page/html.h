/* html.h -- HTML that nothing from a file can break: text, and tables that sort.
 *
 * All text enters through page_html_text. Style and script are constant and the page's policy has their digests, so
 * that a mistake in escaping would run nothing. */
#pragma once

#include "../record/record.h"

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

/* A table of a record, whose first column names the row. Columns of a record with a title stand under that title. Sentences are told
 * where a pointer rests on a title. */
typedef struct html_table {
    FILE *to;
    const record_kind *kind;
    unsigned shows;
    int is_styled;    /* the style knows its columns of texts: cells do not tell */
    const char *mark; /* of the next row: the colour of its words (FIELD_WORD), a class of the page's own */
    size_t at;        /* cells of the row */
    uint64_t rows;
} html_table;

enum { HTML_PAGE_ROWS = 200 };

/* page_html_table_begin -- `id` is of the page's own, `caption` text. Rows after HTML_PAGE_ROWS wait for a button, where a script runs. */
void page_html_table_begin(html_table *t, FILE *to, const char *id, const char *caption, const record_kind *kind,
                           unsigned shows);
void page_html_row(html_table *t, const void *row);
void page_html_table_end(html_table *t);
