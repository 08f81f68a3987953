/* t-form.c -- the table of layouts of quantised tensors and what follows from it (sim/quant): shapes of parts by hand,
 * as the sources of the table's rows compute them; every scale of every form has a place of its own; from the parts'
 * shapes back to the tensor's; names and back; shapes that are anything. Against torchao's own files: t-layout.c. */
#include "sim/quant/describe.h"

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static char why[1024];

static const char *shape_text(const quant_shape *s)
{
    static char text[2][160];
    static int turn;
    char *to = text[turn ^= 1];
    size_t n = (size_t)snprintf(to, sizeof text[0], "[");
    for (size_t i = 0; i < s->rank; i++)
        n += (size_t)snprintf(to + n, sizeof text[0] - n, "%s%llu", i ? " " : "", (unsigned long long)s->sides[i]);
    snprintf(to + n, sizeof text[0] - n, "]");
    return to;
}

/* ---- shapes by hand ---- */

static const struct {
    const char *layout, *element, *scale;
    uint32_t block_rows, block_cols;
    int tensor_scale, swizzled;
    size_t rank;
    uint64_t shape[3];
    const char *codes, *scales, *tensor;
} by_hand[] = {
    {"plain", "e4m3", "e8m0", 1, 32, 0, 0, 2, {3, 40}, "[3 40]", "[3 2]", "[]"},
    {"plain", "e2m1", "e4m3", 1, 16, 1, 0, 2, {3, 41}, "[3 21]", "[3 3]", "[]"},
    {"plain", "e3m2", "e8m0", 1, 32, 0, 0, 2, {3, 41}, "[3 31]", "[3 2]", "[]"},
    {"plain", "e4m3", "e8m0", 32, 1, 0, 0, 2, {65, 7}, "[65 7]", "[3 7]", "[]"},
    {"plain", "e4m3", "e8m0", 1, 32, 0, 1, 2, {129, 160}, "[129 160]", "[64 32]", "[]"},
    {"plain", "e4m3", "e8m0", 32, 1, 0, 1, 2, {160, 129}, "[160 129]", "[64 32]", "[]"},
    {"plain", "e2m1", "e4m3", 16, 16, 1, 1, 2, {130, 65}, "[130 33]", "[64 32]", "[]"},
    {"plain", "e4m3", "binary32", QUANT_WHOLE, QUANT_WHOLE, 0, 0, 3, {2, 5, 7}, "[2 5 7]", "[1 1]", "[]"},
    {"torchao", "e4m3", "e8m0", 1, 32, 0, 0, 3, {2, 4, 64}, "[2 4 64]", "[2 4 2]", NULL},
    {"torchao", "e2m1", "e8m0", 1, 32, 0, 1, 2, {33, 160}, "[33 80]", "[32 32]", NULL},
    {"torchao", "e4m3", "e8m0", 1, 32, 0, 1, 3, {2, 256, 64}, "[2 256 64]", "[2 64 16]", NULL},
    {"torchao", "e2m1", "e4m3", 16, 16, 1, 0, 2, {32, 48}, "[32 24]", "[32 3]", "[]"},
    {"torchao", "e4m3", "binary32", 1, QUANT_WHOLE, 0, 0, 2, {7, 24}, "[7 24]", "[7 1]", NULL},
    {"torchao", "e4m3", "binary32", 8, 16, 0, 0, 2, {16, 32}, "[16 32]", "[2 2]", NULL},
    {"te", "e4m3", "e8m0", 1, 32, 0, 0, 2, {160, 64}, "[160 64]", "[256 4]", NULL},
    {"te", "e4m3", "e8m0", 32, 1, 0, 0, 2, {160, 64}, "[160 64]", "[8 128]", NULL},
    {"te", "e2m1", "e4m3", 1, 16, 1, 0, 2, {160, 64}, "[160 32]", "[256 4]", "[1]"},
    {"te", "e2m1", "e4m3", 16, 1, 1, 0, 2, {160, 64}, "[64 80]", "[128 12]", "[1]"},
    {"te", "e4m3", "binary32", 1, 128, 0, 0, 2, {384, 256}, "[384 256]", "[2 384]", NULL},
    {"te", "e4m3", "binary32", 128, 1, 0, 0, 2, {384, 256}, "[256 384]", "[3 256]", NULL},
    {"te", "e4m3", "binary32", 128, 128, 0, 0, 2, {384, 256}, "[384 256]", "[3 4]", NULL},
    {"te", "e4m3", "binary32", QUANT_WHOLE, QUANT_WHOLE, 0, 0, 2, {5, 7}, "[5 7]", "[1]", NULL},
    {"compressed-tensors", "e2m1", "e4m3", 1, 16, 1, 0, 2, {3, 32}, "[3 16]", "[3 2]", "[1]"},
    {"compressed-tensors", "e2m3", "e8m0", 1, 32, 0, 0, 2, {3, 64}, "[3 48]", "[3 2]", NULL},
    {"compressed-tensors", "e4m3", "binary32", QUANT_WHOLE, QUANT_WHOLE, 0, 0, 2, {3, 64}, "[3 64]", "[1]", NULL},
    {"compressed-tensors", "e4m3", "binary32", 128, 128, 0, 0, 2, {200, 300}, "[200 300]", "[2 3]", NULL},
    {"modelopt", "e2m1", "e4m3", 1, 16, 1, 0, 2, {3, 32}, "[3 16]", "[3 2]", "[]"},
    {"modelopt", "e4m3", "binary32", QUANT_WHOLE, QUANT_WHOLE, 0, 0, 2, {3, 64}, "[3 64]", "[]", NULL},
    {"deepseek", "e4m3", "binary32", 128, 128, 0, 0, 2, {576, 7168}, "[576 7168]", "[5 56]", NULL},
    {"deepseek", "e4m3", "e8m0", 128, 128, 0, 0, 2, {576, 7168}, "[576 7168]", "[5 56]", NULL},
    {"deepseek", "e2m1", "e8m0", 1, 32, 0, 0, 2, {8, 64}, "[8 32]", "[8 2]", NULL},
    {"gpt-oss", "e2m1", "e8m0", 1, 32, 0, 0, 3, {4, 6, 96}, "[4 6 3 16]", "[4 6 3]", NULL},
};

