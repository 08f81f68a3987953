/* optimizers.c -- optimizer steps of devices: which variants give the digests of all five steps. */
#include "device.h"

#include "lib/digest/scalar.h"
#include "support/support.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <mpsim/optim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1003 };
static const char *const letters[] = {"p", "m", "v"};

typedef struct steps {
    mpsim_optim o;
    float of[3][N], grad[N];
} steps;

static void draw(float *x, const char *type, uint64_t stream, int low, int high)
{
    for (size_t i = 0; i < N; i++)
        x[i] = device_number(type, low, high, stream, i);
}

static double option(const json_t *c, const char *key, double otherwise)
{
    const json_t *x = json_object_get(json_object_get(c, "options"), key);
    return x ? json_number_value(x) : otherwise;
}

/* 0: the variant has no such algorithm or option. */
static int start(steps *s, const json_t *c, const mpsim_optim_variant *v, const char *type)
{
    mpsim_optim_algorithm a;
    if (mpsim_optim_parse(&a, device_text(c, "optimizer")) != MPSIM_OK)
        return 0;
    mpsim_optim_init(&s->o, a, v);
    s->o.lr = option(c, "lr", s->o.lr);
    s->o.momentum = option(c, "momentum", 0);
    s->o.weight_decay = option(c, "weight_decay", 0);
    s->o.beta1 = option(c, "beta1", s->o.beta1);
    s->o.beta2 = option(c, "beta2", s->o.beta2);
    s->o.eps = option(c, "eps", s->o.eps);
    s->o.param = s->o.state = *device_format(type);
    memset(s->of, 0, sizeof s->of);
    draw(s->of[0], type, 3, -6, 0);
    return mpsim_optim_check(&s->o) == MPSIM_OK;
}

/* Whether an array has the digest that a step has for it; what is not recorded is not compared. */
static int same(const steps *s, const json_t *after, size_t array)
{
    static unsigned char codes[N * 4];
    const size_t bytes = mpsim_format_code_bytes(&s->o.param);
    if (!*device_text(after, letters[array]))
        return 1;
    for (size_t i = 0; i < N; i++)
        code_store(codes + i * bytes, bytes, device_encode(&s->o.param, s->of[array][i]));
    return device_same_digest(after, letters[array], mpsim_digest(&s->o.param, codes, N, 0));
}

/* The sampled parameters are stored beside their digest: damage of one of them must show, too. */
static int same_sample(const steps *s, const json_t *after)
{
    const char *words = device_text(after, "sample");
    for (size_t i = 0; i < device_codes(words); i++)
        if (device_encode(&s->o.param, s->of[0][i]) != device_code(words, i))
            return 0;
    return device_codes(words) > 0;
}

/* How many steps a variant gives, from the first. */
static size_t equal_steps(const json_t *c, const mpsim_optim_variant *v, const char *type, size_t count)
{
    static steps s;
    if (!start(&s, c, v, type))
        return 0;
    for (size_t t = 1; t <= count; t++) {
        const json_t *after = json_array_get(json_object_get(c, "after"), t - 1);
        const mpsim_optim_tensor tensor = {.param = s.of[0], .grad = s.grad, .m = s.of[1], .v = s.of[2], .n = N};
        draw(s.grad, type, 3 + t, -9, 1);
        if (mpsim_optim_step(&s.o, t, &tensor, NULL) != MPSIM_OK || !same_sample(&s, after) || !same(&s, after, 0) ||
            !same(&s, after, 1) || !same(&s, after, 2))
            return t - 1;
    }
    return count;
}

void device_optimizers(const json_t *head, const json_t *c, char *answer)
{
    char optimizer[32], how[32], type[32];
    device_fits fits = {.count = 0};
    const char *closest = "";
    size_t most = 0;
    const size_t count = json_array_size(json_object_get(c, "after"));
    (void)head;
    if (sscanf(device_text(c, "case"), "%31s %31s %31s", optimizer, how, type) != 3 || !device_format(type) ||
        device_integer(c, "n") != N || count == 0) {
        device_say(answer, "not understood");
        return;
    }
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        const size_t equal = equal_steps(c, v, type, count);
        if (equal == count)
            device_fit(&fits, "%s", v->name);
        if (equal > most) {
            most = equal;
            closest = v->name;
        }
    }
    if (fits.count)
        device_say_fits(answer, &fits);
    else
        device_say(answer, "none fits; %s in %zu of %zu steps", most ? closest : "none", most, count);
}

