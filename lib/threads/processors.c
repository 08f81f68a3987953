/* processors.c -- see processors.h. What cannot be read does not limit. */
#include "processors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

enum { MOST = 1 << 16 };

static int in_affinity(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    int n = online > 0 && online < MOST ? (int)online : 1;
#ifdef __linux__
    cpu_set_t set; /* 1024 processors; sched_getaffinity fails where there are more */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
#endif
    return n > 0 ? n : 1;
}

/* Processors that `quota` of every `period` microseconds are, rounded up. */
static int of_quota(double quota, double period)
{
    const double n = period > 0 && quota > 0 ? quota / period : MOST;
    return n < MOST ? (int)n + (n > (int)n) : MOST;
}

/* Numbers that begin a file, up to two; "max" is not a number. How many were read. */
static int read_numbers(const char *path, double x[2])
{
    FILE *f = fopen(path, "r");
    const int n = f ? fscanf(f, "%lf %lf", &x[0], &x[1]) : 0;
    if (f)
        fclose(f);
    return n;
}

/* The file of a group that holds its quota, and in version 1 the one that holds its period. */
static int in_group(const char *mount, const char *path, int version)
{
    char file[1200];
    double x[2] = {0, 0}, period[2] = {0, 0};
    snprintf(file, sizeof file, "%s%s/%s", mount, path, version == 2 ? "cpu.max" : "cpu.cfs_quota_us");
    int n = read_numbers(file, x);
    if (version == 1 && n == 1) {
        snprintf(file, sizeof file, "%s%s/cpu.cfs_period_us", mount, path);
        n += read_numbers(file, period) == 1;
        x[1] = period[0];
    }
    return n == 2 ? of_quota(x[0], x[1]) : MOST;
}

/* The least of the group `path` and those above it, up to the mount. */
static int in_groups(const char *mount, char *path, int version)
{
    int least = MOST;
    for (char *slash; (slash = strrchr(path, '/')) != NULL; *slash = 0) {
        const int n = in_group(mount, slash[1] ? path : "", version);
        least = n < least ? n : least;
    }
    const int n = in_group(mount, "", version);
    return n < least ? n : least;
}

/* Lines of /proc/self/cgroup: "0::/a/b" is version 2, "4:cpu,cpuacct:/a/b" version 1. */
static int in_control_groups(void)
{
    char line[1024];
    int least = MOST;
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        const int version = controllers[1] == 0 ? 2 : 1;
        if (version == 1 && strncmp(controllers + 1, "cpu", 3) != 0)
            continue;
        const int n = in_groups(version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", path, version);
        least = n < least ? n : least;
    }
    if (f)
        fclose(f);
    return least;
}

int threads_processors(void)
{
    const int n = in_affinity(), quota = in_control_groups();
    const int least = n < quota ? n : quota;
    return least > 0 ? least : 1;
}

int threads_processors_free(void)
{
    double load[1] = {0};
    const int n = threads_processors(), half = (n + 1) / 2;
    const int busy = getloadavg(load, 1) == 1 && load[0] < MOST ? (int)(load[0] + 0.5) : 0;
    return n - busy > half ? n - busy : half;
}
