/* stale.c -- see stale.h. */
#include "impl.h"

#include <inttypes.h>
#include <string.h>

/* Whether side `x` at this step is side `y` of the step before. */
static int is_before(verdict_case *c, int x, int y, int *same, trace_error *error)
{
    *same = 0;
    return c->before[y]
               ? diff_walk_same(c->sides[y], c->before[y], c->sides[x], c->tensors[x], c->walk.lanes, same, error)
               : 0;
}

static const char *what_it_is(const char *kind)
{
    static const char *const updated[] = {"weight", "master", "opt.m", "opt.v", "opt.vmax"};
    for (size_t i = 0; i < sizeof updated / sizeof updated[0]; i++)
        if (kind && strcmp(kind, updated[i]) == 0)
            return "an update was skipped";
    return "it was not computed anew";
}

/* Whether side x is behind the other one, y. */
static int judge(verdict_case *c, int x, finding *f, trace_error *error)
{
    const int y = 1 - x;
    int stays, behind, other_stays;
    if (is_before(c, x, x, &stays, error) || is_before(c, x, y, &behind, error) ||
        is_before(c, y, y, &other_stays, error))
        return -1;
    if (other_stays || (!stays && !behind) || (c->all.zero[x] == c->all.count && !behind))
        return 0;
    diff_finding_init(f, VERDICT_STEP_SKIPPED);
    if (stays)
        diff_finding_say(f, "%s is what it was at step %" PRId64 ", in all bits, where %s has moved on: %s",
                         x ? "B" : "A", c->step_before, x ? "A" : "B", what_it_is(c->tensors[x]->kind));
    else
        diff_finding_say(f, "%s is what %s was at step %" PRId64 ", in all bits: it is a step behind", x ? "B" : "A",
                         x ? "A" : "B", c->step_before);
    if (stays && behind)
        diff_finding_say(f, "; %s was the same there", x ? "A" : "B");
    return 1;
}

int diff_stale_shifted(verdict_case *c, finding *f, trace_error *error)
{
    (void)error;
    if (!c->elsewhere)
        return 0;
    diff_finding_init(f, VERDICT_STEP_SHIFTED);
    diff_finding_say(f,
                     "B is what A is at step %" PRId64
                     ", in all bits: its steps are counted otherwise, or it began from "
                     "another checkpoint?",
                     c->step_elsewhere);
    return 1;
}

int diff_stale_b(verdict_case *c, finding *f, trace_error *error)
{
    return judge(c, 1, f, error);
}

int diff_stale_a(verdict_case *c, finding *f, trace_error *error)
{
    if (c->all.differ < c->all.count / 2 || !(diff_measure_correlation(&c->all) > 0.5))
        return 0; /* that is no update of B */
    return judge(c, 0, f, error);
}
