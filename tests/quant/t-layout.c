/* t-layout.c -- quantised tensors as they lie in files (sim/quant) against what torchao stored and gave.
 *
 * data/vectors/blocks/layouts: grids.safetensors has scales before and after torchao's to_blocked, and codes before and
 * after its packing; torchao.safetensors a state dict of tensors that torchao quantised, expected.safetensors their
 * codes, a byte each, their scales in the plain order and what torchao dequantises. The files' own judges, of NumPy
 * alone, are in check_layouts.py beside them. */
#include "sim/quant/quant.h"

#include "support/recorded.h"
#include "support/stored.h"
#include "support/support.h"

#include <mpsim/format.h>
#include <mpsim/round.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define FOLDER "data/vectors/blocks/layouts/"

/* ---- recorded grids and packed codes ---- */

static size_t check_grid(recorded *r, const char *name)
{
    size_t n, stored;
    unsigned char *plain = recorded_bytes(r, name, "plain", &n), *blocked = recorded_bytes(r, name, "blocked", &stored);
    const uint64_t *shape = recorded_tensor(r, name, "plain")->shape;
    unsigned char *to = calloc(stored, 1);
    size_t twice = 0;
    ck_assert(to && quant_up(shape[0], 128) * quant_up(shape[1], 4) * 512 == stored);
    for (uint64_t o = 0; o < shape[0]; o++)
        for (uint64_t i = 0; i < shape[1]; i++) {
            const uint64_t at = quant_swizzled_index(o, i, shape[1]);
            twice += at >= stored || to[at] != 0;
            to[at < stored ? at : 0] = plain[o * shape[1] + i]; /* none is 0 */
        }
    ck_assert_msg(twice == 0 && memcmp(to, blocked, stored) == 0, "%s: the swizzled order differs", name);
    free(plain);
    free(blocked);
    free(to);
    return stored;
}

static size_t check_packing(recorded *r, const char *name, quant_packing p)
{
    size_t n, stored;
    unsigned char *plain = recorded_bytes(r, name, "plain", &n), *packed = recorded_bytes(r, name, "packed", &stored);
    unsigned char *to = malloc(stored), *back = malloc(n);
    ck_assert(to && back && quant_packed(p, n) == stored);
    quant_pack(p, to, plain, n);
    quant_unpack(p, back, packed, n);
    ck_assert_msg(memcmp(to, packed, stored) == 0 && memcmp(back, plain, n) == 0, "%s differs", name);
    free(plain);
    free(packed);
    free(to);
    free(back);
    return stored;
}

CASE("recorded", 60);

TEST(recorded_grids)
{
    recorded *r = recorded_open(FOLDER "grids.safetensors");
    size_t grids = 0, bytes = 0;
    for (size_t i = 0; i < recorded_count(r); i++)
        if (strncmp(recorded_case(r, i), "swizzle-", 8) == 0) {
            bytes += check_grid(r, recorded_case(r, i));
            grids++;
        }
    ck_assert(grids >= 8);
    const size_t four = check_packing(r, "pack4", QUANT_NIBBLES), six = check_packing(r, "pack6", QUANT_SIXES_TORCHAO);
    printf("# %zu grids of scales, %zu bytes; %zu bytes of packed codes: equal to torchao's\n", grids, bytes,
           four + six);
    recorded_close(r);
}

/* ---- packing of any number of codes ---- */

/* Four codes of six bits in three bytes, the first in the lowest bits: by hand, a bit at a time. */
static void sixes(unsigned char *to, const unsigned char *codes, size_t n)
{
    memset(to, 0, (6 * n + 7) / 8);
    for (size_t bit = 0; bit < 6 * n; bit++)
        to[bit / 8] |= (unsigned char)((codes[bit / 6] >> bit % 6 & 1) << bit % 8);
}

CASE("packing", 60);

