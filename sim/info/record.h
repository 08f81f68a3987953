/* record.h -- the records of mpsim info. */
#pragma once

#include "../record/record.h"
#include "../trace/trace.h"

/* A tensor that is codes and scales. */
typedef struct info_quantised {
    const trace_quantised *q;
    const trace_scale_stats *scales; /* with --scales, where they can be counted; else NULL */
    uint64_t block[2];
    const uint64_t *sides; /* block */
    size_t two;            /* 2 */
    char shown[256], ends[128];
} info_quantised;

typedef struct info_tensor {
    const char *file, *name, *kind, *fqn, *dtype, *format, *unread;
    const uint64_t *dimensions;
    size_t rank;
    uint64_t count, offset;
    uint8_t big_endian, fortran;
    int unseen; /* below 0: it is read */
    const info_quantised *quantised;
    const char *order;
    char shown[512],
        is[768]; /* for people: the name, cut; the kind and what it is of, where names are not mpsim's own */
} info_tensor;

typedef struct info_file {
    const char *file, *layout, *names, *clash, *not_quantised, *not_read;
    uint64_t bytes, without_kind;
    int64_t step;
    json_t *metadata;
} info_file;

/* What is selected of a file, or of all. */
typedef struct info_summary {
    const char *file, *layout;
    int64_t step;
    uint64_t tensors, elements;
    char kinds[256];
} info_summary;

/* A row of CSV and NDJSON. */
typedef struct info_row {
    const info_tensor *tensor;
} info_row;

extern const record_kind info_file_record, info_tensor_record, info_summary_record;
extern const report_kind info_kind; /* of info_rows; JSON has lists of tensors in a list of files */
