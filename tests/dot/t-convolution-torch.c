/* t-convolution-torch.c -- convolutions of bf16 images and their gradients as torch gave them on a CPU with AVX512-BF16
 * (data/vectors/onednn): one chain of pairs for each number, or the chunks that the record says. */
#include "sim/verify/kinds.h"
#include "support/support.h"

#include <mpsim/convolution.h>
#include <mpsim/dot.h>
#include <mpsim/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 9 };

typedef struct image {
    size_t first, channels, rows, columns; /* images or outputs, channels, ... */
    uint16_t *codes;
} image;

typedef struct convolution {
    char kind[10], memory[6];
    unsigned threads;
    size_t images, channels, outputs, rows, columns, down, across, stride, padding, chunk, row_multiple;
    uint64_t digest;
    image x, w, dy; /* dy also for y */
} convolution;

static size_t numbers_in(const image *t)
{
    return t->first * t->channels * t->rows * t->columns;
}

static uint16_t *code_at(const image *t, size_t first, size_t channel, size_t row, size_t column)
{
    return t->codes + ((first * t->channels + channel) * t->rows + row) * t->columns + column;
}

/* ---- operands: see record_convolutions.py ---- */

/* From 2^-6 to 2^7, of both signs. */
static void make(image *t, uint64_t *state)
{
    t->codes = malloc((numbers_in(t) + 1) * sizeof *t->codes);
    ck_assert(t->codes);
    for (size_t i = 0; i < numbers_in(t); i++) {
        const uint64_t w = verify_kinds_word(state);
        t->codes[i] = (uint16_t)((w & 0x807f) | (121 + (w >> 20) % 13) << 7);
    }
}

/* Channels of the second half are those of the first, times `sign`. */
static void repeat_channels(image *t, int by_first, uint16_t sign)
{
    const size_t n = by_first ? t->first : t->channels, half = n / 2;
    const size_t others = by_first ? t->channels : t->first;
    for (size_t c = 0; c < half; c++)
        for (size_t o = 0; o < others; o++)
            for (size_t i = 0; i < t->rows * t->columns; i++) {
                uint16_t *to = by_first ? code_at(t, half + c, o, 0, i) : code_at(t, o, half + c, 0, i);
                *to = *(by_first ? code_at(t, c, o, 0, i) : code_at(t, o, c, 0, i)) ^ sign;
            }
}

static void repeat_columns(convolution *v)
{
    const size_t first = (v->padding + v->stride - 1) / v->stride, out = v->dy.columns;
    const size_t end = (v->columns + v->padding - v->across) / v->stride + 1, last = end < out ? end : out;
    const size_t half = (last - first) / 2;
    for (size_t i = 0; i < v->images * v->channels * v->rows; i++)
        for (size_t j = v->stride * half; j < v->columns; j++)
            v->x.codes[i * v->columns + j] = v->x.codes[i * v->columns + j % (v->stride * half)];
    for (size_t i = 0; i < v->images * v->outputs * v->dy.rows; i++)
        for (size_t j = 0; j < out; j++) {
            uint16_t *row = v->dy.codes + i * out;
            if (j < first || j >= first + 2 * half)
                row[j] = 0;
            else if (j >= first + half)
                row[j] = row[j - half] ^ 0x8000;
        }
}

static void make_operands(convolution *v)
{
    const size_t sizes[SIZES] = {v->images, v->channels, v->outputs, v->rows,   v->columns,
                                 v->down,   v->across,   v->stride,  v->padding};
    uint64_t state = v->images;
    for (int i = 1; i < SIZES; i++)
        state = state * 101 + sizes[i];
    v->x = (image){v->images, v->channels, v->rows, v->columns, NULL};
    v->w = (image){v->outputs, v->channels, v->down, v->across, NULL};
    v->dy = (image){v->images, v->outputs, (v->rows + 2 * v->padding - v->down) / v->stride + 1,
                    (v->columns + 2 * v->padding - v->across) / v->stride + 1, NULL};
    make(&v->x, &state);
    make(&v->w, &state);
    make(&v->dy, &state);
    if (strcmp(v->kind, "weight") == 0) {
        repeat_columns(v);
        return;
    }
    const int forward = strcmp(v->kind, "forward") == 0;
    repeat_channels(forward ? &v->x : &v->dy, 0, 0);
    repeat_channels(&v->w, !forward, 0x8000);
}

/* ---- the convolution ---- */

