/* tree.c -- the files, and folders that are one trace, that operands stand for. */
#include "../text/filekind.h"
#include "impl.h"
#include "namemap.h"

#include "../array/array.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 64, LINKS_MAX = 1 << 16 };

/* What is being listed: a tree, and how the files in it are to be read. */
typedef struct listing {
    trace_tree *tree;
    const trace_options *options;
    trace_error *error;
    size_t links; /* to directories, followed so far: two in each would be endless */
} listing;

/* A directory on the way down from the operand. */
typedef struct level {
    const struct level *above; /* NULL: the operand */
    int depth;
    dev_t device;
    ino_t inode;
} level;

/* Append a string, which becomes the list's own, or is freed. */
static int append(char ***list, size_t *count, char *s, const char *path, trace_error *error)
{
    if (!s || array_room(list, *count, sizeof **list)) {
        free(s);
        return trace_error_memory(error, path);
    }
    (*list)[(*count)++] = s;
    return 0;
}

/* Natural order: runs of digits compare as numbers of any length, the rest as bytes. */
static int natural(const char *a, const char *b)
{
    const char *const whole_a = a, *const whole_b = b;
    for (;;) {
        const size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
        if (na && nb) {
            const size_t za = strspn(a, "0"), zb = strspn(b, "0");
            const size_t la = na > za ? na - za : 0, lb = nb > zb ? nb - zb : 0;
            if (la != lb)
                return la < lb ? -1 : 1;
            const int c = memcmp(a + za, b + zb, la);
            if (c)
                return c;
            a += na;
            b += nb;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else if (!*a) {
            return strcmp(whole_a, whole_b); /* "01" and "1" */
        } else {
            a++, b++;
        }
    }
}

static int compare(const void *a, const void *b)
{
    return natural(*(const char *const *)a, *(const char *const *)b);
}

static char *join(const char *dir, const char *name)
{
    const size_t n = strlen(dir), size = n + strlen(name) + 2;
    char *s = malloc(size);
    if (s)
        snprintf(s, size, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    return s;
}

static int list_directory(const char *path, char ***names, size_t *n, trace_error *error)
{
    DIR *dir = opendir(path);
    if (!dir)
        return trace_error_io(error, path, TRACE_NO_OFFSET, "cannot read the directory");
    int result = 0;
    while (result == 0) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e) {
            if (errno)
                result = trace_error_io(error, path, TRACE_NO_OFFSET, "cannot read the directory");
            break;
        }
        if (e->d_name[0] != '.' && strcmp(e->d_name, NAMEMAP_FILE) != 0)
            result = append(names, n, strdup(e->d_name), path, error);
    }
    closedir(dir);
    return result;
}

static int add_directory(listing *l, const char *path, const struct stat *st, const level *above);

/* After stat failed: whether there may be anything; else opening it as a file says what is wrong. */
static int is_unknown(int number)
{
    return number != ENOENT && number != ENOTDIR && number != EACCES && number != ELOOP && number != ENAMETOOLONG;
}

/* What cannot be part of a trace: 0 to go on without it, if the caller says so. */
static int refuse(const listing *l)
{
    const trace_tree *t = l->tree;
    return t->refused ? t->refused(t->context, l->error) : -1;
}

int trace_tree_keeps(const char *path, const trace_options *options)
{
    errno = 0;
    return trace_probe(path, options) || errno || trace_folder(path) || errno == ENOMEM;
}

/* One name in a directory. What cannot be looked at (a dangling link, no permission) is
 * kept, so that opening it says why: data that are missing must not go unnoticed. */
static int add_name(listing *l, const char *path, const level *above)
{
    struct stat st;
    int keep = 1;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return add_directory(l, path, &st, above);
        if (!S_ISREG(st.st_mode)) {
            trace_error_set(l->error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET, "%s, not a file of tensors",
                            file_kind(st.st_mode));
            return refuse(l);
        }
        keep = l->tree->unread || trace_tree_keeps(path, l->options);
    } else if (is_unknown(errno)) { /* it may be a folder */
        return trace_error_io(l->error, path, TRACE_NO_OFFSET, "%s", "");
    }
    if (!keep) {
        l->tree->skipped++;
        return 0;
    }
    return append(&l->tree->paths, &l->tree->count, strdup(path), path, l->error);
}

/* Whether a directory may be entered: it is none of those above it, which a symbolic link can lead
 * back to, and there is an end to the links. */
static int check_directory(listing *l, const char *path, const level *here)
{
    struct stat st;
    if (here->depth > DEPTH_MAX) {
        trace_error_set(l->error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET, "directories are nested deeper than %d",
                        DEPTH_MAX);
        return 0;
    }
    for (const level *a = here->above; a; a = a->above)
        if (a->device == here->device && a->inode == here->inode) {
            trace_error_set(l->error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                            "a symbolic link leads back to a directory that this one is in");
            return 0;
        }
    if (here->above && lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && ++l->links > LINKS_MAX) {
        trace_error_set(l->error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET, "more than %d symbolic links to directories",
                        LINKS_MAX);
        return 0;
    }
    return 1;
}

/* The names in a directory that are read as parts of something else are taken out. */
typedef struct listed {
    char **names;
    size_t n;
} listed;

