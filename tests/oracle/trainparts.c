/* trainparts.c -- matrices, products and the copies that they read, windows, the order of
 * images. */
#include "trainparts.h"

#include "core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- matrices ---- */

void shape(matrix *m, size_t rows, size_t cols, const oracle_format *f)
{
    free(m->v);
    m->v = calloc(rows * cols, sizeof *m->v);
    if (!m->v || !f)
        abort();
    m->rows = rows;
    m->cols = cols;
    m->f = f;
    m->inverse = 1;
    m->blocks = NULL;
}

const oracle_format *oracle_format_of(const mpsim_format *f)
{
    return oracle_format_find(f->name);
}

void cast(matrix *to, const matrix *from, const oracle_format *f)
{
    shape(to, from->rows, from->cols, f);
    for (size_t i = 0; i < to->rows * to->cols; i++)
        to->v[i] = oracle_to(f, (double)from->v[i]);
}

static void put_apart(const matrix *m, const oracle_format *f, oracle_part *p)
{
    for (size_t i = 0; i < m->rows * m->cols; i++)
        p[i] = oracle_take_apart(f, m->v[i]);
}

float nearest_away(const oracle_format *f, float x)
{
    const uint32_t low = UINT32_C(1) << (24 - f->precision);
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffff) < 0x7f800000)
        u = (u + low / 2) & ~(low - 1);
    memcpy(&x, &u, sizeof u);
    return x;
}

/* How operands are multiplied. */
static const oracle_core *core_of(const oracle_train *o, const matrix *a, const matrix *b)
{
    static const oracle_core fma = {"", 0, 0, 1}, sequential = {"", 0, 0, 2};
    const int wide = a->f->precision == 24 && b->f->precision == 24;
    if (strcmp(o->run->settings.arch, "fp32-sequential") == 0)
        return &sequential;
    return wide ? &fma : oracle_core_of(o->run->settings.arch, a->f->name);
}

/* Row i of a by row j of b, both along the depth: the sums of 128, each with its factors. */
static float promoted(const oracle_core *core, const matrix *a, const oracle_part *pa, size_t i, const matrix *b,
                      const oracle_part *pb, size_t j)
{
    const float *u = a->blocks->v + i / a->block_rows * a->blocks->cols;
    const float *v = b->blocks->v + j / b->block_rows * b->blocks->cols;
    float s = 0;
    for (size_t k = 0; k < a->cols; k += 128) {
        const size_t n = a->cols - k < 128 ? a->cols - k : 128;
        const float p = core_dot(core, a->f->precision, pa + k, 1, b->f->precision, pb + k, 1, n);
        s = fmaf(u[k / 128] * v[k / 128], p, s);
    }
    return s;
}

void product(const oracle_train *o, matrix *d, const oracle_format *f, matrix a, int ta, matrix b, int tb,
             const matrix *bias)
{
    product_from(o, d, f, a, ta, b, tb, bias, NULL);
}

void product_from(const oracle_train *o, matrix *d, const oracle_format *f, matrix a, int ta, matrix b, int tb,
                  const matrix *bias, const float *start)
{
    const oracle_core *core = core_of(o, &a, &b);
    const size_t rows = ta ? a.cols : a.rows, depth = ta ? a.rows : a.cols;
    const size_t cols = tb ? b.rows : b.cols;
    oracle_part *pa = calloc(a.rows * a.cols, sizeof *pa);
    oracle_part *pb = calloc(b.rows * b.cols, sizeof *pb);
    if (!pa || !pb || depth != (tb ? b.cols : b.rows))
        abort();
    put_apart(&a, a.f, pa);
    put_apart(&b, b.f, pb);
    shape(d, rows, cols, f);
    const float factor = a.inverse * b.inverse;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            float s = a.blocks ? promoted(core, &a, pa + i * depth, i, &b, pb + j * depth, j)
                               : core_dot_from(core, start ? start[i * cols + j] : 0, a.f->precision,
                                               ta ? pa + i : pa + i * a.cols, ta ? a.cols : 1, b.f->precision,
                                               tb ? pb + j * b.cols : pb + j, tb ? 1 : b.cols, depth);
            if (a.inverse != 1 || b.inverse != 1)
                s = s * factor;
            if (bias)
                s = s + bias->v[j];
            d->v[i * cols + j] = oracle_to(f, (double)s);
        }
    free(pa);
    free(pb);
}

