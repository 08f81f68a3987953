/* tensors.c -- pairs of whole tensors: scalars, constants, places, damage, trainings. */
#include "sim/pairs/pairs.h"

#include "support/support.h"

#include <math.h>
#include <mpsim/format.h>
#include <string.h>

static double unit(uint64_t *random) { return (double)(test_random(random) >> 11) * 0x1p-53; }

/* Scalars and constants. */
#define SCALARS(name, format, of_a, of_b)                              \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) \
    {                                                                  \
        (void)random;                                                  \
        pair_shape(a, format, 1, 0), pair_shape(b, format, 1, 0);      \
        a->x[0] = of_a, b->x[0] = of_b;                                \
    }
SCALARS(step_5, "binary32", 4, 5)
SCALARS(step_8, "binary32", 7, 8)
SCALARS(step_half, "bf16", 256, 258)
SCALARS(step_twice, "binary32", 100, 200)
SCALARS(loss, "binary32", 2.3026, 2.3025)
SCALARS(loss_bit, "binary32", 2.5, 2.500000238418579)
SCALARS(loss_sign, "binary32", 0.25, -0.25)
SCALARS(scale_half, "binary32", 65536, 32768)
SCALARS(logit_scale, "binary32", 4.6052, 4.6000)

#define CONSTANTS(name, of_a, of_b)                                    \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) \
    {                                                                  \
        (void)random;                                                  \
        for (size_t i = 0; i < a->n; i++)                              \
            a->x[i] = of_a, b->x[i] = of_b;                            \
    }
CONSTANTS(ones_noise, 1 + 2e-4 * pair_normal(random), 1)
CONSTANTS(ones_trained, 1, 1 + 0.1 * pair_normal(random))
CONSTANTS(ones_half, 1, 0.5)
CONSTANTS(ones_minus, 1, -1)
CONSTANTS(ones_zeros, 1, 0)
CONSTANTS(zeros_noise, 0, 1e-3 * pair_normal(random))
CONSTANTS(zeros_tiny, 1e-12 * pair_normal(random), 0)
CONSTANTS(variance, 1, 0.9 + 0.1 * unit(random))
CONSTANTS(layer_scale, 1e-5, 1e-5 * (1 + 0.01 * pair_normal(random)))
CONSTANTS(fill_seven, 7, pair_normal(random))
CONSTANTS(flags, i % 3 == 0, i % 3 != 0)
CONSTANTS(flags_other, (double)(test_random(random) & 1), (double)(test_random(random) & 1))
CONSTANTS(few_levels, (double)(test_random(random) % 3), (double)(test_random(random) % 3))
CONSTANTS(counts, (double)i, (double)i + 2)

static void mask_infinity(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    pair_shape(a, "binary32", 32, 32), pair_shape(b, "binary32", 32, 32);
    for (size_t i = 0; i < a->n; i++)
        a->x[i] = i % 32 > i / 32 ? -HUGE_VAL : 0, b->x[i] = i % 32 > i / 32 ? -0x1.fffffep127 : 0;
}

/* Places. The rows of A, taken in another order: row r of B is row `from(r)` of A. */
static void rows_from(const pair_tensor *a, pair_tensor *b, size_t (*from)(size_t r, size_t rows))
{
    const size_t c = a->shape[1];
    for (size_t r = 0; r < a->shape[0]; r++)
        memcpy(b->x + r * c, a->x + from(r, a->shape[0]) * c, c * sizeof(double));
}

static size_t next_row(size_t r, size_t n) { return (r + 1) % n; }
static size_t half_rows(size_t r, size_t n) { return (r + n / 2) % n; }
static size_t reversed_row(size_t r, size_t n) { return n - 1 - r; }
static size_t mixed_row(size_t r, size_t n) { return (r * 29 + 5) % n; }
static size_t rotary_row(size_t r, size_t n) { return r % 2 * (n / 2) + r / 2; }
static size_t same_row(size_t r, size_t n) { return r * 0 + n * 0; }
static size_t thirds(size_t r, size_t n) { return r % 4 * (n / 4) + r / 4; }

#define ROWS(name, from) \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) { (void)random, rows_from(a, b, from); }
ROWS(next_rows, next_row)
ROWS(half_swapped, half_rows)
ROWS(reversed_rows, reversed_row)
ROWS(mixed_rows, mixed_row)
ROWS(rotary_rows, rotary_row)
ROWS(one_row, same_row)
ROWS(interleaved, thirds)

static void transposed(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    const size_t rows = a->shape[0], columns = a->shape[1];
    (void)random;
    b->shape[0] = columns, b->shape[1] = rows;
    for (size_t i = 0; i < a->n; i++)
        b->x[i] = a->x[i % rows * columns + i / rows];
}

