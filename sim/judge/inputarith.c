/* inputarith.c -- operands that tell rows of arithmetic apart: specials that meet, NaNs of each operand, ties, and results where the
 * format begins and ends. A row has as many
 * operands as its operation; all rows have three, of which the first are those of operations of one or two. */
#include "arithrow.h"
#include "inputs.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mpsim_status formats(judge_inputs *w, const mpsim_format *from)
{
    const mpsim_format *f = from ? from : mpsim_format_find("binary32");
    for (size_t i = 0; i < ARITH_OPERANDS; i++)
        w->set->format[i] = *f;
    return mpsim_format_is_signed(f) && f->mbits > 0
               ? MPSIM_OK
               : judge_inputs_fail(w, MPSIM_ERANGE, "no operands are known for arithmetic in %s", f->name);
}

/* ---- operands ---- */

typedef struct operands {
    const mpsim_format *f;
    uint64_t *codes; /* three for each element */
    size_t n;
    uint64_t state;
    int bad, low, high; /* exponents of the least and of the largest normal number */
} operands;

static void add(operands *o, const uint64_t *code)
{
    if (o->bad || (o->bad = want_room(&o->codes, ARITH_OPERANDS * o->n, ARITH_OPERANDS, sizeof *o->codes)))
        return;
    memcpy(o->codes + ARITH_OPERANDS * o->n++, code, ARITH_OPERANDS * sizeof *code);
}

/* The nearest numbers of the format. */
static void add_numbers(operands *o, double a, double b, double c)
{
    const double x[ARITH_OPERANDS] = {a, b, c};
    uint64_t code[ARITH_OPERANDS];
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    for (int k = 0; k < ARITH_OPERANDS; k++)
        code[k] = mpsim_encode_f64(o->f, &r, x[k], 0, NULL);
    add(o, code);
}

static uint64_t sign_of(const operands *o)
{
    return (uint64_t)1 << (o->f->bits - 1);
}

/* NaN of operand k: quiet or not; 0: there is none such. */
static uint64_t nan_of(const operands *o, int k, int quiet)
{
    const mpsim_format *f = o->f;
    const uint64_t top = f->mbits ? (uint64_t)1 << (f->mbits - 1) : 0,
                   payload = (uint64_t)(k + 1) & (top ? top - 1 : 0);
    if (f->nan != MPSIM_NAN_TOP)
        return quiet && f->nan != MPSIM_NAN_NONE ? f->nan_code : 0;
    const uint64_t code = (f->max_finite + 1) | (quiet ? top : 0) | payload;
    return code > f->max_finite + f->inf ? code : 0;
}

/* Zeros, the ends of the subnormal and of the normal numbers, one, infinity and NaN, each with each. */
static void add_specials(operands *o)
{
    const mpsim_format *f = o->f;
    const uint64_t normal = (uint64_t)1 << f->mbits, one = (uint64_t)(unsigned)f->bias << f->mbits;
    const uint64_t all[] = {0,
                            1,
                            2,
                            normal - 1,
                            normal,
                            normal + 1,
                            one,
                            one + 1,
                            one - 1,
                            f->max_finite - 1,
                            f->max_finite,
                            f->inf ? f->max_finite + 1 : f->max_finite,
                            nan_of(o, 0, 1),
                            nan_of(o, 0, 0)};
    enum { ALL = sizeof all / sizeof all[0] };
    for (size_t i = 0; i < 4 * ALL * ALL; i++) {
        const uint64_t code[ARITH_OPERANDS] = {all[i / 4 % ALL] | (i & 1 ? sign_of(o) : 0),
                                               all[i / 4 / ALL] | (i & 2 ? sign_of(o) : 0),
                                               all[i * 5 % ALL] | (i * 3 & 4 ? sign_of(o) : 0)};
        add(o, code);
    }
}