void windows(matrix *w, const matrix *x, size_t side)
{
    const size_t c = x->cols;
    shape(w, x->rows, 9 * c, x->f);
    w->inverse = x->inverse;
    for (size_t r = 0; r < x->rows; r++) {
        const int py = (int)(r / side % side), px = (int)(r % side), s = (int)side;
        for (int t = 0; t < 9; t++) {
            const int y = py + t / 3 - 1, z = px + t % 3 - 1;
            if (y < 0 || y >= s || z < 0 || z >= s)
                continue;
            const size_t from = r - (size_t)(py * s + px) + (size_t)(y * s + z);
            memcpy(w->v + r * w->cols + (size_t)t * c, x->v + from * c, c * sizeof *w->v);
        }
    }
}

void turned(matrix *t, const matrix *w, size_t inputs)
{
    const size_t outputs = w->rows;
    shape(t, inputs, 9 * outputs, w->f);
    t->inverse = w->inverse;
    for (size_t k = 0; k < 9; k++)
        for (size_t j = 0; j < outputs; j++)
            for (size_t i = 0; i < inputs; i++)
                t->v[i * t->cols + k * outputs + j] = w->v[j * w->cols + (8 - k) * inputs + i];
}

/* ---- copies that products read ---- */

const train_role oracle_roles[QUANTISED] = {TRAIN_ACT, TRAIN_WEIGHT, TRAIN_AGRAD};

int in_blocks(const layer *l, int which)
{
    const mpsim_block_recipe *r = l->in->recipe[oracle_roles[which]];
    return r && (r->block_rows || r->block_cols);
}

/* Element i of 16 after the transforms of neighbours up to the distance h. */
static float rotated(const float *v, size_t i, size_t h)
{
    static const int negative[16] = {0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1};
    if (h == 0)
        return negative[i] ? -v[i] : v[i];
    const float a = rotated(v, i & ~h, h / 2), b = rotated(v, i | h, h / 2);
    return i & h ? a - b : a + b;
}

static void rotate(matrix *y, const matrix *x)
{
    cast(y, x, x->f);
    for (size_t r = 0; r < x->rows; r++)
        for (size_t k = 0; k + 16 <= x->cols; k += 16)
            for (size_t i = 0; i < 16; i++)
                y->v[r * x->cols + k + i] = oracle_to(x->f, (double)(rotated(x->v + r * x->cols + k, i, 8) * 0.25f));
}

/* The words of a copy: those of the tensor, or of the copy for the weight's gradient its own. */
static mpsim_rng words_of(const oracle_train *o, const layer *l, int which, copy_for use)
{
    static const char *const kinds[QUANTISED] = {"act", "weight", "agrad"};
    char name[2 * TRAIN_NAME];
    (void)snprintf(name, sizeof name, "%s%s:%s", kinds[which], use == COPY_ROWS ? "" : ".qt", l->is->name);
    if (o->micro) /* of transformers */
        (void)snprintf(name + strlen(name), sizeof name - strlen(name), "/%u", o->micro);
    return (mpsim_rng){.seed = o->run->settings.seed, .stream = oracle_stream_of_step(o, name)};
}

/* Codes as numbers, and their factors. */
static void in_codes(matrix *y, matrix *factors, const mpsim_block_recipe *r, const matrix *t)
{
    mpsim_blocks b;
    const size_t n = t->rows * t->cols, high = r->block_rows ? r->block_rows : t->rows;
    uint8_t *codes = malloc(n);
    shape(y, t->rows, t->cols, oracle_format_find(r->element));
    shape(factors, (t->rows + high - 1) / high, (t->cols + r->block_cols - 1) / r->block_cols,
          oracle_format_find(NULL));
    memset(&b, 0, sizeof b);
    b.codes = codes;
    b.inverses = factors->v;
    if (!codes || mpsim_block_quantize(r, t->v, t->rows, t->cols, -1, 1, NULL, &b, NULL) != MPSIM_OK)
        abort();
    for (size_t i = 0; i < n; i++)
        y->v[i] = (float)mpsim_decode(mpsim_format_find(r->element), codes[i]);
    free(codes);
    y->blocks = factors;
    y->block_rows = high;
}

