/* messages.h -- messages of frameworks about mixed precision, a row each. */
#pragma once

#include <stddef.h>

enum { MESSAGE_FORMS = 2, MESSAGE_SEE = 2 };

typedef struct message {
    const char *name, *framework;
    const char *forms[MESSAGE_FORMS]; /* its fixed parts, with "..." for what varies; NULL: no other wording */
    const char *source;               /* who says it: file, function, version */
    const char *meaning, *cause, *cure;
    const char *policy;           /* of data/policies, which does it right; or NULL */
    const char *see[MESSAGE_SEE]; /* commands of mpsim that show it, or NULL */
} message;

extern const message explain_messages[]; /* ends with a NULL name */
