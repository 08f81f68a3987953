/* formulas.c -- see formulas.h.
 *
 * Results are tried at the crossings of some rows and columns, and at some places that differ. A formula fits if all of them are as near to
 * its values as rounding leaves them; a factor or an offset if one number is within that of all. */
#include "formulas.h"

#include "../operand/element.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SIDE = 12, MORE = 48, TRIED = SIDE * SIDE + MORE, LEAST = 8 };

typedef struct tried {
    const judge_pair *p;
    const judge_formulas *f;
    size_t at[TRIED], n;
    size_t rows, columns; /* of the crossings, which come first */
    double found[TRIED];
    double expected[TRIED], bound[TRIED],
        loose[TRIED];                  /* of one formula; loose: for results that are off by a number */
    double origin[TRIED], math[TRIED]; /* math: what the operations before the last rounding leave */
} tried;

/* The value itself is rounded to binary64. */
static const double ALMOST = 1 + 0x1p-20;

static size_t spread(size_t i, size_t some, size_t n)
{
    return some < 2 ? 0 : (size_t)((double)i * ((double)(n - 1) / (double)(some - 1)));
}

static void take_crossings(tried *t)
{
    t->rows = t->p->rows < SIDE ? t->p->rows : SIDE;
    t->columns = t->p->columns < SIDE ? t->p->columns : SIDE;
    for (size_t i = 0; i < t->rows; i++)
        for (size_t k = 0; k < t->columns; k++)
            t->at[t->n++] = spread(i, t->rows, t->p->rows) * t->p->columns + spread(k, t->columns, t->p->columns);
}

/* Places that differ: every so many of them. */
static void take_differing(tried *t, uint64_t differ)
{
    const size_t all = t->p->rows * t->p->columns;
    const uint64_t step = differ / MORE + 1;
    uint64_t seen = 0;
    for (size_t i = 0; i < all && t->n < TRIED; i++)
        if (!judge_pair_same(t->p, i) && seen++ % step == 0)
            t->at[t->n++] = i;
}

static void look(tried *t)
{
    const size_t bytes = mpsim_format_code_bytes(t->p->format);
    for (size_t i = 0; i < t->n; i++) {
        t->found[i] = mpsim_decode(t->p->format, element_code(t->p->found, bytes, t->at[i]));
        t->origin[i] = t->f->origin ? t->f->origin(t->f->self, t->at[i]) : 0;
    }
}

static void take(tried *t, uint64_t differ)
{
    take_crossings(t);
    take_differing(t, differ);
    look(t);
}

/* ---- whether a formula fits ---- */

/* The power of two below a magnitude: half a unit in the last place is the same for all of a binade. */
static double binade(double x)
{
    int exponent;
    if (!(x > 0) || !isfinite(x))
        return x;
    (void)frexp(x, &exponent);
    return ldexp(1, exponent - 1);
}

static void value(tried *t, size_t formula)
{
    const double least = mpsim_format_min_positive(t->p->format);
    for (size_t i = 0; i < t->n; i++) {
        const judge_exact e = t->f->exact(t->f->self, formula, t->at[i]);
        t->expected[i] = e.value;
        const double unit = t->f->halves ? t->f->unit / 2 : t->f->unit;
        t->math[i] = e.bound;
        t->loose[i] = e.bound < 0 ? 0 : e.bound + t->f->unit * (fabs(e.value) + e.bound) + least;
        t->bound[i] = e.bound < 0 ? 0 : e.bound + unit * binade(fabs(e.value) + e.bound) * ALMOST + least;
    }
}

static int is_beyond(const tried *t, double x)
{
    return fabs(x) >= mpsim_format_max(t->p->format) * (1 - t->f->unit);
}

/* Whether result i is the value but for rounding. */
static int is_near(const tried *t, size_t i)
{
    const double found = t->found[i], e = t->expected[i];
    if (isnan(e) || isnan(found))
        return isnan(e) && isnan(found);
    if (is_beyond(t, e) && t->bound[i] > 0)
        return found * e > 0 && is_beyond(t, found);
    return fabs(found - e) <= t->bound[i];
}

static size_t near(const tried *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += is_near(t, i) ? 1u : 0u;
    return n;
}

/* NaNs alone are near to every formula that has no value there. */
static int has_values(const tried *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += isnan(t->expected[i]) ? 0u : 1u;
    return n > 0;
}

