/* t-stat-blocks.c -- tensors under block recipes, in tiles, on threads, in shards: equal to the library called once
 * for the whole tensor, which is transposed, transformed and requantised here in the plainest way. */
#include "sim/operand/stream.h"
#include "sim/pass/tiles.h"
#include "sim/stat/tensor.h"
#include "support/badzip.h"
#include "support/support.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 3, RANK = 4 };

static const unsigned everything = MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS;

/* ---- tensors ---- */

static const struct {
    const char *dtype;
    size_t width, rank, shape[RANK];
} tensors[] = {
    {"F32", 4, 2, {40, 50}},      {"BF16", 2, 2, {140, 513}}, {"F64", 8, 2, {65, 70}},   {"F16", 2, 1, {70001}},
    {"F32", 4, 2, {2, 40000}},    {"F32", 4, 2, {35000, 2}},  {"F32", 4, 0, {0}},        {"BF16", 2, 2, {5, 0}},
    {"F32", 4, 4, {2, 3, 5, 64}}, {"F32", 4, 2, {1, 66000}},  {"F32", 4, 2, {65, 6}},    {"F32", 4, 1, {33}},
    {"F32", 4, 2, {129, 1}},      {"F64", 8, 2, {96, 80}},    {"F64", 8, 2, {600, 130}}, {"F64", 8, 1, {3000}},
};
enum { TENSORS = sizeof tensors / sizeof tensors[0], FAR = 13 }; /* FAR: from here on beyond binary32, too */

static size_t count_of(size_t i)
{
    size_t n = 1;
    for (size_t k = 0; k < tensors[i].rank; k++)
        n *= tensors[i].shape[k];
    return n;
}

/* Numbers of many sizes, zeros in runs, and NaN and infinities in some tensors. */
static double any_number(uint64_t *state, size_t i)
{
    const uint64_t u = test_random(state), kind = u % 64;
    const double x = ((double)(u >> 11) - 0x1p52) * 0x1p-52 * pow(2, (double)(int)(u >> 8 & 15) - 12);
    if (i % 3 == 0 && u >> 40 == 0)
        return kind < 32 ? (double)NAN : -(double)INFINITY;
    if (i % 3 == 1 && (u >> 20) % 1000 == 0)
        return x * 0x1p-60;
    return kind == 0 ? 0 : x;
}

/* Beyond binary32: half of the numbers below it, in the first few above it, too; in the last all below it. */
static double far_number(uint64_t *state, size_t i, double x)
{
    const uint64_t u = test_random(state) >> 20;
    return i == FAR + 2 || u % 2          ? x * 0x1p-400
           : i == FAR && u / 2 % 500 == 0 ? x * 0x1p400
           : i > FAR                      ? x * 0x1p-120
                                          : x;
}

static void put_number(blob *b, size_t i, double x)
{
    static const char *const formats[] = {"F32", "fp32", "F16", "fp16", "BF16", "bf16"};
    if (tensors[i].width == 8) {
        blob_int(b, f64_of_bits(0) == 0 ? bits_of_f64(x == x && fabs(x) > 100 ? x * 0x1p124 : x) : 0, 8);
        return;
    }
    for (size_t k = 0; k < 6; k += 2)
        if (strcmp(tensors[i].dtype, formats[k]) == 0) {
            mpsim_rounding r;
            mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
            blob_int(b, mpsim_encode_f64(mpsim_format_find(formats[k + 1]), &r, x, 0, NULL),
                     (unsigned)tensors[i].width);
        }
}