CASE("table", 60);

TEST(shapes)
{
    for (size_t i = 0; i < COUNT(by_hand); i++) {
        quant_geometry g;
        const quant_form *f = quant_form_find(by_hand[i].layout, by_hand[i].element, by_hand[i].scale,
                                              by_hand[i].block_rows, by_hand[i].block_cols, by_hand[i].tensor_scale,
                                              why, sizeof why);
        ck_assert_msg(f != NULL, "%zu: %s", i, why);
        ck_assert_msg(quant_geometry_of(&g, f, by_hand[i].rank, by_hand[i].shape, by_hand[i].block_rows,
                                        by_hand[i].block_cols, by_hand[i].swizzled, why, sizeof why) == 0,
                      "%zu: %s", i, why);
        ck_assert_msg(strcmp(shape_text(&g.parts[QUANT_CODES]), by_hand[i].codes) == 0, "%zu: codes %s", i,
                      shape_text(&g.parts[QUANT_CODES]));
        ck_assert_msg(strcmp(shape_text(&g.parts[QUANT_SCALES]), by_hand[i].scales) == 0, "%zu: scales %s", i,
                      shape_text(&g.parts[QUANT_SCALES]));
        ck_assert((f->tensor_scale != QUANT_NONE) == (by_hand[i].tensor != NULL));
        if (by_hand[i].tensor)
            ck_assert(strcmp(shape_text(&g.parts[QUANT_TENSOR_SCALE]), by_hand[i].tensor) == 0);
        ck_assert(g.lines * g.line_bytes == g.parts[QUANT_CODES].count);
    }
}

/* ---- any shape of any form ---- */

static uint32_t side(uint32_t own, uint64_t *state)
{
    return own == QUANT_ANY ? (uint32_t)1 << test_random(state) % 8 : own;
}

/* A shape that the form may have. */
static size_t draw(const quant_form *f, uint32_t rows, uint32_t cols, uint64_t *state, uint64_t *shape)
{
    const uint64_t down = f->multiple_rows ? f->multiple_rows : rows ? rows : 1;
    const uint64_t across = f->multiple_cols ? f->multiple_cols : cols ? cols : 1;
    const size_t rank = f->rank > 2 && f->block_rows == 1 && test_random(state) % 4 == 0 ? 3 : 2;
    shape[0] = 1 + test_random(state) % 3;
    shape[rank - 2] = down * (1 + test_random(state) % (300 / down + 1));
    shape[rank - 1] = across * (1 + test_random(state) % (300 / across + 1));
    return rank;
}

