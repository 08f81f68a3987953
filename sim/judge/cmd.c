/* cmd.c -- mpsim judge: which row gives somebody else's results, and what is wrong where none does. */
#include "../commands.h"
#include "../cli/reportoptions.h"
#include "../process/host.h"
#include "../process/output.h"
#include "../operand/target.h"
#include "../text/words.h"
#include "arrays.h"
#include "inputsout.h"
#include "tolerance.h"
#include "record.h"
#include "run.h"

#include <string.h>
#include <strings.h>
#include <threads/parallel.h>

static const char more[] =
    "KIND is an operation. The files have its arrays. The name of a tensor, or of the file of an npy\n"
    "array, is its role; --role gives other names a role:\n"
    "\n"
    "  cast        x: the numbers; y: the results, codes or the numbers that they stand for\n"
    "  quantise    x: the numbers, a matrix; codes, scales (row-major, transposed or swizzled); y: the numbers that\n"
    "              codes and scales stand for\n"
    "  product     a: rows x depth; b: depth x columns or columns x depth; d: the results;\n"
    "              c, bias: added; scale_a, scale_b: factors of all, or of rows and columns\n"
    "  sum         x: a matrix; y: the sum or mean of each row, of each column, or of all\n"
    "  softmax     x, y: softmax or log-softmax of each row\n"
    "  norm        x, y: LayerNorm or RMSNorm of each row; weight, bias: a number for each column; eps\n"
    "  activation  x, y: GELU, SiLU, SwiGLU, ReLU, ...\n"
    "  update      param, grad, m, v: before an optimizer's step; new_param, new_m, new_v: after it\n"
    "  arith       a, b, c: operands; y: sums, products, ... of each\n"
    "  attention   q, k, v, o: [heads, tokens, size], [batch, heads, tokens, size] or one head; mask, bias;\n"
    "              slopes, sinks: of each head; lse: a result, beside o or alone\n"
    "  scaled-product  a, b: elements (bytes: two of e2m1); scale_a, scale_b: of blocks; d: the results;\n"
    "              tensor_a, tensor_b: one scale for all; bias: added\n"
    "\n"
    "A row is a complete definition of an operation. mpsim computes the results of rows from the inputs and\n"
    "compares all bits. Without --like it searches the row with the fewest different results. mpsim/judge.h\n"
    "describes the rows of each kind. Some examples:\n"
    "\n"
    "  cast        FORMAT[@PRESET][:WORD]..., as e4m3@pytorch:toward-zero\n"
    "  quantise    a recipe (mpsim help recipes); e4m3/row:scale=bf16: scales of 16 bits\n"
    "  product     a model (mpsim help models), +split=N: N parts of the depth,\n"
    "              +chunk=N: a new sum after N products; mkl-fp32[:parts=2]\n"
    "  sum         lanes:32, or a model as sequential:bf16 or pairwise; :reverse, :columns, :mean\n"
    "  softmax     softmax or log-softmax; :causal, :scale=X\n"
    "  norm        layernorm or rmsnorm; :eps=X\n"
    "  activation  gelu, gelu-tanh, silu, swiglu, relu, sigmoid, tanh or exp\n"
    "  update      adamw@torch-cpu:lr=1e-3:step=7; without @VARIANT the variant is searched\n"
    "  arith       add, sub, mul, div, sqrt or fma; a mode; nan=x86, arm or positive (RISC-V); separate\n"
    "  attention   eager or flash; :model=hopper-bf16-fp32, :p=bf16, :causal, :tile=128, :scale=X, :softcap=50\n"
    "  scaled-product  blocks (sums times scales), dequant:to=bf16, or native; :model=NAME\n"
    "\n"
    "From sum to activation, :math=FORMAT rounds every operation; results are rounded once to the format of y.\n"
    "\n"
    "--inputs ROW writes inputs for one call of a kernel. The results of that call tell ROW from other rows of its kind;\n"
    "mpsim prints the rows that they cannot tell apart. ROW may also be a kind, for all of its rows (cast, quantise,\n"
    "product, attention or arith), or KIND:ROW, as arith:fma.\n"
    "\n"
    "RUN is a stored run: a folder whose run.json lists operations, their rows and arrays (mpsim.testing.record of Python\n"
    "writes one). Each operation is judged from its own inputs. If results were not kept, digests are compared.\n"
    "\n"
    "The exit code is 1 if a result differs, and 5 if some operations of a run could not be judged.\n"
    "\n"
    "Examples:\n"
    "  mpsim judge cast x.npy y.npy                        which cast is this?\n"
    "  mpsim judge cast x.npy y.npy --like e4m3@cuda       are these the bits of CUDA?\n"
    "  mpsim judge cast grads.safetensors y.npy --role x=act:blocks.0.fc1\n"
    "  mpsim judge run/                                    which operation of a stored run is wrong?\n"
    "  mpsim judge --tolerance hopper-bf16-fp32 --depth 4096 --to bf16\n"
    "  mpsim judge --inputs mxfp8 -o in.safetensors        inputs for a quantiser of MXFP8\n";

