/* words.h -- words and numbers in a line of a log. The line is in lower case and ends with 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* traininglog_words_lower -- a text in lower case, cut to `size`. */
void traininglog_words_lower(char *out, size_t size, const char *text);

/* traininglog_words_after -- behind the first place of a phrase; NULL. */
const char *traininglog_words_after(const char *line, const char *phrase);

/* traininglog_words_find -- behind the first place where `word` is a word of its own: letters, digits and '_'
 * end elsewhere; NULL. */
const char *traininglog_words_find(const char *line, const char *word);

/* traininglog_words_skip_marks -- the marks between a name and its value. */
const char *traininglog_words_skip_marks(const char *p);

/* traininglog_words_number -- a magnitude, finite, with digits in groups or not: 1 and *x; else 0. */
int traininglog_words_number(const char *p, double *x);

/* traininglog_words_scale -- traininglog_words_number of a scale. A power of two that was printed with few digits (0.062)
 * is that power (2^-4); a power or a product that a line leaves to its reader (2**16, 32768.0*0.5) is
 * computed. */
int traininglog_words_scale(const char *p, double *x);

/* traininglog_words_unit -- what the last digit of the number at p stands for; 0: there is none. */
double traininglog_words_unit(const char *p);

/* traininglog_words_is_power -- whether x is a power of two. */
int traininglog_words_is_power(double x);

/* traininglog_words_integer -- digits, in groups or not; -1: there are none, or more than an int64_t takes. */
int64_t traininglog_words_integer(const char *p);

/* traininglog_words_integer_of -- the integer behind the first of some words that has one; the last of them is
 * NULL. -1. */
int64_t traininglog_words_integer_of(const char *line, const char *const *words);

/* A value that need not be finite. */
typedef enum value_kind {
    VALUE_UNSAID,
    VALUE_FINITE,
    VALUE_NAN,
    VALUE_INF,
    VALUE_GONE /* no longer printed, as Megatron does where it is NaN */
} value_kind;

/* traininglog_words_value -- the value at p; *x if it is finite. */
value_kind traininglog_words_value(const char *p, double *x);

/* traininglog_words_value_of -- the first value behind one of some words; *x if it is finite. */
value_kind traininglog_words_value_of(const char *line, const char *const *words, double *x);

/* traininglog_words_say_yes -- whether what follows "skipped" or "overflow" says yes: 1, true, y, yes, or
 * nothing at all. */
int traininglog_words_say_yes(const char *p);

/* traininglog_words_fraction -- the first "98/24128" or "[ 10/1251]" of a progress bar, *n and *of: 1; 2: it
 * stands behind another, as in "[0/300][4050/5004]". 0: none. */
int traininglog_words_fraction(const char *line, int64_t *n, int64_t *of);
