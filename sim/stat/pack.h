/* pack.h -- the accumulators of a group as records of a part of a report, exactly, and back. */
#pragma once

#include "bytes.h"
#include "group.h"

/* Records of a group follow each other in the order of the rows: of row r there are pack_count, each with its
 * tag. To add an accumulator is to add a row, a member of one a row of its members (pack.c). It is a group of one tensor (group_own). */
enum { PACK_ROWS = 4 };

char pack_tag(int row);
size_t pack_count(int row, const group *g);

/* pack_put -- record i of a row. */
void pack_put(array_bytes *b, int row, const group *g, size_t i);
/* pack_take -- the same after pack_begin, the rows in their order; 0, or -1 if it is malformed. */
int pack_take(taker *t, int row, group *g, size_t i);

/* pack_begin -- a group of one tensor, or of a piece of it, is about to be taken. */
void pack_begin(group *g, int scaled);
