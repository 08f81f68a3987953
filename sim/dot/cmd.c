/* cmd.c -- mpsim dot: dot products under accumulation models, side by side. */
#include "../array/need.h"
#include "../commands.h"
#include "../cli/options.h"
#include "../operand/target.h"
#include "../process/output.h"
#include "../process/progress.h"
#include "../cli/reportoptions.h"
#include "../text/words.h"
#include "blocks.h"
#include "like.h"
#include "models.h"
#include "pair.h"
#include "record.h"
#include "reduce.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "Every row of A is multiplied by every row of B: A is rows x K, B is columns x K, as linear layers\n"
    "store weights. One file holds both tensors. Operands are first rounded to --format, to nearest even or\n"
    "by --operand-round. Errors are measured against two exact results: that of the operands as given,\n"
    "which includes the cost of rounding operands, and that of the rounded operands, which shows the\n"
    "errors of the sums alone. If the format represents all operands, the table has one of them. Results\n"
    "that are not finite are ignored. rel. error and bits lost describe all results together: a single\n"
    "result with cancellation may be wrong in all bits beside 0.0 bits lost.\n"
    "\n"
    "With --a and --b and no file, both are lists of numbers: one dot product, with the addend --c, its\n"
    "bits under each model, and with --steps every addition. A number is decimal, hexadecimal (0x1p-3),\n"
    "inf or nan; 0x3c00 is a code. The last addition or chunk takes the remaining products.\n"
    "\n"
    "Models: names of 'mpsim help models', patterns as 'hopper-*', or names with changes, each after a\n"
    "':':\n"
    "  FORMAT                              round everything to this format: fma:bf16\n"
    "  acc= product= outer= result=FORMAT  format of accumulator, products, sums of chunks, result\n"
    "  round= product-round= outer-round= result-round=MODE    as in 'mpsim help rounding'\n"
    "  chunk=N                             sum N products from zero, then add the sums; 0: no chunks\n"
    "  order=sequential|pairwise|quads|odd-first|lanes    pairwise: muladd models only; odd-first and\n"
    "                                      lanes (L sums, in chunks): fma and muladd models\n"
    "  flush=none|operands|sums|all        subnormal operands, accumulators and sums become zero\n"
    "  F=1..50  L=1..128  floor=E|none  align=truncate|floor|nearest  normalised=0|1\n"
    "  operand-emin=E|own                  tensor cores: see lib/include/mpsim/dot.h\n"
    "\n"
    "Examples:\n"
    "  mpsim dot -f e4m3 -K 4096                      errors of fp8 accumulators\n"
    "  mpsim dot -f fp16 -K 64,1024,16384 \\\n"
    "            -M 'fma,fma:bf16,fma:fp16:round=sr,hopper-*'\n"
    "  mpsim dot -f e4m3 -s amax --a act:fc1 --b weight:fc1.weight \\\n"
    "            data/digits-cnn/step_020000/rank_00000.safetensors\n"
    "  mpsim dot -f bf16 -K 16384 -M hopper-bf16-fp32 --split-k 6 --workspace bf16\n"
    "  mpsim dot -f bf16 -K 1024,3000 -M exact --rows 64 --columns 96 \\\n"
    "            --like torch-mm:amx:threads=8:right-transposed\n"
    "  mpsim dot --blocks nvfp4 -K 4096               fp4 as Blackwell multiplies it, and as bf16 numbers\n"
    "  mpsim dot --reduce --a 'wgrad:*' \\\n"
    "            data/amp-mlp/*/step_00002[0-4]/rank_00000.safetensors\n"
    "                  an all-reduce\n"
    "  mpsim dot -f fp16 --a 0x3c00,0x4000 --b 1,2^-14 --c 0x1p-24 \\\n"
    "            -M hopper-fp16-fp32 --steps\n";

static const char default_models[] = "exact,pairwise,fma,volta-*,ampere-*,ada-*,hopper-*,blackwell-*";

enum { DEPTHS = 64 };
static const char block_models[] = "exact,pairwise,fma,hopper-bf16-fp32,blackwell-bf16-fp32,blackwell-tcgen05-mx*,"
                                   "rtx-blackwell-mx*";

