/* walk.cuh -- a dot product by any accumulation model on a device: the definition of mpsim/dot.h, step by step, in integers.
 *
 * The functions follow lib/dot/dot.c on the same scalar arithmetic (lib/arith, lib/dot: scalar.h, staged.h, grouped.h). A
 * thread has no memory for all terms of an addition, so terms are read twice: once for the exponent, once for the sum. A tree of
 * any number of products is added from left to right with one sum of each level waiting; random words are taken by the place that
 * the definition gives to a rounding. */
#pragma once

#include "../kernels/cuda.cuh"

#include "../../lib/dot/grouped.h"
#include "../../lib/dot/staged.h"
#include "../../lib/round/rng.h"

namespace library
{

/* Element k is code number first + k step. */
struct codes_line {
    const mpsim_format *format; /* NULL: none */
    const unsigned char *codes;
    int bytes;
    int64_t first, step;
};

static __device__ __forceinline__ uint64_t load_code(const unsigned char *codes, int bytes, int64_t i)
{
    switch (bytes) {
    case 1:
        return codes[i];
    case 2:
        return reinterpret_cast<const uint16_t *>(codes)[i];
    case 4:
        return reinterpret_cast<const uint32_t *>(codes)[i];
    default:
        return reinterpret_cast<const uint64_t *>(codes)[i];
    }
}

static __device__ __forceinline__ void store_code(unsigned char *codes, int bytes, int64_t i, uint64_t code)
{
    switch (bytes) {
    case 1:
        codes[i] = static_cast<unsigned char>(code);
        break;
    case 2:
        reinterpret_cast<uint16_t *>(codes)[i] = static_cast<uint16_t>(code);
        break;
    case 4:
        reinterpret_cast<uint32_t *>(codes)[i] = static_cast<uint32_t>(code);
        break;
    default:
        reinterpret_cast<uint64_t *>(codes)[i] = code;
    }
}

/* Scales of the blocks of a line, as binary32 numbers. */
struct scales_line {
    const mpsim_format *format; /* that they are numbers of; NULL: all are 1 */
    const float *at;
};

/* A dot product on its way. */
struct walk {
    const mpsim_model *m;
    codes_line a, b;
    scales_line scales_a, scales_b;
    uint64_t seed, stream, index; /* of the next random word */
};

/* ---- roundings ---- */

static __device__ __forceinline__ uint32_t word_at(const walk &w, uint64_t index)
{
    uint32_t four[4];
    mpsim_rng_block(four, w.seed, w.stream, index / 4);
    return four[index % 4];
}

static __device__ __forceinline__ uint32_t draw(walk &w, const mpsim_rounded &p)
{
    return mpsim_is_stochastic(p.rounding.mode) ? word_at(w, w.index++) : 0;
}

static __device__ __forceinline__ uint64_t round_code(const mpsim_rounded &p, mpsim_number x, uint32_t random)
{
    unsigned flags;
    return mpsim_scalar_encode(&p.format, &p.rounding, p.rounding.mode, x, random, &flags);
}

/* Rounded at a place before the result, with the traits of the model; flags: of the operation. */
static __device__ GPU_NOINLINE mpsim_number round_step(const walk &w, const mpsim_rounded &p, mpsim_number x,
                                                       unsigned flags, uint32_t random)
{
    const unsigned traits = w.m->traits;
    if (traits & MPSIM_TRAIT_NAN_MINUS && flags & MPSIM_FLAG_INVALID)
        x.sign = 1;
    if (traits & MPSIM_TRAIT_FLUSH_SUMS && mpsim_scalar_tiny(&p.format, &p.rounding, x, random) & MPSIM_TINY_AFTER)
        x = mpsim_number_make(x.sign, 0, 0);
    return mpsim_scalar_unpack(&p.format, traits & MPSIM_TRAIT_OVERFLOW ? mpsim_round_to_infinity(&p, x, random)
                                                                        : round_code(p, x, random));
}

/* x as it is read: a subnormal number of f is a zero if the model has that trait. */
static __device__ __forceinline__ mpsim_number read_number(const walk &w, const mpsim_format *f, mpsim_number x,
                                                           unsigned trait)
{
    if (!(w.m->traits & trait) || x.kind != MPSIM_NUMBER_FINITE)
        return x;
    if (x.hi != 0 && x.exp < mpsim_emin(f))
        x = mpsim_number_make(x.sign, 0, 0);
    if (x.hi == 0 && w.m->traits & MPSIM_TRAIT_PLUS_ZERO)
        x.sign = 0;
    return x;
}

static __device__ __forceinline__ mpsim_number plus_zero()
{
    return mpsim_number_make(0, 0, 0);
}

/* place(x + y) */
static __device__ __forceinline__ mpsim_number add(const walk &w, const mpsim_rounded &p, mpsim_number x,
                                                   mpsim_number y, uint32_t random)
{
    unsigned flags = 0;
    const mpsim_number sum = mpsim_number_add(x, y, p.rounding.mode == MPSIM_ROUND_DOWN, &flags);
    return round_step(w, p, sum, flags, random);
}

static __device__ __forceinline__ uint64_t code_at(const codes_line &v, int64_t k)
{
    return load_code(v.codes, v.bytes, v.first + k * v.step);
}

/* Operand k; +0 where k is beyond the operands and fills an instruction up. */
static __device__ __forceinline__ mpsim_number operand(const walk &w, const codes_line &v, int64_t k, int64_t end)
{
    return k < end ? read_number(w, v.format, mpsim_scalar_unpack(v.format, code_at(v, k)), MPSIM_TRAIT_FLUSH_OPERANDS)
                   : plus_zero();
}

static __device__ __forceinline__ mpsim_number product_at(const walk &w, int64_t k, int64_t end, uint32_t random)
{
    unsigned flags = 0;
    const mpsim_number product = mpsim_number_mul(operand(w, w.a, k, end), operand(w, w.b, k, end), &flags);
    return round_step(w, w.m->product, product, flags, random);
}

/* ---- chains: products first to first + n - 1, from s ---- */

static __device__ GPU_NOINLINE mpsim_number take_up(walk &w, int64_t k, int64_t end, mpsim_number s)
{
    const mpsim_rounded &acc = w.m->accumulator;
    if (w.m->addition == MPSIM_ADDITION_MULADD) {
        const mpsim_number product = product_at(w, k, end, draw(w, w.m->product));
        return add(w, acc, s, product, draw(w, acc));
    }
    unsigned flags = 0;
    const mpsim_number sum = mpsim_number_fma(operand(w, w.a, k, end), operand(w, w.b, k, end), s,
                                              acc.rounding.mode == MPSIM_ROUND_DOWN, &flags);
    return round_step(w, acc, sum, flags, draw(w, acc));
}

static __device__ mpsim_number chain(walk &w, int64_t first, int64_t n, mpsim_number s)
{
    const int64_t end = first + n;
    const int odd_first = w.m->order == MPSIM_ORDER_ODD_FIRST;
    for (int64_t i = 0; i < n + (odd_first ? n % 2 : 0); i++)
        s = take_up(w, first + (odd_first ? i ^ 1 : i), end, s);
    return s;
}

/* ---- trees ---- */

struct tree_node { /* a number without what is below 64 bits: a code has none */
    uint64_t hi;
    int exp;
    uint8_t kind, sign, level;
};

/* Neighbours of n terms are added, again and again, as these come from left to right. Sums of level l have the random words behind
 * those of the levels below. */
struct tree {
    enum { LEVELS = 50 };
    tree_node waiting[LEVELS];
    int depth;
    int64_t n, taken;
    uint64_t words; /* index of the first sum's */

