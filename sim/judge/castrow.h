/* castrow.h -- rows of casts: a format, the rules of a preset, and what differs from them (mpsim/judge.h has the grammar). */
#pragma once

#include <mpsim/judge.h>
#include <mpsim/round.h>

typedef struct cast_row {
    mpsim_format format;
    mpsim_rounding rounding;
    const mpsim_preset *preset;
    mpsim_format source; /* of the numbers that are cast */
} cast_row;

/* A choice of a rounding: where it is in mpsim_rounding, its word, and the words of its values, up to NULL; without words the choice
 * is a switch. cause: the word of a finding where this choice is another one. */
typedef struct cast_choice {
    const char *word;
    const char *const *values;
    size_t at;
    const char *cause;
} cast_choice;

enum { CAST_CHOICES = 10, CAST_MODES = MPSIM_ROUND_STOCHASTIC_A };
extern const cast_choice judge_cast_choices[CAST_CHOICES]; /* the mode is the first */

static inline uint8_t *judge_cast_choice_at(mpsim_rounding *r, const cast_choice *c)
{
    return (uint8_t *)r + c->at;
}
/* judge_cast_is_choice -- whether a finding of that cause is about a choice of a cast, or random bits. */
int judge_cast_is_choice(const char *cause);
/* judge_cast_values -- how many values a choice has. */
unsigned judge_cast_values(const cast_choice *c);

/* judge_cast_row_of -- the row of a preset for a format. */
void judge_cast_row_of(cast_row *row, const mpsim_format *format, const mpsim_preset *preset,
                       const mpsim_format *source);

/* judge_cast_row_parse -- 0; or -1 and why not. */
int judge_cast_row_parse(cast_row *row, const char *text, const mpsim_format *source, char *why, size_t size);

/* judge_cast_row_name -- the row in one spelling. */
void judge_cast_row_name(char out[MPSIM_JUDGE_ROW], const cast_row *row);
