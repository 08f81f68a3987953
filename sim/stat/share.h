/* share.h -- the share of the work that a shard has: k of n equal runs of the bytes of all files.
 *
 * Where a run begins and ends follows from the files' sizes alone: shard k of n has the bytes floor((k - 1) T / n)
 * to floor(k T / n) - 1 of the T bytes of all files, one behind the other in their order. So it has a run of files,
 * of the first and the last of which it may share the elements with others: of a file's s bytes those from a to
 * b - 1 stand for the bytes floor(a D / s) to floor(b D / s) - 1 of the D bytes that the elements of its selected
 * tensors take, one behind the other. An element belongs to the shard that has its first byte, a tensor without
 * elements to that of the byte behind it, and as a whole to that of its first byte a member of an archive, which is read
 * from its beginning only, and under block recipes a tensor that is copied in another order first. A file without bytes
 * belongs to the shard of the byte behind it; what is behind the end belongs to the last. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHARDS_MOST = 1000000 };

typedef struct share {
    uint64_t k, n;          /* 1 <= k <= n */
    const uint64_t *starts; /* of files: where each begins among all bytes, and behind them the end of the last */
    size_t files;
    uint64_t begin, end; /* the run */
    size_t first, last;  /* files `first` to `last` - 1 */
} share;

/* stat_share_parse -- "2/7". 0, or -1 if it is malformed. */
int stat_share_parse(uint64_t *k, uint64_t *n, const char *text);

/* stat_share_make -- `starts`, of files + 1, must outlive it. */
void stat_share_make(share *s, uint64_t k, uint64_t n, const uint64_t *starts, size_t files);

/* stat_share_owns -- whether the first byte of file i is in the run: it is counted there. */
int stat_share_owns(const share *s, uint64_t i);

/* What a shard has of a file whose selected elements take `bytes`: `low` to `high` - 1 of these, and with `rest`
 * what comes behind the last of them. */
typedef struct share_cut {
    uint64_t low, high;
    int rest;
} share_cut;

void stat_share_cut_file(const share *s, size_t i, uint64_t bytes, share_cut *cut);

/* stat_share_cut_tensor -- of a tensor of `count` elements of `width` bytes that begin at `at`, the run of them in the
 * cut: 1, or 0 if it has nothing of the tensor. `whole`: it is not divided. */
int stat_share_cut_tensor(const share_cut *cut, uint64_t at, uint64_t count, uint64_t width, int whole, uint64_t *first,
                          uint64_t *n);
