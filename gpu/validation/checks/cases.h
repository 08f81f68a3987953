/* cases.h -- the inputs of every check, as functions of an index: Philox and integers only, so that
 * a device and a CPU make the same ones. */
#pragma once

#include "checks.h"
#include "../../../lib/round/rng.h"
#include "../../../lib/arith/scalar.h"

enum { GPU_SEED = 0x6d707369 };

/* ---- codes from fields ---- */

static inline MPSIM_HD uint32_t gpu_code(const mpsim_format *f, int sign, int field, uint32_t bits)
{
    const int top = (int)(f->max_finite >> f->mbits);
    field = field < 0 ? 0 : field > top ? top : field;
    uint64_t m = (uint64_t)field << f->mbits | (bits & (((uint64_t)1 << f->mbits) - 1));
    if (m > f->max_finite)
        m = f->max_finite;
    return (uint32_t)(m | mpsim_sign_bit(f, sign));
}

static inline MPSIM_HD int gpu_field(const mpsim_format *f, uint32_t code)
{
    return (int)((code & mpsim_magnitude_mask(f)) >> f->mbits);
}

/* A random pattern without its NaN and infinities: those lose the top bit of the exponent. */
static inline MPSIM_HD uint32_t gpu_finite(const mpsim_format *f, uint32_t bits)
{
    uint64_t m = bits & mpsim_magnitude_mask(f);
    if (m > f->max_finite)
        m &= ~((uint64_t)1 << (f->ebits + f->mbits - 1));
    return (uint32_t)(m | mpsim_sign_bit(f, (int)(bits >> (f->bits - 1) & 1)));
}

/* The code next to a finite one, away from zero or toward it; finite. */
static inline MPSIM_HD uint32_t gpu_neighbour(const mpsim_format *f, uint32_t code, int up)
{
    uint64_t m = code & mpsim_magnitude_mask(f);
    if (up && m < f->max_finite)
        m++;
    else if (!up && m > 0)
        m--;
    return (uint32_t)(m | (code & mpsim_sign_bit(f, 1)));
}

/* ---- operands of scalar operations ---- */

/* What rarely occurs at random. */
static inline MPSIM_HD uint32_t gpu_special(const mpsim_format *f, uint32_t w)
{
    const int sign = (int)(w >> 4 & 1);
    const int one = f->bias;
    switch (w & 15) {
    case 0:
    case 1:
        return (uint32_t)mpsim_sign_bit(f, sign);
    case 2:
        return (uint32_t)(f->inf ? (f->max_finite + 1) | mpsim_sign_bit(f, sign) : f->nan_code);
    case 3:
        return (uint32_t)(f->nan_code | mpsim_sign_bit(f, sign));
    case 4:
    case 5:
        return gpu_code(f, sign, 1 << f->ebits, ~0u); /* the largest number */
    case 6:
    case 7:
        return gpu_code(f, sign, 0, 1); /* the smallest */
    case 8:
        return gpu_code(f, sign, 0, ~0u); /* the largest subnormal */
    case 9:
        return gpu_code(f, sign, 1, 0); /* the smallest normal */
    case 10:
    case 11:
        return gpu_code(f, sign, one, 0);
    case 12:
        return gpu_code(f, sign, one, 1);
    case 13:
        return gpu_code(f, sign, one - 1, ~0u); /* just below 1 */
    default:
        return gpu_finite(f, w * 0x9e3779b9u);
    }
}

/* What a kind of triple is made from: three random words, cut to codes, which it changes; `more`
 * decides the rest. near: -16 .. 15. */
typedef struct gpu_draft {
    uint32_t x, y, z, more;
    int near;
} gpu_draft;

static inline MPSIM_HD int gpu_is_sum(const gpu_scalar *s)
{
    return s->o.op == MPSIM_OP_ADD || s->o.op == MPSIM_OP_SUB;
}

/* A number with the sign and the significand of a word, and this exponent field. */
static inline MPSIM_HD uint32_t gpu_at_field(const mpsim_format *f, uint32_t word, int field)
{
    return gpu_code(f, (int)(word >> (f->bits - 1)), field, word);
}