static const char *make_file(void)
{
    blob b = {0}, header = {0}, data = {0};
    uint64_t state = test_seed();
    char c = '{';
    for (size_t i = 0; i < TENSORS; i++) {
        const size_t n = count_of(i);
        blob_text(&header, "%c\"t%02zu\":{\"dtype\":\"%s\",\"shape\":[", c, i, tensors[i].dtype);
        for (size_t k = 0; k < tensors[i].rank; k++)
            blob_text(&header, "%s%zu", k ? "," : "", tensors[i].shape[k]);
        blob_text(&header, "],\"data_offsets\":[%zu,%zu]}", data.n, data.n + n * tensors[i].width);
        for (size_t k = 0; k < n; k++) {
            const double x = any_number(&state, i);
            put_number(&data, i, i < FAR ? x : far_number(&state, i, x));
        }
        c = ',';
    }
    blob_text(&header, "}");
    blob_int(&b, header.n, 8);
    blob_add(&b, header.data, header.n);
    blob_add(&b, data.data, data.n);
    blob_clear(&header);
    blob_clear(&data);
    return bad_write("blocks.safetensors", &b);
}

/* ---- what it must be ---- */

/* A matrix, and of what is not in it: squares of finite elements that became infinite or NaN. */
typedef struct matrix {
    float *x;
    double *stored; /* as they are before they are rounded, also behind a transform */
    size_t rows, cols;
    mpsim_sum left_out, squares; /* squares: of all finite elements as they are stored */
} matrix;

static matrix matrix_new(size_t rows, size_t cols)
{
    matrix m = {.x = malloc((rows * cols + 1) * sizeof *m.x),
                .stored = malloc((rows * cols + 1) * sizeof *m.stored),
                .rows = rows,
                .cols = cols};
    ck_assert(m.x && m.stored);
    return m;
}

static void matrix_free(matrix *m)
{
    free(m->x);
    free(m->stored);
}

/* Where element k of the file stands in rows: Fortran's order has the first index fastest, rows the last. */
static size_t place_of(const trace_tensor *x, size_t k)
{
    size_t index[RANK] = {0}, at = 0;
    for (size_t d = 0; d < x->rank && x->fortran; k /= (size_t)x->shape[d++])
        index[d] = k % (size_t)x->shape[d];
    for (size_t d = 0; d < x->rank && x->fortran; d++)
        at = at * (size_t)x->shape[d] + index[d];
    return x->fortran ? at : k;
}

/* The tensor as rows. */
static matrix matrix_of(trace *t, size_t i)
{
    const trace_tensor *x = trace_at(t, i);
    const size_t cols = x->rank ? (size_t)x->shape[x->rank - 1] : 1, rows = cols ? (size_t)x->count / cols : 0;
    matrix m = matrix_new(rows, cols);
    double *v = malloc(((size_t)x->count + 1) * sizeof *v);
    trace_error e;
    size_t got;
    trace *again = trace_open(trace_path(t), NULL, &e);
    ck_assert(v && again && trace_select(again, i, &e) == 0 &&
              trace_read(again, v, (size_t)x->count + 1, &got, &e) == 0);
    mpsim_sum_init(&m.left_out);
    mpsim_sum_init(&m.squares);
    for (size_t k = 0; k < got; k++) {
        const size_t at = place_of(x, k);
        m.x[at] = (float)v[k];
        m.stored[at] = v[k];
        if (isfinite(v[k]))
            mpsim_sum_add_square(&m.squares, v[k]);
        if (isfinite(v[k]) && !isfinite(m.x[at]))
            mpsim_sum_add_square(&m.left_out, v[k]);
    }
    trace_close(again);
    free(v);
    return m;
}

static matrix transposed(const matrix *m)
{
    matrix t = matrix_new(m->cols, m->rows);
    t.left_out = m->left_out;
    t.squares = m->squares;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) {
            t.x[j * m->rows + i] = m->x[i * m->cols + j];
            t.stored[j * m->rows + i] = m->stored[i * m->cols + j];
        }
    return t;
}

