/* judge.h -- what a training log supports: a verdict, the lines that it rests on, how sure it is,
 * what is missing, what to do. It never reassures without evidence: "start-up search" takes the
 * scale a framework starts at or early step numbers, and overflows that end; "steady" takes a scale
 * that has grown to where it overflows, and holds below. */
#pragma once

#include "testimony.h"

void log_judge(log_judgement *j, const training_log *l);

/* "certain", "likely", "not enough". */
const char *confidence_name(confidence c);
/* log_class -- what the verdict comes down to: "fine-startup", "warn-diverging", "stopped", ... */
const char *log_class(verdict v);
