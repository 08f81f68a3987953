/* t-arith-proof.c -- mpsim_arith_array equals mpsim_arith_apply, written by someone who had not seen a kernel: any
 * formats of operands and result, any rounding, every special operand, results beside midpoints, sums that cancel, any
 * length, place and split, on every instruction set. */
#include "support/subjects.h"
#include "support/support.h"
#include "support/walls.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/arith.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 66000 };

typedef struct trial {
    mpsim_arith o;
    mpsim_rng rng;
    size_t n;
    uint64_t in[3][MOST], want[MOST];
    unsigned flags[MOST];
} trial;

static trial t;
static walls operand[3], target;

/* ---- operands ---- */

/* Zeros, ends, 1 and its neighbours, infinities, NaNs, of both signs; or anything. */
static uint64_t any_code(const mpsim_format *f, uint64_t *state)
{
    const uint64_t w = test_random(state), v = test_random(state);
    const uint64_t sign = mpsim_format_is_signed(f) && w >> 63 ? (uint64_t)1 << (f->bits - 1) : 0;
    const uint64_t one = (uint64_t)(f->bias > 0 ? f->bias : 1) << f->mbits, small = v % 5;
    switch (w % 16) {
    case 0:
        return sign | small;
    case 1:
        return sign | (f->max_finite - small) % (f->max_finite + 1);
    case 2:
        return sign | (f->max_finite + small);
    case 3:
        return f->nan_code ^ sign ^ (v >> 8 & 1 ? v % 16 : 0);
    case 4:
        return sign | (((uint64_t)1 << f->mbits) - 2 + small); /* the smallest normal number */
    case 5:
    case 6:
    case 7: /* near 1 */
        return sign |
               ((one + (v >> 2 & (((uint64_t)4 << f->mbits) - 1)) - ((uint64_t)2 << f->mbits)) % (f->max_finite + 1));
    case 8: /* few bits */
        return sign | ((v % (f->max_finite + 1)) >> f->mbits << f->mbits);
    default:
        return sign | v % (f->max_finite + 1);
    }
}

static uint64_t nearest(const mpsim_format *f, double v)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    return mpsim_encode_f64(f, &r, v, 0, NULL);
}

/* A number of the result's format, or a midpoint, or a bit beside it. */
static double aim(uint64_t *state)
{
    const mpsim_format *f = &t.o.result;
    const uint64_t w = test_random(state);
    const uint64_t m = any_code(f, state);
    double v = mpsim_decode(f, m);
    if (!isfinite(v))
        return 1;
    v += w & 1 ? mpsim_ulp(f, m) / 2 : 0;
    return w % 8 < 4 ? v : v * (1 + (double)((int)(w >> 8) % 3 - 1) * 0x1p-40);
}

/* The last operand such that the result lies at `goal`, as near as its format allows. */
static void towards(size_t i, double goal, uint64_t *state)
{
    const mpsim_format *f = t.o.operand;
    const double a = mpsim_decode(&f[0], t.in[0][i]), b = mpsim_decode(&f[1], t.in[1][i]);
    const uint64_t step = test_random(state);
    uint64_t *to = &t.in[t.o.op == MPSIM_OP_FMA ? 2 : t.o.op == MPSIM_OP_SQRT || t.o.op == MPSIM_OP_CONVERT ? 0 : 1][i];
    switch (t.o.op) {
    case MPSIM_OP_ADD:
        *to = nearest(&f[1], goal - a);
        break;
    case MPSIM_OP_SUB:
        *to = nearest(&f[1], a - goal);
        break;
    case MPSIM_OP_MUL:
        *to = nearest(&f[1], goal / a);
        break;
    case MPSIM_OP_DIV:
        *to = nearest(&f[1], a / goal);
        break;
    case MPSIM_OP_SQRT:
        *to = nearest(&f[0], goal * goal);
        break;
    case MPSIM_OP_FMA:
        *to = nearest(&f[2], goal - a * b);
        break;
    default:
        *to = nearest(&f[0], goal);
        break;
    }
    if (step % 4 == 0)
        *to = step & 16 ? *to + 1 : *to - 1;
}

