/* shift.h -- whether B has what A has at another step. */
#pragma once

#include "../input/names.h"
#include "verdict.h"

/* A step of A, open beside the one that is compared, and by how many steps B is known to be shifted. */
typedef struct shift {
    side *a;
    int64_t by;     /* steps of A's list; 0: not known */
    int tried;      /* tensors that were looked for    */
    size_t step, n; /* what is open: traces of its files */
    trace **traces;
    nameindex *names; /* of each                         */
} shift;

/* diff_shift_look -- whether B's tensor of a case is A's of another step: c->elsewhere. `step`: of A's list, the one that is
 * compared. The first differences of a run are looked for in the steps around; all later ones at the distance that was
 * found. 0, or -1 with *error. */
int diff_shift_look(shift *s, size_t step, verdict_case *c, trace_error *error);
void diff_shift_clear(shift *s);
