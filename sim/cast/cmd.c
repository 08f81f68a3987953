/* cmd.c -- mpsim cast: round tensors to a format and write them. */
#include "../commands.h"
#include "../input/input.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../record/cells.h"
#include "../text/screen.h"
#include "../text/words.h"
#include "cast.h"
#include "explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "The output holds cast(x * scale) in the format's own dtype, or widened. Its metadata record the cast.\n"
    "Integer tensors, and tensors that --match or --kind exclude, are copied unchanged, so that a model\n"
    "stays complete; --only omits them. Each file of a folder is written to the folder of --output under\n"
    "its name; an index of shards is rewritten.\n"
    "\n"
    "FORMAT may be a block recipe (mxfp8:rceil, nvfp4:2d, e4m3/128x128, ...; mpsim help recipes). Matrices\n"
    "(the last dimension, and all others) are then written as codes and scales in the layout of\n"
    "--quantised, or with --widen as values. Other tensors stay unchanged.\n"
    "\n"
    "--explain casts numbers of the command line and shows why: for a format the candidates and the choice\n"
    "between them, for a block recipe amax, scale, elements and codes. A number is decimal, hexadecimal\n"
    "(0x1p-3), inf or nan; 0x3dcccccd is a code. --seed and a number's position determine random bits.\n"
    "\n"
    "Examples:\n"
    "  mpsim cast -f e4m3@cuda -s 2^10 -o out.safetensors grads.safetensors\n"
    "  mpsim cast -f e2m1 --widen -o out.npy weight.npy\n"
    "  mpsim cast -f bf16 -o model-bf16/ model/\n"
    "  mpsim cast -f bf16 -r sr --seed 7 -o w.safetensors master.safetensors\n"
    "  mpsim cast -f nvfp4 --quantised torchao --keep '*embed*' \\\n"
    "            -o q.safetensors model.safetensors\n"
    "  mpsim cast -f mxfp8:rceil --scale-order swizzled \\\n"
    "            -o q.safetensors model.safetensors\n"
    "  mpsim cast -f e4m3/128x128 --quantised deepseek \\\n"
    "            -o q.safetensors model.safetensors\n"
    "  mpsim cast --explain 0.1,465 -f fp16,e4m3@cuda\n"
    "  mpsim cast --explain 0.1,-3,0.02 -f nvfp4,mxfp8\n";

typedef struct options {
    target_options to;
    input_options from;
    report_options form; /* of it: threads */
    const char *path, *layout;
    int widen, quiet, only;
    const char *quantised; /* of recipes, as what follows */
    int order, axis;       /* which word; -1: not given */
    uint64_t transform;
    option_list keep;
    explain_options explain;
} options;

/* ---- a format ---- */

static int to_npy(const options *o)
{
    return o->layout ? strcmp(o->layout, "npy") == 0 : text_ends_with(o->path, ".npy");
}

/* The format to write, or NULL after a message. */
static const mpsim_format *output_format(const plain_options *p, int widen)
{
    const mpsim_format *f = &p->to->format;
    if (widen)
        return cast_widened(f);
    const int safetensors = trace_safetensors_dtype(f) || trace_packed_dtype(f), npy = trace_npy_descr(f) != NULL;
    if (p->npy ? npy : safetensors)
        return f;
    const int other = p->npy ? safetensors : npy;
    fail(EXIT_USAGE, "cast: %s has no dtype in %s files: use --widen%s", f->name, p->npy ? "npy" : "safetensors",
         !other   ? ""
         : p->npy ? ", or write safetensors"
                  : ", or write npy");
    return NULL;
}

/* ---- a block recipe ---- */

/* The recipe of -f, with --rht. 0; -1 if it is not a recipe; or an exit code after a message. */
static int find_recipe(const options *o, cast_recipe *r)
{
    char text[128];
    int code = cast_recipe_parse(r, o->to.formats);
    if (code || !o->transform)
        return code;
    if (o->transform != 16 && o->transform != 32 && o->transform != 64 && o->transform != 128)
        return fail(EXIT_USAGE, "cast: --rht is 16, 32, 64 or 128, not %" PRIu64, o->transform);
    if (r->transform && r->transform != o->transform)
        return fail(EXIT_USAGE, "cast: %s and --rht %" PRIu64 " contradict each other", r->block.name, o->transform);
    if (snprintf(text, sizeof text, "%s:rht%" PRIu64, r->block.name, o->transform) >= (int)sizeof text)
        return fail(EXIT_USAGE, "cast: --format: too long");
    return r->transform ? 0 : cast_recipe_parse(r, text);
}

typedef struct recipe_job {
    quantise_options o;
    quantise_result r;
} recipe_job;

