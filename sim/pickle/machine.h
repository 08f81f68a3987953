/* machine.h -- the pickle machine, for the files of its instructions: a stack, marks, a memo. */
#pragma once

#include "impl.h"

enum { SMALL = 256 }; /* integers from 0 on that are values once */

typedef struct machine {
    pickle *p;
    input in;
    const pickle_rules *rules;
    pool stack, marks, memo; /* pickle_ref, size_t: heights of the stack, pickle_ref */
    uint64_t memoized;
    uint64_t op_at; /* of the instruction that runs      */
    pickle_ref none, yes, no, empty, small[SMALL];
    int stopped;
} machine;

/* stack.c
 *
 * pickle_machine_bad, pickle_machine_full -- fill the error: the pickle is not valid; the tree is too large, or there is no memory. Both
 * always -1. */
int pickle_machine_bad(machine *m, const char *why);
int pickle_machine_full(machine *m);

/* pickle_machine_push -- 0, or -1 with the error; r 0: what should be pushed found no room. */
int pickle_machine_push(machine *m, pickle_ref r);
/* pickle_machine_top -- the last n values of the stack; NULL with the error: there are fewer above the last mark. */
pickle_ref *pickle_machine_top(machine *m, size_t n);
/* pickle_machine_since_mark -- the values above the last mark, which is removed; NULL with the error: there is no mark. */
pickle_ref *pickle_machine_since_mark(machine *m, size_t *n);

/* Instructions: u is the number behind the code, if it has one; arg comes from the table in machine.c. 0, or -1 with the
 * error. */
typedef int machine_op(machine *m, uint64_t u, int arg);
/* Of stack.c, literals.c, containers.c, objects.c: */
machine_op pickle_op_mark, pickle_op_pop, pickle_op_dup, pickle_op_put, pickle_op_get, pickle_op_memo_line;
machine_op pickle_op_none, pickle_op_int, pickle_op_long, pickle_op_float, pickle_op_number_line, pickle_op_text,
    pickle_op_bytes, pickle_op_text_line;
machine_op pickle_op_empty, pickle_op_collect, pickle_op_tuple, pickle_op_append, pickle_op_extend;
machine_op pickle_op_stack_global, pickle_op_global, pickle_op_object, pickle_op_obj, pickle_op_build,
    pickle_op_persistent;
