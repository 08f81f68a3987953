/* report.c -- see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char *const letters[] = {"A", "B"};

/* ---- the records ---- */

/* The report. */
typedef struct report {
    mismatch m;
    const char *hidden, *head, *from; /* labels; from: of the tokens, or NULL; hidden NULL: of attention alone */
    const char *qkv[3];               /* labels; NULL: there is no attention */
    const arithmetic *sides[2];
    const double *clip;
    size_t bounds; /* 2, of clip */
    ratios_summary tokens;
} report;

/* A token. */
typedef struct row {
    size_t at;
    uint64_t token;
    mismatch_token x;
    double difference, ratio;
} row;

#define AT(member) offsetof(mismatch_error, member)
static const record_field error_fields[] = {
    FIELD(COUNT, "count", IN_TREE, AT(count), "Tokens with a finite log-probability."),
    FIELD(REAL, "mean", IN_TREE, AT(mean), "Mean of log p - exact log p."),
    FIELD(REAL, "mean_magnitude", IN_TREE, AT(mean_magnitude), "Mean of |log p - exact log p|."),
    FIELD(REAL, "largest", IN_TREE, AT(largest), "Largest |log p - exact log p|."),
    {0}};
static const record_kind error_record = {"error", "Log-probabilities of the tokens against exact ones.",
                                         sizeof(mismatch_error), error_fields};
#undef AT

#define AT(member) offsetof(mismatch_operands, member)
static const record_field sizes_fields[] = {FIELD(SIZE, "count", IN_TREE, AT(count), "Tokens."),
                                            FIELD(SIZE, "size", IN_TREE, AT(size), "Numbers of a hidden state."),
                                            FIELD(SIZE, "vocabulary", IN_TREE, AT(vocabulary), "Words."),
                                            {0}};
static const record_kind sizes_record = {"sizes", NULL, sizeof(mismatch_operands), sizes_fields};
#undef AT

#define AT(member) offsetof(report, member)
static const record_field config_fields[] = {
    FIELD(TEXT, "hidden", IN_TREE | FIELD_NULL, AT(hidden), "Where the hidden states are from; null: attention."),
    FIELD(TEXT, "query", IN_TREE | FIELD_NULL, AT(qkv[0]), "Where Q is from; null: there is no attention."),
    FIELD(TEXT, "key", IN_TREE | FIELD_NULL, AT(qkv[1]), "Where K is from."),
    FIELD(TEXT, "value", IN_TREE | FIELD_NULL, AT(qkv[2]), "Where V is from."),
    FIELD(TEXT, "head", IN_TREE, AT(head), "Where the weights of the last layer are from."),
    FIELD(TEXT, "tokens", IN_TREE | FIELD_NULL, AT(from), "Where the tokens are from; null: drawn from A."),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(m.o), NULL, .record = &sizes_record),
    FIELD(COUNT, "seed", IN_TREE, AT(m.seed), NULL),
    FIELD(RECORD, "a", IN_TREE | FIELD_POINTER, AT(sides[0]), NULL, .record = &mismatch_arithmetic_record),
    FIELD(RECORD, "b", IN_TREE | FIELD_POINTER, AT(sides[1]), NULL, .record = &mismatch_arithmetic_record),
    FIELD(REALS, "clip", IN_TREE, AT(clip), "The band of ratios: the lower bound, the upper bound.", .of = AT(bounds)),
    {0}};
static const record_kind config_record = {"config", "What is computed, and how.", sizeof(report), config_fields};

static const record_field kl_fields[] = {
    FIELD(COUNT, "count", IN_TREE, AT(m.kl_count), "Tokens with a finite divergence."),
    FIELD(REAL, "mean", IN_TREE, AT(m.mean_kl), NULL),
    FIELD(REAL, "largest", IN_TREE, AT(m.largest_kl), NULL),
    {0}};
static const record_kind kl_record = {"kl", "KL(A || B) of the distributions over all words.", sizeof(report),
                                      kl_fields};
#undef AT

#define AT(member) offsetof(row, member)
static const record_field row_fields[] = {
    FIELD(SIZE, "at", IN_ALL | FIELD_PLAIN, AT(at), "The place of the token, from 0.", .title = ">at"),
    FIELD(COUNT, "token", IN_ALL | FIELD_PLAIN, AT(token), "The number of its word.", .title = ">token"),
    FIELD(REAL, "a", IN_ALL, AT(x.lp[0]), "The log-probability of the token by A.", .title = ">A", .format = "%.6f"),
    FIELD(REAL, "b", IN_ALL, AT(x.lp[1]), "The log-probability of the token by B.", .title = ">B", .format = "%.6f"),
    FIELD(REAL, "exact", IN_ALL, AT(x.exact),
          "The log-probability of the token in binary64, of the numbers before they are rounded.", .title = ">exact",
          .spare = 2, .format = "%.6f"),
    FIELD(REAL, NULL, 0, AT(difference), NULL, .title = ">B - A"),
    FIELD(REAL, NULL, 0, AT(ratio), NULL, .title = ">p(B) / p(A)"),
    FIELD(REAL, "kl", IN_ALL, AT(x.kl), "KL(A || B) over all words; NaN where a logit is not finite.", .title = ">KL",
          .spare = 3),
    FIELD(INTEGER, "most_likely_differs", IN_LINE | IN_CSV, AT(x.differs),
          "1: A and B prefer different words; 0: the same word."),
    {0}};
