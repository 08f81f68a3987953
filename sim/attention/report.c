/* report.c -- see report.h. */
#include "report.h"

#include "../text/words.h"

#include <inttypes.h>

/* ---- what was computed ---- */

static const char *output_name(const mpsim_attention *a)
{
    return a->f ? a->f->name : "binary32";
}

static size_t tile_of(const attention_report *r)
{
    return r->a->tile && r->a->tile < r->h->k.tokens ? r->a->tile : r->h->k.tokens;
}

static void put_part(json_t *v, const char *key, const heads_part *p)
{
    json_object_set_new(v, key,
                        json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "values", p->label, "format", p->format.name,
                                  "batch", json_of_count(p->batch), "heads", json_of_count(p->heads), "tokens",
                                  json_of_count(p->tokens), "size", json_of_count(p->size), "inexact",
                                  json_of_count(p->counts.inexact)));
}

static json_t *config_json(const attention_report *r)
{
    const mpsim_attention *a = r->a;
    json_t *v = json_object();
    put_part(v, "q", &r->h->q);
    put_part(v, "k", &r->h->k);
    put_part(v, "v", &r->h->v);
    json_object_set_new(v, "generated", r->values ? json_string(r->values) : json_null());
    json_object_set_new(v, "seed", json_of_count(r->seed));
    json_object_set_new(v, "scores", r->scores ? json_string(r->scores) : json_null());
    json_object_set_new(v, "softmax_scale", json_of_double((double)a->scale));
    json_object_set_new(v, "tile", json_of_count(tile_of(r)));
    json_object_set_new(v, "causal", json_boolean(a->causal));
    json_object_set_new(v, "window",
                        a->left == SIZE_MAX
                            ? json_null()
                            : json_pack("[o,o]", json_of_count(a->left), json_of_count(a->causal ? 0 : a->right)));
    json_object_set_new(v, "mask", r->mask ? json_string(r->mask) : json_null());
    json_object_set_new(v, "exp2", json_boolean(a->exp2));
    json_object_set_new(v, "softmax_format", json_string(a->softmax ? a->softmax->name : "binary32"));
    json_object_set_new(v, "reverse", json_boolean(a->reverse));
    json_object_set_new(v, "p_format", json_string(a->p.format.name));
    json_object_set_new(v, "p_round", json_string(mpsim_round_mode_name((mpsim_round_mode)a->p.rounding.mode)));
    json_object_set_new(v, "p_scale", json_of_double((double)a->p_scale));
    json_object_set_new(v, "separate", json_boolean(a->separate));
    json_object_set_new(v, "sum_rounded", json_boolean(a->sum_rounded));
    json_object_set_new(v, "reciprocal", json_boolean(a->reciprocal));
    json_object_set_new(v, "output_format", json_string(output_name(a)));
    json_object_set_new(v, "cure", a->beta > 0 ? json_of_double((double)a->beta) : json_null());
    json_object_set_new(v, "cure_margin", json_of_double((double)a->margin));
    json_object_set_new(v, "above", distance_bound_json(r->above));
    return v;
}

static void print_part(const attention_report *r, const char *letter, const heads_part *p)
{
    char heads[32], tokens[32], size[32], batch[32];
    fprintf(r->to, "%s  %s, %s: ", letter, p->format.name, p->label);
    if (p->batch > 1)
        fprintf(r->to, "%s batches, ", text_count(batch, p->batch));
    fprintf(r->to, "%s head%s of %s token%s, %s number%s each\n", text_count(heads, p->heads), text_plural(p->heads),
            text_count(tokens, p->tokens), text_plural(p->tokens), text_count(size, p->size), text_plural(p->size));
}

static void print_softmax(const attention_report *r)
{
    const mpsim_attention *a = r->a;
    char tile[32], scale[32];
    fprintf(r->to, "scores by %s, times %.9g%s; tiles of %s key%s%s\n", r->scores ? r->scores : "each model",
            (double)a->scale, a->causal ? ", causal" : "", text_count(tile, tile_of(r)), text_plural(tile_of(r)),
            a->reverse ? ", the last first" : "");
    if (a->left != SIZE_MAX)
        fprintf(r->to, "a window of %zu keys before a query's own and %zu behind\n", a->left, a->causal ? 0 : a->right);
    if (r->mask)
        fprintf(r->to, "masked by %s\n", r->mask);
    if (a->exp2 || a->softmax)
        fprintf(r->to, "softmax%s in %s\n", a->exp2 ? " by powers of two," : "",
                a->softmax ? a->softmax->name : "binary32");
    fprintf(r->to, "P in %s", a->p.format.name);
    if (a->p.rounding.mode != MPSIM_ROUND_NEAREST_EVEN)
        fprintf(r->to, " %s", mpsim_round_mode_name((mpsim_round_mode)a->p.rounding.mode));
    if (a->p_scale != 1)
        fprintf(r->to, ", times %s", text_scale(scale, (double)a->p_scale));
    fprintf(r->to, "%s%s; the result in %s%s\n", a->sum_rounded ? ", summed as rounded" : "",
            a->separate ? "; products of a tile summed apart" : "", output_name(a),
            a->reciprocal ? ", by the reciprocal of the sum" : "");
    if (a->beta > 0)
        fprintf(r->to, "where the largest score repeats%s, it is moved: times %g above 0, to 0 below\n",
                a->margin > 0 ? " or nearly" : "", (double)a->beta);
}

