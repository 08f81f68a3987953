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
 * machine_bad, machine_full -- fill the error: the pickle is not valid; the tree is too large, or there is no memory. Both
 * always -1. */
int machine_bad(machine *m, const char *why);
int machine_full(machine *m);

/* machine_push -- 0, or -1 with the error; r 0: what should be pushed found no room. */
int machine_push(machine *m, pickle_ref r);
/* machine_top -- the last n values of the stack; NULL with the error: there are fewer above the last mark. */
pickle_ref *machine_top(machine *m, size_t n);
/* machine_since_mark -- what stands above the last mark, which is removed; NULL with the error: there is no mark. */
pickle_ref *machine_since_mark(machine *m, size_t *n);

/* Instructions: u is the number behind the code, if it has one; arg comes from the table in machine.c. 0, or -1 with the
 * error. */
typedef int machine_op(machine *m, uint64_t u, int arg);
/* Of stack.c, literals.c, containers.c, objects.c: */
machine_op op_mark, op_pop, op_dup, op_put, op_get, op_memo_line;
machine_op op_none, op_int, op_long, op_float, op_number_line, op_text, op_bytes, op_text_line;
machine_op op_empty, op_collect, op_tuple, op_append, op_extend;
machine_op op_stack_global, op_global, op_object, op_obj, op_build, op_persistent;
