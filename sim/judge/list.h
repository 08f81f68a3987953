/* list.h -- kinds of operations whose rows are texts, each read into a structure: reading, adding, and the row that is asked for. */
#pragma once

#include "table.h"

/* What the structure of a row begins with. */
typedef struct judge_row {
    char name[MPSIM_JUDGE_ROW];
    mpsim_format math; /* what operations are rounded to */
} judge_row;

/* What the question of a kind begins with: functions of its judge_table get the question. */
typedef struct judge_list {
    judge_case *w;
    size_t size, most; /* of a structure; of the rows without the one that is asked for */
    int (*read)(
        void *row,
        char *text);   /* 0, or -1; the text is a copy, the structure is 0 but for the name and binary32 as math */
    const char *texts; /* "a sum: a model or lanes:N": what a text should be */
    size_t n;
    char *rows;
} judge_list;

static inline const void *judge_list_at(const void *question, size_t row)
{
    const judge_list *l = question;
    return l->rows + row * l->size;
}

/* judge_list_add -- one more row, unless its text is none or there is no room. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void judge_list_add(judge_list *l, const char *text, ...);

/* judge_list_answer -- the judgement, by a table without self, rows, name, like and ending; one without math has that of judge_row, one
 * without outputs has the array `y` alone. add: adds the rows; `like`, the row that is asked for or NULL, may be changed or refused. */
mpsim_status judge_list_answer(judge_list *l, judge_table *t, mpsim_status (*add)(void *question, void *like));

/* judge_list_numbers -- whether all arrays have numbers of binary32 or narrower ones. */
mpsim_status judge_list_numbers(const judge_case *c);

/* judge_list_alike -- whether there are results, and x has as many rows and columns. */
mpsim_status judge_list_alike(const judge_case *c, const mpsim_judge_array *x, const mpsim_judge_array *y);
