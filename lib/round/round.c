/* round.c -- rounding options by name, and arrays over the scalar reference. */
#include <mpsim/round.h>

#include "../base/extent.h"
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
    if (!r || r->mode >= MPSIM_ROUND_MODES || r->overflow > MPSIM_OVERFLOW_MAX || r->infinity > MPSIM_INFINITY_MAX ||
        r->no_inf > MPSIM_NO_INF_MAX || r->nan >= MPSIM_NAN_RULES || r->no_nan > MPSIM_NO_NAN_ANTIZERO ||
        r->negative > MPSIM_NEGATIVE_ABS || r->no_zero > MPSIM_NO_ZERO_NAN_MIN || r->flush_input > 1 ||
        r->flush_output > 1 || r->via_binary32 > 1 || r->by_field > 1)
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

static uint64_t encode_f32_bits(const mpsim_format *f, const mpsim_rounding *r, uint32_t x, uint32_t random,
                                unsigned *flags)
{
    return mpsim_scalar_encode_bits(f, r, mpsim_number_f64(r->scale), x, random, flags);
}

uint64_t mpsim_encode_f32(const mpsim_format *f, const mpsim_rounding *r, float x, uint32_t random, unsigned *flags)
{
    unsigned ignored;
    return encode_f32_bits(f, r, mpsim_bits_f32(x), random, flags ? flags : &ignored);
}

static uint64_t encode_via_binary32(const mpsim_format *f, const mpsim_rounding *r, double x, uint32_t random,
                                    unsigned *flags)
{
    unsigned first, second;
    const uint32_t v = mpsim_scalar_to_binary32(mpsim_format_find("binary32"), x, &first);
    const uint64_t code = encode_f32_bits(f, r, v, random, &second);
    *flags = first | second;
    return code;
}

