/* tables.c -- the numbers of a page: of kinds, steps and tensors, and what the advice rests on; see page.h. */
#include "page.h"

#include "../array/need.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a table but that of tensors, so that the page stays below 5 MB. */
enum { ROWS_MOST = 1000 };

/* ---- cells ---- */

const char *page_percent(char out[32], double share)
{
    const double x = 100 * share;
    if (isnan(x))
        strcpy(out, "–");
    else if (x == 0)
        strcpy(out, "0");
    else if (x < 0.001)
        strcpy(out, "<0.001");
    else if (x < 100 && x >= 99.95)
        snprintf(out, 32, "%s", x > 99.999 ? ">99.999" : "99.99");
    else
        snprintf(out, 32, "%.3g", x);
    return out;
}

const char *page_db(char out[32], double sqnr)
{
    if (isnan(sqnr))
        strcpy(out, "–");
    else if (isinf(sqnr))
        strcpy(out, sqnr > 0 ? "exact" : "-inf");
    else
        snprintf(out, 32, "%.1f", sqnr);
    return out;
}

static void cell_share(html_table *t, uint64_t part, uint64_t whole)
{
    char a[32];
    page_html_cell(t, "%s", page_percent(a, whole ? (double)part / (double)whole : 0));
}

static void cell_number(html_table *t, double x)
{
    char a[32];
    page_html_cell(t, "%s", x == 0 ? "–" : text_number(a, x));
}

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

static const char *name_of(char out[32], const stat_row *row)
{
    if (row->level == STAT_STEP && row->step >= 0)
        snprintf(out, 32, "%" PRId64, row->step);
    else
        snprintf(out, 32, "%s", row->level == STAT_TOTAL ? "all" : row->kind ? row->kind : "(none)");
    return out;
}

static void put_held(void *context, const stat_row *row)
{
    showing *s = context;
    char a[32];
    const mpsim_stats *x = row->stats;
    if (!is_shown(s, row))
        return;
    page_html_cell(&s->t, "%s", name_of(a, row));
    page_html_cell(&s->t, "%s", text_count(a, row->tensors));
    page_html_cell(&s->t, "%s", text_count(a, x->count));
    cell_share(&s->t, x->zero, x->count);
    page_html_cell(&s->t, "%s", text_count(a, x->nan + x->inf));
    cell_number(&s->t, x->amin);
    cell_number(&s->t, x->amax);
    page_html_cell(&s->t, "%s", text_number(a, row->mean));
    page_html_cell(&s->t, "%s", text_number(a, row->l2));
}

static void put_loss(showing *s, const char *name, const char *format, const char *scale, const stat_loss *k)
{
    char a[32];
    page_html_cell(&s->t, "%s", name);
    page_html_cell(&s->t, "%s", format);
    page_html_cell(&s->t, "%s", scale);
    cell_share(&s->t, k->underflow, k->of);
    cell_share(&s->t, k->subnormal, k->of);
    cell_share(&s->t, k->overflow, k->of);
    cell_share(&s->t, k->inexact, k->of);
    page_html_cell(&s->t, "%s", page_db(a, k->sqnr_db));
    page_html_cell(&s->t, "%s", k->compared ? text_number(a, k->max_rel_err) : "–");
}

static void put_losses(void *context, const stat_row *row)
{
    showing *s = context;
    char name[32], scale[32], label[96];
    if (!is_shown(s, row))
        return;
    name_of(name, row);
    for (size_t i = 0; i < row->n_casts; i++)
        if (row->n_casts != s->p->targets.count || page_shows(s->p, i))
            put_loss(s, name, row->casts[i].name, text_scale(scale, row->casts[i].scale), &row->casts[i]);
    for (size_t i = 0; i < row->n_recipes; i++) {
        const stat_loss *k = &row->recipes[i];
        snprintf(label, sizeof label, k->axis == BLOCK_ROWS ? "%s" : "%s %s", k->name, block_axes[k->axis]);
        put_loss(s, name, label, "", k);
    }
}

