/* stall.c -- whether weights in bf16 need a wider copy: the trace is replayed with bf16 weights alone, at its learning rate
 * and at others; see advise.h. */
#include "advise.h"

#include "../cli/options.h"
#include "../policy/list.h"

#include <math.h>
#include <string.h>

/* Added to no exit code: what was asked for is known. */
enum { SEEN = 1000 };

typedef struct reading {
    advise_stall *s;
    int64_t only; /* a step; -1: all, for the worst */
    uint64_t lost, updates;
    int any;
} reading;

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* The learning rate, if there is one for all. */
static void read_rate(advise_stall *s, const replay_step *step)
{
    s->lr = (double)NAN;
    s->no_lr = NULL;
    for (size_t i = 0; i < step->n_settings; i++) {
        const replay_settings *g = &step->settings[i];
        const double lr = g->optimizer.lr;
        if (!g->parameters)
            continue;
        if (!isnan(s->lr) && lr != s->lr)
            s->no_lr = "parameter groups have learning rates of their own";
        s->lr = lr;
    }
    if (isnan(s->lr) && step->optimizer)
        s->lr = step->optimizer->lr;
}

/* The parameter that loses the largest share, of those with a hundredth of the updates. */
static void read_weights(advise_stall *s, const replay_step *step)
{
    double wanted = 0, moved = 0;
    s->worst_lost = s->worst_updates = 0;
    for (size_t i = 0; i < step->n_weights; i++) {
        const replay_weight *w = &step->weights[i];
        wanted += w->movement.wanted;
        moved += w->movement.moved;
        if (w->updates >= s->updates / 100 &&
            share_of(w->lost, w->updates) > share_of(s->worst_lost, s->worst_updates)) {
            snprintf(s->worst, sizeof s->worst, "%s", w->name);
            s->worst_lost = w->lost;
            s->worst_updates = w->updates;
        }
    }
    s->moved = wanted > 0 ? moved / wanted : 1;
}

static int done(const replay_step *step, void *context)
{
    reading *r = context;
    advise_stall *s = r->s;
    uint64_t lost = 0, updates = 0;
    if (!step->trains || (r->only >= 0 && step->step != r->only))
        return 0;
    for (size_t i = 0; i < step->n_weights; i++) {
        lost += step->weights[i].lost;
        updates += step->weights[i].updates;
    }
    if (r->only < 0 && updates && (!r->any || share_of(lost, updates) > share_of(s->lost, s->updates))) {
        s->lost = lost;
        s->updates = updates;
        s->step = step->step;
        read_weights(s, step);
        read_rate(s, step);
    }
    r->any |= updates > 0;
    r->lost = lost;
    r->updates = updates;
    return r->only >= 0 ? SEEN : 0;
}

static int replay(reading *r, const policy *p, input *in)
{
    const replay_options o = {.weights = REPLAY_RECORDED};
    const int code = replay_run(p, in, &o, done, r, NULL, 0);
    return code == SEEN ? 0 : code;
}

/* Whether with another learning rate, lr * 2^k, no more than the bound are lost in that step: *is. */
static int try(const advise *a, policy *p, input *in, int k, int *is)
{
    advise_stall s = a->stall;
    reading r = {.s = &s, .only = a->stall.step};
    for (size_t i = 0; i < p->count; i++)
        p->plans[i].optimizer.lr = ldexp(a->stall.lr, k);
    const int code = replay(&r, p, in);
    *is = share_of(r.lost, r.updates) <= a->bounds.lost;
    return code;
}

/* The least power of two times lr that is enough: upwards the first, downwards the last that still is. */
static int find_rate(advise *a, policy *p, input *in)
{
    enum { FARTHEST = 32 };
    advise_stall *s = &a->stall;
    const int sign = s->upwards ? 1 : -1;
    int code = 0, is = 0, bad = 0, good = 0; /* steps from lr: bad: not what is looked for */
    for (int k = 1; k <= FARTHEST && !good && !code; k *= 2) {
        code = try(a, p, in, sign * k, &is);
        if (is == s->upwards)
            good = k;
        else
            bad = k;
    }
    while (good - bad > 1 && !code) {
        const int k = (good + bad) / 2;
        code = try(a, p, in, sign * k, &is);
        if (is == s->upwards)
            good = k;
        else
            bad = k;
    }
    if (!code && good)
        s->enough = ldexp(s->lr, s->upwards ? good : -bad);
    else
        s->no_lr = s->upwards ? "none up to 2^32 times as large is enough" : "2^32 times smaller ones are enough, too";
    return code;
}

static const char *unknown(const advise *a)
{
    return !a->has_weights     ? "the trace has no weights"
           : !a->has_gradients ? "the trace has no weight gradients"
           : !a->has_optimizer ? "the trace does not name an optimizer that a replay has, and its learning rate"
           : a->no_step        ? "files do not say of which step they are"
                               : NULL;
}

int advise_find_stall(advise *a, input *in)
{
    advise_stall *s = &a->stall;
    policy_list l = {.steps_per_epoch = 1};
    reading r = {.s = s, .only = -1};
    *s = (advise_stall){.unknown = unknown(a), .step = -1, .lr = (double)NAN, .enough = (double)NAN, .keep = 1};
    if (s->unknown)
        return 0;
    int code = policy_list_add(&l, "advise", "bf16-pure");
    if (!code)
        code = replay(&r, &l.items[0], in);
    if (!code && !r.any)
        s->unknown = "no step of the trace updates the weights";
    if (!code && r.any) {
        s->keep = s->upwards = share_of(s->lost, s->updates) > a->bounds.lost;
        if (!s->no_lr && s->lr > 0 && s->step >= 0)
            code = find_rate(a, &l.items[0], in);
    }
    policy_list_clear(&l);
    return code;
}
