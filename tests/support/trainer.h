/* trainer.h -- a small run of a bundled policy, step by step. */
#pragma once

#include "sim/policy/policy.h"

#include <train/train.h>

typedef struct trainer {
    policy policy;
    train_run run;
    train_engine engine;
    train *train;
} trainer;

void trainer_open(trainer *t, const char *name, const char *net, uint64_t steps);
void trainer_close(trainer *t);
/* trainer_next -- the digest of one more step. */
uint64_t trainer_next(trainer *t);

/* trainer_path -- of a file in the folder of this program (replaykept.h); the last four are valid. */
const char *trainer_path(const char *name);
