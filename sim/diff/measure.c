/* measure.c -- see measure.h. */
#include "measure.h"

#include "../operand/element.h"

#include <math.h>
#include <string.h>

void diff_measure_init(measure *m)
{
    memset(m, 0, sizeof *m);
    m->first.at = UINT64_MAX;
    m->kept_min = m->limit_min = m->ratio_min = HUGE_VAL;
    m->ratio_max = m->offset_min = -HUGE_VAL;
    m->offset_max = HUGE_VAL;
    m->scale_max[0] = m->scale_max[1] = HUGE_VAL;
    for (int k = 0; k < 2; k++) {
        m->low[k] = HUGE_VAL;
        m->high[k] = -HUGE_VAL;
        mpsim_sum_init(&m->signal[k]);
        mpsim_sum_init(&m->total[k]);
    }
    mpsim_sum_init(&m->product);
    mpsim_sum_init(&m->noise);
    mpsim_sum_init(&m->signal_differ);
}

void diff_measurer_init(measurer *r, const mpsim_format *a, const mpsim_format *b)
{
    r->formats[0] = *a;
    r->formats[1] = *b;
    r->same = mpsim_format_same(a, b);
    r->narrow = a->mbits < b->mbits || (a->mbits == b->mbits && a->ebits <= b->ebits) ? *a : *b;
    r->unit = ldexp(1, -r->narrow.mbits);
    r->both_signed = mpsim_format_is_signed(a) && mpsim_format_is_signed(b);
}

static uint64_t bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

int diff_measure_differs(const measurer *r, uint64_t code_a, uint64_t code_b, double a, double b)
{
    if (r->same)
        return code_a != code_b;
    if (isnan(a) || isnan(b))
        return !(isnan(a) && isnan(b));
    return a != b || (a == 0 && r->both_signed && signbit(a) != signbit(b));
}

/* ---- in ULPs ---- */

/* The code of a finite number of the narrower format, as an integer that grows with it. */
static int64_t ordinal(const measurer *r, double x)
{
    const mpsim_format *f = &r->narrow;
    mpsim_rounding rounding;
    mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
    rounding.overflow = MPSIM_OVERFLOW_MAX;
    const uint64_t code = mpsim_encode_f64(f, &rounding, x, 0, NULL);
    if (!mpsim_format_is_signed(f))
        return (int64_t)code;
    const uint64_t sign = UINT64_C(1) << (f->bits - 1);
    return code & sign ? -(int64_t)(code & (sign - 1)) : (int64_t)code;
}

static unsigned ulp_bin(uint64_t ulps)
{
    unsigned bin = 0;
    for (; ulps; ulps >>= 1)
        bin++;
    return bin;
}

static void add_ulps(measure *m, const measurer *r, const measure_place *p)
{
    const int64_t x = ordinal(r, p->values[0]), y = ordinal(r, p->values[1]);
    const uint64_t ulps = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
    m->ulps[ulp_bin(ulps)]++;
    if (m->compared++ == 0 || ulps > m->max_ulp) {
        m->max_ulp = ulps;
        m->worst = *p;
    }
}

/* ---- elements that differ ---- */

static uint64_t reversed(uint64_t code, size_t bytes)
{
    uint64_t out = 0;
    for (size_t i = 0; i < bytes; i++, code >>= 8)
        out = out << 8 | (code & 0xff);
    return out;
}

static void add_bits(measure *m, const measurer *r, const measure_place *p)
{
    uint64_t differ = p->codes[0] ^ p->codes[1];
    if (!r->same)
        return;
    m->one_bit += (differ & (differ - 1)) == 0;
    for (unsigned i = 0; differ; i++, differ >>= 1)
        m->bits[i] += differ & 1;
    m->swapped += reversed(p->codes[0], mpsim_format_code_bytes(&r->formats[0])) == p->codes[1];
}

