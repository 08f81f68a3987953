/* logpattern.h -- lines of a log that the user describes: a POSIX extended regular expression in
 * which a name in braces matches a value without blanks:
 *
 *   it {step} .* amp={scale} skip={overflow}
 *
 *   {scale}     the loss scale, in force or after the step
 *   {before} {after}   the scale before and after: the line reports an overflow
 *   {overflow}  whether the step overflowed: 1, yes, true, ...; {skipped}: how many were skipped
 *   {step} {epoch} {rank} {loss} {norm}
 */
#pragma once

#include "logline.h"
#include "lognote.h"

enum { LOG_PATTERNS = 8, LOG_PATTERN_TEXT = 1000 };

typedef struct log_pattern log_pattern;

/* traininglog_pattern_add -- one more pattern; *all may be NULL. 0; -1: *reason says why not, in static
 * memory. */
int traininglog_pattern_add(log_pattern **all, const char *text, const char **reason);
void traininglog_pattern_free(log_pattern *all);

/* traininglog_pattern_match -- 1 and *l, and what *n takes of it, if a pattern fits the line. */
int traininglog_pattern_match(const log_pattern *all, log_line *l, log_note *n, const char *line);
