/* measure.c -- what the page tells: the advice, and the statistics of casts, tensor by tensor; see page.h. */
#include "page.h"

#include "../array/need.h"
#include "../plot/item.h"
#include "../stat/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usual_formats[] = "fp16,bf16,e4m3,e5m2,mxfp8,nvfp4";

/* ---- what tensors are cast to ---- */

/* Without other wishes: as recorded, and at the loss scale that is advised, where gradients were recorded without one and some format
 * takes a scale. */
static int make_settings(page *p)
{
    const advise *a = &p->advice;
    p->settings = p->options->settings;
    p->settings.from = *p->in.options;
    p->settings.without_roundoff = 1;
    if (!p->settings.to.formats)
        p->settings.to.formats = usual_formats;
    const int code = stat_settings_targets(&p->settings, &p->targets, "report");
    if (code || p->settings.to.scales || !p->targets.count || a->scaled || !a->gradients || !a->scale ||
        a->scale_low > a->scale_high)
        return code;
    snprintf(p->scales, sizeof p->scales, "1,2^%d", a->scale);
    p->settings.to.scales = p->scales;
    target_list_clear(&p->targets);
    return stat_settings_targets(&p->settings, &p->targets, "report");
}

static void add_column(page *p, size_t cast, size_t block, const char *label)
{
    if (p->n_columns == PAGE_COLUMNS_MOST) {
        p->cut_columns = 1;
        return;
    }
    page_column *c = &p->columns[p->n_columns++];
    *c = (page_column){.cast = cast, .block = block};
    snprintf(c->label, sizeof c->label, "%s", label);
}

/* At the page's own second scale fp16 alone: the others do not need one. */
int page_shows(const page *p, size_t i)
{
    const target *t = &p->targets.items[i];
    return i % p->targets.scales == 0 || p->options->settings.to.scales || strcmp(t->label, "fp16") == 0;
}

static void make_columns(page *p)
{
    char label[96], scale[32];
    const target_list *l = &p->targets;
    const int all = l->count + l->blocks.count <= PAGE_COLUMNS_MOST;
    p->columns = need_memory(l->count + l->blocks.count + 1, sizeof *p->columns);
    for (size_t i = 0; i < l->count; i++) {
        const target *t = &l->items[i];
        if (!page_shows(p, i))
            continue;
        if (!all && i % l->scales) {
            p->cut_columns = 1;
            continue;
        }
        snprintf(label, sizeof label, t->rounding.scale == 1 ? "%s" : "%s at %s", t->label,
                 text_scale(scale, t->rounding.scale));
        add_column(p, i, SIZE_MAX, label);
    }
    for (size_t i = 0; i < l->blocks.count; i++) {
        const block_target *b = &l->blocks.items[i];
        snprintf(label, sizeof label, b->axis == BLOCK_ROWS ? "%s" : "%s %s", b->label, block_axis_name(b->axis));
        add_column(p, SIZE_MAX, i, label);
    }
}

/* ---- a tensor in a step ---- */

