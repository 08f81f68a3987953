/* impl.h -- what the files of sim/judge have of one another. */
#pragma once

#include "judge.h"

enum { JUDGE_ROLES = 16, JUDGE_CHUNK = 2048, JUDGE_PIECE = 1 << 15 };

/* A question: the arrays of the roles of its kind, in the order of mpsim_judge_roles; NULL: not given. */
typedef struct judge_case {
    const mpsim_judge_array *of[JUDGE_ROLES];
    const char *like;
    const mpsim_pool *pool;
    mpsim_judgement *j;
    char *why;
    size_t size;
    const judge_sink *sink; /* judge_count: results are counted, nothing is searched; or NULL */
} judge_case;

/* ---- say.c ---- */

/* judge_fail -- a status, after its line. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
mpsim_status
judge_fail(const judge_case *c, mpsim_status status, const char *text, ...);

/* judge_find -- one more finding; where there is no room the one that explains least is left out. `cause` is of mpsim_judge_causes. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void judge_find(mpsim_judgement *j, const char *cause, uint64_t explains, const char *text, ...);

/* judge_forget -- drops findings of patterns and of rounding: another row gives all results. */
void judge_forget(mpsim_judgement *j);

/* judge_in_pieces -- task(i, job) for pieces 0 to n - 1, on the threads of the caller. */
void judge_in_pieces(const mpsim_pool *pool, size_t n, void (*task)(size_t i, void *job), void *job);

/* judge_percent -- a share as people read it: "0.02 %", "all". */
const char *judge_percent(char out[24], uint64_t part, uint64_t whole);

/* ---- narrow.c ---- */

/* judge_narrow_of -- bf16 or fp16, where all numbers of arrays of binary32 or wider formats are those of it, and not only a few of them any;
 * NULL: they are not. An array may be NULL. judge_narrow_codes -- an array's numbers as codes of f, to be freed; NULL without memory. */
const mpsim_format *judge_narrow_of(const mpsim_judge_array *const *arrays, size_t n);
void *judge_narrow_codes(const mpsim_format *f, const mpsim_judge_array *x);

/* ---- a file for each kind ---- */
mpsim_status judge_cast(judge_case *c);
mpsim_status judge_quantise(judge_case *c);
mpsim_status judge_product(judge_case *c);
mpsim_status judge_sum(judge_case *c);
mpsim_status judge_softmax(judge_case *c);
mpsim_status judge_norm(judge_case *c);
mpsim_status judge_activation(judge_case *c);
mpsim_status judge_update(judge_case *c);
mpsim_status judge_arith(judge_case *c);
mpsim_status judge_attend(judge_case *c);
mpsim_status judge_block(judge_case *c);
extern const char *const judge_cast_roles[], *const judge_quantise_roles[], *const judge_product_roles[];
extern const char *const judge_arith_roles[], *const judge_attend_roles[], *const judge_block_roles[];
extern const char *const judge_sum_roles[], *const judge_softmax_roles[], *const judge_norm_roles[],
                                                                              *const judge_activation_roles[],
                                                                                  *const judge_update_roles[];

/* ---- places.c: what results that differ have in common, whatever operation gave them ---- */

/* Results and what they should be: codes of one format. */
typedef struct judge_pair {
    const mpsim_format *format;
    const void *found, *expected;
    size_t rows, columns;
    int any_nan; /* 1: a NaN is equal to every NaN */
} judge_pair;

/* judge_pair_same -- whether element i of both is equal. */
int judge_pair_same(const judge_pair *p, size_t i);

/* judge_take -- the results of an array for judge_count. */
void judge_take(const judge_case *c, const char *role, const judge_pair *p);

/* What is said of results that differ: everything; only where they are, as the reason is known; or only what they are, as another row
 * gives all of them. */
typedef enum judge_look { JUDGE_ALL, JUDGE_WHERE, JUDGE_VALUES } judge_look;

/* judge_places -- how many differ, the first of them, and findings. */
void judge_places(mpsim_judgement *j, const judge_pair *p, judge_look look);
