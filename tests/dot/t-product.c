/* t-product.c -- products of stacks: every number is that of naive loops over numbers one by one, whatever strides, formats,
 * recipes, threads and instruction set. Chains are mpsim_dot's, blocks those of mpsim_block_quantize in a matrix without gaps. */
#include "support/products.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/isa.h>
#include <mpsim/layer.h>
#include <mpsim/product.h>
#include <mpsim/recipe.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

static const mpsim_pool threads = {product_on_threads, NULL, NULL};

static size_t below(uint64_t *seed, size_t n)
{
    return (size_t)(test_random(seed) >> 20) % n;
}

/* ---- arrays: an array in memory of its own, with strides ---- */

typedef struct array {
    mpsim_stack s;
    unsigned char *memory;
    size_t bytes;
} array;

static size_t elements(const mpsim_stack *s)
{
    size_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= s->shape[i];
    return n;
}

/* The address of the element with the row-major number i. */
static unsigned char *address(const mpsim_stack *s, size_t i)
{
    int64_t at = 0;
    for (uint32_t k = s->rank; k-- > 0; i /= s->shape[k])
        at += (int64_t)(i % s->shape[k]) * s->strides[k];
    return (unsigned char *)s->codes + at * (int64_t)mpsim_format_code_bytes(s->format);
}

static double value(const mpsim_stack *s, size_t i)
{
    return mpsim_decode(s->format, code_load(address(s, i), mpsim_format_code_bytes(s->format)));
}

/* Strides of any order of the dimensions, gaps, signs, and, if asked, broadcasts. */
static array array_new(const mpsim_format *f, uint32_t rank, const size_t *shape, int broadcasts, uint64_t *seed)
{
    array a = {.s = {.format = f, .rank = rank}, .bytes = mpsim_format_code_bytes(f)};
    uint32_t order[MPSIM_STACK_RANK];
    int64_t span = 1, low = 0, high = 0;
    for (uint32_t i = 0; i < rank; i++) {
        const size_t k = below(seed, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t k = order[i];
        a.s.shape[k] = shape[k];
        a.s.strides[k] = broadcasts && below(seed, 6) == 0 ? 0 : below(seed, 5) == 0 ? -span : span;
        const int64_t last = ((int64_t)shape[k] - 1) * a.s.strides[k];
        low += shape[k] && last < 0 ? last : 0;
        high += shape[k] && last > 0 ? last : 0;
        if (a.s.strides[k])
            span = (span + span * (shape[k] ? (int64_t)shape[k] - 1 : 0)) + (below(seed, 3) == 0 ? 3 : 0);
    }
    a.memory = calloc((size_t)(high - low) + 1, a.bytes);
    ck_assert(a.memory);
    a.s.codes = a.memory - low * (int64_t)a.bytes;
    return a;
}

static void array_fill(array *a, int special, uint64_t *seed)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < elements(&a->s); i++) {
        double x[2];
        test_normal_pair(seed, x);
        if (special && below(seed, 200) == 0)
            x[0] = below(seed, 2) ? INFINITY : NAN;
        if (below(seed, 30) == 0)
            x[0] = ldexp(x[0], (int)below(seed, 60) - 40);
        code_store(address(&a->s, i), a->bytes, mpsim_encode_f64(a->s.format, &r, x[0], 0, NULL));
    }
}

/* ---- what is expected, in plain loops ---- */

/* An operand as numbers without gaps: lines x depth of every matrix of the stack, which has the outer shape of `like`. */
typedef struct numbers {
    const mpsim_format *f;
    size_t matrices, rows, cols;
    void *codes;
    float inverse;
    float *factors; /* of every element: that of its block */
} numbers;

static double rounded(const mpsim_format *f, int mode, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    return mpsim_decode(f, mpsim_encode_f64(f, &r, x, 0, NULL));
}

