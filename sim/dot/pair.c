/* pair.c -- see pair.h. */
#include "pair.h"

#include "../array/need.h"
#include "../cli/element.h"
#include "../cli/options.h"
#include "../cli/output.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef struct pair {
    const pair_options *o;
    const model_list *models;
    report_style style;
    element *a, *b, *c; /* n, n, and one for each model */
    size_t n, n_b;
    unsigned char *codes_a, *codes_b;
    FILE *to;
} pair;

/* Where the steps of a model go. */
typedef struct steps {
    const pair *p;
    const mpsim_model *m;
    table *rows;
    json_t *list;
    int cut; /* a term lost bits in its alignment */
} steps;

/* ---- numbers of the command line ---- */

static unsigned char *codes_of(const mpsim_format *f, const element *e, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    unsigned char *codes = need_memory(n, bytes);
    for (size_t i = 0; i < n; i++)
        element_put_code(codes, bytes, i, e[i].code);
    return codes;
}

/* c in the format of each model's result; as a code it means one format. */
static int parse_addend(pair *p)
{
    const model_list *m = p->models;
    for (size_t i = 0; i < m->count; i++) {
        const mpsim_format *f = &m->items[i].result.format;
        const element_kind of_c = {.format = f, .codes = f};
        const int code = element_parse(&p->c[i], "dot", "--c", &of_c, p->o->c ? p->o->c : "0");
        if (code)
            return code;
        if (p->c[i].is_code && !mpsim_format_same(f, &m->items[0].result.format))
            return fail(EXIT_USAGE,
                        "dot: --c: a code needs models of one result format, and these have %s "
                        "and %s: choose with --models, or give a number",
                        m->items[0].result.format.name, f->name);
    }
    return 0;
}

static int parse(pair *p)
{
    const pair_options *o = p->o;
    const element_kind of_a = {.format = o->fa, .codes = o->fa, .mode = o->mode};
    const element_kind of_b = {.format = o->fb, .codes = o->fb, .mode = o->mode};
    int code;
    p->c = need_memory(p->models->count, sizeof *p->c);
    if ((code = element_list(&p->a, &p->n, "dot", "--a", &of_a, o->a)) ||
        (code = element_list(&p->b, &p->n_b, "dot", "--b", &of_b, o->b)) || (code = parse_addend(p)))
        return code;
    if (p->n != p->n_b)
        return fail(EXIT_USAGE, "dot: --a has %zu number%s and --b %zu", p->n, text_plural(p->n), p->n_b);
    p->codes_a = codes_of(o->fa, p->a, p->n);
    p->codes_b = codes_of(o->fb, p->b, p->n);
    return 0;
}

/* ---- steps ---- */

static const char *const events[] = {[MPSIM_DOT_PRODUCT] = "product",
                                     [MPSIM_DOT_ADDITION] = "addition",
                                     [MPSIM_DOT_CHUNK] = "chunk",
                                     [MPSIM_DOT_RESULT] = "result"};

/* a b in binary64; *exact: it is that. */
static double product(const pair *p, size_t k, int *exact)
{
    const double x = p->a[k].value * p->b[k].value;
    *exact = fma(p->a[k].value, p->b[k].value, -x) == 0 || !isfinite(x);
    return x;
}

/* Which products: "3", "0 to 15", "0 1 4 5 ...". */
static const char *places_text(char *out, size_t size, const mpsim_dot_step *s)
{
    int run = 1;
    for (size_t i = 1; s->places && i < s->n; i++)
        run &= s->places[i] == s->places[i - 1] + 1;
    out[0] = '\0';
    if (s->n == 1)
        snprintf(out, size, "%zu", s->first);
    else if (s->n > 1 && run)
        snprintf(out, size, "%zu to %zu", s->first, s->first + s->n - 1);
    else if (s->n > 1)
        snprintf(out, size, "%zu, %zu, ... %zu", s->places[0], s->places[1], s->places[s->n - 1]);
    return out;
}