/* x y, rounded, as a finite number or not. */
static inline MPSIM_HD uint32_t gpu_rounded_product(const gpu_scalar *s, uint32_t x, uint32_t y)
{
    mpsim_arith product = s->o;
    unsigned flags;
    product.op = MPSIM_OP_MUL;
    return (uint32_t)mpsim_scalar_arith(&product, x, y, 0, 0, &flags);
}

static inline MPSIM_HD void gpu_draft_close(const mpsim_format *f, gpu_draft *t)
{
    t->x = gpu_finite(f, t->x);
    t->y = gpu_at_field(f, t->y, gpu_field(f, t->x) + t->near);
    t->z = gpu_at_field(f, t->z, gpu_field(f, t->x) + (int)(t->more >> 5 & 31) - 16);
}

static inline MPSIM_HD void gpu_draft_cancel(const gpu_scalar *s, const mpsim_format *f, gpu_draft *t)
{
    const uint32_t minus = (uint32_t)mpsim_sign_bit(f, 1);
    const int other = (int)(t->more & 1), up = (int)(t->more >> 1 & 1);
    t->x = gpu_finite(f, t->x);
    if (gpu_is_sum(s)) {
        t->y = s->o.op == MPSIM_OP_ADD ? t->x ^ minus : t->x;
        t->y = other ? gpu_neighbour(f, t->y, up) : t->y;
    } else { /* z = -(x y), rounded, or a neighbour; y of moderate size */
        t->y = gpu_at_field(f, t->y, f->bias + t->near / 2);
        t->z = gpu_rounded_product(s, t->x, t->y) ^ minus;
        t->z = other ? gpu_neighbour(f, gpu_finite(f, t->z), up) : t->z;
    }
}

/* Products, quotients and sums near the smallest normal number. */
static inline MPSIM_HD void gpu_draft_small(const gpu_scalar *s, const mpsim_format *f, gpu_draft *t)
{
    const int target = (int)(t->more >> 5 & 31) - 24;
    t->x = gpu_finite(f, t->x);
    if (gpu_is_sum(s)) {
        t->x = gpu_at_field(f, t->x, (int)(t->more & 3));
        t->y = gpu_at_field(f, t->y, (int)(t->more >> 2 & 3));
    } else {
        const int e = gpu_field(f, t->x) - f->bias, least = 1 - f->bias;
        const int other = s->o.op == MPSIM_OP_DIV ? e - target - least : target + least - e;
        t->y = gpu_at_field(f, t->y, other + f->bias);
    }
    t->z = gpu_at_field(f, t->z, (int)(t->more >> 10 & 7));
}

static inline MPSIM_HD void gpu_draft_short(const gpu_scalar *s, const mpsim_format *f, gpu_draft *t)
{
    const int keep = f->mbits / 2 + (int)(t->more & 1), sum = gpu_is_sum(s);
    const uint32_t low = ((uint32_t)1 << (f->mbits - keep)) - 1;
    t->x = gpu_finite(f, t->x) & ~low;
    t->y = gpu_at_field(f, t->y, gpu_field(f, t->x) + (sum ? t->near : 0)) & ~low;
    if (!sum)
        t->y = gpu_at_field(f, t->y, f->bias + t->near / 2);
    t->z = gpu_at_field(f, t->z, gpu_field(f, t->x) + t->near) & ~low;
}

/* An addend around the last bit of the product. */
static inline MPSIM_HD void gpu_draft_addend(const mpsim_format *f, gpu_draft *t)
{
    t->x = gpu_finite(f, t->x);
    t->y = gpu_at_field(f, t->y, f->bias + t->near / 2);
    const int e = gpu_field(f, t->x) + t->near / 2;
    t->z = gpu_code(f, (int)(t->z >> (f->bits - 1)), e - f->mbits - 2 + (int)(t->more >> 5 & 7),
                    t->more >> 8 & 1 ? t->z : 0);
}

static inline MPSIM_HD void gpu_draft_special(const mpsim_format *f, gpu_draft *t)
{
    t->x = gpu_special(f, t->x);
    t->y = t->more & 1 ? gpu_special(f, t->y) : t->y;
    t->z = t->more & 2 ? gpu_special(f, t->z) : t->z;
}