/* The signal is what it makes of the elements: they are left out, and it is not. */
static void transform(matrix *m, unsigned size)
{
    if (size)
        m->left_out = m->squares;
    for (size_t i = 0; i < m->rows * (size != 0); i++) {
        float *x = m->x + i * m->cols;
        mpsim_sum squares;
        mpsim_sum_init(&squares);
        mpsim_hadamard_groups(x, m->cols, size, SEED);
        for (size_t j = 0; j < m->cols; j++)
            if (isfinite(x[j]))
                mpsim_sum_add_square(&squares, (double)x[j]);
        mpsim_sum_subtract(&m->left_out, &squares);
    }
}

/* H D, then D H: signs are what the transform makes of a unit vector, at its first place. */
static void transform_back(matrix *m, unsigned size)
{
    float sign[128];
    for (unsigned k = 0; k < size; k++) {
        float unit[128] = {0};
        unit[k] = 1;
        mpsim_hadamard_groups(unit, size, size, SEED);
        sign[k] = unit[0] > 0 ? 1 : -1;
    }
    for (int twice = 0; twice < 2 && size; twice++) {
        for (size_t i = 0; i < m->rows; i++)
            for (size_t j = 0; j < m->cols / size * size; j++)
                m->x[i * m->cols + j] *= sign[j % size];
        for (size_t i = 0; i < m->rows && !twice; i++)
            mpsim_hadamard_groups(m->x + i * m->cols, m->cols, size, SEED);
    }
}

static void quantise(const block_target *t, const matrix *m, const float *origin, uint64_t stream, float *values,
                     mpsim_block_stats *to)
{
    const mpsim_rng rng = {SEED, stream, 0};
    const mpsim_blocks out = {.values = values, .stats = to, .origin = origin};
    ck_assert(mpsim_block_quantize(&t->recipe, m->x, m->rows, m->cols, -1, 1, &rng, &out, NULL) == MPSIM_OK);
}

/* What rounding to binary32 did: `x` was quantised, to `values`; `m` has what was stored. */
static void see_rounding(const matrix *m, const float *x, const float *values, unsigned transform,
                         mpsim_block_stats *to)
{
    for (size_t k = 0; k < m->rows * m->cols; k++) {
        const double v = m->stored[k];
        const float f = (float)v;
        if (!isfinite(v) || v == 0 || (isfinite(f) && f != 0))
            continue;
        const int infinite = !isfinite(f), zero = !infinite && x[k] == 0 && values[k] == 0;
        to->spoilt += (uint64_t)infinite;
        to->underflow += (uint64_t)zero;
        if (transform)
            continue;
        to->casts.counts.inexact += (uint64_t)(infinite || zero);
        if (zero) {
            mpsim_sum_add_square(&to->casts.sum_squared_error, v);
            to->casts.max_rel_err = fmax(to->casts.max_rel_err, 1);
        } else if (!infinite && !isfinite(values[k])) {
            mpsim_sum_add_square(&to->casts.sum_squares_left_out, v);
        }
    }
    ck_assert(to->underflow <= m->rows * m->cols && to->spoilt <= m->rows * m->cols &&
              to->casts.counts.inexact <= m->rows * m->cols);
}

static void expected(const block_target *t, const matrix *m, uint64_t stream, mpsim_block_stats *to)
{
    matrix along = t->axis == BLOCK_COLUMNS ? transposed(m) : matrix_new(m->rows, m->cols);
    matrix values = matrix_new(m->rows, m->cols);
    mpsim_block_stats_init(to);
    if (t->axis != BLOCK_COLUMNS) {
        memcpy(along.x, m->x, m->rows * m->cols * sizeof *m->x);
        memcpy(along.stored, m->stored, m->rows * m->cols * sizeof *m->stored);
        along.left_out = m->left_out;
        along.squares = m->squares;
    }
    transform(&along, t->transform);
    if (t->axis != BLOCK_REQUANTISED) {
        quantise(t, &along, NULL, stream, values.x, to);
        see_rounding(&along, along.x, values.x, t->transform, to);
        mpsim_sum_merge(&to->casts.sum_squares_left_out, &along.left_out);
    } else {
        matrix origin = transposed(m), last = matrix_new(m->cols, m->rows);
        memcpy(values.stored, m->stored, m->rows * m->cols * sizeof *m->stored);
        quantise(t, &along, NULL, stream, values.x, NULL);
        transform_back(&values, t->transform);
        matrix again = transposed(&values);
        transform(&again, t->transform);
        transform(&origin, t->transform);
        quantise(t, &again, origin.x, ~stream, last.x, to);
        see_rounding(&origin, again.x, last.x, t->transform, to);
        mpsim_sum_merge(&to->casts.sum_squares_left_out, &origin.left_out);
        matrix_free(&last);
        matrix_free(&again);
        matrix_free(&origin);
    }
    matrix_free(&values);
    matrix_free(&along);
}

