/* json.c -- see json.h. */
#include "json.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* jansson goes down 2048 levels, which take 170 KiB of the stack: more than a thread has everywhere. */
enum { DEPTH_MAX = 500 };

/* Where the value that begins n bytes goes deeper; n: nowhere. */
static size_t too_deep(const char *text, size_t n)
{
    size_t depth = 0;
    int quoted = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = 1;
        } else if (c == '[' || c == '{') {
            if (++depth > DEPTH_MAX)
                return i;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
        if (depth == 0 && !quoted && !strchr(" \t\r\n", c)) /* its end, or no list */
            break;
    }
    return n;
}

json_t *json_text(const char *text, size_t n, size_t flags, json_error_t *e, int *no_memory)
{
    json_error_t own;
    const size_t deep = too_deep(text, n);
    if (deep < n) {
        json_error_t *const to = e ? e : &own;
        *to = (json_error_t){.line = -1, .column = -1, .position = deep < INT32_MAX ? (int)deep : INT32_MAX};
        snprintf(to->text, JSON_ERROR_TEXT_LENGTH - 1, "nested deeper than %d", DEPTH_MAX);
        to->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_stack_overflow;
        return NULL;
    }
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
