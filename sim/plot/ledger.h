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

void plot_ledger_clear(plot_ledger *l);
