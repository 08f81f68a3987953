/* ledger.c -- see ledger.h. A report is untrusted: every member is checked. */
#include "impl.h"

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

/* A model under a policy, as mpsim memory tells it. */
typedef struct component {
    const char *name;
    uint64_t bytes;
} component;

typedef struct policy {
    const char *name;
    uint64_t from;
    const component *components;
    size_t n;
} policy;

#define AT(member) offsetof(component, member)
static const record_field component_fields[] = {
    FIELD(TEXT, "component", IN_JSON, AT(name), NULL), FIELD(COUNT, "bytes", IN_JSON, AT(bytes), NULL), {0}};
#undef AT
static const record_kind component_record = {"component", NULL, sizeof(component), component_fields};

#define AT(member) offsetof(policy, member)
static const record_field policy_fields[] = {
    FIELD(TEXT, "policy", IN_JSON, AT(name), NULL),
    FIELD(COUNT, "from_step", IN_JSON, AT(from), NULL),
    FIELD(LIST, "components", IN_JSON, AT(components), NULL, .of = AT(n), .record = &component_record),
    {0}};
#undef AT
static const record_kind policy_record = {"policy", NULL, sizeof(policy), policy_fields};

static int add_component(plot_ledger *l, plot_policy_bytes *p, const plot_report *r, const component *c)
{
    size_t at;
    const int code = component_named(l, r, c->name, &at);
    if (code)
        return code;
    p->bytes[at] += (double)c->bytes;
    p->total += (double)c->bytes;
    l->sums[at] += (double)c->bytes;
    return 0;
}

/* A policy may change at a step: each of its parts has a bar. */
static int add_policy(plot_ledger *l, const plot_report *r, const policy *from)
{
    int code = 0;
    if (l->n_policies == PLOT_POLICIES_MAX)
        return fail(EXIT_USAGE, "plot: more than %d policies: select fewer with --match GLOB", PLOT_POLICIES_MAX);
    plot_policy_bytes *p = &l->policies[l->n_policies++];
    p->name = from->from ? need_format("%s, from step %" PRIu64, from->name, from->from) : need_text(from->name);
    for (size_t i = 0; i < from->n && !code; i++)
        code = add_component(l, p, r, &from->components[i]);
    return code;
}

typedef struct reading {
    plot_ledger *l;
    const plot_report *report;
    const option_list *match;
} reading;

static int read_policy(void *context, record_source item)
{
    const reading *p = context;
    policy from;
    int code = plot_read(p->report, &policy_record, item, &from,
                         "policy from_step components components.component components.bytes");
    if (!code && plot_listed(p->match, from.name, 1))
        code = add_policy(p->l, p->report, &from);
    record_forget(&policy_record, &from);
    return code;
}

int plot_ledger_read(plot_input *in, const plot_selection *selection)
{
    plot_ledger *l = &in->ledger;
    const plot_report *report = &in->report;
    reading p = {l, report, &selection->match};
    memset(l, 0, sizeof *l);
    const int code = plot_each(report, report->root, "policies", read_policy, &p);
    return code || l->n_policies    ? code
           : selection->match.count ? fail(EXIT_USAGE, "plot: --match selects no policy of the report")
                                    : plot_malformed(report, "it has no policies");
}

void plot_ledger_clear(plot_ledger *l)
{
    for (size_t i = 0; i < l->n_components; i++)
        free(l->components[i]);
    for (size_t i = 0; i < l->n_policies; i++)
        free(l->policies[i].name);
    memset(l, 0, sizeof *l);
}
