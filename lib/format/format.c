/* format.c -- the table of formats, and names that stand for formats outside it.
 *
 * Codes are consecutive, so rounding a magnitude up adds 1 to its code, and the carry moves the exponent. A format
 * is therefore max_finite, one flag and two sets of codes (NaN, zero). No function depends on the name of a format. */
#include <mpsim/format.h>

#include "../base/words.h"
#include "../round/scalar.h"

#include <stdlib.h>
#include <string.h>

#define P3109 "IEEE P3109 interim report 4.0"

/* clang-format off */
static const mpsim_format table[] = {
/*   name        aliases
     bits ebits mbits inf nan  zero                  bias  max_finite, nan_code, source */
    {"binary64",   "fp64 float64 double f64 e11m52",
     64, 11, 52, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,   1023, 0x7fefffffffffffff, 0x7ff8000000000000, "IEEE 754-2019 3.6"},
    {"binary32",   "fp32 float32 single float f32 e8m23",
     32,  8, 23, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,    127, 0x7f7fffff, 0x7fc00000, "IEEE 754-2019 3.6"},
    {"tf32",       "tensorfloat32 tensorfloat_32 e8m10",
     19,  8, 10, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,    127, 0x3fbff, 0x3fe00, "NVIDIA A100 whitepaper (19 bits)"},
    {"fp16",       "half float16 binary16 f16 e5m10",
     16,  5, 10, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,     15, 0x7bff, 0x7e00, "IEEE 754-2019 3.6"},
    {"bf16",       "bfloat16 brain16 e8m7",
     16,  8,  7, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,    127, 0x7f7f, 0x7fc0, "Intel BF16 definition, 2018"},
    {"e4m3",       "e4m3fn fp8_e4m3 fp8_e4m3fn float8_e4m3fn f8_e4m3 f8_e4m3fn",
      8,  4,  3, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,      7, 0x7e, 0x7f, "OCP OFP8 1.0"},
    {"e5m2",       "fp8_e5m2 float8_e5m2 f8_e5m2",
      8,  5,  2, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,     15, 0x7b, 0x7e, "OCP OFP8 1.0"},
    {"e4m3fnuz",   "fp8_e4m3fnuz float8_e4m3fnuz f8_e4m3fnuz",
      8,  4,  3, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    8, 0x7f, 0x80, "Noune et al., arXiv 2206.02915"},
    {"e5m2fnuz",   "fp8_e5m2fnuz float8_e5m2fnuz f8_e5m2fnuz",
      8,  5,  2, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   16, 0x7f, 0x80, "Noune et al., arXiv 2206.02915"},
    {"e4m3b11fnuz","e4m3b11 fp8_e4m3b11fnuz float8_e4m3b11fnuz f8_e4m3b11fnuz",
      8,  4,  3, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   11, 0x7f, 0x80, "ml_dtypes 0.6, float8_e4m3b11fnuz"},
    {"e4m3ieee",   "float8_e4m3 e4m3_ieee ieee_e4m3",
      8,  4,  3, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,      7, 0x77, 0x7c, "ml_dtypes 0.6, float8_e4m3"},
    {"e3m4",       "float8_e3m4 fp8_e3m4 f8_e3m4",
      8,  3,  4, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_SIGNED,      3, 0x6f, 0x78, "ml_dtypes 0.6, float8_e3m4"},
    {"e3m2",       "float6_e3m2fn fp6_e3m2 f6_e3m2 e3m2fn",
      6,  3,  2, 0, MPSIM_NAN_NONE,   MPSIM_ZERO_SIGNED,      3, 0x1f, 0, "OCP MX 1.0, 5.3.2"},
    {"e2m3",       "float6_e2m3fn fp6_e2m3 f6_e2m3 e2m3fn",
      6,  2,  3, 0, MPSIM_NAN_NONE,   MPSIM_ZERO_SIGNED,      1, 0x1f, 0, "OCP MX 1.0, 5.3.2"},
    {"e2m1",       "float4_e2m1fn fp4_e2m1 f4_e2m1 e2m1fn fp4 f4",
      4,  2,  1, 0, MPSIM_NAN_NONE,   MPSIM_ZERO_SIGNED,      1, 0x7, 0, "OCP MX 1.0, 5.3.3"},
    {"e8m0",       "float8_e8m0fnu f8_e8m0 e8m0fnu ue8m0",
      8,  8,  0, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_NONE,      127, 0xfe, 0xff, "OCP MX 1.0, 5.4.1"},
    {"binary8p1se", "",  8,  7,  0, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   64, 0x7e, 0x80, P3109},
    {"binary8p1sf", "",  8,  7,  0, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   64, 0x7f, 0x80, P3109},
    {"binary8p2se", "",  8,  6,  1, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   32, 0x7e, 0x80, P3109},
    {"binary8p2sf", "",  8,  6,  1, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   32, 0x7f, 0x80, P3109},
    {"binary8p3se", "",  8,  5,  2, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   16, 0x7e, 0x80, P3109},
    {"binary8p3sf", "",  8,  5,  2, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,   16, 0x7f, 0x80, P3109},
    {"binary8p4se", "",  8,  4,  3, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    8, 0x7e, 0x80, P3109},
    {"binary8p4sf", "",  8,  4,  3, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    8, 0x7f, 0x80, P3109},
    {"binary8p5se", "",  8,  3,  4, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    4, 0x7e, 0x80, P3109},
    {"binary8p5sf", "",  8,  3,  4, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    4, 0x7f, 0x80, P3109},
    {"binary8p6se", "",  8,  2,  5, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    2, 0x7e, 0x80, P3109},
    {"binary8p6sf", "",  8,  2,  5, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    2, 0x7f, 0x80, P3109},
    {"binary8p7se", "",  8,  1,  6, 1, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    1, 0x7e, 0x80, P3109},
    {"binary8p7sf", "",  8,  1,  6, 0, MPSIM_NAN_NEGZERO,MPSIM_ZERO_UNSIGNED,    1, 0x7f, 0x80, P3109},
    {"binary8p1ue", "",  8,  8,  0, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,  128, 0xfd, 0xff, P3109},
    {"binary8p1uf", "",  8,  8,  0, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,  128, 0xfe, 0xff, P3109},
    {"binary8p2ue", "",  8,  7,  1, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,   64, 0xfd, 0xff, P3109},
    {"binary8p2uf", "",  8,  7,  1, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,   64, 0xfe, 0xff, P3109},
    {"binary8p3ue", "",  8,  6,  2, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,   32, 0xfd, 0xff, P3109},
    {"binary8p3uf", "",  8,  6,  2, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,   32, 0xfe, 0xff, P3109},
    {"binary8p4ue", "",  8,  5,  3, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,   16, 0xfd, 0xff, P3109},
    {"binary8p4uf", "",  8,  5,  3, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,   16, 0xfe, 0xff, P3109},
    {"binary8p5ue", "",  8,  4,  4, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    8, 0xfd, 0xff, P3109},
    {"binary8p5uf", "",  8,  4,  4, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    8, 0xfe, 0xff, P3109},
    {"binary8p6ue", "",  8,  3,  5, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    4, 0xfd, 0xff, P3109},
    {"binary8p6uf", "",  8,  3,  5, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    4, 0xfe, 0xff, P3109},
    {"binary8p7ue", "",  8,  2,  6, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    2, 0xfd, 0xff, P3109},
    {"binary8p7uf", "",  8,  2,  6, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    2, 0xfe, 0xff, P3109},
    {"binary8p8ue", "",  8,  1,  7, 1, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    1, 0xfd, 0xff, P3109},
    {"binary8p8uf", "",  8,  1,  7, 0, MPSIM_NAN_TOP,    MPSIM_ZERO_UNSIGNED,    1, 0xfe, 0xff, P3109},
};
/* clang-format on */

