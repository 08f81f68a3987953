/* faultyrun.c -- see faultyrun.h. */
#include "faultyrun.h"

#include "sim/trace/trace.h"
#include "support.h"

#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LAYERS = 3, BATCH = 16, STEPS = 4, SIDE = 24, MOST = SIDE * SIDE, TENSORS = 40 };

static const size_t width[LAYERS + 1] = {12, 16, 16, 10};

typedef struct layer {
    float weight[MOST], wgrad[MOST], momentum[MOST];
    float act[MOST], out[MOST], agrad[MOST], dgrad[MOST];
} layer;

typedef struct run {
    uint64_t random;
    layer layers[LAYERS];
    fault *fault;
    int step, layer, done;
    const char *kind; /* of the tensor at fault */
    fault_kind at;    /* what is still to happen */
} run;

/* ---- random numbers ---- */

static double uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(test_random(state) % n);
}

static float normal(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return (float)(sum - 6);
}

/* ---- what goes wrong ---- */

static void shuffle_rows(float *x, size_t rows, size_t cols, uint64_t *state)
{
    for (size_t i = rows; i-- > 1;) {
        const size_t k = below(state, i);
        for (size_t j = 0; j < cols; j++) {
            const float was = x[i * cols + j];
            x[i * cols + j] = x[k * cols + j];
            x[k * cols + j] = was;
        }
    }
}

static void transpose(float *x, size_t side)
{
    for (size_t i = 0; i < side; i++)
        for (size_t j = 0; j < i; j++) {
            const float was = x[i * side + j];
            x[i * side + j] = x[j * side + i];
            x[j * side + i] = was;
        }
}

static void cast(fault *f, float *x, size_t n, uint64_t *state)
{
    static const char *const names[] = {"bf16", "fp16", "e4m3", "e5m2"};
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    f->format = names[below(state, 4)];
    ck_assert_int_eq(mpsim_round_array_f32(mpsim_format_find(f->format), &nearest, NULL, x, x, n, NULL), MPSIM_OK);
}

static void scale(fault *f, float *x, size_t n, uint64_t *state)
{
    static const float others[] = {1 / 3.0f, 1.5f, 0.1f, 3, 1 / 6.0f, 0.9f};
    const int k = (int)below(state, 16) + 1;
    f->amount = f->kind == FAULT_RATIO ? (double)others[below(state, 6)] : ldexp(1, below(state, 2) ? k : -k);
    for (size_t i = 0; i < n; i++)
        x[i] *= (float)f->amount;
}

static void clip(float *x, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    for (size_t i = 0; i < n; i++)
        x[i] = fminf(fmaxf(x[i], -largest / 4), largest / 4);
}

static void spoil(fault *f, float *x, size_t rows, size_t cols)
{
    uint64_t s = f->seed;
    const size_t n = rows * cols, i = below(&s, n);
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    switch (f->kind) {
    case FAULT_FLIP:
        x[i] = f32_of_bits(bits_of_f32(x[i]) ^ 1u << below(&s, 32));
        break;
    case FAULT_ROUND:
        cast(f, x, n, &s);
        break;
    case FAULT_SCALE:
    case FAULT_RATIO:
        scale(f, x, n, &s);
        break;
    case FAULT_TRANSPOSE:
        transpose(x, rows);
        break;
    case FAULT_PERMUTE:
        if (below(&s, 2))
            shuffle_rows(x, rows, cols, &s);
        else
            shuffle_rows(x, n, 1, &s);
        break;
    case FAULT_ZERO: {
        const size_t first = below(&s, 2) ? 0 : n / 2 + i / 4;
        memset(x + first, 0, (n - first) * sizeof *x);
        break;
    }
    case FAULT_NONFINITE:
        x[i] = odd[below(&s, 3)];
        break;
    case FAULT_SIGN:
        for (size_t k = 0; k < n; k++)
            x[k] = -x[k];
        break;
    case FAULT_CLIP:
        clip(x, n);
        break;
    case FAULT_SHIFT:
        memmove(x + 1, x, (n - 1) * sizeof *x);
        break;
    case FAULT_UNRELATED: {
        double squares = 0;
        for (size_t k = 0; k < n; k++)
            squares += (double)x[k] * (double)x[k];
        for (size_t k = 0; k < n; k++)
            x[k] = normal(&s) * (float)sqrt(squares / (double)n);
        break;
    }
    default:
        break;
    }
}

