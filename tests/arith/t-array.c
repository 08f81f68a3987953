/* t-array.c -- proves the rest of <mpsim/arith.h>: arrays against the scalar function,
 * comparisons against C's, names, defaults, refused arguments. */
#include "support/ops.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1021 };

static void count(mpsim_counts *n, unsigned flags)
{
    n->inexact += !!(flags & MPSIM_FLAG_INEXACT);
    n->underflow += !!(flags & MPSIM_FLAG_UNDERFLOW);
    n->subnormal += !!(flags & MPSIM_FLAG_SUBNORMAL);
    n->overflow += !!(flags & MPSIM_FLAG_OVERFLOW);
    n->nan += !!(flags & MPSIM_FLAG_NAN);
}

static int same(const mpsim_counts *a, const mpsim_counts *b)
{
    return a->inexact == b->inexact && a->underflow == b->underflow && a->subnormal == b->subnormal &&
           a->overflow == b->overflow && a->nan == b->nan;
}

/* --------------------------------------------------------------------------- arrays ---- */

static const char *const mixes[][4] = {
    {"e4m3", "e4m3", "e4m3", "e4m3"},
    {"fp16", "fp16", "fp16", "fp16"},
    {"binary32", "binary32", "binary32", "binary32"},
    {"binary64", "binary64", "binary64", "binary64"},
    {"binary32", "fp16", "bf16", "binary32"},
    {"fp16", "e4m3", "e5m2", "fp16"},
    {"e8m0", "binary32", "e8m0", "fp16"},
    {"e2m1", "e2m1", "e8m0", "tf32"},
    {"tf32", "binary64", "tf32", "e3m2"},
    {"binary64", "e2m1", "binary32", "e9m30"},
    {"binary8p3ue", "bf16", "binary8p3se", "e5m7"},
    {"e9m30", "e9m30", "binary64", "binary64"},
};
enum { MIXES = sizeof mixes / sizeof mixes[0] };

/* n elements at odd addresses, in pieces that end at n/3 and n/2 or in one; `place`: the result
 * in an array of its own, or (1, 2, 3) in that of a, b, c. */
static void one_array(const operation *p, size_t n, int split, int place, uint64_t *random)
{
    static unsigned char in[3][MOST * 8 + 16], own[MOST * 8 + 64], before[3][MOST * 8 + 16];
    static uint64_t want[MOST];
    const int operands = op_operands(p->oracle.op);
    const size_t size = mpsim_format_code_bytes(&p->lib.result);
    size_t sizes[3];
    unsigned char *x[3];
    for (int k = 0; k < 3; k++) {
        sizes[k] = mpsim_format_code_bytes(&p->lib.operand[k]);
        x[k] = in[k] + (n + (size_t)k) % 8;
        /* bits above the width as well */
        for (size_t i = 0; i < n; i++)
            code_store(x[k] + i * sizes[k], sizes[k],
                       i % 5 == 4 ? test_random(random) : code_random(p->oracle.operand[k], 0, random));
    }
    if (place && (place > operands || sizes[place - 1] != size))
        return;
    unsigned char *out = place ? x[place - 1] : own + n % 8;
    memset(own, 0x5a, sizeof own);
    const mpsim_rng rng = {11, 22, 33 + n};
    mpsim_counts wanted = {1, 2, 3, 4, 5}, got = wanted;
    for (size_t i = 0; i < n; i++) {
        uint64_t u[3];
        unsigned flags;
        for (int k = 0; k < 3; k++)
            u[k] = code_load(x[k] + i * sizes[k], sizes[k]);
        want[i] = mpsim_arith_apply(&p->lib, u[0], u[1], u[2], mpsim_rng_word(rng.seed, rng.stream, rng.index + i),
                                    &flags);
        count(&wanted, flags);
    }
    memcpy(before, in, sizeof in);
    const size_t ends[] = {split ? n / 3 : 0, split ? n / 2 : 0, n};
    size_t from = 0;
    for (int k = 0; k < 3; k++) {
        mpsim_rng g = rng;
        g.index += from;
        const int draws = is_stochastic(p->lib.rounding.mode);
        const mpsim_status s = mpsim_arith_array(
            &p->lib, draws || n % 2 ? &g : NULL, out + from * size, x[0] + from * sizes[0],
            operands > 1 || n % 3 == 0 ? x[1] + from * sizes[1] : NULL,
            operands > 2 || n % 3 == 1 ? x[2] + from * sizes[2] : NULL, ends[k] - from, n % 5 == 4 ? NULL : &got);
        if (s != MPSIM_OK)
            ck_abort_msg("status %d", (int)s);
        from = ends[k];
    }
    for (size_t i = 0; i < n; i++)
        if (code_load(out + i * size, size) != want[i])
            ck_abort_msg("%s -> %s %s, array of %zu, split %d, place %d, element %zu: scalar "
                         "0x%" PRIx64 ", array 0x%" PRIx64,
                         op_name(p->oracle.op), p->lib.result.name, mode_name(p->lib.rounding.mode), n, split, place, i,
                         want[i], code_load(out + i * size, size));
    if (n % 5 != 4 && !same(&wanted, &got))
        ck_abort_msg("%s -> %s, array of %zu: counters differ", op_name(p->oracle.op), p->lib.result.name, n);
    /* nothing else is written */
    for (size_t i = 0; i < sizeof own; i++)
        if (own[i] != 0x5a && (place || own + i < out || own + i >= out + n * size))
            ck_abort_msg("array of %zu: byte %zu written", n, i);
    if (place)
        memcpy(out, before[place - 1] + (out - in[place - 1]), n * size);
    if (memcmp(before, in, sizeof in) != 0)
        ck_abort_msg("array of %zu: operands written", n);
}

