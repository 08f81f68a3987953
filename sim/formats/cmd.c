/* cmd.c -- mpsim formats: the table of formats, presets, modes; lint of a constant. */
#include "../array/need.h"
#include "../commands.h"
#include "../cli/element.h"
#include "../cli/options.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../cli/target.h"
#include "../dot/models.h"
#include "positions.h"
#include "recipes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char more[] = "A NAME is one of the table or an alias of it (half, float8_e4m3fn, F8_E4M3, ...), a\n"
                           "P3109 format such as binary6p3se, or eXmY with X exponent and Y significand bits, laid\n"
                           "out as IEEE 754 does unless options follow:\n"
                           "eXmY[:ieee|:fn|:fnuz|:finite][:inf|:noinf][:bias=N][:unsigned].\n"
                           "NAME@PRESET takes another preset for --check.\n"
                           "\n"
                           "Examples:\n"
                           "  mpsim formats fp16 e4m3 e5m2      compare three formats\n"
                           "  mpsim formats --check 1e-8 fp16   does Adam's eps survive fp16?\n"
                           "  mpsim formats --positions 8192 bf16 fp16   position ids cast to a narrow format\n"
                           "  mpsim formats --check 465 e4m3 e4m3@cuda\n"
                           "  mpsim formats e5m7:fn --json      a format of your own\n"
                           "  mpsim formats --models 'hopper-*'  how tensor cores of that kind add\n"
                           "  mpsim formats --recipes 'mxfp8:*'  the block recipes of that kind\n";

static const char *const nan_names[] = {"none", "top", "-0"};
static const char *const zero_names[] = {"+-0", "0", "none"};

/* Decimal digits of a normal number: its significand bits, the leading one included, times log10 2; to hundredths, so that no C library
 * differs. */
static double decimal_digits(const mpsim_format *f)
{
    return (double)((30103LL * (f->mbits + 1) + 500) / 1000) / 100;
}

static json_t *format_json(const mpsim_format *f)
{
    char max[24], nan[24];
    const double digits = decimal_digits(f);
    snprintf(max, sizeof max, "0x%" PRIx64, f->max_finite);
    snprintf(nan, sizeof nan, "0x%" PRIx64, f->nan_code);
    json_t *v = json_object();
    json_object_set_new(v, "name", json_string(f->name));
    json_object_set_new(v, "aliases", json_string(f->aliases));
    json_object_set_new(v, "bits", json_integer(f->bits));
    json_object_set_new(v, "exponent_bits", json_integer(f->ebits));
    json_object_set_new(v, "significand_bits", json_integer(f->mbits));
    json_object_set_new(v, "decimal_digits", json_of_double(digits));
    json_object_set_new(v, "bias", json_integer(f->bias));
    json_object_set_new(v, "signed", json_boolean(mpsim_format_is_signed(f)));
    json_object_set_new(v, "inf", json_boolean(f->inf));
    json_object_set_new(v, "nan", json_string(nan_names[f->nan]));
    json_object_set_new(v, "zero", json_string(zero_names[f->zero]));
    json_object_set_new(v, "max", json_of_double(mpsim_format_max(f)));
    json_object_set_new(v, "min_normal", json_of_double(mpsim_format_min_normal(f)));
    json_object_set_new(v, "min_positive", json_of_double(mpsim_format_min_positive(f)));
    json_object_set_new(v, "epsilon", json_of_double(mpsim_format_epsilon(f)));
    json_object_set_new(v, "max_finite_code", json_string(max));
    json_object_set_new(v, "nan_code", f->nan ? json_string(nan) : json_null());
    json_object_set_new(v, "source", json_string(f->source));
    return v;
}

/* ---- the table ---- */

static const char text_columns[] =
    "<format|>bits|>e|>m|>digits|>bias|<inf|<nan|<zero|>max|>min normal|>min positive|>epsilon|<source";

