/* typed.h -- numbers of the command line of train. */
#pragma once

#include <stddef.h>

typedef enum typed_type { TYPED_COUNT, TYPED_COUNT32, TYPED_NUMBER } typed_type; /* uint64_t, uint32_t, double */

/* typed_number -- a number from `least` to `most` into *to; text NULL: nothing is done. 0, or an exit code
 * after a message. */
int typed_number(const char *option, const char *text, typed_type type, double least, double most, void *to);
/* typed_numbers -- those of rows, in their order. */
typedef struct typed_row {
    const char *option, *text;
    typed_type type;
    double least, most;
    void *to;
} typed_row;
int typed_numbers(const typed_row *rows, size_t n);
/* typed_needs -- options that were given without what they go with. */
typedef struct typed_need {
    int given;
    const char *option;
    int met;
    const char *needs;
} typed_need;
int typed_needs(const typed_need *rows, size_t n);
/* typed_word -- which of the words it is, in *to; text NULL: nothing is done. `words` ends with NULL. */
int typed_word(const char *option, const char *text, const char *const *words, unsigned char *to);
/* typed_format -- the canonical name of a format, of less than `size` characters; text NULL: nothing is
 * done. */
int typed_format(const char *option, const char *text, char *to, size_t size);
