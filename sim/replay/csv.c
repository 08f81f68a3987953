/* csv.c -- steps, tensors and policies as CSV; see csv.h. */
#include "csv.h"

#include "../record/step.h"

#include <inttypes.h>
#include <string.h>

void replay_csv_header(const replay_report *r)
{
    fputs(r->tensors ? "policy,step,name,kind,layer,format,scale,next_scale,count,nonzero,"
                       "underflow,subnormal,overflow,stale,amax,sqnr_db\n"
                     : "policy,step,scale,next_scale,events,growth_tracker,norm,clipped,"
                       "from_record,act_underflow,act_overflow,agrad_underflow,agrad_overflow,"
                       "wgrad_underflow,wgrad_overflow,stale,updates,lost,distance_fp32,distance_binary64\n",
          r->file);
}

void replay_csv_step(replay_report *r, const policy *p, const replay_step *s)
{
    replay_counts g[REPLAY_GROUPS];
    char text[128];
    uint64_t updates = 0, lost = 0, stale = 0;
    replay_group_counts(s, g);
    for (size_t i = 0; i < s->n_weights; i++) {
        updates += s->weights[i].updates;
        lost += s->weights[i].lost;
    }
    for (int i = 0; i < REPLAY_GROUPS; i++)
        stale += g[i].stale;
    csv_text(r->file, p->name);
    fprintf(r->file, ",%" PRId64 ",", s->step);
    csv_double(r->file, s->scale);
    fputc(',', r->file);
    csv_double(r->file, s->next_scale);
    fputc(',', r->file);
    csv_text(r->file, step_events_text(text, sizeof text, "+", s->events));
    fprintf(r->file, ",%" PRIu64 ",", s->tracker);
    csv_double(r->file, s->norm);
    fprintf(r->file, ",%d,%d", s->clipped, s->from_record);
    fprintf(r->file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, g[GROUP_ACT].underflow,
            g[GROUP_ACT].overflow, g[GROUP_AGRAD].underflow, g[GROUP_AGRAD].overflow, g[GROUP_WGRAD].underflow,
            g[GROUP_WGRAD].overflow);
    fprintf(r->file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", stale, updates, lost);
    csv_double(r->file, s->distance_fp32);
    fputc(',', r->file);
    csv_double(r->file, s->distance_f64);
    fputc('\n', r->file);
}

void replay_csv_tensors(replay_report *r, const policy *p, const replay_step *s)
{
    for (size_t i = 0; i < s->n_casts; i++) {
        const replay_cast *c = &s->casts[i];
        csv_text(r->file, p->name);
        fprintf(r->file, ",%" PRId64 ",", s->step);
        csv_text(r->file, c->name);
        fprintf(r->file, ",%s,%s,", c->kind, layer_kind_name(c->layer));
        csv_text(r->file, c->format);
        fputc(',', r->file);
        csv_double(r->file, c->scale);
        fputc(',', r->file);
        csv_double(r->file, c->next);
        fprintf(r->file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", c->count,
                c->nonzero, c->underflow, c->subnormal, c->overflow, c->stale);
        csv_double(r->file, c->amax);
        fputc(',', r->file);
        csv_double(r->file, c->sqnr_db);
        fputc('\n', r->file);
    }
}

void replay_csv_compare(replay_report *r, const policy *p, const replay_total *t, size_t n)
{
    fputs("policy,steps,skipped,final_scale,act_nonzero,act_underflow,agrad_nonzero,"
          "agrad_underflow,wgrad_nonzero,wgrad_underflow,stale,updates,lost,distance_fp32,"
          "distance_binary64,weights,master,gradients,state,activations\n",
          r->file);
    for (size_t i = 0; i < n; i++) {
        csv_text(r->file, p[i].name);
        fprintf(r->file, ",%" PRIu64 ",%" PRIu64 ",", t[i].steps, t[i].skipped);
        csv_double(r->file, t[i].final_scale);
        fputc(',', r->file);
        uint64_t stale = 0;
        for (int g = 0; g < REPLAY_GROUPS; g++) {
            stale += t[i].groups[g].stale;
            if (g != GROUP_WEIGHT)
                fprintf(r->file, "%" PRIu64 ",%" PRIu64 ",", t[i].groups[g].nonzero, t[i].groups[g].underflow);
        }
        fprintf(r->file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", stale, t[i].updates, t[i].lost);
        csv_double(r->file, t[i].distance_fp32);
        fputc(',', r->file);
        csv_double(r->file, t[i].distance_f64);
        fprintf(r->file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", t[i].bytes.weights,
                t[i].bytes.master, t[i].bytes.gradients, t[i].bytes.state, t[i].bytes.activations);
    }
}
