/* record.c -- see record.h. */
#include "record.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"
#include "decoder.h"
#include "describe.h"
#include "train.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- which steps ---- */

/* "7" or "10-20" of n characters. */
static int parse_range(step_range *r, const char *text, size_t n)
{
    char word[64];
    if (n == 0 || n >= sizeof word)
        return -1;
    memcpy(word, text, n);
    word[n] = '\0';
    char *dash = strchr(word, '-');
    if (dash)
        *dash++ = '\0';
    if (parse_count(&r->first, word) || parse_count(&r->last, dash ? dash : word))
        return -1;
    return r->first >= 1 && r->first <= r->last ? 0 : -1;
}

int train_step_selection_parse(step_selection *c, const char *text)
{
    for (const char *p = text;; p++) {
        const size_t n = strcspn(p, ",");
        c->ranges = need_more(c->ranges, c->n_ranges + 1, sizeof *c->ranges);
        if (parse_range(&c->ranges[c->n_ranges], p, n))
            return -1;
        c->n_ranges++;
        p += n;
        if (!*p)
            return 0;
    }
}

void train_step_selection_clear(step_selection *c)
{
    free(c->ranges);
    memset(c, 0, sizeof *c);
}

int train_step_selected(const step_selection *c, uint64_t step)
{
    for (size_t i = 0; i < c->n_ranges; i++)
        if (step >= c->ranges[i].first && step <= c->ranges[i].last)
            return 1;
    return c->every && (step == 1 || step % c->every == 0);
}

/* ---- metadata ---- */

enum { PAIRS = 48 };

typedef struct pairs {
    const char *pair[PAIRS][2];
    char text[PAIRS][128];
    size_t count;
    char *groups, *tied; /* of any length, to be freed */
} pairs;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
say(pairs *m, const char *key, const char *format, ...)
{
    va_list args;
    if (m->count == PAIRS)
        return;
    va_start(args, format);
    vsnprintf(m->text[m->count], sizeof m->text[0], format, args);
    va_end(args);
    m->pair[m->count][0] = key;
    m->pair[m->count][1] = m->text[m->count];
    m->count++;
}

/* A text of any length, which stays where it is. */
static void say_text(pairs *m, const char *key, const char *text)
{
    if (m->count == PAIRS)
        return;
    m->pair[m->count][0] = key;
    m->pair[m->count++][1] = text;
}

static void say_number(pairs *m, const char *key, double x)
{
    say(m, key, "%.17g", x);
}

static void say_flag(pairs *m, const char *key, int flag)
{
    say(m, key, "%s", flag ? "true" : "false");
}

static void say_optimizer(pairs *m, const mpsim_optim *o, double lr)
{
    say(m, "mpsim.optimizer", "%s", mpsim_optim_name((mpsim_optim_algorithm)o->algorithm));
    say(m, "mpsim.optimizer_impl", "%s", o->variant->name);
    say_number(m, "mpsim.lr", lr);
    say_number(m, "mpsim.weight_decay", o->weight_decay);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_MOMENTUM))
        say_number(m, "mpsim.momentum", o->momentum);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_DAMPENING))
        say_number(m, "mpsim.dampening", o->dampening);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_NESTEROV))
        say_flag(m, "mpsim.nesterov", o->nesterov);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_BETA1)) {
        say_number(m, "mpsim.beta1", o->beta1);
        say_number(m, "mpsim.beta2", o->beta2);
        say(m, "mpsim.betas", "%.17g,%.17g", o->beta1, o->beta2);
    }
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_EPS))
        say_number(m, "mpsim.eps", o->eps);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_D)) {
        say_number(m, "mpsim.beta2_decay", o->beta2_decay);
        say_number(m, "mpsim.eps2", o->eps2);
        say_number(m, "mpsim.d", o->d);
    }
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_AMSGRAD))
        say_flag(m, "mpsim.amsgrad", o->amsgrad);
    say_flag(m, "mpsim.maximize", o->maximize);
}

/* A replay does not store again what is stored so, and has Muon's learning rate from its policy. */
static void say_moments(pairs *m, const train_run *r, const train_plan *p, uint64_t step)
{
    const mpsim_states *s = NULL;
    int muon = 0;
    for (size_t i = 0; i < r->n_layers; i++) {
        s = p->layers[i].states ? p->layers[i].states : s;
        muon |= p->layers[i].muon != 0;
    }
    if (s)
        say(m, "mpsim.states", "%s", s->name);
    if (muon)
        say_number(m, "mpsim.lr_factor", train_schedule(&r->settings, step));
}

