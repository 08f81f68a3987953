/* segments.h -- a depth cut in parts that need not be equal, nor ranges; of segments.c and tiles.c. */
#pragma once

#include "ways.h"

/* Parts are ranges that end at `ends` (the last at the depth), or, with a turn, take chunks of so many by turns. They are added
 * one after the other: in binary32, rounded to the result each time, or so from the last to the first. */
enum { SUM_ROUNDED, SUM_WIDE, SUM_BACKWARDS, SUMS };
enum { SEGMENTS_MOST = 16 };
typedef struct segments {
    size_t parts, turn, ends[2];
    int sum;
} segments;

/* The products of a part; returns how many there are. */
size_t segments_of(const segments *s, size_t part, size_t depth, size_t *products);

/* Sums of parts, one after the other. */
float segments_add(const segments *s, const mpsim_format *out, const float *parts);

/* The sum of an element. */
float segments_sum(const segments *s, const mpsim_model *m, const element *e);

/* In words: " cut at 1536". */
void segments_name(const segments *s, char *text, size_t n);

/* All ways to cut a depth that are tried, the whole first; to be freed. unit: of the ends of ranges. */
segments *segments_list(size_t depth, size_t unit, size_t *n);
