/* t-exact.c -- the integers behind arithmetic against GMP: numbers of many words in fixed point, of 128 bits, and the exact
 * operations on unpacked numbers with every bit of a significand in use. */
#include "support/support.h"

#include "lib/arith/fixed.h"
#include "lib/arith/scalar.h"

#include <gmp.h>

enum { ROUNDS = 40 };

/* ---- fixed point ---- */

static mpsim_fixed any_fixed(int n, uint64_t *state)
{
    mpsim_fixed a = mpsim_fixed_integer(n, 0);
    for (int i = 0; i < n; i++) {
        const uint64_t w = test_random(state);
        a.limb[i] = w % 5 == 0 ? UINT32_MAX : w % 5 == 1 ? 0 : (uint32_t)(w >> 32); /* carries go far */
    }
    for (int i = n; i < MPSIM_FIXED_LIMBS; i++)
        a.limb[i] = 0xdeadbeef; /* of no operation's concern */
    return a;
}

static void import(mpz_t to, const mpsim_fixed *a)
{
    mpz_import(to, (size_t)a->n, -1, sizeof a->limb[0], 0, 0, a->limb);
}

/* The words of a are those of the integer, cut above, and what lies behind them is untouched. */
static void same_fixed(const mpsim_fixed *a, mpz_t want, int line)
{
    mpz_t got;
    mpz_init(got);
    import(got, a);
    mpz_fdiv_r_2exp(want, want, 32 * (mp_bitcnt_t)a->n);
    ck_assert_msg(mpz_cmp(got, want) == 0, "line %d, %d words", line, a->n);
    mpz_clear(got);
    for (int i = a->n; i < MPSIM_FIXED_LIMBS; i++)
        ck_assert_msg(a->limb[i] == 0xdeadbeef, "line %d, word %d of %d", line, i, a->n);
}

typedef struct pair {
    mpsim_fixed a, b;
    mpz_t x, y;
} pair;

static void sums(pair *p)
{
    mpsim_fixed c = p->a;
    mpz_t z;
    mpz_init(z);
    mpz_add(z, p->x, p->y);
    mpsim_fixed_add(&c, &p->b);
    same_fixed(&c, z, __LINE__);
    c = p->a;
    mpz_sub(z, p->x, p->y);
    mpsim_fixed_subtract(&c, &p->b);
    same_fixed(&c, z, __LINE__);
    ck_assert_int_eq(mpsim_fixed_less(&p->a, &p->b), mpz_cmp(p->x, p->y) < 0);
    ck_assert_int_eq(mpsim_fixed_less(&p->a, &p->a), 0);
    ck_assert_int_eq(mpsim_fixed_is_zero(&p->a), mpz_sgn(p->x) == 0);
    mpz_clear(z);
}

static void products(pair *p, uint32_t by)
{
    mpsim_fixed c = p->a;
    mpz_t z;
    mpz_init(z);
    mpz_mul(z, p->x, p->y);
    mpz_fdiv_q_2exp(z, z, 32 * (mp_bitcnt_t)(c.n - 1));
    mpsim_fixed_multiply(&c, &p->b);
    same_fixed(&c, z, __LINE__);
    c = p->a;
    mpz_mul_ui(z, p->x, by);
    mpsim_fixed_multiply_by(&c, by);
    same_fixed(&c, z, __LINE__);
    c = p->a;
    mpz_fdiv_q_ui(z, p->x, by | 1);
    mpsim_fixed_divide_by(&c, by | 1);
    same_fixed(&c, z, __LINE__);
    mpz_clear(z);
}

/* A quotient below 2: of operands below 2^31, since a remainder is doubled in the same words. */
static void quotient(pair *p)
{
    const int top = p->a.n - 1;
    p->a.limb[top] &= 0x3fffffff;
    p->b.limb[top] = (p->b.limb[top] & 0x3fffffff) | 0x20000000;
    import(p->x, &p->a);
    import(p->y, &p->b);
    mpz_mul_2exp(p->x, p->x, 32 * (mp_bitcnt_t)top);
    mpz_fdiv_q(p->x, p->x, p->y);
    mpsim_fixed c = p->a;
    mpsim_fixed_divide(&c, &p->b);
    for (int i = c.n; i < MPSIM_FIXED_LIMBS; i++)
        c.limb[i] = 0xdeadbeef; /* a quotient is a new number */
    same_fixed(&c, p->x, __LINE__);
}

