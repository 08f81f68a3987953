/* cmd.c -- mpsim attention: attention in tiles under accumulation models, side by side. */
#include "../array/need.h"
#include "../input/input.h"
#include "../cli/options.h"
#include "../operand/target.h"
#include "../process/output.h"
#include "../process/progress.h"
#include "../cli/reportoptions.h"
#include "../commands.h"
#include "../dot/models.h"
#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "Q, K and V are [tokens, size], [heads, tokens, size] or [batch, heads, tokens, size]: three files, or\n"
    "one file with --q, --k and --v. K and V may have fewer heads, each shared by several heads of Q. Without\n"
    "a file, operands are generated. Operands are first rounded to --format, to nearest even. Errors are\n"
    "measured against softmax(scale Q K^T) V in binary64, of the operands as given and of the rounded\n"
    "operands (once, if both are equal).\n"
    "\n"
    "For each tile of keys, in binary32 unless a model or option says otherwise (every operation:\n"
    "doc/explanations/attention.md):\n"
    "\n"
    "  S = Q K^T by --scores;  x = scale S;  m = max(m, x); --cure moves a repeated m\n"
    "  P = exp(x - m), its sum added to the row's; P times --p-scale is rounded to --p-format\n"
    "  O = O exp(m before - m), then O + P V by the model, whose result format is that of O\n"
    "\n"
    "At the end, O / --p-scale / sum is rounded to --output-format. With --exp2, as in FlashAttention-2 and\n"
    "3, x = S and P = exp2(x (scale log2 e) - m (scale log2 e)); product and difference are rounded once.\n"
    "\n"
    "Models are those of 'mpsim dot'. --values sink is the case of arXiv 2606.06521, repeated that of\n"
    "2510.04212.\n"
    "\n"
    "Examples:\n"
    "  mpsim attention -f fp16 q.npy k.npy v.npy --causal\n"
    "  mpsim attention --values repeated \\\n"
    "            -M 'hopper-bf16-fp32:result=bf16,hopper-bf16-fp32'\n"
    "  mpsim attention --values repeated -M 'hopper-bf16-fp32:result=bf16' --cure 2\n"
    "  mpsim attention --values sink -f e4m3 -M hopper-wgmma-fp8-fp32 \\\n"
    "            --p-scale 256 --reverse\n";

static const char default_models[] = "exact,fma,ampere-*,hopper-*";

typedef struct options {
    const char *models, *scores, *values, *mask;
    const char *q, *k, *v;
    uint64_t tile, heads, kv_heads, tokens, queries, dim, seed;
    int causal, reverse, separate, sum_rounded, reciprocal, exp2, tokens_first;
    input_options in;
    distance_options distance;
    report_options form;
} options;

typedef struct run {
    const options *o;
    attention_heads h;
    mpsim_format formats[2];      /* of Q and K, and of V */
    mpsim_format softmax, output; /* without a name: not given */
    mpsim_round_mode p_mode;
    float scale; /* 0: not given */
    attention_mask mask;
    wanted_form raw;
    mpsim_model scores;
    model_list models;
    mpsim_attention a;
    report_style style;
    int own_scores; /* each model's */
} run;

enum { MOST_TOKENS = 1 << 24, MOST_HEADS = 1 << 16, DEFAULT_HEADS = 4 };

static const uint64_t unset = UINT64_MAX; /* a count that is not given */

/* ---- what the command line says ---- */

/* A format whose numbers binary32 has, 0 among them, as those of S, P, O and the results are. */
static int fits_binary32(const mpsim_format *f)
{
    mpsim_rounding r;
    float zero = 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, &zero, &zero, 1, NULL) == MPSIM_OK && zero == 0;
}

#define FITTING "a format whose numbers are all numbers of binary32, 0 among them"
#define POSITIVE "a number of binary32 above 0"

static int read_format(void *format, const char *where, const char *text)
{
    const int code = format_read(format, where, text);
    return code || fits_binary32(format) ? code : -1;
}

static int binary32_above(float *to, const char *text, double least)
{
    double x;
    if (parse_number(&x, text) || !(x > least) || !isfinite((float)x) || !((float)x > (float)least))
        return -1;
    *to = (float)x;
    return 0;
}

static int read_positive(void *to, const char *where, const char *text)
{
    (void)where;
    return binary32_above(to, text, 0);
}

static int read_cure(void *to, const char *where, const char *text)
{
    mpsim_attention *a = to;
    const size_t n = strcspn(text, ",");
    char *first = need_part(text, n);
    const int bad = binary32_above(&a->beta, first, 1) || (text[n] && binary32_above(&a->margin, text + n + 1, 0));
    (void)where;
    free(first);
    return bad ? -1 : 0;
}

