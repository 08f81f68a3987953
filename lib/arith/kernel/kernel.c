/* kernel.c -- preparing a kernel; see kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"

static mpsim_arith_function *const runs[MPSIM_ISAS] = { /* NULL: the reference does everything */
    [MPSIM_ISA_GENERIC] = mpsim_arith_run_generic,
    [MPSIM_ISA_NEON] = mpsim_arith_run_generic,
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = mpsim_arith_run_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = mpsim_arith_run_avx512,
#endif
};

enum { CODE_BITS = 32, PRECISION = 25, BINARY64 = 53 };

/* The magnitudes of a format's numbers are multiples of 2^low and below 2^high. */
typedef struct range {
    int low, high;
} range;

static range range_of(const mpsim_format *f)
{
    const range r = {mpsim_emin(f) - f->mbits, mpsim_number_f64(mpsim_format_max(f)).exp + 1};
    return r;
}

/* A quotient of such numbers has 53 bits above 2^(2 * -240 - 54), and its product with the divisor, that
 * of the remainder, is a multiple of 2^-774; all else is nearer to 1. */
static int fits(const mpsim_format *f)
{
    const range r = range_of(f);
    return f->bits <= CODE_BITS && f->mbits < PRECISION && r.low >= -240 && r.high <= 240;
}

/* Whether every sum of a number of range x and one of range y is a binary64 number. */
static int sums_fit(range x, range y)
{
    const int low = x.low < y.low ? x.low : y.low, high = x.high > y.high ? x.high : y.high;
    return high + 1 - low <= BINARY64;
}

/* Whether the nearest binary64 number will do: it is the exact one, or far from every number that
 * a deterministic mode asks for. */
static int is_enough(const mpsim_arith *o)
{
    const range a = range_of(&o->operand[0]), b = range_of(&o->operand[1]);
    const range product = {a.low + b.low, a.high + b.high};
    switch (o->op) {
    case MPSIM_OP_ADD:
    case MPSIM_OP_SUB:
        return sums_fit(a, b);
    case MPSIM_OP_FMA:
        return sums_fit(product, range_of(&o->operand[2]));
    case MPSIM_OP_DIV:
    case MPSIM_OP_SQRT:
        return !mpsim_is_stochastic(o->rounding.mode);
    default:
        return 1;
    }
}

static void operand_init(mpsim_arith_operand *to, const mpsim_format *f, const mpsim_rounding *r)
{
    const int bits = mpsim_magnitude_bits(f), has_zero = f->zero != MPSIM_ZERO_NONE;
    mpsim_number kept = mpsim_number_f64(r->flush_below);
    if (kept.hi == 0)
        kept = mpsim_number_make(0, 1, mpsim_emin(f));
    to->magnitude = mpsim_magnitude_mask(f);
    to->sign = mpsim_sign_bit(f, 1);
    to->sign_shift = 63 - bits;
    to->significand_shift = 52 - f->mbits;
    to->rebias = (uint64_t)(1023 - f->bias) << 52;
    to->first_normal = has_zero ? (uint64_t)1 << f->mbits : 0;
    to->least_normal = mpsim_number_to_f64(mpsim_number_make(0, 1, 1 - f->bias));
    to->max_finite = f->max_finite;
    to->infinity = f->max_finite + f->inf;
    to->negative_zero = f->nan == MPSIM_NAN_NEGZERO ? f->nan_code : ~(uint64_t)0;
    to->kept = r->flush_input ? mpsim_bits_f64(mpsim_number_to_f64(kept)) : 0;
    to->bytes = mpsim_format_code_bytes(f);
}

static void result_init(mpsim_arith_kernel *k, const mpsim_format *f, const mpsim_rounding *r)
{
    k->emin = mpsim_emin(f);
    k->mbits = f->mbits;
    k->is_unsigned = !mpsim_has_sign(f);
    k->sign_shift = k->is_unsigned ? 63 : mpsim_magnitude_bits(f);
    k->flush = r->flush_output;
    k->payloads = f->nan == MPSIM_NAN_TOP && r->nan == MPSIM_NANS_PAYLOAD;
    k->bytes = mpsim_format_code_bytes(f);
    k->max_finite = f->max_finite;
    for (int sign = 0; sign < 2; sign++) {
        unsigned flags;
        mpsim_number x = mpsim_number_make(sign, 1, 4000);
        k->overflow[sign] = mpsim_scalar_encode(f, r, r->mode, x, 0, &flags);
        x.kind = MPSIM_NUMBER_INF;
        k->infinite[sign] = mpsim_scalar_encode(f, r, r->mode, x, 0, &flags);
        x = mpsim_number_make(sign, 0, 0);
        x.kind = MPSIM_NUMBER_NAN;
        k->nan[sign] = mpsim_scalar_encode(f, r, r->mode, x, 0, &flags);
        k->zero[sign] = mpsim_scalar_zero(f, sign);
    }
}

mpsim_arith_function *mpsim_arith_kernel_init(mpsim_arith_kernel *k, const mpsim_arith *o,
                                              int operands)
{
    const mpsim_rounding *r = &o->rounding;
    k->operands = operands;
    if (!fits(&o->result) || o->result.zero == MPSIM_ZERO_NONE)
        return NULL;
    for (int i = 0; i < k->operands; i++)
        if (!fits(&o->operand[i]))
            return NULL;
    k->op = o->op;
    k->enough = is_enough(o);
    k->mode = r->mode;
    k->sr_bits = mpsim_is_stochastic(r->mode) ? r->sr_bits : 32;
    if (mpsim_is_stochastic(r->mode) && !k->enough &&
        o->result.mbits + 1 + r->sr_bits + 2 > BINARY64)
        return NULL;
    k->down = r->mode == MPSIM_ROUND_DOWN &&
              (o->op == MPSIM_OP_ADD || o->op == MPSIM_OP_SUB || o->op == MPSIM_OP_FMA);
    for (int i = 0; i < k->operands; i++)
        operand_init(&k->operand[i], &o->operand[i], r);
    result_init(k, &o->result, r);
    return runs[mpsim_isa_choice()];
}
