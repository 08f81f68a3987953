/* lanes.h -- the loops of a block in lanes of LANE_BITS: 64, which hold binary64 numbers, or 32, which
 * hold binary32 numbers. Included by vector.h for both. */
#if LANE_BITS == 64
#define REAL double
#define FRACTION 52
#define BIAS 1023
#else
#define REAL float
#define FRACTION 23
#define BIAS 127
#endif
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(name) PASTE(name##_, LANE_BITS)
#define U(word) PASTE(v_##word##_u, LANE_BITS) /* of the vocabulary, for lanes of that width */
#define I(word) PASTE(v_##word##_i, LANE_BITS)
#define F(word) PASTE(v_##word##_f, LANE_BITS)
#define M(word) PASTE(PASTE(m, LANE_BITS), _##word)
#define VU PASTE(vu, LANE_BITS)
#define VI PASTE(vi, LANE_BITS)
#define VF PASTE(vf, LANE_BITS)
#define MASK PASTE(m, LANE_BITS)
#define WORD PASTE(PASTE(uint, LANE_BITS), _t)
#define EACH PASTE(v_u, LANE_BITS)
#define EACH_I PASTE(v_i, LANE_BITS)

enum { NAME(STEP) = 32 * V_LANES / LANE_BITS };

#define STEP NAME(STEP)
#define HIDDEN ((WORD)1 << FRACTION)
#define SIGN ((WORD)1 << (LANE_BITS - 1))
#define MAGNITUDE (SIGN - 1)
#define INFINITE ((WORD)(2 * BIAS + 1) << FRACTION)

/* What happened, in every lane. */
typedef struct NAME(tally) {
    VU inexact, underflow, subnormal, overflow, nan;
} NAME(tally);

typedef struct NAME(block) {
    REAL x[3][MPSIM_ARITH_BLOCK]; /* operands; those that the operation lacks are unset */
    REAL z[MPSIM_ARITH_BLOCK];    /* results, rounded to odd                            */
} NAME(block);

V_INLINE MASK NAME(less)(VU a, VU b) /* both without their top bit */
{
    return I(gt)((VI)b, (VI)a);
}

/* ---- codes to numbers ---- */

V_INLINE VU NAME(number_of_code)(const mpsim_arith_operand *f, int plain, VU code)
{
    const VU m = code & (WORD)f->magnitude;
    const VU normal = U(shl)(m, EACH((WORD)f->significand_shift)) + (WORD)f->rebias;
    const VF below = (VF)(normal + HIDDEN) - (REAL)f->least_normal;
    VU x = U(pick)(NAME(less)(m, EACH((WORD)f->first_normal)), (VU)below, normal);
    /* infinity, or a NaN: not a zero significand */
    x = U(pick)(NAME(less)(EACH((WORD)f->max_finite), m), (m - (WORD)f->infinity) | INFINITE, x);
    if (!plain)
        x = U(keep)(M(not )(NAME(less)(x, EACH((WORD)f->kept))), x);
    x |= U(shl)(code & (WORD)f->sign, EACH((WORD)f->sign_shift));
    if (!plain) {
        const VU used = code & (WORD)(f->magnitude | f->sign);
        x = U(pick)(U(eq)(used, EACH((WORD)f->negative_zero)), EACH(INFINITE | 1), x);
    }
    return x;
}

V_INLINE void NAME(read_as)(const mpsim_arith_operand *operand, int plain, REAL *x, const void *from, size_t n)
{
    const mpsim_arith_operand f = *operand; /* of which nobody else has an address */
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 code = load_codes(from, f.bytes, i);
#if LANE_BITS == 64
        v_store_u64(x + i, NAME(number_of_code)(&f, plain, v_first_u64(code)));
        v_store_u64(x + i + STEP, NAME(number_of_code)(&f, plain, v_last_u64(code)));
#else
        v_store_u32(x + i, NAME(number_of_code)(&f, plain, code));
#endif
    }
}

