/* places.c -- what results that differ have in common, whatever operation gave them: constants, codes, factors, places.
 *
 * A finding is made where it explains half of the results that differ, or more, and says how many: a kernel may have two faults. Findings of places only say where. */
#include "impl.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const causes[] = {"constant",
                                     "zeros",
                                     "sign",
                                     "bits",
                                     "factor",
                                     "pairs-swapped",
                                     "transposed",
                                     "rows-permuted",
                                     "columns-permuted",
                                     "shifted",
                                     "one-code",
                                     "rows",
                                     "columns",
                                     "mode",
                                     "double-rounding",
                                     "stochastic",
                                     "format",
                                     "overflow",
                                     "infinity",
                                     "nan",
                                     "subnormal-inputs",
                                     "subnormal-results",
                                     "negative",
                                     "zero",
                                     "scale-factor",
                                     "scale-inverted",
                                     "scale-squared",
                                     "scale-order",
                                     "elements-follow",
                                     "nibbles",
                                     "tail",
                                     "scale-missing",
                                     "sum-order",
                                     "formula",
                                     "rounding",
                                     "offset",
                                     "mean",
                                     "squares",
                                     "magnitudes",
                                     "axis",
                                     "scale",
                                     "mask",
                                     "eps",
                                     "variance",
                                     "weight",
                                     "bias",
                                     "operands",
                                     "epilogue",
                                     "unchanged",
                                     "gradient",
                                     "correction",
                                     "decay",
                                     "betas",
                                     "moments",
                                     "double-rounding",
                                     "heads",
                                     "softcap",
                                     "slopes",
                                     "sink",
                                     "lse",
                                     NULL};

const char *const *judge_causes(void)
{
    return causes;
}

static uint64_t code_at(const judge_pair *p, const void *codes, size_t i)
{
    return element_code(codes, mpsim_format_code_bytes(p->format), i);
}

static int same_codes(const judge_pair *p, uint64_t a, uint64_t b)
{
    return a == b || (p->any_nan && mpsim_classify(p->format, a) == MPSIM_CLASS_NAN &&
                      mpsim_classify(p->format, b) == MPSIM_CLASS_NAN);
}

/* Whether result i is what result k should be. */
static int is_of(const judge_pair *p, size_t i, size_t k)
{
    return same_codes(p, code_at(p, p->found, i), code_at(p, p->expected, k));
}

int judge_pair_same(const judge_pair *p, size_t i)
{
    return is_of(p, i, i);
}

/* ---- what differs ---- */

/* The results that differ: all of them, in order. */
typedef struct differing {
    const judge_pair *p;
    mpsim_judgement *j;
    size_t *at, n;
} differing;

static int collect(differing *d)
{
    const size_t all = d->p->rows * d->p->columns;
    size_t n = 0;
    for (size_t i = 0; i < all; i++)
        n += !judge_pair_same(d->p, i);
    d->at = want_memory(n + 1, sizeof *d->at);
    for (size_t i = 0; i < all && d->at; i++)
        if (!judge_pair_same(d->p, i))
            d->at[d->n++] = i;
    return d->at ? 0 : -1;
}

static void first_places(const differing *d)
{
    mpsim_judgement *j = d->j;
    for (size_t i = 0; i < d->n && j->places < MPSIM_JUDGE_PLACES; i++) {
        mpsim_judge_place *at = &j->place[j->places++];
        at->row = d->at[i] / d->p->columns;
        at->column = d->at[i] % d->p->columns;
        at->found = code_at(d->p, d->p->found, d->at[i]);
        at->expected = code_at(d->p, d->p->expected, d->at[i]);
        at->exact = NAN;
    }
}

/* Whether so many are all that differ, but for one in a hundred; or half of them. */
static int is_nearly_all(const differing *d, uint64_t n)
{
    return n > 0 && n >= d->n - d->n / 100;
}

static int is_half(const differing *d, uint64_t n)
{
    return n > 0 && n >= d->n / 2;
}

static int is_class(const differing *d, const void *codes, size_t i, mpsim_class c)
{
    return mpsim_classify(d->p->format, code_at(d->p, codes, i)) == c;
}

/* ---- codes ---- */