/* ---- comparing ---- */

static void settle(mpsim_sum *s)
{
    mpsim_sum nothing;
    mpsim_sum_init(&nothing);
    mpsim_sum_merge(s, &nothing);
}

static void must_be_equal(const char *what, const block_target *t, const mpsim_block_stats *want,
                          const mpsim_block_stats *got)
{
    mpsim_block_stats a = *want, b = *got;
    const mpsim_cast_stats *c = &a.casts, *d = &b.casts;
    settle(&a.casts.sum_squared_error);
    settle(&b.casts.sum_squared_error);
    settle(&a.casts.sum_squares_left_out);
    settle(&b.casts.sum_squares_left_out);
    const char *name = block_axis_name(t->axis);
    ck_assert_msg(memcmp(&c->counts, &d->counts, sizeof c->counts) == 0, "%s %s %s: counts", what, t->label, name);
    ck_assert_msg(c->compared == d->compared && memcmp(&c->max_rel_err, &d->max_rel_err, sizeof c->max_rel_err) == 0,
                  "%s %s %s: compared %llu, %llu; %g, %g", what, t->label, name, (unsigned long long)c->compared,
                  (unsigned long long)d->compared, c->max_rel_err, d->max_rel_err);
    ck_assert_msg(memcmp(c->sum_squared_error.limb, d->sum_squared_error.limb, sizeof c->sum_squared_error.limb) == 0,
                  "%s %s %s: errors", what, t->label, name);
    ck_assert_msg(
        memcmp(c->sum_squares_left_out.limb, d->sum_squares_left_out.limb, sizeof c->sum_squares_left_out.limb) == 0,
        "%s %s %s: left out", what, t->label, name);
    ck_assert_msg(a.underflow == b.underflow && a.saturated == b.saturated && a.spoilt == b.spoilt,
                  "%s %s %s: elements", what, t->label, name);
    ck_assert_msg(a.blocks == b.blocks && a.zero_blocks == b.zero_blocks && a.lost_blocks == b.lost_blocks &&
                      a.saturated_blocks == b.saturated_blocks && a.nonfinite_blocks == b.nonfinite_blocks,
                  "%s %s %s: blocks %llu, %llu; %llu, %llu saturated; %llu, %llu lost", what, t->label, name,
                  (unsigned long long)a.blocks, (unsigned long long)b.blocks, (unsigned long long)a.saturated_blocks,
                  (unsigned long long)b.saturated_blocks, (unsigned long long)a.lost_blocks,
                  (unsigned long long)b.lost_blocks);
    ck_assert_msg(a.least_scales == b.least_scales && a.largest_scales == b.largest_scales &&
                      a.scale_zero == b.scale_zero && a.scale_nonfinite == b.scale_nonfinite &&
                      memcmp(a.scales, b.scales, sizeof a.scales) == 0,
                  "%s %s %s: scales", what, t->label, name);
}

typedef struct expectation {
    const target_list *targets;
    mpsim_block_stats *want; /* of each target, of the tensor at hand    */
    group sum;               /* of the pieces of the tensor at hand       */
    size_t told;
} expectation;

static int told_file(void *context, trace *t, size_t i, const trace_error *error)
{
    (void)context;
    (void)t;
    (void)i;
    ck_assert_ptr_null(error);
    return 0;
}

