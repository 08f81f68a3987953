/* vector.h -- the kernel of kernel.h in the words of lib/simd/generic.h, written once.
 *
 * Included by one unit for each instruction set, after its header. A block goes through three
 * loops: codes to binary64 numbers, the operation, its result to codes. */
#include "kernel.h"

enum { HALF = V_LANES / 2 };

#define SIGN      0x8000000000000000u
#define MAGNITUDE 0x7fffffffffffffffu
#define INFINITE  0x7ff0000000000000u

/* What happened, in every lane. */
typedef struct tally {
    vu64 inexact, underflow, subnormal, overflow, nan;
} tally;

typedef struct block {
    double x[3][MPSIM_ARITH_BLOCK]; /* operands; those that the operation lacks are unset */
    double z[MPSIM_ARITH_BLOCK];    /* results, rounded to odd                            */
} block;

V_INLINE m64 less_u63(vu64 a, vu64 b) /* both below 2^63 */
{
    return v_gt_i64((vi64)b, (vi64)a);
}

/* ---- codes to numbers ---- */

V_INLINE vu64 number_of_code(const mpsim_arith_operand *f, vu64 code)
{
    const vu64 m = code & f->magnitude;
    const vu64 normal = v_shl_u64(m, v_u64((uint64_t)f->significand_shift)) + f->rebias;
    const vf64 below = (vf64)(normal + ((uint64_t)1 << 52)) - f->least_normal;
    vu64 x = v_pick_u64(less_u63(m, v_u64(f->first_normal)), (vu64)below, normal);
    /* infinity, or a NaN: not a zero significand */
    x = v_pick_u64(less_u63(v_u64(f->max_finite), m), (m - f->infinity) | INFINITE, x);
    x = v_keep_u64(m64_not(less_u63(x, v_u64(f->kept))), x);
    x |= v_shl_u64(code & f->sign, v_u64((uint64_t)f->sign_shift));
    const m64 is_nan = v_eq_u64(code & (f->magnitude | f->sign), v_u64(f->negative_zero));
    return v_pick_u64(is_nan, v_u64(INFINITE | 1), x);
}

V_INLINE vu32 load_codes(const void *from, size_t bytes, size_t i)
{
    const unsigned char *p = (const unsigned char *)from + i * bytes;
    return bytes == 1 ? v_load_u8(p) : bytes == 2 ? v_load_u16(p) : v_load_u32(p);
}

static void read_operand(const mpsim_arith_operand *operand, double *x, const void *from, size_t n)
{
    const mpsim_arith_operand f = *operand; /* of which nobody else has an address */
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 code = load_codes(from, f.bytes, i);
        v_store_u64(x + i, number_of_code(&f, v_first_u64(code)));
        v_store_u64(x + i + HALF, number_of_code(&f, v_last_u64(code)));
    }
}

/* ---- operations ---- */

/* z, to nearest, of an exact value on the side of z that `rest` has the sign of, if it is not 0 (or
 * NaN, beside an infinity or NaN z): rounded to odd. */
V_INLINE vf64 to_odd(vf64 z, vf64 rest)
{
    const m64 inexact = v_gt_f64((vf64)((vu64)rest & MAGNITUDE), (vf64){0});
    const m64 beyond = m64_and(inexact, v_top_u64((vu64)rest ^ (vu64)z));
    const vu64 cut = (vu64)z - v_keep_u64(beyond, v_u64(1)); /* toward zero */
    return (vf64)(cut | v_keep_u64(inexact, v_u64(1)));
}

V_INLINE vf64 add(vf64 a, vf64 b, int enough)
{
    const vf64 z = a + b;
    const vf64 b_part = z - a, a_part = z - b_part;
    return enough ? z : to_odd(z, (a - a_part) + (b - b_part));
}

V_INLINE vf64 operate(mpsim_op op, int enough, vf64 a, vf64 b, vf64 c)
{
    vf64 z;
    switch (op) {
    case MPSIM_OP_ADD:
        return add(a, b, enough);
    case MPSIM_OP_SUB:
        return add(a, (vf64)((vu64)b ^ SIGN), enough);
    case MPSIM_OP_MUL:
        return a * b;
    case MPSIM_OP_DIV:
        z = a / b; /* rest / b is missing */
        return enough ? z : to_odd(z, (vf64)((vu64)v_fma_f64((vf64)((vu64)z ^ SIGN), b, a) ^ ((vu64)b & SIGN)));
    case MPSIM_OP_SQRT:
        z = v_sqrt_f64(a);
        return enough ? z : to_odd(z, v_fma_f64((vf64)((vu64)z ^ SIGN), z, a));
    case MPSIM_OP_FMA:
        return add(a * b, c, enough);
    case MPSIM_OP_CONVERT:
    default:
        return a;
    }
}

