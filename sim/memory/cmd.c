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
    "The model is a number of parameters, what files hold (their directories are read, no elements), what a\n"
    "config.json of Hugging Face describes, or a transformer: its options also give the activations of a micro-batch, by Korthikanti et al. 2022.\n"
    "N is a whole number as 7000000000, 7e9, 7B, 1.3B, 125M. A rank has ceil(n / ranks) elements of a\n"
    "parameter of n that is cut. Bytes are exact; GB are 10^9, GiB 2^30 bytes.\n"
    "\n"
    "Optimizers: sgd, momentum, adam, adamw, amsgrad, lion, muon, adafactor, adamw8bit (bitsandbytes),\n"
    "torchao-adamw8bit, torchao-adamw4bit, torchao-adamwfp8. doc/memory.md has the sources, and the tables\n"
    "of guides beside these numbers.\n"
    "\n"
    "Examples:\n"
    "  mpsim memory --params 7.5e9 -P deepspeed-fp16 --ranks 64 --zero 2\n"
    "  mpsim memory --params 7B -P pytorch-amp-fp16 -P megatron-bf16 -P te-mxfp8\n"
    "  mpsim memory -P bf16-pure --optimizer adamw8bit model.safetensors\n"
    "  mpsim memory -P megatron-bf16 -P bf16-pure config.json\n"
    "  mpsim memory -P megatron-bf16 --layers 96 --hidden 12288 --heads 96 --seq 2048 --batch 1 \\\n"
    "               --vocab 51200 --tensor-parallel 8 --sequence-parallel --recompute selective\n"
    "  mpsim memory -P megatron-bf16 --layers 32 --hidden 4096 --heads 32 --seq 4096 --batch 1 --vocab 32000 \\\n"
    "               --activation swiglu --ffn 11008 --positions 0 --untied --flash --no-dropout\n";

typedef struct options {
    const char *params, *optimizer, *recompute, *activation, *norm;
    int biases;
    uint64_t ranks, zero;
    option_list policies;
    shape_transformer t;
    uint64_t positions;
    count_setting how;
    input_options from;
    report_options form;
} options;

static const uint64_t not_given = UINT64_MAX;

/* ---- the command line ---- */

/* One of the words, which end with NULL; `none` where nothing was typed. -1 after a message. */
static int find_word(const char *option, const char *typed, const char *const words[], int none)
{
    int i = 0;
    char list[64] = "";
    while (typed && words[i] && strcmp(words[i], typed) != 0) {
        text_add(list, sizeof list, "%s%s", i ? ", " : "", words[i]);
        i++;
    }
    if (typed && !words[i])
        fail(EXIT_USAGE, "memory: --%s: '%s' is not one of %s", option, typed, list);
    return !typed ? none : words[i] ? i : -1;
}

/* What differs between GPT and Llama. The activation says it, as of `train`; the rest follows it. */
static int check_style(options *o)
{
    static const char *const activations[] = {"gelu-tanh", "gelu", "swiglu", NULL}, *const norms[] = {"layernorm",
                                                                                                      "rmsnorm", NULL};
    shape_transformer *t = &o->t;
    const int activation = find_word("activation", o->activation, activations, 0);
    t->swiglu = activation == 2;
    t->rmsnorm = find_word("norm", o->norm, norms, t->swiglu);
    if (activation < 0 || t->rmsnorm < 0)
        return EXIT_USAGE;
    if (o->biases && t->no_biases)
        return fail(EXIT_USAGE, "memory: --biases and --no-biases exclude each other");
    t->no_biases |= t->swiglu && !o->biases;
    return 0;
}

/* As train_decoder_hidden: 4 H, of SwiGLU 8/3 H up to a multiple of 8. */
static uint64_t ffn_of(const shape_transformer *t)
{
    return t->swiglu ? (t->hidden + 2) / 3 * 8 : 4 * t->hidden;
}

