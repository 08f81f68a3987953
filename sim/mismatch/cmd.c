/* cmd.c -- mpsim mismatch: log-probabilities of the same tokens under two arithmetics. */
#include "../array/need.h"
#include "../input/input.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../commands.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "An engine that samples and an engine that trains give the same token two log-probabilities. A is the\n"
    "sampler, B the trainer. The logits of a token are its row of --hidden times every row of --head; its\n"
    "log-probability is (x - max) - log(sum of exp(x - max)), as in mpsim_softmax_xent\n"
    "(lib/include/mpsim/layer.h). 'exact' is computed in binary64 from the stored numbers. Operands without\n"
    "a file are generated. For log-probabilities that two engines recorded: 'mpsim diff --logprob'.\n"
    "\n"
    "A SIDE is MODEL[,KEY=VALUE]..., MODEL a model of 'mpsim dot', KEY one of\n"
    "  operands=FORMAT    round H and W to FORMAT (default: the model's, else binary32)\n"
    "  split=N            split K into N parts, with workspace=FORMAT and sum=FORMAT (mpsim dot --split-k)\n"
    "  logits=FORMAT      round logits to FORMAT (default binary32)\n"
    "  softmax=FORMAT     round every operation of the log-softmax to FORMAT (default binary32)\n"
    "  temperature=T      divide logits by T, in binary32\n"
    "  top-k=N, top-p=P   keep the N likeliest words, then the likeliest words that have a share P of these;\n"
    "                     words as likely as the last one are kept; log-probabilities are of kept words only\n"
    "  chunk=N            log-softmax in chunks of N words, with a running maximum and sum\n"
    "  ranks=N            log-softmax on N ranks that share the words: their sums of exp(x - max) are rounded\n"
    "                     to reduce=FORMAT (default binary32) and added there, in order=chain (rank 0 first,\n"
    "                     default) or order=tree (neighbours first)\n"
    "  cache=FORMAT       keep hidden states in FORMAT before operands=, with scale=token (largest magnitude /\n"
    "                     largest number, default), scale=tensor or scale=1\n"
    "  kv=FORMAT          keep K and V of attention in FORMAT before operands=, with kv-scale=tensor (default),\n"
    "                     kv-scale=head, kv-scale=token (of a head) or kv-scale=1\n"
    "\n"
    "With --query, or with kv= and without files, hidden states are rms(H + A): H is --hidden or 0, A the result of\n"
    "causal attention, the heads of a token side by side, rms divides a row by its root mean square. Products of\n"
    "attention are exact, all else is in binary32. Generated heads have 64 numbers, or all where --size is not a\n"
    "multiple. Q, K and V are [tokens, size], [heads, tokens, size] or [batch, heads, tokens, size].\n"
    "\n"
    "The temperature, top-k and top-p that A and B have in common are those of 'exact', too. A head in binary32\n"
    "on a model in bf16 is fma,operands=bf16.\n"
    "\n"
    "Examples:\n"
    "  mpsim mismatch -a hopper-fp16-fp32 -b hopper-bf16-fp32    sample in fp16, train in bf16\n"
    "  mpsim mismatch -a hopper-bf16-fp32,logits=bf16 -b fma     binary32 head on one side\n"
    "  mpsim mismatch -a hopper-bf16-fp32,logits=bf16 -b fma,operands=bf16     an upcast head\n"
    "  mpsim mismatch -a fma,temperature=0.6 -b fma    tempered against raw log-probabilities\n"
    "  mpsim mismatch -a hopper-bf16-fp32,kv=e4m3 -b hopper-bf16-fp32    an FP8 cache of K and V\n"
    "  mpsim mismatch -a hopper-bf16-fp32,split=3 -b hopper-bf16-fp32    another order of the sum\n"
    "  mpsim mismatch --hidden h.npy --head model.safetensors \\\n"
    "            --head-name lm_head.weight --tokens t.npy \\\n"
    "            -a hopper-bf16-fp32,logits=bf16,softmax=bf16 \\\n"
    "            -b hopper-bf16-fp32 --clip 0.2\n";

typedef struct options {
    const char *a, *b, *hidden, *head, *tokens, *hidden_name, *head_name, *tokens_name, *clip;
    char *qkv[3];
    const char *qkv_names[3];
    int tokens_first;
    uint64_t count, vocabulary, size, seed, worst;
    double spread, dual, truncated;
    input_options in;
    report_options form;
} options;

