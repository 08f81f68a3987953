/* t-layers.c -- what enters the three products of a linear layer under the policies with blocks, against
 * the reference code of TransformerEngine, torchao, DeepGEMM and DeepSeek-V3 (data/vectors/blocks/layers.txt,
 * record_layers.py): codes, scales and values of activations, weights and gradients by rows and columns. */
#include "sim/train/policy.h"
#include "sim/text/sha256.h"
#include "support/trainruns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 160, STEPS = 6, SCALES = SIDE * SIDE, POLICIES = 13, ROLES = 3, LINES = 2 * ROLES };

typedef struct digests {
    char x[17], of[17], codes[17], scales[17], values[17];
} digests;

static const char *const words[ROLES] = {"act", "weight", "agrad"};
static const train_role roles[ROLES] = {TRAIN_ACT, TRAIN_WEIGHT, TRAIN_AGRAD};

/* ---- digests ---- */

static void digest_bytes(char hex[17], const void *bytes, size_t n)
{
    sha256 s;
    char all[65];
    sha256_init(&s);
    sha256_add(&s, bytes, n);
    sha256_hex(&s, all);
    memcpy(hex, all, 16);
    hex[16] = 0;
}

/* Of bf16 numbers, two bytes each, the lower first. */
static void digest_bf16(char hex[17], const float *v)
{
    static uint8_t bytes[2 * SIDE * SIDE];
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        ck_assert_uint_eq(u & 0xffff, 0);
        bytes[2 * i] = (uint8_t)(u >> 16);
        bytes[2 * i + 1] = (uint8_t)(u >> 24);
    }
    digest_bytes(hex, bytes, sizeof bytes);
}

/* Of binary32 numbers, four bytes each, the lowest first. */
static void digest_binary32(char hex[17], const float *v, size_t n)
{
    static uint8_t bytes[4 * SCALES];
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (size_t)k] = (uint8_t)(u >> 8 * k);
    }
    digest_bytes(hex, bytes, 4 * n);
}

/* ---- an operand ---- */

/* FNV-1a of the eight bytes of the step and of the name. */
static uint64_t stream_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 8; i++)
        h = (h ^ (i == 0 ? STEPS : 0)) * UINT64_C(0x100000001b3);
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h;
}

static float *tensor(train *t, const char *kind, const char *suffix)
{
    char name[64];
    size_t n;
    (void)snprintf(name, sizeof name, "%s%s:fc2", kind, suffix);
    float *v = values_of(t, name, &n);
    ck_assert_msg(n == (size_t)SIDE * SIDE || strstr(suffix, "blocks"), "%s: %zu elements", name, n);
    return v;
}

/* What the copy is made of: the tensor, transposed, or transposed and transformed. */
static float *source(train *t, const train_placement *p, int role, int columns)
{
    if (columns && p->hadamard && role != 1)
        return tensor(t, words[role], ".rht");
    float *x = tensor(t, words[role], role == 1 ? ".in" : "");
    for (size_t i = 0; columns && i < SIDE; i++)
        for (size_t j = 0; j < i; j++) {
            const float v = x[i * SIDE + j];
            x[i * SIDE + j] = x[j * SIDE + i];
            x[j * SIDE + i] = v;
        }
    return x;
}

static void digest_codes(digests *d, const mpsim_block_recipe *r, const float *x, int role, int columns)
{
    static uint8_t codes[SIDE * SIDE], scales[SCALES];
    static float factors[SCALES];
    char name[32];
    size_t rows, cols;
    const int binary32 = r->rule == MPSIM_SCALE_AMAX_TE || r->rule == MPSIM_SCALE_AMAX_DEEPSEEK;
    const mpsim_blocks out = {.codes = codes, .scale_codes = scales, .inverses = factors};
    (void)snprintf(name, sizeof name, "%s%s:fc2", words[role], columns ? ".qt" : "");
    const mpsim_rng rng = {.seed = 0, .stream = stream_of(name)};
    ck_assert_int_eq(mpsim_block_quantize(r, x, SIDE, SIDE, -1, 1, &rng, &out, NULL), MPSIM_OK);
    mpsim_block_grid(r, SIDE, SIDE, &rows, &cols);
    digest_bytes(d->codes, codes, sizeof codes);
    if (binary32)
        digest_binary32(d->scales, factors, rows * cols);
    else
        digest_bytes(d->scales, scales, rows * cols);
}

