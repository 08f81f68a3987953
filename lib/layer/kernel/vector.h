/* vector.h -- the functions of arrays and rows of one instruction set. Included once by its unit, after its words. */
#pragma once

#include "activation.h"
#include "channels.h"
#include "columns.h"
#include "elements.h"
#include "norm.h"
#include "normal.h"
#include "softmax.h"
#include "xent.h"

const mpsim_layer_kernels V_NAME(mpsim_layer_kernels) = {
    .exp = V_NAME(array_exp),
    .exp2 = V_NAME(array_exp2),
    .tanh = V_NAME(array_tanh),
    .erf = V_NAME(array_erf),
    .sigmoid = V_NAME(array_sigmoid),
    .normal = V_NAME(normal_numbers),
    .count = V_NAME(count_numbers),
    .round = V_NAME(round_numbers),
    .activate = V_NAME(activate),
    .activate_back = V_NAME(activate_back),
    .softmax = {V_NAME(softmax_row), V_NAME(log_softmax_row), V_NAME(softmax_back_row), V_NAME(log_softmax_back_row)},
    .xent = V_NAME(xent),
    .norm = V_NAME(norm),
    .norm_back = V_NAME(norm_back),
    .columns = V_NAME(columns),
    .channels = V_NAME(channels),
    .channels_back = V_NAME(channels_back),
    .elements = {V_NAME(add_numbers), V_NAME(multiply_numbers), V_NAME(drop_numbers)},
};
