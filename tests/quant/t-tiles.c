/* t-tiles.c -- tensors quantised tile by tile (sim/cast/tiles.c) against the same in one piece: the whole matrix,
 * turned as a whole, under mpsim_block_quantize, and each code and scale put where sim/quant says, one by one (t-form.c
 * and t-layout.c judge that). Shapes larger than a tile in either direction, infinities and NaNs, every layout, both
 * axes, both orders of scales, any number of threads. */
#include "sim/cast/tiles.h"

#include "support/support.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads/parallel.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const struct {
    const char *recipe, *layout;
    int columns, swizzled;
    uint64_t rows, cols;
} all[] = {
    {"mxfp8:rceil", "plain", 0, 0, 37, 100},
    {"mxfp8:floor", "plain", 1, 0, 100, 37},
    {"mxfp6-e3m2", "plain", 0, 0, 37, 101},
    {"mxfp6-e2m3", "plain", 1, 0, 101, 37},
    {"mxfp4", "plain", 0, 1, 130, 8301},
    {"mxfp4", "plain", 1, 1, 8301, 130},
    {"nvfp4", "plain", 0, 1, 300, 1000},
    {"nvfp4:2d", "plain", 0, 1, 300, 1000},
    {"nvfp4:2d", "plain", 0, 0, 300, 1001},
    {"nvfp4:sr", "plain", 0, 0, 300, 1000},
    {"nvfp4:sr", "plain", 1, 0, 300, 1000},
    {"nvfp4-torchao", "plain", 1, 1, 1000, 300},
    {"e4m3/128x128", "plain", 0, 0, 140, 9001},
    {"e4m3/128x128:ue8m0", "plain", 1, 0, 9001, 140},
    {"e4m3/7x5", "plain", 0, 0, 500, 1201},
    {"e5m2/1x3", "plain", 1, 0, 500, 1201},
    {"e4m3/tensor", "plain", 0, 0, 500, 1200},
    {"e4m3/row", "plain", 0, 0, 500, 1201},
    {"e4m3/row", "plain", 1, 0, 500, 1201},
    {"te-current", "plain", 1, 0, 900, 700},
    {"torchao-tensorwise", "plain", 0, 0, 900, 700},
    {"e4m3/row", "plain", 0, 0, 2, 270000},
    {"mxfp8:rht32", "plain", 0, 0, 900, 700},
    {"nvfp4:rht", "plain", 1, 1, 900, 700},
    {"mxfp8:te", "te", 0, 0, 160, 8320},
    {"mxfp8:te", "te", 1, 0, 8320, 160},
    {"mxfp8:te", "te", 0, 1, 160, 8320},
    {"mxfp8:te", "te", 1, 1, 8320, 160},
    {"nvfp4", "te", 0, 0, 912, 720},
    {"nvfp4", "te", 1, 0, 912, 720},
    {"nvfp4:2d", "te", 1, 1, 912, 720},
    {"te-block-1x128", "te", 0, 0, 640, 896},
    {"te-block-1x128", "te", 1, 0, 640, 896},
    {"te-block-128x128", "te", 0, 0, 640, 896},
    {"te-current", "te", 0, 0, 1283, 897},
    {"mxfp4", "gpt-oss", 0, 0, 700, 960},
    {"nvfp4", "compressed-tensors", 0, 0, 700, 960},
    {"mxfp6-e2m3", "compressed-tensors", 0, 0, 700, 960},
    {"nvfp4:1level", "modelopt", 0, 0, 700, 960},
    {"e4m3/128x128:ue8m0", "deepseek", 0, 0, 700, 961},
    {"mxfp8", "torchao", 0, 1, 900, 704},
    {"e4m3/16x16", "torchao", 0, 0, 912, 720},
    {"mxfp8", "plain", 0, 0, 1, 1},
    {"nvfp4", "plain", 0, 1, 1, 17},
};

/* The parts of a tensor, back to back: codes, scales. */
typedef struct parts {
    unsigned char *bytes;
    size_t n, scales; /* where these begin */
} parts;

static size_t scale_bytes(const quant_geometry *g, const cast_recipe *r)
{
    return strcmp(g->form->scale, "binary32") == 0 || strcmp(r->scale, "binary32") == 0 ? 4 : 1;
}

static parts room(const quant_geometry *g, const cast_recipe *r)
{
    parts p = {.scales = (size_t)g->parts[QUANT_CODES].count};
    p.n = p.scales + (size_t)g->parts[QUANT_SCALES].count * scale_bytes(g, r);
    p.bytes = calloc(p.n + 1, 1);
    ck_assert(p.bytes != NULL);
    return p;
}

/* With `special` ones among them: infinities, NaNs, subnormal numbers. */
static float *numbers(uint64_t rows, uint64_t cols, int special, uint64_t *state)
{
    static const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x00000001, 0x807fffff, 0x7f7fffff};
    const size_t n = (size_t)(rows * cols);
    float *x = malloc(n * sizeof *x);
    ck_assert(x != NULL);
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = test_random(state);
        x[i] = ldexpf((float)(int32_t)(r >> 32), -32 - (int)(r % 24) - (int)(i / cols % 5));
        if (r % 97 == 0)
            x[i] = 0;
        if (special && r % 1009 == 5)
            x[i] = f32_of_bits(odd[(r >> 40) % COUNT(odd)]);
    }
    return x;
}

