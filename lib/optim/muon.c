/* muon.c -- see mpsim/muon.h. */
#include <mpsim/gradient.h>
#include <mpsim/muon.h>
#include <mpsim/torchmm.h>

#include "../base/codes.h"
#include "../base/matrix.h"
#include "../base/transpose.h"
#include "aten.h"
#include "steps.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

void mpsim_muon_init(mpsim_muon *o, mpsim_muon_form form, const mpsim_optim_variant *v)
{
    memset(o, 0, sizeof *o);
    o->variant = v;
    o->form = (uint8_t)form;
    o->nesterov = 1;
    o->steps = 5;
    o->lr = form == MPSIM_MUON_KELLER ? 0.02 : 1e-3;
    o->momentum = 0.95;
    o->weight_decay = form == MPSIM_MUON_KELLER ? 0 : 0.1;
    o->eps = 1e-7;
    o->a = 3.4445;
    o->b = -4.7750;
    o->c = 2.0315;
    o->param = *mpsim_format_find("binary32");
    o->format = *mpsim_format_find("bf16");
    mpsim_model_parse(&o->model, "exact");
}

static int is_narrow(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL) == MPSIM_OK;
}

mpsim_status mpsim_muon_check(const mpsim_muon *o)
{
    enum { MOST_STEPS = 99 };
    if (!o)
        return MPSIM_EINVAL;
    const double not_negative[] = {o->lr, o->weight_decay, o->eps}, any[] = {o->a, o->b, o->c};
    const mpsim_optim_row *row = mpsim_optim_row_of(o->variant);
    for (size_t i = 0; i < 3; i++)
        if (!isfinite(not_negative[i]) || not_negative[i] < 0 || !(fabs(any[i]) <= (double)FLT_MAX))
            return MPSIM_EINVAL;
    if (!(o->factor >= 0 && isfinite(o->factor)))
        return MPSIM_EINVAL;
    if (!row || !(o->momentum >= 0 && o->momentum <= 1) || o->steps > MOST_STEPS || o->form > MPSIM_MUON_KELLER ||
        o->scale > MPSIM_MUON_NONE || o->products > MPSIM_MUON_ONEDNN_AMX || mpsim_model_check(&o->model))
        return MPSIM_EINVAL;
    if (o->products && (o->form != MPSIM_MUON_TORCH || !mpsim_format_same(&o->format, mpsim_format_find("bf16"))))
        return MPSIM_EINVAL;
    if (!row->rules || (o->nesterov && o->momentum == 0))
        return MPSIM_EUNAVAILABLE;
    return is_narrow(&o->param) && is_narrow(&o->format) && is_narrow(&o->model.result.format) &&
                   (!o->model.operands || mpsim_model_accepts(&o->model, &o->format, &o->format))
               ? MPSIM_OK
               : MPSIM_ERANGE;
}

double mpsim_muon_work(const mpsim_muon *o, size_t rows, size_t columns)
{
    const double m = (double)(rows < columns ? rows : columns), n = (double)(rows < columns ? columns : rows);
    return o->steps * (2 * m * m * n + m * m * m);
}

double mpsim_muon_factor(const mpsim_muon *o, size_t rows, size_t columns)
{
    const double r = (double)rows, c = (double)columns;
    if (o->factor > 0)
        return o->factor;
    switch (o->scale) {
    case MPSIM_MUON_ORIGINAL:
        return sqrt(r > c ? r / c : 1);
    case MPSIM_MUON_MATCH_RMS_ADAMW:
        return 0.2 * sqrt(r > c ? r : c);
    case MPSIM_MUON_SPECTRAL:
        return sqrt(r / c);
    default:
        return 1;
    }
}

/* ---- operations on elements, as steps of an optimizer do them: vectors of a tensor and its tail ---- */

typedef struct part {
    const mpsim_muon *o;
    mpsim_held param;
    mpsim_ops ops;
} part;

typedef void part_function(const part *p, float *x, float *y, const float *z);

