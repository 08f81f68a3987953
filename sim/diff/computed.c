/* computed.c -- see computed.h. */
#include "impl.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of a narrower format ---- */

typedef struct asking {
    fit_question question;
    int which;        /* the side */
    uint64_t *missed; /* of each lane */
} asking;

/* A number of the format is exactly its own rounding. */
static int look_numbers(void *context, int lane, const walk_piece *p)
{
    asking *a = context;
    fit f = {0};
    for (size_t at = 0; at < p->n && !f.missed && !f.inexact; at += FIT_MOST)
        diff_fit_add(&f, &a->question, p->values[a->which] + at, p->values[a->which] + at,
                     p->n - at < FIT_MOST ? p->n - at : FIT_MOST);
    a->missed[lane] += f.exact != p->n;
    return a->missed[lane] > 0;
}

/* Whether all elements of a side are numbers of a format: 1, 0, or -1. */
static int has_only(verdict_case *c, int which, const mpsim_format *format, trace_error *error)
{
    asking a = {{.format = *format, .scale = 1}, which, need_memory((uint64_t)c->walk.lanes, sizeof *a.missed)};
    uint64_t missed = 0;
    const int bad = diff_walk_range(&c->walk, 0, c->all.count, 0, 1, look_numbers, &a, error);
    for (int i = 0; i < c->walk.lanes; i++)
        missed += a.missed[i];
    free(a.missed);
    return bad ? -1 : missed == 0;
}

static void say_widened(const verdict_case *c, finding *f, int which, const mpsim_format *format)
{
    const char *own = which ? "B" : "A", *other = which ? "A" : "B";
    char a[32];
    diff_finding_init(f, VERDICT_COMPUTED);
    snprintf(f->format, sizeof f->format, "%s", format->name);
    diff_finding_say(f, "all of %s are numbers of %s, %s's are not; %s is not %s rounded to it, ", own, format->name,
                     other, own, other);
    diff_finding_say(f, "the error is %s of A (root mean squares)", text_number(a, diff_measure_relative(&c->all)));
    diff_finding_say(f, ": computed in %s and widened?", format->name);
}

int diff_computed_widened(verdict_case *c, finding *f, trace_error *error)
{
    enum { FEWEST = 8, MOST_BITS = 11 };
    static const char *const names[] = {"e5m2", "e4m3", "bf16", "fp16", "tf32"};
    const double relative = diff_measure_relative(&c->all);
    if (c->all.finite < FEWEST || c->all.broke + c->all.mended ||
        (c->all.significant[0] > MOST_BITS && c->all.significant[1] > MOST_BITS))
        return 0;
    for (int which = 1; which >= 0; which--)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            const mpsim_format *format = mpsim_format_find(names[i]), *own = c->tensors[which]->format;
            const unsigned bits = format->mbits + 1u;
            if (own->mbits <= format->mbits || c->all.significant[which] > bits ||
                c->all.significant[1 - which] <= bits || c->all.levels[which].n <= MEASURE_LEVELS ||
                !(relative <= ldexp(4, -(int)bits)))
                continue;
            const int has = has_only(c, which, format, error);
            if (has > 0)
                say_widened(c, f, which, format);
            if (has)
                return has;
        }
    return 0;
}

/* ---- operands ---- */

static int is_result(const char *kind)
{
    static const char *const kinds[] = {"act", "out", "agrad", "dgrad", "wgrad"};
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return 1;
    return 0;
}

/* Products of operands that are rounded to p bits err by 0.6 2^-p of their root mean square, where nothing cancels. */
int diff_computed_operands(verdict_case *c, finding *f, trace_error *error)
{
    static const struct {
        int bits;
        const char *name;
    } operands[] = {{8, "bf16"}, {11, "tf32 or fp16"}};
    enum { FEWEST = 64 };
    const measure *m = &c->all;
    const double relative = diff_measure_relative(m);
    char a[32], b[32], d[32];
    (void)error;
    if (!is_result(c->tensors[0]->kind) || m->differ < FEWEST || m->differ < m->count / 2 || m->differ != m->compared ||
        !diff_measure_is_balanced(m) || fabs(diff_measure_alignment(m)) > 0.3)
        return 0;
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        const double unit = ldexp(1, -operands[i].bits);
        if (relative < 0.3 * unit || relative > 1.5 * unit || c->measurer.narrow.mbits < operands[i].bits)
            continue;
        diff_finding_init(f, VERDICT_COMPUTED);
        diff_finding_say(f, "%s of the elements differ, %s upwards and %s downwards",
                         text_share(a, m->differ, m->count), text_count(b, m->larger), text_count(d, m->smaller));
        diff_finding_say(
            f, ", by %s of the tensor's root mean square, which is what operands of %d bits leave in products",
            text_number(a, relative), operands[i].bits);
        diff_finding_say(f, ": %s?", operands[i].name);
        diff_finding_say(f, " It looks like it; other causes of small errors look alike");
        return 1;
    }
    return 0;
}
