/* cmd.c -- mpsim formats: the table of formats, presets, modes; lint of a constant. */
#include "../array/need.h"
#include "../commands.h"
#include "../operand/element.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../operand/target.h"
#include "../dot/models.h"
#include "formats.h"
#include "positions.h"
#include "recipes.h"
#include "../text/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char more[] =
    "A NAME is a format of the table, an alias (half, float8_e4m3fn, F8_E4M3, ...), a P3109 format such as\n"
    "binary6p3se, or eXmY with X exponent and Y significand bits. eXmY follows IEEE 754 unless options\n"
    "change it: eXmY[:ieee|:fn|:fnuz|:finite][:inf|:noinf][:bias=N][:unsigned]. NAME@PRESET sets the preset\n"
    "of --check for one format.\n"
    "\n"
    "Examples:\n"
    "  mpsim formats fp16 e4m3 e5m2      compare three formats\n"
    "  mpsim formats --check 1e-8 fp16   does Adam's eps survive fp16?\n"
    "  mpsim formats --positions 8192 bf16 fp16    position ids cast to a narrow format\n"
    "  mpsim formats --check 465 e4m3 e4m3@cuda\n"
    "  mpsim formats e5m7:fn --json      a format of your own\n"
    "  mpsim formats --models 'hopper-*'  how tensor cores of Hopper add\n"
    "  mpsim formats --recipes 'mxfp8:*'  variants of mxfp8\n";

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

/* One of these is asked for: MODE_FORMATS where no option says otherwise. */
enum { MODE_PRESETS, MODE_MODES, MODE_MODELS, MODE_RECIPES, MODE_CHECK, MODE_POSITIONS, MODE_FORMATS, MODES };

/* What the command line asks for. */
typedef struct request {
    int asked[MODES];
    const char *check; /* the constant */
    uint64_t positions;
    constant x;
    target_options to;
    report_options form;
    target_list list;  /* the operands, as formats and recipes; or all of the table */
    model_list models; /* the same of --models */
    int lost;          /* the constant is lost in one of the formats */
} request;

static const char *const nan_names[] = {"none", "top", "-0", NULL};
static const char *const zero_names[] = {"+-0", "0", "none", NULL};

/* Decimal digits of a normal number: its significand bits, the leading one included, times log10 2; to hundredths, so that no C library
 * differs. */
static double decimal_digits(const mpsim_format *f)
{
    return (double)((30103LL * (f->mbits + 1) + 500) / 1000) / 100;
}

/* A format in reports. */
typedef struct format_row {
    mpsim_format f;
    int bits, exponent, significand, bias, is_signed, inf;
    double digits, max, min_normal, min_positive, epsilon;
    char top[24], nan_code[24];
    const char *nan, *zero, *nan_text;
} format_row;

#define AT(member) offsetof(format_row, member)
static const record_field format_fields[] = {
    FIELD(CHARS, "name", IN_ALL, AT(f.name), NULL, .title = "<format"),
    FIELD(TEXT, "aliases", IN_TREE, AT(f.aliases), "Other names, a blank between them."),
    FIELD(INTEGER, "bits", IN_ALL, AT(bits), NULL, .title = ">bits"),
    FIELD(INTEGER, "exponent_bits", IN_ALL, AT(exponent), NULL, .title = ">e"),
    FIELD(INTEGER, "significand_bits", IN_ALL, AT(significand), "Significand bits that are stored.", .title = ">m"),
    FIELD(REAL, NULL, 0, AT(digits), NULL, .title = ">digits", .spare = 3, .format = "%.1f"),
    FIELD(INTEGER, "bias", IN_ALL, AT(bias), "The bias of the exponent.", .title = ">bias", .spare = 3),
    FIELD(BOOLEAN, "inf", IN_ALL, AT(inf), "Whether it has infinities.", .title = "<inf"),
    FIELD(TEXT, "nan", IN_ALL, AT(nan), "Which codes are NaN.", .title = "<nan", .words = nan_names),
    FIELD(TEXT, "zero", IN_ALL, AT(zero), "Which zeros it has.", .title = "<zero", .spare = 2, .words = zero_names),
    FIELD(REAL, "max", IN_ALL, AT(max), "The largest finite number.", .title = ">max"),
    FIELD(REAL, "min_normal", IN_ALL, AT(min_normal), "The smallest normal number.", .title = ">min normal"),
    FIELD(REAL, "min_positive", IN_ALL, AT(min_positive), "The smallest number above 0.", .title = ">min positive"),
    FIELD(REAL, "epsilon", IN_ALL, AT(epsilon), "From 1 to the next number.", .title = ">epsilon", .spare = 1),
    FIELD(TEXT, "source", IN_ALL, AT(f.source), "What defines it.", .title = "<source", .spare = 4),
    FIELD(BOOLEAN, "signed", IN_ALL, AT(is_signed), NULL),
    FIELD(CODE, "max_finite_code", IN_ALL, AT(top), NULL),
    FIELD(
        REAL, "decimal_digits", IN_ALL, AT(digits),
        "Decimal digits of a normal number: its significand bits, the leading one included, times log10 2, to hundredths.",
        .csv = "%.2f"),
    FIELD(TEXT, "nan_code", IN_TREE | FIELD_NULL, AT(nan_text),
          "The code of NaN, in hexadecimal; null: there is none."),
    {0}};
