/* norm.c -- the CPU engine: normalisation of rows, activations. */
#include "cpu.h"

/* ---- normalisation ---- */

typedef struct normal {
    mpsim_rownorm r; /* rows are a piece's */
    float *y, *mean, *inverse;
    const float *x, *weight, *bias;
} normal;

static int check_norm(train_engine *e, const char *operation, const mpsim_rownorm *r,
                      const train_tensor *x, const train_tensor *mean,
                      const train_tensor *inverse, const train_tensor *weight)
{
    if (!r)
        return cpu_fail(e, "%s: settings are missing", operation);
    return cpu_check(e, operation, x) || cpu_check_floats(e, operation, mean, x->rows, 1) ||
           cpu_check_floats(e, operation, inverse, x->rows, 1) ||
           cpu_check_shape(e, operation, weight, 1, x->cols);
}

/* Results not rounded to a format: cpu_rows does, and counts. */
static mpsim_rownorm settings_for(const mpsim_rownorm *r, const train_tensor *x)
{
    mpsim_rownorm own = *r;
    own.rows = x->rows;
    own.cols = x->cols;
    own.f = NULL;
    return own;
}

static mpsim_status normalise(const void *operation, size_t first, size_t n)
{
    const normal *o = operation;
    mpsim_rownorm r = o->r;
    const size_t at = first * r.cols;
    r.rows = n;
    return mpsim_rownorm_forward(&r, o->y + at, o->mean + first, o->inverse + first, o->x + at,
                                 o->weight, o->bias);
}

int cpu_rownorm(train_engine *e, const mpsim_rownorm *r, train_tensor *y, train_tensor *mean,
                train_tensor *inverse, const train_tensor *x, const train_tensor *weight,
                const train_tensor *bias, train_counts *counts)
{
    if (check_norm(e, "rownorm", r, x, mean, inverse, weight) ||
        cpu_check_shape(e, "rownorm", y, x->rows, x->cols) ||
        (bias && cpu_check_shape(e, "rownorm", bias, 1, x->cols)))
        return -1;
    const normal o = {.r = settings_for(r, x), .y = cpu_values(y), .mean = cpu_values(mean),
                      .inverse = cpu_values(inverse), .x = cpu_values(x),
                      .weight = cpu_values(weight), .bias = bias ? cpu_values(bias) : NULL};
    mean->inverse = inverse->inverse = 1;
    return cpu_rows(e, "rownorm", y, 1, normalise, &o, counts);
}

static int gradients(train_engine *e, const train_normed *i)
{
    const char *name = "rownorm_gradients";
    const train_tensor *x = i->x;
    if (check_norm(e, name, i->r, x, i->mean, i->inverse, i->weight) ||
        cpu_check_shape(e, name, i->dy, x->rows, x->cols) || cpu_check_shape(e, name, i->dweight, 1, x->cols) ||
        (i->dbias && cpu_check_shape(e, name, i->dbias, 1, x->cols)))
        return -1;
    const mpsim_rownorm own = settings_for(i->r, x);
    float *d = cpu_floats(e, 0, 2 * x->cols), *db = d && i->dbias ? d + x->cols : NULL;
    if (!d)
        return -1;
    const mpsim_status s = mpsim_rownorm_backward(&own, NULL, d, db, cpu_values(i->dy), cpu_values(x),
                                                  cpu_values(i->mean), cpu_values(i->inverse),
                                                  cpu_values(i->weight));
    if (s)
        return cpu_fail(e, "%s: %s", name, mpsim_status_string(s));
    return cpu_store(e, i->dweight, d, NULL) || (db && cpu_store(e, i->dbias, db, NULL)) ? -1 : 0;
}

int cpu_rownorm_gradients(train_engine *e, const train_normed *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (gradients(e, &list[i]))
            return -1;
    return 0;
}

