/* entry.c -- see entry.h. */
#include "entry.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

verdict entry_verdict(const sequence_entry *e)
{
    return e->compared ? e->compared->found.verdict : e->missing ? VERDICT_MISSING : VERDICT_EXTRA;
}

/* The side that the entry describes first. */
static const side_tensor *main_side(const sequence_entry *e)
{
    return e->tensors[0] ? e->tensors[0] : e->tensors[1];
}

static const measure *measure_of(const sequence_entry *e)
{
    return e->compared && e->compared->measured && e->compared->c.all.differ ? &e->compared->c.all : NULL;
}

/* ---- places ---- */

/* Indices of element `at`. */
static size_t indices(uint64_t out[64], const side_tensor *t, uint64_t at)
{
    const size_t rank = t->rank < 64 ? t->rank : 64;
    for (size_t k = rank; k-- > 0;) {
        out[k] = t->shape[k] ? at % t->shape[k] : 0;
        at /= t->shape[k] ? t->shape[k] : 1;
    }
    return rank;
}

static json_t *index_json(const side_tensor *t, uint64_t at)
{
    uint64_t index[64];
    json_t *list = json_array();
    const size_t n = indices(index, t, at);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_of_count(index[i]));
    return list;
}

static const char *code_text(char out[24], const side_tensor *t, uint64_t code)
{
    snprintf(out, 24, "0x%0*" PRIx64, (int)(mpsim_format_code_bytes(t->format) * 2), code);
    return out;
}

static json_t *place_json(const sequence_entry *e, const measure_place *p)
{
    char a[24], b[24];
    return json_pack("{s:o,s:o,s:o,s:o,s:s,s:s}", "index", index_json(e->tensors[1], p->at), "at", json_of_count(p->at),
                     "a", json_of_double(p->values[0]), "b", json_of_double(p->values[1]), "a_code",
                     code_text(a, e->tensors[0], p->codes[0]), "b_code", code_text(b, e->tensors[1], p->codes[1]));
}

/* ---- JSON ---- */

static json_t *shape_json(const side_tensor *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->rank; i++)
        json_array_append_new(list, json_of_count(t->shape[i]));
    return list;
}

static void put_tensors(json_t *v, const sequence_entry *e)
{
    const side_tensor *x = main_side(e), *y = e->tensors[1];
    json_object_set_new(v, "name", x ? json_string(x->name) : json_null());
    if (!x)
        return;
    if (y && y != x && strcmp(x->name, y->name) != 0)
        json_object_set_new(v, "name_b", json_string(y->name));
    json_object_set_new(v, "matched", e->how ? json_string(match_words[e->how]) : json_null());
    if (e->several)
        json_object_set_new(v, "rank", json_integer(x->file->said.rank));
    json_object_set_new(v, "kind", x->kind ? json_string(x->kind) : json_null());
    json_object_set_new(v, "dtype", json_string(x->dtype));
    if (y && y != x && strcmp(x->dtype, y->dtype) != 0)
        json_object_set_new(v, "dtype_b", json_string(y->dtype));
    json_object_set_new(v, "shape", shape_json(x));
    if (y && y != x && (x->rank != y->rank || (x->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) != 0)))
        json_object_set_new(v, "shape_b", shape_json(y));
    json_object_set_new(v, "count", json_of_count(x->count));
    json_object_set_new(v, "file", json_of_path(x->file->path));
    if (y && y != x)
        json_object_set_new(v, "file_b", json_of_path(y->file->path));
}

static void put_finding(json_t *v, const finding *f)
{
    json_object_set_new(v, "evidence", json_string(f->evidence));
    if (f->format[0])
        json_object_set_new(v, "format", json_string(f->format));
    if (f->mode)
        json_object_set_new(v, "mode", json_string(f->mode));
    if (!isnan(f->scale))
        json_object_set_new(v, "scale", json_of_double(f->scale));
    if (f->bit >= 0)
        json_object_set_new(v, "bit", json_integer(f->bit));
    if (f->shift)
        json_object_set_new(v, "shift", json_integer(f->shift));
}

/* [[first of a bin or bit, elements], ...] */
static json_t *pairs_json(const uint64_t *counts, int n, int powers)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        if (counts[i]) {
            json_t *pair = json_array();
            json_array_append_new(pair, !powers ? json_integer(i) : json_of_count(i ? UINT64_C(1) << (i - 1) : 0));
            json_array_append_new(pair, json_of_count(counts[i]));
            json_array_append_new(list, pair);
        }
    return list;
}

static json_t *both_json(const uint64_t counts[2])
{
    return json_pack("[o,o]", json_of_count(counts[0]), json_of_count(counts[1]));
}

