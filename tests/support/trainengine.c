/* trainengine.c -- see trainengine.h. */
#include "trainengine.h"

#include <math.h>

train_engine engine;
const train_ops *ops;
uint64_t seed;

static void setup(void)
{
    ck_assert(train_engine_cpu(&engine, NULL) == 0);
    ops = engine.ops;
    ck_assert_str_eq(ops->name, "cpu");
    seed = test_seed();
}

static void teardown(void)
{
    train_engine_close(&engine);
}

int engine_main(const char *name, void (*add)(TCase *t))
{
    test_seed(); /* printed by this process, not by each test's */
    TCase *t = test_case("operations", 60);
    tcase_add_checked_fixture(t, setup, teardown);
    add(t);
    TCase *const cases[] = {t, NULL};
    return test_main(name, cases);
}

/* ---- numbers ---- */

const char *const names[NAMES] = {"binary32", "fp16", "bf16", "e4m3", "e5m2", "tf32", "e2m1", "e4m3fnuz", "e3m2"};

const mpsim_format *format(const char *name)
{
    const mpsim_format *f = mpsim_format_find(name);
    ck_assert(f);
    return f;
}

float rounded(const mpsim_format *f, float x, train_counts *c)
{
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const float y = (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, 0, &flags));
    if (c) {
        c->nonzero += isfinite(x) && x != 0;
        c->lost += isfinite(x) && x != 0 && y == 0;
        c->overflow += isfinite(x) && (flags & MPSIM_FLAG_OVERFLOW) != 0;
        c->nonfinite += isfinite(y) ? 0 : 1;
    }
    return y;
}

float engine_draw(const mpsim_format *f, int exponent, int spread, int specials)
{
    const float odd[] = {0.0f,
                         -0.0f,
                         INFINITY,
                         -INFINITY,
                         NAN,
                         0x1p-149f,
                         0x1.fffffep127f,
                         (float)mpsim_format_min_positive(f),
                         (float)mpsim_format_max(f)};
    const uint64_t u = test_random(&seed);
    if (specials && u % 16 == 0)
        return rounded(f, odd[(u >> 8) % COUNT(odd)], NULL);
    const int down = (int)((u >> 8) % (uint64_t)(spread + 1));
    const float x = ldexpf(1 + (float)(u >> 40) * 0x1p-24f, exponent - 1 - down);
    return rounded(f, u >> 7 & 1 ? -x : x, NULL);
}

void fill(const mpsim_format *f, float *x, size_t n, int exponent, int spread, int specials)
{
    for (size_t i = 0; i < n; i++)
        x[i] = engine_draw(f, exponent, spread, specials);
}

void engine_same(const char *what, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(bits_of_f32(got[i]) == bits_of_f32(want[i]) || (isnan(got[i]) && isnan(want[i])),
                      "%s: element %zu is %a, expected %a", what, i, (double)got[i], (double)want[i]);
}

void same_counts(const char *what, const train_counts *a, const train_counts *b)
{
    ck_assert_msg(memcmp(a, b, sizeof *a) == 0, "%s: counts %llu %llu %llu %llu, expected %llu %llu %llu %llu", what,
                  (unsigned long long)a->nonzero, (unsigned long long)a->lost, (unsigned long long)a->overflow,
                  (unsigned long long)a->nonfinite, (unsigned long long)b->nonzero, (unsigned long long)b->lost,
                  (unsigned long long)b->overflow, (unsigned long long)b->nonfinite);
}

/* ---- tensors ---- */

train_tensor make(const mpsim_format *f, size_t rows, size_t cols, const float *values)
{
    train_tensor x = {.format = f, .rows = rows, .cols = cols};
    ck_assert(rows * cols <= MOST);
    OK(ops->alloc(&engine, &x));
    if (values)
        OK(ops->put(&engine, &x, values));
    return x;
}

train_tensor any(const char *name, size_t rows, size_t cols, int specials)
{
    static float values[MOST];
    fill(format(name), values, rows * cols, 2, 6, specials);
    return make(format(name), rows, cols, values);
}

const float *get(const train_tensor *x)
{
    static float kept[32][MOST]; /* of the last 32 calls */
    static unsigned next;
    float *values = kept[next++ % COUNT(kept)];
    OK(ops->get(&engine, x, values));
    return values;
}

void drop(train_tensor *x)
{
    ops->release(&engine, x);
    ck_assert_ptr_null(x->data);
}
