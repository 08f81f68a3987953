/* quantised.c -- which tensors of a file are codes and scales of one: see quantised.h.
 *
 * Every row of sim/quant's table is tried on every tensor that may hold codes: its name, its dtype, the tensors that have
 * to be beside it, their dtypes and shapes, and what the metadata say. Where a row fits, the tensor takes the place of its
 * codes, and its parts move behind the last entry, where they are found by who reads it. Codes whose scales have a shape
 * or a dtype that no row knows are an error; codes without scales, and the other way, are left as they are (a checkpoint
 * in pieces may have them in two of its files) and noted, unless the user said what the layout is. A file with tensors that
 * may be codes, none of which is of the layout that the user said, is an error too; one without any is as it is.
 *
 * Values are multiplied with the roundings of the layout's owner, in binary32. In a trace of pieces the whole is
 * matched, not a piece. */
#include "packed.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 64 };

static const char parts_word[] = "parts";

/* ---- a tensor ---- */

static int same_meaning(const quantised_fit *a, const quantised_fit *b)
{
    return a->q.said.element == b->q.said.element && a->q.said.scale == b->q.said.scale &&
           a->q.swizzled == b->q.swizzled && a->g.block_rows == b->g.block_rows && a->g.block_cols == b->g.block_cols &&
           a->q.form->tensor_scale == b->q.form->tensor_scale && memcmp(a->q.parts, b->q.parts, sizeof a->q.parts) == 0;
}

/* Whether so many entries, and what belongs to them, are within the bounds of trace_add. */
static int check_memory(const quantised_finder *f, size_t entries)
{
    const trace *t = f->t;
    if (t->arena_bytes + entries * sizeof *t->entries <= TRACE_MEMORY + (t->max_header - t->text_bytes))
        return 0;
    return trace_fail(t, f->error, TRACE_NO_OFFSET,
                      "its quantised tensors take more than %d MiB of memory (--stored parts reads what is stored)",
                      TRACE_MEMORY >> 20);
}

/* The tensor that was found; NULL without memory. */
static quantised *make(quantised_finder *f, const quantised_fit *x)
{
    trace *t = f->t;
    const char *codes = t->entries[x->q.parts[QUANT_CODES]].tensor.name;
    const uint32_t tensor_scale = x->q.parts[QUANT_TENSOR_SCALE];
    quantised *q = trace_alloc(t, sizeof *q);
    uint64_t *shape = trace_alloc(t, x->g.tensor.rank * sizeof *shape);
    const char *name = strcmp(f->name, codes) == 0 ? codes : trace_string(t, f->name, strlen(f->name));
    if (!q || !shape || !name)
        return NULL;
    memcpy(shape, x->g.tensor.sides, x->g.tensor.rank * sizeof *shape);
    *q = x->q;
    q->name = name;
    q->shape = shape;
    q->rank = x->g.tensor.rank;
    q->block_rows = quant_side(x->g.block_rows, x->g.rows);
    q->block_cols = quant_side(x->g.block_cols, x->g.cols);
    q->said.layout = q->form->layout;
    q->said.type = q->form->type;
    q->said.block_rows = x->g.block_rows;
    q->said.block_cols = x->g.block_cols;
    q->said.order = q->swizzled ? "swizzled" : "plain";
    q->said.evidence = f->layout[0] ? "--stored" : x->evidence;
    q->said.tensor_scale = tensor_scale == QUANTISED_ABSENT ? NULL : t->entries[tensor_scale].tensor.name;
    q->said.codes = q->said.element->name;
    q->said.scales = q->said.scale->name;
    for (int p = 0; p < QUANT_PARTS; p++)
        q->said.bytes += q->parts[p] == QUANTISED_ABSENT ? 0 : t->entries[q->parts[p]].bytes;
    return q;
}

/* Its entry, from that of its codes. */
static trace_entry entry_of(const quantised *q, const trace_entry *codes)
{
    trace_entry e = *codes;
    e.tensor = (trace_tensor){.name = q->name,
                              .dtype = codes->tensor.dtype,
                              .format = mpsim_format_find("binary32"),
                              .shape = q->shape,
                              .rank = q->rank,
                              .count = 1,
                              .offset = codes->tensor.offset,
                              .quantised = &q->said};
    for (size_t i = 0; i < q->rank; i++)
        e.tensor.count *= q->shape[i];
    e.bytes = 4 * e.tensor.count;
    return e;
}