TEST(packing)
{
    enum { MOST = 67 };
    static const quant_packing all[] = {QUANT_BYTES, QUANT_NIBBLES, QUANT_SIXES, QUANT_SIXES_TORCHAO};
    static const unsigned char mask[] = {255, 15, 63, 63};
    uint64_t state = test_seed();
    for (size_t p = 0; p < COUNT(all); p++)
        for (size_t n = 0; n <= MOST; n++) {
            unsigned char codes[MOST + 1], to[2 * MOST], back[MOST + 1], want[2 * MOST];
            memset(to, 0xaa, sizeof to);
            for (size_t i = 0; i < n; i++)
                codes[i] = (unsigned char)test_random(&state) & mask[p];
            const size_t bytes = (size_t)quant_packed(all[p], n);
            quant_pack(all[p], to, codes, n);
            quant_unpack(all[p], back, to, n);
            ck_assert_msg(memcmp(back, codes, n) == 0, "%s: %zu codes", quant_packing_name(all[p]), n);
            ck_assert(to[bytes] == 0xaa);
            if (all[p] == QUANT_SIXES) {
                sixes(want, codes, n);
                ck_assert(bytes == (6 * n + 7) / 8 && memcmp(to, want, bytes) == 0);
            }
        }
}

/* ---- what torchao stored ---- */

/* A tensor of the state dict; the element of those whose dtype is U8. */
static const struct {
    const char *name, *type, *element, *scale;
    int swizzled;
} tensors[] = {{"mxfp8.weight", "MXTensor", "e4m3", "e8m0", 0},
               {"mxfp8_rceil.weight", "MXTensor", "e4m3", "e8m0", 0},
               {"mxfp8_e5m2.weight", "MXTensor", "e5m2", "e8m0", 0},
               {"mxfp6_e2m3.weight", "MXTensor", "e2m3", "e8m0", 0},
               {"mxfp6_e3m2.weight", "MXTensor", "e3m2", "e8m0", 0},
               {"mxfp4.weight", "MXTensor", "e2m1", "e8m0", 0},
               {"mxfp8_swizzled.weight", "MXTensor", "e4m3", "e8m0", 1},
               {"mxfp4_swizzled.weight", "MXTensor", "e2m1", "e8m0", 1},
               {"mxfp8_experts.weight", "MXTensor", "e4m3", "e8m0", 0},
               {"nvfp4.weight", "NVFP4Tensor", "e2m1", "e4m3", 0},
               {"nvfp4_1level.weight", "NVFP4Tensor", "e2m1", "e4m3", 0},
               {"nvfp4_swizzled.weight", "NVFP4Tensor", "e2m1", "e4m3", 1},
               {"nvfp4_tall.weight", "NVFP4Tensor", "e2m1", "e4m3", 1},
               {"float8_row.weight", "Float8Tensor", "e4m3", "binary32", 0},
               {"float8_tensor.weight", "Float8Tensor", "e4m3", "binary32", 0},
               {"float8_block.weight", "Float8Tensor", "e4m3", "binary32", 0}};

static const quant_form *form_of(const char *type, const char *element)
{
    for (size_t i = 0; quant_form_at(i); i++)
        if (strcmp(quant_form_at(i)->type, type) == 0 && strcmp(quant_form_at(i)->layout, "torchao") == 0 &&
            quant_form_has(quant_form_at(i)->elements, element) && quant_form_at(i)->block_rows != 1 &&
            !quant_form_at(i)->view)
            return quant_form_at(i);
    for (size_t i = 0; quant_form_at(i); i++)
        if (strcmp(quant_form_at(i)->type, type) == 0 && strcmp(quant_form_at(i)->layout, "torchao") == 0 &&
            quant_form_has(quant_form_at(i)->elements, element))
            return quant_form_at(i);
    ck_abort_msg("no form for %s", type);
}

/* Of a code as it stands in a file. */
static float number_of(const char *format, const void *code)
{
    const mpsim_format *f = mpsim_format_find(format);
    const size_t bytes = mpsim_format_code_bytes(f);
    unsigned char own[8];
    memcpy(own, code, bytes);
    trace_to_little_endian(own, bytes, 1); /* and back */
    return (float)mpsim_decode(f, code_load(own, bytes));
}

