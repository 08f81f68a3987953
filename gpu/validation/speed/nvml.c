/* nvml.c -- see nvml.h. Functions and numbers as NVIDIA's documentation of NVML (API of CUDA 13, nvml.h) has
 * them. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

enum { CLOCK_SM = 1, CLOCK_MEM = 2, TEMPERATURE_GPU = 0 };

static int optional(const gpu_library *l, const char *name, void *function)
{
    return gpu_library_functions(l, 1, &name, &function);
}

/* The library is initialised, and the device known: 0. */
static int begin(gpu_nvml *m, const char *bus)
{
    int (*init)(void);
    int (*by_index)(unsigned, void **);
    int (*by_bus)(const char *, void **);
    static const char *const names[] = {"nvmlInit_v2",
                                        "nvmlShutdown",
                                        "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetHandleByPciBusId_v2",
                                        "nvmlDeviceGetClockInfo",
                                        "nvmlDeviceGetPowerUsage",
                                        "nvmlDeviceGetTemperature"};
    void *const functions[] = {&init, &m->shutdown, &by_index, &by_bus, &m->clock, &m->power, &m->temperature};
    if (gpu_library_functions(&m->library, sizeof names / sizeof *names, names, functions))
        return m->shutdown = NULL, -1;
    if (init() != 0)
        return m->shutdown = NULL, -1;
    if (optional(&m->library, "nvmlDeviceGetCurrentClocksEventReasons", &m->reasons) &&
        optional(&m->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &m->reasons))
        m->reasons = NULL;
    return bus[0] ? by_bus(bus, &m->device) : by_index(0, &m->device);
}

int gpu_nvml_open(gpu_nvml *m, const char *name, const char *bus)
{
    memset(m, 0, sizeof *m);
    if (gpu_library_open(&m->library, "", name ? name : "libnvidia-ml.so.1"))
        return -1;
    if (begin(m, bus) == 0)
        return 0;
    gpu_nvml_close(m);
    return -1;
}

void gpu_nvml_close(gpu_nvml *m)
{
    if (m->shutdown)
        m->shutdown();
    gpu_library_close(&m->library);
    memset(m, 0, sizeof *m);
}

void gpu_nvml_sample(const gpu_nvml *m, gpu_clocks *c)
{
    unsigned long long mask = 0;
    memset(c, 0, sizeof *c);
    if (m->clock(m->device, CLOCK_SM, &c->sm))
        c->sm = 0;
    if (m->clock(m->device, CLOCK_MEM, &c->memory))
        c->memory = 0;
    if (m->power(m->device, &c->power))
        c->power = 0;
    if (m->temperature(m->device, TEMPERATURE_GPU, &c->temperature))
        c->temperature = 0;
    if (m->reasons && m->reasons(m->device, &mask) == 0)
        c->throttle = mask;
}

void gpu_nvml_reasons(uint64_t throttle, char *to, size_t size)
{
    static const struct {
        uint64_t bit;
        const char *word;
    } words[] = {{0x1, "idle"},
                 {0x2, "clocks that were asked for"},
                 {0x4, "power cap"},
                 {0x8, "slowdown (hardware)"},
                 {0x10, "in step with other devices"},
                 {0x20, "thermal (software)"},
                 {0x40, "thermal (hardware)"},
                 {0x80, "power brake"},
                 {0x100, "display clocks"}};
    size_t n = 0;
    to[0] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (throttle & words[i].bit && n < size) {
            n += (size_t)snprintf(to + n, size - n, "%s%s", n ? ", " : "", words[i].word);
            throttle &= ~words[i].bit;
        }
    if (throttle && n < size)
        snprintf(to + n, size - n, "%s%#llx", n ? ", " : "", (unsigned long long)throttle);
}
