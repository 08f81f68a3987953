/* t-engine-layers.c -- layers of the CPU engine (gathering, activations, pooling, sums,
 * the loss, normalisation) against loops that say the same in the words of lib/include/train/engine.h, one
 * element after the other. */
#include "support/trainengine.h"

#include <math.h>

/* ---- gathering, activations, pooling ---- */

START_TEST(test_gather)
{
    train_tensor x = any("fp16", 9, 7, 1), y = make(format("fp16"), 13, 11, NULL);
    int32_t index[143];
    float want[143];
    void *handle = NULL;
    const float *v = get(&x);
    for (size_t i = 0; i < 143; i++) {
        index[i] = (int32_t)(test_random(&seed) % 64) - 1;
        want[i] = index[i] < 0 ? 0.0f : v[index[i]];
    }
    index[3] = 62;
    want[3] = v[62];
    OK(ops->index_new(&engine, index, 143, &handle));
    memset(index, 0, sizeof index); /* the engine has its own */
    x.inverse = 0.25f;
    OK(ops->gather(&engine, &y, &x, handle));
    engine_same("gather", get(&y), want, 143);
    ck_assert(y.inverse == 0.25f);
    x.rows = 8; /* 62 is beyond */
    FAILS(ops->gather(&engine, &y, &x, handle), "beyond");
    x.rows = 9;
    y.rows = 12;
    FAILS(ops->gather(&engine, &y, &x, handle), "143");
    y.rows = 13;
    FAILS(ops->gather(&engine, &y, &x, NULL), "NULL");
    FAILS(ops->gather(&engine, &y, &y, handle), "");
    ops->index_free(&engine, handle);
    index[5] = -2;
    FAILS(ops->index_new(&engine, index, 143, &handle), "number 5");
    ck_assert_ptr_null(handle);
    ops->index_free(&engine, handle);
    drop(&x);
    drop(&y);
}

START_TEST(test_relu)
{
    float in[] = {1, -1, 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f};
    const float out[] = {1, 0, 0, 0, INFINITY, 0, NAN, 0x1p-149f, 0};
    const float up[] = {2, 3, 4, 5, -6, NAN, 7, -0.0f, 8};
    const float down[] = {2, 0, 0, 0, -6, 0, 0, -0.0f, 0};
    const mpsim_format *f = format("binary32");
    train_tensor x = make(f, 3, 3, in), y = make(f, 3, 3, NULL), dy = make(f, 3, 3, up);
    OK(ops->relu(&engine, &y, &x));
    engine_same("relu", get(&y), out, 9);
    train_tensor dx = make(f, 3, 3, NULL);
    OK(ops->relu_backward(&engine, &dx, &dy, &y));
    engine_same("relu backward", get(&dx), down, 9);
    OK(ops->relu_backward(&engine, &dy, &dy, &y));
    engine_same("onto itself", get(&dy), down, 9);
    OK(ops->relu(&engine, &x, &x));
    engine_same("onto itself", get(&x), out, 9);
    drop(&x);
    drop(&y);
    drop(&dy);
    drop(&dx);
}

static void pool_by_hand(const train_pool *p, const float *x, float *y, const float *dy, float *dx)
{
    const size_t h = p->height / p->size, w = p->width / p->size, c = p->channels;
    for (size_t i = 0; i < p->images * p->height * p->width * c; i++)
        dx[i] = 0;
    for (size_t n = 0; n < p->images; n++)
        for (size_t i = 0; i < h; i++)
            for (size_t j = 0; j < w; j++)
                for (size_t k = 0; k < c; k++) {
                    const size_t to = ((n * h + i) * w + j) * c + k;
                    size_t best = SIZE_MAX;
                    for (size_t u = i * p->size; u < (i + 1) * p->size; u++)
                        for (size_t v = j * p->size; v < (j + 1) * p->size; v++) {
                            const size_t from = ((n * p->height + u) * p->width + v) * c + k;
                            if (best == SIZE_MAX || (!isnan(x[best]) && isnan(x[from])) || x[from] > x[best])
                                best = from;
                        }
                    y[to] = x[best];
                    dx[best] = dy[to];
                }
}

