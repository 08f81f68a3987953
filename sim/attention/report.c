/* report.c -- see report.h. */
#include "attention.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>

/* ---- what was computed ---- */

static const char *output_name(const mpsim_attention *a)
{
    return a->f ? a->f->name : "binary32";
}

static size_t tile_of(const attention_report *r)
{
    return r->a->tile && r->a->tile < r->h->k.tokens ? r->a->tile : r->h->k.tokens;
}

static attention_config config_of(const attention_report *r)
{
    const mpsim_attention *a = r->a;
    const attention_heads *h = r->h;
    return (attention_config){.q = &h->q,
                              .k = &h->k,
                              .v = &h->v,
                              .labels = {h->q.of.label, h->k.of.label, h->v.of.label},
                              .generated = r->values,
                              .scores = r->scores,
                              .mask = r->mask,
                              .softmax = a->softmax ? a->softmax->name : "binary32",
                              .p_round = mpsim_round_mode_name((mpsim_round_mode)a->p.rounding.mode),
                              .output = output_name(a),
                              .a = *a,
                              .seed = r->seed,
                              .tile = tile_of(r),
                              .window = {a->left, a->causal ? 0 : a->right},
                              .windows = 2};
}

static void print_part(const attention_report *r, const char *letter, const heads_part *p)
{
    char heads[32], tokens[32], size[32], batch[32];
    fprintf(r->to, "%s  %s, %s: ", letter, p->of.format.name, p->of.label);
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

static void print_config(const attention_report *r)
{
    if (r->values)
        fprintf(r->to, "%s; seed %" PRIu64 "\n", r->values, r->seed);
    print_part(r, "Q", &r->h->q);
    print_part(r, "K", &r->h->k);
    print_part(r, "V", &r->h->v);
    print_softmax(r);
}

void attention_report_begin(attention_report *r)
{
    r->config = config_of(r);
    r->config.bounds = r->a->left == SIZE_MAX ? NULL : r->config.window;
    r->config.cure = r->a->beta > 0 ? &r->a->beta : NULL;
    r->config.above = r->above >= 0 ? &r->above : NULL;
    r->out = (record_writer){.kind = &attention_kind,
                             .to = r->to,
                             .style = r->style,
                             .document = &r->config,
                             .shows = dot_distance_shows(r->style, r->absolute, r->above) |
                                      (attention_heads_exact(r->h) ? SHOW_EXACT : SHOW_ROUNDED) |
                                      (r->scores ? 0 : SHOW_REPEATED)};
    r->signs = record_table(&attention_signs_record, 0);
    if (r->style == REPORT_TEXT)
        print_config(r);
    record_begin(&r->out);
}

/* ---- a model ---- */

static void add_signs(const attention_report *r, const mpsim_model *m, const attention_result *x)
{
    static const char *const rows[] = {"others", "maximum repeats"}, *const results[] = {"below 0", "above 0"};
    for (int i = 1; i >= 0; i--)
        for (int k = 0; k < 2; k++) {
            const attention_signs_row row = {m->name, rows[i], results[k], &x->signs[i][k]};
            if (row.signs->count)
                record_cells(r->signs, &attention_signs_record, &row, 0);
        }
}

void attention_report_add(attention_report *r, const mpsim_model *m, const attention_result *x)
{
    attention_row row = {.model = m->name,
                         .accumulator = m->result.format.name,
                         .x = *x,
                         .apart = x->error.same ? NULL : &x->error.given,
                         .config = &r->config};
    if (x->error.not_finite == x->error.count)
        row.x.lean = (double)NAN;
    record_row(&r->out, &row);
    add_signs(r, m, x);
    r->repeated |= x->counts.repeated > 0;
    if (!x->error.same)
        dot_distance_worse(&r->given, &x->error.given);
    dot_distance_worse(&r->rounded, &x->error.rounded);
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

static void print_end(const attention_report *r, const attention_result *last)
{
    print_counts(r, &last->counts);
    table_print(r->out.rows, r->to, "");
    dot_distance_note(r->to, &r->given, "As given the", "");
    dot_distance_note(r->to, &r->rounded, "The", attention_heads_exact(r->h) ? "" : ", as rounded");
    if (r->repeated) {
        fputs("\nErrors by the sign of the result, where the largest score repeats and elsewhere:\n\n", r->to);
        table_print(r->signs, r->to, "");
    }
}

void attention_report_end(attention_report *r, const attention_result *last)
{
    if (r->style == REPORT_TEXT)
        print_end(r, last);
    record_end(&r->out);
    table_free(r->signs);
    r->signs = NULL;
}
