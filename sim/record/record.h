/* record.h -- records of reports: structs whose fields are described once, by a table. Tables for people, JSON, lines of NDJSON,
 * CSV and the JSON Schema follow from the table.
 *
 * A row of a report is a plain struct; its table has a FIELD for each member: type, key, where it shows, offset, a
 * sentence, and the column of a text table. record_read fills a struct from JSON, or from the
 * struct of another table, by the same table (sim/plot); record_keep keeps a report as structs in memory (sim/page/figures.c).
 * tests/sim/t-record compares doc/schema with the tables; MPSIM_WRITE_SCHEMAS=1 writes the
 * files. sim/attention/record.c is a short example. */
#pragma once

#include "jsonout.h"
#include "cells.h"

#include <limits.h>
#include <stddef.h>

typedef enum field_type {
    FIELD_CHARS,   /* char[]                                                                  */
    FIELD_CODE,    /* char[]: bits in hexadecimal, as 0x3c00                                  */
    FIELD_BOOLEAN, /* int; below 0: none                                                      */
    FIELD_FLAG,    /* uint8_t: a boolean                                                      */
    FIELD_COUNT,   /* uint64_t                                                                */
    FIELD_COUNT32, /* uint32_t                                                                */
    FIELD_WORD,    /* an enumeration: which of `words`; none of them: none                    */
    FIELD_WORD8,   /* uint8_t: the same                                                       */
    FIELD_SET,     /* unsigned: a bit for each of `words`; CSV has + between them             */
    FIELD_SIZE,    /* size_t                                                                  */
    FIELD_INTEGER, /* int; FIELD_NONE: none                                                   */
    FIELD_STEP,    /* int64_t, a count; below 0: none                                         */
    FIELD_LONG,    /* int64_t                                                                 */
    FIELD_REAL,    /* double; NaN is none where FIELD_NULL or FIELD_OPTIONAL is set, but for FIELD_IF */
    FIELD_REAL32,  /* float                                                                   */
    FIELD_SHARE,   /* uint64_t, part of the uint64_t at `of`: a cell has the share            */
    FIELD_RECORD,  /* the struct of `record`                                                  */
    FIELD_TEXT,    /* const char *                                                            */
    /* from here on: behind a pointer, which may be NULL */
    FIELD_LIST,    /* const void *: an array of `record`, of as many as the size_t at `of`    */
    FIELD_TEXTS,   /* const char *const *: as many as the size_t at `of`                      */
    FIELD_CODES,   /* the same, of codes                                                      */
    FIELD_SIZES,   /* const size_t *: as many as the size_t at `of`; a cell has [2, 3]        */
    FIELD_REALS,   /* const double *: as many as the size_t at `of`                           */
    FIELD_REALS32, /* const float *: as many as the size_t at `of`                            */
    FIELD_LONGS,   /* const int64_t *: as many as the size_t at `of`                          */
    FIELD_COUNTS,  /* const uint64_t *: the same                                              */
    FIELD_PAIRS,   /* const uint64_t *: as many lists of two as the size_t at `of`            */
    FIELD_MAP,     /* json_t *: an object of texts, whose keys come from data                 */
    FIELD_LISTS,   /* json_t *: the same, of lists of texts                                   */
    FIELD_TALLY    /* const uint64_t *: a count for each of `words`, which is its key; 0 is left out */
} field_type;

