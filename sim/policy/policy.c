/* policy.c -- see policy.h: files, schedules, and what a plan says of a tensor. */
#include "keys.h"

#include "../cli/options.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what a plan says of a tensor ---- */

static int listed(const yaml_value *globs, const char *layer)
{
    for (size_t i = 0; globs && i < globs->count; i++)
        if (fnmatch(globs->items[i].value->text, layer, 0) == 0)
            return 1;
    return 0;
}

layer_kind policy_layer(const plan *p, const char *layer, int weight_rank)
{
    layer_kind kind = LAYER_OTHER;
    for (size_t i = 0; p->layer_kinds && i < p->layer_kinds->count; i++) {
        const yaml_item *item = &p->layer_kinds->items[i];
        if (fnmatch(item->key, layer, 0) == 0 && layer_kind_find(&kind, item->value->text) == 0)
            return kind;
    }
    if (layer_kind_of_name(layer, &kind))
        return kind;
    switch (weight_rank) {
    case 1:
        return LAYER_NORM;
    case 2:
        return LAYER_LINEAR;
    case 3:
    case 4:
    case 5:
        return LAYER_CONV;
    default:
        return LAYER_OTHER;
    }
}

int plan_low(const plan *p, layer_kind k, const char *layer, tensor_role role)
{
    return (p->autocast->low[k] >> role & 1) && !listed(p->keep_fp32, layer);
}

const mpsim_block_recipe *plan_recipe(const plan *p, layer_kind k, const char *layer,
                                      tensor_role role)
{
    const recipe_row *recipe = p->recipe;
    if (!recipe || k != LAYER_LINEAR || listed(p->keep_fp32, layer) ||
        listed(p->fp8_exclude, layer))
        return NULL;
    const char *name = role == ROLE_ACT      ? recipe->act
                       : role == ROLE_WEIGHT ? recipe->weight
                       : role != ROLE_AGRAD  ? NULL
                       : p->fp8_e4m3         ? recipe->agrad_e4m3
                                             : recipe->agrad_hybrid;
    return name ? mpsim_block_find(name) : NULL;
}

const mpsim_format *plan_storage(const plan *p, layer_kind k, const char *layer)
{
    return plan_low(p, k, layer, ROLE_WEIGHT) ? &p->params : mpsim_format_find("binary32");
}

const mpsim_optim_variant *policy_variant(const optimizer_choice *c, int algorithm)
{
    for (size_t i = 0; i < c->n_variants; i++)
        if ((c->variants[i]->algorithms >> algorithm & 1) &&
            (c->variants[i]->stores >> c->store & 1))
            return c->variants[i];
    return NULL;
}