/* ---- in one piece ---- */

typedef struct whole {
    uint8_t *codes, *scale_codes;
    float *values, *inverses;
    size_t across; /* blocks of a line */
} whole;

static whole in_one_piece(const cast_recipe *r, const float *x, uint64_t rows, uint64_t cols, int columns,
                          const mpsim_rng *rng, mpsim_counts *counts)
{
    const size_t lines = (size_t)(columns ? cols : rows), n = (size_t)(columns ? rows : cols);
    float *turned = malloc(lines * n * sizeof *turned);
    size_t down;
    static mpsim_block_stats found;
    whole w = {malloc(lines * n), malloc(lines * n), malloc(lines * n * sizeof(float)),
               malloc(lines * n * sizeof(float)), 0};
    ck_assert(turned && w.codes && w.scale_codes && w.values && w.inverses);
    for (size_t l = 0; l < lines; l++)
        for (size_t k = 0; k < n; k++)
            turned[l * n + k] = columns ? x[k * lines + l] : x[l * n + k];
    for (size_t l = 0; l < lines && r->transform; l++)
        ck_assert(mpsim_hadamard_groups(turned + l * n, n, r->transform, rng->seed) == MPSIM_OK);
    mpsim_block_grid(&r->block, lines, n, &down, &w.across);
    const mpsim_blocks out = {
        .codes = w.codes, .values = w.values, .scale_codes = w.scale_codes, .inverses = w.inverses, .stats = &found};
    mpsim_block_stats_init(&found);
    ck_assert(mpsim_block_quantize(&r->block, turned, lines, n, -1, 1, rng, &out, NULL) == MPSIM_OK);
    *counts = found.casts.counts;
    counts->underflow = counts->overflow = 0;
    for (size_t i = 0; i < lines * n; i++) {
        counts->underflow += isfinite(turned[i]) && turned[i] != 0 && w.values[i] == 0;
        counts->overflow += isfinite(turned[i]) && !isfinite(w.values[i]);
    }
    counts->overflow += found.saturated;
    free(turned);
    return w;
}

static void put_parts(const parts *to, const quant_geometry *g, const cast_recipe *r, const whole *w, int columns)
{
    const uint64_t lines = columns ? g->cols : g->rows, n = columns ? g->rows : g->cols;
    const uint64_t block_lines = r->block.block_rows ? r->block.block_rows : lines;
    const uint64_t block_codes = r->block.block_cols ? r->block.block_cols : n;
    unsigned char *line = malloc((size_t)g->line_codes);
    ck_assert(line != NULL);
    for (uint64_t s = 0; s < g->lines; s++) {
        const int transposed = g->form->code_shape == QUANT_TRANSPOSED;
        for (uint64_t k = 0; k < g->line_codes; k++) {
            const uint64_t i = transposed ? k : s, j = transposed ? s : k;
            line[k] = w->codes[columns ? j * n + i : i * n + j];
        }
        quant_pack(g->form->packing, to->bytes + s * g->line_bytes, line, (size_t)g->line_codes);
    }
    for (uint64_t bi = 0; bi < g->grid_rows; bi++)
        for (uint64_t bj = 0; bj < g->grid_cols; bj++) {
            const uint64_t i = bi * g->block_rows, j = bj * g->block_cols;
            const uint64_t l = columns ? j : i, k = columns ? i : j;
            const uint64_t from = l / block_lines * w->across + k / block_codes, at = quant_scale_at(g, bi, bj);
            if (scale_bytes(g, r) == 4) {
                memcpy(to->bytes + to->scales + 4 * at, &w->inverses[from], 4);
                trace_to_little_endian(to->bytes + to->scales + 4 * at, 4, 1);
            } else
                to->bytes[to->scales + at] = w->scale_codes[from];
        }
    free(line);
}

/* ---- by tiles ---- */

