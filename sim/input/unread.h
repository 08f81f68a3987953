/* unread.h -- the tensors that a command selected and did not read as numbers: for reports, and for gates, which do not pass
 * where they could not look at floating-point numbers or packed weights. */
#pragma once

#include "../record/record.h"
#include "../trace/trace.h"

/* Tensors of one name, dtype and reason; the texts are its own. */
typedef struct unread_item {
    char *name, *dtype, *reason, *file; /* file: the first that has it */
    uint64_t tensors, at;               /* at: the place of the first in the order in which they came */
    int unseen;
} unread_item;

/* All zero is empty. */
typedef struct unread_list {
    unread_item *items;
    size_t count, full; /* full: items that are there before equal ones are put together */
    uint64_t tensors, unseen;
    char first[640]; /* the first that is unseen, and why */
} unread_list;

enum { UNREAD_SENTENCE = 800 }; /* room for a sentence about the first */

/* unread_add -- a tensor of a file, if its numbers were not read; its texts are copied. 0, or an exit code after a message. */
int unread_add(unread_list *l, const char *file, const trace_tensor *x);
void unread_clear(unread_list *l);

/* unread_settle -- once all are added: equal ones become one, in the order in which they came. */
void unread_settle(unread_list *l);

extern const record_kind unread_record;      /* of an unread_item */
extern const record_kind unread_list_record; /* of a settled unread_list: its member "unread" */
/* unread_put -- a settled list as the member "unread" of an object. */
void unread_put(jsonout *o, const unread_list *l);

/* unread_sentence -- what is unseen, without a full stop; NULL if nothing is. unread_print -- the same as a line. */
const char *unread_sentence(char *out, size_t size, const unread_list *l);
void unread_print(FILE *to, const unread_list *l);
/* unread_gate -- EXIT_PARTIAL after a message if something is unseen, for a command with conditions; else 0. */
int unread_gate(const unread_list *l, const char *verb);
/* unread_lacks -- the same for an output that does not hold what is unseen. */
int unread_lacks(const unread_list *l, const char *verb);
