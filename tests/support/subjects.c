/* subjects.c -- see subjects.h. */
#include "subjects.h"

#include "support.h"

#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* clang-format off */
static const char *const odd[] = {
    "binary3p1se", "binary3p3uf", "binary4p2uf", "binary5p1uf", "binary6p3se", "binary7p1uf", "binary8p8uf",
    "binary9p9ue", "binary10p10uf", "binary12p5sf", "binary16p15sf",
    "e1m2:finite", "e2m0:finite", "e3m0:fnuz", "e5m0:finite:inf", "e8m0:finite", "e2m5", "e4m3:ieee",
    "e5m2:fn", "e5m7:fn", "e6m9:fnuz", "e8m1", "e8m2:fn", "e8m3:unsigned", "e8m15", "e8m16:fn", "e8m22",
    "e8m23:fn", "e8m24", "e7m24", "e9m6", "e9m30", "e11m3", "e11m20", "e11m51", "e10m52:finite",
    "e5m10:fn", "e5m10:bias=-100", "e5m10:bias=160", "e4m3:fn:bias=300", "e4m3:fn:bias=-200", "e5m2:bias=-130",
    "e3m8:bias=140", "e8m7:fn:bias=130", "e8m7:bias=150", "e8m9:bias=133", "e8m10:bias=129", "e8m9:fnuz:bias=140", "e8m7:bias=100", "e8m23:bias=128", "e8m23:bias=126",
    "e5m10:unsigned", "e2m22:finite", "e2m23:finite", "e2m40", "e6m5:noinf", "e4m11:fnuz:inf",
    "e5m2:unsigned:fn", "e1m7:unsigned:finite", "e9m23:unsigned", "e10m22:fn:unsigned", "e11m21:unsigned", "e8m24:unsigned",
    "e8m8:unsigned", "e5m11:unsigned", "e4m4:unsigned", "e10m21", "e9m22", "e10m5", "e11m4", "e8m25:unsigned:bias=100",
};
/* clang-format on */

/* Random spellings; most are formats. */
static int drawn(mpsim_format *f, uint64_t *state)
{
    static const char *const tops[] = {"", ":ieee", ":fn", ":fnuz", ":finite", ":fn:inf", ":finite:inf"};
    char name[56], bias[16] = "";
    const uint64_t w = test_random(state);
    if (w % 8 == 0) {
        const int bits = 3 + (int)((w >> 8) % 14);
        snprintf(name, sizeof name, "binary%dp%d%c%c", bits, 1 + (int)((w >> 16) % 16) % bits, w >> 24 & 1 ? 's' : 'u',
                 w >> 25 & 1 ? 'e' : 'f');
    } else {
        const unsigned ebits = 1 + (unsigned)((w >> 8) % 11), mbits = (unsigned)((w >> 16) % (w >> 60 & 3 ? 24 : 53));
        if (w >> 58 & 1)
            snprintf(bias, sizeof bias, ":bias=%d", (1 << (ebits - 1)) - 1 + (int)((w >> 24) % 81) - 40);
        snprintf(name, sizeof name, "e%um%u%s%s%s", ebits, mbits, tops[(w >> 32) % 7], bias,
                 w >> 40 & 7 ? "" : ":unsigned");
    }
    return mpsim_format_parse(f, name) == MPSIM_OK;
}

size_t subjects(mpsim_format list[SUBJECTS_MOST], size_t random, uint64_t *state)
{
    size_t n = 0;
    for (size_t i = 0; i < mpsim_format_count(); i++)
        list[n++] = *mpsim_format_at(i);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        if (mpsim_format_parse(&list[n], odd[i]) == MPSIM_OK)
            n++;
        else
            printf("# %s is no format\n", odd[i]);
    for (size_t end = n + random; n < end && n < SUBJECTS_MOST;)
        n += (size_t)drawn(&list[n], state);
    return n;
}

static double power_of_two(const mpsim_format *f, int width, uint64_t *state)
{
    const uint64_t w = test_random(state);
    const int low = ilogb(mpsim_format_min_positive(f)), high = ilogb(mpsim_format_max(f));
    const int normal = ilogb(mpsim_format_min_normal(f)), around = (int)((w >> 8) % 12) - 6;
    int k;
    switch (w % 8) {
    case 0:
        k = (int)((w >> 8) % 33); /* loss scales */
        break;
    case 1:
        k = -(int)((w >> 8) % 33);
        break;
    case 2:
        k = normal - (width == 32 ? -126 : -1022) + around; /* the smallest normal numbers meet */
        break;
    case 3:
        k = low - (width == 32 ? -149 : -1074) + around;
        break;
    case 4:
        k = high - (width == 32 ? 127 : 1023) + around; /* the largest ones */
        break;
    case 5:
        k = low + around; /* 1 is at the end */
        break;
    case 6:
        k = (int)((w >> 8) % 300) - 150;
        break;
    default:
        k = (int)((w >> 8) % 2098) - 1074;
        break;
    }
    return ldexp(1, k < -1074 ? -1074 : k > 1023 ? 1023 : k);
}

