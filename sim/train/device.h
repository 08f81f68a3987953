/* device.h -- what a training can run on, by name. */
#pragma once

#include "meter.h"

extern const train_opener train_open_cuda; /* NULL in a build without CUDA */

/* train_device_find -- "cpu" (NULL) or "cuda". 0, or an exit code after a message: another name, or a
 * program that was built without CUDA. Whether there is a device shows when it is opened. */
int train_device_find(train_opener *device, const char *name);