/* The other way, in bf16 of fewer bits: what a cast before the transposition leaves. */
static void transposed_rounded(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    transposed(a, b, random);
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = ldexp(rint(ldexp(frexp(b->x[i], &(int){0}), 8)), -8) *
                  (b->x[i] == 0 ? 0 : ldexp(1, ilogb(b->x[i]) + 1));
}

static void reversed_scaled(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    reversed_rows(a, b, random);
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = b->x[i] * 0.3 + 1e-3 * a->x[i];
}

static void mixed(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = b->n; i-- > 1;) {
        const size_t k = (size_t)(test_random(random) % (i + 1));
        const double x = b->x[i];
        b->x[i] = b->x[k], b->x[k] = x;
    }
}

static void one_place(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    memmove(b->x, a->x + 1, (a->n - 1) * sizeof(double));
    b->x[a->n - 1] = a->x[0];
}

static void flattened(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    b->shape[0] = a->n, b->shape[1] = 0;
}

static void padded(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    memset(b->x + a->n, 0, 16 * a->shape[1] * sizeof(double));
    b->shape[0] += 16, b->n += 16 * a->shape[1];
}

static void row_missing(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    const size_t c = a->shape[1];
    (void)random;
    memmove(b->x + 20 * c, a->x + 21 * c, (a->n - 21 * c) * sizeof(double));
    b->shape[0]--, b->n -= c;
}

/* Damage. */
static void one_element(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    b->x[777] = 0.0123456;
}

static void other_page(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 1024; i < 2048; i++)
        b->x[i] = pair_normal(random);
}

static void bit_30(uint64_t *b, size_t n) { (void)n, b[500] ^= 1u << 30; }
static void bit_21(uint64_t *b, size_t n) { (void)n, b[500] ^= 1u << 21; }

static void bits_in_three(uint64_t *b, size_t n)
{
    (void)n;
    b[9] ^= 1u << 29, b[700] ^= 1u << 27, b[2000] ^= 1u << 30;
}

static void stuck(uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        b[i] |= 1u << 20;
}

static void swapped_bytes(uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        b[i] = __builtin_bswap32((uint32_t)b[i]);
}

static void swapped_bytes_16(uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        b[i] = __builtin_bswap16((uint16_t)b[i]);
}

/* The codes of bf16, as numbers of fp16: exact in binary64. */
static void as_fp16(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    for (size_t i = 0; i < a->n; i++)
        b->x[i] = mpsim_decode(mpsim_format_find("fp16"), bits_of_f32((float)a->x[i]) >> 16);
    b->format = "fp16";
}

/* Trainings. */
static void other_seed(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = 0.02 * pair_normal(random);
}

static void one_update(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] += 1e-3 * (unit(random) < 0.5 ? 1 : -1);
}

static void updates(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] += 5e-3 * pair_normal(random);
}

/* bf16 weights of which the updates of few are more than half a unit. */
static void update_bf16(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] += 1e-6 * pair_normal(random);
}

static void update_bf16_one(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    b->x[1234] *= 1 + 0x1p-7;
}

static void embedding(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t r = 0; r < b->shape[0]; r += 7)
        for (size_t c = 0; c < b->shape[1]; c++)
            b->x[r * b->shape[1] + c] += 1e-3 * pair_normal(random);
}

static void experts(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = b->n / 4; i < b->n / 2; i++)
        b->x[i] += 1e-3 * pair_normal(random);
}

static void sparse_gradients(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++) {
        a->x[i] = i / 48 % 6 == 1 ? pair_normal(random) : 0;
        b->x[i] = i / 48 % 6 == 4 ? pair_normal(random) : 0;
    }
}

static void other_batch(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = fmax(pair_normal(random), 0);
}

static void two_masks(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++) {
        const double x = a->x[i] / 0.9;
        a->x[i] = unit(random) < 0.1 ? 0 : x, b->x[i] = unit(random) < 0.1 ? 0 : x;
    }
}

static void sparser_gradients(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++) {
        a->x[i] = i / 48 % 30 == 1 ? pair_normal(random) : 0;
        b->x[i] = i / 48 % 30 == 17 ? pair_normal(random) : 0;
    }
}

static void threshold(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++)
        a->x[i] = unit(random), b->x[i] = a->x[i] > 0.5;
}

static void sampled(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++)
        a->x[i] = unit(random), b->x[i] = unit(random) < a->x[i];
}

static void two_norms(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++) {
        a->x[i] = 1 + 1e-3 * pair_normal(random);
        b->x[i] = 0.9 + 1e-3 * pair_normal(random);
    }
}

static void labels(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++) {
        a->x[i] = (double)(test_random(random) % 10);
        b->x[i] = (double)(test_random(random) % 10);
    }
}

