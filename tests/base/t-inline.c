/* t-inline.c -- the small functions that modules of lib share: sizes, matrices, codes, counts, words, the environment. */
#include "support/support.h"

#include "lib/base/codes.h"
#include "lib/base/counts.h"
#include "lib/base/environment.h"
#include "lib/base/extent.h"
#include "lib/base/matrix.h"
#include "lib/base/transpose.h"
#include "lib/base/words.h"

#include <fenv.h>
#include <float.h>

enum {
    MOST = 2
}; /* bytes of an element below; of arrays the most that memory can hold is PTRDIFF_MAX / MOST elements */
#define ROOM ((size_t)PTRDIFF_MAX / MOST)

START_TEST(sizes_end_where_memory_does)
{
    ck_assert_uint_eq(mpsim_elements(3, 5), 15);
    ck_assert_uint_eq(mpsim_elements(SIZE_MAX, 0), 0);
    ck_assert_uint_eq(mpsim_elements(0, SIZE_MAX), 0);
    ck_assert_uint_eq(mpsim_elements(SIZE_MAX, 1), SIZE_MAX);
    ck_assert_uint_eq(mpsim_elements(SIZE_MAX / 2, 2), SIZE_MAX - 1);
    ck_assert_uint_eq(mpsim_elements(SIZE_MAX / 3 + 1, 3), SIZE_MAX);
    ck_assert(mpsim_fits(0, MOST) && mpsim_fits(ROOM, MOST) && !mpsim_fits(ROOM + 1, MOST));
    ck_assert(mpsim_fits(PTRDIFF_MAX, 1) && !mpsim_fits((size_t)PTRDIFF_MAX + 1, 1));
}

START_TEST(lines_fit_with_their_gaps)
{
    ck_assert(mpsim_lines_fit(0, SIZE_MAX, SIZE_MAX, MOST));
    ck_assert(mpsim_lines_fit(SIZE_MAX, 0, SIZE_MAX, MOST));
    ck_assert(mpsim_lines_fit(1, ROOM, SIZE_MAX, MOST) && !mpsim_lines_fit(1, ROOM + 1, 0, MOST));
    ck_assert(mpsim_lines_fit(2, 4, ROOM - 4, MOST) && !mpsim_lines_fit(2, 4, ROOM - 3, MOST));
    ck_assert(mpsim_lines_fit(3, 4, (ROOM - 4) / 2, MOST) && !mpsim_lines_fit(3, 4, (ROOM - 4) / 2 + 1, MOST));
    ck_assert(mpsim_lines_fit(2, ROOM, 0, MOST) && !mpsim_lines_fit(2, ROOM, 1, MOST));
    ck_assert(!mpsim_lines_fit(2, ROOM + 1, 0, MOST));
}

static int strides_fit(size_t d0, int64_t s0, size_t d1, int64_t s1)
{
    const size_t shape[2] = {d0, d1};
    const int64_t strides[2] = {s0, s1};
    return mpsim_strides_fit(2, shape, strides, MOST);
}

START_TEST(shapes_fit_with_any_strides)
{
    const int64_t last = PTRDIFF_MAX / MOST - 1; /* of an array of all memory */
    ck_assert(strides_fit(2, last, 1, INT64_MAX) && !strides_fit(2, last + 1, 1, 0));
    ck_assert(strides_fit(2, -last, 1, INT64_MIN) && !strides_fit(2, -last - 1, 1, 0));
    ck_assert(strides_fit(1, 0, 2, last) && !strides_fit(1, 0, 2, last + 1));
    ck_assert(strides_fit(2, last - 9, 4, 3) && !strides_fit(2, last - 8, 4, 3));
    ck_assert(strides_fit(4, 3, 2, last - 9) && !strides_fit(4, 3, 2, last - 8));
    ck_assert(strides_fit(0, INT64_MAX, 9, INT64_MAX) && strides_fit(9, INT64_MAX, 0, INT64_MAX));
    ck_assert(!strides_fit(9, INT64_MAX, 1, INT64_MAX));
    ck_assert(mpsim_strides_fit(0, NULL, NULL, MOST));
    /* one element again and again: as many as an array of 16 bytes each has */
    ck_assert(strides_fit(PTRDIFF_MAX / 16, 0, 1, 0) && !strides_fit(PTRDIFF_MAX / 16 + 1, 0, 1, 0));
    ck_assert(strides_fit(2, 0, PTRDIFF_MAX / 32, 0) && !strides_fit(2, 0, PTRDIFF_MAX / 32 + 1, 0));
    ck_assert(!strides_fit(SIZE_MAX, 0, 3, 0));
}