/* The format that matrix products of the backward pass leave gradients in, in PyTorch's word; NULL: binary32, or
 * one without such a word. */
static const char *computed_in(const train_run *r, const train_plan *p)
{
    for (size_t i = 0; i < r->n_layers; i++)
        if (r->layers[i].type == TRAIN_LINEAR) {
            const char *name = p->layers[i].format[TRAIN_WGRAD].name;
            return strcmp(name, "fp16") == 0 ? "float16" : strcmp(name, "bf16") == 0 ? "bfloat16" : NULL;
        }
    return NULL;
}

/* Of a transformer: parameter groups, the sum that a gradient is. 0, or an exit code after a message. */
static void say_decoder(pairs *m, const train_recorder *r, const train_plan *p, double lr)
{
    const train_decoder *d = &r->run->settings.decoder;
    const uint64_t sums = (uint64_t)d->accumulate * d->ranks;
    m->groups = train_groups_json(r->run, &p->optimizer, lr, r->taken);
    m->tied = d->tied ? train_tied_json() : NULL;
    say_text(m, "mpsim.groups", m->groups);
    if (m->tied)
        say_text(m, "mpsim.tied", m->tied);
    say(m, "mpsim.accumulation", "%" PRIu64, sums);
    if (sums > 1)
        say(m, "mpsim.accumulation_format", "%s", d->ranks > 1 ? "binary32" : d->accumulate_format);
    if (computed_in(r->run, p))
        say(m, "mpsim.autocast", "%s", computed_in(r->run, p));
    say(m, "mpsim.text", "%s", d->text);
    say(m, "mpsim.context", "%" PRIu32, d->context);
}

static void clear_pairs(pairs *m)
{
    free(m->groups);
    free(m->tied);
}

static void say_model(pairs *m, const train_settings *s)
{
    char text[128];
    if (train_is_decoder(s))
        say(m, "mpsim.model", "%s", train_decoder_text(text, sizeof text, s));
    else
        say(m, "mpsim.model", "%s, depth %" PRIu32 ", width %" PRIu32 "%s", s->net, s->depth, s->width,
            s->batchnorm ? ", batch normalisation" : "");
}

/* What a run and a plan say of every step; lr: of this one. */
static void say_run(pairs *m, const train_recorder *r, uint64_t step, const train_plan *p, double lr)
{
    const train_settings *s = &r->run->settings;
    say(m, "mpsim.schema", "mpsim-trace/1");
    say(m, "mpsim.step", "%" PRIu64, step);
    say(m, "mpsim.rank", "0");
    say(m, "mpsim.world", "1");
    say(m, "mpsim.micro_batch", "0");
    say(m, "mpsim.reduced", "post");
    say(m, "mpsim.framework", "mpsim %s", mpsim_version());
    say_model(m, s);
    say_text(m, "mpsim.policy", r->policy);
    say(m, "mpsim.precision", "%s", p->precision);
    say(m, "mpsim.arch", "%s%s", s->arch, s->tf32 ? ", tf32" : "");
    say(m, "mpsim.batch", "%" PRIu32, s->batch);
    say(m, "mpsim.seed", "%" PRIu64, s->seed);
    say_number(m, "mpsim.loss_factor", s->loss_factor);
    say(m, "mpsim.scaler", "%s", p->scaler.name);
    say(m, "mpsim.optimizer_steps", "%" PRIu64, r->taken);
    say(m, "mpsim.grads_scaled", "true");
    say_optimizer(m, &p->optimizer, train_is_decoder(s) ? lr : p->optimizer.lr);
    say_moments(m, r->run, p, step - 1);
    if (!p->clip_scaled)
        say(m, "mpsim.grad_clip", "%.17g", p->clip == MPSIM_CLIP_NONE ? 0 : p->max_norm);
    if (train_is_decoder(s))
        say_decoder(m, r, p, lr);
}

static void say_step(pairs *m, const train_step *s)
{
    if (s->plan->clip_scaled) /* of scaled gradients: what that allows those that are unscaled */
        say(m, "mpsim.grad_clip", "%.17g", s->plan->max_norm / s->scale);
    say_number(m, "mpsim.loss_scale", s->scale);
    say_number(m, "mpsim.loss", (double)s->loss);
    say(m, "mpsim.found_inf", "%d", (s->events & MPSIM_SCALER_OVERFLOW) != 0);
    say(m, "mpsim.skipped", "%d", s->skipped);
    if (!isnan(s->norm))
        say_number(m, "mpsim.grad_norm", s->norm);
}

