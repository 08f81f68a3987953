/* cmd.c -- mpsim cast: round tensors to a format and write them. */
#include "../commands.h"
#include "../cli/input.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../report/report.h"
#include "../text/words.h"
#include "explain.h"
#include "quantise.h"
#include "tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "The output holds cast(x * scale) in the format's own dtype, or widened to float32 (float64\n"
    "where that is needed). Its metadata say how it was made. Elements that are not\n"
    "floating-point numbers, and tensors that --match leaves out, are not copied.\n"
    "\n"
    "FORMAT may be a block recipe (mxfp8:rceil, nvfp4:2d, e4m3/128x128, ...: lib/include/mpsim/block.h). Then matrices\n"
    "(a tensor's last dimension, and all others) are written as codes and scales, in the layout that --quantised\n"
    "names, or with --widen as the values that these stand for; what is not a matrix stays as it is.\n"
    "\n"
    "--explain casts numbers of the command line instead and says why they become what they do: of a format\n"
    "the candidates and the choice between them, of a block recipe amax, scale, elements and codes. A\n"
    "number is decimal, hexadecimal (0x1p-3), inf or nan, and 0x3dcccccd a code. Recipes: nvfp4, mxfp8, mxfp4,\n"
    "1x128, ... (all: lib/include/mpsim/block.h); random bits are those of seed, stream 0 and place.\n"
    "\n"
    "Examples:\n"
    "  mpsim cast -f e4m3@cuda -s 2^10 -o out.safetensors grads.safetensors\n"
    "  mpsim cast -f e2m1 --widen -o out.npy weight.npy\n"
    "  mpsim cast -f bf16 -r sr --seed 7 -o w.safetensors master.safetensors\n"
    "  mpsim cast -f nvfp4 --quantised torchao --keep '*embed*' -o q.safetensors model.safetensors\n"
    "  mpsim cast -f mxfp8:rceil --scale-order swizzled -o q.safetensors model.safetensors\n"
    "  mpsim cast -f e4m3/128x128 --quantised deepseek -o q.safetensors model.safetensors\n"
    "  mpsim cast --explain 0.1,465 -f fp16,e4m3@cuda\n"
    "  mpsim cast --explain 0.1,-3,0.02 -f nvfp4,mxfp8\n";

typedef struct options {
    target_options to;
    input_options from;
    report_options form; /* of it: threads */
    const char *path, *layout;
    int widen, quiet;
    const char *quantised, *order, *axis; /* of recipes */
    uint64_t transform;
    option_list keep;
    explain_options explain;
} options;

typedef struct job {
    caster c;
    int npy;
    const char *path;
    size_t *chosen; /* indices of the tensors to write */
    size_t n;
    uint64_t elements, left_out;
    uint64_t unselected, unselected_elements; /* that --match or --kind leaves out */
    uint64_t codes, bare; /* tensors of 8 bits and less that no layout reads; of them E8M0 */
} job;

static int ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* ---- one file ---- */

/* Metadata of the input, and how the output was made. */
static trace_writer *open_safetensors(job *j, const trace *t, const trace_tensor *tensors,
                                      trace_error *error)
{
    const mpsim_rounding *r = &j->c.to->rounding;
    pairs p = {.n = 0};
    pairs_put_input(&p, t);
    pairs_put(&p, "mpsim.cast.format", "%s", j->c.to->format.name);
    pairs_put(&p, "mpsim.cast.preset", "%s", j->c.to->preset);
    pairs_put(&p, "mpsim.cast.overflow", r->overflow == MPSIM_OVERFLOW_MAX ? "saturate" : "inf");
    pairs_put(&p, "mpsim.cast.flush_subnormals", r->flush_output ? "true" : "false");
    pairs_put(&p, "mpsim.cast.flush_inputs", r->flush_input ? "true" : "false");
    pairs_put(&p, "mpsim.cast.scale", "%.17g", r->scale);
    pairs_put(&p, "mpsim.cast.version", "%s", mpsim_version());
    pairs_put(&p, "mpsim.cast.round", "%s", mpsim_round_mode_name((mpsim_round_mode)r->mode));
    if (r->mode >= MPSIM_ROUND_STOCHASTIC_A) {
        pairs_put(&p, "mpsim.cast.random_bits", "%d", r->sr_bits);
        pairs_put(&p, "mpsim.cast.seed", "%" PRIu64, j->c.seed);
    }
    return pairs_open(&p, j->path, tensors, j->n, error);
}

