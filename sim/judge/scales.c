/* scales.c -- see scales.h. */
#include "scales.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../quant/quant.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

static size_t layout_count(judge_layout l, size_t down, size_t across)
{
    return l >= JUDGE_SWIZZLED ? quant_up(down, 128) * 128 * quant_up(across, 4) * 4 : down * across;
}

judge_layout judge_scales_layout(size_t n, size_t down, size_t across, unsigned from)
{
    unsigned l = from;
    while (l < JUDGE_LAYOUTS && layout_count((judge_layout)l, down, across) != n)
        l++;
    return (judge_layout)l;
}

static size_t place_of(judge_layout l, size_t i, size_t k, size_t down, size_t across)
{
    switch (l) {
    case JUDGE_TURNED:
        return k * down + i;
    case JUDGE_SWIZZLED:
        return (size_t)quant_swizzled_index(i, k, across);
    case JUDGE_TWICE: { /* the swizzled scales as a grid of whole tiles, swizzled again */
        const size_t wide = (size_t)quant_up(across, 4) * 4, once = (size_t)quant_swizzled_index(i, k, across);
        return (size_t)quant_swizzled_index(once / wide, once % wide, wide);
    }
    default:
        return i * across + k;
    }
}

/* ---- both as codes of one format ---- */

static double expected_value(const judge_scales_source *from, int factors, size_t i)
{
    return from->stored ? mpsim_decode(from->stored, from->codes[i])
           : factors    ? (double)from->scales[i]
                        : (double)from->inverses[i];
}

static uint64_t expected_code(const judge_scales *s, const judge_scales_source *from, size_t i)
{
    mpsim_rounding r;
    if (from->stored && mpsim_format_same(from->stored, s->format))
        return from->codes[i];
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_encode_f64(s->format, &r, expected_value(from, s->factors, i), 0, NULL);
}

static int take(judge_scales *s, const judge_scales_source *from, size_t down, size_t across, judge_layout layout,
                int factors)
{
    const mpsim_judge_array *f = from->found;
    *s = (judge_scales){.format = f->format ? f->format : from->stored,
                        .rows = from->rows,
                        .columns = from->columns,
                        .layout = layout,
                        .factors = factors};
    const size_t bytes = mpsim_format_code_bytes(s->format);
    s->found = want_memory(s->rows * s->columns + 1, bytes);
    s->expected = want_memory(s->rows * s->columns + 1, bytes);
    for (size_t i = 0; i < s->rows && s->found && s->expected; i++)
        for (size_t k = 0; k < s->columns; k++) {
            const size_t at = i * s->columns + k;
            const size_t place = place_of(layout, i, k, down, across);
            element_put_code(s->found, bytes, at, element_code(f->codes, bytes, place));
            element_put_code(s->expected, bytes, at, expected_code(s, from, at));
        }
    return s->found && s->expected ? 0 : -1;
}

/* The order that an array of this shape has by itself. */
static judge_layout own_layout(const mpsim_judge_array *f, size_t down, size_t across)
{
    if (f->rows == across && f->columns == down && down != across)
        return JUDGE_TURNED;
    return f->rows * f->columns == down * across ? JUDGE_PLAIN : JUDGE_SWIZZLED;
}

/* One order and meaning; it becomes *s if it differs in less than *least results. */
static int try_one(judge_scales *s, const judge_scales_source *from, size_t down, size_t across, judge_layout layout,
                   int factors, uint64_t *least)
{
    judge_scales one;
    if (take(&one, from, down, across, layout, factors)) {
        judge_scales_clear(&one);
        return -1;
    }
    const uint64_t differ = judge_scales_differ(&one);
    if (differ >= *least) {
        judge_scales_clear(&one);
        return 0;
    }
    judge_scales_clear(s);
    *s = one;
    *least = differ;
    return 0;
}

int judge_scales_take(judge_scales *s, const judge_scales_source *from, size_t down, size_t across)
{
    const size_t n = from->found->rows * from->found->columns;
    const judge_layout own = own_layout(from->found, down, across);
    const int meanings = from->stored ? 1 : 2;
    uint64_t least = UINT64_MAX;
    for (int factors = 0; factors < meanings && least; factors++)
        if (try_one(s, from, down, across, own, factors, &least))
            return -1;
    least /= 2;
    for (unsigned l = 0; l < JUDGE_LAYOUTS && least && down > 1 && across > 1; l++)
        for (int factors = 0; factors < meanings && least && judge_scales_layout(n, down, across, l) == l; factors++)
            if (try_one(s, from, down, across, (judge_layout)l, factors, &least))
                return -1;
    s->fault = s->layout == JUDGE_TWICE || (s->layout != own && !(s->layout == JUDGE_SWIZZLED && own == JUDGE_PLAIN));
    return 0;
}

