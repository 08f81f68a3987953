/* report.c -- see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../record/step.h"
#include "csv.h"
#include "json.h"
#include "said.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_names[REPLAY_GROUPS] = {"activations", "weights", "activation gradients",
                                                       "weight gradients"};

/* ---- words ---- */

/* For the table: an overflow that is skipped need not be called one, too. */
static const char *short_events(char *out, size_t size, unsigned set)
{
    const unsigned both = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP;
    const unsigned shown = (set & both) == both ? set & ~(unsigned)MPSIM_SCALER_OVERFLOW : set;
    return step_events_text(out, size, ", ", shown);
}

static const char *distance_text(char *out, double x)
{
    if (isnan(x))
        out[0] = '\0';
    else if (x == 0)
        snprintf(out, 32, "0");
    else
        snprintf(out, 32, "%.1e", x);
    return out;
}

/* ---- the report ---- */

void replay_report_begin(replay_report *r, json_t *config)
{
    if (r->style == REPORT_JSON) {
        json_begin(r->file, "mpsim.replay/1", NULL);
        fputs("\"config\": ", r->file);
        json_write(r->file, config);
        fputs(",\n\"policies\": [", r->file);
        return;
    }
    json_decref(config);
    if (r->style == REPORT_CSV && !r->compare)
        replay_csv_header(r);
}

static void text_policy(replay_report *r, const policy *p)
{
    char line[512];
    fprintf(r->file, "policy   %s\n", p->name);
    if (p->source)
        text_wrapped(r->file, "source   ", p->source);
    if (p->note)
        text_wrapped(r->file, "note     ", p->note);
    for (size_t i = 0; i < p->count; i++) {
        if (p->count > 1)
            fprintf(r->file, "from step %" PRIu64 "\n", p->plans[i].from);
        text_wrapped(r->file, "plan     ", plan_describe(&p->plans[i], line, sizeof line));
    }
    fputc('\n', r->file);
    int master = 0;
    for (size_t i = 0; i < p->count; i++)
        master |= p->plans[i].master != TRAIN_NO_MASTER;
    r->with_master = master;
    r->steps = table_new(master ? ">step|>scale|<events|>act|>agrad|>wgrad|>stale|>updates|>from fp32|>master"
                                : ">step|>scale|<events|>act|>agrad|>wgrad|>stale|>updates|>from fp32|>from f64");
}

/* What decides the scales of delayed scaling; null: the plan has no such recipe. */
static json_t *delayed_json(const plan *p)
{
    return p->recipe && p->recipe->delayed
               ? json_pack("{s:i,s:o,s:s}", "margin", (int)p->delayed.margin, "history",
                           json_of_count(p->delayed.history), "algorithm", plan_amax_algorithm(p))
               : json_null();
}

static json_t *plan_json(const plan *p)
{
    char line[512];
    return json_pack("{s:o,s:s,s:o}", "from", json_of_count(p->from), "plan", plan_describe(p, line, sizeof line),
                     "delayed_scaling", delayed_json(p));
}

void replay_report_policy(replay_report *r, const policy *p)
{
    r->entries = 0;
    if (r->style == REPORT_JSON) {
        fputs(r->policies ? ",\n{" : "\n{", r->file);
        json_t *plans = json_array();
        for (size_t i = 0; i < p->count; i++)
            json_array_append_new(plans, plan_json(&p->plans[i]));
        fputs("\"policy\": ", r->file);
        json_write(r->file, json_pack("{s:s,s:o,s:s?,s:s?,s:o}", "name", p->name, "file", json_of_path(p->path),
                                      "source", p->source, "note", p->note, "plans", plans));
        fputs(",\n\"steps\": [", r->file);
    } else if (r->amp) {
        if (r->several)
            fprintf(r->file, "# policy %s\n", p->name);
    } else if (r->style == REPORT_TEXT && !r->compare) {
        text_policy(r, p);
    }
    r->policies++;
}

static void text_step(replay_report *r, const replay_step *s)
{
    replay_counts g[REPLAY_GROUPS];
    char a[64], b[64], line[128];
    uint64_t updates = 0, lost = 0, stale = 0;
    replay_group_counts(s, g);
    int masters = 0;
    for (size_t i = 0; i < s->n_weights; i++) {
        updates += s->weights[i].updates;
        lost += s->weights[i].lost;
        masters |= s->weights[i].master;
    }
    for (int i = 0; i < REPLAY_GROUPS; i++)
        stale += g[i].stale;
    table_cell(r->steps, "%" PRId64 "%s", s->step, s->from_record ? "*" : " "); /* where weights came from */
    table_cell(r->steps, "%s", text_scale(a, s->scale));
    const char *events = short_events(line, sizeof line, s->events);
    if (s->unknown)
        table_cell(r->steps, "%s", "not known");
    else
        table_cell(r->steps, "%s%s%s", events, s->clipped && events[0] ? ", " : "", s->clipped ? "clipped" : "");
    table_share(r->steps, g[GROUP_ACT].underflow, g[GROUP_ACT].nonzero);
    table_share(r->steps, g[GROUP_AGRAD].underflow, g[GROUP_AGRAD].nonzero);
    table_share(r->steps, g[GROUP_WGRAD].underflow, g[GROUP_WGRAD].nonzero);
    table_cell(r->steps, "%s", stale ? text_count(a, stale) : "");
    table_share(r->steps, lost, updates);
    table_cell(r->steps, "%s", distance_text(a, s->distance_fp32));
    table_cell(r->steps, "%s",
               distance_text(b, !r->with_master ? s->distance_f64
                                : masters       ? s->kept_fp32
                                                : (double)NAN));
}

