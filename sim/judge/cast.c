/* cast.c -- the judge of casts (mpsim/judge.h).
 *
 * The row is searched in two steps. Format and mode follow from the results that are ordinary: finite numbers that are normal in
 * both formats, within the range of the target. Every other choice of a cast acts on results that are not ordinary, and each on other
 * ones; so the choices are tried one after the other, from those of the preset that comes closest. */
#include "castrow.h"
#include "impl.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_cast_roles[] = {"x", "y", NULL, NULL};
enum { X, Y };

enum { SAMPLE = 1 << 14, PASSES = 3 };

/* Numbers, and their casts: n of each. */
typedef struct cast_arrays {
    const mpsim_format *from, *to; /* to: of the codes in y */
    const unsigned char *x, *y;
    size_t n;
    int narrow; /* the numbers of `from` are numbers of binary32 */
} cast_arrays;

static int is_narrow(const mpsim_format *f)
{
    float y;
    return mpsim_decode_array_f32(f, &y, NULL, 0) != MPSIM_ERANGE;
}

/* ---- what a row gives ---- */

/* Codes of r->format for the numbers `first` to first + n - 1. */
static void encode(void *codes, const cast_arrays *a, const cast_row *r, size_t first, size_t n)
{
    const unsigned char *x = a->x + first * mpsim_format_code_bytes(a->from);
    union {
        float f32[JUDGE_CHUNK];
        double f64[JUDGE_CHUNK];
    } v;
    if (a->narrow) {
        (void)mpsim_decode_array_f32(a->from, v.f32, x, n);
        (void)mpsim_encode_array_f32(&r->format, &r->rounding, NULL, codes, v.f32, n, NULL);
    } else {
        (void)mpsim_decode_array(a->from, v.f64, x, n);
        (void)mpsim_encode_array_f64(&r->format, &r->rounding, NULL, codes, v.f64, n, NULL);
    }
}

