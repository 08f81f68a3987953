/* parts.c -- see parts.h. */
#include "impl.h"

#include "../record/cells.h"

#include <math.h>
#include <string.h>

#define A_LITTLE 0.1          /* of A, where they differ */
enum { LEVELS = 3, FEW = 8 }; /* different values, of more elements, that tell nothing */

/* Whether the elements that differ fill rows: *rows of them. */
static int fills_rows(verdict_case *c, rearrange_rows *rows, trace_error *error)
{
    const side_tensor *t = c->tensors[1];
    memset(rows, 0, sizeof *rows);
    if (t->rank < 2 || !c->measurer.same || t->shape[t->rank - 1] < 2 || c->all.differ < t->shape[t->rank - 1] / 2)
        return 0;
    if (diff_rearrange_by_rows(&c->walk, t->shape[t->rank - 1], rows, error))
        return -1;
    return rows->moved > 0 && c->all.differ >= rows->moved * rows->length - rows->moved * rows->length / 50;
}

static int is_of(const verdict_case *c, const char *const *kinds, size_t n)
{
    const char *kind = c->tensors[0]->kind;
    for (size_t i = 0; kind && i < n; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return 1;
    return 0;
}

/* Whether the rest that is equal says something: numbers, of more than a few values. */
static int has_rest(const verdict_case *c)
{
    const measure *m = &c->all;
    const uint64_t zeros = m->zero[1] - m->zeroed;
    return m->differ <= m->count / 2 && m->count - m->differ - zeros >= m->differ / 8 + 1 &&
           (m->levels[0].n > LEVELS || m->count < FEW);
}

/* Numbers of few bits that an update moves to their neighbours, where it moves them at all. */
static int is_lost_update(const verdict_case *c)
{
    static const char *const kinds[] = {"weight", "master", "opt.m", "opt.v", "opt.vmax"};
    return is_of(c, kinds, sizeof kinds / sizeof kinds[0]) && c->measurer.same && c->measurer.narrow.mbits <= 10 &&
           c->all.max_ulp <= 2;
}

/* Results of sums, or sums that were rounded the other way, of which some have moved a little: patterns.h says more. */
static int is_result(const verdict_case *c)
{
    static const char *const kinds[] = {"act", "out", "agrad", "dgrad", "wgrad"};
    const int bits = c->measurer.narrow.mbits + 1;
    return is_of(c, kinds, sizeof kinds / sizeof kinds[0]) ||
           (bits > 11 && diff_measure_relative_differ(&c->all) <= ldexp(16, -bits));
}

int diff_parts_moved(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->all;
    rearrange_rows rows;
    char a[32], b[32];
    if (!has_rest(c) || m->differ != m->compared)
        return 0;
    const int whole = fills_rows(c, &rows, error), lost = is_lost_update(c);
    if (whole < 0 || (!whole && !lost && (is_result(c) || diff_measure_relative_differ(m) > A_LITTLE)))
        return whole < 0 ? -1 : 0;
    diff_finding_init(f, VERDICT_PARTIAL);
    diff_finding_say(f, "%s of %s elements differ, the rest is equal", text_count(a, m->differ),
                     text_count(b, m->count));
    if (whole)
        diff_finding_say(f, ", in %s of %s rows, which differ as a whole", text_count(a, rows.moved),
                         text_count(b, rows.rows));
    diff_finding_say(f, "; the error is %s of A where they differ (root mean squares)",
                     text_number(a, diff_measure_relative_differ(m)));
    if (whole)
        diff_finding_say(f, ": the rows that one side's batch used, or what follows a first token that differs?");
    else if (lost)
        diff_finding_say(f, ": one unit in the last place, an update that most of these numbers lose?");
    return 1;
}

int diff_parts_corrupted(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->all;
    char a[32], b[32], d[32], text[96];
    (void)error;
    if (!has_rest(c) || diff_measure_relative_differ(m) <= A_LITTLE)
        return 0;
    diff_finding_init(f, VERDICT_CORRUPTED);
    if (m->differ == 1)
        diff_finding_say(f, "one element of %s differs", text_count(b, m->count));
    else if (c->end - c->first == m->differ)
        diff_finding_say(f, "%s hold other numbers, the rest is equal", diff_verdict_range(text, c));
    else
        diff_finding_say(f, "%s elements of %s differ, from element %s", text_count(a, m->differ),
                         text_count(b, m->count), text_count(d, c->first));
    if (m->differ > 1 && c->end - c->first != m->differ)
        diff_finding_say(f, " to %s", text_count(d, c->end - 1));
    diff_finding_say(f, "; ");
    diff_verdict_say_errors(c, f);
    return 1;
}
