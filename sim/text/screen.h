/* screen.h -- the terminal that a text goes to: how many columns it has, and lines that fit them. A text that goes to a file or a
 * pipe has no screen: its lines are as wide as they are. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* screen_begin -- the program, once: `to` is a terminal of so many columns. screen_report -- `to` is a text that the terminal gets in
 * the end; NULL: there is none. */
void screen_begin(FILE *to, int columns);
void screen_report(FILE *to);

/* screen_columns -- of the terminal that `to` goes to; 0: none. screen_width -- the same, but at most `most`, which is also the
 * width where there is no terminal. */
int screen_columns(FILE *to);
int screen_width(FILE *to, int most);

/* screen_line -- a line, folded where it is too wide (screen_fold). */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void screen_line(FILE *to, const char *format, ...);
/* screen_text -- text of several lines, as it is where they fit so many columns (0: in any case). Else lines that follow each other are
 * filled again as paragraphs, the text in a column behind a word, too; other lines that begin with a blank or have columns
 * (screen_is_verbatim) are folded each. */
void screen_text(FILE *to, int columns, const char *text);
/* screen_is_verbatim -- whether a line of n bytes begins with a blank or has two blanks between words. */
int screen_is_verbatim(const char *line, size_t n);
/* screen_fold -- a line of n bytes in lines of at most so many columns, each ended: broken at blanks, later ones behind its first
 * column, if it has several, else two blanks further right. Words that are longer stay whole. */
void screen_fold(FILE *to, int columns, const char *line, size_t n);

/* screen_leave_out -- a column that the terminal had no room for, which later tables are to leave out, too (screen_leaves_out);
 * screen_end -- a line that names them, if there are any. */
void screen_leave_out(const char *column);
int screen_leaves_out(FILE *to, const char *column);
void screen_end(FILE *to);