enum { ROWS = sizeof table / sizeof table[0] };
_Static_assert(ROWS == 16 + 14 + 16, "16 named formats, 14 signed and 16 unsigned P3109 ones");

size_t mpsim_format_count(void)
{
    return ROWS;
}

const mpsim_format *mpsim_format_at(size_t i)
{
    return i < ROWS ? &table[i] : NULL;
}

/* ---- names ---- */

/* Whether the word at p, up to a space or the end, is this name. */
static int is_word(const char *p, const char *name)
{
    for (; *name && *name != ' ' && mpsim_fold(*p) == mpsim_fold(*name); p++)
        name++;
    return !*name && (!*p || *p == ' ');
}

static int has_name(const mpsim_format *f, const char *name)
{
    if (is_word(f->name, name))
        return 1;
    for (const char *p = f->aliases; p; p = strchr(p, ' ')) {
        p += *p == ' ';
        if (*p && is_word(p, name))
            return 1;
    }
    return 0;
}

const mpsim_format *mpsim_format_find(const char *name)
{
    if (!name)
        return NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (has_name(&table[i], name))
            return &table[i];
    return NULL;
}

/* A decimal number of at most 4 digits at *p, which is advanced past it; -1 if none. Leading
 * zeros are refused: a format has one name. */
static int parse_number(const char **p)
{
    const char *first = *p;
    int n = 0, digits = 0;
    for (; **p >= '0' && **p <= '9'; ++*p, digits++)
        n = digits < 4 ? 10 * n + (**p - '0') : 10000;
    return digits && n < 10000 && (*first != '0' || digits == 1) ? n : -1;
}

