/* t-judge-arith.c -- mpsim/judge.h: element-wise arithmetic. Results are those of C, and faults are made here. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>

#include <math.h>

enum { N = 3000 };

static float a[N], b[N], c[N], y[N];
static mpsim_judgement j;

/* Random numbers of many binades, and specials in the first ones. */
static void make(int specials)
{
    static const uint32_t words[] = {0x7fc00001, 0xffc12345, 0x7f812345, 0x7f800000, 0xff800000, 0,
                                     0x80000000, 1,          0x807fffff, 0x00800000, 0x7f7fffff, 0x3f800000};
    enum { SPECIALS = sizeof words / sizeof words[0] };
    uint64_t state = 17;
    for (size_t i = 0; i < N; i++) {
        double pair[2][2];
        test_normal_pair(&state, pair[0]);
        test_normal_pair(&state, pair[1]);
        a[i] = (float)ldexp(pair[0][0], (int)(i % 9) - 4);
        b[i] = (float)ldexp(pair[0][1], (int)(i % 7) - 3);
        c[i] = (float)ldexp(pair[1][0], (int)(i % 5) - 2);
        if (specials && i < SPECIALS * SPECIALS) {
            memcpy(&a[i], &words[i % SPECIALS], 4);
            memcpy(&b[i], &words[i / SPECIALS], 4);
            memcpy(&c[i], &words[(i + i / SPECIALS) % SPECIALS], 4);
        }
    }
}

static mpsim_status ask_n(size_t n, const char *like)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    const mpsim_judge_array arrays[] = {{"y", f, y, 1, N}, {"a", f, a, 1, N}, {"b", f, b, 1, N}, {"c", f, c, 1, N}};
    char why[256] = "";
    const mpsim_status s = mpsim_judge(&j, MPSIM_JUDGE_ARITH, arrays, n + 1, like, NULL, why, sizeof why);
    ck_assert_msg((s == MPSIM_OK) == (why[0] == '\0'), "%d: %s", s, why);
    return s;
}

static void ask(size_t n, const char *like)
{
    ck_assert_int_eq(ask_n(n, like), MPSIM_OK);
}

static void is(const char *row)
{
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, row), "%s: %llu differ", j.row, (unsigned long long)j.differ);
}

CASE("arithmetic", 20);

TEST(operations)
{
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = a[i] + b[i];
    ask(2, NULL), is("add");
    ask(2, "sub");
    ck_assert(j.differ > N / 2 && strcmp(j.nearest, "add") == 0);
    judged_has(&j, "formula", "the operation is add, not sub");
    for (size_t i = 0; i < N; i++)
        y[i] = a[i] - b[i];
    ask(2, NULL), is("sub");
    for (size_t i = 0; i < N; i++)
        y[i] = a[i] * b[i];
    ask(2, NULL), is("mul");
    for (size_t i = 0; i < N; i++)
        y[i] = a[i] / b[i];
    ask(2, NULL), is("div");
    for (size_t i = 0; i < N; i++)
        y[i] = sqrtf(a[i] = fabsf(a[i]));
    ask(1, NULL), is("sqrt");
    for (size_t i = 0; i < N; i++)
        y[i] = fmaf(a[i], b[i], c[i]);
    ask(3, NULL), is("fma");
}

TEST(roundings)
{
    make(0);
    for (size_t i = 0; i < N; i++) {
        const volatile float p = a[i] * b[i];
        y[i] = p + c[i];
    }
    ask(3, "fma");
    judged_has(&j, "double-rounding", "the product is rounded before");
    ask(3, NULL), is("fma:separate");
    ask(3, "fma:separate"), is("fma:separate");
    for (size_t i = 0; i < N; i++) {
        a[i] = ldexpf(roundf(ldexpf(a[i], 8)), -8); /* sums at halfway cases of binary64 */
        c[i] = i % 2 ? 0x1p-60f : -0x1p-60f;
        b[i] = 1 + 0x1p-23f;
        y[i] = (float)((double)a[i] * (double)b[i] + (double)c[i]);
    }
    ask(3, "fma:via=binary64");
    ck_assert(j.differ == 0);
    for (size_t i = 0; i < N; i++) {
        b[i] = 3 + (float)i;
        const volatile float inverse = 1 / b[i];
        y[i] = a[i] * inverse;
    }
    ask(2, "div");
    judged_has(&j, "double-rounding", "one over b");
    for (size_t i = 0; i < N; i++) { /* the product is exact in binary64 */
        const double p = (double)a[i] * (double)b[i];
        const float near = (float)p;
        y[i] = fabs((double)near) > fabs(p) ? nextafterf(near, 0) : near;
    }
    ask(2, "mul");
    judged_has(&j, "mode", "the mode is toward-zero, not nearest-even");
}

