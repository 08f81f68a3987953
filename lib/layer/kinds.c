/* kinds.c -- the operations on arrays in memory: which arrays each takes, and the function that computes a part of it. */
#include "run.h"
#include "rows.h"

enum {
    IN = MPSIM_USE_IN,
    OUT = MPSIM_USE_OUT,
    MAYBE = MPSIM_USE_OPTIONAL,
    ONES = MPSIM_USE_ONES,
    ZEROS = MPSIM_USE_ZEROS,
    ROOM = MPSIM_USE_ROOM
};

/* ---- normalisation ---- */

static mpsim_rownorm rownorm_of(const mpsim_between *o, const mpsim_layer_part *p)
{
    return (mpsim_rownorm){p->rows, p->cols, o->norm, o->eps, o->math, o->f};
}

static mpsim_status rownorm(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_rownorm r = rownorm_of(o, p);
    return mpsim_rownorm_forward(&r, x[3], x[4], x[5], x[0], x[1], x[2]);
}

static mpsim_status rownorm_backward(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_rownorm r = rownorm_of(o, p);
    return mpsim_rownorm_backward(&r, x[5], NULL, NULL, x[0], x[1], x[2], x[3], x[4]);
}

static mpsim_status rownorm_gradients(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_rownorm r = rownorm_of(o, p);
    return mpsim_rownorm_backward(&r, NULL, x[4], x[5], x[0], x[1], x[2], x[3], x[0]); /* no weight is read */
}

static mpsim_batchnorm batchnorm_of(const mpsim_between *o, const mpsim_layer_part *p)
{
    return (mpsim_batchnorm){p->rows, p->cols, o->eps, o->momentum, o->math, o->f};
}

static mpsim_status batchnorm(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_batchnorm b = batchnorm_of(o, p);
    return mpsim_batchnorm_forward(&b, x[3], x[4], x[5], x[6], x[7], x[0], x[1], x[2]);
}

static mpsim_status batchnorm_backward(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_batchnorm b = batchnorm_of(o, p);
    return mpsim_batchnorm_backward(&b, x[5], x[6], x[7], x[0], x[1], x[2], x[3], x[4]);
}

static mpsim_status batchnorm_inference(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_batchnorm b = batchnorm_of(o, p);
    return mpsim_batchnorm_inference(&b, x[5], x[0], x[1], x[2], x[3], x[4]);
}

/* ---- activations ---- */

/* A row of gates and one of values, or one row of all elements. */
static mpsim_status activate(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_activation kind = (mpsim_activation)o->activation;
    if (kind != MPSIM_SWIGLU)
        return mpsim_activate(kind, o->math, o->f, x[2], x[0], 1, p->rows * p->cols);
    return mpsim_swiglu_forward(o->math, o->f, x[2], x[0], x[1], p->rows * p->cols);
}

static mpsim_status activate_backward(const mpsim_between *o, mpsim_layer_part *p)
{
    float *const *x = p->x;
    const mpsim_activation kind = (mpsim_activation)o->activation;
    if (kind != MPSIM_SWIGLU)
        return mpsim_activate_backward(kind, o->math, o->f, x[3], x[0], x[1], 1, p->rows * p->cols);
    return mpsim_swiglu_backward(o->math, o->f, x[3], x[4], x[0], x[1], x[2], p->rows * p->cols);
}

/* ---- softmax, cross-entropy ---- */

static mpsim_softmax softmax_of(const mpsim_between *o, const mpsim_layer_part *p)
{
    return (mpsim_softmax){p->rows, p->cols, o->length, o->length ? p->first % o->length : 0, o->scale, o->math, o->f};
}

static mpsim_status softmax(const mpsim_between *o, mpsim_layer_part *p)
{
    const mpsim_softmax c = softmax_of(o, p);
    return mpsim_softmax_rows(&c, p->x[2], p->x[0], p->mask);
}

static mpsim_status softmax_backward(const mpsim_between *o, mpsim_layer_part *p)
{
    const mpsim_softmax c = softmax_of(o, p);
    return mpsim_softmax_backward(&c, p->x[3], p->x[0], p->x[1], p->mask);
}

static mpsim_status log_softmax(const mpsim_between *o, mpsim_layer_part *p)
{
    const mpsim_softmax c = softmax_of(o, p);
    return mpsim_log_softmax(&c, p->x[2], p->x[0], p->mask);
}