static int refuse(const quantised_finder *f, const char *what)
{
    return trace_fail(f->t, f->error, TRACE_NO_OFFSET, "%s (--stored parts reads what is stored)", what);
}

/* What is stored under the name of the tensor itself: nothing, its codes, or the shell of an object. */
static int check_name(quantised_finder *f, uint32_t codes)
{
    const uint32_t same = trace_quantised_find(f, f->name);
    if (same == QUANTISED_ABSENT || same == codes)
        return 0;
    const trace_entry *e = &f->t->entries[same];
    if (e->tensor.format || f->hidden[same] || f->made[same]) {
        char what[600];
        snprintf(what, sizeof what, "tensor '%.250s' is there beside its codes '%.250s'", f->name,
                 f->t->entries[codes].tensor.name);
        return refuse(f, what);
    }
    f->hidden[same] = 1;
    return 0;
}

/* Whether the same tensor is there in codes of an earlier row of the layout, too: row by row before column by column. */
static int is_second(quantised_finder *f, const quantised_fit *x)
{
    quantised_fit other;
    for (size_t i = 0;; i++) {
        const quant_form *form = quant_form_at(i);
        if (form == x->q.form)
            return 0;
        if (strcmp(form->layout, x->q.form->layout) != 0 ||
            strcmp(form->suffix[QUANT_CODES], x->q.form->suffix[QUANT_CODES]) == 0 ||
            trace_quantised_part_name(form, QUANT_CODES, x->object, f->name, f->other, f->room) < 0)
            continue;
        const uint32_t codes = trace_quantised_find(f, f->other);
        if (codes != QUANTISED_ABSENT && trace_quantised_try(f, form, x->object, codes, &other))
            return 1;
    }
}

static int take(quantised_finder *f, uint32_t codes, quantised_fit *x)
{
    f->named = NULL; /* trying other rows has changed the name */
    trace_quantised_part_of(x->q.form, QUANT_CODES, x->object, f->t->entries[codes].tensor.name, f->name, f->room);
    for (int p = 0; p < QUANT_PARTS; p++)
        if (x->q.parts[p] != QUANTISED_ABSENT)
            f->hidden[x->q.parts[p]] = 1;
    if (is_second(f, x))
        return 0;
    if (check_name(f, codes))
        return -1;
    f->made[codes] = make(f, x);
    f->n_made++;
    return f->made[codes] ? check_memory(f, f->t->count) : trace_no_memory(f->t, f->error);
}

/* Codes whose scales are not there: an error where the user says the layout, else a note. */
static int note_missing(quantised_finder *f)
{
    if (f->missing[0] && f->layout[0])
        return refuse(f, f->missing);
    if (f->missing[0] && !f->t->lone[0])
        snprintf(f->t->lone, sizeof f->t->lone, "%.500s", f->missing);
    return 0;
}

/* A weight that is packed integers: 1; 0: it is not; -1: failed. */
static int look_at_packed(quantised_finder *f, uint32_t codes)
{
    quantised found;
    f->misfit[0] = f->missing[0] = 0;
    const int is = trace_packed_find(f, codes, &found);
    quantised *q = is > 0 && !f->no_memory ? trace_alloc(f->t, sizeof *q) : NULL;
    if (f->no_memory)
        return trace_no_memory(f->t, f->error);
    if (is <= 0 && f->misfit[0])
        return refuse(f, f->misfit);
    if (is <= 0)
        return is ? is : note_missing(f);
    if (!q || !(found.name = trace_string(f->t, f->name, strlen(f->name))))
        return trace_no_memory(f->t, f->error);
    *q = found;
    q->said.evidence = f->layout[0] ? "--stored" : "names and shapes";
    for (int p = 0; p < QUANTISED_PARTS; p++)
        if (q->parts[p] != QUANTISED_ABSENT) {
            f->hidden[q->parts[p]] = 1;
            q->said.bytes += f->t->entries[q->parts[p]].bytes;
        }
    f->made[codes] = q;
    f->n_made++;
    return check_name(f, codes) || check_memory(f, f->t->count) ? -1 : 1;
}