static void outlier(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = 0.02 * pair_normal(random);
    a->x[99] = 1e4, b->x[99] = 2e4;
}

static void turned_signs(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    for (size_t i = 0; i < a->n; i++) {
        a->x[i] = test_random(random) & 1 ? 1 : -1;
        b->x[i] = test_random(random) & 1 ? 1 : -1;
    }
}

static void running_sums(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    for (size_t i = 1; i < b->n; i++)
        b->x[i] = b->x[i - 1] + a->x[i];
}

static void three_values(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    pair_shape(a, "bf16", 3, 0), pair_shape(b, "bf16", 3, 0);
    for (int i = 0; i < 3; i++)
        a->x[i] = pair_normal(random), b->x[i] = pair_normal(random);
}

static void low_rank(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    double u[64], v[48];
    (void)a;
    for (int i = 0; i < 64; i++)
        u[i] = 0.03 * pair_normal(random);
    for (int i = 0; i < 48; i++)
        v[i] = 0.1 * pair_normal(random);
    for (size_t i = 0; i < b->n; i++)
        b->x[i] += u[i / 48] * v[i % 48];
}

static void accumulated(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] += ldexp(pair_normal(random), -6 - (int)(test_random(random) % 12));
}

static void average(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = 0.999 * b->x[i] + 0.001 * 0.02 * pair_normal(random);
}

static void decoding(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 40 * 48; i < b->n; i++)
        b->x[i] = 0.02 * pair_normal(random);
}

static void two_values(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    pair_shape(a, "binary32", 2, 0), pair_shape(b, "binary32", 2, 0);
    for (int i = 0; i < 2; i++)
        a->x[i] = pair_normal(random), b->x[i] = pair_normal(random);
}

#define ROW(n, c, right_, near_, base_, f)                                              \
    {                                                                                   \
        .name = n, .cause = c, .right = right_, .near = near_, .base = base_, .make = f \
    }
#define CODES(n, c, right_, near_, base_, f)                                             \
    {                                                                                    \
        .name = n, .cause = c, .right = right_, .near = near_, .base = base_, .codes = f \
    }

