/* patterns.c -- see patterns.h. */
#include "impl.h"

#include "../record/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bits that the numbers of either side have: those of binary32 may be of a narrower format. */
static int bits_in_use(const verdict_case *c)
{
    const unsigned a = c->all.significant[0], b = c->all.significant[1], most = a > b ? a : b;
    const unsigned bits = c->measurer.narrow.mbits + 1u;
    return (int)(most < bits ? most : bits);
}

/* ---- exact patterns of codes ---- */

int diff_pattern_codes(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    char a[32];
    (void)error;
    const uint64_t numbers = m->compared, rest = m->both_nan;
    if (m->larger + m->smaller || numbers + rest != m->differ)
        return 0;
    diff_finding_init(f, VERDICT_CODES);
    diff_finding_say(f, "all values are equal; ");
    if (numbers)
        diff_finding_say(f, "the sign of zero differs in %s%s", text_count(a, numbers), rest ? ", " : "");
    if (rest)
        diff_finding_say(f, "the codes of NaN in %s", text_count(a, rest));
    return 1;
}

/* The only bit that differs anywhere; -1 if there are several. */
static int single_bit(const measure *m)
{
    int bit = -1;
    for (int i = 0; i < MEASURE_BITS; i++)
        if (m->bits[i]) {
            if (bit >= 0)
                return -1;
            bit = i;
        }
    return bit;
}

static const char *part_of_code(const mpsim_format *f, int bit)
{
    return mpsim_format_is_signed(f) && bit == f->bits - 1 ? "the sign"
           : bit >= f->mbits                               ? "the exponent"
                                                           : "the significand";
}

/* Below this bit of a code, one that differs is no sure flip: it is the last of those in use, or of few the last two. A
 * rounding that went the other way, or an update, is likelier. */
static int first_sure_bit(const verdict_case *c)
{
    enum { NARROW = 11 };
    const int bits = bits_in_use(c);
    return c->tensors[0]->format->mbits + 2 - bits + (bits <= NARROW);
}

int diff_pattern_flipped_bit(verdict_case *c, finding *f, trace_error *error)
{
    const mpsim_format *format = c->tensors[0]->format;
    char a[32];
    (void)error;
    if (!c->measurer.same || c->part.one_bit != 1 || c->part.differ != 1)
        return 0;
    const int bit = single_bit(&c->part);
    if (bit < first_sure_bit(c))
        return 0;
    diff_finding_init(f, VERDICT_FLIPPED_BIT);
    f->bit = bit;
    diff_finding_say(f, "one element of %s differs, and in one bit: bit %d, of %s", text_count(a, c->tensors[1]->count),
                     f->bit, part_of_code(format, f->bit));
    return 1;
}

int diff_pattern_flipped_bits(verdict_case *c, finding *f, trace_error *error)
{
    enum { FEW = 8, LAST = 2 };
    const measure *m = &c->part;
    const mpsim_format *format = c->tensors[0]->format;
    const int bit = single_bit(m), unused = format->mbits + 1 - bits_in_use(c);
    char a[32], b[32];
    (void)error;
    if (!c->measurer.same || m->one_bit != m->differ ||
        (bit < 0 ? m->differ > FEW || m->max_ulp >> unused >> LAST == 0 : bit < first_sure_bit(c)))
        return 0;
    diff_finding_init(f, VERDICT_FLIPPED_BIT);
    f->bit = bit;
    diff_finding_say(f, "%s elements of %s differ, each in one bit", text_count(a, m->differ),
                     text_count(b, c->tensors[1]->count));
    if (bit >= 0)
        diff_finding_say(f, ", always bit %d, of %s", bit, part_of_code(format, bit));
    return 1;
}

int diff_pattern_byte_order(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    char a[32];
    (void)error;
    if (!c->measurer.same || mpsim_format_code_bytes(c->tensors[0]->format) < 2 || m->swapped != m->differ ||
        m->differ < 2)
        return 0;
    diff_finding_init(f, VERDICT_BYTE_ORDER);
    diff_finding_say(f, "each of the %s codes that differ has A's bytes in the opposite order",
                     text_count(a, m->differ));
    return 1;
}

int diff_pattern_reinterpreted(verdict_case *c, finding *f, trace_error *error)
{
    const mpsim_format *x = c->tensors[0]->format, *y = c->tensors[1]->format;
    char a[32];
    (void)error;
    if (c->measurer.same || mpsim_format_code_bytes(x) != mpsim_format_code_bytes(y) ||
        c->part.same_code != c->part.count || c->all.same_code != c->all.count)
        return 0;
    diff_finding_init(f, VERDICT_REINTERPRETED);
    diff_finding_say(f, "all %s codes are equal, A's are read as %s and B's as %s", text_count(a, c->all.count),
                     x->name, y->name);
    return 1;
}

