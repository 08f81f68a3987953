/* list.h -- the policies that a command line names: files, bundled ones, folders of them. */
#pragma once

#include "../cli/options.h"
#include "policy.h"

typedef struct policy_list {
    policy *items;
    size_t count;
    int from_stdin;           /* one of them was "-"                                       */
    uint64_t steps_per_epoch; /* of policies that do not say; 0: see policy_load           */
} policy_list;

/* The row of the option for a command's table; `paths` is an option_list. */
#define POLICY_OPTION_ROW(paths)                                                               \
    {                                                                                          \
        'P', "policy", OPTION_INPUTS, &(paths), "FILE",                                        \
            "a policy file (YAML), a bundled policy, or a folder of policies; may be repeated" \
    }

/* policy_list_add -- one file, bundled policy, folder (all *.yaml in the order of their names) or
 * "-" for standard input, once. policy_list_add_all: those of an option. 0, or an exit code after a
 * message. */
int policy_list_add(policy_list *l, const char *verb, const char *path);
int policy_list_add_all(policy_list *l, const char *verb, const option_list *paths);
void policy_list_clear(policy_list *l);

/* policy_list_print -- the names of the bundled policies, and what each is. 0, or an exit code after a message. */
int policy_list_print(FILE *to);
