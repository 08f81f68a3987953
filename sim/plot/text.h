/* text.h -- strings in figures.
 *
 * Strings from a report or the command line enter data and script only through the functions
 * plot_put_*: what they write is one inert string whatever it was. */
#ifndef MPSIM_SIM_PLOT_TEXT_H
#define MPSIM_SIM_PLOT_TEXT_H

#include <stdio.h>

/* plot_base -- the last component of a path. */
const char *plot_base(const char *path);

/* plot_text_clean -- copy printable UTF-8 text, at most size - 1 bytes of whole characters.
 * Controls, invisible and direction-changing characters and invalid bytes are left out. */
void plot_text_clean(char *to, size_t size, const char *from);

enum { PLOT_LABEL_MAX = 40 };

/* plot_text_shorten -- the same, but with at most n characters, the middle replaced by "…".
 * `size` > 4 n + 4. */
void plot_text_shorten(char *to, size_t size, const char *from, size_t n);

void plot_put_script(FILE *to, const char *text);  /* 'text' for a script: quotes doubled   */
void plot_put_data(FILE *to, const char *text);    /* "text" for data: " and \ replaced     */
void plot_put_label(FILE *to, const char *text, size_t n); /* data, shortened to n characters */
void plot_put_comment(FILE *to, const char *text); /* letters, digits and harmless others  */

/* plot_quote -- what plot_put_script writes, with bytes kept as they are (a file name), to
 * memory; NULL without memory. */
char *plot_quote(const char *text);

#endif