/* "128" or "127,0": keys before and behind a query's own. */
static int read_window(void *to, const char *where, const char *text)
{
    mpsim_attention *a = to;
    unsigned long v[2];
    int end = 0;
    const int n = sscanf(text, "%8lu%n,%8lu%n", &v[0], &end, &v[1], &end);
    (void)where;
    if (n < 1 || text[end] || v[0] > MOST_TOKENS || (n == 2 && v[1] > MOST_TOKENS))
        return -1;
    a->left = v[0];
    a->right = n == 2 ? v[1] : v[0];
    return 0;
}

/* P has the format of V, where binary32 has that. */
static int choose_p(run *r)
{
    mpsim_format *f = &r->a.p.format;
    if (!*f->name)
        *f = fits_binary32(&r->formats[1]) ? r->formats[1] : *mpsim_format_find("binary32");
    mpsim_rounding_init(&r->a.p.rounding, r->p_mode);
    const double most = mpsim_format_max(f);
    return (double)r->a.p_scale <= most
               ? 0
               : fail(EXIT_USAGE,
                      "attention: --p-scale: P reaches 1, and 1 times %g is beyond the largest number of %s, %g",
                      (double)r->a.p_scale, f->name, most);
}

static int parse_scores(run *r)
{
    const char *name = r->o->scores ? r->o->scores : "exact";
    r->own_scores = strcmp(name, "same") == 0;
    return r->own_scores ? 0
                         : dot_model_one(&r->scores, "attention", name, &r->formats[0], "--scores is one, or 'same'");
}

static int check_result(const mpsim_model *m)
{
    return fits_binary32(&m->result.format)
               ? 0
               : fail(EXIT_USAGE, "attention: model '%s': result format %s must be within binary32 and have a zero",
                      m->name, m->result.format.name);
}

/* Each model multiplies P and V; with --scores same Q and K, too. */
static int parse_models(run *r)
{
    int code = dot_model_list_make(&r->models, "attention", r->o->models, &r->a.p.format, &r->formats[1]);
    for (size_t i = 0; i < r->models.count && !code; i++) {
        const mpsim_model *m = &r->models.items[i];
        code = check_result(m);
        if (!code && r->own_scores && !mpsim_model_accepts(m, &r->formats[0], &r->formats[0]))
            code = fail(EXIT_USAGE, "attention: --scores same: model '%s' does not take %s but %s", m->name,
                        r->formats[0].name, m->operands);
    }
    return code || r->own_scores ? code : check_result(&r->scores);
}

static int parse(run *r)
{
    const options *o = r->o;
    int code;
    r->a.tile = (size_t)o->tile;
    r->a.causal = (uint8_t)o->causal;
    r->a.reverse = (uint8_t)o->reverse;
    r->a.separate = (uint8_t)o->separate;
    r->a.sum_rounded = (uint8_t)o->sum_rounded;
    r->a.reciprocal = (uint8_t)o->reciprocal;
    r->a.exp2 = (uint8_t)o->exp2;
    r->a.f = *r->output.name ? &r->output : NULL;
    r->a.softmax = *r->softmax.name ? &r->softmax : NULL;
    if ((code = choose_p(r)) || (code = parse_scores(r)))
        return code;
    return parse_models(r);
}

static size_t or_else(uint64_t given, size_t otherwise)
{
    return given != unset ? (size_t)given : otherwise;
}

static int check(run *r)
{
    const options *o = r->o;
    if (or_else(o->heads, DEFAULT_HEADS) % or_else(o->kv_heads, or_else(o->heads, DEFAULT_HEADS)))
        return fail(EXIT_USAGE, "attention: --heads must be a multiple of --kv-heads");
    r->style = report_options_style(&o->form);
    report_options_threads(&o->form);
    return input_raw_form(&r->raw, "attention", &o->in);
}

static int make_heads(run *r, char **files, int n)
{
    const options *o = r->o;
    heads_source from = {
        files, (size_t)n, {o->q, o->k, o->v},  o->tokens_first, &r->raw.options, o->values, or_else(o->heads, 4), 0,
        0,     0,         or_else(o->dim, 64), o->seed,         "attention"};
    from.kv_heads = or_else(o->kv_heads, from.heads);
    from.keys = or_else(o->tokens, 256);
    from.queries = or_else(o->queries, from.keys);
    int code = attention_heads_make(&r->h, &from);
    if (!code)
        code = attention_heads_round(&r->h, "attention", &r->formats[0], &r->formats[1]);
    if (!code && o->mask)
        code = attention_mask_read(&r->mask, o->mask, r->h.q.tokens, r->h.k.tokens);
    if (code)
        return code;
    r->a.mask = r->mask.seen;
    r->a.scale = r->scale > 0 ? r->scale : (float)(1 / sqrt((double)r->h.q.size));
    return 0;
}