/* The number of the element of x that stands at place i of an array of the same shape without gaps and broadcasts. */
static numbers enter(const mpsim_stack *x, const mpsim_entering *how)
{
    const size_t n = elements(x), cols = x->shape[x->rank - 1], rows = x->shape[x->rank - 2];
    const mpsim_format *f = how->format ? how->format : x->format;
    const mpsim_block_recipe *b = how->recipe;
    numbers y = {.f = f, .rows = rows, .cols = cols, .inverse = 1};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    y.matrices = rows && cols ? n / rows / cols : 0;
    y.codes = calloc(n + 1, 8);
    double *v = calloc(n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = rounded(f, how->mode, value(x, i));
    if (!b && !how->hadamard) {
        for (size_t i = 0; i < n; i++)
            code_store((char *)y.codes + i * mpsim_format_code_bytes(f), mpsim_format_code_bytes(f),
                       mpsim_encode_f64(f, &r, v[i], 0, NULL));
        free(v);
        return y;
    }
    float *w = calloc(n + 1, sizeof *w);
    for (size_t i = 0; i < n; i++)
        w[i] = (float)v[i];
    for (size_t i = 0; how->hadamard && i < n; i += cols)
        ck_assert(mpsim_hadamard_groups(w + i, cols, how->hadamard, 0) == MPSIM_OK);
    for (size_t i = 0; how->hadamard && i < n; i++)
        w[i] = (float)rounded(f, how->mode, (double)w[i]);
    const int whole = b && b->block_rows == 0 && b->block_cols == 0;
    const int as_codes = whole || how->use != MPSIM_BLOCKS_AS_VALUES;
    y.f = !b ? f : as_codes ? mpsim_format_find(b->element) : mpsim_format_find("bf16");
    y.factors = b && as_codes && !whole ? calloc(n + 1, sizeof(float)) : NULL;
    const size_t bytes = mpsim_format_code_bytes(y.f), height = whole ? n / cols : rows;
    const float most = mpsim_amax(w, n);
    size_t grid_rows = 0, grid_cols = 0;
    if (b)
        mpsim_block_grid(b, height, cols, &grid_rows, &grid_cols);
    uint8_t *codes = calloc(n + 1, 1), *scales = calloc(grid_rows * grid_cols + 1, 1);
    float *values = calloc(n + 1, sizeof *values), *inverses = calloc(grid_rows * grid_cols + 1, sizeof *inverses);
    for (size_t first = 0; b && first < n; first += height * cols) {
        float tensor = 1;
        mpsim_rng rng = how->rng;
        rng.index += first;
        const mpsim_blocks out = {
            .codes = codes + first, .values = values + first, .scale_codes = scales, .inverses = inverses};
        const float amax = b->rule == MPSIM_SCALE_NVFP4_TE ? most : -1;
        ck_assert(mpsim_block_quantize(b, w + first, height, cols, amax, how->given, &rng, &out, &tensor) == MPSIM_OK);
        const mpsim_format *scale_format = how->use == MPSIM_BLOCKS_SCALED ? mpsim_block_scale_format(b) : NULL;
        y.inverse = whole ? inverses[0] : scale_format ? tensor : 1;
        for (size_t i = 0; y.factors && i < height * cols; i++) {
            const size_t block = i / cols / (b->block_rows ? b->block_rows : height) * grid_cols +
                                 i % cols / (b->block_cols ? b->block_cols : cols);
            y.factors[first + i] = scale_format ? (float)mpsim_decode(scale_format, scales[block]) : inverses[block];
        }
    }
    for (size_t i = 0; i < n; i++)
        code_store((char *)y.codes + i * bytes, bytes,
                   !b         ? mpsim_encode_f32(y.f, &r, w[i], 0, NULL)
                   : as_codes ? codes[i]
                              : mpsim_encode_f32(y.f, &r, values[i], 0, NULL));
    free(codes);
    free(scales);
    free(values);
    free(inverses);
    free(w);
    free(v);
    return y;
}

static void numbers_clear(numbers *x)
{
    free(x->codes);
    free(x->factors);
}

/* Which matrix of x belongs to matrix i of d. */
static size_t matrix_for(const mpsim_stack *x, const mpsim_stack *d, size_t i)
{
    size_t index[MPSIM_STACK_RANK] = {0}, at = 0;
    for (uint32_t k = d->rank - 2; k-- > 0; i /= d->shape[k])
        index[k] = i % d->shape[k];
    for (uint32_t k = 0; k + 2 < x->rank; k++)
        at = at * x->shape[k] + (x->shape[k] == 1 ? 0 : index[k + d->rank - x->rank]);
    return at;
}

/* The value that is added at row r, column c of matrix i of d. */
static double added(const mpsim_stack *x, const mpsim_stack *d, size_t i, size_t r, size_t c)
{
    const size_t rows = x->shape[x->rank - 2], cols = x->shape[x->rank - 1];
    return value(x, (matrix_for(x, d, i) * rows + (rows == 1 ? 0 : r)) * cols + (cols == 1 ? 0 : c));
}

static uint64_t chain(const mpsim_product *p, const numbers *a, size_t ia, const numbers *b, size_t ib, size_t first,
                      size_t n, uint64_t start, const mpsim_rng *rng)
{
    uint64_t d = 0;
    const char *x = (const char *)a->codes + (ia * a->cols + first) * mpsim_format_code_bytes(a->f);
    const char *y = (const char *)b->codes + (ib * b->cols + first) * mpsim_format_code_bytes(b->f);
    ck_assert(mpsim_dot(p->model, a->f, x, b->f, y, n, start, rng, &d) == MPSIM_OK);
    return d;
}

/* The sum with scales of blocks: those of a line, side by side. */
static uint64_t scaled_chain(const mpsim_product *p, const mpsim_format *f, const numbers *a, size_t ia,
                             const numbers *b, size_t ib, size_t n)
{
    const size_t block = p->model->block;
    uint8_t codes[2][64];
    mpsim_rounding r;
    uint64_t d = 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t q = 0; q * block < n; q++) {
        codes[0][q] = (uint8_t)mpsim_encode_f32(f, &r, a->factors[ia * a->cols + q * block], 0, NULL);
        codes[1][q] = (uint8_t)mpsim_encode_f32(f, &r, b->factors[ib * b->cols + q * block], 0, NULL);
    }
    const mpsim_scales sa = {f, codes[0], 64}, sb = {f, codes[1], 64};
    ck_assert(mpsim_dot_scaled(p->model, a->f, (const char *)a->codes + ia * a->cols, &sa, b->f,
                               (const char *)b->codes + ib * b->cols, &sb, n, 0, NULL, &d) == MPSIM_OK);
    return d;
}

