/* report.c -- the advice as text; see advise.h. */
#include "record.h"

#include "../text/escape.h"
#include "../text/screen.h"
#include "../text/words.h"
#include "../trace/roundoff.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 100, FEW = 12, LINE = 1200 };

/* ---- tables ---- */

/* A kind: how many of its tensors fit each candidate. */
static void print_kind(const advise *a, table *out, const advise_kind *k)
{
    size_t all = 0;
    char n[32];
    while (all + 1 < a->candidates.count && k->fits[all] < k->tensors)
        all++;
    table_cell(out, "%s", *k->kind ? k->kind : "-");
    table_cell(out, "%s", text_count(n, k->tensors));
    table_cell(out, "%s", text_count(n, k->elements));
    for (size_t c = 0; c + 1 < a->candidates.count; c++)
        table_cell(out, "%s", text_count(n, k->fits[c]));
    table_cell(out, "%s", a->candidates.items[all].name);
    table_cell(out, "%s", text_bytes(n, (uint64_t)k->recorded));
    table_cell(out, "%s", advise_accumulates(k->kind) ? "" : text_bytes(n, (uint64_t)k->narrowest));
}

static void print_kinds(const advise *a, FILE *to)
{
    char columns[256] = "<kind|>tensors|2>elements";
    for (size_t c = 0; c + 1 < a->candidates.count; c++)
        text_add(columns, sizeof columns, "|>%s", a->candidates.items[c].name);
    text_add(columns, sizeof columns, "|<all fit|3>recorded|1>narrowest");
    table *out = table_new(columns);
    int copies = 0;
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_kind k;
        if (advise_kind_of(&k, a, i)) {
            print_kind(a, out, &k);
            copies |= advise_accumulates(k.kind);
        }
    }
    fputs("\nBy kind: tensors that fit each format in every step\n", to);
    table_print(out, to, "  ");
    table_free(out);
    if (copies)
        fputs(
            "  weights, masters, moments: of a copy; where they take up updates, a format that holds them may lose these\n",
            to);
}

/* ---- what stays wider ---- */

static void print_wider(const advise *a, int all, FILE *to)
{
    table *out = table_new("<tensor|<keep in|<why");
    char why[400];
    size_t n = 0;
    for (size_t i = 0; i < a->n_tensors; i++) {
        const char *in = advise_kept_in(why, sizeof why, a, &a->tensors[i]);
        if (!in || (n++ >= FEW && !all))
            continue;
        table_cell(out, "%s", a->tensors[i].name);
        table_cell(out, "%s", in);
        table_cell(out, "%s", why);
    }
    if (n) {
        fputs("\nTo be kept wider\n", to);
        table_print(out, to, "  ");
    }
    if (n > FEW && !all)
        fprintf(to, "  and %zu more (--tensors lists all)\n", n - FEW);
    table_free(out);
}

/* ---- what is no gradient ---- */

static void print_roundoff(const advise *a, int all, FILE *to)
{
    table *out = table_new("<tensor|>elements|>round-off|<how it is known");
    char n[32], m[32];
    size_t rows = 0;
    for (size_t i = 0; i < a->n_tensors; i++) {
        const advise_tensor *t = &a->tensors[i];
        if (!t->roundoff || (rows++ >= FEW && !all))
            continue;
        table_cell(out, "%s", t->name);
        table_cell(out, "%s", text_count(n, t->count));
        table_cell(out, "%s", text_count(m, t->roundoff));
        table_cell(out, "%s", trace_roundoff_evidence(t->evidence));
    }
    if (rows) {
        fputs("\nNo gradients, but what rounding left of sums that are 0 mathematically: left out above\n", to);
        table_print(out, to, "  ");
    }
    if (rows > FEW && !all)
        fprintf(to, "  and %zu more (--tensors lists all)\n", rows - FEW);
    table_free(out);
}

/* ---- every tensor ---- */

static void print_tensors(const advise *a, FILE *to)
{
    table *out = record_table(&advise_row_record, 0);
    advise_row row;
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_row_fill(&row, a, &a->tensors[i]);
        record_cells(out, &advise_row_record, &row, 0);
    }
    fputs("\nBy tensor: the narrowest format that fits every step, and its worst numbers\n", to);
    table_print(out, to, "  ");
    table_free(out);
}

/* ---- what was held back ---- */

static void print_kept(const advise *a, FILE *to, const char *what, const advise_kept *k)
{
    char x[32], y[32], z[32], at[32], name[512];
    if (!k->judged)
        return;
    fprintf(to, "  %-28s kept in %s of %s, %s", what, text_count(x, k->kept), text_count(y, k->judged),
            text_share(z, k->kept, k->judged));
    if (k->kept < k->judged) {
        escape_text(name, sizeof name, a->tensors[k->tensor].name);
        fprintf(to, "; first not by %s%s", name, advise_step(at, " at ", k->step));
    }
    fputc('\n', to);
}

static void print_held(const advise *a, FILE *to)
{
    if (!a->hold_back)
        return;
    fprintf(to,
            "\nHeld back: %" PRIu64 " step%s that the advice does not know, and how often its bounds are kept there\n",
            a->held_steps, text_plural(a->held_steps));
    print_kept(a, to, "narrowest format of a tensor", &a->kept_choice);
    print_kept(a, to, "loss scale of a gradient", &a->kept_scale);
    print_kept(a, to, "recipe of an operand", &a->kept_recipe);
}

static void print_head(const advise *a, FILE *to)
{
    char x[32], y[32], z[32];
    const uint64_t used = a->steps - a->held_steps;
    if (a->hold_back)
        fprintf(to, "%s of %s steps", text_count(x, used), text_count(z, a->steps));
    else if (a->steps > 1)
        fprintf(to, "%s steps", text_count(x, used));
    if (a->steps > 1)
        fprintf(to, " from %" PRId64 " to %" PRId64 ", ", a->first_step, a->last_step);
    else if (a->last_step >= 0)
        fprintf(to, "step %" PRId64 ", ", a->last_step);
    fprintf(to, "%s tensor%s\n", text_count(y, a->n_tensors), text_plural(a->n_tensors));
    fprintf(
        to,
        "Bounds: underflow up to %.3g %%, overflow up to %.3g %%, SQNR from %.3g dB, updates lost up to %.3g %%\n\n",
        100 * a->bounds.underflow, 100 * a->bounds.overflow, a->bounds.sqnr, 100 * a->bounds.lost);
}

/* A numbered line. */
typedef struct numbering {
    FILE *to;
    int n;
} numbering;

static void number(void *context, advise_topic topic, const char *text)
{
    numbering *l = context;
    char safe[2 * LINE];
    (void)topic;
    const int at = fprintf(l->to, "%d. ", ++l->n);
    text_wrap(l->to, at, screen_width(l->to, WIDTH), " ", escape_text(safe, sizeof safe, text));
}

void advise_print(const advise *a, int tensors, FILE *to)
{
    numbering lines = {to, 0};
    print_head(a, to);
    advise_sentences(a, number, &lines);
    print_wider(a, tensors, to);
    print_roundoff(a, tensors, to);
    print_kinds(a, to);
    if (tensors)
        print_tensors(a, to);
    print_held(a, to);
}