typedef struct options {
    const char *models, *a, *b, *c, *wire, *like;
    uint64_t rows, columns, seed, split_k;
    int flatten, transpose_a, transpose_b, steps, reduce;
    distance_options distance;
    report_options form;
} options;

typedef struct run {
    const options *o;
    mpsim_format formats[2]; /* of A and B */
    double scale;            /* 0: amax    */
    mpsim_round_mode mode;   /* of operands */
    operand a, b;
    model_list models;
    size_t depth[DEPTHS];
    size_t depths;
    report_style style;
    int distribution, generated;
    dot_split split;
    mpsim_block_recipe recipe; /* with --blocks */
    like_product like;
} run;

/* ---- what the command line says ---- */

static int read_depths(void *to, const char *where, const char *text)
{
    run *r = to;
    (void)where;
    while (*text) {
        const size_t n = strcspn(text, ",");
        char *word = need_part(text, n);
        uint64_t k = 0;
        const int bad = parse_count(&k, word) || k == 0 || k > SIZE_MAX / 16;
        free(word);
        if (bad || r->depths == DEPTHS)
            return -1;
        r->depth[r->depths++] = (size_t)k;
        text += n + (text[n] == ',');
    }
    return r->depths ? 0 : -1;
}

static int read_scale(void *to, const char *where, const char *text)
{
    double *scale = to;
    (void)where;
    if (strcmp(text, "amax") != 0)
        return parse_number(scale, text) || !(*scale > 0) ? -1 : 0;
    *scale = 0;
    return 0;
}

/* "108" or "108,128x128x32": workers, and rows, columns and products of a tile. */
static int read_stream(void *to, const char *where, const char *text)
{
    dot_split *s = to;
    unsigned long v[4] = {0, 128, 128, 32};
    int end = 0;
    (void)where;
    if (sscanf(text, "%7lu%n", &v[0], &end) != 1 ||
        (text[end] && (sscanf(text, "%7lu,%7lux%7lux%7lu%n", &v[0], &v[1], &v[2], &v[3], &end) != 4 || text[end])))
        return -1;
    for (int i = 0; i < 4; i++)
        if (v[i] < 1 || v[i] > 1 << 20)
            return -1;
    s->workers = v[0];
    for (int i = 0; i < 3; i++)
        s->tile[i] = v[i + 1];
    return 0;
}

static int read_workspace(void *to, const char *where, const char *text)
{
    dot_split *s = to;
    const size_t n = strcspn(text, ",");
    char *first = need_part(text, n);
    const int bad = dot_split_place(&s->workspace, first) ||
                    dot_split_place(&s->sum, text[n] ? text + n + 1 : "binary32");
    (void)where;
    free(first);
    return bad ? -1 : 0;
}

static int read_blocks(void *to, const char *where, const char *text)
{
    char error[200];
    unsigned transform;
    if (mpsim_block_parse(to, &transform, text, error, sizeof error) != MPSIM_OK)
        return fail(EXIT_USAGE, "%s: '%s': %s", where, text,
                    *error ? error : "unknown recipe: see 'mpsim help recipes'");
    return transform ? fail(EXIT_USAGE, "%s: '%s': transforms are not allowed here", where, text) : 0;
}

static size_t largest_depth(const run *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->depths; i++)
        most = r->depth[i] > most ? r->depth[i] : most;
    return most;
}

static int make_operands(run *r, char **files, int n)
{
    const options *o = r->o;
    char name_a[256], name_b[256];
    const size_t rows = (size_t)o->rows, columns = (size_t)o->columns;
    int status;
    if (n == 0) {
        const size_t depth = largest_depth(r);
        r->generated = 1;
        dot_operand_generate(&r->a, rows, depth, r->distribution, o->seed, 0);
        dot_operand_generate(&r->b, columns, depth, r->distribution, o->seed, 1);
        return 0;
    }
    const operand_layout usual = o->flatten ? OPERAND_FLATTEN : OPERAND_LAST;
    if ((status = dot_operand_read(&r->a, files[0], o->a, o->transpose_a ? OPERAND_FIRST : usual, rows)) ||
        (status = dot_operand_read(&r->b, files[n - 1], o->b, o->transpose_b ? OPERAND_FIRST : usual, columns)))
        return status;
    if (r->a.depth != r->b.depth)
        return fail(EXIT_DATA,
                    "dot: rows of A (%s) have %zu elements and rows of B (%s) %zu; there are "
                    "--transpose-a, --transpose-b and --flatten",
                    escape_text(name_a, sizeof name_a, files[0]), r->a.depth,
                    escape_text(name_b, sizeof name_b, files[n - 1]), r->b.depth);
    if (r->depths == 0)
        r->depth[r->depths++] = r->a.depth;
    for (size_t i = 0; i < r->depths; i++)
        if (r->depth[i] > r->a.depth)
            return fail(EXIT_USAGE, "dot: -K %zu is more than the %zu elements of a row", r->depth[i], r->a.depth);
    return 0;
}

