/* functions.c -- tanh, erf, sigmoid, rsqrt, sin and cos; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "functions.h"

float mpsim_tanh(float x)
{
    return mpsim_tanh_f32(x);
}

float mpsim_erf(float x)
{
    return mpsim_erf_f32(x);
}

float mpsim_sigmoid(float x)
{
    return mpsim_sigmoid_f32(x);
}

float mpsim_rsqrt(float x)
{
    return mpsim_rsqrt_f32(x);
}

float mpsim_sin(float x)
{
    return mpsim_sin_f32(x);
}

float mpsim_cos(float x)
{
    return mpsim_cos_f32(x);
}