/* NaNs: RISC-V's, and those of the first operand. */
static float with_nan(float x)
{
    const uint32_t canonical = 0x7fc00000;
    if (isnan(x))
        memcpy(&x, &canonical, 4);
    return x;
}

static float first_nan(size_t i, float x)
{
    uint32_t word = 0xffc00000;
    if (!isnan(x))
        return x;
    if (isnan(b[i]))
        memcpy(&word, &b[i], 4);
    if (isnan(a[i]))
        memcpy(&word, &a[i], 4);
    word |= 0x400000;
    memcpy(&x, &word, 4);
    return x;
}

TEST(nans)
{
    make(1);
    for (size_t i = 0; i < N; i++)
        y[i] = with_nan(a[i] * b[i]);
    ask(2, NULL), is("mul:nan=positive");
    ask(2, "mul"), is("mul");
    ask(2, "mul:nan=x86");
    judged_has(&j, "nan", "NaNs are those of nan=positive");
    for (size_t i = 0; i < N; i++)
        y[i] = with_nan(a[i] * b[i]);
    for (size_t i = 0; i < N; i += 3) {
        const uint32_t other = 0x7fe00000u | (uint32_t)i;
        if (isnan(y[i]))
            memcpy(&y[i], &other, sizeof other);
    }
    ask(2, "mul:nan=positive");
    judged_has(&j, "nan", "NaNs are those of no rule");
    for (size_t i = 0; i < N; i++)
        y[i] = first_nan(i, a[i] * b[i]);
    ask(2, NULL);
    ck_assert_str_eq(j.row, "mul:nan=x86");
    ck_assert_int_eq((int)j.differ, 0);
}

TEST(subnormal_numbers)
{
    make(1);
    for (size_t i = 0; i < N; i++) {
        a[i] = ldexpf(a[i], -120);
        y[i] = a[i] * b[i];
        y[i] = fabsf(y[i]) < 0x1p-126f ? copysignf(0, y[i]) : y[i];
    }
    ask(2, "mul");
    judged_has(&j, "subnormal-results", "flush-results");
    for (size_t i = 0; i < N; i++)
        y[i] = (fabsf(a[i]) < 0x1p-126f ? copysignf(0, a[i]) : a[i]) +
               (fabsf(b[i]) < 0x1p-126f ? copysignf(0, b[i]) : b[i]);
    ask(2, "add");
    judged_has(&j, "subnormal-inputs", "read as zeros");
}

TEST(formulas)
{
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = fmaf(a[i], b[i], -c[i]);
    ask(3, "fma");
    judged_has(&j, "sign", "c is subtracted");
    for (size_t i = 0; i < N; i++)
        y[i] = b[i] / a[i];
    ask(2, "div");
    judged_has(&j, "operands", "changed places");
    for (size_t i = 0; i < N; i++)
        y[i] = i % 3 ? a[i] / b[i] : nextafterf(a[i] / b[i], i % 2 ? 9e9f : -9e9f);
    ask(2, "div");
    ck_assert(j.differ > 0 && j.findings > 0);
}

TEST(refusals)
{
    make(0);
    ck_assert_int_eq(ask_n(2, "fma"), MPSIM_EINVAL);
    ck_assert_int_eq(ask_n(2, "add:nan=none"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_n(2, "add:separate"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_n(2, "convert"), MPSIM_ENOTFOUND);
}

TEST_MAIN("judge-arith");
