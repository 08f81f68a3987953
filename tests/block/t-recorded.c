/* t-recorded.c -- scaled quantisation and delayed scaling as torchao and the references of
 * TransformerEngine gave it, bit for bit.
 *
 * data/vectors/blocks: a case gives x, the scales, the codes and what torchao makes of them again.
 * Codes and scale codes are compared as integers, binary32 scales and values as numbers with their
 * sign (NaNs are one). Published figures: t-figures.c. */
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/block.h>
#include <mpsim/recipe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(a) ((int)(sizeof(a) / sizeof(a)[0]))

/* What was compared, and what differed. */
typedef struct tally {
    size_t cases, codes, scales, values, zeros;
    size_t wrong_codes, wrong_scales, wrong_values;
} tally;

/* ---- a recorded case ---- */

typedef struct recording {
    const char *name, *facts;
    mpsim_block_recipe recipe;
    size_t rows, cols, blocks;
    float amax; /* of the whole tensor; negative: its own */
    float *x, *dq;
    unsigned char *codes, *scale;
    size_t scale_bytes; /* 1 or 4, per block                                              */
    size_t repeats;     /* of a block's scale                                             */
    int bf16;           /* dq was rounded to bfloat16 at last                             */
    int minus_zero;     /* TransformerEngine's reference makes -0 +0, its kernel does not */
} recording;

/* The recipe of a family: which row it starts from. */
static const mpsim_block_recipe *base_recipe(const char *facts)
{
    char family[32], version[32], mode[32], name[80];
    recorded_text(facts, "recipe", "", family, sizeof family);
    recorded_text(facts, "framework", "", name, sizeof name);
    if (strcmp(name, "transformer_engine") == 0) {
        recorded_text(facts, "block", "", mode, sizeof mode);
        return mpsim_block_find(strcmp(mode, "16x16") == 0 ? "nvfp4-2d" : "nvfp4");
    }
    if (strcmp(family, "mx") == 0) {
        recorded_text(facts, "version", "", version, sizeof version);
        recorded_text(facts, "mode", "", mode, sizeof mode);
        snprintf(name, sizeof name, "%s%s", strncmp(version, "0.18.", 5) == 0 ? "torchao-0.18-" : "mxfp8-", mode);
        return mpsim_block_find(name);
    }
    if (strcmp(family, "nvfp4") == 0)
        return mpsim_block_find("nvfp4-torchao");
    recorded_text(facts, "granularity", "", mode, sizeof mode);
    snprintf(name, sizeof name, "torchao-%s", mode);
    return mpsim_block_find(name);
}

/* The amax that gives a recorded tensor scale, amax / 2688 in binary32. */
static float amax_of(float scale)
{
    const float start = scale * 2688;
    if (!isfinite(start))
        return start;
    for (float a = nextafterf(nextafterf(start, 0), 0); a <= start * 1.000001f; a = nextafterf(a, INFINITY))
        if (a / 2688 == scale)
            return a;
    ck_abort_msg("no amax gives the tensor scale %a", (double)scale);
}

static float tensor_amax(recorded *r, const recording *c)
{
    char how[16];
    recorded_text(c->facts, "per_tensor", "amax", how, sizeof how);
    if (strcmp(how, "none") == 0)
        return 2688; /* a tensor scale of 1 */
    float *scale = recorded_floats(r, c->name, "amax", NULL);
    if (scale) {
        const float given = scale[0];
        free(scale);
        return given;
    }
    scale = recorded_floats(r, c->name, "pts", NULL);
    if (!scale)
        return -1;
    const int own = strcmp(how, "given") != 0 && !isnan(scale[0]); /* a NaN's sign is torch's */
    const float amax = own ? -1 : amax_of(scale[0]);
    free(scale);
    return amax;
}

