/* cmd.c -- mpsim calc: one operation, correctly rounded, in every format that is named. */
#include "../commands.h"
#include "calc.h"
#include "../cli/element.h"
#include "../cli/options.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../cli/target.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char more[] =
    "OP is convert, add, sub, mul, div, sqrt, fma (x y + z), exp, log (natural) or tanh. Each operand\n"
    "is rounded to the operands' format first, to nearest even; a star marks one that was not a number\n"
    "of it. The exact result is then rounded once: exp, log and tanh, too, are correctly rounded, which\n"
    "those of a framework or a GPU need not be.\n"
    "\n"
    "Operands that are no numbers are files of tensors: the operation is done on each element, and\n"
    "-o FILE (safetensors, or npy) gets the result. A number meets every element. Tensors of several\n"
    "files meet by their names; their shapes are equal.\n"
    "\n"
    "Examples:\n"
    "  mpsim calc div 1 3 -f fp16,bf16,e4m3\n"
    "  mpsim calc fma 0x1.eacp+7 0x1.3f4p+4 0x1.c04p+14 -f fp16\n"
    "  mpsim calc add 448 32 -f e4m3@cuda,e4m3@ocp          what an overflow becomes\n"
    "  mpsim calc exp 11.1 -f fp16,bf16,binary64\n"
    "  mpsim calc mul 3 5 --operands e2m1 -f e4m3,fp16 -r toward-zero\n"
    "  mpsim calc sub after.safetensors before.safetensors -f bf16 -o moved.safetensors\n";

static const char default_formats[] = "binary32,tf32,fp16,bf16,e4m3,e5m2";

typedef struct answer {
    const target *t;
    const calculation *what;
    mpsim_arith o;
    uint64_t operand[3], code;
    double value[3], result;
    int inexact[3]; /* the operand was rounded */
    unsigned flags;
} answer;

static unsigned ieee_underflow(const answer *a, uint32_t random)
{
    const unsigned tiny = mpsim_arith_tiny(&a->o, a->operand[0], a->operand[1], a->operand[2], random);
    return element_ieee_underflow(a->flags, tiny);
}

static void calculate(answer *a, const target *t, const calculation *c, const mpsim_format *operands, const double *x,
                      uint64_t seed)
{
    const mpsim_format *f = operands ? operands : &t->format;
    mpsim_rounding nearest;
    calculation_arith(c, t, operands, &a->o, &nearest);
    a->t = t;
    a->what = c;
    for (int i = 0; i < 3; i++) {
        a->operand[i] = mpsim_encode_f64(f, &nearest, x[i], 0, NULL);
        a->value[i] = mpsim_decode(f, a->operand[i]);
        a->inexact[i] = !(a->value[i] == x[i] || (isnan(x[i]) && isnan(a->value[i])));
    }
    const uint32_t random = mpsim_rng_word(seed, 0, 0);
    a->code = c->is_function
                  ? mpsim_function_apply(c->function, f, &t->format, &a->o.rounding, a->operand[0], random, &a->flags)
                  : mpsim_arith_apply(&a->o, a->operand[0], a->operand[1], a->operand[2], random, &a->flags);
    if (!c->is_function)
        a->flags |= ieee_underflow(a, random);
    a->result = mpsim_decode(&t->format, a->code);
}

/* ---- reports ---- */

static void print_row(table *t, const answer *a)
{
    char code[24], flags[192];
    const int operands = a->what->operands;
    table_cell(t, "%s", a->t->label);
    for (int i = 0; i < 3; i++)
        if (i < operands)
            table_cell(t, "%.9g%s", a->value[i], a->inexact[i] ? "*" : "");
        else
            table_cell(t, "%s", "");
    table_cell(t, "%.17g", a->result);
    table_cell(t, "%a", a->result);
    table_cell(t, "%s", element_code_text(code, &a->t->format, a->code));
    table_cell(t, "%s", element_flags_text(flags, sizeof flags, a->flags));
}

static json_t *answer_json(const answer *a, char **typed)
{
    char code[24];
    json_t *v = json_object(), *operands = json_array(), *words = json_array(), *flags = json_array();
    for (int i = 0; i < a->what->operands; i++) {
        json_array_append_new(operands, json_of_double(a->value[i]));
        json_array_append_new(words, json_string(typed[i] + strspn(typed[i], " ")));
    }
    for (const element_flag *f = element_flags; f->name; f++)
        if (a->flags & f->flag)
            json_array_append_new(flags, json_string(f->name));
    json_object_set_new(v, "operation", json_string(a->what->name));
    json_object_set_new(v, "format", json_string(a->t->format.name));
    json_object_set_new(v, "preset", json_string(a->t->preset));
    json_object_set_new(v, "round", json_string(mpsim_round_mode_name((mpsim_round_mode)a->o.rounding.mode)));
    json_object_set_new(v, "operand_format", json_string(a->o.operand[0].name));
    json_object_set_new(v, "typed", words);
    json_object_set_new(v, "operands", operands);
    json_object_set_new(v, "result", json_of_double(a->result));
    json_object_set_new(v, "code", json_string(element_code_text(code, &a->t->format, a->code)));
    json_object_set_new(v, "flags", flags);
    return v;
}