/* A term of a fused addition: places[i], or the accumulator (i = n). */
static void term_row(steps *t, const mpsim_dot_step *s, size_t i)
{
    table *r = t->rows;
    const int is_product = i < s->n;
    const int64_t q = is_product ? s->terms[i] : s->accumulator;
    int exact = 1;
    const double x = is_product ? product(t->p, s->places[i], &exact) : s->x;
    const int cut = s->aligned && exact && ldexp((double)q, s->unit) != x;
    t->cut |= cut;
    table_cell(r, "%s", is_product ? "  term" : "  accumulator");
    if (is_product)
        table_cell(r, "%zu", s->places[i]);
    else
        table_cell(r, "%s", "");
    for (int side = 0; side < 2; side++)
        if (is_product)
            table_cell(r, "%.9g", (side ? t->p->b : t->p->a)[s->places[i]].value);
        else
            table_cell(r, "%s", "");
    table_cell(r, "%s%.9g", exact ? "" : "~", x);
    if (s->aligned)
        table_cell(r, "%" PRId64 "%s", q, cut ? "*" : "");
    else
        table_cell(r, "%s", "");
    for (int k = 0; k < 4; k++)
        table_cell(r, "%s", "");
}

static void operand_cells(steps *t, const mpsim_dot_step *s)
{
    table *r = t->rows;
    int exact = 1;
    const double ab = s->n == 1 && !s->places ? product(t->p, s->first, &exact) : 0;
    switch (s->event) {
    case MPSIM_DOT_PRODUCT:
        table_cell(r, "%.9g", t->p->a[s->first].value);
        table_cell(r, "%.9g", t->p->b[s->first].value);
        table_cell(r, "%s%.9g", exact ? "" : "~", ab);
        return;
    case MPSIM_DOT_ADDITION:
        if (s->places) { /* its terms stand above */
            for (int k = 0; k < 3; k++)
                table_cell(r, "%s", "");
            return;
        }
        table_cell(r, "%.9g", s->x);
        if (t->m->addition == MPSIM_ADDITION_FMA)
            table_cell(r, "%s%.9g", exact ? "" : "~", ab);
        else if (s->n > 1)
            table_cell(r, "%s", "products");
        else
            table_cell(r, "%.9g", s->y);
        table_cell(r, "%s", "");
        return;
    case MPSIM_DOT_CHUNK:
        table_cell(r, "%.9g", s->x);
        table_cell(r, "%.9g", s->y);
        table_cell(r, "%s", "");
        return;
    case MPSIM_DOT_RESULT:
    default:
        table_cell(r, "%.9g", s->x);
        table_cell(r, "%s", s->n ? "products" : "");
        table_cell(r, "%s", "");
    }
}

static void step_rows(steps *t, const mpsim_dot_step *s)
{
    char text[96];
    table *r = t->rows;
    if (s->places) {
        term_row(t, s, s->n);
        for (size_t i = 0; i < s->n; i++)
            term_row(t, s, i);
    }
    table_cell(r, "%s", events[s->event]);
    table_cell(r, "%s", places_text(text, sizeof text, s));
    operand_cells(t, s);
    if (s->aligned) {
        table_cell(r, "%" PRId64, s->sum);
        table_cell(r, "2^%d", s->unit);
    } else {
        table_cell(r, "%s", "");
        table_cell(r, "%s", "");
    }
    table_cell(r, "%.9g", s->value);
    table_cell(r, "%a", s->value);
    table_cell(r, "%s %s", s->place->format.name, element_code_text(text, &s->place->format, s->code));
}

