/* castsay.c -- what results that are not a row's have in common, by the choices of a cast (castsearch.h). */
#include "castsearch.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 14 };

/* Whether two routes give the same results, where all that is not ordinary is the same. */
static int same_route(const cast_search *s, const cast_row *row, const cast_row *other)
{
    if (row->via == other->via)
        return 1;
    unsigned char *expected = want_memory(s->a->n + 1, mpsim_format_code_bytes(s->a->to));
    cast_arrays own = *s->a;
    own.y = expected;
    const int same = expected && judge_cast_differ(s->w, s->a, row, NULL, expected) != UINT64_MAX &&
                     judge_cast_differ(s->w, &own, other, NULL, NULL) == 0;
    free(expected);
    return same;
}

/* Rows of presets that give what `row` gives, for these numbers. Rows of one mode can differ only where results are not ordinary. */
static mpsim_status find_class(cast_search *s, const cast_row *row)
{
    mpsim_judgement *j = s->w->j;
    if (judge_cast_special(s, &row->format))
        return MPSIM_ENOMEM;
    cast_arrays own = s->special.of;
    unsigned char *expected = want_memory(own.n + 1, mpsim_format_code_bytes(own.to));
    if (!expected || judge_cast_differ(s->w, &own, row, NULL, expected) == UINT64_MAX) {
        free(expected);
        return MPSIM_ENOMEM;
    }
    own.y = expected;
    for (size_t i = 0; i < mpsim_preset_count(); i++) {
        cast_row other;
        judge_cast_row_of(&other, &row->format, mpsim_preset_at(i), own.from);
        other.rounding.scale = row->rounding.scale;
        if (other.rounding.mode != row->rounding.mode || judge_cast_differ(s->w, &own, &other, NULL, NULL) ||
            !same_route(s, row, &other))
            continue;
        if (j->same < MPSIM_JUDGE_ROWS)
            judge_cast_row_name(j->class_rows[j->same], &other);
        j->same++;
    }
    free(expected);
    return MPSIM_OK;
}

static const char *value_word(const cast_choice *c, const cast_row *r)
{
    const uint8_t v = judge_cast_value(r, c);
    return c->values ? c->values[v] : v ? "yes" : "no";
}

/* What a choice of the results is, beside that of the row. */
static void say_choice(char out[96], const cast_choice *c, const cast_row *best, const cast_row *like)
{
    if (c->at != offsetof(cast_row, via))
        snprintf(out, 96, "%s is %s, not %s", *c->word ? c->word : "the mode", value_word(c, best),
                 value_word(c, like));
    else if (best->via)
        snprintf(out, 96, "numbers are rounded twice, first to %s", value_word(c, best));
    else
        snprintf(out, 96, "numbers are rounded once, not first to %s", value_word(c, like));
}

/* The value of a choice that leaves least of what differs from `like`; how much that is. */
static uint64_t best_value(const cast_search *s, const cast_row *like, const cast_choice *c, uint64_t all,
                           cast_row *best)
{
    uint64_t least = all;
    for (unsigned v = 0; v < judge_cast_values(c) && least; v++) {
        cast_row one = *like;
        const int is_route = c->at == offsetof(cast_row, via) && v;
        if (judge_cast_value(&one, c) == v || (is_route && !judge_cast_via_acts((uint8_t)v, s->a->from)))
            continue;
        *judge_cast_choice_at(&one, c) = (uint8_t)v;
        const uint64_t n = judge_cast_differ(s->w, s->a, &one, NULL, NULL);
        if (n < least) {
            least = n;
            *best = one;
        }
    }
    return least;
}

/* What findings so far leave unexplained: all but that of the largest. */
static uint64_t rest_of(const mpsim_judgement *j)
{
    return j->findings ? j->differ - j->finding[0].explains : j->differ;
}

/* Choices by which the results would not be those of `like`: each that explains a tenth of what differs, or what others leave. */
static int explain(const cast_search *s, const cast_row *like)
{
    mpsim_judgement *j = s->w->j;
    int found = 0;
    const uint64_t all = j->differ, rest = rest_of(j);
    for (const cast_choice *c = judge_cast_choices; c < judge_cast_choices + CAST_CHOICES; c++) {
        cast_row best = *like;
        char share[24], what[96];
        const uint64_t n = all - best_value(s, like, c, all, &best);
        if (n == 0 || (n < all / 10 && (rest == 0 || n < rest - rest / 10)))
            continue;
        found = 1;
        say_choice(what, c, &best, like);
        judge_find(j, c->cause, n, "%s: this explains %s of the results that differ", what,
                   judge_percent(share, n, all));
    }
    return found;
}

