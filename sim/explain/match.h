/* match.h -- which known messages a pasted text holds. */
#pragma once

#include "messages.h"

enum { MATCHES_MAX = 128 };

typedef struct match {
    const message *message;
    size_t score; /* letters of the message that were found */
} match;

/* explain_match_find -- the rows that the text holds, the longest first; a text that is a piece of a message, or a row's name, holds it.
 * Case, quotes, blanks, line breaks and what loggers put before a line do not count. How many. */
size_t explain_match_find(match found[MATCHES_MAX], const char *text);

/* explain_match_nearest -- the row that shares most of its words with the text, if that is more than half of them; or NULL. */
const message *explain_match_nearest(const char *text);