V_INLINE void run_operation(mpsim_op op, int enough, block *w, size_t n)
{
    for (size_t i = 0; i < n; i += HALF) {
        const vf64 a = v_load_f64(w->x[0] + i), b = v_load_f64(w->x[1] + i);
        const vf64 c = v_load_f64(w->x[2] + i);
        v_store_f64(w->z + i, operate(op, enough, a, b, c));
    }
}

/* In mode DOWN a sum that is zero is -0 unless both terms are +0. */
static void zeros_down(const mpsim_arith_kernel *k, block *w, size_t n)
{
    for (size_t i = 0; i < n; i += HALF) {
        const vu64 a = v_load_u64(w->x[0] + i), b = v_load_u64(w->x[1] + i);
        const vu64 z = v_load_u64(w->z + i);
        vu64 sign = a | b;
        if (k->op == MPSIM_OP_SUB)
            sign = a | ~b;
        else if (k->op == MPSIM_OP_FMA)
            sign = (a ^ b) | v_load_u64(w->x[2] + i);
        v_store_u64(w->z + i, z | v_keep_u64(v_eq_u64(z & MAGNITUDE, v_u64(0)), sign & SIGN));
    }
}

static void run_operations(const mpsim_arith_kernel *k, block *w, size_t n)
{
    switch (k->op) {
#define RUN(op)                                                                                   \
    case op:                                                                                      \
        k->enough ? run_operation(op, 1, w, n) : run_operation(op, 0, w, n);                      \
        break
        RUN(MPSIM_OP_ADD);
        RUN(MPSIM_OP_SUB);
        RUN(MPSIM_OP_DIV);
        RUN(MPSIM_OP_SQRT);
        RUN(MPSIM_OP_FMA);
#undef RUN
    case MPSIM_OP_MUL:
        run_operation(MPSIM_OP_MUL, 1, w, n);
        break;
    case MPSIM_OP_CONVERT:
    default:
        run_operation(MPSIM_OP_CONVERT, 1, w, n);
    }
    if (k->down)
        zeros_down(k, w, n);
}

/* ---- results to codes ---- */

/* Whether the magnitude is rounded away from zero; the operands are those of mpsim_rounds_away:
 * rest < 2^drop is the fraction times 2^drop. */
V_INLINE m64 rounds_away(int mode, unsigned n, vu64 draw, m64 negative, vu64 low, vu64 rest,
                         vu64 drop)
{
    const vu64 odd = low & 1, half = v_shl_u64(v_u64(1), drop - 1);
    const vu64 frac = v_shl_u64(rest, v_u64(64) - drop);
    const m64 inexact = v_test_u64(rest, rest);
    switch (mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return less_u63(half, rest + odd);
    case MPSIM_ROUND_NEAREST_AWAY:
        return m64_not(less_u63(rest, half));
    case MPSIM_ROUND_UP:
        return m64_and(inexact, m64_not(negative));
    case MPSIM_ROUND_DOWN:
        return m64_and(inexact, negative);
    case MPSIM_ROUND_TO_ODD:
        return m64_and(inexact, v_eq_u64(odd, v_u64(0)));
    case MPSIM_ROUND_STOCHASTIC_A: {
        const vu64 sum = v_shr_u64(frac, v_u64(64 - n)) + draw;
        return v_test_u64(sum, v_u64((uint64_t)1 << n));
    }
    case MPSIM_ROUND_STOCHASTIC_B: {
        const vu64 sum = v_shr_u64(frac, v_u64(63 - n)) + draw + draw + 1;
        return v_test_u64(sum, v_u64((uint64_t)2 << n));
    }
    case MPSIM_ROUND_STOCHASTIC_C: {
        const vu64 whole = v_shr_u64(frac, v_u64(64 - n));
        /* more than half of a unit is left, or half and `whole` is odd: bit 63 of the rest */
        const vu64 more = v_shl_u64(frac, v_u64(n)), below = (more << 1) | (whole & 1);
        const vu64 up = v_keep_u64(v_test_u64(below, below), more >> 63);
        return v_test_u64(whole + up + draw, v_u64((uint64_t)1 << n));
    }
    default:
        return m64_and(inexact, m64_not(inexact));
    }
}