/* Whether a tensor is codes, and of what. */
static int look_at(quantised_finder *f, uint32_t codes)
{
    quantised_fit found, x;
    int fits = 0;
    const quant_form *form;
    f->misfit[0] = f->missing[0] = 0;
    f->weak = 0;
    for (size_t i = 0; (form = quant_form_at(i)); i++)
        for (int object = 0; object <= trace_quantised_is_object(f, form); object++) {
            const int is = trace_quantised_try(f, form, object, codes, &x);
            if (f->no_memory)
                return trace_no_memory(f->t, f->error);
            if (!is)
                continue;
            if (fits && !same_meaning(&found, &x)) {
                char what[600];
                snprintf(what, sizeof what, "tensor '%.250s' may be %s of %s or %s of %s: say which with --stored",
                         f->t->entries[codes].tensor.name, found.q.form->type, found.q.form->layout, form->type,
                         form->layout);
                return refuse(f, what);
            }
            if (!fits++)
                found = x;
        }
    if (fits)
        return take(f, codes, &found);
    if (f->misfit[0] && !(f->weak && f->missing[0]))
        return refuse(f, f->misfit);
    return note_missing(f);
}

/* ---- a trace ---- */

/* Words of packed integers, or whatever bitsandbytes has them in, by their name. */
static int may_be_packed(const trace_entry *e)
{
    static const char *const ends[] = {"weight", "weight_packed"};
    const size_t n = strlen(e->tensor.name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (n >= strlen(ends[i]) && strcmp(e->tensor.name + n - strlen(ends[i]), ends[i]) == 0)
            return 1;
    return 0;
}

static int may_be_codes(const trace_entry *e)
{
    const trace_tensor *x = &e->tensor;
    return x->format ? x->format->bits <= 8 : e->bytes <= x->count && strcmp(x->dtype, "BOOL") != 0;
}

/* The tensors that were made go where their codes were, all parts behind what is left. */
static int arrange(quantised_finder *f)
{
    trace *t = f->t;
    const size_t n = t->count;
    if (check_memory(f, 2 * n + f->n_made))
        return -1;
    trace_entry *all = malloc((n + f->n_made) * sizeof *all);
    uint32_t *to = malloc(n * sizeof *to);
    size_t seen = 0;
    if (!all || !to) {
        free(all);
        free(to);
        return trace_no_memory(t, f->error);
    }
    for (size_t i = 0; i < n; i++)
        if (f->made[i] || !f->hidden[i])
            all[seen++] = f->made[i] ? entry_of(f->made[i], &t->entries[i]) : t->entries[i];
    size_t end = seen;
    for (size_t i = 0; i < n; i++)
        if (f->hidden[i]) {
            to[i] = (uint32_t)end;
            all[end] = t->entries[i];
            all[end++].loose = 1;
        }
    for (size_t i = 0; i < n; i++)
        for (int p = 0; f->made[i] && p < QUANTISED_PARTS; p++) {
            uint32_t *part = &f->made[i]->parts[p];
            if (*part == QUANTISED_ABSENT)
                continue;
            *part = to[*part];
            all[*part].loose = 0;
        }
    free(to);
    free(t->entries);
    t->entries = all;
    t->count = seen;
    t->hidden = end - seen;
    t->quantised = trace_quantised_codes;
    t->room = n + f->n_made;
    return 0;
}

/* Where the user says the layout: scales whose codes are not there. */
static int look_for_codes(quantised_finder *f, uint32_t scales)
{
    const trace_entry *e = &f->t->entries[scales];
    const quant_form *form;
    for (size_t i = 0; (form = quant_form_at(i)); i++)
        for (int object = 0; object <= trace_quantised_is_object(f, form); object++) {
            if (strcmp(form->layout, f->layout) != 0 || !form->suffix[QUANT_CODES][0] ||
                !trace_quantised_dtype(form, QUANT_SCALES, e) ||
                !trace_quantised_part_of(form, QUANT_SCALES, object, e->tensor.name, f->name, f->room) ||
                trace_quantised_part_name(form, QUANT_CODES, object, f->name, f->other, f->room) < 0 ||
                trace_quantised_find(f, f->other) != QUANTISED_ABSENT)
                continue;
            char what[600];
            snprintf(what, sizeof what, "'%.250s' is there without '%.250s'", e->tensor.name, f->other);
            return refuse(f, what);
        }
    return 0;
}

/* Where the user says the layout: tensors that may be codes, and none that is. */
static int none_made(const quantised_finder *f)
{
    char what[2 * QUANTISED_WORD + 64];
    snprintf(what, sizeof what, "no tensor of the layout %s%s%s", f->layout, f->element[0] ? ":" : "", f->element);
    return refuse(f, what);
}

static int compare_entries(const void *pa, const void *pb)
{
    const trace_entry *const *a = pa, *const *b = pb;
    return strcmp((*a)->tensor.name, (*b)->tensor.name);
}

static int search(quantised_finder *f)
{
    trace *t = f->t;
    size_t longest = 0;
    for (size_t i = 0; i < t->count; i++) {
        const size_t n = strlen(t->entries[i].tensor.name);
        longest = n > longest ? n : longest;
        f->by_name[i] = &t->entries[i];
    }
    qsort(f->by_name, t->count, sizeof *f->by_name, compare_entries);
    f->room = longest + NAME_ROOM;
    if (!(f->name = malloc(f->room)) || !(f->other = malloc(f->room)))
        return trace_no_memory(t, f->error);
    if (trace_quantised_index_new(&f->metadata, t, f->error))
        return -1;
    for (size_t i = 0; i < t->count; i++) {
        const int packed = may_be_packed(&t->entries[i]) ? look_at_packed(f, (uint32_t)i) : 0;
        if (packed < 0 || (!packed && may_be_codes(&t->entries[i]) && look_at(f, (uint32_t)i)))
            return -1;
    }
    for (size_t i = 0; i < t->count && f->layout[0]; i++)
        if (!f->hidden[i] && look_for_codes(f, (uint32_t)i))
            return -1;
    if (!f->n_made && f->layout[0])
        return none_made(f);
    return f->n_made ? arrange(f) : 0;
}

/* "LAYOUT" or "LAYOUT:ELEMENT" */
static void split_word(quantised_finder *f, const char *word)
{
    const size_t n = word ? strcspn(word, ":") : 0;
    snprintf(f->layout, sizeof f->layout, "%.*s", (int)n, word ? word : "");
    snprintf(f->element, sizeof f->element, "%s", word && word[n] ? word + n + 1 : "");
}

int trace_find_quantised(trace *t, const trace_options *options, trace_error *error)
{
    quantised_finder f = {.t = t, .error = error};
    size_t i = 0;
    if ((options->quantised && strcmp(options->quantised, parts_word) == 0) || !t->type->all_elements ||
        !trace_is_flat(t))
        return 0;
    while (i < t->count && !may_be_codes(&t->entries[i]) &&
           (t->entries[i].tensor.format || !may_be_packed(&t->entries[i])))
        i++;
    if (i == t->count)
        return 0;
    split_word(&f, options->quantised);
    f.by_name = malloc(t->count * sizeof *f.by_name);
    f.made = calloc(t->count, sizeof *f.made);
    f.hidden = calloc(t->count, 1);
    const int result = f.by_name && f.made && f.hidden ? search(&f) : trace_no_memory(t, error);
    trace_quantised_index_free(&f.metadata);
    free(f.by_name);
    free(f.made);
    free(f.hidden);
    free(f.name);
    free(f.other);
    return result;
}

int trace_quantised_word(const char *word, char *why, size_t size)
{
    quantised_finder f = {.t = NULL};
    const quant_form *form;
    if (strcmp(word, parts_word) == 0)
        return 0;
    split_word(&f, word);
    if (trace_packed_word(word))
        return 0;
    if (quant_layout_find(f.layout) && (!strchr(word, ':') || mpsim_format_find(f.element)))
        return 0;
    if (quant_layout_find(f.layout)) {
        snprintf(why, size, "'%.64s' is not a format of elements", f.element);
        return -1;
    }
    snprintf(why, size, "'%.64s' is not one of %s", word, parts_word);
    for (size_t i = 0; (form = quant_layout_at(i)); i++)
        text_add(why, size, " %s", form->layout);
    text_add(why, size, "%s", trace_packed_words());
    return -1;
}