static void print_formats(const target_list *list, report_style style, FILE *to)
{
    const size_t n = list->count;
    char a[32], b[32], c[32], d[32];
    if (style == REPORT_JSON) {
        json_begin(to, "mpsim.formats/1");
        fputs("\"formats\": [", to);
        for (size_t i = 0; i < n; i++) {
            json_item(to, style, i, format_json(&list->items[i].format));
        }
        fputs("]}\n", to);
        return;
    }
    if (style == REPORT_CSV)
        fputs("name,bits,exponent_bits,significand_bits,bias,inf,nan,zero,max,min_normal,"
              "min_positive,epsilon,source,signed,max_finite_code,decimal_digits\n",
              to);
    table *t = style == REPORT_TEXT ? table_new(text_columns) : NULL;
    for (size_t i = 0; i < n; i++) {
        const mpsim_format *f = &list->items[i].format;
        const double max = mpsim_format_max(f), normal = mpsim_format_min_normal(f);
        const double least = mpsim_format_min_positive(f), epsilon = mpsim_format_epsilon(f);
        if (style == REPORT_NDJSON) {
            json_item(to, style, i, format_json(f));
        } else if (style == REPORT_CSV) {
            csv_text(to, f->name);
            fprintf(to, ",%d,%d,%d,%d,%s,%s,%s,%.17g,%.17g,%.17g,%.17g,", f->bits, f->ebits, f->mbits, f->bias,
                    f->inf ? "yes" : "no", nan_names[f->nan], zero_names[f->zero], max, normal, least, epsilon);
            csv_text(to, f->source);
            fprintf(to, ",%s,0x%" PRIx64 ",", mpsim_format_is_signed(f) ? "yes" : "no", f->max_finite);
            fprintf(to, "%.2f\n", decimal_digits(f));
        } else {
            table_cell(t, "%s", f->name);
            table_cell(t, "%d", f->bits);
            table_cell(t, "%d", f->ebits);
            table_cell(t, "%d", f->mbits);
            table_cell(t, "%.1f", decimal_digits(f));
            table_cell(t, "%d", f->bias);
            table_cell(t, "%s", f->inf ? "yes" : "no");
            table_cell(t, "%s", nan_names[f->nan]);
            table_cell(t, "%s", zero_names[f->zero]);
            table_cell(t, "%s", text_number(a, max));
            table_cell(t, "%s", text_number(b, normal));
            table_cell(t, "%s", text_number(c, least));
            table_cell(t, "%s", text_number(d, epsilon));
            table_cell(t, "%s", f->source);
        }
    }
    if (t)
        table_print(t, to, "");
    table_free(t);
}

/* ---- presets and modes ---- */

/* What the fields of a rounding say; an empty text is the default's. */
static const char *const negative_names[] = {"", "smallest number", "sign ignored"};
static const char *const no_nan_names[] = {"", "zero", "zero of the other sign"};
static const char *const no_zero_names[] = {"", "NaN", "NaN; tiny: smallest number"};

static void print_choices(table *t, const char *preset, const char *formats, const mpsim_rounding *r,
                          const char *source)
{
    static const char *const overflow[] = {"Inf or NaN", "largest"};
    static const char *const infinity[] = {"Inf or NaN", "largest"};
    static const char *const nan[] = {"sign kept",
                                      "positive",
                                      "payload kept",
                                      "all ones",
                                      "all ones, sign kept",
                                      "all ones, negative",
                                      "all ones; nearest-away: leading bits"};
    table_cell(t, "%s", preset);
    table_cell(t, "%s", formats);
    table_cell(t, "%s",
               r->no_inf == MPSIM_NO_INF_MAX && r->overflow == MPSIM_OVERFLOW_INF ? "Inf or largest"
                                                                                  : overflow[r->overflow]);
    table_cell(t, "%s",
               r->no_inf == MPSIM_NO_INF_MAX && r->infinity == MPSIM_INFINITY_KEEP ? "Inf or largest"
                                                                                   : infinity[r->infinity]);
    table_cell(t, "%s", nan[r->nan]);
    table_cell(t, "%s", negative_names[r->negative]);
    table_cell(t, "%s", no_nan_names[r->no_nan]);
    table_cell(t, "%s", no_zero_names[r->no_zero]);
    table_cell(t, "%s%s%s", r->mode ? mpsim_round_mode_name((mpsim_round_mode)r->mode) : "",
               r->mode && r->via_binary32 ? ", " : "", r->via_binary32 ? "binary64 by way of binary32" : "");
    table_cell(t, "%s", source);
}