START_TEST(a_matrix_has_codes_and_lines_that_fit)
{
    static const uint16_t codes[1];
    static void (*const run)(void *, size_t, void (*)(size_t, void *), void *) = NULL;
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_matrix x = {f, codes, 5, 0};
    mpsim_format bad = *f;
    ck_assert_int_eq(mpsim_is_matrix(&x, 0, 5), 1);
    ck_assert(mpsim_is_matrix(&x, 7, 5) && !mpsim_is_matrix(&x, 7, 6) && mpsim_is_matrix(&x, 1, 9));
    x.transposed = 1;
    ck_assert(mpsim_is_matrix(&x, 5, 7) && !mpsim_is_matrix(&x, 6, 7) && mpsim_is_matrix(&x, 9, 1));
    ck_assert(mpsim_is_operand(&x, 5, 7) && !mpsim_is_operand(&x, 6, 7) && !mpsim_is_operand(NULL, 0, 0));
    x = (mpsim_matrix){f, codes, ROOM - 4, 0};
    ck_assert(mpsim_is_matrix(&x, 2, 4) && !mpsim_is_matrix(&x, 2, 5));
    x.transposed = 1;
    ck_assert(mpsim_is_matrix(&x, 4, 2) && !mpsim_is_matrix(&x, 5, 2));
    x = (mpsim_matrix){f, NULL, 5, 0};
    ck_assert(!mpsim_is_matrix(&x, 1, 1) && mpsim_is_matrix(&x, 0, 1) && mpsim_is_matrix(&x, 1, 0));
    bad.bits = 15;
    x = (mpsim_matrix){&bad, codes, 5, 0};
    ck_assert(!mpsim_is_operand(&x, 1, 1));
    const mpsim_pool none = {run, NULL, NULL};
    ck_assert(mpsim_is_pool(NULL) && !mpsim_is_pool(&none));
}

START_TEST(codes_have_any_width_and_place)
{
    static const size_t widths[] = {1, 2, 4, 8};
    for (size_t w = 0; w < 4; w++)
        for (size_t at = 0; at < 3; at++) {
            unsigned char room[64], want[64];
            const uint64_t code = 0x8182838485868788u << at, mask = UINT64_MAX >> (64 - 8 * widths[w]);
            memset(room, 0x55, sizeof room);
            memset(want, 0x55, sizeof want);
            code_store(want + 1 + at * widths[w], widths[w], code);
            mpsim_code_store(room + 1, widths[w], at, code);
            ck_assert_mem_eq(room, want, sizeof room);
            ck_assert_uint_eq(mpsim_code_load(room + 1, widths[w], at), code & mask);
        }
}

START_TEST(each_flag_has_its_count)
{
    mpsim_counts one = {10, 20, 30, 40, 50}, sum = {1, 2, 3, 4, 5};
    mpsim_count_flags(&one, MPSIM_FLAG_INEXACT);
    mpsim_count_flags(&one, MPSIM_FLAG_UNDERFLOW | MPSIM_FLAG_NAN);
    mpsim_count_flags(&one, MPSIM_FLAG_SUBNORMAL | MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_INEXACT);
    mpsim_count_flags(&one, 0);
    mpsim_count_flags(&one, 0);
    const mpsim_counts want = {12, 21, 31, 41, 51}, both = {13, 23, 34, 45, 56};
    ck_assert_mem_eq(&one, &want, sizeof want);
    mpsim_counts_add(&sum, &one);
    ck_assert_mem_eq(&sum, &both, sizeof both);
}

