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

/* What is wrong with a change that could not be made. */
static const char *bad_change(const scaler_draft *d, mpsim_status s, const char *key, size_t n, const char *value,
                              size_t m)
{
    mpsim_scaler_config c = d->config;
    unsigned none = 0;
    if (s == MPSIM_ENOTFOUND)
        return "an unknown key or word";
    if (mpsim_scaler_set(&c, &none, key, n, value, m) == MPSIM_OK)
        return "a key twice";
    return n == 4 && memcmp(key, "init", 4) == 0 ? no_scale
           : s == MPSIM_ERANGE                   ? "a value outside its domain"
                                                 : "a malformed number";
}

static const char *change(scaler_draft *d, const char *key, size_t n, const char *value, size_t m)
{
    const mpsim_status s = mpsim_scaler_set(&d->config, &d->given, key, n, value, m);
    return s == MPSIM_OK ? NULL : bad_change(d, s, key, n, value, m);
}

const char *scaler_set(scaler_draft *d, const char *key, const char *value)
{
    return change(d, key, strlen(key), value, strlen(value));
}

/* "KEY=VALUE"; the first change may be "VALUE" alone, which is that of init. */
static const char *read_change(scaler_draft *d, const char *text, size_t n, int is_first)
{
    const char *equals = memchr(text, '=', n);
    if (equals)
        return change(d, text, (size_t)(equals - text), equals + 1, n - (size_t)(equals + 1 - text));
    return is_first ? change(d, "init", 4, text, n) : "a change is KEY=VALUE";
}

const char *scaler_begin(scaler_draft *d, const char *spec)
{
    char name[sizeof d->config.name];
    const size_t length = strcspn(spec, ":");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), spec);
    const mpsim_scaler_type *row = mpsim_scaler_find(name);
    const char *why = row ? NULL : "an unknown key or word";
    if (row)
        *d = (scaler_draft){row->config, 0};
    for (const char *at = spec + length; *at && !why;) {
        const int is_first = at++ == spec + length;
        const size_t n = strcspn(at, ",:");
        why = read_change(d, at, n, is_first);
        at += n;
    }
    return why;
}

const char *scaler_end(const scaler_draft *d)
{
    if (!is_scale(d->config.init))
        return no_scale;
    return mpsim_scaler_config_check(&d->config) == MPSIM_OK ? refused(&d->config) : "a value outside its domain";
}

const char *scaler_read(mpsim_scaler_config *c, const char *spec)
{
    scaler_draft d;
    const char *why = scaler_begin(&d, spec);
    why = why ? why : scaler_end(&d);
    if (!why)
        *c = d.config;
    return why;
}
