/* loops.h -- the functions of kernel.h for one instruction set, whose words are included before. */
#pragma once

#include "cast32.h"
#include "cast64.h"
#include "decode.h"
#include "words.h"

/* Each loop is a function of its own; n is a multiple of V_LANES. */
#define LOOP(name, body)                                                                                       \
    static void name(const mpsim_cast_constants *k, void *out, const void *x, size_t n, const uint32_t *words, \
                     mpsim_counts *counts)                                                                     \
    {                                                                                                          \
        (void)words;                                                                                           \
        (void)counts;                                                                                          \
        body;                                                                                                  \
    }
#define LEAN(name, ...)                                                \
    LOOP(name##_codes, cast_lean(k, out, x, n, words, __VA_ARGS__, 0)) \
    LOOP(name##_values, cast_lean(k, out, x, n, words, __VA_ARGS__, 1))
#ifdef V_NEAR
LOOP(sums_codes, cast_sums(k, out, x, n, SUMS_NEAR, 0))
LOOP(sums_values, cast_sums(k, out, x, n, SUMS_NEAR, 1))
LOOP(sums_cut_codes, cast_sums(k, out, x, n, SUMS_CUT, 0))
LOOP(sums_cut_values, cast_sums(k, out, x, n, SUMS_CUT, 1))
LOOP(sums_up_codes, cast_sums(k, out, x, n, SUMS_UP, 0))
LOOP(sums_up_values, cast_sums(k, out, x, n, SUMS_UP, 1))
LOOP(sums_down_codes, cast_sums(k, out, x, n, SUMS_DOWN, 0))
LOOP(sums_down_values, cast_sums(k, out, x, n, SUMS_DOWN, 1))
LOOP(sums_product_codes, cast_sums_wide(k, out, x, n, 0))
LOOP(sums_product_values, cast_sums_wide(k, out, x, n, 1))
LOOP(sums64_codes, cast64_sums(k, out, x, n, 0, 0))
LOOP(sums64_values, cast64_sums(k, out, x, n, 0, 1))
LOOP(sums64_product_codes, cast64_sums(k, out, x, n, 1, 0))
LOOP(sums64_product_values, cast64_sums(k, out, x, n, 1, 1))
#endif
LEAN(lean_near, 0, 0, CAST_NEAR)
LEAN(lean_near_flat, 1, 0, CAST_NEAR)
LEAN(lean, 0, 0, CAST_FIXED)
LEAN(lean_flat, 1, 0, CAST_FIXED)
LEAN(lean_product, 0, 1, CAST_FIXED)
LEAN(lean_random, 0, 0, CAST_RANDOM)
LEAN(lean_random_flat, 1, 0, CAST_RANDOM)
LEAN(lean_drawn, 0, 0, CAST_DRAWN)
LEAN(lean_drawn_flat, 1, 0, CAST_DRAWN)
LOOP(power_codes, cast_power(k, out, x, n, 0))
LOOP(power_values, cast_power(k, out, x, n, 1))

/* Of codes and values, with and without counts. */
#define FULL(name, ...)                                                                   \
    LOOP(name##_codes, cast_full(k, out, x, n, words, NULL, __VA_ARGS__, 0, 0))           \
    LOOP(name##_values, cast_full(k, out, x, n, words, NULL, __VA_ARGS__, 1, 0))          \
    LOOP(name##_codes_counted, cast_full(k, out, x, n, words, counts, __VA_ARGS__, 0, 1)) \
    LOOP(name##_values_counted, cast_full(k, out, x, n, words, counts, __VA_ARGS__, 1, 1))
FULL(full, 0, 0, 0)
FULL(flat, 1, 0, 0)
FULL(product, 0, 1, 0)
FULL(random, 0, 0, 1)
FULL(random_flat, 1, 0, 1)

LOOP(wide_codes, cast_wide(k, out, x, n, words, counts, 0, 0))
LOOP(wide_values, cast_wide(k, out, x, n, words, counts, 0, 1))
LOOP(wide_random_codes, cast_wide(k, out, x, n, words, counts, 1, 0))
LOOP(wide_random_values, cast_wide(k, out, x, n, words, counts, 1, 1))

/* By loop, random, values, counted. */
#define ROW(name)                                \
    {                                            \
        {name##_codes, name##_codes_counted},    \
        {                                        \
            name##_values, name##_values_counted \
        }                                        \
    }
#define SAME(name)                       \
    {                                    \
        {name##_codes, name##_codes},    \
        {                                \
            name##_values, name##_values \
        }                                \
    }
static mpsim_cast_function *const loops[MPSIM_CAST_LOOPS][3][2][2] = {
    [MPSIM_CAST_NEAR] = {SAME(lean_near)},
    [MPSIM_CAST_NEAR_FLAT] = {SAME(lean_near_flat)},
    [MPSIM_CAST_LEAN] = {SAME(lean), SAME(lean_random), SAME(lean_drawn)},
    [MPSIM_CAST_LEAN_FLAT] = {SAME(lean_flat), SAME(lean_random_flat), SAME(lean_drawn_flat)},
    [MPSIM_CAST_LEAN_PRODUCT] = {SAME(lean_product)},
    [MPSIM_CAST_POWER] = {SAME(power)},
    [MPSIM_CAST_32] = {ROW(full), ROW(random)},
    [MPSIM_CAST_32_FLAT] = {ROW(flat), ROW(random_flat)},
    [MPSIM_CAST_32_PRODUCT] = {ROW(product)},
    [MPSIM_CAST_64] = {SAME(wide), SAME(wide_random)},
    [MPSIM_CAST_64_PRODUCT] = {SAME(wide), SAME(wide_random)},
};

/* Sums where they may be. */
static mpsim_cast_function *choice(const mpsim_cast_constants *k, int counted)
{
#ifdef V_NEAR
    static mpsim_cast_function *const sums[MPSIM_CAST_SUMS][2] = {
        [MPSIM_CAST_SUM] = {sums_codes, sums_values},
        [MPSIM_CAST_SUM_CUT] = {sums_cut_codes, sums_cut_values},
        [MPSIM_CAST_SUM_UP] = {sums_up_codes, sums_up_values},
        [MPSIM_CAST_SUM_DOWN] = {sums_down_codes, sums_down_values},
        [MPSIM_CAST_SUM_PRODUCT] = {sums_product_codes, sums_product_values},
        [MPSIM_CAST_SUM64] = {sums64_codes, sums64_values},
        [MPSIM_CAST_SUM64_PRODUCT] = {sums64_product_codes, sums64_product_values},
    };
    if (k->near_sums)
        return sums[k->near_sums][k->values];
#endif
    return loops[k->loop][k->random][k->values][counted];
}

/* n < V_LANES elements: among zeros, which are not counted in the end. */
static void part(const mpsim_cast_constants *k, mpsim_cast_function *loop, unsigned char *out, const unsigned char *x,
                 size_t n, const uint32_t *words, mpsim_counts *counts)
{
    unsigned char from[8 * V_LANES] = {0}, to[8 * V_LANES];
    uint32_t draws[V_LANES] = {0};
    mpsim_cast_constants here = *k;
    if (n == 0)
        return;
    memcpy(from, x, n * (size_t)k->source);
    if (words)
        memcpy(draws, words, n * sizeof *words);
    else if (k->draws) {
        uint32_t batch[WORDS_BATCH];
        words_stream s = words_of(k->seed, k->word_stream, k->index / 4);
        words_batch(batch, &s, k->index / 4);
        memcpy(draws, batch + k->index % 4, n * sizeof *draws);
    }
    here.stream = 0;
    loop(&here, to, from, V_LANES, draws, counts);
    memcpy(out, to, n * (size_t)k->bytes);
    if (counts) {
        const uint64_t zeros = V_LANES - n;
        counts->inexact -= k->zero_flags & MPSIM_FLAG_INEXACT ? zeros : 0;
        counts->overflow -= k->zero_flags & MPSIM_FLAG_OVERFLOW ? zeros : 0;
    }
}

void V_NAME(mpsim_cast)(const mpsim_cast_constants *k, void *out, const void *x, size_t n, const uint32_t *words,
                        mpsim_counts *counts)
{
    mpsim_cast_function *loop = choice(k, counts != NULL);
    unsigned char *to = out;
    const unsigned char *from = x;
    const size_t full = (size_t)V_LANES * (size_t)k->bytes, past = (uintptr_t)out % full;
    mpsim_cast_constants here = *k;
    here.stream = k->stream && past % (size_t)k->bytes == 0;
    size_t head = here.stream && past ? (full - past) / (size_t)k->bytes : 0;
    head = head < n ? head : n;
    part(k, loop, to, from, head, words, counts);
    here.index = k->index + head;
    const size_t whole = (n - head) / V_LANES * V_LANES, done = head + whole;
    loop(&here, to + head * (size_t)k->bytes, from + head * (size_t)k->source, whole, words ? words + head : NULL,
         counts);
    here.index = k->index + done;
    part(&here, loop, to + done * (size_t)k->bytes, from + done * (size_t)k->source, n - done,
         words ? words + done : NULL, counts);
    if (k->stream && k->end)
        v_stream_end();
}