typedef struct judged {
    mpsim_product p;
    mpsim_stack a, b; /* as they entered */
    mpsim_entering how_a, how_b;
    numbers na, nb;
    mpsim_entered counts;
} judged;

static double expected(judged *j, size_t i, size_t r, size_t c)
{
    const mpsim_product *p = &j->p;
    const mpsim_stack *d = p->d;
    const mpsim_format *result = &p->model->result.format, *rounds = p->numbers ? p->numbers : d->format;
    const size_t ia = matrix_for(&j->a, d, i) * j->na.rows + r, ib = matrix_for(&j->b, d, i) * j->nb.rows + c;
    const size_t depth = p->depth_limit && p->depth_limit < j->na.cols ? p->depth_limit : j->na.cols;
    mpsim_rounding even;
    mpsim_rounding_init(&even, MPSIM_ROUND_NEAREST_EVEN);
    uint64_t start = 0;
    float s = 0;
    if (p->start)
        start = mpsim_encode_f64(result, &even, added(p->start, d, i, r, c), 0, NULL);
    mpsim_rng rng = p->rng ? *p->rng : (mpsim_rng){0, 0, 0};
    rng.index += ((uint64_t)((i * d->shape[d->rank - 2] + r) * d->shape[d->rank - 1] + c)) << 32;
    if (j->na.factors && p->model->block) {
        s = (float)mpsim_decode(
            result, scaled_chain(p, mpsim_block_scale_format(j->how_a.recipe), &j->na, ia, &j->nb, ib, depth));
    } else if (j->na.factors) {
        const size_t block = j->how_a.recipe->block_cols ? j->how_a.recipe->block_cols : j->na.cols;
        for (size_t k = 0; k < depth; k += block) {
            const float factor = j->na.factors[ia * j->na.cols + k] * j->nb.factors[ib * j->nb.cols + k];
            const uint64_t sum = chain(p, &j->na, ia, &j->nb, ib, k, depth - k < block ? depth - k : block, 0, NULL);
            s = fmaf(factor, (float)mpsim_decode(result, sum), s);
        }
    } else {
        s = (float)mpsim_decode(result, chain(p, &j->na, ia, &j->nb, ib, 0, depth, start, p->rng ? &rng : NULL));
    }
    if (j->na.inverse != 1 || j->nb.inverse != 1) {
        const float factor = j->na.inverse * j->nb.inverse;
        s = s * factor;
    }
    s = p->factor == 1 ? s : s * p->factor;
    if (p->bias)
        s = s + (float)added(p->bias, d, i, r, c);
    if (p->add) {
        const float x = (float)added(p->add, d, i, r, c);
        s = s + (p->add_factor == 1 ? x : x * p->add_factor);
    }
    unsigned flags = 0;
    const double y = mpsim_decode(rounds, mpsim_encode_f32(rounds, &even, s, 0, &flags));
    j->counts.nonzero += isfinite(s) && s != 0;
    j->counts.lost += isfinite(s) && s != 0 && y == 0;
    j->counts.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
    j->counts.nonfinite += isfinite(y) ? 0 : 1;
    return y;
}

