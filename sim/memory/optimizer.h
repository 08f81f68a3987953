/* optimizer.h -- the optimizers whose state is counted: those that mpsim steps, by the rows that say what they are,
 * and others by what their sources allocate. */
#pragma once

#include "../policy/plan.h"
#include "ledger.h"
#include "shape.h"

typedef struct optimizer_row {
    const char *name;
    mpsim_optim_algorithm algorithm; /* of vectors, too                                     */
    mpsim_optim_algorithm matrices;  /* of matrices                                         */
    uint8_t momentum, amsgrad;       /* of both, SGD and Adam                               */
    uint8_t shapes;                  /* shapes must be known                                */
    uint8_t no_moments;              /* `state` counts them                                 */
    const char *states, *formula;    /* moments in few bits: mpsim_states_find; NULL: none  */
    /* state of n elements of a parameter (the part of a rank); NULL: mpsim_optim_needs says it */
    void (*state)(ledger *l, const struct optimizer_row *o, const shape_tensor *t, uint64_t n,
                  const train_placement *place);
    const char *what, *source;
} optimizer_row;

/* Each 0, or -1 past the end and for a name that is not known. */
int memory_optimizer_at(size_t i, optimizer_row *to);
int memory_optimizer_find(const char *name, optimizer_row *to);
/* memory_optimizer_of_plan -- the policy's own, or adamw where it leaves that to the trace. */
optimizer_row memory_optimizer_of_plan(const plan *p);

/* memory_optimizer_settings -- of a parameter, for mpsim_optim_needs and train_bytes_add. */
mpsim_optim memory_optimizer_settings(const optimizer_row *o, const plan *p, int is_matrix);
