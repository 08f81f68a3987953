/* optimizer.c -- the optimizer that policy and trace agree on, for each parameter group; see
 * state.h. */
#include "impl.h"

#include "../array/need.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int replay_is_updated(const parameter *p)
{
    return p->ranks && p->p && p->group >= 0;
}

/* ---- the implementation ---- */

/* What torch's implementations are here: with FMA and without, which CPUs alone have. */
static const struct {
    const char *impl;
    record_device device;
    const char *contracts, *plain;
} implementations[] = {
    {"forloop", DEVICE_CPU, "torch-cpu", "torch-cpu-default"},
    {"foreach", DEVICE_CPU, "torch-cpu-foreach", "torch-cpu-foreach-default"},
    {"fused", DEVICE_CPU, "torch-fused-cpu", "torch-fused-cpu-default"},
    {"forloop", DEVICE_CUDA, "torch", "torch"},
    {"foreach", DEVICE_CUDA, "torch-foreach", "torch-foreach"},
    {"fused", DEVICE_CUDA, "torch-fused-c", "torch-fused-c"},
    {"capturable", DEVICE_CUDA, "torch-capturable", "torch-capturable"},
    {"foreach-capturable", DEVICE_CUDA, "torch-foreach-capturable", "torch-foreach-capturable"},
};

/* The binary64 kernels were torch's up to 2.9. */
enum { FUSED_BINARY32_SINCE = 10 };

const mpsim_optim_variant *replay_recorded_variant(const replay *r, const record_settings *s)
{
    const step_record *m = &r->record;
    const char *impl = s->by_muon ? "forloop" : s->impl[0] ? s->impl : m->whole.impl;
    for (size_t i = 0; i < sizeof implementations / sizeof *implementations; i++) {
        if (m->device != implementations[i].device || strcmp(impl, implementations[i].impl) != 0)
            continue;
        if (m->device == DEVICE_CUDA && strcmp(impl, "fused") == 0 && m->minor >= 0 && m->minor < FUSED_BINARY32_SINCE)
            return mpsim_optim_variant_find("torch-fused-b");
        return mpsim_optim_variant_find(m->contracts == 0 ? implementations[i].plain : implementations[i].contracts);
    }
    return NULL;
}

static int has(const mpsim_optim_variant *v, int algorithm, mpsim_store store)
{
    return v && (v->algorithms >> algorithm & 1) && (v->stores >> store & 1);
}

static const mpsim_optim_variant *choose_variant(replay *r, const record_settings *s, int algorithm)
{
    const plan_optimizer *c = &r->plan->optimizer;
    const mpsim_optim_variant *recorded = replay_recorded_variant(r, s);
    const mpsim_optim_variant *own = policy_variant(c, algorithm);
    if (c->variant_given || !has(recorded, algorithm, c->store)) {
        if (!c->variant_given && own)
            replay_say(r, NOTE_VARIANT,
                       "the optimizer's implementation (mpsim.optimizer_impl, "
                       "mpsim.device): variant %s is taken, so that the last bits of weights and moments may differ",
                       own->name);
        return own;
    }
    if (r->record.device == DEVICE_CPU && r->record.contracts < 0)
        replay_say(r, NOTE_VARIANT,
                   "the CPU's instructions (mpsim.cpu_capability): variant %s is "
                   "taken, so that the last bits of weights and moments may differ",
                   recorded->name);
    return recorded;
}

/* MKL has the square roots of torch's for-loop and foreach on CPU. */
static void say_roots(replay *r, const mpsim_optim *o)
{
    if (mpsim_optim_traits_of(o->algorithm)->roots && strncmp(o->variant->name, "torch-cpu", 9) == 0 &&
        !r->record.ieee_roots)
        replay_say(r, NOTE_ROOTS,
                   "that square roots are IEEE's (mpsim.ieee_roots), as MKL's are with "
                   "MKL_CBWR=AVX2, on Intel's processors: else the last bits of Adam's weights may differ");
}

/* ---- settings ---- */

