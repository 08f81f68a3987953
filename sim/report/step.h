/* step.h -- what the reports of replay and train say alike of a step: the scaler's events, the
 * optimizer, memory. */
#pragma once

#include "report.h"

#include <train/step.h>

/* The words of a set of MPSIM_SCALER_*: "overflow", "skipped", ... with `between` between them; as
 * an array. */
const char *step_events_text(char *out, size_t size, const char *between, unsigned set);
json_t *step_events_json(unsigned set);

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
json_t *step_optimizer_json(const mpsim_optim *o);

/* Memory: lines of text, JSON, and a table with a row for each policy. */
void step_print_bytes(FILE *to, const train_bytes *b);
json_t *step_bytes_json(const train_bytes *b);
table *step_bytes_table(void);
void step_bytes_row(table *t, const char *policy, const train_bytes *b);