typedef struct run {
    const options *o;
    arithmetic sides[2];
    mismatch_operands operands;
    wanted_form raw;
    ratios r;
    report_style style;
} run;

static const uint64_t unset = UINT64_MAX; /* a count that is not given */
enum { MOST = 1 << 24, DEFAULT_COUNT = 256, DEFAULT_WORDS = 1000, DEFAULT_SIZE = 256 };

static size_t or_else(uint64_t given, size_t otherwise)
{
    return given != unset ? (size_t)given : otherwise;
}

static int check(run *r)
{
    const options *o = r->o;
    int code;
    r->style = report_options_style(&o->form);
    report_options_threads(&o->form);
    if ((code = input_raw_form(&r->raw, "mismatch", &o->in)) ||
        (code = mismatch_arithmetic_parse(&r->sides[0], "-a", o->a)) ||
        (code = mismatch_arithmetic_parse(&r->sides[1], "-b", o->b)))
        return code;
    if ((r->sides[0].kv_cached || r->sides[1].kv_cached) && o->hidden && !o->qkv[0])
        return fail(EXIT_USAGE, "mismatch: kv= needs --query, --key and --value beside --hidden");
    r->r.dual = o->dual;
    r->r.truncated = o->truncated;
    return diff_ratios_band(&r->r.low, &r->r.high, "mismatch", o->clip);
}

/* What is said of the tokens' differences, a sequence after the other. */
static void compare(ratios *r, const mismatch *m)
{
    const size_t n = m->o->count;
    double *a = need_memory(n, sizeof *a), *b = need_memory(n, sizeof *b);
    for (size_t i = 0; i < n; i++) {
        a[i] = m->tokens[i].lp[0];
        b[i] = m->tokens[i].lp[1];
    }
    r->whole = 1;
    for (size_t i = 0; i < n; i += m->o->length)
        diff_ratios_add(r, a + i, b + i, m->o->length);
    diff_ratios_sort(r);
    free(a);
    free(b);
}

static int execute(run *r, FILE *to)
{
    mismatch m = {.o = &r->operands, .sides = r->sides, .seed = r->o->seed};
    const int code = mismatch_measure(&m);
    if (!code) {
        compare(&r->r, &m);
        const mismatch_report report = {&m, &r->r, (size_t)r->o->worst, !r->operands.tokens, !r->o->head};
        mismatch_report_write(to, r->style, &report);
    }
    mismatch_clear(&m);
    return code;
}

static int work(run *r)
{
    const options *o = r->o;
    output out;
    int code = check(r);
    const mismatch_source from = {o->hidden,
                                  o->head,
                                  o->tokens,
                                  o->hidden_name,
                                  o->head_name,
                                  o->tokens_name,
                                  &r->raw.options,
                                  {o->qkv[0], o->qkv[1], o->qkv[2]},
                                  {o->qkv_names[0], o->qkv_names[1], o->qkv_names[2]},
                                  o->tokens_first,
                                  r->sides[0].kv_cached || r->sides[1].kv_cached,
                                  or_else(o->count, DEFAULT_COUNT),
                                  or_else(o->vocabulary, DEFAULT_WORDS),
                                  or_else(o->size, DEFAULT_SIZE),
                                  o->spread,
                                  o->seed};
    if (code || (code = mismatch_operands_make(&r->operands, &from)) || (code = report_options_open(&out, &o->form)))
        return code;
    return output_end(&out, execute(r, out.file));
}

