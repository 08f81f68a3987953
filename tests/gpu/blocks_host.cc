/* blocks_host.cc -- gpu/kernels/blocks.cu on the host executor. */
#include "../../gpu/kernels/blocks.cu"
