/* said.c -- see said.h. */
#include "impl.h"

#include "../policy/muon.h"
#include "../record/step.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the optimizer ---- */

/* Variants and settings: a line for each group, and of parameters if there are several; of very many
 * groups the first. */
static void text_settings(FILE *to, const replay_total *t)
{
    enum { SHOWN = 8 };
    const step_comparison c = t->differ                ? STEP_DIFFERS
                              : replay_total_equals(t) ? STEP_EQUAL
                              : t->compared            ? STEP_EQUAL_IN_PART
                                                       : STEP_NOT_COMPARED;
    const mpsim_optim_variant *said = NULL;
    char line[256];
    size_t used = 0, n = 0;
    for (size_t i = 0; i < t->n_settings; i++) {
        const replay_settings *s = &t->settings[i];
        used += s->parameters > 0;
        if (s->parameters && s->optimizer.variant != said)
            step_print_variant(to, said = s->optimizer.variant, c);
    }
    for (size_t i = 0; i < t->n_settings; i++) {
        const replay_settings *s = &t->settings[i];
        if (!s->parameters || n >= SHOWN)
            continue;
        fprintf(to, "%s%s", n++ ? "           " : "optimizer  ", step_optimizer_text(line, sizeof line, &s->optimizer));
        if (used > 1)
            fprintf(to, ", of %zu parameter%s", s->parameters, text_plural(s->parameters));
        fputc('\n', to);
    }
    if (used > n)
        fprintf(to, "           and %zu more groups\n", used - n);
}

/* Who skipped how often, of several. */
static void text_skips(FILE *to, const replay_total *t)
{
    char line[1024] = "";
    for (size_t k = 0; k < t->n_optimizers; k++)
        text_add(line, sizeof line, "%s%" PRIu64,
                 k ? ", " : "of the optimizers, each by itself: ", t->optimizer_skips[k]);
    text_add(line, sizeof line, " of %" PRIu64 " steps", t->steps);
    if (t->n_optimizers)
        text_wrapped(to, "skipped    ", line);
}

static void text_clipped(FILE *to, const replay_total *t)
{
    if (t->own_clips)
        fprintf(to, "clipped    %" PRIu64 " of %" PRIu64 " steps, as recorded: each optimizer by itself\n", t->clipped,
                t->steps);
    else if (t->clip != MPSIM_CLIP_NONE)
        fprintf(to, "clipped    %" PRIu64 " of %" PRIu64 " steps, as recorded: norm %g (%s)\n", t->clipped, t->steps,
                t->max_norm, mpsim_clip_name(t->clip));
    else if (t->clipped)
        fprintf(to, "clipped    %" PRIu64 " of %" PRIu64 " steps\n", t->clipped, t->steps);
    if (t->clip_value > 0 && !t->own_clips)
        fprintf(to, "clipped    values, as recorded: at %g\n", t->clip_value);
}

void replay_text_optimizer(FILE *to, const replay_total *t)
{
    text_settings(to, t);
    text_skips(to, t);
    text_clipped(to, t);
}

/* ---- moments in few bits ---- */

static const char *db_text(char out[32], const replay_error *e)
{
    if (!e->is || isnan(e->db))
        snprintf(out, 32, "-");
    else if (e->db > 0 && isinf(e->db))
        snprintf(out, 32, "no error");
    else
        snprintf(out, 32, "%.1f dB", e->db);
    return out;
}

/* ", 3 not finite"; nothing where all are finite. */
static const char *not_finite_text(char out[96], const replay_error *e)
{
    char n[64];
    out[0] = '\0';
    if (e->not_finite)
        snprintf(out, 96, ", %s not finite", text_count(n, e->not_finite));
    return out;
}

static const char *largest_text(char *out, double x)
{
    return isnan(x) ? "-" : text_number(out, x);
}

static void text_stored(FILE *to, const char *title, const char *what, const replay_error *e)
{
    char a[32], b[64], c[64], d[96];
    if (e->count)
        fprintf(to, "%s%s: SQNR %s, %s of %s that are not zero become zero%s\n", title, what, db_text(a, e),
                text_share(b, e->lost, e->nonzero), text_count(c, e->nonzero), not_finite_text(d, e));
}