/* A NaN wherever it stands in a window, the first of two, beside numbers on either side. */
START_TEST(test_maxpool_nan)
{
    enum { WINDOWS = 8 };
    const float i = INFINITY, n = NAN;
    float in[4 * WINDOWS] = {n, 1,  2, 3, 1, n, 2, 3, 1,  2,  3,  n, 4, 3,     n, i,
                             n, -1, 2, n, 5, n, 5, n, -1, -2, -i, n, i, -0.0f, n, -i};
    const size_t at[WINDOWS] = {0, 1, 3, 2, 0, 1, 3, 2};
    const train_pool p = {WINDOWS, 2, 2, 1, 2};
    float up[WINDOWS], all[WINDOWS], down[4 * WINDOWS] = {0};
    for (size_t k = 0; k < WINDOWS; k++) {
        up[k] = (float)(k + 1);
        all[k] = NAN;
        down[4 * k + at[k]] = up[k];
    }
    train_tensor x = make(format("bf16"), 4 * WINDOWS, 1, in);
    train_tensor y = make(format("bf16"), WINDOWS, 1, NULL);
    train_tensor dy = make(format("binary32"), WINDOWS, 1, up);
    train_tensor dx = make(format("binary32"), 4 * WINDOWS, 1, NULL);
    OK(ops->maxpool(&engine, &y, &x, &p));
    engine_same("maxpool", get(&y), all, WINDOWS);
    OK(ops->maxpool_backward(&engine, &dx, &dy, &x, &p));
    engine_same("maxpool backward", get(&dx), down, 4 * WINDOWS);
    drop(&x);
    drop(&y);
    drop(&dy);
    drop(&dx);
}

START_TEST(test_maxpool)
{
    const train_pool pools[] = {{2, 4, 6, 3, 2}, {1, 5, 7, 2, 2}, {3, 3, 6, 1, 3}, {1, 2, 2, 4, 1}, {1, 2, 4, 70, 2}};
    const train_pool p = pools[_i % 5];
    const size_t in = p.images * p.height * p.width;
    const size_t out = p.images * (p.height / p.size) * (p.width / p.size);
    static float values[MOST], y_[MOST], dx_[MOST];
    fill(format("e2m1"), values, in * p.channels, 1, 2, 0); /* few numbers: many are equal */
    for (size_t i = 0; _i >= 5 && i < in * p.channels; i++)
        values[i] = test_random(&seed) % 4 == 0   ? NAN
                    : test_random(&seed) % 4 == 0 ? -INFINITY
                    : test_random(&seed) % 4 == 0 ? -0.0f
                    : test_random(&seed) % 4 == 0 ? 0.0f
                                                  : values[i];
    train_tensor x = make(format("bf16"), in, p.channels, values);
    train_tensor y = make(format("bf16"), out, p.channels, NULL);
    train_tensor dy = any("fp16", out, p.channels, 1);
    train_tensor dx = any("fp16", in, p.channels, 0);
    pool_by_hand(&p, values, y_, get(&dy), dx_);
    OK(ops->maxpool(&engine, &y, &x, &p));
    engine_same("maxpool", get(&y), y_, out * p.channels);
    OK(ops->maxpool_backward(&engine, &dx, &dy, &x, &p));
    engine_same("maxpool backward", get(&dx), dx_, in * p.channels);
    drop(&x);
    drop(&y);
    drop(&dy);
    drop(&dx);
}

/* ---- sums, the loss, normalisation ---- */

/* mpsim_sum_lanes, said again; every addition rounded to m. */
static float tree(const mpsim_format *m, const float *x, size_t n, size_t stride, size_t lanes)
{
    float s[256] = {0};
    for (size_t i = 0; i < n; i++)
        s[i % lanes] = rounded(m, s[i % lanes] + x[i * stride], NULL);
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            s[t] = rounded(m, s[t] + s[t + h], NULL);
    return s[0];
}

START_TEST(test_column_sums)
{
    const mpsim_format *out = format(names[_i]), *fp32 = format("binary32");
    const size_t rows = 300, cols = 9;
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    float want[9];
    for (int specials = 0; specials < 2; specials++) {
        train_tensor x = any("binary32", rows, cols, specials), d = make(out, 1, cols, NULL);
        const float *v = get(&x);
        for (size_t j = 0; j < cols; j++)
            want[j] = rounded(out, tree(fp32, v + j, rows, cols, MPSIM_LANES_ALL), &expected);
        OK(ops->column_sums(&engine, &(train_pair){.y = &d, .x = &x, .counts = &got}, 1));
        engine_same("column sums", get(&d), want, cols);
        same_counts("column sums", &got, &expected);
        drop(&x);
        drop(&d);
    }
}

#define M(x) rounded(m, x, NULL)