/* Set the fields that follow from the others once ebits, mbits, inf, nan, zero and the
 * signedness (in bits) are known. The top codes are, from above: NaN (TOP: one magnitude, or
 * the rest of the binade after the infinity if `nan_binade`), infinity, finite numbers. */
static void fill_top(mpsim_format *f, int nan_binade)
{
    const uint64_t mask = mpsim_magnitude_mask(f);
    f->max_finite = mask;
    f->nan_code = 0;
    if (f->nan == MPSIM_NAN_NEGZERO) {
        f->nan_code = mask + 1;
    } else if (f->nan == MPSIM_NAN_TOP && nan_binade) {
        const uint64_t inf = mask & ~(((uint64_t)1 << f->mbits) - 1);
        f->max_finite = inf - 1;
        f->nan_code = inf | (uint64_t)1 << (f->mbits - 1);
        return; /* the infinity, if any, is the code after max_finite already */
    } else if (f->nan == MPSIM_NAN_TOP) {
        f->nan_code = mask;
        f->max_finite--;
    }
    f->max_finite -= f->inf;
}

/* binary{K}p{P}{s|u}{e|f}; see P3109 interim report 4.0, 3.1 for bias and special codes. */
static mpsim_status parse_p3109(mpsim_format *f, const char *name)
{
    static const char prefix[] = "binary";
    const char *p = name + sizeof prefix - 1;
    if (strlen(name) < sizeof prefix - 1 || !mpsim_same_word(name, sizeof prefix - 1, prefix))
        return MPSIM_ENOTFOUND;
    const int k = parse_number(&p);
    if (mpsim_fold(*p) != 'p')
        return MPSIM_ENOTFOUND;
    p++;
    const int precision = parse_number(&p);
    const char sign = mpsim_fold(p[0]), domain = p[0] ? mpsim_fold(p[1]) : '\0';
    if (k < 3 || k > 16 || (sign != 's' && sign != 'u') || (domain != 'e' && domain != 'f') || p[2] != '\0')
        return MPSIM_ENOTFOUND;
    const int is_signed = sign == 's';
    if (precision < 1 || precision > k - is_signed)
        return MPSIM_ENOTFOUND;
    const int ebits = k - is_signed - (precision - 1);
    if (ebits > 11) /* bias 2^(ebits - 1): outside binary64 */
        return MPSIM_ERANGE;
    f->bits = (uint8_t)k;
    f->ebits = (uint8_t)ebits;
    f->mbits = (uint8_t)(precision - 1);
    f->bias = (int16_t)(1 << (ebits - 1));
    f->inf = domain == 'e';
    f->nan = is_signed ? MPSIM_NAN_NEGZERO : MPSIM_NAN_TOP;
    f->zero = MPSIM_ZERO_UNSIGNED;
    f->source = P3109;
    fill_top(f, 0);
    return MPSIM_OK;
}