CASE("arrays", 60);

TEST(arrays_equal_the_scalar_function)
{
    static const size_t lengths[] = {0,  1,  2,   3,   5,   8,   15,  16,  17,   31,
                                     33, 64, 127, 255, 256, 257, 511, 770, 1000, MOST};
    uint64_t random = test_seed();
    for (size_t i = 0; i < MIXES; i++)
        for (int op = 0; op < MPSIM_OPS; op++)
            for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
                operation p = operation_make(op, mixes[i][0], mixes[i][1], mixes[i][2], mixes[i][3], m);
                if ((op + m) % 3 == 0) {
                    const mpsim_rounding r = rounding_random(m, &random);
                    operation_rounding(&p, &r);
                }
                for (size_t k = 0; k < 6; k++) {
                    const size_t turn = i + (size_t)op * 5 + (size_t)m * 7 + k * 3;
                    one_array(&p, lengths[turn % 20], (int)(k & 1), k < 3 ? 0 : (int)k - 2, &random);
                }
            }
}

/* Long arrays, every pair of codes many times over: whatever is prepared for a long array must
 * not change a result. Every fifth element is compared. */
TEST(long_arrays_equal_the_scalar_function)
{
    static const char *const names[] = {"e4m3", "e5m2", "e8m0", "e2m1", "binary8p3se"};
    const size_t n = 200003;
    uint8_t *a = malloc(n), *b = malloc(n), *c = malloc(n), *out = malloc(n + 1);
    ck_assert(a && b && c && out);
    for (size_t i = 0; i < n; i++) {
        a[i] = (uint8_t)i;
        b[i] = (uint8_t)(i >> 8);
        c[i] = (uint8_t)(i * 2654435761u >> 24);
    }
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (int op = 0; op < MPSIM_OPS; op++) {
            const int m = (int)((k * 2 + (size_t)op * 4) % MPSIM_ROUND_MODES);
            operation p = operation_make(op, names[k], NULL, NULL, NULL, m);
            const mpsim_rng rng = {1, 2, 3};
            mpsim_counts wanted = {0}, got = {0};
            out[n] = 0x5a;
            ck_assert_int_eq(mpsim_arith_array(&p.lib, &rng, out, a, b, c, n, &got), MPSIM_OK);
            for (size_t i = 0; i < n; i++) {
                unsigned flags;
                const uint64_t want = mpsim_arith_apply(&p.lib, a[i], b[i], c[i], mpsim_rng_word(1, 2, 3 + i), &flags);
                count(&wanted, flags);
                if (out[i] != want)
                    ck_abort_msg("%s %s: element %zu", names[k], op_name(op), i);
            }
            ck_assert(same(&wanted, &got) && out[n] == 0x5a);
        }
    free(a), free(b), free(c), free(out);
}