static void operands(size_t n, uint64_t *state)
{
    t.n = n;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++)
            t.in[k][i] = any_code(&t.o.operand[k], state);
        const uint64_t w = test_random(state);
        if (w % 3 == 0)
            towards(i, aim(state), state);
        else if (w % 16 == 1)
            towards(i, 0, state);
        if (w >> 60 == 0)
            for (int k = 0; k < 3; k++) /* whatever lies above the bits of a code */
                t.in[k][i] = t.o.operand[k].bits < 64 ? t.in[k][i] ^ w << t.o.operand[k].bits : t.in[k][i];
    }
}

/* ---- one trial ---- */

/* What an array of so many bytes an element keeps of a code. */
static uint64_t cut(uint64_t code, size_t bytes)
{
    return bytes < 8 ? code & (((uint64_t)1 << 8 * bytes) - 1) : code;
}

static void expect(void)
{
    for (size_t i = 0; i < t.n; i++) {
        uint64_t u[3];
        for (int k = 0; k < 3; k++)
            u[k] = cut(t.in[k][i], mpsim_format_code_bytes(&t.o.operand[k]));
        t.want[i] = mpsim_arith_apply(&t.o, u[0], u[1], u[2], mpsim_rng_word(t.rng.seed, t.rng.stream, t.rng.index + i),
                                      &t.flags[i]);
    }
}

typedef struct place {
    int counted, split, upper, over, environment; /* over: the result is put over operand number over - 1 */
    size_t from, n, off[4];
    uint64_t lengths;
} place;

/* The first element that is wrong, or n. */
static size_t run(const place *l, mpsim_counts *got, uint64_t *wrong)
{
    const size_t step = mpsim_format_code_bytes(&t.o.result);
    const int used = mpsim_op_operands(t.o.op);
    unsigned char *x[3] = {NULL, NULL, NULL}, *out = NULL;
    size_t size[3];
    for (int k = 0; k < used; k++) {
        size[k] = mpsim_format_code_bytes(&t.o.operand[k]);
        x[k] = walls_place(&operand[k], l->n * size[k], l->upper, l->off[k]);
        for (size_t i = 0; i < l->n; i++)
            code_store(x[k] + i * size[k], size[k], t.in[k][l->from + i]);
    }
    const int over = l->over && l->over <= used && size[l->over - 1] == step;
    out = over ? x[l->over - 1] : walls_place(&target, l->n * step, l->upper, l->off[3]);
    uint64_t lengths = l->lengths;
    for (size_t i = 0, m; i < l->n; i += m) {
        m = l->split ? subject_piece(l->n - i, &lengths) : l->n;
        mpsim_rng rng = t.rng;
        rng.index += l->from + i;
        subject_enter(l->environment);
        const mpsim_status s = mpsim_arith_array(
            &t.o, subject_random(t.o.rounding.mode) || l->split ? &rng : NULL, out + i * step, x[0] + i * size[0],
            used > 1 ? x[1] + i * size[1] : NULL, used > 2 ? x[2] + i * size[2] : NULL, m, l->counted ? got : NULL);
        const int kept = subject_leave();
        if (s != MPSIM_OK || !kept)
            ck_abort_msg("status %d, environment %d kept: %d", (int)s, l->environment, kept);
    }
    if (!walls_kept(over ? &operand[l->over - 1] : &target, out, l->n * step))
        ck_abort_msg("%s: wrote beyond the ends", mpsim_op_name(t.o.op));
    for (size_t i = 0; i < l->n; i++) {
        *wrong = code_load(out + i * step, step);
        if (*wrong != t.want[l->from + i])
            return i;
    }
    for (int k = 0; k < used; k++)
        for (size_t i = 0; i < l->n && !(over && k == l->over - 1); i++)
            if (code_load(x[k] + i * size[k], size[k]) != cut(t.in[k][l->from + i], size[k]))
                ck_abort_msg("operand %d was written", k);
    return l->n;
}