/* Whether two roundings agree in what a preset is. */
static int same_choices(const mpsim_rounding *a, const mpsim_rounding *b)
{
    return a->overflow == b->overflow && a->infinity == b->infinity && a->no_inf == b->no_inf && a->nan == b->nan &&
           a->no_nan == b->no_nan && a->negative == b->negative && a->no_zero == b->no_zero && a->mode == b->mode &&
           a->via_binary32 == b->via_binary32;
}

static void print_presets(FILE *to)
{
    table *t = table_new("<preset|<formats|<overflow becomes|<infinity becomes|<NaN|"
                         "<negative, if unsigned|<NaN, if there is none|<zero, if there is none|<rounding|<source");
    for (size_t i = 0; i < mpsim_preset_count(); i++) {
        const mpsim_preset *p = mpsim_preset_at(i);
        const int same = same_choices(&p->narrow, &p->wide);
        print_choices(t, p->name, same ? "all" : "up to 8 bits", &p->narrow, p->source);
        for (int k = 0; k < MPSIM_PRESET_EXCEPTIONS; k++)
            if (p->exceptions[k].format)
                print_choices(t, "", p->exceptions[k].format, &p->exceptions[k].rounding, "");
        if (!same)
            print_choices(t, "", "wider", &p->wide, "");
    }
    fputs("What the same format name means in different places (-p NAME, or FORMAT@NAME).\n"
          "Where nothing is said, a negative number in an unsigned format is NaN, and in\n"
          "formats without one NaN becomes the largest and zero the smallest number; rounding\n"
          "is to nearest even, unless -r says otherwise.\n\n",
          to);
    table_print(t, to, "");
    table_free(t);
}

static void print_modes(FILE *to)
{
    fputs("Rounding modes (-r NAME); stochastic ones may end in :N, so many random bits:\n\n", to);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        fprintf(to, "  %s\n", mpsim_round_mode_name((mpsim_round_mode)m));
}

/* ---- lint ---- */

/* What became of a constant. */
typedef struct finding {
    const char *label;
    char code[24], value[32], verdict[64];
    double y, error; /* error: relative, or NaN */
    int lost;
    const char *choice; /* that the specification leaves, if it matters here; or NULL */
} finding;

/* What a specification leaves open where the flag is raised, and who chose how. */
static const struct {
    const char *format;
    unsigned flag;
    const char *text;
} choices[] = {
    {"e4m3", MPSIM_FLAG_OVERFLOW, "OCP OFP8 1.0 leaves overflow open: NaN, or saturation (@ocp-sat, @cuda, @pytorch)"},
    {"e5m2", MPSIM_FLAG_OVERFLOW, "OCP OFP8 1.0 leaves overflow open: infinity, or saturation (@ocp-sat, @cuda)"},
    {"e8m0", MPSIM_FLAG_INEXACT,
     "OCP MX 1.0 leaves the rounding open: to nearest, halves up (@pytorch, @ml-dtypes), up (@cuda, @onnx)"},
    {"tf32", MPSIM_FLAG_INEXACT,
     "no specification says the rounding: cvt.rna.tf32 is -r rna, tensor cores drop bits as -r rtz"},
};

