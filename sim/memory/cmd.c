/* cmd.c -- mpsim memory: the bytes that a training needs under a policy, and their formulas. */
#include "../array/need.h"
#include "../commands.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../policy/list.h"
#include "../policy/unmatched.h"
#include "../text/words.h"
#include "config.h"
#include "record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "The model is a number of parameters, files of tensors (their headers are read, not their elements), a\n"
    "config.json of Hugging Face, or the options of a transformer, which also give the activations of a\n"
    "micro-batch by Korthikanti et al. 2022. A rank holds ceil(n / ranks) elements of a shared parameter\n"
    "of n elements. Bytes are exact; GB are 10^9, GiB 2^30 bytes.\n"
    "\n"
    "Optimizers: sgd, momentum, adam, adamw, amsgrad, lion, muon, adafactor, adamw8bit (bitsandbytes),\n"
    "torchao-adamw8bit, torchao-adamw4bit, torchao-adamwfp8. data/counts/guides.tsv lists their sources and\n"
    "the numbers of published guides.\n"
    "\n"
    "Examples:\n"
    "  mpsim memory --params 7.5e9 -P deepspeed-fp16 --ranks 64 --zero 2\n"
    "  mpsim memory --params 7B -P pytorch-amp-fp16 -P megatron-bf16 -P te-mxfp8\n"
    "  mpsim memory -P bf16-pure --optimizer adamw8bit model.safetensors\n"
    "  mpsim memory -P megatron-bf16 -P bf16-pure config.json\n"
    "  mpsim memory -P megatron-bf16 --layers 96 --hidden 12288 --heads 96 \\\n"
    "            --seq 2048 --batch 1 --vocab 51200 \\\n"
    "            --tensor-parallel 8 --sequence-parallel --recompute selective\n"
    "  mpsim memory -P megatron-bf16 --layers 32 --hidden 4096 --heads 32 \\\n"
    "            --seq 4096 --batch 1 --vocab 32000 --activation swiglu \\\n"
    "            --ffn 11008 --positions 0 --untied --flash --no-dropout\n";

typedef struct options {
    const char *optimizer;
    int activation, norm, biases, recompute; /* norm: -1 where it is not given */
    uint64_t parameters, ranks, zero;
    option_list policies;
    shape_transformer t;
    uint64_t positions;
    count_setting how;
    input_options from;
    report_options form;
} options;

static const uint64_t not_given = UINT64_MAX;

/* ---- the command line ---- */

/* As train_decoder_hidden: 4 H, of SwiGLU 8/3 H up to a multiple of 8. */
static uint64_t ffn_of(const shape_transformer *t)
{
    return t->swiglu ? (t->hidden + 2) / 3 * 8 : 4 * t->hidden;
}

/* What follows for a transformer from the options that are given. What differs between GPT and Llama the activation says, as of
 * `train`. */
static int complete_transformer(const options *o, shape_transformer *t)
{
    t->swiglu = o->activation == 2;
    t->rmsnorm = o->norm < 0 ? t->swiglu : o->norm;
    t->no_biases |= t->swiglu && !o->biases;
    t->kv_heads = t->kv_heads == not_given ? t->heads : t->kv_heads;
    t->ffn = t->ffn == not_given ? ffn_of(t) : t->ffn;
    t->positions = t->positions == not_given ? t->seq : t->positions;
    return t->hidden % t->heads == 0 && t->heads % t->kv_heads == 0
               ? 0
               : fail(EXIT_USAGE, "memory: --hidden must be a multiple of --heads, and --heads of --kv-heads");
}

static int read_parameters(void *n, const char *where, const char *text)
{
    (void)where;
    return memory_shape_parse_count(n, text);
}

static int read_optimizer(void *name, const char *where, const char *text)
{
    suggestion s;
    optimizer_row o;
    *(const char **)name = text;
    if (memory_optimizer_find(text, &o) == 0)
        return 0;
    suggestion_init(&s, text);
    for (size_t i = 0; memory_optimizer_at(i, &o) == 0; i++)
        suggestion_consider(&s, o.name);
    return fail(EXIT_USAGE, "%s: '%s' is not known%s", where, text, suggestion_end(&s, "; see 'mpsim memory --help'"));
}

/* ---- the model ---- */

static int make_shape(shape *s, const options *o, char **files, int n)
{
    int is = 0, code = n == 1 ? memory_shape_of_config(s, files[0], &is) : 0;
    if (is || code)
        return code;
    if (n > 0)
        return memory_shape_of_files(s, &o->from, files, n);
    if (!o->parameters)
        return memory_shape_of_transformer(s, &o->t, o->how.tensor_parallel);
    *s = (shape){.counted_only = 1, .tensor_parallel = 1, .parameters = o->parameters};
    return 0;
}

/* ---- the cases ---- */