int cpu_rownorm_backward(train_engine *e, const mpsim_rownorm *r, train_tensor *dx,
                         train_tensor *dweight, train_tensor *dbias, const train_tensor *dy,
                         const train_tensor *x, const train_tensor *mean,
                         const train_tensor *inverse, const train_tensor *weight,
                         train_counts *counts)
{
    const char *name = "rownorm_backward";
    const train_normed own = {r, dweight, dbias, dy, x, mean, inverse, weight};
    if (check_norm(e, name, r, x, mean, inverse, weight) ||
        cpu_check_shape(e, name, dy, x->rows, x->cols) ||
        cpu_check_shape(e, name, dx, x->rows, x->cols) || cpu_check_apart(e, name, dx, x))
        return -1;
    if (dweight && gradients(e, &own)) /* before dx is written, which may be dy */
        return -1;
    const mpsim_rownorm settings = settings_for(r, x);
    const mpsim_status s = mpsim_rownorm_backward(&settings, cpu_values(dx), NULL, NULL, cpu_values(dy),
                                                  cpu_values(x), cpu_values(mean), cpu_values(inverse),
                                                  cpu_values(weight));
    if (s)
        return cpu_fail(e, "%s: %s", name, mpsim_status_string(s));
    return cpu_rows(e, name, dx, 1, NULL, NULL, counts);
}

/* ---- activations ---- */

typedef struct activation {
    mpsim_activation kind;
    const mpsim_format *math;
    float *y;
    const float *dy, *x;
    size_t cols, width; /* of y, of x */
} activation;

static int check_activation(train_engine *e, const char *operation, mpsim_activation kind,
                            const train_tensor *x, const train_tensor *y)
{
    if (kind != MPSIM_GELU_TANH && kind != MPSIM_GELU && kind != MPSIM_SWIGLU)
        return cpu_fail(e, "%s: no activation %d", operation, (int)kind);
    if (cpu_check(e, operation, x) || cpu_check(e, operation, y))
        return -1;
    const size_t cols = kind == MPSIM_SWIGLU ? x->cols / 2 : x->cols;
    if (kind == MPSIM_SWIGLU && x->cols % 2)
        return cpu_fail(e, "%s: %zu columns cannot be halved into gates and values", operation, x->cols);
    return cpu_check_shape(e, operation, y, x->rows, cols);
}

static mpsim_status activate(const void *operation, size_t first, size_t n)
{
    const activation *o = operation;
    return mpsim_activate(o->kind, o->math, NULL, o->y + first * o->cols, o->x + first * o->width,
                          n, o->cols);
}

int cpu_activate(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *y,
                 const train_tensor *x, train_counts *counts)
{
    if (check_activation(e, "activate", kind, x, y) || cpu_check_apart(e, "activate", y, x))
        return -1;
    const activation o = {.kind = kind, .math = math, .y = cpu_values(y), .x = cpu_values(x),
                          .cols = y->cols, .width = x->cols};
    return cpu_rows(e, "activate", y, 1, activate, &o, counts);
}

static mpsim_status activate_back(const void *operation, size_t first, size_t n)
{
    const activation *o = operation;
    return mpsim_activate_backward(o->kind, o->math, NULL, o->y + first * o->width,
                                   o->dy + first * o->cols, o->x + first * o->width, n, o->cols);
}

int cpu_activate_backward(train_engine *e, mpsim_activation kind, const mpsim_format *math,
                          train_tensor *dx, const train_tensor *dy, const train_tensor *x,
                          train_counts *counts)
{
    const char *name = "activate_backward";
    if (check_activation(e, name, kind, x, dy) ||
        cpu_check_shape(e, name, dx, x->rows, x->cols) || cpu_check_apart(e, name, dx, dy) ||
        cpu_check_apart(e, name, dx, x))
        return -1;
    const activation o = {.kind = kind, .math = math, .y = cpu_values(dx), .dy = cpu_values(dy),
                          .x = cpu_values(x), .cols = dy->cols, .width = x->cols};
    return cpu_rows(e, name, dx, 1, activate_back, &o, counts);
}
