/* scalerword.c -- see scalerword.h. */
#include "scalerword.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char no_scale[] = "the initial scale must be a positive number that binary32 holds, "
                               "from 2^-149 to below 2^128";

static int is_scale(double x)
{
    const float f = (float)x;
    return f > 0 && isfinite(f);
}

/* Whether the initial scale of "NAME:KEY=VALUE,..." (or KEY=VALUE:...) or "NAME:VALUE" is refused by itself. */
static int is_bad_init(const char *spec)
{
    const size_t name = strcspn(spec, ":");
    mpsim_scaler_config c;
    char alone[256];
    for (const char *p = spec + name; *p;) {
        const size_t n = strcspn(++p, ",:");
        const int named = strncmp(p, "init=", 5) == 0;
        if (named || (p == spec + name + 1 && !memchr(p, '=', n))) {
            snprintf(alone, sizeof alone, "%.*s:init=%.*s", (int)name, spec, (int)(named ? n - 5 : n),
                     named ? p + 5 : p);
            const mpsim_status s = mpsim_scaler_parse(&c, alone);
            return s == MPSIM_EINVAL || s == MPSIM_ERANGE;
        }
        p += n;
    }
    return 0;
}

/* What a framework itself refuses, as its source says: torch/amp/grad_scaler.py @0202916b asserts growth_factor > 1 and
 * backoff_factor < 1; megatron/core/optimizer/grad_scaler.py @d98e8a64 that, and 0 < min_scale <= initial_scale. Apex, DeepSpeed and
 * fairseq assert nothing. The factors of Keras and tf.keras are constants of their source. */
static const struct limits {
    const char *name;
    int floor; /* the smallest scale is checked, too */
} limited[] = {{"torch", 0}, {"torch-cpu", 0}, {"megatron", 1}};

/* Why the framework does not take the factors, or NULL. */
static const char *refusal(const mpsim_scaler_config *c, int floor)
{
    if (!(c->growth > 1))
        return floor ? "Megatron asserts that the growth factor is above 1"
                     : "torch asserts that the growth factor is above 1";
    if (!(c->backoff < 1))
        return floor ? "Megatron asserts that the backoff factor is below 1"
                     : "torch asserts that the backoff factor is below 1";
    if (floor && !(c->floor > 0 && c->floor <= c->init))
        return "Megatron asserts that the smallest scale is above 0 and at most the initial one";
    return NULL;
}

/* Why the framework of the row does not take the settings, or NULL. */
static const char *refused(const mpsim_scaler_config *c)
{
    for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++)
        if (c->dynamic && strcmp(c->name, limited[i].name) == 0)
            return refusal(c, limited[i].floor);
    const char *keras = strstr(c->name, "keras");
    return keras && c->dynamic && (c->growth != 2 || c->backoff != 0.5)
               ? "Keras doubles and halves the scale: its factors are constants"
               : NULL;
}

const char *scaler_read(mpsim_scaler_config *c, const char *spec)
{
    const mpsim_status s = mpsim_scaler_parse(c, spec);
    if (s == MPSIM_OK)
        return is_scale(c->init) ? refused(c) : no_scale;
    return is_bad_init(spec)      ? no_scale
           : s == MPSIM_ENOTFOUND ? "an unknown key or word"
           : s == MPSIM_ERANGE    ? "a value outside its domain"
                                  : "a malformed number, or a key twice";
}