/* Of a root: instead of near-cancellation a square, rounded, or a neighbour; seldom a negative
 * number. */
static inline MPSIM_HD void gpu_draft_root(const gpu_scalar *s, const mpsim_format *f, int square, gpu_draft *t)
{
    if (square) {
        t->x = gpu_finite(f, gpu_rounded_product(s, t->y, t->y));
        t->x = t->more & 1 ? gpu_neighbour(f, t->x, (int)(t->more >> 1 & 1)) : t->x;
    }
    if (t->more >> 12 & 7)
        t->x &= ~(uint32_t)mpsim_sign_bit(f, 1);
}

/* Triple number i, for operations of one to three operands: random patterns, exponents near each
 * other, near-cancellation (squares for the root), results near the smallest normal, short
 * significands (ties), an addend around the last bit of the product, special values. */
static inline MPSIM_HD void gpu_triple(const gpu_scalar *s, uint64_t i, uint32_t in[3])
{
    enum { CLOSE = 2, CANCEL, SMALL, SHORT, ADDEND, SPECIAL };
    const mpsim_format *f = &s->o.operand[0];
    const uint32_t mask = (uint32_t)((mpsim_magnitude_mask(f) << 1) | 1);
    uint32_t w[4];
    mpsim_rng_block(w, GPU_SEED, s->stream, i);
    const uint32_t how = w[3] & 7;
    gpu_draft t;
    t.x = w[0] & mask;
    t.y = w[1] & mask;
    t.z = w[2] & mask;
    t.more = w[3] >> 3;
    t.near = (int)(t.more & 31) - 16;
    if (how == CLOSE)
        gpu_draft_close(f, &t);
    else if (how == CANCEL)
        gpu_draft_cancel(s, f, &t);
    else if (how == SMALL)
        gpu_draft_small(s, f, &t);
    else if (how == SHORT)
        gpu_draft_short(s, f, &t);
    else if (how == ADDEND)
        gpu_draft_addend(f, &t);
    else if (how == SPECIAL)
        gpu_draft_special(f, &t);
    if (s->o.op == MPSIM_OP_SQRT)
        gpu_draft_root(s, f, how == CANCEL, &t);
    in[0] = t.x;
    in[1] = t.y;
    in[2] = t.z;
}

/* A code, the other number of its pair, and its place there (1: the upper one). 17 bits of u. */
static inline MPSIM_HD void gpu_code_case(const mpsim_format *f, uint32_t u, uint32_t in[3])
{
    const uint32_t mask = ((uint32_t)1 << f->bits) - 1;
    in[0] = u & mask;
    in[1] = (f->bits == 8 ? u >> 8 : u * 0x85ebu >> 3) & mask;
    in[2] = u >> 16 & 1;
}

/* A number of binary64, its lower word first: anything; around the range of the result; close to a number of the result
 * or to the middle between two of them; zero and infinity. NaNs alone where these are asked. */
static inline MPSIM_HD void gpu_wide_case(const gpu_scalar *s, uint64_t i, uint32_t in[3])
{
    const mpsim_format *to = &s->o.result;
    const int keep = to->mbits + 1; /* bits behind the leading one that a number or a middle has */
    const int least = mpsim_emin(to) - to->mbits - 3, range = to->bias - least + 6;
    uint32_t w[4];
    mpsim_rng_block(w, GPU_SEED, s->stream, i);
    const uint32_t how = w[3] & 7;
    const uint64_t random = (uint64_t)w[1] << 32 | w[0], sign = random & (uint64_t)1 << 63;
    const uint64_t low = ((uint64_t)1 << (52 - keep)) - 1, ones = ((uint64_t)1 << 52) - 1;
    uint64_t field = (uint64_t)(least + (int)(w[2] % (uint32_t)range) + 1023), fraction = random & ones;
    if (s->asked == GPU_ASKED_OPEN) {
        field = 0x7ff;
        fraction = fraction >> (w[3] % 52);
    } else if (how < 2) {
        field = w[2] & 0x7ff;
    } else if (how < 6) { /* the number itself, or the next one or two on either side */
        fraction = ((random & ones & ~low) + (uint64_t)(w[3] >> 3 & 3) - (uint64_t)(w[3] >> 5 & 1)) & ones;
    } else if (how == 7 && (w[3] >> 3 & 15) == 0) {
        field = w[3] >> 7 & 1 ? 0x7ff : 0;
        fraction = 0;
    }
    const uint64_t code = sign | field << 52 | fraction;
    in[0] = (uint32_t)code;
    in[1] = (uint32_t)(code >> 32);
    in[2] = 0;
}