static const char *operation_text(size_t i)
{
    static char text[600];
    const mpsim_format *f = t.o.operand;
    snprintf(text, sizeof text, "%s %s 0x%" PRIx64 " (%a), %s 0x%" PRIx64 " (%a), %s 0x%" PRIx64 " (%a) -> %s",
             mpsim_op_name(t.o.op), f[0].name, t.in[0][i], mpsim_decode(&f[0], t.in[0][i]), f[1].name, t.in[1][i],
             mpsim_decode(&f[1], t.in[1][i]), f[2].name, t.in[2][i], mpsim_decode(&f[2], t.in[2][i]),
             subject_text(&t.o.result, &t.o.rounding));
    return text;
}

static void check(const place *l)
{
    mpsim_counts got = {7, 8, 9, 10, 11}, want = got;
    uint64_t wrong = 0;
    const size_t i = run(l, &got, &wrong);
    place one = *l;
    one.n = 1;
    one.split = 0;
    if (i < l->n) {
        const uint64_t there = wrong;
        one.from = l->from + i;
        const int alone = run(&one, &got, &wrong) == 0;
        ck_abort_msg("%s, environment %d, over %d: element %zu of %zu%s: %s: expected 0x%" PRIx64 ", got 0x%" PRIx64
                     "; alone it is %s",
                     mpsim_isa_active(), l->environment, l->over, i, l->n, l->split ? " in pieces" : "",
                     operation_text(l->from + i), t.want[l->from + i], there, alone ? "wrong, too" : "right");
    }
    for (size_t k = l->from; k < l->from + l->n; k++)
        subject_count(&want, t.flags[k]);
    if (!l->counted || memcmp(&got, &want, sizeof got) == 0)
        return;
    const char *found = "no element alone is counted wrongly";
    for (one.from = l->from; one.from < l->from + l->n; one.from++) {
        mpsim_counts c = {0, 0, 0, 0, 0}, w = c;
        (void)run(&one, &c, &wrong);
        subject_count(&w, t.flags[one.from]);
        if (memcmp(&c, &w, sizeof c) != 0) {
            found = operation_text(one.from);
            want = w;
            got = c;
            break;
        }
    }
    ck_abort_msg("%s, %zu elements: expected %s, got %s; %s %s", mpsim_isa_active(), l->n, subject_counts(&want),
                 subject_counts(&got), mpsim_op_name(t.o.op), found);
}

static size_t prove(uint64_t *state)
{
    expect();
    for (size_t k = 0; mpsim_isa_at(k); k++)
        for (int turn = 0, there = subject_isa(k); turn < 3 && there > 0; turn++) {
            const uint64_t w = test_random(state);
            place l = {.counted = (int)(w & 1),
                       .split = (int)(w >> 1 & 1),
                       .upper = (int)(w >> 2 & 1),
                       .over = (int)((w >> 3) % 5 < 4 ? (w >> 3) % 4 : 0),
                       .n = t.n,
                       .lengths = w,
                       .environment = w >> 60 > 2 ? 0 : (int)((w >> 50) % SUBJECT_ENVIRONMENTS)};
            for (int j = 0; j < 4; j++)
                l.off[j] = turn == 2 ? 0 : (w >> (8 + 8 * j)) % 66;
            if (turn == 2) {
                l.n = (w >> 40) % 90 < t.n ? (w >> 40) % 90 : t.n;
                l.from = (w >> 20) % (t.n - l.n + 1);
            }
            check(&l);
        }
    return t.n;
}

static void rounding_of(int mode, size_t turn, uint64_t *state)
{
    t.o.rounding = subject_rounding(&t.o.result, mode, turn, 32, state);
    t.o.rounding.scale = 1;
    ck_assert_int_eq(mpsim_arith_check(&t.o), MPSIM_OK);
    t.rng = subject_rng(state);
}

static void setup(void)
{
    for (int k = 0; k < 3; k++)
        operand[k] = walls_make(MOST * 8 + 100);
    target = walls_make(MOST * 8 + 100);
}