static void NAME(read_operand)(const mpsim_arith_operand *f, REAL *x, const void *from, size_t n)
{
    if (f->plain)
        NAME(read_as)(f, 1, x, from, n);
    else
        NAME(read_as)(f, 0, x, from, n);
}

/* ---- operations ---- */

/* z, to nearest, of an exact value on the side of z that `rest` has the sign of, if it is not 0 (or
 * NaN, beside an infinity or NaN z): rounded to odd. */
V_INLINE VF NAME(to_odd)(VF z, VF rest)
{
    const MASK inexact = F(gt)((VF)((VU)rest & MAGNITUDE), (VF){0});
    const MASK beyond = M(and)(inexact, U(top)((VU)rest ^ (VU)z));
    const VU cut = (VU)z - U(keep)(beyond, EACH(1)); /* toward zero */
    return (VF)(cut | U(keep)(inexact, EACH(1)));
}

V_INLINE VF NAME(add)(VF a, VF b, int enough)
{
    const VF z = a + b;
    const VF b_part = z - a, a_part = z - b_part;
    return enough ? z : NAME(to_odd)(z, (a - a_part) + (b - b_part));
}

V_INLINE VF NAME(operate)(mpsim_op op, int enough, VF a, VF b, VF c)
{
    VF z, rest;
    switch (op) {
    case MPSIM_OP_ADD:
        return NAME(add)(a, b, enough);
    case MPSIM_OP_SUB:
        return NAME(add)(a, (VF)((VU)b ^ SIGN), enough);
    case MPSIM_OP_MUL:
        return a * b;
    case MPSIM_OP_DIV:
        z = a / b;
        if (enough)
            return z;
        rest = F(fma)((VF)((VU)z ^ SIGN), b, a); /* rest / b is missing */
        return NAME(to_odd)(z, (VF)((VU)rest ^ ((VU)b & SIGN)));
    case MPSIM_OP_SQRT:
        z = F(sqrt)(a);
        return enough ? z : NAME(to_odd)(z, F(fma)((VF)((VU)z ^ SIGN), z, a));
    case MPSIM_OP_FMA:
        return NAME(add)(a * b, c, enough);
    case MPSIM_OP_CONVERT:
    default:
        return a;
    }
}

V_INLINE void NAME(run_operation)(mpsim_op op, int enough, NAME(block) * w, size_t n)
{
    for (size_t i = 0; i < n; i += STEP) {
        const VF a = F(load)(w->x[0] + i), b = F(load)(w->x[1] + i), c = F(load)(w->x[2] + i);
        F(store)(w->z + i, NAME(operate)(op, enough, a, b, c));
    }
}

/* In mode DOWN a sum that is zero is -0 unless both terms are +0. */
static void NAME(zeros_down)(const mpsim_arith_kernel *k, NAME(block) * w, size_t n)
{
    for (size_t i = 0; i < n; i += STEP) {
        const VU a = U(load)(w->x[0] + i), b = U(load)(w->x[1] + i), z = U(load)(w->z + i);
        VU sign = a | b;
        if (k->op == MPSIM_OP_SUB)
            sign = a | ~b;
        else if (k->op == MPSIM_OP_FMA)
            sign = (a ^ b) | U(load)(w->x[2] + i);
        U(store)(w->z + i, z | U(keep)(U(eq)(z & MAGNITUDE, EACH(0)), sign & SIGN));
    }
}

