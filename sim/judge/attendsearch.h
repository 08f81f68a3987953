/* attendsearch.h -- which rows of attention there are to be tried. */
#pragma once

#include "attendrow.h"

typedef struct attend_search {
    const attend_arrays *x;
    size_t keys;
    const attend_row *known; /* the mask, window, scale and cap of all rows */
    void (*each)(void *to, const char *text);
    void *to;
} attend_search;

/* judge_attend_search -- each row whose model takes the operands, once. */
void judge_attend_search(const attend_search *s);

/* judge_attend_parse -- a row's text, with an end. 0, or -1. */
int judge_attend_parse(attend_row *row, const char *text);