static json_t *step_json(const mpsim_dot_step *s)
{
    char text[96];
    json_t *v = json_object(), *places = json_array(), *terms = json_array();
    for (size_t i = 0; i < s->n; i++) {
        json_array_append_new(places, json_of_count(s->places ? s->places[i] : s->first + i));
        if (s->aligned)
            json_array_append_new(terms, json_integer(s->terms[i]));
    }
    json_object_set_new(v, "step", json_string(events[s->event]));
    json_object_set_new(v, "products", places);
    json_object_set_new(v, "x", json_of_double(s->x));
    json_object_set_new(v, "y", json_of_double(s->y));
    if (s->aligned) {
        json_object_set_new(v, "unit_exponent", json_integer(s->unit));
        json_object_set_new(v, "accumulator", json_integer(s->accumulator));
        json_object_set_new(v, "terms", terms);
        json_object_set_new(v, "sum", json_integer(s->sum));
    } else {
        json_decref(terms);
    }
    json_object_set_new(v, "format", json_string(s->place->format.name));
    json_object_set_new(v, "code", json_string(element_code_text(text, &s->place->format, s->code)));
    json_object_set_new(v, "value", json_of_double(s->value));
    return v;
}

static void see(void *context, const mpsim_dot_step *s)
{
    steps *t = context;
    if (t->list)
        json_array_append_new(t->list, step_json(s));
    else
        step_rows(t, s);
}

/* ---- results ---- */

static json_t *result_json(const pair *p, size_t i, uint64_t d, json_t *list)
{
    const mpsim_model *m = &p->models->items[i];
    const mpsim_format *f = &m->result.format;
    char code[24];
    json_t *v = json_object();
    json_object_set_new(v, "model", json_string(m->name));
    json_object_set_new(v, "result_format", json_string(f->name));
    json_object_set_new(v, "c", json_string(element_code_text(code, f, p->c[i].code)));
    json_object_set_new(v, "c_value", json_of_double(p->c[i].value));
    json_object_set_new(v, "code", json_string(element_code_text(code, f, d)));
    json_object_set_new(v, "value", json_of_double(mpsim_decode(f, d)));
    if (list)
        json_object_set_new(v, "steps", list);
    return v;
}

static json_t *operand_json(const mpsim_format *f, const element *e, size_t n)
{
    char code[24];
    json_t *v = json_object(), *codes = json_array(), *values = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(codes, json_string(element_code_text(code, f, e[i].code)));
        json_array_append_new(values, json_of_double(e[i].value));
    }
    json_object_set_new(v, "format", json_string(f->name));
    json_object_set_new(v, "codes", codes);
    json_object_set_new(v, "values", values);
    return v;
}

static void print_row(const pair *p, table *t, size_t i, uint64_t d)
{
    const mpsim_model *m = &p->models->items[i];
    const mpsim_format *f = &m->result.format;
    char code[24];
    const double x = mpsim_decode(f, d);
    if (p->style == REPORT_CSV) {
        csv_text(p->to, m->name);
        fprintf(p->to, ",%s,%s,", f->name, element_code_text(code, f, d));
        csv_double(p->to, x);
        fputc('\n', p->to);
        return;
    }
    table_cell(t, "%s", m->name);
    table_cell(t, "%s", f->name);
    table_cell(t, "%s", element_code_text(code, f, d));
    table_cell(t, "%.17g", x);
    table_cell(t, "%a", x);
}

/* What codes were taken for. */
static void print_codes(const pair *p)
{
    size_t a = 0, b = 0;
    for (size_t i = 0; i < p->n; i++) {
        a += (size_t)p->a[i].is_code;
        b += (size_t)p->b[i].is_code;
    }
    if (a)
        fprintf(p->to, "codes in --a are codes of %s\n", p->o->fa->name);
    if (b)
        fprintf(p->to, "codes in --b are codes of %s\n", p->o->fb->name);
    if (p->c[0].is_code)
        fprintf(p->to, "c = %s is %.9g, a code of %s\n", p->o->c, p->c[0].value,
                p->models->items[0].result.format.name);
}