/* The options of a transformer: those that all have, and whether any was given. */
static int check_transformer(options *o, int *given)
{
    shape_transformer *t = &o->t;
    const struct {
        const char *name;
        uint64_t *value, most;
        int needed;
    } rows[] = {{"layers", &t->layers, 16384, 1},        {"hidden", &t->hidden, 1 << 20, 1},
                {"heads", &t->heads, 1 << 16, 1},        {"seq", &t->seq, 1 << 26, 1},
                {"batch", &t->batch, 1 << 20, 1},        {"vocab", &t->vocab, 1 << 26, 1},
                {"kv-heads", &t->kv_heads, 1 << 16, 0},  {"ffn", &t->ffn, 1 << 24, 0},
                {"positions", &t->positions, 1 << 26, 0}};
    const size_t n = sizeof rows / sizeof rows[0];
    *given = t->untied || t->no_biases || o->biases || o->activation || o->norm;
    for (size_t i = 0; i < n; i++)
        *given |= *rows[i].value != not_given;
    if (!*given)
        return 0;
    if (check_style(o))
        return EXIT_USAGE;
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = *rows[i].value;
        if (rows[i].needed && v == not_given)
            return fail(EXIT_USAGE,
                        "memory: a transformer needs --layers, --hidden, --heads, --seq, --batch "
                        "and --vocab; --%s is missing",
                        rows[i].name);
        if (v != not_given && (v > rows[i].most || (v == 0 && strcmp(rows[i].name, "positions") != 0)))
            return fail(EXIT_USAGE, "memory: --%s is from 1 to %" PRIu64, rows[i].name, rows[i].most);
    }
    t->kv_heads = t->kv_heads == not_given ? t->heads : t->kv_heads;
    t->ffn = t->ffn == not_given ? ffn_of(t) : t->ffn;
    t->positions = t->positions == not_given ? t->seq : t->positions;
    if (t->hidden % t->heads != 0 || t->heads % t->kv_heads != 0)
        return fail(EXIT_USAGE, "memory: --hidden is a multiple of --heads, and --heads of --kv-heads");
    return 0;
}

static int check_parallel(const options *o, int transformer, int operands)
{
    const count_setting *h = &o->how;
    if (o->ranks == 0 || o->ranks > 1 << 24 || h->tensor_parallel == 0 || h->tensor_parallel > 1 << 16)
        return fail(EXIT_USAGE, "memory: --ranks is from 1 to 2^24, --tensor-parallel from 1 to 2^16");
    if (o->zero > 3)
        return fail(EXIT_USAGE, "memory: --zero is 0, 1, 2 or 3");
    if (h->tensor_parallel > 1 && (!transformer || o->params || operands))
        return fail(EXIT_USAGE, "memory: --tensor-parallel needs the parameters of a transformer: its "
                                "options, without --params and files");
    if (h->sequence_parallel && h->tensor_parallel == 1)
        return fail(EXIT_USAGE, "memory: --sequence-parallel goes with --tensor-parallel");
    if (!transformer && (o->recompute || h->flash || h->no_dropout))
        return fail(EXIT_USAGE, "memory: --recompute, --flash and --no-dropout go with the options of a transformer");
    return 0;
}

static int check(options *o, int *transformer, int operands)
{
    int code = check_transformer(o, transformer);
    if (code || (code = check_parallel(o, *transformer, operands)))
        return code;
    if (o->params && operands)
        return fail(EXIT_USAGE, "memory: --params or files, not both");
    if (!o->params && !operands && !*transformer)
        return fail(EXIT_USAGE, "memory: which model? --params N, a file, or the options of a transformer");
    if (o->policies.count == 0)
        return fail(EXIT_USAGE, "memory: which policy? --policy FILE or the name of a bundled one");
    for (int i = 0; o->recompute && memory_recomputation[i]; i++)
        if (strcmp(o->recompute, memory_recomputation[i]) == 0) {
            o->how.recompute = (count_recompute)i;
            o->recompute = NULL;
        }
    if (o->recompute)
        return fail(EXIT_USAGE, "memory: --recompute: '%s' is not one of none, selective, full", o->recompute);
    o->how.ranks = o->ranks;
    o->how.zero = (unsigned)o->zero;
    return 0;
}