typedef struct options {
    input_options in;
    option_list as;
    const char *like, *inputs, *tolerance;
    mpsim_format from, to;
    uint64_t depth;
    report_options form;
} options;

static int kind_of(mpsim_judge_kind *kind, const char *word)
{
    for (unsigned i = 0; judge_kind_name(i); i++)
        if (strcasecmp(judge_kind_name(i), word) == 0) {
            *kind = (mpsim_judge_kind)i;
            return 0;
        }
    char all[256] = "";
    for (unsigned i = 0; judge_kind_name(i); i++)
        (void)text_add(all, sizeof all, "%s%s", i ? ", " : "", judge_kind_name(i));
    return fail(EXIT_USAGE, "judge: expected an operation (%s), found '%s'", all, word);
}

static int exit_of(mpsim_status s)
{
    return s == MPSIM_ENOTFOUND ? EXIT_USAGE : s == MPSIM_ENOMEM ? EXIT_IO : EXIT_DATA;
}

static int write_report(const options *o, const judge_report *r)
{
    output out;
    record_writer w = {.kind = &judge_kind, .style = report_options_style(&o->form), .document = r};
    const int code = report_options_open(&out, &o->form);
    if (code)
        return code;
    w.to = out.file;
    if (w.style == REPORT_TEXT) {
        judge_report_print(out.file, r);
        return output_close(&out);
    }
    record_begin(&w);
    for (size_t i = 0; i < r->places; i++)
        record_row(&w, &r->place[i]);
    record_end(&w);
    return output_close(&out);
}

/* All arrays that must be there; files: the names of `n` files. */
static int read_arrays(judge_arrays *a, input *in, char **files, int n)
{
    const int code = judge_arrays_read(a, in);
    const char *missing = code ? NULL : judge_arrays_missing(a);
    return missing
               ? fail(
                     EXIT_DATA,
                     "judge: %s%s: expected an array '%s', found none: the files have %s; --role %s=NAME gives one this role",
                     files[0], n > 1 ? ", ..." : "", missing, *a->found ? a->found : "no tensors", missing)
               : code;
}

static int judge(const options *o, const judge_arrays *a)
{
    mpsim_judgement j;
    judge_report r;
    char why[512] = "out of memory";
    const mpsim_status s = judge_run(&j, a->kind, a->of, a->n, o->like, &parallel_pool, why, sizeof why);
    if (s != MPSIM_OK)
        return fail(exit_of(s), "judge: %s", why);
    judge_report_fill(&r, judge_kind_name(a->kind), &j);
    const int code = write_report(o, &r);
    return code ? code : r.equal ? 0 : EXIT_CHECK;
}

/* A stored run says itself which tensors it has, and which rows. */
static int judge_stored(const options *o, const char *path)
{
    static const input_options none;
    if (o->like || o->as.count || memcmp(&o->in, &none, sizeof none) != 0)
        return fail(
            EXIT_USAGE,
            "judge: %s: a stored run takes no --like, no --role and no options of input: run.json has rows and arrays",
            path);
    return run_judge_command(path, &o->form);
}