/* What the options of an eXmY name say; -1: not given. */
typedef struct exmy_options {
    int layout, inf, bias, has_bias, is_unsigned;
} exmy_options;

enum { LAYOUT_IEEE, LAYOUT_FN, LAYOUT_FNUZ, LAYOUT_FINITE };

static mpsim_status parse_option(exmy_options *o, const char *word, size_t n)
{
    static const char *const layouts[] = {
        [LAYOUT_IEEE] = "ieee", [LAYOUT_FN] = "fn", [LAYOUT_FNUZ] = "fnuz", [LAYOUT_FINITE] = "finite"};
    for (int i = LAYOUT_IEEE; i <= LAYOUT_FINITE; i++)
        if (mpsim_same_word(word, n, layouts[i])) {
            const int twice = o->layout >= 0;
            o->layout = i;
            return twice ? MPSIM_EINVAL : MPSIM_OK;
        }
    if (mpsim_same_word(word, n, "inf") || mpsim_same_word(word, n, "noinf")) {
        const int twice = o->inf >= 0;
        o->inf = mpsim_fold(word[0]) == 'i';
        return twice ? MPSIM_EINVAL : MPSIM_OK;
    }
    if (mpsim_same_word(word, n, "unsigned")) {
        const int twice = o->is_unsigned;
        o->is_unsigned = 1;
        return twice ? MPSIM_EINVAL : MPSIM_OK;
    }
    if (n > 5 && mpsim_same_word(word, 5, "bias=")) {
        const char *p = word + 5;
        const int negative = *p == '-';
        p += negative;
        const int bias = parse_number(&p);
        if (o->has_bias || bias < 0 || bias > 1200 || p != word + n)
            return MPSIM_EINVAL;
        o->bias = negative ? -bias : bias;
        o->has_bias = 1;
        return MPSIM_OK;
    }
    return MPSIM_EINVAL;
}

/* Whether the n characters at a name a row of the table that is not an IEEE layout, so that
 * options after them would say of which layout only if they name one. */
static int names_other_layout(const char *a, size_t n)
{
    for (size_t i = 0; i < ROWS; i++)
        if (mpsim_same_word(a, n, table[i].name))
            return !table[i].inf || table[i].zero != MPSIM_ZERO_SIGNED;
    return 0;
}

