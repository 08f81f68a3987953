/* confine.c -- see confine.h. */
#include "confine.h"

#include "../sandbox/sandbox.h"
#include "../trace/namemap.h"
#include "../trace/outfile.h"
#include "../trace/temporary.h"
#include "../trace/unnamed.h"
#include "../trace/trace.h"
#include "../process/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OF_OUTPUTS = SANDBOX_WRITE | SANDBOX_MAKE };

static const char *not_here; /* why */
static int closed;

void confine_not(const char *because)
{
    not_here = because;
}

int confined(void)
{
    return closed;
}

/* ---- what is read ---- */

/* How many processors one may use (lib/threads/processors.c, the C library). */
static int allow_machine(int rules)
{
    static const char *const files[] = {"/proc/self/cgroup", "/proc/loadavg", "/sys/fs/cgroup",
                                        "/sys/devices/system/cpu/online", "/proc/sys/vm/overcommit_memory"};
    int bad = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files && !bad; i++)
        bad = sandbox_allow(rules, files[i], SANDBOX_READ);
    return bad;
}

static int allow_data(int rules)
{
    char folder[RESOURCE_PATH];
    const char *at, *vectors = getenv("MPSIM_HWVECTORS");
    int bad = vectors && *vectors ? sandbox_allow_read(rules, vectors, 0) : 0;
    for (int what = 0; what < RESOURCES; what++)
        for (size_t i = 0; !bad && (at = resource_folder((resource)what, i, folder)); i++)
            bad = sandbox_allow_read(rules, at, 0);
    return bad;
}

/* How much of the first n characters of a path names the folder that it is in; 0: the current one. */
static size_t folder_length(const char *path, size_t n)
{
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    return n;
}

/* A file of that name in the folder that the first n characters of a path are. */
static int allow_name(int rules, const char *path, size_t n, const char *name)
{
    char *file;
    if (asprintf(&file, "%.*s%s%s", (int)n, path, n && path[n - 1] != '/' ? "/" : "", name) < 0)
        return -1;
    const int bad = sandbox_allow(rules, file, SANDBOX_READ);
    free(file);
    return bad;
}

/* The rules for names in the folders above a path (maps.h: the folder and two more), and in the current one. */
static int allow_maps(int rules, const char *path)
{
    enum { ABOVE = 3 };
    size_t n = strlen(path);
    int bad = allow_name(rules, "", 0, NAMEMAP_FILE);
    for (int up = 0; up <= ABOVE && n && !bad; up++) {
        n = folder_length(path, n);
        bad = allow_name(rules, path, n, NAMEMAP_FILE);
    }
    return bad;
}

static int allow_input(int rules, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0)
        return 0;
    int bad = sandbox_allow_read(rules, path, trace_names_others(path)) || allow_maps(rules, path);
    for (size_t i = 0; trace_beside[i] && !bad; i++)
        bad = allow_name(rules, path, slash ? (size_t)(slash - path) + 1 : 0, trace_beside[i]);
    return bad;
}

/* "@FILE" */
static int allow_list(int rules, const char *text)
{
    return *text == '@' ? sandbox_allow_read(rules, text + 1, 0) : 0;
}

/* ---- what is written ---- */

static int allow_folder_of(int rules, const char *path, unsigned rights)
{
    const size_t n = folder_length(path, strlen(path));
    char *folder = n ? strndup(path, n) : strdup(".");
    const int bad = !folder || sandbox_allow(rules, folder, rights);
    free(folder);
    return bad;
}

static int allow_output(int rules, const char *path, unsigned traits)
{
    const unsigned folders = traits & COMMAND_FOLDERS ? SANDBOX_FOLDERS | SANDBOX_READ : 0;
    struct stat st;
    int direct;
    if (trace_outfile_descriptor(path) >= 0)
        return 0;
    char *target = trace_outfile_target(path, &direct);
    int bad = 0;
    if (direct && stat(path, &st) == 0)
        bad = sandbox_allow(rules, path, S_ISDIR(st.st_mode) && folders ? OF_OUTPUTS | folders : SANDBOX_WRITE);
    else if (target) /* beside a link, too: PREFIX of a figure is no file itself */
        bad = allow_folder_of(rules, target, OF_OUTPUTS | folders) ||
              allow_folder_of(rules, path, OF_OUTPUTS | folders);
    free(target);
    return bad;
}

/* Nobody else's files in TMPDIR; where there can be no folder of its own, TMPDIR, so that errors are what they are without. Figures
 * are drawn in folders there. */
static int allow_temporary(int rules, unsigned traits)
{
    const char *own = trace_temporary_own_folder();
    const unsigned all = OF_OUTPUTS | SANDBOX_READ | (traits & COMMAND_GNUPLOT ? SANDBOX_FOLDERS : 0);
    return own ? sandbox_allow(rules, own, all) || sandbox_allow(rules, trace_unnamed_place(), SANDBOX_EMPTY)
               : sandbox_allow(rules, trace_unnamed_place(), all);
}