/* Choices that only together give the results of the nearest row. */
static void explain_together(const cast_search *s, const cast_row *like)
{
    mpsim_judgement *j = s->w->j;
    if (s->differ > j->differ / 2 || !mpsim_format_same(&s->best.format, &like->format))
        return;
    for (const cast_choice *c = judge_cast_choices; c < judge_cast_choices + CAST_CHOICES; c++) {
        char what[96];
        if (judge_cast_value(&s->best, c) == judge_cast_value(like, c))
            continue;
        say_choice(what, c, &s->best, like);
        judge_find(j, c->cause, j->differ - s->differ, "%s, together with other choices of the nearest row", what);
    }
}

/* Numbers that are those of the row's codes, read as codes of another format of as many bits. */
static void explain_read(const cast_search *s, const cast_row *like)
{
    const size_t bx = mpsim_format_code_bytes(s->a->from), by = mpsim_format_code_bytes(s->a->to);
    const size_t n = s->a->n < SAMPLE ? s->a->n : SAMPLE;
    if (mpsim_format_same(&like->format, s->a->to))
        return;
    for (size_t k = 0; k < mpsim_format_count(); k++) {
        const mpsim_format *f = mpsim_format_at(k);
        size_t same = 0;
        if (f->bits != like->format.bits || mpsim_format_same(f, &like->format))
            continue;
        for (size_t i = 0; i < n; i++) {
            const double y = mpsim_decode(s->a->to, element_code(s->a->y, by, i));
            uint64_t code = 0;
            judge_cast_codes(like, &code, s->a->from, s->a->x + i * bx, 1);
            const double as = mpsim_decode(f, element_code(&code, mpsim_format_code_bytes(&like->format), 0));
            same += y == as || (y != y && as != as);
        }
        if (same >= n - n / 100 && s->w->j->differ > s->a->n / 4) {
            judge_find(s->w->j, "format", s->w->j->differ, "the results are the codes of %s, read as codes of %s",
                       like->format.name, f->name);
            return;
        }
    }
}

/* The largest number as results, where the row has another one: of inputs that are not beyond it, and of inputs that are. */
typedef struct largest {
    uint64_t n;
    double least, most;
} largest;

static void add_largest(largest *l, double x)
{
    l->least = l->n ? fmin(l->least, x) : x;
    l->most = l->n++ ? fmax(l->most, x) : x;
}

static void explain_early(const cast_search *s, const cast_row *like, const unsigned char *expected)
{
    const size_t bx = mpsim_format_code_bytes(s->a->from), by = mpsim_format_code_bytes(s->a->to);
    const double most = mpsim_format_max(&like->format);
    largest early = {0, 0, 0}, late = {0, 0, 0};
    for (size_t i = 0; i < s->a->n; i++) {
        const double y = fabs(mpsim_decode(s->a->to, element_code(s->a->y, by, i)));
        const double e = fabs(mpsim_decode(s->a->to, element_code(expected, by, i)));
        const double x = fabs(mpsim_decode(s->a->from, element_code(s->a->x, bx, i)) * like->rounding.scale);
        if (y >= most && e < most)
            add_largest(&early, x);
        else if (y == most && !(e <= most) && isfinite(x))
            add_largest(&late, x);
    }
    if (late.n > 1 && late.n >= s->w->j->differ / 10)
        judge_find(s->w->j, "overflow", late.n,
                   "%llu results are the largest number, %g, where the row overflows: magnitudes from %.9g to %.9g",
                   (unsigned long long)late.n, most, late.least, late.most);
    if (early.n > 1 && early.n >= s->w->j->differ / 10)
        judge_find(s->w->j, "overflow", early.n,
                   "%llu results are the largest number, %g, or beyond, from a magnitude of %.9g on",
                   (unsigned long long)early.n, most, early.least);
}

/* Whether results that differ from the row lie on either side of the number as often as random bits put them there. Of each piece: ordinary
 * numbers that are not exact; of these, results on one of both sides; results that are not the row's; the sum of (1 if the result is away
 * from zero) - (the share of the way); how many would differ, and the variance of that number. */
typedef struct between_counts {
    uint64_t all, between, other;
    double lean, would, variance;
} between_counts;

typedef struct between_job {
    const cast_arrays *a;
    const cast_row *r;
    const unsigned char *marks;
    between_counts *of;
} between_job;

/* One number; low, y, own: magnitudes of the number below, of the result, and of the row's. */
static void add_between(between_counts *c, double x, const double at[2], double y, double own)
{
    const double away = (x - at[0]) / (at[1] - at[0]), p = own == at[1] ? 1 - away : away;
    c->all++;
    c->between += y == at[0] || y == at[1];
    c->other += y != own;
    c->lean += (y == at[1]) - away;
    c->would += p;
    c->variance += p * (1 - p);
}