/* Of a target that did not choose. */
static const char *open_choice(const target *t, unsigned flags)
{
    if (strcmp(t->preset, "ieee") != 0 || t->rounding.overflow == MPSIM_OVERFLOW_MAX ||
        t->rounding.mode != MPSIM_ROUND_NEAREST_EVEN || strchr(t->label, '@'))
        return NULL;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strcmp(choices[i].format, t->format.name) == 0 && flags & choices[i].flag)
            return choices[i].text;
    return NULL;
}

static void print_choice_notes(const target_list *list, const char *const *notes, FILE *to)
{
    for (size_t i = 0; i < list->count; i++)
        if (notes[i])
            fprintf(to, "%s: %s\n", list->items[i].format.name, notes[i]);
}

/* The shortest decimal that reads back as x. */
static void exact_text(char *out, size_t size, double x)
{
    int digits = 1;
    if (isnan(x)) /* and not "-nan" */
        snprintf(out, size, "nan");
    else if (fabs(x) < 1e15 && trunc(x) == x) /* and not "1e+02" */
        snprintf(out, size, "%.0f", x);
    else
        do
            snprintf(out, size, "%.*g", digits, x);
        while (digits++ < 17 && strtod(out, NULL) != x);
}

/* clang-format off */
enum { LOST_NEGATIVE, LOST_ZERO, LOST_SMALL, LOST_UNDERFLOW, LOST_MAX, LOST_INF, LOST_NAN,
       LOSSES, SUBNORMAL = LOSSES, SUBNORMAL_EXACT, ROUNDED, EXACT };
/* clang-format on */

/* %s is the value. */
static const char *const verdicts[] = {
    [LOST_NEGATIVE] = "LOST: negative, the format is unsigned",
    [LOST_ZERO] = "LOST: the format has no zero",
    [LOST_SMALL] = "LOST: below the smallest number",
    [LOST_UNDERFLOW] = "LOST: underflows to zero",
    [LOST_MAX] = "LOST: saturates at %s",
    [LOST_INF] = "LOST: overflows to infinity",
    [LOST_NAN] = "LOST: overflows to NaN",
    [SUBNORMAL] = "subnormal: precision is lost",
    [SUBNORMAL_EXACT] = "exact (subnormal)",
    [ROUNDED] = "rounded",
    [EXACT] = "exact",
};

/* The verdict on x that became y. */
static int judge(const mpsim_format *f, double x, double y, unsigned flags)
{
    const int no_zero = f->zero == MPSIM_ZERO_NONE;
    if (x < 0 && !mpsim_format_is_signed(f) && !(flags & MPSIM_FLAG_UNDERFLOW))
        return LOST_NEGATIVE;
    if (no_zero && x == 0)
        return LOST_ZERO;
    if (no_zero && 2 * x <= mpsim_format_min_positive(f))
        return LOST_SMALL;
    if (flags & MPSIM_FLAG_UNDERFLOW)
        return LOST_UNDERFLOW;
    if (flags & MPSIM_FLAG_OVERFLOW)
        return isnan(y) ? LOST_NAN : isinf(y) ? LOST_INF : LOST_MAX;
    if (flags & MPSIM_FLAG_SUBNORMAL)
        return flags & MPSIM_FLAG_INEXACT ? SUBNORMAL : SUBNORMAL_EXACT;
    return flags & MPSIM_FLAG_INEXACT ? ROUNDED : EXACT;
}

/* The constant of --check. */
typedef struct constant {
    const char *typed;
    int is_code;
    mpsim_format codes; /* of a code                        */
    mpsim_format from;  /* of --from                        */
    exact_number x;     /* what is rounded                  */
    int rounded;        /* to the format of --from, by that */
    uint64_t seed;
} constant;