static void load(recording *c, recorded *r, const char *name)
{
    size_t bytes = 0, n = 0;
    memset(c, 0, sizeof *c);
    c->name = name;
    c->facts = recorded_facts(r, name);
    const mpsim_block_recipe *base = base_recipe(c->facts);
    ck_assert_msg(base != NULL, "%s: no recipe for %s", name, c->facts);
    c->recipe = *base;
    recorded_text(c->facts, "element", "", c->recipe.element, sizeof c->recipe.element);
    c->recipe.power_of_two = (uint8_t)recorded_number(c->facts, "pow2", 0);
    if (c->recipe.block_cols == 32)
        c->recipe.block_cols = (uint32_t)recorded_number(c->facts, "block", 32);
    const trace_tensor *x = recorded_tensor(r, name, "x"), *dq = recorded_tensor(r, name, "dq");
    ck_assert(x && x->rank == 2);
    c->rows = (size_t)x->shape[0];
    c->cols = (size_t)x->shape[1];
    c->bf16 = dq && strcmp(dq->dtype, "BF16") == 0;
    c->minus_zero = recorded_tensor(r, name, "amax") != NULL;
    c->x = recorded_floats(r, name, "x", &n);
    c->dq = recorded_floats(r, name, "dq", &n);
    c->codes = recorded_bytes(r, name, "codes", &bytes);
    ck_assert_uint_eq(bytes, n);
    c->scale = recorded_bytes(r, name, "scale", &bytes);
    size_t grid_rows, grid_cols;
    mpsim_block_grid(&c->recipe, c->rows, c->cols, &grid_rows, &grid_cols);
    c->blocks = grid_rows * grid_cols;
    ck_assert(c->blocks > 0 && bytes % c->blocks == 0);
    c->scale_bytes = c->recipe.rule == MPSIM_SCALE_AMAX_TORCHAO ? sizeof(float) : 1;
    c->repeats = bytes / c->scale_bytes / c->blocks;
    trace_to_little_endian(c->scale, c->scale_bytes, bytes / c->scale_bytes); /* and back */
    c->amax = tensor_amax(r, c);
}

static void unload(recording *c)
{
    free(c->x);
    free(c->dq);
    free(c->codes);
    free(c->scale);
}

/* ---- comparison ---- */

/* The first of each kind is printed. */
static void report(size_t count, const recording *c, const char *what, size_t i, double x, double got, double expected)
{
    if (count == 1)
        printf("# %s %s %zu (x = %a): %a, recorded %a\n", c->name, what, i, x, got, expected);
}

static float recorded_scale(const recording *c, size_t i)
{
    float s;
    if (c->scale_bytes == 1)
        return (float)c->scale[i];
    memcpy(&s, c->scale + i * sizeof s, sizeof s);
    return s;
}

static void compare(const recording *c, const mpsim_blocks *got, tally *t)
{
    tally own = {0};
    for (size_t i = 0; i < c->blocks; i++) {
        const float s = c->scale_bytes == 1 ? (float)got->scale_codes[i] : got->scales[i];
        for (size_t k = i * c->repeats; k < (i + 1) * c->repeats; k++)
            if (!recorded_same(s, recorded_scale(c, k)))
                report(++own.wrong_scales, c, "scale", k, (double)got->amax[i], (double)s,
                       (double)recorded_scale(c, k));
    }
    for (size_t i = 0; i < c->rows * c->cols; i++) {
        const double x = (double)c->x[i];
        const int zero = c->minus_zero && x == 0 && signbit(x);
        if (got->codes[i] != (zero ? 8 : c->codes[i]))
            report(++own.wrong_codes, c, "code", i, x, got->codes[i], c->codes[i]);
        t->zeros += (size_t)zero;
        if (c->dq && !recorded_same(got->values[i], c->dq[i]))
            report(++own.wrong_values, c, "value", i, x, (double)got->values[i], (double)c->dq[i]);
    }
    t->cases++;
    t->scales += c->blocks;
    t->codes += c->rows * c->cols;
    t->values += c->dq ? c->rows * c->cols : 0;
    t->wrong_scales += own.wrong_scales;
    t->wrong_codes += own.wrong_codes;
    t->wrong_values += own.wrong_values;
}

static void *room(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    ck_assert(p != NULL);
    return p;
}

/* The statistics against the values they are about. */
static void check_casts(const recording *c, const mpsim_blocks *got)
{
    const mpsim_format *f = mpsim_format_find(c->recipe.element);
    const size_t n = c->rows * c->cols;
    mpsim_cast_stats expected;
    mpsim_counts counts = {0, 0, 0, 0, 0};
    mpsim_cast_stats_init(&expected);
    mpsim_cast_stats_add_values(&expected, c->x, got->values, n);
    for (size_t i = 0; i < n; i++) {
        counts.nan += isnan(c->x[i]) != 0;
        counts.underflow += isfinite(c->x[i]) && c->x[i] != 0 && mpsim_decode(f, got->codes[i]) == 0;
    }
    ck_assert_uint_eq(got->casts->counts.nan, counts.nan);
    ck_assert_uint_eq(got->casts->counts.underflow, counts.underflow);
    ck_assert_uint_eq(got->casts->compared, expected.compared);
    ck_assert(got->casts->max_rel_err == expected.max_rel_err);
    ck_assert(mpsim_sum_value(&got->casts->sum_squared_error) == mpsim_sum_value(&expected.sum_squared_error));
    ck_assert(mpsim_sum_value(&got->casts->sum_squares_left_out) == mpsim_sum_value(&expected.sum_squares_left_out));
}

