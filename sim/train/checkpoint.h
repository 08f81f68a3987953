/* checkpoint.h -- a training that is interrupted and goes on with the same bits.
 *
 * A checkpoint is a safetensors file: every tensor of the trainer's state in its format, and as
 * metadata the run (train_run_write), the rest of the state (train_state_save), the number of
 * steps and the digests of all this (owndigests.h). It is untrusted like any other file: names, shapes,
 * formats and numbers are checked, too. */
#pragma once

#include "store.h"

/* What a checkpoint knows beside the trainer. */
typedef struct checkpoint_note {
    uint64_t step;  /* steps done                              */
    uint64_t taken; /* of these: steps that the optimizer took */
} checkpoint_note;

/* A trainer's state at some time. All zeros at first. */
typedef struct checkpoint {
    stored_list list;
    char *state;
    checkpoint_note note;
} checkpoint;

/* train_checkpoint_take -- the state as it is now; what *c held before is freed. train_checkpoint_write: as a
 * file, complete or not at all. Both 0, or -1 with *error filled, which names `path`. */
int train_checkpoint_take(checkpoint *c, const char *path, train *t, const checkpoint_note *n, trace_error *error);
int train_checkpoint_write(const checkpoint *c, const char *path, const train_run *r, trace_error *error);
void train_checkpoint_clear(checkpoint *c);

/* train_checkpoint_read -- into a trainer that train_open made for *r: 0, or -1 with *error filled; the
 * trainer is of no use then. Refused unless the run is *r but for the number of steps; the line
 * says what differs. */
int train_checkpoint_read(const char *path, const train_run *r, train *t, checkpoint_note *n, trace_error *error);

/* train_checkpoint_run -- the run of a checkpoint: 0, or -1 with *error filled. */
int train_checkpoint_run(const char *path, train_run *r, trace_error *error);

/* train_run_text -- train_run_write as a string, to be freed.
 * train_run_difference -- the first lines, those of the number of steps left out, in which two such texts
 * differ, as "batch 32, not 64" (of a, of b), in `out`: 1; 0 if there are none. */
char *train_run_text(const train_run *r);
int train_run_difference(char *out, size_t size, const char *a, const char *b);