/* |y - x| / |x|; x is finite. NaN: there is none. */
static double relative_error(const exact_number *x, double y)
{
    exact_number value, error, relative;
    if (!isfinite(y))
        return (double)NAN;
    exact_of(&value, y);
    exact_combine(&error, MPSIM_OP_SUB, &value, x);
    if (error.top.n == 0 || x->top.n == 0)
        return error.top.n == 0 ? 0 : (double)NAN;
    exact_combine(&relative, MPSIM_OP_DIV, &error, x);
    return fabs(relative.nearest);
}

static finding check_target(const target *t, const constant *c)
{
    const mpsim_format *f = &t->format;
    const mpsim_rounding r = target_rounding(t, mpsim_format_find("binary64"));
    unsigned flags;
    const uint64_t code = exact_encode(f, &r, &c->x, mpsim_rng_word(c->seed, 0, 0), &flags, NULL);
    finding v = {.label = t->label, .y = mpsim_decode(f, code), .choice = open_choice(t, flags)};
    const int verdict = judge(f, c->x.nearest, v.y, flags);
    v.lost = verdict < LOSSES;
    v.error = relative_error(&c->x, v.y);
    exact_text(v.value, sizeof v.value, v.y);
    snprintf(v.code, sizeof v.code, "0x%0*" PRIx64, (f->bits + 3) / 4, code);
    snprintf(v.verdict, sizeof v.verdict, verdicts[verdict], v.value);
    return v;
}

static json_t *finding_json(const finding *v, const constant *c)
{
    json_t *o = json_object();
    json_object_set_new(o, "constant", json_of_double(c->x.nearest));
    json_object_set_new(o, "format", json_string(v->label));
    json_object_set_new(o, "code", json_string(v->code));
    json_object_set_new(o, "value", json_of_double(v->y));
    json_object_set_new(o, "rel_err", isnan(v->error) ? json_null() : json_of_double(v->error));
    json_object_set_new(o, "verdict", json_string(v->verdict));
    json_object_set_new(o, "lost", json_boolean(v->lost));
    json_object_set_new(o, "typed", json_string(c->typed));
    json_object_set_new(o, "code_of", c->is_code ? json_string(c->codes.name) : json_null());
    return o;
}

static void finding_csv(const finding *v, double x, FILE *to)
{
    csv_double(to, x);
    fputc(',', to);
    csv_text(to, v->label);
    fprintf(to, ",%s,", v->code);
    csv_double(to, v->y);
    fputc(',', to);
    if (!isnan(v->error))
        csv_double(to, v->error);
    fputc(',', to);
    csv_text(to, v->verdict);
    fprintf(to, ",%s\n", v->lost ? "yes" : "no");
}

static void finding_row(const finding *v, table *t)
{
    char error[32];
    table_cell(t, "%s", v->label);
    table_cell(t, "%s", v->code);
    table_cell(t, "%s", v->value);
    table_cell(t, "%s", isnan(v->error) ? "" : text_number(error, v->error));
    table_cell(t, "%s", v->verdict);
}

/* What the constant is, where that is not what was typed. */
static void print_constant(const constant *c, FILE *to)
{
    char value[32];
    exact_text(value, sizeof value, c->x.nearest);
    if (c->is_code)
        fprintf(to, "%s is the code of %s in %s\n\n", c->typed, value, c->codes.name);
    else if (c->rounded)
        fprintf(to, "%s is %s in %s (--from)\n\n", c->typed, value, c->from.name);
}

/* What becomes of the constant in each target; *lost if it is lost in one. */
static void print_check(const constant *c, const target_list *list, report_style style, FILE *to, int *lost)
{
    table *t = table_new("<format|<becomes|>exact value|>relative error|<verdict");
    const char **notes = need_memory(list->count, sizeof *notes);
    if (style == REPORT_JSON) {
        json_begin(to, "mpsim.check/1");
        fputs("\"results\": [", to);
    }
    if (style == REPORT_TEXT)
        print_constant(c, to);
    if (style == REPORT_CSV)
        fputs("constant,format,code,value,rel_err,verdict,lost\n", to);
    for (size_t i = 0; i < list->count; i++) {
        const finding v = check_target(&list->items[i], c);
        *lost |= v.lost;
        notes[i] = v.choice;
        if (style == REPORT_TEXT)
            finding_row(&v, t);
        else if (style == REPORT_CSV)
            finding_csv(&v, c->x.nearest, to);
        else
            json_item(to, style, i, finding_json(&v, c));
    }
    if (style == REPORT_JSON)
        fputs("]}\n", to);
    if (style == REPORT_TEXT) {
        table_print(t, to, "");
        print_choice_notes(list, notes, to);
    }
    free(notes);
    table_free(t);
}