/* NaNs of each operand beside those of the others, infinities and zeros. */
static void add_nans(operands *o)
{
    enum { KINDS = 5 };
    for (size_t i = 0; i < (size_t)KINDS * KINDS * KINDS; i++) {
        const size_t kind[ARITH_OPERANDS] = {i % KINDS, i / KINDS % KINDS, i / KINDS / KINDS};
        uint64_t code[ARITH_OPERANDS];
        for (int k = 0; k < ARITH_OPERANDS; k++) {
            const uint64_t of[KINDS] = {(uint64_t)(unsigned)o->f->bias << o->f->mbits, 0,
                                        o->f->inf ? o->f->max_finite + 1 : 0, nan_of(o, k, 1), nan_of(o, k, 0)};
            code[k] = of[kind[k]] | (judge_inputs_random(&o->state) & 1 ? sign_of(o) : 0);
        }
        add(o, code);
    }
}

/* A significand of some bits. */
static double random_significand(operands *o)
{
    const uint64_t r = judge_inputs_random(&o->state);
    const int bits = (int)(r % ((uint64_t)o->f->mbits + 1));
    return (1 + floor(ldexp((double)(r >> 11), bits - 53)) * ldexp(1, -bits)) * (r >> 10 & 1 ? -1 : 1);
}

static int between(operands *o, int low, int high)
{
    return low + (int)(judge_inputs_random(&o->state) % (uint64_t)(high - low + 1));
}

/* Operands whose sum, product, quotient, root and a b + c have about this exponent. */
static void add_towards(operands *o, int e)
{
    const int m = o->f->mbits, half = (o->high - o->low) / 2;
    const int away = between(o, -half, half), least = o->low - m;
    const double a = random_significand(o), b = random_significand(o), c = random_significand(o);
    add_numbers(o, ldexp(a, e), ldexp(b, e - between(o, 0, m + 2)), ldexp(c, least));
    add_numbers(o, ldexp(a, e - away), ldexp(b, away), ldexp(c, e - between(o, -2, 2 * m)));
    add_numbers(o, ldexp(a, e - away), ldexp(b, away), -ldexp(a * b, e)); /* what rounding left of the product */
    add_numbers(o, ldexp(a, e + away), ldexp(b, away), ldexp(c, e));
}

/* Sums and products halfway between two numbers, and nearly so by a c that other formats do not see. */
static void add_ties(operands *o)
{
    const int m = o->f->mbits;
    const double a = fabs(random_significand(o)),
                 odd = 1 + ldexp(2 * between(o, 0, m > 3 ? 1 << (m < 20 ? m - 2 : 18) : 1) + 1, -m);
    const int e = between(o, -2, o->high - 2), sign = between(o, 0, 1) ? 1 : -1;
    for (int k = -1; k <= 1; k++)
        add_numbers(o, ldexp(a, e), sign * ldexp(1 + ldexp(k, k < 0 ? -m - 1 : -m), e - m - 1), ldexp(k, e - 2 * m));
    for (int beyond = 24; beyond <= 72; beyond += 6)
        add_numbers(o, ldexp(odd, e), 1.5, sign * ldexp(1, e - beyond));
}

/* Products and quotients just below the least normal number, and just beside the least one. */
static void add_borders(operands *o)
{
    const int m = o->f->mbits;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++) {
            const double near = 1 - ldexp(k, -m - 1), above = 1 + ldexp(i, -m), root = 1 + ldexp(1, -(m + k) / 2);
            add_numbers(o, near, ldexp(above, o->low), ldexp(i - 1, o->low - m));
            add_numbers(o, ldexp(above, o->low), 1 / near, ldexp(1, o->low));
            add_numbers(o, root, ldexp(2 - root, o->low), 0);
            add_numbers(o, root / 2, ldexp(i % 2 ? 2 - root : root - 2, o->low + 1), i / 2 ? 0.0 : -0.0);
            add_numbers(o, ldexp(i % 2 ? above : -above, o->low + k), ldexp(1, k + 1 + i / 2), 0);
            add_numbers(o, -near * 2, ldexp(above, o->low - 1 - i), ldexp(k, o->low - m));
            add_numbers(o, above, ldexp(0.5 + 0.25 * k, o->low - m), -ldexp(k, o->low - m));
        }
}

