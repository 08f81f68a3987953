/* tables.c -- the numbers of a page: of kinds, steps and tensors, and what the advice rests on; see page.h. */
#include "page.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a table but that of tensors, so that the page stays below 5 MB. */
enum { ROWS_MOST = 1000 };

/* ---- kinds and steps: what they hold, what casts lose ---- */

typedef struct showing {
    const page *p;
    html_table t;
    stat_level level;
    uint64_t left; /* rows without room */
} showing;

static int is_shown(showing *s, const stat_row *row)
{
    const int is = row->level == s->level || row->level == STAT_TOTAL;
    s->left += is && s->t.rows >= ROWS_MOST;
    return is && s->t.rows < ROWS_MOST;
}

static void name_row(char out[32], const stat_row *row)
{
    if (row->level == STAT_STEP && row->step >= 0)
        snprintf(out, 32, "%" PRId64, row->step);
    else
        snprintf(out, 32, "%s", row->level == STAT_TOTAL ? "all" : row->kind ? row->kind : "(none)");
}

static void put_held(void *context, const stat_row *row)
{
    showing *s = context;
    stat_shown label;
    name_row(label.name, row);
    if (is_shown(s, row))
        page_html_row(&s->t, &(stat_line){.label = &label, .row = row});
}

/* Casts and recipes in one table. */
static void put_losses(void *context, const stat_row *row)
{
    showing *s = context;
    stat_shown label;
    char format[96];
    if (!is_shown(s, row))
        return;
    name_row(label.name, row);
    for (size_t i = 0; i < row->n_casts + row->n_recipes; i++) {
        const int is_cast = i < row->n_casts;
        stat_loss loss = is_cast ? row->casts[i] : row->recipes[i - row->n_casts];
        if (is_cast && row->n_casts == s->p->targets.count && !page_shows(s->p, i))
            continue;
        snprintf(format, sizeof format, is_cast || loss.axis == BLOCK_ROWS ? "%s" : "%s %s", loss.name,
                 block_axes[is_cast ? BLOCK_ROWS : loss.axis]);
        loss.name = format;
        text_decibels(loss.sqnr, loss.sqnr_db); /* without marks */
        page_html_row(&s->t, &(stat_line){.label = &label, .loss = &loss});
    }
}

/* A table of what is seen, and how many rows of it have no room. */
static void put_table(showing *s, FILE *to, const char *of, const char *caption, const record_kind *kind,
                      void (*put)(void *context, const stat_row *row))
{
    char n[32], id[32];
    snprintf(id, sizeof id, "%ss-%s", stat_levels[s->level], of);
    s->left = 0;
    page_html_table_begin(&s->t, to, id, caption, kind,
                          (s->level == STAT_STEP ? SHOW_STEPS : SHOW_KINDS) | SHOW_SUMS | SHOW_CASTS | SHOW_SCALES);
    stat_tally_sums(&s->p->sums, put, s);
    page_html_table_end(&s->t);
    if (s->left) {
        fputs("<p class=\"note\">", to);
        page_html_print(to, "and %s more rows, which are in mpsim stat --json.", text_count(n, s->left));
        fputs("</p>\n", to);
    }
}

static void put_level(const page *p, FILE *to, stat_level of)
{
    showing s = {.p = p, .level = of};
    char caption[64];
    snprintf(caption, sizeof caption, "What the %ss hold", stat_levels[of]);
    put_table(&s, to, "held", caption, &stat_holds_record, put_held);
    snprintf(caption, sizeof caption, "What casts lose, by %s", stat_levels[of]);
    put_table(&s, to, "lost", caption, &stat_loses_record, put_losses);
}

void page_kinds(const page *p, FILE *to)
{
    fputs(
        "<section aria-labelledby=\"kinds\">\n<h2 id=\"kinds\">By kind</h2>\n"
        "<p class=\"note\">amin, amax: the smallest magnitude that is not zero and the largest. Underflow: elements that become zero. Overflow: "
        "elements beyond the largest number, whether they become infinite, NaN or that number. Shares are of all elements. A loss scale "
        "multiplies gradients alone; the others are cast with the scale 1, and a row of all kinds has both.</p>\n",
        to);
    put_level(p, to, STAT_KIND);
    fputs("</section>\n", to);
}

