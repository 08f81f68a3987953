/* explain.c -- see explain.h. */
#include "explain.h"

#include "../array/need.h"
#include "../cli/output.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int parse_from(mpsim_format *f, const char *name, const char *otherwise)
{
    if (mpsim_format_parse(f, name ? name : otherwise) != MPSIM_OK)
        return fail(EXIT_USAGE, "cast: --from: '%s' is not a format", name);
    return 0;
}

typedef struct explaining {
    const explain_options *o;
    FILE *to;
    int any; /* something was written */
} explaining;

static void begin(explaining *e)
{
    if (e->o->json)
        fputs(e->any ? ",\n " : "\n ", e->to);
    else if (e->any)
        fputc('\n', e->to);
    e->any = 1;
}

/* ---- a recipe ---- */

static int parse_amax(explain_blocks *b, const explain_options *o, const cast_recipe *r)
{
    double amax = -1;
    if (o->tensor_amax && !r->tensor_scale)
        return fail(EXIT_USAGE, "cast: --tensor-amax is for recipes of NVFP4");
    if (o->tensor_amax && (parse_number(&amax, o->tensor_amax) || !(amax >= 0 && amax <= (double)FLT_MAX)))
        return fail(EXIT_USAGE, "cast: --tensor-amax: '%s' is not a magnitude of binary32", o->tensor_amax);
    b->amax = (float)amax;
    return 0;
}

static int explain_recipe(explaining *e, cast_recipe *r)
{
    explain_blocks b = {.recipe = r, .seed = e->o->to.seed};
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    mpsim_format from;
    element *x = NULL;
    int code;
    if ((code = recipe_options(r, &e->o->to)) || (code = parse_amax(&b, e->o, r)) ||
        (code = parse_from(&from, e->o->from, "binary32")))
        return code;
    if (from.mbits > binary32->mbits || mpsim_format_max(&from) > mpsim_format_max(binary32))
        return fail(EXIT_USAGE, "cast: --from: recipes take numbers of binary32, and %s has others", from.name);
    if ((code = element_list(&x, &b.n, "cast", "--explain", &from, e->o->numbers)))
        return code;
    b.x = x;
    begin(e);
    if (e->o->json)
        json_write(e->to, explain_blocks_json(&b));
    else
        explain_blocks_text(&b, e->to);
    free(x);
    return 0;
}

/* ---- a format ---- */

static int explain_format(explaining *e, const char *name)
{
    target_options to = e->o->to;
    target_list targets = {0};
    mpsim_format from;
    element *x = NULL;
    size_t n = 0;
    int code;
    to.formats = name;
    if (e->o->tensor_amax)
        return fail(EXIT_USAGE, "cast: --tensor-amax is for recipes of NVFP4");
    if (!(code = target_list_make(&targets, &to, "cast", NULL)) && !(code = parse_from(&from, e->o->from, "binary64")))
        code = element_list(&x, &n, "cast", "--explain", &from, e->o->numbers);
    for (size_t i = 0; i < targets.count && !code; i++) {
        target one = targets.items[i];
        one.rounding = target_rounding(&targets.items[i], &from);
        for (size_t k = 0; k < n; k++) {
            const explain_number number = {&one, &x[k], k, to.seed};
            begin(e);
            if (e->o->json)
                json_write(e->to, explain_number_json(&number));
            else
                explain_number_text(&number, e->to);
        }
    }
    target_list_clear(&targets);
    free(x);
    return code;
}

/* ---- all of them ---- */

int explain_run(const explain_options *o)
{
    explaining e = {.o = o};
    output out;
    char *names = need_text(o->to.formats), *rest = NULL;
    int code = output_open(&out, o->path);
    if (code) {
        free(names);
        return code;
    }
    e.to = out.file;
    if (o->json) {
        json_begin(e.to, "mpsim.cast-explain/1");
        fputs("\"results\": [", e.to);
    }
    for (char *name = strtok_r(names, ",", &rest); name && !code; name = strtok_r(NULL, ",", &rest)) {
        cast_recipe recipe;
        code = recipe_parse(&recipe, name);
        code = code > 0 ? code : code == 0 ? explain_recipe(&e, &recipe) : explain_format(&e, name);
    }
    if (o->json)
        fputs("]}\n", e.to);
    if (!code && !e.any)
        code = fail(EXIT_USAGE, "cast: --format: no format given");
    free(names);
    if (code) {
        output_abandon(&out);
        return code;
    }
    return output_close(&out);
}
