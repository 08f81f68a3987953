/* sentences.h -- facts in sentences, one function for each kind of verdict. */
#pragma once

#include "facts.h"

void says_nothing(const facts *f, char *text, size_t size);
void says_skips(const facts *f, char *text, size_t size);
void says_floor(const facts *f, char *text, size_t size);
void says_taken(const facts *f, char *text, size_t size);
void says_norm_taken(const facts *f, char *text, size_t size);
void says_low(const facts *f, char *text, size_t size);
void says_stuck(const facts *f, char *text, size_t size);
void says_isolated(const facts *f, char *text, size_t size);
void says_runaway(const facts *f, char *text, size_t size);
void says_collapse(const facts *f, char *text, size_t size);
void says_lost(const facts *f, char *text, size_t size);
void says_apart(const facts *f, char *text, size_t size);
void says_not_finite(const facts *f, char *text, size_t size);
void says_ranks(const facts *f, char *text, size_t size);
void says_resumed(const facts *f, char *text, size_t size);
void says_validation(const facts *f, char *text, size_t size);
void says_metric_lost(const facts *f, char *text, size_t size);
void says_gap(const facts *f, char *text, size_t size);
void says_kl(const facts *f, char *text, size_t size);
void says_clip(const facts *f, char *text, size_t size);
void says_flat(const facts *f, char *text, size_t size);
void says_rise(const facts *f, char *text, size_t size);
void says_starting(const facts *f, char *text, size_t size);
void says_searching(const facts *f, char *text, size_t size);
void says_spikes(const facts *f, char *text, size_t size);
void says_jumps(const facts *f, char *text, size_t size);
void says_clean(const facts *f, char *text, size_t size);
void says_startup(const facts *f, char *text, size_t size);
void says_steady(const facts *f, char *text, size_t size);
void says_well(const facts *f, char *text, size_t size);
void says_doubt(const facts *f, char *text, size_t size);
void says_few(const facts *f, char *text, size_t size);
void says_unclear(const facts *f, char *text, size_t size);

/* sentence_lost_as -- "NaN", "infinite". */
const char *sentence_lost_as(const series *s);
/* sentence_rest -- what else the log tells beside its scale: losses that are not finite, jumps. */
void sentence_rest(const facts *f, int lost, int jumps, char *text, size_t size);
