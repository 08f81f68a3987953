/* pair.c -- see pair.h. */
#include "pair.h"

#include "../array/need.h"
#include "../operand/element.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the records ---- */

static const char *const events[] = {[MPSIM_DOT_PRODUCT] = "product",
                                     [MPSIM_DOT_ADDITION] = "addition",
                                     [MPSIM_DOT_CHUNK] = "chunk",
                                     [MPSIM_DOT_RESULT] = "result",
                                     NULL};

/* A step that is kept. */
typedef struct step {
    mpsim_dot_step of;
    size_t *products, aligned;
    int64_t *terms;
    char code[24];
} step;

/* A model. */
typedef struct result {
    const char *model, *format;
    char c[24], code[24];
    double c_value, value;
    const step *steps; /* NULL: not asked for */
    size_t count;
} result;

/* A or B. */
typedef struct numbers {
    const char *format;
    char (*digits)[24];
    const char **codes; /* into digits */
    double *values;
    size_t n;
} numbers;

typedef struct operands {
    numbers a, b;
} operands;

#define AT(member) offsetof(step, member)
static const record_field aligned_fields[] = {
    FIELD(INTEGER, "unit_exponent", IN_TREE, AT(of.unit), "Aligned numbers are multiples of 2 to this."),
    FIELD(LONG, "accumulator", IN_TREE, AT(of.accumulator), "In these units."),
    FIELD(LONGS, "terms", IN_TREE, AT(terms), "The products, in these units.", .of = AT(of.n)),
    FIELD(LONG, "sum", IN_TREE, AT(of.sum), "In these units."),
    {0}};
static const record_kind aligned_record = {"aligned", NULL, sizeof(step), aligned_fields};

static const record_field place_fields[] = {
    FIELD(CHARS, "format", IN_TREE, offsetof(mpsim_rounded, format.name), "The format that `value` is rounded to."),
    {0}};
static const record_kind place_record = {"place", NULL, sizeof(mpsim_rounded), place_fields};

static const record_field step_fields[] = {
    FIELD(WORD, "step", IN_TREE, AT(of.event), NULL, .words = events),
    FIELD(SIZES, "products", IN_TREE, AT(products), "The places of the products, from 0.", .of = AT(of.n)),
    FIELD(REAL, "x", IN_TREE, AT(of.x), NULL),
    FIELD(REAL, "y", IN_TREE, AT(of.y), NULL),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .of = AT(aligned),
          .record = &aligned_record),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(of.place), NULL, .record = &place_record),
    FIELD(CODE, "code", IN_TREE, AT(code), "The code of `value`."),
    FIELD(REAL, "value", IN_TREE, AT(of.value), NULL),
    {0}};
static const record_kind step_record = {"step", "A step of mpsim_dot_steps (mpsim/dot.h).", sizeof(step), step_fields};
#undef AT

#define AT(member) offsetof(result, member)
static const record_field result_fields[] = {
    FIELD(TEXT, "model", IN_ALL, AT(model), NULL, .title = "<model"),
    FIELD(TEXT, "result_format", IN_ALL, AT(format), NULL, .title = "<result"),
    FIELD(CODE, "c", IN_TREE, AT(c), "What the products are added to."),
    FIELD(REAL, "c_value", IN_TREE, AT(c_value), NULL),
    FIELD(CODE, "code", IN_ALL, AT(code), "The code of the result.", .title = "<code"),
    FIELD(REAL, "value", IN_ALL, AT(value), NULL, .title = ">value", .format = "%.17g"),
    FIELD(REAL, NULL, 0, AT(value), NULL, .title = "<", .format = "%a"),
    FIELD(LIST, "steps", IN_TREE | FIELD_OPTIONAL, AT(steps), NULL, .of = AT(count), .record = &step_record),
    {0}};
static const record_kind result_record = {"result", "A model.", sizeof(result), result_fields};
#undef AT

#define AT(member) offsetof(numbers, member)
static const record_field numbers_fields[] = {FIELD(TEXT, "format", IN_TREE, AT(format), NULL),
                                              FIELD(CODES, "codes", IN_TREE, AT(codes), NULL, .of = AT(n)),
                                              FIELD(REALS, "values", IN_TREE, AT(values), NULL, .of = AT(n)),
                                              {0}};
static const record_kind numbers_record = {"operand", "A or B.", sizeof(numbers), numbers_fields};
#undef AT

static const record_field operands_fields[] = {
    FIELD(RECORD, "a", IN_JSON, offsetof(operands, a), NULL, .record = &numbers_record),
    FIELD(RECORD, "b", IN_JSON, offsetof(operands, b), NULL, .record = &numbers_record),
    FIELD(LIST, "results", IN_JSON | FIELD_STREAM, 0, NULL, .record = &result_record),
    {0}};
static const record_kind operands_record = {"operands", NULL, sizeof(operands), operands_fields};

const report_kind dot_pair_kind = {
    "mpsim.dot-pair/1", "mpsim dot --a --b: one dot product, step by step",
    "One dot product under models, with its steps if they were asked for. $defs/line is a line of --ndjson, which names no schema.",
    &operands_record};

typedef struct pair {
    const pair_options *o;
    const model_list *models;
    report_style style;
    element *a, *b, *c; /* n, n, and one for each model */
    size_t n, n_b;
    unsigned char *codes_a, *codes_b;
    FILE *to;
    record_writer out;
} pair;

