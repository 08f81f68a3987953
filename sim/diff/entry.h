/* entry.h -- one tensor in a report of mpsim diff: a record, filled once. */
#pragma once

#include "../record/record.h"
#include "sequence.h"

enum { ENTRY_AXES = 64 };

/* A tensor of a side; the texts and the shape are the entry's own, the path is the side's. */
typedef struct entry_side {
    char *name, *dtype;
    uint64_t *shape;
    size_t rank;
    const char *file;
} entry_side;

/* What is told of B's tensor only where it is another one than A's; NULL: it is not. */
typedef struct entry_other {
    const char *name, *dtype;
    const uint64_t *shape;
} entry_other;

typedef struct entry_place {
    const uint64_t *index;
    size_t rank;
    uint64_t at;
    double a, b;
    char a_code[24], b_code[24];
    uint64_t own[ENTRY_AXES]; /* where `index` is */
} entry_place;

/* Lists of pairs: the first ULP of a bin, or a bit; elements. */
typedef struct entry_pairs {
    const uint64_t *list;
    size_t n;
    uint64_t own[2 * MEASURE_ULP_BINS]; /* where `list` is */
} entry_pairs;

typedef struct entry_measure {
    measure of;
    const uint64_t *zero, *nan, *inf; /* of A, of B           */
    size_t two;                       /* 2                    */
    size_t compared;                  /* pairs have distances */
    entry_place first, worst;
    entry_pairs ulps, bits;
    char ulp_format[56], max_ulp_text[32];
    double sqnr, correlation;
} entry_measure;

typedef struct entry {
    verdict verdict;
    int64_t step, step_b, rank; /* -1: the files do not say */
    int64_t told_rank;          /* where steps have files of several ranks; else -1 */
    int64_t differ;             /* elements; -1: elements were not compared         */
    size_t other_step, some;    /* B's step is another one; there is a tensor, else a whole step */
    const char *name;           /* NULL: a whole step */
    char *shown;
    unsigned matched; /* of diff_match_words */
    const char *kind;
    uint64_t count;
    entry_side sides[2]; /* that of the side that has it, and B's behind A's */
    entry_other other;
    const char *title, *evidence, *format, *mode; /* or NULL */
    double scale;
    int bit;
    size_t shifted;
    int64_t shift;
    finding found; /* where these texts are */
    size_t measured;
    entry_measure m;
} entry;

extern const record_kind diff_entry_record;

/* diff_entry_verdict -- of a tensor, or of a missing step. */
verdict diff_entry_verdict(const sequence_entry *e);

/* diff_entry_new -- all that is known; what it holds outlives the step. */
entry *diff_entry_new(const sequence_entry *e);
void diff_entry_free(entry *e); /* accepts NULL */

/* diff_entry_print -- for people, behind verdict and evidence. */
void diff_entry_print(FILE *to, const entry *e);
