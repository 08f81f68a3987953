/* optimizer.c -- see optimizer.h.
 *
 * Sources: bitsandbytes optim/optimizer.py @51294d90 (init_state: blocks of 256, tensors of less than 4,096
 * elements in binary32, two maps of 256 numbers shared by all); torchao 0.13 optim/adam.py and
 * subclass_*.py (tensors of 4,096 elements and more that fill their blocks, else zeros_like; a map for
 * every state); Muon as in github.com/KellerJordan/Muon (a momentum for the matrices of hidden layers,
 * AdamW for the rest). */
#include "optimizer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Moments in few bits, as mpsim/optimstate.h has them; those that stay whole, as they are. */
static void state_few_bits(ledger *l, const optimizer_row *o, const shape_tensor *t, uint64_t n,
                           const train_placement *place)
{
    const mpsim_states *s = mpsim_states_find(o->states);
    const mpsim_format *f = s->binary32 ? mpsim_format_find("binary32") : &place->kept;
    ledger_term term = {.bytes = 0};
    (void)t;
    if (mpsim_states_apply(s, s->m, n)) {
        term.bytes = mpsim_state_bytes(s->m, n) + mpsim_state_bytes(s->v, n);
        snprintf(term.what, sizeof term.what, "%s", o->formula);
    } else {
        term.each = 2 * mpsim_format_code_bytes(f);
        term.n = term.whole = n;
        snprintf(term.what, sizeof term.what, "two of %.32s, unquantised", f->name);
    }
    memory_ledger_add(l, LEDGER_STATE, term);
}

/* Moments of rows and columns. A part of a rank is the whole: what is factored is not cut. */
static void state_factors(ledger *l, const optimizer_row *o, const shape_tensor *t, uint64_t n,
                          const train_placement *place)
{
    const int factored = t->rank >= 2;
    const mpsim_optim shaped = {.algorithm = (uint8_t)o->algorithm,
                                .rows = factored ? (size_t)t->inner : 0,
                                .cols = factored ? (size_t)t->cols : 0};
    ledger_term term = {.each = mpsim_format_code_bytes(&place->state)};
    (void)n;
    for (unsigned array = MPSIM_OPTIM_M; array <= MPSIM_OPTIM_VMAX && t->n; array *= 2)
        term.n += mpsim_optim_elements(&shaped, array, t->n);
    term.whole = term.n;
    snprintf(term.what, sizeof term.what, "%s, %s", place->state.name, factored ? "rows and columns" : "vectors");
    memory_ledger_add(l, LEDGER_STATE, term);
}

#define COAT "arXiv 2410.19313; NVlabs/VILA @36f6adcd fp8_adamw.py"
#define FEW_BITS(n, kept, text, say, from)                                                                         \
    {                                                                                                              \
        .name = (n), .algorithm = MPSIM_OPTIM_SGD, .matrices = MPSIM_OPTIM_SGD, .no_moments = 1, .states = (kept), \
        .formula = (text), .state = state_few_bits, .what = (say), .source = (from)                                \
    }

