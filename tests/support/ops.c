/* ops.c -- see ops.h. */
#include "ops.h"

#include "sim/text/words.h"
#include "support.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A spelling that the oracle's table lacks, by hand: NaN is 2^12 - 1, the number before it is
 * 2^16 (1 + 126/128). */
static const oracle_format e5m7fn = {.name = "e5m7:fn",
                                     .bits = 13,
                                     .is_signed = 1,
                                     .precision = 8,
                                     .emin = -14,
                                     .zeros = 2,
                                     .max = 0x1.fcp16,
                                     .nan = 0xfff,
                                     .nan_low = 0xfff,
                                     .nan_high = 0xfff,
                                     .max_code = 0xffe};

static void find(mpsim_format *f, const oracle_format **of, const char *name)
{
    *of = strcmp(name, e5m7fn.name) == 0 ? &e5m7fn : oracle_find(name);
    ck_assert_msg(*of != NULL, "the oracle does not know %s", name);
    ck_assert_msg(mpsim_format_parse(f, name) == MPSIM_OK, "%s does not parse", name);
}

operation operation_make(int op, const char *result, const char *a, const char *b, const char *c, int mode)
{
    operation p;
    const char *const names[] = {a, b, c};
    memset(&p, 0, sizeof p);
    p.lib.op = (mpsim_op)op;
    p.oracle.op = op;
    find(&p.lib.result, &p.oracle.result, result);
    for (int i = 0; i < 3; i++)
        find(&p.lib.operand[i], &p.oracle.operand[i], names[i] ? names[i] : result);
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    operation_rounding(&p, &r);
    ck_assert_int_eq(mpsim_arith_check(&p.lib), MPSIM_OK);
    return p;
}

void operation_rounding(operation *p, const mpsim_rounding *r)
{
    p->lib.rounding = *r;
    p->oracle.r = *r;
}

void operation_mode(operation *p, int mode)
{
    p->lib.rounding.mode = (uint8_t)mode;
    p->oracle.r.mode = (uint8_t)mode;
}

int op_operands(int op)
{
    static const int n[] = {1, 2, 2, 2, 2, 1, 3};
    return n[op];
}

const char *op_name(int op)
{
    static const char *const names[] = {"convert", "add", "sub", "mul", "div", "sqrt", "fma"};
    return names[op];
}

const char *narrow_format(size_t i, int bits)
{
    for (size_t k = 0; k < mpsim_format_count(); k++)
        if (mpsim_format_at(k)->bits <= bits && i-- == 0)
            return mpsim_format_at(k)->name;
    return NULL;
}

/* ------------------------------------------------------------------------ operands ---- */

codes codes_all(const oracle_format *of)
{
    codes c = {.n = 0};
    if (of->bits <= 8)
        for (; c.n < (size_t)1 << of->bits; c.n++)
            c.code[c.n] = c.n;
    return c;
}

