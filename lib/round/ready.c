/* ready.c -- see ready.h. */
#include "ready.h"

enum { MOST = 4096 /* values that a kernel takes at once */ };

void mpsim_ready_init(mpsim_ready *c, const mpsim_format *f, const mpsim_rounding *r, int values)
{
    float zero = 0;
    unsigned char code[8];
    const mpsim_status s = values ? mpsim_round_array_f32(f, r, NULL, &zero, &zero, 1, NULL)
                                  : mpsim_encode_array_f32(f, r, NULL, code, &zero, 1, NULL);
    c->f = f;
    c->r = *r;
    c->values = values;
    c->kernels = s == MPSIM_OK && !r->by_field ? mpsim_kernels_choice() : NULL;
    if (c->kernels && !mpsim_cast_init(&c->k, f, r, (int)sizeof(float), values, 0))
        c->kernels = NULL;
    c->k.stream = 0;
    c->k.end = 1;
}

mpsim_status mpsim_ready_run(const mpsim_ready *c, void *out, const float *x, size_t n)
{
    if (c->kernels && n <= MOST) {
        c->kernels->cast(&c->k, out, x, n, NULL, NULL);
        return MPSIM_OK;
    }
    return c->values ? mpsim_round_array_f32(c->f, &c->r, NULL, (float *)out, x, n, NULL)
                     : mpsim_encode_array_f32(c->f, &c->r, NULL, out, x, n, NULL);
}