V_INLINE vu64 by_sign(m64 negative, const uint64_t code[2])
{
    return v_pick_u64(negative, v_u64(code[1]), v_u64(code[0]));
}

/* The codes of infinities and NaNs; a NaN has the sign of the first operand that is one. */
static vu64 special_code(const mpsim_arith_kernel *k, const block *w, size_t i, vu64 u, m64 negative)
{
    vu64 nan = v_u64(0);
    for (int j = k->operands; j-- > 0;) {
        const vu64 x = v_load_u64(w->x[j] + i);
        nan = v_pick_u64(less_u63(v_u64(INFINITE), x & MAGNITUDE), x, nan);
    }
    return v_pick_u64(less_u63(v_u64(INFINITE), u & MAGNITUDE), by_sign(v_top_u64(nan), k->nan),
                      by_sign(negative, k->infinite));
}

/* The code of half a vector of results; *leave: what the reference must do. */
V_INLINE vu64 code_of_number(const mpsim_arith_kernel *k, int mode, int counting, const block *w,
                             size_t i, vu64 draw, tally *t, m64 *leave)
{
    const vu64 u = v_load_u64(w->z + i), magnitude = u & MAGNITUDE;
    const m64 negative = v_top_u64(u), finite = less_u63(magnitude, v_u64(INFINITE));
    const m64 not_zero = v_test_u64(magnitude, magnitude);
    const vu64 sig = (magnitude & 0xfffffffffffffu) | v_keep_u64(not_zero, v_u64((uint64_t)1 << 52));
    const vi64 above = (vi64)(magnitude >> 52) - (1023 + k->emin); /* exponent above emin */
    const vi64 binade = v_max_i64(above, (vi64){0});
    const vi64 full_drop = binade - above + (52 - k->mbits);
    /* all 53 bits are below the half of 2^63, too */
    const vu64 drop = (vu64)v_min_i64(full_drop, v_i64(63));
    const vu64 low = v_shl_u64((vu64)binade, v_u64((uint64_t)k->mbits)) + v_shr_u64(sig, drop);
    const vu64 rest = sig & (v_shl_u64(v_u64(1), drop) - 1);
    const m64 away =
        rounds_away(mode, (unsigned)k->sr_bits, draw, negative, low, rest, drop);
    const vu64 m = low + v_keep_u64(away, v_u64(1)), normal = v_u64((uint64_t)1 << k->mbits);
    const m64 overflow = less_u63(v_u64(k->max_finite), m);
    const m64 tiny = less_u63(m, normal);
    vu64 code = m | v_keep_u64(negative, v_u64((uint64_t)1 << k->sign_shift));
    m64 to_zero = v_eq_u64(m, v_u64(0)), flushed = m64_and(tiny, m64_not(tiny));
    if (k->flush) {
        flushed = m64_and(tiny, m64_not(to_zero));
        to_zero = tiny;
    }
    code = v_pick_u64(to_zero, by_sign(negative, k->zero), code);
    code = v_pick_u64(overflow, by_sign(negative, k->overflow), code);
    const m64 special = m64_not(finite);
    *leave = m64_and(special, finite);
    if (m64_any(special)) {
        code = v_pick_u64(special, special_code(k, w, i, u, negative), code);
        if (k->payloads)
            *leave = less_u63(v_u64(INFINITE), magnitude);
    }
    if (k->is_unsigned)
        *leave = m64_or(*leave, negative);
    if (mode >= MPSIM_ROUND_STOCHASTIC_A)
        *leave = m64_or(*leave, m64_and(not_zero, v_gt_i64(full_drop, v_i64(63))));
    if (counting) {
        const m64 mine = m64_and(finite, m64_not(*leave)), rounded = v_test_u64(rest, rest);
        const m64 inexact = m64_or(m64_or(rounded, overflow), flushed);
        const vu64 one = v_u64(1);
        t->inexact += v_keep_u64(m64_and(inexact, mine), one);
        t->underflow += v_keep_u64(m64_and(m64_and(to_zero, not_zero), mine), one);
        t->subnormal += v_keep_u64(m64_and(m64_and(tiny, m64_not(to_zero)), mine), one);
        t->overflow += v_keep_u64(m64_and(overflow, mine), one);
        t->nan += v_keep_u64(m64_and(less_u63(v_u64(INFINITE), magnitude), m64_not(*leave)), one);
    }
    return code;
}

