/* judge.c -- kinds of operations, and what is asked of each (mpsim/judge.h). */
#include "impl.h"

#include "../text/words.h"

#include <string.h>

static const struct {
    const char *name;
    const char *const *roles;
    mpsim_status (*run)(judge_case *c);
} kinds[MPSIM_JUDGE_KINDS] = {{"cast", judge_cast_roles, judge_cast},
                              {"quantise", judge_quantise_roles, judge_quantise},
                              {"product", judge_product_roles, judge_product},
                              {"sum", judge_sum_roles, judge_sum},
                              {"softmax", judge_softmax_roles, judge_softmax},
                              {"norm", judge_norm_roles, judge_norm},
                              {"activation", judge_activation_roles, judge_activation},
                              {"update", judge_update_roles, judge_update},
                              {"arith", judge_arith_roles, judge_arith},
                              {"attention", judge_attend_roles, judge_attend},
                              {"scaled-product", judge_block_roles, judge_block}};

const char *judge_kind_name(unsigned kind)
{
    return kind < MPSIM_JUDGE_KINDS ? kinds[kind].name : NULL;
}

const char *const *judge_roles(mpsim_judge_kind kind)
{
    return kinds[kind].roles;
}

/* ---- arrays ---- */

/* Which of the roles a word is; how many roles there are where it is none. *needed: of these, how many must be there. */
static size_t role_of(const char *const *roles, const char *word, size_t *needed)
{
    size_t n = 0, found = JUDGE_ROLES;
    for (int part = 0; part < 2; part++, roles++) {
        for (; *roles; roles++, n++)
            found = strcmp(*roles, word) == 0 ? n : found;
        if (part == 0)
            *needed = n;
    }
    return found;
}

const char *judge_roles_text(char *text, size_t size, const char *const *roles)
{
    *text = 0;
    for (int part = 0; part < 2; part++, roles++)
        for (; *roles; roles++)
            (void)text_add(text, size, "%s%s", *text ? ", " : "", *roles);
    return text;
}

static mpsim_status place(judge_case *c, const char *const *roles, const mpsim_judge_array *arrays, size_t n)
{
    size_t needed = 0;
    char all[256];
    role_of(roles, "", &needed);
    for (size_t i = 0; i < n; i++) {
        const mpsim_judge_array *a = &arrays[i];
        const size_t at = role_of(roles, a->role, &needed);
        if (at == JUDGE_ROLES)
            return judge_fail(c, MPSIM_EINVAL, "'%s' is not a role of this operation: %s", a->role,
                              judge_roles_text(all, sizeof all, roles));
        if (c->of[at])
            return judge_fail(c, MPSIM_EINVAL, "two arrays have the role '%s'", a->role);
        if ((a->format && mpsim_format_check(a->format) != MPSIM_OK) || (!a->codes && a->rows && a->columns))
            return judge_fail(c, MPSIM_EINVAL, "'%s': expected codes of a format", a->role);
        if (a->columns && a->rows > (size_t)PTRDIFF_MAX / sizeof(double) / a->columns)
            return judge_fail(c, MPSIM_EINVAL, "'%s': expected an array that memory can hold", a->role);
        c->of[at] = a;
    }
    for (size_t i = 0; i < needed; i++)
        if (!c->of[i])
            return judge_fail(c, MPSIM_EINVAL, "expected an array '%s', found none", roles[i]);
    return MPSIM_OK;
}

static mpsim_status run(judge_case *c, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n)
{
    if (!c->j || (unsigned)kind >= MPSIM_JUDGE_KINDS || (n && !arrays))
        return MPSIM_EINVAL;
    memset(c->j, 0, sizeof *c->j);
    const mpsim_status s = place(c, kinds[kind].roles, arrays, n);
    return s == MPSIM_OK ? kinds[kind].run(c) : s;
}

mpsim_status judge_run(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                       const char *like, const mpsim_pool *pool, char *error, size_t size)
{
    judge_case c = {{NULL}, like, pool, j, error, size, NULL};
    return run(&c, kind, arrays, n);
}

mpsim_status judge_count(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                         const char *like, const mpsim_pool *pool, const judge_sink *sink, char *error, size_t size)
{
    judge_case c = {{NULL}, like, pool, j, error, size, sink};
    return run(&c, kind, arrays, n);
}
