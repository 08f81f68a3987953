/* cast.c -- the judge of casts (mpsim/judge.h). */
#include "castsearch.h"

#include <stdlib.h>
#include <string.h>

const char *const judge_cast_roles[] = {"x", "y", NULL, NULL};
enum { X, Y };

/* The format of the results: bytes are codes of the row's. */
static const mpsim_format *format_of(const mpsim_judge_array *y, const cast_row *like)
{
    return y->format ? y->format : like && mpsim_format_code_bytes(&like->format) == 1 ? &like->format : NULL;
}

static mpsim_status check(judge_case *c, cast_row *like)
{
    const mpsim_judge_array *x = c->of[X], *y = c->of[Y];
    if (!x->format)
        return judge_fail(c, MPSIM_EINVAL, "x: expected numbers, found bytes");
    if (x->rows != y->rows || x->columns != y->columns)
        return judge_fail(c, MPSIM_EINVAL, "expected as many results as numbers: x is %zu x %zu, y is %zu x %zu",
                          x->rows, x->columns, y->rows, y->columns);
    if (c->like && judge_cast_row_parse(like, c->like, x->format, c->why, c->size))
        return MPSIM_ENOTFOUND;
    const mpsim_format *f = format_of(y, c->like ? like : NULL);
    if (!f)
        return judge_fail(c, MPSIM_EINVAL,
                          "y: expected numbers, found bytes: codes need a row (like) that says of which format");
    if (c->like && !judge_cast_holds(f, &like->format))
        return judge_fail(c, MPSIM_ERANGE, "y has numbers of %s, which are not all of %s", f->name, like->format.name);
    return MPSIM_OK;
}

mpsim_status judge_cast(judge_case *c)
{
    const mpsim_judge_array *x = c->of[X], *y = c->of[Y];
    cast_row like;
    mpsim_status status = check(c, &like);
    if (status != MPSIM_OK)
        return status;
    const mpsim_format to = *format_of(y, c->like ? &like : NULL);
    const cast_arrays a = {x->format, &to, x->codes, y->codes, x->rows * x->columns};
    cast_search s = {.w = c, .a = &a};
    c->j->role = y->role;
    c->j->format = to;
    c->j->rows = y->rows;
    c->j->columns = y->columns;
    c->j->results = a.n;
    const uint64_t as_like = c->like ? judge_cast_differ(c, &a, &like, NULL, NULL) : 0;
    if (!c->like || (as_like && !c->sink))
        status = judge_cast_find(&s);
    if (status == MPSIM_OK)
        status = judge_cast_report(&s, c->like ? &like : &s.best, c->like != NULL);
    judge_cast_clear(&s.special);
    return status;
}
