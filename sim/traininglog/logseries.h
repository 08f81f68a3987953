/* logseries.h -- a file of JSON with a series for each name, {"train/loss": {"1": 0.5, "2": 0.4}, ...}, as NeMo RL
 * writes what TensorBoard recorded, or TensorBoard's own download of one, [[wall time, step, value], ...]: as lines of a step, a name
 * and a value. Python's NaN and Infinity are values. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* traininglog_log_series_name -- what a number of TensorBoard is, by the name of its file, run-NAME-tag-train_loss.csv: `tag` is what follows
 * "-tag-", or NULL. */
void traininglog_log_series_name(char *name, size_t size, const char *tag);

/* traininglog_log_series_begins -- whether a file that begins with these bytes is one. */
int traininglog_log_series_begins(const char *bytes, size_t n);

/* traininglog_log_series_lines -- `tag`: what the numbers of TensorBoard are, from the name of the file, or NULL. Call visit for every value, with the line of the file that it stands in. What is damaged ends
 * it. 0, or what visit returned. */
int traininglog_log_series_lines(const char *text, const char *tag,
                                 int (*visit)(const char *line, uint64_t number, void *context), void *context);