static uint64_t low(int n)
{
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

codes codes_edges(const oracle_format *of, int thin, uint64_t *random)
{
    const int t = of->precision - 1, ebits = of->bits - of->is_signed - t;
    const int64_t top = (int64_t)low(ebits), one = (of->zeros ? 1 : 0) - of->emin;
    const int64_t exponents[] = {0, 1, one, top, one - 1, top - 1, one + 1, one - t - 1, 2, one + t + 1, one - t};
    const uint64_t ones = low(t);
    const uint64_t significands[] = {0, ones, 1, ones & 0x5555555555555555, ones ^ ones >> 1, ones >> 1};
    const size_t ne = thin ? 5 : 11, ns = thin ? 3 : 7;
    codes c = {.n = 0};
    for (size_t i = 0; i < ne; i++)
        for (size_t k = 0; k < ns; k++) {
            const uint64_t m = k < 6 ? significands[k] : test_random(random) & ones;
            if (exponents[i] < 0 || exponents[i] > top || (k > 0 && m == 0))
                continue;
            const uint64_t code = (uint64_t)exponents[i] << t | m;
            c.code[c.n++] = code;
            if (of->is_signed)
                c.code[c.n++] = code | (uint64_t)1 << (of->bits - 1);
        }
    /* The ends of the finite numbers, wherever they are. */
    const uint64_t ends[] = {of->max_code, of->max_code - 1, of->max_code + 1};
    for (size_t i = 0; i < (thin ? 1 : 3); i++) {
        c.code[c.n++] = ends[i] & low(of->bits);
        if (of->is_signed)
            c.code[c.n++] = (ends[i] | (uint64_t)1 << (of->bits - 1)) & low(of->bits);
    }
    return c;
}

uint64_t code_random(const oracle_format *of, uint64_t near, uint64_t *random)
{
    const uint64_t u = test_random(random), any = u & low(of->bits);
    const int t = of->precision - 1, ebits = of->bits - of->is_signed - t;
    const unsigned how = (unsigned)(u >> 62);
    if (how == 0 || ebits < 2)
        return any;
    const int64_t top = (int64_t)low(ebits);
    const int64_t one = (of->zeros ? 1 : 0) - of->emin;
    int64_t e = how == 1 ? one : (int64_t)(near >> t & low(ebits));
    e += (int64_t)(test_random(random) % (uint64_t)(2 * t + 5)) - (t + 2);
    e = e < 0 ? 0 : e > top ? top : e;
    return (any & ~(low(ebits) << t)) | (uint64_t)e << t;
}

uint64_t code_of(const oracle_format *of, double y)
{
    mpsim_rounding r = rounding_variant(MPSIM_ROUND_TOWARD_ZERO, 0);
    unsigned flags;
    const uint64_t code = oracle_encode(of, &r, y, 0, 0, &flags);
    ck_assert_msg(flags == 0 || flags == MPSIM_FLAG_SUBNORMAL, "%s does not have %a", of->name, y);
    return code;
}

/* ---------------------------------------------------------------------- comparison ---- */

static void differ(tally *t, const operation *p, uint64_t a, uint64_t b, uint64_t c, uint32_t random, uint64_t want,
                   unsigned want_flags, uint64_t got, unsigned got_flags)
{
    const oracle_arith *o = &p->oracle;
    const mpsim_rounding *r = &o->r;
    const uint64_t codes_[] = {a, b, c};
    if (t->wrong++)
        return;
    snprintf(t->first, sizeof t->first,
             "%s -> %s, %s sr_bits=%d overflow=%d infinity=%d no_inf=%d nan=%d "
             "no_nan=%d negative=%d no_zero=%d flush_input=%d flush_output=%d "
             "flush_below=%a seed=%" PRIu64 ":",
             op_name(o->op), o->result->name, mode_name(r->mode), r->sr_bits, r->overflow, r->infinity, r->no_inf,
             r->nan, r->no_nan, r->negative, r->no_zero, r->flush_input, r->flush_output, r->flush_below, test_seed());
    for (int i = 0; i < op_operands(o->op); i++)
        text_add(t->first, sizeof t->first, " %s 0x%" PRIx64 " (%a)", o->operand[i]->name, codes_[i],
                 oracle_decode(o->operand[i], codes_[i]));
    text_add(t->first, sizeof t->first,
             " random=0x%08" PRIx32 ": expected 0x%" PRIx64 " (%a) flags 0x%x, got 0x%" PRIx64 " flags 0x%x", random,
             want, oracle_decode(o->result, want), want_flags, got, got_flags);
}

static void tally_value(tally *t, const operation *p, const oracle_value *v, uint64_t a, uint64_t b, uint64_t c,
                        uint32_t random)
{
    unsigned want_flags, got_flags = 0xdead;
    const uint64_t want = oracle_arith_code(v, &p->oracle, random, &want_flags);
    const uint64_t got = mpsim_arith_apply(&p->lib, a, b, c, random, &got_flags);
    t->compared++;
    if (want != got || want_flags != got_flags)
        differ(t, p, a, b, c, random, want, want_flags, got, got_flags);
}

void tally_op(tally *t, const operation *p, uint64_t a, uint64_t b, uint64_t c, uint32_t random)
{
    oracle_value v;
    oracle_arith_value(&v, &p->oracle, a, b, c);
    tally_value(t, p, &v, a, b, c, random);
}

static void random_bits(operation *p, int mode, size_t turn)
{
    static const uint8_t widths[] = {32, 8, 1, 24, 31, 5, 16};
    const uint8_t n = widths[turn % 7];
    operation_mode(p, mode);
    p->lib.rounding.sr_bits = p->oracle.r.sr_bits = n;
}

/* The word from which on nu rounds away, give or take one; below its bits that do not count. */
static uint32_t deciding_word(const oracle_value *v, int n, size_t turn)
{
    const uint64_t all = (uint64_t)1 << n;
    const uint64_t word = (all - (v->fraction >> (34 - n)) + turn % 3 - 1) & (all - 1);
    const uint32_t junk = n < 32 ? cases_word(turn) >> n : 0;
    return (uint32_t)(word << (32 - n)) | junk;
}

void tally_modes(tally *t, operation *p, uint64_t a, uint64_t b, uint64_t c, size_t turn)
{
    oracle_value v;
    oracle_arith_value(&v, &p->oracle, a, b, c);
    for (int m = 0; m < MPSIM_ROUND_STOCHASTIC_A; m++) {
        operation_mode(p, m);
        tally_value(t, p, &v, a, b, c, cases_word(turn));
    }
    for (int m = MPSIM_ROUND_STOCHASTIC_A; m < MPSIM_ROUND_MODES; m++) {
        random_bits(p, m, turn + (size_t)m);
        tally_value(t, p, &v, a, b, c, cases_word(turn + (size_t)m));
        if (v.kind == ORACLE_VALUE_NUMBER)
            tally_value(t, p, &v, a, b, c, deciding_word(&v, p->oracle.r.sr_bits, turn));
    }
}

void tally_two_ways(tally *t, operation *p, uint64_t a, uint64_t b, uint64_t c, size_t turn)
{
    oracle_value v;
    oracle_arith_value(&v, &p->oracle, a, b, c);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
        random_bits(p, m, turn);
        const uint32_t word = v.kind == ORACLE_VALUE_NUMBER && turn % 2
                                  ? deciding_word(&v, p->oracle.r.sr_bits, turn / 2)
                                  : cases_word(turn);
        unsigned fa, fb;
        const uint64_t ca = oracle_arith_code(&v, &p->oracle, word, &fa);
        const uint64_t cb = oracle_arith_mpfr(&p->oracle, a, b, c, word, &fb);
        t->compared++;
        if (ca != cb || fa != fb)
            differ(t, p, a, b, c, word, ca, fa, cb, fb);
    }
}