static void worse(advise_worst *w, double value, int64_t step, int less)
{
    if (!isnan(value) && (isnan(w->value) || (less ? value < w->value : value > w->value)))
        *w = (advise_worst){value, step};
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* The bounds of the advice: what bf16 makes zero is no bound; what saturates under a recipe counts in the SQNR. */
static int is_within(const advise_bounds *b, double underflow, double overflow, double sqnr, int all_lost)
{
    return !all_lost && underflow <= b->underflow && overflow <= b->overflow && !(sqnr < b->sqnr);
}

static int see_cast(const page *p, page_loss *l, const group *g, const page_column *c, int64_t step)
{
    const target_list *t = &p->targets;
    const mpsim_cast_stats *k = g->scaled ? &g->casts[c->cast] : &g->unscaled[c->cast / t->scales];
    const mpsim_stats *s = &g->stats;
    const double sqnr = mpsim_cast_stats_sqnr_db(k, s);
    const double under = share_of(k->counts.underflow, s->count), over = share_of(k->counts.overflow, s->count);
    const int is_bf16 = strcmp(t->items[c->cast].format.name, "bf16") == 0;
    worse(&l->underflow, under, step, 0);
    worse(&l->overflow, over, step, 0);
    worse(&l->sqnr, sqnr, step, 1);
    l->within &= is_within(&p->advice.bounds, is_bf16 ? 0 : under, over, sqnr,
                           k->compared == 0 && s->count > s->nan + s->inf);
    return over > 0;
}

static int see_blocks(const page *p, page_loss *l, const group *g, const page_column *c, int64_t step)
{
    const block_sums *b = &g->blocks[c->block];
    const mpsim_stats *s = &g->stats;
    if (!stat_group_has_blocks(g, &p->targets.blocks, c->block))
        return 0;
    const double sqnr = mpsim_cast_stats_sqnr_db(&b->stats.casts, s);
    const double under = share_of(b->stats.underflow, b->elements), over = share_of(b->stats.saturated, b->elements);
    worse(&l->underflow, under, step, 0);
    worse(&l->overflow, over, step, 0);
    worse(&l->sqnr, sqnr, step, 1);
    l->within &= is_within(&p->advice.bounds, under, share_of(b->stats.spoilt, b->elements), sqnr,
                           b->stats.casts.compared == 0 && b->elements > s->nan + s->inf);
    return over > 0;
}

/* The row of a tensor, which is one over all steps. */
static page_tensor *row_of(page *p, const stat_place *place)
{
    const size_t before = p->n_tensors;
    page_tensor *t = nameindex_item(&p->names, &p->tensors, &p->n_tensors, sizeof *t, place->tensor->name);
    if (p->n_tensors == before)
        return t;
    const page_loss none = {{(double)NAN, -1}, {(double)NAN, -1}, {(double)NAN, -1}, 1};
    t->kind = place->kind ? place->kind : "";
    t->first_bad = -1;
    t->losses = need_memory(p->n_columns + 1, sizeof *t->losses);
    for (size_t i = 0; i < p->n_columns; i++)
        t->losses[i] = none;
    return t;
}

static void see(page *p, const stat_place *place, const group *g)
{
    const mpsim_stats *s = &g->stats;
    page_tensor *t = row_of(p, place);
    t->steps++;
    t->count = s->count > t->count ? s->count : t->count;
    if (!t->nan && !t->inf && s->nan + s->inf)
        t->first_bad = place->step;
    t->nan += s->nan;
    t->inf += s->inf;
    t->zero = fmax(t->zero, share_of(s->zero, s->count));
    t->amax = fmax(t->amax, s->amax);
    if (s->amin > 0 && (t->amin == 0 || s->amin < t->amin))
        t->amin = s->amin;
    for (size_t i = 0; i < p->n_columns; i++) {
        page_column *c = &p->columns[i];
        c->overflows |= c->block == SIZE_MAX ? see_cast(p, &t->losses[i], g, c, place->step)
                                             : see_blocks(p, &t->losses[i], g, c, place->step);
    }
}

/* ---- all of them ---- */

static int tell_file(void *context, const trace *t, uint64_t i)
{
    page *p = context;
    (void)i;
    stat_tally_file(&p->sums, trace_path(t), trace_count(t));
    return 0;
}

static int tell_tensor(void *context, const stat_place *place, const walk_piece *piece, const group *of)
{
    page *p = context;
    (void)piece;
    if (of)
        see(p, place, of);
    return stat_tally_tensor(&p->sums, place, of);
}

static int tell_failed(void *context, uint64_t i, const trace_error *error)
{
    (void)context, (void)i, (void)error;
    return EXIT_DATA; /* which was told: nothing goes on without all files */
}

static int measure_casts(page *p)
{
    static const walk_sink sink = {tell_file, tell_tensor, tell_failed, NULL};
    static const option_list none = {0};
    char names[600];
    tally_form form = {.style = REPORT_JSON, .sink = &p->stat.sink};
    stat_settings known = p->settings;
    int code = stat_tally_init(&p->sums, "report", &p->settings, &none, &p->targets);
    if (!code)
        code = stat_settings_names(&known, &p->settings, &p->in, &p->rules);
    if (code)
        return code;
    p->settings.names = known.names;
    if (!p->no_figures)
        record_keep_begin(&p->stat, &plot_stat_record);
    if ((code = stat_tally_begin(&p->sums, &form, !p->no_figures, p->in.tree.count, mpsim_version())))
        return code;
    code = stat_walk(&p->in, &p->settings, &p->targets, NULL, &sink, p);
    if (code > 128) {
        (void)stat_tally_end(&p->sums, EXIT_IO, "");
        return fail(code, "report: interrupted");
    }
    return stat_tally_end(&p->sums, code, input_names(&p->in, names, sizeof names));
}

static void count_within(page *p)
{
    for (size_t i = 0; i < p->n_columns; i++)
        for (size_t k = 0; k < p->n_tensors; k++)
            p->columns[i].within += p->tensors[k].losses[i].within != 0;
}

int page_measure(page *p)
{
    int code = advise_begin(&p->advice, "report", &p->options->words);
    if (!code)
        code = advise_run(&p->advice, &p->in);
    if (!code && !(code = make_settings(p))) {
        make_columns(p);
        code = measure_casts(p);
    }
    if (!code)
        count_within(p);
    return code;
}

int page_has_steps(const page *p)
{
    return !p->advice.no_step && p->advice.steps > 1;
}

void page_clear_measured(page *p)
{
    for (size_t i = 0; i < p->n_tensors; i++) {
        free(p->tensors[i].name);
        free(p->tensors[i].losses);
    }
    nameindex_clear(&p->names);
    free(p->tensors);
    free(p->columns);
    free(p->files);
    free(p->rules);
    stat_tally_clear(&p->sums);
    target_list_clear(&p->targets);
    advise_clear(&p->advice);
    input_close(&p->in);
}
