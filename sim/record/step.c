/* step.c -- see step.h. */
#include "step.h"

#include "../text/words.h"

/* ---- events ---- */

const char *const step_events[] = {"overflow", "skipped", "backoff", "growth", "tolerated",
                                   "floored",  "ceiling", "refused", "raised", NULL};

const char *step_events_text(char *out, size_t size, const char *between, unsigned set)
{
    out[0] = '\0';
    for (size_t i = 0; step_events[i]; i++)
        if (set & 1U << i)
            text_add(out, size, "%s%s", *out ? between : "", step_events[i]);
    return out;
}

/* ---- the optimizer ---- */

/* That a variant equals recorded steps is claimed of a run that is compared only where it holds. */
static const char *how_known(const mpsim_optim_variant *v, step_comparison c)
{
    static const char *const known[] = {[MPSIM_OPTIM_DEFINED] = "mpsim's own order of roundings",
                                        [MPSIM_OPTIM_RECORDED] = "equal to recorded steps",
                                        [MPSIM_OPTIM_DERIVED] = "from its source, no run compared",
                                        [MPSIM_OPTIM_OPEN] = "from its source, which leaves bits open"};
    static const char *const recorded[] = {
        [STEP_NO_RECORD] = "equal to recorded steps",
        [STEP_EQUAL] = "equal to recorded steps",
        [STEP_DIFFERS] = "equal to recorded steps of other runs, not to those of this one",
        [STEP_EQUAL_IN_PART] = "equal to recorded steps of other runs, and to what of this one can be compared",
        [STEP_NOT_COMPARED] = "equal to recorded steps of other runs, this one compares none"};
    return v->evidence == MPSIM_OPTIM_RECORDED ? recorded[c] : known[v->evidence];
}

void step_print_variant(FILE *to, const mpsim_optim_variant *v, step_comparison c)
{
    char line[512];
    snprintf(line, sizeof line, "%s, %s, %s%s%s", v->name, v->what, how_known(v, c), v->open ? ", open: " : "",
             v->open ? v->open : "");
    text_wrapped(to, "variant    ", line);
}

const char *step_optimizer_text(char *out, size_t size, const mpsim_optim *o)
{
    char momentum[64] = "", betas[64] = "", eps[96] = "";
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_MOMENTUM))
        snprintf(momentum, sizeof momentum, ", momentum %g", o->momentum);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_BETA1))
        snprintf(betas, sizeof betas, ", betas %g %g", o->beta1, o->beta2);
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_D))
        snprintf(eps, sizeof eps, ", beta2 decay %g, eps %g %g, d %g", o->beta2_decay, o->eps, o->eps2, o->d);
    else if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_EPS))
        snprintf(eps, sizeof eps, ", eps %g", o->eps);
    snprintf(out, size, "%s, lr %g%s%s%s, weight decay %g%s%s%s", mpsim_optim_name((mpsim_optim_algorithm)o->algorithm),
             o->lr, momentum, betas, eps, o->weight_decay, o->nesterov ? ", nesterov" : "",
             o->amsgrad ? ", amsgrad" : "", o->maximize ? ", maximize" : "");
    return out;
}

static const mpsim_optim_setting settings[STEP_SETTINGS] = {
    MPSIM_OPTIM_MOMENTUM,    MPSIM_OPTIM_BETA1, MPSIM_OPTIM_BETA2, MPSIM_OPTIM_EPS,
    MPSIM_OPTIM_BETA2_DECAY, MPSIM_OPTIM_EPS2,  MPSIM_OPTIM_D};

step_optimizer step_optimizer_of(const mpsim_optim *o)
{
    step_optimizer of = {.name = mpsim_optim_name((mpsim_optim_algorithm)o->algorithm),
                         .variant = o->variant->name,
                         .lr = o->lr,
                         .weight_decay = o->weight_decay};
    for (size_t i = 0; i < STEP_SETTINGS; i++) {
        of.has[i] = mpsim_optim_has(o->algorithm, settings[i]) != 0;
        of.value[i] = mpsim_optim_value(o, settings[i]);
    }
    return of;
}

