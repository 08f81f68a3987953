/* shape.h -- which numbers of a log are measurements. A line belongs to a step because its shape (the line with its
 * numbers masked) comes again with other numbers; or, among such lines, with the same ones. Settings stand once, or come
 * again before the first step; source code and printed models are known by their marks. */
#pragma once

#include "field.h"

typedef struct log_shapes {
    struct shape_row *rows, *keys; /* tables of hashes: of lines, of the text before numbers */
    size_t rows_count, rows_size, keys_count, keys_size;
    int measured; /* a line of a shape that repeats has a measurement */
    int plain;    /* and does not look like a setting */
} log_shapes;

/* traininglog_log_shapes_see -- count a line: its shape. `measures` says whether a line has a measurement: asked once for a shape. */
uint64_t traininglog_log_shapes_see(log_shapes *s, const char *line, int setting, int (*measures)(const char *line));

/* traininglog_log_shapes_is_live -- whether lines of that shape come again and measure something. */
int traininglog_log_shapes_is_live(const log_shapes *s, uint64_t shape);

/* traininglog_log_shapes_mask -- blank the numbers of a line that are no measurements. *begun: a line came that belongs to a step, or tells an
 * event; before it settings repeat, too. `setting`: the form of the line says that it is one. */
void traininglog_log_shapes_mask(const log_shapes *s, char *line, int *begun, int setting);
void traininglog_log_shapes_clear(log_shapes *s);