static int same(double x, double y)
{
    return bits_of_f64(x) == bits_of_f64(y) || (isnan(x) && isnan(y));
}

/* Runs the product and compares each number; d and what lies in its gaps. */
static void judge(judged *j, const mpsim_pool *pool, int in_one_call, const char *what)
{
    mpsim_product p = j->p;
    const mpsim_stack *d = p.d;
    const size_t rows = d->shape[d->rank - 2], columns = d->shape[d->rank - 1], n = elements(d);
    mpsim_operand a, b;
    mpsim_entered counts = {0, 0, 0, 0};
    memset(&j->counts, 0, sizeof j->counts);
    double *want = calloc(n + 1, sizeof *want);
    for (size_t i = 0; i < n; i++)
        want[i] = expected(j, i / (rows * columns), i / columns % rows, i % columns);
    p.counts = &counts;
    if (in_one_call) {
        ck_assert_msg(mpsim_product_of(&p, &j->a, &j->how_a, &j->b, &j->how_b, pool) == MPSIM_OK, "%s", what);
    } else {
        ck_assert_msg(mpsim_operand_enter(&a, &j->a, &j->how_a, NULL, pool) == MPSIM_OK, "%s", what);
        ck_assert_msg(mpsim_operand_enter(&b, &j->b, &j->how_b, NULL, pool) == MPSIM_OK, "%s", what);
        p.a = &a;
        p.b = &b;
        const mpsim_status s = mpsim_product_run(&p, pool);
        ck_assert_msg(s == MPSIM_OK, "%s: %s", what, mpsim_status_string(s));
        mpsim_operand_free(&a);
        mpsim_operand_free(&b);
    }
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(same(value(d, i), want[i]), "%s: number %zu is %a, not %a", what, i, value(d, i), want[i]);
    ck_assert_msg(memcmp(&counts, &j->counts, sizeof counts) == 0, "%s: counts %d %d %d %d, not %d %d %d %d", what,
                  (int)counts.nonzero, (int)counts.lost, (int)counts.overflow, (int)counts.nonfinite,
                  (int)j->counts.nonzero, (int)j->counts.lost, (int)j->counts.overflow, (int)j->counts.nonfinite);
    free(want);
}

/* ---- products of any kind ---- */

typedef struct kind {
    const char *model, *lies, *format, *recipe;
    uint8_t use;
    uint32_t hadamard;
    const char *d, *numbers;
} kind;

