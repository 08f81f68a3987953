/* decodertable.h -- the text of train's report where it speaks of transformers. */
#pragma once

#include "report.h"

/* The network and what it is trained on; the steps, their batches, ranks and schedule, without a line's end;
 * the table of steps; the cells of a row of it, between the step and the scale. */
void train_decoder_print_network(FILE *f, const train_run *r);
void train_decoder_print_steps(FILE *f, const train_run *r);
table *train_decoder_rows(void);
void train_decoder_cells(table *t, const train_row *row);
/* After "loss ... at the end": the rest of the line, and perplexity and accuracy. */
void train_decoder_print_loss(FILE *f, const train_total *t, const train_run *r);
void train_decoder_print_operations(FILE *f, const train_job *j, const train_total *t);
/* What act, agrad, wgrad and updates of a table are. */
void train_decoder_print_lost(FILE *f);
/* The table of several runs with its explanation, and their operations. */
void train_decoder_compare_results(train_report *r, const train_job *jobs, const train_total *totals, size_t n);
void train_decoder_compare_operations(train_report *r, const train_job *jobs, const train_total *totals, size_t n);