static void between_piece(size_t piece, void *job)
{
    const between_job *b = job;
    const mpsim_format *f = &b->r->format;
    const size_t bx = mpsim_format_code_bytes(b->a->from), by = mpsim_format_code_bytes(b->a->to);
    const size_t first = piece * JUDGE_PIECE;
    const size_t end = b->a->n - first < JUDGE_PIECE ? b->a->n : first + JUDGE_PIECE;
    const mpsim_rounding own = judge_cast_rounding(b->r);
    mpsim_rounding down = own;
    down.mode = MPSIM_ROUND_TOWARD_ZERO;
    for (size_t i = first; i < end; i++) {
        if (!b->marks[i])
            continue;
        const double x = mpsim_decode(b->a->from, element_code(b->a->x, bx, i));
        const uint64_t low = mpsim_encode_f64(f, &down, x, 0, NULL);
        const double at[2] = {fabs(mpsim_decode(f, low)), fabs(mpsim_decode(f, low + 1))};
        if (at[0] == fabs(x * down.scale) || !(at[1] > at[0]))
            continue;
        add_between(&b->of[piece], fabs(x * down.scale), at, fabs(mpsim_decode(b->a->to, element_code(b->a->y, by, i))),
                    fabs(mpsim_decode(f, mpsim_encode_f64(f, &own, x, 0, NULL))));
    }
}

/* Of n fair results `lean` is within 4 sqrt(n) / 2, and about as many differ as would; a mode that always goes one way is farther off. */
static int is_fair(const between_counts *c)
{
    return c->all >= 64 && c->between == c->all && c->other >= c->all / 16 &&
           fabs(c->lean) < 2 * sqrt((double)c->all) && fabs((double)c->other - c->would) < 5 * sqrt(c->variance) + 1;
}

static mpsim_status find_stochastic(const cast_search *s, const cast_row *row)
{
    const size_t pieces = (s->a->n + JUDGE_PIECE - 1) / JUDGE_PIECE;
    unsigned char *marks = want_memory(s->a->n + 1, 1);
    between_job job = {s->a, row, marks, want_memory(pieces + 1, sizeof *job.of)};
    between_counts sum = {0, 0, 0, 0, 0, 0};
    const int bad = !marks || !job.of;
    if (!bad) {
        judge_cast_mark(s->w, marks, s->a, &row->format);
        judge_in_pieces(s->w->pool, pieces, between_piece, &job);
    }
    for (size_t i = 0; i < pieces && !bad; i++) {
        sum.all += job.of[i].all;
        sum.between += job.of[i].between;
        sum.other += job.of[i].other;
        sum.lean += job.of[i].lean;
        sum.would += job.of[i].would;
        sum.variance += job.of[i].variance;
    }
    if (!bad && is_fair(&sum))
        judge_find(
            s->w->j, "stochastic", sum.other,
            "each of %llu results is one of the two numbers around the input, as often as stochastic rounding gives them",
            (unsigned long long)sum.all);
    free(marks);
    free(job.of);
    return bad ? MPSIM_ENOMEM : MPSIM_OK;
}

static void fill_exact(const cast_arrays *a, const cast_row *row, mpsim_judgement *j)
{
    const size_t bytes = mpsim_format_code_bytes(a->from);
    for (size_t i = 0; i < j->places; i++)
        j->place[i].exact = mpsim_decode(a->from,
                                         element_code(a->x, bytes, j->place[i].row * j->columns + j->place[i].column)) *
                            row->rounding.scale;
}

mpsim_status judge_cast_report(cast_search *s, const cast_row *row, int is_like)
{
    mpsim_judgement *j = s->w->j;
    unsigned char *expected = want_memory(s->a->n + 1, mpsim_format_code_bytes(s->a->to));
    if (!expected || judge_cast_differ(s->w, s->a, row, NULL, expected) == UINT64_MAX) {
        free(expected);
        return MPSIM_ENOMEM;
    }
    const judge_pair pair = {s->a->to, s->a->y, expected, j->rows, j->columns, judge_cast_any_nan(s->a, row)};
    judge_cast_row_name(j->row, row);
    if (s->w->sink) {
        j->results = 0; /* judge_take counts them */
        judge_take(s->w, j->role, &pair);
        free(expected);
        return MPSIM_OK;
    }
    judge_places(j, &pair, is_like && s->differ == 0 ? JUDGE_VALUES : JUDGE_ALL);
    if (is_like && j->differ) {
        if (!explain(s, row))
            explain_together(s, row);
        explain_early(s, row, expected);
        explain_read(s, row);
    }
    if (is_like && j->differ && !mpsim_format_same(&s->best.format, &row->format) && s->differ <= j->differ / 2)
        judge_find(j, "format", j->differ - s->differ, "the results are numbers of %s, not of %s", s->best.format.name,
                   row->format.name);
    if (is_like && j->differ && s->differ <= j->differ / 2) { /* else another row says nothing */
        judge_cast_row_name(j->nearest, &s->best);
        j->nearest_differ = s->differ;
    }
    fill_exact(s->a, row, j);
    mpsim_status status = find_class(s, row);
    if (status == MPSIM_OK && j->differ && (!is_like || s->differ))
        status = find_stochastic(s, row);
    free(expected);
    return status;
}