static int told_tensor(void *context, const tensorstat_piece *piece, const group *of, const trace_error *error)
{
    expectation *x = context;
    ck_assert_msg(!error, "%s", error ? error->text : "");
    ck_assert(of && of->stats.count == piece->n);
    stat_group_merge(&x->sum, of);
    x->told++;
    return 0;
}

/* A tensor in so many runs of about the same length. */
static void put_tensor(tensorstat *s, expectation *x, trace *t, size_t i, uint64_t runs)
{
    const trace_tensor *a = trace_at(t, i);
    uint64_t first = 0;
    stat_group_reset(&x->sum);
    for (uint64_t k = 1; k <= runs; k++) {
        const uint64_t end = pass_block_align(&x->targets->blocks, a, a->count * k / runs);
        const tensorstat_piece piece = {.t = t, .i = i, .scaled = 1, .first = first, .n = end - first};
        if (piece.n || runs == 1)
            ck_assert_int_eq(stat_tensorstat_put(s, &piece), 0);
        first = end;
    }
    ck_assert_int_eq(stat_tensorstat_flush(s), 0);
    ck_assert_uint_eq(first, a->count);
    ck_assert_uint_eq(x->sum.stats.count, a->count);
}

/* The same tensor on 1 and 3 threads, whole and in runs. */
static void check_tensor(const target_list *targets, trace *t, size_t i)
{
    static const tensorstat_told told = {told_tensor, told_file};
    const trace_tensor *a = trace_at(t, i);
    const block_list *l = &targets->blocks;
    const uint64_t stream = tensor_stream(t, a);
    expectation x = {.targets = targets, .want = calloc(l->count, sizeof *x.want)};
    matrix m = matrix_of(t, i);
    ck_assert(x.want);
    stat_group_init(&x.sum, targets, 0);
    for (size_t k = 0; k < l->count; k++)
        expected(&l->items[k], &m, stream, &x.want[k]);
    for (unsigned run = 0; run < 4; run++) {
        if (!test_in_part(run + i, 2))
            continue;
        parallel_eager(1);
        parallel_init(run % 2 ? 3 : 1);
        tensorstat *s = stat_tensorstat_new(targets, SEED, everything, &told, &x);
        ck_assert_ptr_nonnull(s);
        put_tensor(s, &x, t, i, run < 2 || !trace_is_flat(t) ? 1 : run + 3);
        for (size_t k = 0; k < l->count; k++) {
            const block_target *b = &l->items[k];
            const int is = a->rank > 1 || b->axis == BLOCK_ROWS;
            ck_assert_uint_eq(x.sum.blocks[k].elements, is ? a->count : 0);
            if (is)
                must_be_equal(a->name, b, &x.want[k], &x.sum.blocks[k].stats);
            else
                ck_assert_uint_eq(x.sum.blocks[k].stats.blocks, 0);
        }
        stat_tensorstat_free(s);
    }
    stat_group_clear(&x.sum);
    free(x.want);
    matrix_free(&m);
}

static void check_targets(const char *path, const target_options *o)
{
    target_options with = *o;
    target_list targets;
    trace_error e;
    with.recipes = 1;
    ck_assert_int_eq(target_list_make(&targets, &with, "test", "fp16"), 0);
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    for (size_t i = 0; i < trace_count(t); i++)
        check_tensor(&targets, t, i);
    trace_close(t);
    target_list_clear(&targets);
}

/* Each of n sets of options in its turn. */
static void check_file(const target_options *sets, size_t n)
{
    const char *path = make_file();
    for (size_t k = 0; k < n; k++)
        if (test_in_part(k, (unsigned)n))
            check_targets(path, &sets[k]);
}

#define CHECK_FILE(...)                               \
    do {                                              \
        const target_options sets[] = {__VA_ARGS__};  \
        check_file(sets, sizeof sets / sizeof *sets); \
    } while (0)

