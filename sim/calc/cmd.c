/* cmd.c -- mpsim calc: one operation, correctly rounded, in every format that is named. */
#include "../commands.h"
#include "calc.h"
#include "../record/record.h"
#include "../operand/element.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../operand/target.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "OP is convert, add, sub, mul, div, sqrt, fma (x y + z), exp, log (natural) or tanh. An operand is the\n"
    "exact decimal: 0.1 is one tenth. The exact result is rounded once. --operands FORMAT first rounds\n"
    "each operand, to nearest even, as a tensor of that format would; a star marks changed operands. exp,\n"
    "log and tanh take the binary64 number nearest to the operand; their results are correctly rounded,\n"
    "unlike those of many frameworks and GPUs.\n"
    "\n"
    "0x3c00, without a point or a p, is a code of --operands, or else of the format in -f, if -f names one\n"
    "format. 0x1p-24 is a number.\n"
    "\n"
    "Other operands are files of tensors: the operation is applied to each element, and -o FILE\n"
    "(safetensors or npy) receives the result. A number is combined with every element. Tensors of several\n"
    "files are matched by name and must have equal shapes.\n"
    "\n"
    "Examples:\n"
    "  mpsim calc div 1 3 -f fp16,bf16,e4m3\n"
    "  mpsim calc fma 0x1.eacp+7 0x1.3f4p+4 0x1.c04p+14 -f fp16\n"
    "  mpsim calc add 448 32 -f e4m3@cuda,e4m3@ocp          what overflow becomes\n"
    "  mpsim calc exp 11.1 -f fp16,bf16,binary64\n"
    "  mpsim calc mul 0x3c01 0x3c01 -f fp16                 two codes of fp16\n"
    "  mpsim calc add 1 0.001 --operands same -f bf16,fp16    operands in bf16, in fp16\n"
    "  mpsim calc mul 3 5 --operands e2m1 -f e4m3,fp16 -r toward-zero\n"
    "  mpsim calc sub after.safetensors before.safetensors -f bf16 \\\n"
    "            -o moved.safetensors\n";

static const char default_formats[] = "binary32,tf32,fp16,bf16,e4m3,e5m2";

/* The operands as they were typed. */
typedef struct given {
    exact_number x[3];
    char **words;
    operand_formats formats;
} given;

typedef struct answer {
    const target *t;
    const calculation *what;
    const mpsim_format *operands; /* of --operands, of a function else binary64; NULL: as they were typed */
    uint64_t code;
    double value[3], result;
    int rounded[3]; /* the operand, to that format */
    unsigned flags;
} answer;

/* Operands of a format: their codes, and what they were rounded to. */
static void round_operands(answer *a, uint64_t codes[3], const given *g)
{
    const mpsim_rounding nearest = calc_nearest(a->t);
    for (int i = 0; i < a->what->operands; i++) {
        unsigned flags = 0;
        codes[i] = calc_operand_code(a->operands, &nearest, &g->x[i], &flags);
        a->value[i] = mpsim_decode(a->operands, codes[i]);
        a->rounded[i] = (flags & MPSIM_FLAG_INEXACT) != 0 ||
                        !(a->value[i] == g->x[i].nearest || (isnan(a->value[i]) && isnan(g->x[i].nearest)));
    }
}

/* The operation on codes of the operands' format. */
static unsigned apply_to_codes(answer *a, const uint64_t x[3], uint32_t random)
{
    const mpsim_format *f = &a->t->format;
    mpsim_arith o;
    if (a->what->is_function) {
        a->code = mpsim_function_apply(a->what->function, a->operands, f, &a->t->rounding, x[0], random, &a->flags);
        return 0;
    }
    mpsim_arith_init(&o, a->what->op, a->operands, MPSIM_ROUND_NEAREST_EVEN);
    o.result = *f;
    o.rounding = a->t->rounding;
    a->code = mpsim_arith_apply(&o, x[0], x[1], x[2], random, &a->flags);
    return mpsim_arith_tiny(&o, x[0], x[1], x[2], random);
}

/* The operation on what was typed. */
static unsigned apply_to_typed(answer *a, const given *g, uint32_t random)
{
    const exact_number *x[3] = {&g->x[0], &g->x[1], &g->x[2]};
    exact_number zero[3];
    unsigned tiny;
    for (int i = 0; i < a->what->operands; i++) {
        a->value[i] = g->x[i].nearest;
        const int code = exact_is_code(g->words[i]);
        if (!calc_flushes(a->t, x[i], code ? g->formats.codes : &a->t->format))
            continue;
        exact_of(&zero[i], copysign(0, x[i]->nearest));
        x[i] = &zero[i];
    }
    a->code = exact_apply(a->what->op, &a->t->format, &a->t->rounding, x, random, &a->flags, &tiny);
    return tiny;
}