/* ---- command line ---- */

/* Texts as one list "a,b,c", allocated; `next` gives them one by one, then NULL. */
static char *join(const char *(*next)(const void *from, size_t i), const void *from)
{
    size_t size = 1;
    for (size_t i = 0; next(from, i); i++)
        size += strlen(next(from, i)) + 1;
    char *list = need_memory(size, 1), *at = list;
    for (size_t i = 0; next(from, i); i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), next(from, i));
    return list;
}

static const char *next_operand(const void *from, size_t i)
{
    return ((char *const *)from)[i]; /* argv ends with NULL */
}

static const char *next_row(const void *from, size_t i)
{
    (void)from;
    const mpsim_format *f = mpsim_format_at(i);
    return f ? f->name : NULL;
}

static const char *next_recipe(const void *from, size_t i)
{
    (void)from;
    const mpsim_block_recipe *b = mpsim_block_at(i);
    return b ? b->name : NULL;
}

/* The formats, or the block recipes, that the operands name, or all of the table. */
static int make_list(target_list *l, target_options *o, char **operands)
{
    char *formats = operands[0] ? join(next_operand, operands) : join(o->recipes ? next_recipe : next_row, NULL);
    o->formats = formats;
    const int code = target_list_make(l, o, "formats", NULL);
    o->formats = NULL;
    free(formats);
    return code;
}

/* Options that say how a constant is rounded, where there is none. */
static int has_rounding(const target_options *o)
{
    return o->round || o->preset || o->overflow || o->flush_output || o->flush_input || o->seed;
}

/* What --check and --from say, beside formats of which a code may be. */
static int parse_constant(constant *c, const char *text, const char *from, const target_list *list)
{
    element_kind kind = {.format = from ? &c->from : NULL, .codes = &c->codes, .ask = "--from FORMAT"};
    element e;
    if (from && format_read(&c->from, "formats: --from", from))
        return EXIT_USAGE;
    if (from)
        c->codes = c->from;
    else if (!target_list_one_format(&c->codes, list))
        kind.codes = NULL;
    const int code = element_parse(&e, "formats", "--check", &kind, text);
    if (code)
        return code;
    element_exact(&c->x, &e);
    c->typed = text;
    c->is_code = e.is_code;
    c->rounded = e.rounded;
    return isfinite(e.given) && isfinite(e.value)
               ? 0
               : fail(EXIT_USAGE, "formats: --check: '%s' is not a finite number", text);
}

/* --models: those that the operands name, or all. */
static int list_models(char **operands, const char *path, report_style style)
{
    model_list list = {0};
    output out;
    char *names = operands[0] ? join(next_operand, operands) : need_text("all");
    int code = model_list_make(&list, "formats", names, NULL, NULL);
    if (!code && !(code = output_open(&out, path))) {
        models_print(&list, style, out.file);
        code = output_close(&out);
    }
    model_list_clear(&list);
    free(names);
    return code;
}

/* --recipes: those that the operands name, or all. */
static int list_recipes(char **operands, const char *path, report_style style)
{
    target_list list = {0};
    target_options to = {.recipes = 1};
    output out;
    int code = make_list(&list, &to, operands);
    if (!code && list.count)
        code = fail(EXIT_USAGE, "formats: --recipes: '%s' is a format, not a recipe", list.items[0].label);
    if (!code && !(code = output_open(&out, path))) {
        recipes_print(&list.blocks, style, out.file);
        code = output_close(&out);
    }
    target_list_clear(&list);
    return code;
}