static float bfloat16(float x)
{
    const mpsim_format *f = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, 0, NULL));
}

typedef struct tally {
    size_t codes, scales, values, wrong;
} tally;

/* Codes, scales and values of one tensor, from its parts. */
static void check_tensor(const stored_file *s, recorded *want, size_t which, tally *t)
{
    const char *name = tensors[which].name;
    const quant_form *f = form_of(tensors[which].type, tensors[which].element);
    stored_tensor found;
    const unsigned char *data[QUANT_PARTS];
    quant_shape shapes[QUANT_PARTS];
    quant_geometry g;
    char why[256], part_name[64], back[64];
    for (quant_part p = 0; p < QUANT_PARTS; p++) {
        data[p] = NULL;
        if (quant_part_name(f, p, name, part_name, sizeof part_name) >= 0) {
            data[p] = stored_find(s, part_name, &found) ? found.data : NULL;
            shapes[p].rank = found.rank;
            memcpy(shapes[p].sides, found.sides, sizeof found.sides);
            ck_assert(quant_part_of(f, p, part_name, back, sizeof back) && strcmp(back, name) == 0);
        }
    }
    ck_assert(data[QUANT_CODES] && data[QUANT_SCALES]);
    ck_assert_msg(quant_geometry_from(&g, f, &shapes[0], &shapes[1], tensors[which].swizzled, 1, why, sizeof why) == 0,
                  "%s: %s", name, why);
    size_t n, scale_bytes, values = 0;
    unsigned char *codes = recorded_bytes(want, name, "codes", &n), *line = malloc((size_t)g.cols);
    unsigned char *scales = recorded_bytes(want, name, "scale", &scale_bytes);
    float *dq = recorded_floats(want, name, "dq", &values), *x = recorded_floats(want, name, "x", &values);
    const size_t each = mpsim_format_code_bytes(mpsim_format_find(tensors[which].scale));
    const float tensor = data[QUANT_TENSOR_SCALE] ? number_of("binary32", data[QUANT_TENSOR_SCALE]) : 1;
    ck_assert(n == g.rows * g.cols && scale_bytes == g.grid_rows * g.grid_cols * each && line);
    for (uint64_t i = 0; i < g.rows; i++) {
        quant_unpack(f->packing, line, data[QUANT_CODES] + i * g.line_bytes, (size_t)g.cols);
        t->wrong += memcmp(line, codes + i * g.cols, (size_t)g.cols) != 0;
        for (uint64_t j = 0; j < g.cols; j++) {
            const uint64_t bi = i / g.block_rows, bj = j / g.block_cols;
            const unsigned char *scale = data[QUANT_SCALES] + quant_scale_at(&g, bi, bj) * each;
            t->wrong += memcmp(scale, scales + (bi * g.grid_cols + bj) * each, each) != 0;
            if (!dq)
                continue;
            float value = number_of(tensors[which].element, &line[j]) *
                          quant_factor(f, number_of(tensors[which].scale, scale), tensor);
            if (strcmp(tensors[which].type, "MXTensor") == 0) /* dequantised in bfloat16 */
                value = bfloat16(value);
            t->wrong += !recorded_same(value, dq[i * g.cols + j]);
            t->values++;
        }
    }
    t->codes += n;
    t->scales += g.grid_rows * g.grid_cols;
    free(codes);
    free(line);
    free(scales);
    free(dq);
    free(x);
}

CASE("recorded", 60);

TEST(torchao_state)
{
    stored_file s = stored_open(test_source_path(FOLDER "torchao.safetensors"));
    recorded *want = recorded_open(FOLDER "expected.safetensors");
    tally t = {0};
    for (size_t i = 0; i < COUNT(tensors); i++)
        check_tensor(&s, want, i, &t);
    printf("# %zu tensors of torchao: %zu codes, %zu scales, %zu values, %zu differ\n", COUNT(tensors), t.codes,
           t.scales, t.values, t.wrong);
    ck_assert(t.wrong == 0 && t.values > 3000);
    recorded_close(want);
    stored_close(&s);
}

TEST_MAIN("quant layouts");