static void add_difference(measure *m, const measurer *r, const measure_place *p)
{
    const double a = p->values[0], b = p->values[1];
    if (m->differ++ == 0 || p->at < m->first.at)
        m->first = *p;
    if (m->differ == 1 || p->at > m->last.at)
        m->last = *p;
    add_bits(m, r, p);
    m->broke += isfinite(a) && !isfinite(b);
    m->mended += !isfinite(a) && isfinite(b);
    m->both_nan += isnan(a) && isnan(b);
    m->limit_min = fmin(m->limit_min, isnan(b) ? HUGE_VAL : fabs(b));
    m->limit_max = fmax(m->limit_max, isnan(b) ? HUGE_VAL : fabs(b));
    m->away += fabs(b) > fabs(a);
    m->same_magnitude += fabs(a) == fabs(b);
    m->negated += a == -b && b != 0;
    m->zeroed += b == 0 && a != 0;
    m->filled += a == 0 && b != 0;
    if (b == 0 && a != 0)
        m->zeroed_max = fmax(m->zeroed_max, fabs(a)); /* a NaN is passed over */
    if (!isfinite(a) || !isfinite(b))
        return;
    const double error = fabs(a - b), larger = fmax(fabs(a), fabs(b));
    m->larger += b > a;
    m->smaller += b < a;
    m->max_abs = fmax(m->max_abs, error);
    if (larger > 0)
        m->max_rel = fmax(m->max_rel, error / larger);
    mpsim_sum_add_square(&m->noise, a - b);
    mpsim_sum_add_square(&m->signal_differ, a);
    add_ulps(m, r, p);
}

/* ---- all elements ---- */

static int is_normal(const mpsim_format *f, double x)
{
    return isfinite(x) && fabs(x) >= mpsim_format_min_normal(f);
}

/* Scales with which x rounds to y: those of a number within a unit in the last place of y. */
static void add_scale(measure *m, int k, const mpsim_format *f, double x, double y)
{
    if (!is_normal(f, y) || fabs(y) == mpsim_format_max(f))
        return;
    const double ratio = fabs(y) / fabs(x), unit = ldexp(1, -f->mbits);
    m->scale_min[k] = fmax(m->scale_min[k], ratio * (1 - unit));
    m->scale_max[k] = fmin(m->scale_max[k], ratio * (1 + unit));
}

static void add_ratio(measure *m, const measurer *r, double a, double b)
{
    add_scale(m, 0, &r->formats[1], a, b);
    add_scale(m, 1, &r->formats[0], b, a);
    if (!is_normal(&r->formats[0], a) || !is_normal(&r->formats[1], b))
        return;
    m->ratio_min = fmin(m->ratio_min, b / a);
    m->ratio_max = fmax(m->ratio_max, b / a);
    m->ratios++;
}

static unsigned significant_bits(double x)
{
    const uint64_t fraction = bits_of(x) & ((UINT64_C(1) << 52) - 1);
    return fraction ? 53 - (unsigned)__builtin_ctzll(fraction) : 1;
}

static void add_level(measure_levels *l, double x)
{
    for (unsigned i = 0; i < l->n && l->n <= MEASURE_LEVELS; i++)
        if (l->x[i] == x)
            return;
    if (l->n < MEASURE_LEVELS && !isnan(x))
        l->x[l->n++] = x;
    else
        l->n = MEASURE_LEVELS + 1;
}

static void merge_levels(measure_levels *to, const measure_levels *from)
{
    if (from->n > MEASURE_LEVELS)
        to->n = from->n;
    for (unsigned i = 0; i < from->n && to->n <= MEASURE_LEVELS; i++)
        add_level(to, from->x[i]);
}

/* Offsets with which a is b, but for a rounding. */
static void add_offset(measure *m, const measurer *r, double a, double b)
{
    const double unit = r->unit * (fabs(a) > fabs(b) ? fabs(a) : fabs(b)), low = b - a - unit, high = b - a + unit;
    m->offset_min = low > m->offset_min ? low : m->offset_min;
    m->offset_max = high < m->offset_max ? high : m->offset_max;
    m->offset_unit = unit > m->offset_unit ? unit : m->offset_unit;
    m->finite++;
}

static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void add_side(measure *m, const measurer *r, int k, uint64_t at, uint64_t code, double x)
{
    const uint64_t what = r->same ? code : isnan(x) ? UINT64_MAX : bits_of(x);
    m->multiset[k][0] += mixed(what);
    m->multiset[k][1] += mixed(~what);
    m->nan[k] += isnan(x) != 0;
    m->inf[k] += isinf(x) != 0;
    m->zero[k] += x == 0;
    add_level(&m->levels[k], x);
    if (isfinite(x)) {
        m->amax[k] = fmax(m->amax[k], fabs(x));
        m->low[k] = fmin(m->low[k], x);
        m->high[k] = fmax(m->high[k], x);
    }
    if (x != 0 && m->end[k] < at + 1)
        m->end[k] = at + 1;
    if (isfinite(x) && x != 0) {
        const unsigned bits = significant_bits(x);
        m->significant[k] = bits > m->significant[k] ? bits : m->significant[k];
    }
}

