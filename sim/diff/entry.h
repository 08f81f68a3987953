/* entry.h -- one tensor in a report of mpsim diff. */
#pragma once

#include "../report/report.h"
#include "sequence.h"

/* entry_verdict -- of a tensor, or of a missing step. */
verdict entry_verdict(const sequence_entry *e);

/* entry_json -- all that is known. */
json_t *entry_json(const sequence_entry *e);

/* entry_print -- the same for people, of what entry_json gave. */
void entry_print(FILE *to, const json_t *entry);

/* A row of the table of text; a line of CSV, and its head. */
void entry_row(table *t, const sequence_entry *e);
void entry_csv_head(FILE *to);
void entry_csv(FILE *to, const sequence_entry *e);
