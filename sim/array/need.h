/* need.h -- memory that a command cannot do without: where there is none, the program ends with one line and exit code 4
 * (sim/process/memory.h), so nothing here returns NULL. Any thread may call. What a file says of its sizes may be more than a
 * machine has: readers ask array.h, and name the file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* need -- p itself, if it is not NULL: of functions that return NULL without memory. */
void *need(void *p);

/* need_memory -- n items of `size` bytes, all zero, to be freed. */
void *need_memory(uint64_t n, size_t size);
/* need_more -- as realloc: room for n items of `size` bytes. */
void *need_more(void *p, uint64_t n, size_t size);
/* need_room -- as array_room, for one item behind n. */
void need_room(void *items, size_t n, size_t size);

/* need_text -- a copy of a text; need_part: of its first n bytes, or of all of it. need_format: a text as asprintf's. */
char *need_text(const char *text);
char *need_part(const char *text, size_t n);
char *need_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* need_join -- n texts as one, `between` between them. */
char *need_join(const char *const *texts, size_t n, const char *between);

/* need_end_with -- what is called where there is no memory; it does not return. By default the program ends with 4. */
void need_end_with(void (*end)(void));