/* All results of the array are one, or zeros of any sign, which most should not be. */
static int is_constant(const differing *d)
{
    const judge_pair *p = d->p;
    const size_t all = p->rows * p->columns;
    const uint64_t first = code_at(p, p->found, 0);
    size_t same = 0, zeros = 0;
    char share[24];
    for (size_t i = 0; i < all && (same == i || zeros == i); i++) {
        const uint64_t code = code_at(p, p->found, i);
        same += code == first;
        zeros += mpsim_classify(p->format, code) == MPSIM_CLASS_ZERO;
    }
    if (all < 2 || (same < all && zeros < all))
        return 0;
    if (zeros == all)
        judge_find(d->j, "zeros", d->n, "every result is zero, as if nothing had been written (%s differ)",
                   judge_percent(share, d->n, all));
    else
        judge_find(d->j, "constant", d->n,
                   "every result is 0x%" PRIx64 ": the results do not depend on the inputs (%s differ)", first,
                   judge_percent(share, d->n, all));
    return 1;
}

/* Zeros where there should be numbers. Only the signs of zeros: that is all there is to say. */
static int find_zeros(const differing *d)
{
    uint64_t zeros = 0, signs = 0;
    for (size_t i = 0; i < d->n; i++) {
        const int is_zero = is_class(d, d->p->found, d->at[i], MPSIM_CLASS_ZERO);
        const int both = is_zero && is_class(d, d->p->expected, d->at[i], MPSIM_CLASS_ZERO);
        signs += (uint64_t)both;
        zeros += is_zero && !both;
    }
    if (signs == d->n)
        judge_find(d->j, "zero", signs, "only the signs of zeros differ, in %" PRIu64 " results", signs);
    else if (is_half(d, signs))
        judge_find(d->j, "zero", signs, "%" PRIu64 " of the results that differ are zeros of the other sign", signs);
    else if (is_half(d, zeros))
        judge_find(d->j, "zeros", zeros, "%" PRIu64 " of the results that differ are zero", zeros);
    return signs == d->n;
}

typedef enum special { NUMBER, INFINITE, NOT_A_NUMBER } special;

static special special_at(const differing *d, const void *codes, size_t i)
{
    const mpsim_class c = mpsim_classify(d->p->format, code_at(d->p, codes, i));
    return c == MPSIM_CLASS_NAN ? NOT_A_NUMBER : c == MPSIM_CLASS_INF ? INFINITE : NUMBER;
}

/* NaNs and infinities that should be others or numbers, and numbers that should be none: rounding makes none of them, so one is
   enough. */
static void find_specials(const differing *d)
{
    static const struct {
        special found, expected;
        const char *cause, *text;
    } table[] = {
        {NOT_A_NUMBER, NUMBER, "nan", "%" PRIu64 " of the results that differ are NaN, and should be numbers"},
        {NUMBER, NOT_A_NUMBER, "nan", "%" PRIu64 " of the results that differ are numbers, and should be NaN"},
        {NOT_A_NUMBER, INFINITE, "nan", "%" PRIu64 " of the results that differ are NaN, and should be infinite"},
        {NOT_A_NUMBER, NOT_A_NUMBER, "nan", "%" PRIu64 " of the results that differ are NaNs with other bits"},
        {INFINITE, NUMBER, "overflow", "%" PRIu64 " of the results that differ are infinite, and should be numbers"},
        {INFINITE, NOT_A_NUMBER, "overflow", "%" PRIu64 " of the results that differ are infinite, and should be NaN"},
        {NUMBER, INFINITE, "infinity", "%" PRIu64 " of the results that differ are numbers, and should be infinite"},
    };
    uint64_t n[3][3] = {{0}};
    for (size_t i = 0; i < d->n; i++)
        n[special_at(d, d->p->found, d->at[i])][special_at(d, d->p->expected, d->at[i])]++;
    for (size_t t = 0; t < sizeof table / sizeof table[0]; t++) {
        const uint64_t of = n[table[t].found][table[t].expected];
        if (of)
            judge_find(d->j, table[t].cause, of, table[t].text, of);
    }
}

/* So many results that are alike are no chance: each is with a probability of at most a half. */
enum { ENOUGH = 20 };

