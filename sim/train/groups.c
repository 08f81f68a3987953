/* groups.c -- see groups.h; the keys are those of data/record/README.md. */
#include "groups.h"

#include "../report/report.h"

#include <string.h>

/* Names of parameters: of matrices (1), of what has one dimension (0), or both (-1). */
static json_t *parameters(const train_run *r, int matrices)
{
    json_t *list = json_array();
    char name[TRAIN_NAME + 8];
    for (size_t i = 0; i < r->n_layers; i++) {
        const train_layer *l = &r->layers[i];
        const int norm = l->type == TRAIN_NORM;
        const int tied = r->settings.decoder.tied && strcmp(l->name, "head") == 0;
        if (!norm && l->type != TRAIN_LINEAR && l->type != TRAIN_EMBED && l->type != TRAIN_POSITIONS)
            continue;
        const int biased = (norm || l->type == TRAIN_LINEAR) && !l->plain;
        snprintf(name, sizeof name, "%s.weight", l->name);
        if (!tied && matrices != norm)
            json_array_append_new(list, json_string(name));
        snprintf(name, sizeof name, "%s.bias", l->name);
        if (biased && matrices != 1)
            json_array_append_new(list, json_string(name));
    }
    return list;
}

static json_t *group(const mpsim_optim *o, json_t *names, double lr, double weight_decay, uint64_t taken)
{
    json_t *v = json_pack("{s:o,s:s,s:s,s:o,s:o,s:o,s:b}", "params", names, "optimizer",
                          mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), "impl", o->variant->name, "lr",
                          json_of_double(lr), "weight_decay", json_of_double(weight_decay), "steps",
                          json_of_count(taken), "maximize", (int)o->maximize);
    const int sgd = o->algorithm == MPSIM_OPTIM_SGD;
    json_object_set_new(v, sgd ? "momentum" : "beta1", json_of_double(sgd ? o->momentum : o->beta1));
    json_object_set_new(v, sgd ? "dampening" : "beta2", json_of_double(sgd ? o->dampening : o->beta2));
    json_object_set_new(v, sgd ? "nesterov" : "amsgrad", json_boolean(sgd ? o->nesterov : o->amsgrad));
    if (!sgd)
        json_object_set_new(v, "eps", json_of_double(o->eps));
    return v;
}

static char *text_of(json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(v);
    return text;
}

char *train_groups_json(const train_run *r, const mpsim_optim *o, double lr, uint64_t taken)
{
    json_t *list = json_array();
    const int all = r->settings.decoder.decay_all;
    json_array_append_new(list, group(o, parameters(r, all ? -1 : 1), lr, o->weight_decay, taken));
    if (!all)
        json_array_append_new(list, group(o, parameters(r, 0), lr, 0, taken));
    return text_of(list);
}

char *train_tied_json(void)
{
    return text_of(json_pack("{s:s}", "head.weight", "wte.weight"));
}