/* ---- a trace ---- */

/* One that was not there is temporary until there is something in it. */
static int make_folder(temporary *t, const char *path)
{
    t->path = NULL;
    if (trace_temporary_make(t, path) == 0 || errno == EEXIST)
        return 0;
    return fail(EXIT_IO, "%s: %s", path, text_error(errno));
}

static int is_step(const struct dirent *e)
{
    return strncmp(e->d_name, "step_", 5) == 0;
}

int train_record_begin(train_recorder *r, int resumed)
{
    struct dirent **entries;
    if (!r->folder)
        return 0;
    const int code = make_folder(&r->made, r->folder);
    if (code)
        return code;
    const int n = scandir(r->folder, &entries, is_step, NULL);
    if (n < 0)
        return fail(EXIT_IO, "%s: %s", r->folder, text_error(errno));
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    if (n > 0 && !resumed)
        return fail(EXIT_USAGE, "train: --trace: '%s' already holds steps of a run", r->folder);
    return 0;
}

/* Which part of a step's file an item belongs to: what the update changes is taken before it. */
static int changes(const train_item *x)
{
    static const char *const kinds[] = {"weight", "master", "opt.m", "opt.v"};
    const char *kind = trace_kind(x->name);
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i], kind) == 0)
            return 1;
    return 0;
}

typedef struct taking {
    stored_list *to;
    train_engine *engine;
    int changing;
    char error[TRAIN_ERROR];
} taking;

static int take(const train_item *x, void *context)
{
    taking *t = context;
    if (!x->traced || !x->tensor->data || changes(x) != t->changing)
        return 0;
    return train_stored_add(t->to, t->engine, x, t->error);
}

static int take_all(stored_list *to, train *t, int changing)
{
    taking k = {.to = to, .engine = train_engine_of(t), .changing = changing};
    if (train_visit(t, take, &k))
        return fail(EXIT_IO, "train: --trace: %s", k.error);
    return 0;
}

static int write_step(train_recorder *r, uint64_t step, const pairs *m)
{
    trace_error error;
    char *folder = need_format("%s/step_%06" PRIu64, r->folder, step);
    char *path = need_format("%s/rank_00000.safetensors", folder);
    temporary made = {0};
    int code = make_folder(&made, folder);
    if (!code && train_stored_write(&r->before, path, m->pair, m->count, &error))
        code = fail(error.exit, "%s", error.text);
    r->written += !code;
    if (!code) {
        trace_temporary_stay(&made);
        trace_temporary_stay(&r->made);
    }
    trace_temporary_remove(&made);
    free(folder);
    free(path);
    train_stored_clear(&r->before);
    train_stored_clear(&r->after);
    return code;
}

int train_record_before(train_recorder *r, train *t)
{
    char line[TRAIN_ERROR];
    r->due = r->folder && train_step_selected(&r->steps, train_steps_done(t) + 1);
    if (r->due && train_prepare(t, line))
        return fail(train_error_exit(line), "train: --trace: %s", line);
    return r->due ? take_all(&r->before, t, 1) : 0;
}

int train_record_after(train_recorder *r, train *t, const train_step *s)
{
    pairs m = {.count = 0};
    int code = 0;
    if (r->due) {
        say_run(&m, r, s->step + 1, s->plan, s->lr);
        say_step(&m, s);
        if (!(code = take_all(&r->after, t, 0))) {
            train_stored_join(&r->before, &r->after);
            code = write_step(r, s->step + 1, &m);
        }
        r->last = s->step + 1;
    }
    r->taken += !s->skipped && !s->stopped;
    clear_pairs(&m);
    return code;
}

int train_record_end(train_recorder *r, train *t, const train_step *last)
{
    pairs m = {.count = 0};
    if (!r->folder || !r->last || r->last != train_steps_done(t))
        return 0;
    say_run(&m, r, r->last + 1, last->plan, last->lr);
    say_number(&m, "mpsim.loss_scale", last->next_scale);
    int code = take_all(&r->before, t, 1);
    if (!code)
        code = write_step(r, r->last + 1, &m);
    clear_pairs(&m);
    return code;
}

void train_record_clear(train_recorder *r)
{
    trace_temporary_remove(&r->made); /* nothing came of it */
    train_stored_clear(&r->before);
    train_stored_clear(&r->after);
    train_step_selection_clear(&r->steps);
}