TEST(refused_arrays_change_nothing)
{
    uint8_t a[4] = {0x38, 0x39, 0x3a, 0x3b}, b[4] = {1, 2, 3, 4}, c[4] = {5, 6, 7, 8};
    uint8_t out[4] = {9, 9, 9, 9};
    const mpsim_rng rng = {1, 2, 3};
    mpsim_counts n = {1, 2, 3, 4, 5};
    const mpsim_counts untouched = n;
    const mpsim_format *f = mpsim_format_find("e4m3");
    mpsim_arith o;
#define REFUSED(op, mode, change, rng_, out_, a_, b_, c_)                                     \
    do {                                                                                      \
        mpsim_arith_init(&o, op, f, mode);                                                    \
        change;                                                                               \
        ck_assert_int_eq(mpsim_arith_array(&o, rng_, out_, a_, b_, c_, 4, &n), MPSIM_EINVAL); \
        for (int i_ = 0; i_ < 4; i_++)                                                        \
            ck_assert(out[i_] == 9);                                                          \
        ck_assert(same(&n, &untouched));                                                      \
    } while (0)
    const mpsim_round_mode ne = MPSIM_ROUND_NEAREST_EVEN, sr = MPSIM_ROUND_STOCHASTIC_C;
    REFUSED(MPSIM_OP_ADD, ne, o.rounding.scale = 2, &rng, out, a, b, c);
    REFUSED(MPSIM_OP_ADD, ne, o.rounding.overflow = 2, &rng, out, a, b, c);
    REFUSED(MPSIM_OP_ADD, ne, o.op = MPSIM_OPS, &rng, out, a, b, c);
    REFUSED(MPSIM_OP_ADD, ne, o.result.bits = 1, &rng, out, a, b, c);
    REFUSED(MPSIM_OP_ADD, ne, o.operand[1].bits = 65, &rng, out, a, b, c);
    REFUSED(MPSIM_OP_ADD, ne, (void)0, &rng, NULL, a, b, c);
    REFUSED(MPSIM_OP_ADD, ne, (void)0, &rng, out, NULL, b, c);
    REFUSED(MPSIM_OP_ADD, ne, (void)0, &rng, out, a, NULL, c);
    REFUSED(MPSIM_OP_FMA, ne, (void)0, &rng, out, a, b, NULL);
    REFUSED(MPSIM_OP_SQRT, ne, (void)0, &rng, out, NULL, b, c);
    REFUSED(MPSIM_OP_SUB, sr, (void)0, NULL, out, a, b, c);
#undef REFUSED
    ck_assert_int_eq(mpsim_arith_array(NULL, &rng, out, a, b, c, 4, &n), MPSIM_EINVAL);
    /* what is not needed may be missing */
    mpsim_arith_init(&o, MPSIM_OP_SQRT, f, ne);
    ck_assert_int_eq(mpsim_arith_array(&o, NULL, out, a, NULL, NULL, 4, NULL), MPSIM_OK);
    ck_assert(out[0] == 0x38);
    mpsim_arith_init(&o, MPSIM_OP_MUL, f, ne);
    ck_assert_int_eq(mpsim_arith_array(&o, NULL, out, a, a, NULL, 4, NULL), MPSIM_OK);
    ck_assert(out[0] == 0x38);
    ck_assert_int_eq(mpsim_arith_array(&o, NULL, out, a, b, NULL, 0, &n), MPSIM_OK);
    ck_assert(same(&n, &untouched) && out[0] == 0x38);
}

/* -------------------------------------------------------------------- operations ---- */

CASE("operations", 10);

