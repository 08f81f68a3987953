/* pack.h -- the accumulators of a group as records of a part of a report, exactly, and back. */
#pragma once

#include "bytes.h"
#include "group.h"

/* Records of a group follow each other in the order of the rows: of row r there are stat_pack_count, each with its
 * tag. To add an accumulator is to add a row, a member of one a row of its members (pack.c). It is a group of one tensor (stat_group_own). */
enum { PACK_ROWS = 4 };

char stat_pack_tag(int row);
size_t stat_pack_count(int row, const group *g);

/* stat_pack_put -- record i of a row. */
void stat_pack_put(array_bytes *b, int row, const group *g, size_t i);
/* stat_pack_take -- the same after stat_pack_begin, the rows in their order; 0, or -1 if it is malformed. */
int stat_pack_take(taker *t, int row, group *g, size_t i);

/* stat_pack_begin -- a group of one tensor, or of a piece of it, is about to be taken. */
void stat_pack_begin(group *g, int scaled);