/* The same bits flipped in all: the sign, or others. */
static int find_flipped(const differing *d)
{
    const uint64_t mask = code_at(d->p, d->p->found, d->at[0]) ^ code_at(d->p, d->p->expected, d->at[0]);
    const uint64_t sign = mpsim_format_is_signed(d->p->format) ? (uint64_t)1 << (d->p->format->bits - 1) : 0;
    uint64_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += (code_at(d->p, d->p->found, d->at[i]) ^ code_at(d->p, d->p->expected, d->at[i])) == mask;
    if (!is_nearly_all(d, n) || d->n < (mask == sign ? 4 : ENOUGH) || mask == 1) /* 1: the next number */
        return 0;
    if (mask == sign)
        judge_find(d->j, "sign", n, "%" PRIu64 " of the results that differ have the opposite sign", n);
    else
        judge_find(d->j, "bits", n, "%" PRIu64 " of the results that differ have the same bits flipped: 0x%" PRIx64, n,
                   mask);
    return 1;
}

/* How often each bit is set in normal results, as found and as they should be. */
typedef struct bit_counts {
    uint64_t found[64], expected[64], n;
} bit_counts;

static void count_bits(bit_counts *c, const differing *d)
{
    const size_t all = d->p->rows * d->p->columns;
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < all; i++) {
        if (!is_class(d, d->p->expected, i, MPSIM_CLASS_NORMAL))
            continue;
        c->n++;
        for (unsigned b = 0; b < d->p->format->bits; b++) {
            c->found[b] += code_at(d->p, d->p->found, i) >> b & 1;
            c->expected[b] += code_at(d->p, d->p->expected, i) >> b & 1;
        }
    }
}

/* The lowest bits of all significands are 0: numbers of another format. */
static int find_few_bits(const differing *d, uint64_t stuck, uint64_t clear)
{
    unsigned bits = 0;
    while (clear >> bits & 1)
        bits++;
    if (bits == 0 || stuck != clear || clear >> bits || d->p->format->mbits < 23 || bits >= d->p->format->mbits)
        return 0;
    judge_find(d->j, "format", d->n, "the lowest %u bits of all significands are 0: %u of %u bits are left%s", bits,
               d->p->format->mbits - bits, d->p->format->mbits,
               d->p->format->mbits == 23 && bits == 16   ? ", as bf16 has"
               : d->p->format->mbits == 23 && bits == 13 ? ", as tf32 and fp16 have"
                                                         : "");
    return 1;
}

/* Bits that hardly a normal result has, or that nearly all have, and that are otherwise where results are right. */
static void find_stuck(const differing *d)
{
    bit_counts c;
    uint64_t clear = 0, set = 0, n = 0;
    count_bits(&c, d);
    for (unsigned b = 0; b < d->p->format->bits; b++) {
        const uint64_t bit = (uint64_t)1 << b;
        clear |= c.expected[b] > c.n / 8 && c.found[b] <= c.n / 100 ? bit : 0;
        set |= c.n - c.expected[b] > c.n / 8 && c.n - c.found[b] <= c.n / 100 ? bit : 0;
    }
    for (size_t i = 0; i < d->n; i++)
        n += code_at(d->p, d->p->found, d->at[i]) == ((code_at(d->p, d->p->expected, d->at[i]) & ~clear) | set);
    if ((clear | set) && is_half(d, n) && c.n > 64 && d->n >= ENOUGH && !find_few_bits(d, clear | set, clear))
        judge_find(d->j, "bits", n,
                   "the bits 0x%" PRIx64 " are %s in normal results (%" PRIu64 " of the results that differ)",
                   clear | set, clear ? "0" : "1", n);
}

static double value_at(const differing *d, const void *codes, size_t i)
{
    return mpsim_decode(d->p->format, code_at(d->p, codes, i));
}

