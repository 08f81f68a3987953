/* field.h -- the numbers of a line of a log, each with the name before it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FIELDS_MAX = 256 };

typedef struct field {
    size_t begin, end; /* the number; also nan, inf */
    size_t name;       /* where its name begins */
    uint64_t key;      /* hash of the name with the marks behind it, without case and blanks */
    unsigned traits;
} field;

enum {
    FIELD_RANK = 1,     /* a rank, a process, a device: another value of it is no other step */
    FIELD_FRACTION = 2, /* one of the two numbers of 5/1000 */
    FIELD_PLACE = 4,    /* behind a word for a step, an epoch */
    FIELD_LOST = 8      /* NaN or Inf */
};

typedef struct fields {
    field at[FIELDS_MAX];
    size_t count;
    uint64_t shape;  /* hash of the line with its numbers masked; of dates and times nothing counts */
    uint64_t values; /* hash of the numbers but for ranks */
} fields;

/* traininglog_fields_find -- the numbers of a line; those behind FIELDS_MAX are left out. */
void traininglog_fields_find(fields *f, const char *line);