void replay_report_step(replay_report *r, const policy *p, const replay_step *s)
{
    if (!s->trains && r->style != REPORT_JSON)
        return;
    if (r->amp)
        fprintf(r->file, "[AMP] step %" PRId64 ": scale %.17g, growth_tracker %" PRIu64 ", skipped %s\n", s->step,
                s->next_scale, s->tracker, s->events & (MPSIM_SCALER_SKIP | MPSIM_SCALER_RAISED) ? "Y" : "n");
    else if (r->style == REPORT_JSON) {
        fputs(r->entries++ ? ",\n" : "\n", r->file);
        json_write(r->file, replay_json_step(s));
    } else if (r->compare) {
        return;
    } else if (r->style == REPORT_CSV && r->tensors) {
        replay_csv_tensors(r, p, s);
    } else if (r->style == REPORT_CSV) {
        replay_csv_step(r, p, s);
    } else {
        text_step(r, s);
    }
}

/* ---- totals ---- */

static double share_lost(const replay_tensor *t)
{
    const replay_counts *c = &t->counts;
    return (double)(c->underflow + c->overflow) / (double)(c->count + 1);
}

static int by_loss(const void *a, const void *b)
{
    const replay_tensor *x = *(const replay_tensor *const *)a;
    const replay_tensor *y = *(const replay_tensor *const *)b;
    const double lx = share_lost(x), ly = share_lost(y);
    if (lx != ly)
        return lx > ly ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void text_tensors(replay_report *r, const replay_total *t)
{
    enum { WORST = 8 };
    const replay_tensor **order = need_memory(t->n_tensors, sizeof *order);
    table *out = table_new("<tensor|<layer|<format|>lost|>subnormal|>overflow|>stale|>SQNR dB|>scale|>next");
    size_t n = 0;
    for (size_t i = 0; i < t->n_tensors; i++)
        order[n++] = &t->tensors[i];
    if (!r->tensors)
        qsort(order, n, sizeof *order, by_loss);
    if (!r->tensors && n > WORST)
        n = WORST;
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        const replay_tensor *e = order[i];
        char a[32], name[256];
        if (!r->tensors && e->counts.underflow + e->counts.overflow == 0)
            break;
        rows++;
        table_cell(out, "%.60s", escape_text(name, sizeof name, e->name));
        table_cell(out, "%s", layer_kind_name(e->layer));
        table_cell(out, "%s", e->format);
        table_share(out, e->counts.underflow, e->counts.nonzero);
        table_share(out, e->counts.subnormal, e->counts.nonzero);
        table_cell(out, "%s", e->counts.overflow ? text_count(a, e->counts.overflow) : "");
        table_cell(out, "%s", e->counts.stale ? text_count(a, e->counts.stale) : "");
        if (isfinite(e->worst_sqnr))
            table_cell(out, "%.1f", e->worst_sqnr);
        else
            table_cell(out, "%s", "");
        /* an FP8 scale and what this step made of it */
        table_cell(out, "%s", isnan(e->next) ? "" : text_number(a, e->scale));
        table_cell(out, "%s", isnan(e->next) ? "" : text_number(a, e->next));
    }
    if (rows) {
        fprintf(r->file,
                "\ntensors%s, over all steps%s\n"
                "(SQNR: of the worst step; scale: FP8, of the last step)\n",
                r->tensors ? "" : " that lose or overflow most", r->tensors ? "" : "; --tensors: all");
        table_print(out, r->file, "  ");
    }
    table_free(out);
    free(order);
}

static void text_groups(replay_report *r, const replay_total *t)
{
    char a[32];
    table *out = table_new("<kind|>numbers|>zero already|>Inf, NaN already|>become zero|>subnormal|>overflow|>stale");
    for (int g = 0; g < REPLAY_GROUPS; g++) {
        const replay_counts *c = &t->groups[g];
        if (!c->count)
            continue;
        table_cell(out, "%s", group_names[g]);
        table_cell(out, "%s", text_count(a, c->count));
        table_share(out, c->count - c->nonzero - c->nonfinite, c->count);
        table_cell(out, "%s", c->nonfinite ? text_count(a, c->nonfinite) : "");
        table_share(out, c->underflow, c->nonzero);
        table_share(out, c->subnormal, c->nonzero);
        table_share(out, c->overflow, c->nonzero);
        table_cell(out, "%s", c->stale ? text_count(a, c->stale) : "");
    }
    fputs("\nover all steps (from \"become zero\" on: of the numbers that are not zero)\n", r->file);
    table_print(out, r->file, "  ");
    table_free(out);
}

