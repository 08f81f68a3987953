/* summary.c -- the page's verdicts: what a reader wants to know first, each with the numbers that decided it; see page.h. */
#include "page.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a verdict is marked: in words and in colour. */
typedef enum mark { MARK_GOOD, MARK_MIND, MARK_BAD, MARK_OPEN } mark;
static const struct {
    const char *class, *word;
} marks[] = {{"good", "ok"}, {"mind", "partly"}, {"bad", "problem"}, {"open", "note"}};

static void put_mark(FILE *to, mark m)
{
    fprintf(to, "<span class=\"mark %s\">%s</span>", marks[m].class, marks[m].word);
}

/* A verdict: its subject, then a sentence, which the caller writes and ends by end_item. */
static void begin_item(FILE *to, mark m, const char *subject)
{
    fputs("<li>", to);
    put_mark(to, m);
    fputs("<div><b>", to);
    page_html_text(to, subject);
    fputs("</b> ", to);
}

static void end_item(FILE *to)
{
    fputs("</div></li>\n", to);
}

static void put_link(FILE *to, const char *id, const char *text)
{
    fprintf(to, " <a href=\"#%s\">%s</a>", id, text);
}

/* ---- what was recorded ---- */

/* What is not finite may be meant: masked scores of an attention, gradients that a loss scale was too large for. */
static mark mark_of_broken(const page *p, const page_tensor *t)
{
    const advise *a = &p->advice;
    const ptrdiff_t i = nameindex_find(&a->names, t->name);
    const int is_mask = strcmp(t->kind, "act") == 0 && !t->nan;
    return is_mask ? MARK_OPEN : a->scaled && i >= 0 && a->tensors[i].gradient ? MARK_MIND : MARK_BAD;
}

static void put_broken(const page *p, FILE *to)
{
    static const char *const why[] = {
        [MARK_MIND] = " All are gradients that were recorded scaled: the loss scaler skips such a step.",
        [MARK_OPEN] = " All are Inf in activations, as a mask puts them into the scores of an attention.",
        [MARK_GOOD] = "",
        [MARK_BAD] = ""};
    const page_tensor *first = NULL;
    mark worst = MARK_GOOD;
    char n[32], k[32], at[32];
    uint64_t nan = 0, inf = 0;
    for (size_t i = 0; i < p->n_tensors; i++) {
        const page_tensor *t = &p->tensors[i];
        if (t->nan + t->inf == 0)
            continue;
        const mark m = mark_of_broken(p, t);
        worst = worst == MARK_GOOD || worst == m ? m : MARK_BAD;
        nan += t->nan > 0;
        inf += t->inf > 0;
        if (!first || t->first_bad < first->first_bad)
            first = t;
    }
    begin_item(to, worst, "NaN and Inf:");
    if (first) {
        page_html_print(to, "of %zu tensors %s hold NaN and ", p->n_tensors, nan ? text_count(n, nan) : "none");
        page_html_print(to, "%s Inf, first %.300s%s.%s", inf ? text_count(k, inf) : "none", first->name,
                        advise_step(at, " at ", first->first_bad), why[worst]);
    } else {
        page_html_print(to, "no tensor holds any.");
    }
    end_item(to);
}

/* ---- formats ---- */

/* A kind and the share of its elements that a cast loses. */
typedef struct kind_loss {
    const page *p;
    const page_column *c;
    const char *kind;
    double share; /* becomes zero, or too large */
} kind_loss;

static void see_kind(void *context, const stat_row *row)
{
    kind_loss *k = context;
    const page_column *c = k->c;
    const target_list *l = &k->p->targets;
    uint64_t lost, of = row->stats->count;
    if (row->level != STAT_KIND)
        return;
    if (c->block != SIZE_MAX) {
        const block_sums *b = &row->group->blocks[c->block];
        lost = b->stats.underflow + b->stats.saturated;
        of = b->elements;
    } else {
        const stat_loss *x = &row->casts[row->n_casts == l->count ? c->cast : c->cast / l->scales];
        lost = x->underflow + x->overflow;
    }
    const double share = of ? (double)lost / (double)of : 0;
    if (share > k->share) {
        k->share = share;
        k->kind = row->kind ? row->kind : "tensors without a kind";
    }
}

