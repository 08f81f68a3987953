/* csvcells.c -- CSV cells; see cells.h. */
#include "cells.h"

#include "../text/escape.h"

#include <math.h>
#include <string.h>

/* Spreadsheets run a cell that begins so; a quote before it makes it text. A single character is
 * none of their formulas. */
static int begins_formula(const char *text)
{
    return text[0] && strchr("=+-@", text[0]) && text[1];
}

void csv_text(FILE *to, const char *text)
{
    const int quoted = strpbrk(text, ",\"") != NULL; /* line ends are escaped */
    char unit[ESCAPE_UNIT];
    if (quoted)
        fputc('"', to);
    if (begins_formula(text))
        fputc('\'', to);
    while (*text) {
        text += escape_next(unit, text);
        if (unit[0] == '"')
            fputc('"', to);
        fputs(unit, to);
    }
    if (quoted)
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