static void calculate(answer *a, const target *t, const calculation *c, const given *g, uint64_t seed)
{
    uint64_t codes[3] = {0, 0, 0};
    const uint32_t random = mpsim_rng_word(seed, 0, 0);
    *a = (answer){.t = t, .what = c, .operands = calc_operand_format(&g->formats, t)};
    if (!a->operands && c->is_function)
        a->operands = mpsim_format_find("binary64");
    if (a->operands)
        round_operands(a, codes, g);
    const unsigned tiny = a->operands ? apply_to_codes(a, codes, random) : apply_to_typed(a, g, random);
    a->flags |= element_ieee_underflow(a->flags, tiny);
    a->result = mpsim_decode(&t->format, a->code);
}

/* ---- reports ---- */

/* Nine digits; of what was typed as many more as tell it from other numbers. */
static const char *value_text(char out[32], double x, int rounded)
{
    int digits = 9;
    do
        snprintf(out, 32, "%.*g", digits, x);
    while (!rounded && digits++ < 17 && strtod(out, NULL) != x);
    return out;
}

/* An answer in reports. */
typedef struct calc_row {
    const char *operation, *label, *format, *preset, *round, *operand_format, *typed[3], *code_of[3],
        *flag_words[ELEMENT_FLAGS];
    const char *const *words, *const *codes, *const *flags;
    size_t operands, flag_count;
    const double *values;
    double result;
    char shown[3][40], hexadecimal[32], code[24], flag_text[192]; /* for people */
} calc_row;

#define AT(member) offsetof(calc_row, member)
static const record_field row_fields[] = {
    FIELD(TEXT, NULL, 0, AT(label), NULL, .title = "<format"),
    FIELD(TEXT, "operation", IN_ALL, AT(operation), NULL),
    FIELD(TEXT, "format", IN_ALL, AT(format), "The format of the result."),
    FIELD(TEXT, "preset", IN_ALL | FIELD_NULL, AT(preset), NULL),
    FIELD(TEXT, "round", IN_ALL, AT(round), NULL, .words = target_modes),
    FIELD(TEXT, "operand_format", IN_ALL | FIELD_NULL, AT(operand_format),
          "The format that operands were rounded to first: --operands, of a function binary64; null: none."),
    FIELD(TEXTS, "typed", IN_TREE, AT(words), "The operands as they were typed.", .of = AT(operands)),
    FIELD(TEXTS, "code_of", IN_TREE | FIELD_GAPS, AT(codes),
          "For each operand the format that it was taken for a code of; null: it is a number.", .of = AT(operands)),
    FIELD(REALS, "operands", IN_TREE, AT(values),
          "The operands as rounded to `operand_format`; without one the numbers of binary64 nearest to what was typed.",
          .of = AT(operands)),
    FIELD(TEXT, "x", IN_CSV, AT(typed[0]), NULL),
    FIELD(TEXT, "y", IN_CSV, AT(typed[1]), NULL),
    FIELD(TEXT, "z", IN_CSV, AT(typed[2]), NULL),
    FIELD(CHARS, NULL, 0, AT(shown[0]), NULL, .title = ">x"),
    FIELD(CHARS, NULL, 0, AT(shown[1]), NULL, .title = ">y"),
    FIELD(CHARS, NULL, 0, AT(shown[2]), NULL, .title = ">z"),
    FIELD(REAL, "result", IN_ALL, AT(result), NULL, .title = ">result", .format = "%.17g"),
    FIELD(CHARS, NULL, 0, AT(hexadecimal), NULL, .title = "<"),
    FIELD(CODE, "code", IN_ALL, AT(code), NULL, .title = "<code"),
    FIELD(CHARS, "flags", IN_CSV, AT(flag_text), NULL, .title = "<flags"),
    FIELD(TEXTS, "flags", IN_TREE, AT(flags), "What happened.", .of = AT(flag_count), .words = element_flag_words),
    {0}};
#undef AT
static const record_kind row_record = {"result", "A result.", sizeof(calc_row), row_fields};
const report_kind calc_kind = {
    "mpsim.calc/1", "mpsim calc: one operation",
    "Results of an operation in several formats. $defs/line is a line of --ndjson, which names no schema.",
    REPORT_ROWS("results", &row_record)};