int diff_pattern_negated(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    char a[32], b[32];
    (void)error;
    if (m->negated == 0 || m->same_magnitude != m->differ || m->differ < 2)
        return 0;
    const uint64_t numbers = c->all.count - c->all.zero[0];
    diff_finding_init(f, m->negated == numbers ? VERDICT_NEGATED : VERDICT_SIGNS);
    if (f->verdict == VERDICT_NEGATED)
        f->scale = -1;
    diff_finding_say(f, "B = -A in %s of %s elements, the others are equal", text_count(a, m->negated),
                     text_count(b, c->tensors[1]->count));
    for (int k = 0; k < 2 && f->verdict == VERDICT_SIGNS; k++)
        if (c->all.low[k] >= 0)
            diff_finding_say(f, ": %s has no sign", k ? "B" : "A");
    return 1;
}

/* ---- zeros ---- */

/* The name of what all numbers below a limit are: flushed to zero where they lie below a format's. */
static const char *flushed_name(char out[96], double zeroed_max, double kept_min)
{
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        const double normal = mpsim_format_min_normal(f);
        if (zeroed_max < normal && normal <= kept_min && f->mbits && zeroed_max > normal / 16) {
            snprintf(out, 96, ", as if the subnormal numbers of %.24s were flushed", f->name);
            return out;
        }
    }
    return "";
}

static int say_zeros(const verdict_case *c, finding *f, const char *where, uint64_t n, int which)
{
    const measure *m = &c->part;
    char a[32], b[32], text[96];
    const uint64_t count = c->tensors[1]->count;
    diff_finding_init(f, VERDICT_ZEROED);
    if (c->all.zero[which] == c->all.count)
        diff_finding_say(f, "all %s elements of %s are zero: never written?", text_count(a, count), where);
    else if (m->zero[which] == m->count && c->all.end[which] <= c->first && m->differ > 1)
        diff_finding_say(f, "%s is zero from element %s on, the tail of %s elements", where, text_count(a, c->first),
                         text_count(b, count - c->first));
    else if (m->zero[which] == m->count && m->differ > 1)
        diff_finding_say(f, "%s is zero in %s", where, diff_verdict_range(text, c));
    else if (which == 1 && m->differ > 1 && m->zeroed_max < c->all.kept_min)
        diff_finding_say(f, "in %s all %s numbers below %s are zero%s", where, text_count(a, n),
                         text_number(b, c->all.kept_min), flushed_name(text, m->zeroed_max, c->all.kept_min));
    else
        diff_finding_say(f, "%s is zero in %s of %s elements, here and there, the others are equal", where,
                         text_count(a, n), text_count(b, count));
    return 1;
}

int diff_pattern_zeroed(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    (void)error;
    if (m->zeroed && m->zeroed == m->differ)
        return say_zeros(c, f, "B", m->zeroed, 1);
    if (m->filled && m->filled == m->differ)
        return say_zeros(c, f, "A", m->filled, 0);
    return 0;
}

/* ---- limits ---- */

static const char *limit_name(char out[96], double limit)
{
    for (size_t i = 0; i < mpsim_format_count(); i++)
        if (mpsim_format_max(mpsim_format_at(i)) == limit) {
            snprintf(out, 96, ", the largest number of %s", mpsim_format_at(i)->name);
            return out;
        }
    return "";
}

int diff_pattern_clipped(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    char a[32], b[32], text[96];
    (void)error;
    if (m->differ < 2 || c->all.differ == c->all.count || m->limit_min != m->limit_max || !isfinite(m->limit_max) ||
        m->limit_max == 0 || m->away || m->same_magnitude || m->nan[1] > m->nan[0] || c->all.amax[1] > m->limit_max)
        return 0;
    diff_finding_init(f, VERDICT_CLIPPED);
    f->scale = m->limit_max;
    diff_finding_say(f,
                     "all %s elements that differ are %s in magnitude%s, where A's are larger; nothing in B is larger",
                     text_count(a, m->differ), text_number(b, m->limit_max), limit_name(text, m->limit_max));
    return 1;
}

