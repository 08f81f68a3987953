/* exact.c -- typed numbers as fractions of natural numbers; see exact.h. */
#include "exact.h"

#include "../text/option.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- from a text ---- */

/* The zeros at the end of the numerator belong to the power. */
static void reduce(exact_number *x)
{
    const size_t zeros = natural_zeros(&x->top);
    natural_drop(&x->top, zeros);
    x->power = x->top.n ? x->power + (long)zeros : 0;
}

static void whole(exact_number *x, double value)
{
    x->special = 0;
    x->nan_of = NULL;
    x->negative = signbit(value) != 0;
    x->nearest = value;
    x->power = 0;
    natural_set(&x->bottom, 1);
}

void exact_of(exact_number *x, double value)
{
    int power;
    whole(x, value);
    x->special = !isfinite(value);
    natural_set(&x->top, x->special ? 0 : (uint64_t)ldexp(frexp(fabs(value), &power), 53));
    x->power = x->special || value == 0 ? 0 : power - 53;
    reduce(x);
}

void exact_of_code(exact_number *x, const mpsim_format *f, uint64_t code)
{
    exact_of(x, mpsim_decode(f, code));
    x->nan = code;
    if (isnan(x->nearest))
        x->nan_of = f;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* The digits into top; returns how many stand behind the point. *end: what comes after them. */
static long digits(exact_number *x, const char *text, uint32_t base, const char **end)
{
    long behind = 0, point = 0;
    natural_set(&x->top, 0);
    for (; *text && !strchr(base == 16 ? "pP" : "eE", *text); text++) {
        if (*text == '.')
            point = 1;
        else
            natural_grow(&x->top, base, (uint32_t)digit(*text));
        behind += point && *text != '.';
    }
    *end = text;
    return behind;
}

/* A text that parse_number has taken: digits, a point, an exponent of base 10 or, of hexadecimal ones, 2. */
static void read_fraction(exact_number *x, const char *text)
{
    const char *end;
    text += *text == '-' || *text == '+';
    const int hexadecimal = text[0] == '0' && (text[1] | 0x20) == 'x';
    const long behind = digits(x, text + 2 * hexadecimal, hexadecimal ? 16 : 10, &end);
    const long exponent = *end ? strtol(end + 1, NULL, 10) : 0;
    if (!x->top.n)
        return;
    x->power = hexadecimal ? exponent - 4 * behind : exponent - behind;
    for (long i = x->power; i < 0 && !hexadecimal; i++) /* 10^-n = 2^-n / 5^n */
        natural_grow(&x->bottom, 5, 0);
    for (long i = 0; i < x->power && !hexadecimal; i++)
        natural_grow(&x->top, 5, 0);
    reduce(x);
}

int exact_is_code(const char *text)
{
    text += *text == '-' || *text == '+';
    return text[0] == '0' && (text[1] | 0x20) == 'x' && text[2] &&
           strspn(text + 2, "0123456789abcdefABCDEF") == strlen(text + 2);
}

static int parse_special(exact_number *x, const char *text)
{
    const char *magnitude = text + (*text == '-' || *text == '+');
    const int inf = strcmp(magnitude, "inf") == 0;
    if (!inf && strcmp(magnitude, "nan") != 0)
        return -1;
    exact_of(x, copysign(inf ? (double)INFINITY : (double)NAN, *text == '-' ? -1 : 1));
    return 0;
}

int exact_parse(exact_number *x, const char *text)
{
    double nearest;
    if (parse_special(x, text) == 0)
        return 0;
    if (exact_is_code(text))
        return NUMBER_BAD;
    const int status = strlen(text) > EXACT_LONGEST ? NUMBER_RANGE : parse_number(&nearest, text);
    if (status)
        return status;
    if (strchr(text, '^') || strchr(text, '*')) {
        exact_of(x, nearest);
        return 0;
    }
    whole(x, nearest);
    read_fraction(x, text);
    return 0;
}

/* ---- sums, products, quotients, roots ---- */

static void product(exact_number *z, const exact_number *a, const exact_number *b)
{
    z->special = 0;
    z->nan_of = NULL;
    z->negative = a->negative ^ b->negative;
    z->power = a->power + b->power;
    natural_multiply(&z->top, &a->top, &b->top);
    natural_multiply(&z->bottom, &a->bottom, &b->bottom);
}

static void quotient(exact_number *z, const exact_number *a, const exact_number *b)
{
    z->special = 0;
    z->nan_of = NULL;
    z->negative = a->negative ^ b->negative;
    z->power = a->power - b->power;
    natural_multiply(&z->top, &a->top, &b->bottom);
    natural_multiply(&z->bottom, &a->bottom, &b->top);
}

/* a + b, or a - b. */
static void sum(exact_number *z, const exact_number *a, const exact_number *b, int minus)
{
    natural other;
    const int negative = b->negative ^ minus;
    z->special = 0;
    z->nan_of = NULL;
    z->power = a->power < b->power ? a->power : b->power;
    natural_multiply(&z->bottom, &a->bottom, &b->bottom);
    natural_multiply(&z->top, &a->top, &b->bottom);
    natural_multiply(&other, &b->top, &a->bottom);
    natural_shift(&z->top, (size_t)(a->power - z->power));
    natural_shift(&other, (size_t)(b->power - z->power));
    z->negative = a->negative;
    if (a->negative == negative) {
        natural_add(&z->top, &other);
    } else if (natural_compare(&z->top, &other) >= 0) {
        natural_subtract(&z->top, &other);
    } else {
        natural_subtract(&other, &z->top);
        z->top = other;
        z->negative = negative;
    }
}

/* The square root: 120 bits of it and one that says whether something lies below, as a whole number. With power - n
 * even, root^2 bottom <= top 2^n. */
static void root(exact_number *z, const exact_number *a)
{
    enum { BITS = 120 };
    natural square, tried, r, radicand = a->top, bottom = a->bottom;
    long n = 2 * BITS + (long)natural_bits(&bottom) - (long)natural_bits(&radicand);
    n += (a->power - n) & 1;
    if (n >= 0)
        natural_shift(&radicand, (size_t)n);
    else
        natural_shift(&bottom, (size_t)-n);
    natural_set(&r, 0);
    for (size_t bit = BITS + 2; bit-- > 0;) {
        natural one;
        natural_set(&one, 1);
        natural_shift(&one, bit);
        natural_add(&one, &r);
        natural_multiply(&square, &one, &one);
        natural_multiply(&tried, &square, &bottom);
        if (natural_compare(&tried, &radicand) <= 0)
            r = one;
    }
    natural_multiply(&square, &r, &r);
    natural_multiply(&tried, &square, &bottom);
    whole(z, 1);
    z->top = r;
    natural_grow(&z->top, 2, natural_compare(&tried, &radicand) != 0);
    z->power = (a->power - n) / 2 - 1;
}

/* ---- one rounding ---- */

/* A number that is not zero as x y + z, in binary64: z has what lies at 2^unit and above, 2^unit being 53 bits below
 * the top or the last bit of binary64, and x y the 52 bits below, the last or-ed with all the rest. A rounding to a
 * format, at most 53 bits and 33 random ones, looks no further; so the fma of the library, which is exact and then
 * rounded once, rounds the number itself. */
typedef struct parts {
    double x, y, z;
} parts;

enum { BELOW = 52, QUOTIENT = 105 };

/* floor(top / bottom), at most QUOTIENT bits, in two: what is below 2^BELOW, and the rest; whether it has a remainder. */
static int divide(uint64_t *high, uint64_t *low, natural *top, natural *bottom)
{
    *high = *low = 0;
    natural_shift(bottom, QUOTIENT);
    for (int bit = QUOTIENT; bit-- > 0;) {
        uint64_t *to = bit < BELOW ? low : high;
        natural_halve(bottom);
        const int one = natural_compare(top, bottom) >= 0;
        if (one)
            natural_subtract(top, bottom);
        *to = *to << 1 | (uint64_t)one;
    }
    return top->n != 0;
}

static parts split(const exact_number *v)
{
    static const parts beyond = {0x1p1023, 4, 0};
    enum { SMALLEST = -1074, NOTHING = -1300 };
    natural top = v->top, bottom = v->bottom;
    const long size = (long)natural_bits(&top) - (long)natural_bits(&bottom);
    long power = v->power;
    if (size + power > 1024)
        return beyond;
    if (size + power < NOTHING) /* smaller than all that is rounded to something, and not zero */
        power = NOTHING - size;
    const long unit = size + power - BELOW > SMALLEST ? size + power - BELOW : SMALLEST;
    const long shift = power - (unit - BELOW);
    uint64_t high, low;
    natural_shift(shift > 0 ? &top : &bottom, (size_t)labs(shift));
    const int rest = divide(&high, &low, &top, &bottom);
    low |= (uint64_t)rest;
    const int half = (int)(unit - BELOW) / 2;
    const parts p = {ldexp((double)low, half), ldexp(1, (int)(unit - BELOW) - half), ldexp((double)high, (int)unit)};
    return isinf(p.z) ? beyond : p;
}

static uint64_t binary64_code(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* On numbers of binary64, and on NaNs that were given as codes. */
static uint64_t apply_nearest(mpsim_op op, const mpsim_format *result, const mpsim_rounding *r,
                              const exact_number *const x[3], uint32_t random, unsigned *flags, unsigned *tiny)
{
    mpsim_arith o;
    uint64_t u[3] = {0, 0, 0};
    mpsim_arith_init(&o, op, mpsim_format_find("binary64"), MPSIM_ROUND_NEAREST_EVEN);
    o.result = *result;
    o.rounding = *r;
    o.rounding.scale = 1;
    o.rounding.flush_input = 0;
    for (int i = 0; i < mpsim_op_operands(op); i++) {
        u[i] = x[i]->nan_of ? x[i]->nan : binary64_code(x[i]->nearest);
        if (x[i]->nan_of)
            o.operand[i] = *x[i]->nan_of;
    }
    if (tiny)
        *tiny = mpsim_arith_tiny(&o, u[0], u[1], u[2], random);
    return mpsim_arith_apply(&o, u[0], u[1], u[2], random, flags);
}

static uint64_t apply_binary64(mpsim_op op, const mpsim_format *result, const mpsim_rounding *r, const double x[3],
                               uint32_t random, unsigned *flags, unsigned *tiny)
{
    exact_number y[3];
    for (int i = 0; i < 3; i++)
        whole(&y[i], x[i]);
    return apply_nearest(op, result, r, (const exact_number *const[3]){&y[0], &y[1], &y[2]}, random, flags, tiny);
}

static uint64_t round_once(const mpsim_format *f, const mpsim_rounding *r, const exact_number *v, uint32_t random,
                           unsigned *flags, unsigned *tiny)
{
    static const double cancelled[3] = {1, 1, 0};
    if (!v->top.n)
        return apply_binary64(MPSIM_OP_SUB, f, r, cancelled, random, flags, tiny);
    const parts p = split(v);
    const double sign = v->negative ? -1 : 1;
    return apply_binary64(MPSIM_OP_FMA, f, r, (const double[3]){sign * p.x, p.y, sign * p.z}, random, flags, tiny);
}

/* ---- operations ---- */

/* Whether numbers near the operands, of the same signs, decide the result: one of them, or the result, is no finite
 * number, or zeros make it zero. */
static int is_special(mpsim_op op, const exact_number *const x[3])
{
    int zero = 1;
    for (int i = 0; i < mpsim_op_operands(op); i++) {
        zero &= !x[i]->top.n;
        if (x[i]->special)
            return 1;
    }
    switch (op) {
    case MPSIM_OP_MUL:
    case MPSIM_OP_DIV:
        return !x[0]->top.n || !x[1]->top.n;
    case MPSIM_OP_SQRT:
        return zero || x[0]->negative;
    case MPSIM_OP_FMA:
        return (!x[0]->top.n || !x[1]->top.n) && !x[2]->top.n;
    case MPSIM_OP_CONVERT:
    case MPSIM_OP_ADD:
    case MPSIM_OP_SUB:
    default:
        return zero;
    }
}

static void compute(exact_number *z, mpsim_op op, const exact_number *const x[3])
{
    exact_number p;
    switch (op) {
    case MPSIM_OP_ADD:
    case MPSIM_OP_SUB:
        sum(z, x[0], x[1], op == MPSIM_OP_SUB);
        break;
    case MPSIM_OP_MUL:
        product(z, x[0], x[1]);
        break;
    case MPSIM_OP_DIV:
        quotient(z, x[0], x[1]);
        break;
    case MPSIM_OP_SQRT:
        root(z, x[0]);
        break;
    case MPSIM_OP_FMA:
        product(&p, x[0], x[1]);
        sum(z, &p, x[2], 0);
        break;
    case MPSIM_OP_CONVERT:
    default:
        *z = *x[0];
    }
}

uint64_t exact_apply(mpsim_op op, const mpsim_format *result, const mpsim_rounding *r,
                     const exact_number *const operands[3], uint32_t random, unsigned *flags, unsigned *tiny)
{
    exact_number z;
    int near = 1;
    for (int i = 0; i < mpsim_op_operands(op); i++)
        near &= exact_is_binary64(operands[i]);
    if (near || is_special(op, operands))
        return apply_nearest(op, result, r, operands, random, flags, tiny);
    compute(&z, op, operands);
    return round_once(result, r, &z, random, flags, tiny);
}

static double to_binary64(const exact_number *z)
{
    const mpsim_format *binary64 = mpsim_format_find("binary64");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return z->top.n ? mpsim_decode(binary64, round_once(binary64, &r, z, 0, NULL, NULL)) : 0;
}

void exact_combine(exact_number *z, mpsim_op op, const exact_number *a, const exact_number *b)
{
    compute(z, op, (const exact_number *const[3]){a, b, b});
    reduce(z);
    z->nearest = to_binary64(z);
}

/* a - b, as its sign; both finite. */
static int compare(const exact_number *a, const exact_number *b)
{
    exact_number d;
    sum(&d, a, b, 1);
    return !d.top.n ? 0 : d.negative ? -1 : 1;
}

int exact_is_binary64(const exact_number *x)
{
    exact_number near;
    if (x->special)
        return 1;
    exact_of(&near, x->nearest);
    return compare(x, &near) == 0;
}

int exact_is_below(const exact_number *x, double bound)
{
    exact_number magnitude = *x, limit;
    magnitude.negative = 0;
    exact_of(&limit, bound);
    return !x->special && compare(&magnitude, &limit) < 0;
}

/* ---- casts ---- */

static uint64_t encode_by_binary32(const mpsim_format *f, const mpsim_rounding *r, const exact_number *x,
                                   uint32_t random, unsigned *flags, unsigned *tiny)
{
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    const exact_number *const operands[3] = {x, x, x};
    mpsim_rounding to;
    unsigned first, second;
    mpsim_rounding_init(&to, MPSIM_ROUND_NEAREST_EVEN);
    const double read = mpsim_decode(binary32, exact_apply(MPSIM_OP_CONVERT, binary32, &to, operands, 0, &first, NULL));
    const uint64_t code = mpsim_encode_f64(f, r, read, random, &second);
    *flags = (first & (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_UNDERFLOW)) | second;
    *tiny = mpsim_tiny_f64(f, r, read, random);
    return code;
}

uint64_t exact_encode(const mpsim_format *f, const mpsim_rounding *r, const exact_number *x, uint32_t random,
                      unsigned *flags, unsigned *tiny)
{
    unsigned ignored[2];
    double read = x->nearest;
    flags = flags ? flags : &ignored[0];
    tiny = tiny ? tiny : &ignored[1];
    if (x->nan_of)
        return exact_apply(MPSIM_OP_CONVERT, f, r, (const exact_number *const[3]){x, x, x}, random, flags, tiny);
    const int flushed = r->flush_input && exact_is_below(x, r->flush_below > 0 ? r->flush_below : 0x1p-1022);
    if (r->via_binary32 && !exact_is_binary64(x))
        return encode_by_binary32(f, r, x, random, flags, tiny);
    if (flushed && x->top.n)
        read = copysign(0x1p-1074, read);
    if (flushed || r->via_binary32 || exact_is_binary64(x)) {
        *tiny = mpsim_tiny_f64(f, r, read, random);
        return mpsim_encode_f64(f, r, read, random, flags);
    }
    exact_number scale, scaled;
    exact_of(&scale, r->scale);
    product(&scaled, x, &scale);
    return round_once(f, r, &scaled, random, flags, tiny);
}
