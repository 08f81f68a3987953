/* impl.h -- what the files of sim/traininglog have of one another. */
#pragma once

#include "../array/array.h"
#include "facts.h"
#include "field.h"
#include "judge.h"
#include "reader.h"
#include "traininglog.h"

#include <stddef.h>
#include <stdint.h>

/* ---- evidence.c: the lines that a judgement rests on, and what the log lacks. ---- */

/* traininglog_evidence_find -- what the verdict is about comes first: the scale, or other numbers (`by_numbers`). */
void traininglog_evidence_find(log_judgement *j, const facts *f, int by_numbers);
/* traininglog_evidence_miss -- what is missing. */
void traininglog_evidence_miss(log_judgement *j, const facts *f, int by_numbers);

/* ---- logseries.c: a file of JSON with a series for each name, {"train/loss": {"1": 0.5, "2": 0.4}, ...}, as NeMo RL
 * writes what TensorBoard recorded, or TensorBoard's own download of one, [[wall time, step, value], ...]: as lines of a step, a name
 * and a value. Python's NaN and Infinity are values. ---- */

/* traininglog_series_name -- what a number of TensorBoard is, by the name of its file, run-NAME-tag-train_loss.csv: `tag` is what follows
 * "-tag-", or NULL. */
void traininglog_series_name(char *name, size_t size, const char *tag);

/* traininglog_series_begins -- whether a file that begins with these bytes is one. */
int traininglog_series_begins(const char *bytes, size_t n);

/* traininglog_series_lines -- `tag`: what the numbers of TensorBoard are, from the name of the file, or NULL. Call visit for every value, with its line of the file. What is damaged ends
 * it. 0, or what visit returned. */
int traininglog_series_lines(const char *text, const char *tag,
                             int (*visit)(const char *line, uint64_t number, void *context), void *context);

/* ---- logtable.c: tables in a log, as names with values: files of CSV with a header, columns between bars as a notebook
 * shows them, columns between blanks under a line of their names as Ultralytics prints them. ---- */

enum { LOG_COLUMNS = 128, LOG_COLUMN = 64 };

typedef struct log_table {
    char names[LOG_COLUMNS][LOG_COLUMN];
    size_t columns;  /* 0: no header has come yet */
    char between;    /* the separator of columns: , ; | a tab, or a blank for any number of them */
    const char *tag; /* what the number of a file of TensorBoard is, by the name of the file; NULL */
} log_table;

/* traininglog_table_line -- the line as "name: value name: value" in `out` if it is a row of the table, NULL if it is not. A
 * line of names begins a table. */
const char *traininglog_table_line(log_table *t, const char *text, char out[LOG_WIDTH + 1]);

/* ---- shape.c: which numbers of a log are measurements. A line belongs to a step because its shape (the line with its
 * numbers masked) comes again with other numbers; or, among such lines, with the same ones. Settings stand once, or come
 * again before the first step; source code and printed models are known by their marks. ---- */

typedef struct log_shapes {
    struct shape_row *rows, *keys; /* tables of hashes: of lines, of the text before numbers */
    size_t rows_count, rows_size, keys_count, keys_size;
    int measured; /* a line of a shape that repeats has a measurement */
    int plain;    /* and does not look like a setting */
} log_shapes;

/* traininglog_shapes_see -- count a line: its shape. `measures` says whether a line has a measurement: called once for a shape. */
uint64_t traininglog_shapes_see(log_shapes *s, const char *line, int setting, int (*measures)(const char *line));

/* traininglog_shapes_is_live -- whether lines of that shape come again and measure something. */
int traininglog_shapes_is_live(const log_shapes *s, uint64_t shape);

/* traininglog_shapes_mask -- blank the numbers of a line that are no measurements. *begun: a line came that belongs to a step, or reports an
 * event; before it settings repeat, too. `setting`: the form of the line says that it is one. */
void traininglog_shapes_mask(const log_shapes *s, char *line, int *begun, int setting);
void traininglog_shapes_clear(log_shapes *s);

