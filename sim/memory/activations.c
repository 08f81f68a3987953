/* activations.c -- what a transformer's forward pass keeps; see count.h.
 *
 * Korthikanti et al. 2022 (arXiv 2205.05198), 4.1 and 4.2, tensor by tensor: with 16 bits everywhere the
 * rows of a layer add up to s b h (34 + 5 a s / h), and those outside the layers to their section 4.2.4.
 * The bytes of an element are the policy's, of the kind of layer that keeps it. FlashAttention keeps no
 * a s^2 b, but the logarithms of its sums in binary32 (arXiv 2307.08691, 3.1). */
#include "count.h"

#include <mpsim/block.h>

#include <stdio.h>
#include <string.h>

/* How many elements: of micro-batch b, sequence s, hidden size h, heads a, MLP f, vocabulary v. */
typedef enum unit { SBH, SBK, SBF, ASSB, ASB, SBV, UNITS } unit;

static const char *const symbols[UNITS] = {
    [SBH] = "s b h", [SBK] = "s b k h / a", [SBF] = "s b f", [ASSB] = "a s^2 b", [ASB] = "a s b", [SBV] = "s b v"};

/* Who keeps it. */
typedef enum when { ALWAYS, MATERIALISED, WITH_FLASH, CAST_COPY, OF_GELU, OF_SWIGLU } when;

typedef struct kept {
    const char *what, *layer; /* of the layer whose placement counts: "attn.qkv" */
    layer_kind kind;
    train_role role;
    unit unit;
    uint8_t times;
    uint8_t fixed;   /* bytes of an element whatever the policy; 0: the policy's */
    uint8_t operand; /* may be quantised by a recipe                            */
    uint8_t dropout; /* only with dropout                                       */
    uint8_t cut;     /* 1: by tensor parallelism, 0: with sequence parallelism only */
    when when;
} kept;

static const kept of_layer[] = {
    {"input of ln1", "ln1", LAYER_NORM, TRAIN_ACT, SBH, 1, 0, 0, 0, 0, ALWAYS},
    {"input of qkv", "attn.qkv", LAYER_LINEAR, TRAIN_ACT, SBH, 1, 0, 1, 0, 0, ALWAYS},
    {"queries", "attn.qkv", LAYER_LINEAR, TRAIN_OUT, SBH, 1, 0, 0, 0, 1, ALWAYS},
    {"keys and values", "attn.qkv", LAYER_LINEAR, TRAIN_OUT, SBK, 2, 0, 0, 0, 1, ALWAYS},
    {"output of softmax", "attn.softmax", LAYER_SOFTMAX, TRAIN_OUT, ASSB, 1, 0, 0, 0, 1, MATERIALISED},
    {"mask of its dropout", "attn.softmax", LAYER_SOFTMAX, TRAIN_OUT, ASSB, 1, 1, 0, 1, 1, MATERIALISED},
    {"operand after it", "attn.qkv", LAYER_LINEAR, TRAIN_OUT, ASSB, 1, 0, 0, 0, 1, CAST_COPY},
    {"logarithms of sums", "attn.softmax", LAYER_SOFTMAX, TRAIN_OUT, ASB, 1, 4, 0, 0, 1, WITH_FLASH},
    {"input of proj", "attn.proj", LAYER_LINEAR, TRAIN_ACT, SBH, 1, 0, 1, 0, 1, ALWAYS},
    {"mask of dropout", "attn.proj", LAYER_LINEAR, TRAIN_OUT, SBH, 1, 1, 0, 1, 0, ALWAYS},
    {"input of ln2", "ln2", LAYER_NORM, TRAIN_ACT, SBH, 1, 0, 0, 0, 0, ALWAYS},
    {"input of fc", "mlp.fc", LAYER_LINEAR, TRAIN_ACT, SBH, 1, 0, 1, 0, 0, ALWAYS},
    {"input of GELU", "mlp.act", LAYER_OTHER, TRAIN_ACT, SBF, 1, 0, 0, 0, 1, OF_GELU},
    {"gates and values", "mlp.act", LAYER_OTHER, TRAIN_ACT, SBF, 2, 0, 0, 0, 1, OF_SWIGLU},
    {"input of proj of the MLP", "mlp.proj", LAYER_LINEAR, TRAIN_ACT, SBF, 1, 0, 1, 0, 1, ALWAYS},
    {"mask of dropout", "mlp.proj", LAYER_LINEAR, TRAIN_OUT, SBH, 1, 1, 0, 1, 0, ALWAYS},
};
static const kept outside[] = {
    {"mask of embedding's dropout", "wte", LAYER_EMBEDDING, TRAIN_OUT, SBH, 1, 1, 0, 1, 0, ALWAYS},
    {"input of last norm", "lnf", LAYER_NORM, TRAIN_ACT, SBH, 1, 0, 0, 0, 0, ALWAYS},
    {"input of output layer", "head", LAYER_LINEAR, TRAIN_ACT, SBH, 1, 0, 1, 0, 0, ALWAYS},
    {"logits", "loss", LAYER_LOSS, TRAIN_ACT, SBV, 1, 0, 0, 0, 1, ALWAYS},
};
/* All that full recomputation keeps of a layer. */
static const kept of_full = {"input of the layer", "attn.proj", LAYER_LINEAR, TRAIN_OUT, SBH, 1, 0, 0, 0, 0, ALWAYS};

