/* castsearch.h -- what the files of the judge of casts have of one another: castsearch.c searches a row, castsay.c says what differs from it. */
#pragma once

#include "castrow.h"
#include "impl.h"

/* Numbers, and their casts: n of each. */
typedef struct cast_arrays {
    const mpsim_format *from, *to; /* to: of the codes in y */
    const unsigned char *x, *y;
    size_t n;
} cast_arrays;

/* A part of the arrays, in memory of its own. */
typedef struct cast_part {
    cast_arrays of;
    unsigned char *x, *y;
} cast_part;

typedef struct cast_search {
    judge_case *w;
    const cast_arrays *a;
    cast_row best;
    uint64_t differ;
    uint64_t ordinary[CAST_VIAS]; /* how many ordinary results are others by a route; UINT64_MAX: not counted */
    cast_part special;            /* results that are not ordinary */
} cast_search;

/* judge_cast_differ -- how many results are not those of a row; UINT64_MAX without memory. only: marks of those that count; NULL: all.
 * expected: where the results of the row go; NULL: nowhere. */
uint64_t judge_cast_differ(const judge_case *w, const cast_arrays *a, const cast_row *r, const unsigned char *only,
                           unsigned char *expected);

/* judge_cast_any_nan -- 1: y has numbers, which lose the bits of a NaN. */
int judge_cast_any_nan(const cast_arrays *a, const cast_row *r);

/* judge_cast_mark -- marks of the results that are ordinary in a format. judge_cast_special -- a part of the others. */
void judge_cast_mark(const judge_case *w, unsigned char *marks, const cast_arrays *a, const mpsim_format *to);
int judge_cast_special(cast_search *s, const mpsim_format *f);

/* judge_cast_find -- the row of which fewest results differ, in s->best; the part `special` is to be cleared. */
mpsim_status judge_cast_find(cast_search *s);
void judge_cast_clear(cast_part *p);

/* judge_cast_report -- the judgement of a row. */
mpsim_status judge_cast_report(cast_search *s, const cast_row *row, int is_like);