static void add_pair(measure *m, const measurer *r, const measure_place *p)
{
    const double a = p->values[0], b = p->values[1];
    add_side(m, r, 0, p->at, p->codes[0], a);
    add_side(m, r, 1, p->at, p->codes[1], b);
    m->same_code += p->codes[0] == p->codes[1];
    if (isfinite(a) && isfinite(b)) {
        mpsim_sum_add_square(&m->signal[0], a);
        mpsim_sum_add_square(&m->signal[1], b);
        mpsim_sum_add_product(&m->product, a, b);
        mpsim_sum_add(&m->total[0], a);
        mpsim_sum_add(&m->total[1], b);
        add_offset(m, r, a, b);
        if (a != 0 && b != 0)
            add_ratio(m, r, a, b);
    }
    if (a != 0 && b != 0 && fabs(a) < m->kept_min)
        m->kept_min = fabs(a);
    if (diff_measure_differs(r, p->codes[0], p->codes[1], a, b))
        add_difference(m, r, p);
}

void diff_measure_add(measure *m, const measurer *r, uint64_t first, const void *codes_a, const void *codes_b,
                      const double *a, const double *b, size_t n)
{
    const size_t bytes[2] = {mpsim_format_code_bytes(&r->formats[0]), mpsim_format_code_bytes(&r->formats[1])};
    for (size_t i = 0; i < n; i++) {
        const measure_place p = {.at = first + i,
                                 .codes = {element_code(codes_a, bytes[0], i), element_code(codes_b, bytes[1], i)},
                                 .values = {a[i], b[i]}};
        add_pair(m, r, &p);
    }
    m->count += n;
}

/* ---- merging ---- */

