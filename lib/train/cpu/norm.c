/* norm.c -- the CPU engine: normalisation of rows, activations. */
#include "cpu.h"

/* ---- normalisation ---- */

typedef struct normal {
    mpsim_rownorm r; /* rows are a piece's */
    float *y, *mean, *inverse;
    const float *x, *weight, *bias;
} normal;

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
    return mpsim_rownorm_forward(&r, o->y + at, o->mean + first, o->inverse + first, o->x + at, o->weight, o->bias);
}

int cpu_rownorm(train_engine *e, const mpsim_rownorm *r, train_tensor *y, train_tensor *mean, train_tensor *inverse,
                const train_tensor *x, const train_tensor *weight, const train_tensor *bias, train_counts *counts)
{
    const normal o = {.r = settings_for(r, x),
                      .y = cpu_values(y),
                      .mean = cpu_values(mean),
                      .inverse = cpu_values(inverse),
                      .x = cpu_values(x),
                      .weight = cpu_values(weight),
                      .bias = bias ? cpu_values(bias) : NULL};
    mean->inverse = inverse->inverse = 1;
    return cpu_rows(e, "rownorm", y, 1, normalise, &o, counts);
}

static int gradients(train_engine *e, const train_normed *i)
{
    const char *name = "rownorm_gradients";
    const train_tensor *x = i->x;
    const mpsim_rownorm own = settings_for(i->r, x);
    float *d = cpu_floats(e, 0, 2 * x->cols), *db = d && i->dbias ? d + x->cols : NULL;
    if (!d)
        return -1;
    const mpsim_status s = mpsim_rownorm_backward(&own, NULL, d, db, cpu_values(i->dy), cpu_values(x),
                                                  cpu_values(i->mean), cpu_values(i->inverse), cpu_values(i->weight));
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

int cpu_rownorm_backward(train_engine *e, const mpsim_rownorm *r, train_tensor *dx, train_tensor *dweight,
                         train_tensor *dbias, const train_tensor *dy, const train_tensor *x, const train_tensor *mean,
                         const train_tensor *inverse, const train_tensor *weight, train_counts *counts)
{
    const char *name = "rownorm_backward";
    const train_normed own = {r, dweight, dbias, dy, x, mean, inverse, weight};
    if (dweight && gradients(e, &own)) /* before dx is written, which may be dy */
        return -1;
    const mpsim_rownorm settings = settings_for(r, x);
    const mpsim_status s = mpsim_rownorm_backward(&settings, cpu_values(dx), NULL, NULL, cpu_values(dy), cpu_values(x),
                                                  cpu_values(mean), cpu_values(inverse), cpu_values(weight));
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

static mpsim_status activate(const void *operation, size_t first, size_t n)
{
    const activation *o = operation;
    return mpsim_activate(o->kind, o->math, NULL, o->y + first * o->cols, o->x + first * o->width, n, o->cols);
}

int cpu_activate(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *y,
                 const train_tensor *x, train_counts *counts)
{
    const activation o = {
        .kind = kind, .math = math, .y = cpu_values(y), .x = cpu_values(x), .cols = y->cols, .width = x->cols};
    return cpu_rows(e, "activate", y, 1, activate, &o, counts);
}

static mpsim_status activate_back(const void *operation, size_t first, size_t n)
{
    const activation *o = operation;
    return mpsim_activate_backward(o->kind, o->math, NULL, o->y + first * o->width, o->dy + first * o->cols,
                                   o->x + first * o->width, n, o->cols);
}

int cpu_activate_backward(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *dx,
                          const train_tensor *dy, const train_tensor *x, train_counts *counts)
{
    const char *name = "activate_backward";
    const activation o = {.kind = kind,
                          .math = math,
                          .y = cpu_values(dx),
                          .dy = cpu_values(dy),
                          .x = cpu_values(x),
                          .cols = dy->cols,
                          .width = x->cols};
    return cpu_rows(e, name, dx, 1, activate_back, &o, counts);
}