/* What the product reads: bf16 numbers, or those of codes, which are multiplied by their factors here. */
static void digest_values(digests *d, train *t, const train_placement *p, int role, int columns)
{
    const mpsim_block_recipe *r = p->recipe[roles[role]];
    float *v = tensor(t, words[role], columns ? ".qt" : ".q");
    if (p->promote) {
        mpsim_rounding nearest;
        float *f = tensor(t, words[role], columns ? ".qt.blocks" : ".q.blocks");
        const size_t across = (SIDE + r->block_cols - 1) / r->block_cols;
        for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
            v[i] *= f[i / SIDE / r->block_rows * across + i % SIDE / r->block_cols];
        mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
        ck_assert_int_eq(
            mpsim_round_array_f32(mpsim_format_find("bf16"), &nearest, NULL, v, v, (size_t)SIDE * SIDE, NULL),
            MPSIM_OK);
        free(f);
    }
    digest_bf16(d->values, v);
    free(v);
}

/* ---- a policy ---- */

static void open_run(train_run *r, const char *name)
{
    trace_error trouble;
    train_overrides o;
    train_settings s;
    policy p;
    char error[TRAIN_ERROR] = "", path[128];
    (void)snprintf(path, sizeof path, "data/policies/%s.yaml", name);
    train_settings_init(&s, "mlp");
    s.width = s.batch = SIDE;
    s.steps = STEPS;
    train_overrides_init(&o);
    o.lr = 2;
    ck_assert_msg(policy_load(&p, test_source_path(path), 0, &trouble) == 0, "%s", trouble.text);
    ck_assert_msg(train_run_of_policy(r, &p, &s, &o, error) == 0, "%s", error);
    policy_clear(&p);
}

static void same(const char *under, const char *operand, const char *what, const char *is, const char *should)
{
    ck_assert_msg(strcmp(is, should) == 0, "%s, %s: %s are %s, not %s", under, operand, what, is, should);
}

static void check_operand(train *t, const train_placement *p, const char *under, const char *operand,
                          const digests *want)
{
    int role = 0;
    digests is;
    const int columns = strstr(operand, ".qt") != NULL;
    while (strncmp(words[role], operand, strlen(words[role])) != 0)
        role++;
    float *x = source(t, p, role, 0), *of = source(t, p, role, columns);
    digest_bf16(is.x, x);
    digest_bf16(is.of, of);
    digest_codes(&is, p->recipe[roles[role]], of, role, columns);
    digest_values(&is, t, p, role, columns);
    same(under, operand, "the tensor's numbers", is.x, want->x);
    same(under, operand, "numbers to quantise", is.of, want->of);
    same(under, operand, "codes", is.codes, want->codes);
    same(under, operand, "scales", is.scales, want->scales);
    same(under, operand, "values", is.values, want->values);
    free(x);
    free(of);
}

/* Line `at` of the file's operands. */
static int line_of(size_t at, char under[40], char operand[16], digests *d)
{
    char line[256];
    int got = 0;
    FILE *f = fopen(test_source_path("data/vectors/blocks/layers.txt"), "r");
    ck_assert_ptr_nonnull(f);
    while (!got && fgets(line, sizeof line, f))
        if (strncmp(line, "layer ", 6) == 0 && at-- == 0)
            got = sscanf(line, "layer %39s %15s x=%16s of=%16s codes=%16s scales=%16s values=%16s", under, operand,
                         d->x, d->of, d->codes, d->scales, d->values);
    (void)fclose(f);
    return got == 7;
}

CASE("layers", 60);

TESTS(operands, POLICIES)
{
    char under[40], operand[16];
    digests want;
    train_run r;
    train_engine e;
    char error[TRAIN_ERROR] = "";
    train_step s;
    ck_assert(line_of((size_t)_i * LINES, under, operand, &want));
    open_run(&r, under);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(train_next(t, &s, error) == 0, "%s", error);
    ck_assert_str_eq(r.layers[2].name, "fc2");
    for (size_t i = 0; i < LINES; i++) {
        ck_assert(line_of((size_t)_i * LINES + i, under, operand, &want));
        check_operand(t, &r.plans[0].layers[2], under, operand, &want);
    }
    printf("# %s: %d operands, %d codes\n", under, (int)LINES, LINES * SIDE * SIDE);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

TEST(no_more_lines)
{
    char under[40], operand[16];
    digests d;
    ck_assert(!line_of((size_t)POLICIES * LINES, under, operand, &d));
}

TEST_MAIN("train-layers");