/* The exponent of a format's smallest number. */
static inline MPSIM_HD int gpu_least_exponent(const mpsim_format *f)
{
    return mpsim_emin(f) - f->mbits;
}

/* binary32, 25 bits of u: all NaNs (and the infinities); negative numbers from -0 to minus the result's smallest. */
static inline MPSIM_HD uint32_t gpu_open_case(const gpu_scalar *s, uint32_t u)
{
    const uint32_t n = u >> 1 & 0xffffff;
    const int e = gpu_least_exponent(&s->o.result);
    const uint32_t least = e >= -126 ? (uint32_t)(e + 127) << 23 : (uint32_t)1 << (e + 149);
    return u & 1 ? 0x80000000u | (uint32_t)((uint64_t)n * (least + 1) >> 24)
                 : n >> 23 << 31 | 0x7f800000u | (n & 0x7fffff);
}

/* The operands of case i. i times an odd number is each 32-bit word once, and any prefix of it is spread over all of
 * them; so are its last 17 or 25 bits. */
static inline MPSIM_HD void gpu_scalar_case(const gpu_scalar *s, uint64_t i, uint32_t in[3])
{
    const uint32_t u = (uint32_t)i * 0x9e3779b1u;
    in[0] = in[1] = in[2] = u;
    if (s->inputs == GPU_INPUTS_TRIPLES) {
        gpu_triple(s, i, in);
    } else if (s->inputs == GPU_INPUTS_CODES) {
        gpu_code_case(&s->o.operand[0], u, in);
    } else if (s->inputs == GPU_INPUTS_WIDE) {
        gpu_wide_case(s, i, in);
    } else if (s->inputs == GPU_INPUTS_OPEN) {
        in[0] = gpu_open_case(s, u);
    } else if (s->o.operand[0].bits == 16) {
        in[0] = u >> 16;
        in[1] = u & 0xffff;
    }
}

/* ---- operands of dot products ---- */

/* Output i is row and column of a tile: i = (tile * rows + row) * columns + column. Every element of a
 * tile has a Philox block of its own: A from 0, B behind 64 lines of A, C behind the columns of B. */
enum { GPU_SLOTS = 4096, GPU_SLOTS_OF_VARIANT = 1 << 18 };

/* Elements of a column of B. */
static inline MPSIM_HD int gpu_depth_of_b(const gpu_dots *j)
{
    return j->variant.sparse ? 2 * j->k : j->k;
}

static inline MPSIM_HD int gpu_slot_b(const gpu_dots *j)
{
    return GPU_ROWS * j->depth;
}

static inline MPSIM_HD int gpu_slot_c(const gpu_dots *j)
{
    return gpu_slot_b(j) + j->columns * j->depth;
}

static inline MPSIM_HD uint64_t gpu_tile_outputs(const gpu_dots *j)
{
    return (uint64_t)(j->rows * j->columns * j->words);
}

static inline MPSIM_HD void gpu_words(const gpu_dots *j, uint64_t tile, int slot, uint32_t w[4])
{
    mpsim_rng_block(w, GPU_SEED, j->stream, tile * j->slots + (uint64_t)slot);
}

/* The sum of four uniform numbers of 16 bits, about 0: a bell of width 37837; times 2^shift, rounded.
 * `cut`: negative ones become +0. */
static inline MPSIM_HD uint32_t gpu_bell(const gpu_dots *j, const mpsim_format *f, const uint32_t w[4], int shift,
                                         int cut)
{
    const int v = (int)(w[0] >> 16) + (int)(w[0] & 0xffff) + (int)(w[1] >> 16) + (int)(w[1] & 0xffff) - 131070;
    unsigned flags;
    if (cut && v < 0)
        return 0;
    return (uint32_t)mpsim_scalar_encode(f, &j->nearest, MPSIM_ROUND_NEAREST_EVEN,
                                         mpsim_number_make(v < 0, (uint64_t)(v < 0 ? -v : v), shift), 0, &flags);
}

