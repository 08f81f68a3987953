/* escape.h -- text from files and command lines made safe to print: one way for every form. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* utf8_character -- length of the valid UTF-8 sequence at s (terminated), its code point in *c;
 * 0 if s does not begin with one. */
size_t utf8_character(const char *s, uint32_t *c);

/* escape_text -- copy s to out (size bytes, always terminated), printable UTF-8 as it is;
 * control characters, invalid bytes, and bidirectional overrides as \n, \t, \xHH or \u{HHHH}.
 * Returns out. For names from files on their way to a terminal, a page or an error line: fail, note,
 * table_cell, csv_text and json_write do it by themselves, and once more does nothing. */
char *escape_text(char *out, size_t size, const char *s);

/* escape_all -- the same in memory of its own; NULL without memory. */
char *escape_all(const char *s);

/* escape_next -- what escape_text makes of the next character or bad byte of s, which is not empty.
 * Returns how many bytes of s that is. */
enum { ESCAPE_UNIT = 16 };
size_t escape_next(char unit[ESCAPE_UNIT], const char *s);

/* escape_hidden -- bytes of the character *c that s, of n bytes and not empty, begins with, if
 * escape_text escapes it; else, and for a bad byte, 0. */
size_t escape_hidden(const char *s, size_t n, uint32_t *c);
