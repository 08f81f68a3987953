/* endings.c -- how a number is added to a sum, and what becomes of both; see stacks.h. */
#include "stacks.h"

#include <string.h>

static float plus(const mpsim_format *out, float sum, float c)
{
    (void)out;
    return sum + c;
}

static float rounded_plus(const mpsim_format *out, float sum, float c)
{
    return device_round(out, sum) + c;
}

static float not_below_zero(const mpsim_format *out, float sum, float c)
{
    (void)out;
    (void)c;
    return sum > 0 ? sum : 0;
}

static float plus_not_below_zero(const mpsim_format *out, float sum, float c)
{
    return not_below_zero(out, sum + c, c);
}

static float rounded_plus_not_below_zero(const mpsim_format *out, float sum, float c)
{
    return not_below_zero(out, device_round(out, sum) + c, c);
}

static const float alpha = 0.7f, beta = 0.3f;

static float products_plus(const mpsim_format *out, float sum, float c)
{
    (void)out;
    return alpha * sum + beta * c;
}

static float fma_of_sum(const mpsim_format *out, float sum, float c)
{
    (void)out;
    return __builtin_fmaf(alpha, sum, beta * c);
}

static float fma_of_added(const mpsim_format *out, float sum, float c)
{
    (void)out;
    return __builtin_fmaf(beta, c, alpha * sum);
}

/* The factors in 16 bits, as the result has; each operation in binary32, or rounded to the result. */
static float narrow_products_plus(const mpsim_format *out, float sum, float c)
{
    return device_round(out, alpha) * sum + device_round(out, beta) * c;
}

static float narrow_fma_of_sum(const mpsim_format *out, float sum, float c)
{
    return __builtin_fmaf(device_round(out, alpha), sum, device_round(out, beta) * c);
}

static float narrow_fma_of_added(const mpsim_format *out, float sum, float c)
{
    return __builtin_fmaf(device_round(out, beta), c, device_round(out, alpha) * sum);
}

static float narrow_fma_rounded(const mpsim_format *out, float sum, float c)
{
    return __builtin_fmaf(device_round(out, alpha), sum, device_round(out, device_round(out, beta) * c));
}

static float rounded_products_plus(const mpsim_format *out, float sum, float c)
{
    return device_round(out, alpha * sum) + beta * c;
}

static const ending plain[] = {{" (added in binary32)", ADDED_AFTER, 0, plus},
                               {" (rounded and then added)", ADDED_AFTER, 1, rounded_plus},
                               {" (added before the products)", ADDED_BEFORE_PRODUCTS, 0, NULL},
                               {" (added before the parts)", ADDED_BEFORE_PARTS, 0, NULL}};
static const ending positive[] = {{" (added in binary32)", ADDED_AFTER, 0, plus_not_below_zero},
                                  {" (rounded and then added)", ADDED_AFTER, 1, rounded_plus_not_below_zero},
                                  {" (added before the products)", ADDED_BEFORE_PRODUCTS, 0, not_below_zero},
                                  {" (added before the parts)", ADDED_BEFORE_PARTS, 0, not_below_zero}};
static const ending scaled[] = {
    {" (alpha sum + beta c)", ADDED_AFTER, 0, products_plus},
    {" (fma(alpha, sum, beta c))", ADDED_AFTER, 0, fma_of_sum},
    {" (fma(beta, c, alpha sum))", ADDED_AFTER, 0, fma_of_added},
    {" (alpha sum + beta c of narrow factors)", ADDED_AFTER, 1, narrow_products_plus},
    {" (fma(alpha, sum, beta c) of narrow factors)", ADDED_AFTER, 1, narrow_fma_of_sum},
    {" (fma(beta, c, alpha sum) of narrow factors)", ADDED_AFTER, 1, narrow_fma_of_added},
    {" (fma(alpha, sum, rounded beta c) of narrow factors)", ADDED_AFTER, 1, narrow_fma_rounded},
    {" (rounded alpha sum + beta c)", ADDED_AFTER, 1, rounded_products_plus}};

static const ending alone[] = {{"", ADDED_NOWHERE, 0, NULL}};

const ending *stacks_endings(const char *how, size_t *n)
{
    static const struct {
        const char *how;
        const ending *ends;
        size_t n;
    } known[] = {{"linear", plain, 4}, {"row", plain, 4},     {"matrix", plain, 4},
                 {"added", plain, 4},  {"relu", positive, 4}, {"scaled", scaled, 8}};
    *n = 1;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(how, known[i].how) == 0) {
            *n = known[i].n;
            return known[i].ends;
        }
    return alone;
}