static mpsim_stack stack_of(const image *t)
{
    const int64_t plane = (int64_t)(t->rows * t->columns);
    return (mpsim_stack){.format = mpsim_format_find("bf16"),
                         .codes = t->codes,
                         .rank = 4,
                         .shape = {t->first, t->channels, t->rows, t->columns},
                         .strides = {(int64_t)t->channels * plane, plane, (int64_t)t->columns, 1}};
}

static uint64_t digest_of(const image *t)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < numbers_in(t); i++)
        h = (h ^ t->codes[i]) * 0x100000001b3;
    return h;
}

/* `other`: channels first as if they came last, and the other way round; chunks as if there were none. */
static uint64_t result_of(const convolution *v, int other)
{
    const int forward = strcmp(v->kind, "forward") == 0, input = strcmp(v->kind, "input") == 0;
    const int last = (strcmp(v->memory, "nhwc") == 0) != other;
    image d = forward ? v->dy : input ? v->x : v->w;
    char name[64];
    mpsim_model m;
    mpsim_operand a, b;
    mpsim_convolution c;
    d.codes = malloc((numbers_in(&d) + 1) * sizeof *d.codes);
    ck_assert(d.codes);
    const mpsim_stack sa = stack_of(forward ? &v->x : &v->dy), sb = stack_of(forward || input ? &v->w : &v->x),
                      sd = stack_of(&d);
    snprintf(name, sizeof name, "avx512-bf16-fp32:chunk=%zu", v->chunk);
    ck_assert(mpsim_model_parse(&m, v->chunk && !other ? name : "avx512-bf16-fp32") == MPSIM_OK);
    mpsim_operand_init(&a, &sa, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&b, &sb, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_convolution_init(&c);
    c.model = &m;
    c.a = &a;
    c.b = &b;
    c.d = &sd;
    c.order = last ? MPSIM_TAPS_CHANNELS : MPSIM_BLOCKS_TAPS_CHANNELS;
    c.taps = input && !last ? MPSIM_TAPS_AS_WEIGHTS : MPSIM_TAPS_AS_READ;
    c.row_multiple = other ? 1 : v->row_multiple;
    c.stride[0] = c.stride[1] = v->stride;
    c.padding[0] = c.padding[1] = v->padding;
    ck_assert((forward ? mpsim_convolution_forward
               : input ? mpsim_convolution_backward_input
                       : mpsim_convolution_backward_weight)(&c, NULL) == MPSIM_OK);
    const uint64_t digest = digest_of(&d);
    free(d.codes);
    return digest;
}

static int read_line(const char *line, convolution *v)
{
    unsigned long long digest;
    const int n = sscanf(line, "%9s %5s %u %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %llx", v->kind, v->memory,
                         &v->threads, &v->images, &v->channels, &v->outputs, &v->rows, &v->columns, &v->down,
                         &v->across, &v->stride, &v->padding, &v->chunk, &v->row_multiple, &digest);
    v->digest = digest;
    return n == 15;
}

/* Whether another order gives other numbers: not where all channels are one block, in forward or of one tap. */
static int is_told_apart(const convolution *v)
{
    const int first = strcmp(v->memory, "nchw") == 0, one_tap = v->down * v->across == 1;
    if (strcmp(v->kind, "weight") == 0 || one_tap)
        return v->chunk > 0;
    return strcmp(v->kind, "input") == 0 || v->channels > 16 ? 1 : first && v->chunk > 0;
}

CASE("torch", 30);

TEST(as_recorded)
{
    char line[300];
    size_t n = 0, apart = 0;
    FILE *file = fopen(test_source_path("data/vectors/onednn/intel-convolutions.txt"), "r");
    ck_assert(file && fgets(line, sizeof line, file) && strcmp(line, "mpsim-onednn-convolutions/1\n") == 0);
    while (fgets(line, sizeof line, file)) {
        convolution v;
        if (line[0] == '#')
            continue;
        ck_assert_msg(read_line(line, &v), "%s", line);
        n++;
        if (v.threads > 1 && !test_in_part(n, 4)) /* the same digests as with one */
            continue;
        make_operands(&v);
        ck_assert_msg(result_of(&v, 0) == v.digest, "not as recorded: %s", line);
        if (is_told_apart(&v)) {
            apart++;
            ck_assert_msg(result_of(&v, 1) != v.digest, "another order gives the same: %s", line);
        }
        free(v.x.codes);
        free(v.w.codes);
        free(v.dy.codes);
    }
    fclose(file);
    ck_assert_uint_ge(n, 60);
    ck_assert_uint_ge(apart, 30);
}

TEST_MAIN("convolution-torch");