TEST(an_operation_is_checked)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_arith o;
#define STATUS(operation_, change, want)                                               \
    do {                                                                               \
        mpsim_arith_init(&o, operation_, f, MPSIM_ROUND_UP);                           \
        change;                                                                        \
        ck_assert_msg(mpsim_arith_check(&o) == (want), "%s %s", #operation_, #change); \
    } while (0)
    for (int op = 0; op < MPSIM_OPS; op++)
        STATUS((mpsim_op)op, (void)0, MPSIM_OK);
    STATUS(MPSIM_OP_ADD, o.op = MPSIM_OPS, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.op = (mpsim_op)1000, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.rounding.scale = 0.5, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.rounding.scale = (double)NAN, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.rounding.mode = MPSIM_ROUND_MODES, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.rounding.no_nan = 3, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.rounding.flush_below = -1, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.result.max_finite = 0, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.operand[0].ebits = 0, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.operand[1].ebits = 0, MPSIM_EINVAL);
    STATUS(MPSIM_OP_FMA, o.operand[2].ebits = 0, MPSIM_EINVAL);
    STATUS(MPSIM_OP_ADD, o.result.bias = 5000, MPSIM_EINVAL); /* not MPSIM_ERANGE */
    STATUS(MPSIM_OP_ADD, o.operand[0].bias = 5000, MPSIM_EINVAL);
    /* operands that the operation lacks */
    STATUS(MPSIM_OP_ADD, memset(&o.operand[2], 0, sizeof o.operand[2]), MPSIM_OK);
    STATUS(MPSIM_OP_SQRT, memset(&o.operand[1], 0, 2 * sizeof o.operand[1]), MPSIM_OK);
    ck_assert_uint_eq(mpsim_arith_apply(&o, 0x4400, 1, 1, 0, NULL), 0x4000);
    STATUS(MPSIM_OP_CONVERT, memset(&o.operand[1], 0xff, 2 * sizeof o.operand[1]), MPSIM_OK);
    ck_assert_uint_eq(mpsim_arith_apply(&o, 0x4400, 1, 1, 0, NULL), 0x4400);
#undef STATUS
    ck_assert_int_eq(mpsim_arith_check(NULL), MPSIM_EINVAL);
}

TEST(an_operation_in_one_format_with_the_default_rounding)
{
    for (int op = 0; op < MPSIM_OPS; op++)
        for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
            const mpsim_format *f = mpsim_format_at((size_t)(op * 3 + m));
            mpsim_arith o;
            mpsim_rounding r;
            memset(&o, 0x5a, sizeof o);
            mpsim_arith_init(&o, (mpsim_op)op, f, (mpsim_round_mode)m);
            mpsim_rounding_init(&r, (mpsim_round_mode)m);
            ck_assert_int_eq(o.op, op);
            ck_assert_str_eq(o.result.name, f->name);
            for (int i = 0; i < 3; i++)
                ck_assert(strcmp(o.operand[i].name, f->name) == 0 && o.operand[i].max_finite == f->max_finite);
            ck_assert(o.rounding.mode == r.mode && o.rounding.sr_bits == r.sr_bits &&
                      o.rounding.overflow == r.overflow && o.rounding.infinity == r.infinity &&
                      o.rounding.no_inf == r.no_inf && o.rounding.nan == r.nan && o.rounding.no_nan == r.no_nan &&
                      o.rounding.negative == r.negative && o.rounding.no_zero == r.no_zero && !o.rounding.flush_input &&
                      !o.rounding.flush_output && o.rounding.scale == 1 && o.rounding.flush_below == 0);
        }
}

