/* text.h -- strings in figures.
 *
 * Strings from a report or the command line enter data and script only through the functions
 * plot_put_*: what they write is one inert string whatever it was,
 * with controls, invisible and direction-changing characters escaped as everywhere (escape_text). */
#pragma once

#include <stdio.h>

/* plot_base -- the last component of a path. */
const char *plot_base(const char *path);

enum { PLOT_LABEL_MAX = 64 };

/* plot_characters -- how many characters a text has, as it is shown. */
size_t plot_characters(const char *text);

/* plot_fit -- how many characters of the small font fit in so many inches, `most` at most. */
size_t plot_fit(double inches, size_t most);

void plot_put_data(FILE *to, const char *text);            /* "text" for data */
void plot_put_label(FILE *to, const char *text, size_t n); /* the same, shortened to n characters */

/* What all names of a figure begin and end with, in bytes: labels are shortened there first, so that they still differ. */
typedef struct plot_common {
    const char *name; /* one of them; NULL: none */
    size_t prefix, suffix, names;
} plot_common;

void plot_common_add(plot_common *c, const char *name); /* which lives as long as c */

/* plot_put_label_of -- plot_put_label of one of these names. */
void plot_put_label_of(FILE *to, const char *name, size_t n, const plot_common *c);

void plot_put_comment(FILE *to, const char *text); /* letters, digits and harmless others  */

/* plot_put_variable -- NAME = 'text' for a script, whose every other character is printable ASCII or '?'. */
void plot_put_variable(FILE *to, const char *name, const char *text);

/* plot_quote -- 'text' for a script, its bytes kept as they are (a file name; other text comes from
 * escape_all), in memory of its own. */
char *plot_quote(const char *text);
