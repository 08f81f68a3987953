/* scalelist.h -- scales as users type them: 1,1024,2^16, and ranges of powers of two, 2^0..2^32. */
#pragma once

#include <stddef.h>

enum { SCALES_MAX = 256 };

typedef struct scale_list {
    double items[SCALES_MAX]; /* > 0, all different */
    size_t count;
} scale_list;

/* scale_list_parse -- the scales of a list with commas, in its order. 0, or an exit code after a
 * message that begins with `verb`. */
int scale_list_parse(scale_list *l, const char *text, const char *verb);

/* scale_word_parse -- one word of such a list, without blanks: `count` scales from `first` on, each
 * twice the one before. 0, or an exit code as above. */
int scale_word_parse(double *first, size_t *count, const char *word, const char *verb);

/* scale_run -- the longest row of scales, one after the other, of which something is said; of two as long the later. last < first:
 * there is none. All zeros but `first`, which is 1, to begin with. scale_run_see -- scale k is next, and it is said of it, or not. */
typedef struct scale_run {
    size_t first, last, from;
} scale_run;

void scale_run_see(scale_run *r, size_t k, int is);
