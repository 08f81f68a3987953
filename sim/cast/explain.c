/* explain.c -- see explain.h. */
#include "explain.h"

#include "../array/need.h"
#include "../process/output.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static const record_kind *const kinds[] = {&cast_explain_number_record, &cast_explain_blocks_record, NULL};
static const record_field document_fields[] = {FIELD(LIST, "results", IN_JSON | FIELD_STREAM, 0, NULL, .either = kinds),
                                               {0}};
static const record_kind document = {"document", NULL, 0, document_fields};
const report_kind cast_explain_kind = {
    "mpsim.cast-explain/1", "mpsim cast --explain: a cast, step by step",
    "How numbers are rounded to a format, or quantised by a block recipe. $defs/line is a line of --ndjson, which names no schema.",
    &document};

typedef struct explaining {
    const explain_options *o;
    record_writer out;
    FILE *to;
    int any;            /* a text was written                 */
    mpsim_format from;  /* of --from                          */
    mpsim_format codes; /* of codes: that, or the only format */
    element_kind kind;
} explaining;

/* Whether the names are one format, under whatever presets. */
static int is_one_format(mpsim_format *f, const char *names)
{
    char name[64];
    size_t n = 0;
    for (const char *s = names; *s; s += *s == ',') {
        mpsim_format next;
        const size_t length = strcspn(s, ",");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(s, ",@"), s);
        if (mpsim_format_parse(&next, name) != MPSIM_OK || (n++ && !mpsim_format_same(f, &next)))
            return 0;
        *f = next;
        s += length;
    }
    return n > 0;
}

static int choose_formats(explaining *e)
{
    const char *from = e->o->from;
    if (from && format_read(&e->from, "cast: --from", from))
        return EXIT_USAGE;
    e->codes = e->from;
    e->kind = (element_kind){.format = from ? &e->from : NULL, .ask = "--from FORMAT"};
    if (from || is_one_format(&e->codes, e->o->to.formats))
        e->kind.codes = &e->codes;
    return 0;
}

static int is_text(const explaining *e)
{
    return e->out.style == REPORT_TEXT;
}

/* Texts have an empty line between them. */
static void begin(explaining *e)
{
    if (e->any && is_text(e))
        fputc('\n', e->to);
    e->any = 1;
}

/* ---- a recipe ---- */

static int parse_amax(explain_blocks *b, const explain_options *o, const cast_recipe *r)
{
    static const element_kind magnitude = {NULL, NULL, MPSIM_ROUND_NEAREST_EVEN, NULL};
    exact_number x;
    b->amax = -1;
    if (!o->tensor_amax)
        return 0;
    if (!r->tensor_scale)
        return fail(EXIT_USAGE, "cast: --tensor-amax needs a recipe of NVFP4");
    const int code = element_read(&x, "cast", "--tensor-amax", &magnitude, o->tensor_amax);
    if (code)
        return code;
    const double amax = x.nearest;
    if (!(amax >= 0 && amax <= (double)FLT_MAX))
        return fail(EXIT_USAGE, "cast: --tensor-amax: '%s' is not a magnitude of binary32", o->tensor_amax);
    b->amax = (float)amax;
    return 0;
}

static int explain_recipe(explaining *e, cast_recipe *r)
{
    explain_blocks b = {.recipe = r, .seed = e->o->to.seed};
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    element_kind kind = e->kind;
    element *x = NULL;
    int code;
    if ((code = cast_recipe_options(r, &e->o->to)) || (code = parse_amax(&b, e->o, r)))
        return code;
    kind.format = kind.format ? kind.format : binary32;
    if (!format_is_narrow(kind.format))
        return fail(EXIT_USAGE, "cast: --from: recipes take binary32 numbers, and %s is wider", kind.format->name);
    if ((code = element_list(&x, &b.n, "cast", "--explain", &kind, e->o->numbers)))
        return code;
    b.from = kind.format;
    b.x = x;
    begin(e);
    if (is_text(e))
        cast_explain_blocks_text(&b, e->to);
    else
        cast_explain_blocks_row(&b, &e->out);
    free(x);
    return 0;
}

/* ---- a format ---- */

static int explain_format(explaining *e, const char *name)
{
    target_options to = e->o->to;
    target_list targets = {0};
    const mpsim_format *from = e->kind.format;
    element *x = NULL;
    size_t n = 0;
    int code;
    to.formats = name;
    if (e->o->tensor_amax)
        return fail(EXIT_USAGE, "cast: --tensor-amax needs a recipe of NVFP4");
    if (!(code = target_list_make(&targets, &to, "cast", NULL)))
        code = element_list(&x, &n, "cast", "--explain", &e->kind, e->o->numbers);
    for (size_t i = 0; i < targets.count && !code; i++) {
        target one = targets.items[i];
        one.rounding = target_rounding(&targets.items[i], from ? from : mpsim_format_find("binary64"));
        for (size_t k = 0; k < n; k++) {
            const explain_number number = {&one, &x[k], from, e->kind.codes, k, to.seed};
            begin(e);
            if (is_text(e))
                cast_explain_number_text(&number, e->to);
            else
                cast_explain_number_row(&number, &e->out);
        }
    }
    target_list_clear(&targets);
    free(x);
    return code;
}

/* ---- all of them ---- */

int cast_explain_run(const explain_options *o)
{
    explaining e = {.o = o, .out = {.kind = &cast_explain_kind, .style = report_options_style(&o->form)}};
    output out;
    char *names = need_text(o->to.formats), *rest = NULL;
    int code = choose_formats(&e);
    if (code || (code = output_open_report(&out, o->path, e.out.style))) {
        free(names);
        return code;
    }
    e.to = e.out.to = out.file;
    record_begin(&e.out);
    for (char *name = strtok_r(names, ",", &rest); name && !code; name = strtok_r(NULL, ",", &rest)) {
        cast_recipe recipe;
        code = cast_recipe_parse(&recipe, name);
        code = code > 0 ? code : code == 0 ? explain_recipe(&e, &recipe) : explain_format(&e, name);
    }
    record_end(&e.out);
    if (!code && !e.any)
        code = fail(EXIT_USAGE, "cast: --format: no format given");
    free(names);
    return output_end(&out, code);
}
