/* t-references.c -- block recipes by name, along rows and columns, against the reference code of
 * torchao, TransformerEngine, microxcaling, DeepSeek-V3 and DeepGEMM.
 *
 * data/vectors/blocks/references.txt: a line is a case, its tensor made here by the recorder's
 * generator, its results digests (record_references.py says of what). Sides are no multiples of the
 * blocks but where the line says pad=no. Smaller cases with all their numbers: t-recorded.c. */
#include "support/recorded.h"
#include "sim/text/sha256.h"
#include "sim/trace/trace.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/block.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(a) ((int)(sizeof(a) / sizeof(a)[0]))

enum { TEXT = 64, DIGITS = 16 };

/* ---- the recorder's generator ---- */

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 32);
}

static uint32_t element(uint64_t *state, int base, int zero, const char *kind, int bf16)
{
    uint32_t u = draw(state), v = draw(state), pick = v >> 16 & 255;
    const int exact = strchr(kind, 'e') != NULL;
    int drop = __builtin_ctz(v | 0x1000);
    if (exact)
        drop = drop * 6 / 12;
    int exponent = base - drop;
    uint32_t fraction = u & 0x7fffff;
    if (exponent <= 0) {
        exponent = 0;
        fraction >>= 1;
    }
    if (bf16 || exact)
        fraction &= 0x7f0000;
    if (strchr(kind, 'z') && (zero || pick < 4)) {
        exponent = 0;
        fraction = 0;
    }
    if (strchr(kind, 's') && (pick == 4 || pick == 5)) {
        exponent = 255;
        fraction = pick == 5 ? 0x400000 : 0;
        u = pick == 5 ? 0 : u;
    }
    return (u >> 31) << 31 | (uint32_t)exponent << 23 | fraction;
}

static void generate(float *x, const char *gen, size_t rows, size_t cols, int bf16)
{
    char *kind;
    uint64_t state = strtoull(gen, &kind, 10) * 0x9e3779b97f4a7c15U;
    for (size_t r = 0; r < rows; r++) {
        const uint32_t w = draw(&state), row = w >> 8 & 7;
        int base = 127 + (int)(w % 16) - 8;
        if (row == 1 && strchr(kind, 't'))
            base = w & 0x1000 ? 6 : 2;
        if (row == 2 && strchr(kind, 'h'))
            base = 254;
        if (strchr(kind, 'e'))
            base = 127;
        for (size_t c = 0; c < cols; c++)
            x[r * cols + c] = f32_of_bits(element(&state, base, row == 0 || c % 23 == 7, kind, bf16));
    }
}

/* ---- a case ---- */

typedef struct reference {
    char name[80], words[TEXT], element[16];
    mpsim_block_recipe recipe;
    unsigned transform;
    int bf16;
    size_t rows, cols, blocks; /* of the matrix that is quantised: x, or x transposed */
    float *x;
} reference;

static void *room(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    ck_assert(p != NULL);
    return p;
}

static float *transposed(float *x, size_t rows, size_t cols)
{
    float *t = room(rows * cols, sizeof *t);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            t[c * rows + r] = x[r * cols + c];
    free(x);
    return t;
}

static void round_to_bf16(float *x, size_t n)
{
    mpsim_rounding rounding;
    mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f32(mpsim_format_find("bf16"), &rounding, NULL, x, x, n, NULL);
}

/* What the words do not say: rows of the table stand for a source, not for one element or block. */
static void adjust(reference *c, const char *line)
{
    char word[TEXT];
    const int microx = c->recipe.rule == MPSIM_SCALE_E8M0_MICROX;
    memcpy(c->recipe.element, c->element, sizeof c->element);
    c->recipe.power_of_two = (uint8_t)recorded_number(line, "pow2", c->recipe.power_of_two);
    c->recipe.amax_epsilon = recorded_number(line, "eps", c->recipe.amax_epsilon);
    if (sscanf(recorded_text(line, "block", "", word, sizeof word), "%ux%u", &c->recipe.block_rows,
               &c->recipe.block_cols) == 2)
        ck_assert_uint_gt(c->recipe.block_cols, 0);
    if (microx && strcmp(recorded_text(line, "round", "", word, sizeof word), "even") == 0)
        c->recipe.element_mode = MPSIM_ROUND_NEAREST_EVEN;
    if (c->bf16 && c->recipe.rule == MPSIM_SCALE_AMAX_TE)
        c->recipe.scale_for_inf = 0x1.fep127;
}

