/* need.c -- see need.h. */
#include "need.h"

#include "array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void end_plainly(void)
{
    fputs("mpsim: out of memory\n", stderr);
    _Exit(4);
}

static void (*end)(void) = end_plainly;

void need_end_with(void (*other)(void))
{
    end = other;
}

void *need(void *p)
{
    if (!p)
        end();
    return p;
}

void *need_memory(uint64_t n, size_t size)
{
    return need(array_zeros(n, size));
}

void *need_more(void *p, uint64_t n, size_t size)
{
    return need(n > SIZE_MAX / size ? NULL : realloc(p, ((size_t)n + !n) * size));
}

void need_room(void *items, size_t n, size_t size)
{
    if (array_room(items, n, size))
        end();
}

char *need_text(const char *text)
{
    return need(strdup(text));
}

char *need_part(const char *text, size_t n)
{
    return need(strndup(text, n));
}

char *need_format(const char *format, ...)
{
    char *text = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        end();
    va_end(values);
    return text;
}

char *need_join(const char *const *texts, size_t n, const char *between)
{
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += strlen(texts[i]) + strlen(between);
    char *all = need_memory(room, 1), *at = all;
    for (size_t i = 0; i < n; i++)
        at = stpcpy(stpcpy(at, i ? between : ""), texts[i]);
    return all;
}