/* Of a policy the plan that needs most. */
static int count_case(memory_case *c, const policy *p, const options *o, const shape *s, const shape_transformer *t)
{
    memory_case *one = need_memory(1, sizeof *one);
    int code = 0;
    for (size_t i = 0; i < p->count && !code; i++) {
        *one = (memory_case){.policy = p->name, .from = p->plans[i].from, .scheduled = p->count > 1};
        one->optimizer = memory_optimizer_of_plan(&p->plans[i]);
        if (o->optimizer)
            (void)memory_optimizer_find(o->optimizer, &one->optimizer);
        policy_plan_describe(&p->plans[i], one->plan, sizeof one->plan);
        if (one->optimizer.shapes && s->counted_only)
            code = fail(EXIT_USAGE, "memory: %s needs shapes: a file, or the options of a transformer",
                        one->optimizer.name);
        memory_count_parameters(&one->bytes, s, &p->plans[i], &one->optimizer, &o->how);
        if (t)
            memory_count_activations(&one->bytes, t, &p->plans[i], &o->how);
        if (!code && (one->bytes.overflow || memory_ledger_total(&one->bytes) > INT64_MAX))
            code = fail(EXIT_USAGE, "memory: %s: more than 2^63 bytes", p->name);
        if (i == 0 || memory_ledger_total(&one->bytes) > memory_ledger_total(&c->bytes))
            *c = *one;
    }
    free(one);
    return code;
}

static int fits_a_layer(const void *context, const char *glob)
{
    return memory_shape_has_layer(context, glob);
}

/* Per cent are of what the plain policy fp32 takes. */
static int count_cases(memory_case *cases, const policy_list *policies, const options *o, const shape *s,
                       const shape_transformer *t)
{
    policy_list plain = {.steps_per_epoch = 1};
    memory_case *fp32 = need_memory(1, sizeof *fp32);
    int code = policy_list_add(&plain, "memory", "fp32");
    if (!code)
        code = count_case(fp32, &plain.items[0], o, s, t);
    for (size_t i = 0; i < policies->count && !code; i++) {
        code = count_case(&cases[i], &policies->items[i], o, s, t);
        cases[i].fp32 = memory_ledger_total(&fp32->bytes);
        if (!s->counted_only)
            policy_find_unmatched(&policies->items[i], fits_a_layer, s, cases[i].unmatched, sizeof cases[i].unmatched);
    }
    free(fp32);
    policy_list_clear(&plain);
    return code;
}

static int report(const options *o, const shape *s, const shape_transformer *t, char **files, int n, report_style style)
{
    policy_list policies = {.steps_per_epoch = 1};
    output out;
    char file[512], source[600];
    int code = policy_list_add_all(&policies, "memory", &o->policies);
    snprintf(source, sizeof source, "%s%s%s",
             n                ? "of "
             : s->transformer ? "of a transformer"
                              : "one matrix of unknown shape",
             n ? escape_text(file, sizeof file, files[0]) : "", n > 1 ? " and others" : "");
    memory_case *cases = code ? NULL : need_memory(policies.count, sizeof *cases);
    if (!code)
        code = count_cases(cases, &policies, o, s, t);
    if (!code && !(code = report_options_open(&out, &o->form))) {
        const memory_report r = {s, t, &o->how, source, cases, policies.count};
        memory_print(&r, style, out.file);
        code = output_close(&out);
    }
    free(cases);
    policy_list_clear(&policies);
    return code;
}

static int run(options *o, char **files, int n)
{
    const int transformer = o->t.layers != not_given;
    shape s = {0};
    int code = transformer ? complete_transformer(o, &o->t) : 0;
    if (code)
        return code;
    o->how.ranks = o->ranks;
    o->how.zero = (unsigned)o->zero;
    o->how.recompute = (count_recompute)o->recompute;
    if (!(code = make_shape(&s, o, files, n)))
        code = report(o, &s, transformer ? &o->t : NULL, files, n, report_options_style(&o->form));
    memory_shape_clear(&s);
    return code;
}

/* What a transformer is described by: some of these options, and what it cannot do without. */
#define TRANSFORMER "layers hidden heads seq batch vocab kv-heads ffn positions untied biases no-biases activation norm"
#define NEEDED "layers+hidden+heads+seq+batch+vocab"

