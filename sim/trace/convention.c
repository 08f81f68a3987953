/* convention.c -- see convention.h. The table says where each row is known from; a row that could give a
 * tensor a kind that is not its own does not stand here. */
#include "convention.h"

#include "weights.h"

#include <string.h>

/* ---- words ---- */

typedef struct word {
    const char *list, *word, *kind, *ends;
} word;

static const word words[] = {
    /* state of torch.optim (PyTorch 2.5, adam.py, adamw.py, sgd.py), of Megatron-Core's distributed optimizer
     * (0.9, distrib_optimizer.py), of Transformer Engine's FusedAdam (2.1), of DeepSpeed's universal checkpoints
     * (0.16, ds_to_universal.py). square_avg is RMSprop's and Adadelta's second moment; Adagrad's sum and Adamax's
     * exp_inf are no kind of ours. */
    {"torch", "exp_avg", "opt.m", ""},
    {"torch", "exp_avg_sq", "opt.v", ""},
    {"torch", "max_exp_avg_sq", "opt.vmax", ""},
    {"torch", "momentum_buffer", "opt.m", ""},
    {"torch", "square_avg", "opt.v", ""},
    {"torch", "fp32_param", "master", ""},
    {"torch", "fp32_from_fp16", "master", ""},
    {"torch", "master_param", "master", ""},
    {"zero", "exp_avg", "opt.m", ""},
    {"zero", "exp_avg_sq", "opt.v", ""},
    {"zero", "fp32", "master", ""},
    /* fields of optax's states (0.2.8: ScaleByAdamState, ScaleByAmsgradState, TraceState) */
    {"optax", "mu", "opt.m", ""},
    {"optax", "nu", "opt.v", ""},
    {"optax", "nu_max", "opt.vmax", ""},
    {"optax", "trace", "opt.m", ""},
    /* what DumpTensors calls tensors (Transformer Engine 2.1, dump_tensors.py); layers have one weight each */
    {"te", "activation", "act", ""},
    {"te", "output", "out", ""},
    {"te", "gradient", "agrad", ""},
    {"te", "dgrad", "dgrad", ""},
    {"te", "wgrad", "wgrad", ".weight"},
    {"te", "weight", "weight", ".weight"},
    /* trainable variables of Keras's layers (2.15); moving_mean, moving_variance, mean and count are not */
    {"keras", "kernel", "weight", ".kernel"},
    {"keras", "bias", "weight", ".bias"},
    {"keras", "gamma", "weight", ".gamma"},
    {"keras", "beta", "weight", ".beta"},
    {"keras", "embeddings", "weight", ".embeddings"},
    {"keras", "recurrent_kernel", "weight", ".recurrent_kernel"},
    {"keras", "depthwise_kernel", "weight", ".depthwise_kernel"},
    {"keras", "pointwise_kernel", "weight", ".pointwise_kernel"},
};
enum { WORDS = sizeof words / sizeof words[0] };

/* ---- the table ---- */

#define TORCH "PyTorch checkpoint"
#define DCP "PyTorch distributed checkpoint"
#define MEGATRON "Megatron-Core"
#define DEEPSPEED "DeepSpeed"
#define FLAX "Flax"
#define KERAS "Keras"
#define TE "Transformer Engine debug"
#define MSPROBE "msprobe"
#define HF "Hugging Face"
#define PADDLE "Paddle"
#define GRADIENTS "gradients"

