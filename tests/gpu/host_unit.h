/* host_unit.h -- the special function unit on a CPU: the one that tests/gpu/unit.c plays. */
#pragma once

#include "unit.h"

template <int operation>
static inline uint32_t gpu_unit(uint32_t a, uint32_t b)
{
    return test_unit(operation, a, b);
}