void page_steps(const page *p, FILE *to)
{
    if (p->sums.steps.count < 2)
        return;
    fputs("<section aria-labelledby=\"steps\">\n<h2 id=\"steps\">By step</h2>\n", to);
    put_level(p, to, STAT_STEP);
    fputs("</section>\n", to);
}

/* ---- tensors ---- */

/* The name of one of the advice's formats on the page. The advice gives e4m3 and e5m2 one scale for each tensor, the casts on the
 * page do not. */
static const char *candidate_name(char out[32], const candidate *c)
{
    const int scaled = c->casts[ROLE_ACT] && mpsim_format_find(c->name);
    snprintf(out, 32, "%s%s", scaled ? "scaled " : "", c->name);
    return out;
}

static const advise_tensor *advised(const page *p, const page_tensor *t)
{
    const ptrdiff_t i = nameindex_find(&p->advice.names, t->name);
    return i < 0 ? NULL : &p->advice.tensors[i];
}

typedef struct tensor_row {
    page_tensor t;
    uint64_t broken;
    char narrowest[32], scales[32], why[200];
} tensor_row;

#define AT(member) offsetof(tensor_row, member)
static const record_field tensor_fields[] = {
    COLUMN(TEXT, "<tensor", 0, AT(t.name), NULL),
    COLUMN(TEXT, "<kind", 0, AT(t.kind), NULL),
    COLUMN(CHARS, "<narrowest that fits", 0, AT(narrowest),
           "Of the formats that the advice tries, the one of the fewest bits that fits in every step."),
    COLUMN(CHARS, "<fp16 scales", 0, AT(scales), "The loss scales at which a gradient fits fp16."),
    COLUMN(COUNT, ">elements", 0, AT(t.count), NULL),
    COLUMN(COUNT, ">steps", 0, AT(t.steps), NULL),
    COLUMN(REAL, ">zero", FIELD_PERCENT, AT(t.zero), "Elements that are 0, the most of any step.", .lacking = "–"),
    COLUMN(COUNT, ">NaN, Inf", 0, AT(broken), "Elements that are NaN or Inf, of all steps."),
    COLUMN(REAL, ">amin", FIELD_BLANK, AT(t.amin), "The smallest magnitude that is not zero.", .lacking = "–"),
    COLUMN(REAL, ">amax", FIELD_BLANK, AT(t.amax), "The largest finite magnitude.", .lacking = "–"),
    {0}};
static const record_field why_fields[] = {
    COLUMN(CHARS, "<not narrower, since", 0, AT(why), "The next narrower format, and why it does not fit."), {0}};
static const record_kind tensor_record = {"tensor", NULL, sizeof(tensor_row), tensor_fields},
                         why_record = {"why", NULL, sizeof(tensor_row), why_fields};

/* Of the first cast; of the others behind it. */
enum { LOSS_FIELDS = 3 };
static const record_field cast_fields[LOSS_FIELDS] = {
    COLUMN(REAL, ">underflow", FIELD_PERCENT, offsetof(page_loss, underflow.value),
           "Elements other than 0 that become 0: the largest share of a step.", .lacking = "–"),
    COLUMN(REAL, ">overflow", FIELD_PERCENT, offsetof(page_loss, overflow.value),
           "Finite elements beyond the largest number: the largest share of a step.", .lacking = "–"),
    COLUMN(REAL, ">SQNR dB", FIELD_DECIBEL, offsetof(page_loss, sqnr.value),
           "Signal to quantisation noise: the lowest of a step.", .lacking = "–")};

/* The table of tensors: its columns depend on the casts. */
typedef struct tensor_columns {
    record_field fields[PAGE_COLUMNS_MOST + 3], casts[PAGE_COLUMNS_MOST][LOSS_FIELDS + 1];
    record_kind kinds[PAGE_COLUMNS_MOST], kind;
} tensor_columns;

static void make_columns(tensor_columns *c, const page *p)
{
    *c = (tensor_columns){.kind = {"tensors", NULL, sizeof(tensor_row), c->fields}};
    record_field *f = c->fields;
    *f++ = (record_field)COLUMN(RECORD, "", 0, 0, NULL, .record = &tensor_record);
    for (size_t i = 0; i < p->n_columns; i++) {
        record_field *cell = c->casts[i];
        for (int k = 0; k < LOSS_FIELDS; k++)
            if (k != 1 || p->columns[i].overflows) {
                *cell = cast_fields[k];
                cell++->at += i * sizeof(page_loss);
            }
        c->kinds[i] = (record_kind){"cast", NULL, sizeof(page_loss), c->casts[i]};
        *f++ = (record_field)FIELD(RECORD, NULL, FIELD_POINTER, AT(t.losses), NULL, .title = p->columns[i].label,
                                   .record = &c->kinds[i]);
    }
    *f = (record_field)COLUMN(RECORD, "", 0, 0, NULL, .record = &why_record);
}
#undef AT

