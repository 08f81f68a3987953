/* optimizer.c -- see optimizer.h.
 *
 * Sources: bitsandbytes optim/optimizer.py @51294d90 (init_state: blocks of 256, tensors of less than 4,096
 * elements in binary32, two maps of 256 numbers shared by all); torchao 0.13 optim/adam.py and
 * subclass_*.py (tensors of 4,096 elements and more that fill their blocks, else zeros_like; a map for
 * every state); torch optim/_adafactor.py @051d6a09 (row_var, col_var over the last two dimensions, in the
 * dtype of the gradient; no first moment); Muon as in github.com/KellerJordan/Muon (a momentum for the
 * matrices of hidden layers, AdamW for the rest). */
#include "optimizer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SMALLEST = 4096 };

static void add_state(ledger *l, const char *what, uint64_t bytes)
{
    ledger_term t = {.bytes = bytes};
    snprintf(t.what, sizeof t.what, "%s", what);
    ledger_add(l, LEDGER_STATE, t);
}

/* Two states in whole elements. */
static void add_plain(ledger *l, const char *name, uint64_t each, uint64_t n)
{
    ledger_term t = {.each = 2 * each, .n = n, .whole = n};
    snprintf(t.what, sizeof t.what, "two of %s, unquantised", name);
    ledger_add(l, LEDGER_STATE, t);
}

static void state_bitsandbytes(ledger *l, const shape_tensor *t, uint64_t n,
                               const train_placement *place)
{
    (void)t;
    (void)place;
    if (n < SMALLEST)
        add_plain(l, "binary32", 4, n);
    else
        add_state(l, "two of 1 n + 4 ceil(n / 256)", 2 * (n + 4 * (n / 256 + (n % 256 != 0))));
}

static void state_torchao(ledger *l, uint64_t n, const train_placement *place, uint64_t block,
                          const char *formula, uint64_t bytes)
{
    if (n < SMALLEST || n % block != 0)
        add_plain(l, place->kept.name, mpsim_format_code_bytes(&place->kept), n);
    else
        add_state(l, formula, bytes);
}

static void state_torchao_8bit(ledger *l, const shape_tensor *t, uint64_t n,
                               const train_placement *place)
{
    (void)t;
    state_torchao(l, n, place, 256, "two of 1 n + 4 n / 256 + 1024", 2 * (n + 4 * (n / 256) + 1024));
}

static void state_torchao_4bit(ledger *l, const shape_tensor *t, uint64_t n,
                               const train_placement *place)
{
    (void)t;
    state_torchao(l, n, place, 128, "two of n / 2 + 4 n / 128 + 64", 2 * (n / 2 + 4 * (n / 128) + 64));
}

static void state_torchao_fp8(ledger *l, const shape_tensor *t, uint64_t n,
                              const train_placement *place)
{
    (void)t;
    state_torchao(l, n, place, 256, "two of 1 n + 4 n / 256", 2 * (n + 4 * (n / 256)));
}

/* Rows and columns of the last two dimensions, for each of those before them. A part of a rank is the
 * whole: what is factored is not cut. */
static void state_adafactor(ledger *l, const shape_tensor *t, uint64_t n, const train_placement *place)
{
    (void)n;
    ledger_term term = {.each = mpsim_format_code_bytes(&place->state)};
    const int factored = t->rank >= 2;
    const uint64_t columns = t->inner ? t->rows / t->inner : 0; /* how many matrices */
    term.n = term.whole = factored ? t->rows + columns * t->cols : t->n;
    snprintf(term.what, sizeof term.what, "%s, %s", place->state.name,
             factored ? "rows and columns" : "vectors");
    ledger_add(l, LEDGER_STATE, term);
}

static const optimizer_row rows[] = {
    {.name = "sgd", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD, .what = "no state"},
    {.name = "momentum", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD, .momentum = 1,
     .what = "SGD with a momentum buffer"},
    {.name = "adam", .algorithm = MPSIM_OPTIM_ADAM, .matrices = MPSIM_OPTIM_ADAM, .what = "two moments"},
    {.name = "adamw", .algorithm = MPSIM_OPTIM_ADAMW, .matrices = MPSIM_OPTIM_ADAMW,
     .what = "two moments"},
    {.name = "amsgrad", .algorithm = MPSIM_OPTIM_ADAM, .matrices = MPSIM_OPTIM_ADAM, .amsgrad = 1,
     .what = "two moments and the largest second one"},
    {.name = "lion", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD, .momentum = 1,
     .what = "one moment", .source = "arXiv 2302.06675"},
    {.name = "muon", .algorithm = MPSIM_OPTIM_ADAMW, .matrices = MPSIM_OPTIM_SGD, .momentum = 1,
     .what = "a momentum for matrices of linear layers, AdamW for the rest",
     .source = "github.com/KellerJordan/Muon"},
    {.name = "adafactor", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD, .shapes = 1,
     .no_moments = 1, .state = state_adafactor, .what = "second moments of rows and columns, not cut by ZeRO",
     .source = "torch optim/_adafactor.py @051d6a09; arXiv 1804.04235"},
    {.name = "adamw8bit", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD, .no_moments = 1,
     .state = state_bitsandbytes, .what = "bitsandbytes: 8-bit moments in blocks of 256",
     .source = "bitsandbytes optim/optimizer.py @51294d90; arXiv 2110.02861"},
    {.name = "torchao-adamw8bit", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD,
     .no_moments = 1, .state = state_torchao_8bit, .what = "8-bit moments in blocks of 256",
     .source = "torchao 0.13 optim/subclass_8bit.py"},
    {.name = "torchao-adamw4bit", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD,
     .no_moments = 1, .state = state_torchao_4bit, .what = "4-bit moments in blocks of 128",
     .source = "torchao 0.13 optim/subclass_4bit.py"},
    {.name = "torchao-adamwfp8", .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD,
     .no_moments = 1, .state = state_torchao_fp8, .what = "E4M3 moments in blocks of 256",
     .source = "torchao 0.13 optim/subclass_fp8.py"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const optimizer_row *optimizer_at(size_t i)
{
    return i < ROWS ? &rows[i] : NULL;
}

const optimizer_row *optimizer_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const optimizer_row *optimizer_of_plan(const plan *p)
{
    const plan_optimizer *o = &p->optimizer;
    if (o->algorithm == MPSIM_OPTIM_SGD)
        return optimizer_find(o->momentum > 0 ? "momentum" : "sgd");
    if (o->amsgrad > 0)
        return optimizer_find("amsgrad");
    return optimizer_find(o->algorithm == MPSIM_OPTIM_ADAM ? "adam" : "adamw");
}

mpsim_optim optimizer_settings(const optimizer_row *o, const plan *p, int is_matrix)
{
    const mpsim_optim_algorithm a = is_matrix ? o->matrices : o->algorithm;
    return (mpsim_optim){.algorithm = (uint8_t)a,
                         .store = (uint8_t)p->optimizer.store,
                         .amsgrad = o->amsgrad,
                         .momentum = o->momentum && !o->no_moments ? 0.9 : 0};
}