static void csv_head(FILE *to)
{
    fputs("model,accumulator,results,not_finite,max_rel_err,rel_err,bias,lean,rows,masked,repeated,moved,vanished,"
          "elements,p_zero,p_one,q,k,v,p_format,p_scale,tile",
          to);
    distance_csv_head(to);
    fputc('\n', to);
}

static table *new_rows(const attention_report *r)
{
    char given[160], rounded[160], columns[512];
    snprintf(columns, sizeof columns,
             "<model|<O|>compared%s%s|>lean|>P = 0|>P = 1|>repeats|>moved|>vanished|>not finite",
             distance_columns(given, sizeof given, r->absolute, "operands as given"),
             distance_columns(rounded, sizeof rounded, r->absolute, heads_exact(r->h) ? NULL : "operands as rounded"));
    return table_new(columns);
}

void attention_report_begin(attention_report *r)
{
    r->rows = new_rows(r);
    r->signs = table_new("<model|<rows|<results|>count|>mean error|>away from 0");
    switch (r->style) {
    case REPORT_TEXT:
        if (r->values)
            fprintf(r->to, "%s; seed %" PRIu64 "\n", r->values, r->seed);
        print_part(r, "Q", &r->h->q);
        print_part(r, "K", &r->h->k);
        print_part(r, "V", &r->h->v);
        print_softmax(r);
        break;
    case REPORT_JSON:
        json_begin(r->to, "mpsim.attention/1");
        fputs("\"config\": ", r->to);
        json_write(r->to, config_json(r));
        fputs(",\n\"results\": [", r->to);
        break;
    case REPORT_CSV:
        csv_head(r->to);
        break;
    case REPORT_NDJSON:
        break;
    }
}

/* ---- a model ---- */

static const char *const rows_words[] = {"others", "maximum repeats"};
static const char *const rows_keys[] = {"others", "repeated"};
static const char *const sign_words[] = {"below 0", "above 0"};
static const char *const sign_keys[] = {"negative", "positive"};

static json_t *signs_json(const attention_signs *s)
{
    return json_pack("{s:o,s:o,s:o}", "count", json_of_count(s->count), "away", json_of_count(s->away), "mean_error",
                     json_of_double(s->mean));
}