static void NAME(run_operations)(const mpsim_arith_kernel *k, NAME(block) * w, size_t n)
{
    switch (k->op) {
#define RUN(op)                                                                          \
    case op:                                                                             \
        k->enough ? NAME(run_operation)(op, 1, w, n) : NAME(run_operation)(op, 0, w, n); \
        break
        RUN(MPSIM_OP_ADD);
        RUN(MPSIM_OP_SUB);
        RUN(MPSIM_OP_DIV);
        RUN(MPSIM_OP_SQRT);
        RUN(MPSIM_OP_FMA);
#undef RUN
    case MPSIM_OP_MUL:
        NAME(run_operation)(MPSIM_OP_MUL, 1, w, n);
        break;
    case MPSIM_OP_CONVERT:
    default:
        NAME(run_operation)(MPSIM_OP_CONVERT, 1, w, n);
    }
    if (k->down)
        NAME(zeros_down)(k, w, n);
}

/* ---- results to codes ---- */

/* Whether the magnitude is rounded away from zero; the operands are those of mpsim_rounds_away:
 * rest < 2^drop is the fraction times 2^drop. */
V_INLINE MASK NAME(rounds_away)(int mode, unsigned n, VU draw, MASK negative, VU low, VU rest, VU drop)
{
    const VU odd = low & 1, half = U(shl)(EACH(1), drop - 1);
    const MASK inexact = U(test)(rest, rest);
#if LANE_BITS == 64
    const VU frac = U(shl)(rest, EACH(64) - drop);
#endif
    switch (mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return NAME(less)(half, rest + odd);
    case MPSIM_ROUND_NEAREST_AWAY:
        return M(not )(NAME(less)(rest, half));
    case MPSIM_ROUND_UP:
        return M(and)(inexact, M(not )(negative));
    case MPSIM_ROUND_DOWN:
        return M(and)(inexact, negative);
    case MPSIM_ROUND_TO_ODD:
        return M(and)(inexact, U(eq)(odd, EACH(0)));
#if LANE_BITS == 64
    case MPSIM_ROUND_STOCHASTIC_A: {
        const VU sum = U(shr)(frac, EACH(64 - n)) + draw;
        return U(test)(sum, EACH((uint64_t)1 << n));
    }
    case MPSIM_ROUND_STOCHASTIC_B: {
        const VU sum = U(shr)(frac, EACH(63 - n)) + draw + draw + 1;
        return U(test)(sum, EACH((uint64_t)2 << n));
    }
    case MPSIM_ROUND_STOCHASTIC_C: {
        const VU whole = U(shr)(frac, EACH(64 - n));
        /* more than half of a unit is left, or half and `whole` is odd: bit 63 of the rest */
        const VU more = U(shl)(frac, EACH(n)), below = (more << 1) | (whole & 1);
        const VU up = U(keep)(U(test)(below, below), more >> 63);
        return U(test)(whole + up + draw, EACH((uint64_t)1 << n));
    }
#endif
    default:
        (void)n, (void)draw;
        return M(and)(inexact, M(not )(inexact));
    }
}

V_INLINE VU NAME(by_sign)(MASK negative, const uint64_t code[2])
{
    return U(pick)(negative, EACH((WORD)code[1]), EACH((WORD)code[0]));
}

/* The codes of infinities and NaNs; a NaN has the sign of the first operand that is one. */
V_INLINE VU NAME(special_code)(const mpsim_arith_kernel *k, const NAME(block) * w, size_t i, VU u, MASK negative)
{
    VU nan = EACH(0);
    for (int j = k->operands; j-- > 0;) {
        const VU x = U(load)(w->x[j] + i);
        nan = U(pick)(NAME(less)(EACH(INFINITE), x & MAGNITUDE), x, nan);
    }
    return U(pick)(NAME(less)(EACH(INFINITE), u & MAGNITUDE), NAME(by_sign)(U(top)(nan), k->nan),
                   NAME(by_sign)(negative, k->infinite));
}

/* A finite result, rounded. */
typedef struct NAME(rounded) {
    VU m; /* magnitude of the code                         */
    MASK inexact, not_zero;
    MASK far; /* so far below the smallest number that random bits do not fit */
} NAME(rounded);

