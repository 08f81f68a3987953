/* shard.h -- the parts of a report: what each shard of the work finds, for ../merge to put together.
 *
 * stat_shards_open looks for the files and their sizes, and opens none; then any shards may be written, one after the
 * other, each of which opens its own files only. Everything is one thread's;
 * the work in stat_shards_write is done by all threads of lib/threads/parallel. For MPI: every rank opens with the same
 * settings and operands and n = the number of ranks (or a multiple, for balance), writes its shards into memory
 * (open_memstream), and one rank gives what it gathered to merge_report (sim/merge/merge.h), in any order. */
#pragma once

#include "part.h"

typedef struct shards {
    const stat_settings *settings;
    char *names; /* text of the rules for names */
    target_list targets;
    input in;
    uint64_t *starts; /* of files among all bytes, and the end of the last */
    uint64_t n;
    part_head head;
} shards;

/* stat_shards_open -- 0, or an exit code after a message; stat_shards_close in any case. `settings` and `operands` must
 * outlive it. */
int stat_shards_open(shards *s, const stat_settings *settings, char **operands, int count, uint64_t n);
void stat_shards_close(shards *s);

/* stat_shards_write -- the part of shard k, 1 <= k <= n, to `to`, all of it; who closes `to` looks for what failed
 * there. 0, EXIT_PARTIAL if files failed with --keep-going, or another exit code after a message: then what was
 * written is no part. */
int stat_shards_write(shards *s, uint64_t k, FILE *to);