/* ---- one number between results and values ---- */

typedef struct range {
    double low, high;
    size_t n;
} range;

static void narrow(range *r, double low, double high)
{
    r->low = r->n ? fmax(r->low, fmin(low, high)) : fmin(low, high);
    r->high = r->n ? fmin(r->high, fmax(low, high)) : fmax(low, high);
    r->n++;
}

static double middle(const range *r)
{
    return r->low / 2 + r->high / 2;
}

/* Whether one number was in all ranges, which is not `right`, and is known to one in twenty. */
static int is_one(const range *r, double right)
{
    const double width = r->high - r->low;
    return width >= 0 && (right < r->low || right > r->high) && width <= fabs(middle(r)) / 20;
}

/* The factors and the offsets that result i allows. */
static void add_result(const tried *t, size_t i, range *factor, range *offset)
{
    const double found = t->found[i], e = t->expected[i], b = t->loose[i];
    if (isnan(e) || !isfinite(found) || is_beyond(t, e))
        return;
    narrow(offset, found - e - b, found - e + b);
    const double moved = found - t->origin[i], right = e - t->origin[i];
    if (fabs(right) > 4 * b)
        narrow(factor, (moved - b) / right, (moved + b) / right);
}

static int find_number(mpsim_judgement *j, const tried *t)
{
    range factor = {0}, offset = {0};
    for (size_t i = 0; i < t->n; i++)
        add_result(t, i, &factor, &offset);
    if (factor.n >= LEAST && is_one(&factor, 1)) {
        judge_find(j, "factor", j->differ, "%s %.6g times what %s should be",
                   t->f->origin ? "the step is" : "the results are", middle(&factor), t->f->origin ? "it" : "they");
        return 1;
    }
    if (offset.n >= LEAST && is_one(&offset, 0)) {
        judge_find(j, "offset", j->differ, "the results are what they should be plus %.6g", middle(&offset));
        return 1;
    }
    return 0;
}

/* Whether every row or every column of the crossings has a factor, or an offset, of its own; of one at least it is not the right one. */
static int find_lines(mpsim_judgement *j, const tried *t, int columns)
{
    const size_t lines = columns ? t->columns : t->rows, length = columns ? t->rows : t->columns;
    size_t factors = 0, offsets = 0, other_factors = 0, other_offsets = 0, first = lines;
    double number[2] = {0, 0};
    for (size_t l = 0; l < lines && length >= 4; l++) {
        range factor = {0}, offset = {0};
        for (size_t i = 0; i < length; i++)
            add_result(t, columns ? i * t->columns + l : l * t->columns + i, &factor, &offset);
        factors += factor.n >= 3 && factor.low <= factor.high;
        offsets += offset.n >= 4 && offset.low <= offset.high;
        other_factors += factor.n >= 3 && is_one(&factor, 1);
        other_offsets += offset.n >= 4 && is_one(&offset, 0);
        if (first == lines && (other_factors || other_offsets)) {
            first = l;
            number[0] = middle(&factor);
            number[1] = middle(&offset);
        }
    }
    const char *what = columns ? "column" : "row";
    const size_t at = spread(first, lines, columns ? t->p->columns : t->p->rows);
    if (lines < 2 || first == lines)
        return 0;
    if (factors == lines && 2 * other_factors >= lines)
        judge_find(j, "factor", j->differ, "the results of each %s are off by a factor of the %s: %.6g in %s %zu", what,
                   what, number[0], what, at);
    else if (offsets == lines && 2 * other_offsets >= lines)
        judge_find(j, "offset", j->differ, "the results of each %s are off by an offset of the %s: %.6g in %s %zu",
                   what, what, number[1], what, at);
    else
        return 0;
    return 1;
}

/* ---- factors of rows that only many results of a row show ---- */

enum { MANY = 256 };