static const kind kinds[] = {
    {"hopper-bf16-fp32", "binary32", "bf16", NULL, 0, 0, "bf16", NULL},
    {"hopper-bf16-fp32", "bf16", NULL, NULL, 0, 0, "binary32", NULL},
    {"hopper-wgmma-fp8-fp32", "bf16", "e4m3", NULL, 0, 0, "fp16", NULL},
    {"fma", "binary32", NULL, NULL, 0, 0, "binary32", NULL},
    {"fma", "fp16", NULL, NULL, 0, 0, "binary32", "bf16"},
    {"exact", "binary64", "bf16", NULL, 0, 0, "binary32", "e5m7"},
    {"avx512-bf16-fp32", "binary32", "bf16", NULL, 0, 0, "bf16", NULL},
    {"ampere-tf32-fp32", "binary32", "tf32", NULL, 0, 0, "binary32", NULL},
    {"cdna3-fp8-fp32", "binary32", "e4m3fnuz", NULL, 0, 0, "fp16", NULL},
    {"volta-fp16-fp16", "binary32", "fp16", NULL, 0, 0, "fp16", NULL},
    {"fma:e5m7", "binary32", "e5m7", NULL, 0, 0, "binary64", NULL},
    {"pairwise:bf16", "fp16", "bf16", NULL, 0, 0, "bf16", NULL},
    {"hopper-wgmma-fp8-fp32", "binary32", "bf16", "te-current", 0, 0, "bf16", NULL},
    {"hopper-wgmma-fp8-fp32", "bf16", NULL, "te-current-pow2", 0, 0, "binary32", NULL},
    {"hopper-wgmma-fp8-fp32", "binary32", "fp16", "torchao-tensorwise", 0, 16, "fp16", NULL},
    {"hopper-bf16-fp32", "binary32", "bf16", "mxfp8", MPSIM_BLOCKS_AS_VALUES, 0, "bf16", NULL},
    {"hopper-bf16-fp32", "binary32", "bf16", "nvfp4", MPSIM_BLOCKS_AS_VALUES, 16, "bf16", NULL},
    {"hopper-bf16-fp32", "bf16", "bf16", "nvfp4-sr", MPSIM_BLOCKS_AS_VALUES, 16, "bf16", NULL},
    {"hopper-wgmma-fp8-fp32", "binary32", "bf16", "deepgemm-1x128", MPSIM_BLOCKS_AS_CODES, 0, "bf16", NULL},
    {"ada-fp8-fp32", "binary32", "bf16", "te-block-128x128", MPSIM_BLOCKS_AS_CODES, 0, "binary32", NULL},
    {"blackwell-tcgen05-mxf8f6f4", "binary32", "bf16", "mxfp8", MPSIM_BLOCKS_SCALED, 0, "bf16", NULL},
    {"rtx-blackwell-mxf4nvf4", "binary32", "bf16", "nvfp4", MPSIM_BLOCKS_SCALED, 0, "bf16", NULL},
    {"rtx-blackwell-mxf4nvf4", "bf16", NULL, "nvfp4-2d", MPSIM_BLOCKS_SCALED, 16, "binary32", NULL},
};

static mpsim_entering entering_of(const kind *k, mpsim_block_recipe *recipe)
{
    mpsim_entering how = {
        .format = k->format ? mpsim_format_find(k->format) : NULL, .use = k->use, .hadamard = k->hadamard};
    unsigned transform;
    how.rng = (mpsim_rng){7, 3, 1000};
    if (how.format && strcmp(k->format, "tf32") == 0)
        how.mode = MPSIM_ROUND_NEAREST_AWAY;
    if (!k->recipe)
        return how;
    ck_assert(mpsim_block_parse(recipe, &transform, k->recipe, NULL, 0) == MPSIM_OK);
    how.recipe = recipe;
    return how;
}

/* A stack of the outer shape of d, or of less: dimensions of 1, or missing. */
static array operand_new(const char *format, uint32_t rank, const size_t *outer, size_t rows, size_t cols,
                         int broadcasts, uint64_t *seed)
{
    size_t shape[MPSIM_STACK_RANK];
    const uint32_t missing = (uint32_t)below(seed, 3) == 0 ? (uint32_t)below(seed, rank - 1) : 0;
    for (uint32_t i = 0; i + 2 < rank; i++)
        shape[i] = below(seed, 5) == 0 ? 1 : outer[i];
    shape[rank - 2] = rows;
    shape[rank - 1] = cols;
    array x = array_new(mpsim_format_find(format), rank - missing, shape + missing, broadcasts, seed);
    array_fill(&x, below(seed, 4) == 0, seed);
    return x;
}

