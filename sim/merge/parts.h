/* parts.h -- parts of one report: that they belong together, and where in them each shard is. */
#pragma once

#include "../stat/part.h"

/* What one shard found. */
typedef struct section {
    size_t source;
    uint64_t place, bytes; /* in it               */
    uint64_t k, counted;   /* shard; files of its */
} section;

typedef struct parts {
    const part_source *sources;
    part_head head;    /* of the first; `sections`: of all */
    section *sections; /* in the order of the shards       */
    size_t count;
    uint64_t files; /* that the shards counted */
} parts;

/* merge_parts_read -- read all parts once: digests, that no shard is there twice, and that all are of the same report.
 * 0, or an exit code after a message that names the part; merge_parts_clear in any case. */
int merge_parts_read(parts *p, const part_source *sources, size_t n);
void merge_parts_clear(parts *p);

/* merge_parts_complete -- whether no shard is missing: 0, or EXIT_DATA after a message. */
int merge_parts_complete(const parts *p);

/* merge_parts_settings -- what the head says, whose memory the settings and targets use: 0, or an exit code after a
 * message; the formats are those of this program. To be cleared in any case. */
int merge_parts_settings(const parts *p, stat_settings *settings, target_list *targets);
