/* unitfit.c -- see unitfit.h. For a c2 the rest is a line between two convex hulls: points that it must not pass below, and
 * points that it must stay under. How much room it has is a concave function of its slope. */
#include "unitfit.h"

#include "../../gpu/functions/exact.h"

#include <stdlib.h>

static int64_t value(uint32_t significand, int exp, int fraction)
{
    return (int64_t)significand << (fraction - 23 + exp);
}

void fit_bounds(uint32_t result, int fraction, int64_t *lo, int64_t *hi)
{
    const int exp = (int)(result >> 23) - 127;
    const uint32_t m = (result & 0x7fffff) | 0x800000;
    *lo = value(m, exp, fraction);
    *hi = value(m + 1, exp, fraction);
}

/* c2's part of the sum. */
static int64_t curve(const fit_shape *s, int64_t c2, int64_t x)
{
    return (c2 * ((x * x) >> s->drop)) >> s->less;
}

/* ---- hulls ---- */

typedef struct hull {
    int64_t *x, *y;
    int n;
} hull;

/* The points behind x, of which those go that lie on the wrong side: above an upper hull's sign is 1, under a lower one's -1. */
static void hull_add(hull *h, int64_t x, int64_t y, int sign)
{
    while (h->n > 1) {
        const int a = h->n - 2, b = h->n - 1;
        const int64_t turn = (h->x[b] - h->x[a]) * (y - h->y[a]) - (h->y[b] - h->y[a]) * (x - h->x[a]);
        if (sign * turn < 0)
            break;
        h->n--;
    }
    h->x[h->n] = x;
    h->y[h->n++] = y;
}

/* Where the line of this slope must begin at least, or may at most. */
static int64_t highest(const hull *h, int64_t slope)
{
    int64_t most = INT64_MIN;
    for (int i = 0; i < h->n; i++) {
        const int64_t v = h->y[i] - slope * h->x[i];
        most = v > most ? v : most;
    }
    return most;
}

static int64_t lowest(const hull *h, int64_t slope)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < h->n; i++) {
        const int64_t v = h->y[i] - slope * h->x[i];
        least = v < least ? v : least;
    }
    return least;
}

static int64_t room(const hull *under, const hull *above, int64_t slope)
{
    return lowest(above, slope) - highest(under, slope);
}

/* A slope with room and where it begins. */
static int line_between(const hull *under, const hull *above, int64_t slope, fit_segment *to)
{
    int64_t step = 1 << 12;
    int64_t best = room(under, above, slope);
    while (best < 0 && step) {
        const int64_t up = room(under, above, slope + step), down = room(under, above, slope - step);
        if (up > best || down > best) {
            slope += up > down ? step : -step;
            best = up > down ? up : down;
        } else {
            step /= 2;
        }
    }
    to->c1 = slope;
    to->k = highest(under, slope) + best / 2;
    return best >= 0;
}

/* ---- a segment ---- */

typedef struct points {
    const fit_shape *shape;
    const uint32_t *results;
    int64_t slack;
    hull under, above;
} points;

static int fits_with(points *p, int64_t c2, int64_t slope, fit_segment *to)
{
    const int64_t n = (int64_t)1 << p->shape->low_bits;
    p->under.n = p->above.n = 0;
    for (int64_t x = 0; x < n; x++) {
        int64_t lo, hi;
        fit_bounds(p->results[x], p->shape->fraction, &lo, &hi);
        const int64_t q = curve(p->shape, c2, x);
        hull_add(&p->under, x, lo - q - p->slack, 1);
        hull_add(&p->above, x, hi - 1 - q + p->slack, -1);
    }
    to->c2 = c2;
    return line_between(&p->under, &p->above, slope, to);
}

/* Twice the middle of a result's bounds. */
static int64_t middle(const points *p, int64_t x)
{
    int64_t lo, hi;
    fit_bounds(p->results[x], p->shape->fraction, &lo, &hi);
    return lo + hi;
}