matrix in_pieces(const oracle_train *o, layer *l, int which, const matrix *x, copy_for use)
{
    const mpsim_block_recipe *r = l->in->recipe[oracle_roles[which]];
    matrix *y = use == COPY_ROWS ? &l->q[which] : &l->qt[which], t = {0};
    const mpsim_rng rng = words_of(o, l, which, use);
    cast(&t, x, x->f);
    if (use == COPY_COLUMNS || use == COPY_WEIGHT) {
        t.rows = x->cols;
        t.cols = x->rows;
        for (size_t i = 0; i < x->rows * x->cols; i++)
            t.v[i % x->cols * t.cols + i / x->cols] = x->v[i];
    }
    if (use == COPY_WEIGHT && l->in->hadamard) {
        rotate(&l->rht[which], &t);
        memcpy(t.v, l->rht[which].v, t.rows * t.cols * sizeof *t.v);
    }
    if (l->in->promote) {
        in_codes(y, use == COPY_ROWS ? &l->q_blocks[which] : &l->qt_blocks[which], r, &t);
    } else {
        mpsim_blocks b;
        shape(y, t.rows, t.cols, oracle_format_find("bf16"));
        memset(&b, 0, sizeof b);
        b.values = y->v;
        if (mpsim_block_quantize(r, t.v, t.rows, t.cols, -1, 1, &rng, &b, NULL) != MPSIM_OK)
            abort();
        for (size_t i = 0; i < t.rows * t.cols; i++)
            y->v[i] = oracle_to(y->f, (double)y->v[i]);
    }
    free(t.v);
    return *y;
}

matrix in_tf32(const oracle_train *o, matrix *y, const matrix *x)
{
    if (!o->run->settings.tf32 || x->f->precision != 24)
        return *x;
    cast(y, x, x->f);
    y->f = oracle_format_find("tf32");
    for (size_t i = 0; i < x->rows * x->cols; i++)
        y->v[i] = nearest_away(y->f, x->v[i]);
    return *y;
}

matrix entering(const oracle_train *o, layer *l, int which, const matrix *x)
{
    matrix *y = &l->q[which];
    if (!l->in->recipe[oracle_roles[which]])
        return in_tf32(o, y, x);
    mpsim_block_recipe r = *l->in->recipe[oracle_roles[which]];
    if (o->plan->delayed)
        r.rule = MPSIM_SCALE_GIVEN;
    shape(y, x->rows, x->cols, oracle_format_find(r.element));
    mpsim_blocks b;
    memset(&b, 0, sizeof b);
    uint8_t *codes = malloc(x->rows * x->cols);
    b.codes = codes;
    b.inverses = &y->inverse;
    const float given = o->plan->delayed ? l->scale[which].scale : 1;
    if (!codes || mpsim_block_quantize(&r, x->v, x->rows, x->cols, -1, given, NULL, &b, NULL) != MPSIM_OK)
        abort();
    const mpsim_format *f = mpsim_format_find(r.element);
    for (size_t i = 0; i < x->rows * x->cols; i++)
        y->v[i] = (float)mpsim_decode(f, codes[i]);
    free(codes);
    if (o->plan->delayed && !o->testing)
        mpsim_delayed_record(&l->scale[which], mpsim_amax(x->v, x->rows * x->cols));
    return *y;
}

/* ---- streams and batches ---- */

uint64_t oracle_stream(const char *purpose)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *purpose; purpose++)
        h = (h ^ (uint8_t)*purpose) * UINT64_C(1099511628211);
    return h;
}

void oracle_batch(uint64_t seed, uint64_t step, size_t batch, uint32_t *images)
{
    const uint64_t steps = TRAIN_IMAGES / batch, pass = step / steps;
    char name[64];
    (void)snprintf(name, sizeof name, "order of pass %llu", (unsigned long long)pass);
    const uint64_t stream = oracle_stream(name);
    uint32_t order[TRAIN_IMAGES];
    for (uint32_t i = 0; i < TRAIN_IMAGES; i++)
        order[i] = i;
    for (uint64_t k = TRAIN_IMAGES - 1; k > 0; k--) {
        const uint64_t j = (uint64_t)mpsim_rng_word(seed, stream, k) * (k + 1) >> 32;
        const uint32_t t = order[k];
        order[k] = order[j];
        order[j] = t;
    }
    memcpy(images, order + step % steps * batch, batch * sizeof *images);
}
