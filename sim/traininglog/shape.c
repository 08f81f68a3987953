/* shape.c -- see shape.h. */
#include "impl.h"

#include "../array/need.h"

#include <stdlib.h>
#include <string.h>

/* MANY: as often a line stands that says the same of every step. */
enum { MANY = 3, ROWS_MAX = 1 << 20 };

enum { VARIES = 1, REPEATS = 2, MEASURES = 4, ASKED = 8, SETS = 16 };

/* ---- tables of hashes ---- */

typedef struct shape_row {
    uint64_t hash, values;
    unsigned count, traits; /* count 0: free */
} shape_row;

static shape_row *row_of(shape_row *rows, size_t size, uint64_t hash)
{
    size_t i = (size_t)(hash >> 7) & (size - 1);
    while (rows[i].count && rows[i].hash != hash)
        i = (i + 1) & (size - 1);
    return &rows[i];
}

/* The row of a hash, which may be a new one; NULL: there are too many. */
static shape_row *row_for(shape_row **rows, size_t *count, size_t *size, uint64_t hash)
{
    if (2 * *count >= *size && *size < ROWS_MAX) {
        const size_t larger = *size ? 4 * *size : 1024;
        shape_row *new = need_memory(larger, sizeof *new);
        for (size_t i = 0; i < *size; i++)
            if ((*rows)[i].count)
                *row_of(new, larger, (*rows)[i].hash) = (*rows)[i];
        free(*rows);
        *rows = new;
        *size = larger;
    }
    shape_row *row = row_of(*rows, *size, hash);
    if (!row->count && 2 * *count >= *size)
        return NULL;
    *count += !row->count;
    row->hash = hash;
    row->count += row->count < 1u << 30;
    return row;
}

static unsigned traits_of(shape_row *rows, size_t size, uint64_t hash)
{
    return size ? row_of(rows, size, hash)->traits : 0;
}

/* ---- lines ---- */

static void mark_keys(log_shapes *s, const fields *f, unsigned traits)
{
    for (size_t i = 0; i < f->count; i++) {
        shape_row *key = row_for(&s->keys, &s->keys_count, &s->keys_size, f->at[i].key);
        if (key)
            key->traits |= traits;
    }
}

static int has_place(const fields *f)
{
    unsigned place = 0;
    for (size_t i = 0; i < f->count; i++)
        place |= f->at[i].traits & FIELD_PLACE;
    return place != 0;
}

uint64_t traininglog_shapes_see(log_shapes *s, const char *line, int setting, int (*measures)(const char *line))
{
    fields f;
    traininglog_fields_find(&f, line);
    shape_row *row = f.count ? row_for(&s->rows, &s->rows_count, &s->rows_size, f.shape) : NULL;
    if (!row)
        return f.shape;
    if (row->count == 1)
        row->values = f.values;
    row->traits |= setting && !has_place(&f) ? SETS : 0;
    const unsigned before = row->traits;
    row->traits |= row->values != f.values ? VARIES : row->count >= MANY ? REPEATS : 0;
    if (row->traits == before)
        return f.shape;
    if (!(row->traits & ASKED))
        row->traits |= ASKED | (measures(line) ? MEASURES : 0);
    mark_keys(s, &f, row->traits);
    if (row->traits & MEASURES)
        s->measured |= row->traits & VARIES ? VARIES : REPEATS;
    s->plain |= row->traits & MEASURES && row->traits & VARIES && !setting;
    return f.shape;
}

/* What makes a line, or a name, one of a step. Settings may stand twice before the steps, and otherwise each time. */
static int is_live(const log_shapes *s, unsigned traits, int begun)
{
    if (traits & SETS && s->plain && !begun)
        return 0;
    return traits & VARIES || (traits & REPEATS && (begun || !(s->measured & VARIES)));
}

/* Whether a line is one with which the steps begin. */
static int begins(const log_shapes *s, const fields *f, unsigned traits)
{
    return is_live(s, traits, 0) && (traits & MEASURES || has_place(f));
}

int traininglog_shapes_is_live(const log_shapes *s, uint64_t shape)
{
    const unsigned traits = traits_of(s->rows, s->rows_size, shape);
    return is_live(s, traits, 1) && traits & MEASURES;
}

void traininglog_shapes_mask(const log_shapes *s, char *line, int *begun, int setting)
{
    fields f;
    size_t live = 0;
    int known[FIELDS_MAX];
    traininglog_fields_find(&f, line);
    const unsigned traits = traits_of(s->rows, s->rows_size, f.shape);
    *begun |= begins(s, &f, traits);
    if (is_live(s, traits, *begun) || (!setting && (!s->measured || (*begun && !(s->measured & VARIES)))))
        return;
    for (size_t i = 0; i < f.count; i++) {
        known[i] = is_live(s, traits_of(s->keys, s->keys_size, f.at[i].key), *begun);
        live += (size_t)known[i];
    }
    const unsigned spared = setting ? 0 : *begun ? FIELD_FRACTION | FIELD_PLACE | FIELD_LOST : FIELD_FRACTION;
    for (size_t i = 0; i < f.count; i++)
        if (!(f.at[i].traits & spared) && !(known[i] && !setting && (*begun || 2 * live >= f.count)))
            memset(line + f.at[i].begin, '?', f.at[i].end - f.at[i].begin);
}

void traininglog_shapes_clear(log_shapes *s)
{
    free(s->rows);
    free(s->keys);
    *s = (log_shapes){.measured = 0};
}