static void set_operands(calc_row *row, const answer *a, const given *g)
{
    char value[32];
    row->operands = (size_t)a->what->operands;
    for (size_t i = 0; i < row->operands; i++) {
        row->typed[i] = g->words[i];
        row->code_of[i] = exact_is_code(g->words[i]) ? g->formats.codes->name : NULL;
        snprintf(row->shown[i], sizeof row->shown[i], "%s%s", value_text(value, a->value[i], a->rounded[i]),
                 a->rounded[i] ? "*" : "");
    }
    row->words = row->typed;
    row->codes = row->code_of;
    row->values = a->value;
}

static void write_answer(record_writer *w, const answer *a, const given *g)
{
    calc_row row = {.operation = a->what->name,
                    .label = a->t->label,
                    .format = a->t->format.name,
                    .preset = a->t->preset,
                    .round = mpsim_round_mode_name((mpsim_round_mode)a->t->rounding.mode),
                    .operand_format = a->operands ? a->operands->name : NULL,
                    .result = a->result};
    set_operands(&row, a, g);
    row.flag_count = element_flags_list(row.flag_words, a->flags);
    row.flags = row.flag_words;
    snprintf(row.hexadecimal, sizeof row.hexadecimal, "%a", a->result);
    element_code_text(row.code, &a->t->format, a->code);
    element_flags_text(row.flag_text, sizeof row.flag_text, a->flags);
    record_row(w, &row);
}

/* What codes stand for. */
static void print_codes(const answer *a, const given *g, FILE *to)
{
    const char *before = "\n";
    for (int k = 0; k < a->what->operands; k++)
        if (exact_is_code(g->words[k])) {
            fprintf(to, "%s%s is the code of %.9g in %s\n", before, g->words[k], g->x[k].nearest,
                    g->formats.codes->name);
            before = "";
        }
}

/* The operands that are marked by a star, as they were typed. */
static void print_rounded(const answer *answers, size_t n, const given *g, FILE *to)
{
    const char *mark = "\n* typed as ";
    for (int k = 0; k < answers[0].what->operands; k++) {
        int rounded = 0;
        for (size_t i = 0; i < n; i++)
            rounded |= answers[i].rounded[k];
        if (rounded)
            fprintf(to, "%s%s", mark, g->words[k]);
        mark = rounded ? ", " : mark;
    }
    if (mark[0] != ',')
        return;
    if (g->formats.same)
        fputs("; rounded to the format of the result first (--operands same)\n", to);
    else if (g->formats.format)
        fprintf(to, "; rounded to %s first (--operands)\n", g->formats.format->name);
    else
        fprintf(to, "; %s takes the nearest number of binary64\n", answers[0].what->name);
}

static void print_answers(const answer *answers, size_t n, const given *g, report_style style, FILE *to)
{
    record_writer w = {.kind = &calc_kind, .to = to, .style = style};
    record_begin(&w);
    for (size_t i = 0; i < n; i++)
        write_answer(&w, &answers[i], g);
    if (style == REPORT_TEXT) {
        table_print(w.rows, to, "");
        print_codes(&answers[0], g, to);
        print_rounded(answers, n, g, to);
    }
    record_end(&w);
}

/* ---- the command ---- */

/* Negative numbers look like options: a blank in front of them hides them from their parser. Returns the
 * number of words, or -1 after a message. */
enum { WORDS_MOST = 64, WORD_SIZE = 64, FORMATS_MOST = 64 };

static int hide_numbers(char *words[WORDS_MOST + 1], char hidden[WORDS_MOST][WORD_SIZE], int argc, char **argv)
{
    if (argc > WORDS_MOST) {
        (void)fail(EXIT_USAGE, "calc: too many words");
        return -1;
    }
    for (int i = 0; i < argc; i++) {
        const char *s = argv[i];
        const int number = s[0] == '-' &&
                           (strchr("0123456789.", s[1]) || strcmp(s, "-inf") == 0 || strcmp(s, "-nan") == 0);
        words[i] = argv[i];
        if (number && s[1] && strlen(s) + 2 < WORD_SIZE) {
            snprintf(hidden[i], WORD_SIZE, " %s", s);
            words[i] = hidden[i];
        }
    }
    words[argc] = NULL;
    return argc;
}

static int check_operands(const calculation *c, int n)
{
    return n == c->operands ? 0
                            : fail(EXIT_USAGE, "calc: %s takes %d operand%s", c->name, c->operands,
                                   text_plural((uint64_t)c->operands));
}

static const char one_format[] = "calc: the result of a file is a file of one format, as -f fp16";

