/* groups.h -- the parameter groups of a transformer's training, as a trace says them. */
#pragma once

#include <train/train.h>

/* train_groups_json -- mpsim.groups: what decays, then what does not (all decay: one group), at the step's
 * learning rate, after `taken` steps of the optimizer. train_tied_json -- mpsim.tied. To be freed. */
char *train_groups_json(const train_run *r, const mpsim_optim *o, double lr, uint64_t taken);
char *train_tied_json(void);