static void put_measure(json_t *v, const sequence_entry *e, const measure *m)
{
    json_object_set_new(v, "differ", json_of_count(m->differ));
    json_object_set_new(v, "first", place_json(e, &m->first));
    if (m->compared)
        json_object_set_new(v, "worst", place_json(e, &m->worst));
    json_object_set_new(v, "max_ulp", json_of_count(m->max_ulp));
    json_object_set_new(v, "ulp_format", json_string(e->compared->c.measurer.narrow.name));
    json_object_set_new(v, "ulps", pairs_json(m->ulps, MEASURE_ULP_BINS, 1));
    if (e->compared->c.measurer.same)
        json_object_set_new(v, "bits", pairs_json(m->bits, MEASURE_BITS, 0));
    json_object_set_new(v, "max_abs_err", json_of_double(m->max_abs));
    json_object_set_new(v, "max_rel_err", json_of_double(m->max_rel));
    json_object_set_new(v, "sqnr_db", json_of_double(measure_sqnr(m)));
    json_object_set_new(v, "correlation", json_of_double(measure_correlation(m)));
    json_object_set_new(v, "larger", json_of_count(m->larger));
    json_object_set_new(v, "smaller", json_of_count(m->smaller));
    json_object_set_new(v, "zero", both_json(m->zero));
    json_object_set_new(v, "nan", both_json(m->nan));
    json_object_set_new(v, "inf", both_json(m->inf));
}

json_t *entry_json(const sequence_entry *e)
{
    json_t *v = json_object();
    const verdict w = entry_verdict(e);
    const measure *m = measure_of(e);
    json_object_set_new(v, "step", e->steps[0] < 0 ? json_null() : json_of_count((uint64_t)e->steps[0]));
    if (e->steps[1] != e->steps[0])
        json_object_set_new(v, "step_b", e->steps[1] < 0 ? json_null() : json_of_count((uint64_t)e->steps[1]));
    put_tensors(v, e);
    json_object_set_new(v, "verdict", json_string(verdict_words[w].word));
    if (w == VERDICT_EQUAL)
        return v;
    json_object_set_new(v, "title", json_string(verdict_words[w].title));
    if (e->compared)
        put_finding(v, &e->compared->found);
    else
        json_object_set_new(v, "evidence",
                            json_string(e->missing ? "the whole step is in A alone" : "the whole step is in B alone"));
    if (m)
        put_measure(v, e, m);
    return v;
}

/* ---- the first difference, for people ---- */

static double number_of(const json_t *v)
{
    const char *s = json_string_value(v);
    return json_is_number(v) ? json_number_value(v) : s ? strtod(s, NULL) : (double)NAN;
}

static uint64_t count_of(const json_t *v)
{
    return (uint64_t)json_integer_value(v);
}

static void print_list(FILE *to, const json_t *list)
{
    fputc('[', to);
    for (size_t i = 0; i < json_array_size(list); i++)
        fprintf(to, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "", json_integer_value(json_array_get(list, i)));
    fputc(']', to);
}

static void print_place(FILE *to, const char *title, const json_t *place)
{
    if (!place)
        return;
    fprintf(to, "%s", title);
    print_list(to, json_object_get(place, "index"));
    fprintf(to, "  A %.9g (%s)", number_of(json_object_get(place, "a")),
            json_string_value(json_object_get(place, "a_code")));
    fprintf(to, "  B %.9g (%s)\n", number_of(json_object_get(place, "b")),
            json_string_value(json_object_get(place, "b_code")));
}

/* "1: 12, 2: 3, 4: 1" with powers of two from 1,024 on as such; of many, several in one. */
static void print_pairs(FILE *to, const char *title, const json_t *list)
{
    enum { MOST = 9 };
    char text[1024] = "", a[32], b[32];
    const size_t size = json_array_size(list), each = (size + MOST - 1) / MOST;
    for (size_t i = 0; i < size; i += each) {
        uint64_t sum = 0;
        const double first = number_of(json_array_get(json_array_get(list, i), 0));
        for (size_t k = i; k < i + each && k < size; k++)
            sum += count_of(json_array_get(json_array_get(list, k), 1));
        if (first >= 1024)
            text_scale(a, first);
        else
            snprintf(a, sizeof a, "%.0f", first);
        text_add(text, sizeof text, "%s%s: %s", *text ? ", " : "", a, text_count(b, sum));
    }
    if (*text)
        text_wrapped(to, title, text);
}

void entry_print(FILE *to, const json_t *e)
{
    enum { FEW_BITS = 6 };
    char a[32], b[32], d[32], f[32], text[256];
    const json_t *differ = json_object_get(e, "differ");
    const char *dtype = json_string_value(json_object_get(e, "dtype")),
               *other = json_string_value(json_object_get(e, "dtype_b"));
    const char *renamed = json_string_value(json_object_get(e, "name_b"));
    if (!dtype)
        return;
    fprintf(to, "\ntensor     %s ", escape_text(text, sizeof text, dtype));
    print_list(to, json_object_get(e, "shape"));
    if (other || json_object_get(e, "shape_b"))
        fprintf(to, ", in B %s ", escape_text(text, sizeof text, other ? other : dtype));
    if (other || json_object_get(e, "shape_b"))
        print_list(to, json_object_get(e, json_object_get(e, "shape_b") ? "shape_b" : "shape"));
    if (renamed)
        fprintf(to, ", in B named %s", escape_text(text, sizeof text, renamed));
    fputc('\n', to);
    if (!differ)
        return;
    const uint64_t n = count_of(json_object_get(e, "count"));
    print_place(to, "first at   ", json_object_get(e, "first"));
    if (count_of(json_object_get(json_object_get(e, "worst"), "at")) !=
        count_of(json_object_get(json_object_get(e, "first"), "at")))
        print_place(to, "worst at   ", json_object_get(e, "worst"));
    fprintf(to, "elements   %s of %s differ, %s", text_count(a, count_of(differ)), text_count(b, n),
            text_share(d, count_of(differ), n));
    fprintf(to, "; largest error %s, relative %s", text_number(a, number_of(json_object_get(e, "max_abs_err"))),
            text_number(b, number_of(json_object_get(e, "max_rel_err"))));
    fprintf(to, "; SQNR %s dB\n", text_number(f, number_of(json_object_get(e, "sqnr_db"))));
    snprintf(text, sizeof text, "ULPs       of %s, from: elements  ",
             json_string_value(json_object_get(e, "ulp_format")));
    print_pairs(to, text, json_object_get(e, "ulps"));
    if (json_array_size(json_object_get(e, "bits")) <= FEW_BITS)
        print_pairs(to, "bits       that differ: elements  ", json_object_get(e, "bits"));
}

