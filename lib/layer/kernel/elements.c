/* elements.c -- sums and products of elements, dropout, one number at a time: what elements.h computes in vectors. */
#include "../rows.h"
#include "kernel.h"

typedef mpsim_elementwise elements;

static inline void sums(const elements *e, const mpsim_math *m, float *y, const float *a, const void *b, size_t n)
{
    const float *const other = b;
    (void)e;
    for (size_t i = 0; i < n; i++)
        y[i] = mpsim_math_add(m, mpsim_math_round(m, a[i]), mpsim_math_round(m, other[i]));
}

static inline void products(const elements *e, const mpsim_math *m, float *y, const float *a, const void *b, size_t n)
{
    const float *const other = b;
    (void)e;
    for (size_t i = 0; i < n; i++)
        y[i] = mpsim_math_mul(m, mpsim_math_round(m, a[i]), mpsim_math_round(m, other[i]));
}

static inline void dropped(const elements *e, const mpsim_math *m, float *y, const float *a, const void *b, size_t n)
{
    const uint32_t *const words = b;
    for (size_t i = 0; i < n; i++)
        y[i] = words[i] >= e->least ? mpsim_math_mul(m, mpsim_math_round(m, a[i]), e->factor) : 0.0f;
}

static void round_to(const mpsim_math *out, float *y, size_t n)
{
    for (size_t i = 0; i < n && out->kind != MPSIM_MATH_BINARY32; i++)
        y[i] = mpsim_math_narrow(out, y[i]);
}

#define ELEMENTS(name, loop)                                                        \
    void name(const elements *e, float *y, const float *a, const void *b, size_t n) \
    {                                                                               \
        MPSIM_ROWS_BY_MATH(&e->m, m, loop(e, m, y, a, b, n));                       \
        round_to(&e->out, y, n);                                                    \
    }
ELEMENTS(mpsim_add_plain, sums)
ELEMENTS(mpsim_multiply_plain, products)
ELEMENTS(mpsim_drop_plain, dropped)