static mpsim_status parse_exmy(mpsim_format *f, const char *name)
{
    const char *p = name;
    if (mpsim_fold(*p++) != 'e')
        return MPSIM_ENOTFOUND;
    const int ebits = parse_number(&p);
    if (ebits < 0 || mpsim_fold(*p++) != 'm')
        return MPSIM_ENOTFOUND;
    const int mbits = parse_number(&p);
    if (mbits < 0 || (*p != '\0' && *p != ':'))
        return MPSIM_ENOTFOUND;
    const size_t head = (size_t)(p - name);
    const int has_options = *p == ':';
    exmy_options o = {-1, -1, 0, 0, 0};
    while (*p == ':') {
        const size_t n = strcspn(p + 1, ":");
        const mpsim_status s = parse_option(&o, p + 1, n);
        if (s != MPSIM_OK)
            return s;
        p += 1 + n;
    }
    if (ebits < 1 || ebits > 11 || mbits > 52)
        return MPSIM_ERANGE;
    if (has_options && o.layout < 0 && names_other_layout(name, head))
        return MPSIM_EINVAL;
    const int layout = o.layout < 0 ? LAYOUT_IEEE : o.layout;
    if (layout == LAYOUT_IEEE && mbits == 0) /* the top binade has no room for a NaN */
        return MPSIM_EINVAL;
    if (layout == LAYOUT_FNUZ && o.is_unsigned) /* there is no -0 to be the NaN */
        return MPSIM_EINVAL;
    f->ebits = (uint8_t)ebits;
    f->mbits = (uint8_t)mbits;
    f->bits = (uint8_t)(ebits + mbits + !o.is_unsigned);
    f->inf = (uint8_t)(o.inf < 0 ? layout == LAYOUT_IEEE : o.inf);
    f->nan = layout == LAYOUT_FINITE ? MPSIM_NAN_NONE : layout == LAYOUT_FNUZ ? MPSIM_NAN_NEGZERO : MPSIM_NAN_TOP;
    f->zero = layout == LAYOUT_FNUZ || o.is_unsigned ? MPSIM_ZERO_UNSIGNED : MPSIM_ZERO_SIGNED;
    f->bias = (int16_t)(o.has_bias ? o.bias : (1 << (ebits - 1)) - (layout != LAYOUT_FNUZ));
    f->source = "user";
    fill_top(f, layout == LAYOUT_IEEE);
    return MPSIM_OK;
}

mpsim_status mpsim_format_parse(mpsim_format *f, const char *name)
{
    if (!f || !name)
        return MPSIM_EINVAL;
    const mpsim_format *row = mpsim_format_find(name);
    if (row) {
        *f = *row;
        return MPSIM_OK;
    }
    mpsim_format g;
    memset(&g, 0, sizeof g);
    g.aliases = "";
    if (strlen(name) >= sizeof g.name)
        return MPSIM_ENOTFOUND;
    for (size_t i = 0; name[i]; i++)
        g.name[i] = name[i] == '-' ? '-' : mpsim_fold(name[i]); /* keep the sign of bias=-N */
    mpsim_status s = parse_p3109(&g, name);
    if (s == MPSIM_ENOTFOUND)
        s = parse_exmy(&g, name);
    if (s == MPSIM_OK)
        s = mpsim_format_check(&g);
    if (s == MPSIM_OK)
        *f = g;
    return s;
}

/* ---- consistency ---- */

int mpsim_format_same(const mpsim_format *a, const mpsim_format *b)
{
    return a->bits == b->bits && a->ebits == b->ebits && a->mbits == b->mbits && a->inf == b->inf && a->nan == b->nan &&
           a->zero == b->zero && a->bias == b->bias && a->max_finite == b->max_finite;
}

mpsim_status mpsim_format_check(const mpsim_format *f)
{
    if (!f || f->ebits < 1 || f->ebits > 11 || f->mbits > 52 || !memchr(f->name, '\0', sizeof f->name))
        return MPSIM_EINVAL;
    const int magnitude = f->ebits + f->mbits;
    if ((f->bits != magnitude && f->bits != magnitude + 1) || f->bits < 2 || f->inf > 1 || f->nan > MPSIM_NAN_NEGZERO ||
        f->zero > MPSIM_ZERO_NONE)
        return MPSIM_EINVAL;
    const uint64_t mask = mpsim_magnitude_mask(f);
    const uint64_t top = f->max_finite + f->inf; /* the last magnitude that is not NaN */
    if (f->max_finite > mask || top > mask)
        return MPSIM_EINVAL;
    if (f->nan == MPSIM_NAN_TOP ? f->nan_code <= top || f->nan_code > mask : top != mask)
        return MPSIM_EINVAL;
    if (f->nan == MPSIM_NAN_NEGZERO &&
        (!mpsim_has_sign(f) || f->zero != MPSIM_ZERO_UNSIGNED || f->nan_code != mask + 1))
        return MPSIM_EINVAL;
    if (f->zero == MPSIM_ZERO_NONE && (f->mbits != 0 || mpsim_has_sign(f)))
        return MPSIM_EINVAL;
    if (f->zero == MPSIM_ZERO_SIGNED && !mpsim_has_sign(f)) /* there is no -0 */
        return MPSIM_EINVAL;
    if (f->zero == MPSIM_ZERO_UNSIGNED && mpsim_has_sign(f) && f->nan != MPSIM_NAN_NEGZERO)
        return MPSIM_EINVAL;                                          /* the code of -0 would mean nothing */
    if (f->zero != MPSIM_ZERO_NONE && f->max_finite >> f->mbits == 0) /* no normal number */
        return MPSIM_EINVAL;
    const int emax = (int)(f->max_finite >> f->mbits) - f->bias;
    if (mpsim_emin(f) - f->mbits < -1074 || emax > 1023)
        return MPSIM_ERANGE;
    return MPSIM_OK;
}

