/* settings.h -- what stat computes: the part of its command line that decides numbers. */
#pragma once

#include "../input/input.h"
#include "../operand/target.h"
#include "../record/record.h"

/* It travels with a partial report. */
typedef struct stat_settings {
    target_options to;
    input_options from;
    option_list scaled; /* kinds that the scale multiplies */
    int histogram, counts;
    int without_roundoff; /* elements that are nothing but rounding count as not there (trace/roundoff.h) */
    const char *names;    /* the rules for names that are in force as JSON text; or NULL */
} stat_settings;

/* stat_settings_targets -- what tensors are cast to, checked with the rest of the settings. 0, or an exit
 * code after a message that begins with `verb`. */
int stat_settings_targets(const stat_settings *s, target_list *targets, const char *verb);
void stat_settings_clear(stat_settings *s);

/* stat_settings_names -- a copy of *s with the rules that `in` has found, whose text *text is to be freed (NULL: there
 * are none). 0, or EXIT_IO without memory (host.h). */
int stat_settings_names(stat_settings *copy, const stat_settings *s, const input *in, char **text);

/* stat_is_scaled -- whether the scale multiplies tensors of a kind (NULL: without one, which nothing tells
 * from a gradient). A loss scale reaches gradients, and neither parameters nor activations. */
int stat_is_scaled(const stat_settings *s, const char *kind);

/* The settings as a record whose keys are options: what travels with a part, and what a command line repeats (record_word_at). */
extern const record_kind stat_settings_record;
