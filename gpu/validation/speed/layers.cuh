/* layers.cuh -- measurements of what a training does between its products: norms, softmax, cross-entropy, AdamW, random
 * Hadamard transforms. Each operation runs once and a sample of its result is compared with the CPU's engine; then it is
 * timed. */
#pragma once

#include "tensors.cuh"

#include <mpsim/optim.h>
#include <mpsim/transformer.h>

namespace
{

enum { LAYER_TENSORS = 20, TABLE_TENSORS = 8 };

/* Tensors of one operation on an engine; t[0] is its result. */
struct layer {
    train_engine e;
    train_tensor t[LAYER_TENSORS];
    std::vector<uint32_t> labels;
    mpsim_optim optim;
    mpsim_model model; /* of attention's products */
    train_tile tile;   /* of attention            */
    size_t n, sample;  /* elements of t[0]; of those that are compared, with all that they depend on */
};

/* A tensor of an operation: its format; how many rows it has. */
enum layer_rows { NO_ROWS, ALL_ROWS, ONE_ROW, ONE_COLUMN };
enum layer_numbers { ZEROS, NUMBERS };

struct layer_tensor {
    const char *format;
    layer_rows rows;
    layer_numbers numbers;
};

struct layer_case {
    const char *name, *group;
    double bytes;                                       /* of an element, read and written */
    void (*size)(layer *l, const gpu_speed_plan *plan); /* n and sample */
    int (*make)(layer *l, const layer_case *c);         /* 0, or -1: e.error */
    int (*run)(layer *l);
    const char *text; /* what is compared; "" */
    layer_tensor tensors[TABLE_TENSORS];
};

void size_of_plan(layer *l, const gpu_speed_plan *plan)
{
    l->n = plan->elements;
    l->sample = std::min(l->n, size_t(SAMPLE));
}

void release_layer(layer *l)
{
    for (train_tensor &t : l->t)
        if (l->e.ops && t.data)
            l->e.ops->release(&l->e, &t);
    train_engine_close(&l->e);
}

/* The columns of a square matrix of scores: 1024, or as many as the sample has place for. */
size_t columns_of(size_t sample)
{
    size_t n = COLUMNS;
    while (n > 1 && n * n > sample)
        n /= 2;
    return n;
}

/* The tensors of the table, `columns` wide. */
int make_tensors(layer *l, const layer_case *c, size_t columns)
{
    for (int i = 0; i < TABLE_TENSORS && c->tensors[i].format; i++) {
        const layer_tensor *from = &c->tensors[i];
        train_tensor *t = &l->t[i];
        const size_t rows = from->rows == ONE_ROW ? 1 : l->n / columns, sample = l->sample / columns;
        *t = train_tensor{mpsim_format_find(from->format), rows, from->rows == ONE_COLUMN ? 1 : columns, NULL, 1};
        if (from->numbers == ZEROS ? l->e.ops->alloc(&l->e, t)
                                   : make_repeated(&l->e, t, rows < sample ? rows : sample, BELL, (uint64_t)i << 32))
            return -1;
    }
    return 0;
}

int make_rows(layer *l, const layer_case *c)
{
    return make_tensors(l, c, COLUMNS);
}

int make_scores(layer *l, const layer_case *c)
{
    return make_tensors(l, c, columns_of(l->sample));
}

/* ---- norms: y, x, mean, 1 / deviation, weight, bias; backward: dx, x, mean, 1 / deviation, weight, dy, dweight, dbias ---- */

mpsim_rownorm norm_of(const layer *l, uint8_t kind)
{
    const mpsim_rownorm r = {l->t[0].rows, l->t[0].cols, kind, 1e-5f, mpsim_format_find("binary32"), l->t[0].format};
    return r;
}

template <uint8_t KIND>
int run_norm(layer *l)
{
    const mpsim_rownorm r = norm_of(l, KIND);
    train_tensor *bias = KIND == MPSIM_NORM_LAYER ? &l->t[5] : NULL;
    return l->e.ops->rownorm(&l->e, &r, &l->t[0], &l->t[2], &l->t[3], &l->t[1], &l->t[4], bias, NULL);
}

template <uint8_t KIND>
int make_norm_backward(layer *l, const layer_case *c)
{
    if (make_tensors(l, c, COLUMNS))
        return -1;
    const mpsim_rownorm r = norm_of(l, KIND);
    return l->e.ops->rownorm(&l->e, &r, &l->t[0], &l->t[2], &l->t[3], &l->t[1], &l->t[4], NULL, NULL);
}

template <uint8_t KIND>
int run_norm_backward(layer *l)
{
    const mpsim_rownorm r = norm_of(l, KIND);
    train_tensor *dbias = KIND == MPSIM_NORM_LAYER ? &l->t[7] : NULL;
    return l->e.ops->rownorm_backward(&l->e, &r, &l->t[0], &l->t[6], dbias, &l->t[5], &l->t[1], &l->t[2], &l->t[3],
                                      &l->t[4], NULL);
}

/* ---- sums of two tensors, an activation, heads ---- */

int run_add(layer *l)
{
    return l->e.ops->add(&l->e, &l->t[0], &l->t[1], &l->t[2], NULL);
}

int run_gelu(layer *l)
{
    return l->e.ops->activate(&l->e, MPSIM_GELU_TANH, mpsim_format_find("binary32"), &l->t[0], &l->t[1], NULL);
}

/* Sixteen heads of 64 columns; a sequence is 16 rows, or all of fewer. */
int run_heads(layer *l)
{
    const size_t rows = l->t[1].rows, length = std::min(rows, size_t(16));
    const train_heads h = {rows / length, length, 16, COLUMNS / 16, 0, NULL, NULL};
    train_tensor y = l->t[0];
    y.rows *= 16;
    y.cols /= 16;
    const train_turn t = {&y, &l->t[1], &h, NULL};
    return l->e.ops->split(&l->e, &t, 1);
}

/* ---- softmax of causal scores, cross-entropy with its gradient ---- */

int run_softmax(layer *l)
{
    return l->e.ops->causal(&l->e, mpsim_format_find("binary32"), 0.125f, &l->t[0], &l->t[1], NULL);
}

int run_softmax_backward(layer *l)
{
    return l->e.ops->causal_backward(&l->e, mpsim_format_find("binary32"), 0.125f, &l->t[0], &l->t[1], &l->t[2], NULL);
}

int make_cross_entropy(layer *l, const layer_case *c)
{
    if (make_tensors(l, c, COLUMNS))
        return -1;
    for (size_t i = 0; i < l->t[0].rows; i++)
        l->labels.push_back(mix(i) % COLUMNS);
    return 0;
}

int run_cross_entropy(layer *l)
{
    float loss = 0;
    uint64_t correct = 0;
    return l->e.ops->softmax_xent(&l->e, &l->t[0], &l->t[1], l->labels.data(), 0x1p-10f, mpsim_format_find("binary32"),
                                  &loss, &correct, NULL) ||
           l->e.ops->finish(&l->e);
}

/* ---- AdamW: parameter, gradient, moments ---- */

int make_adamw(layer *l, const layer_case *c)
{
    mpsim_optim_init(&l->optim, MPSIM_OPTIM_ADAMW, mpsim_optim_variant_find("torch"));
    return make_tensors(l, c, COLUMNS);
}

int run_adamw(layer *l)
{
    train_update u = {};
    u.param = &l->t[0];
    u.grad = &l->t[1];
    u.m = &l->t[2];
    u.v = &l->t[3];
    u.optim = &l->optim;
    u.step = 1;
    return l->e.ops->optim(&l->e, &u, 1, NULL, NULL);
}

/* ---- Hadamard ---- */

int run_hadamard(layer *l)
{
    return l->e.ops->hadamard(&l->e, &l->t[0], &l->t[1], 0);
}

/* ---- a row ---- */

/* The first elements of the device's result and the CPU's: 1 equal, 0, or -1. */
int layer_matches(layer *device, const layer_case *c)
{
    layer cpu = {};
    std::vector<float> got(device->sample), want(device->sample);
    int equal = -1;
    cpu.n = cpu.sample = device->sample;
    cpu.model = device->model;
    cpu.tile = device->tile;
    train_tensor part = device->t[0];
    part.rows = device->sample / part.cols;
    if (train_engine_cpu(&cpu.e, NULL) == 0 && c->make(&cpu, c) == 0 && c->run(&cpu) == 0 &&
        device->e.ops->get(&device->e, &part, got.data()) == 0 && cpu.e.ops->get(&cpu.e, &cpu.t[0], want.data()) == 0)
        equal = are_equal(got, want);
    release_layer(&cpu);
    return equal;
}

void measure_layer(session *s, const item *it)
{
    const layer_case *c = it->layer;
    layer l = {};
    char why[192] = "";
    if (train_engine_cuda(&l.e, why, sizeof why)) {
        give_up(s, GPU_FAILED, why);
        return;
    }
    c->size(&l, s->plan);
    int failed = c->make(&l, c) || c->run(&l);
    s->row->checked = failed ? -1 : layer_matches(&l, c);
    if (!failed && s->row->checked >= 0)
        measure_time(s, [&] { failed |= c->run(&l); });
    if (failed || s->row->checked < 0)
        give_up(s, GPU_FAILED, l.e.error);
    else
        snprintf(s->row->text, sizeof s->row->text, "numbers of %zu elements by the CPU's engine%s%s", l.sample,
                 c->text[0] ? "; " : "", c->text);
    release_layer(&l);
}

/* Bytes of the columns and rows beside the tensors are left out: a thousandth. */
const layer_case layer_cases[] = {
    {"LayerNorm, bf16",
     "LayerNorm",
     2 + 2,
     size_of_plan,
     make_rows,
     run_norm<MPSIM_NORM_LAYER>,
     "",
     {{"bf16", ALL_ROWS, ZEROS},
      {"bf16", ALL_ROWS, NUMBERS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"bf16", ONE_ROW, NUMBERS},
      {"bf16", ONE_ROW, NUMBERS}}},
    {"LayerNorm, bf16, backward",
     "LayerNorm, backward",
     2 + 2 + 2,
     size_of_plan,
     make_norm_backward<MPSIM_NORM_LAYER>,
     run_norm_backward<MPSIM_NORM_LAYER>,
     "of dx; dweight and dbias are computed, too",
     {{"bf16", ALL_ROWS, ZEROS},
      {"bf16", ALL_ROWS, NUMBERS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"bf16", ONE_ROW, NUMBERS},
      {"bf16", ALL_ROWS, NUMBERS},
      {"bf16", ONE_ROW, ZEROS},
      {"bf16", ONE_ROW, ZEROS}}},
    {"RMSNorm, bf16",
     "RMSNorm",
     2 + 2,
     size_of_plan,
     make_rows,
     run_norm<MPSIM_NORM_RMS>,
     "",
     {{"bf16", ALL_ROWS, ZEROS},
      {"bf16", ALL_ROWS, NUMBERS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"bf16", ONE_ROW, NUMBERS}}},
    {"RMSNorm, bf16, backward",
     "RMSNorm, backward",
     2 + 2 + 2,
     size_of_plan,
     make_norm_backward<MPSIM_NORM_RMS>,
     run_norm_backward<MPSIM_NORM_RMS>,
     "of dx; dweight is computed, too",
     {{"bf16", ALL_ROWS, ZEROS},
      {"bf16", ALL_ROWS, NUMBERS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"binary32", ONE_COLUMN, ZEROS},
      {"bf16", ONE_ROW, NUMBERS},
      {"bf16", ALL_ROWS, NUMBERS},
      {"bf16", ONE_ROW, ZEROS}}},
    {"softmax, causal, bf16",
     "softmax",
     2 + 1, /* half of the scores are read */
     size_of_plan,
     make_scores,
     run_softmax,
     "",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}}},
    {"softmax, causal, bf16, backward",
     "softmax, backward",
     2 + 1 + 1,
     size_of_plan,
     make_scores,
     run_softmax_backward,
     "",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}, {"bf16", ALL_ROWS, NUMBERS}}},
    {"sum of two, bf16",
     "sum of two",
     2 + 2 + 2,
     size_of_plan,
     make_rows,
     run_add,
     "",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}, {"bf16", ALL_ROWS, NUMBERS}}},
    {"GELU by tanh, bf16",
     "GELU",
     2 + 2,
     size_of_plan,
     make_rows,
     run_gelu,
     "",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}}},
    {"heads of rows, bf16",
     "heads",
     2 + 2,
     size_of_plan,
     make_rows,
     run_heads,
     "",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}}},
    {"cross-entropy with gradient, bf16",
     "cross-entropy",
     2 + 2,
     size_of_plan,
     make_cross_entropy,
     run_cross_entropy,
     "of the gradient",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}}},
    {"AdamW, binary32",
     "AdamW",
     4 * 7, /* of all four, but the gradient, read and written */
     size_of_plan,
     make_adamw,
     run_adamw,
     "variant torch",
     {{"binary32", ALL_ROWS, NUMBERS},
      {"binary32", ALL_ROWS, NUMBERS},
      {"binary32", ALL_ROWS, ZEROS},
      {"binary32", ALL_ROWS, ZEROS}}},
    {"Hadamard in groups of 16, bf16",
     "Hadamard",
     2 + 2,
     size_of_plan,
     make_rows,
     run_hadamard,
     "",
     {{"bf16", ALL_ROWS, ZEROS}, {"bf16", ALL_ROWS, NUMBERS}}},
};

void list_layers(item_list *list, const gpu_speed_plan *plan)
{
    for (const layer_case &c : layer_cases) {
        item *it = add_item(list, c.group, measure_layer);
        snprintf(it->name, sizeof it->name, "%s", c.name);
        it->layer = &c;
        it->bytes = c.bytes * static_cast<double>(plan->elements);
    }
}

} // namespace