static double any_scale(const mpsim_format *f, int width, uint64_t *state)
{
    /* clang-format off */
    static const double known[] = {3, 1.0 / 3, 0.1, 1000, 65504, 448, 0x1.fffffffffffffp0, 0x1.0000000000001p0,
                                   0x1.fffffep0, 0x1.000002p0, DBL_MAX, 0x3p-1074, 0x1.8p-126, 0x1.fffffep127};
    /* clang-format on */
    const uint64_t w = test_random(state);
    if (w % 4 == 0)
        return known[(w >> 8) % (sizeof known / sizeof known[0])];
    const double s = power_of_two(f, width, state) *
                     (w % 4 == 1 ? 1 + (double)(w >> 52) * 0x1p-12 : 1 + (double)(w >> 12) * 0x1p-52);
    return s > 0 && s <= DBL_MAX ? s : 1.5;
}

static void any_choices(mpsim_rounding *r, uint64_t *state)
{
    static const double kept[] = {0, 0, 0x1p-126, 0x1p-1022, 0x1p-20, 1, 0x1p-1074, 0x1p-149, 0x1.4p-14, 1e30};
    const uint64_t w = test_random(state);
    r->sr_bits = (uint8_t)(w % 32 + 1);
    r->overflow = w >> 8 & 1;
    r->infinity = w >> 9 & 1;
    r->no_inf = w >> 10 & 1;
    r->nan = (uint8_t)((w >> 16) % 6);
    r->no_nan = (uint8_t)((w >> 20) % 3);
    r->negative = (uint8_t)((w >> 24) % 3);
    r->no_zero = (uint8_t)((w >> 28) % 3);
    r->flush_input = w >> 32 & 1;
    r->flush_output = w >> 33 & 1;
    r->flush_below = kept[(w >> 40) % 10];
}

mpsim_rounding subject_rounding(const mpsim_format *f, int mode, size_t turn, int width, uint64_t *state)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    if (turn == 1)
        mpsim_rounding_preset(&r, mpsim_preset_at(test_random(state) % mpsim_preset_count()), f);
    if (turn >= 2) {
        any_choices(&r, state);
        r.scale = turn == 2 ? power_of_two(f, width, state) : any_scale(f, width, state);
    }
    r.mode = (uint8_t)mode;
    if (turn == 1)
        r.sr_bits = (uint8_t)(test_random(state) % 32 + 1);
    ck_assert_int_eq(mpsim_rounding_check(&r), MPSIM_OK);
    return r;
}

const char *subject_text(const mpsim_format *f, const mpsim_rounding *r)
{
    static char text[400];
    snprintf(text, sizeof text,
             "%s %s sr_bits=%d overflow=%d infinity=%d no_inf=%d nan=%d no_nan=%d "
             "negative=%d no_zero=%d flush_input=%d flush_output=%d scale=%a flush_below=%a",
             f->name, mpsim_round_mode_name((mpsim_round_mode)r->mode), r->sr_bits, r->overflow, r->infinity, r->no_inf,
             r->nan, r->no_nan, r->negative, r->no_zero, r->flush_input, r->flush_output, r->scale, r->flush_below);
    return text;
}

int subject_isa(size_t i)
{
    const char *name = mpsim_isa_at(i);
    if (!name)
        return -1;
    const mpsim_status s = mpsim_isa_use(name);
    ck_assert(s == MPSIM_OK || s == MPSIM_EUNAVAILABLE);
    return s == MPSIM_OK;
}

mpsim_rng subject_rng(uint64_t *state)
{
    const uint64_t w = test_random(state), near[] = {0, 0xffffff00u, 0x3fffffff0u, 0xffffffffffffff00u};
    return (mpsim_rng){test_random(state), test_random(state), w % 5 == 4 ? w : near[w % 5] + (w >> 56)};
}

size_t subject_piece(size_t n, uint64_t *state)
{
    const uint64_t w = test_random(state);
    const size_t m = w % 8 == 0 ? n : w % 8 < 3 ? (w >> 8) % 700 : (w >> 8) % 40;
    return m < n ? m : n;
}

/* The control bits, not the flags of exceptions. */
static unsigned control(void)
{
#if defined(__SSE2__)
    return _mm_getcsr() & ~0x3fu;
#else
    return (unsigned)fegetround();
#endif
}

static unsigned entered;

void subject_enter(int k)
{
    static const int rounding[SUBJECT_ENVIRONMENTS] = {FE_TONEAREST,  FE_UPWARD,    FE_DOWNWARD,
                                                       FE_TOWARDZERO, FE_TONEAREST, FE_UPWARD};
    fesetround(rounding[k]);
#if defined(__SSE2__)
    if (k >= 4 && !test_under_valgrind())
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    entered = control();
}

int subject_leave(void)
{
    const int kept = control() == entered;
    fesetround(FE_TONEAREST);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
    return kept;
}

int subject_random(int mode)
{
    return mode >= MPSIM_ROUND_STOCHASTIC_A && mode <= MPSIM_ROUND_STOCHASTIC_C;
}

void subject_count(mpsim_counts *n, unsigned flags)
{
    n->inexact += (flags & MPSIM_FLAG_INEXACT) != 0;
    n->underflow += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
    n->subnormal += (flags & MPSIM_FLAG_SUBNORMAL) != 0;
    n->overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
    n->nan += (flags & MPSIM_FLAG_NAN) != 0;
}

const char *subject_counts(const mpsim_counts *n)
{
    static char ring[4][160];
    static unsigned turn;
    char *p = ring[turn++ % 4];
    snprintf(p, sizeof ring[0],
             "inexact %" PRIu64 " underflow %" PRIu64 " subnormal %" PRIu64 " overflow %" PRIu64 " nan %" PRIu64,
             n->inexact, n->underflow, n->subnormal, n->overflow, n->nan);
    return p;
}