TEST(operations_are_known_by_name)
{
    static const struct {
        const char *name;
        mpsim_op op;
    } known[] = {{"convert", MPSIM_OP_CONVERT}, {"add", MPSIM_OP_ADD},   {"sub", MPSIM_OP_SUB}, {"mul", MPSIM_OP_MUL},
                 {"div", MPSIM_OP_DIV},         {"sqrt", MPSIM_OP_SQRT}, {"fma", MPSIM_OP_FMA}, {"ADD", MPSIM_OP_ADD},
                 {"Sqrt", MPSIM_OP_SQRT},       {"fMa", MPSIM_OP_FMA}};
    static const char *const unknown[] = {"", "ad", "addd", " add", "add ", "fms", "rem", "convert2", "plus"};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        mpsim_op op = MPSIM_OPS;
        ck_assert_int_eq(mpsim_op_parse(&op, known[k].name), MPSIM_OK);
        ck_assert_int_eq(op, known[k].op);
    }
    for (size_t k = 0; k < sizeof unknown / sizeof unknown[0]; k++) {
        mpsim_op op = MPSIM_OP_DIV;
        ck_assert_msg(mpsim_op_parse(&op, unknown[k]) == MPSIM_ENOTFOUND, "%s", unknown[k]);
        ck_assert_int_eq(op, MPSIM_OP_DIV);
    }
    for (int op = 0; op < MPSIM_OPS; op++) {
        ck_assert_str_eq(mpsim_op_name((mpsim_op)op), op_name(op));
        ck_assert_int_eq(mpsim_op_operands((mpsim_op)op), op_operands(op));
    }
    ck_assert_ptr_null(mpsim_op_name(MPSIM_OPS));
    ck_assert_ptr_null(mpsim_op_name((mpsim_op)1000));
    ck_assert_int_eq(mpsim_op_operands(MPSIM_OPS), 0);
    ck_assert_int_eq(mpsim_op_operands((mpsim_op)1000), 0);
}

/* ------------------------------------------------------------------- comparisons ---- */

static void compare(const mpsim_format *f, const oracle_format *of, const mpsim_format *g, const oracle_format *og,
                    uint64_t a, uint64_t b)
{
    const int want = oracle_compare(of, a, og, b), got = mpsim_compare(f, a, g, b);
    if (want != got)
        ck_abort_msg("%s 0x%" PRIx64 " (%a) and %s 0x%" PRIx64 " (%a): expected %d, got %d", of->name, a,
                     oracle_decode(of, a), og->name, b, oracle_decode(og, b), want, got);
}

CASE("comparisons", 60);

TEST(every_pair_of_every_narrow_format_compares)
{
    ck_assert(MPSIM_LESS == -1 && MPSIM_EQUAL == 0 && MPSIM_GREATER == 1 && MPSIM_UNORDERED == 2);
    const char *name;
    for (size_t i = 0; (name = narrow_format(i, 8)); i++) {
        const mpsim_format *f = mpsim_format_find(name);
        const oracle_format *of = oracle_find(name);
        for (uint64_t a = 0; a >> f->bits == 0; a++)
            for (uint64_t b = 0; b >> f->bits == 0; b++)
                compare(f, of, f, of, a, b);
    }
}

/* Any two formats: edges, random codes, numbers that both have, and their neighbours. */
TEST(any_two_formats_compare)
{
    uint64_t random = test_seed();
    for (size_t i = 0; i < mpsim_format_count(); i++)
        for (size_t k = 0; k < mpsim_format_count(); k++) {
            const mpsim_format *f = mpsim_format_at(i), *g = mpsim_format_at(k);
            const oracle_format *of = oracle_find(f->name), *og = oracle_find(g->name);
            const codes x = codes_edges(of, 1, &random), y = codes_edges(og, 1, &random);
            for (size_t m = 0; m < x.n; m++)
                for (size_t n = 0; n < y.n; n++)
                    compare(f, of, g, og, x.code[m], y.code[n]);
            for (size_t n = 0; n < test_scaled(100); n++) {
                const uint64_t a = code_random(of, 0, &random);
                compare(f, of, g, og, a, code_random(og, 0, &random));
                mpsim_rounding r = rounding_variant(MPSIM_ROUND_NEAREST_EVEN, 0);
                unsigned flags;
                const uint64_t b = oracle_encode(og, &r, oracle_decode(of, a), 0, 0, &flags);
                compare(f, of, g, og, a, b);
                compare(f, of, g, og, a, b + 1);
                compare(f, of, g, og, a | ~(uint64_t)0 << (f->bits - 1) << 1, b - 1);
            }
        }
}

TEST_MAIN("arith-array");