/* ---- tests ---- */

CASE("arithmetic", 120);

/* One format for all, or of each operand and the result its own. */
TEST(any_formats)
{
    static mpsim_format list[SUBJECTS_MOST];
    uint64_t state = test_seed() + 1;
    size_t compared = 0;
    const size_t formats = subjects(list, test_scaled(15), &state),
                 turns = test_scaled(test_expensive() ? 60000 : 5000);
    setup();
    for (size_t i = 0; i < turns; i++) {
        const uint64_t w = test_random(&state);
        const mpsim_format *f = &list[i % formats];
        mpsim_arith_init(&t.o, (mpsim_op)(w % MPSIM_OPS), f, MPSIM_ROUND_NEAREST_EVEN);
        const uint64_t mix = (w >> 8) %
                             4; /* the result's; another for all; its own for each, with the result's among them */
        const mpsim_format *all = &list[(w >> 10) % (w >> 40 & 1 ? 20 : formats)];
        for (int k = 0; k < 3 && mix; k++)
            t.o.operand[k] = mix < 3 ? *all : list[test_random(&state) % formats];
        if (mix == 2)
            t.o.operand[(w >> 50) % 3] = *f;
        rounding_of((int)((w >> 16) % MPSIM_ROUND_MODES), (w >> 24) % 3, &state);
        operands(150, &state);
        compared += prove(&state);
    }
    printf("# %zu formats, %zu operations on every instruction set\n", formats, compared);
}

/* All pairs of codes of the formats of 8 bits. */
TEST(all_pairs_of_eight_bits)
{
    static const char *const names[] = {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m4", "binary8p3se", "e4m3ieee"};
    static const char *const results[] = {NULL, NULL, "fp16", "e4m3", "bf16", "e2m1", "binary32"};
    static const mpsim_op ops[] = {MPSIM_OP_ADD, MPSIM_OP_SUB, MPSIM_OP_MUL, MPSIM_OP_DIV, MPSIM_OP_FMA};
    uint64_t state = test_seed() + 2;
    size_t compared = 0;
    setup();
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++)
            for (int turn = 0; turn < (test_expensive() ? 27 : 1); turn++) {
                const uint64_t w = test_random(&state);
                if (!test_in_part(k + op, 1))
                    continue;
                const mpsim_format *f = mpsim_format_find(names[k]);
                mpsim_arith_init(&t.o, ops[op], f, MPSIM_ROUND_NEAREST_EVEN);
                if (results[w % 7])
                    t.o.result = *mpsim_format_find(results[w % 7]);
                rounding_of(turn < 9 && k < 2 ? turn : (int)((w >> 8) % MPSIM_ROUND_MODES), k < 2 ? 0 : (w >> 16) % 3,
                            &state);
                t.n = 65536;
                for (size_t i = 0; i < t.n; i++) {
                    t.in[0][i] = i & 255;
                    t.in[1][i] = i >> 8;
                    t.in[2][i] = any_code(f, &state);
                }
                compared += prove(&state);
            }
    printf("# %zu operations on every instruction set\n", compared);
}

/* The formats that networks are trained in: every operation, every mode. */
TEST(training_formats)
{
    static const char *const names[] = {"fp16", "bf16", "tf32", "binary32", "e4m3", "e5m2", "e8m0", "binary64"};
    uint64_t state = test_seed() + 3;
    size_t compared = 0;
    setup();
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (int op = 0; op < MPSIM_OPS; op++)
            for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
                for (size_t turn = 0; turn < 2; turn++) {
                    mpsim_arith_init(&t.o, (mpsim_op)op, mpsim_format_find(names[k]), MPSIM_ROUND_NEAREST_EVEN);
                    rounding_of(mode, 2 * turn, &state);
                    operands(test_expensive() ? 60000 : test_scaled(2000) < MOST ? test_scaled(2000) : MOST, &state);
                    compared += prove(&state);
                }
    printf("# %zu operations on every instruction set\n", compared);
}

TEST_MAIN("arith-proof");
