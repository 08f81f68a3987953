/* t-states.c -- moments in few bits (mpsim/optimstate.h) against torchao's, step by step, and against COAT's kernel
 * as NumPy formulas: data/vectors/optim-states. Tables, bytes, bad arguments. */
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORCHAO "data/vectors/optim-states/torchao.safetensors"
#define MODEL "data/vectors/optim-states/model.safetensors"

/* Codes of 8 or 16 bits, as recorded. */
static uint16_t *codes_of(recorded *file, const char *name, const char *tensor, size_t n)
{
    size_t bytes = 0;
    unsigned char *raw = recorded_bytes(file, name, tensor, &bytes);
    uint16_t *codes = malloc(n * sizeof *codes);
    ck_assert_msg(raw && codes && (bytes == n || bytes == 2 * n), "%s/%s: %zu bytes", name, tensor, bytes);
    for (size_t i = 0; i < n; i++)
        codes[i] = bytes == n ? raw[i] : (uint16_t)(raw[2 * i] | raw[2 * i + 1] << 8);
    free(raw);
    return codes;
}

static size_t different(const float *a, const float *b, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += !recorded_same(a[i], b[i]);
    return wrong;
}

/* ---- torchao, step by step ---- */

typedef struct moment {
    const mpsim_state *state;
    const char *letter;
    float *x; /* what is stored stands for */
} moment;

/* Codes that differ; a NaN of E4M3 is one, whatever its sign. */
static size_t different_codes(const mpsim_state *s, const uint16_t *a, const uint16_t *b, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += a[i] != b[i] && !(s->format && (a[i] & b[i] & 0x7f) == 0x7f);
    return wrong;
}

/* Of moments in bf16. */
static size_t compare_whole(recorded *file, const char *name, const moment *a, unsigned step, size_t n)
{
    char text[16];
    snprintf(text, sizeof text, "%s.%u", a->letter, step);
    float *want = recorded_floats(file, name, text, NULL);
    const size_t wrong = different(want, a->x, n);
    free(want);
    return wrong;
}

static size_t compare_moment(recorded *file, const char *name, const moment *a, unsigned step, size_t n)
{
    char codes_name[32], numbers_name[32];
    if (!a->state)
        return compare_whole(file, name, a, step, n);
    size_t blocks = 0, wrong = 0;
    snprintf(codes_name, sizeof codes_name, "%s.codes.%u", a->letter, step);
    snprintf(numbers_name, sizeof numbers_name, "%s.numbers.%u", a->letter, step);
    uint16_t *const want = codes_of(file, name, codes_name, n), *const got = malloc(n * sizeof *got);
    float *const numbers = recorded_floats(file, name, numbers_name, &blocks);
    float own[16], *const values = malloc(n * sizeof *values);
    ck_assert(numbers && got && values && blocks == mpsim_state_blocks(a->state, n) && blocks <= 16);
    ck_assert_int_eq(mpsim_state_quantise(a->state, a->x, n, got, own, a->x), MPSIM_OK);
    wrong += different(own, numbers, blocks);
    wrong += different_codes(a->state, want, got, n);
    ck_assert_int_eq(mpsim_state_values(a->state, want, numbers, n, values), MPSIM_OK);
    wrong += different(values, a->x, n);
    free(want);
    free(got);
    free(numbers);
    free(values);
    return wrong;
}

/* By the draws that were recorded; see t-recorded.c. */
static void store_by_draws(recorded *file, const char *name, unsigned step, float *p, size_t n)
{
    char draws[16];
    snprintf(draws, sizeof draws, "r.%u", step);
    uint16_t *const r = codes_of(file, name, draws, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = bits_of_f32(p[i]);
        p[i] = f32_of_bits((u & 0xffff0000) + (r[i] < (u & 0xffff) ? 0x10000 : 0));
    }
    free(r);
}

