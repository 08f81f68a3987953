/* tap.h -- lines of the Test Anything Protocol for tests in C++. */
#pragma once

#include <stdarg.h>
#include <stdio.h>

inline int tap_count, tap_failed;

#define OK(condition, ...) tap_ok((condition), __VA_ARGS__)

__attribute__((format(printf, 2, 3))) inline void tap_ok(int good, const char *name, ...)
{
    va_list a;
    va_start(a, name);
    printf("%sok %d - ", good ? "" : "not ", ++tap_count);
    vprintf(name, a);
    printf("\n");
    va_end(a);
    tap_failed += !good;
    fflush(stdout);
}

inline int tap_end()
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}