static void text_total(replay_report *r, const replay_total *t)
{
    char a[64], b[64];
    if (r->steps) {
        table_print(r->steps, r->file, "");
        table_free(r->steps);
        r->steps = NULL;
        fputs("act, agrad, wgrad: lost, of the numbers that are not zero; updates: lost\n", r->file);
        if (t->from_record)
            fputs("* with the recorded weights; else the run's own\n", r->file);
    }
    text_tensors(r, t);
    text_groups(r, t);
    fprintf(r->file,
            "\nscaler     %" PRIu64 " steps: %" PRIu64 " skipped, %" PRIu64 " overflows, "
            "%" PRIu64 " backoffs, %" PRIu64 " growths; next loss scale %s\n",
            t->steps, t->skipped, t->overflows, t->backoffs, t->growths, text_scale(a, t->final_scale));
    if (t->raised)
        fputs("           the framework raises its error there, and training ends: later steps are left out\n",
              r->file);
    replay_text_optimizer(r->file, t);
    replay_text_muon(r->file, t);
    replay_text_moments(r->file, t);
    if (t->reduces && t->ranks <= 1)
        fputs("ranks      one, or reduced before they were recorded: grad_reduce has no effect\n", r->file);
    if (t->unmatched[0])
        text_wrapped(r->file, "patterns   fit no layer here: ", t->unmatched);
    if (t->updates)
        fprintf(r->file, "updates    %s of %s are lost: the weight that is kept%s does not move\n",
                text_share(a, t->lost, t->updates), text_count(b, t->updates), t->bytes.master ? " (the master)" : "");
    replay_text_movement(r->file, t);
    char line[512];
    if (t->unknown) {
        snprintf(line, sizeof line,
                 "%" PRIu64 " steps were recorded with Inf or NaN at a larger scale, what they "
                 "would have given here is not known, they count as clean and move nothing",
                 t->unknown);
        text_wrapped(r->file, "not known  ", line);
    }
    replay_text_record(r->file, t);
    step_print_bytes(r->file, &t->bytes);
}

void replay_report_total(replay_report *r, const replay_total *t)
{
    if (r->style == REPORT_JSON) {
        fputs("],\n\"total\": ", r->file);
        json_write(r->file, replay_json_total(t));
        fputs("}", r->file);
    } else if (r->style == REPORT_TEXT && !r->compare && !r->amp) {
        text_total(r, t);
    }
}

void replay_report_compare(replay_report *r, const policy *p, const replay_total *t, size_t n)
{
    char text[64];
    if (r->style == REPORT_CSV) {
        replay_csv_compare(r, p, t, n);
        return;
    }
    if (r->style != REPORT_TEXT)
        return;
    table *out = table_new("<policy|>skipped|>scale|>act|>agrad|>wgrad|>stale|>updates|>moved|>from fp32");
    for (size_t i = 0; i < n; i++) {
        const replay_total *x = &t[i];
        uint64_t stale = 0;
        table_cell(out, "%s", p[i].name);
        table_cell(out, "%" PRIu64 "/%" PRIu64, x->skipped, x->steps);
        table_cell(out, "%s", text_scale(text, x->final_scale));
        for (int g = GROUP_ACT; g < REPLAY_GROUPS; g++) {
            stale += x->groups[g].stale;
            if (g != GROUP_WEIGHT)
                table_share(out, x->groups[g].underflow, x->groups[g].nonzero);
        }
        table_cell(out, "%s", stale ? text_count(text, stale) : "");
        table_share(out, x->lost, x->updates);
        if (x->movement.wanted > 0)
            table_cell(out, "%.1f %%", 100 * replay_moved_share(&x->movement));
        else
            table_cell(out, "%s", "");
        table_cell(out, "%s", distance_text(text, x->distance_fp32));
    }
    table_print(out, r->file, "");
    table_free(out);
    fputs("act, agrad, wgrad: lost, of the numbers that are not zero; updates: lost; moved: in the "
          "mean, of\nwhat binary64 would move; scale: the next loss scale\n",
          r->file);
    fputc('\n', r->file);
    out = record_table(&step_bytes_row, 0);
    for (size_t i = 0; i < n; i++)
        step_bytes_add(out, p[i].name, &t[i].bytes);
    table_print(out, r->file, "");
    table_free(out);
    int any = 0;
    for (size_t i = 0; i < n; i++) {
        if (!t[i].unmatched[0])
            continue;
        if (!any++)
            fputs("\npatterns that fit no layer here\n", r->file);
        char title[96];
        snprintf(title, sizeof title, "  %.80s: ", p[i].name);
        text_wrapped(r->file, title, t[i].unmatched);
    }
}

void replay_report_abandon(replay_report *r)
{
    table_free(r->steps);
    r->steps = NULL;
}

int replay_report_end(replay_report *r)
{
    if (r->style == REPORT_JSON) {
        jsonout o = {.to = r->file};
        fputs("\n],\n", r->file);
        unread_put(&o, r->unread);
        fputs("}\n", r->file);
    }
    return ferror(r->file) ? -1 : 0;
}