static const record_kind row_record = {"token", "A token.", sizeof(row), row_fields};
#undef AT

#define AT(member) offsetof(report, member)
static const record_field report_fields[] = {
    FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config_record),
    FIELD(RECORD, "a", IN_JSON, AT(m.errors[0]), NULL, .record = &error_record),
    FIELD(RECORD, "b", IN_JSON, AT(m.errors[1]), NULL, .record = &error_record),
    FIELD(RECORD, "tokens", IN_JSON, AT(tokens), NULL, .record = &diff_ratios_record),
    FIELD(RECORD, "kl", IN_JSON, 0, NULL, .record = &kl_record),
    FIELD(COUNT, "most_likely_differs", IN_JSON, AT(m.differing), "Places at which A and B prefer different words."),
    FIELD(LIST, "worst", IN_JSON | FIELD_STREAM, 0, "The tokens whose log-probabilities by A and B are farthest apart.",
          .record = &row_record),
    {0}};
#undef AT
static const record_kind report_record = {"report", NULL, sizeof(report), report_fields};

const report_kind mismatch_kind = {
    "mpsim.mismatch/1", "mpsim mismatch: log-probabilities of two arithmetics",
    "What the arithmetic of a sampler and that of a trainer make of the same hidden states. $defs/line is a line of "
    "--ndjson: a token; it names no schema.",
    &report_record};

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
    const attention_heads *h = &m->o->heads;
    char count[32], size[32], words[32], text[640];
    if (m->o->attends)
        fprintf(to, "attention of %s, %s, %s, %zu head%s, %zu of K and V\n", h->q.of.label, h->k.of.label,
                h->v.of.label, h->q.heads, text_plural(h->q.heads), h->k.heads);
    fprintf(to, "H  %s%s, %s token%s of %s numbers\n", m->o->hidden.label,
            !m->o->attends        ? ""
            : *m->o->hidden.label ? " and attention"
                                  : "attention",
            text_count(count, m->o->count), text_plural(m->o->count), text_count(size, m->o->size));
    fprintf(to, "W  %s, %s words\n", m->o->head.label, text_count(words, m->o->vocabulary));
    for (int s = 0; s < 2; s++)
        fprintf(to, "%s  %s\n", letters[s], mismatch_arithmetic_text(text, sizeof text, &m->sides[s]));
    if (r->drawn)
        fprintf(to, "tokens drawn from A");
    else
        fprintf(to, "tokens of %s", m->o->label);
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

static void print_text(const record_writer *w, const mismatch_report *r)
{
    char left[32];
    FILE *to = w->to;
    print_operands(to, r);
    fputc('\n', to);
    print_errors(to, r->m);
    if (r->r->padding + r->r->one_sided)
        fprintf(to, "%s left out below: not finite on a side\n", text_count(left, r->r->padding + r->r->one_sided));
    if (r->r->tokens)
        diff_ratios_print(to, r->r, r->m->o->count == r->m->o->length);
    print_all_words(to, r->m);
    if (w->written) {
        fputs("\nThe tokens farthest apart:\n\n", to);
        table_print(w->rows, to, "");
    }
}

/* ---- all forms ---- */

static void add_row(record_writer *w, const mismatch *m, const mismatch_token *t)
{
    const double difference = t->lp[1] - t->lp[0];
    const row r = {
        .at = (size_t)(t - m->tokens), .token = t->id, .x = *t, .difference = difference, .ratio = exp(difference)};
    record_row(w, &r);
}

/* Those farthest apart are for text and JSON, the others have all in their order. */
static void add_rows(record_writer *w, const mismatch_report *r)
{
    const int all = w->style == REPORT_CSV || w->style == REPORT_NDJSON;
    const mismatch_token **list = all ? NULL : by_distance(r->m);
    const size_t n = all ? r->m->o->count : listed(r);
    for (size_t i = 0; i < n; i++)
        add_row(w, r->m, all ? &r->m->tokens[i] : list[i]);
    free(list);
}

void mismatch_report_write(FILE *to, report_style style, const mismatch_report *r)
{
    const mismatch *m = r->m;
    const double clip[] = {r->r->low, r->r->high};
    const report d = {.m = *m,
                      .hidden = *m->o->hidden.label ? m->o->hidden.label : NULL,
                      .qkv = {m->o->attends ? m->o->heads.q.of.label : NULL,
                              m->o->attends ? m->o->heads.k.of.label : NULL,
                              m->o->attends ? m->o->heads.v.of.label : NULL},
                      .head = m->o->head.label,
                      .from = r->drawn ? NULL : m->o->label,
                      .sides = {&m->sides[0], &m->sides[1]},
                      .clip = clip,
                      .bounds = 2,
                      .tokens = diff_ratios_summarise(r->r)};
    record_writer w = {.kind = &mismatch_kind, .to = to, .style = style, .document = &d};
    record_begin(&w);
    add_rows(&w, r);
    if (style == REPORT_TEXT)
        print_text(&w, r);
    record_end(&w);
}