int cmd_mismatch(const command *self, int argc, char **argv)
{
    options o = {.count = unset,
                 .vocabulary = unset,
                 .size = unset,
                 .seed = 1,
                 .worst = 5,
                 .spread = 3,
                 .dual = RATIOS_DUAL,
                 .truncated = RATIOS_TRUNCATED};
    int first;
    const option_row rows[] = {
        {'a', "a", OPTION_STRING, &o.a, "SIDE", "arithmetic of side A: MODEL[,KEY=VALUE]..."},
        {'b', "b", OPTION_STRING, &o.b, "SIDE", "arithmetic of side B"},
        {0, "clip", OPTION_STRING, &o.clip, "LOW,HIGH|E",
         "clipping band of ratios p(B) / p(A), or E for 1 - E to 1 + E (default 0.8,1.2)"},
        {0, "dual-clip", OPTION_NUMBER, &o.dual, "X", "a dual clip cuts ratios above X (default 3)"},
        {0, "truncate", OPTION_NUMBER, &o.truncated, "X", "a truncation cuts ratios above X (default 2)"},
        COMMON("a b clip hidden head tokens count vocabulary size json output"),
        {0, "Operands", OPTION_HEADING, NULL, NULL, NULL},
        {0, "hidden", OPTION_INPUT, &o.hidden, "FILE",
         "hidden states before the last layer: [tokens, size] or [sequences, tokens, size]"},
        {0, "head", OPTION_INPUT, &o.head, "FILE", "weights of the last layer: [vocabulary, size]"},
        {0, "tokens", OPTION_INPUT, &o.tokens, "FILE",
         "tokens: integers or whole numbers, one for each hidden state (default: drawn from A)"},
        {0, "hidden-name", OPTION_STRING, &o.hidden_name, "GLOB", "tensor of the hidden states in its file"},
        {0, "head-name", OPTION_STRING, &o.head_name, "GLOB", "tensor of the head in its file"},
        {0, "tokens-name", OPTION_STRING, &o.tokens_name, "GLOB", "tensor of the tokens in its file"},
        {0, "query", OPTION_INPUT, &o.qkv[0], "FILE", "Q of attention before the last layer"},
        {0, "key", OPTION_INPUT, &o.qkv[1], "FILE", "K of attention (default: in the file of Q)"},
        {0, "value", OPTION_INPUT, &o.qkv[2], "FILE", "V of attention (default: in the file of Q)"},
        {0, "query-name", OPTION_STRING, &o.qkv_names[0], "GLOB", "tensor of Q in its file"},
        {0, "key-name", OPTION_STRING, &o.qkv_names[1], "GLOB", "tensor of K in its file"},
        {0, "value-name", OPTION_STRING, &o.qkv_names[2], "GLOB", "tensor of V in its file"},
        {0, "tokens-first", OPTION_FLAG, &o.tokens_first, NULL, "Q, K and V are [batch, tokens, heads, size]"},
        RAW_OPTION_ROWS(o.in),
        {0, "count", OPTION_COUNT, &o.count, "N", "generated: tokens (default 256)"},
        {0, "vocabulary", OPTION_COUNT, &o.vocabulary, "N", "generated: words (default 1000)"},
        {0, "size", OPTION_COUNT, &o.size, "N", "generated: size of a hidden state (default 256)"},
        {0, "spread", OPTION_NUMBER, &o.spread, "X", "generated: standard deviation of the logits (default 3)"},
        {0, "seed", OPTION_COUNT, &o.seed, "N", "seed of generated operands and drawn tokens (default 1)"},
        EXCLUDES("FILE", "", "name files with --hidden, --head and --tokens"),
        NEEDS("", "a", "-a and -b name the arithmetic of the two sides"),
        NEEDS("", "b", "-a and -b name the arithmetic of the two sides"),
        NEEDS("hidden head-name", "head", NULL),
        NEEDS("hidden-name", "hidden", NULL),
        NEEDS("head dtype", "hidden query", NULL),
        NEEDS("query", "head", NULL),
        NEEDS("key value query-name key-name value-name tokens-first", "query", NULL),
        NEEDS("tokens-name", "tokens", NULL),
        EXCLUDES("count vocabulary size spread", "hidden query", "these options are for generated operands"),
        RANGE("count vocabulary size", 1, MOST),
        ABOVE("spread dual-clip truncate", 0),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {0, "worst", OPTION_COUNT, &o.worst, "N", "list the N tokens with the largest differences (default 5)"},
        JSON_OPTION_ROW(o.form, "mpsim.mismatch/1"),
        NDJSON_OPTION_ROW(o.form, "token"),
        CSV_OPTION_ROW(o.form, ", a line for each token"),
        COLUMNS("Columns", record_rows(&mismatch_kind), 0),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const int code = options_parse(self, rows, argc, argv, &first, more);
    if (code >= 0)
        return code;
    run r = {.o = &o};
    const int end = work(&r);
    mismatch_operands_clear(&r.operands);
    trace_wanted_form_clear(&r.raw);
    diff_ratios_clear(&r.r);
    return end;
}
