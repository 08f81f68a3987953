/* policy.c -- see policy.h: files and schedules. */
#include "keys.h"
#include "nemo.h"

#include "../cli/options.h"
#include "../cli/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- schedules ---- */

/* The next plan, from what has been read so far. */
static int add_plan(policy_draft *d)
{
    policy *p = d->policy;
    plan *plans = realloc(p->plans, (p->count + 1) * sizeof *plans);
    if (!plans)
        return trace_error_set(d->r.error, EXIT_IO, d->r.path, UINT64_MAX, "out of memory");
    p->plans = plans;
    if (keys_apply(d, &plans[p->count]))
        return -1;
    const uint64_t from = plans[p->count].from;
    if (p->count && from <= plans[p->count - 1].from)
        return policy_bad(&d->r, d->entry, from == 0 ? "schedule: steps count from 1"
                                                     : "schedule: steps must increase");
    p->count++;
    return 0;
}

/* A file that says nothing is a mistake: it would train as fp32 without a word. */
static int is_empty(const yaml_value *tree)
{
    return tree->type == YAML_MAP && tree->count == 0;
}

static int read_plans(policy_draft *d, const yaml_value *tree)
{
    if (is_empty(tree))
        return trace_error_set(d->r.error, EXIT_DATA, d->r.path, UINT64_MAX,
                               "no key is given: a policy is 'key: value' lines, as 'precision: bf16'");
    if (keys_read(d, tree, 0) || add_plan(d))
        return -1;
    const yaml_value *list = d->value[KEY_SCHEDULE];
    for (size_t i = 0; list && i < list->count; i++)
        if (keys_read(d, list->items[i].value, list->items[i].line) || add_plan(d))
            return -1;
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

/* Where the bundled policies are. */
static const char *bundled_folder(char folder[RESOURCE_PATH])
{
    char real[RESOURCE_PATH];
    const char *at, *last = "";
    for (size_t i = 0; (at = resource_folder(RESOURCE_POLICIES, i, folder)); i++) {
        last = at;
        if (at == folder && realpath(folder, real))
            return strcpy(folder, real);
    }
    return last;
}

/* The file that is meant: itself, or a bundled policy of that name. */
static char *find_file(const char *path)
{
    char *found = NULL, folder[RESOURCE_PATH];
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

int policy_load(policy *p, const char *path, uint64_t steps_per_epoch, trace_error *error)
{
    char folder[RESOURCE_PATH];
    memset(p, 0, sizeof *p);
    p->path = find_file(path);
    p->name = base_name(path);
    policy_draft d = {.r = {.path = p->path, .error = error, .remarks = &p->remarks}, .policy = p, .epoch = steps_per_epoch};
    int code = -1;
    if (!p->path || !p->name) {
        trace_error_set(error, EXIT_IO, path, UINT64_MAX, "out of memory");
    } else if (strcmp(path, "-") != 0 && !strchr(path, '/') && access(p->path, F_OK) != 0) {
        trace_error_set(error, EXIT_IO, path, UINT64_MAX,
                        "no such file, and no bundled policy of that name in %s (MPSIM_POLICIES)",
                        bundled_folder(folder));
    } else {
        yaml_value *tree = tree_load(p->path, error);
        code = tree && nemo_unfold(&d.r, tree) == 0 ? read_plans(&d, tree) : -1;
        tree_free(tree);
    }
    if (code == 0)
        return 0;
    policy_clear(p);
    return error->exit;
}

void policy_clear(policy *p)
{
    for (policy_patterns *list = p->patterns, *next; list; list = next) {
        next = list->next;
        for (size_t i = 0; i < list->count; i++)
            free(list->items[i].glob);
        free(list->items);
        free(list);
    }
    free(p->path);
    free(p->name);
    free(p->source);
    free(p->note);
    free(p->remarks);
    free(p->plans);
    memset(p, 0, sizeof *p);
}
