/* kinds.c -- see kinds.h. */
#include "kinds.h"

#include <math.h>

uint64_t verify_kinds_word(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

const char *verify_kinds_name(int kind)
{
    static const char *const names[KINDS] = {"bits",   "normal",  "zeros", "cancel", "extreme",
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
    return (double)(int64_t)verify_kinds_word(seed) * 0x1p-63;
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
        const uint64_t u = verify_kinds_word(seed) & mask(f);
        const mpsim_class c = mpsim_classify(f, u);
        if (c != MPSIM_CLASS_NAN && c != MPSIM_CLASS_INF)
            return u;
    }
    return 0;
}

static uint64_t an_end(const mpsim_format *f, uint64_t *seed)
{
    const uint64_t u = verify_kinds_word(seed), sign = u & 8 ? sign_of(f) : 0;
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
        const uint64_t u = (f->max_finite + verify_kinds_word(seed) % 4) & mask(f);
        const mpsim_class c = mpsim_classify(f, u);
        if (c == MPSIM_CLASS_NAN || c == MPSIM_CLASS_INF)
            return verify_kinds_word(seed) & 1 ? u : u | sign_of(f);
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
    int e = target / 2 + (int)(verify_kinds_word(seed) % 13) - 6;
    e = clamp(e, target - hb, target - lb);
    e = clamp(e, la, ha);
    const int g = clamp(target - e, lb, hb);
    const uint64_t u = verify_kinds_word(seed);
    const double few = (u & 2 ? 1.5 : 1) * (u & 4 ? -1 : 1);
    *a = encode(fa, ldexp(u & 1 ? few : around_one(seed), e));
    *b = encode(fb, ldexp(u & 1 ? 1 : around_one(seed), g));
}

static void one_pair(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, const mpsim_format *fr,
                     int kind, uint64_t *seed)
{
    int low, high;
    exponents(fr, &low, &high);
    const uint64_t u = verify_kinds_word(seed);
    *a = encode(fa, around_one(seed));
    *b = encode(fb, around_one(seed));
    switch (kind) {
    case KIND_BITS:
        *a = verify_kinds_word(seed) & mask(fa);
        *b = verify_kinds_word(seed) & mask(fb);
        break;
    case KIND_ZEROS:
        if (u % 2)
            *a = encode(fa, u & 4 ? 0 : -0.0);
        if (u / 8 % 2)
            *b = encode(fb, u & 16 ? 0 : -0.0);
        break;
    case KIND_EXTREME:
        *a = an_end(fa, seed);
        *b = an_end(fb, seed);
        break;
    case KIND_FINITE:
        *a = any_finite(fa, seed);
        *b = any_finite(fb, seed);
        break;
    case KIND_SPECIAL:
        if (u % 32 == 0)
            *a = a_special(fa, seed);
        if (u / 32 % 32 == 0)
            *b = a_special(fb, seed);
        if (u / 1024 % 32 == 0)
            *b = encode(fb, 0);
        break;
    case KIND_TINY:
        near(fa, a, fb, b, low + (int)(u % 32) - 8, seed);
        break;
    case KIND_HUGE:
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

void verify_kinds_fill(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, size_t n,
                       const mpsim_format *fr, int kind, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        one_pair(fa, &a[i], fb, &b[i], fr, kind, seed);
        if (kind == KIND_CANCEL && i % 2) {
            a[i] = a[i - 1];
            b[i] = b[i - 1] ^ sign_of(fb);
        }
        if (kind == KIND_CANCEL && verify_kinds_word(seed) % 8 == 0) { /* and something to be left over */
            const int down = (int)(verify_kinds_word(seed) % 24);
            a[i] = encode(fa, ldexp(around_one(seed), -down));
        }
    }
    for (size_t i = 0; kind == KIND_CANCEL && i < n; i++) {
        const size_t j = i + (size_t)(verify_kinds_word(seed) % (n - i));
        swap(a, i, j);
        swap(b, i, j);
    }
}

uint64_t verify_kinds_addend(const mpsim_format *fr, int kind, uint64_t *seed)
{
    int low, high;
    exponents(fr, &low, &high);
    const uint64_t u = verify_kinds_word(seed);
    if (u % 4 == 0)
        return 0;
    if (u % 16 == 1)
        return fr->zero == MPSIM_ZERO_SIGNED ? sign_of(fr) : 0;
    if (u % 16 == 2)
        return any_finite(fr, seed);
    switch (kind) {
    case KIND_BITS:
        return u / 16 % 2 ? verify_kinds_word(seed) & mask(fr) : any_finite(fr, seed);
    case KIND_EXTREME:
        return an_end(fr, seed);
    case KIND_SPECIAL:
        return u / 16 % 8 ? encode(fr, around_one(seed)) : a_special(fr, seed);
    case KIND_TINY:
        return encode(fr, ldexp(around_one(seed), low + (int)(u / 16 % 32)));
    case KIND_HUGE:
        return encode(fr, ldexp(around_one(seed), high - (int)(u / 16 % 4)));
    default:
        return encode(fr, ldexp(around_one(seed), (int)(u / 16 % 16) - 10));
    }
}