static void put_counts(json_t *v, const mpsim_attention_counts *c)
{
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = {{"rows", c->rows},         {"masked", c->masked},     {"repeated", c->repeated}, {"moved", c->moved},
                  {"vanished", c->vanished}, {"elements", c->elements}, {"p_zero", c->p_zero},     {"p_one", c->p_one}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(v, counts[i].key, json_of_count(counts[i].n));
}

static json_t *errors_json(const attention_result *x)
{
    json_t *v = json_object();
    for (int i = 0; i < 2; i++) {
        json_t *signs = json_object();
        for (int k = 0; k < 2; k++)
            json_object_set_new(signs, sign_keys[k], signs_json(&x->signs[i][k]));
        json_object_set_new(v, rows_keys[i], signs);
    }
    return v;
}

static json_t *result_json(const attention_report *r, const mpsim_model *m, const attention_result *x)
{
    json_t *v = json_object();
    json_object_set_new(v, "model", json_string(m->name));
    json_object_set_new(v, "accumulator", json_string(m->result.format.name));
    json_object_set_new(v, "results", json_of_count(x->error.count));
    json_object_set_new(v, "not_finite", json_of_count(x->error.not_finite));
    json_object_set_new(v, "max_rel_err", json_of_double(x->error.rounded.max_rel));
    json_object_set_new(v, "rel_err", json_of_double(x->error.rounded.rel));
    json_object_set_new(v, "bias", json_of_double(x->error.rounded.bias));
    json_object_set_new(v, "lean", json_of_double(x->lean));
    put_counts(v, &x->counts);
    json_object_set_new(v, "errors", errors_json(x));
    distance_put(v, &x->error);
    if (r->style == REPORT_NDJSON) /* each line stands alone */
        json_object_set_new(v, "config", config_json(r));
    return v;
}

static void print_result(attention_report *r, const mpsim_model *m, const attention_result *x)
{
    char text[32];
    const int none = x->error.not_finite == x->error.count;
    table_cell(r->rows, "%s", m->name);
    table_cell(r->rows, "%s", m->result.format.name);
    distance_compared(r->rows, &x->error.given, r->above);
    distance_cells(r->rows, x->error.same ? NULL : &x->error.given, r->absolute);
    distance_cells(r->rows, &x->error.rounded, r->absolute);
    table_cell(r->rows, none ? "nan" : "%+.2f", x->lean);
    table_share(r->rows, x->counts.p_zero, x->counts.elements);
    table_share(r->rows, x->counts.p_one, x->counts.elements);
    table_cell(r->rows, "%s", x->counts.repeated && !r->scores ? text_count(text, x->counts.repeated) : "");
    table_cell(r->rows, "%s", x->counts.moved ? text_count(text, x->counts.moved) : "");
    table_cell(r->rows, "%s", x->counts.vanished ? text_count(text, x->counts.vanished) : "");
    table_cell(r->rows, "%s", x->error.not_finite ? text_count(text, x->error.not_finite) : "");
    for (int i = 1; i >= 0; i--)
        for (int k = 0; k < 2; k++) {
            const attention_signs *s = &x->signs[i][k];
            if (s->count == 0)
                continue;
            table_cell(r->signs, "%s", m->name);
            table_cell(r->signs, "%s", rows_words[i]);
            table_cell(r->signs, "%s", sign_words[k]);
            table_cell(r->signs, "%s", text_count(text, s->count));
            table_cell(r->signs, "%+.1e", s->mean);
            table_share(r->signs, s->away, s->count);
        }
}

static void csv_result(const attention_report *r, const mpsim_model *m, const attention_result *x)
{
    const mpsim_attention_counts *c = &x->counts;
    const double numbers[] = {x->error.rounded.max_rel, x->error.rounded.rel, x->error.rounded.bias, x->lean};
    const uint64_t counts[] = {c->rows,     c->masked,   c->repeated, c->moved,
                               c->vanished, c->elements, c->p_zero,   c->p_one};
    csv_text(r->to, m->name);
    fputc(',', r->to);
    csv_text(r->to, m->result.format.name);
    fprintf(r->to, ",%" PRIu64 ",%" PRIu64, x->error.count, x->error.not_finite);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fputc(',', r->to);
        csv_double(r->to, numbers[i]);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        fprintf(r->to, ",%" PRIu64, counts[i]);
    const char *const labels[] = {r->h->q.label, r->h->k.label, r->h->v.label, r->a->p.format.name};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        fputc(',', r->to);
        csv_text(r->to, labels[i]);
    }
    fputc(',', r->to);
    csv_double(r->to, (double)r->a->p_scale);
    fprintf(r->to, ",%zu", tile_of(r));
    distance_csv(r->to, &x->error);
    fputc('\n', r->to);
}

void attention_report_add(attention_report *r, const mpsim_model *m, const attention_result *x)
{
    switch (r->style) {
    case REPORT_TEXT:
        print_result(r, m, x);
        break;
    case REPORT_JSON:
    case REPORT_NDJSON:
        json_item(r->to, r->style, r->results, result_json(r, m, x));
        break;
    case REPORT_CSV:
        csv_result(r, m, x);
        break;
    }
    r->results++;
    r->repeated |= x->counts.repeated > 0;
    if (!x->error.same)
        distance_worse(&r->given, &x->error.given);
    distance_worse(&r->rounded, &x->error.rounded);
}

/* ---- the end ---- */

static void print_counts(const attention_report *r, const mpsim_attention_counts *c)
{
    char rows[32], repeated[32], masked[32];
    fprintf(r->to, "%s row%s", text_count(rows, c->rows), text_plural(c->rows));
    if (r->scores)
        fprintf(r->to, "; in %s the largest score repeats", text_count(repeated, c->repeated));
    if (c->masked)
        fprintf(r->to, "; %s see%s no key: their results are 0", text_count(masked, c->masked),
                c->masked == 1 ? "s" : "");
    fputs("\n\n", r->to);
}

void attention_report_end(attention_report *r, const attention_result *last)
{
    if (r->style == REPORT_JSON)
        fputs("]}\n", r->to);
    if (r->style == REPORT_TEXT) {
        print_counts(r, &last->counts);
        table_print(r->rows, r->to, "");
        distance_note(r->to, &r->given, "As given the", "");
        distance_note(r->to, &r->rounded, "The", heads_exact(r->h) ? "" : ", as rounded");
        if (r->repeated) {
            fputs("\nErrors by the sign of the result, where the largest score repeats and elsewhere:\n\n", r->to);
            table_print(r->signs, r->to, "");
        }
    }
    table_free(r->rows);
    table_free(r->signs);
    r->rows = r->signs = NULL;
}
