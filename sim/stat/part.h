/* part.h -- parts of a report: the file format mpsim-part/3, written and read, in files or in memory.
 *
 * A part is the line "mpsim-part/3" (4 where there are block recipes), a head and sections, all of them records: a tag of one byte, the length of
 * what follows (4 bytes, little-endian), and that; numbers and texts as bytes.h has them. The head says what was
 * asked for, of what, and how many sections follow. A section is what one shard found, in the order of the files:
 *
 *   'S'  begins it: k of n
 *   'F'  a file is open: its place among all, its path, its step, how many of its tensors are selected; and where it
 *        is counted what tells that another file is the same step in another form (twice_look)
 *   'T'  a tensor, or a piece of one: name, dtype, kind, shape, elements; if it has numbers, the records of
 *        pack.h follow, else why they were not read (1 and 2, which are read, too: not said)
 *   'O'  a file is no file of tensors: its place
 *   'X'  a file failed (or, place 0, what stands for files): its place and one, its path, exit code and message
 *   'Z'  ends it: how many files were counted, and a digest of all bytes of the section before that
 *
 * The digest of the head stands at its end. Whoever adds a record, or a field, makes it version 5.
 *
 * What is here holds no global state: writers and readers may be used by several threads, each its own. */
#pragma once

#include "../input/twice.h"
#include "pack.h"
#include "tally.h"
#include "walk.h"

#include <stdio.h>

/* ---- the head ---- */

typedef struct part_pair {
    const char *name, *value;
} part_pair;

typedef struct part_pairs {
    part_pair *items;
    size_t count;
} part_pairs;

typedef struct part_head {
    uint64_t sections, shards;     /* sections: in this part                            */
    const char *version;           /* of the program                                    */
    uint64_t files, bytes, digest; /* inputs: how many, of how many bytes; of paths and sizes */
    const char *first;             /* the first path                                    */
    part_pairs words;              /* the settings: stat_settings_record                 */
    part_pairs formats;            /* what their formats and roundings are              */
    int recipes;                   /* whether there are block recipes: mpsim-part/4     */
    void *memory;                  /* where all the texts are; NULL: with the caller    */
} part_head;

void stat_part_head_clear(part_head *h);
/* stat_part_describe -- what a target is, all of it, as text: format and rounding but for the scale. Returns out. */
const char *stat_part_describe(char *out, size_t size, const mpsim_format *f, const mpsim_rounding *r);
/* stat_part_describe_block -- the same of a recipe. */
const char *stat_part_describe_block(char *out, size_t size, const block_target *t);

/* ---- writing ---- */

typedef struct part_writer {
    FILE *to;
    array_bytes b;       /* the record at hand                          */
    uint64_t at, digest; /* of the section: its bytes so far, of these  */
} part_writer;

/* In this order. stat_part_write_finish: 0, or -1 if memory ran out (failed writes are seen where `to` is closed). */
void stat_part_write_head(part_writer *w, FILE *to, const part_head *head);
void stat_part_write_section(part_writer *w, uint64_t k, uint64_t n);
void stat_part_write_file(part_writer *w, uint64_t i, const char *path, uint64_t tensors, const twice_look *look);
void stat_part_write_tensor(part_writer *w, const stat_place *place, const walk_piece *piece, const group *of);
void stat_part_write_failed(part_writer *w, uint64_t place, const char *path, const trace_error *why);
void stat_part_write_other(part_writer *w, uint64_t i);
void stat_part_write_end(part_writer *w, uint64_t counted);
int stat_part_write_finish(part_writer *w);

/* ---- reading ---- */

/* A part as it comes: the file `name`; or an open file, or n bytes, which `name` is the name of in messages. */
typedef struct part_source {
    const char *name;
    const void *bytes; /* NULL: a file */
    size_t n;
    FILE *file; /* the open one; NULL: to be opened; one reader at a time goes through it */
} part_source;

typedef struct part_reader {
    const part_source *source;
    FILE *from;           /* NULL: in memory          */
    int fd, has_fd;       /* under it                 */
    uint64_t place, size; /* next byte; of all        */
    unsigned version;
    uint64_t at, digest; /* of the section, as above */
    struct part_buffer {
        unsigned char *p;
        size_t room;
    } record, tensor; /* the last record; the last of a tensor, while its group is read */
} part_reader;

/* stat_part_open -- 0, or -1 with *error: no part, of a newer version. stat_part_close in any case. */
int stat_part_open(part_reader *r, const part_source *source, trace_error *error);
void stat_part_close(part_reader *r);
/* stat_part_seek -- go to a place where a section began. */
int stat_part_seek(part_reader *r, uint64_t place, trace_error *error);

int stat_part_read_head(part_reader *r, part_head *head, trace_error *error);

/* A record, whose texts live until the next is read; those of a tensor until its group was. */
typedef struct part_record {
    int tag;
    uint64_t k, n;              /* S */
    uint64_t file;              /* F O: its place; X: its place and one, or 0 */
    const char *path, *message; /* F X; X */
    int64_t step;               /* F */
    uint64_t tensors;           /* F: that are selected there */
    uint64_t form;              /* F: as layout and seen, of twice_look: the tensors are in `body`, 8 bytes each */
    const char *layout;
    size_t seen;
    int exit;            /* X */
    trace_tensor tensor; /* T */
    uint64_t shape[64];
    const char *kind;    /* T: or NULL */
    int scaled, numbers; /* T */
    walk_piece piece;    /* T: but for the file */
    uint64_t counted;    /* Z */
    taker body;          /* F: see above; what of pack.h it is, where it is of that */
} part_record;

/* stat_part_next -- the next record, checked as far as it goes by itself; the digest at the end of a section. 0, or -1
 * with *error. stat_part_has_more: whether something follows. */
int stat_part_next(part_reader *r, part_record *record, trace_error *error);
int stat_part_has_more(const part_reader *r);
/* stat_part_copy -- the next n bytes, as they are, to `to`. */
int stat_part_copy(part_reader *r, uint64_t n, FILE *to, trace_error *error);
/* stat_part_take_group -- the records of a tensor that has numbers, into *of. 0, or -1 with *error. */
int stat_part_take_group(part_reader *r, const part_record *tensor, group *of, trace_error *error);
/* stat_part_damaged -- fill *error: the part is not what was written; -1. */
int stat_part_damaged(const part_reader *r, const char *what, trace_error *error);