static int set_recipe(const options *o, cast_recipe *r, recipe_job *j)
{
    const int npy = to_npy(o);
    const char *layout = o->quantised ? o->quantised : "plain";
    if (cast_recipe_options(r, &o->to))
        return EXIT_USAGE;
    if (npy && !o->widen)
        return fail(EXIT_USAGE, "cast: npy cannot hold codes and scales: use --widen, or write safetensors");
    if (!quant_layout_find(layout)) {
        char all[256] = "";
        for (size_t i = 0; quant_layout_at(i); i++)
            text_add(all, sizeof all, "%s %s", i ? "," : "", quant_layout_at(i)->layout);
        return fail(EXIT_USAGE, "cast: --quantised: '%s' is not a layout; there are%s", layout, all);
    }
    if (r->transform && !o->widen && strcmp(layout, "plain") != 0)
        return fail(
            EXIT_USAGE,
            "cast: %s: layout %s cannot record a Hadamard transform; use --quantised plain, or --widen to write "
            "values",
            r->block.name, layout);
    *j = (recipe_job){.o = {.how = r,
                            .layout = layout,
                            .swizzled = o->order == 1,
                            .columns = o->axis == 1,
                            .widen = o->widen,
                            .npy = npy,
                            .only = o->only || npy,
                            .seed = o->to.seed,
                            .keep = &o->keep}};
    return 0;
}

static void print_recipe(const recipe_job *j)
{
    char path[4096], line[8192] = "", n[32];
    text_add(line, sizeof line, "%s: %zu tensor%s, %s element%s as %s", escape_text(path, sizeof path, j->o.path),
             j->r.quantised, text_plural(j->r.quantised), text_count(n, j->r.elements), text_plural(j->r.elements),
             j->o.how->block.name);
    if (j->o.columns)
        text_add(line, sizeof line, " along columns");
    if (j->o.widen)
        text_add(line, sizeof line, " in binary32");
    else
        text_add(line, sizeof line, " in the layout %s%s", j->o.layout, j->o.swizzled ? ", scales swizzled" : "");
    if (j->r.kept)
        text_add(line, sizeof line, "; %zu as %s", j->r.kept, j->r.kept == 1 ? "it is" : "they are");
    cast_contents_say(line, sizeof line, &j->r.all);
    screen_line(stdout, "%s", line);
    report_counts(stdout, &j->r.counts, j->r.elements);
}

/* ---- the command ---- */

/* An ending that is neither form's, where no option says which it is. */
static int check_name(const options *o)
{
    const char *path = o->path;
    return !o->layout && (text_ends_with(path, ".npz") || text_ends_with(path, ".pt") || text_ends_with(path, ".bin"))
               ? fail(EXIT_USAGE, "cast: '%s': safetensors and npy are written; name the file so, or say --to", path)
               : 0;
}

/* What to cast to and how it is written: the one target of the list. */
static int choose(plain_options *p, const options *o, target_list *targets)
{
    const int code = target_list_make(targets, &o->to, "cast", NULL);
    if (code)
        return code;
    if (targets->count != 1)
        return fail(EXIT_USAGE, "cast: expected one format and one scale");
    p->to = &targets->items[0];
    p->out = output_format(p, o->widen);
    return p->out ? 0 : EXIT_USAGE;
}

/* A cast of files, one by one. */
typedef struct job {
    const options *o;
    plain_options plain;
    recipe_job recipe;
    int is_recipe, summary;
    folder to; /* path NULL: a file */
    unread_list lacks;
} job;

static int write_one(void *context, const input *in, trace *t, const char *file, const char *path)
{
    job *j = context;
    if (!j->is_recipe)
        return cast_plain_file(&j->plain, j->o->to.seed, in, t, file, path);
    j->recipe.o.path = path;
    j->recipe.o.file = file;
    const int code = cast_quantise_file(&j->recipe.o, in, t, &j->recipe.r);
    if (!code && j->summary)
        print_recipe(&j->recipe);
    return code;
}

static int visit(input *in, trace *t, void *context)
{
    job *j = context;
    return j->to.path ? cast_folder_visit(&j->to, in, t) : write_one(j, in, t, NULL, j->o->path);
}

/* One file, or a folder of them. */
static int cast_files(job *j, char **operands, int n)
{
    input in = {0};
    int code = input_open(&in, "cast", &j->o->from, operands, n);
    if (!code && cast_folder_wanted(&in, operands[0], j->o->path)) {
        j->to = (folder){j->o->path, n == 1 ? operands[0] : NULL, to_npy(j->o) ? ".npy" : ".safetensors", write_one, j};
        j->recipe.o.may_be_none = 1;
        code = cast_folder_check(&j->to, &in);
    } else if (!code) {
        code = output_check(j->o->path);
    }
    j->plain.lacks = j->recipe.o.lacks = &j->lacks;
    if (!code)
        code = input_each(&in, visit, j);
    code = code ? code : unread_lacks(&j->lacks, "cast");
    unread_clear(&j->lacks);
    input_close(&in);
    return code;
}

static int cast_format(job *j, char **operands, int n)
{
    target_list targets = {0};
    j->plain = (plain_options){.npy = to_npy(j->o), .only = j->o->only || to_npy(j->o), .summary = j->summary};
    int code = choose(&j->plain, j->o, &targets);
    if (!code)
        code = cast_files(j, operands, n);
    target_list_clear(&targets);
    return code;
}

