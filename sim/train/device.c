/* device.c -- see device.h. */
#include "train.h"

#include "../cli/confine.h"

#include <string.h>

int train_device_find(train_opener *device, const char *name)
{
    *device = NULL;
    if (strcmp(name, "cpu") == 0)
        return 0;
    if (!train_open_cuda)
        return fail(EXIT_USAGE, "train: --device cuda: this mpsim was built without CUDA");
    if (confined())
        return fail(EXIT_USAGE, "train: --device cuda: not in a sandbox");
    *device = train_open_cuda;
    return 0;
}