CASE("stat-blocks", 300);

TEST(blocks_of_tensors)
{
    CHECK_FILE({.formats = "mxfp8:rceil,nvfp4,e4m3/128x128,bf16", .axis = "both"},
               {.formats = "mxfp8:*,mxfp4", .axis = "rows", .hadamard = "32"},
               {.formats = "nvfp4,nvfp4:2d,mxfp8", .axis = "both", .hadamard = "16"});
}

TEST(scales_of_rows_and_tensors)
{
    CHECK_FILE({.formats = "e4m3/row,e4m3/tensor,torchao-tensorwise", .axis = "both"},
               {.formats = "te-current,torchao-rowwise,e5m2/row,ms-amp", .axis = "columns"},
               {.formats = "e4m3/row:rht64,e4m3/tensor:rht128,nvfp4-torchao", .axis = "both"});
}

/* Blocks without a small common multiple, and random bits. */
TEST(odd_blocks)
{
    CHECK_FILE({.formats = "e4m3/7x11,e4m3/128x96,nvfp4:2d,e5m2/1x5000", .axis = "rows"},
               {.formats = "e4m3/3x5,mxfp6e2m3,e4m3/13x2:ue8m0", .axis = "both"},
               {.formats = "nvfp4:sr,fp16", .axis = "both", .seed = 77});
}

/* Tensors in Fortran's order, and one that is not. */
static const struct {
    const char *order, *shape;
    size_t count;
} ordered[] = {{"True", "100, 70", 7000},     {"False", "70, 1100", 77000},     {"True", "700, 90", 63000},
               {"True", "6, 5, 33", 990},     {"True", "3, 1, 40, 70", 8400},   {"True", "1, 130, 1, 37", 4810},
               {"False", "2, 3, 4, 35", 840}, {"True", "12, 17, 20, 20", 81600}};
enum { ORDERED = sizeof ordered / sizeof *ordered }; /* at most 8: an archive of badzip.h */

static blob ordered_array(size_t i, uint64_t *state)
{
    char dict[160];
    blob payload = {0};
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': %s, 'shape': (%s), }", ordered[i].order,
             ordered[i].shape);
    for (size_t k = 0; k < ordered[i].count; k++)
        blob_int(&payload, bits_of_f32((float)any_number(state, 1)), 4);
    blob npy = bad_npy(1, dict, payload.data, payload.n);
    blob_clear(&payload);
    return npy;
}

/* Files, which are read from any place, in runs, too. */
TEST(tensors_by_columns)
{
    uint64_t state = test_seed();
    for (size_t i = 0; i < ORDERED; i++) {
        blob b = ordered_array(i, &state);
        const char *path = bad_write("blocks.npy", &b);
        blob_clear(&b);
        check_targets(path, &(target_options){.formats = "mxfp8,nvfp4:sr,nvfp4:2d,e4m3/row,e4m3/3x5", .axis = "both"});
    }
}

/* Members of an archive, which are read in order: small, large, and column by column. */
TEST(tensors_in_order)
{
    archive a = {0};
    char names[ORDERED][8];
    blob data[ORDERED];
    uint64_t state = test_seed();
    for (size_t i = 0; i < ORDERED; i++) {
        snprintf(names[i], sizeof names[i], "%c.npy", 'a' + (int)i);
        data[i] = ordered_array(i, &state);
        archive_member(&a, names[i], &data[i], 0);
    }
    for (size_t i = 0; i < ORDERED; i++) {
        archive_central(&a, i, names[i], &data[i], 0);
        blob_clear(&data[i]);
    }
    archive_end(&a);
    const char *path = bad_write("blocks.npz", &a.b);
    check_targets(path, &(target_options){.formats = "mxfp8,nvfp4:sr,e4m3/row,e4m3/tensor,e4m3/3x5", .axis = "both"});
}

TEST_MAIN_BY(bad_main, "stat-blocks");
