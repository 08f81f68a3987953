/* record.h -- the records of mpsim memory. */
#pragma once

#include "../record/record.h"
#include "report.h"

/* What is counted. */
typedef struct memory_model {
    uint64_t parameters, ranks, zero, tensor_parallel;
    const char *source, *recompute, *not_counted;
    int sequence_parallel, activations;
} memory_model;

typedef struct memory_document {
    memory_model model;
    const unread_list *unread;
} memory_document;

/* A term of a component. */
typedef struct memory_term {
    ledger_term t;
    size_t is_product; /* the bytes are those of an element times elements */
    char formula[160];
} memory_term;

typedef struct memory_component {
    const char *name;
    uint64_t bytes;
    const memory_term *terms;
    size_t count;
} memory_component;

/* A model under a policy. The columns for people: weights, copies, masters, gradients, state, activations. */
enum { MEMORY_COLUMNS = 6 };
typedef struct memory_row {
    const char *policy, *optimizer, *unmatched;
    uint64_t from, total;
    double of_fp32, percent, a_parameter;
    const memory_component *components;
    size_t count;
    uint64_t columns[MEMORY_COLUMNS];
} memory_row;

/* A row of CSV; and a row of the table of one policy, for people. */
typedef struct memory_line {
    const char *policy, *optimizer, *component;
    uint64_t bytes;
    size_t whole; /* a component, not a term below one */
    double a_parameter;
    char formula[160];
} memory_line;

extern const char *const memory_recomputation[]; /* words of count_recompute, up to NULL                    */
extern const report_kind memory_kind;            /* a memory_document of memory_rows: text, JSON and NDJSON */
extern const record_kind memory_line_record;