/* By the middle of three results; then c2 to both sides. */
static int search(points *p, fit_segment *to)
{
    const fit_shape *s = p->shape;
    const int64_t n = (int64_t)1 << s->low_bits, h = n / 2 - 1;
    int64_t lo, hi;
    fit_bounds(p->results[0], s->fraction, &lo, &hi);
    const int64_t y0 = middle(p, 0), y1 = middle(p, h), y2 = middle(p, 2 * h);
    const double scale = (double)((int64_t)1 << (s->drop + s->less)),
                 bend = (double)(y2 - 2 * y1 + y0) / 4 / (double)h / (double)h;
    const int64_t centre = (int64_t)(bend * scale);
    const int64_t reach = 2 + (int64_t)(8 * (double)(hi - lo + 2 * p->slack) / (double)n / (double)n * scale);
    for (int64_t i = 0; i <= 2 * reach; i++) {
        const int64_t c2 = centre + (i & 1 ? -(i + 1) / 2 : i / 2);
        const int64_t slope = ((y2 - y0) / 2 - curve(s, c2, 2 * h)) / (2 * h);
        if (fits_with(p, c2, slope, to))
            return 1;
    }
    return 0;
}

int fit_one(const fit_shape *s, const uint32_t *results, int64_t slack, fit_segment *to)
{
    const size_t n = (size_t)1 << s->low_bits;
    int64_t *const memory = malloc(4 * (n + 1) * sizeof *memory);
    points p = {s, results, slack, {memory, memory + n, 0}, {memory + 2 * n, memory + 3 * n, 0}};
    const int found = memory && search(&p, to);
    free(memory);
    return found;
}

/* ---- a table ---- */

static int64_t sum_of(const fit *f, uint32_t i)
{
    const fit_segment *s = &f->segment[i >> f->shape.low_bits];
    const int64_t x = i & (((uint32_t)1 << f->shape.low_bits) - 1);
    return s->k + s->c1 * x + curve(&f->shape, s->c2, x);
}

uint32_t fit_result(const fit *f, uint32_t i)
{
    const int64_t sum = sum_of(f, i);
    gpu_real y = gpu_normal(0, 63 - f->shape.fraction, (uint64_t)(sum > 0 ? sum : 1), 0);
    y.m &= ~(uint64_t)0xffffffffff;
    return gpu_exact_code(y);
}

static const uint32_t *segment_of(const fit_shape *s, const uint32_t *results, int i)
{
    return results + ((size_t)i << s->low_bits);
}

static int is_judged(const fit_shape *s, const uint32_t *results)
{
    for (size_t x = 0; x < (size_t)1 << s->low_bits; x++)
        if (results[x] < 0x37800000) /* 2^-16 */
            return 0;
    return 1;
}

/* Each step-th segment of this shape; 0: one has no coefficients. */
static int fit_segments(fit *f, const uint32_t *results, int step)
{
    f->left_out = 0;
    for (int i = 0; i < 1 << f->shape.index_bits; i += step) {
        const uint32_t *of = segment_of(&f->shape, results, i);
        if (!is_judged(&f->shape, of))
            f->left_out++;
        else if (!fit_one(&f->shape, of, 0, &f->segment[i]))
            return 0;
    }
    return 1;
}

static int gives_all(const fit *f, const uint32_t *results, int step)
{
    for (int i = 0; i < 1 << f->shape.index_bits; i += step) {
        const uint32_t *of = segment_of(&f->shape, results, i);
        const int judged = is_judged(&f->shape, of);
        for (uint32_t x = 0; judged && x < (uint32_t)1 << f->shape.low_bits; x++)
            if (fit_result(f, (uint32_t)i << f->shape.low_bits | x) != of[x])
                return 0;
    }
    return 1;
}

/* Whether segments of this length can be quadratics at all: with an eighth of an ulp to spare. */
static int is_short_enough(const fit_shape *s, const uint32_t *results)
{
    const uint32_t *of = segment_of(s, results, (1 << s->index_bits) / 2);
    fit_segment segment;
    int64_t lo, hi;
    if (!is_judged(s, of))
        return 0;
    fit_bounds(of[0], s->fraction, &lo, &hi);
    return fit_one(s, of, (hi - lo) / 8, &segment);
}

int fit_table(fit *f, const uint32_t *results, int bits, int segments)
{
    for (int index = 4; index <= 9; index++)
        for (int drop = 0; drop <= 12; drop += 2) {
            const fit_shape shape = {index, bits - index, 40, drop, 16 - drop};
            const int step = segments && segments < 1 << index ? (1 << index) / segments : 1;
            f->shape = shape;
            if (drop == 0 && !is_short_enough(&shape, results))
                break;
            if (fit_segments(f, results, (1 << index) / 4) && fit_segments(f, results, step))
                return gives_all(f, results, step);
        }
    return 0;
}
