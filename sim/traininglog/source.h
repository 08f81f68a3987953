/* source.h -- lines of a log that are source code, a printed model, or settings, by their form. It is a help: most settings are
 * known by standing once (shape.h). */
#pragma once

typedef enum source_kind {
    SOURCE_NONE,
    SOURCE_CODE,     /* source code, or a line of a printed model */
    SOURCE_MAYBE,    /* code between code: an assignment, an indented line, a comment */
    SOURCE_SETTING,  /* a name with a value, and no more: a setting among others of its kind */
    SOURCE_SETTINGS, /* a line of them: Namespace(...) */
    SOURCE_COPY      /* the line before it, printed again */
} source_kind;

source_kind traininglog_source_kind_of(const char *line);