typedef struct walk {
    ledger *l;
    const shape_transformer *t;
    const plan *p;
    const count_setting *how;
} walk;

/* Elements of a rank, how many all are, and the columns of the matrix that they are. */
static uint64_t elements(const walk *w, const kept *k, uint64_t *all, uint64_t *cols)
{
    const shape_transformer *t = w->t;
    const uint64_t sb = memory_ledger_times(w->l, t->seq, t->batch), ranks = w->how->tensor_parallel;
    const uint64_t last[UNITS] = {[SBH] = t->hidden, [SBK] = t->hidden / t->heads * t->kv_heads,
                                  [SBF] = t->ffn,    [ASSB] = memory_ledger_times(w->l, t->heads, t->seq),
                                  [ASB] = t->heads,  [SBV] = t->vocab};
    const int is_cut = k->cut || w->how->sequence_parallel;
    const uint64_t n = memory_ledger_times(w->l, sb, last[k->unit]);
    *all = n;
    *cols = last[k->unit];
    if (!is_cut || ranks == 1)
        return n;
    *cols = k->cut ? last[k->unit] / ranks + (last[k->unit] % ranks != 0) : last[k->unit];
    return n / ranks + (n % ranks != 0);
}

static int is_kept(const walk *w, const kept *k, const train_placement *place)
{
    const int core = w->how->recompute == COUNT_RECOMPUTE_SELECTIVE;
    train_placement softmax;
    if (k->dropout && w->how->no_dropout)
        return 0;
    switch (k->when) {
    case MATERIALISED:
        return !w->how->flash && !core;
    case WITH_FLASH:
        return w->how->flash;
    case CAST_COPY: /* without dropout the softmax's own output is the operand, if its format fits */
        policy_plan_place(w->p, LAYER_SOFTMAX, "softmax", &softmax);
        return !w->how->flash && !core &&
               (!w->how->no_dropout || !mpsim_format_same(&softmax.format[TRAIN_OUT], &place->format[TRAIN_OUT]));
    case OF_GELU:
        return !w->t->swiglu;
    case OF_SWIGLU:
        return w->t->swiglu;
    case ALWAYS:
    default:
        return 1;
    }
}

static void add_kept(const walk *w, const kept *k, const char *layer)
{
    train_placement place;
    uint64_t all, cols;
    ledger_term t = {.symbol = symbols[k->unit], .times = k->times};
    policy_plan_place(w->p, k->kind, layer, &place);
    if (!is_kept(w, k, &place))
        return;
    const uint64_t n = elements(w, k, &all, &cols);
    const mpsim_block_recipe *b = k->operand ? place.recipe[k->role] : NULL;
    const mpsim_format *f = &place.format[k->role];
    t.n = memory_ledger_times(w->l, n, k->times);
    t.whole = memory_ledger_times(w->l, all, k->times);
    if (b) {
        t.bytes = n / cols > UINT32_MAX ? 0 : mpsim_block_bytes(b, n / cols, cols);
        w->l->overflow |= t.bytes == 0;
    } else {
        t.each = k->fixed ? k->fixed : mpsim_format_code_bytes(f);
    }
    snprintf(t.what, sizeof t.what, "%s%s%s%s", k->what, k->fixed ? "" : " (",
             k->fixed ? ""
             : b      ? b->name
                      : f->name,
             k->fixed ? "" : ")");
    memory_ledger_add(w->l, LEDGER_ACTIVATIONS, t);
}

void memory_count_activations(ledger *l, const shape_transformer *t, const plan *p, const count_setting *how)
{
    const walk w = {l, t, p, how};
    const int full = how->recompute == COUNT_RECOMPUTE_FULL;
    const kept *rows = full ? &of_full : of_layer;
    const size_t n = full ? 1 : sizeof of_layer / sizeof of_layer[0];
    char layer[64];
    for (uint64_t i = 0; i < t->layers; i++)
        for (size_t k = 0; k < n; k++) {
            snprintf(layer, sizeof layer, "h%llu.%s", (unsigned long long)i, rows[k].layer);
            add_kept(&w, &rows[k], layer);
        }
    for (size_t k = 0; k < sizeof outside / sizeof outside[0]; k++)
        add_kept(&w, &outside[k], outside[k].layer);
}