/* One word, or none, that is not a stored run. */
static int fail_few(const char *word)
{
    for (unsigned i = 0; word && judge_kind_name(i); i++)
        if (strcasecmp(judge_kind_name(i), word) == 0)
            return fail(EXIT_USAGE, "judge: %s: expected files of its arrays", word);
    return word ? fail(EXIT_USAGE,
                       "judge: %s: expected a folder with run.json, or KIND FILE...; see mpsim judge --help", word)
                : fail(EXIT_USAGE, "judge: expected KIND FILE... or a folder with run.json; see mpsim judge --help");
}

int cmd_judge(const command *self, int argc, char **argv)
{
    options o = {.depth = 4096};
    input in;
    judge_arrays a = {.as = &o.as};
    int first;
    const option_row rows[] = {
        {'l', "like", OPTION_STRING, &o.like, "ROW", "the row that should give the results (default: search it)"},
        {0, "role", OPTION_LIST, &o.as, "ROLE=NAME", "the tensor NAME has this role; may be repeated"},
        INPUT_OPTION_ROWS(o.in),
        {0, "Inputs", OPTION_HEADING, NULL, NULL, NULL},
        {0, "inputs", OPTION_STRING, &o.inputs, "ROW",
         "write inputs that tell this row from others to the file of -o (safetensors)"},
        {0, "from", OPTION_READ, READS(format_option, &o.from, NULL), "FORMAT",
         "the format of these inputs (default: binary32; of a product what its model takes)"},
        {0, "tolerance", OPTION_STRING, &o.tolerance, "ROW",
         "print the largest error that a correct kernel of this row can have"},
        {0, "to", OPTION_READ, READS(format_option, &o.to, NULL), "FORMAT",
         "with --tolerance: the format of a product's results"},
        {0, "depth", OPTION_COUNT, &o.depth, "K",
         "with --tolerance: how many products a result of a product adds (default: 4096)"},
        NEEDS("to depth", "tolerance", NULL),
        EXCLUSIVE("inputs tolerance", NULL),
        RANGE("depth", 1, 1 << 30),
        EXCLUDES("inputs tolerance", "KIND like role", "the row says the kind"),
        EXCLUDES("inputs", "csv", "classes are lists"),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(o.form,
                        "mpsim.judge/1; of a run, --inputs and --tolerance mpsim.judge-run/1, -inputs/1, -tolerance/1"),
        NDJSON_OPTION_ROW(o.form, "result that differs, operation of a run, class or tolerance"),
        CSV_OPTION_ROW(o.form, ": the first results that differ"),
        COLUMNS("Columns", record_rows(&judge_kind), 0),
        OUTPUT_OPTION_ROW(o.form),
        THREADS_OPTION_ROW(o.form, ""),
        {0, "like role inputs tolerance json csv output", OPTION_COMMON, NULL, NULL,
         "KIND is cast, quantise, product, sum, softmax, norm, activation, update, arith, attention or scaled-product; --help=all lists the arrays and rows of each."},
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, rows, argc, argv, &first, more);
    if (code >= 0)
        return code;
    if (o.inputs) {
        report_options_threads(&o.form);
        return judge_inputs_command(o.inputs, *o.from.name ? &o.from : NULL, o.form.path,
                                    report_options_style(&o.form));
    }
    if (o.tolerance)
        return judge_tolerance_command(o.tolerance, *o.from.name ? &o.from : NULL, *o.to.name ? &o.to : NULL,
                                       (size_t)o.depth, &o.form);
    report_options_threads(&o.form);
    if (argc - first == 1 && run_is(argv[first]))
        return judge_stored(&o, argv[first]);
    if (argc - first < 2)
        return fail_few(argc - first ? argv[first] : NULL);
    code = kind_of(&a.kind, argv[first]);
    code = code ? code : judge_arrays_check(&a);
    if (code || (code = input_open(&in, "judge", &o.in, argv + first + 1, argc - first - 1)))
        return code;
    code = read_arrays(&a, &in, argv + first + 1, argc - first - 1);
    code = code ? code : judge(&o, &a);
    input_close(&in);
    judge_arrays_clear(&a);
    return code;
}