/* ---- reports ---- */

static void head_operand(FILE *to, const char *name, const operand *o)
{
    char scale[32], rows[32], all[32], depth[32], share[32];
    fprintf(to, "%s  %s, ", name, o->format.name);
    if (o->block)
        fprintf(to, "blocks of %zu with scales in %s, ", o->block, o->scale_format.name);
    fprintf(to, "%s, ", o->label);
    if (o->rows < o->all_rows)
        fprintf(to, "the first %s of %s rows", text_count(rows, o->rows), text_count(all, o->all_rows));
    else
        fprintf(to, "%s row%s", text_count(rows, o->rows), text_plural(o->rows));
    fprintf(to, " of %s", text_count(depth, o->depth));
    if (o->scale != 1)
        fprintf(to, ", scale %s", text_scale(scale, o->scale));
    if (o->counts.underflow)
        fprintf(to, "; %s become zero", text_share(share, o->counts.underflow, o->rows * o->depth));
    fputc('\n', to);
}

static void print_head(const run *r, FILE *to)
{
    char count[32];
    head_operand(to, "A", &r->a);
    head_operand(to, "B", &r->b);
    fprintf(to, "%s dot product%s", text_count(count, r->a.rows * r->b.rows), text_plural(r->a.rows * r->b.rows));
    if (r->generated)
        fprintf(to, ", seed %" PRIu64, r->o->seed);
    fputc('\n', to);
    if (r->split.workers)
        fprintf(to, "stream-K: %zu workers, tiles of %zu x %zu x %zu, sums kept in %s, added in order of K in %s\n",
                r->split.workers, r->split.tile[0], r->split.tile[1], r->split.tile[2], r->split.workspace.name,
                r->split.sum.name);
    if (r->split.parts > 1)
        fprintf(to, "K in %zu parts, their sums kept in %s, added in their order in %s\n", r->split.parts,
                r->split.workspace.name, r->split.sum.name);
    fputc('\n', to);
}

static dot_operands operands_of(const run *r)
{
    return (dot_operands){.a = &r->a,
                          .b = &r->b,
                          .seed = r->generated ? &r->o->seed : NULL,
                          .above = r->o->distance.above >= 0 ? &r->o->distance.above : NULL,
                          .split = r->split,
                          .tile = r->split.tile,
                          .tiles = 3,
                          .parts = r->split.parts > 1 ? r->split.parts : 0};
}

/* What the report shows, as record.h has it. */
static unsigned shows(const run *r)
{
    const unsigned split = r->split.parts > 1 ? DOT_SHOW_SPLIT : 0;
    if (r->style == REPORT_CSV)
        return (~0u & ~(unsigned)DOT_SHOW_SPLIT) | split;
    return dot_distance_shows(r->style, r->o->distance.absolute, r->o->distance.above) |
           (r->depths > 1 ? DOT_SHOW_DEPTH : 0) | (r->a.rows * r->b.rows == 1 ? DOT_SHOW_VALUE : 0) |
           (r->a.exact && r->b.exact ? SHOW_EXACT : SHOW_ROUNDED);
}

/* What is seen on the way through all results. */
typedef struct seen {
    uint64_t not_finite, zeros;
    dot_distance given, rounded; /* the worst */
} seen;

static int measure_row(dot_error *e, const run *r, size_t k, size_t j, const dot_truth *truth)
{
    return j == r->models.count ? dot_like_measure(e, &r->like, &r->a, &r->b, k, truth)
                                : dot_error_measure(e, &r->models.items[j], &r->split, &r->a, &r->b, k, truth);
}