    __device__ void begin(int64_t terms, uint64_t index)
    {
        depth = 0;
        n = terms;
        taken = 0;
        words = index;
    }

    __device__ uint32_t random(const walk &w, int level, int64_t place) const
    {
        if (!mpsim_is_stochastic(w.m->accumulator.rounding.mode))
            return 0;
        uint64_t before = 0;
        int64_t terms = n;
        for (int l = 1; l < level; l++, terms = terms / 2 + terms % 2)
            before += static_cast<uint64_t>(terms / 2);
        return word_at(w, words + before + static_cast<uint64_t>(place));
    }

    static __device__ mpsim_number number(const tree_node &x)
    {
        mpsim_number y;
        y.kind = x.kind;
        y.sign = x.sign;
        y.exp = x.exp;
        y.hi = x.hi;
        y.lo = 0;
        return y;
    }

    __device__ void put(mpsim_number x, int level)
    {
        const tree_node node = {x.hi, x.exp, static_cast<uint8_t>(x.kind), static_cast<uint8_t>(x.sign),
                                static_cast<uint8_t>(level)};
        waiting[depth++] = node;
    }

    /* The two last become one. */
    __device__ void merge(const walk &w)
    {
        const tree_node left = waiting[depth - 2], right = waiting[depth - 1];
        const int level = left.level + 1;
        depth -= 2;
        put(add(w, w.m->accumulator, number(left), number(right), random(w, level, (taken - 1) >> level)), level);
    }

