/* list.c -- see list.h. */
#include "list.h"

#include "../array/need.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add_file(policy_list *l, const char *path)
{
    trace_error error;
    l->items = need_more(l->items, l->count + 1, sizeof *l->items);
    if (policy_load(&l->items[l->count], path, l->steps_per_epoch, &error))
        return fail(error.exit, "%s", error.text);
    const policy *p = &l->items[l->count++];
    char name[512];
    for (const char *s = p->remarks; s && *s;) {
        const size_t n = strcspn(s, "\n");
        note("%s: %.*s", escape_text(name, sizeof name, p->path), (int)n, s);
        s += n + (s[n] == '\n');
    }
    return 0;
}

static int is_yaml(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');
    return e->d_name[0] != '.' && dot && strcmp(dot, ".yaml") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(policy_list *l, const char *path)
{
    struct dirent **entries;
    const int n = scandir(path, &entries, is_yaml, by_name);
    int code = n > 0    ? 0
               : n == 0 ? fail(EXIT_DATA, "%s: no policy (.yaml) in this folder", path)
                        : fail(EXIT_IO, "%s: %s", path, text_error(errno));
    for (int i = 0; i < n; i++) {
        char *file = code ? NULL : need_format("%s/%s", path, entries[i]->d_name);
        struct stat st;
        if (!code && stat(file, &st) == 0 && !S_ISREG(st.st_mode)) /* nor a pipe with a writer */
            code = fail(EXIT_DATA, "%s: is not a regular file", file);
        if (!code)
            code = add_file(l, file);
        free(file);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return code;
}

int policy_list_add(policy_list *l, const char *verb, const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0 && l->from_stdin++)
        return fail(EXIT_USAGE, "%s: --policy -: standard input can be read once only", verb);
    const int bad = stat(path, &st);
    if (bad && errno == EIO) /* else opening it says why */
        return fail(EXIT_IO, "%s: %s", path, text_error(errno));
    return !bad && S_ISDIR(st.st_mode) ? add_folder(l, path) : add_file(l, path);
}

int policy_list_add_all(policy_list *l, const char *verb, const option_list *paths)
{
    int code = 0;
    for (size_t i = 0; i < paths->count && !code; i++)
        code = policy_list_add(l, verb, paths->items[i]);
    return code;
}

int policy_list_print(FILE *to)
{
    enum { COLUMN = 27, NARROW = 20, WIDTH = 92 };
    const int width = screen_width(to, WIDTH), column = width < WIDTH ? NARROW : COLUMN;
    char folder[RESOURCE_PATH];
    policy_list all = {0};
    const int code = add_folder(&all, policy_bundled(folder));
    for (size_t i = 0; i < all.count && !code; i++) {
        const policy *p = &all.items[i];
        text_beside(to, fprintf(to, "%s", p->name), column, width, p->note ? p->note : p->source ? p->source : "");
    }
    policy_list_clear(&all);
    return code;
}

void policy_list_clear(policy_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        policy_clear(&l->items[i]);
    free(l->items);
    l->items = NULL;
    l->count = 0;
}
