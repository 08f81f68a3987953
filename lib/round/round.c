/* round.c -- rounding options by name, and arrays over the scalar reference. */
#include <mpsim/round.h>

#include "../base/codes.h"
#include "../base/counts.h"
#include "../base/words.h"
#include "kernel/kernel.h"
#include "rng.h"
#include "scalar.h"

#include <string.h>

/* ---- options ---- */

void mpsim_rounding_init(mpsim_rounding *r, mpsim_round_mode mode)
{
    memset(r, 0, sizeof *r);
    r->mode = (uint8_t)mode;
    r->sr_bits = 32;
    r->scale = 1;
}

mpsim_status mpsim_rounding_check(const mpsim_rounding *r)
{
    if (!r || r->mode >= MPSIM_ROUND_MODES || r->overflow > MPSIM_OVERFLOW_MAX ||
        r->infinity > MPSIM_INFINITY_MAX || r->no_inf > MPSIM_NO_INF_MAX ||
        r->nan > MPSIM_NANS_MINUS_ONES || r->no_nan > MPSIM_NO_NAN_ANTIZERO ||
        r->negative > MPSIM_NEGATIVE_ABS || r->no_zero > MPSIM_NO_ZERO_NAN_MIN ||
        r->flush_input > 1 || r->flush_output > 1)
        return MPSIM_EINVAL;
    if (mpsim_is_stochastic(r->mode) && (r->sr_bits < 1 || r->sr_bits > 32))
        return MPSIM_EINVAL;
    const mpsim_number scale = mpsim_number_f64(r->scale);
    const mpsim_number below = mpsim_number_f64(r->flush_below);
    if (scale.kind != MPSIM_NUMBER_FINITE || scale.sign || scale.hi == 0)
        return MPSIM_EINVAL;
    if (below.kind != MPSIM_NUMBER_FINITE || below.sign)
        return MPSIM_EINVAL;
    return MPSIM_OK;
}

/* All spellings of a mode, the canonical name first, in lower case. */
static const char *const mode_names[MPSIM_ROUND_MODES][5] = {
    [MPSIM_ROUND_NEAREST_EVEN] = {"nearest-even", "rne", "tiestoeven", "nearesttiestoeven", "rn"},
    [MPSIM_ROUND_NEAREST_AWAY] = {"nearest-away", "rna", "tiestoaway", "nearesttiestoaway"},
    [MPSIM_ROUND_TOWARD_ZERO] = {"toward-zero", "rtz", "towardzero", "rz"},
    [MPSIM_ROUND_UP] = {"up", "rup", "towardpositive", "ru"},
    [MPSIM_ROUND_DOWN] = {"down", "rdn", "towardnegative", "rd"},
    [MPSIM_ROUND_TO_ODD] = {"to-odd", "rto", "toodd"},
    [MPSIM_ROUND_STOCHASTIC_A] = {"stochastic-a", "sra", "stochastica"},
    [MPSIM_ROUND_STOCHASTIC_B] = {"stochastic-b", "srb", "stochasticb"},
    [MPSIM_ROUND_STOCHASTIC_C] = {"stochastic-c", "src", "stochasticc", "sr", "stochastic"},
};

const char *mpsim_round_mode_name(mpsim_round_mode mode)
{
    return (unsigned)mode < MPSIM_ROUND_MODES ? mode_names[mode][0] : NULL;
}

mpsim_status mpsim_round_mode_parse(mpsim_round_mode *mode, uint8_t *sr_bits, const char *name)
{
    if (!mode || !sr_bits || !name)
        return MPSIM_EINVAL;
    const size_t n = strcspn(name, ":");
    int found = -1;
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        for (size_t i = 0; i < 5 && mode_names[m][i]; i++)
            if (mpsim_same_word(name, n, mode_names[m][i]))
                found = m;
    if (found < 0)
        return MPSIM_ENOTFOUND;
    if (name[n] == ':') {
        int bits = 0, digits = 0;
        for (const char *p = name + n + 1; *p; p++, digits++) {
            if (*p < '0' || *p > '9' || digits == 2)
                return MPSIM_ENOTFOUND;
            bits = 10 * bits + (*p - '0');
        }
        if (!mpsim_is_stochastic(found) || bits < 1 || bits > 32)
            return MPSIM_ENOTFOUND;
        *sr_bits = (uint8_t)bits;
    }
    *mode = (mpsim_round_mode)found;
    return MPSIM_OK;
}

