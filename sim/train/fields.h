/* fields.h -- the records of mpsim train (schema mpsim.train/1). */
#pragma once

#include "../record/step.h"
#include "describe.h"
#include "operations.h"

/* A step; in CSV and lines with its policy. */
typedef struct train_step_row {
    const char *policy;
    uint64_t step; /* from 1 */
    train_row row;
    size_t decoder, images, text; /* a transformer; test images, held-back text: evaluated after the step */
    double perplexity;
} train_step_row;

typedef struct train_digests_row {
    uint64_t steps;
    const char *difference; /* or NULL */
} train_digests_row;

typedef struct train_operation {
    const char *name;
    uint64_t n;
} train_operation;

/* A run added up; in CSV with its policy. */
typedef struct train_total_row {
    const char *policy, *cause;
    char status[96], clip[128], listed[2048]; /* listed: the operations: "bf16 x bf16=1234;..." */
    train_total t;
    size_t images, text; /* which of the two is tested */
    double perplexity, tokens_per_second;
    uint64_t tokens_per_step;
    train_operation operations[OPERATION_KINDS + 1];
    const train_operation *list; /* NULL: no transformer */
    size_t n_operations;
    train_operations counted;
    train_digests_row digests;
    const train_digests_row *checked; /* NULL: nothing was compared */
} train_total_row;

typedef struct train_plan_row {
    uint64_t from; /* from 1 */
    char plan[1024];
    step_optimizer optimizer;
} train_plan_row;

/* A run: its policy, steps, total. */
typedef struct train_run_row {
    step_policy policy;
    train_plan_row *plans; /* of train_run_row_of, to be freed */
    size_t n_plans;
    char products[1024], clip[128];
    train_total_row total;
} train_run_row;

typedef struct train_decoder_row {
    const train_decoder *d;
    train_decoder_words words;
    const char *positions, *math_norm, *math_softmax;
    char digest[24]; /* of the text */
} train_decoder_row;

/* What is trained. */
typedef struct train_config {
    const train_settings *s;
    train_decoder_row decoder;
    size_t has_decoder;
} train_config;

/* Columns of images' or of transformers' rows. */
enum { SHOW_IMAGES = 1, SHOW_TRANSFORMERS = 2 };

train_config train_config_of(const train_settings *s);
train_step_row train_step_row_of(const train_job *j, const train_row *r);
/* What they are filled with has to stay where it is. */
void train_run_row_fill(train_run_row *row, const train_job *j);
void train_total_row_fill(train_total_row *row, const train_job *j, const train_total *t);

extern const report_kind train_kind;         /* a train_config of train_run_rows of train_step_rows */
extern const record_kind train_total_record; /* a train_total_row */
