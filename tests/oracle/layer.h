/* layer.h -- what mpsim/layer.h says, computed again, one operation after the other.
 *
 * Every operation is one of binary64 on two numbers of the format, of p <= 24 significant bits,
 * then rounded to it (oracle_to). That is one rounding: sums, products, quotients and square roots
 * of numbers of p bits that are rounded to 2 p + 2 bits or more first round to p bits as the exact
 * results do (Figueroa 1995), and 53 >= 2 * 24 + 2. A subnormal result has fewer bits than p:
 * products are exact in binary64 and sums are exact there, too; a quotient x / y that is not a
 * midpoint m is at least 2^-48 m away from it, as x and m y are integers of at most 24 and 48 bits
 * of one unit. Roots are never subnormal.
 *
 * Only exp and log are the library's; layer/t-math judges them. Typed from IEEE 754-2019 table 3.5
 * and OCP OFP8 1.0 table 1. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct oracle_format {
    const char *name;
    int precision, emin; /* significant bits; exponent of the smallest normal number */
    double max;
    int infinity; /* 0: what overflows is NaN */
} oracle_format;

/* The row of that name; binary32 for NULL; NULL for what is not here. */
const oracle_format *oracle_format_find(const char *name);

/* x to nearest, ties to even. */
float oracle_to(const oracle_format *f, double x);

float oracle_add(const oracle_format *f, float a, float b);
float oracle_sub(const oracle_format *f, float a, float b);
float oracle_mul(const oracle_format *f, float a, float b);
float oracle_div(const oracle_format *f, float a, float b);
float oracle_root(const oracle_format *f, float a);

/* mpsim_sum_lanes with lanes that are simulated. */
float oracle_sum(const oracle_format *f, const float *x, size_t n, size_t stride, size_t lanes);

/* loss and dx have room; nothing overlaps. */
void oracle_xent(const oracle_format *math, const oracle_format *f, size_t rows, size_t classes, const float *x,
                 const uint32_t *labels, float coefficient, float *loss, float *dx, uint64_t *correct);

typedef struct oracle_batchnorm {
    size_t rows, channels;
    float eps, momentum;
    const oracle_format *math, *f;
} oracle_batchnorm;

void oracle_forward(const oracle_batchnorm *b, float *y, float *mean, float *inverse, float *running_mean,
                    float *running_var, const float *x, const float *weight, const float *bias);
void oracle_backward(const oracle_batchnorm *b, float *dx, float *dweight, float *dbias, const float *dy,
                     const float *x, const float *mean, const float *inverse, const float *weight);
void oracle_inference(const oracle_batchnorm *b, float *y, const float *x, const float *running_mean,
                      const float *running_var, const float *weight, const float *bias);

/* The same bits, or NaN both. */
int oracle_same(float a, float b);
/* The first i with a[i] and b[i] not the same; n if there is none. */
size_t oracle_differs(const float *a, const float *b, size_t n);
