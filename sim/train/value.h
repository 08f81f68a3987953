/* value.h -- numbers of the command line of train. */
#ifndef MPSIM_SIM_TRAIN_VALUE_H
#define MPSIM_SIM_TRAIN_VALUE_H

#include <stddef.h>

typedef enum value_type { VALUE_COUNT, VALUE_COUNT32, VALUE_NUMBER } value_type; /* uint64_t, uint32_t, double */

/* value_read -- a number from `least` to `most` into *to; text NULL: nothing is done. 0, or an exit code
 * after a message. */
int value_read(const char *option, const char *text, value_type type, double least, double most,
               void *to);
/* value_word -- which of the words it is, in *to; text NULL: nothing is done. `words` ends with NULL. */
int value_word(const char *option, const char *text, const char *const *words, unsigned char *to);
/* value_format -- the canonical name of a format, of less than `size` characters; text NULL: nothing is
 * done. */
int value_format(const char *option, const char *text, char *to, size_t size);

#endif
