/* ggml.c -- see ggml.h. Products and differences are rounded to binary32 one by one, as in ggml. */
#include "ggml.h"

#include <math.h>
#include <mpsim/format.h>
#include <string.h>

enum { BYTES_MAX = 292 };

/* ---- fields ---- */

static unsigned half_bits(const unsigned char *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

/* Number i of the block's fp16 ones. Threads read blocks at once, and each finds the format for itself. */
static float half(const ggml_form *f, const unsigned char *b, unsigned i)
{
    static _Thread_local const mpsim_format *fp16;
    if (!fp16)
        fp16 = mpsim_format_find("fp16");
    return (float)mpsim_decode(fp16, half_bits(b + f->at + 2 * i));
}

/* Bits [shift, shift + n) of a byte. */
static int bits(unsigned char byte, unsigned shift, unsigned n)
{
    return (byte >> shift) & ((1 << n) - 1);
}

/* ---- one scale, perhaps a minimum, for 32 elements ---- */

/* Code i of 32 nibbles: the low halves first. */
static int nibble(const unsigned char *q, unsigned i)
{
    return bits(q[i % 16], i / 16 * 4, 4);
}

static void read_q4(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0), m = f->numbers > 1 ? half(f, b, 1) : 0;
    for (unsigned i = 0; i < 32; i++)
        x[i] = f->numbers > 1 ? d * (float)nibble(b + 4, i) + m : d * (float)(nibble(b + 2, i) - 8);
}

/* The fifth bits follow the numbers, one for each code in its order. */
static void read_q5(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0), m = f->numbers > 1 ? half(f, b, 1) : 0;
    const unsigned char *high = b + 2 * f->numbers, *low = high + 4;
    for (unsigned i = 0; i < 32; i++) {
        const int q = nibble(low, i) | bits(high[i / 8], i % 8, 1) << 4;
        x[i] = f->numbers > 1 ? d * (float)q + m : d * (float)(q - 16);
    }
}

static void read_q8_0(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    for (unsigned i = 0; i < 32; i++)
        x[i] = (float)(int8_t)b[2 + i] * d;
}

static const int8_t of_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t of_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}; /* doubled */

static void read_iq4_nl(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    for (unsigned i = 0; i < 32; i++)
        x[i] = d * (float)of_iq4[nibble(b + 2, i)];
}

/* Half of 2^(e - 127), as bits: subnormal below 2. */
static void read_mxfp4(const ggml_form *f, float *x, const unsigned char *b)
{
    const uint32_t d_bits = b[0] < 2 ? UINT32_C(0x00200000) << b[0] : (uint32_t)(b[0] - 1) << 23;
    float d;
    (void)f;
    memcpy(&d, &d_bits, sizeof d);
    for (unsigned i = 0; i < 32; i++)
        x[i] = d * (float)of_e2m1[nibble(b + 1, i)];
}

/* Four groups of 16; scales without a sign, of which 0x7f counts as 0. */
static void read_nvfp4(const ggml_form *f, float *x, const unsigned char *b)
{
    (void)f;
    for (unsigned i = 0; i < 64; i++) {
        const unsigned char s = b[i / 16];
        const float man = (float)(s & 7),
                    raw = s >> 3 & 15 ? (1 + man / 8) * ldexpf(1, (s >> 3 & 15) - 7) : ldexpf(man, -9);
        const float d = s == 0x7f ? 0 : raw * 0.5f;
        const unsigned char q = b[4 + i / 16 * 8 + i % 8];
        x[i] = d * (float)of_e2m1[bits(q, i % 16 / 8 * 4, 4)];
    }
}

/* ---- 256 elements, of groups with scales of a few bits ---- */

static void read_q2_k(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0), least = half(f, b, 1);
    for (unsigned g = 0; g < 16; g++) {
        const float dl = d * (float)(b[g] & 15), ml = least * (float)(b[g] >> 4);
        for (unsigned i = 16 * g; i < 16 * g + 16; i++)
            x[i] = dl * (float)bits(b[16 + i / 128 * 32 + i % 32], i / 32 % 4 * 2, 2) - ml;
    }
}