/* Where a field is, and how. */
enum {
    IN_JSON = 1, /* the JSON report                                                    */
    IN_LINE = 2, /* a line of NDJSON                                                   */
    IN_CSV = 4,  /* a row of CSV                                                       */
    IN_TREE = 3, /* both of these                                                      */
    IN_ALL = 7,
    FIELD_POINTER = 8,      /* the value is behind a pointer                                      */
    FIELD_NULL = 16,        /* where a pointer, text or list is NULL, JSON has null               */
    FIELD_OPTIONAL = 256,   /* ... JSON leaves it out                                           */
    FIELD_IF = 512,         /* there is a value only where the size_t at `of` is not 0           */
    FIELD_INLINE = 32,      /* a record's fields are among those that surround it                 */
    FIELD_BLANK = 64,       /* a cell of zero is empty                                            */
    FIELD_PLAIN = 1024,     /* a cell of a count has no commas                                    */
    FIELD_GAPS = 2048,      /* texts of a list may be NULL, which is null in JSON                 */
    FIELD_STREAM = 128,     /* a list of a document whose items come one by one: no value here    */
    FIELD_DIGIT = 1 << 16,  /* a boolean is 1 or 0 in CSV                                         */
    FIELD_BYTES = 1 << 17,  /* a cell of a count is that of a size in bytes                       */
    FIELD_SCALE = 1 << 20,  /* a cell of a real number is that of a factor: 1000, 2^16            */
    FIELD_ZERO = 1 << 21,   /* a cell of a share of nothing is 0; else it is empty                */
    FIELD_FINITE = 1 << 22, /* a real number, where it is read, is finite and not below 0         */
    FIELD_PERCENT = 4096,   /* a real number is a share: a cell has it in per cent               */
    FIELD_DECIBEL = 8192,   /* a cell of a real number in decibels: 12.3, exact, -inf            */
    FIELD_LOOSE = 1 << 18,  /* another writer of the schema leaves it out: it is not required     */
    FIELD_FOREIGN = 1 << 19 /* only another writer of the schema has it: in the schema alone      */
};

enum { FIELD_NONE = INT_MIN };

typedef struct record_kind record_kind;

typedef struct record_field {
    const char *key; /* of JSON and CSV; NULL: in tables for people only                                            */
    const char
        *title; /* of its column, behind '<' (aligned left) or '>'; of a record: the line above its columns, or "";
                           NULL: not in tables for people                                                              */
    const char *what; /* a sentence for readers: meaning, unit, exactness; NULL where the key says everything        */
    field_type type;
    unsigned in;
    const char
        *format;     /* of the cell; NULL: as the type is written                                                   */
    const char *csv; /* of a real number in CSV; NULL: all digits.*/
    size_t at, of;   /* offsets in the struct                                                                       */
    const record_kind *record;
    const record_kind *const *
        either; /* of FIELD_STREAM, instead of `record`: rows are of these kinds, up to NULL; no table, no CSV         */
    const record_kind *rows; /* of the first FIELD_STREAM: rows of CSV and the table; NULL: its items */
    const record_kind *const
        *lines; /* of the first FIELD_STREAM: all that a line of NDJSON can be, up to NULL; NULL: its items */
    const char *const
        *words; /* a text or a word: all that it can be, up to NULL; or NULL. Of a set: "" for unused bits */
    unsigned
        spare; /* of a column: 0: no terminal is too narrow for it; else how early it is left out there, 1 after 2, and names of
                        rows before 1; of a record: is added to those of its columns that are not 0 */
    unsigned column; /* where its column is among those of the table; fields without one are in the order of rows   */
    const char *lacking; /* a cell where there is no value; NULL: an empty one. Of a real number also that of NaN   */
    double unit;   /* of a cell of a count: 1e9 for GB; 0: the count itself                                       */
    unsigned when; /* a bit of what a writer shows, or 0: always; for cells and CSV                                */
} record_field;

/* A row of a table: FIELD(REAL, "lean", IN_ALL, AT(lean), "A sentence, or NULL.", .title = ">lean", .column = 3) */
#define FIELD(TYPE, KEY, WHERE, OFFSET, ...)                                             \
    {                                                                                    \
        .key = KEY, .type = FIELD_##TYPE, .in = WHERE, .at = OFFSET, .what = __VA_ARGS__ \
    }