#define AT(member) offsetof(step_optimizer, member)
#define SETTING(KEY, I, WHAT)                                                                     \
    FIELD(REAL, KEY, IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(value) + (I) * sizeof(double), WHAT, \
          .of = AT(has) + (I) * sizeof(size_t))
static const record_field optimizer_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), "The algorithm."),
    FIELD(TEXT, "variant", IN_TREE, AT(variant), "The order of roundings, as a framework has it."),
    FIELD(REAL, "lr", IN_TREE, AT(lr), "The learning rate."),
    FIELD(REAL, "weight_decay", IN_TREE, AT(weight_decay), NULL),
    SETTING("momentum", 0, NULL),
    SETTING("beta1", 1, NULL),
    SETTING("beta2", 2, NULL),
    SETTING("eps", 3, NULL),
    SETTING("beta2_decay", 4, "Of Adafactor."),
    SETTING("eps2", 5, "Of Adafactor."),
    SETTING("d", 6, "Of Adafactor: the threshold at which updates are clipped."),
    {0}};
const record_kind step_optimizer_record = {
    "optimizer", "An optimizer's settings; those that its algorithm does not have are missing.", sizeof(step_optimizer),
    optimizer_fields};
#undef SETTING
#undef AT

/* ---- the policy ---- */

#define AT(member) offsetof(step_policy, member)
static const record_field policy_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(TEXT, "file", IN_TREE | FIELD_NULL, AT(file), "The policy's file; null: there is no policy."),
    FIELD(TEXT, "source", IN_TREE | FIELD_NULL, AT(source), "Where the policy's settings are published, in its words."),
    FIELD(TEXT, "note", IN_TREE | FIELD_NULL, AT(note), "The policy's own note."),
    {0}};
const record_kind step_policy_record = {"named", NULL, sizeof(step_policy), policy_fields};
#undef AT

/* ---- memory ---- */

void step_print_bytes(FILE *to, const train_bytes *b)
{
    char line[512], weights[32], master[32], gradients[32], state[32], activations[32];
    snprintf(line, sizeof line, "weights %s, master %s, gradients %s, optimizer state %s, activations %s",
             text_bytes(weights, b->weights), text_bytes(master, b->master), text_bytes(gradients, b->gradients),
             text_bytes(state, b->state), text_bytes(activations, b->activations));
    text_wrapped(to, "bytes      ", line);
}

#define AT(member) offsetof(train_bytes, member)
static const record_field bytes_fields[] = {
    FIELD(COUNT, "weights", IN_ALL | FIELD_BYTES, AT(weights), "Of the model's weights.", .title = ">weights"),
    FIELD(COUNT, "master", IN_ALL | FIELD_BYTES, AT(master), "Of the masters of weights.", .title = ">master"),
    FIELD(COUNT, "gradients", IN_ALL | FIELD_BYTES, AT(gradients), "Of the weights' gradients.", .title = ">gradients"),
    FIELD(COUNT, "state", IN_ALL | FIELD_BYTES, AT(state), "Of the optimizer's state.", .title = ">optimizer state"),
    FIELD(COUNT, "activations", IN_ALL | FIELD_BYTES, AT(activations),
          "Of what the forward pass keeps for the backward pass.", .title = ">activations"),
    {0}};
const record_kind step_bytes_record = {"bytes", "Bytes of memory, in the formats of the policy.", sizeof(train_bytes),
                                       bytes_fields};
#undef AT

#define AT(member) offsetof(step_bytes, member)
static const record_field row_fields[] = {
    FIELD(TEXT, NULL, 0, AT(policy), NULL, .title = "<policy"),
    FIELD(RECORD, NULL, FIELD_POINTER, AT(bytes), NULL, .title = "", .record = &step_bytes_record),
    FIELD(COUNT, NULL, FIELD_BYTES, AT(all), NULL, .title = ">all"),
    {0}};
const record_kind step_bytes_row = {"bytes_row", NULL, sizeof(step_bytes), row_fields};
#undef AT

void step_bytes_add(table *t, const char *policy, const train_bytes *b)
{
    const step_bytes row = {policy, b, b->weights + b->master + b->gradients + b->state + b->activations};
    record_cells(t, &step_bytes_row, &row, 0);
}