static void load(reference *c, const char *line)
{
    char word[TEXT], error[200] = "";
    memset(c, 0, sizeof *c);
    ck_assert_int_eq(sscanf(line, "case %79s", c->name), 1);
    recorded_text(line, "words", "", c->words, sizeof c->words);
    recorded_text(line, "element", "", c->element, sizeof c->element);
    c->bf16 = strcmp(recorded_text(line, "x", "", word, sizeof word), "bf16") == 0;
    ck_assert_msg(mpsim_block_parse(&c->recipe, &c->transform, c->words, error, sizeof error) == MPSIM_OK, "%s: %s: %s",
                  c->name, c->words, error);
    adjust(c, line);
    c->rows = (size_t)recorded_number(line, "rows", 0);
    c->cols = (size_t)recorded_number(line, "cols", 0);
    c->x = room(c->rows * c->cols, sizeof *c->x);
    generate(c->x, recorded_text(line, "gen", "", word, sizeof word), c->rows, c->cols, c->bf16);
    if (strcmp(recorded_text(line, "axis", "", word, sizeof word), "columns") == 0) {
        const size_t rows = c->rows;
        c->x = transposed(c->x, c->rows, c->cols);
        c->rows = c->cols;
        c->cols = rows;
    }
    for (size_t r = 0; c->transform && r < c->rows; r++)
        ck_assert_int_eq(mpsim_hadamard_groups(c->x + r * c->cols, c->cols, c->transform, 0), MPSIM_OK);
    if (c->transform && c->bf16)
        round_to_bf16(c->x, c->rows * c->cols);
    size_t down, across;
    mpsim_block_grid(&c->recipe, c->rows, c->cols, &down, &across);
    c->blocks = down * across;
}

/* ---- comparison ---- */

typedef struct tally {
    size_t cases, elements, blocks, wrong;
} tally;

static int digest_is(const char *line, const char *key, const void *codes, size_t each, size_t n)
{
    char expected[DIGITS + 1], hex[65];
    sha256 s;
    sha256_init(&s);
    for (size_t i = 0; i < n; i++) { /* as in a file */
        unsigned char code[8];
        memcpy(code, (const unsigned char *)codes + i * each, each);
        trace_to_little_endian(code, each, 1);
        sha256_add(&s, code, each);
    }
    sha256_hex(&s, hex);
    recorded_text(line, key, "", expected, sizeof expected);
    return expected[0] == 0 || strncmp(hex, expected, DIGITS) == 0;
}

/* TransformerEngine's NVFP4 reference makes the code of a product that is -0 that of +0, its kernel
 * does not. */
static int dropped_minus(const reference *c, const mpsim_blocks *got, size_t i)
{
    const size_t across = (c->cols + c->recipe.block_cols - 1) / c->recipe.block_cols;
    const size_t row = i / c->cols / c->recipe.block_rows;
    const size_t block = row * across + i % c->cols / c->recipe.block_cols;
    return c->recipe.rule == MPSIM_SCALE_NVFP4_TE && c->x[i] * got->scales[block] == 0;
}

/* The recorder's one spelling of what has several. */
static void normalise(const reference *c, mpsim_blocks *got)
{
    const int e4m3 = strcmp(c->element, "e4m3") == 0, e5m2 = strcmp(c->element, "e5m2") == 0;
    for (size_t i = 0; i < c->rows * c->cols; i++) {
        const unsigned magnitude = got->codes[i] & 0x7fU;
        if ((e4m3 && magnitude > 0x7e) || (e5m2 && magnitude > 0x7c))
            got->codes[i] = 0x7f;
        else if (!e4m3 && !e5m2 && (isnan(c->x[i]) || dropped_minus(c, got, i)))
            got->codes[i] = 0;
        if (isnan(got->values[i]))
            got->values[i] = f32_of_bits(0x7fc00000);
    }
    for (size_t i = 0; i < c->blocks; i++)
        if (isnan(got->inverses[i]))
            got->inverses[i] = f32_of_bits(0x7fc00000);
}

static int scales_are(const reference *c, const char *line, const mpsim_blocks *got)
{
    return digest_is(line, "scales", got->scale_codes, 1, c->blocks) ||
           digest_is(line, "scales", got->inverses, sizeof *got->inverses, c->blocks);
}

