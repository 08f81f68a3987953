/* cells.h -- what commands write: aligned text tables, JSON values, CSV cells.
 *
 * Numbers for programs round-trip; nothing depends on the locale. */
#pragma once

#include <jansson.h>
#include <mpsim/round.h>
#include <stdint.h>
#include <stdio.h>

typedef enum report_style { REPORT_TEXT, REPORT_JSON, REPORT_NDJSON, REPORT_CSV } report_style;

/* ---- tables for people ---- */

typedef struct table table;

/* table_new -- columns as one string: titles separated by '|', a leading '<' aligns left, '>'
 * right: "<tensor|>count". "TITLE\nTITLE": the first stands on a line above, over this column and those
 * behind it. A number before that: how early the column goes where a terminal has no room for all of them, columns without one
 * never, "2>mean|1>l2". NULL without memory (array/lacking.h): a table without rows, which prints nothing. */
table *table_new(const char *columns);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* The next cell, made safe by escape_text; rows fill up by themselves. NULL: no cell. */
void table_cell(table *t, const char *format, ...);
size_t table_rows(const table *t);
/* table_move -- the rows of `from`, a table of the same columns, behind those of `to`. */
void table_move(table *to, table *from);
/* table_print -- all rows, two spaces between columns, each line after `indent`. Columns
 * without any text in their cells are left out. Where the table is too wide for a terminal, titles and texts are broken, columns
 * left out (screen_leave_out), names on lines of their own, and what is still too wide is cut into tables below each other. */
void table_print(const table *t, FILE *to, const char *indent);
void table_free(table *t);

/* Short forms for people: 1234567 -> "1,234,567" (size at least 32), a share as "12.3 %"
 * with "<0.01 %" for what is not zero but rounds to it, and a magnitude as "1.23e-05". */
const char *text_count(char *out, uint64_t n);
const char *text_share(char *out, uint64_t part, uint64_t whole);
const char *text_number(char *out, double x);
const char *text_percent(char *out, double share); /* three digits without a sign; "–" of NaN */
const char *text_decibels(char *out, double x);
const char *text_scale(char *out, double x);   /* 1, 1000, 2^16: all digits */
const char *text_bytes(char *out, uint64_t n); /* "1.5 KiB" */

/* Cells: a share of `whole`, nothing where that is 0; bytes, nothing for 0. */
void table_share(table *t, uint64_t part, uint64_t whole);
void table_bytes(table *t, uint64_t n);

/* report_counts -- what happened in roundings, a line each with its share of the elements. */
void report_counts(FILE *to, const mpsim_counts *c, uint64_t elements);

/* text_wrapped -- a title and words with commas between them, in lines of at most 100 columns. */
void text_wrapped(FILE *to, const char *title, const char *text);

/* ---- JSON ---- */

/* A number; NaN and infinities as the strings "NaN", "Infinity", "-Infinity". */
json_t *json_of_double(double x);
json_t *json_of_count(uint64_t n);

/* json_write -- one value on one line, without a newline; what escape_text would escape is written
 * as \u escapes, which read back as what it was. What fails there shows in the stream. Consumes v. */
void json_write(FILE *to, json_t *v);

/* ---- CSV (RFC 4180, lines end in LF) ---- */

/* Quoted where needed, made safe by escape_text, and behind a ' where a spreadsheet would take it for
 * a formula (= + - @); no separator. */
void csv_text(FILE *to, const char *text);
void csv_double(FILE *to, double x); /* %.17g; nan, inf, -inf              */