void judge_scales_clear(judge_scales *s)
{
    free(s->found);
    free(s->expected);
    s->found = s->expected = NULL;
}

judge_pair judge_scales_pair(const judge_scales *s)
{
    return (judge_pair){s->format, s->found, s->expected, s->rows, s->columns, 0};
}

uint64_t judge_scales_differ(const judge_scales *s)
{
    const judge_pair p = judge_scales_pair(s);
    uint64_t n = 0;
    for (size_t i = 0; i < s->rows * s->columns; i++)
        n += !judge_pair_same(&p, i);
    return n;
}

static double value(const judge_scales *s, const void *codes, size_t i)
{
    return mpsim_decode(s->format, element_code(codes, mpsim_format_code_bytes(s->format), i));
}

double judge_scales_ratio(const judge_scales *s, size_t block)
{
    const double found = value(s, s->found, block), expected = value(s, s->expected, block);
    return found == expected ? 1 : s->factors ? found / expected : expected / found;
}

int judge_scales_is_zero(const judge_scales *s, size_t block)
{
    return value(s, s->found, block) == 0;
}

/* ---- what is wrong ---- */

/* Of the blocks that differ, how many fit an explanation. */
typedef struct explanation {
    uint64_t differ, twice, half, inverted, squared;
    double ratio;        /* of the first that differs                   */
    uint64_t constant;   /* so many have that ratio, within two roundings */
    uint64_t bf16;       /* what they should be, rounded to bf16        */
    double least, last;  /* significands of the largest magnitudes of those that differ: from, to */
    double below, above; /* of those that do not: the nearest on both sides; 0, 2: none           */
    uint64_t inside;     /* of those that do not, in between                                      */
} explanation;

static double amax_of(const judge_scales *s, const float *x, size_t rows, size_t columns, size_t block)
{
    const size_t down = quant_up(rows, s->rows), across = quant_up(columns, s->columns);
    const size_t top = block / s->columns * down, left = block % s->columns * across;
    double most = 0;
    for (size_t i = top; i < top + down && i < rows; i++)
        for (size_t k = left; k < left + across && k < columns; k++)
            most = fmax(most, fabs((double)x[i * columns + k]));
    return most;
}

static double significand_of(double amax)
{
    int exponent;
    return amax > 0 && isfinite(amax) ? 2 * frexp(amax, &exponent) : 0;
}

/* Of a scale that does not differ: on which side of those that do. */
static void look_beside(explanation *e, double significand)
{
    if (significand < e->least)
        e->below = fmax(e->below, significand);
    else if (significand > e->last)
        e->above = fmin(e->above, significand);
    else
        e->inside++;
}

static double bf16_of(double x)
{
    const mpsim_format *f = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_decode(f, mpsim_encode_f64(f, &r, x, 0, NULL));
}

static void look(explanation *e, const judge_scales *s, size_t i, double amax)
{
    const double f = value(s, s->found, i), w = value(s, s->expected, i), significand = significand_of(amax);
    if (f == w)
        return;
    if (e->differ++ == 0)
        e->ratio = f / w;
    e->constant += fabs(f / w / e->ratio - 1) <= 4 * ldexp(1, -(int)s->format->mbits - 1);
    e->twice += f == 2 * w;
    e->half += 2 * f == w;
    e->inverted += fabs(f * w - 1) < 1e-6;
    e->squared += fabs(f / (w * w) - 1) < 1e-6;
    e->bf16 += f == bf16_of(w);
    e->least = fmin(e->least, significand);
    e->last = fmax(e->last, significand);
}

static int is_nearly_all(uint64_t n, uint64_t all)
{
    return n > 0 && n >= all - all / 100;
}

/* Numbers of four bits are a bound, not a chance of the inputs. */
static int is_round(double significand)
{
    return significand * 8 == floor(significand * 8);
}

/* All scales of blocks with an amax in an interval of significands, and no others. */
static void say_interval(mpsim_judgement *j, const explanation *e, const char *what, uint64_t n)
{
    const char *blocks = "scales are %s what they should be, those of blocks whose largest magnitude is";
    char text[160];
    snprintf(text, sizeof text, blocks, what);
    if (e->above >= 2 && (is_round(e->least) || e->below == 0))
        judge_find(j, "scale-factor", n, "%" PRIu64 " %s at least %.6g x 2^k", n, text, e->least);
    else if (e->above >= 2)
        judge_find(j, "scale-factor", n, "%" PRIu64 " %s above %.6g x 2^k", n, text, e->below);
    else if (e->least == e->last)
        judge_find(j, "scale-factor", n, "%" PRIu64 " %s %.6g x 2^k", n, text, e->least);
    else
        judge_find(j, "scale-factor", n, "%" PRIu64 " %s from %.6g to %.6g x 2^k", n, text, e->least, e->last);
}