/* The same of a column of tables for people and nothing else: COLUMN(COUNT, ">steps", 0, AT(steps), "A sentence, or NULL.") */
#define COLUMN(TYPE, TITLE, HOW, OFFSET, ...) FIELD(TYPE, NULL, HOW, OFFSET, __VA_ARGS__, .title = TITLE)

struct record_kind {
    const char *name; /* in $defs of the schema */
    const char *what;
    size_t size;
    const record_field *fields; /* up to one without key and title */
};

/* ---- one record ---- */

/* record_json -- a member `key` (NULL in an array) of o; `in` is IN_JSON or IN_LINE. */
void record_json(jsonout *o, const char *key, const record_kind *r, const void *at, unsigned in);
/* record_members -- the same without brackets. */
void record_members(jsonout *o, const record_kind *r, const void *at, unsigned in);

/* record_number -- a count or a real number of the record `at`, which may be in one of its inline records; NaN where there is none. */
double record_number(const record_kind *r, const void *at, const char *key);

/* What structs are read from: an object of JSON, which may hold anything, or a struct of another record. Neither: an empty object. */
typedef struct record_source {
    const json_t *json;
    const record_kind *kind; /* of `at` */
    const void *at;
} record_source;

/* record_read -- the struct of r, each member from that of the same key. What is missing, or null, is none: 0, NULL, NaN, -1; but `needs`
 * names what must not be: "name formats formats.scale policy.name total.*", the last of the items of a list, of a record, all of a
 * record; a member that is needed may be null where its field is FIELD_NULL. Texts stay those of `from`; lists are forgotten by record_forget, in any case. NULL, or the key that is not as it has to
 * be: *wanted, "a count". Of types only those are read that readers have needed. */
const char *record_read(const record_kind *r, record_source from, void *at, const char *needs, const char **wanted);
void record_forget(const record_kind *r, void *at);
/* record_has -- whether an object has a member that is not null. record_items -- how many items the list `key` of an object has; 0 without one. record_item: one of them. record_part: the
 * member `key`. */
int record_has(record_source from, const char *key);
size_t record_items(record_source from, const char *key);
record_source record_item(record_source from, const char *key, size_t i);
record_source record_part(record_source from, const char *key);

/* A record as words, as a command line has options: a key with a text or a number; a flag (FIELD_BOOLEAN) has "1", each text of a list
 * (FIELD_TEXTS, an option_list) is a word. What is not there, and 0, is none. */
typedef struct record_word {
    const char *key, *text;
    int is_flag;
    char number[24];
} record_word;

/* record_word_at -- word i, in the order of the table: 1, or 0 past the end. record_put_word -- set what a word says, which must outlive
 * the record: 0, or why not. Of types there are texts, lists of them, flags and counts. */
int record_word_at(const record_kind *r, const void *at, size_t i, record_word *w);
enum { WORD_UNKNOWN = -1, WORD_BAD = -2, WORD_NO_MEMORY = -3 };
int record_put_word(const record_kind *r, void *at, const char *key, const char *text);

/* Names of columns and values of a row, without the end of the line. */
void record_csv_head(FILE *to, const record_kind *r, unsigned shows);
void record_csv(FILE *to, const record_kind *r, const void *at, unsigned shows);

/* record_table -- a table for people with the columns of r that `shows` has; record_cells: its next row. NULL without memory, as
 * table_new. */
table *record_table(const record_kind *r, unsigned shows);
void record_cells(table *t, const record_kind *r, const void *at, unsigned shows);

/* record_titles, record_texts -- the same for a table whose rows a reader sorts, as in a page of HTML: each column; each cell of a row. A share
 * is a number, its title says that it is in per cent, and a count beside it is left out; a count of 0 is not blank. */
typedef struct record_title {
    const char *above; /* the title of the record that the column is of; "": none */
    const char *title;
    const char *what; /* a sentence, or NULL */
    int is_text;
} record_title;
typedef void record_title_put(void *to, const record_title *t);
typedef void record_text_put(void *to, const record_field *f, const char *text);
void record_titles(const record_kind *r, unsigned shows, record_title_put *put, void *to);
void record_texts(const record_kind *r, const void *at, unsigned shows, record_text_put *put, void *to);

