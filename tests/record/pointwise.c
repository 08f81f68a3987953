/* pointwise.c -- operations on elements, as devices do them: which are contracted, what becomes of their scalar. */
#include "device.h"

#include "lib/digest/scalar.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/round.h>
#include <stdlib.h>
#include <string.h>

/* Of x, y, z, r = |y|: pointwise.py says which operation takes which. s: the scalar, for a product with its reciprocal
 * that; in binary32. */
typedef struct operands {
    float x, y, z, r, s;
    const mpsim_format *f; /* of the tensors: what is rounded on the way */
} operands;

#define OPERATION(name, result)          \
    static float name(const operands *o) \
    {                                    \
        return result;                   \
    }
OPERATION(add_fma, fmaf(o->s, o->y, o->x))
OPERATION(add_plain, o->x + o->s * o->y)
OPERATION(sub_fma, fmaf(-o->s, o->y, o->x))
OPERATION(sum, o->x + o->s)
OPERATION(product, o->x * o->s)
OPERATION(quotient, o->x / o->s)
OPERATION(tensors, o->x / o->r)
OPERATION(inverse_first, device_round(o->f, 1 / o->r) * o->s)
OPERATION(over, o->s / o->r)
OPERATION(outer, fmaf(o->s, o->y * o->z, o->x))
OPERATION(inner, fmaf(o->s * o->y, o->z, o->x))
OPERATION(no_scalar, fmaf(o->y, o->z, o->x))
OPERATION(quotient_fma, fmaf(o->s, o->z / o->r, o->x))
OPERATION(quotient_added, o->x + o->z / o->r)
OPERATION(lerp_low, fmaf(0.1f, o->y - o->x, o->x))
OPERATION(lerp_high, fmaf(-(o->y - o->x), 1 - 0.9f, o->y))
OPERATION(root, sqrtf(o->r))
OPERATION(inverse_root, (float)(1 / sqrt((double)o->r)))
OPERATION(inverse, 1 / o->r)
OPERATION(square, o->x * o->x)
OPERATION(cube, o->x * o->x * o->x)
OPERATION(cube_rounded, device_round(o->f, o->x * o->x) * o->x)

/* What has no row is not understood. reciprocal 1: s is the scalar's reciprocal, of binary64. */
static const struct candidate {
    const char *operation, *how;
    float (*of)(const operands *o);
    int reciprocal;
} candidates[] = {
    {"add", "fma(s, y, x)", add_fma, 0},
    {"add", "x + s y", add_plain, 0},
    {"sub", "fma(-s, y, x)", sub_fma, 0},
    {"add scalar", "x + s", sum, 0},
    {"mul scalar", "x s", product, 0},
    {"mul list", "x s", product, 0},
    {"mul 0-dim", "x s", product, 0},
    {"div scalar", "x / s", quotient, 0},
    {"div scalar", "x (1 / s)", product, 1},
    {"div list", "x / s", quotient, 0},
    {"div list", "x (1 / s)", product, 1},
    {"div 0-dim", "x / s", quotient, 0},
    {"div 0-dim", "x (1 / s)", product, 1},
    {"div", "x / y", tensors, 0},
    {"scalar div", "s / y", over, 0},
    {"scalar div", "1 / y, rounded, s", inverse_first, 0},
    {"addcmul", "fma(s, y z, x)", outer, 0},
    {"addcmul", "fma(s y, z, x)", inner, 0},
    {"addcmul list", "fma(s, y z, x)", outer, 0},
    {"addcmul list", "fma(s y, z, x)", inner, 0},
    {"addcmul 1", "fma(y, z, x)", no_scalar, 0},
    {"addcdiv", "fma(s, y / z, x)", quotient_fma, 0},
    {"addcdiv list", "fma(s, y / z, x)", quotient_fma, 0},
    {"addcdiv 1", "x + y / z", quotient_added, 0},
    {"lerp 0.1", "fma(s, y - x, x)", lerp_low, 0},
    {"lerp 0.9", "fma(x - y, 1 - s, y)", lerp_high, 0},
    {"sqrt", "IEEE's", root, 0},
    {"pow 0.5", "IEEE's square root", root, 0},
    {"rsqrt", "correct rounding", inverse_root, 0},
    {"reciprocal", "IEEE's", inverse, 0},
    {"pow 2", "x x", square, 0},
    {"pow 3", "(x x) x", cube, 0},
    {"pow 3", "x x, rounded, x", cube_rounded, 0},
    {"unscale 3", "x (1 / s)", product, 1},
    {"unscale 65536", "x (1 / s)", product, 1},
};

static double scalar_of(const char *operation)
{
    return strncmp(operation, "unscale ", 8) == 0 ? strtod(operation + 8, NULL) : 0.3;
}

/* 0: none is given by this candidate, its scalar as it is or rounded to the tensor's type. */
static int fits_digest(const json_t *c, const struct candidate *k, const char *type, int rounded)
{
    uint64_t digest = 0;
    const mpsim_format *f = device_format(type);
    const double given = rounded ? (double)device_round(f, (float)scalar_of(k->operation)) : scalar_of(k->operation);
    const size_t n = (size_t)device_integer(c, "n");
    for (size_t i = 0; i < n; i++) {
        operands o = {.x = device_number(type, -6, 6, 80, i),
                      .y = device_number(type, -6, 6, 81, i),
                      .z = device_number(type, -6, 6, 82, i),
                      .s = (float)(k->reciprocal ? 1 / given : given),
                      .f = f};
        o.r = fabsf(o.y);
        digest += mpsim_mix(i, device_encode(f, k->of(&o)));
    }
    return device_same_digest(c, "digest", digest);
}

/* x times 1 / (norm + 1e-6), each operation rounded to the type. */
static int is_clipped(const json_t *c, const char *type)
{
    const mpsim_format *f = device_format(type);
    const size_t n = (size_t)device_integer(c, "n");
    float *x = malloc(n * sizeof *x);
    uint64_t digest = 0;
    device_need(x != NULL);
    for (size_t i = 0; i < n; i++)
        x[i] = device_number(type, -6, 6, 80, i);
    const float norm = device_round(f, device_list_norm(x, n));
    const float factor = fminf(1, device_round(f, 1 / device_round(f, norm + 1e-6f)));
    for (size_t i = 0; i < n; i++)
        digest += mpsim_mix(i, device_encode(f, x[i] * factor));
    free(x);
    return device_encode(f, norm) == device_code(device_text(c, "norm"), 0) && device_same_digest(c, "digest", digest);
}

void device_pointwise(const json_t *head, const json_t *c, char *answer)
{
    char operation[64], type[32];
    device_fits fits = {.count = 0};
    size_t tried = 0;
    (void)head;
    if (sscanf(device_text(c, "case"), "%63[^:]: %31s", operation, type) != 2 || !device_format(type)) {
        device_say(answer, "not understood");
        return;
    }
    const char *name = strncmp(operation, "foreach ", 8) == 0 ? operation + 8 : operation;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (strcmp(candidates[i].operation, name) != 0)
            continue;
        tried++;
        for (int rounded = 0; rounded < 2; rounded++)
            if (fits_digest(c, &candidates[i], type, rounded)) {
                device_fit(&fits, "%s%s", candidates[i].how, rounded ? ", s rounded first" : "");
                break;
            }
    }
    if (strncmp(operation, "clip ", 5) == 0)
        device_say(answer, "%s", is_clipped(c, type) ? "fits x (1 / (norm + 1e-6)), the norm a list's" : "none fits");
    else if (tried)
        device_say_fits(answer, &fits);
    else
        device_say(answer, "open");
}
