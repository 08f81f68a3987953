/* digests.h -- the digests of a training's steps as a file: what two machines compare.
 *
 *   # mpsim-train-digests/2      /3: digests of tensors are mpsim_digest_blocks, not mpsim_digest
 *                                comments; a line of the run as text (train.h) each after "# run "
 *   # run net mlp
 *   1 40135c29 00f1e2d3c4b5a697  step (from 1), bits of the loss in binary32, digest of the step
 *     act:fc1 0011223344556677   two spaces: a tensor of the step above, its digest
 *   # end 8899aabbccddeeff       the last line: mpsim_digest_bytes of all bytes above it
 *
 * Numbers but the step are hexadecimal; a loss that is a NaN is 7fc00000. A file may have any
 * steps, in ascending order, each with its tensors or without.
 *
 * Functions return 0, or -1 with one line in `error` of TRAIN_ERROR bytes. */
#ifndef MPSIM_TRAIN_DIGESTS_H
#define MPSIM_TRAIN_DIGESTS_H

#include <train/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct train_tensor_digest {
    char name[2 * TRAIN_NAME];
    uint64_t digest;
} train_tensor_digest;

/* The digests after a step. All zeros before the first use. */
typedef struct train_step_digests {
    uint64_t step; /* from 1 */
    uint32_t loss; /* bits   */
    uint64_t all;
    train_tensor_digest *tensors;
    size_t count, room;
    int no_memory;
} train_step_digests;

int train_digests_take(train_step_digests *d, train *t, const train_step *s, char *error);
void train_digests_free(train_step_digests *d);

/* A file that is written. */
typedef struct train_digest_writer {
    FILE *to;               /* the caller's     */
    uint64_t bytes, digest; /* of what it holds */
} train_digest_writer;

/* train_digests_head -- the first lines of a file, with the whole run and what the digests of tensors are. train_digests_comment -- a line
 * of one's own, "# TEXT". train_digests_write -- a step; tensors: 1: with its tensors.
 * train_digests_end -- the last line. What fails shows in ferror(to), but for the head's memory. */
int train_digests_head(train_digest_writer *w, FILE *to, const train_run *r, train_digest_kind kind);
void train_digests_comment(train_digest_writer *w, const char *text);
void train_digests_write(train_digest_writer *w, const train_step_digests *d, int tensors);
void train_digests_end(train_digest_writer *w);

/* A file that is read. It is untrusted. */
typedef struct train_digest_file {
    FILE *from; /* the caller's                                                   */
    char *run;  /* its run as text, by train_run_write                            */
    train_digest_kind kind;
    uint64_t compared; /* steps                                                          */
    int io;            /* of an error: 1: of reading or memory, 0: of what the file says */
    uint64_t line_number;
    uint64_t bytes, digest; /* above the line that was read last                          */
    int have_line, newline; /* newline: behind it                                         */
    char line[1024];        /* read ahead */
} train_digest_file;

/* train_digest_file_open -- reads the file once to its end, which must be the one it was given, then
 * its head; `from` must be able to go back. After an error, too, _close is due. */
int train_digest_file_open(train_digest_file *d, FILE *from, char *error);
void train_digest_file_close(train_digest_file *d);

/* train_digest_file_compare -- a step, in ascending order, with the file's: 0 if they are equal or
 * the file has no such step (d->compared counts), 1 with `difference` saying what is not: the
 * first tensor, if the file has tensors. */
int train_digest_file_compare(train_digest_file *d, const train_step_digests *s, char *difference, size_t size,
                              char *error);

#ifdef __cplusplus
}
#endif

#endif