/* The same as codes of the results' format, at most JUDGE_CHUNK. */
static void expect(unsigned char *codes, const cast_arrays *a, const cast_row *r, size_t first, size_t n)
{
    uint64_t own[JUDGE_CHUNK];
    double values[JUDGE_CHUNK];
    mpsim_rounding exact;
    if (mpsim_format_same(&r->format, a->to)) {
        encode(codes, a, r, first, n);
        return;
    }
    encode(own, a, r, first, n);
    (void)mpsim_decode_array(&r->format, values, own, n);
    mpsim_rounding_init(&exact, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_encode_array_f64(a->to, &exact, NULL, codes, values, n, NULL);
}

/* Numbers that stand for codes of a narrower format lose the bits of a NaN. */
static int any_nan(const cast_arrays *a, const cast_row *r)
{
    return !mpsim_format_same(&r->format, a->to);
}

/* ---- how many differ ---- */

typedef struct count_job {
    const cast_arrays *a;
    const cast_row *r;
    const unsigned char *only; /* marks of those that count; NULL: all */
    uint64_t *differ;          /* of each piece */
    unsigned char *expected;   /* where the results of the row go; NULL: nowhere */
} count_job;

static void count_piece(size_t piece, void *job)
{
    const count_job *c = job;
    const size_t bytes = mpsim_format_code_bytes(c->a->to);
    size_t at = piece * JUDGE_PIECE;
    const size_t end = c->a->n - at < JUDGE_PIECE ? c->a->n : at + JUDGE_PIECE;
    for (size_t n; at < end; at += n) {
        unsigned char codes[JUDGE_CHUNK * 8];
        n = end - at < JUDGE_CHUNK ? end - at : JUDGE_CHUNK;
        expect(codes, c->a, c->r, at, n);
        if (c->expected)
            memcpy(c->expected + at * bytes, codes, n * bytes);
        if (!c->only && memcmp(codes, c->a->y + at * bytes, n * bytes) == 0)
            continue;
        const judge_pair pair = {c->a->to, c->a->y + at * bytes, codes, 1, n, any_nan(c->a, c->r)};
        for (size_t i = 0; i < n; i++)
            c->differ[piece] += (!c->only || c->only[at + i]) && !judge_pair_same(&pair, i);
    }
}

/* How many results are not those of a row; UINT64_MAX without memory. */
static uint64_t differ(const judge_case *w, const cast_arrays *a, const cast_row *r, const unsigned char *only,
                       unsigned char *expected)
{
    const size_t pieces = (a->n + JUDGE_PIECE - 1) / JUDGE_PIECE;
    count_job job = {a, r, only, want_memory(pieces + 1, sizeof *job.differ), expected};
    uint64_t sum = 0;
    if (!job.differ)
        return UINT64_MAX;
    judge_in_pieces(w->pool, pieces, count_piece, &job);
    for (size_t i = 0; i < pieces; i++)
        sum += job.differ[i];
    free(job.differ);
    return sum;
}

/* ---- ordinary results ---- */

typedef struct mark_job {
    const cast_arrays *a;
    const mpsim_format *to;
    unsigned char *marks;
} mark_job;

static void mark_piece(size_t piece, void *job)
{
    const mark_job *m = job;
    const double least = fmax(mpsim_format_min_normal(m->a->from), mpsim_format_min_normal(m->to));
    const double most = mpsim_format_max(m->to);
    const int is_signed = mpsim_format_is_signed(m->to);
    const size_t bytes = mpsim_format_code_bytes(m->a->from), first = piece * JUDGE_PIECE;
    const size_t end = m->a->n - first < JUDGE_PIECE ? m->a->n : first + JUDGE_PIECE;
    for (size_t at = first, n; at < end; at += n) {
        double x[JUDGE_CHUNK];
        n = end - at < JUDGE_CHUNK ? end - at : JUDGE_CHUNK;
        (void)mpsim_decode_array(m->a->from, x, m->a->x + at * bytes, n);
        for (size_t i = 0; i < n; i++)
            m->marks[at + i] = fabs(x[i]) >= least && fabs(x[i]) <= most && (is_signed || x[i] > 0);
    }
}

static void mark_ordinary(const judge_case *w, unsigned char *marks, const cast_arrays *a, const mpsim_format *to)
{
    mark_job job = {a, to, marks};
    judge_in_pieces(w->pool, (a->n + JUDGE_PIECE - 1) / JUDGE_PIECE, mark_piece, &job);
}

/* Whether every number of f is one of `to`. */
static int has_numbers_of(const mpsim_format *to, const mpsim_format *f)
{
    return mpsim_format_same(to, f) || (f->mbits <= to->mbits && mpsim_format_max(f) <= mpsim_format_max(to) &&
                                        mpsim_format_min_positive(f) >= mpsim_format_min_positive(to) &&
                                        (mpsim_format_is_signed(to) || !mpsim_format_is_signed(f)));
}

/* ---- the search ---- */

/* A part of the arrays, in memory of its own. */
typedef struct cast_part {
    cast_arrays of;
    unsigned char *x, *y;
} cast_part;

static int part_room(cast_part *p, const cast_arrays *a, size_t n)
{
    p->of = *a;
    p->of.n = 0;
    p->of.x = p->x = want_memory(n + 1, mpsim_format_code_bytes(a->from));
    p->of.y = p->y = want_memory(n + 1, mpsim_format_code_bytes(a->to));
    return p->x && p->y ? 0 : -1;
}

static void part_add(cast_part *p, const cast_arrays *a, size_t i)
{
    const size_t bx = mpsim_format_code_bytes(a->from), by = mpsim_format_code_bytes(a->to);
    memcpy(p->x + p->of.n * bx, a->x + i * bx, bx);
    memcpy(p->y + p->of.n * by, a->y + i * by, by);
    p->of.n++;
}

static void part_clear(cast_part *p)
{
    free(p->x);
    free(p->y);
}

typedef struct search {
    judge_case *w;
    const cast_arrays *a;
    cast_row best;
    uint64_t differ;
    cast_part special; /* results that are not ordinary */
} search;

/* Whether the results that a sample has can be numbers of f. */
static int holds(const mpsim_format *f, const cast_arrays *sample)
{
    for (size_t i = 0; i < sample->n; i++) {
        const double y = mpsim_decode(sample->to, element_code(sample->y, mpsim_format_code_bytes(sample->to), i));
        unsigned flags = 0;
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_TOWARD_ZERO);
        if (isfinite(y) && (mpsim_encode_f64(f, &r, y, 0, &flags), flags & (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW)))
            return 0;
    }
    return 1;
}

/* The best mode of a format for the ordinary results of `a`; what of them differs. */
static uint64_t best_mode(search *s, cast_row *row, const cast_arrays *a)
{
    uint64_t least = UINT64_MAX;
    uint8_t best = row->rounding.mode;
    unsigned char *marks = want_memory(a->n + 1, 1);
    if (!marks)
        return least;
    mark_ordinary(s->w, marks, a, &row->format);
    for (uint8_t mode = 0; mode < CAST_MODES && least; mode++) {
        row->rounding.mode = mode;
        const uint64_t n = differ(s->w, a, row, marks, NULL);
        if (n < least) {
            least = n;
            best = mode;
        }
    }
    free(marks);
    row->rounding.mode = best;
    return least;
}

