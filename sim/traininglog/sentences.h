/* sentences.h -- facts in sentences, one function for each kind of verdict. */
#pragma once

#include "facts.h"

typedef void says(const facts *f, char *text, size_t size);

says traininglog_says_skips, traininglog_says_floor, traininglog_says_taken, traininglog_says_low,
    traininglog_says_stuck, traininglog_says_isolated, traininglog_says_runaway, traininglog_says_collapse;
says traininglog_says_lost, traininglog_says_apart, traininglog_says_not_finite, traininglog_says_ranks,
    traininglog_says_resumed, traininglog_says_validation, traininglog_says_metric_lost;
says traininglog_says_gap, traininglog_says_kl, traininglog_says_clip, traininglog_says_flat, traininglog_says_rise,
    traininglog_says_may_rise, traininglog_says_starting, traininglog_says_searching, traininglog_says_spikes;
says traininglog_says_jumps, traininglog_says_startup, traininglog_says_steady, traininglog_says_well,
    traininglog_says_doubt, traininglog_says_few, traininglog_says_unclear;

/* traininglog_sentence_lost_as -- "NaN", "infinite". */
const char *traininglog_sentence_lost_as(const series *s);
/* traininglog_sentence_rest -- what else the log says beside its scale: losses that are not finite, jumps. */
void traininglog_sentence_rest(const facts *f, int lost, int jumps, char *text, size_t size);