static double pick(double chosen, double recorded, double otherwise)
{
    return !isnan(chosen) ? chosen : !isnan(recorded) ? recorded : otherwise;
}

static int pick_flag(int chosen, int recorded)
{
    return chosen >= 0 ? chosen : recorded > 0;
}

/* The algorithm, the policy's or the record's; -1 after a message. */
static int choose_algorithm(const replay *r, const record_settings *s)
{
    const int algorithm = r->plan->optimizer.algorithm >= 0 ? r->plan->optimizer.algorithm : s->optimizer;
    char escaped[160], list[128];
    if (algorithm < 0 && s->optimizer_name[0])
        fail(EXIT_DATA,
             "replay: the trace's optimizer (mpsim.optimizer) is '%s': only %s "
             "are known; the policy may name one of them%s",
             escape_text(escaped, sizeof escaped, s->optimizer_name),
             policy_plan_optimizers(list, sizeof list, " and "),
             s->by_muon ? ", or have Muon: optimizer: {name: trace, muon: {}}" : "");
    else if (algorithm < 0)
        fail(EXIT_DATA, "replay: neither the policy (optimizer) nor the trace (mpsim.optimizer) names an optimizer: %s",
             policy_plan_optimizers(list, sizeof list, ", "));
    return algorithm;
}

static int check_settings(const replay *r, const mpsim_optim *o)
{
    if (isnan(o->lr))
        return fail(EXIT_DATA, "replay: neither the policy (optimizer: lr) nor the trace "
                               "(mpsim.lr) says the learning rate");
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return fail(EXIT_DATA, "replay: %s: nesterov needs momentum and dampening 0, not %g and %g", r->policy->name,
                    o->momentum, o->dampening);
    if (mpsim_optim_check(o) == MPSIM_EINVAL)
        return fail(EXIT_DATA,
                    "replay: no %s has such settings, of policy and trace together: "
                    "lr %g, momentum %g, dampening %g, weight decay %g, betas %g and %g, eps %g",
                    mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), o->lr, o->momentum, o->dampening,
                    o->weight_decay, o->beta1, o->beta2, o->eps);
    return 0;
}

static int choose_settings(replay *r, const record_settings *t, mpsim_optim *o)
{
    const plan_optimizer *c = &r->plan->optimizer;
    const double unset = (double)NAN;
    const int algorithm = choose_algorithm(r, t);
    if (algorithm < 0)
        return EXIT_DATA;
    const mpsim_optim_variant *variant = choose_variant(r, t, algorithm);
    if (!variant)
        return fail(EXIT_DATA,
                    "replay: %s: variant %s has no %s that stores as the policy says; "
                    "the first of a list that has it is taken: variant: [%s, ieee]",
                    r->policy->name, c->variants[0]->name, mpsim_optim_name((mpsim_optim_algorithm)algorithm),
                    c->variants[0]->name);
    mpsim_optim_init(o, (mpsim_optim_algorithm)algorithm, variant);
    /* settings of the trace belong to the trace's optimizer */
    const int same = algorithm == t->optimizer;
    o->lr = unset;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++) {
        const mpsim_optim_setting s = (mpsim_optim_setting)i;
        const double recorded = same || s == MPSIM_OPTIM_LR ? t->number[i] : unset;
        mpsim_optim_set(o, s, pick(c->number[i], recorded, mpsim_optim_value(o, s)));
    }
    o->nesterov = (uint8_t)pick_flag(c->nesterov, same ? t->nesterov : -1);
    o->amsgrad = (uint8_t)pick_flag(c->amsgrad, same ? t->amsgrad : -1);
    o->maximize = (uint8_t)pick_flag(c->maximize, same ? t->maximize : -1);
    return check_settings(r, o);
}

/* ---- what the policy has instead of the record ---- */

typedef struct word_list {
    char text[280];
} word_list;

static void add_number(word_list *l, const char *word, double own, double recorded)
{
    if (!isnan(own) && !isnan(recorded) && own != recorded)
        text_add(l->text, sizeof l->text, "%s%s %.9g (recorded %.9g)", *l->text ? ", " : "", word, own, recorded);
}

