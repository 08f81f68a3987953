/* castrow.h -- rows of casts: a format, the rules of a preset, and what differs from them (mpsim/judge.h has the grammar). */
#pragma once

#include <mpsim/judge.h>
#include <mpsim/round.h>

typedef struct cast_row {
    mpsim_format format;
    mpsim_rounding rounding;
    const mpsim_preset *preset;
    mpsim_format source; /* of the numbers that are cast */
    uint8_t via;         /* cast_via: the format that numbers are rounded to first, to nearest even */
    uint8_t nan;         /* mpsim_nan_rule, or CAST_NAN_CUT */
    uint8_t below;       /* cast_below: inputs that are read as zero, beside those of flush-inputs */
} cast_row;

typedef enum cast_via { CAST_DIRECT, CAST_VIA_BINARY32, CAST_VIA_FP16, CAST_VIA_BF16, CAST_VIAS } cast_via;

/* Inputs below the least positive number of the format, or below its least normal number. */
typedef enum cast_below { CAST_BELOW_NONE, CAST_BELOW_LEAST, CAST_BELOW_NORMAL } cast_below;

/* The sign and the leading bits of the payload are kept, and nothing is made quiet; a payload of 0 becomes 1. */
enum { CAST_NAN_CUT = MPSIM_NAN_RULES };

/* A choice of a cast: where it is in cast_row, its word, and the words of its values, up to NULL; without words the choice
 * is a switch. cause: the word of a finding where this choice is another one. */
typedef struct cast_choice {
    const char *word;
    const char *const *values;
    size_t at;
    const char *cause;
} cast_choice;

enum { CAST_CHOICES = 12, CAST_SPECIAL = 2, CAST_MODES = MPSIM_ROUND_STOCHASTIC_A };
extern const cast_choice
    judge_cast_choices[CAST_CHOICES]; /* the mode is the first, then the route; from CAST_SPECIAL on
                                                              choices act on results that are not ordinary */

static inline uint8_t *judge_cast_choice_at(cast_row *row, const cast_choice *c)
{
    return (uint8_t *)row + c->at;
}
static inline uint8_t judge_cast_value(const cast_row *row, const cast_choice *c)
{
    return ((const uint8_t *)row)[c->at];
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

/* ---- castcode.c: what a row makes of numbers ---- */

/* judge_cast_via_format -- the format of a route; judge_cast_via_acts -- whether the route can change a number of a source. */
const mpsim_format *judge_cast_via_format(uint8_t via);
int judge_cast_via_acts(uint8_t via, const mpsim_format *source);

/* judge_cast_rounding -- the last rounding of a row; a NaN that is cut is payload here. */
mpsim_rounding judge_cast_rounding(const cast_row *row);

/* judge_cast_codes -- n codes of row->format, of n codes of numbers. */
void judge_cast_codes(const cast_row *row, void *codes, const mpsim_format *from, const void *x, size_t n);

/* judge_cast_holds -- whether every number of f is one of `to`. */
int judge_cast_holds(const mpsim_format *to, const mpsim_format *f);