static void check_case(const char *line, tally *t)
{
    reference c;
    float tensor_scale;
    load(&c, line);
    const size_t n = c.rows * c.cols;
    mpsim_blocks got = {.codes = room(n, 1),
                        .values = room(n, sizeof(float)),
                        .scale_codes = room(c.blocks, 1),
                        .scales = room(c.blocks, sizeof(float)),
                        .inverses = room(c.blocks, sizeof(float))};
    ck_assert_int_eq(mpsim_block_quantize(&c.recipe, c.x, c.rows, c.cols, -1, 1, NULL, &got, &tensor_scale), MPSIM_OK);
    normalise(&c, &got);
    const int codes = digest_is(line, "codes", got.codes, 1, n);
    const int scales = scales_are(&c, line, &got);
    const int values = digest_is(line, "values", got.values, sizeof(float), n);
    const size_t blocks = (size_t)recorded_number(line, "blocks", (double)c.blocks);
    if (!codes || !scales || !values || blocks != c.blocks) {
        t->wrong++;
        printf("# %s (%s):%s%s%s differ\n", c.name, c.words, codes ? "" : " codes", scales ? "" : " scales",
               values ? "" : " values");
    }
    t->cases++;
    t->elements += n;
    t->blocks += c.blocks;
    free(got.codes);
    free(got.values);
    free(got.scale_codes);
    free(got.scales);
    free(got.inverses);
    free(c.x);
}

static const struct {
    const char *run, *source; /* the recorder's name of it */
    size_t cases;             /* at least */
} sources[] = {
    {"torchao_mx", "torchao 0.18.0 to_mx", 160},
    {"torchao_nvfp4", "torchao 0.18.0 NVFP4Tensor", 12},
    {"torchao_block", "torchao 0.18.0 blockwise references", 17},
    {"microx", "microxcaling 3b429a8", 20},
    {"te_nvfp4", "TransformerEngine 2.20.2 NVFP4QuantizerRef", 26},
    {"te_block", "TransformerEngine BlockwiseQuantizerReference", 48},
    {"te_mxfp8", "TransformerEngine MXFP8 (its kernel in NumPy)", 8},
    {"te_mxfp4", "TransformerEngine mxfp4_fake_quantize_reference", 2},
    {"deepseek", "DeepSeek-V3 act_quant (its kernel in NumPy)", 8},
    {"deepgemm", "DeepGEMM 38939a4", 16},
};

CASE("references", 60);

TESTS(references, LENGTH(sources))
{
    char line[1024], run[TEXT];
    tally t = {0, 0, 0, 0};
    FILE *f = fopen(test_source_path("data/vectors/blocks/references.txt"), "r");
    ck_assert(f != NULL);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        recorded_text(line, "run", "", run, sizeof run);
        if (strncmp(line, "case ", 5) == 0 && strcmp(run, sources[_i].run) == 0)
            check_case(line, &t);
    }
    fclose(f);
    printf("# %s: %zu cases, %zu elements in %zu blocks; %zu cases differ\n", sources[_i].source, t.cases, t.elements,
           t.blocks, t.wrong);
    fflush(stdout);
    ck_assert_uint_ge(t.cases, sources[_i].cases);
    ck_assert_uint_eq(t.wrong, 0);
}

/* ---- the Hadamard transform: sums of integers are exact in any order ---- */

enum { GROUPS = 5, TAIL = 7 };

static const int te_signs[16] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

TESTS(hadamard, 4)
{
    const uint32_t size = 16U << _i;
    const uint64_t seed = 20263;
    const size_t n = (size_t)size * GROUPS + TAIL;
    const float scale = (float)(1 / sqrt(size));
    uint64_t state = 7;
    float *x = room(n, sizeof *x), *y = room(n, sizeof *y);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] = (float)((int)(draw(&state) % 8191) - 4095);
    ck_assert_int_eq(mpsim_hadamard_groups(y, n, size, seed), MPSIM_OK);
    for (size_t i = 0; i < size * GROUPS; i++) {
        int64_t sum = 0;
        for (uint32_t k = 0; k < size; k++) {
            const int sign = size == 16 ? te_signs[k] : (mpsim_rng_word(seed, 0, k) & 1) ? -1 : 1;
            const int64_t value = (int64_t)x[i / size * size + k] * sign;
            sum += __builtin_popcount(k & (uint32_t)(i % size)) % 2 ? -value : value;
        }
        ck_assert_msg(y[i] == (float)((double)sum * (double)scale), "size %u: %zu: %a, sum %lld", (unsigned)size, i,
                      (double)y[i], (long long)sum);
    }
    for (size_t i = (size_t)size * GROUPS; i < n; i++)
        ck_assert(y[i] == x[i]);
    free(x);
    free(y);
}

TEST_MAIN("block-references");
