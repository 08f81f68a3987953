/* gate.h -- the conditions of --fail-if on advice. */
#pragma once

#include "../stat/limit.h"
#include "advise.h"

enum { GATE_MOST = 16 };

typedef struct gate_condition {
    char text[64]; /* as typed */
    int what;
    limit than;
} gate_condition;

typedef struct gate {
    gate_condition items[GATE_MOST];
    size_t count;
} gate;

/* advise_gate_make -- conditions as typed, separated by commas: NAME[OP VALUE[%]]. 0, or an exit code after a message. */
int advise_gate_make(gate *g, const option_list *words);
/* advise_gate_tell -- a line for each condition that holds; EXIT_CHECK, or 0 if none does. */
int advise_gate_tell(const gate *g, const advise *a);
