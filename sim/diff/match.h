/* match.h -- which tensor of B is which of A, in a step. */
#pragma once

#include "side.h"

/* How two tensors were found to be the same one. */
typedef enum match_how {
    MATCH_NONE, /* only one side has it                                     */
    MATCH_NAME,
    MATCH_KIND,    /* other names of the same kind and parameter               */
    MATCH_PREFIX,  /* all names of one side have something in front            */
    MATCH_CONTENT, /* other names, the same numbers                            */
    MATCH_SHAPE    /* other names: the only ones left of their shape, in order */
} match_how;

extern const char *const diff_match_words[]; /* of MATCH_NAME and those behind it, up to NULL */

/* What is compared: tensor a of A and b of B; SIZE_MAX: it has none. */
typedef struct match_pair {
    size_t a, b;
    match_how how;
} match_pair;

typedef struct match_list {
    match_pair *pairs; /* in the order of A's tensors, then of B's that A has not */
    size_t n;
} match_list;

/* diff_match_groups -- pair the tensors of two steps, in the order they have. Content is read where names do not do.
 * 0, or an exit code after a message. `l` is to be cleared in both cases. */
int diff_match_groups(match_list *l, const side_group *a, const side_group *b);
void diff_match_clear(match_list *l);