    __device__ void take(const walk &w, mpsim_number x)
    {
        put(x, 0);
        for (int64_t i = taken++; i & 1; i >>= 1)
            merge(w);
    }

    __device__ mpsim_number end(walk &w)
    {
        while (depth > 1)
            merge(w);
        if (mpsim_is_stochastic(w.m->accumulator.rounding.mode))
            w.index = words + static_cast<uint64_t>(n - 1);
        return number(waiting[0]);
    }
};

/* With the trait FILLED the result is what comes of the products alone. */
static __device__ mpsim_number tree_of(walk &w, int64_t first, int64_t n, mpsim_number s)
{
    const int filled = w.m->traits & MPSIM_TRAIT_FILLED, draws = mpsim_is_stochastic(w.m->product.rounding.mode);
    const int64_t terms = filled ? w.m->chunk : n;
    const uint64_t begin = w.index;
    tree t;
    t.begin(terms, begin + static_cast<uint64_t>(draws ? terms : 0));
    for (int64_t i = 0; i < terms; i++)
        t.take(w, product_at(w, first + i, first + n, draws ? word_at(w, begin + static_cast<uint64_t>(i)) : 0));
    w.index = t.words;
    const mpsim_number sum = t.end(w);
    return filled ? sum : add(w, w.m->accumulator, s, sum, draw(w, w.m->accumulator));
}

/* One after the other, of `length` products each. */
static __device__ mpsim_number trees(walk &w, int64_t first, int64_t n, mpsim_number s)
{
    const int64_t length = w.m->length ? w.m->length : n;
    for (int64_t i = 0; i < n; i += length)
        s = tree_of(w, first + i, n - i < length ? n - i : length, s);
    return s;
}

/* How many words the sums of all lanes take: the tree's come behind them. */
static __device__ uint64_t words_of_lanes(const walk &w, int64_t n)
{
    const int each = (w.m->addition == MPSIM_ADDITION_MULADD && mpsim_is_stochastic(w.m->product.rounding.mode)) +
                     mpsim_is_stochastic(w.m->accumulator.rounding.mode);
    return static_cast<uint64_t>(each) * static_cast<uint64_t>(n);
}

static __device__ mpsim_number lanes(walk &w, int64_t first, int64_t n)
{
    const int length = w.m->length;
    tree t;
    t.begin(length, w.index + words_of_lanes(w, n));
    for (int l = 0; l < length; l++) {
        mpsim_number s = plus_zero();
        for (int64_t k = first + l; k < first + n; k += length)
            s = take_up(w, k, first + n, s);
        t.take(w, s);
    }
    return t.end(w);
}

/* ---- exact sums ---- */

/* Two's complement, limb 0 from 2^LOWEST on: products of two binary64 numbers and carries. */
struct exact_sum {
    enum { LIMBS = 138, LOWEST = -2176 };
    uint32_t limb[LIMBS];

    __device__ void clear()
    {
        for (int i = 0; i < LIMBS; i++)
            limb[i] = 0;
    }

    __device__ void deposit(int sign, uint64_t word, int at)
    {
        const int n = at & 31;
        uint32_t part[3] = {static_cast<uint32_t>(word << n), static_cast<uint32_t>(word << n >> 32),
                            n ? static_cast<uint32_t>(word >> (64 - n)) : 0};
        uint64_t carry = sign ? 1 : 0;
        for (int i = at >> 5, j = 0; i < LIMBS; i++, j++) {
            const uint32_t x = j < 3 ? part[j] : 0;
            carry += static_cast<uint64_t>(limb[i]) + (sign ? ~x : x);
            limb[i] = static_cast<uint32_t>(carry);
            carry >>= 32;
            if (j >= 2 && carry == (sign ? 1u : 0u))
                break;
        }
    }