/* ---- fused kernels, by the place of an element among the four of its thread ---- */

enum { MOST = 70000 };

/* Digest of every fourth element, or of every fourth 512: those whose turn it is. */
static int same_quarter(const mpsim_format *f, const float *x, size_t n, size_t turn, const char *hex)
{
    uint64_t sum = 0, k = 0;
    char ours[17];
    for (size_t i = 0; i < n; i++)
        if ((n % 4 ? i / 512 : i) % 4 == turn)
            sum += mpsim_mix(k++, device_encode(f, x[i]));
    snprintf(ours, sizeof ours, "%016" PRIx64, sum);
    return hex && strcmp(ours, hex) == 0;
}

/* Bit t: all arrays of elements with turn t are the recorded ones. */
static unsigned same_quarters(const mpsim_format *f, const json_t *after, float *const of[4], size_t n)
{
    static const char *const names[] = {"p", "m", "v", "vmax"};
    unsigned same = 0;
    for (size_t turn = 0; turn < 4; turn++) {
        int equal = 1;
        for (size_t k = 0; k < 4; k++) {
            const json_t *list = json_object_get(after, names[k]);
            equal &= !list || same_quarter(f, of[k], n, turn, json_string_value(json_array_get(list, turn)));
        }
        same |= (unsigned)equal << turn;
    }
    return same;
}

static int fused_optimizer(mpsim_optim *o, const json_t *c, const char *name, const char *type)
{
    mpsim_optim_algorithm a;
    if (mpsim_optim_parse(&a, name) != MPSIM_OK || !device_format(type))
        return 0;
    mpsim_optim_init(o, a, mpsim_optim_variant_find("torch-fused-c"));
    o->weight_decay = 0;
    o->eps = option(c, "eps", o->eps);
    for (int s = 0; s < MPSIM_OPTIM_SETTINGS; s++) {
        const json_t *x = json_object_get(json_object_get(c, "options"),
                                          mpsim_optim_setting_name((mpsim_optim_setting)s));
        if (x)
            mpsim_optim_set(o, (mpsim_optim_setting)s, json_is_boolean(x) ? json_is_true(x) : json_number_value(x));
    }
    o->beta2 = 0.95; /* fused.py's; beta1 is the default */
    o->grad_scale = json_number_value(json_object_get(c, "scale"));
    o->param = o->state = *device_format(type);
    return mpsim_optim_check(o) == MPSIM_OK;
}

void device_fused(const json_t *head, const json_t *c, char *answer)
{
    static float p[MOST], m[MOST], v[MOST], vmax[MOST], grad[MOST];
    float *const of[4] = {p, m, v, vmax};
    char name[16], type[32];
    mpsim_optim o;
    unsigned same = 15;
    const size_t n = (size_t)device_integer(c, "n"), count = json_array_size(json_object_get(c, "after"));
    const char *at = strstr(device_text(c, "case"), "float");
    at = at && at > device_text(c, "case") && at[-1] == 'b' ? at - 1 : at;
    (void)head;
    if (!at || sscanf(device_text(c, "case"), "%15s", name) != 1 || sscanf(at, "%31s", type) != 1 || n == 0 ||
        n > MOST || count == 0 || !fused_optimizer(&o, c, name, type)) {
        device_say(answer, "not understood");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        p[i] = device_number(type, -6, 0, 3, i);
        m[i] = v[i] = vmax[i] = 0;
    }
    for (size_t step = 1; step <= count; step++) {
        const mpsim_optim_tensor t = {.param = p, .grad = grad, .m = m, .v = v, .vmax = vmax, .n = n};
        for (size_t i = 0; i < n; i++)
            grad[i] = device_number(type, -9, 1, 3 + step, i);
        device_need(mpsim_optim_step(&o, step, &t, NULL) == MPSIM_OK);
        same &= same_quarters(&o.param, json_array_get(json_object_get(c, "after"), step - 1), of, n);
    }
    if (same == 15)
        device_say(answer, "fits torch-fused-c");
    else
        device_say(answer, "none fits; of a thread's four elements as torch-fused-c: %s%s%s%s", same & 1 ? "1" : "-",
                   same & 2 ? "2" : "-", same & 4 ? "3" : "-", same & 8 ? "4" : "-");
}
