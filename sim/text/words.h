/* words.h -- words in lines of a width, their plurals and their ends; texts that grow in a fixed array; errors of the
 * system in words; brackets of patterns.
 *
 * snprintf returns the length that a text would need, so writing behind that length may leave the array: texts grow
 * by text_add. A function that makes such a text is a row of tests/sim/t-cut.c. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* text_add -- adds to the text in `size` bytes what they have room for, and leaves out the rest. 0, or -1 if something was
 * left out. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int text_add(char *text, size_t size, const char *format, ...);
int text_add_list(char *text, size_t size, const char *format, va_list values);

/* text_shape -- a list of numbers as "[2, 3]". */
const char *text_shape(char *out, size_t size, const uint64_t *list, size_t n);

/* text_columns -- columns that n bytes of UTF-8 take, one for each code point. */
int text_columns(const char *s, size_t n);

/* text_wrap -- text in lines of at most `width` columns, broken at " " or, if `between` says so, at ", ", whose comma
 * stays. The first line begins where the cursor is, at column `at`, and the others behind as many blanks; the last one is
 * ended, too. What is longer than a line has one to itself. */
void text_wrap(FILE *to, int at, int width, const char *between, const char *text);

/* text_beside -- text in a column from `column` to `width`, the cursor being at column `at`, behind what it is about:
 * beside that, or under it where it is too long. */
void text_beside(FILE *to, int at, int column, int width, const char *text);

/* text_plural -- "" for one, else "s". */
const char *text_plural(uint64_t n);

/* text_ends_with -- whether `end` is how s ends; an empty one always is. */
int text_ends_with(const char *s, const char *end);

/* text_error -- what an errno says: strerror, but "out of memory" for what is no fault of a file. */
const char *text_error(int number);

/* text_bracket -- the length of the bracket expression that s begins with, as "[^]a-z[:digit:]]", of a regular expression of n
 * characters; n if it does not end. */
size_t text_bracket(const char *s, size_t n);