static void text_worst_stored(FILE *to, const replay_total *t)
{
    enum { WORST = 3 };
    for (size_t i = 0; i < t->n_stored && i < WORST; i++) {
        const replay_moments *m = &t->stored[i].sum;
        const int is_muon = m->muon.count > 0;
        char name[256], a[32], b[32], c[32], d[96];
        fprintf(to, "%s%.60s%s %s", i ? "           " : "lowest     ",
                escape_text(name, sizeof name, t->stored[i].name), is_muon ? "" : " m",
                db_text(a, is_muon ? &m->muon : &m->m));
        if (m->v.count)
            fprintf(to, ", v %s", db_text(b, &m->v));
        if (m->step.count)
            fprintf(to, ", steps %s", db_text(c, &m->step));
        fprintf(to, "%s\n", not_finite_text(d, replay_moments_error(m)));
    }
}

void replay_text_muon(FILE *to, const replay_total *t)
{
    char line[512], a[32], b[64], c[96];
    const replay_error *e = &t->moments.muon;
    if (!t->muon.model.name[0])
        return;
    text_wrapped(to, "muon       ", policy_muon_describe(&t->muon, line, sizeof line));
    if (!e->count) {
        fputs("           no matrix of this trace is its\n", to);
        return;
    }
    fprintf(to, "           updates against those of binary64: SQNR %s of %s%s\n", db_text(a, e),
            text_count(b, e->count), not_finite_text(c, e));
    text_worst_stored(to, t);
}

void replay_text_moments(FILE *to, const replay_total *t)
{
    const replay_moments *m = &t->moments;
    char line[512], a[32], b[64], c[64], d[64], e[32], f[96];
    if (!t->states)
        return;
    snprintf(line, sizeof line, "%s, %s%s%s%s", t->states->name, t->states->what,
             m->arrays ? "" : ", no tensor of this trace is large enough or fills its blocks",
             t->states->open ? ", open: " : "", t->states->open ? t->states->open : "");
    text_wrapped(to, "moments    ", line);
    text_stored(to, "           ", "m", &m->m);
    text_stored(to, "           ", "v", &m->v);
    text_stored(to, "           ", "weights", &m->kept);
    if (m->step.count) {
        snprintf(line, sizeof line,
                 "steps m / (sqrt(v) + eps) with the stored moments: SQNR %s, the largest %s, before it was stored %s, "
                 "%s have a v that became zero and divide m by eps%s%s%s",
                 db_text(a, &m->step), largest_text(b, m->largest_stored), largest_text(c, m->largest),
                 text_count(d, m->unbounded), not_finite_text(f, &m->step), m->unbounded ? ", the others: SQNR " : "",
                 m->unbounded ? db_text(e, &m->bounded) : "");
        text_wrapped(to, "           ", line);
    }
    text_worst_stored(to, t);
}

/* ---- updates in the mean ---- */

/* The parameters that lose updates in the mean, the first ones by name. */
static void text_lost_in_the_mean(FILE *to, const replay_total *t)
{
    enum { SHOWN = 3 };
    char line[512] = "lost in the mean: ", name[256];
    size_t n = 0;
    for (size_t i = 0; i < t->n_moved; i++) {
        const replay_moved *m = &t->moved[i];
        if (!m->sum.lost)
            continue;
        if (n++ < SHOWN)
            text_add(line, sizeof line, "%s%.60s moves %.0f %%", n > 1 ? ", " : "",
                     escape_text(name, sizeof name, m->name), 100 * m->sum.share);
    }
    if (n > SHOWN)
        text_add(line, sizeof line, ", and %zu more", n - SHOWN);
    if (n)
        text_wrapped(to, "           ", line);
}

/* Those that rounding to the nearest loses, which a rounding by chance, or a compensation, keeps in the mean. */
static void text_small(FILE *to, const replay_total *t)
{
    const replay_movement *small = &t->small;
    char line[256];
    if (!(small->wanted > 0))
        return;
    snprintf(line, sizeof line,
             "updates too small to move a weight rounded to the nearest, %.1f %% of what would move: %.1f %% "
             "is moved (standard error %.1f %%), %s in the mean",
             100 * small->wanted / t->movement.wanted, 100 * small->share, 100 * small->error,
             small->lost ? "lost" : "not lost");
    text_wrapped(to, "           ", line);
}