static void say_factor(mpsim_judgement *j, const explanation *e, const judge_scales *s, const char *what, uint64_t n)
{
    if (e->differ == s->rows * s->columns)
        judge_find(j, "scale-factor", n, "every scale is %s what it should be", what);
    else if (e->inside || !(e->least > 0))
        judge_find(j, "scale-factor", n, "%" PRIu64 " scales are %s what they should be", n, what);
    else
        say_interval(j, e, what, n);
}

static void say_order(mpsim_judgement *j, const judge_scales *s)
{
    static const char *const orders[] = {"that of the grid", "that of the transposed grid",
                                         "the swizzled one of cuBLAS", "the swizzled one of cuBLAS, swizzled twice"};
    if (s->fault)
        judge_find(j, "scale-order", s->rows * s->columns,
                   s->layout == JUDGE_TWICE ? "the order of the scales is %s"
                                            : "the order of the scales is %s, which their shape is not",
                   orders[s->layout]);
    else if (s->layout != JUDGE_PLAIN)
        judge_find(j, "scale-order", 0, "the order of the scales is %s", orders[s->layout]);
}

/* Scales that were read in a matrix by rows, or by columns, with strides that are not its own. */
static int say_strides(mpsim_judgement *j, const judge_scales *s, uint64_t differ)
{
    const size_t n = s->rows * s->columns, steps[] = {0, 1, s->rows, s->columns};
    for (unsigned k = 0; k < 32 && differ >= 20; k++) {
        const size_t down = steps[k / 8], across = steps[k / 2 % 4];
        uint64_t fit = 0;
        for (size_t i = 0; i < n; i++) {
            const size_t at = (i / s->columns * down + i % s->columns * across) % n;
            const size_t source = k % 2 ? at % s->rows * s->columns + at / s->rows : at;
            fit += value(s, s->found, i) == value(s, s->expected, source);
        }
        if (fit < n - n / 100)
            continue;
        judge_find(j, "scale-order", differ,
                   "the scale of block [i, k] is number %zu i + %zu k of the scales, %s by %s", down, across,
                   k % 2 ? "column" : "row", k % 2 ? "column" : "row");
        return 1;
    }
    return 0;
}

int judge_scales_explain(mpsim_judgement *j, const judge_scales *s, const float *x, size_t rows, size_t columns)
{
    explanation e = {.least = INFINITY, .above = 2};
    for (size_t i = 0; i < s->rows * s->columns; i++)
        look(&e, s, i, amax_of(s, x, rows, columns, i));
    for (size_t i = 0; i < s->rows * s->columns && e.differ; i++) {
        const double significand = significand_of(amax_of(s, x, rows, columns, i));
        if (significand > 0 && value(s, s->found, i) == value(s, s->expected, i))
            look_beside(&e, significand);
    }
    say_order(j, s);
    if (e.differ == 0)
        return s->fault;
    const size_t before = j->findings;
    if (is_nearly_all(e.twice, e.differ))
        say_factor(j, &e, s, "twice", e.twice);
    if (is_nearly_all(e.half, e.differ))
        say_factor(j, &e, s, "half", e.half);
    if (j->findings == before && s->format->mbits > 7 && is_nearly_all(e.bf16, e.differ))
        judge_find(j, "format", e.bf16, "%" PRIu64 " scales are what they should be, rounded to bf16", e.bf16);
    if (j->findings == before && is_nearly_all(e.constant, e.differ) && e.differ > s->rows * s->columns / 2 &&
        s->format->mbits > 7 && fabs(e.ratio - 1) > 1e-4)
        judge_find(j, "scale-factor", e.constant, "%" PRIu64 " scales are %.9g times what they should be", e.constant,
                   e.ratio);
    if (is_nearly_all(e.inverted, e.differ))
        judge_find(j, "scale-inverted", e.inverted, "the scales are one over what they should be");
    if (is_nearly_all(e.squared, e.differ))
        judge_find(j, "scale-squared", e.squared, "the scales are squared");
    if (j->findings == before)
        say_strides(j, s, e.differ);
    return j->findings > before;
}
