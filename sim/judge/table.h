/* table.h -- kinds of operations whose rows are a list: the search of a row, and what is said of results that differ.
 *
 * A row computes numbers of binary32. The end of a row, the last rounding, is the same for all kinds: to nearest even to the format of the
 * results, or +result=FORMAT, a narrower format whose numbers the results are, or +round=MODE. */
#pragma once

#include "formulas.h"

#include <mpsim/round.h>

enum { TABLE_OUTPUTS = 4 };

typedef struct judge_ending {
    mpsim_format format; /* without a name: the format of the results */
    uint8_t mode;
} judge_ending;

/* judge_ending_take -- the end of a row's text, which is cut off. 0; or -1: a word that is none. */
int judge_ending_take(judge_ending *e, char *text);

/* Parts of the results that are computed apart: of each output `unit` elements, one part behind the other. */
typedef struct judge_units {
    const size_t *at; /* which; NULL: from `first` on */
    size_t first, n;
} judge_units;

static inline size_t judge_unit(const judge_units *u, size_t i)
{
    return u->at ? u->at[i] : u->first + i;
}

typedef struct judge_table {
    judge_case *w;
    const void *self;
    const mpsim_judge_array *found[TABLE_OUTPUTS]; /* the results; NULL: not given. All have as many units */
    size_t outputs;
    size_t unit;                 /* elements of a unit; the last unit may be short                 */
    size_t units[TABLE_OUTPUTS]; /* elements of a unit of other outputs; 0: as many  */
    size_t work;                 /* elements that a unit is computed from: how much a thread takes */
    size_t sample; /* units that rows are tried on; 0: as many as are quick for rows of a few operations a number */
    int whole;     /* 1: units are computed by one call, not by threads              */
    const mpsim_format
        *narrow; /* coded or stored: the narrower format that results have, which compute knows; NULL: there is none */
    int coded; /* 1: compute gives codes of the results' formats, also of NaNs, in place of numbers: y[o] is memory for them */
    int stored; /* 1: the numbers of a row are those of the results' formats: nothing is rounded in the end */
    uint8_t plain[TABLE_OUTPUTS]; /* 1: the end of a row is not that of this output: it is rounded to nearest even */
    int last;                     /* 1: of units some can be computed only if they are the last ones */
    size_t rows;                  /* of the list                                                     */
    int like;                     /* 1: the row behind them is asked for                             */
    judge_ending ending;          /* of that one                                                     */
    const char *(*name)(const void *self, size_t row);
    /* numbers of binary32 of these units, of each output that is given */
    mpsim_status (*compute)(const void *self, size_t row, const judge_units *u, float *const *y);
    const mpsim_format *(*math)(const void *self,
                                size_t row); /* what its operations are rounded to; or NULL: not known */
    const judge_formula *formulas;
    size_t formulas_n;
    judge_exact (*exact)(const void *self, size_t row, size_t formula, size_t output, size_t element);
    double (*origin)(const void *self, size_t output, size_t element); /* what the results were before; NULL: nothing */
    /* what makes the results those of the nearest row, which explains so many, and not those of the row behind the list; NULL: math alone */
    void (*differs)(const void *self, size_t nearest, uint64_t explains);
    /* what is to be said of an output besides that rounding explains what differs; NULL: nothing */
    void (*besides)(const void *self, size_t row, const judge_pair *p, mpsim_judgement *j);
} judge_table;

/* judge_table_answer -- the judgement. Findings of formulas are about the output of which most results differ. */
mpsim_status judge_table_answer(const judge_table *t);

/* judge_words -- the words of a row's text behind the first one, which are separated by ':': each(word, value, row), value NULL where a word
 * has no '='. 0; or -1: a word that is none. The text is cut. */
int judge_words(char *text, int (*each)(void *row, const char *word, const char *value), void *row);

/* judge_numbers -- all numbers of an array as binary32 (NULL without memory); judge_has_numbers: it is not bytes, and binary32 has its numbers. */
float *judge_numbers(const mpsim_judge_array *a);
mpsim_status judge_has_numbers(const judge_case *c, const mpsim_judge_array *a);

/* judge_lines -- the lines of a matrix that units are, as numbers of binary32. */
void judge_lines(float *to, const mpsim_judge_array *a, const judge_units *u, size_t columns);

/* judge_math_at -- formats that every operation of a row may be rounded to, up to NULL; the first, binary32, is NULL in the functions of lib. */
const mpsim_format *judge_math_at(size_t i);
/* judge_math -- what these functions take; judge_math_word: ":math=bf16", or nothing. judge_unit_of: the relative error of an operation. */
const mpsim_format *judge_math(const mpsim_format *f);
const char *judge_math_word(char out[48], const mpsim_format *f);
double judge_unit_of(const mpsim_format *f);
