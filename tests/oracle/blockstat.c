/* blockstat.c -- see blockstat.h. */
#include "blockstat.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { GROUP = 16 };

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

void judged_init(judged *j)
{
    memset(j, 0, sizeof *j);
    mpq_inits(j->squares, j->errors, (mpq_ptr)NULL);
}

void judged_clear(judged *j)
{
    mpq_clears(j->squares, j->errors, (mpq_ptr)NULL);
}

/* ---- elements: a grid without end, as if exponents were unbounded ---- */

/* The number of index i: subnormal numbers first, then binade by binade. */
static double grid_number(int fraction_bits, int bias, long i)
{
    const long step = 1L << fraction_bits, binade = i / step;
    const long significand = binade == 0 ? i : step + i % step;
    const long exponent = (binade == 0 ? 1 : binade) - bias - fraction_bits;
    return ldexp((double)significand, (int)exponent);
}

/* The index of the number nearest to a, ties to the even index; a finite. */
static long nearest(int fraction_bits, int bias, double a)
{
    long low = 0, high = 1;
    while (grid_number(fraction_bits, bias, high) <= a)
        high *= 2;
    while (high - low > 1) {
        const long middle = low + (high - low) / 2;
        if (grid_number(fraction_bits, bias, middle) <= a)
            low = middle;
        else
            high = middle;
    }
    const double below = a - grid_number(fraction_bits, bias, low);
    const double above = grid_number(fraction_bits, bias, high) - a;
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

/* The nearest number of E4M3 that is not negative, at most 448, and its code. */
static float to_e4m3(float a, unsigned *code)
{
    const long i = isinf(a) ? 0x7e : nearest(3, 7, (double)a);
    *code = (unsigned)(i > 0x7e ? 0x7e : i);
    return (float)grid_number(3, 7, (long)*code);
}

/* ---- scales ---- */

typedef struct scale {
    float factor;  /* elements are multiplied by it, or divided  */
    float inverse; /* codes are multiplied by it                 */
    int least, largest;
    int divides;
} scale;

/* TransformerEngine's kernels drop NaN; so does Triton's tl.max, which DeepSeek-V3's uses. */
static int drops_nan(const judged_recipe *r)
{
    return r->rule == JUDGED_TE || r->rule == JUDGED_NVFP4 || r->rule == JUDGED_DEEPSEEK;
}

static void see(const judged_recipe *r, float *amax, float x)
{
    const float a = fabsf(x);
    if (isnan(a) ? !drops_nan(r) : a > *amax)
        *amax = a;
}

/* The exponent of a > 0 finite: floor(log2 a). */
static int exponent_of(float a)
{
    int e;
    frexpf(a, &e);
    return e - 1;
}

/* a rounded up to a power of two, its exponent; 0 as far down as asked. */
static int exponent_above(float a)
{
    const int e = exponent_of(a);
    return ldexpf(1, e) < a ? e + 1 : e;
}

static int clamped(int e, int low, int high)
{
    return e < low ? low : e > high ? high : e;
}

static float even_amax(const judged_recipe *r, float amax)
{
    const uint32_t u = bits_of(amax) + (1U << (22 - r->fraction_bits));
    float y;
    memcpy(&y, &u, sizeof y);
    return y;
}

/* The exponent of an E8M0 scale; 128: NaN. */
static int e8m0(const judged_recipe *r, float amax)
{
    const float max = (float)r->max;
    const int emax = exponent_of(max);
    if (isnan(amax))
        return 128;
    if (isinf(amax))
        return r->rule == JUDGED_TE ? 127 : 128;
    if (r->rule == JUDGED_DEEPGEMM) {
        const float s = amax / max;
        return s == 0 ? -126 : clamped(exponent_above(s), -126, 127);
    }
    if (amax == 0)
        return -127;
    if (r->rule == JUDGED_RCEIL || r->rule == JUDGED_TE) {
        const float s = amax * (1 / max);
        return s == 0 ? -127 : clamped(exponent_above(s), -127, 127);
    }
    int e = exponent_of(r->rule == JUDGED_EVEN ? even_amax(r, amax) : amax);
    if (r->rule == JUDGED_CEIL && ldexpf(1, e) < amax)
        e++;
    return clamped(e - emax, -127, 127);
}

/* NVFP4's two numbers of the tensor. */
typedef struct global {
    float encode, decode, amax;
} global;

static global global_of(float amax)
{
    global g = {2688.0F / amax, 1, amax};
    if (amax == 0 || g.encode == 0)
        g.encode = 1;
    if (isinf(g.encode))
        g.encode = 0x1.fffffep127F;
    g.decode = 1 / g.encode;
    return g;
}

static scale scale_of(const judged_recipe *r, const global *g, float amax)
{
    scale s = {0, 0, 0, 0, 0};
    unsigned code;
    if (r->rule == JUDGED_NVFP4) {
        const float block = to_e4m3(fminf(amax * (g->encode * (1 / 6.0F)), 0x1.fffffep127F), &code);
        s.factor = fminf(1 / (block * g->decode), 0x1.fffffep127F);
        s.inverse = block * g->amax * (1 / 2688.0F);
        s.least = code <= 1;
        s.largest = code == 0x7e;
    } else if (r->rule == JUDGED_NVFP4_ONE) {
        s.inverse = isnan(amax) ? NAN : to_e4m3(fmaxf(amax / 6, 0x1p-6F), &code);
        s.factor = 1 / s.inverse;
        s.least = s.inverse == 0x1p-6F;
        s.largest = s.inverse == 448;
    } else if (r->rule == JUDGED_DEEPSEEK) {
        s.divides = 1;
        s.inverse = amax / (float)r->max;
        if (s.inverse == 0)
            s.inverse = 1;
        s.factor = s.inverse;
    } else {
        const int e = e8m0(r, amax);
        s.inverse = e == 128 ? NAN : ldexpf(1, e);
        s.factor = e == 128 ? NAN : ldexpf(1, -e);
        s.least = e == (r->rule == JUDGED_DEEPGEMM ? -126 : -127);
        s.largest = e == 127;
    }
    return s;
}

/* ---- blocks ---- */

typedef struct seen {
    int any, nonfinite, saturated, value; /* not zero; NaN or Inf; ...; a value that is not zero */
} seen;

static void add_square(mpq_t sum, double x)
{
    mpq_t q;
    mpq_init(q);
    mpq_set_d(q, x);
    mpq_mul(q, q, q);
    mpq_add(sum, sum, q);
    mpq_clear(q);
}

static void compare(judged *j, float x, float value)
{
    if (!isfinite(x) || !isfinite(value))
        return;
    const double d = (double)x - (double)value;
    j->compared++;
    add_square(j->squares, (double)x);
    add_square(j->errors, d);
    if (x != 0 && fabs(d) / fabs((double)x) > j->max_rel_err)
        j->max_rel_err = fabs(d) / fabs((double)x);
}

/* An element: what it stands for, and what is counted of it. */
static float judge_element(judged *j, const judged_recipe *r, const scale *s, float x, seen *in)
{
    const float y = s->divides ? x / s->factor : x * s->factor;
    const double top = r->max;
    const int no_nan = r->rule == JUDGED_NVFP4; /* its conversion makes NaN 6 */
    double q = isnan(y) && !no_nan ? (double)NAN : top;
    long i = -1;
    int beyond = 0;
    if (isfinite(y)) {
        i = nearest(r->fraction_bits, r->bias, fabs((double)y));
        q = grid_number(r->fraction_bits, r->bias, i);
    }
    if (!isnan(y) && (isinf(y) || q > top)) {
        beyond = 1;
        q = top;
        i = -1;
    }
    if (!isnan(y))
        q = copysign(q, (double)y);
    const float value = (float)q * s->inverse;
    if (isfinite(x)) {
        const int lost = beyond || !isfinite(value), cut = beyond && isfinite(value) && value != 0;
        const double exact = (double)x * (double)s->factor;
        const int differs = s->divides ? q * (double)s->factor != (double)x : q != exact;
        j->underflow += value == 0 && x != 0;
        j->subnormal += i > 0 && i < 1L << r->fraction_bits;
        j->overflow += (uint64_t)cut;
        j->spoilt += isfinite(value) == 0;
        j->inexact += lost || differs;
        in->saturated |= cut;
    }
    in->any |= x != 0;
    in->nonfinite |= !isfinite(x);
    in->value |= value != 0;
    return value;
}

static void count_block(judged *j, const scale *s, const seen *in)
{
    j->blocks++;
    j->zero_blocks += (uint64_t)!in->any;
    j->saturated_blocks += (uint64_t)in->saturated;
    j->nonfinite_blocks += (uint64_t)in->nonfinite;
    j->lost_blocks += in->any && !in->nonfinite && !in->value;
    if (!in->any)
        return;
    j->least_scales += (uint64_t)s->least;
    j->largest_scales += (uint64_t)s->largest;
    if (s->inverse == 0)
        j->scale_zero++;
    else if (!isfinite(s->inverse))
        j->scale_nonfinite++;
    else
        j->scales[exponent_of(s->inverse) - JUDGED_MIN]++;
}

void judge_blocks(judged *j, const judged_recipe *r, const float *x, const float *origin, size_t rows, size_t cols,
                  float *values)
{
    const size_t down = r->rows ? r->rows : rows, across = r->cols ? r->cols : cols;
    float all = 0;
    for (size_t i = 0; i < rows * cols; i++)
        see(r, &all, x[i]);
    const global g = global_of(all);
    for (size_t top = 0; top < rows; top += down)
        for (size_t left = 0; left < cols; left += across) {
            const size_t bottom = top + down < rows ? top + down : rows;
            const size_t right = left + across < cols ? left + across : cols;
            float amax = 0;
            seen in = {0, 0, 0, 0};
            for (size_t a = top; a < bottom; a++)
                for (size_t b = left; b < right; b++)
                    see(r, &amax, x[a * cols + b]);
            const scale s = scale_of(r, &g, amax);
            for (size_t a = top; a < bottom; a++)
                for (size_t b = left; b < right; b++) {
                    const size_t i = a * cols + b;
                    const float v = judge_element(j, r, &s, x[i], &in);
                    compare(j, origin ? origin[i] : x[i], v);
                    if (values)
                        values[i] = v;
                }
            count_block(j, &s, &in);
        }
    j->elements += rows * cols;
}

/* ---- results ---- */

double judged_mse(const judged *j)
{
    if (j->compared == 0)
        return (double)NAN;
    mpfr_t sum;
    mpfr_init2(sum, 53);
    mpfr_set_q(sum, j->errors, MPFR_RNDN);
    const double rounded = mpfr_get_d(sum, MPFR_RNDN);
    mpfr_clear(sum);
    return rounded / (double)j->compared;
}

double judged_sqnr_db(const judged *j)
{
    if (j->compared == 0)
        return (double)NAN;
    mpfr_t a, b;
    mpfr_inits2(200, a, b, (mpfr_ptr)NULL);
    mpfr_set_q(a, j->squares, MPFR_RNDN);
    mpfr_set_q(b, j->errors, MPFR_RNDN);
    mpfr_div(a, a, b, MPFR_RNDN);
    mpfr_log10(a, a, MPFR_RNDN);
    mpfr_mul_ui(a, a, 10, MPFR_RNDN);
    const double db = mpq_sgn(j->errors) == 0 ? (double)INFINITY : mpfr_get_d(a, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)NULL);
    return db;
}

static const float sign[GROUP] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

static void butterflies(float *v)
{
    for (size_t d = 1; d < GROUP; d *= 2)
        for (size_t i = 0; i < GROUP; i++)
            if ((i & d) == 0) {
                const float a = v[i], b = v[i + d];
                v[i] = a + b;
                v[i + d] = a - b;
            }
    for (size_t i = 0; i < GROUP; i++)
        v[i] *= 0.25F;
}

void judge_hadamard(float *x, size_t rows, size_t cols)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at + GROUP <= cols; at += GROUP) {
            float *const v = x + row * cols + at;
            for (size_t i = 0; i < GROUP; i++)
                v[i] *= sign[i];
            butterflies(v);
        }
}

void judge_hadamard_back(float *x, size_t rows, size_t cols)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at + GROUP <= cols; at += GROUP) {
            float *const v = x + row * cols + at;
            butterflies(v);
            for (size_t i = 0; i < GROUP; i++)
                v[i] *= sign[i];
        }
}