static mpsim_status make(judge_inputs *w)
{
    enum { ORDINARY = 60, ENDS = 6 };
    mpsim_judge_set *set = w->set;
    static const char *const roles[] = {"a", "b", "c"};
    const mpsim_format *f = &set->format[0];
    operands o = {.f = f, .state = 49, .low = ilogb(mpsim_format_min_normal(f)), .high = ilogb(mpsim_format_max(f))};
    add_specials(&o);
    add_nans(&o);
    add_borders(&o);
    for (int i = 0; i < ORDINARY; i++) {
        add_towards(&o, between(&o, -2, 2));
        add_ties(&o);
    }
    for (int i = 0; i < ENDS; i++)
        for (int e = -2; e <= f->mbits + 2; e++) {
            add_towards(&o, o.low - e);
            add_towards(&o, o.high + (e % 3 == 0));
        }
    mpsim_status s = o.bad ? MPSIM_ENOMEM : MPSIM_OK;
    arith_row like;
    const size_t some = w->row && judge_arith_row_parse(&like, w->row) == 0 ? (size_t)mpsim_op_operands(like.op)
                                                                            : ARITH_OPERANDS;
    for (size_t k = 0; k < some && s == MPSIM_OK; k++) {
        void *codes = judge_inputs_array(set, k, roles[k], 1, o.n);
        s = codes ? MPSIM_OK : MPSIM_ENOMEM;
        for (size_t i = 0; i < o.n && codes; i++)
            element_put_code(codes, mpsim_format_code_bytes(f), i, o.codes[ARITH_OPERANDS * i + k]);
    }
    free(o.codes);
    return s;
}

/* ---- rows ---- */

typedef struct names {
    mpsim_judge_set *set;
    int bad;
} names;

static void add_name(void *to, const char *name)
{
    names *n = to;
    n->bad = n->bad || judge_inputs_name(n->set, name);
}

int judge_inputs_is_arith(const char *name)
{
    arith_row row;
    return judge_arith_row_parse(&row, name) == 0;
}

static mpsim_status rows(judge_inputs *w)
{
    names to = {w->set, 0};
    const arith_rows from = {&w->set->format[0], &w->set->format[0], 1, 1, 1, 1, add_name, &to};
    arith_row like;
    if (w->row && judge_arith_row_parse(&like, w->row))
        return MPSIM_ENOTFOUND;
    for (int op = MPSIM_OP_CONVERT + 1; op < MPSIM_OPS; op++)
        for (int mode = 0; mode < MPSIM_ROUND_STOCHASTIC_A && (!w->row || op == (int)like.op); mode++)
            judge_arith_rows(&from, (mpsim_op)op, (mpsim_round_mode)mode);
    if (w->row)
        add_name(&to, w->row);
    return to.bad ? MPSIM_ENOMEM : MPSIM_OK;
}

/* ---- results ---- */

static mpsim_status sign(const mpsim_judge_set *set, const char *name, uint64_t *hash)
{
    const size_t n = set->array[0].columns;
    arith_operand x[ARITH_OPERANDS];
    arith_row row;
    if (judge_arith_row_parse(&row, name))
        return MPSIM_ENOTFOUND;
    void *codes = want_memory(n + 1, mpsim_format_code_bytes(&set->format[0]));
    for (size_t k = 0; k < ARITH_OPERANDS; k++)
        x[k] = (int)k < mpsim_op_operands(row.op) ? (arith_operand){&set->format[k], set->array[k].codes}
                                                  : (arith_operand){NULL, NULL};
    const mpsim_status s = codes ? judge_arith_compute(&row, &set->format[0], x, n, codes) : MPSIM_ENOMEM;
    if (s == MPSIM_OK) /* a row without a rule for NaNs is one of its own */
        *hash = judge_inputs_mix_codes(judge_inputs_mix(*hash, row.nans == ARITH_ANY), &set->format[0], codes, n,
                                       row.nans == ARITH_ANY);
    free(codes);
    return s;
}

const judge_inputs_kind judge_inputs_arith = {formats, make, rows, sign};