/* Every block has a place of its own in the part. */
static size_t check_places(const quant_geometry *g)
{
    const uint64_t n = g->parts[QUANT_SCALES].count;
    unsigned char *taken = calloc((size_t)n + 1, 1);
    size_t wrong = 0;
    ck_assert(taken != NULL && n >= g->grid_rows * g->grid_cols);
    for (uint64_t i = 0; i < g->grid_rows; i++)
        for (uint64_t j = 0; j < g->grid_cols; j++) {
            const uint64_t at = quant_scale_at(g, i, j);
            wrong += at >= n || taken[at];
            taken[at < n ? at : n] = 1;
        }
    free(taken);
    ck_assert_msg(wrong == 0, "%s %s: %zu places", g->form->layout, g->form->type, wrong);
    return (size_t)(g->grid_rows * g->grid_cols);
}

TEST(places)
{
    uint64_t state = test_seed() + 1;
    size_t scales = 0, tensors = 0;
    for (size_t i = 0; quant_form_at(i); i++)
        for (size_t k = 0; k < test_scaled(60); k++) {
            const quant_form *f = quant_form_at(i);
            const uint32_t rows = side(f->block_rows, &state), cols = side(f->block_cols, &state);
            const int swizzled = f->swizzle && k % 2;
            uint64_t shape[3];
            quant_geometry g, back;
            const size_t rank = draw(f, rows, cols, &state, shape);
            if (quant_geometry_of(&g, f, rank, shape, rows, cols, swizzled, why, sizeof why)) {
                ck_assert_msg(swizzled && rank == 3 && shape[1] % 128, "%s", why);
                continue;
            }
            scales += check_places(&g);
            tensors++;
            const int odd = g.line_codes % 4 != 0 && f->packing != QUANT_BYTES;
            if (f->block_rows == QUANT_ANY || f->block_cols == QUANT_ANY || odd)
                continue; /* shapes alone do not tell */
            ck_assert_msg(quant_geometry_from(&back, f, &g.parts[0], &g.parts[1], swizzled, 1, why, sizeof why) == 0,
                          "%s %s: %s", f->layout, f->type, why);
            if (f->code_shape != QUANT_TRANSPOSED || rank == 2)
                ck_assert(strcmp(shape_text(&back.tensor), shape_text(&g.tensor)) == 0);
            ck_assert(back.grid_rows == g.grid_rows && back.grid_cols == g.grid_cols);
            if (back.parts[QUANT_SCALES].rank == 0)
                continue;
            back.parts[QUANT_SCALES].sides[0]++;
            const quant_shape other = back.parts[QUANT_SCALES];
            ck_assert(quant_geometry_from(&back, f, &g.parts[0], &other, swizzled, 1, why, sizeof why) == -1);
        }
    printf("# %zu tensors of every form, %zu scales in places of their own\n", tensors, scales);
}

/* Shapes from a file may be anything. */
TEST(absurd)
{
    static const uint64_t sides[] = {0,         1, 2, 31, 32, 33, 128, UINT32_MAX, UINT64_C(1) << 56, UINT64_MAX / 2,
                                     UINT64_MAX};
    uint64_t state = test_seed() + 2;
    for (size_t i = 0; quant_form_at(i); i++)
        for (size_t k = 0; k < test_scaled(2000); k++) {
            quant_shape codes = {0}, scales = {0};
            quant_geometry g;
            codes.rank = test_random(&state) % 6;
            scales.rank = test_random(&state) % 5;
            for (size_t d = 0; d < 6; d++) {
                codes.sides[d] = sides[test_random(&state) % COUNT(sides)];
                scales.sides[d] = sides[test_random(&state) % COUNT(sides)];
            }
            if (quant_geometry_from(&g, quant_form_at(i), &codes, &scales, k % 2, k % 3 != 0, why, sizeof why) == 0 &&
                g.grid_rows && g.grid_cols)
                ck_assert(quant_scale_at(&g, g.grid_rows - 1, g.grid_cols - 1) < g.parts[QUANT_SCALES].count);
        }
}

/* ---- names, and what is found ---- */

