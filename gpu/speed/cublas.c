/* cublas.c -- see cublas.h. The few functions and numbers that are needed are declared here, from
 * cublas_api.h and library_types.h of CUDA 13.0, so that nothing of cuBLAS is needed to build. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo */
#endif
#include "cublas.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_N = 0, OP_T = 1, R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, ALGO_DEFAULT = -1 };

static int find(void *library, const char *symbol, void *function, size_t bytes)
{
    void *p = dlsym(library, symbol);
    if (!p || bytes != sizeof p)
        return -1;
    memcpy(function, &p, bytes); /* POSIX: a function's address fits */
    return 0;
}

/* ---- where it may be ---- */

/* The loaded library's file, or the name that was asked for. */
static void note_place(gpu_cublas *b, const char *asked)
{
    const struct link_map *map = NULL;
    const int known = dlinfo(b->library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0];
    snprintf(b->name, sizeof b->name, "%s", known ? map->l_name : asked);
}

static int load(gpu_cublas *b, const char *name)
{
    b->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!b->library)
        return -1;
    note_place(b, name);
    return 0;
}

/* A folder, which may be a pattern. libcublasLt, which the library needs, lies beside it and need not
 * be on the search path: it is loaded first. */
static int load_from(gpu_cublas *b, const char *folder)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    int missing = -1;
    for (size_t i = 0; i < sizeof names / sizeof *names && missing; i++) {
        char path[4096];
        glob_t found;
        const int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (length < 0 || (size_t)length >= sizeof path || glob(path, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && missing; k++) {
            const char *end = strrchr(found.gl_pathv[k], '/');
            snprintf(path, sizeof path, "%.*s/libcublasLt%s", (int)(end - found.gl_pathv[k]),
                     found.gl_pathv[k], strstr(names[i], ".so"));
            void *beside = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
            missing = load(b, found.gl_pathv[k]);
            if (missing && beside)
                dlclose(beside);
        }
        globfree(&found);
    }
    return missing;
}

/* Below the folder of a toolkit, or of a Python environment. */
static int load_below(gpu_cublas *b, const char *directory, size_t length)
{
    static const char *const below[] = {"lib64", "lib", "targets/*/lib",
                                        "lib/python3*/site-packages/nvidia/*/lib"};
    char folder[2048];
    for (size_t i = 0; length && i < sizeof below / sizeof *below; i++) {
        snprintf(folder, sizeof folder, "%.*s/%s", (int)length, directory, below[i]);
        if (load_from(b, folder) == 0)
            return 0;
    }
    return -1;
}

/* The toolkit whose nvcc is on PATH: "/opt/cuda" of "/opt/cuda/bin". */
static int load_beside_nvcc(gpu_cublas *b)
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
        if (load_below(b, path, n - 4) == 0)
            return 0;
    }
    return -1;
}

/* What the environment names, the loader's search path, the toolkits, Python's packages. */
static int load_anywhere(gpu_cublas *b)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
    static const char *const folders[] = {
        "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda*/lib64",
        "/usr/lib*/python3*/*-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
        "/opt/*/lib/python3*/*-packages/nvidia/*/lib"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *directory = getenv(variables[i]);
        if (directory && load_below(b, directory, strlen(directory)) == 0)
            return 0;
    }
    if (load(b, "libcublas.so.13") == 0 || load(b, "libcublas.so.12") == 0 ||
        load_beside_nvcc(b) == 0)
        return 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (load_from(b, folders[i]) == 0)
            return 0;
    return -1;
}

/* ---- the library ---- */

int gpu_cublas_open(gpu_cublas *b, const char *name, char *why, size_t size)
{
    int (*create)(void **handle);
    memset(b, 0, sizeof *b);
    if (name ? load(b, name) : load_anywhere(b)) {
        snprintf(why, size, "cuBLAS not found");
        return -1;
    }
    if (find(b->library, "cublasCreate_v2", &create, sizeof create) ||
        find(b->library, "cublasDestroy_v2", &b->destroy, sizeof b->destroy) ||
        find(b->library, "cublasGemmEx", &b->gemm_ex, sizeof b->gemm_ex)) {
        snprintf(why, size, "%.80s lacks a function", b->name);
        gpu_cublas_close(b);
        return -1;
    }
    const int status = create(&b->handle);
    if (status) {
        b->handle = NULL;
        snprintf(why, size, "%.80s: cublasCreate gives %d", b->name, status);
        gpu_cublas_close(b);
        return -1;
    }
    return 0;
}

void gpu_cublas_close(gpu_cublas *b)
{
    if (b->handle)
        b->destroy(b->handle);
    if (b->library)
        dlclose(b->library);
    memset(b, 0, sizeof *b);
}

/* Columns first there: d^T = b^T a^T. */
int gpu_cublas_gemm(const gpu_cublas *b, int n, int bf16, int b_transposed, const void *a,
                    const void *x, void *d)
{
    const float one = 1, zero = 0;
    const int type = bf16 ? R_16BF : R_16F;
    return b->gemm_ex(b->handle, b_transposed ? OP_T : OP_N, OP_N, n, n, n, &one, x, type, n, a,
                      type, n, &zero, d, R_32F, n, COMPUTE_32F, ALGO_DEFAULT);
}