/* A format that the results can be of: the row is the best so far where its ordinary results fit best, in the sample. */
static void try_format(search *s, const mpsim_format *f, const cast_arrays *sample, uint64_t *least)
{
    cast_row row;
    if (!holds(f, sample))
        return;
    judge_cast_row_of(&row, f, mpsim_preset_at(0), s->a->from);
    const uint64_t n = best_mode(s, &row, sample);
    if (n < *least) {
        *least = n;
        s->best = row;
    }
}

/* Numbers spread over all elements. */
static int take_sample(cast_part *sample, const cast_arrays *a)
{
    const size_t n = a->n < SAMPLE ? a->n : SAMPLE;
    if (part_room(sample, a, n))
        return -1;
    for (size_t i = 0; i < n; i++)
        part_add(sample, a, (size_t)((double)i * ((double)a->n / (double)n)));
    return 0;
}

/* The format and the mode. Results that are codes are of the format of y; numbers may stand for those of any narrower one. */
static int find_format(search *s)
{
    cast_part sample;
    uint64_t least = UINT64_MAX;
    const int bad = take_sample(&sample, s->a);
    if (!bad) {
        try_format(s, s->a->to, &sample.of, &least);
        const int codes = !mpsim_format_same(s->a->to, s->a->from) && s->a->to->bits < 16;
        for (size_t i = 0; i < mpsim_format_count() && !codes && least; i++)
            if (mpsim_format_at(i)->bits < s->a->to->bits && has_numbers_of(s->a->to, mpsim_format_at(i)))
                try_format(s, mpsim_format_at(i), &sample.of, &least);
    }
    part_clear(&sample);
    return bad ? -1 : 0;
}

/* The results that are not ordinary in a format. */
static int take_special(search *s, const mpsim_format *f)
{
    unsigned char *marks = want_memory(s->a->n + 1, 1);
    size_t n = 0;
    if (!marks)
        return -1;
    part_clear(&s->special);
    mark_ordinary(s->w, marks, s->a, f);
    for (size_t i = 0; i < s->a->n; i++)
        n += !marks[i];
    const int bad = part_room(&s->special, s->a, n);
    for (size_t i = 0; i < s->a->n && !bad; i++)
        if (!marks[i])
            part_add(&s->special, s->a, i);
    free(marks);
    return bad;
}

/* The preset whose results that are not ordinary fit best, under the mode that is known. */
static uint64_t find_preset(search *s)
{
    const uint8_t mode = s->best.rounding.mode;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < mpsim_preset_count() && least; i++) {
        cast_row row;
        judge_cast_row_of(&row, &s->best.format, mpsim_preset_at(i), s->a->from);
        row.rounding.mode = mode;
        const uint64_t n = differ(s->w, &s->special.of, &row, NULL, NULL);
        if (n < least) {
            least = n;
            s->best = row;
        }
    }
    return least;
}

static uint64_t improve(search *s, uint64_t least)
{
    for (const cast_choice *c = judge_cast_choices + 1; c < judge_cast_choices + CAST_CHOICES && least; c++)
        for (unsigned v = 0; v < judge_cast_values(c) && least; v++) {
            cast_row row = s->best;
            *judge_cast_choice_at(&row.rounding, c) = (uint8_t)v;
            const uint64_t n = differ(s->w, &s->special.of, &row, NULL, NULL);
            if (n < least) {
                least = n;
                s->best = row;
            }
        }
    return least;
}

static mpsim_status find_row(search *s)
{
    if (find_format(s) || best_mode(s, &s->best, s->a) == UINT64_MAX || take_special(s, &s->best.format))
        return MPSIM_ENOMEM;
    if (!*s->best.format.name)
        return judge_fail(s->w, MPSIM_ERANGE, "no format has all numbers of 'y'");
    uint64_t least = find_preset(s);
    for (int pass = 0; pass < PASSES && least; pass++)
        least = improve(s, least);
    s->differ = differ(s->w, s->a, &s->best, NULL, NULL);
    return s->differ == UINT64_MAX ? MPSIM_ENOMEM : MPSIM_OK;
}

/* ---- what is said ---- */