/* The ratio of what is found to what should be, of a result; 0: there is none. */
static double ratio_at(const differing *d, size_t i)
{
    const double f = value_at(d, d->p->found, i), e = value_at(d, d->p->expected, i);
    return isfinite(f) && isfinite(e) && f != 0 && e != 0 ? f / e : 0;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { RATIOS = 1001 };

/* The ratio in the middle of those of a sample; 0: there are none. */
static double middle_ratio(const differing *d)
{
    double ratios[RATIOS];
    size_t n = 0;
    for (size_t i = 0; i < RATIOS; i++) {
        const double r = ratio_at(d, d->at[(size_t)((double)i * (double)d->n / RATIOS)]);
        if (r != 0)
            ratios[n++] = r;
    }
    qsort(ratios, n, sizeof *ratios, ascending);
    return n ? ratios[n / 2] : 0;
}

/* One factor between what is found and what should be: exact, or within a rounding of the format. */
static void find_factor(const differing *d)
{
    const double factor = middle_ratio(d), unit = ldexp(1, -(int)d->p->format->mbits);
    int exponent;
    const int is_power = frexp(factor, &exponent) == 0.5; /* such a factor changes no significand */
    uint64_t n = 0;
    if (!(factor > 0) || d->n < 3 || fabs(factor - 1) < (is_power ? 0.25 : fmax(4 * unit, 0.001)))
        return;
    for (size_t i = 0; i < d->n; i++) {
        const double f = value_at(d, d->p->found, d->at[i]), e = value_at(d, d->p->expected, d->at[i]) * factor;
        n += is_power ? f == e && e != 0 : e != 0 && fabs(f - e) <= 2 * unit * fabs(e);
    }
    if (is_half(d, n))
        judge_find(d->j, "factor", n, "%" PRIu64 " of the results that differ are %.6g times what they should be", n,
                   factor);
}

/* ---- results of other places ---- */

typedef size_t other_place(const differing *d, size_t i, size_t by);

static uint64_t moved(const differing *d, other_place *to, size_t by)
{
    const size_t all = d->p->rows * d->p->columns;
    uint64_t n = 0;
    for (size_t i = 0; i < d->n && n + d->n / 100 + 1 > i; i++) {
        const size_t k = to(d, d->at[i], by);
        n += k < all && is_of(d->p, d->at[i], k);
    }
    return n;
}

/* Whether results have changed places with those at `by`: each has the other's. Sorted inputs have equal neighbours by chance. */
static uint64_t exchanged(const differing *d, size_t by)
{
    const size_t all = d->p->rows * d->p->columns;
    uint64_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const size_t k = d->at[i] ^ by;
        n += k < all && is_of(d->p, d->at[i], k) && is_of(d->p, k, d->at[i]);
    }
    return n;
}

static size_t turned(const differing *d, size_t i, size_t by)
{
    (void)by;
    return i % d->p->rows * d->p->columns + i / d->p->rows;
}

static size_t behind(const differing *d, size_t i, size_t by)
{
    (void)d;
    return i + by;
}

/* Whether results and those `by` places away are often different: sorted inputs have many equal neighbours, and show no move. */
static int is_varied(const differing *d, size_t by)
{
    const size_t all = d->p->rows * d->p->columns;
    size_t n = 0, tried = 0;
    for (size_t i = 0; i < all && i + by < all; i++, tried++)
        n += !same_codes(d->p, code_at(d->p, d->p->expected, i), code_at(d->p, d->p->expected, i + by));
    return n > tried / 4;
}

static int find_moved(const differing *d)
{
    static const size_t steps[] = {1, 2, 4, 8, 16};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        const uint64_t n = exchanged(d, steps[s]);
        if (is_nearly_all(d, n) && d->n >= ENOUGH && is_varied(d, steps[s])) {
            judge_find(d->j, "pairs-swapped", n,
                       steps[s] == 1 ? "neighbours have changed places (%" PRIu64 " results)"
                                     : "elements have changed places with those %zu away (%" PRIu64 " results)",
                       steps[s] == 1 ? n : steps[s], n);
            return 1;
        }
    }
    const uint64_t n = moved(d, turned, 0);
    if (d->p->rows > 1 && d->p->columns > 1 && d->n > 7 && is_nearly_all(d, n)) {
        judge_find(d->j, "transposed", n, "the results are those of the transposed matrix");
        return 1;
    }
    return 0;
}