/* ---- one element ---- */

uint64_t mpsim_encode_f32(const mpsim_format *f, const mpsim_rounding *r, float x,
                          uint32_t random, unsigned *flags)
{
    unsigned ignored;
    return mpsim_scalar_encode_f32(f, r, mpsim_number_f64(r->scale), x, random,
                                   flags ? flags : &ignored);
}

uint64_t mpsim_encode_f64(const mpsim_format *f, const mpsim_rounding *r, double x,
                          uint32_t random, unsigned *flags)
{
    unsigned ignored;
    return mpsim_scalar_encode_f64(f, r, mpsim_number_f64(r->scale), x, random,
                                   flags ? flags : &ignored);
}

unsigned mpsim_tiny_f32(const mpsim_format *f, const mpsim_rounding *r, float x, uint32_t random)
{
    const mpsim_number kept = mpsim_scalar_flush(r, mpsim_number_f32(x), -126);
    return mpsim_scalar_tiny(f, r, mpsim_number_scale(kept, mpsim_number_f64(r->scale)), random);
}

unsigned mpsim_tiny_f64(const mpsim_format *f, const mpsim_rounding *r, double x, uint32_t random)
{
    const mpsim_number kept = mpsim_scalar_flush(r, mpsim_number_f64(x), -1022);
    return mpsim_scalar_tiny(f, r, mpsim_number_scale(kept, mpsim_number_f64(r->scale)), random);
}

/* ---- arrays ----
 *
 * An array is worked on in blocks: read, encode by the kernel, have the reference do what the
 * kernel left, store. What an element becomes depends on its value and index only, so blocks
 * are free to fall anywhere. */

enum { BLOCK = MPSIM_KERNEL_BLOCK };

typedef struct job {
    const mpsim_format *f;
    const mpsim_rounding *r;
    const mpsim_rng *rng; /* NULL unless stochastic */
    const void *x32;      /* one of the two sources, at any alignment: read with memcpy */
    const void *x64;
    int values;           /* results are the bits of binary64 values, not codes */
    mpsim_kernel kernel;
    mpsim_kernel_function *run; /* NULL: the reference does everything */
    mpsim_counts counts;
} job;

/* The address of element i of an array of `bytes` bytes each. */
static const void *element(const void *x, size_t i, size_t bytes)
{
    return (const unsigned char *)x + i * bytes;
}

/* Element i by the reference. */
static uint64_t encode_one(const job *j, size_t i, uint32_t random, unsigned *flags)
{
    float v;
    double w;
    if (j->x32) {
        memcpy(&v, element(j->x32, i, sizeof v), sizeof v);
        return mpsim_encode_f32(j->f, j->r, v, random, flags);
    }
    memcpy(&w, element(j->x64, i, sizeof w), sizeof w);
    return mpsim_encode_f64(j->f, j->r, w, random, flags);
}

/* The random words of n elements from index i on. */
static void draw_words(const job *j, uint32_t *words, size_t i, size_t n)
{
    uint32_t block[4];
    const uint64_t first = j->rng->index + i;
    for (size_t k = 0; k < n; k++) {
        if (k == 0 || (first + k) % 4 == 0)
            mpsim_rng_block(block, j->rng->seed, j->rng->stream, (first + k) / 4);
        words[k] = block[(first + k) % 4];
    }
}

/* Widen n binary32 values without arithmetic, which flush-to-zero could disturb: a subnormal
 * number becomes a NaN here, so that the kernel leaves it to the reference. */
static void widen(uint64_t *y, const void *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        uint32_t u;
        memcpy(&u, element(x, k, sizeof u), sizeof u);
        const uint32_t a = u & 0x7fffffffu;
        const uint64_t sign = (uint64_t)(u >> 31) << 63;
        const uint64_t normal = ((uint64_t)a << 29) + ((uint64_t)(1023 - 127) << 52);
        const int special = a >= 0x7f800000u || (a < 0x00800000u && a != 0);
        y[k] = special ? 0x7ff8000000000000u : a == 0 ? sign : sign | normal;
    }
}