/* The other one of a pair that nearly cancels: the neighbour, or half the depth away in odd tiles. */
static inline MPSIM_HD int gpu_partner(const gpu_dots *j, uint64_t tile, int k)
{
    return k ^ (tile & 1 ? j->k / 2 : 1);
}

static inline MPSIM_HD uint32_t gpu_operand_cancel(const gpu_dots *j, uint64_t tile, int is_b, int first, int line,
                                                   int k)
{
    const mpsim_format *f = is_b ? &j->b : &j->a;
    const int partner = gpu_partner(j, tile, k), base = k < partner ? k : partner;
    uint32_t w[4], own[4];
    gpu_words(j, tile, first + line * j->depth + base, w);
    uint32_t code = gpu_code(f, (int)(w[1] & 1), f->bias - 2 + (int)(w[1] >> 1 & 3), w[0]);
    if (k == base)
        return code;
    gpu_words(j, tile, first + line * j->depth + k, own);
    if ((own[0] & 7) == 0)
        code = gpu_neighbour(f, code, (int)(own[0] >> 3 & 1));
    return is_b ? code : code ^ (uint32_t)mpsim_sign_bit(f, 1);
}

/* Small integers: in tile t, A says r / 8 at k = t, r mod 8 at t + 1, 1 at t + 2, and B has 8, 1 and
 * 64 c there: d = r + 64 c. All are numbers of every format. Tile j->k has only c = r + 64 c. */
static inline MPSIM_HD uint32_t gpu_layout_value(const gpu_dots *j, uint64_t tile, int is_b, int line, int k)
{
    if (tile >= (uint64_t)j->k)
        return 0;
    const int at = (k + j->k - (int)tile) % j->k;
    if (at == 0)
        return (uint32_t)(is_b ? 8 : line / 8);
    if (at == 1)
        return (uint32_t)(is_b ? 1 : line % 8);
    if (at == 2)
        return (uint32_t)(is_b ? line : 64);
    return 0;
}

static inline MPSIM_HD uint32_t gpu_integer(const gpu_dots *j, const mpsim_format *f, uint32_t v)
{
    unsigned flags;
    return (uint32_t)mpsim_scalar_encode(f, &j->nearest, MPSIM_ROUND_NEAREST_EVEN, mpsim_number_make(0, v, 0), 0,
                                         &flags);
}

static inline MPSIM_HD uint32_t gpu_layout_answer(const gpu_dots *j, int row, int column)
{
    return gpu_integer(j, &j->sum.result.format, (uint32_t)(row + 64 * column));
}

/* TINY: every other group of four tiles has products far below the smallest exponent of the result
 * and no addend, so that the floor of the alignment decides. */
static inline MPSIM_HD int gpu_is_deep(uint64_t tile)
{
    return (int)(tile >> 2 & 1);
}

/* ---- sparse products ---- */

/* The place in the depth of element k of a row of A: that element, or with a sparse A the first or the second of two
 * among four, or one of two, at random. */
static inline MPSIM_HD int gpu_chosen(const gpu_dots *j, uint64_t tile, int row, int k)
{
    static const unsigned char pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const int group = j->variant.sparse == 4 ? k / 2 : k;
    uint32_t w[4];
    if (!j->variant.sparse)
        return k;
    gpu_words(j, tile, gpu_slot_c(j) + j->rows * j->columns + row * j->k + group, w);
    return j->variant.sparse == 4 ? 4 * group + pairs[w[0] % 6][k % 2] : 2 * k + (int)(w[0] & 1);
}

/* ---- names, for the layouts of variants ----
 *
 * In a tile row r of A is not zero at one depth alone, (shift + r) mod k, where it is a digit or 1; B is 1
 * or a digit everywhere. So an output is a digit of its row, of its column, or of the depth that the
 * instruction took B from. Digits are below 8, numbers of every format. In two tiles of ten the addend
 * is the name. The first tiles already have every depth. */