static int find_shift(const differing *d)
{
    const size_t c = d->p->columns;
    const size_t by[] = {1, c, SIZE_MAX, (size_t)0 - c};
    for (size_t i = 0; i < 4 && d->n >= ENOUGH; i++) {
        const uint64_t n = moved(d, behind, by[i]);
        if (is_nearly_all(d, n) && is_varied(d, i % 2 ? c : 1)) {
            judge_find(d->j, "shifted", n, "the results are those of the %s %s", i % 2 ? "row" : "element",
                       i < 2 ? "that follows" : "before");
            return 1;
        }
    }
    return 0;
}

/* ---- rows and columns that changed places ---- */

/* Lines of a matrix: rows, or columns. */
typedef struct lines {
    size_t n, length, step, apart; /* element i of line l is at l apart + i step */
} lines;

static lines lines_of(const judge_pair *p, int columns)
{
    return columns ? (lines){p->columns, p->rows, p->columns, 1} : (lines){p->rows, p->columns, 1, p->columns};
}

static int is_line_of(const judge_pair *p, const lines *l, size_t a, size_t b)
{
    for (size_t i = 0; i < l->length; i++)
        if (!is_of(p, a * l->apart + i * l->step, b * l->apart + i * l->step))
            return 0;
    return 1;
}

static size_t source_of(const judge_pair *p, const lines *l, size_t line)
{
    for (size_t k = 0; k < l->n; k++)
        if (k != line && is_line_of(p, l, line, k))
            return k;
    return l->n;
}

static int find_permuted(const differing *d, int columns)
{
    const lines l = lines_of(d->p, columns);
    const char *what = columns ? "column" : "row";
    size_t moved_lines = 0, first = l.n, from = l.n;
    for (size_t i = 0; i < l.n && l.n > 1 && l.length > 1; i++) {
        if (is_line_of(d->p, &l, i, i))
            continue;
        const size_t k = source_of(d->p, &l, i);
        if (k == l.n)
            return 0;
        from = first == l.n ? k : from;
        first = first == l.n ? i : first;
        moved_lines++;
    }
    if (moved_lines * l.length < 8)
        return 0;
    judge_find(d->j, columns ? "columns-permuted" : "rows-permuted", d->n,
               "%zu %ss are in other places: %s %zu has the results of %s %zu", moved_lines, what, what, first, what,
               from);
    return 1;
}

/* ---- neighbouring codes ---- */

static int64_t ordinal(const mpsim_format *f, uint64_t code)
{
    const unsigned bits = mpsim_format_is_signed(f) ? f->bits - 1u : f->bits;
    const int64_t m = (int64_t)(code & (((uint64_t)1 << bits) - 1));
    return code >> bits & 1 ? -m : m;
}

static void find_one_code(const differing *d)
{
    uint64_t n = 0, smaller = 0;
    for (size_t i = 0; i < d->n; i++) {
        const int64_t f = ordinal(d->p->format, code_at(d->p, d->p->found, d->at[i]));
        const int64_t e = ordinal(d->p->format, code_at(d->p, d->p->expected, d->at[i]));
        n += f - e == 1 || e - f == 1;
        smaller += (f - e == 1 || e - f == 1) && (f < 0 ? -f : f) < (e < 0 ? -e : e);
    }
    if (!is_half(d, n))
        return;
    judge_find(d->j, "one-code", n, "%" PRIu64 " of the results that differ are the next number: %s", n,
               smaller == n   ? "always the one nearer to zero"
               : smaller == 0 ? "always the one farther from zero"
                              : "sometimes nearer to zero, sometimes farther");
}

/* ---- where ---- */

/* Whether chance hardly puts all that differ into a part of the lines of this size: with a probability below 1e-6. The first result that
 * differs may be anywhere, and any of them may be the first of the part; ways: so many sizes of groups are tried. */
static int is_pattern(size_t results, size_t part, size_t whole, double ways)
{
    const double n = (double)results;
    return (n - 1) * log((double)whole / (double)part) - log(n * ways) > 13.8;
}

/* Whether lines `first` to `last` hold all that differs, and are not all lines. */
static int find_range(const differing *d, int columns)
{
    const size_t n = columns ? d->p->columns : d->p->rows;
    size_t first = n, last = 0;
    for (size_t i = 0; i < d->n; i++) {
        const size_t line = columns ? d->at[i] % d->p->columns : d->at[i] / d->p->columns;
        first = line < first ? line : first;
        last = line > last ? line : last;
    }
    if (n < 2 || (last - first + 1) * 2 > n + 1 || !is_pattern(d->n, last - first + 1, n, 2))
        return 0;
    judge_find(d->j, columns ? "columns" : "rows", d->n,
               first == last ? "all that differ are in %s %zu of %zu" : "all that differ are in %ss %zu to %zu of %zu",
               columns ? "column" : "row", first, first == last ? n : last, n);
    return 1;
}

