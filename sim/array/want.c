/* want.c -- see want.h. */
#include "want.h"

#include "array.h"
#include "lacking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *told(void *p)
{
    if (!p)
        (void)host_no_memory();
    return p;
}

void *want_memory(uint64_t n, size_t size)
{
    return told(array_zeros(n, size));
}

int want_room(void *items, size_t n, size_t more, size_t size)
{
    void *p;
    memcpy(&p, items, sizeof p);
    p = told(more > SIZE_MAX / size - n ? NULL : realloc(p, (n + more + !(n + more)) * size));
    if (!p)
        return -1;
    memcpy(items, &p, sizeof p);
    return 0;
}

char *want_text(const char *text)
{
    return told(strdup(text));
}

char *want_part(const char *text, size_t n)
{
    return told(strndup(text, n));
}

char *want_format_of(const char *format, va_list values)
{
    char *text;
    return told(vasprintf(&text, format, values) < 0 ? NULL : text);
}

char *want_format(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = want_format_of(format, values);
    va_end(values);
    return text;
}
