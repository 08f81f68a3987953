/* jsonout.h -- JSON that is written as it comes: the bytes that json_write makes of the same tree, without the tree and its
 * memory. What fails shows in the stream.
 *
 * jansson is not used, since it leaves out members that it has no memory for. */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum { JSONOUT_DEEP = 31 };

typedef struct jsonout {
    FILE *to;
    int depth;
    uint32_t some; /* bit k: at depth k there is a member already */
} jsonout;

/* Of `key`, plain ASCII, in an object; NULL in an array, and for what stands alone. An object begins with '{' and ends with '}', an array
 * with brackets; at most JSONOUT_DEEP of them are in one another. Text that is NULL is null; what is not UTF-8 is written as
 * escape_text makes it. NaN and infinities are the strings "NaN", "Infinity", "-Infinity". */
void jsonout_begin(jsonout *o, const char *key, char bracket);
void jsonout_end(jsonout *o, char bracket);
void jsonout_text(jsonout *o, const char *key, const char *text);
void jsonout_count(jsonout *o, const char *key, uint64_t n);
void jsonout_integer(jsonout *o, const char *key, int64_t n);
void jsonout_real(jsonout *o, const char *key, double x);
void jsonout_boolean(jsonout *o, const char *key, int is);
void jsonout_null(jsonout *o, const char *key);
void jsonout_value(jsonout *o, const char *key, const json_t *v);

/* jsonout_visibly -- n bytes that jansson has written, whole characters: those that a reader would not see become \u escapes. For
 * json_dump_callback: 0, or -1 if the stream has failed. */
int jsonout_visibly(const char *text, size_t n, void *to);