/* Of a file that has no name any more: no assertion leaves it behind. */
static trace *as_trace(const float *x, size_t n)
{
    trace_error error = {0};
    const trace_options raw = {.raw_format = mpsim_format_find("binary32"),
                               .raw_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    char path[] = "t-tiles-raw-XXXXXX";
    const int fd = mkstemp(path), written = fd >= 0 && write(fd, x, n * sizeof *x) == (ssize_t)(n * sizeof *x);
    trace *t = written ? trace_open(path, &raw, &error) : NULL;
    ck_assert(fd >= 0 && unlink(path) == 0 && close(fd) == 0);
    ck_assert_msg(t != NULL, "%s", error.text);
    return t;
}

static trace_writer *open_writer(const char *path, uint64_t bytes)
{
    trace_error error = {0};
    const trace_tensor x = {.name = "x", .dtype = "U8", .shape = &bytes, .rank = 1, .count = bytes};
    trace_writer *w = trace_writer_safetensors(path, &x, 1, NULL, 0, &error);
    ck_assert_msg(w && trace_writer_make_places(w, &error) == 0, "%s", error.text);
    return w;
}

/* The data of a file, which is not needed any more. */
static void read_back(const char *path, trace_writer *w, void *to, size_t n)
{
    trace_error error = {0};
    ck_assert_msg(trace_writer_finish(w, &error) == 0, "%s", error.text);
    const int fd = open(path, O_RDONLY);
    ck_assert(fd >= 0 && unlink(path) == 0);
    const off_t size = lseek(fd, 0, SEEK_END);
    ck_assert(size >= (off_t)n && pread(fd, to, n, size - (off_t)n) == (ssize_t)n && close(fd) == 0);
}

static void compare_tensor(size_t c, const cast_recipe *r, const quant_geometry *g, trace *t, const float *x,
                           unsigned threads)
{
    trace_error error;
    const mpsim_rng rng = {7, 9, 0};
    mpsim_counts counts = {0};
    char path[] = "t-tiles-XXXXXX";
    const int fd = mkstemp(path);
    ck_assert(fd >= 0 && close(fd) == 0);
    const whole w = in_one_piece(r, x, all[c].rows, all[c].cols, all[c].columns, &rng, &counts);
    parts want = room(g, r), got = room(g, r);
    elements from;
    ck_assert(pass_elements_open(&from, t, 0, ELEMENTS_ROWS, NULL, &error) == 0);
    quantising q = {.how = r,
                    .columns = all[c].columns,
                    .seed = 7,
                    .stream = 9,
                    .g = g,
                    .from = &from,
                    .rows = all[c].rows,
                    .cols = all[c].cols,
                    .to = open_writer(path, want.n),
                    .at = {0, want.scales, 0},
                    .counted = 1};
    parallel_eager(1);
    parallel_init(threads);
    put_parts(&want, g, r, &w, all[c].columns);
    ck_assert_msg(cast_tiles_run(&q, &error) == 0, "%s", error.text);
    read_back(path, q.to, got.bytes, got.n);
    ck_assert_msg(memcmp(got.bytes, want.bytes, want.scales) == 0, "%s, %s: codes", all[c].recipe, all[c].layout);
    ck_assert_msg(memcmp(got.bytes, want.bytes, want.n) == 0, "%s, %s: scales", all[c].recipe, all[c].layout);
    ck_assert_msg(memcmp(&q.counts, &counts, sizeof counts) == 0, "%s: counts", all[c].recipe);
    q.g = NULL; /* values */
    q.at[0] = 0;
    const size_t n = (size_t)(all[c].rows * all[c].cols);
    size_t wrong = 0;
    float *values = malloc(n * sizeof *values);
    q.to = open_writer(path, n * sizeof *values);
    ck_assert(values && cast_tiles_run(&q, &error) == 0);
    read_back(path, q.to, values, n * sizeof *values);
    trace_to_little_endian((unsigned char *)values, sizeof *values, n); /* and back */
    for (uint64_t i = 0; i < all[c].rows; i++)
        for (uint64_t j = 0; j < all[c].cols && !r->transform; j++) {
            const float v = w.values[all[c].columns ? j * all[c].rows + i : i * all[c].cols + j];
            wrong += bits_of_f32(values[i * all[c].cols + j]) != bits_of_f32(v);
        }
    for (size_t i = 0; i < n && r->transform && c % 3; i++) /* back in the domain of x */
        wrong += !(fabsf(values[i] - x[i]) <= 1);
    ck_assert_msg(wrong == 0, "%s: %zu values", all[c].recipe, wrong);
    pass_elements_close(&from);
    free(values);
    free(w.codes);
    free(w.scale_codes);
    free(w.values);
    free(w.inverses);
    free(want.bytes);
    free(got.bytes);
}

CASE("tiles", 120);

TESTS(tiles, COUNT(all))
{
    if (!test_in_part((uint64_t)_i, 1))
        return;
    static const unsigned threads[] = {1, 3, 8};
    uint64_t state = test_seed() + 3;
    cast_recipe r;
    quant_geometry g;
    char why[512];
    const size_t c = (size_t)_i;
    const uint64_t shape[2] = {all[c].rows, all[c].cols};
    ck_assert(cast_recipe_parse(&r, all[c].recipe) == 0);
    const mpsim_block_recipe *b = &r.block;
    const uint32_t down = all[c].columns ? b->block_cols : b->block_rows,
                   across = all[c].columns ? b->block_rows : b->block_cols;
    const quant_form *f = quant_form_find(all[c].layout, b->element, r.scale, down, across, r.tensor_scale, why,
                                          sizeof why);
    ck_assert_msg(f != NULL, "%s", why);
    ck_assert_msg(quant_geometry_of(&g, f, 2, shape, down, across, all[c].swizzled, why, sizeof why) == 0, "%s: %s",
                  all[c].recipe, why);
    float *x = numbers(shape[0], shape[1], c % 3 == 0, &state);
    trace *t = as_trace(x, (size_t)(shape[0] * shape[1]));
    compare_tensor(c, &r, &g, t, x, threads[c % COUNT(threads)]);
    trace_close(t);
    free(x);
}

TEST_MAIN("quantised by tiles");