/* Lines `first` to `last` of each `group`. */
typedef struct period {
    size_t first, last, group;
} period;

static double share_of(const period *p)
{
    return (double)(p->last - p->first + 1) / (double)p->group;
}

/* How many results count in a pattern of lines. Neighbours in an array of one line often differ together: they are one. */
static size_t alone(const differing *d)
{
    size_t n = d->n ? 1 : 0;
    if (d->p->rows > 1 && d->p->columns > 1)
        return d->n;
    for (size_t i = 1; i < d->n; i++)
        n += d->at[i] != d->at[i - 1] + 1;
    return n;
}

static period period_of(const differing *d, int columns, size_t group)
{
    period p = {group, 0, group};
    for (size_t i = 0; i < d->n; i++) {
        const size_t line = (columns ? d->at[i] % d->p->columns : d->at[i] / d->p->columns) % group;
        p.first = line < p.first ? line : p.first;
        p.last = line > p.last ? line : p.last;
    }
    return p;
}

/* Whether all that differ are in one part, at most half, of each group of 2, 4, ... 256 lines: the smallest such part. */
static void find_period(const differing *d, int columns)
{
    const size_t all = columns ? d->p->columns : d->p->rows;
    const char *what = columns ? "column" : "row", *cause = columns ? "columns" : "rows";
    const size_t n = alone(d);
    period best = {0, 0, 1};
    for (size_t group = 2; group <= 256 && all >= 2 * group && d->n > 1; group *= 2) {
        const period p = period_of(d, columns, group);
        if (share_of(&p) <= 0.5 && share_of(&p) < share_of(&best) && is_pattern(n, p.last - p.first + 1, group, 16))
            best = p;
    }
    if (best.group == 1)
        return;
    if (best.first == best.last)
        judge_find(d->j, cause, d->n, "all that differ are in %s %zu of each %zu %ss", what, best.first, best.group,
                   what);
    else
        judge_find(d->j, cause, d->n, "all that differ are in %ss %zu to %zu of each %zu %ss", what, best.first,
                   best.last, best.group, what);
}

/* What the results that differ are; 1: nothing else is to be said of them. */
static int find_values(const differing *d)
{
    if (find_zeros(d))
        return 1;
    find_specials(d);
    find_one_code(d);
    return 0;
}

/* What has been done to them. */
static void find_reasons(const differing *d)
{
    if (!find_flipped(d))
        find_stuck(d);
    find_factor(d);
    if (!find_moved(d) && !find_shift(d) && !find_permuted(d, 0))
        find_permuted(d, 1);
}

static void find_where(const differing *d)
{
    for (int columns = 0; columns < 2; columns++)
        if (!find_range(d, columns))
            find_period(d, columns);
}

void judge_places(mpsim_judgement *j, const judge_pair *p, judge_look look)
{
    differing d = {p, j, NULL, 0};
    if (collect(&d)) {
        j->differ = UINT64_MAX;
        return;
    }
    j->differ = d.n;
    first_places(&d);
    if (d.n && !is_constant(&d)) {
        if (look != JUDGE_WHERE && !find_values(&d) && look == JUDGE_ALL)
            find_reasons(&d);
        if (look != JUDGE_VALUES)
            find_where(&d);
    }
    free(d.at);
}

/* ---- counted alone ---- */

void judge_take(const judge_case *c, const char *role, const judge_pair *p)
{
    const size_t n = p->rows * p->columns;
    uint64_t differ = 0;
    if (memcmp(p->found, p->expected, n * mpsim_format_code_bytes(p->format)) != 0)
        for (size_t i = 0; i < n; i++)
            differ += !judge_pair_same(p, i);
    c->j->results += n;
    c->j->differ += differ;
    c->sink->take(c->sink->self, role, differ, p->format, p->expected, n);
}