static void shifts(pair *p, int bits)
{
    mpsim_fixed c = p->a;
    mpz_t z;
    mpz_init(z);
    mpz_fdiv_q_2exp(z, p->x, (mp_bitcnt_t)bits);
    mpsim_fixed_shift(&c, bits);
    same_fixed(&c, z, __LINE__);
    for (int i = 0; i < 32 * p->a.n; i++)
        ck_assert_int_eq(mpsim_fixed_bit(&p->a, i), mpz_tstbit(p->x, (mp_bitcnt_t)i));
    mpz_clear(z);
}

/* m 2^e, of which the words have a part. */
static void power(int n, uint64_t m, int e)
{
    const mpsim_fixed a = mpsim_fixed_power(n, m, e);
    mpz_t want, got;
    mpz_init(got);
    mpz_init_set_ui(want, m);
    const int up = 32 * (n - 1) + e;
    if (up >= 0)
        mpz_mul_2exp(want, want, (mp_bitcnt_t)up);
    else
        mpz_fdiv_q_2exp(want, want, (mp_bitcnt_t)-up);
    mpz_fdiv_r_2exp(want, want, 32 * (mp_bitcnt_t)n);
    import(got, &a);
    ck_assert_msg(mpz_cmp(got, want) == 0, "%d words, e %d", n, e);
    mpz_clears(want, got, (mpz_ptr)NULL);
}

CASE("exact", 10);

TEST(words_in_fixed_point_are_integers)
{
    uint64_t state = test_seed();
    for (int k = 0; k < 5 * ROUNDS; k++) {
        const int n = k % 5 == 4 ? MPSIM_FIXED_LIMBS : 1 + (int)(test_random(&state) % (MPSIM_FIXED_LIMBS - 1));
        pair p = {any_fixed(n, &state), any_fixed(n, &state), {{0, 0, NULL}}, {{0, 0, NULL}}};
        for (int same = n; k % 3 == 0 && same-- > n / 2;) /* which differ in the low words alone */
            p.b.limb[same] = p.a.limb[same];
        for (int i = n; i < MPSIM_FIXED_LIMBS; i++)
            p.b.limb[i] = 0;
        mpz_inits(p.x, p.y, (mpz_ptr)NULL);
        import(p.x, &p.a);
        import(p.y, &p.b);
        sums(&p);
        products(&p, (uint32_t)test_random(&state));
        shifts(&p, (int)(test_random(&state) % (32 * (uint64_t)n + 40)));
        power(n, test_random(&state), (int)(test_random(&state) % (32 * (uint64_t)n + 64)) - 32 * n - 32);
        quotient(&p);
        mpz_clears(p.x, p.y, (mpz_ptr)NULL);
    }
    const mpsim_fixed zero = mpsim_fixed_integer(3, 0), seven = mpsim_fixed_integer(3, 7);
    ck_assert(mpsim_fixed_is_zero(&zero) && !mpsim_fixed_is_zero(&seven) && seven.limb[2] == 7);
}

/* ---- 128 bits ---- */

__extension__ typedef unsigned __int128 u128;

static u128 joined(mpsim_u128 a)
{
    return (u128)a.hi << 64 | a.lo;
}

TEST(integers_of_128_bits)
{
    uint64_t state = test_seed();
    for (int k = 0; k < 200 * ROUNDS; k++) {
        const mpsim_u128 a = {k % 11 ? test_random(&state) >> k % 64 : 0, k % 7 ? test_random(&state) : 0};
        const mpsim_u128 b = {k % 4 ? test_random(&state) : a.hi, k % 5 ? test_random(&state) : UINT64_MAX};
        const u128 x = joined(a), y = joined(b);
        const int n = k % 130;
        ck_assert(joined(mpsim_u128_add(a, b)) == (u128)(x + y) && joined(mpsim_u128_sub(a, b)) == (u128)(x - y));
        ck_assert(mpsim_u128_less(a, b) == (x < y) && !mpsim_u128_less(a, a));
        if (n < 128)
            ck_assert(joined(mpsim_u128_left(a, n)) == (u128)(x << n));
        const u128 down = n < 128 ? x >> n : 0, back = n < 128 ? (u128)(down << n) : 0;
        ck_assert_msg(joined(mpsim_u128_right_sticky(a, n)) == (down | (back != x)), "right %d", n);
        if (x) {
            const mpsim_number w = mpsim_number_wide(k & 1, a, 5);
            const u128 m = (u128)w.hi << 64 | w.lo;
            ck_assert(w.kind == MPSIM_NUMBER_FINITE && w.sign == (k & 1) && w.hi >> 63 && w.exp <= 5);
            ck_assert(m >> (5 - w.exp) == x && (u128)(x << (5 - w.exp)) == m);
        }
    }
}

