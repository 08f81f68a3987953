/* step.c -- see step.h. */
#include "step.h"

#include "../text/words.h"

/* ---- events ---- */

static const struct event {
    unsigned bit;
    const char *word;
} events[] = {
    {MPSIM_SCALER_OVERFLOW, "overflow"},   {MPSIM_SCALER_SKIP, "skipped"},
    {MPSIM_SCALER_BACKOFF, "backoff"},     {MPSIM_SCALER_GROWTH, "growth"},
    {MPSIM_SCALER_TOLERATED, "tolerated"}, {MPSIM_SCALER_FLOORED, "floored"},
    {MPSIM_SCALER_CEILING, "ceiling"},     {MPSIM_SCALER_REFUSED, "refused"},
    {MPSIM_SCALER_RAISED, "raised"},       {0, NULL},
};

const char *step_events_text(char *out, size_t size, const char *between, unsigned set)
{
    out[0] = '\0';
    for (size_t i = 0; events[i].word; i++)
        if (set & events[i].bit)
            text_add(out, size, "%s%s", *out ? between : "", events[i].word);
    return out;
}

json_t *step_events_json(unsigned set)
{
    json_t *list = json_array();
    for (size_t i = 0; events[i].word; i++)
        if (set & events[i].bit)
            json_array_append_new(list, json_string(events[i].word));
    return list;
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

json_t *step_optimizer_json(const mpsim_optim *o)
{
    json_t *v = json_pack("{s:s,s:s,s:o,s:o}", "name", mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), "variant",
                          o->variant->name, "lr", json_of_double(o->lr), "weight_decay",
                          json_of_double(o->weight_decay));
    static const mpsim_optim_setting numbers[] = {MPSIM_OPTIM_MOMENTUM, MPSIM_OPTIM_BETA1,       MPSIM_OPTIM_BETA2,
                                                  MPSIM_OPTIM_EPS,      MPSIM_OPTIM_BETA2_DECAY, MPSIM_OPTIM_EPS2,
                                                  MPSIM_OPTIM_D};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (mpsim_optim_has(o->algorithm, numbers[i]))
            json_object_set_new(v, mpsim_optim_setting_name(numbers[i]),
                                json_of_double(mpsim_optim_value(o, numbers[i])));
    return v;
}

/* ---- memory ---- */

void step_print_bytes(FILE *to, const train_bytes *b)
{
    char line[512], weights[32], master[32], gradients[32], state[32], activations[32];
    snprintf(line, sizeof line, "weights %s, master %s, gradients %s, optimizer state %s, activations %s",
             text_bytes(weights, b->weights), text_bytes(master, b->master), text_bytes(gradients, b->gradients),
             text_bytes(state, b->state), text_bytes(activations, b->activations));
    text_wrapped(to, "bytes      ", line);
}

json_t *step_bytes_json(const train_bytes *b)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "weights", json_of_count(b->weights), "master", json_of_count(b->master),
                     "gradients", json_of_count(b->gradients), "state", json_of_count(b->state), "activations",
                     json_of_count(b->activations));
}

table *step_bytes_table(void)
{
    return table_new("<policy|>weights|>master|>gradients|>optimizer state|>activations|>all");
}

void step_bytes_row(table *t, const char *policy, const train_bytes *b)
{
    table_cell(t, "%s", policy);
    table_bytes(t, b->weights);
    table_bytes(t, b->master);
    table_bytes(t, b->gradients);
    table_bytes(t, b->state);
    table_bytes(t, b->activations);
    table_bytes(t, b->weights + b->master + b->gradients + b->state + b->activations);
}