V_INLINE NAME(rounded) NAME(round)(const mpsim_arith_kernel *k, int mode, VU magnitude, MASK negative, VU draw)
{
    NAME(rounded) r;
    r.not_zero = U(test)(magnitude, magnitude);
    const VU sig = (magnitude & (HIDDEN - 1)) | U(keep)(r.not_zero, EACH(HIDDEN));
    const VI above = (VI)(magnitude >> FRACTION) - (BIAS + k->emin); /* exponent above emin */
    const VI binade = I(max)(above, (VI){0});
    const VI full_drop = binade - above + (FRACTION - k->mbits);
    /* the whole significand is below the half of the largest drop, too */
    const VU drop = (VU)I(min)(full_drop, EACH_I(LANE_BITS - 1));
    const VU low = U(shl)((VU)binade, EACH((WORD)k->mbits)) + U(shr)(sig, drop);
    const VU rest = sig & (U(shl)(EACH(1), drop) - 1);
    const MASK away = NAME(rounds_away)(mode, (unsigned)k->sr_bits, draw, negative, low, rest, drop);
    r.m = low + U(keep)(away, EACH(1));
    r.inexact = U(test)(rest, rest);
    r.far = M(and)(r.not_zero, I(gt)(full_drop, EACH_I(LANE_BITS - 1)));
    return r;
}

/* The code of a vector of results; *leave: what the reference must do. */
V_INLINE VU NAME(code_of_number)(const mpsim_arith_kernel *k, int mode, int counting, const NAME(block) * w, size_t i,
                                 VU draw, NAME(tally) * t, MASK *leave)
{
    const VU u = U(load)(w->z + i), magnitude = u & MAGNITUDE;
    const MASK negative = U(top)(u), finite = NAME(less)(magnitude, EACH(INFINITE));
    const MASK special = M(not )(finite);
    const NAME(rounded) r = NAME(round)(k, mode, magnitude, negative, draw);
    const MASK overflow = NAME(less)(EACH((WORD)k->max_finite), r.m);
    const MASK tiny = NAME(less)(r.m, EACH((WORD)1 << k->mbits));
    VU code = r.m | U(keep)(negative, EACH((WORD)1 << k->sign_shift));
    const MASK to_zero = k->flush ? tiny : U(eq)(r.m, EACH(0));
    if (!k->plain)
        code = U(pick)(to_zero, NAME(by_sign)(negative, k->zero), code);
    code = U(pick)(overflow, NAME(by_sign)(negative, k->overflow), code);
    *leave = M(and)(special, finite);
    if (M(any)(special)) {
        code = U(pick)(special, NAME(special_code)(k, w, i, u, negative), code);
        if (k->payloads)
            *leave = NAME(less)(EACH(INFINITE), magnitude);
    }
    if (k->is_unsigned)
        *leave = M(or)(*leave, negative);
    if (mode >= MPSIM_ROUND_STOCHASTIC_A)
        *leave = M(or)(*leave, r.far);
    if (counting) {
        const MASK mine = M(and)(finite, M(not )(*leave)), gone = M(and)(to_zero, r.not_zero);
        const MASK inexact = M(or)(M(or)(r.inexact, overflow), gone);
        const MASK nan = NAME(less)(EACH(INFINITE), magnitude);
        t->inexact += U(keep)(M(and)(inexact, mine), EACH(1));
        t->underflow += U(keep)(M(and)(gone, mine), EACH(1));
        t->subnormal += U(keep)(M(and)(M(and)(tiny, M(not )(to_zero)), mine), EACH(1));
        t->overflow += U(keep)(M(and)(overflow, mine), EACH(1));
        t->nan += U(keep)(M(and)(nan, M(not )(*leave)), EACH(1));
    }
    return code;
}

V_INLINE uint64_t NAME(sum)(VU a)
{
#if LANE_BITS == 64
    return v_sum_u64(a);
#else
    return v_sum_u64(v_first_u64(a) + v_last_u64(a));
#endif
}

