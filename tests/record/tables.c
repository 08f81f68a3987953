/* tables.c -- autocast, attention and trainings of devices: types and distances, beside mpsim's. */
#include "device.h"

#include "support/support.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

/* ---- autocast ---- */

/* What policies and trainings take it for: operations work in the low type, in binary32, as they
 * come, or in the widest type of their operands. */
enum { LOW, WIDE, GIVEN };
static const struct operation {
    const char *name;
    int type;
} operations[] = {
    {"matmul", LOW},
    {"mm", LOW},
    {"bmm", LOW},
    {"addmm", LOW},
    {"linear", LOW},
    {"einsum", LOW},
    {"conv2d", LOW},
    {"scaled_dot_product_attention", LOW},
    {"add", GIVEN},
    {"mul", GIVEN},
    {"div", GIVEN},
    {"add mixed", WIDE},
    {"cat mixed", WIDE},
    {"relu", GIVEN},
    {"gelu", GIVEN},
    {"silu", GIVEN},
    {"sigmoid", GIVEN},
    {"tanh", GIVEN},
    {"exp", WIDE},
    {"log", WIDE},
    {"pow", WIDE},
    {"rsqrt", WIDE},
    {"softmax", WIDE},
    {"log_softmax", WIDE},
    {"layer_norm", WIDE},
    {"group_norm", WIDE},
    {"cross_entropy", WIDE},
    {"nll_loss", WIDE},
    {"mse_loss", WIDE},
    {"l1_loss", WIDE},
    {"sum", WIDE},
    {"cumsum", WIDE},
    {"prod", WIDE},
    {"norm", WIDE},
    {"mean", GIVEN},
    {"max_pool2d", GIVEN},
    {"avg_pool2d", GIVEN},
    {"embedding", GIVEN},
    {"dropout", GIVEN},
    {"batch_norm", GIVEN},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

void device_autocast(const json_t *head, const json_t *c, char *answer)
{
    char name[64], given[32], low[32], inside[100] = "";
    size_t k = 0;
    (void)head;
    const char *of = strstr(device_text(c, "case"), " of ");
    if (!of || sscanf(of, " of %31s under %31s", given, low) != 2) {
        device_say(answer, "not understood");
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)(of - device_text(c, "case")), device_text(c, "case"));
    while (k < OPERATIONS && strcmp(operations[k].name, name) != 0)
        k++;
    const json_t *types = json_object_get(c, "types");
    for (size_t i = 0; i < json_array_size(types); i++)
        snprintf(inside + strlen(inside), sizeof inside - strlen(inside), " %s",
                 json_string_value(json_array_get(types, i)));
    const char *want = k == OPERATIONS              ? ""
                       : operations[k].type == LOW  ? low
                       : operations[k].type == WIDE ? "float32"
                                                    : given;
    device_say(answer, "%s: %s, inside%s",
               k == OPERATIONS                               ? "open"
               : strcmp(want, device_text(c, "result")) == 0 ? "fits"
                                                             : "none fits",
               device_text(c, "result"), inside);
}

/* ---- attention ---- */

enum { ROWS = 128, WIDTH = 64, TILE = 64, KEYS = 4096 };

/* q, k, v of the first head: rows of the type that was asked for last. */
static float head_rows[3][KEYS][WIDTH];

static void draw_head(const char *type, size_t rows)
{
    static char drawn[32];
    static size_t have;
    if (strcmp(drawn, type) == 0 && have >= rows)
        return;
    for (size_t which = 0; which < 3; which++)
        for (size_t i = 0; i < rows * WIDTH; i++)
            head_rows[which][i / WIDTH][i % WIDTH] = device_number(type, -3, 1, 60 + which, i);
    snprintf(drawn, sizeof drawn, "%s", type);
    have = rows;
}

static float dot(size_t row, size_t key)
{
    float s = 0;
    for (size_t i = 0; i < WIDTH; i++)
        s = fmaf(head_rows[0][row][i], head_rows[1][key][i], s);
    return s;
}

/* One element of softmax(q k / 8) v in binary64, over the first `keys` rows. */
static double truth(size_t row, size_t column, size_t keys)
{
    static double s[KEYS];
    double sum = 0, result = 0, largest = -HUGE_VAL;
    for (size_t j = 0; j < keys; j++) {
        s[j] = 0;
        for (size_t i = 0; i < WIDTH; i++)
            s[j] += (double)head_rows[0][row][i] * (double)head_rows[1][j][i];
        s[j] /= 8;
        largest = fmax(largest, s[j]);
    }
    for (size_t j = 0; j < keys; j++) {
        const double e = exp(s[j] - largest);
        sum += e;
        result += e * (double)head_rows[2][j][column];
    }
    return result / sum;
}