static const optimizer_row rows[] = {
    {.name = "momentum",
     .algorithm = MPSIM_OPTIM_SGD,
     .matrices = MPSIM_OPTIM_SGD,
     .momentum = 1,
     .what = "SGD with a momentum buffer"},
    {.name = "amsgrad",
     .algorithm = MPSIM_OPTIM_ADAM,
     .matrices = MPSIM_OPTIM_ADAM,
     .amsgrad = 1,
     .what = "two moments and the largest second one"},
    {.name = "muon",
     .algorithm = MPSIM_OPTIM_ADAMW,
     .matrices = MPSIM_OPTIM_SGD,
     .momentum = 1,
     .what = "a momentum for matrices of linear layers, AdamW for the rest",
     .source = "github.com/KellerJordan/Muon"},
    FEW_BITS("adamw8bit", "bitsandbytes-8bit", "two of 1 n + 4 ceil(n / 256)",
             "bitsandbytes: 8-bit moments in blocks of 256",
             "bitsandbytes optim/optimizer.py @51294d90; arXiv 2110.02861"),
    FEW_BITS("torchao-adamw8bit", "torchao-8bit", "two of 1 n + 4 n / 256 + 1024", "8-bit moments in blocks of 256",
             "torchao 0.13 optim/subclass_8bit.py"),
    FEW_BITS("torchao-adamw4bit", "torchao-4bit", "two of n / 2 + 4 n / 128 + 64", "4-bit moments in blocks of 128",
             "torchao 0.13 optim/subclass_4bit.py"),
    FEW_BITS("torchao-adamwfp8", "torchao-fp8", "two of 1 n + 4 n / 256", "E4M3 moments in blocks of 256",
             "torchao 0.13 optim/subclass_fp8.py"),
    FEW_BITS("coat", "coat", "two of 1 n + 12 ceil(n / 128)", "E4M3 moments in groups of 128, three numbers each",
             COAT),
    FEW_BITS("coat-e5m2", "coat-e5m2", "two of 1 n + 12 ceil(n / 128)", "the same, v in E5M2", COAT),
    FEW_BITS("coat-plain", "coat-plain", "two of 1 n + 4 ceil(n / 128)", "E4M3 moments in groups of 128", COAT),
    FEW_BITS("fp8-lm", "fp8-lm", "1 n + 2 n + 8", "MS-AMP: E4M3 and fp16 moments, fp16 masters, a scale each",
             "Azure/MS-AMP msamp/optim/adamw.py @03d05edc; arXiv 2310.18313"),
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* An algorithm as its row says it. */
static optimizer_row of_algorithm(int a)
{
    static const char *const moments[] = {"no state", "one moment", "one second moment", "two moments"};
    const mpsim_optim_traits *t = mpsim_optim_traits_of(a);
    return (optimizer_row){.name = t->name,
                           .algorithm = (mpsim_optim_algorithm)a,
                           .matrices = (mpsim_optim_algorithm)a,
                           .shapes = t->factors,
                           .no_moments = t->factors,
                           .state = t->factors ? state_factors : NULL,
                           .what = t->factors ? "second moments of rows and columns, not cut by ZeRO"
                                              : moments[t->arrays & (MPSIM_OPTIM_M | MPSIM_OPTIM_V)],
                           .source = t->source};
}

int memory_optimizer_at(size_t i, optimizer_row *to)
{
    if (i >= MPSIM_OPTIM_ALGORITHMS + ROWS)
        return -1;
    *to = i < MPSIM_OPTIM_ALGORITHMS ? of_algorithm((int)i) : rows[i - MPSIM_OPTIM_ALGORITHMS];
    return 0;
}

int memory_optimizer_find(const char *name, optimizer_row *to)
{
    for (size_t i = 0; memory_optimizer_at(i, to) == 0; i++)
        if (strcasecmp(to->name, name) == 0)
            return 0;
    return -1;
}

static const char *name_of_plan(const plan_optimizer *o)
{
    if (o->has_muon)
        return "muon";
    for (size_t i = 0; o->states && i < ROWS; i++)
        if (rows[i].states && strcmp(rows[i].states, o->states->name) == 0)
            return rows[i].name;
    if (o->momentum > 0 && mpsim_optim_has(o->algorithm, MPSIM_OPTIM_MOMENTUM))
        return "momentum";
    return o->amsgrad > 0 ? "amsgrad" : o->algorithm < 0 ? "adamw" : mpsim_optim_traits_of(o->algorithm)->name;
}

optimizer_row memory_optimizer_of_plan(const plan *p)
{
    optimizer_row row = {.name = NULL};
    (void)memory_optimizer_find(name_of_plan(&p->optimizer), &row);
    return row;
}

mpsim_optim memory_optimizer_settings(const optimizer_row *o, const plan *p, int is_matrix)
{
    const mpsim_optim_algorithm a = o->no_moments ? MPSIM_OPTIM_SGD : is_matrix ? o->matrices : o->algorithm;
    return (mpsim_optim){.algorithm = (uint8_t)a,
                         .store = (uint8_t)p->optimizer.store,
                         .amsgrad = o->amsgrad,
                         .momentum = o->momentum && !o->no_moments ? 0.9 : 0};
}
