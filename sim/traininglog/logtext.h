/* logtext.h -- a log as its parts: lines that a terminal wrapped joined, lines that lost their ends cut apart, rows of
 * tables and series of JSON as names with values. Source code and printed models are left out, and numbers that are no
 * measurements (shape.h) are masked. Parts are kept until a block of the log is read, since only what follows tells
 * which lines come again. */
#pragma once

#include "../array/array.h"
#include "logtable.h"
#include "reader.h"
#include "shape.h"
#include "source.h"

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

/* traininglog_log_text_read -- call visit for all parts of a file. `path` "-": standard input. 0; or an exit code after a message. */
int traininglog_log_text_read(log_text *t, const char *path, const char *name);