static void count_bare(job *j, const trace_tensor *x)
{
    const int is_code = x->format && !x->quantised && x->format->bits <= 8;
    if (is_code && strcmp(x->format->name, "e8m0") == 0)
        j->bare++;
    else if (is_code)
        j->codes++;
}

static int visit_file(input *in, trace *t, void *context)
{
    job *j = context;
    trace_error error;
    trace_writer *w = NULL;
    char name[512];
    int code = 0;
    j->chosen = calloc(trace_count(t) + 1, sizeof *j->chosen);
    trace_tensor *tensors = calloc(trace_count(t) + 1, sizeof *tensors);
    if (!j->chosen || !tensors) {
        code = fail(EXIT_IO, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < trace_count(t); i++) {
        count_bare(j, trace_at(t, i));
        if (!input_selects(in, trace_at(t, i))) {
            j->unselected++;
            j->unselected_elements += trace_at(t, i)->count;
            continue;
        }
        if (!trace_at(t, i)->format) {
            j->left_out++;
            continue;
        }
        tensors[j->n] = *trace_at(t, i);
        tensors[j->n].format = j->c.out;
        tensors[j->n].fortran = j->npy ? tensors[j->n].fortran : 0;
        if (tensors[j->n].name[0] == '\0' && !j->npy)
            tensors[j->n].name = "tensor"; /* an npy or raw file has no names */
        j->chosen[j->n++] = i;
        j->elements += trace_at(t, i)->count;
    }
    if (j->npy && j->n != 1) {
        code = fail(EXIT_USAGE, "cast: an npy file holds one array, but %zu of '%s' are selected: use "
                                "--match, or write safetensors", j->n,
                    escape_text(name, sizeof name, trace_path(t)));
        goto done;
    }
    w = j->npy ? trace_writer_npy(j->path, tensors, &error)
               : open_safetensors(j, t, tensors, &error);
    if (w && caster_write(&j->c, t, j->chosen, j->n, w, &error)) {
        trace_writer_abandon(w);
        w = NULL;
    }
    if (!w || trace_writer_finish(w, &error))
        code = fail(error.exit, "%s", error.text);
done:
    free(j->chosen);
    free(tensors);
    return code;
}

/* The alias of a format that is its ml_dtypes name, or NULL: it has no such type. */
static const char *ml_dtypes_name(const mpsim_format *f)
{
    static const char *const heads[] = {"float4_", "float6_", "float8_", "bfloat16"};
    static char name[64];
    int known = 0;
    for (const char *p = f->aliases; *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
            known |= strncmp(p, heads[i], strlen(heads[i])) == 0;
        if (n < sizeof name && known) {
            memcpy(name, p, n);
            name[n] = '\0';
            return name;
        }
        p += n;
    }
    return NULL;
}

/* What a selection leaves out is not in the file. */
static void print_unselected(uint64_t tensors, uint64_t elements)
{
    char a[32], b[32];
    if (tensors)
        printf("; %s tensor%s of %s element%s left out", text_count(a, tensors), text_plural(tensors), text_count(b, elements),
               text_plural(elements));
}

static void print_summary(const job *j)
{
    char path[4096], n[32];
    printf("%s: %zu tensor%s, %s element%s as %s", escape_text(path, sizeof path, j->path), j->n, text_plural(j->n),
           text_count(n, j->elements), text_plural(j->elements), j->c.to->label);
    if (j->c.out != &j->c.to->format)
        printf(" in %s", j->c.out->name);
    print_unselected(j->unselected, j->unselected_elements);
    putchar('\n');
    report_counts(stdout, &j->c.counts, j->elements);
    const char *type = ml_dtypes_name(j->c.out);
    if (j->npy && trace_npy_descr(j->c.out)[1] == 'V' && type)
        printf("  numpy.load gives bytes: add .view(ml_dtypes.%s)\n", type);
    else if (j->npy && trace_npy_descr(j->c.out)[1] == 'V')
        puts("  numpy.load gives bytes: ml_dtypes has no such type");
}

/* The format to write, or NULL after a message. */
static const mpsim_format *output_format(const job *j, int widen)
{
    const mpsim_format *f = &j->c.to->format;
    if (widen)
        return widened(f);
    if (j->npy ? trace_npy_descr(f) != NULL : trace_safetensors_dtype(f) != NULL)
        return f;
    const int other = j->npy ? trace_safetensors_dtype(f) != NULL : trace_npy_descr(f) != NULL;
    fail(EXIT_USAGE, "cast: %s has no dtype in %s files: use --widen%s", f->name,
         j->npy ? "npy" : "safetensors", !other ? "" : j->npy ? ", or write safetensors"
                                                              : ", or write npy");
    return NULL;
}

/* ---- a block recipe ---- */

/* One of two words, the first if it is not given; -1 after a message. */
static int which(const char *option, const char *word, const char *first, const char *second)
{
    if (!word || strcmp(word, first) == 0)
        return 0;
    if (strcmp(word, second) == 0)
        return 1;
    fail(EXIT_USAGE, "cast: --%s is '%s' or '%s', not '%s'", option, first, second, word);
    return -1;
}

/* The recipe of -f, with --rht. 0; -1 if it is none; or an exit code after a message. */
static int find_recipe(const options *o, cast_recipe *r)
{
    char text[128];
    int code = recipe_parse(r, o->to.formats);
    if (code || !o->transform)
        return code;
    if (r->transform && r->transform != o->transform)
        return fail(EXIT_USAGE, "cast: %s and --rht %" PRIu64 " contradict each other", r->block.name, o->transform);
    if (snprintf(text, sizeof text, "%s:rht%" PRIu64, r->block.name, o->transform) >= (int)sizeof text)
        return fail(EXIT_USAGE, "cast: --format: too long");
    return r->transform ? 0 : recipe_parse(r, text);
}

typedef struct recipe_job {
    quantise_options o;
    quantise_result r;
} recipe_job;

static int visit_recipe(input *in, trace *t, void *context)
{
    recipe_job *j = context;
    return quantise_file(&j->o, in, t, &j->r);
}

static int set_recipe(const options *o, cast_recipe *r, recipe_job *j)
{
    const int npy = o->layout ? strcmp(o->layout, "npy") == 0 : ends_with(o->path, ".npy");
    const int swizzled = which("scale-order", o->order, "plain", "swizzled");
    const int columns = which("axis", o->axis, "rows", "columns");
    const char *layout = o->quantised ? o->quantised : "plain";
    if (swizzled < 0 || columns < 0 || recipe_options(r, &o->to))
        return EXIT_USAGE;
    if (o->widen && (o->quantised || o->order))
        return fail(EXIT_USAGE, "cast: --widen writes values: --quantised and --scale-order do not go with it");
    if (npy && !o->widen)
        return fail(EXIT_USAGE, "cast: npy has no place for codes and scales: use --widen, or write safetensors");
    if (!quant_layout_find(layout)) {
        char all[256] = "";
        for (size_t i = 0; quant_layout_at(i); i++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s %s", i ? "," : "", quant_layout_at(i)->layout);
        return fail(EXIT_USAGE, "cast: --quantised: '%s' is not a layout; there are%s", layout, all);
    }
    if (r->transform && !o->widen && strcmp(layout, "plain") != 0)
        return fail(EXIT_USAGE, "cast: %s: the layout %s cannot say that its numbers are behind a transform: plain can, and "
                                "--widen undoes it", r->block.name, layout);
    *j = (recipe_job){.o = {r, o->path, layout, swizzled, columns, o->widen, npy, 0, o->to.seed, &o->keep}};
    return 0;
}

static void print_recipe(const recipe_job *j)
{
    char path[4096], n[32];
    printf("%s: %zu tensor%s, %s element%s as %s", escape_text(path, sizeof path, j->o.path), j->r.quantised,
           text_plural(j->r.quantised), text_count(n, j->r.elements), text_plural(j->r.elements),
           j->o.how->block.name);
    if (j->o.columns)
        printf(" along columns");
    if (j->o.widen)
        printf(" in binary32");
    else
        printf(" in the layout %s%s", j->o.layout, j->o.swizzled ? ", scales swizzled" : "");
    if (j->r.kept)
        printf("; %zu as %s", j->r.kept, j->r.kept == 1 ? "it is" : "they are");
    print_unselected(j->r.unselected, j->r.unselected_elements);
    putchar('\n');
    report_counts(stdout, &j->r.counts, j->r.elements);
}

/* ---- the command ---- */

static int check_options(const options *o, int operands)
{
    const char *path = o->path, *layout = o->layout;
    if (o->explain.numbers) {
        if (!o->to.formats || operands || layout || o->widen)
            return fail(EXIT_USAGE, "cast: --explain needs --format, and takes no file, --to or --widen");
        if (o->quantised || o->order || o->axis || o->transform || o->keep.count)
            return fail(EXIT_USAGE, "cast: --quantised, --scale-order, --axis, --rht and --keep are not for --explain; a recipe "
                                    "says the transform itself, as nvfp4:rht16");
        return 0;
    }
    if (o->explain.from || o->explain.tensor_amax || o->explain.json)
        return fail(EXIT_USAGE, "cast: --from, --tensor-amax and --json go with --explain");
    if (!o->to.formats || !path || operands != 1)
        return fail(EXIT_USAGE, "cast: needs --format, --output and one file; try 'mpsim cast "
                                "--help'");
    if (layout && strcmp(layout, "npy") != 0 && strcmp(layout, "safetensors") != 0)
        return fail(EXIT_USAGE, "cast: --to is 'safetensors' or 'npy', not '%s'", layout);
    if (!layout && (ends_with(path, ".npz") || ends_with(path, ".pt") || ends_with(path, ".bin")))
        return fail(EXIT_USAGE, "cast: '%s': safetensors and npy are written; name the file so, or "
                                "say --to", path);
    return 0;
}

/* What to cast to and how it is written: the one target of the list. */
static int choose(job *j, const options *o, target_list *targets)
{
    const int code = target_list_make(targets, &o->to, "cast", NULL);
    if (code)
        return code;
    if (targets->count != 1)
        return fail(EXIT_USAGE, "cast: one format and one scale, please");
    j->c.to = &targets->items[0];
    j->c.out = output_format(j, o->widen);
    return j->c.out ? 0 : EXIT_USAGE;
}

static int open_one(input *in, const options *o, char *operand)
{
    int code = input_open(in, "cast", &o->from, &operand, 1);
    if (!code)
        code = output_check(o->path);
    if (!code && in->tree.count != 1)
        code = fail(EXIT_USAGE, "cast: '%s' stands for %zu files: cast takes one", operand, in->tree.count);
    return code;
}

static void note_left_out(uint64_t n)
{
    if (n)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", n, text_plural(n));
}

/* Scales of a layout that is not known: what they belong to is cast as it is stored. */
static void note_bare(const job *j)
{
    const uint64_t n = j->bare;
    if (n && j->codes)
        note("%" PRIu64 " tensor%s of E8M0 in no layout that is known: if they are scales, what lies beside them is cast as "
             "bare codes, without them", n, text_plural(n));
}

static int cast_format(const options *o, char *operand, int summary)
{
    target_list targets = {0};
    input in = {0};
    job j = {.path = o->path,
             .npy = o->layout ? strcmp(o->layout, "npy") == 0 : ends_with(o->path, ".npy")};
    int code = choose(&j, o, &targets);
    j.c.seed = o->to.seed;
    j.c.row_major = !j.npy;
    j.c.counted = summary;
    if (!code && !(code = open_one(&in, o, operand)) && !(code = input_each(&in, visit_file, &j))) {
        note_left_out(j.left_out);
        note_bare(&j);
        if (summary)
            print_summary(&j);
    }
    input_close(&in);
    target_list_clear(&targets);
    return code;
}

static int cast_recipe_file(const options *o, cast_recipe *r, char *operand, int summary)
{
    input in = {0};
    recipe_job j;
    int code = set_recipe(o, r, &j);
    if (code)
        return code;
    j.o.counted = summary;
    if (!(code = open_one(&in, o, operand)) && !(code = input_each(&in, visit_recipe, &j))) {
        note_left_out(j.r.left_out);
        if (summary)
            print_recipe(&j);
    }
    input_close(&in);
    return code;
}

static int cast_file(const options *o, char *operand)
{
    const int summary = !o->quiet && strcmp(o->path, "-") != 0;
    cast_recipe r;
    const int code = find_recipe(o, &r);
    if (code > 0)
        return code;
    if (code == 0)
        return cast_recipe_file(o, &r, operand, summary);
    if (o->quantised || o->order || o->axis || o->transform || o->keep.count)
        return fail(EXIT_USAGE, "cast: --quantised, --scale-order, --axis, --rht and --keep go with a block recipe; '%s' "
                                "is a format", o->to.formats);
    return cast_format(o, operand, summary);
}

int cmd_cast(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row table_of_options[] = {
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.to.formats, "FORMAT",
         "the format, as e4m3 or e4m3@cuda, or a block recipe, as mxfp8:rceil"},
        {'s', "scale", OPTION_STRING, &o.to.scales, "S",
         "multiply by S first, as 1024 or 2^16 (default 1)"},
        TARGET_OPTION_ROWS(o.to),
        {0, "Block recipes", OPTION_HEADING, NULL, NULL, NULL},
        {0, "quantised", OPTION_STRING, &o.quantised, "LAYOUT",
         "names and shapes of codes and scales: plain (default), torchao, te, compressed-tensors, modelopt, deepseek, "
         "gpt-oss; see doc/quantised.md"},
        {0, "scale-order", OPTION_STRING, &o.order, "ORDER",
         "block scales plain (default), or swizzled as cuBLAS and Blackwell read them"},
        {0, "axis", OPTION_STRING, &o.axis, "AXIS",
         "blocks along rows (default), which is the last dimension, or along columns"},
        {0, "rht", OPTION_COUNT, &o.transform, "N",
         "a random Hadamard transform of groups of N first: 16, 32, 64 or 128; signs by --seed, but of 16"},
        {0, "keep", OPTION_LIST, &o.keep, "GLOB",
         "tensors that stay as they are, beside those that are no matrices; may be repeated"},
        {0, "Numbers instead of a file", OPTION_HEADING, NULL, NULL, NULL},
        {0, "explain", OPTION_STRING, &o.explain.numbers, "X[,X...]",
         "say what becomes of these; -f may name several formats and block recipes"},
        {0, "from", OPTION_STRING, &o.explain.from, "FORMAT",
         "they are of this format (default: binary64, of recipes binary32)"},
        {0, "tensor-amax", OPTION_STRING, &o.explain.tensor_amax, "A",
         "of NVFP4: the largest magnitude of their tensor (default: theirs)"},
        JSON_OPTION_ROW(o.explain, "mpsim.explain/1"),
        {0, "Which tensors", OPTION_HEADING, NULL, NULL, NULL},
        INPUT_OPTION_ROWS(o.from),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        {'o', "output", OPTION_STRING, &o.path, "FILE", "the file to write; - is standard output"},
        {0, "to", OPTION_STRING, &o.layout, "LAYOUT",
         "safetensors or npy (default: npy if FILE ends in .npy, else safetensors)"},
        {0, "widen", OPTION_FLAG, &o.widen, NULL,
         "write the rounded values as float32 (float64 where needed)"},
        THREADS_OPTION_ROW(o.form, "; the file does not depend on it"),
        {'q', "quiet", OPTION_FLAG, &o.quiet, NULL, "no summary and no notes"},
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0) {
        if (o.quiet)
            note_quiet();
        if (!(code = check_options(&o, argc - first)) &&
            !(code = report_options_threads(&o.form, "cast"))) {
            o.explain.to = o.to;
            o.explain.path = o.path;
            code = o.explain.numbers ? explain_run(&o.explain) : cast_file(&o, argv[first]);
        }
    }
    input_options_clear(&o.from);
    option_list_clear(&o.keep);
    return code;
}