/* ---- operations ---- */

enum {
    KEPT = 94
}; /* bits of a result that are its own (a quotient has 95); below them any bit says that there is more */

/* |v| 2^-scale is the number: its first KEPT bits, and whether others follow. */
static void same_number(mpsim_number got, const mpz_t v, mp_bitcnt_t scale, int more, const char *what)
{
    mpz_t m, cut;
    mpz_inits(m, cut, (mpz_ptr)NULL);
    mpz_abs(m, v);
    const int bits = (int)mpz_sizeinbase(m, 2), exp = bits - 1 - (int)scale;
    ck_assert_msg(got.kind == MPSIM_NUMBER_FINITE && got.sign == (mpz_sgn(v) < 0) && got.exp == exp,
                  "%s: exponent %d, not %d", what, got.exp, exp);
    mpz_mul_2exp(m, m, 256);
    for (int i = 0; i < KEPT; i++) {
        const int bit = (int)((i < 64 ? got.hi >> (63 - i) : got.lo >> (127 - i)) & 1);
        ck_assert_msg(bit == mpz_tstbit(m, (mp_bitcnt_t)(bits - 1 + 256 - i)), "%s: bit %d", what, i);
    }
    mpz_fdiv_r_2exp(cut, m, (mp_bitcnt_t)(bits + 256 - KEPT));
    ck_assert_msg((got.lo << (KEPT - 64) != 0) == (more || mpz_sgn(cut) != 0), "%s: what follows", what);
    mpz_clears(m, cut, (mpz_ptr)NULL);
}

/* An operand of 53 bits, few of them set at times, and as an integer times 2^-600. */
static mpsim_number operand(uint64_t *state, int near, mpz_t as)
{
    const uint64_t w = test_random(state);
    uint64_t m = test_random(state) >> 11 >> w % 53;
    m = w >> 8 & 1 ? m | 1 : (uint64_t)1 << w % 53;
    const int e = near + (int)(w >> 20 & 0x7f) - 64, sign = (int)(w >> 40 & 1);
    mpz_set_ui(as, m);
    mpz_mul_2exp(as, as, (mp_bitcnt_t)(600 + e));
    if (sign)
        mpz_neg(as, as);
    return mpsim_number_make(sign, m, e);
}

static void one_of_each(uint64_t *state, int near)
{
    unsigned flags = 0;
    mpz_t x, y, z, q;
    mpz_inits(x, y, z, q, (mpz_ptr)NULL);
    const mpsim_number a = operand(state, 0, x), b = operand(state, near, y), c = operand(state, 2 * near, z);
    mpz_add(q, x, y);
    if (mpz_sgn(q))
        same_number(mpsim_number_add(a, b, 0, &flags), q, 600, 0, "sum");
    mpz_mul(q, x, y);
    same_number(mpsim_number_mul(a, b, &flags), q, 1200, 0, "product");
    mpz_mul_2exp(z, z, 600);
    mpz_add(q, q, z);
    if (mpz_sgn(q))
        same_number(mpsim_number_fma(a, b, c, 0, &flags), q, 1200, 0, "fma");
    mpz_mul_2exp(x, x, 1000);
    mpz_tdiv_qr(q, z, x, y);
    same_number(mpsim_number_div(a, b, &flags), q, 1000, mpz_sgn(z) != 0, "quotient");
    mpz_abs(y, y);
    mpz_mul_2exp(y, y, 1000); /* in units of 2^-1600 */
    mpsim_number radicand = b;
    radicand.sign = 0;
    mpz_sqrtrem(q, z, y);
    same_number(mpsim_number_sqrt(radicand, &flags), q, 800, mpz_sgn(z) != 0, "root");
    ck_assert_uint_eq(flags, 0);
    mpz_clears(x, y, z, q, (mpz_ptr)NULL);
}

TEST(operations_keep_every_bit)
{
    uint64_t state = test_seed();
    for (int k = 0; k < 25 * ROUNDS; k++)
        one_of_each(&state, k % 3 == 0 ? 0 : k % 160 - 80);
}

TEST_MAIN("exact");
