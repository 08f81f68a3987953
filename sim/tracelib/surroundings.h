/* surroundings.h -- what of a thread decides how texts and numbers are read, while the library works for it. */
#pragma once

#include <fenv.h>
#include <locale.h>

typedef struct surroundings {
    locale_t locale;
    fenv_t floats;
} surroundings;

/* tracelib_surroundings_enter -- the default floating-point environment and a locale, "C" of newlocale; tracelib_surroundings_leave -- the thread's
 * own again. */
void tracelib_surroundings_enter(surroundings *s, locale_t locale);
void tracelib_surroundings_leave(const surroundings *s);