static void tell_advice(tensor_row *row, const advise *a, const advise_tensor *x)
{
    char reason[160], name[32];
    if (x->steps)
        candidate_name(row->narrowest, &a->candidates.items[x->choice]);
    if (x->gradient && !a->bad_scale && x->scales && x->steps)
        snprintf(row->scales, sizeof row->scales, "2^%d to 2^%d", x->low.exponent, x->high.exponent);
    else if (x->gradient && !a->bad_scale)
        snprintf(row->scales, sizeof row->scales, "none");
    if (x->steps && x->choice)
        snprintf(row->why, sizeof row->why, "%s: %s", candidate_name(name, &a->candidates.items[x->choice - 1]),
                 advise_reason(reason, sizeof reason, a, x, x->choice - 1));
    else if (!x->steps)
        snprintf(row->why, sizeof row->why, "%s in every step", x->rounding ? "round-off" : "Inf or NaN");
}

static void put_tensor(const page *p, html_table *out, const page_tensor *t)
{
    const advise_tensor *x = advised(p, t);
    tensor_row row = {.t = *t, .broken = t->nan + t->inf, .narrowest = "not known"};
    if (x)
        tell_advice(&row, &p->advice, x);
    page_html_row(out, &row);
}

/* Rows in two turns where not all have room: first of what some format does harm to, fp16 or bf16 most of all. */
static int is_first(const page *p, const page_tensor *t)
{
    const advise_tensor *x = advised(p, t);
    return t->nan + t->inf > 0 || !x || x->choice + 2 >= p->advice.candidates.count;
}

static size_t put_rows(const page *p, html_table *out, FILE *rows, const size_t *size, size_t room, int turn)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_tensors; i++) {
        const page_tensor *t = &p->tensors[i];
        fflush(rows);
        if ((turn < 2 && is_first(p, t) != !turn) || *size > room)
            continue;
        put_tensor(p, out, t);
        n++;
    }
    return n;
}

/* The table in so many bytes, or a little more: *text, with how many rows. */
static size_t make_tensors(const page *p, const record_kind *kind, size_t room, char **text)
{
    static const char caption[] = "Each tensor over all its steps: extremes, advice, and each format's worst step";
    size_t n = 0, size = 0;
    for (int turn = 2; turn >= 0 && n < p->n_tensors; turn -= 2) { /* all; else the important ones first */
        html_table t;
        free(*text);
        FILE *to = page_html_begin(text, &size);
        page_html_table_begin(&t, to, "tensors", caption, kind, 0);
        t.is_styled = 1; /* saves 40 bytes a row */
        n = put_rows(p, &t, to, &size, room, turn);
        n += turn ? 0 : put_rows(p, &t, to, &size, room, 1);
        page_html_table_end(&t);
        page_html_end(to, text);
    }
    return n;
}

void page_put_tensors(const page *p, FILE *to, size_t room)
{
    tensor_columns columns;
    char *text = NULL, count[32], left[32];
    make_columns(&columns, p);
    const size_t n = make_tensors(p, &columns.kind, room, &text);
    fputs("<section aria-labelledby=\"each\">\n<h2 id=\"each\">Tensor by tensor</h2>\n", to);
    if (n < p->n_tensors) {
        fputs("<p class=\"note\">", to);
        page_html_print(
            to,
            "Of %s tensors %s have no row here, since the page would become too large: first come those with NaN or Inf and those "
            "that fit no format of less than 16 bits. mpsim stat --json and mpsim advise --json have all.",
            text_count(count, p->n_tensors), text_count(left, p->n_tensors - n));
        fputs("</p>\n", to);
    }
    if (p->cut_columns)
        fputs("<p class=\"note\">Some casts have no columns here; mpsim stat --json has all.</p>\n", to);
    fputs(text, to);
    free(text);
    fputs("</section>\n", to);
}

/* ---- what the advice rests on ---- */