/* The tensor that a cast does most harm to: the lowest SQNR of those that break the bounds. */
static const page_tensor *worst_of(const page *p, size_t column)
{
    const page_tensor *worst = NULL;
    for (size_t i = 0; i < p->n_tensors; i++) {
        const page_tensor *t = &p->tensors[i];
        const page_loss *l = &t->losses[column], *w = worst ? &worst->losses[column] : NULL;
        if (!l->within && !isnan(l->sqnr.value) && (!w || l->sqnr.value < w->sqnr.value))
            worst = t;
    }
    return worst;
}

static mark mark_of(const page *p, const page_column *c)
{
    return c->within == p->n_tensors ? MARK_GOOD : 2 * c->within >= p->n_tensors ? MARK_MIND : MARK_BAD;
}

/* What a format loses of all tensors. */
enum { FITS_ALL, FITS_MOST, FITS_FEW, FITS_NONE };
static const char *const fits_words[] = {"all", "most", "few", "none", NULL};

typedef struct format_row {
    const char *label, *kind; /* kind: that it loses most of */
    unsigned fits;
    char within[64], worst[400];
    double share; /* of the kind, lost */
} format_row;

#define AT(member) offsetof(format_row, member)
static const record_field format_fields[] = {
    COLUMN(TEXT, "<format", 0, AT(label), NULL),
    COLUMN(WORD, "<fits", 0, AT(fits), "How many tensors are within the bounds in every step.", .words = fits_words),
    COLUMN(CHARS, ">within bounds", 0, AT(within), NULL),
    COLUMN(TEXT, "<loses most of", 0, AT(kind), "The kind of tensor that loses the largest share of its elements."),
    COLUMN(REAL, ">of it lost", FIELD_PERCENT, AT(share), "Elements of that kind that become zero or are too large."),
    COLUMN(CHARS, "<worst tensor", 0, AT(worst), "Of the tensors that break the bounds the one of the lowest SQNR."),
    {0}};
#undef AT
static const record_kind format_record = {"format", NULL, sizeof(format_row), format_fields};

static unsigned fits_of(const page *p, const page_column *c)
{
    return c->within == p->n_tensors       ? FITS_ALL
           : 2 * c->within >= p->n_tensors ? FITS_MOST
           : c->within                     ? FITS_FEW
                                           : FITS_NONE;
}

/* All formats in a sentence. */
static void put_all_formats(const page *p, FILE *to)
{
    int all = 0, most = 0;
    char n[32];
    for (size_t i = 0; i < p->n_columns; i++) {
        all |= mark_of(p, &p->columns[i]) == MARK_GOOD;
        most |= mark_of(p, &p->columns[i]) == MARK_MIND;
    }
    begin_item(to, all ? MARK_GOOD : most ? MARK_MIND : MARK_BAD, "Formats:");
    page_html_print(to, "of %s tensor%s are within the bounds in every step: ", text_count(n, p->n_tensors),
                    text_plural(p->n_tensors));
    for (size_t i = 0; i < p->n_columns; i++) {
        const page_column *c = &p->columns[i];
        page_html_print(to, "%s%s in %s", i ? ", " : "", c->within ? text_count(n, c->within) : "none", c->label);
    }
    fputs(".", to);
    put_link(to, "formats", "What each loses");
    end_item(to);
}

static void tell_worst(char *out, size_t size, const page *p, size_t column)
{
    char a[32], db[32], at[32];
    const page_tensor *w = worst_of(p, column);
    if (!w)
        return;
    const page_loss *l = &w->losses[column];
    snprintf(out, size, "%.300s: SQNR %s dB%s", w->name, text_decibels(db, l->sqnr.value),
             advise_step(at, " at ", l->sqnr.step));
    if (l->underflow.value > 0)
        text_add(out, size, ", up to %s %% become zero", text_percent(a, l->underflow.value));
}