/* A table of what is seen, and how many rows of it have no room. */
static void put_table(showing *s, FILE *to, const char *id, const char *caption, const char *columns,
                      void (*put)(void *context, const stat_row *row))
{
    char n[32];
    s->left = 0;
    page_html_table_begin(&s->t, to, id, caption, columns);
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
    char columns[256], id[32], caption[64];
    const char sign = of == STAT_STEP ? '>' : '<', *const level = stat_levels[of];
    snprintf(columns, sizeof columns, "%c%s|>tensors|>elements|>zero, %%|>NaN, Inf|>amin|>amax|>mean|>l2 norm", sign,
             level);
    snprintf(id, sizeof id, "%ss-held", level);
    snprintf(caption, sizeof caption, "What the %ss hold", level);
    put_table(&s, to, id, caption, columns, put_held);
    snprintf(
        columns, sizeof columns,
        "%c%s|<format|>scale|>become zero, %%|>subnormal, %%|>too large, %%|>inexact, %%|>SQNR, dB|>max rel. error",
        sign, level);
    snprintf(id, sizeof id, "%ss-lost", level);
    snprintf(caption, sizeof caption, "What casts lose, by %s", level);
    put_table(&s, to, id, caption, columns, put_losses);
}

void page_kinds(const page *p, FILE *to)
{
    fputs(
        "<section aria-labelledby=\"kinds\">\n<h2 id=\"kinds\">By kind</h2>\n"
        "<p class=\"note\">amin, amax: the smallest magnitude that is not zero and the largest. Too large: beyond the largest number, "
        "whether it becomes infinite, NaN or that number. Shares are of all elements. A loss scale multiplies gradients alone; the "
        "others are cast with the scale 1, and a row of all kinds has both.</p>\n",
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

static char *tensor_columns(const page *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = page_html_begin(&text, &size);
    fputs("<tensor|<kind|<narrowest that fits|<fp16 scales|>elements|>steps|>zero, %|>NaN, Inf|>amin|>amax", to);
    for (size_t i = 0; i < p->n_columns; i++) {
        char *label = need_text(p->columns[i].label);
        for (char *s = label; *s; s++) /* a slash is the table's own */
            if (*s == '/')
                *s = ' ';
        fprintf(to, "|>%s/zero, %%", label);
        if (p->columns[i].overflows)
            fprintf(to, "|>%s/too large, %%", label);
        fprintf(to, "|>%s/SQNR, dB", label);
        free(label);
    }
    fputs("|<not narrower, since", to);
    page_html_end(to, &text);
    return text;
}

static void put_advised(const page *p, html_table *out, const advise_tensor *x)
{
    const advise *a = &p->advice;
    char name[32];
    page_html_cell(out, "%s", x && x->steps ? candidate_name(name, &a->candidates.items[x->choice]) : "not known");
    if (x && x->gradient && x->scales && x->steps && !a->bad_scale)
        page_html_cell(out, "2^%d to 2^%d", x->low.exponent, x->high.exponent);
    else
        page_html_cell(out, "%s", x && x->gradient && !a->bad_scale ? "none" : "");
}

static void put_reason(const page *p, html_table *out, const advise_tensor *x)
{
    const advise *a = &p->advice;
    char reason[160], name[32];
    if (x && x->steps && x->choice)
        page_html_cell(out, "%s: %s", candidate_name(name, &a->candidates.items[x->choice - 1]),
                       advise_reason(reason, sizeof reason, a, x, x->choice - 1));
    else
        page_html_cell(out, "%s",
                       !x || x->steps ? ""
                       : x->rounding  ? "round-off in every step"
                                      : "Inf or NaN in every step");
}

static void put_tensor(const page *p, html_table *out, const page_tensor *t)
{
    const advise_tensor *x = advised(p, t);
    char a[32];
    page_html_cell(out, "%s", t->name);
    page_html_cell(out, "%s", t->kind);
    put_advised(p, out, x);
    page_html_cell(out, "%s", text_count(a, t->count));
    page_html_cell(out, "%s", text_count(a, t->steps));
    page_html_cell(out, "%s", page_percent(a, t->zero));
    page_html_cell(out, "%s", text_count(a, t->nan + t->inf));
    cell_number(out, t->amin);
    cell_number(out, t->amax);
    for (size_t i = 0; i < p->n_columns; i++) {
        const page_loss *l = &t->losses[i];
        page_html_cell(out, "%s", page_percent(a, l->underflow.value));
        if (p->columns[i].overflows)
            page_html_cell(out, "%s", page_percent(a, l->overflow.value));
        page_html_cell(out, "%s", page_db(a, l->sqnr.value));
    }
    put_reason(p, out, x);
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
static size_t make_tensors(const page *p, const char *columns, size_t room, char **text)
{
    static const char caption[] = "Each tensor over all its steps: extremes, advice, and each format's worst step";
    size_t n = 0, size = 0;
    for (int turn = 2; turn >= 0 && n < p->n_tensors; turn -= 2) { /* all; else the important ones first */
        html_table t;
        free(*text);
        FILE *to = page_html_begin(text, &size);
        page_html_table_begin(&t, to, "tensors", caption, columns);
        t.texts = 0; /* the style knows which of its columns are texts: 40 bytes a row */
        n = put_rows(p, &t, to, &size, room, turn);
        n += turn ? 0 : put_rows(p, &t, to, &size, room, 1);
        page_html_table_end(&t);
        page_html_end(to, text);
    }
    return n;
}

void page_put_tensors(const page *p, FILE *to, size_t room)
{
    char *columns = tensor_columns(p), *text = NULL, count[32], left[32];
    const size_t n = make_tensors(p, columns, room, &text);
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
    free(columns);
    fputs("</section>\n", to);
}

/* ---- what the advice rests on ---- */

static void put_wider(const page *p, FILE *to)
{
    const advise *a = &p->advice;
    html_table t;
    char why[400];
    size_t n = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        n += advise_kept_in(why, sizeof why, a, &a->tensors[i]) != NULL;
    if (!n) {
        fputs("<p id=\"wider\">No tensor has to be kept wider than the rest.</p>\n", to);
        return;
    }
    page_html_table_begin(&t, to, "wider", "To be kept wider", "<tensor|<keep in|<why");
    for (size_t i = 0; i < a->n_tensors; i++) {
        const char *in = advise_kept_in(why, sizeof why, a, &a->tensors[i]);
        if (!in || t.rows == ROWS_MOST)
            continue;
        page_html_cell(&t, "%s", a->tensors[i].name);
        page_html_cell(&t, "%s", in);
        page_html_cell(&t, "%s", why);
    }
    page_html_table_end(&t);
    if (n > ROWS_MOST)
        fprintf(to, "<p class=\"note\">and %zu more: mpsim advise --tensors lists all.</p>\n", n - ROWS_MOST);
}

static void put_kind(const advise *a, html_table *out, const advise_kind *k)
{
    char n[32];
    page_html_cell(out, "%s", *k->kind ? k->kind : "(none)");
    page_html_cell(out, "%s", text_count(n, k->tensors));
    page_html_cell(out, "%s", text_count(n, k->elements));
    for (size_t c = 0; c + 1 < a->candidates.count; c++)
        page_html_cell(out, "%s", text_count(n, k->fits[c]));
}

static void put_fits(const page *p, FILE *to)
{
    const advise *a = &p->advice;
    html_table t;
    char columns[256] = "<kind|>tensors|>elements", name[32];
    for (size_t c = 0; c + 1 < a->candidates.count; c++)
        text_add(columns, sizeof columns, "|>%s", candidate_name(name, &a->candidates.items[c]));
    page_html_table_begin(&t, to, "fits", "Tensors that fit each format in every step, by kind", columns);
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_kind k;
        if (advise_kind_of(&k, a, i))
            put_kind(a, &t, &k);
    }
    page_html_table_end(&t);
    fputs(
        "<p class=\"note\">Scaled e4m3 and scaled e5m2 have one scale for each tensor, blockwise one for each tile of 128 elements. Gradients in "
        "fp16 may have any loss scale. Weights, masters and moments are judged as copies: where they accumulate updates, a format "
        "that holds their values may still lose the updates.</p>\n",
        to);
}

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
