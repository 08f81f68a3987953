/* functions_host.cc -- the device's part of mpsim-gpu-functions on a CPU, whose special function unit tests/gpu/unit.c plays. */
#include "../../gpu/functions/functions.cu"

/* What gpu/validation/program/worker.c and main.c need of a device is above. */
