/* tolerance.c -- see tolerance.h. */
#include "tolerance.h"

#include "../cli/options.h"

#include <string.h>
#include <strings.h>

int diff_tolerance_parse(tolerance *t, const char *text, const char *verb)
{
    static const struct {
        const char *unit;
        unsigned by;
    } units[] = {{"ulps", TOLERANCE_ULP}, {"ulp", TOLERANCE_ULP}, {"dB", TOLERANCE_SQNR}, {"", TOLERANCE_RELATIVE}};
    char number[64];
    t->by = TOLERANCE_NONE;
    if (!text)
        return 0;
    const size_t n = strlen(text);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const size_t unit = strlen(units[i].unit);
        if (n <= unit || n - unit >= sizeof number || strcasecmp(text + n - unit, units[i].unit) != 0)
            continue;
        memcpy(number, text, n - unit);
        number[n - unit] = '\0';
        if (parse_number(&t->most, number) != 0 || (t->most < 0 && units[i].by != TOLERANCE_SQNR))
            break;
        t->by = units[i].by;
        return 0;
    }
    return fail(EXIT_USAGE, "%s: --tolerance: '%s' is not one of 4ulp, 1e-3 (relative), 60dB (SQNR)", verb, text);
}

int diff_tolerance_holds(const tolerance *t, const measure *m)
{
    if (t->by == TOLERANCE_NONE || m->compared + m->both_nan != m->differ)
        return 0;
    return t->by == TOLERANCE_ULP        ? (double)m->max_ulp <= t->most
           : t->by == TOLERANCE_RELATIVE ? m->max_rel <= t->most
                                         : diff_measure_sqnr(m) >= t->most;
}