/* ---- the command ---- */

static int report(run *r, FILE *to, const char *values)
{
    attention_report out = {.to = to, .style = r->style, .h = &r->h, .a = &r->a, .values = values, .seed = r->o->seed};
    dot_truth exact;
    attention_result x;
    memset(&x, 0, sizeof x);
    out.mask = r->o->mask ? r->mask.label : NULL;
    out.scores = r->own_scores ? NULL : r->scores.name;
    out.absolute = r->o->distance.absolute;
    out.above = r->o->distance.above;
    progress_steps("heads", attention_heads_count(&r->h) * (r->models.count + (attention_heads_exact(&r->h) ? 1 : 2)));
    attention_report_begin(&out);
    int code = attention_exactly(&exact, &r->a, &r->h, r->o->distance.above);
    for (size_t i = 0; i < r->models.count && !code; i++) {
        r->a.context = &r->models.items[i];
        r->a.scores = r->own_scores ? r->a.context : &r->scores;
        code = attention_measure(&x, &r->a, &r->h, &exact, r->o->seed);
        if (!code)
            attention_report_add(&out, r->a.context, &x);
    }
    attention_report_end(&out, &x);
    dot_truth_clear(&exact);
    return code;
}

static int execute(run *r, char **files, int n)
{
    const generated_values *how = n ? NULL : attention_generate_find(r->o->values);
    output out;
    int code;
    if ((code = check(r)) || (code = parse(r)) || (code = make_heads(r, files, n)) ||
        (code = report_options_open(&out, &r->o->form)))
        return code;
    return output_end(&out, report(r, out.file, how ? how->label : NULL));
}