/* Where the steps of a model go: to a table for people, or a list. */
typedef struct steps {
    const pair *p;
    const mpsim_model *m;
    table *rows;
    step *list;
    size_t count;
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
                        "dot: --c: a code needs models of one result format, not of %s and %s: "
                        "choose with --models, or give a number",
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

static void keep(steps *t, const mpsim_dot_step *s)
{
    need_room(&t->list, t->count, sizeof *t->list);
    step *k = &t->list[t->count++];
    *k = (step){.of = *s, .products = need_memory(s->n, sizeof *k->products), .aligned = s->aligned != 0};
    for (size_t i = 0; i < s->n; i++)
        k->products[i] = s->places ? s->places[i] : s->first + i;
    if (s->aligned) {
        k->terms = need_memory(s->n, sizeof *k->terms);
        memcpy(k->terms, s->terms, s->n * sizeof *k->terms);
    }
    element_code_text(k->code, &s->place->format, s->code);
}

static void steps_clear(steps *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->list[i].products);
        free(t->list[i].terms);
    }
    free(t->list);
    table_free(t->rows);
}

static void see(void *context, const mpsim_dot_step *s)
{
    steps *t = context;
    if (t->rows)
        step_rows(t, s);
    else
        keep(t, s);
}

/* ---- results ---- */

static void add_result(pair *p, size_t i, uint64_t d, const steps *t)
{
    static const step none;
    const mpsim_model *m = &p->models->items[i];
    const mpsim_format *f = &m->result.format;
    result r = {.model = m->name,
                .format = f->name,
                .c_value = p->c[i].value,
                .value = mpsim_decode(f, d),
                .steps = t->count      ? t->list
                         : p->o->steps ? &none
                                       : NULL,
                .count = t->count};
    element_code_text(r.c, f, p->c[i].code);
    element_code_text(r.code, f, d);
    record_row(&p->out, &r);
}

static numbers numbers_of(const mpsim_format *f, const element *e, size_t n)
{
    numbers x = {f->name, need_memory(n, sizeof *x.digits), need_memory(n, sizeof *x.codes),
                 need_memory(n, sizeof *x.values), n};
    for (size_t i = 0; i < n; i++) {
        x.codes[i] = element_code_text(x.digits[i], f, e[i].code);
        x.values[i] = e[i].value;
    }
    return x;
}

static void numbers_clear(numbers *x)
{
    free(x->digits);
    free(x->codes);
    free(x->values);
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
    fprintf(p->to, "%zu product%s of %s and %s, c = %s\n", p->n, text_plural(p->n), o->fa->name, o->fb->name,
            o->c ? o->c : "0");
    print_codes(p);
    print_rounded(p);
    fputc('\n', p->to);
}

static const char steps_columns[] = "<step|<k|>x|>y|>x y|>aligned|<unit|>value|<|<code";

static void print_steps(const pair *p, const steps *t)
{
    fprintf(p->to, "%s\n", t->m->name);
    table_print(t->rows, p->to, "  ");
    fputs(t->cut ? "  * cut: bits below the unit are lost\n\n" : "\n", p->to);
}

/* A model: its steps, if they are asked for, and its result. */
static int run_model(pair *p, size_t i)
{
    const mpsim_model *m = &p->models->items[i];
    const mpsim_rng rng = {.seed = p->o->seed};
    const int with = p->o->steps;
    steps t = {.p = p, .m = m, .rows = with && p->style == REPORT_TEXT ? table_new(steps_columns) : NULL};
    uint64_t d = 0;
    const mpsim_status s = mpsim_dot_steps(m, p->o->fa, p->codes_a, p->o->fb, p->codes_b, p->n, p->c[i].code, &rng, &d,
                                           with ? see : NULL, &t);
    if (s == MPSIM_OK)
        add_result(p, i, d, &t);
    if (s == MPSIM_OK && t.rows)
        print_steps(p, &t);
    steps_clear(&t);
    if (s == MPSIM_ERANGE)
        return fail(EXIT_USAGE, "dot: %s cannot take these formats", m->name);
    return s != MPSIM_OK ? fail(EXIT_IO, "out of memory") : 0;
}

static int run_models(pair *p)
{
    operands x = {numbers_of(p->o->fa, p->a, p->n), numbers_of(p->o->fb, p->b, p->n)};
    int code = 0;
    p->out = (record_writer){.kind = &dot_pair_kind, .to = p->to, .style = p->style, .document = &x};
    if (p->style == REPORT_TEXT)
        print_head(p);
    record_begin(&p->out);
    for (size_t i = 0; i < p->models->count && !code; i++)
        code = run_model(p, i);
    if (!code)
        table_print(p->out.rows, p->to, "");
    record_end(&p->out);
    numbers_clear(&x.a);
    numbers_clear(&x.b);
    return code;
}

int dot_pair_report(const pair_options *o, const model_list *models, report_style style)
{
    pair p = {.o = o, .models = models, .style = style};
    output out;
    int code = parse(&p);
    if (!code && !(code = output_open_report(&out, o->path, style))) {
        p.to = out.file;
        code = output_end(&out, run_models(&p));
    }
    free(p.a);
    free(p.b);
    free(p.c);
    free(p.codes_a);
    free(p.codes_b);
    return code;
}
