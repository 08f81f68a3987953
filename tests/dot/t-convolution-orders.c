/* t-convolution-orders.c -- sizes of convolutions and orders of their sums as they are known: by hand, and those of `mpsim train`. */
#include "support/convnaive.h"
#include "sim/verify/kinds.h"
#include "support/dotcases.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/format.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* ---- as frameworks know them ---- */

CASE("orders", 5);

TEST(sizes_of_frameworks)
{
    mpsim_convolution c;
    size_t n = 77;
    mpsim_convolution_init(&c);
    mpsim_convolution_init(NULL);
    c.stride[0] = 2;
    c.padding[0] = 1;
    ck_assert(mpsim_convolution_size(&c, 0, 7, 3, 0, &n) == MPSIM_OK && n == 4);
    ck_assert(mpsim_convolution_size(&c, 1, 2, 3, 0, &n) == MPSIM_OK && n == 0); /* 2 - 3 + 1 */
    ck_assert(mpsim_convolution_size(&c, 1, 1, 3, 0, &n) == MPSIM_EINVAL && n == 0);
    c.transposed = 1;
    ck_assert(mpsim_convolution_size(&c, 0, 7, 3, 1, &n) == MPSIM_OK && n == 14); /* 6 2 - 2 + 3 + 1 */
    ck_assert(mpsim_convolution_size(&c, 1, 1, 3, 0, &n) == MPSIM_OK && n == 3);
    ck_assert(mpsim_convolution_size(NULL, 0, 1, 1, 0, &n) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_size(&c, 3, 1, 1, 0, &n) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_size(&c, 0, SIZE_MAX, 1, 0, &n) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_size(&c, 0, 1, 1, 0, NULL) == MPSIM_EINVAL && n == 3);
}

TEST(padding_is_a_product)
{
    convproblem p;
    convproblem_by_hand(&p);
    convtensor_put(&p.x, (const float[]){1, 2, 3});
    convtensor_put(&p.w, (const float[]){INFINITY, 10, 100});
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(isnan(convtensor_number(&p.y, 0))); /* 0 times infinity */
    ck_assert(convtensor_number(&p.y, 1) == INFINITY && convtensor_number(&p.y, 2) == INFINITY);
    convtensor_put(&p.w, (const float[]){1, 10, 100});
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(convtensor_number(&p.y, 0) == 210 && convtensor_number(&p.y, 1) == 321 &&
              convtensor_number(&p.y, 2) == 32);
    p.what = CONV_INPUT; /* dx[q] = dy[q + 1] w[0] + dy[q] w[1] + dy[q - 1] w[2] */
    convtensor_put(&p.y, (const float[]){1, 2, 3});
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(convtensor_number(&p.x, 0) == 12 && convtensor_number(&p.x, 1) == 123 &&
              convtensor_number(&p.x, 2) == 230);
    p.what = CONV_WEIGHT; /* dw[t] = sum dy[p] x[p - 1 + t] */
    convtensor_put(&p.x, (const float[]){1, 10, 100});
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(convtensor_number(&p.w, 0) == 32 && convtensor_number(&p.w, 1) == 321 &&
              convtensor_number(&p.w, 2) == 210);
    convproblem_clear(&p);
}

/* 2^24 + 1 - 2^24: of a gradient, the taps' order shows. */
TEST(order_of_taps)
{
    convproblem p;
    convproblem_by_hand(&p);
    p.what = CONV_INPUT;
    convtensor_put(&p.y, (const float[]){0x1p24f, 1, -0x1p24f});
    convtensor_put(&p.w, (const float[]){1, 1, 1});
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(convtensor_number(&p.x, 1) == 0); /* dy ascending: 2^24 + 1 is 2^24 */
    convtensor_put(&p.y, (const float[]){1, 0x1p24f, -0x1p24f});
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(convtensor_number(&p.x, 1) == 0);
    p.c.taps = MPSIM_TAPS_AS_WEIGHTS;
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    ck_assert(convtensor_number(&p.x, 1) == 1);
    convproblem_clear(&p);
}

