/* ledger.h -- the figure memory: bytes by component and policy, from a report of mpsim memory. */
#pragma once

#include "report.h"

enum { PLOT_POLICIES_MAX = 60, PLOT_COMPONENTS_MAX = 16 };

typedef struct plot_policy_bytes {
    char *name;
    double bytes[PLOT_COMPONENTS_MAX], total;
} plot_policy_bytes;

typedef struct plot_ledger {
    char *components[PLOT_COMPONENTS_MAX];
    double sums[PLOT_COMPONENTS_MAX]; /* of all policies: those of 0 are not shown */
    plot_policy_bytes policies[PLOT_POLICIES_MAX];
    size_t n_components, n_policies;
} plot_ledger;

/* plot_ledger_read -- the policies that `selection` takes. 0, or an exit code after a message; to be cleared in both cases. */
int plot_ledger_read(plot_ledger *l, const plot_report *report, const plot_selection *selection);
void plot_ledger_clear(plot_ledger *l);