/* record_columns -- what help says of these columns, behind n others in `to`: those with a sentence, each once; how many there are then.
 * A column without a sentence has that of another field of the same place; what is "null" is for JSON and left out. */
enum { RECORD_COLUMNS_MOST = 64 };
typedef struct record_column {
    const char *title;
    char what[256];
} record_column;
size_t record_columns(record_column to[RECORD_COLUMNS_MOST], size_t n, const record_kind *r, unsigned shows);

/* ---- a report: a document with one list of rows that are written as they come ---- */

typedef struct report_kind {
    const char *schema; /* "mpsim.attention/1" */
    const char *title, *what;
    const record_kind *document; /* one of its fields is FIELD_STREAM, or several */
} report_kind;

/* REPORT_ROWS -- the document of a report that has a list `KEY` of the record ROW, and nothing else. */
#define REPORT_ROWS(KEY, ROW)                                                 \
    &(const record_kind)                                                      \
    {                                                                         \
        "document", NULL, 0, (const record_field[])                           \
        {                                                                     \
            FIELD(LIST, KEY, IN_JSON | FIELD_STREAM, 0, NULL, .record = ROW), \
            {                                                                 \
                0                                                             \
            }                                                                 \
        }                                                                     \
    }

/* What takes the rows of a report instead of a stream. list: the key of the list that the row is of; NULL: it is the document, behind
 * all rows. */
typedef struct record_sink {
    void (*take)(void *to, const char *list, const record_kind *r, const void *row);
    void *to;
} record_sink;

typedef struct record_writer {
    const report_kind *kind;
    FILE *to;
    const record_sink *sink; /* of REPORT_JSON, instead of `to`; or NULL */
    report_style style;
    unsigned shows;
    const void *document;     /* the struct */
    size_t written, opened;   /* rows of the list at hand; items whose rows are such a list */
    const record_field *list; /* of the document */
    const char *version;      /* of the program that found the numbers; NULL: this one */
    table *rows;              /* of REPORT_TEXT */
} record_writer;

/* record_rows -- what rows of the table and of CSV are; NULL: of several kinds. */
const record_kind *record_rows(const report_kind *kind);
/* record_begin -- all before the first row; of REPORT_TEXT the table. record_row: a row, to the table or the stream. record_end: all
 * behind the last row; it prints no table, which the command does where it belongs, and frees it. */
void record_begin(record_writer *w);
void record_row(record_writer *w, const void *row);
/* record_row_of -- the same, of a list of several kinds. */
void record_row_of(record_writer *w, const record_kind *r, const void *row);
void record_end(record_writer *w);
/* record_next -- of a document that has several lists: the next one begins. */
void record_next(record_writer *w);
/* record_open, record_close -- of a document whose list has items that have such a list of their own, the rows: all of an item before
 * its first row, and behind its last one. Rows outside the JSON report know nothing of their item. */
void record_open(record_writer *w, const void *item);
void record_close(record_writer *w, const void *item);

/* A report as a struct in memory: of each row and of the document what the struct and the items of its lists have members for
 * (record_read), with texts of its own. */
typedef struct record_keep {
    record_sink sink; /* of a record_writer */
    const record_kind *kind;
    char *at; /* the struct */
    void *texts;
    char *last; /* the item that rows of an inner list are of, of last_kind */
    const record_kind *last_kind;
    const char *bad; /* the key of a member that did not fit; NULL */
} record_keep;

void record_keep_begin(record_keep *k, const record_kind *kind); /* where it stays */
void record_keep_clear(record_keep *k);

/* ---- the schema ---- */

/* record_schema -- the JSON Schema of a kind of report, with that of its lines. */
void record_schema(FILE *to, const report_kind *kind);
