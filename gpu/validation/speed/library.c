/* library.c -- see library.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo */
#endif
#include "library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The loaded library's file, or the name that was asked for. */
static void note_place(gpu_library *l, const char *asked)
{
    const struct link_map *map = NULL;
    const int known = dlinfo(l->at, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0];
    snprintf(l->name, sizeof l->name, "%s", known ? map->l_name : asked);
}

static int load(gpu_library *l, const char *name)
{
    l->at = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!l->at)
        return -1;
    note_place(l, name);
    return 0;
}

static const char *const versions[] = {".so.13", ".so.12"};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* One file. libcublasLt, which libcublas needs, lies beside it and need not be on the search path: it is
 * loaded first. */
static int load_file(gpu_library *l, const char *file, const char *version)
{
    char beside[4096];
    const char *end = strrchr(file, '/');
    snprintf(beside, sizeof beside, "%.*s/libcublasLt%s", (int)(end - file), file, version);
    void *lt = dlopen(beside, RTLD_LAZY | RTLD_GLOBAL);
    const int missing = load(l, file);
    if (lt && missing)
        dlclose(lt);
    return missing;
}

/* A folder, which may be a pattern. */
static int load_from(gpu_library *l, const char *stem, const char *folder)
{
    int missing = -1;
    for (size_t i = 0; i < VERSIONS && missing; i++) {
        char path[4096];
        glob_t found;
        const int length = snprintf(path, sizeof path, "%s/%s%s", folder, stem, versions[i]);
        if (length < 0 || (size_t)length >= sizeof path || glob(path, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && missing; k++)
            missing = load_file(l, found.gl_pathv[k], versions[i]);
        globfree(&found);
    }
    return missing;
}

/* Below the folder of a toolkit, or of a Python environment. */
static int load_below(gpu_library *l, const char *stem, const char *directory, size_t length)
{
    static const char *const below[] = {"lib64", "lib", "targets/*/lib", "lib/python3*/site-packages/nvidia/*/lib"};
    char folder[2048];
    for (size_t i = 0; length && i < sizeof below / sizeof *below; i++) {
        snprintf(folder, sizeof folder, "%.*s/%s", (int)length, directory, below[i]);
        if (load_from(l, stem, folder) == 0)
            return 0;
    }
    return -1;
}

/* What the environment names. */
static int load_named(gpu_library *l, const char *stem)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *directory = getenv(variables[i]);
        if (directory && load_below(l, stem, directory, strlen(directory)) == 0)
            return 0;
    }
    return -1;
}

static int load_by_loader(gpu_library *l, const char *stem)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", stem, versions[i]);
        if (load(l, name) == 0)
            return 0;
    }
    return -1;
}

/* The toolkit whose nvcc is on PATH: "/opt/cuda" of "/opt/cuda/bin". */
static int load_beside_nvcc(gpu_library *l, const char *stem)
{
    const char *path = getenv("PATH");
    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        char nvcc[2048];
        n = strcspn(path, ":");
        snprintf(nvcc, sizeof nvcc, "%.*s/nvcc", (int)n, path);
        FILE *f = n > 4 && strncmp(path + n - 4, "/bin", 4) == 0 ? fopen(nvcc, "r") : NULL;
        if (!f)
            continue;
        fclose(f);
        if (load_below(l, stem, path, n - 4) == 0)
            return 0;
    }
    return -1;
}

static int load_from_system(gpu_library *l, const char *stem)
{
    static const char *const folders[] = {"/usr/local/cuda*/lib64",
                                          "/usr/local/cuda*/targets/*/lib",
                                          "/opt/cuda*/lib64",
                                          "/usr/lib*/python3*/*-packages/nvidia/*/lib",
                                          "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
                                          "/opt/*/lib/python3*/*-packages/nvidia/*/lib"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (load_from(l, stem, folders[i]) == 0)
            return 0;
    return -1;
}

/* Where python3 imports from, a folder a line. */
static int load_from_python(gpu_library *l, const char *stem)
{
    FILE *f = popen("python3 -c 'import sys; print(\"\\n\".join(sys.path))' 2>/dev/null </dev/null", "r");
    char line[2000], folder[2048];
    int missing = -1;
    while (f && fgets(line, sizeof line, f)) { /* to its end, so that python3 is not cut off */
        line[strcspn(line, "\n")] = 0;
        snprintf(folder, sizeof folder, "%s/nvidia/*/lib", line);
        if (missing && line[0] == '/')
            missing = load_from(l, stem, folder);
    }
    if (f)
        pclose(f);
    return missing;
}

int gpu_library_open(gpu_library *l, const char *stem, const char *name)
{
    static int (*const places[])(gpu_library *, const char *) = {load_named, load_by_loader, load_beside_nvcc,
                                                                 load_from_system, load_from_python};
    memset(l, 0, sizeof *l);
    if (name)
        return load(l, name);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i](l, stem) == 0)
            return 0;
    return -1;
}

void gpu_library_close(gpu_library *l)
{
    if (l->at)
        dlclose(l->at);
    l->at = NULL;
}

int gpu_library_functions(const gpu_library *l, size_t n, const char *const *names, void *const *functions)
{
    for (size_t i = 0; i < n; i++) {
        void *p = dlsym(l->at, names[i]);
        if (!p)
            return -1;
        memcpy(functions[i], &p, sizeof p); /* POSIX: a function's address fits */
    }
    return 0;
}
