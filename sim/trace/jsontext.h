/* jsontext.h -- a JSON text that is walked piece by piece: only one key or value at a time becomes a tree, so that
 * a text of many tiny entries costs little more than its own size (safetensors.c, shards.c). */
#pragma once

#include "impl.h"

#include <jansson.h>

typedef struct json_cursor {
    trace *t;
    const trace_options *options;
    trace_error *error;
    const char *what; /* the text, for messages: "header"             */
    uint64_t before;  /* bytes of the file before the text            */
    char *text;
    size_t at, n;
} json_cursor;

uint64_t trace_cursor_offset(const json_cursor *c);
void trace_cursor_skip_space(json_cursor *c);
/* trace_cursor_more -- skip whitespace, behind which the text must go on. */
int trace_cursor_more(json_cursor *c);
/* trace_cursor_expect -- the next character past whitespace must be one of `wanted`; it is consumed. */
int trace_cursor_expect(json_cursor *c, const char *wanted, char *got);
/* trace_cursor_value -- one JSON value, which must begin with `first`, from at most `limit` bytes. */
json_t *trace_cursor_value(json_cursor *c, char first, size_t limit, const char *what);
/* trace_cursor_string -- one string, which takes the place of its own JSON text, which is at least two bytes longer:
 * names cost no memory beyond the text. */
const char *trace_cursor_string(json_cursor *c, size_t limit, const char *what);
