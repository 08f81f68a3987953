/* library.h -- libraries of NVIDIA, found at run time, so that nothing of them is needed to build. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_library {
    void *at;       /* NULL: none */
    char name[256]; /* its file */
} gpu_library;

/* gpu_library_open -- 0, or -1: not found. `name`: the file's, or NULL: stem.so.13 or .12 ("libcublas") below
 * CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX, on the loader's search path, in the toolkit of the nvcc on
 * PATH, in /usr/local/cuda*, /opt/cuda*, among the system's Python packages; at last among those of
 * python3 on PATH, which is asked where they are. libcublasLt beside libcublas is loaded with it. */
int gpu_library_open(gpu_library *l, const char *stem, const char *name);
void gpu_library_close(gpu_library *l);

/* gpu_library_functions -- n functions by name: 0, or -1 if one is missing. functions[i]: where a pointer to
 * function names[i] is stored. */
int gpu_library_functions(const gpu_library *l, size_t n, const char *const *names, void *const *functions);

#ifdef __cplusplus
}
#endif
