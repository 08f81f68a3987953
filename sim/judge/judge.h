/* judge.h -- mpsim/judge.h for the program: the same functions, in the surroundings of the caller. */
#pragma once

#include <mpsim/judge.h>

const char *judge_kind_name(unsigned kind);
const char *const *judge_roles(mpsim_judge_kind kind);
const char *const *judge_causes(void);
mpsim_status judge_run(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                       const char *like, const mpsim_pool *pool, char *error, size_t size);