/* The factors that results of a row allow, each within half a unit in its last place. */
static range factors_of_row(const tried *t, size_t row)
{
    const judge_pair *p = t->p;
    const size_t n = p->columns < MANY ? p->columns : MANY, bytes = mpsim_format_code_bytes(p->format);
    const double least = mpsim_format_min_normal(p->format);
    range r = {0};
    for (size_t i = 0; i < n; i++) {
        const size_t at = row * p->columns + spread(i, n, p->columns);
        const judge_exact e = t->f->exact(t->f->self, 0, at);
        const double found = mpsim_decode(p->format, element_code(p->found, bytes, at));
        const double slack = e.bound + t->f->unit / 2 * binade(fabs(found)) * ALMOST;
        if (e.bound >= 0 && isfinite(found) && fabs(found) >= least && fabs(e.value) >= least)
            narrow(&r, (found - slack) / e.value, (found + slack) / e.value);
    }
    return r;
}

/* Whether every row has one factor, and for half of the rows this is not 1: a number of the row was rounded. */
static int find_small_factors(mpsim_judgement *j, const tried *t)
{
    size_t other = 0;
    double most = 0;
    if (!t->f->halves || t->f->origin || t->rows < 4 || t->p->columns < 16)
        return 0;
    for (size_t i = 0; i < t->rows; i++) {
        const range r = factors_of_row(t, spread(i, t->rows, t->p->rows));
        if (r.n < 8 || r.high < r.low)
            return 0;
        other += r.low > 1 || r.high < 1;
        most = fmax(most, fabs(middle(&r) - 1));
    }
    if (2 * other < t->rows)
        return 0;
    judge_find(j, "factor", j->differ, "the results of each row are off by a factor of the row: up to 1 +- %.2g", most);
    return 1;
}

/* ---- rounding explains all but some rows, or columns ---- */

typedef struct part {
    int columns;
    size_t first, last;
} part;

static size_t lines_of(const tried *t, int columns)
{
    return columns ? t->p->columns : t->p->rows;
}

/* Results of lines `first` to `last`, and of lines across them. */
static void take_part(tried *some, const tried *t, const part *of)
{
    const size_t all = of->last - of->first + 1, across = lines_of(t, !of->columns);
    const size_t lines = all < SIDE ? all : SIDE, length = across < SIDE ? across : SIDE;
    memset(some, 0, sizeof *some);
    some->p = t->p;
    some->f = t->f;
    for (size_t l = 0; l < lines; l++)
        for (size_t i = 0; i < length; i++) {
            const size_t line = of->first + spread(l, lines, all), k = spread(i, length, across);
            some->at[some->n++] = of->columns ? k * t->p->columns + line : line * t->p->columns + k;
        }
    look(some);
}

/* 0: all results of a line are near to the right formula; 1: half of them are not; -1: some are not. */
static int is_far(const tried *t, int columns, size_t line)
{
    tried some;
    const part of = {columns, line, line};
    take_part(&some, t, &of);
    value(&some, 0);
    const size_t n = near(&some);
    return n == some.n ? 0 : 2 * n <= some.n ? 1 : -1;
}

/* The last line that is as line `from` is, on the way to line `to`, which is not. */
static size_t border(const tried *t, int columns, size_t from, size_t to)
{
    const int far = is_far(t, columns, from);
    while (from + 1 < to || to + 1 < from) {
        const size_t middle_line = from / 2 + to / 2 + (from % 2 + to % 2) / 2;
        if (is_far(t, columns, middle_line) == far)
            from = middle_line;
        else
            to = middle_line;
    }
    return from;
}

/* The lines that are far, where these are all between two others, or up to an end. */
static int find_far(part *of, const tried *t, int columns)
{
    const size_t all = lines_of(t, columns), lines = all < SIDE ? all : SIDE;
    size_t first = lines, last = 0, n = 0;
    for (size_t l = 0; l < lines; l++) {
        const int far = is_far(t, columns, spread(l, lines, all));
        if (far < 0)
            return 0;
        first = far && first == lines ? l : first;
        last = far ? l : last;
        n += (size_t)far;
    }
    if (lines < 4 || n == 0 || n == lines || n != last - first + 1)
        return 0;
    of->columns = columns;
    of->first = first ? border(t, columns, spread(first, lines, all), spread(first - 1, lines, all)) : 0;
    of->last = last + 1 < lines ? border(t, columns, spread(last, lines, all), spread(last + 1, lines, all)) : all - 1;
    return 1;
}

