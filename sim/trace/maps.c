/* maps.c -- see maps.h. */
#include "maps.h"

#include "../array/array.h"
#include "../text/escape.h"
#include "../text/words.h"
#include "impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 128 << 10 };

/* ---- a file of rules ---- */

/* A line without blanks around it and without what follows " #" or a '#' at its begin; its length. */
static size_t trim(const char **line, size_t n)
{
    const char *s = *line;
    for (size_t i = 0; i < n; i++)
        if (s[i] == '#' && (i == 0 || s[i - 1] == ' ' || s[i - 1] == '\t'))
            n = i;
    while (n && strchr(" \t\r", s[n - 1]))
        n--;
    while (n && strchr(" \t", *s))
        s++, n--;
    *line = s;
    return n;
}

static int read_rules(const input_maps *from, namemap *m, const char *path, trace_error *error)
{
    char why[200], name[512];
    char *text = from->read(path, FILE_MAX, NULL, error);
    int bad = text ? 0 : -1;
    size_t number = 1;
    for (const char *p = text; p && *p && !bad; number++) {
        const size_t n = strcspn(p, "\n");
        const char *rule = p;
        const size_t length = trim(&rule, n);
        if (length && trace_namemap_add(m, rule, length, why))
            bad = *why ? trace_error_say(error, TRACE_EXIT_DATA, "%s: line %zu: %s",
                                         escape_text(name, sizeof name, path), number, why)
                       : trace_error_memory(error, NULL);
        p += n + (p[n] == '\n');
    }
    free(text);
    return bad;
}

/* A rule of the command line. */
static int give(namemap *m, const char *rule, trace_error *error)
{
    char why[200];
    if (trace_namemap_add(m, rule, strlen(rule), why) == 0)
        return 0;
    return *why ? trace_error_say(error, TRACE_EXIT_USAGE, "--map: '%s': %s", rule, why)
                : trace_error_memory(error, NULL);
}

int trace_maps_give(input_maps *m, const option_list *rules, trace_error *error)
{
    if (!rules->count)
        return 0;
    m->given = trace_namemap_new("--map");
    if (!m->given)
        return trace_error_memory(error, NULL);
    for (size_t i = 0; i < rules->count; i++) {
        const char *rule = rules->items[i];
        if (*rule == '@' ? read_rules(m, m->given, rule + 1, error) : give(m->given, rule, error))
            return -1;
    }
    return 0;
}

/* ---- beside traces ---- */

static int is_known(const input_maps *m, const char *folder, size_t n)
{
    for (size_t i = 0; i < m->count; i++)
        if (strlen(m->folders[i].folder) == n && memcmp(m->folders[i].folder, folder, n) == 0)
            return 1;
    return 0;
}

/* The rules of the command line come first, so that they can correct the others. */
static namemap *read_both(const input_maps *m, const char *path, trace_error *error)
{
    namemap *map = trace_namemap_new(path);
    if (!map || (m->given && trace_namemap_join(map, m->given)) ? trace_error_memory(error, NULL)
                                                                : read_rules(m, map, path, error)) {
        trace_namemap_free(map);
        map = NULL;
    }
    return map;
}

static int tell(const input_maps *m, const char *path, const namemap *map, int foreign)
{
    char name[512], line[640];
    const size_t rules = trace_namemap_count(map) - (m->given ? trace_namemap_count(m->given) : 0);
    snprintf(line, sizeof line, "names by %s (%zu rule%s)%s", escape_text(name, sizeof name, path), rules,
             text_plural(rules), foreign ? ", a file of another user above what was named" : "");
    return (foreign ? m->warn : m->tell)(m->context, line);
}