/* view: an operand's elements are not one behind the other, which a CPU's vectors do not take: all is tail. */
static void each_part(const mpsim_muon *o, part_function *run, float *x, float *y, const float *z, size_t n, int view)
{
    const mpsim_optim_row *row = mpsim_optim_row_of(o->variant);
    part p = {o, mpsim_hold(&o->param), {.rules = row->rules}};
    const size_t multiple = view ? 0 : row->body[p.param.exact ? 0 : 1], body = multiple ? n - n % multiple : 0;
    for (size_t i = 0; i < n; i += p.ops.n) {
        const size_t end = i < body ? body : n;
        p.ops.n = end - i < MPSIM_OPTIM_BLOCK ? end - i : MPSIM_OPTIM_BLOCK;
        p.ops.tail = i >= body;
        run(&p, x + i, y ? y + i : NULL, z ? z + i : NULL);
    }
}

static void momentum_part(const part *p, float *b, float *u, const float *g)
{
    float update[MPSIM_OPTIM_BLOCK];
    mpsim_op_lerp(&p->ops, &p->param, b, g, 1 - p->o->momentum);
    memcpy(update, p->o->nesterov ? g : b, p->ops.n * sizeof *update);
    if (p->o->nesterov)
        mpsim_op_lerp(&p->ops, &p->param, update, b, p->o->momentum);
    memcpy(u, update, p->ops.n * sizeof *update);
}

mpsim_status mpsim_muon_momentum(const mpsim_muon *o, float *b, float *u, const float *g, size_t n)
{
    const mpsim_status s = mpsim_muon_check(o);
    if (s || (n > 0 && (!b || !u || !g)) || !mpsim_fits(n, sizeof *b))
        return s ? s : MPSIM_EINVAL;
    each_part(o, momentum_part, b, u, g, n, 0);
    return MPSIM_OK;
}

/* What apply needs of a matrix. */
typedef struct applied {
    mpsim_muon o; /* first: parts see it */
    double decay, alpha;
} applied;

static void apply_part(const part *p, float *x, float *unused, const float *y)
{
    const applied *a = (const applied *)(const void *)p->o;
    (void)unused;
    mpsim_op_mul(&p->ops, &p->param, x, a->decay);
    mpsim_op_add(&p->ops, &p->param, x, y, a->alpha);
}

static double alpha_of(const mpsim_muon *o, double factor)
{
    return -o->lr * (o->form == MPSIM_MUON_TORCH ? factor : 1);
}

/* Whether y is a transposed view, whose elements are all of the scalar tail. */
static int is_view(size_t rows, size_t columns)
{
    return rows > columns && columns > 1;
}

void mpsim_muon_plan_of(mpsim_muon_plan *p, const mpsim_muon *o, size_t rows, size_t columns)
{
    const mpsim_optim_row *row = mpsim_optim_row_of(o->variant);
    const mpsim_held param = mpsim_hold(&o->param), format = mpsim_hold(&o->format);
    const double factor = mpsim_muon_factor(o, rows, columns);
    *p = (mpsim_muon_plan){.contraction = mpsim_op_contraction(row->rules),
                           .end = (float)(1 - o->momentum),
                           .momentum = (float)o->momentum,
                           .decay = mpsim_op_factor(row->rules, &param, 1 - o->lr * o->weight_decay),
                           .alpha = mpsim_op_alpha(row->rules, &param, alpha_of(o, factor)),
                           .factor = (float)factor,
                           .eps = mpsim_hold_one(&format, (float)o->eps),
                           .a = (float)o->a,
                           .b = (float)o->b,
                           .c = (float)o->c,
                           .multiple = is_view(rows, columns) ? 0 : row->body[param.exact ? 0 : 1],
                           .rounds_products = (uint8_t)mpsim_op_multiplies_first(row->rules, &param)};
}

mpsim_status mpsim_muon_apply(const mpsim_muon *o, float *p, float *y, size_t rows, size_t columns)
{
    const mpsim_status s = mpsim_muon_check(o);
    const size_t n = mpsim_elements(rows, columns);
    if (s || (n > 0 && (!p || !y)) || !mpsim_fits(n, sizeof *p))
        return s ? s : MPSIM_EINVAL;
    const double factor = mpsim_muon_factor(o, rows, columns);
    applied a = {*o, 1 - o->lr * o->weight_decay, alpha_of(o, factor)};
    if (o->form == MPSIM_MUON_KELLER) {
        const mpsim_held h = mpsim_hold(&o->format);
        mpsim_op(MPSIM_OP_SCALE, y, y, NULL, (float)factor, n);
        mpsim_hold_array(&h, y, n);
    }
    each_part(&a.o, apply_part, p, NULL, y, n, is_view(rows, columns));
    return MPSIM_OK;
}

