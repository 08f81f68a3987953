/* unitrules.c -- see unitrules.h. */
#include "unitrules.h"

#include "../../gpu/functions/exact.h"

#include <stdlib.h>

/* ---- tables ---- */

int unit_table_result(const unit_tables *t, int operation, uint32_t x, uint32_t *y)
{
    const uint32_t low = x & 0x7fffff;
    if (low & (((uint32_t)1 << t->extent.shift) - 1))
        return -1;
    for (size_t i = 0; i < gpu_tables(); i++) {
        const gpu_table at = gpu_table_at(i);
        if (t->results[i] && at.operation == operation && at.first >> 23 == x >> 23) {
            *y = t->results[i][low >> t->extent.shift];
            return 0;
        }
    }
    return -1;
}

enum { NONE = 0x7fc00001, QUARTER = 1 << 21 }; /* no result has this code; parts of a quarter of a turn */

/* sin of [1, 1.25] turns, which [4, 8) has. */
int unit_quarter(unit_tables *t)
{
    const uint32_t n = gpu_extent_count(&t->extent);
    t->quarter = malloc((QUARTER + 1) * sizeof *t->quarter);
    for (size_t k = 0; t->quarter && k <= QUARTER; k++)
        t->quarter[k] = NONE;
    for (uint32_t k = 0; t->quarter && k < n; k++) {
        uint32_t y;
        const uint32_t x = 0x40800000 + (k << t->extent.shift), turns = gpu_turns(x) - 0x3f800000;
        if (turns <= QUARTER && unit_table_result(t, GPU_SIN, x, &y) == 0)
            t->quarter[turns] = y;
    }
    return t->quarter ? 0 : -1;
}

void unit_free(unit_tables *t)
{
    for (size_t i = 0; i < gpu_tables(); i++)
        free(t->results[i]);
    free(t->quarter);
}

/* ---- numbers ---- */

/* A normal result times 2^exp; what is too small becomes zero, too large infinity. */
static uint32_t times_power(uint32_t y, int exp)
{
    const int field = (int)(y >> 23 & 255);
    const uint32_t sign = y & 0x80000000u;
    if (field == 0 || field == 255)
        return y;
    return field + exp <= 0 ? sign : field + exp >= 255 ? sign | 0x7f800000 : y + ((uint32_t)exp << 23);
}

static int exponent(uint32_t x)
{
    return (int)(x >> 23 & 255) - 127;
}

enum { DOWNWARDS, TOWARD_ZERO, NEAREST };

/* x as a multiple of 2^-23, of 47 bits at most. */
static int64_t fixed(uint32_t x, int how)
{
    const int64_t m = (x & 0x7fffff) | 0x800000;
    const int e = exponent(x), drop = -e > 30 ? 30 : -e, negative = (int)(x >> 31);
    if (e >= 0)
        return (negative ? -m : m) * ((int64_t)1 << (e > 23 ? 23 : e));
    const int64_t rest = m & (((int64_t)1 << drop) - 1), half = (int64_t)1 << (drop - 1), cut = m >> drop;
    int64_t size = cut;
    if (how == NEAREST)
        size += rest > half || (rest == half && (cut & 1));
    else if (how == DOWNWARDS && negative)
        size += rest != 0;
    return negative ? -size : size;
}

/* ---- a rule of each function, of a normal operand ---- */

typedef int rule_of(const unit_tables *t, uint32_t x, int how, uint32_t *y);

static int from_table(const unit_tables *t, int function, uint32_t x, int exp, uint32_t *y)
{
    const int lacks = unit_table_result(t, function, x, y);
    *y = lacks ? 0 : times_power(*y, exp);
    return lacks;
}

static int by_significand(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    (void)how;
    const int lacks = from_table(t, GPU_RCP, (x & 0x7fffff) | 0x3f800000, -exponent(x), y);
    *y |= x & 0x80000000u;
    return lacks;
}

static int by_parity(const unit_tables *t, uint32_t x, int function, uint32_t *y)
{
    const int e = exponent(x), odd = e & 1, half = (e - odd) / 2;
    return from_table(t, function, (x & 0x7fffff) | (odd ? 0x40000000 : 0x3f800000),
                      function == GPU_SQRT ? half : -half, y);
}

static int root_of_inverse(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    (void)how;
    return by_parity(t, x, GPU_RSQRT, y);
}

static int root(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    (void)how;
    return by_parity(t, x, GPU_SQRT, y);
}

static int power(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    const int64_t f = fixed(x, how);
    const int whole = (int)(f >> 23);
    const int lacks = from_table(t, GPU_EX2, 0x3f800000 | (uint32_t)(f & 0x7fffff), 0, y);
    if (!lacks)
        *y = whole > 127 ? 0x7f800000 : whole < -126 ? 0 : times_power(*y, whole - 1);
    return lacks;
}

/* whole + part for two numbers of one sign, or a negative whole and a positive part: a multiple of 2^-40, then cut to 24 bits,
 * rounded, or cut downwards. */
