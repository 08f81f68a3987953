/* layerinput.c -- see layerinput.h. */
#include "support/layerinput.h"

#include "oracle/layer.h"
#include "support/support.h"

#include <float.h>
#include <math.h>

const char *const layer_formats[LAYER_OUTS] = {NULL, "binary32", "fp16", "bf16", "e5m2", "tf32", "e4m3"};

const mpsim_format *layer_format(const char *name)
{
    return name ? mpsim_format_find(name) : NULL;
}

static float input(int kind, uint64_t *state)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN,    -0.0f, FLT_MAX,
                                     -FLT_MAX, 65504,     -65520, 300,   FLT_TRUE_MIN};
    const float u = (float)((double)(test_random(state) >> 11) * 0x1p-52 - 1);
    switch (kind) {
    case LAYER_PLAIN:
        return 3 * u;
    case LAYER_WIDE:
        return 60 * u;
    case LAYER_HUGE:
        return u * 0x1p70f;
    case LAYER_TINY:
        return u * 0x1p-126f;
    case LAYER_BITS:
        return f32_of_bits((uint32_t)test_random(state));
    case LAYER_SPECIAL:
        return test_random(state) % 16 ? u : specials[test_random(state) % 10];
    default:
        return 0.75f;
    }
}

void layer_fill(float *x, size_t n, int kind, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = input(kind, state);
}

size_t layer_equal(const char *what, const char *math, const char *out, const float *got, const float *want, size_t n)
{
    const size_t i = oracle_differs(got, want, n);
    ck_assert_msg(i == n, "%s, math %s, out %s: number %zu of %zu is %a, not %a", what, math ? math : "NULL",
                  out ? out : "NULL", i, n, (double)got[i], (double)want[i]);
    return n;
}
