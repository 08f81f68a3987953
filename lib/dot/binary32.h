/* binary32.h -- binary32 as a format, for chain.c, lanes.c and model.c: its row has a name to be looked up. */
#pragma once

#include <mpsim/format.h>

static const mpsim_format mpsim_binary32 = {.bits = 32,
                                            .ebits = 8,
                                            .mbits = 23,
                                            .inf = 1,
                                            .nan = MPSIM_NAN_TOP,
                                            .zero = MPSIM_ZERO_SIGNED,
                                            .bias = 127,
                                            .max_finite = 0x7f7fffff};