typedef struct wider {
    const char *name, *in;
    char why[400];
} wider;

#define AT(member) offsetof(wider, member)
static const record_field wider_fields[] = {COLUMN(TEXT, "<tensor", 0, AT(name), NULL),
                                            COLUMN(TEXT, "<keep in", 0, AT(in), NULL),
                                            COLUMN(CHARS, "<why", 0, AT(why), NULL),
                                            {0}};
#undef AT
static const record_kind wider_record = {"wider", NULL, sizeof(wider), wider_fields};

static void put_wider(const page *p, FILE *to)
{
    const advise *a = &p->advice;
    html_table t;
    wider w;
    size_t n = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        n += advise_kept_in(w.why, sizeof w.why, a, &a->tensors[i]) != NULL;
    if (!n) {
        fputs("<p id=\"wider\">No tensor has to be kept wider than the rest.</p>\n", to);
        return;
    }
    page_html_table_begin(&t, to, "wider", "To be kept wider", &wider_record, 0);
    for (size_t i = 0; i < a->n_tensors; i++) {
        w.name = a->tensors[i].name;
        w.in = advise_kept_in(w.why, sizeof w.why, a, &a->tensors[i]);
        if (w.in && t.rows < ROWS_MOST)
            page_html_row(&t, &w);
    }
    page_html_table_end(&t);
    if (n > ROWS_MOST)
        fprintf(to, "<p class=\"note\">and %zu more: mpsim advise --tensors lists all.</p>\n", n - ROWS_MOST);
}

#define AT(member) offsetof(advise_kind, member)
static const record_field kind_fields[] = {COLUMN(TEXT, "<kind", 0, AT(kind), NULL),
                                           COLUMN(COUNT, ">tensors", 0, AT(tensors), NULL),
                                           COLUMN(COUNT, ">elements", 0, AT(elements), NULL),
                                           {0}};
static const record_kind kind_record = {"kind", NULL, sizeof(advise_kind), kind_fields};

static void put_fits(const page *p, FILE *to)
{
    const advise *a = &p->advice;
    html_table t;
    char titles[CANDIDATES_MOST][40], name[32];
    record_field columns[CANDIDATES_MOST + 1] = {COLUMN(RECORD, "", 0, 0, NULL, .record = &kind_record)};
    const record_kind fits = {"fits", NULL, sizeof(advise_kind), columns};
    for (size_t c = 0; c + 1 < a->candidates.count; c++) {
        snprintf(titles[c], sizeof titles[c], ">%s", candidate_name(name, &a->candidates.items[c]));
        columns[c + 1] = (record_field)COLUMN(COUNT, titles[c], 0, AT(fits) + c * sizeof(uint64_t), NULL);
    }
    page_html_table_begin(&t, to, "fits", "Tensors that fit each format in every step, by kind", &fits, 0);
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_kind k;
        if (!advise_kind_of(&k, a, i))
            continue;
        k.kind = *k.kind ? k.kind : "(none)";
        page_html_row(&t, &k);
    }
    page_html_table_end(&t);
    fputs(
        "<p class=\"note\">Scaled e4m3 and scaled e5m2 have one scale for each tensor, blockwise one for each tile of 128 elements. Gradients in "
        "fp16 may have any loss scale. Weights, masters and moments are judged as copies: where they accumulate updates, a format "
        "that holds their values may still lose the updates.</p>\n",
        to);
}

#undef AT

void page_advice(const page *p, FILE *to)
{
    char *text = NULL;
    size_t size = 0;
    fputs("<section aria-labelledby=\"advice\">\n<h2 id=\"advice\">Advice</h2>\n", to);
    put_wider(p, to);
    put_fits(p, to);
    FILE *out = page_html_begin(&text, &size);
    advise_write_policy(&p->advice, out);
    page_html_end(out, &text);
    fputs(
        "<h3 id=\"policy\">As a policy</h3>\n<p>For <code>mpsim replay -P</code> and <code>mpsim train -P</code>.</p>\n<pre tabindex=\"0\">",
        to);
    for (char *s = text, *end; *s; s = end) { /* lines are lines, the rest is text */
        end = s + strcspn(s, "\n");
        const int more = *end != '\0';
        *end = '\0';
        page_html_text(to, s);
        fputs(more ? "\n" : "", to);
        end += more;
    }
    fputs("</pre>\n</section>\n", to);
    free(text);
}