/* Whether the fault is to happen now, to this tensor; and what it was, for the judge. */
static int is_here(run *r, const char *kind, int k)
{
    if (!r->fault || r->done || r->step != r->fault->step || r->layer != k || strcmp(kind, r->kind) != 0)
        return 0;
    r->done = 1;
    return 1;
}

static void made(run *r, const char *kind, int k, float *x, size_t rows, size_t cols)
{
    if (r->fault && r->fault->kind != FAULT_ORDER && r->fault->kind != FAULT_SKIP && is_here(r, kind, k))
        spoil(r->fault, x, rows, cols);
}

/* ---- the training ---- */

/* y[i][j] = sum over k of a[i][k] b[j][k] or, transposed, of a[k][i] b[k][j] and a[i][k] b[k][j]. */
typedef struct product {
    const float *a, *b;
    size_t rows, cols, inner, a_row, a_inner, b_col, b_inner;
} product;

static void multiply(run *r, const char *kind, int layer_at, float *y, product p)
{
    const int backwards = r->fault && r->fault->kind == FAULT_ORDER && is_here(r, kind, layer_at);
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < p.cols; j++) {
            float sum = 0;
            for (size_t n = 0; n < p.inner; n++) {
                const size_t k = backwards ? p.inner - 1 - n : n;
                sum += p.a[i * p.a_row + k * p.a_inner] * p.b[j * p.b_col + k * p.b_inner];
            }
            y[i * p.cols + j] = sum;
        }
    made(r, kind, layer_at, y, p.rows, p.cols);
}

static void forward(run *r)
{
    for (int k = 0; k < LAYERS; k++) {
        layer *l = &r->layers[k];
        const size_t in = width[k], out = width[k + 1];
        for (size_t i = 0; i < BATCH * in; i++)
            l->act[i] = k ? fmaxf(l[-1].out[i], 0) + 0.01f * l[-1].out[i] : normal(&r->random);
        made(r, "act", k, l->act, BATCH, in);
        multiply(r, "out", k, l->out, (product){l->act, l->weight, BATCH, out, in, in, 1, in, 1});
    }
}

static void backward(run *r)
{
    for (int k = LAYERS; k-- > 0;) {
        layer *l = &r->layers[k];
        const size_t in = width[k], out = width[k + 1];
        for (size_t i = 0; i < BATCH * out; i++)
            l->agrad[i] = k == LAYERS - 1 ? (l->out[i] - normal(&r->random)) / BATCH
                                          : l[1].dgrad[i] * (l->out[i] > 0 ? 1.01f : 0.01f);
        made(r, "agrad", k, l->agrad, BATCH, out);
        multiply(r, "wgrad", k, l->wgrad, (product){l->agrad, l->act, out, in, BATCH, 1, out, 1, in});
        multiply(r, "dgrad", k, l->dgrad, (product){l->agrad, l->weight, BATCH, in, out, out, 1, 1, in});
    }
}

static void update(run *r)
{
    for (int k = 0; k < LAYERS; k++) {
        layer *l = &r->layers[k];
        if (r->fault && r->fault->kind == FAULT_SKIP && r->step + 1 == r->fault->step &&
            (r->layer == k || r->layer == LAYERS))
            continue;
        for (size_t i = 0; i < width[k] * width[k + 1]; i++) {
            l->momentum[i] = 0.9f * l->momentum[i] + l->wgrad[i];
            l->weight[i] -= 0.05f * l->momentum[i];
        }
    }
}

/* ---- the record ---- */

