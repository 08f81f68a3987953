/* elements.c -- pairs of which B is A element by element: scales, signs, limits, offsets. */
#include "sim/pairs/pairs.h"

#include "support/support.h"

#include <math.h>

static uint64_t hash(size_t i)
{
    uint64_t state = 77 + i;
    return test_random(&state);
}

static double share(size_t i) { return (double)(hash(i) >> 11) * 0x1p-53; } /* in [0, 1), the same for each i */

static double loss_scale(double x, size_t i) { return (void)i, x * 65536; }
static double sum_of_8(double x, size_t i) { return (void)i, x * 8; }
static double ten(double x, size_t i) { return (void)i, x * 10; }
static double ten_ulps(double x, size_t i) { return x * 10 * (1 + ldexp((double)(hash(i) % 7) - 3, -23)); }
static double third(double x, size_t i) { return (void)i, x / 3; }
static double four_thirds(double x, size_t i) { return x * 4 / 3 * (1 + 1e-6 * (share(i) - 0.5)); }
static double clip_norm(double x, size_t i) { return (void)i, x * 0.3712; }
static double decay(double x, size_t i) { return (void)i, x * (1 - 1e-3 * 0.1); }
static double head_64(double x, size_t i) { return (void)i, x / 8; }
static double negate(double x, size_t i) { return (void)i, -x; }
static double negate_third(double x, size_t i) { return (void)i, -x / 3; }
static double temperature(double x, size_t i) { return (void)i, x / 0.7; }
static double bytes(double x, size_t i) { return (void)i, x / 255; }
static double gemma(double x, size_t i) { return (void)i, x + 1; }
static double centred(double x, size_t i) { return (void)i, x - 0.0371; }
static double row_scale(double x, size_t i) { return x * (0.5 + share(i / 48)); }
static double column_scale(double x, size_t i) { return x * (0.5 + share(i % 48)); }
static double log_softmax(double x, size_t i) { return x - (4 + share(i / 96)); }
static double absolute(double x, size_t i) { return (void)i, fabs(x); }
static double squared(double x, size_t i) { return (void)i, x * x; }
static double inverse(double x, size_t i) { return (void)i, 1 / x; }
static double softcap(double x, size_t i) { return (void)i, 3 * tanh(x / 3); }
static double gelu(double x, size_t i) { return (void)i, 0.5 * x * (1 + erf(x / sqrt(2))); }
static double gelu_tanh(double x, size_t i)
{
    return (void)i, 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}
static double affine(double x, size_t i) { return (void)i, (x - 0.485) / 0.229; }

static double clip_1(double x, size_t i) { return (void)i, fmin(fmax(x, -1), 1); }
static double clip_value(double x, size_t i) { return (void)i, fmin(fmax(x, -0.005), 0.005); }
static double relu(double x, size_t i) { return (void)i, fmax(x, 0); }
static double dropout_10(double x, size_t i) { return share(i) < 0.1 ? 0 : x / 0.9; }
static double dropout_50(double x, size_t i) { return share(i) < 0.5 ? 0 : x * 2; }
static double dropout_plain(double x, size_t i) { return share(i) < 0.2 ? 0 : x; }
static double prune(double x, size_t i) { return (void)i, fabs(x) < 0.0135 ? 0 : x; }
static double prune_24(double x, size_t i) { return i % 4 == hash(i / 4) % 4 || i % 4 == hash(i / 4) / 4 % 4 ? 0 : x; }
static double tail(double x, size_t i) { return i < 60 * 48 ? x : 0; }
static double page(double x, size_t i) { return i < 1024 || i >= 2048 ? x : 0; }
static double padding_row(double x, size_t i) { return i / 48 == 3 ? 0 : x; }
static double heads(double x, size_t i) { return i / 48 % 16 < 12 ? x : 0; }
static double flushed(double x, size_t i) { return (void)i, fabs(x) < 0x1p-14 ? 0 : x; }
static double one_nan(double x, size_t i) { return i == 100 ? (double)NAN : x; }
static double overflown(double x, size_t i) { return (void)i, fabs(x) > 2.5 ? HUGE_VAL * x : x; }
static double minus_zero(double x, size_t i) { return (void)i, x == 0 ? -0.0 : x; }
static double signs(double x, size_t i) { return hash(i) & 1 ? x : -x; }
static double noise_1e2(double x, size_t i) { return x + 0.02 * 0.01 * (share(i) - 0.5); }

#define ROW(n, c, right_, near_, base_, f)                                                 \
    {                                                                                      \
        .name = n, .cause = c, .right = right_, .near = near_, .base = base_, .element = f \
    }

