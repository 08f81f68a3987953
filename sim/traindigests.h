/* traindigests.h -- the digests of a training's steps as a file: what two machines compare.
 *
 *   # mpsim-train-digests/1      comments; a line of the run's plan each after "# plan "
 *   # plan net mlp
 *   1 40135c29 00f1e2d3c4b5a697  step (from 1), bits of the loss in binary32, digest of the step
 *     act:fc1 0011223344556677   two spaces: a tensor of the step above, its digest
 *
 * Numbers but the step are hexadecimal; a loss that is a NaN is 7fc00000. */
#ifndef MPSIM_SIM_TRAINDIGESTS_H
#define MPSIM_SIM_TRAINDIGESTS_H

#include "train/train.h"

typedef struct tensor_digest {
    char name[2 * TRAIN_NAME];
    uint64_t digest;
} tensor_digest;

typedef struct train_digests {
    FILE *to;          /* NULL: nothing is written                                            */
    int tensors;       /* write those of tensors, too                                         */
    const char *path;  /* of the file to compare with; NULL: none                             */
    FILE *from;
    uint64_t compared; /* steps                                                               */
    char difference[512]; /* the first; "": none                                              */
    tensor_digest *now;   /* of the step at hand                                              */
    size_t count, room;
    int no_memory;
    char line[1024]; /* of `from`, read ahead                                                 */
    int have_line;
    uint64_t line_number;
} train_digests;

/* train_digests_begin -- write the head, open the other file and compare its plan: 0, or an exit
 * code after a message.
 * train_digests_step -- after a step: write, compare. 0, or an exit code after a message; a
 * difference is no error: it stands in d->difference. */
int train_digests_begin(train_digests *d, const train_run *r);
int train_digests_step(train_digests *d, train *t, const train_step *s);
void train_digests_clear(train_digests *d);

#endif
