/* judge.h -- mpsim/judge.h for the program: the same functions, in the surroundings of the caller. */
#pragma once

#include <mpsim/judge.h>

const char *judge_kind_name(unsigned kind);
const char *const *judge_roles(mpsim_judge_kind kind);
/* judge_roles_text -- these roles, those that must be there first, as "x, y". Returns text. */
const char *judge_roles_text(char *text, size_t size, const char *const *roles);
const char *const *judge_causes(void);

/* What gets results that are counted alone: of each array of results its role, how many are not the row's, and the row's codes. */
typedef struct judge_sink {
    void (*take)(void *self, const char *role, uint64_t differ, const mpsim_format *f, const void *expected, size_t n);
    void *self;
} judge_sink;

/* judge_count -- the results of the row `like`, or of the row with the fewest other results, and how many of them the arrays have: j->row,
 * j->results, j->differ. No class of rows, no nearest row and no places are looked for. Of a quantiser `sink` gets nothing. */
mpsim_status judge_count(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                         const char *like, const mpsim_pool *pool, const judge_sink *sink, char *error, size_t size);
mpsim_status judge_run(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                       const char *like, const mpsim_pool *pool, char *error, size_t size);
