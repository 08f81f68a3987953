/* surroundings.c -- see surroundings.h. */
#include "surroundings.h"

void tracelib_surroundings_enter(surroundings *s, locale_t locale)
{
    fegetenv(&s->floats);
    fesetenv(FE_DFL_ENV);
    s->locale = uselocale(locale);
}

void tracelib_surroundings_leave(const surroundings *s)
{
    uselocale(s->locale);
    fesetenv(&s->floats);
}
