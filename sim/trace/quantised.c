/* quantised.c -- which tensors of a file are codes and scales of one: see quantised.h.
 *
 * Every row of sim/quant's table is tried on every tensor that may hold codes: its name, its dtype, the tensors that have
 * to be beside it, their dtypes and shapes, and what the metadata say. Where a row fits, the tensor takes the place of its
 * codes, and its parts move behind the last entry, where they are found by who reads it. Codes whose scales have a shape
 * or a dtype that no row knows are an error; codes without scales, and the other way, are left as they are (a checkpoint
 * in pieces may have them in two of its files) and noted, unless the user said what the layout is. */
#include "quantised.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 256, WORD_MAX = 64, NAME_ROOM = 64 };

static const char parts_word[] = "parts";

/* One row that fits. */
typedef struct fit {
    quantised q;
    quant_geometry g;
    const char *evidence;
    int object; /* how names are written */
} fit;

typedef struct finder {
    trace *t;
    trace_error *error;
    const trace_entry **by_name; /* in the order of names                                          */
    quantised_index metadata;
    char *name, *other;          /* room for any name                                              */
    size_t room;
    char layout[WORD_MAX], element[WORD_MAX]; /* the user's words, or empty                        */
    const trace_entry **made;    /* by place of the codes: NULL, or what becomes of them           */
    unsigned char *hidden;       /* parts of what was made                                         */
    size_t n_made;
    char misfit[WHY_MAX + 512];  /* why codes that have scales fit no row                          */
    int weak;                    /* a dtype is why: of a row whose dtypes fit there is more to say */
    char missing[WHY_MAX + 512]; /* which part is not there, or what is not said                   */
} finder;

/* ---- names ---- */

/* As quant_part_name. object: as an attribute of an object that was pickled, NAME/rowwise_data. */
static int part_name(const quant_form *f, quant_part p, int object, const char *name, char *to, size_t size)
{
    const char *suffix = f->suffix[p];
    if (!object)
        return quant_part_name(f, p, name, to, size);
    return suffix ? snprintf(to, size, "%s/%s", name, suffix + (*suffix == '.')) : -1;
}

/* As quant_part_of. */
static int part_of(const quant_form *f, quant_part p, int object, const char *stored, char *name, size_t size)
{
    const char *suffix = f->suffix[p], *slash = strrchr(stored, '/');
    if (!object)
        return quant_part_of(f, p, stored, name, size);
    if (!suffix || !slash || slash == stored || strcmp(slash + 1, suffix + (*suffix == '.')) != 0)
        return 0;
    const int n = snprintf(name, size, "%.*s", (int)(slash - stored), stored);
    return n >= 0 && (size_t)n < size;
}

/* Rows whose tensors are objects of Python, which a pickle may hold. */
static int may_be_object(const finder *f, const quant_form *form)
{
    return f->t->type->codes && !f->t->type->has_parts &&
           (form->prefix || (form->suffix[QUANT_CODES][0] == '.' && strcmp(form->layout, "te") == 0));
}

static int compare_entries(const void *pa, const void *pb)
{
    const trace_entry *const *a = pa, *const *b = pb;
    return strcmp((*a)->tensor.name, (*b)->tensor.name);
}

static int compare_name(const void *name, const void *p)
{
    return strcmp(name, (*(const trace_entry *const *)p)->tensor.name);
}

/* The place of the tensor of that name, or QUANTISED_ABSENT. */
static uint32_t find(const finder *f, const char *name)
{
    const trace_entry **p = bsearch(name, f->by_name, f->t->count, sizeof *f->by_name, compare_name);
    return p ? (uint32_t)(*p - f->t->entries) : QUANTISED_ABSENT;
}

/* ---- dtypes ---- */

