/* replay.h -- arithmetic for the tests of replay, which shares nothing with the library:
 * numbers of a format as multiples of a power of two, in binary64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct grid {
    const char *name;
    int bits, least; /* significant bits; exponent of the smallest normal number */
    double max;
    int saturates;
} grid;

extern const grid fp32, fp16, bf16, e4m3, e5m2;

/* x to nearest even; *over (which may be NULL): set to 1 for a finite x that is too large. Exact:
 * x / q is a power of two away. */
double fit(const grid *g, double x, int *over);

static inline float f32(double x)
{
    return (float)x;
}
static inline float b16(float x)
{
    return (float)fit(&bf16, (double)x, NULL);
}
static inline float h16(float x)
{
    return (float)fit(&fp16, (double)x, NULL);
}

/* The code of a number of fp16 or bf16. */
uint64_t bits16(const grid *g, double x);

/* SGD with lr 0.5 and no momentum, in fp32. */
static inline float plain(float w, float g)
{
    return w - 0.5f * g;
}

/* The same sequence in every test: of normal-like magnitudes, both signs. */
float random_float(void);
