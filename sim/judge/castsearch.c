/* castsearch.c -- the row of a cast that results are of (castsearch.h).
 *
 * The row is searched in two steps. Format and mode follow from the results that are ordinary: finite numbers that are normal in
 * both formats, within the range of the target. Every other choice of a cast acts on results that are not ordinary, and each on other
 * ones; so the choices are tried one after the other, from those of the preset that comes closest. */
#include "castsearch.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 14, PASSES = 3 };

/* ---- what a row gives ---- */

/* Codes of r->format for the numbers `first` to first + n - 1. */
static void encode(void *codes, const cast_arrays *a, const cast_row *r, size_t first, size_t n)
{
    judge_cast_codes(r, codes, a->from, a->x + first * mpsim_format_code_bytes(a->from), n);
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
int judge_cast_any_nan(const cast_arrays *a, const cast_row *r)
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
        const judge_pair pair = {c->a->to, c->a->y + at * bytes, codes, 1, n, judge_cast_any_nan(c->a, c->r)};
        for (size_t i = 0; i < n; i++)
            c->differ[piece] += (!c->only || c->only[at + i]) && !judge_pair_same(&pair, i);
    }
}

/* How many results are not those of a row; UINT64_MAX without memory. */
uint64_t judge_cast_differ(const judge_case *w, const cast_arrays *a, const cast_row *r, const unsigned char *only,
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

void judge_cast_mark(const judge_case *w, unsigned char *marks, const cast_arrays *a, const mpsim_format *to)
{
    mark_job job = {a, to, marks};
    judge_in_pieces(w->pool, (a->n + JUDGE_PIECE - 1) / JUDGE_PIECE, mark_piece, &job);
}

/* ---- the search ---- */

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

void judge_cast_clear(cast_part *p)
{
    free(p->x);
    free(p->y);
}

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
static uint64_t best_mode(cast_search *s, cast_row *row, const cast_arrays *a)
{
    uint64_t least = UINT64_MAX;
    uint8_t best = row->rounding.mode;
    unsigned char *marks = want_memory(a->n + 1, 1);
    if (!marks)
        return least;
    judge_cast_mark(s->w, marks, a, &row->format);
    for (uint8_t mode = 0; mode < CAST_MODES && least; mode++) {
        row->rounding.mode = mode;
        const uint64_t n = judge_cast_differ(s->w, a, row, marks, NULL);
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
static void try_format(cast_search *s, const mpsim_format *f, const cast_arrays *sample, uint64_t *least)
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
static int find_format(cast_search *s)
{
    cast_part sample;
    uint64_t least = UINT64_MAX;
    const int bad = take_sample(&sample, s->a);
    if (!bad) {
        try_format(s, s->a->to, &sample.of, &least);
        const int codes = !mpsim_format_same(s->a->to, s->a->from) && s->a->to->bits < 16;
        for (size_t i = 0; i < mpsim_format_count() && !codes && least; i++)
            if (mpsim_format_at(i)->bits < s->a->to->bits && judge_cast_holds(s->a->to, mpsim_format_at(i)))
                try_format(s, mpsim_format_at(i), &sample.of, &least);
    }
    judge_cast_clear(&sample);
    return bad ? -1 : 0;
}

/* The results that are not ordinary in a format. */
int judge_cast_special(cast_search *s, const mpsim_format *f)
{
    unsigned char *marks = want_memory(s->a->n + 1, 1);
    size_t n = 0;
    if (!marks)
        return -1;
    judge_cast_clear(&s->special);
    judge_cast_mark(s->w, marks, s->a, f);
    for (size_t i = 0; i < s->a->n; i++)
        n += !marks[i];
    const int bad = part_room(&s->special, s->a, n);
    for (size_t i = 0; i < s->a->n && !bad; i++)
        if (!marks[i])
            part_add(&s->special, s->a, i);
    free(marks);
    return bad;
}

/* How many ordinary results are others by a route, under the mode that is known. */
static uint64_t count_ordinary(cast_search *s, uint8_t via)
{
    cast_row row = s->best;
    unsigned char *marks;
    if (s->ordinary[via] != UINT64_MAX || !(marks = want_memory(s->a->n + 1, 1)))
        return s->ordinary[via];
    row.via = via;
    judge_cast_mark(s->w, marks, s->a, &row.format);
    s->ordinary[via] = judge_cast_differ(s->w, s->a, &row, marks, NULL);
    free(marks);
    return s->ordinary[via];
}

/* A preset, by its own route or by one that is given. */
static uint64_t try_preset(cast_search *s, cast_row *row, const mpsim_preset *p, int own, uint8_t via)
{
    judge_cast_row_of(row, &s->best.format, p, s->a->from);
    row->rounding.mode = s->best.rounding.mode;
    if (!own && row->via == via)
        return UINT64_MAX;
    row->via = own ? row->via : via;
    return judge_cast_differ(s->w, &s->special.of, row, NULL, NULL);
}

/* The preset and route whose results fit best, under the mode that is known. The results of it that are not ordinary and differ. */
static uint64_t find_preset(cast_search *s)
{
    cast_row best = s->best;
    uint64_t least = UINT64_MAX, special = UINT64_MAX;
    for (size_t i = 0; i < mpsim_preset_count() && least; i++)
        for (int own = 1; own >= 0 && least; own--) {
            cast_row row;
            const uint64_t n = try_preset(s, &row, mpsim_preset_at(i), own, s->best.via);
            if (n == UINT64_MAX || n >= least || n + count_ordinary(s, row.via) >= least)
                continue;
            special = n;
            least = n + s->ordinary[row.via];
            best = row;
        }
    s->best = best;
    return special;
}

/* Choices that act on results that are not ordinary. */
static uint64_t improve(cast_search *s, uint64_t least)
{
    for (const cast_choice *c = judge_cast_choices + CAST_SPECIAL; c < judge_cast_choices + CAST_CHOICES && least; c++)
        for (unsigned v = 0; v < judge_cast_values(c) && least; v++) {
            cast_row row = s->best;
            *judge_cast_choice_at(&row, c) = (uint8_t)v;
            const uint64_t n = judge_cast_differ(s->w, &s->special.of, &row, NULL, NULL);
            if (n < least) {
                least = n;
                s->best = row;
            }
        }
    return least;
}

/* Numbers of which many results are not those of the best row: every so many of them, and as many of all. */
static int take_other(cast_part *part, const cast_search *s)
{
    const size_t bytes = mpsim_format_code_bytes(s->a->to);
    unsigned char *expected = want_memory(s->a->n + 1, bytes);
    int bad = part_room(part, s->a, SAMPLE) || !expected ||
              judge_cast_differ(s->w, s->a, &s->best, NULL, expected) == UINT64_MAX;
    const judge_pair p = {s->a->to, s->a->y, expected, 1, s->a->n, judge_cast_any_nan(s->a, &s->best)};
    const uint64_t step = s->differ / (SAMPLE / 2) + 1, of_all = s->a->n / (SAMPLE / 2) + 1;
    uint64_t seen = 0;
    for (size_t i = 0; i < s->a->n && !bad; i++) {
        const int other = !judge_pair_same(&p, i);
        if ((other && seen++ % step == 0) || (!other && i % of_all == 0))
            part_add(part, s->a, i);
    }
    free(expected);
    return bad;
}

/* Another route, where results differ that no choice explains. 1: one is better; -1 without memory. */
static int find_route(cast_search *s)
{
    cast_part part = {0};
    cast_row best = s->best;
    int found = take_other(&part, s) ? -1 : 0;
    uint64_t least = found ? 0 : judge_cast_differ(s->w, &part.of, &best, NULL, NULL);
    for (uint8_t via = 0; via < CAST_VIAS && least; via++)
        for (uint8_t mode = 0; mode < CAST_MODES && least && (!via || judge_cast_via_acts(via, s->a->from)); mode++) {
            cast_row row = s->best;
            row.via = via;
            row.rounding.mode = mode;
            const uint64_t n = judge_cast_differ(s->w, &part.of, &row, NULL, NULL);
            if (n >= least || row.via == s->best.via)
                continue;
            least = n;
            best = row;
        }
    judge_cast_clear(&part);
    if (found || best.via == s->best.via)
        return found;
    const uint64_t n = judge_cast_differ(s->w, s->a, &best, NULL, NULL);
    if (n >= s->differ)
        return n == UINT64_MAX ? -1 : 0;
    s->best = best;
    return 1;
}

/* Choices that are not the preset's and change nothing are the preset's again. */
static void simplify(cast_search *s)
{
    cast_row plain;
    judge_cast_row_of(&plain, &s->best.format, s->best.preset, s->a->from);
    for (const cast_choice *c = judge_cast_choices + CAST_SPECIAL; c < judge_cast_choices + CAST_CHOICES; c++) {
        cast_row row = s->best;
        if (judge_cast_value(&row, c) == judge_cast_value(&plain, c))
            continue;
        *judge_cast_choice_at(&row, c) = judge_cast_value(&plain, c);
        if (judge_cast_differ(s->w, &s->special.of, &row, NULL, NULL) <=
            judge_cast_differ(s->w, &s->special.of, &s->best, NULL, NULL))
            s->best = row;
    }
}

/* ordinary: how many ordinary results are not those of the best row; UINT64_MAX: not counted. */
static mpsim_status find_choices(cast_search *s, uint64_t ordinary)
{
    for (int via = 0; via < CAST_VIAS; via++)
        s->ordinary[via] = via == s->best.via ? ordinary : UINT64_MAX;
    uint64_t least = find_preset(s);
    for (int pass = 0; pass < PASSES && least; pass++)
        least = improve(s, least);
    simplify(s);
    s->differ = judge_cast_differ(s->w, s->a, &s->best, NULL, NULL);
    return s->differ == UINT64_MAX ? MPSIM_ENOMEM : MPSIM_OK;
}

mpsim_status judge_cast_find(cast_search *s)
{
    const uint64_t ordinary = find_format(s) ? UINT64_MAX : best_mode(s, &s->best, s->a);
    if (ordinary == UINT64_MAX || judge_cast_special(s, &s->best.format))
        return MPSIM_ENOMEM;
    if (!*s->best.format.name)
        return judge_fail(s->w, MPSIM_ERANGE, "no format has all numbers of 'y'");
    mpsim_status status = find_choices(s, ordinary);
    const int other = status == MPSIM_OK && s->differ ? find_route(s) : 0;
    return other < 0 ? MPSIM_ENOMEM : other ? find_choices(s, UINT64_MAX) : status;
}