static size_t repeat(recorded *file, const char *name, const char *variant, size_t *values)
{
    const char *facts = recorded_facts(file, name);
    char text[32];
    const int low = strcmp(recorded_text(facts, "dtype", "", text, sizeof text), "bf16") == 0;
    const int drawn = recorded_number(facts, "sr", 0) == 1;
    const mpsim_states *s = mpsim_states_find(recorded_text(facts, "states", "", text, sizeof text));
    mpsim_optim o;
    mpsim_optim_algorithm a;
    ck_assert(mpsim_optim_parse(&a, recorded_text(facts, "optimizer", "", text, sizeof text)) == MPSIM_OK);
    mpsim_optim_init(&o, a, mpsim_optim_variant_find(variant));
    o.lr = recorded_number(facts, "lr", 0);
    o.beta1 = recorded_number(facts, "beta1", 0);
    o.beta2 = recorded_number(facts, "beta2", 0);
    o.eps = recorded_number(facts, "eps", 0);
    o.weight_decay = recorded_number(facts, "weight_decay", 0);
    o.amsgrad = recorded_number(facts, "amsgrad", 0) == 1;
    if (low && !drawn)
        o.param = *mpsim_format_find("bf16");
    if (!s)
        o.state = *mpsim_format_find("bf16");
    size_t n = 0, wrong = 0;
    const char *in = low ? "in-bf16" : "in-f32";
    float *p = recorded_floats(file, in, "p", &n);
    moment m = {s ? s->m : NULL, "m", calloc(n, sizeof(float))}, v = {s ? s->v : NULL, "v", calloc(n, sizeof(float))};
    moment x = {s ? s->v : NULL, "x", calloc(n, sizeof(float))};
    for (unsigned step = 1; step <= 3; step++) {
        snprintf(text, sizeof text, "g.%u", step);
        float *g = recorded_floats(file, in, text, NULL);
        snprintf(text, sizeof text, "p.%u", step);
        float *want = recorded_floats(file, name, text, NULL);
        const mpsim_optim_tensor t = {p, g, m.x, v.x, o.amsgrad ? x.x : NULL, NULL, n};
        ck_assert_int_eq(mpsim_optim_step(&o, step, &t, NULL), MPSIM_OK);
        if (drawn)
            store_by_draws(file, name, step, p, n);
        wrong += different(p, want, n) + compare_moment(file, name, &m, step, n) +
                 compare_moment(file, name, &v, step, n);
        wrong += o.amsgrad ? compare_moment(file, name, &x, step, n) : 0;
        *values += (o.amsgrad ? 7 : 5) * n;
        free(g);
        free(want);
    }
    free(p);
    free(m.x);
    free(v.x);
    free(x.x);
    return wrong;
}

CASE("states", 60);

TEST(torchao_step_by_step)
{
    recorded *file = recorded_open(TORCHAO);
    size_t runs = 0, values = 0, wrong = 0;
    for (size_t i = 0; i < recorded_count(file); i++) {
        const char *name = recorded_case(file, i);
        char text[32];
        if (!*recorded_text(recorded_facts(file, name), "states", "", text, sizeof text))
            continue;
        const size_t bad = repeat(file, name, "torchao", &values);
        if (bad)
            printf("# %s: %zu\n", name, bad);
        wrong += bad;
        runs++;
    }
    recorded_close(file);
    printf("# torchao's 8-bit, 4-bit, FP8 and bf16 moments: %zu runs, %zu values, %zu mismatches\n", runs, values,
           wrong);
    ck_assert_uint_eq(runs, 9);
    ck_assert_uint_eq(wrong, 0);
}

/* Blocks of zeros, NaN, infinities, tiny numbers, numbers between codes; the maps. */
TEST(torchao_edges)
{
    static const char *const names[][2] = {{"dynamic8", "dynamic8"},
                                           {"dynamic8-unsigned", "dynamic8-unsigned"},
                                           {"dynamic4", "dynamic4"},
                                           {"linear4", "linear4"},
                                           {"e4m3_256", "e4m3/256"}};
    recorded *file = recorded_open(TORCHAO);
    size_t n = 0, wrong = 0;
    float *x = recorded_floats(file, "edges", "x", &n);
    for (size_t k = 0; k < 5; k++) {
        char codes[40], numbers[40], map_name[40];
        snprintf(codes, sizeof codes, "%s.codes", names[k][0]);
        snprintf(numbers, sizeof numbers, "%s.numbers", names[k][0]);
        snprintf(map_name, sizeof map_name, "%s.map", names[k][0]);
        const mpsim_state *s = mpsim_state_find(names[k][1]);
        uint16_t *want = codes_of(file, "edges", codes, n), *got = malloc(n * sizeof *got);
        size_t blocks = 0, size = 0;
        float own[64], map[MPSIM_STATE_MAP_MAX], *number = recorded_floats(file, "edges", numbers, &blocks);
        ck_assert(got && blocks == mpsim_state_blocks(s, n) && blocks <= 64);
        ck_assert_int_eq(mpsim_state_quantise(s, x, n, got, own, NULL), MPSIM_OK);
        size_t bad = different(own, number, blocks) + different_codes(s, want, got, n);
        float *recorded_map = recorded_floats(file, "edges", map_name, &size);
        ck_assert_uint_eq(size, mpsim_state_map(s, map));
        bad += recorded_map ? different(map, recorded_map, size) : 0;
        if (bad)
            printf("# %s: %zu\n", names[k][1], bad);
        wrong += bad;
        free(want);
        free(got);
        free(number);
        free(recorded_map);
    }
    free(x);
    recorded_close(file);
    ck_assert_uint_eq(wrong, 0);
}