/* Operands that are no numbers are files, if there is a file to write. */
static int check_files(const report_options *form, const char *formats, const char *file)
{
    if (!form->path)
        return fail(EXIT_USAGE,
                    "calc: '%s' is not a number of the range of binary64, inf or nan; the result of a file is a file: "
                    "--output FILE",
                    file);
    if (form->json || form->ndjson || form->csv)
        return fail(EXIT_USAGE, "calc: --json, --ndjson and --csv are for numbers; the result of a file is a file");
    return formats ? 0 : fail(EXIT_USAGE, one_format);
}

/* The numbers; without the blanks that hid them. */
static int read_operands(given *g, const calculation *c)
{
    int code = 0;
    for (int i = 0; i < c->operands && !code; i++) {
        g->words[i] += strspn(g->words[i], " ");
        code = calc_operand_value(&g->x[i], &g->formats, g->words[i]);
    }
    return code;
}

/* All formats side by side. */
static int calculate_numbers(const calculation *c, const target_list *targets, const operand_formats *formats,
                             char **words, uint64_t seed, const report_options *form)
{
    static answer answers[FORMATS_MOST];
    static given g;
    output out;
    g.words = words;
    g.formats = *formats;
    if (targets->count > FORMATS_MOST)
        return fail(EXIT_USAGE, "calc: at most %d formats", FORMATS_MOST);
    int code = read_operands(&g, c);
    if (code || (code = report_options_open(&out, form)))
        return code;
    for (size_t i = 0; i < targets->count; i++)
        calculate(&answers[i], &targets->items[i], c, &g, seed);
    print_answers(answers, targets->count, &g, report_options_style(form), out.file);
    return output_close(&out);
}

/* What --operands and -f say of operands. */
static int choose_formats(operand_formats *f, mpsim_format *codes, const char *operands, const target_list *targets,
                          int named)
{
    const int same = operands && strcmp(operands, "same") == 0;
    *f = (operand_formats){NULL, NULL, same};
    if (operands && !same && format_read(codes, "calc: --operands", operands))
        return EXIT_USAGE;
    if (operands && !same)
        f->format = codes;
    if (f->format || (named && target_list_one_format(codes, targets)))
        f->codes = codes;
    return 0;
}

int cmd_calc(const command *self, int argc, char **argv)
{
    target_options to = {0};
    report_options form = {0};
    const char *operands = NULL;
    int first;
    const option_row table_of_options[] = {
        {'f', "format", OPTION_STRING, &to.formats, "LIST",
         "formats of the result, as NAME or NAME@PRESET (default: six common ones)"},
        {0, "operands", OPTION_STRING, &operands, "FORMAT",
         "format of the operands: numbers are rounded to it first, 0x3c00 is a code of it; same: the "
         "format of each result (default: exact numbers, or as stored in a file; codes of the only format "
         "in -f)"},
        TARGET_OPTION_ROWS(to),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(form, "mpsim.calc/1"),
        NDJSON_OPTION_ROW(form, "format"),
        CSV_OPTION_ROW(form, ""),
        OUTPUT_OPTION_ROW(form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    char *words[WORDS_MOST + 1];
    char hidden[WORDS_MOST][WORD_SIZE];
    if (hide_numbers(words, hidden, argc, argv) < 0)
        return EXIT_USAGE;
    argv = words;
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0)
        return code;
    calculation what;
    mpsim_format codes;
    operand_formats formats;
    target_list targets = {0};
    if (first == argc || calc_parse(&what, argv[first]))
        return fail(EXIT_USAGE, "calc: expected operation convert, add, sub, mul, div, sqrt, fma, exp, log or tanh%s%s",
                    first < argc ? ", not " : "", first < argc ? argv[first] : "");
    char **operand_words = argv + first + 1;
    const int n = argc - first - 1;
    const char *const file = calc_operand_file(operand_words, n);
    if (!(code = check_operands(&what, n)) && !(code = file ? check_files(&form, to.formats, file) : 0) &&
        !(code = target_list_make(&targets, &to, "calc", default_formats)) &&
        !(code = file && targets.count != 1 ? fail(EXIT_USAGE, one_format) : 0) &&
        !(code = choose_formats(&formats, &codes, operands, &targets, to.formats != NULL)))
        code = file ? calc_files(&what, &targets.items[0], &formats, to.seed, operand_words, form.path)
                    : calculate_numbers(&what, &targets, &formats, operand_words, to.seed, &form);
    target_list_clear(&targets);
    return code;
}