enum { GPU_NAME_KINDS = 10, GPU_NAME_ROWS = 2, GPU_NAME_COLUMNS = 5, GPU_NAME_DEPTHS = 8, GPU_NAME_ADDENDS = 8 };

static inline MPSIM_HD int gpu_named_depth(const gpu_dots *j, uint64_t tile, int row)
{
    const int turn = (int)(tile / GPU_NAME_KINDS);
    const int shift = j->k > GPU_ROWS ? GPU_ROWS * turn % j->k + GPU_ROWS * turn / j->k : turn;
    return (shift + row) % j->k;
}

/* Octal digit 2, 1, 0 of x for n = 0, 1, 2. */
static inline MPSIM_HD uint32_t gpu_digit(int x, int n)
{
    return (uint32_t)(x >> (3 * (2 - n)) & 7);
}

static inline MPSIM_HD uint32_t gpu_name_value(const gpu_dots *j, uint64_t tile, int is_b, int line, int k)
{
    const int kind = (int)(tile % GPU_NAME_KINDS);
    if (kind >= GPU_NAME_ADDENDS || (!is_b && k != gpu_named_depth(j, tile, line)))
        return 0;
    if (kind < GPU_NAME_ROWS)
        return is_b ? 1 : gpu_digit(line, kind + 1);
    if (kind < GPU_NAME_COLUMNS)
        return is_b ? gpu_digit(line, kind - GPU_NAME_ROWS) : 1;
    return is_b ? gpu_digit(k, kind - GPU_NAME_COLUMNS) : 1;
}

static inline MPSIM_HD uint32_t gpu_name_addend(const gpu_dots *j, uint64_t tile, int row, int column)
{
    const int kind = (int)(tile % GPU_NAME_KINDS);
    const int named = kind == GPU_NAME_ADDENDS ? row : column;
    return kind < GPU_NAME_ADDENDS ? 0 : gpu_integer(j, &j->sum.result.format, (uint32_t)named);
}

/* The output: a negated digit has a sign, a sum that is zero has none. */
static inline MPSIM_HD uint32_t gpu_name_answer(const gpu_dots *j, uint64_t tile, int row, int column)
{
    const int kind = (int)(tile % GPU_NAME_KINDS), k = gpu_named_depth(j, tile, row);
    if (kind >= GPU_NAME_ADDENDS)
        return gpu_name_addend(j, tile, row, column);
    const uint32_t digit = gpu_name_value(j, tile, 0, row, k) *
                           gpu_name_value(j, tile, 1, column, gpu_chosen(j, tile, row, k));
    const int minus = digit && j->variant.negate_a != j->variant.negate_b;
    return gpu_integer(j, &j->sum.result.format, digit) | (uint32_t)mpsim_sign_bit(&j->sum.result.format, minus);
}

/* The distribution of a tile. Long chains of random bits would be NaN everywhere. */
static inline MPSIM_HD int gpu_distribution_of(const gpu_dots *j, uint64_t tile)
{
    const int turn = (int)(tile >> 3 & 7);
    if (j->distribution != GPU_MIXED)
        return j->distribution;
    switch (turn) {
    case 0:
        return GPU_NORMAL;
    case 1:
        return GPU_CANCEL;
    case 2:
        return GPU_TINY;
    case 3:
        return GPU_RELU;
    case 4:
        return j->k > 64 ? GPU_WIDE : GPU_RANDOM;
    case 5:
        return j->a.bits == 19 ? GPU_DIRTY : GPU_CANCEL;
    default:
        return GPU_WIDE;
    }
}

/* The element k of row `line` of A, or of column `line` of B. Tiles with tile mod 4 = 1 have A = 0
 * in TINY. */