/* Twelve bytes hold 16 scales: four low bits in the first eight, the upper two in the last four. */
static int q3_scale(const unsigned char *s, unsigned g)
{
    return (bits(s[g % 8], g / 8 * 4, 4) | bits(s[8 + g % 4], g / 4 * 2, 2) << 4) - 32;
}

static void read_q3_k(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    for (unsigned g = 0; g < 16; g++) {
        const float dl = d * (float)q3_scale(b + 96, g);
        for (unsigned i = 16 * g; i < 16 * g + 16; i++) {
            const int low = bits(b[32 + i / 128 * 32 + i % 32], i / 32 % 4 * 2, 2), high = bits(b[i % 32], i / 32, 1);
            x[i] = dl * (float)(low - (high ? 0 : 4));
        }
    }
}

/* Twelve bytes hold eight scales and eight minima of six bits. */
static void scale_and_least(const unsigned char *s, unsigned g, int *scale, int *least)
{
    const unsigned k = g % 4;
    *scale = g < 4 ? s[k] & 63 : (s[8 + k] & 15) | (s[k] >> 2 & 48);
    *least = g < 4 ? s[4 + k] & 63 : s[8 + k] >> 4 | (s[4 + k] >> 2 & 48);
}

/* Q4_K and Q5_K, whose fifth bits are bit g of 32 bytes. */
static void read_q45_k(const ggml_form *f, float *x, const unsigned char *b)
{
    const int five = f->bytes == 176;
    const float d = half(f, b, 0), smallest = half(f, b, 1);
    const unsigned char *high = b + 16, *low = five ? b + 48 : b + 16;
    for (unsigned g = 0; g < 8; g++) {
        int scale, least;
        scale_and_least(b + 4, g, &scale, &least);
        const float dl = d * (float)scale, ml = smallest * (float)least;
        for (unsigned i = 0; i < 32; i++) {
            const int q = bits(low[g / 2 * 32 + i], g % 2 * 4, 4) | (five ? bits(high[i], g, 1) << 4 : 0);
            x[32 * g + i] = dl * (float)q - ml;
        }
    }
}

static void read_q6_k(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    for (unsigned i = 0; i < 256; i++) {
        const unsigned half_of = i / 128, in = i % 128;
        const int low = bits(b[half_of * 64 + in % 64], in / 64 * 4, 4);
        const int high = bits(b[128 + half_of * 32 + in % 32], in / 32 * 2, 2);
        x[i] = d * (float)(int8_t)b[192 + i / 16] * (float)((low | high << 4) - 32);
    }
}

static void read_iq4_xs(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    const unsigned high = half_bits(b + 2);
    for (unsigned g = 0; g < 8; g++) {
        const int scale = (bits(b[4 + g / 2], g % 2 * 4, 4) | (int)(high >> 2 * g & 3) << 4) - 32;
        const float dl = d * (float)scale;
        for (unsigned i = 0; i < 32; i++)
            x[32 * g + i] = dl * (float)of_iq4[nibble(b + 8 + 16 * g, i)];
    }
}

static void read_q8_k(const ggml_form *f, float *x, const unsigned char *b)
{
    const uint32_t d_bits = half_bits(b) | (uint32_t)half_bits(b + 2) << 16;
    float d;
    (void)f;
    memcpy(&d, &d_bits, sizeof d);
    for (unsigned i = 0; i < 256; i++)
        x[i] = d * (float)(int8_t)b[4 + i];
}

/* Five digits of base 3 in a byte: the first is the whole part of three times the byte over 256. */
static int ternary(unsigned char byte, unsigned digit)
{
    static const uint8_t powers[] = {1, 3, 9, 27, 81};
    return ((uint8_t)(byte * powers[digit]) * 3 >> 8) - 1;
}

