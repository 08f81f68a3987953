/* attention.h -- what the files of sim/attention have of one another. */
#pragma once

#include "heads.h"
#include "record.h"

#include <stddef.h>
#include <stdint.h>

/* ---- generate.c: operands of attention with a property: integers of a random generator times powers of two, so that they
 * are the same everywhere. ---- */

/* What can be generated: word and what it is, for people; NULL: there is no such. */
typedef struct generated_values {
    const char *word, *label;
} generated_values;
const generated_values *attention_generate_find(const char *word);

/* attention_generate_operands -- makes of normal numbers of h what `how` says. */
void attention_generate_operands(attention_heads *h, const generated_values *how, uint64_t seed);

/* ---- mask.c: which keys each query sees, from a file. ---- */

typedef struct attention_mask {
    uint8_t *seen; /* queries x keys, 0 or 1; NULL: there is no mask */
    char label[256];
} attention_mask;

/* attention_mask_read -- the tensor of a file, of any dtype: [queries, keys], 0 where a query does not see a key. 0, or an exit code
 * after a message. */
int attention_mask_read(attention_mask *m, const char *path, size_t queries, size_t keys);
void attention_mask_clear(attention_mask *m);

/* ---- report.c: what mpsim attention prints. ---- */

typedef struct attention_report {
    FILE *to;
    report_style style;
    const attention_heads *h;
    const mpsim_attention *a; /* models aside */
    const char *values;       /* generated: what; NULL: from files */
    uint64_t seed;
    const char *scores;          /* the model of scores; NULL: that of each row */
    const char *mask;            /* where it is from; NULL: there is none */
    int absolute;                /* --absolute */
    double above;                /* --above    */
    int repeated;                /* in some model a largest score did */
    dot_distance given, rounded; /* the largest errors of all that are no small ones */
    attention_config config;
    record_writer out;
    table *signs;
} attention_report;

void attention_report_begin(attention_report *r);
void attention_report_add(attention_report *r, const mpsim_model *m, const attention_result *x);
void attention_report_end(attention_report *r, const attention_result *last);
