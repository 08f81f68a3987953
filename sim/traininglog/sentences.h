/* sentences.h -- facts in sentences, one function for each kind of verdict. */
#pragma once

#include "facts.h"

typedef void says(const facts *f, char *text, size_t size);

says says_skips, says_floor, says_taken, says_low, says_stuck, says_isolated, says_runaway, says_collapse;
says says_lost, says_apart, says_not_finite, says_ranks, says_resumed, says_validation, says_metric_lost;
says says_gap, says_kl, says_clip, says_flat, says_rise, says_may_rise, says_starting, says_searching, says_spikes;
says says_jumps, says_startup, says_steady, says_well, says_doubt, says_few, says_unclear;

/* sentence_lost_as -- "NaN", "infinite". */
const char *sentence_lost_as(const series *s);
/* sentence_rest -- what else the log tells beside its scale: losses that are not finite, jumps. */
void sentence_rest(const facts *f, int lost, int jumps, char *text, size_t size);
