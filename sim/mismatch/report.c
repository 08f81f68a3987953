/* report.c -- see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char *const letters[] = {"A", "B"};

/* ---- the worst tokens ---- */

static double distance(const mismatch_token *t)
{
    const double d = fabs(t->lp[1] - t->lp[0]);
    return isfinite(d) ? d : (double)INFINITY;
}

static int farther_first(const void *a, const void *b)
{
    const mismatch_token *const x = *(const mismatch_token *const *)a, *const y = *(const mismatch_token *const *)b;
    const double dx = distance(x), dy = distance(y);
    return dx != dy ? (dx < dy) - (dx > dy) : (x > y) - (x < y);
}

/* Pointers to all tokens, those farthest apart first; to be freed. */
static const mismatch_token **by_distance(const mismatch *m)
{
    const mismatch_token **list = need_memory(m->o->count, sizeof *list);
    for (size_t i = 0; i < m->o->count; i++)
        list[i] = &m->tokens[i];
    qsort(list, m->o->count, sizeof *list, farther_first);
    return list;
}

static size_t listed(const mismatch_report *r)
{
    return r->worst < r->m->o->count ? r->worst : r->m->o->count;
}

/* ---- text ---- */

static void print_operands(FILE *to, const mismatch_report *r)
{
    const mismatch *m = r->m;
    char count[32], size[32], words[32], text[320];
    fprintf(to, "H  %s, %s token%s of %s numbers\n", m->o->labels[0], text_count(count, m->o->count),
            text_plural(m->o->count), text_count(size, m->o->size));
    fprintf(to, "W  %s, %s words\n", m->o->labels[1], text_count(words, m->o->vocabulary));
    for (int s = 0; s < 2; s++)
        fprintf(to, "%s  %s\n", letters[s], arithmetic_text(text, sizeof text, &m->sides[s]));
    if (r->drawn)
        fprintf(to, "tokens drawn from A");
    else
        fprintf(to, "tokens of %s", m->o->labels[2]);
    if (r->drawn || r->generated)
        fprintf(to, ", seed %" PRIu64, m->seed);
    fputc('\n', to);
}

static void print_errors(FILE *to, const mismatch *m)
{
    char mean[32], size[32], most[32], left[32];
    for (int s = 0; s < 2; s++) {
        const mismatch_error *e = &m->errors[s];
        fprintf(to, "%s - exact         ", letters[s]);
        if (e->count)
            fprintf(to, "mean %s, mean magnitude %s, largest %s", text_number(mean, e->mean),
                    text_number(size, e->mean_magnitude), text_number(most, e->largest));
        if (e->count < m->o->count)
            fprintf(to, "%s%s not finite", e->count ? "; " : "", text_count(left, m->o->count - e->count));
        fputc('\n', to);
    }
}

static void print_all_words(FILE *to, const mismatch *m)
{
    char mean[32], most[32], count[32];
    if (m->kl_count)
        fprintf(to, "of all words      KL(A || B): mean %s, largest %s; ", text_number(mean, m->mean_kl),
                text_number(most, m->largest_kl));
    else
        fprintf(to, "of all words      ");
    if (m->kl_count < m->o->count)
        fprintf(to, "not finite at %s; ", text_count(count, m->o->count - m->kl_count));
    fprintf(to, "the most likely one differs at %s token%s\n", text_count(count, m->differing),
            text_plural(m->differing));
}

static void probability_cell(table *t, double x)
{
    char text[64];
    snprintf(text, sizeof text, "%.6f", x);
    table_cell(t, "%s", isnan(x) ? "nan" : text); /* whatever sign a NaN has */
}

static void print_worst(FILE *to, const mismatch_report *r)
{
    const mismatch_token **list = by_distance(r->m);
    table *t = table_new(">at|>token|>A|>B|>exact|>B - A|>p(B) / p(A)|>KL");
    char text[32];
    for (size_t i = 0; i < listed(r); i++) {
        const mismatch_token *x = list[i];
        table_cell(t, "%zu", (size_t)(x - r->m->tokens));
        table_cell(t, "%" PRIu32, x->id);
        probability_cell(t, x->lp[0]);
        probability_cell(t, x->lp[1]);
        probability_cell(t, x->exact);
        table_cell(t, "%s", text_number(text, x->lp[1] - x->lp[0]));
        table_cell(t, "%s", text_number(text, exp(x->lp[1] - x->lp[0])));
        table_cell(t, "%s", text_number(text, x->kl));
    }
    if (table_rows(t)) {
        fputs("\nThe tokens farthest apart:\n\n", to);
        table_print(t, to, "");
    }
    table_free(t);
    free(list);
}