/* ---- COAT ---- */

TEST(coat_as_formulas)
{
    static const char *const names[] = {"coat-e4m3", "coat-e5m2"};
    recorded *file = recorded_open(MODEL);
    for (size_t k = 0; k < 2; k++) {
        size_t n = 0, count = 0, wrong = 0;
        const mpsim_state *s = mpsim_state_find(names[k]);
        float *x = recorded_floats(file, names[k], "x", &n);
        float *numbers = recorded_floats(file, names[k], "numbers", &count);
        float *values = recorded_floats(file, names[k], "values", NULL);
        uint16_t *want = codes_of(file, names[k], "codes", n), *got = malloc(n * sizeof *got);
        float own[64], *y = malloc(n * sizeof *y);
        ck_assert(y && got && count == 3 * mpsim_state_blocks(s, n) && count <= 64 && n % 128 != 0);
        ck_assert_int_eq(mpsim_state_quantise(s, x, n, got, own, y), MPSIM_OK);
        wrong += different(own, numbers, count) + different(y, values, n) + different_codes(s, want, got, n);
        printf("# %s: %zu values, %zu mismatches\n", names[k], 2 * n + count, wrong);
        ck_assert_uint_eq(wrong, 0);
        free(x);
        free(numbers);
        free(values);
        free(want);
        free(got);
        free(y);
    }
    recorded_close(file);
}

/* A group without a range: k is infinite, and what stands for its zeros is COAT's smallest number; of equal
 * numbers these themselves, to the rounding of the square root. */
TEST(coat_without_range)
{
    const mpsim_state *s = mpsim_state_find("coat-e4m3");
    float x[128], numbers[3];
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < 128; i++)
            x[i] = k ? -0x1.8p-5f : 0;
        ck_assert_int_eq(mpsim_state_quantise(s, x, 128, NULL, numbers, x), MPSIM_OK);
        ck_assert(isinf(numbers[1]));
        for (size_t i = 0; i < 128; i++)
            ck_assert_msg(k ? fabsf(x[i] + 0x1.8p-5f) < 1e-8f : fabsf(x[i]) <= 1.1e-20f, "%a", (double)x[i]);
    }
}

/* Powers of two, exactly: what the largest magnitude becomes is in the upper half of the range. */
TEST(powers_of_two)
{
    static const char *const names[] = {"scaled-e4m3", "scaled-fp16"};
    for (size_t k = 0; k < 2; k++) {
        const mpsim_state *s = mpsim_state_find(names[k]);
        const double largest = mpsim_format_max(mpsim_format_find(s->format));
        for (int e = -110; e < 110; e += 7) {
            float x[3] = {(float)ldexp(1.3, e), (float)ldexp(-1.0, e - 3), 0}, scale, y[3];
            ck_assert_int_eq(mpsim_state_quantise(s, x, 3, NULL, &scale, y), MPSIM_OK);
            const double top = (double)x[0] * (double)scale;
            int exponent;
            ck_assert_msg(frexp((double)scale, &exponent) == 0.5 && top <= largest && 2 * top > largest, "%s 2^%d: %a",
                          names[k], e, (double)scale);
            ck_assert(fabs((double)y[0] / (double)x[0] - 1) < 0.0625 && y[1] == x[1] && y[2] == 0);
        }
        float bad[2] = {INFINITY, 1}, scale;
        ck_assert_int_eq(mpsim_state_quantise(s, bad, 2, NULL, &scale, bad), MPSIM_OK);
        ck_assert(scale == 1 && bad[1] == 1);
    }
}