/* Row by row, the same codes. */
static void check_rows(const recording *c, const mpsim_blocks *got)
{
    unsigned char *codes = room(c->cols, 1);
    mpsim_blocks row = {.codes = codes};
    float scale, amax = c->amax, *x = c->x;
    for (size_t i = 0; c->amax < 0 && i < c->rows * c->cols; i++)
        if (fabsf(x[i]) > amax)
            amax = fabsf(x[i]);
    for (size_t r = 0; c->recipe.block_rows == 1 && r < c->rows; r++) {
        ck_assert_int_eq(mpsim_block_quantize(&c->recipe, x + r * c->cols, 1, c->cols, amax, 1, NULL, &row, &scale),
                         MPSIM_OK);
        ck_assert_msg(memcmp(codes, got->codes + r * c->cols, c->cols) == 0, "%s: row %zu alone", c->name, r);
    }
    free(codes);
}

static void check_case(recorded *r, const char *name, tally *t)
{
    recording c;
    float tensor_scale;
    mpsim_cast_stats casts;
    load(&c, r, name);
    const size_t n = c.rows * c.cols;
    mpsim_cast_stats_init(&casts);
    mpsim_blocks got = {.codes = room(n, 1),
                        .values = room(n, sizeof(float)),
                        .scale_codes = room(c.blocks, 1),
                        .scales = room(c.blocks, sizeof(float)),
                        .amax = room(c.blocks, sizeof(float)),
                        .casts = &casts};
    ck_assert_int_eq(mpsim_block_quantize(&c.recipe, c.x, c.rows, c.cols, c.amax, 1, NULL, &got, &tensor_scale),
                     MPSIM_OK);
    check_casts(&c, &got);
    check_rows(&c, &got);
    if (c.bf16) {
        const mpsim_format *bf16 = mpsim_format_find("bf16");
        mpsim_rounding rounding;
        mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_round_array_f32(bf16, &rounding, NULL, got.values, got.values, n, NULL);
    }
    compare(&c, &got, t);
    float *scale = recorded_floats(r, name, "pts", NULL);
    if (scale)
        ck_assert_msg(recorded_same(scale[0], tensor_scale), "%s: tensor scale %a, recorded %a", name,
                      (double)tensor_scale, (double)scale[0]);
    free(scale);
    free(got.codes);
    free(got.values);
    free(got.scale_codes);
    free(got.scales);
    free(got.amax);
    unload(&c);
}

static const struct {
    const char *file;
    size_t cases; /* at least */
} files[] = {
    {"mx-e4m3", 8}, {"mx-e5m2", 6}, {"mx-e2m3", 6}, {"mx-e3m2", 6},
    {"mx-e2m1", 7}, {"nvfp4", 12},  {"float8", 48}, {"te", 24},
};

/* mpsim_fp8_scale. The reference has no rule for an amax that is not finite; the kernel gives 1. */
static void check_amax_case(recorded *r, const char *name, tally *t)
{
    static const struct {
        const char *input;
        float largest;
    } inputs[] = {{"f32", 0x1.fffffep127f}, {"bf16", 0x1.fep127f}, {"f16", 65504}};
    const char *facts = recorded_facts(r, name);
    char word[16];
    size_t n = 0;
    float *amax = recorded_floats(r, name, "amax", &n);
    float *scale = recorded_floats(r, name, "scale", &n);
    float *inverse = recorded_floats(r, name, "scale_inv", &n);
    recorded_text(facts, "element", "", word, sizeof word);
    const float max = (float)mpsim_format_max(mpsim_format_find(word));
    const float epsilon = (float)recorded_number(facts, "eps", 0);
    const int pow2 = recorded_number(facts, "pow2", 0) != 0;
    size_t k = 0;
    recorded_text(facts, "input", "", word, sizeof word);
    while (strcmp(inputs[k].input, word) != 0)
        ck_assert_uint_lt(++k, 3);
    for (size_t i = 0; i < n; i++) {
        const float s = mpsim_fp8_scale(amax[i], max, epsilon, inputs[k].largest, pow2);
        const int finite = isfinite(amax[i]);
        if (!recorded_same(s, finite ? scale[i] : 1) || (finite && 1 / s != inverse[i])) {
            t->wrong_scales++;
            printf("# %s: amax %a: %a, recorded %a\n", name, (double)amax[i], (double)s, (double)scale[i]);
        }
    }
    t->cases++;
    t->scales += n;
    free(amax);
    free(scale);
    free(inverse);
}