int cmd_memory(const command *self, int argc, char **argv)
{
    options o = {.ranks = 1, .norm = -1, .how = {.tensor_parallel = 1}};
    o.t.layers = o.t.hidden = o.t.heads = o.t.seq = o.t.batch = o.t.vocab = not_given;
    o.t.kv_heads = o.t.ffn = o.t.positions = not_given;
    int first;
    const option_row table_of_options[] = {
        {0, "params", OPTION_READ,
         READS(read_parameters, &o.parameters, "a whole number from 1 to 10^15, as 7e9, 7B or 125M"), "N",
         "number of parameters, as 7000000000, 7e9, 7B, 1.3B or 125M"},
        POLICY_OPTION_ROW(o.policies),
        {0, "optimizer", OPTION_READ, READS(read_optimizer, &o.optimizer, NULL), "NAME",
         "optimizer (default: the policy's, else adamw)"},
        {0, "ranks", OPTION_COUNT, &o.ranks, "N", "data-parallel ranks (default 1)"},
        {0, "zero", OPTION_COUNT, &o.zero, "STAGE",
         "ranks share masters and optimizer state (1), also gradients (2), also weights (3, FSDP)"},
        {0, "master-gradients", OPTION_FLAG, &o.how.master_gradients, NULL,
         "keep a binary32 copy of 16-bit gradients, as Apex O2 and Megatron's fp16 do"},
        {0, "no-transposes", OPTION_FLAG, &o.how.no_transposes, NULL,
         "keep one copy of quantised weights, not one for each dimension"},
        COMMON("params policy optimizer ranks zero layers hidden heads seq batch vocab recompute json output"),
        {0, "A transformer", OPTION_HEADING, NULL, NULL, NULL},
        {0, "layers", OPTION_COUNT, &o.t.layers, "L", "layers"},
        {0, "hidden", OPTION_COUNT, &o.t.hidden, "H", "hidden size"},
        {0, "heads", OPTION_COUNT, &o.t.heads, "A", "attention heads"},
        {0, "seq", OPTION_COUNT, &o.t.seq, "S", "sequence length"},
        {0, "batch", OPTION_COUNT, &o.t.batch, "B", "sequences in a micro-batch of a rank"},
        {0, "vocab", OPTION_COUNT, &o.t.vocab, "V", "vocabulary size"},
        {0, "kv-heads", OPTION_COUNT, &o.t.kv_heads, "K", "heads of keys and values (default: A)"},
        {0, "ffn", OPTION_COUNT, &o.t.ffn, "F", "inner size of the MLP (default: 4 H; swiglu 8/3 H)"},
        {0, "activation", OPTION_WORD, &o.activation, "gelu-tanh|gelu|swiglu",
         "activation of the MLP (default gelu-tanh; swiglu as in Llama, with rmsnorm and without biases)"},
        {0, "norm", OPTION_WORD, &o.norm, "layernorm|rmsnorm",
         "normalisation of layers (default layernorm; swiglu rmsnorm)"},
        {0, "biases", OPTION_FLAG, &o.biases, NULL, "biases in linear layers and norms (default of GELU)"},
        {0, "no-biases", OPTION_FLAG, &o.t.no_biases, NULL, "no biases (default of swiglu)"},
        {0, "positions", OPTION_COUNT, &o.t.positions, "N", "learned positions (default: S)"},
        {0, "untied", OPTION_FLAG, &o.t.untied, NULL, "the output layer has its own weights"},
        {0, "tensor-parallel", OPTION_COUNT, &o.how.tensor_parallel, "T", "tensor-parallel ranks (default 1)"},
        {0, "sequence-parallel", OPTION_FLAG, &o.how.sequence_parallel, NULL,
         "tensor-parallel ranks also split the activations between matrix products"},
        {0, "recompute", OPTION_WORD, &o.recompute, "none|selective|full",
         "activations that the backward pass recomputes (default none)"},
        {0, "flash", OPTION_FLAG, &o.how.flash, NULL, "FlashAttention: keep no tensor of size S x S"},
        {0, "no-dropout", OPTION_FLAG, &o.how.no_dropout, NULL, "no dropout, and no masks"},
        NEEDS("", "params FILE layers", "give --params N, a file, or the options of a transformer"),
        NEEDS("", "policy", "name a file or a bundled policy"),
        NEEDS(TRANSFORMER, NEEDED, "a transformer needs all of them"),
        NEEDS("recompute flash no-dropout", NEEDED, "these options are for a transformer"),
        NEEDS("tensor-parallel", NEEDED "+!params+!FILE", "tensor parallelism splits the parameters of a transformer"),
        NEEDS("sequence-parallel", "tensor-parallel", NULL),
        EXCLUSIVE("params FILE", NULL),
        EXCLUSIVE("biases no-biases", NULL),
        RANGE("layers", 1, 16384),
        RANGE("hidden batch", 1, 1 << 20),
        RANGE("heads kv-heads tensor-parallel", 1, 1 << 16),
        RANGE("seq vocab", 1, 1 << 26),
        RANGE("positions", 0, 1 << 26),
        RANGE("ffn ranks", 1, 1 << 24),
        RANGE("zero", 0, 3),
        {0, "Which tensors of files", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(o.form, "mpsim.memory/1"),
        NDJSON_OPTION_ROW(o.form, "policy"),
        CSV_OPTION_ROW(o.form, ""),
        COLUMNS("Columns", record_rows(&memory_kind), 0),
        OUTPUT_OPTION_ROW(o.form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0)
        code = run(&o, argv + first, argc - first);
    option_list_clear(&o.policies);
    input_options_clear(&o.from);
    return code;
}
