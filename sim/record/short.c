/* short.c -- numbers in short forms for people; see cells.h. */
#include "cells.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *text_count(char *out, uint64_t n)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *p = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = '\0';
    return out;
}

const char *text_share(char *out, uint64_t part, uint64_t whole)
{
    const double percent = whole ? 100 * (double)part / (double)whole : 0;
    if (part == 0)
        strcpy(out, "0");
    else if (percent < 0.01)
        strcpy(out, "<0.01 %");
    else if (part == whole)
        strcpy(out, "100 %");
    else if (percent > 99.99)
        strcpy(out, ">99.99 %");
    else
        snprintf(out, 32, "%.2f %%", percent);
    return out;
}

const char *text_percent(char *out, double share)
{
    const double x = 100 * share;
    if (isnan(x))
        strcpy(out, "–");
    else if (x == 0)
        strcpy(out, "0");
    else if (x < 0.001)
        strcpy(out, "<0.001");
    else if (x < 100 && x >= 99.95)
        snprintf(out, 32, "%s", x > 99.999 ? ">99.999" : "99.99");
    else
        snprintf(out, 32, "%.3g", x);
    return out;
}

const char *text_decibels(char *out, double sqnr)
{
    if (isnan(sqnr))
        strcpy(out, "–");
    else if (isinf(sqnr))
        strcpy(out, sqnr > 0 ? "exact" : "-inf");
    else
        snprintf(out, 32, "%.1f", sqnr);
    return out;
}

const char *text_scale(char *out, double x)
{
    int e;
    if (frexp(x, &e) == 0.5 && (e < 0 || e > 4)) /* a power of two, and not 1/2 to 8 */
        snprintf(out, 32, "2^%d", e - 1);
    else
        snprintf(out, 32, "%.17g", x);
    return out;
}

const char *text_number(char *out, double x)
{
    if (isnan(x))
        strcpy(out, "nan");
    else if (isinf(x))
        strcpy(out, x > 0 ? "inf" : "-inf");
    else if (x == 0)
        strcpy(out, "0");
    else if (fabs(x) >= 1e-3 && fabs(x) < 1e6)
        snprintf(out, 32, "%.5g", x);
    else
        snprintf(out, 32, "%.3e", x);
    return out;
}

const char *text_bytes(char *out, uint64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)n;
    int u = 0;
    for (; x >= 1024 && u < 4; u++)
        x /= 1024;
    snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", x, units[u]);
    return out;
}
