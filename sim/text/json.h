/* json.h -- JSON from texts, where bad JSON and want of memory are different errors. */
#pragma once

#include <jansson.h>

/* json_text -- the value that n bytes are, as json_loadb has it, but at most 500 levels deep (*e may be NULL). NULL: they
 * are none; then *no_memory becomes 1 if there was no memory for it, and is left as it is otherwise. */
json_t *json_text(const char *text, size_t n, size_t flags, json_error_t *e, int *no_memory);