static int add_folder(input_maps *m, const char *folder, size_t n, const char *path, int foreign, trace_error *error)
{
    if (array_room(&m->folders, m->count, sizeof *m->folders))
        return trace_error_memory(error, NULL);
    namemap *map = read_both(m, path, error);
    if (!map)
        return -1;
    m->folders[m->count] = (map_folder){strndup(folder, n), map};
    if (!m->folders[m->count].folder) {
        trace_namemap_free(map);
        return trace_error_memory(error, NULL);
    }
    m->count++;
    return tell(m, path, map, foreign) ? trace_error_memory(error, NULL) : 0;
}

/* The folder that is the first n characters of a path: is there a file of rules in it? above: nobody has named that folder. */
static int look_in(input_maps *m, const char *path, size_t n, int above, trace_error *error)
{
    struct stat st;
    char *file = NULL;
    if (is_known(m, path, n))
        return 0;
    if (asprintf(&file, "%.*s%s%s", (int)n, path, n ? "/" : "", NAMEMAP_FILE) < 0)
        return trace_error_memory(error, NULL);
    const int bad = stat(file, &st) == 0 && S_ISREG(st.st_mode)
                        ? add_folder(m, path, n, file, above && st.st_uid != geteuid(), error)
                        : 0;
    free(file);
    return bad;
}

/* How much of an operand is the highest folder that is looked in: its own, or two above that, as
 * run/step_10/rank_0.safetensors has them. *current: the current folder, too, which no part of a relative path names. */
static size_t highest_folder(const char *operand, int *current)
{
    enum { ABOVE = 2 };
    struct stat st;
    const int is_folder = stat(operand, &st) == 0 && S_ISDIR(st.st_mode);
    size_t n = strlen(operand);
    while (n > 1 && operand[n - 1] == '/')
        n--;
    *current = 0;
    for (int up = is_folder ? 0 : -1; up < ABOVE; up++) {
        size_t k = n;
        while (k && operand[k - 1] != '/')
            k--;
        if (k == 0) {
            *current = *operand != '/' && *operand != '.';
            return *current ? 0 : n;
        }
        n = k - 1;
    }
    return n;
}

/* How much of an operand is its own folder: that itself, or that of the file. */
static size_t own_folder(const char *operand)
{
    struct stat st;
    const char *slash = strrchr(operand, '/');
    size_t n = stat(operand, &st) == 0 && S_ISDIR(st.st_mode) ? strlen(operand) : slash ? (size_t)(slash - operand) : 0;
    while (n > 1 && operand[n - 1] == '/')
        n--;
    return n;
}

int trace_maps_find(input_maps *m, const char *operand, char *const *paths, size_t n, trace_error *error)
{
    const char *before = "";
    int current;
    if (strcmp(operand, "-") == 0)
        return 0;
    const size_t top = highest_folder(operand, &current), own = own_folder(operand);
    int bad = current && n ? look_in(m, "", 0, own > 0, error) : 0;
    for (size_t i = 0; i < n && !bad; before = paths[i++]) {
        const char *path = paths[i];
        size_t same = 0;
        while (path[same] && path[same] == before[same])
            same++;
        for (size_t k = top ? top : 1; path[k] && !bad; k++) /* folders that the path before had are known */
            if (path[k] == '/' && k >= same)
                bad = look_in(m, path, k, k < own, error);
    }
    return bad;
}

const namemap *trace_maps_of(const input_maps *m, const char *path)
{
    const namemap *found = m->given;
    size_t longest = 0;
    for (size_t i = 0; i < m->count; i++) {
        const char *folder = m->folders[i].folder;
        const size_t n = strlen(folder);
        const int fits = n ? strncmp(path, folder, n) == 0 && path[n] == '/' : *path != '/';
        if (fits && n >= longest) {
            found = m->folders[i].map;
            longest = n;
        }
    }
    return found;
}

void trace_maps_clear(input_maps *m)
{
    for (size_t i = 0; i < m->count; i++) {
        trace_namemap_free(m->folders[i].map);
        free(m->folders[i].folder);
    }
    free(m->folders);
    trace_namemap_free(m->given);
    memset(m, 0, sizeof *m);
}
