/* json.c -- JSON values and CSV cells; see report.h. */
#include "report.h"

#include <math.h>
#include <string.h>

json_t *json_of_double(double x)
{
    if (isnan(x))
        return json_string("NaN");
    if (isinf(x))
        return json_string(x > 0 ? "Infinity" : "-Infinity");
    return json_real(x);
}

json_t *json_of_count(uint64_t n)
{
    /* Counts are elements of files, far below 2^63. */
    return json_integer((json_int_t)n);
}

int json_write(FILE *to, json_t *v)
{
    if (!v)
        return -1;
    /* 17 significant digits round-trip. */
    const int bad = json_dumpf(v, to, JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY) != 0;
    json_decref(v);
    return bad ? -1 : 0;
}

void csv_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

void csv_double(FILE *to, double x)
{
    if (isnan(x))
        fputs("nan", to);
    else if (isinf(x))
        fputs(x > 0 ? "inf" : "-inf", to);
    else
        fprintf(to, "%.17g", x);
}
