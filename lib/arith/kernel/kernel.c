/* kernel.c -- preparing a kernel; see kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"

static mpsim_arith_function *const runs[MPSIM_ISAS] = {
    /* NULL: the reference does everything */
    [MPSIM_ISA_GENERIC] = mpsim_arith_run_generic,
#ifdef HAVE_NEON
    [MPSIM_ISA_NEON] = mpsim_arith_run_neon,
#endif
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = mpsim_arith_run_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = mpsim_arith_run_avx512,
#endif
};

enum { CODE_BITS = 32, PRECISION = 25, BINARY32 = 24, BINARY64 = 53 };

/* The magnitudes of a format's numbers are multiples of 2^low and below 2^high. */
typedef struct range {
    int low, high, precision;
} range;

static range range_of(const mpsim_format *f)
{
    const range r = {mpsim_emin(f) - f->mbits, mpsim_number_f64(mpsim_format_max(f)).exp + 1, f->mbits + 1};
    return r;
}

/* A quotient of such numbers has 53 bits above 2^(2 * -240 - 54), and its product with the divisor, that
 * of the remainder, is a multiple of 2^-774; all else is nearer to 1. */
static int fits(const mpsim_format *f)
{
    const range r = range_of(f);
    return f->bits <= CODE_BITS && r.precision <= PRECISION && r.low >= -240 && r.high <= 240;
}

static range product(range x, range y)
{
    const range r = {x.low + y.low, x.high + y.high, x.precision + y.precision};
    return r;
}

/* Whether every sum of a number of range x and one of range y has at most so many bits. */
static int sums_fit(range x, range y, int bits)
{
    const int low = x.low < y.low ? x.low : y.low, high = x.high > y.high ? x.high : y.high;
    return high + 1 - low <= bits;
}

/* Whether the nearest number of so many bits will do: it is the exact one, or far from every number
 * that a deterministic mode asks for. */
static int is_enough(const mpsim_arith *o, int operands, int bits)
{
    const range a = range_of(&o->operand[0]), b = range_of(&o->operand[operands > 1]);
    const int stochastic = mpsim_is_stochastic(o->rounding.mode), p = o->result.mbits + 1;
    switch (o->op) {
    case MPSIM_OP_ADD:
    case MPSIM_OP_SUB:
        return sums_fit(a, b, bits);
    case MPSIM_OP_FMA:
        return sums_fit(product(a, b), range_of(&o->operand[2]), bits);
    case MPSIM_OP_DIV:
        return !stochastic && a.precision < bits && b.precision + p < bits;
    case MPSIM_OP_SQRT:
        return !stochastic && a.precision + 1 < bits && 2 * p + 2 <= bits;
    default:
        return 1;
    }
}

static int is_normal_f32(range r)
{
    return r.low >= -126 && r.high <= 126 && r.precision <= BINARY32;
}

/* Whether binary32 does what the head of kernel.h says of binary64. */
static int is_narrow(const mpsim_arith *o, int operands)
{
    const range a = range_of(&o->operand[0]), b = range_of(&o->operand[operands > 1]);
    const mpsim_rounding *r = &o->rounding;
    const range quotient = {a.low - b.high - 1, a.high - b.low, 1};
    if (mpsim_is_stochastic(r->mode) || (r->flush_input && r->flush_below != 0) || o->result.mbits + 1 + 2 > BINARY32 ||
        mpsim_emin(&o->result) < -126 || mpsim_magnitude_bits(&o->result) >= CODE_BITS)
        return 0;
    for (int i = 0; i < operands; i++)
        if (!is_normal_f32(range_of(&o->operand[i])) || mpsim_magnitude_bits(&o->operand[i]) >= CODE_BITS)
            return 0;
    switch (o->op) {
    case MPSIM_OP_MUL:
    case MPSIM_OP_FMA:
        return is_normal_f32(product(a, b));
    case MPSIM_OP_DIV:
        return is_normal_f32(quotient) && is_enough(o, operands, BINARY32);
    case MPSIM_OP_SQRT:
        return is_enough(o, operands, BINARY32);
    default:
        return 1;
    }
}

/* The bits of 2^e in a lane. */
static uint64_t power_of_two(int lane_bits, int e)
{
    return lane_bits == 64 ? (uint64_t)(1023 + e) << 52 : (uint64_t)(127 + e) << 23;
}

static void operand_init(mpsim_arith_operand *to, const mpsim_format *f, const mpsim_rounding *r, int lane_bits)
{
    const int bits = mpsim_magnitude_bits(f), has_zero = f->zero != MPSIM_ZERO_NONE;
    const mpsim_number below = mpsim_number_f64(r->flush_below);
    to->magnitude = mpsim_magnitude_mask(f);
    to->sign = mpsim_sign_bit(f, 1);
    to->sign_shift = lane_bits - 1 - bits;
    to->significand_shift = (lane_bits == 64 ? 52 : 23) - f->mbits;
    to->rebias = power_of_two(lane_bits, -f->bias);
    to->first_normal = has_zero ? (uint64_t)1 << f->mbits : 0;
    to->least_normal = mpsim_number_to_f64(mpsim_number_make(0, 1, 1 - f->bias));
    to->max_finite = f->max_finite;
    to->infinity = f->max_finite + f->inf;
    to->negative_zero = f->nan == MPSIM_NAN_NEGZERO ? f->nan_code : ~(uint64_t)0;
    to->kept = 0;
    if (r->flush_input)
        to->kept = below.hi ? mpsim_bits_f64(r->flush_below) : power_of_two(lane_bits, mpsim_emin(f));
    to->plain = !r->flush_input && f->nan != MPSIM_NAN_NEGZERO;
    to->bytes = mpsim_format_code_bytes(f);
}

static void result_init(mpsim_arith_kernel *k, const mpsim_format *f, const mpsim_rounding *r)
{
    k->emin = mpsim_emin(f);
    k->mbits = f->mbits;
    k->is_unsigned = !mpsim_has_sign(f);
    k->sign_shift = k->is_unsigned ? k->lane_bits - 1 : mpsim_magnitude_bits(f);
    k->plain = f->zero == MPSIM_ZERO_SIGNED && !r->flush_output;
    k->flush = r->flush_output;
    k->payloads = mpsim_keeps_payloads(f, r);
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

mpsim_arith_function *mpsim_arith_kernel_init(mpsim_arith_kernel *k, const mpsim_arith *o, int operands)
{
    const mpsim_rounding *r = &o->rounding;
    k->operands = operands;
    if (!fits(&o->result) || o->result.zero == MPSIM_ZERO_NONE)
        return NULL;
    for (int i = 0; i < k->operands; i++)
        if (!fits(&o->operand[i]))
            return NULL;
    k->op = o->op;
    k->lane_bits = is_narrow(o, operands) ? 32 : 64;
    k->enough = is_enough(o, operands, k->lane_bits == 32 ? BINARY32 : BINARY64);
    k->mode = r->mode;
    k->sr_bits = mpsim_is_stochastic(r->mode) ? r->sr_bits : 32;
    if (mpsim_is_stochastic(r->mode) && !k->enough && o->result.mbits + 1 + r->sr_bits + 2 > BINARY64)
        return NULL;
    k->down = r->mode == MPSIM_ROUND_DOWN && (o->op == MPSIM_OP_ADD || o->op == MPSIM_OP_SUB || o->op == MPSIM_OP_FMA);
    for (int i = 0; i < k->operands; i++)
        operand_init(&k->operand[i], &o->operand[i], r, k->lane_bits);
    result_init(k, &o->result, r);
    return runs[mpsim_isa_choice()];
}
