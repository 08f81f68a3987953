/* judge.c -- see mpsim/judge.h: sim/judge for a caller. */
#include "../judge/inputs.h"
#include "../judge/judge.h"
#include "../judge/tolerance.h"

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

mpsim_status mpsim_judge_inputs(mpsim_judge_set *set, const char *row, const mpsim_format *from, const mpsim_pool *pool,
                                char *error, size_t size)
{
    surroundings own;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return MPSIM_ENOMEM;
    tracelib_surroundings_enter(&own, c);
    const mpsim_status s = judge_inputs_run(set, row, from, pool, error, size);
    tracelib_surroundings_leave(&own);
    freelocale(c);
    return s;
}

void mpsim_judge_set_clear(mpsim_judge_set *set)
{
    if (set)
        judge_set_clear(set);
}

mpsim_status mpsim_judge_tolerance_of(mpsim_judge_tolerance *t, const char *row, const mpsim_format *from,
                                      const mpsim_format *to, size_t depth, char *error, size_t size)
{
    surroundings own;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return MPSIM_ENOMEM;
    tracelib_surroundings_enter(&own, c);
    const mpsim_status s = judge_tolerance_run(t, row, from, to, depth, error, size);
    tracelib_surroundings_leave(&own);
    freelocale(c);
    return s;
}
