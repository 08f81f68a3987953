/* device.c -- see device.h. */
#include "config.h"

#include "device.h"

#include "../cli/options.h"

#include <string.h>

#ifdef HAVE_CUDA
#include "../../gpu/gpu.h"
#include "../../gpu/train.h"

static int open_cuda(train_engine *e, char *why, size_t size)
{
    gpu_device d;
    return gpu_open(&d, why, size) ? -1 : train_engine_cuda(e, why, size);
}
#endif

int train_device_find(train_opener *device, const char *name)
{
    *device = NULL;
    if (strcmp(name, "cpu") == 0)
        return 0;
    if (strcmp(name, "cuda") != 0)
        return fail(EXIT_USAGE, "train: --device is cpu or cuda, not '%s'", name);
#ifdef HAVE_CUDA
    *device = open_cuda;
    return 0;
#else
    return fail(EXIT_USAGE, "train: --device cuda: this mpsim was built without CUDA");
#endif
}
