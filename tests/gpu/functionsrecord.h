/* functionsrecord.h -- records of mpsim-gpu-functions and their tables, read again. */
#pragma once

#include "unitrules.h"

typedef struct functions_record {
    char device[128], date[24];
    unit_tables tables;
    int has_digests[GPU_OPERATIONS], has_distances[GPU_FUNCTIONS];
    gpu_binade digests[GPU_OPERATIONS][GPU_BINADES];
    gpu_distance distances[GPU_FUNCTIONS][GPU_BINADES];
    uint64_t table_digest[UNIT_TABLES];
    size_t asked, failed, left_out; /* items that ended; failed; tables that the file does not have */
    char why[160];                  /* the first that failed, or what is wrong with the file */
} functions_record;

/* functions_read -- a record, and of its tables those that the file beside it has (NAME-functions.json, NAME-functions.tables). With
 * `only`, tables of that operation alone. 0, or -1 with a line in r->why: not such a record, or a damaged table. */
int functions_read(functions_record *r, const char *record, const char *tables, int only);
void functions_free(functions_record *r);