int cmd_attention(const command *self, int argc, char **argv)
{
    const mpsim_format bf16 = *mpsim_format_find("bf16");
    options o = {.models = default_models,
                 .values = "normal",
                 .distance = {.above = -1},
                 .tile = 128,
                 .seed = 1,
                 .heads = unset,
                 .kv_heads = unset,
                 .tokens = unset,
                 .queries = unset,
                 .dim = unset};
    run r = {.o = &o, .formats = {bf16, bf16}, .p_mode = MPSIM_ROUND_NEAREST_EVEN};
    int first;
    mpsim_attention_init(&r.a, 1);
    memset(&r.a.p.format, 0, sizeof r.a.p.format);
    const option_row rows[] = {
        {'f', "format", OPTION_READ, READS(formats_option, r.formats, FORMATS_EXPECTED("Q and K, and of V")),
         "FORMAT[,FORMAT]", "format of the operands, or of Q and K and of V (default bf16)"},
        {'M', "models", OPTION_STRING, &o.models, "LIST",
         "models of P V (default: exact, fma and the tensor cores of Ampere and Hopper for these formats)"},
        {0, "scores", OPTION_STRING, &o.scores, "MODEL",
         "model of Q K^T in all rows (default exact); 'same': the model of the row"},
        {0, "tile", OPTION_COUNT, &o.tile, "N", "keys in a tile (default 128; 0: all of them)"},
        {0, "reverse", OPTION_FLAG, &o.reverse, NULL, "process the last tile first, as FlashAttention-3 does"},
        {0, "causal", OPTION_FLAG, &o.causal, NULL, "causal mask; the last query belongs to the last key"},
        {0, "window", OPTION_READ,
         READS(read_window, &r.a, "a number of keys on either side, or two, before and behind, of at most 2^24 each"),
         "N[,M]", "mask all but N keys before the query's own and M after it (default: all; M as N)"},
        {0, "mask", OPTION_INPUT, &o.mask, "FILE", "mask from a file: [queries, keys] of any dtype, 0 masks a key"},
        {0, "scale", OPTION_READ, READS(read_positive, &r.scale, POSITIVE), "X",
         "scale of the softmax (default 1 / sqrt(size))"},
        {0, "exp2", OPTION_FLAG, &o.exp2, NULL, "compute powers of two, as kernels of FlashAttention do"},
        {0, "softmax-format", OPTION_READ, READS(read_format, &r.softmax, FITTING), "FORMAT",
         "round every operation between the matrix products to FORMAT: x, differences, exp, sums (default "
         "binary32)"},
        {0, "p-format", OPTION_READ, READS(read_format, &r.a.p.format, FITTING), "FORMAT",
         "format of P (default: that of V, at most binary32)"},
        {0, "p-scale", OPTION_READ, READS(read_positive, &r.a.p_scale, POSITIVE), "X",
         "multiply P by X before rounding (default 1)"},
        {0, "p-round", OPTION_READ, READS(mode_option, &r.p_mode, MODE_EXPECTED), "MODE",
         "rounding of P (default nearest-even)"},
        {0, "sum-rounded", OPTION_FLAG, &o.sum_rounded, NULL, "sum P after rounding (default: before)"},
        {0, "separate", OPTION_FLAG, &o.separate, NULL,
         "sum each tile from zero, then add it to O (default: accumulate into O)"},
        {0, "reciprocal", OPTION_FLAG, &o.reciprocal, NULL, "multiply by 1 / sum at the end, as FlashAttention-2 does"},
        {0, "output-format", OPTION_READ, READS(read_format, &r.output, FITTING), "FORMAT",
         "format of the results (default binary32)"},
        {0, "cure", OPTION_READ, READS(read_cure, &r.a, "a number of binary32 above 1, or with a margin above 0"),
         "BETA[,MARGIN]",
         "if the largest score m of a tile repeats (or others lie within MARGIN), use BETA m if m is above "
         "0, else 0, so that P is below 1 (arXiv 2510.04212; BETA above 1)"},
        COMMON("format models scores tile causal window p-format output-format q k v values json csv output"),
        {0, "Operands", OPTION_HEADING, NULL, NULL, NULL},
        {0, "q", OPTION_STRING, &o.q, "GLOB", "name of Q in its file"},
        {0, "k", OPTION_STRING, &o.k, "GLOB", "name of K in its file"},
        {0, "v", OPTION_STRING, &o.v, "GLOB", "name of V in its file"},
        {0, "tokens-first", OPTION_FLAG, &o.tokens_first, NULL,
         "shapes are [tokens, heads, size] or [batch, tokens, heads, size]"},
        RAW_OPTION_ROWS(o.in),
        {0, "values", OPTION_CHOICE, &o.values, "normal|sink|repeated",
         "generated operands: normal (default); sink: scores of the first key are 8 above the others; "
         "repeated: scores of two equal keys are 16 above the others, two thirds of the columns of V have "
         "one sign"},
        {0, "seed", OPTION_COUNT, &o.seed, "N", "seed of generated operands and of stochastic models (default 1)"},
        {0, "heads", OPTION_COUNT, &o.heads, "N", "generated: heads of Q (default 4)"},
        {0, "kv-heads", OPTION_COUNT, &o.kv_heads, "N", "generated: heads of K and V (default: as many)"},
        {0, "tokens", OPTION_COUNT, &o.tokens, "N", "generated: tokens of K and V (default 256)"},
        {0, "queries", OPTION_COUNT, &o.queries, "N", "generated: tokens of Q (default: as many)"},
        {0, "size", OPTION_COUNT, &o.dim, "N", "generated: size of a head (default 64)"},
        EXCLUDES("FILE=2 FILE>3", "", "expected Q, K and V, one file, or none"),
        NEEDS("FILE=1", "q+k+v", "they name its tensors (mpsim info lists them)"),
        NEEDS("q k v tokens-first dtype", "FILE", NULL),
        EXCLUDES("values heads kv-heads tokens queries size", "FILE", "these options are for generated operands"),
        RANGE("heads kv-heads size", 1, MOST_HEADS),
        RANGE("tokens queries", 1, MOST_TOKENS),
        RANGE("tile", 0, MOST_TOKENS),
        {0, "Errors", OPTION_HEADING, NULL, NULL, NULL},
        DISTANCE_OPTION_ROWS(o.distance),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(o.form, "mpsim.attention/1"),
        NDJSON_OPTION_ROW(o.form, "model"),
        CSV_OPTION_ROW(o.form, ""),
        COLUMNS("Columns", record_rows(&attention_kind), SHOW_RELATIVE | SHOW_REPEATED),
        COLUMNS("Columns by sign", &attention_signs_record, 0),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const int code = options_parse(self, rows, argc, argv, &first, more);
    if (code >= 0)
        return code;
    const int end = execute(&r, argv + first, argc - first);
    attention_heads_clear(&r.h);
    attention_mask_clear(&r.mask);
    trace_wanted_form_clear(&r.raw);
    dot_model_list_clear(&r.models);
    return end;
}