/* All models over the first k products. */
static int report_depth(const run *r, record_writer *w, seen *s, size_t k, const dot_truth *truth)
{
    int status = 0;
    for (size_t j = 0; j < r->models.count + (r->o->like != NULL) && !status; j++) {
        const mpsim_model *m = j == r->models.count ? &r->like.shown : &r->models.items[j];
        dot_row row = {k, m->name, m->result.format.name, .operands = w->document};
        status = measure_row(&row.e, r, k, j, truth);
        progress_add(1);
        if (status)
            break;
        row.apart = row.e.same ? NULL : &row.e.given;
        s->not_finite += row.e.not_finite;
        if (row.apart)
            dot_distance_worse(&s->given, row.apart);
        dot_distance_worse(&s->rounded, &row.e.rounded);
        record_row(w, &row);
    }
    return status;
}

static int report_depths(const run *r, record_writer *w, seen *s)
{
    const size_t n = r->a.rows * r->b.rows;
    const int same = r->a.exact && r->b.exact;
    dot_truth truth = dot_truth_make(n, same, r->o->distance.above);
    truth.unit[0] = r->a.scale;
    truth.unit[1] = r->b.scale;
    int status = 0;
    for (size_t i = 0; i < r->depths && !status; i++) {
        if (!(status = dot_exact(truth.rounded, &r->a, &r->b, r->depth[i])) && !same)
            status = dot_exact_given(truth.given, &r->a, &r->b, r->depth[i]);
        for (size_t j = 0; !status && j < n; j++)
            s->zeros += truth.rounded[j] == 0;
        if (!status)
            status = report_depth(r, w, s, r->depth[i], &truth);
    }
    dot_truth_clear(&truth);
    return status;
}

static void print_notes(const run *r, FILE *to, const seen *s)
{
    if (s->not_finite)
        fputs("\nThe errors leave out results that are not finite.\n", to);
    dot_distance_note(to, &s->given, "As given the", "");
    dot_distance_note(to, &s->rounded, "The",
                      r->a.exact && r->b.exact ? ";\nrel. error and bits lost are of all results together"
                                               : ", as rounded;\nrel. error and bits lost are of all results together");
    if (s->zeros == r->depths * r->a.rows * r->b.rows)
        fputs("\nAll exact results are zero: there is nothing to lose.\n", to);
}

static int report(const run *r, FILE *to)
{
    const dot_operands operands = operands_of(r);
    record_writer w = {.kind = &dot_kind, .to = to, .style = r->style, .shows = shows(r), .document = &operands};
    seen s = {0};
    if (r->style == REPORT_TEXT)
        print_head(r, to);
    record_begin(&w);
    progress_steps("sums", r->depths * (r->models.count + (r->o->like != NULL)));
    const int status = report_depths(r, &w, &s);
    if (!status && r->style == REPORT_TEXT) {
        table_print(w.rows, to, "");
        print_notes(r, to, &s);
    }
    record_end(&w);
    return status;
}

/* ---- the command ---- */

/* One dot product of numbers of the command line. */
static int dot_of_numbers(const run *r)
{
    const options *o = r->o;
    const mpsim_format *fa = &r->formats[0], *fb = &r->formats[1];
    const pair_options pair = {o->a, o->b, o->c, o->seed, o->steps, r->mode, fa, fb, o->form.path};
    model_list models = {0};
    int code = dot_model_list_make(&models, "dot", o->models, fa, fb);
    if (!code)
        code = dot_pair_report(&pair, &models, r->style);
    dot_model_list_clear(&models);
    return code;
}

/* An operand rounded to its format, or quantised in blocks. */
static int encode(const run *r, operand *o, const mpsim_format *f)
{
    if (*r->recipe.name)
        return dot_operand_quantise(o, &r->recipe);
    const int code = dot_operand_encode(o, f, r->mode, r->scale);
    return code ? code : dot_operand_overflow(o, "dot", o->label, ": scale them (--scale amax)");
}

/* Sums over ranks. */
static int reduce(run *r, char **files, int n)
{
    const options *o = r->o;
    const reduce_options how = {.files = files,
                                .ranks = (size_t)n,
                                .glob = o->a,
                                .wires = o->wire ? o->wire : "binary32,bf16,fp16",
                                .absolute = o->distance.absolute,
                                .above = o->distance.above,
                                .style = r->style,
                                .path = o->form.path};
    return dot_reduce_report(&how);
}