/* ---- the model ---- */

static int make_shape(shape *s, const options *o, char **files, int n)
{
    int is = 0, code = n == 1 ? shape_of_config(s, files[0], &is) : 0;
    if (is || code)
        return code;
    if (n > 0)
        return shape_of_files(s, &o->from, files, n);
    if (!o->params)
        return shape_of_transformer(s, &o->t, o->how.tensor_parallel);
    *s = (shape){.counted_only = 1, .tensor_parallel = 1};
    return shape_parse_count(&s->parameters, o->params) == 0
               ? 0
               : fail(EXIT_USAGE, "memory: --params: '%s' is not a whole number from 1 to 10^15, as 7e9, 7B or 125M",
                      o->params);
}

static int check_optimizer(const char *name)
{
    suggestion s;
    optimizer_row o;
    if (optimizer_find(name, &o) == 0)
        return 0;
    suggestion_init(&s, name);
    for (size_t i = 0; optimizer_at(i, &o) == 0; i++)
        suggestion_consider(&s, o.name);
    return fail(EXIT_USAGE, "memory: --optimizer: '%s' is not known%s", name,
                suggestion_end(&s, "; see 'mpsim memory --help'"));
}

/* ---- the cases ---- */

/* Of a policy the plan that needs most. */
static int count_case(memory_case *c, const policy *p, const options *o, const shape *s, const shape_transformer *t)
{
    memory_case *one = need_memory(1, sizeof *one);
    int code = 0;
    for (size_t i = 0; i < p->count && !code; i++) {
        *one = (memory_case){.policy = p->name, .from = p->plans[i].from, .scheduled = p->count > 1};
        one->optimizer = optimizer_of_plan(&p->plans[i]);
        if (o->optimizer)
            (void)optimizer_find(o->optimizer, &one->optimizer);
        plan_describe(&p->plans[i], one->plan, sizeof one->plan);
        if (one->optimizer.shapes && s->counted_only)
            code = fail(EXIT_USAGE, "memory: %s needs shapes: a file, or the options of a transformer",
                        one->optimizer.name);
        count_parameters(&one->bytes, s, &p->plans[i], &one->optimizer, &o->how);
        if (t)
            count_activations(&one->bytes, t, &p->plans[i], &o->how);
        if (!code && (one->bytes.overflow || ledger_total(&one->bytes) > INT64_MAX))
            code = fail(EXIT_USAGE, "memory: %s: more than 2^63 bytes", p->name);
        if (i == 0 || ledger_total(&one->bytes) > ledger_total(&c->bytes))
            *c = *one;
    }
    free(one);
    return code;
}

