/* nvml.h -- clocks, power and temperature of a device at a moment, by NVIDIA's management library, found at
 * run time. Nothing here changes a setting. */
#pragma once

#include "library.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_nvml {
    gpu_library library;
    void *device;
    int (*shutdown)(void);
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *degrees);
    int (*reasons)(void *device, unsigned long long *mask); /* NULL: a library without it */
} gpu_nvml;

typedef struct gpu_clocks { /* 0: not known */
    unsigned sm, memory;    /* MHz */
    unsigned power;         /* mW, as the library averages it: over a second on some devices */
    unsigned temperature;   /* degrees Celsius */
    uint64_t throttle;      /* what holds the clocks down; 0: nothing, or not known */
} gpu_clocks;

/* gpu_nvml_open -- 0, or -1: no library, or not this device. `name`: the library's, NULL: libnvidia-ml.so.1;
 * bus: the device's on PCI ("0000:1b:00.0"), "": the first one. */
int gpu_nvml_open(gpu_nvml *m, const char *name, const char *bus);
void gpu_nvml_close(gpu_nvml *m);

/* gpu_nvml_sample -- as it is now. */
void gpu_nvml_sample(const gpu_nvml *m, gpu_clocks *c);

/* gpu_nvml_reasons -- the mask in words, "power cap, thermal (software)"; bits without a word as a number. */
void gpu_nvml_reasons(uint64_t throttle, char *to, size_t size);

#ifdef __cplusplus
}
#endif