/* Rows of 31 columns by a kernel of 5: chains of 28 and 3 columns, each from +0 on, are added in binary32. */
TEST(rows_in_pieces)
{
    enum { N = 2, H = 3, W = 31, PIECE = 28 };
    const mpsim_format *f = mpsim_format_find("bf16");
    uint64_t seed = test_seed() + 25;
    convproblem p = {.n = 0};
    mpsim_model chain;
    ck_assert(mpsim_model_parse(&p.m, "avx512-bf16-fp32:chunk=28") == MPSIM_OK);
    ck_assert(mpsim_model_parse(&chain, "avx512-bf16-fp32") == MPSIM_OK);
    convsizes_init(&p.c, 2);
    p.c.images = N;
    p.c.channels = p.c.outputs = 1;
    p.c.row_multiple = PIECE;
    p.c.in[0] = H;
    p.c.in[1] = W;
    p.c.kernel[0] = p.c.kernel[1] = 5;
    p.c.padding[0] = p.c.padding[1] = 2;
    ck_assert(convsizes_set(&p.c, NULL));
    convproblem_tensors(&p, f, mpsim_format_find("binary32"), f, &seed);
    convtensor_fill(&p.x, KIND_NORMAL, &seed);
    convtensor_fill(&p.y, KIND_NORMAL, &seed);
    p.what = CONV_WEIGHT;
    ck_assert(convproblem_run(&p) == MPSIM_OK);
    for (size_t t = 0; t < 25; t++) {
        float sum = 0;
        for (size_t row = 0; row < N * H; row++)
            for (size_t first = 0; first < W; first += PIECE) {
                uint16_t a[PIECE], b[PIECE];
                size_t n = 0;
                uint64_t code = 0;
                for (; n < PIECE && first + n < W; n++) {
                    const size_t at[CONV_AXES] = {row / H, 0, row % H, first + n, 0};
                    size_t from[CONV_AXES] = {row / H, 0, 0, 0, 0};
                    const int inside = convsizes_reads(&p.c, 0, at + 2, (const size_t[]){t / 5, t % 5}, p.x.size + 2,
                                                       from + 2);
                    a[n] = (uint16_t)convtensor_load(&p.y, at);
                    b[n] = (uint16_t)(inside ? convtensor_load(&p.x, from) : 0);
                }
                ck_assert(mpsim_dot(&chain, f, a, f, b, n, 0, NULL, &code) == MPSIM_OK);
                sum += f32_of_bits((uint32_t)code);
            }
        ck_assert(bits_of_f32(sum) == bits_of_f32(convtensor_number(&p.w, t)));
    }
    convproblem_clear(&p);
}

/* What lib/include/train/train.h says of a trainer's convolutions, 3 x 3 with padding 1, in NHWC: im2col(x) W^T, dy^T im2col(x),
 * im2col(dy) V^T with V[c, (ky 3 + kx) O + o] = W[o, (2 - ky, 2 - kx, c)]. */
enum { IMAGES = 2, SIDE = 5, FROM = 3, TO = 4, PIXELS = IMAGES * SIDE * SIDE };

static void im2col(uint16_t *to, const uint16_t *x, int channels)
{
    for (int i = 0; i < PIXELS * 9 * channels; i++) {
        const int c = i % channels, k = i / channels % 9, pixel = i / channels / 9;
        const int y = pixel / SIDE % SIDE + k / 3 - 1, across = pixel % SIDE + k % 3 - 1;
        const int inside = y >= 0 && y < SIDE && across >= 0 && across < SIDE;
        to[i] = inside ? x[((pixel / SIDE / SIDE * SIDE + y) * SIDE + across) * channels + c] : 0;
    }
}

