/* functionsjudge.h -- what a record of the special function unit says, in words. */
#pragma once

#include "functionsrecord.h"

enum { FUNCTIONS_LINE = 240 };

/* Of a record that is whole: NULL, or what contradicts itself: a table and its binade's digest, distances and a table. */
const char *functions_contradiction(const functions_record *r, char *line);

/* How results of an operation follow from the tables, or where they do not: "fits ..." where all that is known does. 0: the
 * record lacks it. */
int functions_answer(const functions_record *r, int operation, char *line);