/* What was rounded on the way in. */
static void print_rounded(const pair *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += (size_t)(p->a[i].rounded + p->b[i].rounded);
    for (size_t i = 0; i < p->models->count; i++)
        if (p->c[i].rounded) {
            fprintf(p->to, "c is %.9g in %s\n", p->c[i].value, p->models->items[i].result.format.name);
            break;
        }
    if (n)
        fprintf(p->to, "%zu operand%s no number of the format, and rounded to it, %s\n", n, n == 1 ? " was" : "s were",
                p->o->mode ? mpsim_round_mode_name(p->o->mode) : "to nearest even");
}

static void print_head(const pair *p)
{
    const pair_options *o = p->o;
    switch (p->style) {
    case REPORT_TEXT:
        fprintf(p->to, "%zu product%s of %s and %s, c = %s\n", p->n, text_plural(p->n), o->fa->name, o->fb->name,
                o->c ? o->c : "0");
        print_codes(p);
        print_rounded(p);
        fputc('\n', p->to);
        break;
    case REPORT_JSON:
        json_begin(p->to, "mpsim.dot-pair/1");
        fputs("\"a\": ", p->to);
        json_write(p->to, operand_json(o->fa, p->a, p->n));
        fputs(",\n\"b\": ", p->to);
        json_write(p->to, operand_json(o->fb, p->b, p->n));
        fputs(",\n\"results\": [", p->to);
        break;
    case REPORT_CSV:
        fputs("model,result_format,code,value\n", p->to);
        break;
    case REPORT_NDJSON:
        break;
    }
}

static const char steps_columns[] = "<step|<k|>x|>y|>x y|>aligned|<unit|>value|<|<code";

/* A model: its steps, if they are asked for, and its result. */
static int run_model(pair *p, size_t i, table *results)
{
    const mpsim_model *m = &p->models->items[i];
    const mpsim_rng rng = {.seed = p->o->seed};
    const int json = p->style == REPORT_JSON || p->style == REPORT_NDJSON, with = p->o->steps;
    steps t = {.p = p, .m = m};
    uint64_t d = 0;
    if (with && json)
        t.list = json_array();
    else if (with)
        t.rows = table_new(steps_columns);
    const mpsim_status s = mpsim_dot_steps(m, p->o->fa, p->codes_a, p->o->fb, p->codes_b, p->n, p->c[i].code, &rng, &d,
                                           with ? see : NULL, &t);
    if (s == MPSIM_OK && json)
        json_item(p->to, p->style, i, result_json(p, i, d, t.list));
    else if (s == MPSIM_OK)
        print_row(p, results, i, d);
    if (s == MPSIM_OK && t.rows) {
        fprintf(p->to, "%s\n", m->name);
        table_print(t.rows, p->to, "  ");
        fputs(t.cut ? "  * cut: bits below the unit are lost\n\n" : "\n", p->to);
    }
    table_free(t.rows);
    if (s == MPSIM_ERANGE)
        return fail(EXIT_USAGE, "dot: %s cannot take these formats", m->name);
    return s != MPSIM_OK ? fail(EXIT_IO, "out of memory") : 0;
}

static int run_models(pair *p)
{
    table *results = table_new("<model|<result|<code|>value|<");
    int code = 0;
    print_head(p);
    for (size_t i = 0; i < p->models->count && !code; i++)
        code = run_model(p, i, results);
    if (!code && p->style == REPORT_TEXT)
        table_print(results, p->to, "");
    if (p->style == REPORT_JSON)
        fputs("]}\n", p->to);
    table_free(results);
    return code;
}

int pair_report(const pair_options *o, const model_list *models, report_style style)
{
    pair p = {.o = o, .models = models, .style = style};
    output out;
    int code = parse(&p);
    if (!code && !(code = output_open(&out, o->path))) {
        p.to = out.file;
        if ((code = run_models(&p)))
            output_abandon(&out);
        else
            code = output_close(&out);
    }
    free(p.a);
    free(p.b);
    free(p.c);
    free(p.codes_a);
    free(p.codes_b);
    return code;
}