/* Where these lines are, and the formula that fits them, if there is one: 1. */
static int find_part(mpsim_judgement *j, const tried *t)
{
    tried some;
    part of;
    if (!find_far(&of, t, 0) && !find_far(&of, t, 1))
        return 0;
    const uint64_t all = (of.last - of.first + 1) * (uint64_t)lines_of(t, !of.columns),
                   n = all < j->differ ? all : j->differ;
    const char *what = of.columns ? "columns" : "rows";
    judge_find(j, what, n, "rounding explains all results but those of %s %zu to %zu", what, of.first, of.last);
    take_part(&some, t, &of);
    for (size_t i = 1; i < t->f->n && some.n >= LEAST; i++) {
        value(&some, i);
        if (has_values(&some) && near(&some) == some.n) {
            judge_find(j, t->f->of[i].cause, n, "in %s %zu to %zu: %s", what, of.first, of.last, t->f->of[i].text);
            return 1;
        }
    }
    return 0;
}

/* ---- the finding ---- */

static int is_cause(const mpsim_judge_finding *f, const char *const *causes)
{
    while (*causes && strcmp(f->cause, *causes) != 0)
        causes++;
    return *causes != NULL;
}

/* Findings that are no reason: they say where results are; and those that a formula may be the reason of. */
static const char *const no_reasons[] = {"rows", "columns", "one-code", NULL};
static const char *const effects[] = {"rows", "columns", "one-code", "zeros", "factor", NULL};

/* A reason that was found already for nearly all results: none of these. */
static int has_reason(const mpsim_judgement *j, const char *const *but)
{
    for (size_t i = 0; i < j->findings; i++)
        if (!is_cause(&j->finding[i], but) && j->finding[i].explains >= j->differ - j->differ / 100)
            return 1;
    return 0;
}

/* All results are one: there is nothing more to say. */
static int is_constant(const tried *t)
{
    size_t i = 0;
    while (i < t->n && t->found[i] == t->found[0])
        i++;
    return t->n > 1 && i == t->n;
}

/* Of all results, the share that another order of operations can change: those whose value is so near to halfway between two numbers. */
static double share_of(const tried *t)
{
    double sum = 0;
    size_t n = 0;
    for (; n < t->rows * t->columns; n++) {
        const double unit = t->f->unit * binade(fabs(t->expected[n]));
        sum += t->math[n] <= 0 || !(unit > 0) ? 1 : fmin(1, 2 * t->math[n] / unit);
    }
    return n ? sum / (double)n : 1;
}

/* Whether more results differ than operations in the row's formats leave, by more than a sample of the share can be off. */
static int is_too_many(mpsim_judgement *j, const tried *t)
{
    const size_t all = t->p->rows * t->p->columns;
    const double share = share_of(t), sample = (double)(t->rows * t->columns), is = (double)j->differ / (double)all;
    if (is <= share + 4 * sqrt(share * (1 - share) / sample) + 8 / (double)all)
        return 0;
    judge_find(
        j, "formula", j->differ,
        "%.3g %% of the results differ, and another order of operations changes at most %.2g %%: an operation more "
        "is rounded, or one less",
        100 * is, 100 * share);
    return 1;
}

static void say_far(mpsim_judgement *j, const tried *t)
{
    double worst = 0;
    const size_t far = t->n - near(t);
    for (size_t i = 0; i < t->n; i++) {
        const double times = fabs(t->found[i] - t->expected[i]) / t->bound[i];
        worst = times > worst && isfinite(times) ? times : worst;
    }
    judge_find(j, "formula", j->differ,
               "of %zu results that were tried %zu are farther from the exact values than rounding: up to %.3g times",
               t->n, far, worst);
}

void judge_formulas_explain(mpsim_judgement *j, const judge_pair *p, const judge_formulas *f)
{
    tried t = {.p = p, .f = f};
    if (f->n == 0 || p->rows == 0 || p->columns == 0 || has_reason(j, effects))
        return;
    take(&t, j->differ);
    if (is_constant(&t))
        return;
    for (size_t i = 0; i < f->n; i++) {
        value(&t, i);
        if (has_values(&t) && near(&t) == t.n) {
            if (i || !is_too_many(j, &t))
                judge_find(j, f->of[i].cause, j->differ, "%s", f->of[i].text);
            return;
        }
    }
    value(&t, 0);
    if (!has_reason(j, no_reasons) && !find_number(j, &t) && !find_lines(j, &t, 0) && !find_lines(j, &t, 1) &&
        !find_small_factors(j, &t) && !find_part(j, &t))
        say_far(j, &t);
}