/* Safetensors' word for what torch calls something else; both have no format. */
static int is_called(const char *dtype, const char *word)
{
    return strcmp(dtype, word) == 0 || (strcmp(word, "U8") == 0 && strcmp(dtype, "uint8") == 0) ||
           (strcmp(word, "F4") == 0 && strcmp(dtype, "float4_e2m1fn_x2") == 0);
}

/* Which dtype of a row's list an entry has; "": that of its own format. NULL: none. */
static const char *dtype_of(const quant_form *form, quant_part p, const trace_entry *e)
{
    static char const own[] = "";
    const mpsim_format *has = e->tensor.format;
    const char *list = form->dtypes[p];
    if (list && !*list)
        return has && (p != QUANT_CODES || has->bits <= 8) ? own : NULL;
    for (; list && *list; list += strspn(list, " ")) {
        const size_t n = strcspn(list, " ");
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        const trace_dtype *d = trace_dtype_find(word);
        if (d && (d->format ? has && strcmp(mpsim_format_find(d->format)->name, has->name) == 0
                            : is_called(e->tensor.dtype, d->name)))
            return d->name;
        list += n;
    }
    return NULL;
}

/* Whether the last side of codes counts their bytes. */
static int is_packed(const trace_entry *e)
{
    return e->bytes == e->tensor.count;
}

/* ---- a row ---- */

static int misfit(finder *f, const quant_form *form, uint32_t codes, uint32_t scales, const char *why)
{
    const trace_entry *e = f->t->entries;
    if (!f->misfit[0] || f->weak)
        snprintf(f->misfit, sizeof f->misfit, "codes '%.180s' with scales '%.180s' are no %s of %s: %.200s",
                 e[codes].tensor.name, e[scales].tensor.name, form->type, form->layout, why);
    f->weak = 0;
    return 0;
}

static int misfit_dtype(finder *f, const quant_form *form, uint32_t codes, uint32_t scales, const char *why)
{
    const int first = !f->misfit[0], weak = f->weak;
    if (first)
        misfit(f, form, codes, scales, why);
    f->weak = first || weak;
    return 0;
}

/* The scale of the tensor, if there is one; or one for each of its matrices. */
static int fit_tensor_scale(finder *f, fit *x, const char *name)
{
    const quant_form *form = x->q.form;
    const trace *t = f->t;
    uint32_t *at = &x->q.parts[QUANT_TENSOR_SCALE];
    *at = QUANTISED_ABSENT;
    if (!form->suffix[QUANT_TENSOR_SCALE] || form->tensor_scale == QUANT_NONE)
        return 1;
    if (part_name(form, QUANT_TENSOR_SCALE, x->object, name, f->other, f->room) >= 0)
        *at = find(f, f->other);
    if (*at == QUANTISED_ABSENT) {
        if (form->tensor_scale != QUANT_MAYBE && !f->missing[0])
            snprintf(f->missing, sizeof f->missing, "'%.180s' is there without '%.180s'",
                     t->entries[x->q.parts[QUANT_CODES]].tensor.name, f->other);
        return form->tensor_scale == QUANT_MAYBE;
    }
    const trace_entry *e = &t->entries[*at];
    if (!dtype_of(form, QUANT_TENSOR_SCALE, e))
        return misfit_dtype(f, form, x->q.parts[QUANT_CODES], *at, "the dtype of the tensor's scale");
    if (e->tensor.count != 1 && !(x->g.tensor.rank == 3 && e->tensor.count == x->g.tensor.sides[0]))
        return misfit(f, form, x->q.parts[QUANT_CODES], *at, "there is more than one number, but no such matrices");
    return 1;
}

static void shape_of(const trace_entry *e, quant_shape *to)
{
    to->rank = e->tensor.rank;
    if (to->rank)
        memcpy(to->sides, e->tensor.shape, to->rank * sizeof *to->sides);
    to->count = e->tensor.count;
}