static int take_out(void *context, const char *file)
{
    listed *l = context;
    char **found = bsearch(&file, l->names, l->n, sizeof *l->names, compare);
    if (found) {
        free(*found);
        memmove(found, found + 1, (size_t)(l->names + l->n - found - 1) * sizeof *found);
        l->n--;
    }
    return 0;
}

static int is_named_index(const char *name)
{
    static const char index[] = ".index.json";
    const size_t n = strlen(name);
    return n >= sizeof index && strcmp(name + n - (sizeof index - 1), index) == 0;
}

/* Those of an index, name *i of the list, which may move. 0, or -1 without memory. */
static int take_out_shards(const listing *l, const char *path, listed *names, size_t *i)
{
    char *file = join(path, names->names[*i]), *name = strdup(names->names[*i]);
    const int bad = !file || !name || (trace_probe(file, l->options) && trace_shards(file, take_out, names));
    for (*i = 0; !bad && *i < names->n && strcmp(names->names[*i], name) != 0;)
        ++*i;
    free(name);
    free(file);
    return bad ? -1 : 0;
}

/* A directory that is one trace as a whole, or has an index of files: the trace instead of its files. */
static int add_whole(listing *l, const char *path, listed *names)
{
    errno = 0;
    const trace_layout_type *whole = l->options && l->options->raw_format ? NULL : trace_folder(path);
    size_t kept = 0;
    if (!whole && errno == ENOMEM)
        return trace_error_memory(l->error, path);
    for (size_t i = 0; i < names->n; i++)
        if (trace_folder_has(whole, names->names[i]))
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    names->n = kept;
    for (size_t i = 0; i < names->n; i++)
        if (is_named_index(names->names[i]) && take_out_shards(l, path, names, &i))
            return trace_error_memory(l->error, path);
    return whole ? append(&l->tree->paths, &l->tree->count, strdup(path), path, l->error) : 0;
}

static int add_directory(listing *l, const char *path, const struct stat *st, const level *above)
{
    const level here = {above, above ? above->depth + 1 : 0, st->st_dev, st->st_ino};
    listed names = {NULL, 0};
    if (!check_directory(l, path, &here))
        return refuse(l);
    int result = list_directory(path, &names.names, &names.n, l->error);
    if (result)
        result = refuse(l);
    if (names.n)
        qsort(names.names, names.n, sizeof *names.names, compare);
    if (result == 0)
        result = add_whole(l, path, &names);
    for (size_t i = 0; i < names.n && result == 0; i++) {
        char *below = join(path, names.names[i]);
        result = below ? add_name(l, below, &here) : trace_error_memory(l->error, path);
        free(below);
    }
    for (size_t i = 0; i < names.n; i++)
        free(names.names[i]);
    free(names.names);
    return result;
}

/* The bytes of files beside each other. */
typedef struct weighing {
    const char *folder;
    uint64_t bytes;
} weighing;

static int weigh(void *context, const char *file)
{
    weighing *w = context;
    struct stat st;
    char *path = join(w->folder, file);
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode))
        w->bytes += (uint64_t)st.st_size;
    free(path);
    return path ? 0 : -1;
}

static int weigh_folder(const char *path, uint64_t *bytes)
{
    const trace_layout_type *whole = trace_folder(path);
    weighing w = {path, 0};
    DIR *dir = whole ? opendir(path) : NULL;
    const struct dirent *e;
    while (dir && (e = readdir(dir)))
        if (trace_folder_has(whole, e->d_name))
            weigh(&w, e->d_name);
    if (dir)
        closedir(dir);
    *bytes = w.bytes;
    return whole ? 0 : -1;
}

int trace_tree_bytes(const char *path, uint64_t *bytes)
{
    struct stat st;
    *bytes = 0;
    if (strcmp(path, "-") == 0)
        return -1;
    if (stat(path, &st))
        return is_unknown(errno) ? -1 : 0;
    if (S_ISDIR(st.st_mode))
        return weigh_folder(path, bytes);
    if (!S_ISREG(st.st_mode))
        return -1;
    *bytes = (uint64_t)st.st_size;
    const char *slash = strrchr(path, '/');
    char *folder = is_named_index(path) ? strndup(slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1) : NULL;
    weighing w = {folder, 0};
    if (folder)
        trace_shards(path, weigh, &w);
    free(folder);
    *bytes += w.bytes;
    return 0;
}

int trace_tree_add(trace_tree *tree, const char *operand, const trace_options *options, trace_error *error)
{
    struct stat st;
    listing l = {tree, options, error, 0};
    const int bad = strcmp(operand, "-") != 0 && stat(operand, &st);
    if (bad && is_unknown(errno))
        return trace_error_io(error, operand, TRACE_NO_OFFSET, "%s", "");
    if (!bad && strcmp(operand, "-") != 0 && S_ISDIR(st.st_mode))
        return add_directory(&l, operand, &st, NULL);
    return append(&tree->paths, &tree->count, strdup(operand), operand, error);
}

int trace_are_folders(const char *const *paths, size_t n)
{
    struct stat st;
    size_t i = 0;
    while (i < n && stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
        i++;
    return i == n;
}

void trace_tree_sort(trace_tree *tree)
{
    if (tree->count)
        qsort(tree->paths, tree->count, sizeof *tree->paths, compare);
}

void trace_tree_clear(trace_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free(tree->paths[i]);
    free(tree->paths);
    memset(tree, 0, sizeof *tree);
}
