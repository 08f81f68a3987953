/* quantised.h -- what info says of tensors that are codes and scales. */
#pragma once

#include "../report/report.h"
#include "../trace/trace.h"

/* quantised_is -- whether a file holds any. */
int quantised_is(const trace *t);

/* The columns of a text table for files that hold them, and their cells; scales: what --scales asks for, or NULL. */
#define QUANTISED_COLUMNS "|<quantised|>stored|>scales|>least|>largest|<at the ends"
void quantised_cells(table *rows, const trace_quantised *q, const trace_scale_stats *scales);

/* quantised_line -- the line above the table: how many there are, and codes that have no scales. Nothing where there
 * is neither. */
void quantised_line(FILE *to, const trace *t);

json_t *quantised_json(const trace_quantised *q, const trace_scale_stats *scales);
