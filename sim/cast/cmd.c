/* cmd.c -- mpsim cast: round tensors to a format and write them. */
#include "../commands.h"
#include "../cli/input.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../report/report.h"
#include "explain.h"
#include "tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "The output holds cast(x * scale) in the format's own dtype, or widened to float32 (float64\n"
    "where that is needed). Its metadata say how it was made. Elements that are not\n"
    "floating-point numbers, and tensors that --match leaves out, are not copied.\n"
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
    "  mpsim cast --explain 0.1,465 -f fp16,e4m3@cuda\n"
    "  mpsim cast --explain 0.1,-3,0.02 -f nvfp4,mxfp8\n";

typedef struct options {
    target_options to;
    input_options from;
    report_options form; /* of it: threads */
    const char *path, *layout;
    int widen, quiet;
    explain_options explain;
} options;

typedef struct job {
    caster c;
    int npy;
    const char *path;
    size_t *chosen; /* indices of the tensors to write */
    size_t n;
    uint64_t elements, left_out;
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
    enum { OWN = 10 };
    const mpsim_rounding *r = &j->c.to->rounding;
    const int stochastic = r->mode >= MPSIM_ROUND_STOCHASTIC_A;
    char scale[32], seed[32], bits[8];
    size_t n = 0, kept = 0;
    while (trace_metadata_key(t, n))
        n++;
    const char *(*pairs)[2] = calloc(n + OWN, sizeof *pairs);
    if (!pairs) {
        trace_error_set(error, EXIT_IO, j->path, UINT64_MAX, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(trace_metadata_key(t, i), "mpsim.cast.", 11) != 0) {
            pairs[kept][0] = trace_metadata_key(t, i);
            pairs[kept++][1] = trace_metadata_value(t, i);
        }
    snprintf(scale, sizeof scale, "%.17g", r->scale);
    snprintf(seed, sizeof seed, "%" PRIu64, j->c.seed);
    snprintf(bits, sizeof bits, "%d", r->sr_bits);
    const char *const own[OWN][2] = {
        {"mpsim.cast.format", j->c.to->format.name},
        {"mpsim.cast.preset", j->c.to->preset},
        {"mpsim.cast.overflow", r->overflow == MPSIM_OVERFLOW_MAX ? "saturate" : "inf"},
        {"mpsim.cast.flush_subnormals", r->flush_output ? "true" : "false"},
        {"mpsim.cast.flush_inputs", r->flush_input ? "true" : "false"},
        {"mpsim.cast.scale", scale},
        {"mpsim.cast.version", mpsim_version()},
        {"mpsim.cast.round", mpsim_round_mode_name((mpsim_round_mode)r->mode)},
        {"mpsim.cast.random_bits", bits}, /* the last two of stochastic modes only */
        {"mpsim.cast.seed", seed}};
    memcpy(pairs + kept, own, sizeof own);
    kept += stochastic ? OWN : OWN - 2;
    trace_writer *w = trace_writer_safetensors(j->path, tensors, j->n,
                                               (const char *const(*)[2])pairs, kept, error);
    free(pairs);
    return w;
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
        if (!input_selects(in, trace_at(t, i)))
            continue;
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

/* The alias of a format that is its ml_dtypes name. */
static const char *ml_dtypes_name(const mpsim_format *f)
{
    static char name[64];
    for (const char *p = f->aliases; *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        if (n < sizeof name && (strncmp(p, "float8_", 7) == 0 || strncmp(p, "bfloat16", 8) == 0)) {
            memcpy(name, p, n);
            name[n] = '\0';
            return name;
        }
        p += n;
    }
    return f->name;
}

static void print_summary(const job *j)
{
    char path[4096], n[32], count[32], share[32];
    const struct {
        const char *what;
        uint64_t n;
    } rows[] = {{"underflow", j->c.counts.underflow},
                {"subnormal", j->c.counts.subnormal},
                {"overflow", j->c.counts.overflow},
                {"inexact", j->c.counts.inexact},
                {"NaN", j->c.counts.nan}};
    printf("%s: %zu tensor%s, %s element%s as %s", escape_text(path, sizeof path, j->path), j->n, j->n == 1 ? "" : "s",
           text_count(n, j->elements), j->elements == 1 ? "" : "s", j->c.to->label);
    if (j->c.out != &j->c.to->format)
        printf(" in %s", j->c.out->name);
    putchar('\n');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("  %-9s  %12s  %s\n", rows[i].what, text_count(count, rows[i].n),
               rows[i].n ? text_share(share, rows[i].n, j->elements) : "");
    if (j->npy && trace_npy_descr(j->c.out)[1] == 'V')
        printf("  numpy.load gives bytes: add .view(ml_dtypes.%s)\n", ml_dtypes_name(j->c.out));
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

/* ---- the command ---- */

static int check_options(const options *o, int operands)
{
    const char *path = o->path, *layout = o->layout;
    if (o->explain.numbers) {
        if (!o->to.formats || operands || layout || o->widen)
            return fail(EXIT_USAGE, "cast: --explain needs --format, and takes no file, --to or --widen");
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

static int cast_file(const options *o, char *operand)
{
    target_list targets = {0};
    input in = {0};
    job j = {.path = o->path,
             .npy = o->layout ? strcmp(o->layout, "npy") == 0 : ends_with(o->path, ".npy")};
    const int summary = !o->quiet && strcmp(o->path, "-") != 0;
    int code;
    if ((code = choose(&j, o, &targets)) ||
        (code = input_open(&in, "cast", &o->from, &operand, 1)) ||
        (code = output_check(o->path)))
        goto done;
    if (in.tree.count != 1) {
        code = fail(EXIT_USAGE, "cast: '%s' stands for %zu files: cast takes one", operand,
                    in.tree.count);
        goto done;
    }
    j.c.seed = o->to.seed;
    j.c.row_major = !j.npy;
    j.c.counted = summary;
    if ((code = input_each(&in, visit_file, &j)))
        goto done;
    if (j.left_out)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", j.left_out,
             j.left_out == 1 ? "" : "s");
    if (summary)
        print_summary(&j);
done:
    input_close(&in);
    target_list_clear(&targets);
    return code;
}

int cmd_cast(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row table_of_options[] = {
        {0, "What to cast to", OPTION_HEADING, NULL, NULL, NULL},
        {'f', "format", OPTION_STRING, &o.to.formats, "FORMAT", "the format, as e4m3 or e4m3@cuda"},
        {'s', "scale", OPTION_STRING, &o.to.scales, "S",
         "multiply by S first, as 1024 or 2^16 (default 1)"},
        TARGET_OPTION_ROWS(o.to),
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
    return code;
}