static void merge_counts(uint64_t *to, const uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void merge_places(measure *to, const measure *from)
{
    if (from->differ == 0)
        return;
    if (from->compared && (to->compared == 0 || from->max_ulp > to->max_ulp ||
                           (from->max_ulp == to->max_ulp && from->worst.at < to->worst.at))) {
        to->worst = from->worst;
        to->max_ulp = from->max_ulp;
    }
    if (to->differ == 0 || from->first.at < to->first.at)
        to->first = from->first;
    if (to->differ == 0 || from->last.at > to->last.at)
        to->last = from->last;
}

static void merge_extremes(measure *to, const measure *from)
{
    to->max_abs = fmax(to->max_abs, from->max_abs);
    to->max_rel = fmax(to->max_rel, from->max_rel);
    to->zeroed_max = fmax(to->zeroed_max, from->zeroed_max);
    to->kept_min = fmin(to->kept_min, from->kept_min);
    to->limit_min = fmin(to->limit_min, from->limit_min);
    to->limit_max = fmax(to->limit_max, from->limit_max);
    to->ratio_min = fmin(to->ratio_min, from->ratio_min);
    to->ratio_max = fmax(to->ratio_max, from->ratio_max);
    to->offset_min = fmax(to->offset_min, from->offset_min);
    to->offset_max = fmin(to->offset_max, from->offset_max);
    to->offset_unit = fmax(to->offset_unit, from->offset_unit);
    for (int k = 0; k < 2; k++) {
        to->amax[k] = fmax(to->amax[k], from->amax[k]);
        to->low[k] = fmin(to->low[k], from->low[k]);
        to->high[k] = fmax(to->high[k], from->high[k]);
        merge_levels(&to->levels[k], &from->levels[k]);
        mpsim_sum_merge(&to->total[k], &from->total[k]);
        to->end[k] = from->end[k] > to->end[k] ? from->end[k] : to->end[k];
        to->scale_min[k] = fmax(to->scale_min[k], from->scale_min[k]);
        to->scale_max[k] = fmin(to->scale_max[k], from->scale_max[k]);
        to->significant[k] = from->significant[k] > to->significant[k] ? from->significant[k] : to->significant[k];
        mpsim_sum_merge(&to->signal[k], &from->signal[k]);
        merge_counts(to->multiset[k], from->multiset[k], 2);
    }
    mpsim_sum_merge(&to->product, &from->product);
    mpsim_sum_merge(&to->noise, &from->noise);
    mpsim_sum_merge(&to->signal_differ, &from->signal_differ);
}

void diff_measure_merge(measure *to, const measure *from)
{
    merge_places(to, from);
    merge_extremes(to, from);
    merge_counts(to->ulps, from->ulps, MEASURE_ULP_BINS);
    merge_counts(to->bits, from->bits, MEASURE_BITS);
    merge_counts(to->nan, from->nan, 2);
    merge_counts(to->inf, from->inf, 2);
    merge_counts(to->zero, from->zero, 2);
    to->count += from->count;
    to->differ += from->differ;
    to->compared += from->compared;
    to->one_bit += from->one_bit;
    to->broke += from->broke;
    to->mended += from->mended;
    to->both_nan += from->both_nan;
    to->larger += from->larger;
    to->smaller += from->smaller;
    to->away += from->away;
    to->same_magnitude += from->same_magnitude;
    to->negated += from->negated;
    to->zeroed += from->zeroed;
    to->filled += from->filled;
    to->swapped += from->swapped;
    to->same_code += from->same_code;
    to->ratios += from->ratios;
    to->finite += from->finite;
}

/* ---- what follows ---- */

/* The square root of the quotient of two sums of squares; NaN of 0 / 0. */
static double root_of_quotient(const mpsim_sum *above, const mpsim_sum *below)
{
    int up, down;
    double x = mpsim_sum_frexp(above, &up), y = mpsim_sum_frexp(below, &down);
    if (x == 0 || y == 0)
        return x == 0 && y == 0 ? (double)NAN : x == 0 ? 0 : HUGE_VAL;
    return sqrt(ldexp(x / y, up - down));
}

double diff_measure_relative(const measure *m)
{
    return root_of_quotient(&m->noise, &m->signal[0]);
}

double diff_measure_relative_differ(const measure *m)
{
    return root_of_quotient(&m->noise, &m->signal_differ);
}

double diff_measure_sqnr(const measure *m)
{
    int up, down;
    const double x = mpsim_sum_frexp(&m->signal[0], &up), y = mpsim_sum_frexp(&m->noise, &down);
    if (y == 0)
        return x == 0 && m->count == 0 ? (double)NAN : HUGE_VAL;
    return x == 0 ? -HUGE_VAL : 10 * (log10(x / y) + (up - down) * log10(2));
}

double diff_measure_correlation(const measure *m)
{
    int p, x, y;
    const double product = mpsim_sum_frexp(&m->product, &p), a = mpsim_sum_frexp(&m->signal[0], &x),
                 b = mpsim_sum_frexp(&m->signal[1], &y);
    if (a == 0 || b == 0)
        return (double)NAN;
    const int even = x + y - ((x + y) & 1); /* so that its half is whole */
    return ldexp(product / sqrt(ldexp(a * b, (x + y) & 1)), p - even / 2);
}

int diff_measure_is_balanced(const measure *m)
{
    const double n = (double)(m->larger + m->smaller), d = (double)m->larger - (double)m->smaller;
    return fabs(d) <= 5 * sqrt(n) + 1;
}

double diff_measure_alignment(const measure *m)
{
    mpsim_sum along = m->product;
    mpsim_sum_subtract(&along, &m->signal[0]);
    const double noise = mpsim_sum_value(&m->noise), signal = mpsim_sum_value(&m->signal[0]);
    return noise > 0 && signal > 0 ? mpsim_sum_value(&along) / (sqrt(noise) * sqrt(signal)) : 0;
}

/* Sums over n as binary64, all scaled by one power of two so that squares neither overflow nor vanish. */
typedef struct moments {
    double a, b, aa, bb, ab; /* means; variances and the covariance */
    int scale;
} moments;

static double mean_of(const mpsim_sum *s, double n, int scale)
{
    int e;
    const double x = mpsim_sum_frexp(s, &e);
    return ldexp(x / n, e - scale);
}

static moments moments_of(const measure *m)
{
    const double n = (double)m->finite;
    moments v = {.scale = 0};
    frexp(fmax(m->amax[0], m->amax[1]), &v.scale);
    v.a = mean_of(&m->total[0], n, v.scale);
    v.b = mean_of(&m->total[1], n, v.scale);
    v.aa = mean_of(&m->signal[0], n, 2 * v.scale) - v.a * v.a;
    v.bb = mean_of(&m->signal[1], n, 2 * v.scale) - v.b * v.b;
    v.ab = mean_of(&m->product, n, 2 * v.scale) - v.a * v.b;
    return v;
}

int diff_measure_line(const measure *m, measure_fit *f)
{
    const double little = 1e-10; /* of the square of a mean: below it binary64 has too few bits left */
    if (m->finite < 2)
        return -1;
    const moments v = moments_of(m);
    if (!(v.aa > little * v.a * v.a) || !(v.bb > little * v.b * v.b))
        return -1;
    const double left = fmax(0, 1 - v.ab / v.aa * (v.ab / v.bb));
    f->slope = v.ab / v.aa;
    f->offset = ldexp(v.b - f->slope * v.a, v.scale);
    f->share = sqrt(left);
    f->deviation = ldexp(sqrt(v.bb), v.scale);
    f->left = f->share * f->deviation;
    return 0;
}
