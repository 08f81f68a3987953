/* stale.c -- see stale.h. */
#include "stale.h"

#include <inttypes.h>
#include <string.h>

/* Whether side `x` at this step is side `y` of the step before. */
static int is_before(verdict_case *c, int x, int y, int *same, trace_error *error)
{
    *same = 0;
    return c->before[y] ? walk_same(c->sides[y], c->before[y], c->sides[x], c->tensors[x], c->walk.lanes, same, error)
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

int stale_step(verdict_case *c, finding *f, trace_error *error)
{
    int same[2][2];
    const int zero[2] = {c->all.zero[0] == c->all.count, c->all.zero[1] == c->all.count};
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 2; y++)
            if (is_before(c, x, y, &same[x][y], error))
                return -1;
    for (int x = 1; x >= 0; x--) { /* B first: A is what it is compared with */
        const int stays = same[x][x] && !same[1 - x][1 - x], behind = same[x][1 - x] && !same[1 - x][1 - x];
        if ((!stays && !behind) || (zero[x] && !behind))
            continue;
        finding_init(f, VERDICT_STEP_SKIPPED);
        if (stays)
            finding_say(f, "%s is what it was at step %" PRId64 ", in all bits, where %s has moved on: %s",
                        x ? "B" : "A", c->step_before, x ? "A" : "B", what_it_is(c->tensors[x]->kind));
        else
            finding_say(f, "%s is what %s was at step %" PRId64 ", in all bits: it is a step behind",
                        x ? "B" : "A", x ? "A" : "B", c->step_before);
        if (stays && behind)
            finding_say(f, "; so was %s then", x ? "A" : "B");
        return 1;
    }
    return 0;
}
