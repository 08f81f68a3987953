/* step.h -- what the reports of replay and train say alike of a step: the scaler's events, the
 * optimizer, memory. */
#pragma once

#include "record.h"

#include <train/step.h>

/* The words of a set of MPSIM_SCALER_*: "overflow", "skipped", ... of each bit, up to NULL; with `between` between them. */
extern const char *const step_events[];
const char *step_events_text(char *out, size_t size, const char *between, unsigned set);

/* What a run's own comparison with recorded steps says of its optimizer's variant. */
typedef enum step_comparison {
    STEP_NO_RECORD,
    STEP_EQUAL,
    STEP_DIFFERS,
    STEP_EQUAL_IN_PART,
    STEP_NOT_COMPARED
} step_comparison;

/* Lines of text: the variant and how it is known; the settings, which follow a title. */
void step_print_variant(FILE *to, const mpsim_optim_variant *v, step_comparison c);
const char *step_optimizer_text(char *out, size_t size, const mpsim_optim *o);

/* The settings that an algorithm has. */
enum { STEP_SETTINGS = 7 };
typedef struct step_optimizer {
    const char *name, *variant;
    double lr, weight_decay, value[STEP_SETTINGS];
    size_t has[STEP_SETTINGS];
} step_optimizer;

step_optimizer step_optimizer_of(const mpsim_optim *o);
extern const record_kind step_optimizer_record;

/* A policy by its name; file, source and note may be NULL. */
typedef struct step_policy {
    const char *name, *file, *source, *note;
} step_policy;

extern const record_kind step_policy_record;

/* Memory: lines of text, a record of train_bytes, and one of a policy's for a table of several. */
void step_print_bytes(FILE *to, const train_bytes *b);
extern const record_kind step_bytes_record;

typedef struct step_bytes {
    const char *policy;
    const train_bytes *bytes;
    uint64_t all;
} step_bytes;

void step_bytes_add(table *t, const char *policy, const train_bytes *b);
extern const record_kind step_bytes_row;