static void print_json(const answer *answers, size_t n, char **typed, FILE *to)
{
    json_begin(to, "mpsim.calc/1");
    fputs("\"results\": [", to);
    for (size_t i = 0; i < n; i++) {
        json_item(to, REPORT_JSON, i, answer_json(&answers[i], typed));
    }
    fputs("]}\n", to);
}

/* The operands that a format has not, as they were typed. */
static void print_typed(const answer *answers, size_t n, char **typed, FILE *to)
{
    const char *mark = "\n* typed as ";
    for (int k = 0; k < answers[0].what->operands; k++) {
        int rounded = 0;
        for (size_t i = 0; i < n; i++)
            rounded |= answers[i].inexact[k];
        if (rounded)
            fprintf(to, "%s%s", mark, typed[k] + strspn(typed[k], " "));
        mark = rounded ? ", " : mark;
    }
    if (mark[0] == ',')
        fputs("; not a number of the operands' format, and rounded to it\n", to);
}

static void print_text(const answer *answers, size_t n, char **typed, FILE *to)
{
    table *t = table_new("<format|>x|>y|>z|>result|<|<code|<flags");
    for (size_t i = 0; i < n; i++)
        print_row(t, &answers[i]);
    table_print(t, to, "");
    table_free(t);
    print_typed(answers, n, typed, to);
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
                    "calc: '%s' is not a number of binary64, inf or nan; the result of a file is a file: --output FILE",
                    file);
    if (form->json)
        return fail(EXIT_USAGE, "calc: --json is for numbers; the result of a file is a file");
    return formats ? 0 : fail(EXIT_USAGE, one_format);
}

/* All formats side by side. */
static int calculate_numbers(const calculation *c, const target_list *targets, const mpsim_format *operands,
                             char **words, uint64_t seed, const report_options *form)
{
    static answer answers[FORMATS_MOST];
    double x[3] = {0, 0, 0};
    output out;
    if (targets->count > FORMATS_MOST)
        return fail(EXIT_USAGE, "calc: at most %d formats", FORMATS_MOST);
    for (int i = 0; i < c->operands; i++)
        (void)operand_number(&x[i], words[i]);
    const int code = output_open(&out, form->path);
    if (code)
        return code;
    for (size_t i = 0; i < targets->count; i++)
        calculate(&answers[i], &targets->items[i], c, operands, x, seed);
    (form->json ? print_json : print_text)(answers, targets->count, words, out.file);
    return output_close(&out);
}

int cmd_calc(const command *self, int argc, char **argv)
{
    target_options to = {0};
    report_options form = {0};
    const char *operands = NULL;
    int first;
    const option_row table_of_options[] = {
        {'f', "format", OPTION_STRING, &to.formats, "LIST",
         "formats of the result, and of the operands; NAME@PRESET (default: six common ones)"},
        {0, "operands", OPTION_STRING, &operands, "FORMAT", "format of the operands instead"},
        TARGET_OPTION_ROWS(to),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(form, "mpsim.calc/1"),
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
    mpsim_format f;
    target_list targets = {0};
    if (first == argc || calculation_parse(&what, argv[first]))
        return fail(EXIT_USAGE, "calc: the operation is convert, add, sub, mul, div, sqrt, fma, exp, log or tanh%s%s",
                    first < argc ? ", not " : "", first < argc ? argv[first] : "");
    if (operands && mpsim_format_parse(&f, operands) != MPSIM_OK)
        return fail(EXIT_USAGE, "calc: --operands: '%s' is not a format", operands);
    char **given = argv + first + 1;
    const int n = argc - first - 1;
    const char *const file = operand_file(given, n);
    if (!(code = check_operands(&what, n)) && !(code = file ? check_files(&form, to.formats, file) : 0) &&
        !(code = target_list_make(&targets, &to, "calc", default_formats)) &&
        !(code = file && targets.count != 1 ? fail(EXIT_USAGE, one_format) : 0))
        code = file ? calculate_files(&what, &targets.items[0], operands ? &f : NULL, to.seed, given, form.path)
                    : calculate_numbers(&what, &targets, operands ? &f : NULL, given, to.seed, &form);
    target_list_clear(&targets);
    return code;
}