static int fits_a_layer(const void *context, const char *glob)
{
    return shape_has_layer(context, glob);
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
        cases[i].fp32 = ledger_total(&fp32->bytes);
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
    if (!code && !(code = output_open(&out, o->form.path))) {
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
    static const char rule[] = "--json, --ndjson and --csv exclude each other";
    shape s = {0};
    report_style style;
    int transformer = 0, code;
    if ((code = check(o, &transformer, n)) || (code = report_options_style(&style, &o->form, 0, "memory", rule)))
        return code;
    if (o->optimizer && check_optimizer(o->optimizer))
        return EXIT_USAGE;
    if (!(code = make_shape(&s, o, files, n)))
        code = report(o, &s, transformer ? &o->t : NULL, files, n, style);
    shape_clear(&s);
    return code;
}

int cmd_memory(const command *self, int argc, char **argv)
{
    options o = {.ranks = 1, .how = {.tensor_parallel = 1}};
    o.t.layers = o.t.hidden = o.t.heads = o.t.seq = o.t.batch = o.t.vocab = not_given;
    o.t.kv_heads = o.t.ffn = o.t.positions = not_given;
    int first;
    const option_row table_of_options[] = {
        {0, "params", OPTION_STRING, &o.params, "N", "the model has N parameters"},
        POLICY_OPTION_ROW(o.policies),
        {0, "optimizer", OPTION_STRING, &o.optimizer, "NAME",
         "the optimizer (default: the policy's, adamw where it has none)"},
        {0, "ranks", OPTION_COUNT, &o.ranks, "N", "data-parallel ranks (default 1)"},
        {0, "zero", OPTION_COUNT, &o.zero, "STAGE",
         "what the ranks share: 1 masters and optimizer state, 2 gradients too, 3 weights too (FSDP)"},
        {0, "master-gradients", OPTION_FLAG, &o.how.master_gradients, NULL,
         "a binary32 copy of 16-bit gradients beside the masters, as Apex O2 and Megatron's fp16 make"},
        {0, "no-transposes", OPTION_FLAG, &o.how.no_transposes, NULL,
         "quantised weights are kept once, not along both dimensions"},
        {0, "A transformer", OPTION_HEADING, NULL, NULL, NULL},
        {0, "layers", OPTION_COUNT, &o.t.layers, "L", "layers"},
        {0, "hidden", OPTION_COUNT, &o.t.hidden, "H", "hidden size"},
        {0, "heads", OPTION_COUNT, &o.t.heads, "A", "attention heads"},
        {0, "seq", OPTION_COUNT, &o.t.seq, "S", "length of a sequence"},
        {0, "batch", OPTION_COUNT, &o.t.batch, "B", "sequences in a micro-batch of a rank"},
        {0, "vocab", OPTION_COUNT, &o.t.vocab, "V", "size of the vocabulary"},
        {0, "kv-heads", OPTION_COUNT, &o.t.kv_heads, "K", "heads of keys and values (default: A)"},
        {0, "ffn", OPTION_COUNT, &o.t.ffn, "F", "size of the MLP between its matrices (default: 4 H; of swiglu 8/3 H)"},
        {0, "activation", OPTION_STRING, &o.activation, "gelu-tanh|gelu|swiglu",
         "of the MLP (default: gelu-tanh; swiglu as in Llama, whose norms are rmsnorm, without biases)"},
        {0, "norm", OPTION_STRING, &o.norm, "layernorm|rmsnorm", "of layers (default: layernorm; of swiglu rmsnorm)"},
        {0, "biases", OPTION_FLAG, &o.biases, NULL, "biases in linear layers and norms (default of GELU)"},
        {0, "no-biases", OPTION_FLAG, &o.t.no_biases, NULL, "no biases (default of swiglu)"},
        {0, "positions", OPTION_COUNT, &o.t.positions, "N", "learnt positions (default: S)"},
        {0, "untied", OPTION_FLAG, &o.t.untied, NULL, "the output layer has weights of its own"},
        {0, "tensor-parallel", OPTION_COUNT, &o.how.tensor_parallel, "T", "ranks that share tensors (default 1)"},
        {0, "sequence-parallel", OPTION_FLAG, &o.how.sequence_parallel, NULL,
         "these ranks share what is between the products, too"},
        {0, "recompute", OPTION_STRING, &o.recompute, "WHAT", "none (default), selective, full"},
        {0, "flash", OPTION_FLAG, &o.how.flash, NULL, "FlashAttention: nothing of size S x S is kept"},
        {0, "no-dropout", OPTION_FLAG, &o.how.no_dropout, NULL, "without dropout and its masks"},
        {0, "Which tensors of files", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(o.form, "mpsim.memory/1"),
        NDJSON_OPTION_ROW(o.form, "policy"),
        CSV_OPTION_ROW(o.form, ""),
        OUTPUT_OPTION_ROW(o.form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0)
        code = run(&o, argv + first, argc - first);
    option_list_clear(&o.policies);
    input_options_clear(&o.from);
    return code;
}