int diff_pattern_non_finite(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->part;
    char a[32], b[32], d[32];
    (void)error;
    if (m->broke + m->mended == 0)
        return 0;
    diff_finding_init(f, VERDICT_NON_FINITE);
    diff_finding_say(f, "%s elements are finite in A alone, %s in B alone", text_count(a, m->broke),
                     text_count(b, m->mended));
    diff_finding_say(f, "; NaN: %s in A", text_count(d, c->all.nan[0]));
    diff_finding_say(f, ", %s in B", text_count(d, c->all.nan[1]));
    diff_finding_say(f, "; Inf: %s in A", text_count(d, c->all.inf[0]));
    diff_finding_say(f, ", %s in B", text_count(d, c->all.inf[1]));
    if (m->broke + m->mended == m->differ)
        diff_finding_say(f, "; all others are equal");
    return 1;
}

/* ---- noise ---- */

/* Errors of additions grow with the length of sums and with what cancels, relative to the tensor; those of a
 * narrow format are an ULP here and there. */
static double noise_limit(double unit)
{
    return fmin(1024 * unit, fmax(2 * unit, 0.0078125));
}

/* Sums have many different values. */
static int has_few_levels(const measure *m)
{
    return m->count > MEASURE_LEVELS && (m->levels[0].n <= MEASURE_LEVELS || m->levels[1].n <= MEASURE_LEVELS);
}

int diff_pattern_sum_order(verdict_case *c, finding *f, trace_error *error)
{
    const measure *m = &c->all;
    const double relative = diff_measure_relative(m), unit = ldexp(1, -bits_in_use(c));
    char a[32], b[32], d[32];
    (void)error;
    const double rms_error = sqrt(fmax(0, mpsim_sum_value(&m->noise)) / (double)(m->compared ? m->compared : 1));
    if (!(relative <= noise_limit(unit)) || has_few_levels(m) || m->broke + m->mended || m->differ != m->compared ||
        !diff_measure_is_balanced(m) ||
        (m->differ >= 8 && relative > 4 * unit && fabs(diff_measure_alignment(m)) > 0.7) ||
        (m->differ > 16 && m->max_abs > 16 * rms_error))
        return 0;
    diff_finding_init(f, VERDICT_SUM_ORDER);
    diff_finding_say(f, "%s of the elements differ, %s upwards and %s downwards", text_share(a, m->differ, m->count),
                     text_count(b, m->larger), text_count(d, m->smaller));
    diff_finding_say(f, ", by %s of the tensor's root mean square, %s units of roundoff of its %d bits",
                     text_number(a, relative), text_number(b, relative / unit), bits_in_use(c));
    if (!c->measurer.same)
        diff_finding_say(f, "; and the dtypes differ");
    diff_finding_say(f, ". It looks like it; other causes of small errors look alike%s",
                     m->differ == 1 && m->one_bit ? ", and a flip of the last bit in use" : "");
    return 1;
}

int diff_pattern_close(verdict_case *c, finding *f, trace_error *error)
{
    (void)error;
    if (!(diff_measure_relative(&c->all) <= 0.1))
        return 0;
    diff_finding_init(f, VERDICT_CLOSE);
    diff_verdict_say_errors(c, f);
    if (!diff_measure_is_balanced(&c->all))
        diff_finding_say(f, "; %s of the errors go up", c->all.larger > c->all.smaller ? "most" : "few");
    if (c->all.differ >= 8 && fabs(diff_measure_alignment(&c->all)) > 0.7)
        diff_finding_say(f, "; they go along with A, as if it was made %s",
                         diff_measure_alignment(&c->all) > 0 ? "larger" : "smaller");
    return 1;
}

/* Whether one element is most of a tensor, as an outlier is: then any two tensors that share it correlate. */
static int has_outlier(const measure *m)
{
    for (int k = 0; k < 2; k++)
        if (m->amax[k] * m->amax[k] > 0.5 * mpsim_sum_value(&m->signal[k]))
            return 1;
    return 0;
}

/* Whether the deviations from the means go together, by more than numbers at random would. */
static int is_correlated(const measure *m)
{
    measure_fit line;
    return !has_outlier(m) && diff_measure_line(m, &line) == 0 &&
           1 - line.share * line.share > fmax(0.04, 36 / (double)m->finite);
}

int diff_pattern_unrelated(verdict_case *c, finding *f, trace_error *error)
{
    (void)error;
    diff_finding_init(f, is_correlated(&c->all) ? VERDICT_RELATED : VERDICT_UNRELATED);
    diff_verdict_say_errors(c, f);
    return 1;
}