START_TEST(words_are_compared_as_people_type_them)
{
    static const char *const same[][2] = {{"AZaz-_@[", "azAZ_-@["}, {"", ""}, {"e4m3", "E4M3"}};
    static const char *const others[][2] = {{"@", "`"}, {"[", "{"}, {"ab", "ac"}, {"ab", "bb"}, {"a", ""}, {"a", "ab"}};
    for (size_t i = 0; i < 3; i++)
        ck_assert(mpsim_same_word(same[i][0], strlen(same[i][0]), same[i][1]));
    for (size_t i = 0; i < 6; i++)
        ck_assert(!mpsim_same_word(others[i][0], strlen(others[i][0]), others[i][1]));
    ck_assert(mpsim_same_word("fp16, bf16", 4, "FP16"));
}

START_TEST(a_matrix_is_transposed)
{
    const float x[6] = {1, 2, 3, 4, 5, 6}, want[6] = {1, 4, 2, 5, 3, 6};
    float y[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    mpsim_transpose(y, x, 2, 3);
    ck_assert_mem_eq(y, want, sizeof want);
    ck_assert(y[6] == 7 && y[7] == 7);
}

#ifdef __SSE2__
static double third(void)
{
    volatile double one = -1, three = 3;
    return one / three;
}

static double half_of_least(void)
{
    volatile double least = DBL_MIN, two = 2;
    return least / two;
}

/* Set, a state does what its name says; restored, the caller has what the caller had, flags of exceptions included. */
START_TEST(the_environment_is_set_and_given_back)
{
    static const struct {
        mpsim_environment (*set)(void);
        double third, half;
    } states[] = {
        {mpsim_environment_default, -0x1.5555555555555p-2, DBL_MIN / 2},
        {mpsim_environment_flushing, -0x1.5555555555555p-2, 0},
        {mpsim_environment_toward_zero, -0x1.5555555555555p-2, DBL_MIN / 2},
    };
    if (test_under_valgrind())
        return;
    for (size_t i = 0; i < 3; i++) {
        fesetround(FE_DOWNWARD);
        feclearexcept(FE_ALL_EXCEPT);
        const mpsim_environment before = states[i].set();
        const volatile double got = third(), half = half_of_least();
        mpsim_environment_restore(before);
        ck_assert_int_eq(fegetround(), FE_DOWNWARD);
        ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), 0);
        fesetround(FE_TONEAREST);
        ck_assert_msg(got == states[i].third && half == states[i].half, "%zu: %a %a", i, got, half);
    }
    const mpsim_environment before = mpsim_environment_toward_zero();
    volatile double one = 1, tiny = 0x1p-53;
    const volatile double down = one - tiny / 2;
    mpsim_environment_restore(before);
    ck_assert(down == 1 - 0x1p-53);
}
#endif

int main(void)
{
    TCase *t = test_case("inline", 4);
    tcase_add_test(t, sizes_end_where_memory_does);
    tcase_add_test(t, lines_fit_with_their_gaps);
    tcase_add_test(t, shapes_fit_with_any_strides);
    tcase_add_test(t, a_matrix_has_codes_and_lines_that_fit);
    tcase_add_test(t, codes_have_any_width_and_place);
    tcase_add_test(t, each_flag_has_its_count);
    tcase_add_test(t, words_are_compared_as_people_type_them);
    tcase_add_test(t, a_matrix_is_transposed);
#ifdef __SSE2__
    tcase_add_test(t, the_environment_is_set_and_given_back);
#endif
    return test_main("inline", (TCase *const[]){t, NULL});
}
