/* join.c -- see join.h.
 *
 * Each tensor comes whole, or in pieces at the end of one shard and the beginning of the next ones; of a file that
 * several shards read each says that it is open, or that it failed. A file that failed for one of them has failed:
 * its tensors before that count, and none after it. */
#include "join.h"

#include "../array/need.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct joining {
    tally *to;
    part_reader reader;
    trace_error error;
    uint64_t file; /* the next place among all files that is due; file - 1: the one at hand */
    char *path;    /* of it */
    int64_t step;
    uint64_t tensors, next; /* of it: how many are selected, which is due */
    int failed;             /* it did */
    group piece, all;
    uint64_t end; /* of the tensor at hand: elements so far, if it has begun */
    int begun;
    char *name;
    twice_forms twice;
    char *first; /* path of the first file of tensors */
} joining;

static int damaged(joining *j, const char *what)
{
    stat_part_damaged(&j->reader, what, &j->error);
    return fail(j->error.exit, "%s", j->error.text);
}

static int keep(char **to, const char *text)
{
    char *copy = need_text(text);
    free(*to);
    *to = copy;
    return 0;
}

/* A file of tensors has come. */
static int keep_path(joining *j, const char *path)
{
    const int code = j->first ? 0 : keep(&j->first, path);
    return code ? code : keep(&j->path, path);
}

/* All of the file at hand was told. */
static int end_file(joining *j)
{
    if (!j->failed && (j->begun || j->next != j->tensors))
        return damaged(j, "not all of a file is in the parts, which are not of one division");
    return 0;
}

/* A record of file i: whether another file begins. */
static int begin_file(joining *j, uint64_t i, int *begins)
{
    *begins = i + 1 != j->file || j->file == 0;
    if (!*begins)
        return 0;
    if (i != j->file)
        return damaged(j, "a file is not the next one, the parts are not of one division");
    const int code = j->file ? end_file(j) : 0;
    j->file++;
    j->failed = j->begun = 0;
    j->tensors = j->next = 0;
    free(j->path);
    j->path = NULL;
    return code;
}

/* Whether a step is there in two forms. */
static void look_twice(joining *j, const part_record *x)
{
    twice_look l = {x->path, x->layout, x->step, x->form, need_memory(x->seen, sizeof *l.tensors), x->seen};
    taker t = x->body;
    for (size_t i = 0; i < x->seen; i++)
        l.tensors[i] = stat_take_digest(&t);
    twice_see_look(&j->twice, &l);
    free(l.tensors);
}

static int take_file(joining *j, const part_record *x)
{
    int begins, code = begin_file(j, x->file, &begins);
    if (code || j->failed)
        return code;
    if (!begins)
        return j->path && strcmp(j->path, x->path) == 0 && j->step == x->step && j->tensors == x->tensors
                   ? 0
                   : damaged(j, "a file is not what it is in the part before");
    j->step = x->step;
    j->tensors = x->tensors;
    stat_tally_file(j->to, x->path, x->tensors);
    look_twice(j, x);
    return keep_path(j, x->path);
}

static int take_failed(joining *j, const part_record *x)
{
    int begins, code = x->file ? begin_file(j, x->file - 1, &begins) : 0;
    if (code || (x->file && j->failed))
        return code;
    fail(x->exit, "%s", x->message);
    stat_tally_failed(j->to);
    if (!x->file)
        return 0;
    j->failed = 1;
    j->begun = 0;
    return keep_path(j, x->path);
}

/* A file that holds no tensors. */
static int take_other(joining *j, const part_record *x)
{
    int begins;
    const int code = begin_file(j, x->file, &begins);
    return code || begins || !j->path ? code : damaged(j, "a file is not what it is in the part before");
}

/* Whether a piece is what follows. */
static int is_next(const joining *j, const part_record *x)
{
    if (j->file == 0 || x->piece.ordinal != j->next || j->next >= j->tensors)
        return 0;
    if (!x->numbers && (x->piece.first || x->piece.n != x->tensor.count))
        return 0;
    return j->begun ? x->numbers && x->piece.first == j->end && strcmp(j->name, x->tensor.name) == 0
                    : x->piece.first == 0;
}

/* A piece was added to j->all, or is all of it. */
static int tell(joining *j, const part_record *x, const group *of)
{
    const stat_place place = {j->path, x->kind, j->step, &x->tensor};
    j->begun = 0;
    j->next++;
    return stat_tally_tensor(j->to, &place, of);
}

static int take_tensor(joining *j, const part_record *x)
{
    if (x->numbers && stat_part_take_group(&j->reader, x, &j->piece, &j->error))
        return fail(j->error.exit, "%s", j->error.text);
    if (j->failed)
        return 0;
    if (!is_next(j, x))
        return damaged(j, "a tensor does not go on where the part before ends");
    const int whole = x->piece.n == x->tensor.count;
    if (!x->numbers || whole)
        return tell(j, x, x->numbers ? &j->piece : NULL);
    if (!j->begun)
        stat_group_reset(&j->all);
    stat_group_merge(&j->all, &j->piece);
    j->all.tensors = 1;
    j->all.scaled = j->piece.scaled;
    j->end = x->piece.first + x->piece.n;
    j->begun = 1;
    return j->end == x->tensor.count ? tell(j, x, &j->all) : keep(&j->name, x->tensor.name);
}

static int take(joining *j, const part_record *x)
{
    switch (x->tag) {
    case 'F':
        return take_file(j, x);
    case 'O':
        return take_other(j, x);
    case 'X':
        return take_failed(j, x);
    case 'T':
        return take_tensor(j, x);
    default:
        return damaged(j, "a record that is not known here");
    }
}

static int take_section(joining *j, const section *s)
{
    part_record x;
    if (stat_part_seek(&j->reader, s->place, &j->error) || stat_part_next(&j->reader, &x, &j->error))
        return fail(j->error.exit, "%s", j->error.text);
    for (;;) {
        if (stat_part_next(&j->reader, &x, &j->error))
            return fail(j->error.exit, "%s", j->error.text);
        if (x.tag == 'Z')
            return 0;
        const int code = take(j, &x);
        if (code)
            return code;
    }
}

/* All sections; parts are opened one at a time. */
static int take_all(joining *j, const parts *p)
{
    const part_source *open = NULL;
    int code = 0;
    for (size_t i = 0; i < p->count && !code; i++) {
        const part_source *from = &p->sources[p->sections[i].source];
        if (from != open) {
            stat_part_close(&j->reader);
            if (stat_part_open(&j->reader, from, &j->error))
                code = fail(j->error.exit, "%s", j->error.text);
            open = from;
        }
        if (!code)
            code = take_section(j, &p->sections[i]);
    }
    if (!code && j->file != p->head.files)
        code = damaged(j, "not all files are in the parts");
    if (!code && j->file)
        code = end_file(j);
    return code;
}

int merge_join_parts(const parts *p, const target_list *targets, int histogram, tally *to, char **first)
{
    joining j = {.to = to};
    (void)stat_group_init(&j.piece, targets, histogram);
    (void)stat_group_init(&j.all, targets, histogram);
    const int code = take_all(&j, p);
    if (!code)
        twice_tell(&j.twice);
    twice_clear(&j.twice);
    stat_part_close(&j.reader);
    stat_group_clear(&j.piece);
    stat_group_clear(&j.all);
    free(j.path);
    free(j.name);
    *first = j.first;
    return code;
}