TEST(names)
{
    static const char *const given[] = {"layers.0.weight", "w", "a.b", "_x._y", "model.norm_scale.weight"};
    char stored[128], back[128];
    for (size_t i = 0; quant_form_at(i); i++)
        for (quant_part p = 0; p < QUANT_PARTS; p++)
            for (size_t k = 0; k < COUNT(given); k++) {
                const quant_form *f = quant_form_at(i);
                const int n = quant_part_name(f, p, given[k], stored, sizeof stored);
                if (n < 0) {
                    ck_assert((p == QUANT_TENSOR_SCALE && f->tensor_scale == QUANT_NONE) ||
                              (f->prefix && !strchr(given[k], '.')) || (f->sibling && !strstr(given[k], ".weight")));
                    continue;
                }
                ck_assert_msg(quant_part_of(f, p, stored, back, sizeof back) && strcmp(back, given[k]) == 0, "%s: %s",
                              f->layout, stored);
            }
    const quant_form *t = quant_layout_find("torchao");
    ck_assert(quant_part_name(t, QUANT_CODES, "0.weight", stored, sizeof stored) == 15);
    ck_assert_str_eq(stored, "0._weight_qdata");
    ck_assert(!quant_part_of(t, QUANT_CODES, "0._qdata", back, sizeof back));
    ck_assert(!quant_part_of(t, QUANT_CODES, "0.weight_qdata", back, sizeof back));
    ck_assert(!quant_part_of(t, QUANT_CODES, "0._weight_qdata", back, 8));
    const quant_form *v4 = quant_form_find("deepseek", "e2m1", "e8m0", 1, 32, 0, stored, sizeof stored);
    ck_assert(quant_part_name(v4, QUANT_SCALES, "0.w1.weight", stored, sizeof stored) == 10);
    ck_assert_str_eq(stored, "0.w1.scale");
    ck_assert(!quant_part_of(v4, QUANT_SCALES, "0.w1.rescale", back, sizeof back));
    ck_assert(!quant_part_of(v4, QUANT_SCALES, "scale", back, sizeof back));
}

TEST(found)
{
    ck_assert(!quant_form_find("gpt-oss", "e4m3", "e8m0", 1, 32, 0, why, sizeof why));
    ck_assert_str_eq(why, "gpt-oss holds e2m1 with e8m0 scales in blocks of 1x32");
    ck_assert(!quant_form_find("deepseek", "e4m3", "binary32", 1, 128, 0, why, sizeof why));
    ck_assert(!quant_form_find("nowhere", "e4m3", "binary32", 1, 128, 0, why, sizeof why));
    const quant_form *f = quant_form_find("torchao", "e4m3", "binary32", 128, 128, 0, why, sizeof why);
    ck_assert(f && f->block_rows == QUANT_ANY);
    size_t layouts = 0;
    for (; quant_layout_at(layouts); layouts++)
        ck_assert(quant_layout_find(quant_layout_at(layouts)->layout) == quant_layout_at(layouts));
    ck_assert(layouts == 7);
}

/* ---- metadata ---- */

CASE("metadata", 10);

TEST(described)
{
    quant_description d = {.layout = "plain",
                           .recipe = "nvfp4",
                           .element = "e2m1",
                           .scale = "e4m3",
                           .rank = 3,
                           .shape = {2, 3, 40},
                           .block_rows = 1,
                           .block_cols = 16,
                           .columns = 1,
                           .swizzled = 1,
                           .tensor_scale = 1,
                           .transform = 16},
                      back;
    char *text = quant_describe(&d);
    ck_assert_str_eq(
        text, "{\"layout\":\"plain\",\"recipe\":\"nvfp4\",\"element\":\"e2m1\",\"scale\":\"e4m3\",\"shape\":[2,3,40],"
              "\"block\":[1,16],\"axis\":\"columns\",\"packing\":\"nibbles\",\"scales\":\"swizzled\","
              "\"tensor_scale\":\"multiply\",\"transform\":16}");
    ck_assert(quant_described(&back, text, why, sizeof why) == 0);
    ck_assert(memcmp(&back, &d, sizeof d) == 0);
    for (size_t n = strlen(text); n-- > 0;) { /* every beginning of it */
        text[n] = '\0';
        ck_assert(quant_described(&back, text, why, sizeof why) == -1);
    }
    free(text);
    static const char *const bad[] = {"", "[]", "{}", "{\"layout\":7}", "null", "\"\""};
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert(quant_described(&back, bad[i], why, sizeof why) == -1);
}

TEST_MAIN("quant forms");
