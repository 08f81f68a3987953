/* numbers.c -- see numbers.h. A question is asked of a few elements first, then of all. */
#include "impl.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- asking ---- */

typedef struct asking {
    const fit_question *question;
    int from; /* the side that is rounded: 0 for A */
    fit *lanes;
} asking;

static int look_fit(void *context, int lane, const walk_piece *p)
{
    asking *a = context;
    fit *f = &a->lanes[lane];
    for (size_t at = 0; at < p->n && !f->missed; at += FIT_MOST)
        diff_fit_add(f, a->question, p->values[a->from] + at, p->values[1 - a->from] + at,
                     p->n - at < FIT_MOST ? p->n - at : FIT_MOST);
    return f->missed > 0;
}

static int ask_range(verdict_case *c, asking *a, uint64_t first, uint64_t end, fit *sum, trace_error *error)
{
    memset(a->lanes, 0, (size_t)c->walk.lanes * sizeof *a->lanes);
    if (diff_walk_range(&c->walk, first, end, 0, 1, look_fit, a, error))
        return -1;
    memset(sum, 0, sizeof *sum);
    for (int i = 0; i < c->walk.lanes; i++)
        diff_fit_merge(sum, &a->lanes[i]);
    return 0;
}

/* Whether a question holds for all elements of the part: 1 with *sum, 0, or -1. */
static int ask(verdict_case *c, const fit_question *q, int from, fit *sum, trace_error *error)
{
    enum { SOME = 512 };
    const measure *m = &c->part;
    const double x[] = {m->first.values[from], m->last.values[from], m->worst.values[from]};
    const double y[] = {m->first.values[1 - from], m->last.values[1 - from], m->worst.values[1 - from]};
    fit few = {0};
    if (!diff_fit_may_hold(q, y[0]))
        return 0;
    diff_fit_add(&few, q, x, y, m->compared ? 3 : 2);
    if (few.missed)
        return 0;
    asking a = {q, from, need_memory((uint64_t)c->walk.lanes, sizeof *a.lanes)};
    const uint64_t some = c->end - c->first < SOME ? c->end : c->first + SOME;
    int bad = ask_range(c, &a, c->first, some, sum, error);
    if (!bad && !sum->missed && some < c->end)
        bad = ask_range(c, &a, c->first, c->end, sum, error);
    free(a.lanes);
    return bad ? -1 : sum->missed == 0;
}

/* ---- roundings ---- */

static const char *side_name(int which)
{
    return which ? "B" : "A";
}

static void say_overflow(finding *f, const fit *sum)
{
    const char *overflow = diff_fit_overflow(sum);
    char a[32];
    if (overflow)
        diff_finding_say(f, "; overflow (%s): %s", text_count(a, sum->infinite + sum->nan + sum->saturated), overflow);
    if (sum->flushed)
        diff_finding_say(f, "; subnormal results flushed to zero (%s)", text_count(a, sum->flushed));
}

static void say_fit(const verdict_case *c, finding *f, const fit_question *q, int from, const fit *sum)
{
    char a[32], b[96], s[32] = "";
    const char *mode = diff_fit_mode(sum);
    snprintf(f->format, sizeof f->format, "%s", q->format.name);
    f->mode = mode;
    if (q->scale != 1) {
        f->scale = q->scale;
        text_number(s, q->scale);
    }
    const int stochastic = strcmp(mode, "stochastic") == 0;
    diff_finding_say(f, "%s = round(%s%s%s, %s%s%s)%s%s exactly, for %s, %s of them rounded", side_name(1 - from),
                     side_name(from), s[0] ? " * " : "", s, q->format.name, stochastic ? "" : ", ",
                     stochastic ? "" : mode, q->back ? " / " : "", q->back ? s : "", diff_verdict_range(b, c),
                     text_count(a, sum->inexact));
    if (stochastic)
        diff_finding_say(f, ": each to one of its two neighbours, %s to the nearest, as stochastic rounding does",
                         text_share(a, sum->nearest, sum->inexact));
    say_overflow(f, sum);
}

/* Whether what fits is no accident: that each rounded number has so few bits is one chance in 2^(bits fewer), but in
 * the format of the other side, which has no more. */
static int convinces(const verdict_case *c, const fit_question *q, int from, const fit *sum)
{
    enum { ENOUGH = 16, BITS = 20, SCALED_BITS = 48 };
    const mpsim_format *other = c->tensors[1 - from]->format;
    const int own = mpsim_format_same(&q->format, other) && !q->back, fewer = other->mbits - q->format.mbits;
    const char *mode = diff_fit_mode(sum);
    if (!mode || (sum->kept == 0 && !own) || (sum->inexact >= ENOUGH && sum->farthest < 0.125))
        return 0; /* roundings come near half an ULP somewhere; less is noise around numbers of the format */
    if (!own && (fewer <= 0 || sum->inexact < (uint64_t)((q->back ? SCALED_BITS : BITS) / fewer)))
        return 0;
    return strcmp(mode, "stochastic") != 0 ? sum->inexact >= 2 || own : sum->inexact >= 8;
}