const pair pairs_elements[] = {
    /* scales */
    ROW("loss scale", "the loss scale left in", "scaled", "", pair_gradient, loss_scale),
    ROW("sum of 8", "a sum over 8 ranks instead of a mean", "scaled", "", pair_gradient, sum_of_8),
    ROW("ten", "10 times, rounded", "scaled", "", pair_gradient, ten),
    ROW("ten, 3 ulp", "10 times, within three units in the last place", "scaled", "", pair_gradient, ten_ulps),
    ROW("a third in bf16", "a third, both in bf16", "scaled", "", pair_gradient_bf16, third),
    ROW("mean of 3", "4/3 times, and sums in another order", "scaled", "", pair_gradient, four_thirds),
    ROW("clipped norm", "gradients clipped by their norm", "scaled", "", pair_gradient, clip_norm),
    ROW("weight decay", "one step of weight decay alone", "scaled", "", pair_weight, decay),
    ROW("weight decay in bf16", "weight decay of which bf16 keeps nothing", "equal", "", pair_weight_bf16, decay),
    ROW("1/sqrt(64)", "the scale of attention missing", "scaled", "", pair_hidden, head_64),
    ROW("temperature", "logits over 0.7", "scaled", "", pair_hidden, temperature),
    ROW("bytes", "images over 255", "scaled", "", pair_hidden, bytes),
    ROW("negated", "the sign of a loss", "negated scaled", "", pair_gradient, negate),
    ROW("minus a third", "a sign and a mean", "scaled negated", "", pair_gradient, negate_third),
    ROW("scale of rows", "a loss averaged over each sequence by its length", "scaled", "", pair_weight, row_scale),
    ROW("scale of columns", "a norm's weights folded into the next layer", "scaled", "", pair_weight, column_scale),
    /* offsets and functions */
    ROW("one more", "a norm that stores its weights less 1", "offset", "", pair_weight, gemma),
    ROW("centred", "its mean subtracted", "offset", "", pair_hidden, centred),
    ROW("log-softmax", "logits against their logarithms of softmax", "offset", "", pair_hidden, log_softmax),
    ROW("magnitudes", "magnitudes against numbers with signs", "signs", "", pair_weight, absolute),
    ROW("squares", "second against first moments", "", "", pair_gradient, squared),
    ROW("inverse", "scales stored as their inverses", "", "", pair_hidden, inverse),
    ROW("softcap", "logits capped by a tanh", "", "", pair_hidden, softcap),
    ROW("gelu", "gelu against its input", "", "", pair_hidden, gelu),
    ROW("gelu by tanh", "gelu by tanh against nothing", "", "", pair_hidden, gelu_tanh),
    ROW("affine", "mean and deviation of images taken out", "affine", "", pair_hidden, affine),
    ROW("random signs", "signs of elements turned at random", "signs", "", pair_weight, signs),
    ROW("noise of 1 %", "noise", "close", "", pair_weight, noise_1e2),
    /* limits and zeros */
    ROW("clipped at 1", "numbers clipped to [-1, 1]", "clipped", "", pair_hidden, clip_1),
    ROW("clipped values", "gradients clipped by value", "clipped", "", pair_gradient, clip_value),
    ROW("relu", "a relu that one side lacks", "zeroed", "clipped", pair_hidden, relu),
    ROW("dropout 0.1", "dropout with p = 0.1", "dropout", "zeroed", pair_hidden, dropout_10),
    ROW("dropout 0.5", "dropout with p = 0.5", "dropout", "zeroed", pair_hidden, dropout_50),
    ROW("dropout of relu", "dropout behind a relu", "dropout", "zeroed", pair_activation, dropout_10),
    ROW("mask", "one fifth masked without a scale", "zeroed", "dropout", pair_hidden, dropout_plain),
    ROW("pruned", "half of the weights pruned by magnitude", "zeroed", "", pair_weight, prune),
    ROW("pruned 2:4", "up to two of four weights pruned", "zeroed", "", pair_weight, prune_24),
    ROW("tail", "the last rows never written", "zeroed", "", pair_weight, tail),
    ROW("page", "a page of 4 KiB of zeros", "zeroed", "", pair_weight, page),
    ROW("padding row", "the row of the padding token zeroed", "zeroed", "", pair_weight, padding_row),
    ROW("heads", "heads pruned", "zeroed", "", pair_weight, heads),
    ROW("flushed", "small gradients flushed to zero", "zeroed", "", pair_gradient, flushed),
    ROW("one NaN", "one NaN", "non-finite", "", pair_weight, one_nan),
    ROW("overflow", "numbers that became infinite", "non-finite", "", pair_hidden, overflown),
    ROW("minus zero", "zeros with signs", "codes", "", pair_activation, minus_zero),
    {.name = NULL},
};
