/* gate.h -- the conditions of --fail-if: what makes stat fail after its report. */
#ifndef MPSIM_SIM_STAT_GATE_H
#define MPSIM_SIM_STAT_GATE_H

#include "report.h"

typedef struct gate_condition gate_condition;

typedef struct gate {
    const target_list *targets;
    gate_condition *conditions;
    size_t count;
} gate;

/* gate_make -- conditions as typed, separated by commas: [LEVEL:]NAME[OP VALUE[%]], LEVEL one of
 * tensor (if none is given), kind, step, total. With `counts` no errors of casts are known. 0, or an
 * exit code after a message. `targets` must outlive the gate. */
int gate_make(gate *g, const option_list *words, const target_list *targets, int counts);
void gate_clear(gate *g);

/* gate_see -- judge a group by the conditions of its level. */
void gate_see(gate *g, const group_label *label, const group *of);

/* gate_tell -- a line on standard error for each condition that holds somewhere, with the worst place;
 * EXIT_CHECK, or 0 if none does. */
int gate_tell(const gate *g);

#endif