static int try_format(verdict_case *c, finding *f, const mpsim_format *format, int from, double scale,
                      trace_error *error)
{
    const fit_question q = {
        .format = *format, .scale = scale, .back = scale != 1, .slack = ldexp(1, -c->tensors[1 - from]->format->mbits)};
    fit sum;
    const int found = ask(c, &q, from, &sum, error);
    if (found <= 0 || !convinces(c, &q, from, &sum))
        return found < 0 ? -1 : 0;
    diff_finding_init(f, VERDICT_ROUNDED);
    say_fit(c, f, &q, from, &sum);
    return 1;
}

int diff_numbers_rounded_own(verdict_case *c, finding *f, trace_error *error)
{
    int found = 0;
    if (c->measurer.same)
        return 0;
    for (int from = 0; from < 2 && !found; from++)
        found = try_format(c, f, c->tensors[1 - from]->format, from, 1, error);
    return found;
}

/* Scales that a recipe would have put before a cast: the largest element becomes the largest number; or the power
 * of two below that. */
static double usual_scale(const verdict_case *c, int from, const mpsim_format *format, int power)
{
    const double scale = (double)(float)(mpsim_format_max(format) / c->all.amax[from]);
    int e;
    if (!(scale > 0) || !isfinite(scale))
        return 1;
    if (!power)
        return scale;
    frexp(scale, &e);
    return ldexp(1, e - power);
}

