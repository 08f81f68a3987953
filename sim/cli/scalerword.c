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

const char *scaler_read(mpsim_scaler_config *c, const char *spec)
{
    const mpsim_status s = mpsim_scaler_parse(c, spec);
    if (s == MPSIM_OK)
        return is_scale(c->init) ? NULL : no_scale;
    return is_bad_init(spec)      ? no_scale
           : s == MPSIM_ENOTFOUND ? "an unknown key or word"
           : s == MPSIM_ERANGE    ? "a value outside its domain"
                                  : "a malformed number, or a key twice";
}