static uint32_t with_whole(int whole, uint32_t part, int how)
{
    const int shift = exponent(part) + 40 - 23, negative = (int)(part >> 31);
    const int64_t m = part & 0x7fffffff ? (part & 0x7fffff) | 0x800000 : 0;
    const int64_t size = shift >= 0 ? m << shift : shift > -40 ? m >> -shift : 0;
    const int64_t sum = whole * ((int64_t)1 << 40) + (negative ? -size : size);
    gpu_real r = gpu_normal(sum < 0, 23, (uint64_t)(sum < 0 ? -sum : sum), 0);
    const uint64_t rest = (uint64_t)0xffffffffff;
    if (how != NEAREST && r.sign && how == DOWNWARDS && (r.m & rest))
        r.m |= rest; /* rounds away */
    else if (how != NEAREST)
        r.m &= ~rest;
    return gpu_exact_code(r);
}

/* The exponent is added to the logarithm that [1, 2) has; below 1, but for cuts downwards, to the one that [1/2, 1) has. */
static int logarithm(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    const int below = exponent(x) < 0 && how != DOWNWARDS, whole = exponent(x) + below;
    const int lacks = unit_table_result(t, GPU_LG2, (x & 0x7fffff) | (below ? 0x3f000000 : 0x3f800000), y);
    if (!lacks && whole)
        *y = with_whole(whole, *y, how);
    return lacks;
}

/* What a table has; else by the first quarter. */
static int wave(const unit_tables *t, uint32_t x, int is_cos, int how, uint32_t *y)
{
    const uint32_t size = x & 0x7fffffff, sign = is_cos ? 0 : x & 0x80000000u, turns = gpu_turns(size);
    const int direct = unit_table_result(t, is_cos ? GPU_COS : GPU_SIN, size, y) == 0;
    *y ^= sign;
    if (direct)
        return 0;
    const uint32_t f = turns < 0x800000 ? 0 : (uint32_t)fixed(turns, how), quadrant = (f >> 21 & 3) + (uint32_t)is_cos;
    const uint32_t low = f & (QUARTER - 1), at = quadrant & 1 ? QUARTER - low : low;
    *y = t->quarter[at] ^ (quadrant >> 1 & 1 ? 0x80000000u : 0) ^ sign;
    return t->quarter[at] == NONE ? -1 : 0;
}

static int sine(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    return wave(t, x, 0, how, y);
}

static int cosine(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    return wave(t, x, 1, how, y);
}

static int tangent(const unit_tables *t, uint32_t x, int how, uint32_t *y)
{
    const uint32_t size = x & 0x7fffffff, sign = x & 0x80000000u;
    (void)how;
    if (exponent(x) > 3 || exponent(x) < -12) {
        *y = exponent(x) > 3 ? sign | 0x3f800000 : x;
        return 0;
    }
    const int lacks = unit_table_result(t, GPU_TANH, size, y);
    *y |= sign;
    return lacks;
}

static rule_of *const rules[GPU_FUNCTIONS] = {
    [GPU_EX2] = power,     [GPU_RCP] = by_significand, [GPU_RSQRT] = root_of_inverse,
    [GPU_LG2] = logarithm, [GPU_TANH] = tangent,       [GPU_SIN] = sine,
    [GPU_COS] = cosine,    [GPU_SQRT] = root,
};

static const char *const names[GPU_FUNCTIONS][4] = {
    [GPU_EX2] = {"23 bits of the fraction, downwards", "23 bits of the fraction, toward zero",
                 "23 bits of the fraction, to nearest"},
    [GPU_RCP] = {"the significand alone"},
    [GPU_RSQRT] = {"the significand and the parity of the exponent"},
    [GPU_LG2] = {"the exponent added, cut downwards", "the exponent added, cut", "the exponent added, to nearest"},
    [GPU_TANH] = {"odd, x itself below 2^-12, 1 from 16 on"},
    [GPU_SIN] = {"23 bits of turns, symmetric quarters, downwards", "23 bits of turns, symmetric quarters, toward zero",
                 "23 bits of turns, symmetric quarters, to nearest"},
    [GPU_COS] = {"quarters of sin, downwards", "quarters of sin, toward zero", "quarters of sin, to nearest"},
    [GPU_SQRT] = {"the significand and the parity of the exponent"},
};

const char *unit_rule_name(int function, int rule)
{
    return rule < 4 ? names[function][rule] : NULL;
}

int unit_rule(const unit_tables *t, int function, int rule, uint32_t x, uint32_t *y)
{
    const uint32_t size = x & 0x7fffffff, sign = x & 0x80000000u;
    const int is_root = function == GPU_LG2 || function == GPU_SQRT || function == GPU_RSQRT;
    if (size > 0x7f800000 || size == 0x7f800000) {
        *y = size > 0x7f800000 ? 0x7fffffff : gpu_exact_of_infinity((gpu_function)function, sign);
        return 0;
    }
    if (size < 0x800000) {
        *y = function == GPU_TANH ? x : gpu_exact_of_zero((gpu_function)function, sign);
        return 0;
    }
    if (is_root && sign) {
        *y = 0x7fffffff;
        return 0;
    }
    return rules[function](t, x, rule, y);
}