static mpsim_status log_softmax_backward(const mpsim_between *o, mpsim_layer_part *p)
{
    const mpsim_softmax c = softmax_of(o, p);
    return mpsim_log_softmax_backward(&c, p->x[3], p->x[0], p->x[1], p->mask);
}

static mpsim_status cross_entropy(const mpsim_between *o, mpsim_layer_part *p)
{
    uint64_t correct, counted;
    const mpsim_status s = mpsim_cross_entropy(o->math, o->f, p->rows, p->cols, p->x[0], p->index,
                                               (uint32_t)MPSIM_BETWEEN_IGNORED, o->scale, p->x[1], p->x[2], &correct,
                                               &counted);
    if (s == MPSIM_OK) {
        p->found[0] += correct;
        p->found[1] += counted;
    }
    return s;
}

/* ---- tables, elements ---- */

static mpsim_status embed(const mpsim_between *o, mpsim_layer_part *p)
{
    mpsim_math m;
    const size_t n = p->rows * p->cols;
    const mpsim_status s = mpsim_math_init(&m, o->f);
    if (s != MPSIM_OK)
        return s;
    memcpy(p->x[1], p->x[0], n * sizeof(float));
    mpsim_rows_round(&m, p->x[1], n);
    return MPSIM_OK;
}

static mpsim_status embed_backward(const mpsim_between *o, mpsim_layer_part *p)
{
    return mpsim_embed_backward(o->math, p->x[1], p->x[0], p->index, p->rows, p->cols, 0, o->entries, o->added);
}

static mpsim_status add(const mpsim_between *o, mpsim_layer_part *p)
{
    return mpsim_add_array(o->math, o->f, p->x[2], p->x[0], p->x[1], p->rows * p->cols);
}

static mpsim_status multiply(const mpsim_between *o, mpsim_layer_part *p)
{
    return mpsim_multiply_array(o->math, o->f, p->x[2], p->x[0], p->x[1], p->rows * p->cols);
}

static mpsim_status dropout(const mpsim_between *o, mpsim_layer_part *p)
{
    mpsim_rng rng = o->rng;
    rng.index += p->first * p->cols;
    return mpsim_dropout(o->math, o->f, o->p, &rng, p->x[1], p->x[0], p->rows * p->cols);
}

static mpsim_status column_sums(const mpsim_between *o, mpsim_layer_part *p)
{
    return mpsim_column_sums(o->math, o->f, p->x[1], p->x[0], p->rows, p->cols, p->cols);
}

static mpsim_status period_sums(const mpsim_between *o, mpsim_layer_part *p)
{
    return mpsim_period_sums(o->math, o->f, p->x[1], p->x[0], p->rows, p->cols, p->cols, o->entries, o->added);
}

/* ---- the table ---- */

/* clang-format off */
#define ROWS(how)    {MPSIM_USE_ROWS, how}
#define COLUMNS(how) {MPSIM_USE_COLUMNS, how}
#define SCALARS(how) {MPSIM_USE_SCALARS, how}
#define TABLE(how)   {MPSIM_USE_TABLE, how}
#define TAKEN        {MPSIM_USE_TAKEN, IN}
#define MASK         {MPSIM_USE_MASK, IN | MAYBE}