/* ---- tables ---- */

TEST(tables)
{
    for (size_t i = 0; i < mpsim_state_count(); i++) {
        const mpsim_state *s = mpsim_state_at(i);
        float map[MPSIM_STATE_MAP_MAX];
        const size_t size = mpsim_state_map(s, map);
        ck_assert_ptr_eq(mpsim_state_find(s->name), s);
        ck_assert(size == (s->rule == MPSIM_STATE_MAP ? (size_t)1 << s->bits : 0));
        for (size_t k = 1; k < size; k++)
            ck_assert(map[k - 1] < map[k]);
        ck_assert(size == 0 || map[size - 1] == 1);
        ck_assert_int_eq(mpsim_state_quantise(s, NULL, 0, NULL, NULL, NULL), MPSIM_OK);
        ck_assert_int_eq(mpsim_state_quantise(s, NULL, 1, NULL, NULL, NULL), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_state_values(s, NULL, NULL, 1, NULL), MPSIM_EINVAL);
    }
    /* bytes of no array that there can be */
    for (size_t i = 0; i < mpsim_state_count(); i++) {
        const mpsim_state *s = mpsim_state_at(i);
        const uint64_t most = s->bits == 16 ? UINT64_MAX / 2 : s->bits == 8 ? UINT64_MAX : 0;
        for (uint64_t n = most; n && n > most - 100; n--)
            ck_assert_msg(mpsim_state_bytes(s, n) >= (s->bits == 8 ? n : 2 * n), "%s: %llu", s->name,
                          (unsigned long long)n);
        ck_assert(s->bits < 8 || mpsim_state_bytes(s, UINT64_MAX) == UINT64_MAX);
    }
    const mpsim_state copy = *mpsim_state_at(0);
    ck_assert_int_eq(mpsim_state_quantise(&copy, NULL, 0, NULL, NULL, NULL), MPSIM_EINVAL);
    ck_assert_ptr_null(mpsim_state_at(mpsim_state_count()));
    ck_assert_ptr_null(mpsim_state_find("dynamic"));
    for (size_t i = 0; i < mpsim_states_count(); i++) {
        const mpsim_states *s = mpsim_states_at(i);
        ck_assert_ptr_eq(mpsim_states_find(s->name), s);
        ck_assert(s->m && s->v && s->what && s->source);
    }
    ck_assert_ptr_null(mpsim_states_at(mpsim_states_count()));
    ck_assert_ptr_null(mpsim_states_find("torchao"));
}

TEST(which_arrays_and_bytes)
{
    const mpsim_states *ao = mpsim_states_find("torchao-8bit"), *bnb = mpsim_states_find("bitsandbytes-8bit");
    const mpsim_states *coat = mpsim_states_find("coat"), *lm = mpsim_states_find("fp8-lm");
    ck_assert(!mpsim_states_apply(ao, ao->m, 4095) && mpsim_states_apply(ao, ao->m, 4096) &&
              !mpsim_states_apply(ao, ao->m, 4097) && mpsim_states_apply(bnb, bnb->m, 4097));
    ck_assert(mpsim_states_apply(coat, coat->m, 1) && !mpsim_states_apply(coat, coat->kept, 1));
    ck_assert_uint_eq(mpsim_state_bytes(ao->m, 4096), 4096 + 16 * 4 + 1024);
    ck_assert_uint_eq(mpsim_state_bytes(bnb->m, 4097), 4097 + 17 * 4);
    ck_assert_uint_eq(mpsim_state_bytes(mpsim_states_find("torchao-4bit")->m, 4096), 2048 + 32 * 4 + 64);
    ck_assert_uint_eq(mpsim_state_bytes(coat->v, 129), 129 + 2 * 12);
    ck_assert_uint_eq(mpsim_state_bytes(lm->v, 1000), 2004);
    ck_assert_uint_eq(mpsim_state_bytes(lm->m, 1000), 1004);
}

TEST_MAIN("optim-states");