static void print_text(FILE *to, const mismatch_report *r)
{
    char left[32];
    print_operands(to, r);
    fputc('\n', to);
    print_errors(to, r->m);
    if (r->r->padding + r->r->one_sided)
        fprintf(to, "%s left out below: not finite on a side\n", text_count(left, r->r->padding + r->r->one_sided));
    if (r->r->tokens)
        ratios_print(to, r->r, r->m->o->count == r->m->o->length);
    print_all_words(to, r->m);
    print_worst(to, r);
}

/* ---- JSON, CSV ---- */

static json_t *error_json(const mismatch_error *e)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "count", json_of_count(e->count), "mean", json_of_double(e->mean),
                     "mean_magnitude", json_of_double(e->mean_magnitude), "largest", json_of_double(e->largest));
}

static json_t *token_json(const mismatch *m, const mismatch_token *t)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "at", json_of_count((uint64_t)(t - m->tokens)), "token",
                     json_of_count(t->id), "a", json_of_double(t->lp[0]), "b", json_of_double(t->lp[1]), "exact",
                     json_of_double(t->exact), "kl", json_of_double(t->kl));
}

static json_t *config_json(const mismatch_report *r)
{
    const mismatch *m = r->m;
    json_t *v = json_object();
    json_object_set_new(v, "hidden", json_string(m->o->labels[0]));
    json_object_set_new(v, "head", json_string(m->o->labels[1]));
    json_object_set_new(v, "tokens", r->drawn ? json_null() : json_string(m->o->labels[2]));
    json_object_set_new(v, "count", json_of_count(m->o->count));
    json_object_set_new(v, "size", json_of_count(m->o->size));
    json_object_set_new(v, "vocabulary", json_of_count(m->o->vocabulary));
    json_object_set_new(v, "seed", json_of_count(m->seed));
    json_object_set_new(v, "a", arithmetic_json(&m->sides[0]));
    json_object_set_new(v, "b", arithmetic_json(&m->sides[1]));
    json_object_set_new(v, "clip", json_pack("[o,o]", json_of_double(r->r->low), json_of_double(r->r->high)));
    return v;
}

static void write_json(FILE *to, const mismatch_report *r)
{
    const mismatch *m = r->m;
    const mismatch_token **list = by_distance(m);
    json_t *v = json_report("mpsim.mismatch/1"), *worst = json_array();
    for (size_t i = 0; i < listed(r); i++)
        json_array_append_new(worst, token_json(m, list[i]));
    free(list);
    json_object_set_new(v, "config", config_json(r));
    json_object_set_new(v, "a", error_json(&m->errors[0]));
    json_object_set_new(v, "b", error_json(&m->errors[1]));
    json_object_set_new(v, "tokens", ratios_json(r->r));
    json_object_set_new(v, "kl",
                        json_pack("{s:o,s:o,s:o}", "count", json_of_count(m->kl_count), "mean",
                                  json_of_double(m->mean_kl), "largest", json_of_double(m->largest_kl)));
    json_object_set_new(v, "most_likely_differs", json_of_count(m->differing));
    json_object_set_new(v, "worst", worst);
    json_write(to, v);
    fputc('\n', to);
}

static void write_csv(FILE *to, const mismatch *m)
{
    fputs("at,token,a,b,exact,kl,most_likely_differs\n", to);
    for (size_t i = 0; i < m->o->count; i++) {
        const mismatch_token *t = &m->tokens[i];
        const double numbers[] = {t->lp[0], t->lp[1], t->exact, t->kl};
        fprintf(to, "%zu,%" PRIu32, i, t->id);
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            fputc(',', to);
            csv_double(to, numbers[k]);
        }
        fprintf(to, ",%d\n", t->differs);
    }
}

void mismatch_report_write(FILE *to, report_style style, const mismatch_report *r)
{
    if (style == REPORT_JSON)
        write_json(to, r);
    else if (style == REPORT_CSV)
        write_csv(to, r->m);
    else
        print_text(to, r);
}