static inline MPSIM_HD uint32_t gpu_operand(const gpu_dots *j, uint64_t tile, int is_b, int line, int k)
{
    const mpsim_format *f = is_b ? &j->b : &j->a;
    const int first = is_b ? gpu_slot_b(j) : 0;
    const int distribution = gpu_distribution_of(j, tile);
    uint32_t w[4];
    switch (distribution) {
    case GPU_NAMES:
        return gpu_integer(j, f, gpu_name_value(j, tile, is_b, line, k));
    case GPU_LAYOUT:
        return gpu_integer(j, f, gpu_layout_value(j, tile, is_b, line, k));
    case GPU_PROBE:
        return is_b ? j->probe_b[k] : j->probe_a[k];
    case GPU_CANCEL:
        return gpu_operand_cancel(j, tile, is_b, first, line, k);
    default:
        break;
    }
    gpu_words(j, tile, first + line * j->depth + k, w);
    switch (distribution) {
    case GPU_NORMAL:
        return gpu_bell(j, f, w, -15, 0);
    case GPU_DIRTY:
        return gpu_bell(j, f, w, -15, 0) | (w[3] & 0x1fff) << f->bits;
    case GPU_RELU:
        return gpu_bell(j, f, w, is_b ? -18 : -15, !is_b);
    case GPU_WIDE: { /* in odd tiles half the range, so that not every sum overflows */
        const uint32_t code = gpu_finite(f, w[0]);
        const int e = gpu_field(f, code) - f->bias;
        return tile & 1 ? gpu_code(f, (int)(w[1] & 1), f->bias + e / 2, code) : code;
    }
    case GPU_TINY: {
        /* both factors around half the result's smallest exponent, or a little lower */
        const int middle = mpsim_emin(&j->sum.result.format) / 2 - 3 + f->bias;
        const int down = gpu_is_deep(tile) ? 14 : 8;
        const int low = middle - down < 0 ? 0 : middle - down;
        if ((!is_b && (tile & 3) == 1) || (w[1] & 15) == 0)
            return (uint32_t)mpsim_sign_bit(f, (int)(w[1] >> 4 & 1));
        return gpu_code(f, (int)(w[1] >> 4 & 1), low + (int)(w[1] >> 5 & (gpu_is_deep(tile) ? 7 : 15)), w[0]);
    }
    case GPU_RANDOM:
    default:
        return w[0] & (uint32_t)((mpsim_magnitude_mask(f) << 1) | 1);
    }
}

/* Tiles whose addend is +0 everywhere; where an instruction can leave it out (wgmma, scale-d), they
 * do. */
static inline MPSIM_HD int gpu_without_addend(const gpu_dots *j, uint64_t tile)
{
    return gpu_distribution_of(j, tile) < GPU_DISTRIBUTIONS && (tile & 3) == 3;
}

static inline MPSIM_HD uint32_t gpu_addend(const gpu_dots *j, uint64_t tile, int row, int column)
{
    const mpsim_format *f = &j->sum.result.format;
    const int distribution = gpu_distribution_of(j, tile);
    uint32_t w[4];
    if (distribution == GPU_NAMES)
        return gpu_name_addend(j, tile, row, column);
    if (distribution == GPU_LAYOUT)
        return tile == (uint64_t)j->k ? gpu_layout_answer(j, row, column) : 0;
    if (distribution == GPU_PROBE)
        return j->probe_c;
    if (gpu_without_addend(j, tile))
        return 0;
    gpu_words(j, tile, gpu_slot_c(j) + row * j->columns + column, w);
    const int sign = (int)(w[1] & 1);
    if (distribution == GPU_RANDOM)
        return w[0] & (uint32_t)((mpsim_magnitude_mask(f) << 1) | 1);
    if ((w[1] >> 1 & 7) == 0 || (distribution == GPU_TINY && gpu_is_deep(tile)))
        return (uint32_t)mpsim_sign_bit(f, sign);
    switch (distribution) {
    case GPU_WIDE:
        return w[1] >> 4 & 1 ? gpu_finite(f, w[0])
                             : gpu_code(f, sign, f->bias - 40 + (int)((w[1] >> 5 & 127) % 71), w[0]);
    case GPU_CANCEL: /* below the products */
        return gpu_code(f, sign, f->bias - 24 + (int)((w[1] >> 4 & 31) % 26), w[0]);
    case GPU_TINY:
        return gpu_code(f, sign, (int)(w[1] >> 4 & 15), w[0]);
    default:
        return gpu_code(f, sign, f->bias - 8 + (int)((w[1] >> 4 & 15) % 12), w[0]);
    }
}