/* Rows of presets that give what `row` gives, for these numbers. Rows of one mode can differ only where results are not ordinary. */
static mpsim_status find_class(search *s, const cast_row *row)
{
    mpsim_judgement *j = s->w->j;
    if (take_special(s, &row->format))
        return MPSIM_ENOMEM;
    cast_arrays own = s->special.of;
    unsigned char *expected = want_memory(own.n + 1, mpsim_format_code_bytes(own.to));
    if (!expected || differ(s->w, &own, row, NULL, expected) == UINT64_MAX) {
        free(expected);
        return MPSIM_ENOMEM;
    }
    own.y = expected;
    for (size_t i = 0; i < mpsim_preset_count(); i++) {
        cast_row other;
        judge_cast_row_of(&other, &row->format, mpsim_preset_at(i), own.from);
        other.rounding.scale = row->rounding.scale;
        if (other.rounding.mode != row->rounding.mode || differ(s->w, &own, &other, NULL, NULL))
            continue;
        if (j->same < MPSIM_JUDGE_ROWS)
            judge_cast_row_name(j->class_rows[j->same], &other);
        j->same++;
    }
    free(expected);
    return MPSIM_OK;
}

static const char *value_word(const cast_choice *c, mpsim_rounding r)
{
    const uint8_t v = *judge_cast_choice_at(&r, c);
    return c->values ? c->values[v] : v ? "yes" : "no";
}

/* The value of a choice that leaves least of what differs from `like`; how much that is. */
static uint64_t best_value(const search *s, const cast_row *like, const cast_choice *c, uint64_t all,
                           mpsim_rounding *best)
{
    uint64_t least = all;
    for (unsigned v = 0; v < judge_cast_values(c) && least; v++) {
        cast_row one = *like;
        if (*judge_cast_choice_at(&one.rounding, c) == v)
            continue;
        *judge_cast_choice_at(&one.rounding, c) = (uint8_t)v;
        const uint64_t n = differ(s->w, s->a, &one, NULL, NULL);
        if (n < least) {
            least = n;
            *best = one.rounding;
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
static void explain(const search *s, const cast_row *like)
{
    mpsim_judgement *j = s->w->j;
    const uint64_t all = j->differ, rest = rest_of(j);
    for (const cast_choice *c = judge_cast_choices; c < judge_cast_choices + CAST_CHOICES; c++) {
        mpsim_rounding best = like->rounding;
        char share[24];
        const uint64_t n = all - best_value(s, like, c, all, &best);
        if (n == 0 || (n < all / 10 && (rest == 0 || n < rest - rest / 10)))
            continue;
        judge_find(j, c->cause, n, "%s is %s, not %s: this explains %s of the results that differ",
                   *c->word ? c->word : "the mode", value_word(c, best), value_word(c, like->rounding),
                   judge_percent(share, n, all));
    }
}

/* Numbers that are those of the row's codes, read as codes of another format of as many bits. */
static void explain_read(const search *s, const cast_row *like)
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
            const double x = mpsim_decode(s->a->from, element_code(s->a->x, bx, i));
            const double y = mpsim_decode(s->a->to, element_code(s->a->y, by, i));
            const double as = mpsim_decode(f, mpsim_encode_f64(&like->format, &like->rounding, x, 0, NULL));
            same += y == as || (y != y && as != as);
        }
        if (same >= n - n / 100 && s->w->j->differ > s->a->n / 4) {
            judge_find(s->w->j, "format", s->w->j->differ, "the results are the codes of %s, read as codes of %s",
                       like->format.name, f->name);
            return;
        }
    }
}

/* Results that are the largest number, of inputs that are not beyond it. */
static void explain_early(const search *s, const cast_row *like, const unsigned char *expected)
{
    const size_t bx = mpsim_format_code_bytes(s->a->from), by = mpsim_format_code_bytes(s->a->to);
    const double most = mpsim_format_max(&like->format);
    double least = INFINITY;
    uint64_t n = 0;
    for (size_t i = 0; i < s->a->n; i++) {
        const double y = fabs(mpsim_decode(s->a->to, element_code(s->a->y, by, i)));
        const double e = fabs(mpsim_decode(s->a->to, element_code(expected, by, i)));
        if (y < most || !(e < most))
            continue;
        n++;
        least = fmin(least, fabs(mpsim_decode(s->a->from, element_code(s->a->x, bx, i)) * like->rounding.scale));
    }
    if (n > 1 && n >= s->w->j->differ / 10)
        judge_find(s->w->j, "overflow", n,
                   "%llu results are the largest number, %g, or beyond, from a magnitude of %.9g on",
                   (unsigned long long)n, most, least);
}

/* Whether results that differ from the row lie on either side of the number as often as random bits put them there. */
typedef struct between_job {
    const cast_arrays *a;
    const cast_row *r;
    const unsigned char *marks;
    uint64_t *
        counts; /* of each piece: ordinary numbers that are not exact; of these, results on one of both sides; not the row's */
    double *lean; /* of each piece: the sum of (1 if the result is away from zero) - (the share of the way) */
} between_job;

