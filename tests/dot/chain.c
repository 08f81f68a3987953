/* chain.c -- see chain.h. */
#include "chain.h"

#include <math.h>
#include <stdio.h>

product chain;
mpsim_model chain_model;

/* clang-format off */
const char *const chain_formats[CHAIN_FORMATS] = {
    "binary32", "fp16", "bf16", "tf32", "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m2", "e2m1",
    "e8m0", "binary8p3se", "binary8p3ue", "e8m13", "e4m4:unsigned", "e5m9:ieee:bias=127",
    "e7m5:ieee:bias=140", "e8m23:ieee:bias=100", "e8m7:fn", "binary64"};
/* clang-format on */

/* What has been compared, and what of it is worth a comparison. */
static struct {
    size_t elements, nan, infinite, subnormal, minus_zero;
} seen;

mpsim_format chain_format(const char *name)
{
    mpsim_format f;
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "%s", name);
    return f;
}

uint64_t chain_code(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    r.negative = MPSIM_NEGATIVE_ABS;
    return mpsim_encode_f64(f, &r, x, 0, NULL);
}

double chain_uniform(uint64_t *seed) /* in (-1, 1) */
{
    return (double)(int64_t)test_random(seed) * 0x1p-63;
}

static uint64_t mask_of(const mpsim_format *f)
{
    return f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
}

uint64_t chain_draw(const mpsim_format *f, int kind, int range, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    switch (kind) {
    case CHAIN_BITS:
        return u & mask_of(f);
    case CHAIN_ZEROS:
        return chain_code(f, u % 4 ? (u & 16 ? -0.0 : 0.0) : chain_uniform(seed));
    case CHAIN_SPREAD:
        return chain_code(f, ldexp(chain_uniform(seed), (int)((u >> 8) % (unsigned)(range + 1)) - range / 2));
    case CHAIN_COARSE:
        return chain_code(f, ldexp((double)((int)(u % 31) - 15), (int)((u >> 8) % 14) - 7));
    case CHAIN_TINY:
        return chain_code(f, ldexp(chain_uniform(seed), -60 - (int)(u % 24)));
    case CHAIN_HUGE:
        return chain_code(f, ldexp(chain_uniform(seed), 60 + (int)(u % 6)));
    case CHAIN_SPECIAL:
        if (u % 64 == 0)
            return (f->max_finite + 1 + u / 64 % 3) & mask_of(f);
        /* fallthrough */
    default:
        return chain_code(f, 2 * chain_uniform(seed));
    }
}

void chain_new(const char *model, const mpsim_format *fa, const mpsim_format *fb, size_t rows, size_t columns,
               size_t depth, uint64_t *seed)
{
    if (chain.want)
        product_clear(&chain);
    ck_assert_msg(mpsim_model_parse(&chain_model, model) == MPSIM_OK, "%s", model);
    chain = product_new(&chain_model, fa, fb, rows, columns, depth, seed);
    chain.no_c |= test_random(seed) % 4 == 0 && chain_model.result.format.zero != MPSIM_ZERO_NONE;
}

void chain_fill(int kind, uint64_t *seed)
{
    const int range = (int)(test_random(seed) % 140);
    for (size_t i = 0; i < chain.rows * chain.depth; i++)
        chain.a.codes[i] = chain_draw(&chain.a.f, kind, range, seed);
    for (size_t i = 0; i < chain.depth * chain.columns; i++)
        chain.b.codes[i] = chain_draw(&chain.b.f, kind, range, seed);
    for (size_t i = 0; !chain.no_c && i < chain.rows * chain.columns; i++)
        chain.c.codes[i] = chain_draw(&chain.c.f, test_random(seed) % 4 ? kind : CHAIN_ZEROS, range, seed);
}

static void see(uint64_t code)
{
    const mpsim_class c = mpsim_classify(&chain.c.f, code);
    seen.elements++;
    seen.nan += c == MPSIM_CLASS_NAN;
    seen.infinite += c == MPSIM_CLASS_INF;
    seen.subnormal += c == MPSIM_CLASS_SUBNORMAL;
    seen.minus_zero += c == MPSIM_CLASS_ZERO && code != 0;
}

void chain_solve(void)
{
    product_lay_out(&chain);
    product_solve(&chain);
    for (size_t i = 0; i < chain.rows * chain.columns; i++)
        see(chain.want[i]);
}

void chain_check_once(const char *with)
{
    product_check_once(&chain, NULL, 0, with);
}

void chain_check(void)
{
    const char *before = mpsim_isa_active();
    chain_solve();
    for (size_t i = 0; mpsim_isa_at(i); i++)
        if (mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_OK)
            chain_check_once("");
    ck_assert(mpsim_isa_use(before) == MPSIM_OK);
}

void chain_end(void)
{
    printf("# %zu dot products: %zu NaN, %zu infinite, %zu subnormal, %zu -0\n", seen.elements, seen.nan, seen.infinite,
           seen.subnormal, seen.minus_zero);
    fflush(stdout);
    product_clear(&chain);
    chain.want = NULL;
}