/* Elements i to i + n - 1, n <= BLOCK, by the kernel; left[k] where it did not do it. */
static int run_kernel(job *j, uint64_t *results, uint64_t *left, const uint32_t *words, size_t i,
                      size_t n)
{
    uint64_t x[BLOCK], draws[BLOCK];
    const void *from = x;
    if (mpsim_is_stochastic(j->r->mode))
        for (size_t k = 0; k < BLOCK; k++)
            draws[k] = k < n ? words[k] >> (32 - j->r->sr_bits) : 0;
    if (j->x64 && n == BLOCK) {
        from = element(j->x64, i, sizeof(double));
    } else {
        memset(x + n, 0, (BLOCK - n) * sizeof *x); /* zeros are not counted anywhere */
        if (j->x32)
            widen(x, element(j->x32, i, sizeof(float)), n);
        else
            memcpy(x, element(j->x64, i, sizeof(double)), n * sizeof *x);
    }
    return j->run(&j->kernel, results, left, &j->counts, from, draws);
}

/* The results of n <= BLOCK elements from index i on. */
static void run_block(job *j, uint64_t *results, size_t i, size_t n)
{
    uint32_t words[BLOCK];
    uint64_t left[BLOCK];
    const int stochastic = mpsim_is_stochastic(j->r->mode);
    if (stochastic)
        draw_words(j, words, i, n);
    if (j->run && !run_kernel(j, results, left, words, i, n))
        return;
    for (size_t k = 0; k < n; k++) {
        unsigned flags;
        if (j->run && !left[k])
            continue;
        results[k] = encode_one(j, i + k, stochastic ? words[k] : 0, &flags);
        if (j->values)
            results[k] = mpsim_bits_f64(mpsim_scalar_decode(j->f, results[k]));
        mpsim_count_flags(&j->counts, flags);
    }
}

/* Store n codes as unsigned integers of `bytes` bytes. */
static void store_codes(unsigned char *to, size_t bytes, const uint64_t *codes, size_t n)
{
    switch (bytes) { /* a constant size in each loop */
    case 1:
        for (size_t k = 0; k < n; k++)
            mpsim_code_store(to, 1, k, codes[k]);
        break;
    case 2:
        for (size_t k = 0; k < n; k++)
            mpsim_code_store(to, 2, k, codes[k]);
        break;
    case 4:
        for (size_t k = 0; k < n; k++)
            mpsim_code_store(to, 4, k, codes[k]);
        break;
    default:
        memcpy(to, codes, 8 * n);
    }
}

/* Check the arguments of an array function and prepare the job. */
static mpsim_status start(job *j, const void *out, const void *in, size_t n)
{
    if (mpsim_format_check(j->f) != MPSIM_OK || mpsim_rounding_check(j->r) != MPSIM_OK)
        return MPSIM_EINVAL;
    if (n > 0 && (!out || !in))
        return MPSIM_EINVAL;
    if (mpsim_is_stochastic(j->r->mode) && !j->rng)
        return MPSIM_EINVAL;
    j->run = mpsim_kernel_init(&j->kernel, j->f, j->r, j->values);
    return MPSIM_OK;
}

static void finish(const job *j, mpsim_counts *to)
{
    if (to)
        mpsim_counts_add(to, &j->counts);
}

static void encode_array(job *j, void *codes, size_t n, mpsim_counts *counts)
{
    const size_t bytes = mpsim_format_code_bytes(j->f);
    uint64_t block[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        run_block(j, block, i, m);
        store_codes((unsigned char *)codes + i * bytes, bytes, block, m);
    }
    finish(j, counts);
}

mpsim_status mpsim_encode_array_f32(const mpsim_format *f, const mpsim_rounding *r,
                                    const mpsim_rng *rng, void *codes, const float *x, size_t n,
                                    mpsim_counts *counts)
{
    job j = {.f = f, .r = r, .rng = rng, .x32 = x};
    const mpsim_status s = start(&j, codes, x, n);
    if (s == MPSIM_OK)
        encode_array(&j, codes, n, counts);
    return s;
}

