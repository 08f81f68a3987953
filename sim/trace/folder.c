/* folder.c -- directories that are one trace as a whole. */
#include "impl.h"
#include "zeroname.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_zero(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *e;
    zero_name name;
    int found = 0;
    while (dir && !found && (e = readdir(dir)))
        found = trace_zero_name_parse(e->d_name, &name) == 0 && name.optimizer && !name.other;
    if (dir)
        closedir(dir);
    return found;
}

enum { PATH = 4096 + 64 }; /* the system takes no longer ones */

static int name_in(char name[PATH], const char *folder, const char *file)
{
    return snprintf(name, PATH, "%s/%s", folder, file) < PATH;
}

static int is_distcp(const char *path)
{
    struct stat st;
    char name[PATH];
    return name_in(name, path, ".metadata") && stat(name, &st) == 0 && S_ISREG(st.st_mode);
}

const trace_layout_type *trace_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return NULL;
    errno = 0; /* ENOMEM: not known */
    return is_distcp(path) ? &trace_layout_distcp : is_zero(path) ? &trace_layout_zero : NULL;
}

static const char *what_here(const char *path)
{
    static const struct {
        const char *file, *what;
    } rows[] = {
        {"manifest.ocdbt", "a checkpoint of Orbax in an OCDBT database"},
        {"_METADATA", "a checkpoint of Orbax"},
        {"_CHECKPOINT_METADATA", "a checkpoint of Orbax"},
        {"zarr.json", "a Zarr array or group"},
        {".zarray", "a Zarr array"},
        {".zgroup", "a Zarr group"},
        {"saved_model.pb", "a SavedModel of TensorFlow"},
        {"checkpoint", "a checkpoint of TensorFlow"},
    };
    struct stat st;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[PATH];
        if (name_in(name, path, rows[i].file) && stat(name, &st) == 0 && S_ISREG(st.st_mode))
            return rows[i].what;
    }
    return NULL;
}

/* Orbax's managers have a folder for each step, and one for each item in it. */
static const char *what_within(const char *path, int depth)
{
    const char *what = what_here(path);
    DIR *dir = what || depth == 0 ? NULL : opendir(path);
    const struct dirent *e;
    while (dir && !what && (e = readdir(dir))) {
        char *name = e->d_name[0] == '.' ? NULL : malloc(strlen(path) + strlen(e->d_name) + 2);
        if (name) {
            sprintf(name, "%s/%s", path, e->d_name);
            what = fnmatch("*.data-[0-9]*-of-[0-9]*", e->d_name, 0) == 0 ? "a checkpoint of TensorFlow"
                                                                         : what_within(name, depth - 1);
        }
        free(name);
    }
    if (dir)
        closedir(dir);
    return what;
}

const char *trace_folder_unread(const char *path)
{
    return what_within(path, 2);
}

int trace_folder_has(const trace_layout_type *type, const char *name)
{
    zero_name parsed;
    const char *dot = strrchr(name, '.');
    if (type == &trace_layout_distcp)
        return dot && strcmp(dot, ".distcp") == 0;
    return type == &trace_layout_zero && trace_zero_name_parse(name, &parsed) == 0;
}