V_INLINE void NAME(write_mode)(const mpsim_arith_kernel *kernel, int mode, int counting, const NAME(block) * w,
                               void *codes, uint64_t *left, mpsim_counts *counts, const uint32_t *words, size_t n)
{
    const mpsim_arith_kernel k = *kernel;
    const VU none = EACH(0);
    NAME(tally) t = {none, none, none, none, none};
    for (size_t i = 0; i < n; i += V_LANES) {
        MASK leave;
#if LANE_BITS == 64
        const VU unused = EACH((uint64_t)(32 - k.sr_bits));
        const vu32 word = mode >= MPSIM_ROUND_STOCHASTIC_A ? v_load_u32(words + i) : v_u32(0);
        const VU first = NAME(code_of_number)(&k, mode, counting, w, i, U(shr)(v_first_u64(word), unused), &t, &leave);
        uint64_t bits = M(bits)(leave);
        const VU last = NAME(code_of_number)(&k, mode, counting, w, i + STEP, U(shr)(v_last_u64(word), unused), &t,
                                             &leave);
        bits |= (uint64_t)M(bits)(leave) << STEP;
        store_codes(codes, k.bytes, i, v_narrow_u32(first, last));
#else
        (void)words;
        const vu32 code = NAME(code_of_number)(&k, mode, counting, w, i, none, &t, &leave);
        const uint64_t bits = M(bits)(leave);
        store_codes(codes, k.bytes, i, code);
#endif
        left[i / 64] |= bits << i % 64;
    }
    if (counting) {
        counts->inexact += NAME(sum)(t.inexact);
        counts->underflow += NAME(sum)(t.underflow);
        counts->subnormal += NAME(sum)(t.subnormal);
        counts->overflow += NAME(sum)(t.overflow);
        counts->nan += NAME(sum)(t.nan);
    }
}

static void NAME(write_codes)(const mpsim_arith_kernel *k, const NAME(block) * w, void *codes, uint64_t *left,
                              mpsim_counts *counts, const uint32_t *words, size_t n)
{
    /* a loop for the common mode, and one for each family: a branch on the mode costs less than its loop to compile */
#define WRITE(mode)                                                     \
    if (counts)                                                         \
        NAME(write_mode)(k, mode, 1, w, codes, left, counts, words, n); \
    else                                                                \
        NAME(write_mode)(k, mode, 0, w, codes, left, counts, words, n)
    if (k->mode == MPSIM_ROUND_NEAREST_EVEN) {
        WRITE(MPSIM_ROUND_NEAREST_EVEN);
    } else if (k->mode < MPSIM_ROUND_STOCHASTIC_A) {
        WRITE(k->mode < MPSIM_ROUND_STOCHASTIC_A ? k->mode : MPSIM_ROUND_TO_ODD);
#if LANE_BITS == 64
    } else {
        WRITE(k->mode >= MPSIM_ROUND_STOCHASTIC_A ? k->mode : MPSIM_ROUND_STOCHASTIC_A);
#endif
    }
#undef WRITE
}

static void NAME(run)(const mpsim_arith_kernel *k, void *codes, uint64_t *left, mpsim_counts *counts,
                      const void *const from[3], const uint32_t *words, size_t n)
{
    NAME(block) w;
    for (int i = 0; i < k->operands; i++)
        NAME(read_operand)(&k->operand[i], w.x[i], from[i], n);
    NAME(run_operations)(k, &w, n);
    NAME(write_codes)(k, &w, codes, left, counts, words, n);
}

#undef REAL
#undef FRACTION
#undef BIAS
#undef PASTE_
#undef PASTE
#undef NAME
#undef U
#undef I
#undef F
#undef M
#undef VU
#undef VI
#undef VF
#undef MASK
#undef WORD
#undef EACH
#undef EACH_I
#undef STEP
#undef HIDDEN
#undef SIGN
#undef MAGNITUDE
#undef INFINITE