const char *plan_describe(const plan *p, char *out, size_t size)
{
    static const char *const masters[] = {"", ", fp32 master", ", split master"};
    static const char *const stores[] = {"", ", stochastic rounding", ", Kahan"};
    static const char *const orders[] = {"sequence", "a ring", "a tree"};
    int n = snprintf(out, size,
                     "precision %s: compute %s, autocast %s, parameters %s%s%s, gradients %s, scaler %s",
                     p->precision, p->compute.name, p->autocast->name, p->params.name,
                     masters[p->master], stores[p->optimizer.store], p->grads.name,
                     p->scaler.name);
    if (p->recipe && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, ", %s%s", p->recipe->name,
                      !p->recipe->agrad_hybrid ? "" : p->fp8_e4m3 ? " e4m3" : " hybrid");
    if (p->reduce_given && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, ", ranks added in %s%s%s", orders[p->reduce.order],
                      " over a wire of ", p->reduce.wire.name);
    if (p->reduce_given && strcmp(p->reduce.wire.name, p->reduce.accumulator.name) != 0 &&
        (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, " with sums in %s", p->reduce.accumulator.name);
    if (p->clip != MPSIM_CLIP_NONE && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", clip %g (%s)", p->max_norm,
                 mpsim_clip_name(p->clip));
    return out;
}

/* ---- schedules ---- */

static int add_plan(policy_reader *r, policy *p, const policy_settings *s, uint64_t from,
                    unsigned line)
{
    plan *plans = realloc(p->plans, (p->count + 1) * sizeof *plans);
    if (!plans)
        return trace_error_set(r->error, EXIT_IO, r->path, UINT64_MAX, "out of memory");
    p->plans = plans;
    if (settings_resolve(r, s, &plans[p->count]))
        return -1;
    if (p->count && from <= plans[p->count - 1].from)
        return policy_bad(r, line, from == 0 ? "schedule: steps count from 1"
                                             : "schedule: steps must increase");
    plans[p->count++].from = from;
    return 0;
}

/* The first step of an entry: its step, or the first one of its epoch, both counted from 1. An
 * epoch has `length` steps unless the policy says it; 0: it must. */
static int entry_from(policy_reader *r, const policy_settings *s, const policy_settings *base,
                      unsigned line, uint64_t length, uint64_t *from)
{
    uint64_t epoch;
    if (!s->line[KEY_STEP] == !s->line[KEY_EPOCH])
        return policy_bad(r, line, "schedule: an entry needs either step or epoch");
    if (s->line[KEY_STEP])
        return value_count(r, "step", s->value[KEY_STEP], from);
    if (value_count(r, "epoch", s->value[KEY_EPOCH], &epoch))
        return -1;
    if (!base->line[KEY_STEPS_PER_EPOCH] && length == 0)
        return policy_bad(r, line, "schedule: epoch needs the key steps_per_epoch");
    if (base->line[KEY_STEPS_PER_EPOCH] &&
        value_count(r, "steps_per_epoch", base->value[KEY_STEPS_PER_EPOCH], &length))
        return -1;
    if (epoch < 1 || epoch > UINT32_MAX)
        return policy_bad(r, line, "schedule: epoch is 1 to 2^32 - 1");
    *from = (epoch - 1) * length + 1;
    return 0;
}

static int read_schedule(policy_reader *r, policy *p, const policy_settings *base,
                         uint64_t steps_per_epoch)
{
    const yaml_value *list = base->value[KEY_SCHEDULE];
    policy_settings s = *base;
    if (list && list->type != YAML_LIST)
        return policy_bad(r, list->line, "schedule: a list of entries is needed");
    uint64_t length = 1;
    if (base->line[KEY_STEPS_PER_EPOCH] &&
        (value_count(r, "steps_per_epoch", base->value[KEY_STEPS_PER_EPOCH], &length) ||
         length < 1 || length > UINT32_MAX))
        return policy_bad(r, base->line[KEY_STEPS_PER_EPOCH],
                          "steps_per_epoch: 1 to 2^32 - 1 is needed");
    if (add_plan(r, p, base, 0, 1))
        return -1;
    for (size_t i = 0; list && i < list->count; i++) {
        uint64_t from = 0;
        s.line[KEY_STEP] = s.line[KEY_EPOCH] = 0;
        if (settings_read(r, &s, list->items[i].value, 1) ||
            entry_from(r, &s, base, list->items[i].line, steps_per_epoch, &from) ||
            add_plan(r, p, &s, from, list->items[i].line))
            return -1;
    }
    return 0;
}

const plan *policy_plan(const policy *p, uint64_t step)
{
    size_t i = p->count - 1;
    while (i > 0 && p->plans[i].from > step)
        i--;
    return &p->plans[i];
}

/* ---- files ---- */

/* Text for people: what would need escapes on a terminal is refused. */
static int read_text(policy_reader *r, const policy_settings *s, policy_key k, const char *name,
                     const char **text)
{
    char escaped[1024];
    if (!s->line[k])
        return 0;
    if (value_text(r, name, s->value[k], text))
        return -1;
    if (strlen(*text) >= sizeof escaped / 4 ||
        strcmp(escape_text(escaped, sizeof escaped, *text), *text) != 0)
        return policy_bad(r, s->line[k], "%s: a line of at most %zu printable characters is needed",
                          name, sizeof escaped / 4 - 1);
    return 0;
}

enum { PATH_SIZE = 4096 };

/* Where the bundled policies are: MPSIM_POLICIES and nowhere else; or beside the program, in the build
 * tree, libtool's .libs of it, or an installation that was moved; or where they were to be installed. */
static const char *bundled_folder(char folder[PATH_SIZE])
{
    static const char *const beside[] = {"data/policies", "../data/policies",
                                         "../share/mpsim/policies"};
    const char *set = getenv("MPSIM_POLICIES");
    char program[PATH_SIZE - 32], real[PATH_SIZE];
    if (set && *set)
        return set;
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0'; /* not every system has it */
    char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof beside / sizeof beside[0]; i++) {
        *slash = '\0';
        snprintf(folder, PATH_SIZE, "%s/%s", program, beside[i]);
        if (realpath(folder, real))
            return strcpy(folder, real);
    }
    return MPSIM_POLICIES_DIR;
}

/* The file that is meant: itself, or a bundled policy of that name. */
static char *find_file(const char *path)
{
    char *found = NULL, folder[PATH_SIZE];
    if (strcmp(path, "-") == 0 || strchr(path, '/') || access(path, F_OK) == 0)
        return strdup(path);
    if (asprintf(&found, "%s/%s.yaml", bundled_folder(folder), path) < 0)
        return NULL;
    if (access(found, F_OK) == 0)
        return found;
    free(found);
    return strdup(path);
}

/* "data/policies/x.yaml" -> "x" */
static char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
    const char *dot = strrchr(start, '.');
    char *name = strndup(start, dot && dot > start ? (size_t)(dot - start) : strlen(start));
    char escaped[512];
    char *printable = name ? strdup(escape_text(escaped, sizeof escaped, name)) : NULL;
    free(name);
    return printable;
}

int policy_load(policy *p, const char *path, trace_error *error)
{
    return policy_load_epochs(p, path, 0, error);
}

int policy_load_epochs(policy *p, const char *path, uint64_t steps_per_epoch, trace_error *error)
{
    policy_settings s;
    char folder[PATH_SIZE];
    memset(p, 0, sizeof *p);
    memset(&s, 0, sizeof s);
    p->path = find_file(path);
    p->base = base_name(path);
    policy_reader r = {.path = p->path, .error = error};
    if (!p->path || !p->base) {
        trace_error_set(error, EXIT_IO, path, UINT64_MAX, "out of memory");
    } else if (strcmp(path, "-") != 0 && !strchr(path, '/') && access(p->path, F_OK) != 0) {
        trace_error_set(error, EXIT_IO, path, UINT64_MAX,
                        "no such file, and no bundled policy of that name in %s (MPSIM_POLICIES)",
                        bundled_folder(folder));
    } else if ((p->tree = tree_load(p->path, error)) != NULL) {
        p->name = p->base;
        if (settings_read(&r, &s, p->tree, 0) == 0 &&
            read_text(&r, &s, KEY_NAME, "name", &p->name) == 0 &&
            read_text(&r, &s, KEY_SOURCE, "source", &p->source) == 0 &&
            read_text(&r, &s, KEY_NOTE, "note", &p->note) == 0 &&
            read_schedule(&r, p, &s, steps_per_epoch) == 0)
            return 0;
    }
    policy_clear(p);
    return error->exit;
}

void policy_clear(policy *p)
{
    free(p->path);
    free(p->base);
    free(p->plans);
    tree_free(p->tree);
    memset(p, 0, sizeof *p);
}
