/* want.h -- memory for work that the program and the library share. Where there is none, host_no_memory (lacking.h) is called: the program
 * ends there; in the library the call fails, whatever is done with the NULL. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* want_memory -- n items of `size` bytes, all zero, to be freed; or NULL. */
void *want_memory(uint64_t n, size_t size);
/* want_room -- room for `more` items behind n of `size` bytes; `items` is the address of the pointer to them. 0; or -1, and the array is
 * as it was. */
int want_room(void *items, size_t n, size_t more, size_t size);

/* want_text -- a copy of a text; want_part: of its first n bytes, or of all of it; want_format: a text as asprintf's. Or NULL. */
char *want_text(const char *text);
char *want_part(const char *text, size_t n);
char *want_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *want_format_of(const char *format, va_list values) __attribute__((format(printf, 1, 0)));