    /* (-1)^sign hi:lo 2^exp; bits below 2^LOWEST are zeros. */
    __device__ void add(int sign, uint64_t hi, uint64_t lo, int exp)
    {
        mpsim_u128 m = {hi, lo};
        if (exp < LOWEST) {
            m = mpsim_u128_right_sticky(m, LOWEST - exp);
            exp = LOWEST;
        }
        deposit(sign, m.lo, exp - LOWEST);
        if (m.hi)
            deposit(sign, m.hi, exp - LOWEST + 64);
    }

    __device__ void negate()
    {
        uint64_t carry = 1;
        for (int i = 0; i < LIMBS; i++) {
            carry += static_cast<uint32_t>(~limb[i]);
            limb[i] = static_cast<uint32_t>(carry);
            carry >>= 32;
        }
    }

    /* The sum with its highest 97 or more bits, and a sticky bit for the rest. */
    __device__ mpsim_number number()
    {
        const int sign = limb[LIMBS - 1] >> 31;
        int top = LIMBS - 1;
        if (sign)
            negate();
        while (top > 0 && limb[top] == 0)
            top--;
        mpsim_u128 m = {0, 0};
        for (int i = 0; i < 4; i++)
            m = mpsim_u128_add(mpsim_u128_left(m, 32), mpsim_u128{0, top - i >= 0 ? limb[top - i] : 0u});
        if (m.hi == 0 && m.lo == 0)
            return plus_zero();
        uint32_t rest = 0;
        for (int i = top - 4; i >= 0; i--)
            rest |= limb[i];
        mpsim_number x = mpsim_number_wide(sign, m, 32 * (top - 3) + LOWEST + 127);
        x.lo |= rest != 0;
        return x;
    }
};

/* The exact sum of the products and s, not rounded; `down` says how it will be. With the trait FILLED s is
 * not there. */
static __device__ mpsim_number exact(const walk &w, int64_t first, int64_t n, mpsim_number s, int down, unsigned *flags)
{
    const int filled = w.m->traits & MPSIM_TRAIT_FILLED;
    int nan = s.kind == MPSIM_NUMBER_NAN, infinities[2] = {0, 0}, signs[2] = {0, 0};
    exact_sum sum;
    sum.clear();
    signs[s.sign] = !filled;
    signs[0] |= filled && n < static_cast<int64_t>(w.m->chunk);
    if (s.kind == MPSIM_NUMBER_INF)
        infinities[s.sign] = 1;
    else if (!nan)
        sum.add(s.sign, s.hi, 0, s.exp - 127);
    for (int64_t k = first; k < first + n; k++) {
        const mpsim_number x = operand(w, w.a, k, first + n), y = operand(w, w.b, k, first + n);
        signs[x.sign ^ y.sign] = 1;
        if (x.kind == MPSIM_NUMBER_FINITE && y.kind == MPSIM_NUMBER_FINITE) {
            uint64_t hi, lo;
            mpsim_mul64(&hi, &lo, x.hi, y.hi);
            sum.add(x.sign ^ y.sign, hi, lo, x.exp + y.exp - 126);
        } else if (x.kind == MPSIM_NUMBER_NAN || y.kind == MPSIM_NUMBER_NAN || mpsim_number_is_zero(x) ||
                   mpsim_number_is_zero(y)) {
            nan = 1;
        } else {
            infinities[x.sign ^ y.sign] = 1;
        }
    }
    if (nan || (infinities[0] && infinities[1]))
        return mpsim_number_invalid(flags);
    if (infinities[0] || infinities[1])
        return mpsim_number_infinity(infinities[1]);
    mpsim_number x = sum.number();
    if (x.hi == 0)
        x.sign = w.m->length ? 0 : signs[0] && signs[1] ? down : signs[1];
    return x;
}

/* The same, `length` products at a time. */
static __device__ mpsim_number additions_exact(walk &w, int64_t first, int64_t n, mpsim_number s)
{
    const mpsim_rounded &to = w.m->accumulator;
    const int64_t length = w.m->length ? w.m->length : n;
    for (int64_t i = 0; i < n; i += length) {
        unsigned flags = 0;
        const mpsim_number sum = exact(w, first + i, n - i < length ? n - i : length, s,
                                       to.rounding.mode == MPSIM_ROUND_DOWN, &flags);
        s = round_step(w, to, sum, flags, draw(w, to));
    }
    return s;
}

/* ---- additions of `length` products: FUSED and its kin ---- */

static __device__ __forceinline__ mpsim_term scale_at(const scales_line &v, int64_t q)
{
    mpsim_rounding r;
    unsigned flags;
    mpsim_term one = {MPSIM_NUMBER_FINITE, 0, 0, 1};
    if (!v.format)
        return one;
    memset(&r, 0, sizeof r); /* to nearest even */
    r.scale = 1;
    const uint64_t code = mpsim_scalar_encode(v.format, &r, MPSIM_ROUND_NEAREST_EVEN, mpsim_number_f32(v.at[q]), 0,
                                              &flags);
    return mpsim_scalar_term(v.format, MPSIM_MODEL_OWN_EMIN, code & mpsim_magnitude_mask(v.format));
}

/* An operand times a scale that is a power of two. */
static __device__ __forceinline__ mpsim_term scaled(mpsim_term t, mpsim_term scale)
{
    if (scale.kind != MPSIM_NUMBER_FINITE)
        t.kind = MPSIM_NUMBER_NAN;
    t.e += scale.e;
    return t;
}

/* Products i to end - 1 of a chunk of n from `first` on. */
struct addends {
    const walk *w;
    int64_t first, n, i, end;