static const convention rows[] = {
    /* Transformer Engine 2.1 to 2.12, debug/features/dump_tensors.py: rank_R/LAYER_TENSOR_iter_N.pt, a
     * dictionary; also with a folder for each iteration. '.' of a layer's name is '_' there. */
    {TE, "{file}_{te}_iter_{n}.pt", "high_precision", NULL, 0},
    {TE, "iter_{n}/{file}_{te}.pt", "high_precision", NULL, 0},

    /* msprobe (MindStudio 8.1, docs/pytorch_data_dump_instruct.md, hook_manager.py): a file for each tensor.
     * The inputs of backward are gradients of outputs: its hook exchanges what torch gives, and shapes in the
     * documented dump.json agree. What is dumped of functions (Functional.conv2d.0...) may be a weight, too. */
    {MSPROBE, "Module.{file}.{class}.forward.{call}.input.0{ext}", "", "act", 0},
    {MSPROBE, "Module.{file}.{class}.forward.{call}.output.0{ext}", "", "out", 0},
    {MSPROBE, "Module.{file}.{class}.backward.{call}.input.0{ext}", "", "agrad", 0},
    {MSPROBE, "Module.{file}.{class}.backward.{call}.output.0{ext}", "", "dgrad", 0},
    {MSPROBE, "Module.{file}.{class}.forward.0.parameters.{leaf}{ext}", "", "weight", 0},
    {MSPROBE, "Module.{file}.{class}.parameters_grad.{leaf}{ext}", "", "wgrad", 0},
    {MSPROBE, "Cell.{file}.{class}.forward.{call}.input.0{ext}", "", "act", 0},
    {MSPROBE, "Cell.{file}.{class}.forward.{call}.output.0{ext}", "", "out", 0},
    {MSPROBE, "Cell.{file}.{class}.backward.{call}.input.0{ext}", "", "agrad", 0},
    {MSPROBE, "Cell.{file}.{class}.backward.{call}.output.0{ext}", "", "dgrad", 0},
    {MSPROBE, "Cell.{file}.{class}.forward.0.parameters.{leaf}{ext}", "", "weight", 0},
    {MSPROBE, "Cell.{file}.{class}.parameters_grad.{leaf}{ext}", "", "wgrad", 0},

    /* DeepSpeed 0.16: universal checkpoints, zero/PARAMETER/fp32.pt (checkpoint/ds_to_universal.py); partitions
     * of ZeRO 1 and 2, then 3 (runtime/zero/stage_1_and_2.py, stage3.py), whose fqn is the group's number. */
    {DEEPSPEED, "{file}/{zero}.pt", "param", NULL, 0},
    {DEEPSPEED, NULL, "optimizer_state_dict/single_partition_of_fp32_groups/{fqn}", "master", CONVENTION_PACKED},
    {DEEPSPEED, NULL, "optimizer_state_dict/fp32_flat_groups/{fqn}", "master", CONVENTION_PACKED},
    {DEEPSPEED, NULL, "optimizer_state_dict/base_optimizer_state/state/{fqn}/{torch}", NULL, CONVENTION_PACKED},
    {DEEPSPEED, NULL, "optimizer_state_dict/optimizer_state_dict/state/{fqn}/{torch}", NULL, CONVENTION_PACKED},
    /* without ZeRO, in mp_rank_00_model_states.pt: groups flat (runtime/fp16/fused_optimizer.py), or not (unfused) */
    {DEEPSPEED, NULL, "optimizer/fp32_groups_flat/{fqn}", "master", CONVENTION_PACKED},
    {DEEPSPEED, NULL, "optimizer/fp32_groups/{fqn}", "master", CONVENTION_PACKED},
    {DEEPSPEED, NULL, "optimizer/optimizer_state_dict/state/{fqn}/{torch}", NULL, CONVENTION_PACKED},

    /* Megatron-Core 0.9, dist_checkpointing and distrib_optimizer.py: optimizer.state.STATE.PARAMETER; chained
     * optimizers number theirs. A parameter's own tensor has its bare name: kinds.c finds it by these. */
    {MEGATRON, NULL, "optimizer.state.{torch}.{fqn}", NULL, CONVENTION_PACKED},
    {MEGATRON, NULL, "chained_{n}.optimizer.state.{torch}.{fqn}", NULL, CONVENTION_PACKED},

    /* torch.distributed.checkpoint (PyTorch 2.5, state_dict.py): trees flattened with dots; parameters by their
     * names, also in optimizers that were flattened themselves (torchtitan) */
    {DCP, NULL, "optimizer.state.{fqn}.{torch}", NULL, 0},
    {DCP, NULL, "optim.state.{fqn}.{torch}", NULL, 0},
    {DCP, NULL, "optimizer.optim.state.{fqn}.{torch}", NULL, 0},
    {DCP, NULL, "app.optim.state.{fqn}.{torch}", NULL, 0},
    {DCP, NULL, "app/optim/state/{fqn}/{torch}", NULL, 0},
    {DCP, NULL, "app/model/{fqn}", "weight", CONVENTION_MODEL},
    {DCP, NULL, "state.{fqn}.{torch}", NULL, 0},

    /* trees of torch.save: {"model": module.state_dict(), "optimizer": optimizer.state_dict()} and the other words
     * that PyTorch's tutorial, Lightning 2.4, Detectron2, DeepSpeed and optimizer.pt of transformers 4.46 have */
    {TORCH, NULL, "optimizer/optimizer/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "optimizer/fp32_from_fp16_params/{fqn}", "master", 0},
    {TORCH, NULL, "optimizer/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "optimizer_state/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "optimizer_state_dict/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "optim/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "optim_state_dict/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "opt/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "opt_state_dict/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "optimizer_states/0/state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "state/{fqn}/{torch}", NULL, CONVENTION_INDEX},
    {TORCH, NULL, "model/state_dict/{fqn}", "weight", CONVENTION_MODEL},
    {TORCH, NULL, "model/{fqn}", "weight", CONVENTION_MODEL},
    {TORCH, NULL, "model_state/{fqn}", "weight", CONVENTION_MODEL},
    {TORCH, NULL, "model_state_dict/{fqn}", "weight", CONVENTION_MODEL},
    {TORCH, NULL, "state_dict/{fqn}", "weight", CONVENTION_MODEL},
    {TORCH, NULL, "module/{fqn}", "weight", CONVENTION_MODEL},

    /* Flax 0.12.8 and optax 0.2.8: TrainState as serialization.to_state_dict and traverse_util.flatten_dict give
     * it, also with dots; a state may be that of {"params": ...} */
    {FLAX, NULL, "opt_state~{n~}{optax}~params~{fqn}", NULL, 0},
    {FLAX, NULL, "opt_state~{n~}{optax}~{fqn}", NULL, 0},
    {FLAX, NULL, "params~params~{fqn}", "weight", CONVENTION_VECTOR},
    {FLAX, NULL, "params~{fqn}", "weight", CONVENTION_VECTOR},

    /* Keras 2.15, saving/legacy/hdf5_format.py: a layer's group, then the name of the variable. Keras 3.6,
     * saving_lib.py: variables have numbers, and a vector may be a moving mean; those of optimizers are not known
     * without the optimizer. */
    {KERAS, NULL, "model_weights/{class}/{fqn}/{keras}:0", NULL, 0},
    {KERAS, NULL, "model_weights/{class}/{fqn}/{keras}", NULL, 0},
    {KERAS, NULL, "optimizer_weights/Adam/m/{fqn}:0", "opt.m", 0},
    {KERAS, NULL, "optimizer_weights/Adam/v/{fqn}:0", "opt.v", 0},
    {KERAS, NULL, "optimizer_weights/Adam/{fqn}/m:0", "opt.m", 0},
    {KERAS, NULL, "optimizer_weights/Adam/{fqn}/v:0", "opt.v", 0},
    {KERAS, NULL, "optimizer_weights/training/Adam/{fqn}/m:0", "opt.m", 0},
    {KERAS, NULL, "optimizer_weights/training/Adam/{fqn}/v:0", "opt.v", 0},
    {KERAS, NULL, "optimizer_weights/SGD/m/{fqn}:0", "opt.m", 0},
    {KERAS, NULL, "optimizer_weights/SGD/{fqn}/momentum:0", "opt.m", 0},
    {KERAS, NULL, "optimizer_weights/training/SGD/{fqn}/momentum:0", "opt.m", 0},
    /* Keras 3.6, base_optimizer.py (add_variable_from_reference), in .h5 files: '/' of a variable's path is '_' */
    {KERAS, NULL, "optimizer_weights/{class}/{fqn}_momentum", "opt.m", 0},
    {KERAS, NULL, "optimizer_weights/{class}/{fqn}_velocity", "opt.v", 0},
    {KERAS, NULL, "optimizer_weights/{class}/{fqn}_velocity_hat", "opt.vmax", 0},
    {KERAS, NULL, "{class}/{fqn}/{keras}:0", NULL, CONVENTION_TWICE},
    {KERAS, NULL, "layers/{fqn}/vars/{leaf}", "weight", CONVENTION_MATRIX},
    {KERAS, NULL, "_layer_checkpoint_dependencies/{fqn}/vars/{leaf}", "weight", CONVENTION_MATRIX},

    /* Paddle 2.6, optimizer/optimizer.py (_create_accumulators: PARAMETER_moment1_0; masters: _create_master_weight,
     * PARAMETER_fp32_master_0) and framework/io.py */
    {PADDLE, NULL, "{fqn}_fp32_master_0_moment1_0", "opt.m", 0},
    {PADDLE, NULL, "{fqn}_fp32_master_0_moment2_0", "opt.v", 0},
    {PADDLE, NULL, "{fqn}_fp32_master_0_velocity_0", "opt.m", 0},
    {PADDLE, NULL, "{fqn}_moment1_0", "opt.m", 0},
    {PADDLE, NULL, "{fqn}_moment2_0", "opt.v", 0},
    {PADDLE, NULL, "{fqn}_moment2_max_0", "opt.vmax", 0},
    {PADDLE, NULL, "{fqn}_velocity_0", "opt.m", 0},
    {PADDLE, NULL, "master_weights/{fqn}", "master", 0},
    {PADDLE, "{class}.pdparams", "{fqn}", "weight", CONVENTION_MODEL},

    /* no framework's, but said by the name */
    {GRADIENTS, NULL, "grad~{fqn}", "wgrad", CONVENTION_GRADIENT},
    {GRADIENTS, NULL, "grads~params~{fqn}", "wgrad", CONVENTION_GRADIENT},
    {GRADIENTS, NULL, "grads~{fqn}", "wgrad", CONVENTION_GRADIENT},
    {GRADIENTS, NULL, "gradient~{fqn}", "wgrad", CONVENTION_GRADIENT},
    {GRADIENTS, NULL, "gradients~{fqn}", "wgrad", CONVENTION_GRADIENT},
    {GRADIENTS, NULL, "{fqn}~grad", "wgrad", CONVENTION_PARAMETER},
    {GRADIENTS, NULL, "{fqn}~main_grad", "wgrad", CONVENTION_PARAMETER},
    {GRADIENTS, NULL, "{fqn}_grad", "wgrad", CONVENTION_PARAMETER},

    /* transformers 4.46, diffusers 0.31 and peft 0.13 write weights, and nothing else, under these names; safetensors
     * files say {"format": "pt"}. A file of bare names that is called otherwise may be of gradients. */
    {HF, "model.safetensors", "{fqn}", "weight", CONVENTION_MODEL | CONVENTION_SAVED},
    {HF, "model-{n}-of-{n}.safetensors", "{fqn}", "weight", CONVENTION_MODEL | CONVENTION_SAVED},
    {HF, "pytorch_model-{n}-of-{n}.safetensors", "{fqn}", "weight", CONVENTION_MODEL | CONVENTION_SAVED},
    {HF, "adapter_model.safetensors", "{fqn}", "weight", CONVENTION_MODEL | CONVENTION_SAVED},
    {HF, "diffusion_pytorch_model.safetensors", "{fqn}", "weight", CONVENTION_MODEL | CONVENTION_SAVED},
    {HF, "model.safetensors.index.json", "{fqn}", "weight", CONVENTION_MODEL},
    {HF, "diffusion_pytorch_model.safetensors.index.json", "{fqn}", "weight", CONVENTION_MODEL},
    {HF, "pytorch_model.bin", "{fqn}", "weight", CONVENTION_MODEL},
    {HF, "pytorch_model-{n}-of-{n}.bin", "{fqn}", "weight", CONVENTION_MODEL},
    {HF, "adapter_model.bin", "{fqn}", "weight", CONVENTION_MODEL},
    {HF, "diffusion_pytorch_model.bin", "{fqn}", "weight", CONVENTION_MODEL},
};
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert((int)ROWS <= (int)CONVENTIONS_MAX, "a scope has room for all rows");

/* ---- fitting ---- */

enum { LONGEST = 4096 };

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_word_character(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t span(const char *s, const char *end, int (*is)(char))
{
    size_t n = 0;
    while (s + n < end && is(s[n]))
        n++;
    return n;
}

static int is_separator(char c)
{
    return c == '.' || c == '/';
}

/* "0/1/" */
static size_t span_numbers(const char *s, const char *end)
{
    size_t all = 0;
    for (;;) {
        const size_t n = span(s + all, end, is_digit);
        if (n == 0 || s + all + n >= end || !is_separator(s[all + n]))
            return all;
        all += n + 1;
    }
}

/* The longest word of a list that s begins with and that ends where a separator, ':' or the end is, or what
 * follows the token in the pattern. */
static const word *find_word(const char *list, size_t n_list, const char *s, const char *end, char next)
{
    const word *found = NULL;
    for (size_t i = 0; i < WORDS; i++) {
        const word *w = &words[i];
        const size_t n = strlen(w->word);
        if (strncmp(w->list, list, n_list) != 0 || w->list[n_list] || (size_t)(end - s) < n ||
            memcmp(s, w->word, n) != 0)
            continue;
        if (s + n < end && !is_separator(s[n]) && s[n] != ':' && s[n] != next)
            continue;
        if (!found || n > strlen(found->word))
            found = w;
    }
    return found;
}

static int token_is(const char *p, size_t n, const char *token)
{
    return strlen(token) == n && memcmp(p, token, n) == 0;
}

static int fit(convention_match *m, const char *p, const char *s, const char *end);

/* {fqn} and {file}: the longest that lets the rest fit. */
static int fit_fqn(convention_match *m, const char *p, const char *s, const char *end, int in_file)
{
    const char *longest = in_file ? memchr(s, '/', (size_t)(end - s)) : NULL;
    for (const char *e = longest ? longest : end; e > s; e--) {
        if (*p && *p != '{' && (e == end || !(*e == *p || (*p == '~' && is_separator(*e)))))
            continue;
        if (!fit(m, p, e, end))
            continue;
        m->fqn = (convention_part){s, (size_t)(e - s)};
        return 1;
    }
    return 0;
}

/* One token of n characters at p; how much of s it takes, or -1. */
static ptrdiff_t fit_token(convention_match *m, const char *p, size_t n, const char *s, const char *end)
{
    size_t taken;
    if (token_is(p, n, "n~")) {
        taken = span_numbers(s, end);
    } else if (token_is(p, n, "n") || token_is(p, n, "call")) {
        taken = span(s, end, is_digit);
        if (n > 1 && !(taken == 1 && *s == '0'))
            m->call = (convention_part){s, taken};
    } else if (token_is(p, n, "ext")) {
        taken = s < end && *s == '.' ? 1 + span(s + 1, end, is_word_character) : 0;
        taken = taken > 1 && s + taken == end ? taken : 0;
    } else if (token_is(p, n, "leaf") || token_is(p, n, "class")) {
        taken = span(s, end, is_word_character);
        *(*p == 'l' ? &m->leaf : &m->class) = (convention_part){s, taken};
    } else {
        const word *w = find_word(p, n, s, end, p[n + 1]);
        taken = w ? strlen(w->word) : 0;
        if (w) {
            m->kind = w->kind;
            m->ends = w->ends;
        }
    }
    return taken ? (ptrdiff_t)taken : -1;
}

/* Whether all of s fits p; {fqn} or {file} stands in a pattern once, so that this is called at most twice deep. */
static int fit(convention_match *m, const char *p, const char *s, const char *end)
{
    while (*p) {
        if (*p == '{') {
            const size_t n = strcspn(p + 1, "}");
            if (token_is(p + 1, n, "fqn") || token_is(p + 1, n, "file"))
                return fit_fqn(m, p + n + 2, s, end, n == 4);
            const ptrdiff_t taken = fit_token(m, p + 1, n, s, end);
            if (taken < 0)
                return 0;
            s += taken;
            p += n + 2;
        } else if (s < end && (*p == *s || (*p == '~' && is_separator(*s)))) {
            s++, p++;
        } else {
            return 0;
        }
    }
    return s == end;
}

/* The end of a path, from any of its components on. */
static int fit_path(convention_match *m, const char *p, const char *path)
{
    const char *end = path + strlen(path);
    for (const char *s = path; s; s = strchr(s, '/')) {
        s += s > path || *s == '/';
        if (fit(m, p, s, end))
            return 1;
    }
    return 0;
}

/* ---- what must hold beside the pattern ---- */

static int is_one_of(const char *const *list, const char *s, size_t n)
{
    for (; *list; list++)
        if (strlen(*list) == n && memcmp(*list, s, n) == 0)
            return 1;
    return 0;
}

/* The last word of a fqn. */
static convention_part last_word(const char *fqn, size_t n)
{
    size_t begin = n;
    while (begin && !is_separator(fqn[begin - 1]))
        begin--;
    return (convention_part){fqn + begin, n - begin};
}

/* Not "grads/norm", "grad.input": a number, or the gradient of an activation. */
static int is_no_activation(const char *fqn, size_t n)
{
    static const char *const others[] = {"input",         "inputs",      "output",      "outputs", "x",    "y",
                                         "hidden_states", "activation",  "activations", "logits",  "loss", "norm",
                                         "total_norm",    "global_norm", "grad_norm",   NULL};
    const convention_part w = last_word(fqn, n);
    return !is_one_of(others, w.at, w.n);
}

static int holds(const convention_match *m, const convention_query *q)
{
    const unsigned flags = m->row->flags;
    const convention_part f = m->fqn, c = m->class;
    const weights_name w = {f.at, f.n, q->rank, q->first_is_one, q->numbers, q->dtype};
    if ((flags & CONVENTION_PARAMETER) && !trace_weights_only_parameters(&w))
        return 0;
    /* a number in a tree may be a setting; where files hold weights and nothing else it is none */
    if ((flags & CONVENTION_MODEL) &&
        !(q->rank || m->row->path ? trace_weights_in_model(&w) : trace_weights_only_parameters(&w)))
        return 0;
    if ((flags & CONVENTION_GRADIENT) && !is_no_activation(f.at, f.n))
        return 0;
    if ((flags & CONVENTION_TWICE) && (f.n < c.n || memcmp(f.at, c.at, c.n) != 0 || (f.n > c.n && f.at[c.n] != '/')))
        return 0;
    const size_t rank = flags & CONVENTION_MATRIX ? 2 : (flags & (CONVENTION_GRADIENT | CONVENTION_VECTOR)) != 0;
    return q->rank >= rank && (!(flags & CONVENTION_SAVED) || q->saved);
}

void trace_convention_scope_init(convention_scope *s, const char *path)
{
    convention_match m;
    s->path = path;
    for (size_t i = 0; i < ROWS; i++)
        s->row[i] = !rows[i].path || (strlen(path) <= LONGEST && fit_path(&m, rows[i].path, path));
}

int trace_convention_find(convention_match *m, const convention_query *q)
{
    const size_t n = strlen(q->name);
    for (size_t i = 0; i < ROWS && n <= LONGEST; i++) {
        const convention *row = &rows[i];
        const char first = row->name[0];
        if (!q->scope->row[i] || (first != '{' && first != q->name[0]))
            continue;
        *m = (convention_match){.row = row, .kind = row->kind, .ends = ""};
        if (!fit(m, row->name, q->name, q->name + n) || (row->path && !fit_path(m, row->path, q->scope->path)))
            continue;
        if (row->kind)
            m->kind = row->kind;
        if (holds(m, q))
            return 1;
    }
    return 0;
}
