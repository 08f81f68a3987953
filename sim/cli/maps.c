/* maps.c -- see maps.h. */
#include "maps.h"

#include "../array/array.h"
#include "../text/escape.h"
#include "../text/words.h"
#include "textfile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 128 << 10 };

static int no_memory(void)
{
    return fail(EXIT_IO, "out of memory");
}

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

static int read_rules(namemap *m, const char *path)
{
    char error[200], name[512];
    trace_error why;
    char *text = text_file_read(path, FILE_MAX, NULL, &why);
    int code = text ? 0 : fail(why.exit, "%s", why.text);
    size_t number = 1;
    for (const char *p = text; p && *p && !code; number++) {
        const size_t n = strcspn(p, "\n");
        const char *rule = p;
        const size_t length = trim(&rule, n);
        if (length && namemap_add(m, rule, length, error))
            code = fail(EXIT_DATA, "%s: line %zu: %s", escape_text(name, sizeof name, path), number, error);
        p += n + (p[n] == '\n');
    }
    free(text);
    return code;
}

int maps_give(input_maps *m, const char *verb, const option_list *rules)
{
    char error[200];
    if (!rules->count)
        return 0;
    m->given = namemap_new("--map");
    if (!m->given)
        return no_memory();
    for (size_t i = 0; i < rules->count; i++) {
        const char *rule = rules->items[i];
        const int code = *rule == '@' ? read_rules(m->given, rule + 1)
                         : namemap_add(m->given, rule, strlen(rule), error)
                             ? fail(EXIT_USAGE, "%s: --map: '%s': %s", verb, rule, error)
                             : 0;
        if (code)
            return code;
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
static namemap *read_both(const input_maps *m, const char *path, int *code)
{
    namemap *map = namemap_new(path);
    *code = !map || (m->given && namemap_join(map, m->given)) ? no_memory() : read_rules(map, path);
    if (*code) {
        namemap_free(map);
        map = NULL;
    }
    return map;
}

static int add_folder(input_maps *m, const char *folder, size_t n, const char *path)
{
    int code;
    char name[512];
    if (array_room(&m->folders, m->count, sizeof *m->folders))
        return no_memory();
    namemap *map = read_both(m, path, &code);
    if (!map)
        return code;
    m->folders[m->count] = (map_folder){strndup(folder, n), map};
    if (!m->folders[m->count].folder) {
        namemap_free(map);
        return no_memory();
    }
    m->count++;
    const size_t rules = namemap_count(map) - (m->given ? namemap_count(m->given) : 0);
    note("names by %s (%zu rule%s)", escape_text(name, sizeof name, path), rules, text_plural(rules));
    return 0;
}

/* The folder that is the first n characters of a path: is there a file of rules in it? */
static int look_in(input_maps *m, const char *path, size_t n)
{
    struct stat st;
    char *file = NULL;
    if (is_known(m, path, n))
        return 0;
    if (asprintf(&file, "%.*s%s%s", (int)n, path, n ? "/" : "", NAMEMAP_FILE) < 0)
        return no_memory();
    const int code = stat(file, &st) == 0 && S_ISREG(st.st_mode) ? add_folder(m, path, n, file) : 0;
    free(file);
    return code;
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

int maps_find(input_maps *m, const char *operand, char *const *paths, size_t n)
{
    const char *before = "";
    int current;
    if (strcmp(operand, "-") == 0)
        return 0;
    const size_t top = highest_folder(operand, &current);
    int code = current && n ? look_in(m, "", 0) : 0;
    for (size_t i = 0; i < n && !code; before = paths[i++]) {
        const char *path = paths[i];
        size_t same = 0;
        while (path[same] && path[same] == before[same])
            same++;
        for (size_t k = top ? top : 1; path[k] && !code; k++) /* folders that the path before had are known */
            if (path[k] == '/' && k >= same)
                code = look_in(m, path, k);
    }
    return code;
}

const namemap *maps_of(const input_maps *m, const char *path)
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

json_t *maps_json(const input_maps *m)
{
    if (!m->given && !m->count)
        return NULL;
    json_t *v = json_object();
    for (size_t i = 0; i < m->count + 1; i++) {
        const namemap *map = i < m->count ? m->folders[i].map : m->given;
        const size_t first = i < m->count && m->given ? namemap_count(m->given) : 0;
        char label[1024];
        json_t *rules = json_array();
        for (size_t k = first; map && k < namemap_count(map); k++) {
            char rule[4 * NAMEMAP_LONGEST + 1];
            json_array_append_new(rules, json_string(escape_text(rule, sizeof rule, namemap_rule(map, k))));
        }
        if (map)
            json_object_set(v, escape_text(label, sizeof label, namemap_label(map)), rules);
        json_decref(rules);
    }
    return v;
}

void maps_clear(input_maps *m)
{
    for (size_t i = 0; i < m->count; i++) {
        namemap_free(m->folders[i].map);
        free(m->folders[i].folder);
    }
    free(m->folders);
    namemap_free(m->given);
    memset(m, 0, sizeof *m);
}