/* The products P V of a tile, added to o as chains of fma. */
static void add_values(const mpsim_causal_tile *t, const float *p, float *o)
{
    for (size_t i = t->first; i < t->c.length; i++)
        for (size_t k = 0; k < WIDTH; k++)
            for (size_t j = 0; j < t->cols; j++)
                o[i * WIDTH + k] = fmaf(p[(i - t->first) * t->cols + j], head_rows[2][t->first + j][k],
                                        o[i * WIDTH + k]);
}

/* The first rows of causal attention in tiles of mpsim. */
static void tiles(const char *type, size_t length, float y[ROWS][WIDTH])
{
    static float s[ROWS * TILE], p[ROWS * TILE], o[ROWS * WIDTH], lse[ROWS], max[ROWS], sum[ROWS];
    mpsim_causal_tile t = {
        .c = {.matrices = 1, .length = length, .scale = 0.125f, .f = device_format(type)}, .size = WIDTH, .p_scale = 1};
    memset(o, 0, sizeof o);
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < length; i++)
        max[i] = -INFINITY;
    for (t.first = 0; t.first < length; t.first += TILE) {
        t.cols = length - t.first < TILE ? length - t.first : TILE;
        for (size_t i = t.first; i < length; i++)
            for (size_t j = 0; j < t.cols; j++)
                s[(i - t.first) * t.cols + j] = dot(i, t.first + j);
        device_need(mpsim_causal_tile_forward(&t, p, o, max, sum, s) == MPSIM_OK);
        add_values(&t, p, o);
    }
    device_need(mpsim_causal_tile_end(&t, y[0], lse, o, max, sum) == MPSIM_OK);
}

void device_attention(const json_t *head, const json_t *c, char *answer)
{
    static float y[ROWS][WIDTH];
    char kind[32], type[32], tile[60] = "";
    const char *words = device_text(c, "d");
    const size_t length = (size_t)device_integer(c, "length");
    const double size = json_number_value(json_object_get(c, "size"));
    const int causal = json_is_true(json_object_get(c, "causal"));
    double theirs = 0, ours = 0;
    (void)head;
    if (sscanf(device_text(c, "case"), "%31s %31s", kind, type) != 2 || !device_format(type) ||
        device_integer(c, "width") != WIDTH || length == 0 || length > KEYS || !*words) {
        device_say(answer, "not understood");
        return;
    }
    draw_head(type, length);
    if (causal)
        tiles(type, length < ROWS ? length : ROWS, y);
    for (size_t i = 0; i < device_codes(words); i++) {
        const size_t at = device_place(c, i), row = at / WIDTH, column = at % WIDTH;
        const double exact = truth(row, column, causal ? row + 1 : length);
        const double got = mpsim_decode(device_format(type), device_code(words, i));
        theirs = fmax(theirs, isfinite(got) ? fabs(got - exact) : (double)INFINITY);
        ours = fmax(ours, causal ? fabs((double)y[row][column] - exact) : 0);
    }
    if (causal)
        snprintf(tile, sizeof tile, ", mpsim's tiles by %.2g", ours / size);
    device_say(answer, "apart from binary64 by %.2g%s (all: %.2g, rms %.2g)", theirs / size, tile,
               json_number_value(json_object_get(c, "largest")), json_number_value(json_object_get(c, "rms")));
}

/* ---- trainings ---- */

/* What losses and gradients may be apart: the bounds of train_gpt.py. */
static const struct {
    const char *policy;
    double loss, gradient;
} bounds[] = {{"fp32", 1e-6, 5e-6}, {"pytorch-amp-bf16", 5e-5, 1e-2}, {"pytorch-amp-fp16", 1e-5, 2e-3}};

void device_training(const json_t *head, const json_t *c, char *answer)
{
    const json_t *all = json_object_get(c, "steps");
    double loss = 0, gradient = 0;
    size_t k = 0;
    (void)head;
    while (k < 3 && !strstr(device_text(c, "case"), bounds[k].policy))
        k++;
    if (k == 3 || json_array_size(all) == 0) {
        device_say(answer, "not understood");
        return;
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *s = json_array_get(all, i);
        const double want = json_number_value(json_object_get(s, "mpsim"));
        loss = fmax(loss, fabs(json_number_value(json_object_get(s, "here")) - want) / want);
        loss = fmax(loss, fabs(json_number_value(json_object_get(s, "with its weights")) - want) / want);
        gradient = fmax(gradient, json_number_value(json_object_get(s, "gradients")));
    }
    device_say(answer, "%s: losses apart by %.1e, gradients by %.1e",
               gradient > bounds[k].gradient ? "none fits"
               : loss <= bounds[k].loss      ? "fits"
                                             : "fits in gradients alone",
               loss, gradient);
}
