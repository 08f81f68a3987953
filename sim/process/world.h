/* world.h -- the processes that work on one command together: a single one (mpsim), or the ranks of an MPI job, whose
 * program brings the functions that connect them (sim/mpi).
 *
 * All do the same in the same order but with the data that they divide. What one of them fails at ends all: it stops with
 * its exit code, as a single process does; the others learn of it where they meet next, and that is every function
 * here that returns an int: 0, or the exit code of the process that failed, to stop with. Of several errors the one that a
 * single process would have come to first is reported, by one process. The report is the first one's. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What connects the processes. They end the program where they fail. */
typedef struct world {
    int rank, size;
    void (*least)(uint64_t *x, int n);                     /* of each number the least of all processes */
    void (*unite)(void *bytes, size_t n);                  /* the bits of all, or-ed                     */
    void (*all)(const void *mine, size_t n, void *of_all); /* n bytes of each, in the order of ranks     */
    void (*tell)(int from, void *bytes, size_t n);         /* those of one, to all                       */
    void (*send)(int to, const void *bytes, size_t n);
    void (*receive)(int from, void *bytes, size_t n);
    void (*end)(int code); /* of all processes, at once                  */
    const char *place;     /* "rank 2 on node7", for errors of a machine */
} world;

/* world_join -- once, by main, before there is any work. */
void world_join(const world *w);
int world_rank(void);
int world_size(void);

/* world_agree_words -- what the user has given has to be the same for all: 0, or EXIT_USAGE of all processes after one
 * line that names the first word that differs. */
int world_agree_words(int n, char *const *words);

/* world_pass -- n more pieces of work, which all processes count alike, are behind: the order of errors. */
void world_pass(uint64_t n);
/* world_expect -- a number that all processes have to agree on where they meet: they look at the same files. */
void world_expect(uint64_t x);

/* world_unite -- the bits of all processes, or-ed: of numbers that one has and that are 0 elsewhere. */
int world_unite(void *bytes, size_t n);
/* world_all -- n bytes of each, in the order of ranks. */
int world_all(const void *mine, size_t n, void *of_all);
/* world_collect -- the first process takes the bytes of all, its own first, one after the other: `take` gets them
 * and returns 0 or an exit code to stop with. Nobody sends before it is asked. */
int world_collect(const void *mine, size_t n, int (*take)(void *context, int rank, const void *bytes, size_t n),
                  void *context);

/* world_stream -- the same with n bytes of a file, from where it stands; those of all, one behind the other, go to `to` of
 * the first process. Who closes that looks for what failed there. Memory is that of a piece. */
int world_stream(FILE *mine, uint64_t n, FILE *to);

/* world_forget -- lines that were kept so far are reported in another way. */
void world_forget(void);
/* world_keep -- a line on standard error, if it is to wait until it is known which error is reported: then 1. */
int world_keep(const char *line);
/* world_meet -- the end of the work, with an exit code: that of all, and the lines that waited are written. */
int world_meet(int code);
/* world_end -- the end of the program, of all processes, at once; where memory is short. */
void world_end(int code);