/* 32 bytes and 16 of five digits, 4 of four. */
static void read_tq1_0(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    for (unsigned i = 0; i < 256; i++) {
        const unsigned k = i < 160 ? i : i < 240 ? i - 160 : i - 240, side = i < 160 ? 32 : i < 240 ? 16 : 4;
        const unsigned char *q = i < 160 ? b : i < 240 ? b + 32 : b + 48;
        x[i] = d * (float)ternary(q[k % side], k / side);
    }
}

static void read_tq2_0(const ggml_form *f, float *x, const unsigned char *b)
{
    const float d = half(f, b, 0);
    for (unsigned i = 0; i < 256; i++)
        x[i] = d * (float)(bits(b[i / 128 * 32 + i % 32], i / 32 % 4 * 2, 2) - 1);
}

/* ---- the table ---- */

/* clang-format off */
static const ggml_form forms[] = {
    {"Q4_0",   "int4",           "fp16",                32,  18,  32,   0, 1, read_q4},
    {"Q4_1",   "uint4 above a minimum", "fp16",   32,  20,  32,   0, 2, read_q4},
    {"Q5_0",   "int5",           "fp16",                32,  22,  32,   0, 1, read_q5},
    {"Q5_1",   "uint5 above a minimum", "fp16",   32,  24,  32,   0, 2, read_q5},
    {"Q8_0",   "int8",           "fp16",                32,  34,  32,   0, 1, read_q8_0},
    {"Q2_K",   "uint2 above a minimum", "fp16 times uint4", 256,  84,  16,  80, 2, read_q2_k},
    {"Q3_K",   "int3",           "fp16 times int6",     256, 110,  16, 108, 1, read_q3_k},
    {"Q4_K",   "uint4 above a minimum", "fp16 times uint6", 256, 144,  32,   0, 2, read_q45_k},
    {"Q5_K",   "uint5 above a minimum", "fp16 times uint6", 256, 176,  32,   0, 2, read_q45_k},
    {"Q6_K",   "int6",           "fp16 times int8",     256, 210,  16, 208, 1, read_q6_k},
    {"Q8_K",   "int8",           "binary32",            256, 292, 256,   0, 2, read_q8_k},
    {"IQ4_NL", "a table of 16",  "fp16",                32,  18,  32,   0, 1, read_iq4_nl},
    {"IQ4_XS", "a table of 16",  "fp16 times int6",     256, 136,  32,   0, 2, read_iq4_xs},
    {"TQ1_0",  "three values",   "fp16",                256,  54, 256,  52, 1, read_tq1_0},
    {"TQ2_0",  "three values",   "fp16",                256,  66, 256,  64, 1, read_tq2_0},
    {"MXFP4",  "e2m1",           "e8m0",                32,  17,  32,   0, 0, read_mxfp4},
    {"NVFP4",  "e2m1",           "unsigned e4m3", 64,  36,  16,   0, 0, read_nvfp4},
};
/* clang-format on */

const ggml_form *quant_ggml_form_find(const char *type)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(forms[i].type, type) == 0)
            return &forms[i];
    return NULL;
}

/* The numbers of 16 bits, and the one of 32, as in a little-endian file. */
static const unsigned char *little(const ggml_form *f, unsigned char *to, const unsigned char *b)
{
    const size_t width = f->read == read_q8_k ? 4 : 2;
    memcpy(to, b, f->bytes);
    for (size_t at = f->at; at < f->at + 2u * f->numbers; at += width)
        for (size_t i = 0; i < width; i++)
            to[at + i] = b[at + width - 1 - i];
    return to;
}

void quant_ggml_read(const ggml_form *f, float *x, const unsigned char *blocks, size_t n, int big)
{
    unsigned char swapped[BYTES_MAX];
    for (size_t k = 0; k < n; k++, x += f->block, blocks += f->bytes) {
        f->read(f, x, big ? little(f, swapped, blocks) : blocks);
        for (size_t i = 0; i < f->block; i++)
            x[i] = x[i] == x[i] ? x[i] : NAN;
    }
}
