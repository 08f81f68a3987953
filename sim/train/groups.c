/* groups.c -- see groups.h; the keys are those of data/record/metadata.tsv. */
#include "train.h"

#include "../array/need.h"
#include "../record/cells.h"

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
    static const mpsim_optim_setting said[] = {
        MPSIM_OPTIM_MOMENTUM, MPSIM_OPTIM_DAMPENING, MPSIM_OPTIM_BETA1,       MPSIM_OPTIM_BETA2, MPSIM_OPTIM_NESTEROV,
        MPSIM_OPTIM_AMSGRAD,  MPSIM_OPTIM_EPS,       MPSIM_OPTIM_BETA2_DECAY, MPSIM_OPTIM_EPS2,  MPSIM_OPTIM_D};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const double x = mpsim_optim_value(o, said[i]);
        if (mpsim_optim_has(o->algorithm, said[i]))
            json_object_set_new(v, mpsim_optim_setting_name(said[i]),
                                said[i] >= MPSIM_OPTIM_NUMBERS ? json_boolean(x != 0) : json_of_double(x));
    }
    return v;
}

static char *text_of(json_t *v)
{
    char *text = need(json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(17)));
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