static void write_step(const run *r, const char *directory, const recorded_as *as)
{
    static const char *const kinds[] = {"weight", "act", "out", "agrad", "dgrad", "wgrad"};
    char name[TENSORS][64], path[1024], step[24];
    uint64_t shape[TENSORS][2];
    const float *data[TENSORS];
    trace_tensor tensors[TENSORS];
    trace_error error;
    size_t n = 0;
    memset(tensors, 0, sizeof tensors);
    for (int k = 0; k < LAYERS; k++) {
        const layer *l = &r->layers[k];
        const float *const arrays[] = {l->weight, l->act, l->out, l->agrad, l->dgrad, l->wgrad};
        for (int i = 0; i < 6; i++, n++) {
            const int of_weight = i == 0 || i == 5;
            snprintf(name[n], sizeof name[n], "%s:%sfc%d%s", kinds[i], as->prefix, k + 1, of_weight ? ".weight" : "");
            shape[n][0] = of_weight ? width[k + 1] : BATCH;
            shape[n][1] = i == 2 || i == 3 ? width[k + 1] : width[k];
            data[n] = arrays[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        const size_t at = as->reversed ? n - 1 - i : i;
        tensors[i] = (trace_tensor){.name = name[at],
                                    .shape = shape[at],
                                    .rank = 2,
                                    .format = mpsim_format_find(as->wide ? "binary64" : "binary32"),
                                    .count = shape[at][0] * shape[at][1]};
    }
    snprintf(path, sizeof path, "%s/step_%06d", directory, r->step);
    if (as->flat)
        snprintf(path, sizeof path, "%s/run-step%d.safetensors", directory, r->step);
    else {
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/step_%06d/rank_00000.safetensors", directory, r->step);
    }
    snprintf(step, sizeof step, "%d", r->step);
    const char *const metadata[][2] = {{"mpsim.trace", "1"}, {"mpsim.step", step}, {"mpsim.order", "fc1,fc2,fc3"}};
    trace_writer *w = trace_writer_safetensors(path, tensors, n, metadata, 3, &error);
    ck_assert_msg(w != NULL, "%s", error.text);
    for (size_t i = 0; i < n; i++) {
        const float *x = data[as->reversed ? n - 1 - i : i];
        const size_t bytes = as->wide ? sizeof(double) : sizeof *x, count = tensors[i].count;
        union {
            double wide[MOST];
            unsigned char codes[MOST * sizeof(double)];
        } to;
        if (!as->wide)
            memcpy(to.codes, x, count * bytes);
        for (size_t k = 0; as->wide && k < count; k++)
            to.wide[k] = (double)x[k];
        trace_to_little_endian(to.codes, bytes, count);
        ck_assert_msg(trace_writer_data(w, to.codes, count * bytes, &error) == 0, "%s", error.text);
    }
    ck_assert_msg(trace_writer_finish(w, &error) == 0, "%s", error.text);
}

/* Which tensor, and when: as the kind allows. */
static void place(run *r, fault *f)
{
    static const char *const any[] = {"act", "out", "agrad", "dgrad", "wgrad"};
    static const char *const sums[] = {"out", "wgrad", "dgrad"};
    uint64_t s = f->seed ^ 0x5eed;
    f->step = (int)below(&s, STEPS - 1) + 2; /* steps from 1 on; a skipped one shows at the next */
    r->layer = (int)below(&s, LAYERS);
    r->kind = f->kind == FAULT_ORDER                             ? sums[below(&s, 3)]
              : f->kind == FAULT_SCALE || f->kind == FAULT_RATIO ? any[below(&s, 3) + 2]
              : f->kind == FAULT_SKIP                            ? "weight"
                                                                 : any[below(&s, 5)];
    if (f->kind == FAULT_TRANSPOSE) { /* the square ones */
        r->layer = 1;
    } else if (f->kind == FAULT_SKIP && below(&s, 2)) {
        r->layer = LAYERS; /* all weights: the first is named */
    }
    snprintf(f->tensor, sizeof f->tensor, "%s:fc%d%s", r->kind, r->layer == LAYERS ? 1 : r->layer + 1,
             strcmp(r->kind, "wgrad") == 0 || strcmp(r->kind, "weight") == 0 ? ".weight" : "");
}

void faulty_run(const char *directory, uint64_t model, fault *f, const recorded_as *as)
{
    static run r;
    memset(&r, 0, sizeof r);
    r.random = model;
    r.fault = f && f->kind != FAULT_NONE ? f : NULL;
    if (r.fault)
        place(&r, f);
    for (int k = 0; k < LAYERS; k++)
        for (size_t i = 0; i < width[k] * width[k + 1]; i++)
            r.layers[k].weight[i] = normal(&r.random) / sqrtf((float)width[k]);
    mkdir(directory, 0777);
    for (r.step = 1; r.step <= STEPS; r.step++) {
        forward(&r);
        backward(&r);
        write_step(&r, directory, as);
        update(&r);
    }
}
