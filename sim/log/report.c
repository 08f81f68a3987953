/* report.c -- see report.h. */
#include "report.h"

#include "../cli/input.h"
#include "../report/report.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 96 };

/* ---- names ---- */

static const char *letter(char out[8], size_t k)
{
    snprintf(out, 8, k < 26 ? "%c" : "%d", k < 26 ? 'A' + (int)k : (int)k);
    return out;
}

/* The last run, and what it is compared with. */
static const char *sides(char out[64], const log_runs *r)
{
    char first[8], before[8], end[8];
    letter(first, 0);
    letter(before, r->count - 2);
    letter(end, r->count - 1);
    if (r->count > 2)
        snprintf(out, 64, "%s beside %s to %s", end, first, before);
    else
        snprintf(out, 64, "%s beside %s", end, first);
    return out;
}

static const char *gap_text(char out[48], double gap)
{
    char number[32];
    snprintf(out, 48, "%s%s", gap > 0 ? "+" : gap < 0 ? "-" : "", text_number(number, fabs(gap)));
    return out;
}

/* ---- text ---- */

static void print_runs(FILE *to, const log_runs *r, const comparison *c)
{
    table *all = table_new("<|<run|>steps|>first|>last|>noise of a step|<");
    for (size_t k = 0; k < r->count; k++) {
        const series *s = &r->run[k].all;
        char a[32], b[32], d[32], e[32], name[8];
        table_cell(all, "%s", letter(name, k));
        table_cell(all, "%s", r->run[k].path);
        table_cell(all, "%s", text_count(a, s->n));
        table_cell(all, "%s", text_number(b, s->at[0].value));
        table_cell(all, "%s", text_number(d, s->at[s->n - 1].value));
        table_cell(all, "%s", text_number(e, c->noise[k]));
        if (s->lost)
            table_cell(all, "%s lines Inf or NaN, first line %" PRIu64, text_count(a, s->lost), s->first_lost);
        else
            table_cell(all, "%s", "");
    }
    table_print(all, to, "  ");
    table_free(all);
}

static void print_parts(FILE *to, const log_runs *r, const comparison *c)
{
    char end[8], columns[64];
    snprintf(columns, sizeof columns, "<quarter|>steps|>%s|>%s|>gap|>+/-", r->count > 2 ? "others" : "A",
             letter(end, r->count - 1));
    table *all = table_new(columns);
    for (size_t k = 0; k < PARTS; k++) {
        const run_part *p = &c->parts[k];
        char a[32], b[32], d[48], e[32];
        if (p->to == p->from)
            continue;
        table_cell(all, "%zu", k + 1);
        table_cell(all, "%" PRId64 "-%" PRId64, r->run[0].at[p->from].step, r->run[0].at[p->to - 1].step);
        table_cell(all, "%s", text_number(a, p->a));
        table_cell(all, "%s", text_number(b, p->b));
        table_cell(all, "%s", gap_text(d, p->gap));
        table_cell(all, "%s", isfinite(p->error) ? text_number(e, p->error) : "");
    }
    fputs("\nMeans of the quarters; +/-: how far the gap is known, with 95 %\n\n", to);
    table_print(all, to, "  ");
    table_free(all);
}

static void print_together(FILE *to, const comparison *c)
{
    enum { SAME = 70, OTHER = 30 }; /* hundredths */
    const double percent = 100 * c->together;
    char line[256], a[32];
    if (isnan(c->together))
        return;
    snprintf(line, sizeof line, "%.2f%s. The gap's own noise is %s.", c->together,
             percent >= SAME    ? ": the same batches in the same order"
             : percent <= OTHER ? ": other batches, or another order"
                                : "",
             text_number(a, c->own));
    fputs("  moves together ", to);
    text_wrap(to, 17, WIDTH, " ", line);
}

static void print_partings(FILE *to, const log_runs *r, const comparison *c)
{
    const log_run *end = &r->run[r->count - 1];
    char a[32], b[32];
    fputc('\n', to);
    if (c->first == r->n)
        fputs("  first gap      none\n", to);
    else
        fprintf(to, "  first gap      step %" PRId64 ": %s in line %" PRIu64 " of A, %s in line %" PRIu64 " of %s\n",
                end->at[c->first].step, text_number(a, r->run[0].at[c->first].value), r->run[0].at[c->first].line,
                text_number(b, end->at[c->first].value), end->at[c->first].line, letter((char[8]){0}, r->count - 1));
    if (c->apart < r->n)
        fprintf(to, "  apart          from step %" PRId64 " on by more than three times the noise of a step\n",
                end->at[c->apart].step);
    else
        fputs("  apart          at no time for good by more than three times the noise of a step\n", to);
    print_together(to, c);
}

/* What the last quarter says. */
static void gap_words(char *text, size_t size, const comparison *c)
{
    static const char *const trends[] = {", and does not change", ", and grows", ", and shrinks"};
    const run_part *p = &c->parts[PARTS - 1];
    const double noise = fmax(c->noise[0], c->noise[1]);
    char a[48], b[32];
    snprintf(text, size, "in the last quarter the gap is %s", gap_text(a, p->gap));
    if (isfinite(p->error))
        text_add(text, size, " +/- %s", text_number(b, p->error));
    if (noise > 0)
        text_add(text, size, ", %.2g times the noise of a step", fabs(p->gap) / noise);
    text_add(text, size, "%s.", c->verdict == RUNS_NO_GAP ? "" : trends[c->trend]);
}

