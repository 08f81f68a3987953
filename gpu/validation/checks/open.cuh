/* open.cuh -- the thread's device: the line that every program prints about it. */
#pragma once

#include "../../gpu.h"
#include "../../kernels/cuda.cuh"

#include <stdio.h>
#include <string.h>

/* "580.65.06" from the first line of the driver's version file, or "". */
static void gpu_driver_name(char *to, size_t size)
{
    char line[256] = "";
    to[0] = 0;
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    if (!f)
        return;
    if (fgets(line, sizeof line, f)) {
        for (const char *p = line; *p; p++) {
            int a, b, n = 0;
            if (*p >= '0' && *p <= '9' && (p == line || p[-1] == ' ') && sscanf(p, "%d.%d%n", &a, &b, &n) == 2 &&
                n >= 6) {
                snprintf(to, size, "%.*s", (int)strcspn(p, " \n"), p);
                break;
            }
        }
    }
    fclose(f);
}

/* 0, or -1 with one line in `why`: no driver, no device. */
static int gpu_open_device(gpu_device *d, char *why, size_t size)
{
    int count = 0, device = 0;
    memset(d, 0, sizeof *d);
    cudaError_t e = cudaGetDeviceCount(&count);
    cudaDeviceProp properties;
    if (e == cudaSuccess && count == 0)
        e = cudaErrorNoDevice;
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&properties, device);
    if (e != cudaSuccess) {
        int driver = 0;
        const int none = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
        snprintf(why, size, "%s", none ? "no CUDA driver on this machine" : cudaGetErrorString(e));
        cudaGetLastError();
        return -1;
    }
    snprintf(d->name, sizeof d->name, "%.*s", (int)sizeof d->name - 1, properties.name);
    d->sm = 10 * properties.major + properties.minor;
    d->memory = properties.totalGlobalMem;
    cudaDriverGetVersion(&d->driver);
    cudaRuntimeGetVersion(&d->runtime);
    gpu_driver_name(d->driver_name, sizeof d->driver_name);
    return 0;
}
