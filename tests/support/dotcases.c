/* dotcases.c -- see dotcases.h. */
#include "dotcases.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dot_kind(int kind)
{
    static const char *const names[DOT_KINDS] = {"bits",   "normal",  "zeros", "cancel", "extreme",
                                                 "finite", "special", "tiny",  "huge"};
    return names[kind];
}

static uint64_t mask(const mpsim_format *f)
{
    return f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
}

static uint64_t sign_of(const mpsim_format *f)
{
    return mpsim_format_is_signed(f) ? (uint64_t)1 << (f->bits - 1) : 0;
}

static uint64_t encode(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    r.negative = MPSIM_NEGATIVE_ABS;
    return mpsim_encode_f64(f, &r, x, 0, NULL);
}

/* In (-1, 1). */
static double uniform(uint64_t *seed)
{
    return (double)(int64_t)test_random(seed) * 0x1p-63;
}

static double around_one(uint64_t *seed)
{
    double x = 0;
    for (int i = 0; i < 4; i++)
        x += uniform(seed);
    return x;
}

static uint64_t any_finite(const mpsim_format *f, uint64_t *seed)
{
    for (int i = 0; i < 100; i++) {
        const uint64_t u = test_random(seed) & mask(f);
        const mpsim_class c = mpsim_classify(f, u);
        if (c != MPSIM_CLASS_NAN && c != MPSIM_CLASS_INF)
            return u;
    }
    return 0;
}

static uint64_t an_end(const mpsim_format *f, uint64_t *seed)
{
    const uint64_t u = test_random(seed), sign = u & 8 ? sign_of(f) : 0;
    const uint64_t normal = encode(f, mpsim_format_min_normal(f));
    switch (u % 8) {
    case 0:
        return f->zero == MPSIM_ZERO_SIGNED ? sign : 0;
    case 1:
        return sign | encode(f, mpsim_format_min_positive(f));
    case 2:
        return sign | (normal > 1 ? normal - 1 : normal);
    case 3:
        return sign | normal;
    case 4:
        return sign | encode(f, 1);
    case 5:
        return sign | (f->max_finite > 1 ? f->max_finite - 1 : 1);
    default:
        return sign | f->max_finite;
    }
}

static uint64_t a_special(const mpsim_format *f, uint64_t *seed)
{
    for (int i = 0; i < 200; i++) { /* below and above the first infinity, or the last numbers */
        const uint64_t u = (f->max_finite + test_random(seed) % 4) & mask(f);
        const mpsim_class c = mpsim_classify(f, u);
        if (c == MPSIM_CLASS_NAN || c == MPSIM_CLASS_INF)
            return test_random(seed) & 1 ? u : u | sign_of(f);
    }
    return f->max_finite;
}

/* The exponents of the smallest and of the largest number. */
static void exponents(const mpsim_format *f, int *low, int *high)
{
    *low = ilogb(mpsim_format_min_positive(f));
    *high = ilogb(mpsim_format_max(f));
}

static int clamp(int x, int low, int high)
{
    return x < low ? low : x > high ? high : x;
}

/* Two numbers whose product is near 2^target; half of the time few bits, for ties. */
static void near(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, int target, uint64_t *seed)
{
    int la, ha, lb, hb;
    exponents(fa, &la, &ha);
    exponents(fb, &lb, &hb);
    int e = target / 2 + (int)(test_random(seed) % 13) - 6;
    e = clamp(e, target - hb, target - lb);
    e = clamp(e, la, ha);
    const int g = clamp(target - e, lb, hb);
    const uint64_t u = test_random(seed);
    const double few = (u & 2 ? 1.5 : 1) * (u & 4 ? -1 : 1);
    *a = encode(fa, ldexp(u & 1 ? few : around_one(seed), e));
    *b = encode(fb, ldexp(u & 1 ? 1 : around_one(seed), g));
}