static void spread_words(char *text, size_t size, const log_runs *r, const comparison *c)
{
    char a[32], b[32], d[32], e[32];
    snprintf(text, size,
             "in the last quarter %s is %s; the other %zu are %s, with a spread of %s. 19 of 20 further runs like "
             "these would lie within %s of their mean, as far as %zu runs can tell.",
             letter((char[8]){0}, r->count - 1), text_number(a, c->ends[r->count - 1]), r->count - 1,
             text_number(b, c->middle), text_number(d, c->spread), text_number(e, c->reach), r->count - 1);
}

static const char seeds[] = " Two runs cannot tell whether other seeds give as much: give another run of one side, "
                            "with another seed, before the last.";

static void words_of(char *text, size_t size, const log_runs *r, const comparison *c)
{
    char a[32];
    switch (c->verdict) {
    case RUNS_SAME:
        snprintf(text, size, "all %s common steps have the same %s, to the last digit.", text_count(a, r->n), r->what);
        break;
    case RUNS_LOST:
        snprintf(text, size, "one run becomes Inf or NaN and another does not; 'mpsim log FILE' judges each.");
        break;
    case RUNS_FEW:
        snprintf(text, size, "there are %s common step%s; a gap can be told from %d on.", text_count(a, r->n),
                 text_plural(r->n), ENOUGH_STEPS);
        break;
    case RUNS_WITHIN:
    case RUNS_OUTSIDE:
        spread_words(text, size, r, c);
        break;
    default:
        gap_words(text, size, c);
        text_add(text, size, "%s", c->verdict == RUNS_NO_GAP ? " That is no gap that these steps show." : seeds);
    }
}

/* Of long logs every second, fourth, eighth, ... is kept. */
static const char *ordinal(char out[32], uint64_t n)
{
    char a[32];
    snprintf(out, 32, "%s%s", text_count(a, n), n % 10 == 2 && n % 100 != 12 ? "nd" : "th");
    return out;
}

void log_report_text(FILE *to, const log_runs *r, const comparison *c)
{
    char text[1024], both[64], a[32];
    fprintf(to, "%s of %s, at %s common %s%s\n\n", r->what, sides(both, r), text_count(a, r->n),
            r->by_order ? "line" : "step", text_plural(r->n));
    if (r->by_order)
        fputs("The lines carry no steps: the first is compared with the first, and so on.\n\n", to);
    for (size_t k = 0; k < r->count; k++)
        if (r->run[k].log->notes.stride > 1)
            fprintf(to, "Of %s every %s value is taken.\n%s", letter((char[8]){0}, k),
                    ordinal((char[32]){0}, r->run[k].log->notes.stride), k + 1 == r->count ? "\n" : "");
    print_runs(to, r, c);
    print_parts(to, r, c);
    print_partings(to, r, c);
    words_of(text, sizeof text, r, c);
    fprintf(to, "\nVerdict: %s\n  ", run_verdict_name(c->verdict));
    text_wrap(to, 2, WIDTH, " ", text);
}

/* ---- JSON ---- */

static json_t *run_json(const log_run *run, double noise, double end)
{
    json_t *v = json_object();
    json_object_set_new(v, "file", json_of_path(run->path));
    json_object_set_new(v, "values", json_of_count(run->all.n));
    json_object_set_new(v, "not_finite", json_of_count(run->all.lost));
    json_object_set_new(v, "noise", json_of_double(noise));
    json_object_set_new(v, "last_quarter", json_of_double(end));
    return v;
}

static json_t *part_json(const log_runs *r, const run_part *p)
{
    json_t *v = json_object();
    json_object_set_new(v, "from", json_integer(r->run[0].at[p->from].step));
    json_object_set_new(v, "to", json_integer(r->run[0].at[p->to - 1].step));
    json_object_set_new(v, "others", json_of_double(p->a));
    json_object_set_new(v, "last", json_of_double(p->b));
    json_object_set_new(v, "gap", json_of_double(p->gap));
    json_object_set_new(v, "error", json_of_double(p->error));
    return v;
}

static json_t *step_json(const log_runs *r, size_t i)
{
    return i < r->n ? json_integer(r->run[0].at[i].step) : json_null();
}

void log_report_json(FILE *to, const log_runs *r, const comparison *c)
{
    static const char *const trends[] = {"none", "grows", "shrinks"};
    char text[1024];
    json_t *v = json_report("mpsim.log/1"), *runs = json_array(), *parts = json_array();
    for (size_t k = 0; k < r->count; k++)
        json_array_append_new(runs, run_json(&r->run[k], c->noise[k], c->ends[k]));
    for (size_t k = 0; k < PARTS; k++)
        if (c->parts[k].to > c->parts[k].from)
            json_array_append_new(parts, part_json(r, &c->parts[k]));
    words_of(text, sizeof text, r, c);
    json_object_set_new(v, "of", json_string(r->what));
    json_object_set_new(v, "common", json_of_count(r->n));
    json_object_set_new(v, "by_order", json_boolean(r->by_order));
    json_object_set_new(v, "runs", runs);
    json_object_set_new(v, "quarters", parts);
    json_object_set_new(v, "first_gap", step_json(r, c->first));
    json_object_set_new(v, "apart_from", step_json(r, c->apart));
    json_object_set_new(v, "moves_together", json_of_double(c->together));
    json_object_set_new(v, "gap_noise", json_of_double(c->own));
    json_object_set_new(v, "gap_correlation", json_of_double(c->near));
    json_object_set_new(v, "trend", json_string(trends[c->trend]));
    json_object_set_new(v, "spread", json_of_double(c->spread));
    json_object_set_new(v, "reach", json_of_double(c->reach));
    json_object_set_new(v, "verdict", json_string(run_verdict_name(c->verdict)));
    json_object_set_new(v, "why", json_string(text));
    json_write(to, v);
    fputc('\n', to);
}
