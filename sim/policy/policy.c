/* policy.c -- see policy.h: files and schedules. */
#include "impl.h"

#include "../array/lacking.h"
#include "../array/want.h"
#include "../cli/options.h"
#include "../process/resource.h"
#include "../text/words.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- schedules ---- */

/* The next plan, from what has been read so far. */
static int add_plan(policy_draft *d)
{
    policy *p = d->policy;
    if (want_room(&p->plans, p->count, 1, sizeof *p->plans) || policy_keys_apply(d, &p->plans[p->count]))
        return -1;
    plan *plans = p->plans;
    const uint64_t from = plans[p->count].from;
    if (p->count && from <= plans[p->count - 1].from)
        return policy_bad(&d->r, d->entry,
                          from == 0 ? "schedule: steps count from 1" : "schedule: steps must increase");
    p->count++;
    return 0;
}

/* A file that says nothing is a mistake: it would train as fp32 without a word. So is one with a name, a note and steps alone. */
static int says_nothing(const yaml_value *map)
{
    static const char *const labels[] = {"name", "source", "note", "step"};
    int nothing = map->type == YAML_MAP;
    for (size_t i = 0; nothing && i < map->count; i++) {
        const yaml_value *v = map->items[i].value;
        int label = 0;
        for (size_t k = 0; k < sizeof labels / sizeof *labels; k++)
            label |= strcmp(map->items[i].key, labels[k]) == 0;
        if (strcmp(map->items[i].key, "schedule") == 0 && v->type == YAML_LIST) {
            label = 1;
            for (size_t k = 0; label && k < v->count; k++)
                label = says_nothing(v->items[k].value);
        }
        nothing = label;
    }
    return nothing;
}

static int read_plans(policy_draft *d, const yaml_value *tree)
{
    const int nothing = says_nothing(tree);
    if ((!nothing || tree->count) && (policy_keys_read(d, tree, 0) || add_plan(d)))
        return -1;
    const yaml_value *list = d->value[KEY_SCHEDULE];
    for (size_t i = 0; list && i < list->count; i++)
        if (policy_keys_read(d, list->items[i].value, list->items[i].line) || add_plan(d))
            return -1;
    return nothing ? trace_error_set(d->r.error, EXIT_DATA, d->r.path, UINT64_MAX,
                                     "no key %sis given: a policy is 'key: value' lines, as 'precision: bf16'",
                                     tree->count ? "of a training " : "")
                   : 0;
}

const plan *policy_plan(const policy *p, uint64_t step)
{
    size_t i = p->count - 1;
    while (i > 0 && p->plans[i].from > step)
        i--;
    return &p->plans[i];
}

/* ---- files ---- */

const char *policy_bundled(char folder[RESOURCE_PATH])
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

/* 1 if something is there, 0 if not; -1 and errno if that is not known. */
static int is_there(const char *path)
{
    if (access(path, F_OK) == 0 || errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG) /* opening it says why */
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

/* The file that is meant, *there: itself, or a bundled policy of that name. NULL and errno. */
static char *find_file(const char *path, const char *bundled, int *there)
{
    *there = strcmp(path, "-") == 0 || strchr(path, '/') ? 1 : is_there(path);
    if (*there)
        return *there > 0 ? want_text(path) : NULL;
    char *found = want_format("%s/%s.yaml", bundled, path);
    *there = found ? is_there(found) : -1;
    if (*there > 0)
        return found;
    const int why = errno;
    free(found);
    errno = why;
    return *there < 0 ? NULL : want_text(path);
}

/* The bundled policies whose names are near, as the end of a message. */
static const char *nearest(suggestion *s, const char *name, const char *folder)
{
    suggestion_init(s, name);
    DIR *all = opendir(folder);
    for (struct dirent *e; all && (e = readdir(all));) {
        char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".yaml") == 0) {
            *dot = '\0';
            suggestion_consider(s, e->d_name);
        }
    }
    if (all)
        closedir(all);
    return suggestion_end(s, ": see 'mpsim help policies' (MPSIM_POLICIES)");
}

/* "data/policies/x.yaml" -> "x" */
static char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
    const char *dot = strrchr(start, '.');
    char *name = want_part(start, dot && dot > start ? (size_t)(dot - start) : strlen(start));
    char escaped[512];
    char *printable = name ? want_text(escape_text(escaped, sizeof escaped, name)) : NULL;
    free(name);
    return printable;
}

/* The plans of a tree, which is freed; NULL: it could not be read. */
static int take_tree(policy *p, yaml_value *tree, uint64_t steps_per_epoch, trace_error *error)
{
    policy_draft d = {
        .r = {.path = p->path, .error = error, .remarks = &p->remarks}, .policy = p, .epoch = steps_per_epoch};
    if (tree)
        policy_gather_scaling(tree);
    const int code = tree && policy_nemo_unfold(&d.r, tree) == 0 ? read_plans(&d, tree) : -1;
    policy_tree_free(tree);
    return code;
}

/* An exit code; without memory what the library's own functions return instead of ending the program. */
static int end(policy *p, int code, const trace_error *error)
{
    if (code == 0)
        return 0;
    policy_clear(p);
    return error->exit ? error->exit : host_no_memory();
}

int policy_load_from(policy *p, const char *path, const char *bundled, uint64_t steps_per_epoch, trace_error *error)
{
    char folder[RESOURCE_PATH];
    int there, code = -1;
    memset(p, 0, sizeof *p);
    error->exit = 0;
    bundled = bundled ? bundled : policy_bundled(folder);
    p->path = find_file(path, bundled, &there);
    const int why = errno;
    p->name = base_name(path);
    suggestion s;
    if (!p->path && there < 0)
        trace_error_set(error, EXIT_IO, path, UINT64_MAX, "%s", text_error(why));
    else if (p->path && !there)
        trace_error_set(error, EXIT_IO, path, UINT64_MAX, "no such file, and no bundled policy of that name in %s%s",
                        bundled, nearest(&s, path, bundled));
    else if (p->path && p->name)
        code = take_tree(p, policy_tree_load(p->path, error), steps_per_epoch, error);
    return end(p, code, error);
}

int policy_load(policy *p, const char *path, uint64_t steps_per_epoch, trace_error *error)
{
    return policy_load_from(p, path, NULL, steps_per_epoch, error);
}

int policy_read(policy *p, const char *name, const char *text, size_t n, uint64_t steps_per_epoch, trace_error *error)
{
    int code = -1;
    memset(p, 0, sizeof *p);
    error->exit = 0;
    p->path = want_text(name);
    p->name = base_name(name);
    if (p->path && p->name)
        code = take_tree(p, policy_tree_read(p->path, text, n, error), steps_per_epoch, error);
    return end(p, code, error);
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