/* ---- landmarks, classes, neighbours ---- */

size_t mpsim_format_code_bytes(const mpsim_format *f)
{
    return f->bits <= 8 ? 1 : f->bits <= 16 ? 2 : f->bits <= 32 ? 4 : 8;
}

int mpsim_format_is_signed(const mpsim_format *f)
{
    return mpsim_has_sign(f);
}

static double power_of_two(int e)
{
    return mpsim_number_to_f64(mpsim_number_make(0, 1, e));
}

double mpsim_format_max(const mpsim_format *f)
{
    return mpsim_scalar_decode(f, f->max_finite);
}

double mpsim_format_min_normal(const mpsim_format *f)
{
    return power_of_two(mpsim_emin(f));
}

double mpsim_format_min_positive(const mpsim_format *f)
{
    return power_of_two(mpsim_emin(f) - f->mbits);
}

double mpsim_format_epsilon(const mpsim_format *f)
{
    return power_of_two(-f->mbits);
}

mpsim_class mpsim_classify(const mpsim_format *f, uint64_t code)
{
    return mpsim_scalar_classify(f, code);
}

double mpsim_decode(const mpsim_format *f, uint64_t code)
{
    return mpsim_scalar_decode(f, code);
}

/* The neighbour of a code toward +infinity (down = 0) or -infinity (down = 1). */
static uint64_t neighbour(const mpsim_format *f, uint64_t code, int down)
{
    const uint64_t m = code & mpsim_magnitude_mask(f);
    const uint64_t top = f->max_finite + f->inf;
    const int negative = mpsim_has_sign(f) && (code >> mpsim_magnitude_bits(f) & 1);
    const uint64_t sign = mpsim_sign_bit(f, negative);
    if (mpsim_scalar_classify(f, code) == MPSIM_CLASS_NAN)
        return m | sign;
    if (m == 0 && f->zero != MPSIM_ZERO_NONE) /* either zero */
        return down ? (mpsim_has_sign(f) ? 1 | mpsim_sign_bit(f, 1) : 0) : 1;
    if (negative == down) /* away from zero */
        return (m < top ? m + 1 : m) | sign;
    if (m <= 1)
        return m == 1 && f->zero != MPSIM_ZERO_SIGNED ? 0 : (m ? sign : 0);
    return (m - 1) | sign;
}

uint64_t mpsim_next_up(const mpsim_format *f, uint64_t code)
{
    return neighbour(f, code, 0);
}

uint64_t mpsim_next_down(const mpsim_format *f, uint64_t code)
{
    return neighbour(f, code, 1);
}

double mpsim_ulp(const mpsim_format *f, uint64_t code)
{
    const uint64_t m = code & mpsim_magnitude_mask(f);
    mpsim_number x = mpsim_scalar_unpack(f, code);
    if (x.kind != MPSIM_NUMBER_FINITE) {
        x.sign = 0;
        return mpsim_number_to_f64(x);
    }
    const int e = (int)(m >> f->mbits) - f->bias, emin = mpsim_emin(f);
    return power_of_two((e > emin ? e : emin) - f->mbits);
}