void replay_text_movement(FILE *to, const replay_total *t)
{
    const replay_movement *m = &t->movement;
    char line[256];
    if (!(m->wanted > 0))
        return;
    snprintf(line, sizeof line,
             "%.1f %% of what binary64 would move is moved (standard error %.1f %%), a drift over all steps of "
             "%.1e of the weights",
             100 * m->share, 100 * m->error, m->drift);
    text_wrapped(to, "mean       ", line);
    text_small(to, t);
    text_lost_in_the_mean(to, t);
}

/* ---- the record ---- */

/* What was carried against what was recorded, and the tensors that differ most. */
static void text_compared(FILE *to, const replay_total *t)
{
    enum { WORST = 3 };
    char a[64], b[64], c[64], line[512];
    if (!t->compared)
        return;
    snprintf(line, sizeof line, "%s of %s carried weights, moments and masters differ from the recorded ones%s%s",
             text_count(a, t->differ), text_count(b, t->compared), t->differ ? ", relatively by at most " : "",
             t->differ ? text_number(c, t->max_difference) : "");
    text_wrapped(to, "record     ", line);
    for (size_t i = 0; i < t->n_differing && i < WORST; i++) {
        const replay_difference *d = &t->differing[i];
        char name[256];
        fprintf(to, "%s%.80s %s of %s, at most %s\n", i ? "           " : "most       ",
                escape_text(name, sizeof name, d->name), text_count(a, d->c.differ), text_count(b, d->c.compared),
                text_number(c, d->c.max_difference));
    }
}

/* What was recorded and could not be compared, and the first tensors of it. */
static void text_omitted(FILE *to, const replay_total *t)
{
    enum { SHOWN = 3 };
    char a[64], b[64], line[256], name[256];
    if (!t->left_out)
        return;
    snprintf(line, sizeof line,
             "%s of %s carried and recorded numbers are not compared, in %zu tensor%s: the policy keeps "
             "them in another format, or not at all",
             text_count(a, t->left_out), text_count(b, t->left_out + t->compared), t->n_omitted,
             text_plural(t->n_omitted));
    text_wrapped(to, "uncompared ", line);
    for (size_t i = 0; i < t->n_omitted && i < SHOWN; i++) {
        const replay_omission *o = &t->omitted[i];
        fprintf(to, "           %.80s %s, ", escape_text(name, sizeof name, o->name), text_count(a, o->count));
        fprintf(to, "weights recorded in %s, here %s\n", o->recorded[0] ? o->recorded : "no format", o->here);
    }
}

/* What of the policy is not the record's, what the record lacks, and what it has that the policy's
 * format has not. */
static void text_notes(FILE *to, const replay_total *t)
{
    char a[64], b[64], line[400];
    if (t->notes.text[NOTE_REFUSED][0])
        text_wrapped(to, "refused    ", t->notes.text[NOTE_REFUSED]);
    if (t->notes.text[NOTE_FORMATS][0])
        text_wrapped(to, "parameters ", t->notes.text[NOTE_FORMATS]);
    for (int i = NOTE_MUON; i <= NOTE_POLICY; i++)
        if (t->notes.text[i][0])
            text_wrapped(to, "policy's   ", t->notes.text[i]);
    if (replay_total_doubts(t))
        for (int i = NOTE_POLICY + 1; i < NOTE_NOT_RECORDED; i++)
            if (t->notes.text[i][0])
                text_wrapped(to, "lacks      ", t->notes.text[i]);
    if (t->notes.text[NOTE_NOT_RECORDED][0])
        text_wrapped(to, "left out   ", t->notes.text[NOTE_NOT_RECORDED]);
    if (!t->unheld)
        return;
    snprintf(line, sizeof line,
             "recorded gradients are binary32 numbers that %s cannot hold: %s of %s, first in %s, they "
             "are rounded here, the recorded run did not, grads: fp32 in the policy keeps them, so do "
             "layer_kinds for a layer that is not what it is taken for",
             t->gradient_format, text_count(a, t->unheld), text_count(b, t->gradients), t->unheld_in);
    text_wrapped(to, "gradients  ", line);
}

void replay_text_record(FILE *to, const replay_total *t)
{
    text_compared(to, t);
    text_omitted(to, t);
    text_notes(to, t);
}