/* ---- orthogonalise ---- */

/* X is m x n with m <= n; matrices are values, and codes where they enter a product. */
typedef struct iteration {
    const mpsim_muon *o;
    mpsim_held h;
    size_t m, n;
    float *x, *a, *b, *product; /* m n, m m, m m, m n */
    void *left, *right;         /* codes              */
    float *by_rows, *sums;      /* of ATen's products alone: X transposed; room */
    int by_columns;             /* X is a view of a tall matrix, as torch has it until the first step is done */
    const mpsim_pool *pool;
    float ca, cb, cc;
} iteration;

static int allocate(iteration *t)
{
    const size_t code = mpsim_format_code_bytes(&t->o->format), wide = sizeof(double);
    if (t->n > SIZE_MAX / wide / t->m)
        return 0;
    const size_t large = t->m * t->n, small = t->m * t->m;
    t->x = malloc(large * sizeof(float));
    t->a = malloc(small * sizeof(float));
    t->b = malloc(small * sizeof(float));
    t->product = malloc(large * wide); /* codes of the result first */
    t->left = malloc(large * code);
    t->right = malloc(large * code);
    if (t->o->products) {
        t->by_rows = malloc(large * sizeof(float));
        t->sums = malloc(4 * t->n * sizeof(float));
    }
    return t->x && t->a && t->b && t->product && t->left && t->right && (!t->o->products || (t->by_rows && t->sums));
}

static void release(iteration *t)
{
    free(t->x);
    free(t->a);
    free(t->b);
    free(t->product);
    free(t->left);
    free(t->right);
    free(t->by_rows);
    free(t->sums);
}

/* Codes of values that are numbers of the format. */
static void encode(const iteration *t, void *codes, const float *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_encode_array_f32(&t->o->format, &r, NULL, codes, x, n, NULL);
}

/* X X' and B X are, by columns, a chain and dot products; else dot products and four chains, as A A is. */
static mpsim_status multiply_as_aten(iteration *t, const float *x, const float *y, size_t depth, size_t columns,
                                     int transposed)
{
    const int view = t->by_columns && y == t->x;
    if (view)
        mpsim_transpose(t->by_rows, t->x, t->m, t->n);
    const float *w = view ? t->by_rows : y;
    if (transposed != view)
        mpsim_aten_dots(t->product, x, w, t->m, columns, depth, t->o->products >= MPSIM_MUON_ATEN_AVX2);
    else
        mpsim_aten_chains(t->product, x, w, t->m, columns, depth, view ? 1 : 4, t->sums);
    return MPSIM_OK;
}

/* By the model, or as oneDNN cuts the depth: see data/vectors/onednn. */
static mpsim_status model_of(mpsim_model *m, const iteration *t, const float *x, size_t depth, int transposed)
{
    const int view = t->by_columns && transposed && x == t->x;
    *m = t->o->model;
    if (t->o->products < MPSIM_MUON_ONEDNN)
        return MPSIM_OK;
    if (t->o->products == MPSIM_MUON_ONEDNN_AMX) {
        const mpsim_status status = mpsim_model_parse(m, "amx-bf16-fp32");
        m->chunk = view ? m->chunk : (uint32_t)mpsim_torch_mm_tile(depth);
        return status;
    }
    const mpsim_status s = mpsim_model_parse(m, "avx512-bf16-fp32");
    m->chunk = (uint32_t)mpsim_torch_mm_chunk(depth, view);
    return s;
}