static const mpsim_layer_row kinds[] = {
    [MPSIM_BETWEEN_ROWNORM] = {{ROWS(IN), COLUMNS(IN | ONES), COLUMNS(IN | MAYBE), ROWS(OUT), SCALARS(OUT | ROOM), SCALARS(OUT | ROOM)},
                             6, MPSIM_CUT_ROWS, 0, rownorm},
    [MPSIM_BETWEEN_ROWNORM_BACKWARD] = {{ROWS(IN), ROWS(IN), SCALARS(IN | MAYBE), SCALARS(IN), COLUMNS(IN | ONES), ROWS(OUT)},
                                      6, MPSIM_CUT_ROWS, 0, rownorm_backward},
    [MPSIM_BETWEEN_ROWNORM_GRADIENTS] = {{ROWS(IN), ROWS(IN), SCALARS(IN | MAYBE), SCALARS(IN), COLUMNS(OUT | MAYBE), COLUMNS(OUT | MAYBE)},
                                       6, MPSIM_CUT_COLUMNS, 0, rownorm_gradients},
    [MPSIM_BETWEEN_ACTIVATE] = {{ROWS(IN), ROWS(IN | MAYBE), ROWS(OUT)}, 3, MPSIM_CUT_ELEMENTS, 0, activate},
    [MPSIM_BETWEEN_ACTIVATE_BACKWARD] = {{ROWS(IN), ROWS(IN), ROWS(IN | MAYBE), ROWS(OUT), ROWS(OUT | MAYBE)},
                                       5, MPSIM_CUT_ELEMENTS, 0, activate_backward},
    [MPSIM_BETWEEN_SOFTMAX] = {{ROWS(IN), MASK, ROWS(OUT)}, 3, MPSIM_CUT_ROWS, 0, softmax},
    [MPSIM_BETWEEN_SOFTMAX_BACKWARD] = {{ROWS(IN), ROWS(IN), MASK, ROWS(OUT)}, 4, MPSIM_CUT_ROWS, 0, softmax_backward},
    [MPSIM_BETWEEN_LOG_SOFTMAX] = {{ROWS(IN), MASK, ROWS(OUT)}, 3, MPSIM_CUT_ROWS, 0, log_softmax},
    [MPSIM_BETWEEN_LOG_SOFTMAX_BACKWARD] = {{ROWS(IN), ROWS(IN), MASK, ROWS(OUT)}, 4, MPSIM_CUT_ROWS, 0, log_softmax_backward},
    [MPSIM_BETWEEN_CROSS_ENTROPY] = {{ROWS(IN), SCALARS(OUT | MAYBE), ROWS(OUT | MAYBE)}, 3, MPSIM_CUT_ROWS, 1, cross_entropy},
    [MPSIM_BETWEEN_EMBED] = {{TAKEN, ROWS(OUT)}, 2, MPSIM_CUT_ROWS, 1, embed},
    [MPSIM_BETWEEN_EMBED_BACKWARD] = {{ROWS(IN), TABLE(IN | OUT)}, 2, MPSIM_CUT_COLUMNS, 1, embed_backward},
    [MPSIM_BETWEEN_ADD] = {{ROWS(IN), ROWS(IN), ROWS(OUT)}, 3, MPSIM_CUT_ELEMENTS, 0, add},
    [MPSIM_BETWEEN_MULTIPLY] = {{ROWS(IN), ROWS(IN), ROWS(OUT)}, 3, MPSIM_CUT_ELEMENTS, 0, multiply},
    [MPSIM_BETWEEN_DROPOUT] = {{ROWS(IN), ROWS(OUT)}, 2, MPSIM_CUT_ELEMENTS, 0, dropout},
    [MPSIM_BETWEEN_COLUMN_SUMS] = {{ROWS(IN), COLUMNS(OUT)}, 2, MPSIM_CUT_COLUMNS, 0, column_sums},
    [MPSIM_BETWEEN_PERIOD_SUMS] = {{ROWS(IN), TABLE(IN | OUT)}, 2, MPSIM_CUT_COLUMNS, 0, period_sums},
    [MPSIM_BETWEEN_BATCHNORM] = {{ROWS(IN), COLUMNS(IN | ONES), COLUMNS(IN | ZEROS), ROWS(OUT), COLUMNS(OUT | ROOM), COLUMNS(OUT | ROOM),
                                COLUMNS(IN | OUT | MAYBE), COLUMNS(IN | OUT | MAYBE)}, 8, MPSIM_CUT_COLUMNS, 0, batchnorm},
    [MPSIM_BETWEEN_BATCHNORM_BACKWARD] = {{ROWS(IN), ROWS(IN), COLUMNS(IN), COLUMNS(IN), COLUMNS(IN | ONES), ROWS(OUT | ROOM),
                                         COLUMNS(OUT | ROOM), COLUMNS(OUT | ROOM)}, 8, MPSIM_CUT_COLUMNS, 0, batchnorm_backward},
    [MPSIM_BETWEEN_BATCHNORM_INFERENCE] = {{ROWS(IN), COLUMNS(IN), COLUMNS(IN), COLUMNS(IN | ONES), COLUMNS(IN | ZEROS), ROWS(OUT)},
                                         6, MPSIM_CUT_ROWS, 0, batchnorm_inference},
};
/* clang-format on */

const mpsim_layer_row *mpsim_layer_row_of(unsigned kind)
{
    return kind < sizeof kinds / sizeof *kinds ? &kinds[kind] : NULL;
}