static void put_formats(const page *p, FILE *to)
{
    html_table t;
    char n[32];
    page_html_table_begin(&t, to, "formats", "Formats: what each one keeps and loses", &format_record, 0);
    for (size_t i = 0; i < p->n_columns; i++) {
        const page_column *c = &p->columns[i];
        kind_loss k = {.p = p, .c = c, .kind = ""};
        stat_tally_sums(&p->sums, see_kind, &k);
        format_row row = {.label = c->label, .kind = k.kind, .fits = fits_of(p, c), .share = k.share};
        snprintf(row.within, sizeof row.within, "%s of %zu", text_count(n, c->within), p->n_tensors);
        tell_worst(row.worst, sizeof row.worst, p, i);
        t.mark = marks[mark_of(p, c)].class;
        page_html_row(&t, &row);
    }
    page_html_table_end(&t);
    const advise_bounds *b = &p->advice.bounds;
    fputs("<p class=\"note\">", to);
    page_html_print(
        to,
        "Within the bounds: in every step at most %.3g %% of a tensor's elements become zero (bf16: any, since those are "
        "below 2^-134), at most %.3g %% overflow, and SQNR is at least %.3g dB. Lost: zero, or beyond the largest number. ",
        100 * b->underflow, 100 * b->overflow, b->sqnr);
    page_html_print(
        to,
        "These are casts of the numbers as recorded; gradients are multiplied by the loss scale that the name of the format gives. "
        "The advice also tries scaled e4m3 and scaled e5m2, which have one scale for each tensor.");
    fputs("</p>\n", to);
}

/* ---- the advice ---- */

typedef struct telling {
    const page *p;
    FILE *to;
} telling;

static mark mark_of_topic(const advise *a, advise_topic topic)
{
    switch (topic) {
    case ADVISE_WEIGHTS:
        return a->stall.unknown ? MARK_OPEN : a->stall.keep ? MARK_BAD : MARK_GOOD;
    case ADVISE_COMPUTE:
        for (size_t i = 0; i < a->n_layers; i++)
            if (a->layers[i].kept)
                return MARK_MIND;
        return MARK_GOOD;
    case ADVISE_RECIPE:
        return !a->recipe ? MARK_OPEN : a->fitting_layers < a->operand_layers ? MARK_MIND : MARK_GOOD;
    case ADVISE_SCALE:
        return !a->gradients || a->bad_scale  ? MARK_OPEN
               : a->scale_low > a->scale_high ? MARK_BAD
               : a->scale_fits < a->gradients ? MARK_MIND
                                              : MARK_GOOD;
    default:
        return MARK_OPEN;
    }
}

static void put_sentence(void *context, advise_topic topic, const char *text)
{
    static const struct {
        const char *subject, *id, *link; /* what the sentence begins with; a table that has more of it */
    } topics[ADVISE_TOPICS] = {
        {"Weights:", NULL, NULL},
        {"Compute", NULL, NULL},
        {"FP8, FP4:", "wider", "What stays wider"},
        {"Loss scale", "tensors", "Scales of each gradient"},
        {"Bytes:", NULL, NULL},
    };
    const telling *t = context;
    const char *subject = topics[topic].subject, *colon = strchr(text, ':');
    size_t n = strncmp(text, subject, strlen(subject)) == 0 ? strlen(subject) : 0;
    char title[64] = "";
    if (topic == ADVISE_SCALE && n && colon && (size_t)(colon - text) < sizeof title - 1)
        n = (size_t)(colon - text) + 1; /* "Loss scale, for fp16:" */
    snprintf(title, sizeof title, "%.*s", (int)n, text);
    begin_item(t->to, mark_of_topic(&t->p->advice, topic), title);
    page_html_text(t->to, text + n + strspn(text + n, " "));
    if (topics[topic].id && mark_of_topic(&t->p->advice, topic) != MARK_OPEN)
        put_link(t->to, topics[topic].id, topics[topic].link);
    end_item(t->to);
}

static void put_note(void *context, const char *text)
{
    const telling *t = context;
    begin_item(t->to, MARK_OPEN, "Note:");
    page_html_text(t->to, text);
    end_item(t->to);
}

void page_summary(const page *p, FILE *to)
{
    telling t = {p, to};
    fputs("<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">In short</h2>\n<ul class=\"verdicts\">\n", to);
    put_broken(p, to);
    put_all_formats(p, to);
    advise_sentences(&p->advice, put_sentence, &t);
    advise_notes(&p->advice, put_note, &t);
    advise_note_roundoff(&p->advice, put_note, &t);
    if (p->advice.scaled)
        put_note(
            &t,
            "gradients were recorded multiplied by their loss scale: the advice is for what they are without it, the tables "
            "show them as recorded");
    fputs("</ul>\n", to);
    put_formats(p, to);
    fputs("</section>\n", to);
}