/* The sizes: as mpsim described them, or from the shapes. */
static int fit_shapes(finder *f, fit *x, const quantised_hint *hint)
{
    const trace_entry *e = f->t->entries;
    const uint32_t codes = x->q.parts[QUANT_CODES], scales = x->q.parts[QUANT_SCALES];
    quant_shape code_shape, scale_shape;
    char why[WHY_MAX], second[WHY_MAX];
    shape_of(&e[codes], &code_shape);
    shape_of(&e[scales], &scale_shape);
    if (hint->described) {
        const quant_description *d = &hint->mpsim;
        if (quant_geometry_of(&x->g, x->q.form, d->rank, d->shape, d->block_rows, d->block_cols, d->swizzled, why,
                              sizeof why))
            return misfit(f, x->q.form, codes, scales, why);
        const quant_shape *c = &x->g.parts[QUANT_CODES], *s = &x->g.parts[QUANT_SCALES];
        if (c->rank != code_shape.rank || memcmp(c->sides, code_shape.sides, c->rank * sizeof *c->sides) != 0 ||
            s->rank != scale_shape.rank || memcmp(s->sides, scale_shape.sides, s->rank * sizeof *s->sides) != 0)
            return misfit(f, x->q.form, codes, scales, "their shapes are not those of their description");
        x->q.swizzled = d->swizzled;
        return 1;
    }
    const int first = hint->swizzled > 0, last = hint->swizzled < 0 ? 1 : hint->swizzled;
    for (int swizzled = first; swizzled <= last; swizzled++)
        if (quant_geometry_from(&x->g, x->q.form, &code_shape, &scale_shape, swizzled, is_packed(&e[codes]),
                                swizzled == first ? why : second, WHY_MAX) == 0) {
            x->q.swizzled = swizzled;
            return 1;
        }
    return misfit(f, x->q.form, codes, scales, why);
}

/* The format of elements that their dtype, the metadata or the user tells. */
static const mpsim_format *element_of(finder *f, const fit *x, const quantised_hint *hint, const char *dtype)
{
    const quant_form *form = x->q.form;
    const mpsim_format *own = f->t->entries[x->q.parts[QUANT_CODES]].tensor.format;
    const trace_dtype *d = trace_dtype_find(dtype);
    const char *word = !d || d->format ? own->name : f->element[0] ? f->element : hint->element;
    if (!*word && !strchr(form->elements, ' '))
        word = form->elements;
    if (!*word && !f->missing[0])
        snprintf(f->missing, sizeof f->missing, "nothing says which elements the codes '%.180s' are (--stored LAYOUT:ELEMENT)",
                 f->t->entries[x->q.parts[QUANT_CODES]].tensor.name);
    if (!*word || !quant_form_has(form->elements, word) || (f->element[0] && strcmp(f->element, word) != 0))
        return NULL;
    const mpsim_format *element = mpsim_format_find(word);
    return element && element->bits <= 8 ? element : NULL;
}

/* Whether a row is to be tried on a tensor of which this is said. */
static int suits(const finder *f, const quant_form *form, int object, const quantised_hint *hint)
{
    if ((f->layout[0] && strcmp(f->layout, form->layout) != 0) || (form->view && !object))
        return 0;
    if (hint->layout && strcmp(hint->layout, form->layout) != 0)
        return 0;
    if (hint->type[0] && strcmp(hint->type, form->type) != 0)
        return 0;
    return hint->described || f->layout[0] || strcmp(form->layout, "plain") != 0; /* its names are everybody's */
}

