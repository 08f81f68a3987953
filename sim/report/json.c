/* json.c -- JSON values and CSV cells; see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../text/escape.h"

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

/* What jansson leaves as it is and a reader would not see, as \u escapes. Only strings hold it, and
 * jansson hands over whole characters. */
static int write_visibly(const char *text, size_t n, void *to)
{
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        const size_t bytes = escape_hidden(text + i, n - i, &c);
        if (bytes == 0) {
            i++;
            continue;
        }
        fwrite(text + from, 1, i - from, to);
        if (c > 0xffff) /* a pair of surrogates */
            fprintf(to, "\\u%04x", 0xd800u + ((c - 0x10000) >> 10));
        fprintf(to, "\\u%04x", c > 0xffff ? 0xdc00u + ((c - 0x10000) & 0x3ff) : c);
        i += bytes;
        from = i;
    }
    fwrite(text + from, 1, n - from, to);
    return ferror(to) ? -1 : 0;
}

void json_write(FILE *to, json_t *v)
{
    /* 17 significant digits round-trip. */
    (void)json_dump_callback(need(v), write_visibly, to, JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    json_decref(v);
}

void json_item(FILE *to, report_style style, size_t i, json_t *v)
{
    const int lines = style == REPORT_NDJSON;
    fputs(lines ? "" : i ? ",\n " : "\n ", to);
    json_write(to, v);
    fputs(lines ? "\n" : "", to);
}

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
