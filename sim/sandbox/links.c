/* links.c -- reading through symbolic links, which Landlock judges by where they lead: snapshots of model caches are folders
 * of links to files elsewhere. */
#include "sandbox.h"

#include "config.h"

#ifdef HAVE_SANDBOX
#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 64, LINKS_MAX = 1 << 16 }; /* as trace_tree_add goes */

typedef struct place {
    dev_t device;
    ino_t inode;
} place;

typedef struct walk {
    int rules;
    size_t links; /* followed so far */
    void *seen;   /* folders outside the first that links led to: a tree of tsearch */
} walk;

static int compare(const void *pa, const void *pb)
{
    const place *a = pa, *b = pb;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

/* 1: a folder that has not been seen; 0: seen; -1: no memory. */
static int is_new(walk *w, const struct stat *st)
{
    place key = {st->st_dev, st->st_ino};
    if (tfind(&key, &w->seen, compare))
        return 0;
    place *p = malloc(sizeof *p);
    if (!p)
        return -1;
    *p = key;
    if (tsearch(p, &w->seen, compare))
        return 1;
    free(p);
    return -1;
}

static char *join(const char *folder, const char *name)
{
    const size_t n = strlen(folder);
    char *path = malloc(n + strlen(name) + 2);
    if (path) {
        memcpy(path, folder, n);
        path[n] = '/';
        strcpy(path + n + 1, name);
    }
    return path;
}

static int walk_folder(walk *w, const char *folder, int depth);

/* What a link leads to: a file; or a folder with what is below it. */
static int follow(walk *w, const char *path, int depth)
{
    struct stat st;
    if (stat(path, &st) || ++w->links > LINKS_MAX)
        return 0;
    if (sandbox_allow(w->rules, path, SANDBOX_READ))
        return -1;
    if (!S_ISDIR(st.st_mode))
        return 0;
    const int fresh = is_new(w, &st);
    return fresh > 0 ? walk_folder(w, path, depth) : fresh;
}

static int look_at(walk *w, const char *folder, const struct dirent *e, int depth)
{
    struct stat st;
    char *path = join(folder, e->d_name);
    int type = e->d_type, bad = !path;
    if (path && type == DT_UNKNOWN && lstat(path, &st) == 0)
        type = S_ISLNK(st.st_mode) ? DT_LNK : S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
    if (path && type == DT_LNK)
        bad = follow(w, path, depth + 1);
    else if (path && type == DT_DIR && e->d_name[0] != '.')
        bad = walk_folder(w, path, depth + 1);
    free(path);
    return bad;
}

static int may_matter(const struct dirent *e)
{
    return (e->d_type == DT_LNK || e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && strcmp(e->d_name, ".") != 0 &&
           strcmp(e->d_name, "..") != 0;
}

static int walk_folder(walk *w, const char *folder, int depth)
{
    DIR *dir = depth <= DEPTH_MAX ? opendir(folder) : NULL;
    const struct dirent *e;
    int bad = 0;
    if (!dir)
        return depth <= DEPTH_MAX && (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ? -1 : 0;
    while (!bad && (e = readdir(dir)))
        bad = may_matter(e) && look_at(w, folder, e, depth);
    closedir(dir);
    return bad ? -1 : 0;
}

/* The files beside a path, which may be links, but no folders. */
static int allow_beside(int rules, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *dir = folder ? opendir(folder) : NULL;
    const struct dirent *e;
    int bad = folder ? 0 : -1;
    while (dir && !bad && (e = readdir(dir))) {
        struct stat st;
        char *file = join(folder, e->d_name);
        bad = !file || (stat(file, &st) == 0 && S_ISREG(st.st_mode) && sandbox_allow(rules, file, SANDBOX_READ));
        free(file);
    }
    if (dir)
        closedir(dir);
    free(folder);
    return bad ? -1 : 0;
}

static void forget(walk *w)
{
    while (w->seen) {
        place *p = *(place **)w->seen;
        tdelete(p, &w->seen, compare);
        free(p);
    }
}

int sandbox_allow_read(int rules, const char *path, int beside)
{
    struct stat st;
    walk w = {rules, 0, NULL};
    if (sandbox_allow(rules, path, SANDBOX_READ))
        return -1;
    if (stat(path, &st))
        return 0;
    if (!S_ISDIR(st.st_mode))
        return beside ? allow_beside(rules, path) : 0;
    const int bad = walk_folder(&w, path, 0);
    forget(&w);
    return bad;
}

#else

int sandbox_allow_read(int rules, const char *path, int beside)
{
    (void)beside;
    return sandbox_allow(rules, path, SANDBOX_READ);
}
#endif