/* t->product = P(x, y), x of m x depth, y of depth x columns, or of columns x depth and transposed. */
static mpsim_status multiply(iteration *t, const float *x, const float *y, size_t depth, size_t columns, int transposed)
{
    const int small = t->m * columns * depth <= 4096; /* torch does not ask oneDNN */
    mpsim_model model;
    if (t->o->products && (t->o->products < MPSIM_MUON_ONEDNN || small))
        return multiply_as_aten(t, x, y, depth, columns, transposed);
    mpsim_status s = model_of(&model, t, x, depth, transposed);
    const mpsim_format *f = &t->o->format, *result = &model.result.format;
    const mpsim_held held = mpsim_hold(result);
    const size_t n = t->m * columns, bytes = mpsim_format_code_bytes(result);
    if (s)
        return s;
    encode(t, t->left, x, t->m * depth);
    encode(t, t->right, y, depth * columns);
    const mpsim_matrix a = {f, t->left, depth, 0}, b = {f, t->right, transposed ? depth : columns, transposed};
    s = mpsim_gemm(&model, t->m, columns, depth, &a, &b, NULL, t->product, columns, NULL, t->pool);
    if (s || held.exact)
        return s;
    for (size_t i = n; i-- > 0;) /* codes are not wider than values: from the end */
        t->product[i] = (float)mpsim_decode(result, mpsim_code_load(t->product, bytes, i));
    return MPSIM_OK;
}

static void round_all(const iteration *t, float *x, size_t n)
{
    mpsim_hold_array(&t->h, x, n);
}

static void combine_blocks(const iteration *t, float *y, float *p, float ca, const float *x, float cb, size_t n)
{
    float z[MPSIM_OPTIM_BLOCK];
    for (size_t i = 0, size; i < n; i += size) {
        size = n - i < MPSIM_OPTIM_BLOCK ? n - i : MPSIM_OPTIM_BLOCK;
        mpsim_op(MPSIM_OP_SCALE, z, x + i, NULL, cb, size);
        if (t->o->form == MPSIM_MUON_KELLER) {
            round_all(t, z, size);
            round_all(t, p + i, size);
        } else {
            mpsim_op(MPSIM_OP_SCALE, p + i, p + i, NULL, ca, size);
        }
        mpsim_op(MPSIM_OP_ADD, z, p + i, NULL, 0, size);
        memcpy(y + i, z, size * sizeof *z);
    }
}

/* y = [ca p + cb x] in TORCH's form, [[cb x] + [p]] in KELLER's, where p was made of a factor already. */
static void combine(const iteration *t, float *y, float *p, float ca, const float *x, float cb, size_t n)
{
    if (t->o->products >= MPSIM_MUON_ATEN_AVX2)
        for (size_t i = 0; i < n; i++)
            y[i] = fmaf(cb, x[i], ca * p[i]);
    else
        combine_blocks(t, y, p, ca, x, cb, n);
    round_all(t, y, n);
}

static void scale_by(const iteration *t, float *y, const float *x, float factor, size_t n)
{
    mpsim_op(MPSIM_OP_SCALE, y, x, NULL, factor, n);
    round_all(t, y, n);
}

static mpsim_status iterate(iteration *t)
{
    const size_t small = t->m * t->m, large = t->m * t->n;
    mpsim_status s = multiply(t, t->x, t->x, t->n, t->m, 1);
    if (s)
        return s;
    memcpy(t->a, t->product, small * sizeof(float));
    round_all(t, t->a, small);
    memcpy(t->b, t->a, small * sizeof(float));
    if (t->o->form == MPSIM_MUON_KELLER)
        scale_by(t, t->b, t->a, t->cc, small);
    s = multiply(t, t->b, t->a, t->m, t->m, 0);
    if (s)
        return s;
    combine(t, t->b, t->product, t->cc, t->a, t->cb, small);
    s = multiply(t, t->b, t->x, t->m, t->n, 0);
    if (!s)
        combine(t, t->x, t->product, 1, t->x, t->ca, large);
    t->by_columns = 0;
    return s;
}

static void normalise(const iteration *t)
{
    const size_t n = t->m * t->n;
    const float eps = mpsim_hold_one(&t->h, (float)t->o->eps);
    float norm = mpsim_norm(&t->o->format, t->x, n);
    if (t->o->form == MPSIM_MUON_KELLER)
        norm = mpsim_hold_one(&t->h, norm + eps);
    else
        norm = norm < eps ? eps : norm;
    mpsim_op(MPSIM_OP_DIVIDE, t->x, t->x, NULL, norm, n);
    round_all(t, t->x, n);
}