    /* 0: a zero that fills up a chunk */
    __device__ int terms(int64_t j, mpsim_term *a, mpsim_term *b, int64_t *place) const
    {
        const mpsim_model *m = w->m;
        const int least = m->addition == MPSIM_ADDITION_FUSED ? m->operand_emin : int(MPSIM_MODEL_OWN_EMIN);
        const int64_t k = m->order == MPSIM_ORDER_QUADS ? static_cast<int64_t>(mpsim_fused_quads(j, m->chunk)) : j;
        if (k >= n)
            return 0;
        *place = first + k;
        *a = mpsim_scalar_term(w->a.format, least, code_at(w->a, *place));
        *b = mpsim_scalar_term(w->b.format, least, code_at(w->b, *place));
        if (w->scales_a.format && m->addition != MPSIM_ADDITION_GROUPED) {
            *a = scaled(*a, scale_at(w->scales_a, *place / m->block));
            *b = scaled(*b, scale_at(w->scales_b, *place / m->block));
        }
        return 1;
    }
};

static __device__ __forceinline__ void look_at(mpsim_fused_terms *t, const mpsim_fused *p, const mpsim_term &a,
                                               const mpsim_term &b)
{
    const mpsim_fused_terms one = mpsim_fused_look(p, &a, &b, 1, plus_zero(), 0);
    t->nan |= one.nan;
    t->infinities[0] |= one.infinities[0];
    t->infinities[1] |= one.infinities[1];
    t->any |= one.any;
    t->largest = one.largest > t->largest ? one.largest : t->largest;
}

/* 1: the sum is no finite number, *x. */
static __device__ __forceinline__ int ends_early(const mpsim_fused_terms &t, mpsim_number *x, unsigned *flags)
{
    if (t.nan || (t.infinities[0] && t.infinities[1])) {
        *x = mpsim_number_invalid(flags);
        return 1;
    }
    if (t.infinities[0] || t.infinities[1]) {
        *x = mpsim_number_infinity(t.infinities[1]);
        return 1;
    }
    return 0;
}

static __device__ __forceinline__ mpsim_number number_of(int64_t total, int unit)
{
    return mpsim_number_make(total < 0, total < 0 ? -static_cast<uint64_t>(total) : static_cast<uint64_t>(total), unit);
}

static __device__ mpsim_number fused(const mpsim_fused &p, const addends &x, mpsim_number s, int emin, unsigned *flags)
{
    mpsim_fused_terms t = mpsim_fused_look(&p, nullptr, nullptr, 0, s, emin);
    mpsim_term a, b;
    mpsim_number early;
    int64_t place;
    for (int64_t j = x.i; j < x.end; j++)
        if (x.terms(j, &a, &b, &place))
            look_at(&t, &p, a, b);
    if (ends_early(t, &early, flags))
        return early;
    if (!t.any)
        return plus_zero();
    const int unit = t.largest - p.fraction;
    int64_t total = mpsim_fused_accumulator(&p, s, unit);
    for (int64_t j = x.i; j < x.end; j++)
        if (x.terms(j, &a, &b, &place))
            total += mpsim_fused_product(&p, a, b, unit);
    return number_of(total, unit);
}

static __device__ mpsim_number staged(const mpsim_staged &p, const addends &x, mpsim_number s, int emin,
                                      unsigned *flags)
{
    const mpsim_fused look = {MPSIM_ALIGN_TRUNCATE, 0, p.fraction, p.emin, p.bits};
    mpsim_fused_terms t = mpsim_fused_look(&look, nullptr, nullptr, 0, s, emin);
    mpsim_staged_sums sums = mpsim_staged_none();
    mpsim_term a, b;
    mpsim_number early;
    int64_t place, count = 0;
    for (int64_t j = x.i; j < x.end; j++) {
        if (!x.terms(j, &a, &b, &place))
            continue;
        look_at(&t, &look, a, b);
        if (a.kind == MPSIM_NUMBER_FINITE && b.kind == MPSIM_NUMBER_FINITE && mpsim_staged_beyond(&p, a, b))
            t.infinities[a.sign ^ b.sign] = 1;
        mpsim_staged_look(&sums, count++ % p.ways, a, b);
    }
    if (ends_early(t, &early, flags))
        return early;
    count = 0;
    for (int64_t j = x.i; j < x.end; j++)
        if (x.terms(j, &a, &b, &place))
            mpsim_staged_take(&p, &sums, count++ % p.ways, a, b);
    return mpsim_staged_finish(&p, &sums, s, emin);
}

static __device__ mpsim_scale_pair pair_at(const walk &w, int64_t k)
{
    const mpsim_term x = scale_at(w.scales_a, k / w.m->block), y = scale_at(w.scales_b, k / w.m->block);
    const int bits_x = w.scales_a.format ? w.scales_a.format->mbits : 0;
    const int bits_y = w.scales_b.format ? w.scales_b.format->mbits : 0;
    const mpsim_scale_pair p = {x.kind != MPSIM_NUMBER_FINITE || y.kind != MPSIM_NUMBER_FINITE, x.e + y.e,
                                bits_x + bits_y, x.s * y.s};
    return p;
}

/* Group g of an addition as a term; *t receives what is no number in it. */
static __device__ mpsim_group_term group_at(const mpsim_grouped &p, const addends &x, int64_t first,
                                            mpsim_fused_terms *t)
{
    mpsim_term a, b;
    int64_t place = 0;
    const int64_t end = first + p.group < x.end ? first + p.group : x.end;
    (void)x.terms(first, &a, &b, &place);
    const mpsim_scale_pair scales = pair_at(*x.w, place);
    mpsim_group_term g = mpsim_grouped_none(&p, scales);
    t->nan |= scales.nan;
    for (int64_t j = first; j < end; j++) {
        (void)x.terms(j, &a, &b, &place);
        look_at(t, &p.fused, a, b);
        t->nan |= scales.s == 0 && (a.kind == MPSIM_NUMBER_INF || b.kind == MPSIM_NUMBER_INF);
        mpsim_grouped_take(&p, &g, a, b, scales);
    }
    g.sum *= static_cast<int64_t>(scales.s);
    return g;
}

static __device__ mpsim_number grouped(const mpsim_grouped &p, const addends &x, mpsim_number s, int emin,
                                       unsigned *flags)
{
    mpsim_fused_terms t = mpsim_fused_look(&p.fused, nullptr, nullptr, 0, s, emin);
    mpsim_number early;
    int any = t.any, largest = t.largest;
    for (int64_t j = x.i; j < x.end; j += p.group) {
        const mpsim_group_term g = group_at(p, x, j, &t);
        any |= g.any;
        largest = g.any && g.e > largest ? g.e : largest;
    }
    if (ends_early(t, &early, flags))
        return early;
    if (!any)
        return plus_zero();
    const int unit = largest - p.fused.fraction;
    int64_t total = mpsim_fused_accumulator(&p.fused, s, unit);
    for (int64_t j = x.i; j < x.end; j += p.group) {
        const mpsim_group_term g = group_at(p, x, j, &t);
        if (g.any) /* zeros have no place, however large their scales */
            total += mpsim_fused_align(p.fused.alignment, g.sum < 0,
                                       g.sum < 0 ? -static_cast<uint64_t>(g.sum) : static_cast<uint64_t>(g.sum),
                                       g.w - unit);
    }
    return number_of(total, unit);
}

/* The code of one addition. */
static __device__ uint64_t addition(walk &w, const addends &x, mpsim_number s, int emin)
{
    const mpsim_model *m = w.m;
    const mpsim_rounded &to = m->accumulator;
    const mpsim_format *fa = w.a.format, *fb = w.b.format;
    const mpsim_fused f = {m->alignment, m->normalised, m->fraction, m->floor, fa->mbits + fb->mbits};
    unsigned flags = 0;
    if (m->addition == MPSIM_ADDITION_STAGED) {
        const mpsim_staged p = {m->ways,
                                m->fraction,
                                m->kept,
                                m->drop,
                                f.bits,
                                mpsim_emin(&to.format),
                                static_cast<int>(to.format.max_finite >> to.format.mbits) - to.format.bias};
        const mpsim_number sum = staged(p, x, s, emin, &flags);
        return round_code(to, sum, draw(w, to));
    }
    mpsim_number sum;
    if (m->addition == MPSIM_ADDITION_GROUPED) {
        const mpsim_grouped p = {f, m->group, mpsim_emin(fa), mpsim_emin(fb)};
        sum = grouped(p, x, s, emin, &flags);
    } else {
        sum = fused(f, x, s, emin, &flags);
    }
    return mpsim_fused_round(&to, sum, draw(w, to));
}

static __device__ mpsim_number additions(walk &w, int64_t first, int64_t n, mpsim_number s, int emin)
{
    const mpsim_model *m = w.m;
    const int64_t total = m->order == MPSIM_ORDER_QUADS ? static_cast<int64_t>(m->chunk) : n;
    for (int64_t i = 0; i < total; i += m->length) {
        const addends x = {&w, first, n, i, i + m->length < total ? i + m->length : total};
        s = mpsim_scalar_unpack(&m->accumulator.format, addition(w, x, s, emin));
        emin = mpsim_emin(&m->accumulator.format);
    }
    return s;
}

/* ---- a dot product ---- */

/* What a kernel has code for. */
enum walk_kind { WALK_CHAINS, WALK_TREES, WALK_EXACT, WALK_ADDITIONS, WALK_KINDS };

static inline walk_kind walk_kind_of(const mpsim_model *m)
{
    return m->addition == MPSIM_ADDITION_EXACT                                 ? WALK_EXACT
           : m->addition >= MPSIM_ADDITION_FUSED                               ? WALK_ADDITIONS
           : m->order == MPSIM_ORDER_PAIRWISE || m->order == MPSIM_ORDER_LANES ? WALK_TREES
                                                                               : WALK_CHAINS;
}

template <walk_kind KIND>
static __device__ __forceinline__ mpsim_number walk_chunk(walk &w, int64_t first, int64_t n, mpsim_number s, int emin)
{
    if constexpr (KIND == WALK_EXACT)
        return additions_exact(w, first, n, s);
    else if constexpr (KIND == WALK_ADDITIONS)
        return additions(w, first, n, s, emin);
    else if constexpr (KIND == WALK_TREES)
        return w.m->order == MPSIM_ORDER_LANES ? lanes(w, first, n) : trees(w, first, n, s);
    else
        return chain(w, first, n, s);
}

/* The code of c + products first to first + n - 1. */
template <walk_kind KIND>
static __device__ uint64_t walk_dot(walk &w, int64_t first, int64_t n, mpsim_number c)
{
    const mpsim_model *m = w.m;
    const int64_t end = first + n;
    mpsim_number s = n ? read_number(w, &m->result.format, c, MPSIM_TRAIT_FLUSH_SUMS) : c;
    if (KIND == WALK_EXACT && m->chunk == 0 && m->length == 0) {
        unsigned flags = 0;
        s = exact(w, first, n, s, m->result.rounding.mode == MPSIM_ROUND_DOWN, &flags);
    } else if (m->chunk == 0) {
        s = n ? walk_chunk<KIND>(w, first, n, s, mpsim_emin(&m->result.format)) : s;
    } else {
        for (int64_t k = first; k < end; k += m->chunk) {
            const int64_t some = end - k < static_cast<int64_t>(m->chunk) ? end - k : m->chunk;
            const mpsim_number t = walk_chunk<KIND>(w, k, some, plus_zero(), mpsim_emin(&m->accumulator.format));
            s = add(w, m->outer, s, t, draw(w, m->outer));
        }
    }
    return round_code(m->result, s, draw(w, m->result));
}

} // namespace library