int cmd_formats(const command *self, int argc, char **argv)
{
    int presets = 0, modes = 0, models = 0, recipes = 0, lost = 0, first;
    const char *check = NULL, *from = NULL;
    uint64_t positions = 0;
    constant x = {0};
    target_options to = {0};
    report_options form = {0};
    report_style style;
    const option_row table_of_options[] = {
        {0, "presets", OPTION_FLAG, &presets, NULL, "list what real stacks do under one name"},
        {0, "modes", OPTION_FLAG, &modes, NULL, "list rounding modes"},
        {0, "models", OPTION_FLAG, &models, NULL,
         "list accumulation models of dot products; a NAME is a model then, or a pattern"},
        {0, "recipes", OPTION_FLAG, &recipes, NULL,
         "list block recipes, of stat and cast; a NAME is a recipe then, or one with :*"},
        {0, "check", OPTION_STRING, &check, "X",
         "what becomes of the constant X, a number or a code; exit code 1 if it is lost in one of the formats"},
        {0, "positions", OPTION_COUNT, &positions, "N",
         "what formats do to positions 0 to N - 1 and to their rotary angles"},
        {0, "How --check rounds", OPTION_HEADING, NULL, NULL, NULL},
        {0, "from", OPTION_STRING, &from, "FORMAT",
         "X is a number of this format, rounded to it first, and 0x3c00 is a code of it (default: as typed; a code is one of "
         "the only format)"},
        TARGET_OPTION_ROWS(to),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(
            form,
            "mpsim.formats/1; with --check mpsim.check/1, with --positions mpsim.positions/1, with --models mpsim.models/1, with --recipes mpsim.recipes/1"),
        NDJSON_OPTION_ROW(form, "line"),
        CSV_OPTION_ROW(form, ""),
        OUTPUT_OPTION_ROW(form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0)
        return code;
    static const char rule[] = "--json, --ndjson and --csv exclude each other, and so do --presets, "
                               "--modes, --models, --recipes, --check and --positions";
    const int lists = presets || modes;
    if (positions > 1 << 24)
        return fail(EXIT_USAGE, "formats: --positions: %" PRIu64 " is more than 2^24", positions);
    if (presets + modes + models + recipes + (check != NULL) + (positions != 0) > 1)
        return fail(EXIT_USAGE, "formats: %s", rule);
    if ((code = report_options_style(&style, &form, 0, "formats", rule)))
        return code;
    if (models)
        return list_models(argv + first, form.path, style);
    if (recipes)
        return list_recipes(argv + first, form.path, style);
    if (lists && (style != REPORT_TEXT || first < argc))
        return fail(EXIT_USAGE, "formats: --presets and --modes take no names, and are text only");
    if (!check && (has_rounding(&to) || from))
        return fail(EXIT_USAGE, "formats: options of rounding go with --check");

    target_list list = {0};
    output out;
    code = make_list(&list, &to, argv + first);
    for (size_t i = 0; !code && !check && i < list.count; i++)
        if (strchr(list.items[i].label, '@'))
            code = fail(EXIT_USAGE, "formats: '%s': presets go with --check", list.items[i].label);
    x.seed = to.seed;
    if (!code && check)
        code = parse_constant(&x, check, from, &list);
    if (code || (code = output_open(&out, form.path)))
        goto done;
    if (presets)
        print_presets(out.file);
    else if (modes)
        print_modes(out.file);
    else if (check)
        print_check(&x, &list, style, out.file, &lost);
    else if (positions)
        positions_print(positions, &list, style, out.file);
    else
        print_formats(&list, style, out.file);
    code = output_close(&out);
    if (!code && lost)
        code = EXIT_CHECK;
done:
    target_list_clear(&list);
    return code;
}
