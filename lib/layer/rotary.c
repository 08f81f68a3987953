/* rotary.c -- tables of rotary positions; see mpsim/transformer.h. */
#include <mpsim/function.h>
#include <mpsim/transformer.h>

#include "../base/extent.h"

#include <math.h>
#include <string.h>

/* exp, ln of binary64, correctly rounded. */
static double function(mpsim_function which, double x)
{
    const mpsim_format *fp64 = mpsim_format_find("binary64");
    mpsim_rounding r;
    uint64_t code;
    double y;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    memcpy(&code, &x, sizeof code);
    code = mpsim_function_apply(which, fp64, fp64, &r, code, 0, NULL);
    memcpy(&y, &code, sizeof y);
    return y;
}

mpsim_status mpsim_rotary(float *cosines, float *sines, size_t places, size_t half, double base)
{
    if (!(base > 0) || !isfinite(base) || !mpsim_fits(mpsim_elements(places, half), sizeof *sines) ||
        (places > 0 && half > 0 && (!cosines || !sines)))
        return MPSIM_EINVAL;
    const double ln_base = function(MPSIM_FUNCTION_LOG, base);
    for (size_t c = 0; c < half; c++) {
        const double ratio = (2 * (double)c) / (double)(2 * half);
        const double w = function(MPSIM_FUNCTION_EXP, -ratio * ln_base);
        for (size_t p = 0; p < places; p++) {
            double a = (double)p * w;
            const double turns = floor(a * 0x1.45f306dc9c883p-3 + 0.5);
            a = a - turns * 0x1.921fb54442d18p+2;
            cosines[p * half + c] = mpsim_cos((float)a);
            sines[p * half + c] = mpsim_sin((float)a);
        }
    }
    return MPSIM_OK;
}