/* Whether a row fits a tensor as its codes; f->name is the tensor's then. */
static int try_form(finder *f, const quant_form *form, int object, uint32_t codes, fit *x)
{
    quantised_hint hint;
    char why[WHY_MAX];
    const trace_entry *e = f->t->entries;
    const char *dtype = dtype_of(form, QUANT_CODES, &e[codes]);
    if (!dtype || !part_of(form, QUANT_CODES, object, e[codes].tensor.name, f->name, f->room))
        return 0;
    if (quantised_hints(&f->metadata, f->name, &hint, why, sizeof why)) {
        snprintf(f->misfit, sizeof f->misfit, "tensor '%.180s': %s", f->name, why);
        return 0;
    }
    if (!suits(f, form, object, &hint) || part_name(form, QUANT_SCALES, object, f->name, f->other, f->room) < 0)
        return 0;
    *x = (fit){.q = {.form = form, .parts = {codes, find(f, f->other), QUANTISED_ABSENT}}, .object = object};
    const uint32_t scales = x->q.parts[QUANT_SCALES];
    if (scales == QUANTISED_ABSENT || scales == codes) {
        if ((form->suffix[QUANT_CODES][0] || hint.known) && !f->missing[0])
            snprintf(f->missing, sizeof f->missing, "'%.180s' is there without '%.180s'", e[codes].tensor.name,
                     f->other);
        return 0;
    }
    const char *scale = dtype_of(form, QUANT_SCALES, &e[scales]);
    if (!scale)
        return misfit_dtype(f, form, codes, scales, "the dtype of the scales");
    const trace_dtype *d = trace_dtype_find(scale);
    x->q.said.scale = !d || d->format ? e[scales].tensor.format : mpsim_format_find(form->scale);
    x->q.said.element = element_of(f, x, &hint, dtype);
    if (!x->q.said.element || !fit_shapes(f, x, &hint) || !fit_tensor_scale(f, x, f->name))
        return 0;
    x->evidence = hint.known ? "metadata" : "names and shapes";
    return 1;
}

/* ---- a tensor ---- */

static int same_meaning(const fit *a, const fit *b)
{
    return a->q.said.element == b->q.said.element && a->q.said.scale == b->q.said.scale &&
           a->q.swizzled == b->q.swizzled && a->g.block_rows == b->g.block_rows && a->g.block_cols == b->g.block_cols &&
           a->q.form->tensor_scale == b->q.form->tensor_scale && memcmp(a->q.parts, b->q.parts, sizeof a->q.parts) == 0;
}

/* The number that quant_geometry_of takes for a side of blocks. */
static uint32_t side(uint64_t block, uint64_t whole)
{
    return block >= whole || block >= QUANT_ANY ? QUANT_WHOLE : (uint32_t)block;
}

/* An entry for the tensor that was found; NULL without memory. */
static const trace_entry *make(finder *f, const fit *x)
{
    static const uint16_t one = 1;
    trace *t = f->t;
    const trace_entry *codes = &t->entries[x->q.parts[QUANT_CODES]];
    const uint32_t tensor_scale = x->q.parts[QUANT_TENSOR_SCALE];
    const size_t rank = x->g.tensor.rank;
    trace_entry *e = trace_alloc(t, sizeof *e);
    quantised *q = trace_alloc(t, sizeof *q);
    uint64_t *shape = trace_alloc(t, rank * sizeof *shape);
    const char *name = strcmp(f->name, codes->tensor.name) == 0 ? codes->tensor.name
                                                                : trace_string(t, f->name, strlen(f->name));
    if (!e || !q || !shape || !name)
        return NULL;
    memcpy(shape, x->g.tensor.sides, rank * sizeof *shape);
    *q = x->q;
    q->block_rows = side(x->g.block_rows, x->g.rows);
    q->block_cols = side(x->g.block_cols, x->g.cols);
    q->said.layout = q->form->layout;
    q->said.type = q->form->type;
    q->said.block_rows = x->g.block_rows;
    q->said.block_cols = x->g.block_cols;
    q->said.order = q->swizzled ? "swizzled" : "plain";
    q->said.evidence = f->layout[0] ? "--stored" : x->evidence;
    q->said.tensor_scale = tensor_scale == QUANTISED_ABSENT ? NULL : t->entries[tensor_scale].tensor.name;
    for (int p = 0; p < QUANT_PARTS; p++)
        q->said.bytes += q->parts[p] == QUANTISED_ABSENT ? 0 : t->entries[q->parts[p]].bytes;
    *e = *codes;
    e->tensor = (trace_tensor){.name = name, .dtype = codes->tensor.dtype, .format = mpsim_format_find("binary32"),
                               .shape = shape, .rank = rank, .count = x->g.tensor.count,
                               .offset = codes->tensor.offset, .big_endian = *(const unsigned char *)&one == 0,
                               .quantised = &q->said};
    e->bytes = 4 * e->tensor.count;
    return e;
}

