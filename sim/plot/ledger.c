/* ledger.c -- see ledger.h. A report is untrusted: every member is checked. */
#include "ledger.h"

#include "../array/need.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int component_named(plot_ledger *l, const plot_report *r, const char *name, size_t *at)
{
    for (*at = 0; *at < l->n_components; ++*at)
        if (strcmp(l->components[*at], name) == 0)
            return 0;
    if (l->n_components == PLOT_COMPONENTS_MAX)
        return plot_malformed(r, "too many components");
    l->components[l->n_components] = need_text(name);
    l->n_components++;
    return 0;
}

static int read_components(plot_ledger *l, plot_policy_bytes *p, const plot_report *r, const json_t *list)
{
    size_t i, at;
    json_t *v;
    int code = 0;
    json_array_foreach(list, i, v)
    {
        const char *name = NULL;
        uint64_t bytes = 0;
        code = code ? code : plot_get_string(r, v, "component", &name);
        code = code ? code : plot_get_count(r, v, "bytes", &bytes);
        code = code ? code : component_named(l, r, name, &at);
        if (code)
            return code;
        p->bytes[at] += (double)bytes;
        p->total += (double)bytes;
        l->sums[at] += (double)bytes;
    }
    return 0;
}

/* A policy may change at a step: each of its parts has a bar. */
static int read_policy(plot_ledger *l, const plot_report *r, const json_t *item, const option_list *match)
{
    const char *name = NULL;
    const json_t *components;
    uint64_t from = 0;
    int code = plot_get_string(r, item, "policy", &name);
    code = code ? code : plot_get_count(r, item, "from_step", &from);
    code = code ? code : plot_get_array(r, item, "components", &components);
    if (code || !plot_listed(match, name, 1))
        return code;
    if (l->n_policies == PLOT_POLICIES_MAX)
        return fail(EXIT_USAGE, "plot: more than %d policies: select fewer with --match GLOB", PLOT_POLICIES_MAX);
    plot_policy_bytes *p = &l->policies[l->n_policies++];
    p->name = from ? need_format("%s, from step %" PRIu64, name, from) : need_text(name);
    return read_components(l, p, r, components);
}

int plot_ledger_read(plot_ledger *l, const plot_report *report, const plot_selection *selection)
{
    const json_t *policies;
    size_t i;
    json_t *item;
    memset(l, 0, sizeof *l);
    int code = plot_get_array(report, report->json, "policies", &policies);
    if (code)
        return code;
    json_array_foreach(policies, i, item) if (!code) code = read_policy(l, report, item, &selection->match);
    if (!code && l->n_policies == 0)
        code = selection->match.count ? fail(EXIT_USAGE, "plot: --match selects no policy of the report")
                                      : plot_malformed(report, "it has no policies");
    return code;
}

void plot_ledger_clear(plot_ledger *l)
{
    for (size_t i = 0; i < l->n_components; i++)
        free(l->components[i]);
    for (size_t i = 0; i < l->n_policies; i++)
        free(l->policies[i].name);
    memset(l, 0, sizeof *l);
}