mpsim_status mpsim_encode_array_f64(const mpsim_format *f, const mpsim_rounding *r,
                                    const mpsim_rng *rng, void *codes, const double *x, size_t n,
                                    mpsim_counts *counts)
{
    job j = {.f = f, .r = r, .rng = rng, .x64 = x};
    const mpsim_status s = start(&j, codes, x, n);
    if (s == MPSIM_OK)
        encode_array(&j, codes, n, counts);
    return s;
}

mpsim_status mpsim_decode_array(const mpsim_format *f, double *y, const void *codes, size_t n)
{
    if (mpsim_format_check(f) != MPSIM_OK || (n > 0 && (!y || !codes)))
        return MPSIM_EINVAL;
    const size_t bytes = mpsim_format_code_bytes(f);
    const uint64_t mask = mpsim_magnitude_mask(f), least = (uint64_t)1 << f->mbits;
    const int shift = mpsim_magnitude_bits(f), is_signed = mpsim_has_sign(f);
    const uint64_t rebias = (uint64_t)(1023 - f->bias) << 52;
    const int normal = f->zero != MPSIM_ZERO_NONE && mpsim_emin(f) >= -1022;
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = mpsim_code_load(codes, bytes, i);
        const uint64_t m = code & mask;
        /* A normal number only changes its bias; the rest is for the reference. */
        if (normal && m - least <= f->max_finite - least) {
            const uint64_t sign = is_signed ? (code >> shift & 1) << 63 : 0;
            y[i] = mpsim_f64_bits(sign | ((m << (52 - f->mbits)) + rebias));
        } else {
            y[i] = mpsim_scalar_decode(f, code);
        }
    }
    return MPSIM_OK;
}

/* The binary32 number with the given binary64 bits, which is one, or NaN; without arithmetic. */
static inline float narrow(uint64_t u)
{
    const uint32_t sign = (uint32_t)(u >> 32) & 0x80000000u, e = (uint32_t)(u >> 52) & 0x7ff;
    const uint32_t normal = (e - (1023 - 127)) << 23 | (uint32_t)(u >> 29 & 0x7fffff);
    const int rare = e == 0x7ff || (e <= 1023 - 127 && u << 1 != 0); /* NaN, Inf, subnormal */
    if (rare)
        return mpsim_number_to_f32(mpsim_number_f64(mpsim_f64_bits(u)));
    return mpsim_f32_bits(sign | (e ? normal : 0));
}

/* Whether every number of f is a binary32 number. */
static int fits_f32(const mpsim_format *f)
{
    const int emax = (int)(f->max_finite >> f->mbits) - f->bias;
    return f->mbits <= 23 && emax <= 127 && mpsim_emin(f) - f->mbits >= -149;
}

mpsim_status mpsim_round_array_f32(const mpsim_format *f, const mpsim_rounding *r,
                                   const mpsim_rng *rng, float *y, const float *x, size_t n,
                                   mpsim_counts *counts)
{
    job j = {.f = f, .r = r, .rng = rng, .x32 = x, .values = 1};
    const mpsim_status s = start(&j, y, x, n);
    if (s != MPSIM_OK)
        return s;
    if (!fits_f32(f))
        return MPSIM_ERANGE;
    uint64_t block[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        run_block(&j, block, i, m);
        for (size_t k = 0; k < m; k++) {
            const float v = narrow(block[k]);
            memcpy((unsigned char *)y + (i + k) * sizeof v, &v, sizeof v);
        }
    }
    finish(&j, counts);
    return MPSIM_OK;
}

mpsim_status mpsim_round_array_f64(const mpsim_format *f, const mpsim_rounding *r,
                                   const mpsim_rng *rng, double *y, const double *x, size_t n,
                                   mpsim_counts *counts)
{
    job j = {.f = f, .r = r, .rng = rng, .x64 = x, .values = 1};
    const mpsim_status s = start(&j, y, x, n);
    if (s != MPSIM_OK)
        return s;
    uint64_t block[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        run_block(&j, block, i, m);
        memcpy((unsigned char *)y + i * sizeof *y, block, m * sizeof *y);
    }
    finish(&j, counts);
    return MPSIM_OK;
}