static void expect_gemm(const mpsim_model *m, size_t rows, size_t columns, size_t depth, const mpsim_matrix *a,
                        const mpsim_matrix *b, const float *found)
{
    float *want = malloc(rows * columns * sizeof *want);
    ck_assert(want);
    ck_assert(mpsim_gemm(m, rows, columns, depth, a, b, NULL, want, columns, NULL, NULL) == MPSIM_OK);
    ck_assert(memcmp(want, found, rows * columns * sizeof *want) == 0);
    free(want);
}

TEST(as_the_trainer)
{
    static uint16_t x[PIXELS * FROM], w[TO * 9 * FROM], v[FROM * 9 * TO], dy[PIXELS * TO], columns[PIXELS * 9 * TO];
    static float y[PIXELS * TO], dx[PIXELS * FROM], dw[TO * 9 * FROM];
    const mpsim_format *f = mpsim_format_find("bf16"), *r = mpsim_format_find("binary32");
    uint64_t seed = test_seed() + 24;
    mpsim_model m;
    ck_assert(mpsim_model_parse(&m, "hopper-bf16-fp32") == MPSIM_OK);
    uint16_t *const all[] = {x, w, dy};
    const size_t sizes_of[] = {COUNT(x), COUNT(w), COUNT(dy)};
    for (size_t k = 0; k < COUNT(all); k++)
        for (size_t i = 0; i < sizes_of[k]; i++)
            all[k][i] = (uint16_t)(0x3f00 + (test_random(&seed) & 0x80ff));
    for (int c = 0; c < FROM; c++)
        for (int k = 0; k < 9; k++)
            for (int o = 0; o < TO; o++)
                v[(c * 9 + k) * TO + o] = w[(o * 9 + 8 - k) * FROM + c];
    mpsim_convolution c;
    mpsim_convolution_init(&c);
    c.model = &m;
    c.padding[0] = c.padding[1] = 1;
#define NHWC(format, codes, channels)                             \
    {                                                             \
        format, codes, 4, {IMAGES, channels, SIDE, SIDE},         \
        {                                                         \
            SIDE *SIDE *(channels), 1, SIDE *(channels), channels \
        }                                                         \
    }
#define TAPS(format, codes)                 \
    {                                       \
        format, codes, 4, {TO, FROM, 3, 3}, \
        {                                   \
            9 * FROM, 1, 3 * FROM, FROM     \
        }                                   \
    }
    const mpsim_stack tx = NHWC(f, x, FROM), tdy = NHWC(f, dy, TO), ty = NHWC(r, y, TO), tdx = NHWC(r, dx, FROM);
    const mpsim_stack tw = TAPS(f, w), tdw = TAPS(r, dw);
    mpsim_operand ox, ow, ody;
    mpsim_operand_init(&ox, &tx, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&ow, &tw, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&ody, &tdy, NULL, MPSIM_ROUND_NEAREST_EVEN);
    c.a = &ox;
    c.b = &ow;
    c.d = &ty;
    ck_assert(mpsim_convolution_forward(&c, NULL) == MPSIM_OK);
    c.a = &ody;
    c.d = &tdx;
    ck_assert(mpsim_convolution_backward_input(&c, NULL) == MPSIM_OK);
    c.b = &ox;
    c.d = &tdw;
    ck_assert(mpsim_convolution_backward_weight(&c, NULL) == MPSIM_OK);
    im2col(columns, x, FROM);
    expect_gemm(&m, PIXELS, TO, 9 * FROM, &(mpsim_matrix){f, columns, 9 * FROM, 0}, &(mpsim_matrix){f, w, 9 * FROM, 1},
                y);
    expect_gemm(&m, TO, 9 * FROM, PIXELS, &(mpsim_matrix){f, dy, TO, 1}, &(mpsim_matrix){f, columns, 9 * FROM, 0}, dw);
    im2col(columns, dy, TO);
    expect_gemm(&m, PIXELS, FROM, 9 * TO, &(mpsim_matrix){f, columns, 9 * TO, 0}, &(mpsim_matrix){f, v, 9 * TO, 1}, dx);
}

TEST_MAIN("convolution-orders");
