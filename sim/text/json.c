/* json.c -- see json.h. */
#include "json.h"

#include <errno.h>
#include <stdio.h>

json_t *json_text(const char *text, size_t n, size_t flags, json_error_t *e, int *no_memory)
{
    json_error_t own;
    const int number = errno;
    errno = 0;
    json_t *v = json_loadb(text, n, flags, e ? e : &own);
    /* jansson calls some of them a syntax error, or gives no reason */
    if (!v &&
        (errno == ENOMEM || json_error_code(e ? e : &own) == json_error_out_of_memory || !(e ? e : &own)->text[0]))
        *no_memory = 1;
    if (!v && json_error_code(e ? e : &own) == json_error_null_character) /* jansson's words are of its flags */
        snprintf((e ? e : &own)->text, JSON_ERROR_TEXT_LENGTH - 1, "a string holds \\u0000");
    errno = number;
    return v;
}