CASE("recorded", 60);

TESTS(recorded_file, LENGTH(files))
{
    char path[128];
    tally t = {0};
    snprintf(path, sizeof path, "data/vectors/blocks/%s.safetensors", files[_i].file);
    recorded *r = recorded_open(path);
    for (size_t i = 0; i < recorded_count(r); i++) {
        const char *name = recorded_case(r, i);
        if (recorded_tensor(r, name, "x"))
            check_case(r, name, &t);
        else
            check_amax_case(r, name, &t);
    }
    recorded_close(r);
    printf("# %s: %zu cases; codes %zu (%zu differ), scales %zu (%zu differ), values %zu (%zu "
           "differ)\n",
           files[_i].file, t.cases, t.codes, t.wrong_codes, t.scales, t.wrong_scales, t.values, t.wrong_values);
    if (t.zeros > 0)
        printf("# %zu codes of -0, which the reference drops\n", t.zeros);
    fflush(stdout);
    ck_assert_uint_ge(t.cases, files[_i].cases);
    ck_assert_uint_eq(t.wrong_codes + t.wrong_scales + t.wrong_values, 0);
}

/* ---- delayed scaling ----
 *
 * te-delayed.txt: cases of steps, each the amax that enters, the scale that leaves and the history;
 * the Python form of TransformerEngine's update. */

enum { HISTORY = 8 };

static void begin_delayed(mpsim_delayed *d, float *history, const char *facts)
{
    char algorithm[16];
    mpsim_delayed_config c;
    mpsim_delayed_config_init(&c, mpsim_format_find("e4m3"));
    c.variant = MPSIM_DELAYED_PYTHON;
    c.history = (uint32_t)recorded_number(facts, "length", 0);
    c.margin = (int16_t)recorded_number(facts, "margin", 0);
    c.fp8_max = (float)recorded_number(facts, "fp8_max", 0);
    recorded_text(facts, "algo", "", algorithm, sizeof algorithm);
    c.algorithm = strcmp(algorithm, "max") == 0 ? MPSIM_AMAX_MAX : MPSIM_AMAX_MOST_RECENT;
    ck_assert_uint_le(c.history, HISTORY);
    ck_assert_int_eq(mpsim_delayed_init(d, &c, history), MPSIM_OK);
}

TEST(delayed)
{
    FILE *f = fopen(test_source_path("data/vectors/blocks/te-delayed.txt"), "r");
    char line[512], *p;
    float history[HISTORY];
    mpsim_delayed d;
    size_t cases = 0, steps = 0;
    ck_assert(f != NULL);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "case ", 5) == 0) {
            begin_delayed(&d, history, line);
            cases++;
        } else if (line[0] != '#') {
            ck_assert_uint_gt(cases, 0);
            mpsim_delayed_record(&d, strtof(line, &p));
            mpsim_delayed_update(&d, 0);
            const float scale = strtof(p, &p);
            ck_assert_msg(recorded_same(d.scale, scale), "step %zu: scale %a: %s", steps, (double)d.scale, line);
            ck_assert(d.scale_inverse == 1 / scale);
            for (uint32_t i = 0; i < d.config.history; i++)
                ck_assert_msg(recorded_same(history[i], strtof(p, &p)), "step %zu: slot %u: %s", steps, (unsigned)i,
                              line);
            steps++;
        }
    }
    fclose(f);
    printf("# delayed scaling: %zu cases, %zu steps\n", cases, steps);
    ck_assert_uint_ge(cases, 16);
    ck_assert_uint_ge(steps, 376);
}

TEST_MAIN("block-recorded");