START_TEST(test_softmax_xent)
{
    const char *const maths[] = {"binary32", "fp16", "bf16"};
    const mpsim_format *m = format(maths[_i % 3]), *out = format(_i % 2 ? "fp16" : "binary32");
    const size_t rows = 301, classes = 10; /* 301 is no number of bf16 */
    static float want[3010], losses[301];
    uint32_t labels[301];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    train_tensor x = any("bf16", rows, classes, 0), dx = make(out, rows, classes, NULL);
    static float v[3010];
    memcpy(v, get(&x), sizeof v);
    if (_i >= 6) {
        v[11] = NAN;
        v[23] = INFINITY;
    }
    v[30] = 7;
    v[35] = 7; /* the first of equals */
    OK(ops->put(&engine, &x, v));
    const float c = M(0x1p20f / (float)rows);
    uint64_t right = 0, correct = 99;
    for (size_t i = 0; i < rows; i++) {
        const float *row = v + i * classes;
        float e[10], top = M(row[0]);
        size_t best = 0;
        int nan = 0;
        labels[i] = i == 3 ? 0 : (uint32_t)(test_random(&seed) % classes);
        for (size_t j = 0; j < classes; j++) {
            nan |= isnan(row[j]);
            if (M(row[j]) > top) {
                top = M(row[j]);
                best = j;
            }
        }
        top = nan ? NAN : top;
        right += !nan && best == labels[i];
        for (size_t j = 0; j < classes; j++)
            e[j] = M(mpsim_exp(M(M(row[j]) - top)));
        const float s = tree(m, e, classes, 1, MPSIM_LANES_ROW);
        losses[i] = M(M(mpsim_log(s)) - M(M(row[labels[i]]) - top));
        for (size_t j = 0; j < classes; j++) {
            float g = M(M(e[j] / s) * c);
            g = j == labels[i] ? M(g - c) : g;
            want[i * classes + j] = rounded(out, g, &expected);
        }
    }
    const float mean = M(tree(m, losses, rows, 1, MPSIM_LANES_ALL) / M((float)rows));
    float loss = 0;
    OK(ops->softmax_xent(&engine, &dx, &x, labels, 0x1p20f / (float)rows, m, &loss, &correct, &got));
    engine_same("softmax_xent", get(&dx), want, rows * classes);
    same_counts("softmax_xent", &got, &expected);
    engine_same("loss", &loss, &mean, 1);
    ck_assert_uint_eq(correct, right);
    /* without gradient; by the NULL that stands for binary32 */
    float again = 0;
    if (_i % 3 == 0) {
        OK(ops->softmax_xent(&engine, NULL, &x, labels, 1, NULL, &again, NULL, NULL));
        engine_same("loss", &again, &mean, 1);
    }
    ck_assert(_i >= 6 ? isnan(loss) : isfinite(loss) && loss > 0);
    labels[0] = 10;
    FAILS(ops->softmax_xent(&engine, NULL, &x, labels, 1, m, &again, NULL, NULL), "softmax");
    drop(&x);
    drop(&dx);
}

/* One channel's statistics, as mpsim/layer.h has them, in binary32. */
typedef struct channel {
    float mean, inverse, var, unbiased;
} channel;

static channel statistics(const float *x, size_t rows, size_t cols, float eps)
{
    static float squares[MOST];
    const mpsim_format *m = format("binary32");
    channel c;
    c.mean = tree(m, x, rows, cols, MPSIM_LANES_ALL) / (float)rows;
    for (size_t i = 0; i < rows; i++)
        squares[i] = (x[i * cols] - c.mean) * (x[i * cols] - c.mean);
    const float sum = tree(m, squares, rows, 1, MPSIM_LANES_ALL);
    c.var = sum / (float)rows;
    c.unbiased = sum / (float)(rows - 1);
    c.inverse = 1 / sqrtf(c.var + eps);
    return c;
}