static int cast_recipe_files(job *j, cast_recipe *r, char **operands, int n)
{
    const int code = set_recipe(j->o, r, &j->recipe);
    j->is_recipe = 1;
    j->recipe.o.counted = j->summary;
    return code ? code : cast_files(j, operands, n);
}

static int cast(const options *o, char **operands, int n)
{
    job j = {.o = o, .summary = !o->quiet && strcmp(o->path, "-") != 0};
    cast_recipe r;
    int code = check_name(o);
    if (code || (code = find_recipe(o, &r)) > 0)
        return code;
    if (code == 0)
        return cast_recipe_files(&j, &r, operands, n);
    if (o->quantised || o->order >= 0 || o->axis >= 0 || o->transform || o->keep.count)
        return fail(EXIT_USAGE,
                    "cast: --quantised, --scale-order, --axis, --rht and --keep go with a block recipe; '%s' "
                    "is a format",
                    o->to.formats);
    return cast_format(&j, operands, n);
}

int cmd_cast(const command *self, int argc, char **argv)
{
    options o = {.order = -1, .axis = -1};
    int first;
    const option_row table_of_options[] = {
        COMMON("format scale round preset quantised axis rht explain match kind output only widen"),
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.to.formats, "FORMAT",
         "a number format, as e4m3 or e4m3@cuda, or a block recipe, as mxfp8:rceil"},
        {'s', "scale", OPTION_STRING, &o.to.scales, "S", "multiply by S before the cast, as 1024 or 2^16 (default 1)"},
        TARGET_OPTION_ROWS(o.to),
        {0, "Block recipes", OPTION_HEADING, NULL, NULL, NULL},
        {0, "quantised", OPTION_STRING, &o.quantised, "LAYOUT",
         "names and shapes of codes and scales, as plain (default), torchao, te, compressed-tensors, "
         "modelopt, deepseek or gpt-oss write them; see doc/reference/quantised.md"},
        {0, "scale-order", OPTION_WORD, &o.order, "plain|swizzled",
         "order of block scales: plain (default), or swizzled for cuBLAS and Blackwell"},
        {0, "axis", OPTION_WORD, &o.axis, "rows|columns",
         "block direction: rows (the last dimension; default) or columns"},
        {0, "rht", OPTION_COUNT, &o.transform, "N",
         "apply a random Hadamard transform of groups of N first: 16, 32, 64 or 128; --seed draws its "
         "signs (16: fixed signs)"},
        {0, "keep", OPTION_LIST, &o.keep, "GLOB",
         "do not cast these tensors; tensors that are no matrices are never cast; may be repeated"},
        {0, "Numbers instead of a file", OPTION_HEADING, NULL, NULL, NULL},
        {0, "explain", OPTION_STRING, &o.explain.numbers, "X[,X...]",
         "explain how these numbers and codes are cast; -f may list formats and block recipes"},
        {0, "from", OPTION_STRING, &o.explain.from, "FORMAT",
         "source format: numbers are rounded to it first, 0x3c00 is a code of it (default: exact numbers, "
         "for recipes binary32; codes of the only format in -f)"},
        {0, "tensor-amax", OPTION_STRING, &o.explain.tensor_amax, "A",
         "NVFP4: largest magnitude of the tensor (default: of these numbers)"},
        JSON_OPTION_ROW(o.explain.form, "mpsim.cast-explain/1"),
        NDJSON_OPTION_ROW(o.explain.form, "number in a format, or recipe"),
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {'o', "output", OPTION_OUTPUT, &o.path, "FILE",
         "output file; - is standard output; a folder, if the input is a folder or several files"},
        {0, "only", OPTION_FLAG, &o.only, NULL,
         "write only floating-point tensors that --match and --kind select; npy always does"},
        {0, "to", OPTION_CHOICE, &o.layout, "safetensors|npy",
         "file type (default: npy if FILE ends in .npy, else safetensors)"},
        {0, "widen", OPTION_FLAG, &o.widen, NULL, "write rounded values as float32 (float64 where needed)"},
        THREADS_OPTION_ROW(o.form, ""),
        {'q', "quiet", OPTION_QUIET, &o.quiet, NULL, "no summary and no notes"},
        NEEDS("", "FILE explain", "--explain casts numbers of the command line"),
        NEEDS("", "format", NULL),
        NEEDS("", "output explain", "a file, or a folder"),
        NEEDS("from tensor-amax json ndjson", "explain", NULL),
        EXCLUDES("explain", "FILE to widen", NULL),
        EXCLUDES("widen", "quantised scale-order", "--widen writes values, not codes"),
        EXCLUDES("explain", "quantised scale-order axis rht keep", "name the transform in the recipe, as nvfp4:rht16"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        report_options_threads(&o.form);
        o.explain.to = o.to;
        o.explain.path = o.path;
        code = o.explain.numbers ? cast_explain_run(&o.explain) : cast(&o, argv + first, argc - first);
    }
    input_options_clear(&o.from);
    option_list_clear(&o.keep);
    return code;
}