#undef AT
static const record_kind format_record = {"format", "A format.", sizeof(format_row), format_fields};
const report_kind formats_kind = {"mpsim.formats/1", "mpsim formats: formats",
                                  "Floating-point formats. $defs/line is a line of --ndjson, which names no schema.",
                                  REPORT_ROWS("formats", &format_record)};

static format_row row_of(const mpsim_format *f)
{
    format_row row = {.f = *f,
                      .bits = f->bits,
                      .exponent = f->ebits,
                      .significand = f->mbits,
                      .bias = f->bias,
                      .is_signed = mpsim_format_is_signed(f),
                      .inf = f->inf,
                      .digits = decimal_digits(f),
                      .max = mpsim_format_max(f),
                      .min_normal = mpsim_format_min_normal(f),
                      .min_positive = mpsim_format_min_positive(f),
                      .epsilon = mpsim_format_epsilon(f),
                      .nan = nan_names[f->nan],
                      .zero = zero_names[f->zero]};
    snprintf(row.top, sizeof row.top, "0x%" PRIx64, f->max_finite);
    snprintf(row.nan_code, sizeof row.nan_code, "0x%" PRIx64, f->nan_code);
    return row;
}

static void print_formats(request *q, FILE *to)
{
    record_writer w = {.kind = &formats_kind, .to = to, .style = report_options_style(&q->form)};
    record_begin(&w);
    for (size_t i = 0; i < q->list.count; i++) {
        format_row row = row_of(&q->list.items[i].format);
        row.nan_text = row.f.nan ? row.nan_code : NULL;
        record_row(&w, &row);
    }
    table_print(w.rows, to, "");
    record_end(&w);
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

static void print_presets(request *q, FILE *to)
{
    (void)q;
    table *t = table_new("<preset|<formats|<overflow becomes|<infinity becomes|<NaN|"
                         "<negative, if unsigned|<NaN, if there is none|<zero, if there is none|<rounding|1<source");
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
    screen_text(to, screen_columns(to),
                "What the same format name means in different places (-p NAME, or FORMAT@NAME).\n"
                "Where nothing is said, a negative number in an unsigned format is NaN, and in\n"
                "formats without one NaN becomes the largest and zero the smallest number; rounding\n"
                "is to nearest even, unless -r says otherwise.\n\n");
    table_print(t, to, "");
    table_free(t);
}

static void print_modes(request *q, FILE *to)
{
    (void)q;
    fputs("Rounding modes (-r NAME); stochastic ones may end in :N, so many random bits:\n\n", to);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        fprintf(to, "  %s\n", mpsim_round_mode_name((mpsim_round_mode)m));
}

/* ---- lint ---- */

/* What became of a constant. */
typedef struct finding {
    double x;                    /* the constant */
    const char *typed, *code_of; /* code_of: the format of its code, or NULL */
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
    finding v = {.x = c->x.nearest,
                 .typed = c->typed,
                 .code_of = c->is_code ? c->codes.name : NULL,
                 .label = t->label,
                 .y = mpsim_decode(f, code),
                 .choice = open_choice(t, flags)};
    const int verdict = judge(f, c->x.nearest, v.y, flags);
    v.lost = verdict < LOSSES;
    v.error = relative_error(&c->x, v.y);
    exact_text(v.value, sizeof v.value, v.y);
    snprintf(v.code, sizeof v.code, "0x%0*" PRIx64, (f->bits + 3) / 4, code);
    snprintf(v.verdict, sizeof v.verdict, verdicts[verdict], v.value);
    return v;
}

#define AT(member) offsetof(finding, member)
static const record_field finding_fields[] = {
    FIELD(REAL, "constant", IN_ALL, AT(x), "The number of binary64 nearest to what is rounded."),
    FIELD(TEXT, "format", IN_ALL, AT(label), NULL, .title = "<format"),
    FIELD(CODE, "code", IN_ALL, AT(code), NULL, .title = "<becomes"),
    FIELD(CHARS, NULL, 0, AT(value), NULL, .title = ">exact value"),
    FIELD(REAL, "value", IN_ALL, AT(y), "What the constant becomes."),
    FIELD(REAL, "rel_err", IN_ALL | FIELD_NULL, AT(error),
          "The relative error, of the decimal itself, not of `constant`; null: there is none, as of Inf and NaN.",
          .title = ">relative error"),
    FIELD(CHARS, "verdict", IN_ALL, AT(verdict), NULL, .title = "<verdict"),
    FIELD(BOOLEAN, "lost", IN_ALL, AT(lost), "Whether the constant overflows, vanishes or cannot be had at all."),
    FIELD(TEXT, "typed", IN_TREE, AT(typed), "The constant as it was typed."),
    FIELD(TEXT, "code_of", IN_TREE | FIELD_NULL, AT(code_of),
          "The format that it was taken for a code of; null: it is a number."),
    {0}};
#undef AT
static const record_kind finding_record = {"finding", "What a constant becomes in a format.", sizeof(finding),
                                           finding_fields};
const report_kind formats_check_kind = {
    "mpsim.check/1", "mpsim formats --check: constants",
    "What becomes of constants in formats. $defs/line is a line of --ndjson, which names no schema.",
    REPORT_ROWS("results", &finding_record)};

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

/* What becomes of the constant in each target; q->lost if it is lost in one. */
static void print_check(request *q, FILE *to)
{
    const char **notes = need_memory(q->list.count, sizeof *notes);
    record_writer w = {.kind = &formats_check_kind, .to = to, .style = report_options_style(&q->form)};
    if (w.style == REPORT_TEXT)
        print_constant(&q->x, to);
    record_begin(&w);
    for (size_t i = 0; i < q->list.count; i++) {
        const finding v = check_target(&q->list.items[i], &q->x);
        q->lost |= v.lost;
        notes[i] = v.choice;
        record_row(&w, &v);
    }
    table_print(w.rows, to, "");
    if (w.style == REPORT_TEXT)
        print_choice_notes(&q->list, notes, to);
    record_end(&w);
    free(notes);
}

/* ---- command line ---- */

/* Row i of the table of formats, or of block recipes; NULL behind the last. */
static const char *name_at(int recipes, size_t i)
{
    const mpsim_block_recipe *b = recipes ? mpsim_block_at(i) : NULL;
    const mpsim_format *f = recipes ? NULL : mpsim_format_at(i);
    return b ? b->name : f ? f->name : NULL;
}

/* The operands as one list "a,b,c", or where there are none the rows of a table; allocated. */
static char *names_of(char **operands, int recipes)
{
    const char **names = NULL, *name;
    size_t n = 0;
    while ((name = *operands ? operands[n] : name_at(recipes, n)) != NULL) {
        need_room(&names, n, sizeof *names);
        names[n++] = name;
    }
    char *list = need_join(names, n, ",");
    free(names);
    return list;
}

/* The formats, or the block recipes, that the operands name, or all of the table. */
static int read_targets(request *q, char **operands)
{
    char *names = names_of(operands, q->to.recipes);
    q->to.formats = names;
    const int code = target_list_make(&q->list, &q->to, "formats", NULL);
    q->to.formats = NULL;
    free(names);
    return code;
}

static int read_formats(request *q, char **operands)
{
    const int code = read_targets(q, operands);
    for (size_t i = 0; !code && i < q->list.count; i++)
        if (strchr(q->list.items[i].label, '@'))
            return fail(EXIT_USAGE, "formats: '%s': a preset needs --check", q->list.items[i].label);
    return code;
}

static int read_recipes(request *q, char **operands)
{
    q->to.recipes = 1;
    const int code = read_targets(q, operands);
    return !code && q->list.count
               ? fail(EXIT_USAGE, "formats: --recipes: '%s' is a format, not a recipe", q->list.items[0].label)
               : code;
}

static int read_models(request *q, char **operands)
{
    char *names = *operands ? names_of(operands, 0) : need_text("all");
    const int code = dot_model_list_make(&q->models, "formats", names, NULL, NULL);
    free(names);
    return code;
}

/* What --check and --from say, beside formats of which a code may be. */
static int parse_constant(constant *c, const char *text, const target_list *list)
{
    const int from = *c->from.name != '\0';
    element_kind kind = {.format = from ? &c->from : NULL, .codes = &c->codes, .ask = "--from FORMAT"};
    element e;
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

static int read_check(request *q, char **operands)
{
    const int code = read_targets(q, operands);
    q->x.seed = q->to.seed;
    return code ? code : parse_constant(&q->x, q->check, &q->list);
}

static void print_models(request *q, FILE *to)
{
    dot_models_print(&q->models, report_options_style(&q->form), to);
}

static void print_recipes(request *q, FILE *to)
{
    formats_recipes_print(&q->list.blocks, report_options_style(&q->form), to);
}

static void print_positions(request *q, FILE *to)
{
    formats_positions_print(q->positions, &q->list, report_options_style(&q->form), to);
}

/* How each mode reads the operands, and what it prints. */
static const struct mode {
    int (*read)(request *q, char **operands);
    void (*print)(request *q, FILE *to);
} modes[MODES] = {
    [MODE_PRESETS] = {read_formats, print_presets}, [MODE_MODES] = {read_formats, print_modes},
    [MODE_MODELS] = {read_models, print_models},    [MODE_RECIPES] = {read_recipes, print_recipes},
    [MODE_CHECK] = {read_check, print_check},       [MODE_POSITIONS] = {read_formats, print_positions},
    [MODE_FORMATS] = {read_formats, print_formats},
};

static const struct mode *mode_of(request *q)
{
    const struct mode *m = modes;
    q->asked[MODE_CHECK] = q->check != NULL;
    q->asked[MODE_POSITIONS] = q->positions > 0;
    while (m < modes + MODE_FORMATS && !q->asked[m - modes])
        m++;
    return m;
}

static int run(request *q, char **operands)
{
    const struct mode *mode = mode_of(q);
    output out;
    int code = mode->read(q, operands);
    if (code || (code = report_options_open(&out, &q->form)))
        return code;
    mode->print(q, out.file);
    code = output_close(&out);
    return !code && q->lost ? EXIT_CHECK : code;
}

int cmd_formats(const command *self, int argc, char **argv)
{
    request q = {0};
    int first;
    const option_row table_of_options[] = {
        {0, "presets", OPTION_FLAG, &q.asked[MODE_PRESETS], NULL, "list overflow, infinity and NaN rules of libraries"},
        {0, "modes", OPTION_FLAG, &q.asked[MODE_MODES], NULL, "list rounding modes"},
        {0, "models", OPTION_FLAG, &q.asked[MODE_MODELS], NULL,
         "list accumulation models of dot products; NAME selects models (patterns: hopper-*)"},
        {0, "recipes", OPTION_FLAG, &q.asked[MODE_RECIPES], NULL,
         "list block recipes for stat and cast; NAME selects recipes (patterns: mxfp8:*)"},
        {0, "check", OPTION_STRING, &q.check, "X",
         "cast the constant X, a number or a code; exit code 1 if one of the formats loses it"},
        {0, "positions", OPTION_COUNT, &q.positions, "N", "cast positions 0 to N - 1 and compute their rotary angles"},
        {0, "How --check rounds", OPTION_HEADING, NULL, NULL, NULL},
        {0, "from", OPTION_READ, READS(format_option, &q.x.from, NULL), "FORMAT",
         "source format of X: a number is rounded to it first, 0x3c00 is a code of it (default: exact "
         "number; code of the only format)"},
        TARGET_OPTION_ROWS(q.to),
        NEEDS("from round preset overflow flush-subnormals flush-inputs seed", "check", NULL),
        EXCLUSIVE("presets modes models recipes check positions", NULL),
        EXCLUDES("presets modes", "NAME json ndjson csv", "these lists are text"),
        RANGE("positions", 0, 1 << 24),
        {0, "Output", OPTION_HEADING, NULL, NULL, NULL},
        JSON_OPTION_ROW(
            q.form,
            "mpsim.formats/1; with --check mpsim.check/1, with --positions mpsim.positions/1, with --models mpsim.models/1, with --recipes mpsim.recipes/1"),
        NDJSON_OPTION_ROW(q.form, "line"),
        CSV_OPTION_ROW(q.form, ""),
        OUTPUT_OPTION_ROW(q.form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code < 0)
        code = run(&q, argv + first);
    target_list_clear(&q.list);
    dot_model_list_clear(&q.models);
    return code;
}