/* Formats that trainings use; the others of the table are asked after these. */
static int is_common(const mpsim_format *f)
{
    static const char *const names[] = {"tf32",     "fp16",     "bf16", "e4m3", "e5m2",
                                        "e4m3fnuz", "e5m2fnuz", "e3m2", "e2m3", "e2m1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], f->name) == 0)
            return 1;
    return 0;
}

/* Formats in the order in which they are asked after: common ones first, the narrower before the wider, since the
 * narrowest that fits says most. */
typedef struct asked {
    const mpsim_format *format;
    int common;
} asked;

static int by_width(const void *a, const void *b)
{
    const asked *x = a, *y = b;
    if (x->common != y->common)
        return y->common - x->common;
    if (x->format->bits != y->format->bits)
        return x->format->bits < y->format->bits ? -1 : 1;
    return (x->format > y->format) - (x->format < y->format); /* of one table: in its order */
}

enum { ASKED = 64 };

/* Made once: differences are judged by one thread. */
static const asked *list_formats(size_t *count)
{
    static asked list[ASKED];
    static size_t n;
    if (n == 0) {
        for (size_t i = 0; i < mpsim_format_count() && n < ASKED; i++) {
            const mpsim_format *f = mpsim_format_at(i);
            if (f->bits <= 32 && mpsim_format_is_signed(f))
                list[n++] = (asked){f, is_common(f)};
        }
        qsort(list, n, sizeof *list, by_width);
    }
    *count = n;
    return list;
}

/* One format, scaled in one way: 0 not at all, 1 to its largest number, 2 and 3 to powers of two below that. */
static int try_way(verdict_case *c, finding *f, const mpsim_format *format, int from, int way, trace_error *error)
{
    if ((way != 1 && c->part.significant[1 - from] > format->mbits + 1u) ||
        (way && format->mbits >= c->tensors[1 - from]->format->mbits))
        return 0; /* not a number of the format, or every number is one */
    const double scale = way ? usual_scale(c, from, format, way - 1) : 1;
    return way && scale == 1 ? 0 : try_format(c, f, format, from, scale, error);
}

int diff_numbers_rounded(verdict_case *c, finding *f, trace_error *error)
{
    enum { WAYS = 4 };
    size_t n;
    const asked *list = list_formats(&n);
    int found = 0;
    for (size_t first = 0, end; first < n && !found; first = end) {
        for (end = first; end < n && list[end].common == list[first].common;)
            end++;
        for (int from = 0; from < 2 && !found; from++)
            for (int way = 0; way < WAYS && !found; way++)
                for (size_t i = first; i < end && !found; i++)
                    found = try_way(c, f, list[i].format, from, way, error);
    }
    return found;
}

/* ---- a constant ratio ---- */

/* Whether a scale belongs to a cast: into a format of 8 bits or less, from a wider one. */
static int is_cast(const verdict_case *c, int from)
{
    return !c->measurer.same && c->tensors[1 - from]->format->bits <= 8 &&
           c->tensors[1 - from]->format->bits < c->tensors[from]->format->bits;
}

/* The power of two nearest to x > 0 by its ratio. */
static double nearest_power(double x)
{
    int e;
    return ldexp(1, frexp(x, &e) < 0x1.6a09e667f3bcdp-1 ? e - 1 : e);
}

/* Numbers that a scale between two limits may be, the likeliest first. */
static size_t likely_scales(double scales[8], const verdict_case *c, int from, double low, double high)
{
    const double middle = low + (high - low) / 2, power = nearest_power(middle), n = round(middle),
                 m = round(1 / middle);
    const double own = (double)(float)(mpsim_format_max(c->tensors[1 - from]->format) / c->all.amax[from]);
    const double all[] = {power, is_cast(c, from) ? own : n, n, 1 / m, (double)(float)(1 / m), (double)(float)middle,
                          middle};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (isfinite(all[i]) && all[i] > 0 && all[i] >= low && all[i] <= high)
            scales[count++] = all[i];
    return count;
}

static void say_cause(finding *f, double scale)
{
    int e;
    const double n = scale < 1 ? 1 / scale : scale;
    const int power = frexp(n, &e) == 0.5;
    if (power && e - 1 >= 7)
        diff_finding_say(f, ": a loss scale that %s?", scale > 1 ? "was not removed" : "was removed in B alone");
    else if (fabs(n - round(n)) < 1e-5 * n && n < 65536)
        diff_finding_say(f, ": %s over %.0f (ranks, micro-batches)%s?",
                         scale > 1 ? "a sum instead of a mean" : "a mean instead of a sum", round(n),
                         power ? ", or a small loss scale" : "");
    else if (scale < 1)
        diff_finding_say(f, ": as a clip by the norm, or another learning rate, leaves it?");
}

/* The ratio as words, "2^16" or a number. */
static const char *ratio_text(char out[32], double scale)
{
    int e;
    if (frexp(scale, &e) == 0.5 && (e > 4 || e < -3))
        return text_scale(out, scale);
    for (int digits = 4; digits <= 9; digits++) { /* as few as tell its binary32 number */
        snprintf(out, 32, "%.*g", digits, scale);
        if (strtof(out, NULL) == (float)scale)
            break;
    }
    return out;
}

static int scaled_exactly(verdict_case *c, finding *f, int from, double low, double high, trace_error *error)
{
    double scales[8];
    char a[32], b[96], s[32], back[32];
    const size_t n = likely_scales(scales, c, from, low, high);
    for (size_t i = 0; i < n; i++) {
        const fit_question q = {.format = *c->tensors[1 - from]->format, .scale = scales[i]};
        fit sum;
        const int found = ask(c, &q, from, &sum, error);
        if (found < 0)
            return -1;
        if (!found)
            continue;
        if (is_cast(c, from)) {
            diff_finding_init(f, VERDICT_ROUNDED);
            say_fit(c, f, &q, from, &sum);
            return 1;
        }
        diff_finding_init(f, VERDICT_SCALED);
        f->scale = from ? 1 / scales[i] : scales[i];
        ratio_text(s, scales[i]);
        diff_finding_say(f, "%s = %s * %s exactly, for %s", side_name(1 - from), side_name(from), s,
                         diff_verdict_range(b, c));
        if (sum.inexact) {
            diff_finding_say(f, ", %s of them rounded to %s", text_count(a, sum.inexact), q.format.name);
            f->mode = diff_fit_mode(&sum);
        }
        if (from)
            diff_finding_say(f, " (B is %s times A)", ratio_text(back, f->scale));
        say_overflow(f, &sum);
        say_cause(f, f->scale);
        return 1;
    }
    return 0;
}

/* Whether the ratio is 1 but for what roundings do. */
static int is_one(const verdict_case *c, int from, double low, double high)
{
    const double unit = ldexp(1, -c->tensors[1 - from]->format->mbits), middle = low + (high - low) / 2;
    return (low <= 1 && high >= 1) || (fabs(middle - 1) < 16 * unit && c->part.ratios < 32);
}

int diff_numbers_scaled(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    char a[32], b[32], text[96];
    for (int from = 0; from < 2; from++) {
        const double low = m->scale_min[from], high = m->scale_max[from];
        if (m->ratios == 0 || !(low > 0) || !(low <= high) || m->ratio_min < 0 || is_one(c, from, low, high))
            continue;
        const int found = scaled_exactly(c, f, from, low, high, error);
        if (found && (found < 0 || m->ratios > 1 || f->scale == nearest_power(f->scale)))
            return found;
        if (m->ratios < 3 || m->zeroed || m->filled || m->broke || m->mended)
            continue;
        diff_finding_init(f, VERDICT_SCALED);
        f->scale = from ? 2 / (low + high) : (low + high) / 2;
        snprintf(b, sizeof b, "%.9g", f->scale);
        diff_finding_say(f, "B / A is %s within an ULP for %s that are not zero", b, diff_verdict_range(text, c));
        diff_finding_say(f, " (from %s", text_number(a, m->ratio_min));
        diff_finding_say(f, " to %s)", text_number(a, m->ratio_max));
        say_cause(f, f->scale);
        return 1;
    }
    return 0;
}