START_TEST(test_batchnorm)
{
    const mpsim_format *fp32 = format("binary32"), *out = format(_i ? "fp16" : "binary32");
    const mpsim_batchnorm b = {.rows = 1,
                               .channels = 1,
                               .eps = 1e-5f,
                               .momentum = 0.1f,
                               .f = format("e4m3")}; /* rows, channels and f: ignored */
    const size_t rows = 270, cols = 5;
    static float y_[MOST], dx_[MOST], h[MOST], terms[MOST];
    float mean_[5], inverse_[5], rm[5], rv[5], dw[5], db[5];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    train_tensor x = any("fp16", rows, cols, 0), w = any("binary32", 1, cols, 0);
    train_tensor bias = any("binary32", 1, cols, 0), mean = make(fp32, 1, cols, NULL);
    train_tensor inverse = make(fp32, 1, cols, NULL), y = make(out, rows, cols, NULL);
    train_tensor run_mean = any("binary32", 1, cols, 0), run_var = make(fp32, 1, cols, NULL);
    const float ones[] = {1, 1, 1, 1, 1};
    OK(ops->put(&engine, &run_var, ones));
    const float *v = get(&x), *wv = get(&w), *bv = get(&bias), *old = get(&run_mean);
    for (size_t j = 0; j < cols; j++) {
        const channel c = statistics(v + j, rows, cols, b.eps);
        mean_[j] = c.mean;
        inverse_[j] = c.inverse;
        rm[j] = (1 - b.momentum) * old[j] + b.momentum * c.mean;
        rv[j] = (1 - b.momentum) * 1 + b.momentum * c.unbiased;
        for (size_t i = 0; i < rows; i++)
            y_[i * cols + j] = rounded(out, (v[i * cols + j] - c.mean) * c.inverse * wv[j] + bv[j], &expected);
    }
    OK(ops->batchnorm(&engine, &b, &y, &mean, &inverse, &run_mean, &run_var, &x, &w, &bias, &got));
    engine_same("y", get(&y), y_, rows * cols);
    engine_same("mean", get(&mean), mean_, cols);
    engine_same("inverse", get(&inverse), inverse_, cols);
    engine_same("running mean", get(&run_mean), rm, cols);
    engine_same("running var", get(&run_var), rv, cols);
    same_counts("batchnorm", &got, &expected);
    train_tensor dy = any("fp16", rows, cols, 0), dx = make(out, rows, cols, NULL);
    train_tensor dweight = make(out, 1, cols, NULL), dbias = make(out, 1, cols, NULL);
    const float *d = get(&dy);
    for (size_t j = 0; j < cols; j++) {
        for (size_t i = 0; i < rows; i++) {
            h[i] = (v[i * cols + j] - mean_[j]) * inverse_[j];
            terms[i] = d[i * cols + j] * h[i];
        }
        const float sum = tree(fp32, d + j, rows, cols, MPSIM_LANES_ALL);
        const float dot = tree(fp32, terms, rows, 1, MPSIM_LANES_ALL);
        const float a = sum / (float)rows, c = dot / (float)rows;
        db[j] = rounded(out, sum, NULL);
        dw[j] = rounded(out, dot, NULL);
        for (size_t i = 0; i < rows; i++)
            dx_[i * cols + j] = rounded(out, wv[j] * inverse_[j] * (d[i * cols + j] - a - h[i] * c), &expected);
    }
    OK(ops->batchnorm_backward(&engine, &b, &dx, &dweight, &dbias, &dy, &x, &mean, &inverse, &w, &got));
    engine_same("dx", get(&dx), dx_, rows * cols);
    engine_same("dweight", get(&dweight), dw, cols);
    engine_same("dbias", get(&dbias), db, cols);
    same_counts("batchnorm backward", &got, &expected);
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            y_[i * cols + j] = rounded(out, (v[i * cols + j] - rm[j]) * (1 / sqrtf(rv[j] + b.eps)) * wv[j] + bv[j],
                                       NULL);
    OK(ops->batchnorm_inference(&engine, &b, &y, &x, &run_mean, &run_var, &w, &bias));
    engine_same("inference", get(&y), y_, rows * cols);
    FAILS(ops->batchnorm(&engine, &b, &y, &mean, &inverse, &run_mean, NULL, &x, &w, &bias, NULL), "need each other");
    FAILS(ops->batchnorm(&engine, &b, &y, &mean, &inverse, &x, &x, &x, &w, &bias, NULL), "must be");
    OK(ops->batchnorm(&engine, &b, &y, &mean, &inverse, NULL, NULL, &x, &w, &bias, NULL));
    train_tensor *const all[] = {&x, &w, &bias, &mean, &inverse, &y, &run_mean, &run_var, &dy, &dx, &dweight, &dbias};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}

static void add(TCase *t)
{
    tcase_add_test(t, test_gather);
    tcase_add_test(t, test_relu);
    tcase_add_loop_test(t, test_maxpool, 0, 10);
    tcase_add_test(t, test_maxpool_nan);
    tcase_add_loop_test(t, test_column_sums, 0, (int)COUNT(names));
    tcase_add_loop_test(t, test_softmax_xent, 0, 12);
    tcase_add_loop_test(t, test_batchnorm, 0, 2);
}

int main(void)
{
    return engine_main("train-engine-layers", add);
}