/* ---- gnuplot, with its fonts, libraries and settings, wherever a system has them ---- */

static int allow_gnuplot(int rules)
{
    static const char *const system[] = {
        "/usr", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/nix/store", "/gnu/store", "/var/cache/fontconfig",
        "/proc"};
    static const char *const in_home[] = {".fonts", ".local/share/fonts", ".config/fontconfig", ".cache/fontconfig"};
    const char *home = getenv("HOME"), *wish = getenv("MPSIM_GNUPLOT");
    int bad = sandbox_allow(rules, "/dev/null", SANDBOX_READ | SANDBOX_WRITE);
    for (size_t i = 0; i < sizeof system / sizeof *system && !bad; i++)
        bad = sandbox_allow(rules, system[i], SANDBOX_READ | SANDBOX_RUN);
    for (size_t i = 0; home && *home && i < sizeof in_home / sizeof *in_home && !bad; i++)
        bad = allow_name(rules, home, strlen(home), in_home[i]);
    if (wish && strchr(wish, '/') && !bad)
        bad = sandbox_allow(rules, wish, SANDBOX_READ | SANDBOX_RUN);
    return bad;
}

/* ---- all of it ---- */

static int allow_option(int rules, const option_row *o, unsigned traits)
{
    const char *text = o->type == OPTION_STRING || o->type == OPTION_INPUT || o->type == OPTION_OUTPUT
                           ? *(const char **)o->value
                           : NULL;
    const option_list *list = o->type == OPTION_LIST || o->type == OPTION_INPUTS ? o->value : NULL;
    int bad = 0;
    if (text)
        bad = o->type == OPTION_INPUT    ? allow_input(rules, text)
              : o->type == OPTION_OUTPUT ? allow_output(rules, text, traits)
                                         : allow_list(rules, text);
    else if (o->type == OPTION_OUTPUT && traits & COMMAND_GNUPLOT) /* its own name, here */
        bad = allow_output(rules, "x", traits);
    for (size_t i = 0; list && i < list->count && !bad; i++)
        bad = (o->type == OPTION_INPUTS ? allow_input : allow_list)(rules, list->items[i]);
    return bad;
}

static int allow_all(int rules, const command *c, const option_row *table, char *const *operands, int n)
{
    int bad = allow_machine(rules) || allow_temporary(rules, c->traits) ||
              (c->traits & COMMAND_DATA && allow_data(rules)) || (c->traits & COMMAND_GNUPLOT && allow_gnuplot(rules));
    for (int i = 0; i < n && !bad; i++)
        bad = allow_input(rules, operands[i]);
    for (const option_row *o = table; o->name && !bad; o++)
        bad = allow_option(rules, o, c->traits);
    return bad;
}

int confine(const command *c, const option_row *table, char *const *operands, int n, confine_wish wish, char *why,
            size_t size)
{
    if (wish == CONFINE_NO || (wish == CONFINE_AS_USUAL && (not_here || !(c->traits & COMMAND_CONFINED))))
        return 0;
    const char *lacks = not_here           ? not_here
                        : !sandbox_files() ? "this kernel, or this mpsim, has no Landlock"
                        : !sandbox_calls() ? "this kernel, or this mpsim, has no filters of seccomp"
                                           : NULL;
    snprintf(why, size, "%s", lacks ? lacks : "");
    if (wish == CONFINE_YES && lacks)
        return -1;
    const int rules = sandbox_rules();
    int bad = rules < 0 || allow_all(rules, c, table, operands, n) || sandbox_close_files(rules);
    closed |= !bad;
    if (bad)
        snprintf(why, size, "Landlock: %s", strerror(errno));
    if (rules >= 0)
        close(rules);
    if (sandbox_calls() && sandbox_drop_capabilities() && !bad) {
        bad = 1;
        snprintf(why, size, "capabilities: %s", strerror(errno));
    }
    if (sandbox_close_calls(c->traits & COMMAND_GNUPLOT) == 0) {
        closed = 1;
    } else if (!bad) {
        bad = 1;
        snprintf(why, size, "seccomp: %s", strerror(errno));
    }
    return wish == CONFINE_YES && bad ? -1 : 0;
}

void confine_end(void)
{
    trace_temporary_end();
}

const char *confine_text(char *out, size_t size)
{
    const int files = sandbox_files(), calls = sandbox_calls();
    char version[32] = "";
    if (files)
        snprintf(version, sizeof version, "Landlock %d%s", files, calls ? " and " : "");
    snprintf(out, size, "%s%s%s", version, calls ? "seccomp" : "",
             not_here         ? ", not under MPI"
             : files || calls ? ", on for info and stat"
                              : "none: this kernel, or this mpsim, has neither Landlock nor seccomp");
    return out;
}