/* ---- source.c: lines of a log that are source code, a printed model, or settings, by their form. It is a help: most settings are
 * known by standing once (shape.h). ---- */

typedef enum source_kind {
    SOURCE_NONE,
    SOURCE_CODE,     /* source code, or a line of a printed model */
    SOURCE_MAYBE,    /* code between code: an assignment, an indented line, a comment */
    SOURCE_SETTING,  /* a name with a value, and no more: a setting among others of its kind */
    SOURCE_SETTINGS, /* a line of them: Namespace(...) */
    SOURCE_COPY      /* the line before it, printed again */
} source_kind;

source_kind traininglog_source_kind_of(const char *line);

/* ---- logtext.c: a log as its parts: lines that a terminal wrapped joined, lines that lost their ends cut apart, rows of
 * tables and series of JSON as names with values. Source code and printed models are left out, and numbers that are no
 * measurements (shape.h) are masked. Parts are kept until a block of the log is read, since only what follows shows
 * which lines come again. ---- */

typedef struct log_part {
    uint64_t line,
        seq; /* its number in the file; its number without empty ones, and with those that end in a carriage return */
    size_t at;
    int cut; /* it has no end: it may be cut in a number */
    source_kind kind;
    uint64_t shape;
    int setting; /* it looks like one */
    int copy;    /* it would be the second of two */
} log_part;

typedef struct log_text log_text;

struct log_text {
    /* set by the caller */
    log_reader *reader;
    int (*measures)(const char *text);
    /* masked: the same part without numbers that are no measurements. It returns whether to end. */
    int (*visit)(void *context, const log_part *p, const char *text, const char *masked);
    int (*is_event)(const char *text);
    void *context;
    /* its own */
    char held[LOG_WIDTH + 1]; /* the last line, which the next may go on with */
    uint64_t line, seq;       /* of that line */
    log_table table;
    log_shapes shapes;
    int begun; /* a line that belongs to a step came */
    array_bytes bytes;
    log_part *parts;
    size_t count;
};

/* traininglog_text_read -- call visit for all parts of a file. `path` "-": standard input. 0; or an exit code after a message. */
int traininglog_text_read(log_text *t, const char *path, const char *name);

/* ---- entries.c: from the lines about the loss scale to the entries of a log. ---- */

enum { ENTRIES_MAX = 1 << 20 };

/* traininglog_entry_take -- an entry more, or what the line is to those before it. `text`: the line; l->step is known. */
void traininglog_entry_take(training_log *log, log_line *l, const char *text);
/* traininglog_entries_thin -- where n > 1 ranks have logged each overflow, one of n entries stays: l->copies is n. */
void traininglog_entries_thin(training_log *l);

/* ---- logwalk.c: from the entries of a log to the recorded track and its jumps. ---- */

/* traininglog_walk -- fill l->recorded and l->jumps. */
void traininglog_walk(training_log *l);

/* ---- numbers.c: the facts of facts.h about loss, norm, validation and the numbers of reinforcement learning. ---- */

/* traininglog_numbers_find -- after the facts about the scale. */
void traininglog_numbers_find(facts *f);
/* traininglog_numbers_rise -- a loss far above its best level, or one that has jumped and stays: with overflows a run that diverges. */
int traininglog_numbers_rise(const course *c);

/* ---- stuck.c: the facts of a simulated scaler; what its own settings keep from what the gradients fit. ---- */

/* traininglog_stuck_fits -- the largest scale that the last overflows would have fitted, where it is below the one in force: then the
 * settings are at fault, not Inf or NaN. 0: that is not known. */
double traininglog_stuck_fits(const track *t);
/* traininglog_stuck_wanted -- the scale that the last clean steps fit; where that is any, or not known, the one that it began with. */
double traininglog_stuck_wanted(const track *t);

/* traininglog_stuck_facts -- of a simulated scaler. */
void traininglog_stuck_facts(facts *f, const track *t);
