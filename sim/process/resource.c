/* resource.c -- see resource.h. */
#include "resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MPSIM_PLOTS_DIR /* the makefile names the installed folders */
#define MPSIM_PLOTS_DIR "plots"
#define MPSIM_POLICIES_DIR "policies"
#endif

enum { BESIDE = 3 };

static const struct {
    const char *variable, *beside[BESIDE], *installed;
} rows[RESOURCES] = {
    [RESOURCE_POLICIES] = {"MPSIM_POLICIES",
                           {"data/policies", "../data/policies", "../share/mpsim/policies"},
                           MPSIM_POLICIES_DIR},
    [RESOURCE_PLOTS] = {"MPSIM_PLOTS", {"plots", "../plots", "../share/mpsim/plots"}, MPSIM_PLOTS_DIR}};

const char *resource_folder(resource what, size_t i, char folder[RESOURCE_PATH])
{
    const char *set = getenv(rows[what].variable);
    char program[RESOURCE_PATH - 32];
    if (set && *set)
        return i ? NULL : set;
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0'; /* not every system has it */
    char *slash = strrchr(program, '/');
    const size_t beside = slash ? BESIDE : 0;
    if (i >= beside)
        return i == beside ? rows[what].installed : NULL;
    *slash = '\0';
    snprintf(folder, RESOURCE_PATH, "%s/%s", program, rows[what].beside[i]);
    return folder;
}