V_INLINE void store_codes(void *to, size_t bytes, size_t i, vu32 code)
{
    unsigned char *p = (unsigned char *)to + i * bytes;
    if (bytes == 1)
        v_store_u8(p, code);
    else if (bytes == 2)
        v_store_u16(p, code);
    else
        v_store_u32(p, code);
}

V_INLINE void write_mode(const mpsim_arith_kernel *kernel, int mode, int counting, const block *w,
                         void *codes, uint64_t *left, mpsim_counts *counts, const uint32_t *words,
                         size_t n)
{
    const mpsim_arith_kernel k = *kernel;
    const vu64 none = v_u64(0), unused = v_u64((uint64_t)(32 - k.sr_bits));
    tally t = {none, none, none, none, none};
    for (size_t i = 0; i < n; i += V_LANES) {
        vu64 draw[2] = {none, none}, code[2];
        m64 leave[2];
        if (mode >= MPSIM_ROUND_STOCHASTIC_A) {
            const vu32 word = v_load_u32(words + i);
            draw[0] = v_shr_u64(v_first_u64(word), unused);
            draw[1] = v_shr_u64(v_last_u64(word), unused);
        }
        for (size_t h = 0; h < 2; h++)
            code[h] =
                code_of_number(&k, mode, counting, w, i + h * HALF, draw[h], &t, &leave[h]);
        store_codes(codes, k.bytes, i, v_narrow_u32(code[0], code[1]));
        if (m64_any(m64_or(leave[0], leave[1])))
            left[i / 64] |= (uint64_t)(m64_bits(leave[0]) | m64_bits(leave[1]) << HALF) << i % 64;
    }
    if (counting) {
        counts->inexact += v_sum_u64(t.inexact);
        counts->underflow += v_sum_u64(t.underflow);
        counts->subnormal += v_sum_u64(t.subnormal);
        counts->overflow += v_sum_u64(t.overflow);
        counts->nan += v_sum_u64(t.nan);
    }
}

#define WRITE(mode)                                                                               \
    static void write_##mode(const mpsim_arith_kernel *k, const block *w, void *codes,            \
                             uint64_t *left, mpsim_counts *counts, const uint32_t *words,         \
                             size_t n)                                                            \
    {                                                                                             \
        if (counts)                                                                               \
            write_mode(k, MPSIM_ROUND_##mode, 1, w, codes, left, counts, words, n);               \
        else                                                                                      \
            write_mode(k, MPSIM_ROUND_##mode, 0, w, codes, left, counts, words, n);               \
    }
WRITE(NEAREST_EVEN)
WRITE(NEAREST_AWAY)
WRITE(TOWARD_ZERO)
WRITE(UP)
WRITE(DOWN)
WRITE(TO_ODD)
WRITE(STOCHASTIC_A)
WRITE(STOCHASTIC_B)
WRITE(STOCHASTIC_C)
#undef WRITE

static void (*const write_codes[MPSIM_ROUND_MODES])(const mpsim_arith_kernel *, const block *,
                                                    void *, uint64_t *, mpsim_counts *,
                                                    const uint32_t *, size_t) = {
    [MPSIM_ROUND_NEAREST_EVEN] = write_NEAREST_EVEN, [MPSIM_ROUND_NEAREST_AWAY] = write_NEAREST_AWAY,
    [MPSIM_ROUND_TOWARD_ZERO] = write_TOWARD_ZERO,   [MPSIM_ROUND_UP] = write_UP,
    [MPSIM_ROUND_DOWN] = write_DOWN,                 [MPSIM_ROUND_TO_ODD] = write_TO_ODD,
    [MPSIM_ROUND_STOCHASTIC_A] = write_STOCHASTIC_A, [MPSIM_ROUND_STOCHASTIC_B] = write_STOCHASTIC_B,
    [MPSIM_ROUND_STOCHASTIC_C] = write_STOCHASTIC_C,
};

size_t V_NAME(mpsim_arith_run)(const mpsim_arith_kernel *k, void *codes, uint64_t *left,
                               mpsim_counts *counts, const void *const from[3],
                               const uint32_t *words, size_t n)
{
    block w;
    n -= n % V_LANES;
    for (int i = 0; i < k->operands; i++)
        read_operand(&k->operand[i], w.x[i], from[i], n);
    run_operations(k, &w, n);
    write_codes[k->mode](k, &w, codes, left, counts, words, n);
    return n;
}