/* y = x, of rows x columns, transposed where the iteration needs it. */
static void copy_matrix(int transposed, float *y, const float *x, size_t rows, size_t columns)
{
    if (transposed)
        mpsim_transpose(y, x, rows, columns);
    else
        memcpy(y, x, rows * columns * sizeof *y);
}

mpsim_status mpsim_muon_orthogonalise(const mpsim_muon *o, float *y, const float *u, size_t rows, size_t columns,
                                      const mpsim_pool *pool)
{
    const int tall = rows > columns;
    mpsim_status s = mpsim_muon_check(o);
    if (s || rows == 0 || columns == 0)
        return s;
    if (!y || !u || !mpsim_is_pool(pool) || !mpsim_fits(mpsim_elements(rows, columns), sizeof *y))
        return MPSIM_EINVAL;
    iteration t = {.o = o,
                   .h = mpsim_hold(&o->format),
                   .m = tall ? columns : rows,
                   .n = tall ? rows : columns,
                   .by_columns = tall,
                   .pool = pool,
                   .ca = (float)o->a,
                   .cb = (float)o->b,
                   .cc = (float)o->c};
    if (!allocate(&t))
        s = MPSIM_ENOMEM;
    if (!s) {
        copy_matrix(tall, t.x, u, rows, columns);
        round_all(&t, t.x, rows * columns);
        normalise(&t);
    }
    for (unsigned k = 0; k < o->steps && !s; k++)
        s = iterate(&t);
    if (!s)
        copy_matrix(tall, y, t.x, t.m, t.n);
    release(&t);
    return s;
}

/* ---- in binary64 ---- */

/* c = a b, of m x depth and depth x n. */
static void multiply_wide(double *c, const double *a, const double *b, size_t m, size_t depth, size_t n)
{
    memset(c, 0, m * n * sizeof *c);
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k < depth; k++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * depth + k] * b[k * n + j];
}

static void iterate_wide(const mpsim_muon *o, double *x, double *a, double *b, double *p, size_t m, size_t n)
{
    for (size_t i = 0; i < m; i++) /* a = x times x transposed */
        for (size_t j = 0; j < m; j++) {
            a[i * m + j] = 0;
            for (size_t k = 0; k < n; k++)
                a[i * m + j] += x[i * n + k] * x[j * n + k];
        }
    multiply_wide(b, a, a, m, m, m);
    for (size_t i = 0; i < m * m; i++)
        b[i] = o->c * b[i] + o->b * a[i];
    multiply_wide(p, b, x, m, m, n);
    for (size_t i = 0; i < m * n; i++)
        x[i] = p[i] + o->a * x[i];
}

mpsim_status mpsim_muon_reference(const mpsim_muon *o, double *y, const double *u, size_t rows, size_t columns)
{
    const int tall = rows > columns;
    const size_t m = tall ? columns : rows, n = tall ? rows : columns;
    const mpsim_status s = mpsim_muon_check(o);
    if (s || rows == 0 || columns == 0)
        return s;
    if (!y || !u || !mpsim_fits(mpsim_elements(rows, columns), sizeof *y))
        return MPSIM_EINVAL;
    if (n > SIZE_MAX / sizeof(double) / m)
        return MPSIM_ENOMEM;
    double *x = malloc(m * n * sizeof *x), *p = malloc(m * n * sizeof *p);
    double *a = malloc(m * m * sizeof *a), *b = malloc(m * m * sizeof *b);
    double norm = 0;
    for (size_t i = 0; x && p && a && b && i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            x[tall ? j * rows + i : i * columns + j] = u[i * columns + j];
            norm += u[i * columns + j] * u[i * columns + j];
        }
    norm = sqrt(norm);
    norm = o->form == MPSIM_MUON_KELLER ? norm + o->eps : norm < o->eps ? o->eps : norm;
    const int there = x && p && a && b;
    for (size_t i = 0; there && i < m * n; i++)
        x[i] /= norm;
    for (unsigned k = 0; there && k < o->steps; k++)
        iterate_wide(o, x, a, b, p, m, n);
    for (size_t i = 0; there && i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            y[i * columns + j] = x[tall ? j * rows + i : i * columns + j];
    free(x);
    free(p);
    free(a);
    free(b);
    return there ? MPSIM_OK : MPSIM_ENOMEM;
}
