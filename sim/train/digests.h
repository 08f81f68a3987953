/* digests.h -- the digests of a run's steps, written and compared with a file; the file's
 * format is in train/digests.h. */
#pragma once

#include <train/digests.h>

typedef struct train_digests {
    FILE *to;             /* NULL: nothing is written                                            */
    int tensors;          /* write those of tensors, too                                         */
    int blocks;           /* write digests by blocks                                             */
    const char *path;     /* of the file to compare with; NULL: none                             */
    uint64_t compared;    /* steps                                                               */
    char difference[512]; /* the first; "": none                                              */
    char *text;           /* of the other file */
    FILE *from;
    train_digest_writer writer;
    train_digest_file file;
    train_step_digests now; /* of the current step                                            */
} train_digests;

/* train_digests_begin -- write the head, which names the engine's device unless it is "", open the other file and compare its
 * run, and tell the engine which digests they have: 0, or an exit code after a message. train_digests_finish -- write the last line.
 * train_digests_step -- after a step: write, compare. 0, or an exit code after a message; a
 * difference is no error: it is in d->difference. */
int train_digests_begin(train_digests *d, const train_run *r, train_engine *e);
int train_digests_step(train_digests *d, train *t, const train_step *s);
void train_digests_finish(train_digests *d);
void train_digests_clear(train_digests *d);