static void one_product(const kind *k, uint64_t *seed)
{
    mpsim_model m;
    mpsim_block_recipe of_a, of_b;
    size_t shape[MPSIM_STACK_RANK];
    const uint32_t rank = 2 + (uint32_t)below(seed, 4);
    const size_t depth = k->recipe ? 1 + below(seed, 200) : below(seed, 70);
    mpsim_format wanted, *rounds = NULL;
    for (uint32_t i = 0; i + 2 < rank; i++)
        shape[i] = 1 + below(seed, 3);
    shape[rank - 2] = 1 + below(seed, 20);
    shape[rank - 1] = 1 + below(seed, 20);
    const int broadcasts = !k->recipe || strcmp(k->recipe, "nvfp4-sr") != 0; /* random bits by index: see below */
    array d = array_new(mpsim_format_find(k->d), rank, shape, 0, seed);
    array a = operand_new(k->lies, rank, shape, shape[rank - 2], depth, broadcasts, seed);
    array b = operand_new(k->lies, rank, shape, shape[rank - 1], depth, broadcasts, seed);
    array bias = operand_new(below(seed, 2) ? "bf16" : "binary32", rank, shape, below(seed, 2) ? 1 : shape[rank - 2],
                             below(seed, 3) ? shape[rank - 1] : 1, 1, seed);
    array_fill(&d, 0, seed);
    ck_assert(mpsim_model_parse(&m, k->model) == MPSIM_OK);
    judged j = {.a = a.s, .b = b.s, .how_a = entering_of(k, &of_a), .how_b = entering_of(k, &of_b)};
    j.na = enter(&j.a, &j.how_a);
    j.nb = enter(&j.b, &j.how_b);
    mpsim_product_init(&j.p);
    j.p.model = &m;
    j.p.d = &d.s;
    if (k->numbers) {
        ck_assert(mpsim_format_parse(&wanted, k->numbers) == MPSIM_OK);
        rounds = &wanted;
    }
    j.p.numbers = rounds;
    j.p.bias = below(seed, 2) ? &bias.s : NULL;
    j.p.add = strcmp(k->d, "binary64") != 0 && below(seed, 3) == 0 ? &d.s : NULL;
    j.p.factor = below(seed, 3) ? 1 : 0.37F;
    j.p.add_factor = below(seed, 3) ? 1 : 1.7F;
    j.p.depth_limit = below(seed, 4) || k->recipe ? 0 : 1 + below(seed, 60);
    char what[200];
    snprintf(what, sizeof what, "%s of %s as %s, %s, to %s", k->model, k->lies, k->format ? k->format : "it is",
             k->recipe ? k->recipe : "no recipe", k->d);
    judge(&j, below(seed, 2) ? &threads : NULL, (int)below(seed, 2), what);
    numbers_clear(&j.na);
    numbers_clear(&j.nb);
    free(a.memory);
    free(b.memory);
    free(d.memory);
    free(bias.memory);
}

CASE("product", 60);

TEST(any_product)
{
    uint64_t seed = test_seed() + 44;
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t t = 0; t < test_scaled(40); t++) {
            if (t % 4 == 1 && !test_isa_use(t / 4 % (size_t)test_isa_count()))
                continue;
            one_product(&kinds[i], &seed);
        }
    (void)mpsim_isa_use(NULL);
}

enum { TALL = 310, BROAD = 217 };

/* Codes of each size that lie across, of two matrices, backwards: as they are, and rounded. */
TEST(turned_codes)
{
    static const char *const formats[] = {"e4m3", "bf16", "binary32", "binary64"};
    static uint64_t memory[2 * TALL * BROAD];
    uint64_t seed = test_seed() + 48;
    for (size_t i = 0; i < 2 * COUNT(formats); i++) {
        const mpsim_format *f = mpsim_format_find(formats[i / 2]);
        array a = {.s = {.format = f, .codes = memory, .rank = 3, .shape = {2, TALL, BROAD}},
                   .bytes = mpsim_format_code_bytes(f)};
        int64_t *w = a.s.strides;
        w[0] = TALL * BROAD;
        w[1] = i % 2 ? 1 : -1;
        w[2] = TALL;
        a.s.codes = (char *)memory + (i % 2 ? 0 : (TALL - 1) * mpsim_format_code_bytes(f));
        array_fill(&a, 0, &seed);
        const mpsim_entering how = {.format = mpsim_format_find(i % 2 ? "bf16" : "e5m2")};
        mpsim_operand o;
        ck_assert(mpsim_operand_enter(&o, &a.s, &how, NULL, &threads) == MPSIM_OK);
        for (size_t k = 0; k < 2 * TALL * BROAD; k++) {
            const double y = value(&o.stack, k), z = rounded(how.format, 0, value(&a.s, k));
            ck_assert_msg(same(y, z), "%s: number %zu is %a, not %a", f->name, k, y, z);
        }
        mpsim_operand_free(&o);
    }
}

TEST_MAIN("product");
