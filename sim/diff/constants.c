/* constants.c -- see constants.h. */
#include "impl.h"

#include "../record/cells.h"

#include <math.h>

/* Whether the narrower side is the other one rounded to its format, to nearest even. */
static int is_rounded(const verdict_case *c, double a, double b)
{
    const mpsim_format *x = c->tensors[0]->format, *y = c->tensors[1]->format;
    mpsim_rounding r;
    if (c->measurer.same)
        return 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const int to_b = mpsim_format_same(&c->measurer.narrow, y);
    return to_b ? mpsim_decode(y, mpsim_encode_f64(y, &r, a, 0, NULL)) == b
                : mpsim_decode(x, mpsim_encode_f64(x, &r, b, 0, NULL)) == a;
}

static void say_rounded(const verdict_case *c, finding *f)
{
    const int to_b = mpsim_format_same(&c->measurer.narrow, c->tensors[1]->format);
    diff_finding_say(f, "; %s is %s rounded to %s", to_b ? "B" : "A", to_b ? "A" : "B", c->measurer.narrow.name);
}

int diff_constants_scalar(verdict_case *c, finding *f, trace_error *error)
{
    const double a = c->all.first.values[0], b = c->all.first.values[1];
    char text[32];
    (void)error;
    if (c->all.count != 1 || !isfinite(a) || !isfinite(b))
        return 0;
    diff_finding_init(f, VERDICT_SCALAR);
    diff_finding_say(f, "one number each, B - A is %s", text_number(text, b - a));
    if (a != 0)
        diff_finding_say(f, ", B / A %s", text_number(text, b / a));
    if (is_rounded(c, a, b))
        say_rounded(c, f);
    diff_finding_say(f, ". Many causes fit one number");
    return 1;
}

static int is_constant(const measure *m, int which)
{
    return m->levels[which].n == 1 && isfinite(m->levels[which].x[0]);
}

static void say_side(const measure *m, finding *f, int which)
{
    const char *name = which ? "B" : "A";
    char a[32];
    if (is_constant(m, which))
        diff_finding_say(f, "%s is %s everywhere", name, text_number(a, m->levels[which].x[0]));
    else
        diff_finding_say(f, "%s lies between %.6g and %.6g", name, m->low[which], m->high[which]);
}

int diff_constants_constant(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->all;
    const int both = is_constant(m, 0) && is_constant(m, 1), which = is_constant(m, 1);
    (void)error;
    if (!(is_constant(m, 0) || is_constant(m, 1)) || m->nan[1 - which] || m->inf[1 - which] ||
        (!both && m->levels[which].x[0] == 0))
        return 0;
    diff_finding_init(f, VERDICT_CONSTANT);
    say_side(m, f, which);
    diff_finding_say(f, ", ");
    say_side(m, f, 1 - which);
    if (both && is_rounded(c, m->levels[0].x[0], m->levels[1].x[0]))
        say_rounded(c, f);
    diff_finding_say(f, ". A constant fits many causes%s",
                     both ? "" : ": one side was never trained, or never written?");
    return 1;
}
