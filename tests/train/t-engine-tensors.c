/* t-engine-tensors.c -- tensors of the CPU engine, what goes in and comes out, and casts,
 * against loops that say the same in the words of lib/include/train/engine.h, one element after the
 * other. */
#include "support/trainengine.h"

#include <math.h>

START_TEST(test_tensors)
{
    const mpsim_format *f = format(names[_i]);
    float values[96], want[96] = {0};
    train_tensor x = make(f, 8, 12, NULL);
    ck_assert(x.inverse == 1);
    engine_same("zeros", get(&x), want, 96);
    fill(f, values, 96, 1, 4, 1);
    x.inverse = 3;
    OK(ops->put(&engine, &x, values));
    ck_assert(x.inverse == 1);
    engine_same(f->name, get(&x), values, 96);
    /* codes by the scalar function, digested as they are */
    unsigned char codes[96 * 4];
    mpsim_rounding r;
    uint64_t digest = 0, again = 0;
    const size_t bytes = mpsim_format_code_bytes(f);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < 96; i++)
        code_store(codes + i * bytes, bytes, mpsim_encode_f32(f, &r, values[i], 0, NULL));
    OK(ops->digest(&engine, &x, &digest));
    ck_assert_uint_eq(digest, mpsim_digest(f, codes, 96, 0));
    values[95] = values[95] == 1 ? 2 : 1;
    OK(ops->put(&engine, &x, values));
    OK(ops->digest(&engine, &x, &again));
    ck_assert_uint_ne(digest, again);
    /* a view has the same elements */
    train_tensor view = x;
    view.rows = 1;
    view.cols = 96;
    OK(ops->digest(&engine, &view, &digest));
    ck_assert_uint_eq(digest, again);
    /* 1.4142... is a number of binary32 only, 2^127 too large for most */
    values[7] = 0x1.6a09e6p0f;
    if (f->mbits < 23)
        FAILS(ops->put(&engine, &x, values), "element 7");
    values[7] = NAN;
    if (f->nan == MPSIM_NAN_NONE)
        FAILS(ops->put(&engine, &x, values), "element 7");
    OK(ops->finish(&engine));
    drop(&x);
    drop(&x);
}

START_TEST(test_nans_are_one)
{
    const float a[] = {1, NAN, 2}, b[] = {1, f32_of_bits(0xffc12345u), 2};
    train_tensor x = make(format("binary32"), 1, 3, a), y = make(format("binary32"), 1, 3, b);
    uint64_t one = 1, other = 2;
    OK(ops->digest(&engine, &x, &one));
    OK(ops->digest(&engine, &y, &other));
    ck_assert_uint_eq(one, other);
    drop(&x);
    drop(&y);
}

START_TEST(test_cast)
{
    const mpsim_format *f = format(names[_i]), *fp32 = format("binary32");
    enum { N = 64 * 60 };
    static float values[N], want[N];
    train_counts got = {1, 2, 3, 4}, expected = {1, 2, 3, 4};
    fill(fp32, values, N, 20, 40, 1);
    train_tensor x = make(fp32, 64, 60, values), y = make(f, 64, 60, NULL);
    for (size_t i = 0; i < N; i++)
        want[i] = rounded(f, values[i], &expected);
    y.inverse = 2;
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_EVEN, &got));
    ck_assert(y.inverse == 1);
    engine_same(f->name, get(&y), want, N);
    same_counts(f->name, &got, &expected);
    OK(ops->cast(&engine, &y, &y, MPSIM_ROUND_NEAREST_EVEN, NULL));
    engine_same("onto itself", get(&y), want, N);
    mpsim_rounding away;
    mpsim_rounding_init(&away, MPSIM_ROUND_NEAREST_AWAY);
    for (size_t i = 0; i < N; i++) {
        values[i] = rounded(f, values[i], NULL) * (1 + (float)mpsim_format_epsilon(f) / 2);
        want[i] = (float)mpsim_decode(f, mpsim_encode_f32(f, &away, values[i], 0, NULL));
    }
    OK(ops->put(&engine, &x, values));
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_AWAY, NULL));
    engine_same("away", get(&y), want, N);
    FAILS(ops->cast(&engine, &y, &x, MPSIM_ROUND_UP, NULL), "nearest");
    drop(&x);
    drop(&y);
}

/* A split master's model is the upper half, rounded away. */
START_TEST(test_split)
{
    float values[256], want[256];
    fill(format("binary32"), values, 256, 3, 6, 0);
    for (size_t i = 0; i < 256; i++) {
        uint16_t model;
        int16_t rest;
        values[i] = i % 2 ? values[i] : f32_of_bits((bits_of_f32(values[i]) & ~0xffffu) | 0x8000u);
        mpsim_master_split(&model, &rest, values[i]);
        want[i] = f32_of_bits((uint32_t)model << 16);
    }
    train_tensor x = make(format("binary32"), 16, 16, values);
    train_tensor y = make(format("bf16"), 16, 16, NULL);
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_AWAY, NULL));
    engine_same("split", get(&y), want, 256);
    drop(&x);
    drop(&y);
}

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_tensors, 0, (int)COUNT(names));
    tcase_add_test(t, test_nans_are_one);
    tcase_add_loop_test(t, test_cast, 0, (int)COUNT(names));
    tcase_add_test(t, test_split);
}

int main(void)
{
    return engine_main("train-engine-tensors", add);
}