static void one_pair(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, const mpsim_format *fr,
                     int kind, uint64_t *seed)
{
    int low, high;
    exponents(fr, &low, &high);
    const uint64_t u = test_random(seed);
    *a = encode(fa, around_one(seed));
    *b = encode(fb, around_one(seed));
    switch (kind) {
    case DOT_BITS:
        *a = test_random(seed) & mask(fa);
        *b = test_random(seed) & mask(fb);
        break;
    case DOT_ZEROS:
        if (u % 2)
            *a = encode(fa, u & 4 ? 0 : -0.0);
        if (u / 8 % 2)
            *b = encode(fb, u & 16 ? 0 : -0.0);
        break;
    case DOT_EXTREME:
        *a = an_end(fa, seed);
        *b = an_end(fb, seed);
        break;
    case DOT_FINITE:
        *a = any_finite(fa, seed);
        *b = any_finite(fb, seed);
        break;
    case DOT_SPECIAL:
        if (u % 32 == 0)
            *a = a_special(fa, seed);
        if (u / 32 % 32 == 0)
            *b = a_special(fb, seed);
        if (u / 1024 % 32 == 0)
            *b = encode(fb, 0);
        break;
    case DOT_TINY:
        near(fa, a, fb, b, low + (int)(u % 32) - 8, seed);
        break;
    case DOT_HUGE:
        near(fa, a, fb, b, high - (int)(u % 8) + 2, seed);
        break;
    default:
        break;
    }
}

static void swap(uint64_t *x, size_t i, size_t j)
{
    const uint64_t t = x[i];
    x[i] = x[j];
    x[j] = t;
}

void dot_fill(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, size_t n,
              const mpsim_format *fr, int kind, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        one_pair(fa, &a[i], fb, &b[i], fr, kind, seed);
        if (kind == DOT_CANCEL && i % 2) {
            a[i] = a[i - 1];
            b[i] = b[i - 1] ^ sign_of(fb);
        }
        if (kind == DOT_CANCEL && test_random(seed) % 8 == 0) /* and something to be left over */
            a[i] = encode(fa, ldexp(around_one(seed), -(int)(test_random(seed) % 24)));
    }
    for (size_t i = 0; kind == DOT_CANCEL && i < n; i++) {
        const size_t j = i + (size_t)(test_random(seed) % (n - i));
        swap(a, i, j);
        swap(b, i, j);
    }
}

uint64_t dot_addend(const mpsim_format *fr, int kind, uint64_t *seed)
{
    int low, high;
    exponents(fr, &low, &high);
    const uint64_t u = test_random(seed);
    if (u % 4 == 0)
        return 0;
    if (u % 16 == 1)
        return fr->zero == MPSIM_ZERO_SIGNED ? sign_of(fr) : 0;
    if (u % 16 == 2)
        return any_finite(fr, seed);
    switch (kind) {
    case DOT_BITS:
        return u / 16 % 2 ? test_random(seed) & mask(fr) : any_finite(fr, seed);
    case DOT_EXTREME:
        return an_end(fr, seed);
    case DOT_SPECIAL:
        return u / 16 % 8 ? encode(fr, around_one(seed)) : a_special(fr, seed);
    case DOT_TINY:
        return encode(fr, ldexp(around_one(seed), low + (int)(u / 16 % 32)));
    case DOT_HUGE:
        return encode(fr, ldexp(around_one(seed), high - (int)(u / 16 % 4)));
    default:
        return encode(fr, ldexp(around_one(seed), (int)(u / 16 % 16) - 10));
    }
}

void dot_pack(const mpsim_format *f, void *out, size_t first, const uint64_t *codes, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    unsigned char *p = out;
    p += first * bytes;
    for (size_t i = 0; i < n; i++, p += bytes) {
        const uint8_t u8 = (uint8_t)codes[i];
        const uint16_t u16 = (uint16_t)codes[i];
        const uint32_t u32 = (uint32_t)codes[i];
        memcpy(p,
               bytes == 1   ? (const void *)&u8
               : bytes == 2 ? (const void *)&u16
               : bytes == 4 ? (const void *)&u32
                            : (const void *)&codes[i],
               bytes);
    }
}

uint64_t dot_unpack(const mpsim_format *f, const void *in, size_t i)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    const unsigned char *p = in;
    p += i * bytes;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (bytes) {
    case 1:
        memcpy(&u8, p, 1);
        return u8;
    case 2:
        memcpy(&u16, p, 2);
        return u16;
    case 4:
        memcpy(&u32, p, 4);
        return u32;
    default:
        memcpy(&u64, p, 8);
        return u64;
    }
}

size_t dot_formats(const mpsim_model *m, mpsim_format *list, size_t room)
{
    char names[400];
    size_t n = 0;
    snprintf(names, sizeof names, "%s",
             m->operands ? m->operands : "fp16 bf16 tf32 binary32 e4m3 e5m2 e2m1 e8m0 e4m3fnuz binary8p3ue");
    for (char *save = NULL, *s = strtok_r(names, " ", &save); s && n < room; s = strtok_r(NULL, " ", &save))
        if (mpsim_format_parse(&list[n], s) == MPSIM_OK)
            n++;
    return n;
}