static void add_word(word_list *l, const char *word, const char *own, const char *recorded)
{
    if (own && recorded && strcmp(own, recorded) != 0)
        text_add(l->text, sizeof l->text, "%s%s %s (recorded %s)", *l->text ? ", " : "", word, own, recorded);
}

static void add_flag(word_list *l, const char *word, int own, int recorded)
{
    static const char *const words[] = {"false", "true"};
    if (own >= 0 && recorded >= 0)
        add_word(l, word, words[own != 0], words[recorded != 0]);
}

/* "weight decay" */
static const char *words_of(char *word, size_t size, int setting)
{
    snprintf(word, size, "%s", mpsim_optim_setting_name((mpsim_optim_setting)setting));
    for (char *c = word; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return word;
}

static void say_policy(replay *r, const record_settings *t, const mpsim_optim *o)
{
    const plan_optimizer *c = &r->plan->optimizer;
    const mpsim_optim_variant *recorded = replay_recorded_variant(r, t);
    const int same = o->algorithm == t->optimizer;
    word_list l = {""};
    char word[32];
    if (c->algorithm >= 0 && t->optimizer >= 0)
        add_word(&l, "optimizer", mpsim_optim_name((mpsim_optim_algorithm)o->algorithm),
                 mpsim_optim_name((mpsim_optim_algorithm)t->optimizer));
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        if (same || i == MPSIM_OPTIM_LR)
            add_number(&l, words_of(word, sizeof word, i), c->number[i], t->number[i]);
    if (same) {
        add_flag(&l, "nesterov", c->nesterov, t->nesterov);
        add_flag(&l, "amsgrad", c->amsgrad, t->amsgrad);
        add_flag(&l, "maximize", c->maximize, t->maximize);
    }
    if (c->variant_given && recorded)
        add_word(&l, "variant", o->variant->name, recorded->name);
    if (r->plan->clip_given && !isnan(r->record.grad_clip))
        add_number(&l, "clip", r->plan->clip == MPSIM_CLIP_NONE ? 0 : r->plan->max_norm, r->record.grad_clip);
    if (l.text[0])
        replay_say(r, NOTE_POLICY, "%s", l.text);
}

/* ---- settings that are tensors ---- */

/* Adam's for-loop computes with tensors in binary32. lr / (1 - beta1^t) is rounded from two rounded numbers where lr
 * is a tensor; where the betas alone are, it is a rounded 1 / (1 - beta1^t) times lr. 1 - lr * decay is rounded
 * with a tensor lr, from a product that is. */
void replay_tensor_scalars(const replay *r, const parameter *p, uint64_t t, mpsim_optim *o)
{
    const record_settings *s = replay_group_settings(r, p);
    const double *given = r->plan->optimizer.number;
    const int forloop = (o->algorithm == MPSIM_OPTIM_ADAM || o->algorithm == MPSIM_OPTIM_ADAMW) &&
                        strcmp(s->impl, "forloop") == 0;
    const int tensor_lr = forloop && s->tensor_lr && isnan(given[MPSIM_OPTIM_LR]);
    o->float_powers = forloop && s->tensor_betas && isnan(given[MPSIM_OPTIM_BETA1]) && isnan(given[MPSIM_OPTIM_BETA2]);
    if (!tensor_lr && !o->float_powers)
        return;
    const float lr = (float)o->lr, decay = lr * (float)o->weight_decay, kept = 1 - decay;
    const double correction = mpsim_optim_correction(o, o->beta1, t), all = o->lr * o->weight_decay;
    const float step = tensor_lr ? lr / (float)correction : 1 / (float)correction * lr;
    o->lr = (double)step * correction;
    if (mpsim_optim_traits_of(o->algorithm)->decoupled && o->weight_decay != 0 && o->lr != 0)
        o->weight_decay = (tensor_lr ? 1 - (double)kept : all) / o->lr;
}

static void say_tensors(replay *r, const record_settings *t)
{
    const mpsim_optim_variant *v = replay_recorded_variant(r, t);
    if (t->tensor_betas && !(v && strstr(v->name, "-default")))
        replay_say(
            r, NOTE_TENSORS,
            "how torch computed powers of betas that are tensors: they are rounded to binary32 as by C's "
            "powf, from which its vector kernels (AVX2, AVX-512) and a device may be off in the last bit from step 4 on, and "
            "with them weights");
}

/* ---- what the record lacks ---- */

static void say_lacking(replay *r, const record_settings *t, const mpsim_optim *o)
{
    const char *const package = mpsim_optim_traits_of(o->algorithm)->package;
    if (!r->groups.json)
        replay_say(r, NOTE_GROUPS,
                   "parameter groups (mpsim.groups): all parameters take the settings "
                   "of the whole, so that weights and moments of a group with its own may differ");
    if (t->class[0] && strncmp(t->class, package, strlen(package)) != 0)
        replay_say(r, NOTE_CLASS,
                   "a class that is known (%s): it counts as %.*s's %s, so that all weights and moments may differ",
                   t->class, (int)strcspn(package, "."), package,
                   mpsim_optim_name((mpsim_optim_algorithm)o->algorithm));
    say_roots(r, o);
    say_tensors(r, t);
}

/* Moments that a parameter should have had when its record began. */
static void say_lacking_state(replay *r, const parameter *p, const mpsim_optim *o)
{
    const unsigned needs = mpsim_optim_needs(o, &p->place.kept);
    if ((needs & MPSIM_OPTIM_M) && p->lacks_state)
        replay_say(r, NOTE_STATE,
                   "moments (opt.m%s) of %.60s at step %lld: they begin at 0, so that "
                   "its weights and moments may differ from there on",
                   needs & MPSIM_OPTIM_V ? ", opt.v" : "", p->name, (long long)r->step);
    if ((needs & MPSIM_OPTIM_VMAX) && p->lacks_vmax)
        replay_say(r, NOTE_VMAX,
                   "opt.vmax of %.60s at step %lld: amsgrad begins with opt.v, so that "
                   "its weights may differ from there on",
                   p->name, (long long)r->step);
    if (mpsim_optim_traits_of(o->algorithm)->corrects && !p->steps_known && p->t > 0)
        replay_say(r, NOTE_STEPS,
                   "steps taken (mpsim.optimizer_steps) at step %lld: none was skipped "
                   "is assumed, so that weights may differ by %s's corrections",
                   (long long)r->step, mpsim_optim_traits_of(mpsim_optim_traits_of(o->algorithm)->family)->title);
}

/* ---- all groups ---- */

const mpsim_optim *replay_optimizer_of(const replay *r, const parameter *p)
{
    if (r->n_settings == 0)
        return NULL;
    const size_t at = p->group >= 0 && (size_t)p->group < r->n_settings ? (size_t)p->group : 0;
    return r->settings[at].optimizer.variant ? &r->settings[at].optimizer : NULL;
}

int replay_choose_optimizers(replay *r)
{
    const size_t n = r->groups.json ? r->groups.n : 1;
    replay_settings *list = need_memory(n, sizeof *list);
    int code = 0;
    free(r->settings);
    r->settings = list;
    r->n_settings = n;
    for (size_t i = 0; i < r->n_parameters && !code; i++) {
        const parameter *p = &r->parameters[i];
        if (!replay_is_updated(p) || replay_is_muon(r, p)) /* whose settings are its own */
            continue;
        const record_settings *t = replay_group_settings(r, p);
        replay_settings *s = &list[p->group];
        if (s->parameters++ == 0) {
            code = choose_settings(r, t, &s->optimizer);
            if (!code) {
                say_policy(r, t, &s->optimizer);
                say_lacking(r, t, &s->optimizer);
            }
        }
        if (!code && r->from_record)
            say_lacking_state(r, p, &s->optimizer);
    }
    return code;
}