int cmd_dot(const command *self, int argc, char **argv)
{
    const mpsim_format fp16 = *mpsim_format_find("fp16"), binary32 = *mpsim_format_find("binary32");
    options o = {.rows = 16, .columns = 16, .seed = 1, .split_k = 1, .distance = {.above = -1}};
    run r = {.o = &o,
             .formats = {fp16, fp16},
             .scale = 1,
             .mode = MPSIM_ROUND_NEAREST_EVEN,
             .split = {.workspace = binary32, .sum = binary32}};
    int first;
    const option_row table_of_options[] = {
        {'f', "format", OPTION_READ, READS(formats_option, r.formats, FORMATS_EXPECTED("A and B")), "FORMAT[,FORMAT]",
         "format of the operands, or of A and of B (default fp16)"},
        {'M', "models", OPTION_STRING, &o.models, "LIST",
         "models (default: exact, pairwise, fma and the tensor cores of Volta to Blackwell for these "
         "formats; 'all' for more)"},
        {0, "reduce", OPTION_FLAG, &o.reduce, NULL,
         "sum tensors over ranks, as an all-reduce does: each FILE is a rank, --a selects tensors "
         "(default: all)"},
        {0, "wire", OPTION_STRING, &o.wire, "LIST",
         "reduce: formats in which ranks send numbers (default binary32,bf16,fp16)"},
        {'K', "length", OPTION_READ, READS(read_depths, &r, "a list of at most 64 numbers of products, as 64,1Ki,2^14"),
         "LIST", "number of products; a list makes a table over K (default 4096; for tensors whole rows)"},
        {0, "split-k", OPTION_COUNT, &o.split_k, "S",
         "cut K into S parts; the model sums each part, then the sums are added in order"},
        {0, "stream-k", OPTION_READ,
         READS(read_stream, &r.split, "a number of workers, or with tiles as 108,128x128x32 (each from 1 to 2^20)"),
         "N[,MxNxK]",
         "stream-K: N workers share the steps of all tiles of results (default 128x128x32); a tile is cut "
         "in K at the end of a worker's share"},
        {0, "workspace", OPTION_READ,
         READS(read_workspace, &r.split,
               "a format of up to 25 significand bits, or binary64, or two: of partial sums and of their sum"),
         "FORMAT[,FORMAT]",
         "split-k, stream-k: format that stores the partial sums, and format that adds them (default "
         "binary32)"},
        {0, "like", OPTION_STRING, &o.like, "NAME",
         "add a row for the product of a library: torch-scaled-mm:S=N with :hopper or :ada, :fast or "
         ":slow, :ORDER and :out=FORMAT (tensor scales from --scale); torch-mm:amx:threads=N or "
         "torch-mm:avx512:threads=N for torch on a CPU in bf16 (avx512: also fp16), with :left-transposed "
         "and :right-transposed (the weight of a linear layer); other cuts of K: part=N instead of "
         "threads=N, for amx chunk=N and tiles=32|equal"},
        {0, "blocks", OPTION_READ, READS(read_blocks, &r.recipe, NULL), "RECIPE",
         "operands in blocks along K, instead of --format and --scale: mxfp8, mxfp6-e3m2, mxfp4, nvfp4, "
         "... (mpsim help recipes). Models with block scales multiply codes; bf16 models multiply values"},
        NEEDS("wire", "reduce", NULL),
        NEEDS("reduce", "FILE>1", "one of each rank"),
        EXCLUDES("!reduce+FILE>2", "", "they are A and B"),
        EXCLUDES("stream-k", "split-k blocks csv", NULL),
        NEEDS("workspace", "split-k stream-k", NULL),
        EXCLUDES("blocks", "scale operand-round like", NULL),
        EXCLUDES("like", "split-k", "the library splits K itself, as S=2"),
        RANGE("split-k rows columns", 1, 1 << 20),
        COMMON("format models reduce split-k like blocks values rows columns a b steps scale json csv output"),
        {0, "Operands", OPTION_HEADING, NULL, NULL, NULL},
        {0, "values", OPTION_WORD, &r.distribution, "uniform|symmetric|normal|relu",
         "distribution of generated operands: uniform in (0, 1) (default), symmetric in (-1, 1), normal, "
         "relu"},
        {0, "seed", OPTION_COUNT, &o.seed, "N", "seed of generated operands (default 1)"},
        {0, "rows", OPTION_COUNT, &o.rows, "N", "rows of A (default 16)"},
        {0, "columns", OPTION_COUNT, &o.columns, "N", "rows of B (default 16)"},
        {0, "a", OPTION_STRING, &o.a, "GLOB|LIST", "name of tensor A in its file, or numbers"},
        {0, "b", OPTION_STRING, &o.b, "GLOB|LIST", "name of tensor B in its file, or numbers"},
        {0, "c", OPTION_STRING, &o.c, "X", "numbers: the addend (default 0)"},
        {0, "steps", OPTION_FLAG, &o.steps, NULL, "numbers: show every addition of every model"},
        {0, "flatten", OPTION_FLAG, &o.flatten, NULL,
         "K is all dimensions but the first (default: the last dimension)"},
        {0, "transpose-a", OPTION_FLAG, &o.transpose_a, NULL, "K is the first dimension of A"},
        {0, "transpose-b", OPTION_FLAG, &o.transpose_b, NULL, "K is the first dimension of B"},
        NEEDS("FILE=1", "a+b", "they name its tensors (mpsim info lists them)"),
        NEEDS("flatten transpose-a transpose-b", "FILE", NULL),
        EXCLUDES("values", "FILE", NULL),
        NEEDS("a+!FILE", "b", "they are numbers"),
        NEEDS("b+!FILE c steps", "a+!FILE", "they are numbers"),
        EXCLUDES("a+!FILE", "length values scale rows columns split-k stream-k blocks like absolute above",
                 "they are numbers"),
        EXCLUDES("steps", "csv", NULL),
        {'s', "scale", OPTION_READ, READS(read_scale, &r.scale, "a positive number or amax"), "S|amax",
         "multiply operands before rounding; amax: by the largest power of two without overflow, for A and "
         "B separately (8 bits and less: results may overflow otherwise)"},
        {0, "operand-round", OPTION_READ, READS(mode_option, &r.mode, MODE_EXPECTED), "MODE",
         "rounding of operands to --format (default nearest-even; rna: cvt.rna.tf32; rtz: truncation in a "
         "tensor core)"},
        {0, "Errors", OPTION_HEADING, NULL, NULL, NULL},
        DISTANCE_OPTION_ROWS(o.distance),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(o.form, "mpsim.dot/1; of numbers mpsim.dot-pair/1"),
        NDJSON_OPTION_ROW(o.form, "line"),
        CSV_OPTION_ROW(o.form, ""),
        COLUMNS("Columns", record_rows(&dot_kind), SHOW_RELATIVE | DOT_SHOW_DEPTH),
        COLUMNS("Columns with --absolute", record_rows(&dot_kind), SHOW_ABSOLUTE),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0)
        return code;
    const int operands = argc - first;
    const mpsim_format *fa = &r.formats[0], *fb = &r.formats[1];
    output out;
    r.style = report_options_style(&o.form);
    r.split.parts = (size_t)o.split_k;
    o.models = o.models ? o.models : *r.recipe.name ? block_models : default_models;
    if (o.reduce)
        return reduce(&r, argv + first, operands);
    report_options_threads(&o.form);
    if (operands == 0 && o.a)
        return dot_of_numbers(&r);
    if (r.depths == 0 && operands == 0)
        r.depth[r.depths++] = 4096;
    if ((code = dot_model_list_make(&r.models, "dot", o.models, *r.recipe.name ? NULL : fa, fb)) ||
        (code = o.like ? dot_like_parse(&r.like, o.like, fa, fb) : 0) ||
        (code = make_operands(&r, argv + first, operands)) || (code = encode(&r, &r.a, fa)) ||
        (code = encode(&r, &r.b, fb)) || (code = *r.recipe.name ? dot_blocks_models(&r.models, &r.a, &r.b) : 0) ||
        (code = report_options_open(&out, &o.form)))
        goto done;
    code = output_end(&out, report(&r, out.file));
done:
    dot_operand_clear(&r.a);
    dot_operand_clear(&r.b);
    dot_model_list_clear(&r.models);
    return code;
}