static void between_piece(size_t piece, void *job)
{
    const between_job *b = job;
    const size_t bx = mpsim_format_code_bytes(b->a->from), by = mpsim_format_code_bytes(b->a->to);
    const size_t first = piece * JUDGE_PIECE;
    const size_t end = b->a->n - first < JUDGE_PIECE ? b->a->n : first + JUDGE_PIECE;
    mpsim_rounding down = b->r->rounding;
    down.mode = MPSIM_ROUND_TOWARD_ZERO;
    for (size_t i = first; i < end; i++) {
        if (!b->marks[i])
            continue;
        const double x = mpsim_decode(b->a->from, element_code(b->a->x, bx, i)) * down.scale;
        const uint64_t low = mpsim_encode_f64(&b->r->format, &down, x / down.scale, 0, NULL);
        const double at[2] = {fabs(mpsim_decode(&b->r->format, low)), fabs(mpsim_decode(&b->r->format, low + 1))};
        const double y = fabs(mpsim_decode(b->a->to, element_code(b->a->y, by, i)));
        if (at[0] == fabs(x) || !(at[1] > at[0]))
            continue;
        b->counts[3 * piece]++;
        b->counts[3 * piece + 1] += y == at[0] || y == at[1];
        b->counts[3 * piece + 2] += y !=
                                    fabs(mpsim_decode(&b->r->format, mpsim_encode_f64(&b->r->format, &b->r->rounding,
                                                                                      x / down.scale, 0, NULL)));
        b->lean[piece] += (y == at[1]) - (fabs(x) - at[0]) / (at[1] - at[0]);
    }
}

static mpsim_status find_stochastic(const search *s, const cast_row *row)
{
    const size_t pieces = (s->a->n + JUDGE_PIECE - 1) / JUDGE_PIECE;
    unsigned char *marks = want_memory(s->a->n + 1, 1);
    between_job job = {s->a, row, marks, want_memory(3 * pieces + 3, sizeof *job.counts),
                       want_memory(pieces + 1, sizeof *job.lean)};
    uint64_t all = 0, between = 0, other = 0;
    double lean = 0;
    const int bad = !marks || !job.counts || !job.lean;
    if (!bad) {
        mark_ordinary(s->w, marks, s->a, &row->format);
        judge_in_pieces(s->w->pool, pieces, between_piece, &job);
        for (size_t i = 0; i < pieces; i++) {
            all += job.counts[3 * i];
            between += job.counts[3 * i + 1];
            other += job.counts[3 * i + 2];
            lean += job.lean[i];
        }
        /* of n fair results the sum is within 4 sqrt(n) / 2; a mode that always goes one way is farther off; a quarter is not the nearest */
        if (all >= 64 && between == all && other >= all / 16 && fabs(lean) < 2 * sqrt((double)all))
            judge_find(
                s->w->j, "stochastic", s->w->j->differ,
                "each of %llu results is one of the two numbers around the input, as often as stochastic rounding gives them",
                (unsigned long long)all);
    }
    free(marks);
    free(job.counts);
    free(job.lean);
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

static mpsim_status report(search *s, const cast_row *row, int is_like)
{
    mpsim_judgement *j = s->w->j;
    unsigned char *expected = want_memory(s->a->n + 1, mpsim_format_code_bytes(s->a->to));
    if (!expected || differ(s->w, s->a, row, NULL, expected) == UINT64_MAX) {
        free(expected);
        return MPSIM_ENOMEM;
    }
    const judge_pair pair = {s->a->to, s->a->y, expected, j->rows, j->columns, any_nan(s->a, row)};
    judge_cast_row_name(j->row, row);
    judge_places(j, &pair, 0);
    if (is_like && j->differ) {
        explain(s, row);
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
    if (c->like && !has_numbers_of(f, &like->format))
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
    const cast_arrays a = {x->format, &to, x->codes, y->codes, x->rows * x->columns, is_narrow(x->format)};
    search s = {.w = c, .a = &a};
    c->j->role = y->role;
    c->j->format = to;
    c->j->rows = y->rows;
    c->j->columns = y->columns;
    c->j->results = a.n;
    const uint64_t as_like = c->like ? differ(c, &a, &like, NULL, NULL) : 0;
    if (!c->like || as_like)
        status = find_row(&s);
    if (status == MPSIM_OK)
        status = report(&s, c->like ? &like : &s.best, c->like != NULL);
    part_clear(&s.special);
    return status;
}
