/* quantised.h -- what info says of tensors that are codes and scales. */
#pragma once

#include "record.h"

/* info_quantised_fill -- the record of a tensor; scales: what --scales asks for, or NULL. */
void info_quantised_fill(info_quantised *to, const trace_quantised *q, const trace_scale_stats *scales);

/* info_quantised_line -- the line above the table: how many there are, and codes that have no scales. Nothing where there
 * is neither. */
void info_quantised_line(FILE *to, const trace *t);
