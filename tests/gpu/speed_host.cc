/* speed_host.cc -- the measurements of speed, compiled for a CPU through gpu/host.h. */
#include "../../gpu/speed.cu"
