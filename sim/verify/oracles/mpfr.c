/* mpfr.c -- verify: casts from binary32 and binary64 to every format, against GNU MPFR. */
#include "../impl.h"

#include "../../array/need.h"
#include "../../operand/element.h"
#include "../../cli/options.h"
#include "../../process/progress.h"

#include <inttypes.h>
#include <mpfr.h>
#include <mpsim/rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One cast: a format of the library and of the oracle, a rounding. */
typedef struct cast {
    mpsim_format f;
    const oracle_format *of;
    mpsim_rounding r;
    const char *preset; /* or NULL */
} cast;

typedef struct block {
    float *f32;
    double *f64;
    unsigned char *codes;
    size_t room;
} block;

static void block_reserve(block *b, size_t n)
{
    if (n <= b->room)
        return;
    free(b->f32);
    free(b->f64);
    free(b->codes);
    b->f32 = need_memory(n, sizeof *b->f32);
    b->f64 = need_memory(n, sizeof *b->f64);
    b->codes = need_memory(n, 8);
    b->room = n;
}

static void report(verify_row *row, const cast *c, const inputs *in, size_t i, uint32_t random, uint64_t want,
                   unsigned want_flags, uint64_t got, unsigned got_flags)
{
    char word[32] = "", flags[48] = "";
    if (c->r.mode >= MPSIM_ROUND_STOCHASTIC_A)
        snprintf(word, sizeof word, ", random 0x%08" PRIx32, random);
    if (want_flags != got_flags)
        snprintf(flags, sizeof flags, "; flags 0x%x, MPFR 0x%x", got_flags, want_flags);
    verify_differs(row, "binary%d 0x%0*" PRIx64 " (%a) to %s%s%s, %s%s: 0x%" PRIx64 " (%a), MPFR 0x%" PRIx64 " (%a)%s",
                   in->width, in->width / 4, in->u[i], verify_inputs_value(in, i), c->f.name, c->preset ? "@" : "",
                   c->preset ? c->preset : "", mpsim_round_mode_name((mpsim_round_mode)c->r.mode), word, got,
                   oracle_decode(c->of, got), want, oracle_decode(c->of, want), flags);
}

/* The array function, which is what commands use, and the scalar one with its flags. */
static void compare(verify_row *row, const cast *c, const inputs *in, block *b, uint64_t seed)
{
    const mpsim_rng rng = {.seed = seed, .stream = (uint64_t)c->r.mode};
    const size_t bytes = mpsim_format_code_bytes(&c->f);
    block_reserve(b, in->n);
    for (size_t i = 0; i < in->n; i++) {
        const uint32_t u = (uint32_t)in->u[i];
        if (in->width == 32)
            memcpy(&b->f32[i], &u, sizeof u);
        else
            memcpy(&b->f64[i], &in->u[i], sizeof b->f64[i]);
    }
    const mpsim_status status = in->width == 32
                                    ? mpsim_encode_array_f32(&c->f, &c->r, &rng, b->codes, b->f32, in->n, NULL)
                                    : mpsim_encode_array_f64(&c->f, &c->r, &rng, b->codes, b->f64, in->n, NULL);
    if (status != MPSIM_OK)
        verify_differs(row, "%s: %s", c->f.name, mpsim_status_string(status));
    for (size_t i = 0; status == MPSIM_OK && i < in->n; i++) {
        const uint32_t random = mpsim_rng_word(rng.seed, rng.stream, i);
        unsigned want_flags, flags;
        const uint64_t want = oracle_encode(c->of, &c->r, verify_inputs_value(in, i), in->width == 32, random,
                                            &want_flags);
        const uint64_t array = element_code(b->codes, bytes, i);
        const uint64_t scalar = in->width == 32 ? mpsim_encode_f32(&c->f, &c->r, b->f32[i], random, &flags)
                                                : mpsim_encode_f64(&c->f, &c->r, b->f64[i], random, &flags);
        row->compared++;
        if (array != want || scalar != want || flags != want_flags)
            report(row, c, in, i, random, want, want_flags, array != want ? array : scalar, flags);
    }
}

/* The next format that both know; 0 past the last. */
static int next_format(verify_row *row, cast *c, size_t *i)
{
    const mpsim_format *f = mpsim_format_at((*i)++);
    if (!f)
        return 0;
    c->f = *f;
    c->of = oracle_find(f->name);
    if (!c->of)
        verify_differs(row, "the oracle has no format %s", f->name);
    return 1;
}

/* Rounding k of a format: a mode with 1, 8 or 32 random bits, or a preset. */
static void use_mode(cast *c, size_t k, size_t i)
{
    mpsim_rounding_init(&c->r, (mpsim_round_mode)k);
    if (k >= MPSIM_ROUND_STOCHASTIC_A)
        c->r.sr_bits = (uint8_t)(i % 3 == 0 ? 1 : i % 3 == 1 ? 8 : 32);
}

static void use_preset(cast *c, size_t k, size_t i)
{
    (void)i;
    c->preset = mpsim_preset_at(k)->name;
    mpsim_rounding_preset(&c->r, mpsim_preset_at(k), &c->f);
}

/* Numbers of a format under every rounding of a kind; of those beside [1] there are more with --thorough. */
typedef struct roundings {
    const char *what;
    void (*use)(cast *c, size_t k, size_t i);
    size_t points[2], random[2];
} roundings;

static const roundings kinds[] = {{"modes", use_mode, {1000, 20000}, {10000, 100000}},
                                  {"presets", use_preset, {200, 2000}, {1000, 20000}}};

static void every_rounding(verify *v, const char *judge, int kind, int width, block *b)
{
    const roundings *of = &kinds[kind];
    const size_t n = kind ? mpsim_preset_count() : MPSIM_ROUND_MODES;
    inputs in = {.width = width};
    uint64_t state = v->seed + (uint64_t)kind;
    verify_row *row = verify_add(v, "mpfr", "binary%d to %zu formats, %zu %s", width, mpsim_format_count(), n,
                                 of->what);
    snprintf(row->with, sizeof row->with, "%s", judge);
    cast c = {.preset = NULL};
    for (size_t i = 0; next_format(row, &c, &i);) {
        if (!c.of)
            continue;
        progress_say("mpfr: %s", c.f.name);
        verify_inputs_clear(&in);
        verify_inputs_points(&in, c.of, of->points[v->thorough != 0]);
        verify_inputs_random(&in, c.of, of->random[v->thorough != 0], &state);
        for (size_t k = 0; k < n; k++) {
            of->use(&c, k, i);
            compare(row, &c, &in, b, v->seed);
        }
    }
    verify_inputs_free(&in);
}

int verify_mpfr_here(const verify *v, char *text, size_t size)
{
    (void)v;
    snprintf(text, size, "MPFR %s", mpfr_get_version());
    return 1;
}

int verify_mpfr(verify *v)
{
    char judge[64];
    block b = {.room = 0};
    verify_mpfr_here(v, judge, sizeof judge);
    for (int kind = 0; kind < 2; kind++)
        for (int width = 32; width <= 64; width += 32)
            every_rounding(v, judge, kind, width, &b);
    free(b.f32);
    free(b.f64);
    free(b.codes);
    const int code = verify_mpfr_arith(v, judge);
    return code ? code : verify_mpfr_dot(v, judge);
}