static const char *const names[DOT_FORMATS] = {
    "binary32",  "fp16", "bf16",          "tf32",        "e4m3",        "e5m2",    "e4m3fnuz", "e5m2fnuz",
    "e4m3ieee",  "e3m4", "e3m2",          "e2m3",        "e2m1",        "e8m0",    "binary64", "e8m13",
    "e6m9",      "e5m7", "e4m4:unsigned", "binary8p4sf", "binary8p3ue", "e3m0:fn", "e9m30",    "e4m3:finite:inf",
    "e11m1:fnuz"};

mpsim_format dot_format(size_t i)
{
    mpsim_format f = {.bits = 0};
    ck_assert_msg(mpsim_format_parse(&f, names[i]) == MPSIM_OK, "%s", names[i]);
    return f;
}

static void any_place(mpsim_rounded *p, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    p->format = dot_format(u % DOT_FORMATS);
    mpsim_rounding *r = &p->rounding;
    mpsim_rounding_init(r, (mpsim_round_mode)(test_random(seed) % MPSIM_ROUND_MODES));
    r->sr_bits = (uint8_t)(1 + test_random(seed) % 32);
    if (u >> 60 < 8) /* the default choices */
        return;
    r->overflow = u >> 8 & 1 ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
    r->infinity = u >> 9 & 1 ? MPSIM_INFINITY_MAX : MPSIM_INFINITY_KEEP;
    r->no_inf = u >> 10 & 1 ? MPSIM_NO_INF_MAX : MPSIM_NO_INF_NAN;
    r->nan = (uint8_t)(test_random(seed) % (MPSIM_NANS_MINUS_ONES + 1));
    r->no_nan = (uint8_t)(test_random(seed) % (MPSIM_NO_NAN_ANTIZERO + 1));
    r->negative = (uint8_t)(test_random(seed) % (MPSIM_NEGATIVE_ABS + 1));
    r->no_zero = (uint8_t)(test_random(seed) % (MPSIM_NO_ZERO_NAN_MIN + 1));
    r->flush_output = u >> 11 & 1;
}

static void print_place(const char *what, const mpsim_rounded *p)
{
    const mpsim_rounding *r = &p->rounding;
    printf("# %s: %s mode %d:%d overflow %d infinity %d no_inf %d nan %d no_nan %d negative %d "
           "no_zero %d flush %d\n",
           what, p->format.name, r->mode, r->sr_bits, r->overflow, r->infinity, r->no_inf, r->nan, r->no_nan,
           r->negative, r->no_zero, r->flush_output);
}

void dot_print_model(const mpsim_model *m)
{
    printf("# addition %d order %d align %d normalised %d L %d F %d floor %d emin %d chunk %u\n", m->addition, m->order,
           m->alignment, m->normalised, m->length, m->fraction, m->floor, m->operand_emin, m->chunk);
    print_place("product", &m->product);
    print_place("accumulator", &m->accumulator);
    print_place("outer", &m->outer);
    print_place("result", &m->result);
    fflush(stdout);
}

void dot_any_model(mpsim_model *m, uint64_t *seed)
{
    static const uint8_t lengths[] = {1, 2, 3, 4, 5, 8, 16, 17, 32, 64, 128};
    const uint64_t u = test_random(seed);
    mpsim_model_at(m, 0);
    m->addition = (uint8_t)(u % 4);
    m->order = MPSIM_ORDER_SEQUENTIAL;
    m->chunk = u >> 4 & 1 ? (uint32_t)(1 + (u >> 8) % 20) : 0;
    if (m->addition == MPSIM_ADDITION_MULADD && (u >> 5 & 1))
        m->order = MPSIM_ORDER_PAIRWISE;
    if (m->addition == MPSIM_ADDITION_FUSED) {
        m->alignment = (uint8_t)((u >> 16) % 3);
        m->normalised = u >> 20 & 1;
        m->length = lengths[(u >> 24) % (sizeof lengths / sizeof lengths[0])];
        m->fraction = (uint8_t)(1 + (u >> 32) % 50);
        m->floor = u >> 40 & 1 ? MPSIM_MODEL_NO_FLOOR : (int16_t)((int)((u >> 41) % 400) - 300);
        if (u >> 50 & 1)
            m->operand_emin = (int16_t)(-(int)((u >> 51) % 40));
        if (m->chunk && (u >> 5 & 1)) {
            m->chunk *= 4;
            m->order = MPSIM_ORDER_QUADS;
        }
    }
    any_place(&m->product, seed);
    any_place(&m->accumulator, seed);
    any_place(&m->outer, seed);
    any_place(&m->result, seed);
    strcpy(m->name, "random");
}