static int refuse(const finder *f, const char *what)
{
    return trace_fail(f->t, f->error, TRACE_NO_OFFSET, "%s (--stored parts reads what is stored)", what);
}

/* What is stored under the name of the tensor itself: nothing, its codes, or the shell of an object. */
static int check_name(finder *f, uint32_t codes)
{
    const uint32_t same = find(f, f->name);
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
static int is_second(finder *f, const fit *x)
{
    fit other;
    for (size_t i = 0;; i++) {
        const quant_form *form = quant_form_at(i);
        if (form == x->q.form)
            return 0;
        if (strcmp(form->layout, x->q.form->layout) != 0 ||
            strcmp(form->suffix[QUANT_CODES], x->q.form->suffix[QUANT_CODES]) == 0 ||
            part_name(form, QUANT_CODES, x->object, f->name, f->other, f->room) < 0)
            continue;
        const uint32_t codes = find(f, f->other);
        if (codes != QUANTISED_ABSENT && try_form(f, form, x->object, codes, &other))
            return 1;
    }
}

static int take(finder *f, uint32_t codes, fit *x)
{
    /* trying other rows has changed the name */
    part_of(x->q.form, QUANT_CODES, x->object, f->t->entries[codes].tensor.name, f->name, f->room);
    for (int p = 0; p < QUANT_PARTS; p++)
        if (x->q.parts[p] != QUANTISED_ABSENT)
            f->hidden[x->q.parts[p]] = 1;
    if (is_second(f, x))
        return 0;
    if (check_name(f, codes))
        return -1;
    const trace_entry *e = make(f, x);
    if (!e)
        return trace_no_memory(f->t, f->error);
    f->made[codes] = e;
    f->n_made++;
    return 0;
}

/* Whether a tensor is codes, and of what. */
static int look_at(finder *f, uint32_t codes)
{
    fit found, x;
    int fits = 0;
    const quant_form *form;
    f->misfit[0] = f->missing[0] = 0;
    f->weak = 0;
    for (size_t i = 0; (form = quant_form_at(i)); i++)
        for (int object = 0; object <= may_be_object(f, form); object++) {
            if (!try_form(f, form, object, codes, &x))
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
    if (f->missing[0] && f->layout[0])
        return refuse(f, f->missing);
    if (f->missing[0] && !f->t->lone[0])
        snprintf(f->t->lone, sizeof f->t->lone, "%.500s", f->missing);
    return 0;
}

/* ---- a trace ---- */

static int may_be_codes(const trace_entry *e)
{
    const trace_tensor *x = &e->tensor;
    return x->format ? x->format->bits <= 8 : e->bytes <= x->count && strcmp(x->dtype, "BOOL") != 0;
}

/* The tensors that were made go where their codes were, all parts behind what is left. */
static int arrange(finder *f)
{
    trace *t = f->t;
    const size_t n = t->count;
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
            all[seen++] = f->made[i] ? *f->made[i] : t->entries[i];
    size_t end = seen;
    for (size_t i = 0; i < n; i++)
        if (f->hidden[i]) {
            to[i] = (uint32_t)end;
            all[end++] = t->entries[i];
        }
    for (size_t i = 0; i < n; i++)
        for (int p = 0; f->made[i] && p < QUANT_PARTS; p++) {
            uint32_t *part = &((quantised *)(uintptr_t)f->made[i]->tensor.quantised)->parts[p];
            *part = *part == QUANTISED_ABSENT ? *part : to[*part];
        }
    free(to);
    free(t->entries);
    t->entries = all;
    t->count = seen;
    t->quantised = quantised_codes;
    t->room = n + f->n_made;
    return 0;
}

/* Where the user says the layout: scales whose codes are not there. */
static int look_for_codes(finder *f, uint32_t scales)
{
    const trace_entry *e = &f->t->entries[scales];
    const quant_form *form;
    for (size_t i = 0; (form = quant_form_at(i)); i++)
        for (int object = 0; object <= may_be_object(f, form); object++) {
            if (strcmp(form->layout, f->layout) != 0 || !form->suffix[QUANT_CODES][0] ||
                !dtype_of(form, QUANT_SCALES, e) ||
                !part_of(form, QUANT_SCALES, object, e->tensor.name, f->name, f->room) ||
                part_name(form, QUANT_CODES, object, f->name, f->other, f->room) < 0 ||
                find(f, f->other) != QUANTISED_ABSENT)
                continue;
            char what[600];
            snprintf(what, sizeof what, "'%.250s' is there without '%.250s'", e->tensor.name, f->other);
            return refuse(f, what);
        }
    return 0;
}

static int search(finder *f)
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
    if (quantised_index_new(&f->metadata, t, f->error))
        return -1;
    for (size_t i = 0; i < t->count; i++)
        if (may_be_codes(&t->entries[i]) && look_at(f, (uint32_t)i))
            return -1;
    for (size_t i = 0; i < t->count && f->layout[0]; i++)
        if (!f->hidden[i] && look_for_codes(f, (uint32_t)i))
            return -1;
    return f->n_made ? arrange(f) : 0;
}

/* "LAYOUT" or "LAYOUT:ELEMENT" */
static void split_word(finder *f, const char *word)
{
    const size_t n = word ? strcspn(word, ":") : 0;
    snprintf(f->layout, sizeof f->layout, "%.*s", (int)n, word ? word : "");
    snprintf(f->element, sizeof f->element, "%s", word && word[n] ? word + n + 1 : "");
}

int trace_find_quantised(trace *t, const trace_options *options, trace_error *error)
{
    finder f = {.t = t, .error = error};
    size_t i = 0;
    if ((options->quantised && strcmp(options->quantised, parts_word) == 0) || !t->type->all_elements ||
        !trace_is_flat(t))
        return 0;
    while (i < t->count && !may_be_codes(&t->entries[i]))
        i++;
    if (i == t->count)
        return 0;
    split_word(&f, options->quantised);
    f.by_name = malloc(t->count * sizeof *f.by_name);
    f.made = calloc(t->count, sizeof *f.made);
    f.hidden = calloc(t->count, 1);
    const int result = f.by_name && f.made && f.hidden ? search(&f) : trace_no_memory(t, error);
    quantised_index_free(&f.metadata);
    free(f.by_name);
    free(f.made);
    free(f.hidden);
    free(f.name);
    free(f.other);
    return result;
}

int trace_quantised_word(const char *word, char *why, size_t size)
{
    finder f = {.t = NULL};
    const quant_form *form;
    size_t n = 0;
    if (strcmp(word, parts_word) == 0)
        return 0;
    split_word(&f, word);
    if (quant_layout_find(f.layout) && (!strchr(word, ':') || mpsim_format_find(f.element)))
        return 0;
    if (quant_layout_find(f.layout)) {
        snprintf(why, size, "'%.64s' is no format of elements", f.element);
        return -1;
    }
    n += (size_t)snprintf(why, size, "'%.64s' is none of %s", word, parts_word);
    for (size_t i = 0; (form = quant_layout_at(i)) && n < size; i++)
        n += (size_t)snprintf(why + n, size - n, " %s", form->layout);
    return -1;
}