/* The ends of the format and of its normal range, zeros, infinities, NaNs. */
static int at_an_end(const oracle_format *of, uint64_t code)
{
    const uint64_t sign = of->is_signed ? (uint64_t)1 << (of->bits - 1) : 0, m = code & ~sign;
    const uint64_t normal = (uint64_t)1 << (of->precision - 1);
    return m <= 2 || m + 1 >= of->max_code || (m + 1 >= normal && m <= normal + 1);
}

void tally_pairs(tally *t, operation *p, const codes *a, const codes *b)
{
    const size_t nb = op_operands(p->oracle.op) > 1 ? b->n : 1;
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < nb; k++)
            if (a->n * nb <= 1024 || test_in_part(i + k, 8) ||
                (at_an_end(p->oracle.operand[0], a->code[i]) && at_an_end(p->oracle.operand[1], b->code[k])))
                tally_modes(t, p, a->code[i], b->code[k], 0, i + 7 * k);
}

void tally_triples(tally *t, operation *p, const codes *a, const codes *b, const codes *c)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            for (size_t j = 0; j < c->n; j++)
                if (a->n * b->n * c->n <= 4096 || test_in_part(i + k + j, 4))
                    tally_modes(t, p, a->code[i], b->code[k], c->code[j], i + 7 * k + 5 * j);
}

void tally_passed(const tally *t)
{
    ck_assert_msg(t->wrong == 0, "%zu of %zu wrong, first: %s", t->wrong, t->compared, t->first);
    ck_assert_uint_gt(t->compared, 0);
    printf("# %zu comparisons\n", t->compared);
}

/* ------------------------------------------------------------------------- choices ---- */

mpsim_rounding rounding_variant(int mode, int k)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    switch (k) {
    case 0:
        r.overflow = MPSIM_OVERFLOW_MAX;
        break;
    case 1:
        r.infinity = MPSIM_INFINITY_MAX;
        break;
    case 2:
        r.no_inf = MPSIM_NO_INF_MAX;
        break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        r.nan = (uint8_t)(k - 2);
        break;
    case 8:
    case 9:
        r.no_nan = (uint8_t)(k - 7);
        break;
    case 10:
    case 11:
        r.negative = (uint8_t)(k - 9);
        break;
    case 12:
        r.no_zero = MPSIM_NO_ZERO_NAN;
        break;
    case 13:
        r.no_zero = MPSIM_NO_ZERO_NAN_MIN;
        break;
    case 14:
        r.flush_input = 1;
        break;
    case 15:
        r.flush_output = 1;
        break;
    case 16:
        r.flush_input = 1, r.flush_below = 1;
        break;
    case 17:
        r.flush_input = 1, r.flush_below = 0x1p-4, r.flush_output = 1;
        break;
    default:
        r.flush_below = 1;
        break; /* without flush_input: nothing */
    }
    return r;
}

mpsim_rounding rounding_random(int mode, uint64_t *random)
{
    static const double below[] = {0, 0x1p-6, 0x1.8p1, 0x1p-126};
    mpsim_rounding r;
    uint64_t u = test_random(random);
#define DRAW(n) (uint8_t)(u % (n)), u /= (n)
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    r.sr_bits = (uint8_t)(1 + u % 32), u /= 32;
    r.overflow = DRAW(2);
    r.infinity = DRAW(2);
    r.no_inf = DRAW(2);
    r.nan = DRAW(6);
    r.no_nan = DRAW(3);
    r.negative = DRAW(3);
    r.no_zero = DRAW(3);
    r.flush_input = DRAW(2);
    r.flush_output = DRAW(2);
    r.flush_below = below[u % 4];
#undef DRAW
    return r;
}