const pair pairs_tensors[] = {
    /* scalars are scalars, constants prove nothing */
    ROW("step 4, 5", "a step counter", "scalar", "", pair_scalar, step_5),
    ROW("step 7, 8", "a step counter", "scalar", "", pair_scalar, step_8),
    ROW("step in bf16", "a step counter of bf16", "scalar", "", pair_scalar, step_half),
    ROW("step 100, 200", "a step counter, later", "scalar", "", pair_scalar, step_twice),
    ROW("loss", "a loss", "scalar", "", pair_scalar, loss),
    ROW("loss, one bit", "a loss, added in another order", "scalar", "", pair_scalar, loss_bit),
    ROW("loss, sign", "a loss with the opposite sign, one number", "scalar", "", pair_scalar, loss_sign),
    ROW("loss scale halved", "a loss scale", "scalar", "", pair_scalar, scale_half),
    ROW("logit scale", "a scale that is trained", "scalar", "", pair_scalar, logit_scale),
    ROW("noise, ones", "a norm that was trained a little against ones", "constant", "", pair_ones, ones_noise),
    ROW("ones, trained", "ones against a norm that was trained", "constant", "", pair_ones, ones_trained),
    ROW("ones, halves", "constants", "constant", "", pair_ones, ones_half),
    ROW("ones, minus ones", "constants", "constant", "", pair_ones, ones_minus),
    ROW("ones, zeros", "constants", "constant", "", pair_ones, ones_zeros),
    ROW("zeros, noise", "a bias of zeros against a trained one", "constant", "zeroed", pair_zeros, zeros_noise),
    ROW("tiny, zeros", "a gradient that should be zero", "constant", "zeroed", pair_zeros, zeros_tiny),
    ROW("variance", "a running variance of ones against a trained one", "constant", "", pair_ones, variance),
    ROW("layer scale", "1e-5 against a trained one", "constant", "", pair_ones, layer_scale),
    ROW("sevens", "a fill value against numbers", "constant", "", pair_ones, fill_seven),
    ROW("flags inverted", "zeros and ones, exchanged", "", "", pair_ones, flags),
    ROW("other flags", "zeros and ones at random", "", "", pair_ones, flags_other),
    ROW("three levels", "few different values at random", "", "", pair_ones, few_levels),
    ROW("positions + 2", "positions that begin with 2", "offset shifted", "", pair_ones, counts),
    ROW("mask", "a mask of -infinity against the lowest number", "non-finite", "clipped", pair_empty, mask_infinity),
    ROW("two values", "two numbers each", "", "", pair_empty, two_values),

    /* places */
    ROW("next row", "labels that begin one row later", "shifted", "permuted", pair_weight, next_rows),
    ROW("halves of rows", "gate and up exchanged", "shifted", "permuted", pair_weight, half_swapped),
    ROW("rows reversed", "rows reversed", "reversed", "permuted", pair_weight, reversed_rows),
    ROW("rows mixed", "a batch shuffled", "permuted", "", pair_weight, mixed_rows),
    ROW("rotary rows", "halves of a head interleaved", "transposed permuted", "", pair_weight, rotary_rows),
    ROW("four parts interleaved", "q, k, v and gate interleaved", "transposed permuted", "", pair_weight, interleaved),
    ROW("one row", "one row everywhere", "", "", pair_weight, one_row),
    ROW("transposed", "a matrix stored the other way", "transposed", "permuted", pair_weight, transposed),
    ROW("transposed, rounded", "a matrix stored the other way, after a cast", "rearranged", "", pair_weight,
        transposed_rounded),
    ROW("reversed, scaled", "rows reversed, times 0.3, with noise", "rearranged", "", pair_weight, reversed_scaled),
    ROW("mixed", "elements shuffled", "permuted", "", pair_weight, mixed),
    ROW("one place", "read one element too far", "shifted", "permuted", pair_weight, one_place),
    ROW("flattened", "another shape", "reshaped", "", pair_weight, flattened),
    ROW("padded", "a vocabulary padded with zeros", "resized", "", pair_weight, padded),
    ROW("row missing", "a row missing", "resized", "", pair_weight, row_missing),

    /* damage */
    CODES("bit 30", "a bit of the exponent", "flipped-bit", "corrupted", pair_weight, bit_30),
    CODES("bit 21", "a bit of the significand", "flipped-bit", "corrupted", pair_weight, bit_21),
    CODES("three bits", "bits in three elements", "flipped-bit", "corrupted", pair_weight, bits_in_three),
    CODES("stuck bit", "a bit that is always set", "", "flipped-bit", pair_weight, stuck),
    CODES("byte order", "bytes the other way", "byte-order", "", pair_weight, swapped_bytes),
    CODES("byte order of bf16", "bytes the other way", "byte-order", "", pair_weight_bf16, swapped_bytes_16),
    ROW("bf16 as fp16", "codes of bf16 under the name of fp16", "reinterpreted", "", pair_weight_bf16, as_fp16),
    ROW("one element", "another number in one place", "corrupted", "partial", pair_weight, one_element),
    ROW("another page", "4 KiB of something else", "corrupted", "partial", pair_weight, other_page),

    /* trainings */
    ROW("another seed", "another seed", "unrelated", "", pair_weight, other_seed),
    ROW("one update", "one update of Adam", "close", "", pair_weight, one_update),
    ROW("some updates", "some more steps", "close", "", pair_weight, updates),
    ROW("update of bf16", "an update that bf16 mostly loses", "partial", "", pair_weight_bf16, update_bf16),
    ROW("update of one", "an update that bf16 loses but for one", "partial", "", pair_weight_bf16, update_bf16_one),
    ROW("embedding", "rows of the tokens of one batch moved", "partial", "", pair_weight, embedding),
    ROW("experts", "one expert of four moved", "partial", "", pair_weight, experts),
    ROW("sparse gradients", "gradients of embeddings, two batches", "unrelated", "", pair_weight, sparse_gradients),
    ROW("another batch", "activations of two batches", "unrelated", "", pair_activation, other_batch),
    ROW("two masks", "dropout on both sides, with other masks", "dropout", "", pair_hidden, two_masks),
    ROW("low rank", "an adapter of rank 1 merged", "close", "", pair_weight, low_rank),
    ROW("accumulated", "a gradient added to the last one", "", "", pair_gradient, accumulated),
    ROW("average", "a running average", "close", "scaled", pair_weight, average),
    ROW("decoding", "equal up to one token, other tokens behind", "partial", "corrupted", pair_weight, decoding),

    /* what could be taken for something else */
    ROW("sparser gradients", "gradients of embeddings, few tokens", "unrelated", "", pair_weight, sparser_gradients),
    ROW("threshold", "probabilities, and whether they are above a half", "", "rounded", pair_weight, threshold),
    ROW("sampled", "probabilities, and what was drawn", "", "", pair_weight, sampled),
    ROW("two norms", "two trained norms, both near ones", "", "", pair_ones, two_norms),
    ROW("labels", "labels of two batches", "", "", pair_weight, labels),
    ROW("outlier", "one outlier in both, otherwise two seeds", "unrelated", "", pair_weight, outlier),
    ROW("signs of 1", "ones with random signs", "", "signs", pair_weight, turned_signs),
    ROW("running sums", "sums up to each element", "", "", pair_weight, running_sums),
    ROW("three values", "three numbers of bf16 each", "", "", pair_empty, three_values),
    {.name = NULL},
};
