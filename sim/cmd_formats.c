/* cmd_formats.c -- mpsim formats: the table of formats, presets, modes; lint of a constant. */
#include "cmd.h"
#include "options.h"
#include "output.h"
#include "report/report.h"
#include "target.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char more[] =
    "A NAME is one of the table or an alias of it (half, float8_e4m3fn, F8_E4M3, ...), a P3109\n"
    "format such as binary6p3se, or eXmY with X exponent and Y significand bits, IEEE-like\n"
    "unless options follow: eXmY[:ieee|:fn|:fnuz|:finite][:inf|:noinf][:bias=N][:unsigned].\n"
    "\n"
    "Examples:\n"
    "  mpsim formats fp16 e4m3 e5m2      compare three formats\n"
    "  mpsim formats --check 1e-8 fp16   does Adam's eps survive fp16?\n"
    "  mpsim formats e5m7:fn --json      a format of your own\n";

static const char *const nan_names[] = {"none", "top", "-0"};
static const char *const zero_names[] = {"+-0", "0", "none"};

static json_t *format_json(const mpsim_format *f)
{
    char max[24], nan[24];
    snprintf(max, sizeof max, "0x%" PRIx64, f->max_finite);
    snprintf(nan, sizeof nan, "0x%" PRIx64, f->nan_code);
    json_t *v = json_object();
    json_object_set_new(v, "name", json_string(f->name));
    json_object_set_new(v, "aliases", json_string(f->aliases));
    json_object_set_new(v, "bits", json_integer(f->bits));
    json_object_set_new(v, "exponent_bits", json_integer(f->ebits));
    json_object_set_new(v, "significand_bits", json_integer(f->mbits));
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
    "<format|>bits|>e|>m|>bias|<inf|<nan|<zero|>max|>min normal|>min positive|>epsilon|<source";

static int print_formats(const mpsim_format *list, size_t n, report_style style, FILE *to)
{
    char a[32], b[32], c[32], d[32];
    if (style == REPORT_JSON) {
        int bad = 0;
        fputs("{\"schema\": \"mpsim.formats/1\",\n\"formats\": [", to);
        for (size_t i = 0; i < n; i++) {
            fputs(i ? ",\n " : "\n ", to);
            bad |= json_write(to, format_json(&list[i]));
        }
        fputs("]}\n", to);
        return bad;
    }
    if (style == REPORT_CSV)
        fputs("name,bits,exponent_bits,significand_bits,bias,inf,nan,zero,max,min_normal,"
              "min_positive,epsilon,source\n", to);
    table *t = style == REPORT_TEXT ? table_new(text_columns) : NULL;
    for (size_t i = 0; i < n; i++) {
        const mpsim_format *f = &list[i];
        const double max = mpsim_format_max(f), normal = mpsim_format_min_normal(f);
        const double least = mpsim_format_min_positive(f), epsilon = mpsim_format_epsilon(f);
        if (style == REPORT_NDJSON) {
            if (json_write(to, format_json(f)))
                return -1;
            fputc('\n', to);
        } else if (style == REPORT_CSV) {
            csv_text(to, f->name);
            fprintf(to, ",%d,%d,%d,%d,%s,%s,%s,%.17g,%.17g,%.17g,%.17g,", f->bits, f->ebits,
                    f->mbits, f->bias, f->inf ? "yes" : "no", nan_names[f->nan],
                    zero_names[f->zero], max, normal, least, epsilon);
            csv_text(to, f->source);
            fputc('\n', to);
        } else {
            table_cell(t, "%s", f->name);
            table_cell(t, "%d", f->bits);
            table_cell(t, "%d", f->ebits);
            table_cell(t, "%d", f->mbits);
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
    const int bad = t ? table_print(t, to, "") : 0;
    table_free(t);
    return bad;
}

/* ---- presets and modes ---- */

static void print_policy(table *t, const char *preset, const char *formats,
                         const mpsim_rounding *r, const char *source)
{
    static const char *const overflow[] = {"Inf or NaN", "largest"};
    static const char *const infinity[] = {"Inf or NaN", "largest"};
    static const char *const nan[] = {"sign kept", "positive", "payload kept", "all ones",
                                      "all ones, sign kept", "all ones, negative"};
    table_cell(t, "%s", preset);
    table_cell(t, "%s", formats);
    table_cell(t, "%s", r->no_inf == MPSIM_NO_INF_MAX && r->overflow == MPSIM_OVERFLOW_INF
                            ? "Inf or largest" : overflow[r->overflow]);
    table_cell(t, "%s", r->no_inf == MPSIM_NO_INF_MAX && r->infinity == MPSIM_INFINITY_KEEP
                            ? "Inf or largest" : infinity[r->infinity]);
    table_cell(t, "%s", nan[r->nan]);
    table_cell(t, "%s", source);
}

static int print_presets(FILE *to)
{
    table *t = table_new("<preset|<formats|<overflow becomes|<infinity becomes|<NaN|<source");
    for (size_t i = 0; i < mpsim_preset_count(); i++) {
        const mpsim_preset *p = mpsim_preset_at(i);
        const int same = memcmp(&p->narrow, &p->wide, sizeof p->wide) == 0;
        print_policy(t, p->name, same ? "all" : "up to 8 bits", &p->narrow, p->source);
        for (int k = 0; k < MPSIM_PRESET_EXCEPTIONS; k++)
            if (p->exceptions[k].format)
                print_policy(t, "", p->exceptions[k].format, &p->exceptions[k].rounding, "");
        if (!same)
            print_policy(t, "", "wider", &p->wide, "");
    }
    fputs("What the same format name means in different places (-p NAME, or FORMAT@NAME):\n\n", to);
    const int bad = table_print(t, to, "");
    table_free(t);
    return bad;
}

static int print_modes(FILE *to)
{
    fputs("Rounding modes (-r NAME); stochastic ones may end in :N, the number of random bits:\n\n",
          to);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        fprintf(to, "  %s\n", mpsim_round_mode_name((mpsim_round_mode)m));
    return 0;
}

/* ---- lint ---- */

/* What becomes of a constant in each format; EXIT_CHECK if it is lost in one. */
static int check_constant(const char *text, const mpsim_format *list, size_t n, FILE *to)
{
    double x;
    char a[32];
    int code = EXIT_OK;
    if (parse_number(&x, text) != 0)
        return fail(EXIT_USAGE, "formats: --check: '%s' is not a number", text);
    table *t = table_new("<format|<becomes|>exact value|>relative error|<verdict");
    for (size_t i = 0; i < n; i++) {
        mpsim_rounding r;
        unsigned flags;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        const uint64_t c = mpsim_encode_f64(&list[i], &r, x, 0, &flags);
        const double y = mpsim_decode(&list[i], c);
        const int lost = (flags & (MPSIM_FLAG_UNDERFLOW | MPSIM_FLAG_OVERFLOW)) != 0;
        if (lost)
            code = EXIT_CHECK;
        table_cell(t, "%s", list[i].name);
        table_cell(t, "0x%0*" PRIx64, (list[i].bits + 3) / 4, c);
        table_cell(t, "%.9g", y);
        table_cell(t, "%s", x != 0 && isfinite(y) ? text_number(a, fabs(y - x) / fabs(x)) : "");
        table_cell(t, "%s", flags & MPSIM_FLAG_UNDERFLOW   ? "LOST: underflows to zero"
                            : flags & MPSIM_FLAG_OVERFLOW  ? "LOST: overflows"
                            : flags & MPSIM_FLAG_SUBNORMAL ? "subnormal: precision is lost"
                            : flags & MPSIM_FLAG_INEXACT   ? "rounded"
                                                           : "exact");
    }
    const int bad = table_print(t, to, "");
    table_free(t);
    return bad ? fail(EXIT_IO, "out of memory") : code;
}

int cmd_formats(int argc, char **argv)
{
    int json = 0, ndjson = 0, csv = 0, presets = 0, modes = 0, first;
    const char *check = NULL, *path = NULL;
    const option_row table_of_options[] = {
        {0, "presets", OPTION_FLAG, &presets, NULL, "list what real stacks do under one name"},
        {0, "modes", OPTION_FLAG, &modes, NULL, "list rounding modes"},
        {0, "check", OPTION_STRING, &check, "X",
         "what becomes of the constant X; exit code 1 if it is lost in one of the formats"},
        {0, "json", OPTION_FLAG, &json, NULL, "write JSON (schema mpsim.formats/1)"},
        {0, "ndjson", OPTION_FLAG, &ndjson, NULL, "write one JSON object per line"},
        {0, "csv", OPTION_FLAG, &csv, NULL, "write CSV"},
        {'o', "output", OPTION_STRING, &path, "FILE", "write to FILE instead of standard output"},
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const command *self = &commands[0];
    int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0)
        return code;
    const int style = report_style_of(json, ndjson, csv);
    if (style < 0 || presets + modes + (check != NULL) > 1 ||
        (style != REPORT_TEXT && (presets || modes || check)))
        return fail(EXIT_USAGE, "formats: --json, --ndjson, --csv, --presets, --modes and --check "
                                "exclude each other");

    enum { LIST_MAX = 256 };
    static mpsim_format list[LIST_MAX];
    size_t n = 0;
    for (int i = first; i < argc && n < LIST_MAX; i++) {
        target_options o = {.formats = argv[i]};
        target_list l;
        code = target_list_make(&l, &o, "formats", NULL);
        for (size_t k = 0; code == 0 && k < l.count && n < LIST_MAX; k++)
            list[n++] = l.items[k].format;
        target_list_clear(&l);
        if (code)
            return code;
    }
    if (first == argc)
        for (size_t i = 0; i < mpsim_format_count() && n < LIST_MAX; i++)
            list[n++] = *mpsim_format_at(i);

    output out;
    code = output_open(&out, path);
    if (code)
        return code;
    int bad = 0;
    if (presets)
        bad = print_presets(out.file);
    else if (modes)
        bad = print_modes(out.file);
    else if (check)
        code = check_constant(check, list, n, out.file);
    else
        bad = print_formats(list, n, (report_style)style, out.file);
    if (bad || code > EXIT_CHECK) {
        output_abandon(&out);
        return bad ? fail(EXIT_IO, "out of memory") : code;
    }
    const int closed = output_close(&out);
    return closed ? closed : code;
}
