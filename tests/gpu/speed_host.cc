/* speed_host.cc -- the measurements of speed, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/validation/speed/speed.cu"