/* ---- rows and lines ---- */

void entry_row(table *t, const sequence_entry *e)
{
    const side_tensor *x = main_side(e);
    const measure *m = measure_of(e);
    char a[32];
    table_cell(t, e->steps[0] < 0 ? "%s" : "%s%" PRId64, "", e->steps[0]);
    if (e->several && x)
        table_cell(t, "%s (rank %" PRId64 ")", x->name, x->file->said.rank);
    else
        table_cell(t, "%s", x ? x->name : "all");
    table_cell(t, "%s", verdict_words[entry_verdict(e)].word);
    if (m)
        table_share(t, m->differ, m->count);
    else
        table_cell(t, "%s", "");
    if (m && m->max_ulp >= 1024)
        table_cell(t, "%s", text_number(a, (double)m->max_ulp));
    else
        table_cell(t, "%s", m && m->compared ? text_count(a, m->max_ulp) : "");
    table_cell(t, "%s", m && m->compared ? text_number(a, m->max_rel) : "");
    table_cell(t, "%s", m && m->compared ? text_number(a, measure_sqnr(m)) : "");
}

void entry_csv_head(FILE *to)
{
    fputs("step,rank,name,name_b,matched,kind,dtype,dtype_b,shape,shape_b,count,verdict,differ,first_index,a,b,a_code,"
          "b_code,max_ulp,max_abs_err,max_rel_err,sqnr_db,evidence\n",
          to);
}

static void csv_side(FILE *to, const side_tensor *t, const char *what)
{
    csv_text(to, t ? what : "");
    fputc(',', to);
}

static void csv_shape(FILE *to, const side_tensor *t)
{
    char shape[512] = "";
    if (t) {
        const trace_tensor x = {.shape = t->shape, .rank = t->rank};
        shape_text(shape, sizeof shape, &x);
    }
    csv_text(to, shape);
    fputc(',', to);
}

static void csv_measure(FILE *to, const sequence_entry *e, const measure *m)
{
    char a[24], b[24];
    const side_tensor at = *e->tensors[1];
    uint64_t index[64];
    const size_t n = indices(index, &at, m->first.at);
    fprintf(to, "%" PRIu64 ",\"[", m->differ);
    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s%" PRIu64, i ? ", " : "", index[i]);
    fputs("]\",", to);
    csv_double(to, m->first.values[0]);
    fputc(',', to);
    csv_double(to, m->first.values[1]);
    fprintf(to, ",%s,%s,%" PRIu64 ",", code_text(a, e->tensors[0], m->first.codes[0]),
            code_text(b, e->tensors[1], m->first.codes[1]), m->max_ulp);
    csv_double(to, m->max_abs);
    fputc(',', to);
    csv_double(to, m->max_rel);
    fputc(',', to);
    csv_double(to, measure_sqnr(m));
    fputc(',', to);
}

void entry_csv(FILE *to, const sequence_entry *e)
{
    const side_tensor *x = main_side(e), *y = e->tensors[1] == x ? NULL : e->tensors[1];
    const measure *m = measure_of(e);
    if (e->steps[0] >= 0)
        fprintf(to, "%" PRId64, e->steps[0]);
    fputc(',', to);
    if (x && x->file->said.rank >= 0)
        fprintf(to, "%" PRId64, x->file->said.rank);
    fputc(',', to);
    csv_side(to, x, x ? x->name : "");
    csv_side(to, y, y ? y->name : "");
    fprintf(to, "%s,%s,", match_words[e->how], x && x->kind ? x->kind : "");
    csv_side(to, x, x ? x->dtype : "");
    csv_side(to, y, y ? y->dtype : "");
    csv_shape(to, x);
    csv_shape(to, y);
    fprintf(to, "%" PRIu64 ",%s,", x ? x->count : 0, verdict_words[entry_verdict(e)].word);
    if (m)
        csv_measure(to, e, m);
    else
        fputs("0,,,,,,,,,,", to);
    csv_text(to, e->compared ? e->compared->found.evidence : "the whole step");
    fputc('\n', to);
}
