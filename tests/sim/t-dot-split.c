/* t-dot-split.c -- products cut in K (split-K, stream-K): every bit as loops over the steps of all workers and an own tensor
 * core give it. */
#include "oracle/core.h"
#include "sim/dot/error.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

typedef struct wanted {
    const char *model, *architecture, *operands, *result; /* architecture NULL: a chain of binary32 */
    const char *workspace, *sum;                          /* NULL: binary32 */
    size_t rows, columns, depth;
    size_t parts, workers, tile[3]; /* workers 0: split-K */
} wanted;

static const wanted cases[] = {
    {"fma", NULL, "bf16", NULL, NULL, NULL, 5, 7, 100, 3, 0, {0}},
    {"hopper-bf16-fp32", "hopper", "bf16", NULL, "bf16", NULL, 5, 7, 130, 4, 0, {0}},
    {"fma", NULL, "bf16", NULL, NULL, NULL, 5, 7, 100, 1, 1, {2, 3, 32}},          /* nothing is cut       */
    {"fma", NULL, "bf16", NULL, NULL, NULL, 16, 16, 512, 1, 4, {16, 16, 32}},      /* one tile             */
    {"fma", NULL, "bf16", NULL, NULL, NULL, 20, 17, 300, 1, 7, {8, 4, 32}},        /* cuts anywhere        */
    {"fma", NULL, "bf16", NULL, "bf16", "bf16", 20, 17, 300, 1, 11, {8, 4, 16}},   /* roundings that show  */
    {"fma", NULL, "bf16", NULL, "fp16", "binary32", 3, 3, 77, 1, 1000, {2, 2, 8}}, /* more workers than steps */
    {"hopper-bf16-fp32", "hopper", "bf16", NULL, NULL, NULL, 9, 11, 260, 1, 5, {4, 4, 64}},
    {"ampere-fp16-fp32", "ampere", "fp16", NULL, "bf16", NULL, 9, 11, 260, 1, 13, {4, 8, 32}},
    {"hopper-bf16-fp32:result=bf16", "hopper", "bf16", "bf16", NULL, NULL, 9, 11, 260, 1, 6, {9, 2, 32}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static const oracle_core chain = {NULL, 0, 0, 1};

/* The worker whose step has product k of a result: the steps of all tiles, one tile after the other, go to workers in
 * equal runs. */
static size_t worker_of(const wanted *w, size_t i, size_t j, size_t k)
{
    const size_t across = (w->columns + w->tile[1] - 1) / w->tile[1], down = (w->rows + w->tile[0] - 1) / w->tile[0];
    const size_t steps = (w->depth + w->tile[2] - 1) / w->tile[2], all = across * down * steps;
    const size_t tile = i / w->tile[0] * across + j / w->tile[1];
    return (tile * steps + k / w->tile[2]) / ((all + w->workers - 1) / w->workers);
}

static size_t part_of(const wanted *w, size_t i, size_t j, size_t k)
{
    return w->workers ? worker_of(w, i, j, k) : k / ((w->depth + w->parts - 1) / w->parts);
}

static float result(const wanted *w, const oracle_part *x, const oracle_part *y, size_t i, size_t j)
{
    const oracle_format *to = oracle_format_find(w->result), *workspace = oracle_format_find(w->workspace),
                        *sum = oracle_format_find(w->sum);
    const oracle_core *core = w->architecture ? oracle_core_of(w->architecture, w->operands) : &chain;
    const int p = oracle_format_find(w->operands)->precision;
    float s = 0;
    for (size_t k = 0, end; k < w->depth; k = end) {
        for (end = k; end < w->depth && part_of(w, i, j, end) == part_of(w, i, j, k); end++)
            ;
        const float part =
            oracle_to(to, (double)core_dot(core, p, x + i * w->depth + k, 1, p, y + j * w->depth + k, 1, end - k));
        if (end - k == w->depth) /* whole: it never leaves the worker */
            return part;
        s = oracle_to(sum, (double)s + (double)oracle_to(workspace, (double)part));
    }
    return oracle_to(to, (double)s);
}

static void operand_of(operand *o, oracle_part **parts, const wanted *w, size_t rows, uint64_t stream)
{
    const oracle_format *f = oracle_format_find(w->operands);
    int normal = 0;
    ck_assert(dot_distribution_find(&normal, "normal") == 0);
    dot_operand_generate(o, rows, w->depth, normal, test_seed(), stream);
    ck_assert(dot_operand_encode(o, mpsim_format_find(w->operands), MPSIM_ROUND_NEAREST_EVEN, 1) == 0);
    *parts = malloc(rows * w->depth * sizeof **parts);
    ck_assert(*parts);
    for (size_t i = 0; i < rows * w->depth; i++)
        (*parts)[i] = oracle_take_apart(
            f, oracle_to(f, dot_distribution_draw(normal, test_seed(), (stream << 32) + i / w->depth, i % w->depth)));
}

static mpsim_format place_of(const char *name)
{
    mpsim_format f;
    ck_assert(dot_split_place(&f, name ? name : "binary32") == 0);
    return f;
}

CASE("dot-split", 20);

TESTS(every_bit, CASES)
{
    const wanted *w = &cases[_i];
    operand a = {0}, b = {0};
    oracle_part *x, *y;
    mpsim_model m;
    operand_of(&a, &x, w, w->rows, 0);
    operand_of(&b, &y, w, w->columns, 1);
    ck_assert(mpsim_model_parse(&m, w->model) == MPSIM_OK);
    dot_split split = {w->parts, place_of(w->workspace), place_of(w->sum), w->workers, {0}};
    memcpy(split.tile, w->tile, sizeof split.tile);
    double *d = malloc(w->rows * w->columns * sizeof *d);
    ck_assert(d && dot_results(d, &m, &split, &a, &b, w->depth) == MPSIM_OK);
    for (size_t i = 0; i < w->rows; i++)
        for (size_t j = 0; j < w->columns; j++) {
            const double want = (double)result(w, x, y, i, j), got = d[i * w->columns + j];
            ck_assert_msg(memcmp(&got, &want, sizeof got) == 0, "%zu, %zu: %a, expected %a", i, j, got, want);
        }
    free(d);
    free(x);
    free(y);
    dot_operand_clear(&a);
    dot_operand_clear(&b);
}

TEST_MAIN("dot-split");