uint64_t mpsim_encode_f64(const mpsim_format *f, const mpsim_rounding *r, double x, uint32_t random, unsigned *flags)
{
    unsigned ignored;
    if (r->via_binary32)
        return encode_via_binary32(f, r, x, random, flags ? flags : &ignored);
    return mpsim_scalar_encode_f64(f, r, mpsim_number_f64(r->scale), x, random, flags ? flags : &ignored);
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
 * By a kernel where it can do the format and the rounding, else element by element. What an element
 * becomes depends on its value and index only, so pieces are free to fall anywhere. */

typedef struct job {
    const mpsim_format *f;
    const mpsim_rounding *r;
    const mpsim_rng *rng; /* NULL unless stochastic */
    unsigned char *out;
    const unsigned char *in; /* at any alignment, as out: with memcpy */
    size_t n;
    int source;           /* bytes of an element of `in` */
    int values;           /* results are values of the source type, not codes */
    mpsim_counts *counts; /* or NULL */
} job;

/* The address of element i of an array of `bytes` bytes each. */
static const void *element(const void *x, size_t i, size_t bytes)
{
    return (const unsigned char *)x + i * bytes;
}

/* Element i by the reference: its code. */
static uint64_t encode_one(const job *j, size_t i, uint32_t random, unsigned *flags)
{
    uint32_t v;
    double w;
    if (j->source == 4) {
        memcpy(&v, element(j->in, i, sizeof v), sizeof v);
        return encode_f32_bits(j->f, j->r, v, random, flags);
    }
    memcpy(&w, element(j->in, i, sizeof w), sizeof w);
    return mpsim_encode_f64(j->f, j->r, w, random, flags);
}

static void store_value(unsigned char *out, size_t i, double value, int wide)
{
    if (!wide) {
        const float v = mpsim_number_to_f32(mpsim_number_f64(value));
        memcpy(out + i * sizeof v, &v, sizeof v);
    } else {
        memcpy(out + i * sizeof value, &value, sizeof value);
    }
}

static void by_reference(const job *j)
{
    const size_t bytes = mpsim_format_code_bytes(j->f);
    const int stochastic = mpsim_is_stochastic(j->r->mode);
    uint32_t words[4] = {0};
    for (size_t i = 0; i < j->n; i++) {
        unsigned flags;
        const uint64_t at = stochastic ? j->rng->index + i : 0;
        if (stochastic && (i == 0 || at % 4 == 0))
            mpsim_rng_block(words, j->rng->seed, j->rng->stream, at / 4);
        const uint64_t code = encode_one(j, i, words[at % 4], &flags);
        if (j->values)
            store_value(j->out, i, mpsim_scalar_decode(j->f, code), j->source == 8);
        else
            mpsim_code_store(j->out, bytes, i, code);
        if (j->counts)
            mpsim_count_flags(j->counts, flags);
    }
}

enum {
    PIECE = 1 << 30,   /* elements: counters in the lanes have 32 bits */
    WORDS = 4096,      /* random words at a time */
    STREAM = 16 << 20, /* bytes: results that no cache would keep go past it */
    LEFT = 16,         /* codes that the reference decodes before the kernel tries again */
};

static void by_kernel(const job *j, const mpsim_kernels *kernels, mpsim_cast_constants *k)
{
    const size_t in = (size_t)k->source, out = (size_t)k->bytes;
    uint32_t words[WORDS + 64];
    k->stream = j->n >= STREAM / out;
    if (k->draws) {
        k->seed = j->rng->seed;
        k->word_stream = j->rng->stream;
    }
    for (size_t i = 0, m; i < j->n; i += m) {
        m = j->n - i < PIECE ? j->n - i : PIECE;
        const uint32_t *draws = NULL;
        const uint64_t at = k->random ? j->rng->index + i : 0;
        if (k->draws) {
            k->index = at;
        } else if (k->random) {
            const size_t skip = at % 4;
            m = m < WORDS ? m : WORDS;
            kernels->words(words, j->rng->seed, j->rng->stream, at / 4, (skip + m + 63) / 64 * 16);
            draws = words + skip;
        }
        k->end = i + m == j->n;
        kernels->cast(k, j->out + i * out, element(j->in, i, in), m, draws, j->counts);
    }
}

/* Whether every number of f is a binary32 number. */
static int fits_f32(const mpsim_format *f)
{
    const int emax = (int)(f->max_finite >> f->mbits) - f->bias;
    return f->mbits <= 23 && emax <= 127 && mpsim_emin(f) - f->mbits >= -149;
}

/* Check the arguments of an array function and do it. */
static mpsim_status run(const job *j)
{
    mpsim_cast_constants k;
    if (mpsim_format_check(j->f) != MPSIM_OK || mpsim_rounding_check(j->r) != MPSIM_OK)
        return MPSIM_EINVAL;
    if ((j->n > 0 && (!j->out || !j->in)) || !mpsim_fits(j->n, sizeof(uint64_t)))
        return MPSIM_EINVAL;
    if (mpsim_is_stochastic(j->r->mode) && !j->rng)
        return MPSIM_EINVAL;
    if (j->values && j->source == 4 && !fits_f32(j->f))
        return MPSIM_ERANGE;
    const mpsim_kernels *kernels = mpsim_kernels_choice();
    const int by_route = j->r->by_field || (j->r->via_binary32 && j->source == 8);
    if (kernels && !by_route && mpsim_cast_init(&k, j->f, j->r, j->source, j->values, j->counts != NULL))
        by_kernel(j, kernels, &k);
    else
        by_reference(j);
    return MPSIM_OK;
}

mpsim_status mpsim_encode_array_f32(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng, void *codes,
                                    const float *x, size_t n, mpsim_counts *counts)
{
    const job j = {f, r, rng, codes, (const unsigned char *)x, n, 4, 0, counts};
    return run(&j);
}

mpsim_status mpsim_encode_array_f64(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng, void *codes,
                                    const double *x, size_t n, mpsim_counts *counts)
{
    const job j = {f, r, rng, codes, (const unsigned char *)x, n, 8, 0, counts};
    return run(&j);
}

mpsim_status mpsim_round_array_f32(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng, float *y,
                                   const float *x, size_t n, mpsim_counts *counts)
{
    const job j = {f, r, rng, (unsigned char *)y, (const unsigned char *)x, n, 4, 1, counts};
    return run(&j);
}

mpsim_status mpsim_round_array_f64(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng, double *y,
                                   const double *x, size_t n, mpsim_counts *counts)
{
    const job j = {f, r, rng, (unsigned char *)y, (const unsigned char *)x, n, 8, 1, counts};
    return run(&j);
}

/* ---- decoding ---- */

/* y[i]: binary64, or binary32 where that has all numbers of f; anywhere in memory. */
static mpsim_status decode(const mpsim_format *f, unsigned char *y, const void *codes, size_t n, int wide)
{
    if (mpsim_format_check(f) != MPSIM_OK || (n > 0 && (!y || !codes)))
        return MPSIM_EINVAL;
    if (!wide && !fits_f32(f))
        return MPSIM_ERANGE;
    const size_t bytes = mpsim_format_code_bytes(f), size = wide ? 8 : 4;
    if (!mpsim_fits(n, bytes > size ? bytes : size))
        return MPSIM_EINVAL;
    const mpsim_kernels *kernels = mpsim_kernels_choice();
    mpsim_decoder d;
    const int fast = kernels && mpsim_decoder_init(&d, f, wide);
    for (size_t i = 0; i < n;) {
        if (fast)
            i += (wide ? kernels->decode : kernels->decode32)(&d, y + i * size, element(codes, i, bytes), n - i);
        /* the special codes of a vector, or what is less than one */
        const size_t end = !fast || n - i < LEFT ? n : i + LEFT;
        for (; i < end; i++)
            store_value(y, i, mpsim_scalar_decode(f, mpsim_code_load(codes, bytes, i)), wide);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_decode_array(const mpsim_format *f, double *y, const void *codes, size_t n)
{
    return decode(f, (unsigned char *)y, codes, n, 1);
}

mpsim_status mpsim_decode_array_f32(const mpsim_format *f, float *y, const void *codes, size_t n)
{
    return decode(f, (unsigned char *)y, codes, n, 0);
}
