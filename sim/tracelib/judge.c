/* judge.c -- see mpsim/judge.h: sim/judge for a caller. */
#include "../judge/judge.h"

#include "surroundings.h"

const char *mpsim_judge_kind_name(unsigned kind)
{
    return judge_kind_name(kind);
}

const char *const *mpsim_judge_roles(mpsim_judge_kind kind)
{
    return (unsigned)kind < MPSIM_JUDGE_KINDS ? judge_roles(kind) : NULL;
}

const char *const *mpsim_judge_causes(void)
{
    return judge_causes();
}

mpsim_status mpsim_judge(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                         const char *like, const mpsim_pool *pool, char *error, size_t size)
{
    surroundings own;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return MPSIM_ENOMEM;
    tracelib_surroundings_enter(&own, c);
    const mpsim_status s = judge_run(j, kind, arrays, n, like, pool, error, size);
    tracelib_surroundings_leave(&own);
    freelocale(c);
    return s;
}
