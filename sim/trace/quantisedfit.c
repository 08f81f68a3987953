/* quantisedfit.c -- see quantisedfit.h: names, dtypes and shapes of one row of the table beside those of a file, and what its
 * metadata say. */
#include "quantisedfit.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

int trace_quantised_part_name(const quant_form *f, quant_part p, int object, const char *name, char *to, size_t size)
{
    const char *suffix = f->suffix[p];
    if (!object)
        return quant_part_name(f, p, name, to, size);
    return suffix ? snprintf(to, size, "%s/%s", name, suffix + (*suffix == '.')) : -1;
}

int trace_quantised_part_of(const quant_form *f, quant_part p, int object, const char *stored, char *name, size_t size)
{
    const char *suffix = f->suffix[p], *slash = strrchr(stored, '/');
    if (!object)
        return quant_part_of(f, p, stored, name, size);
    if (!suffix || !slash || slash == stored || strcmp(slash + 1, suffix + (*suffix == '.')) != 0)
        return 0;
    const int n = snprintf(name, size, "%.*s", (int)(slash - stored), stored);
    return n >= 0 && (size_t)n < size;
}

int trace_quantised_is_object(const quantised_finder *f, const quant_form *form)
{
    return f->t->type->codes && !f->t->type->has_parts &&
           (form->prefix || (form->suffix[QUANT_CODES][0] == '.' && strcmp(form->layout, "te") == 0));
}

static int compare_name(const void *name, const void *p)
{
    return strcmp(name, (*(const trace_entry *const *)p)->tensor.name);
}

uint32_t trace_quantised_find(const quantised_finder *f, const char *name)
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

const char *trace_quantised_dtype(const quant_form *form, quant_part p, const trace_entry *e)
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
        if (d && (d->format && has ? strcmp(mpsim_format_find(d->format)->name, has->name) == 0
                                   : is_called(e->tensor.dtype, d->name)))
            return d->name;
        list += n;
    }
    return NULL;
}

/* Whether the last side of codes counts their bytes. */
static int is_packed(const trace_entry *e)
{
    return e->bytes == e->tensor.count && (!e->tensor.format || e->tensor.format->bits == 8);
}

/* ---- a row ---- */

static int misfit(quantised_finder *f, const quant_form *form, uint32_t codes, uint32_t scales, const char *why)
{
    const trace_entry *e = f->t->entries;
    if (!f->misfit[0] || f->weak)
        snprintf(f->misfit, sizeof f->misfit, "codes '%.180s' with scales '%.180s' do not fit %s of %s: %.200s",
                 e[codes].tensor.name, e[scales].tensor.name, form->type, form->layout, why);
    f->weak = 0;
    return 0;
}

static int misfit_dtype(quantised_finder *f, const quant_form *form, uint32_t codes, uint32_t scales, const char *why)
{
    const int first = !f->misfit[0], weak = f->weak;
    if (first)
        misfit(f, form, codes, scales, why);
    f->weak = first || weak;
    return 0;
}

/* The scale of the tensor, if there is one; or one for each of its matrices. */
static int fit_tensor_scale(quantised_finder *f, quantised_fit *x, const char *name)
{
    const quant_form *form = x->q.form;
    const trace *t = f->t;
    uint32_t *at = &x->q.parts[QUANT_TENSOR_SCALE];
    *at = QUANTISED_ABSENT;
    if (!form->suffix[QUANT_TENSOR_SCALE] || form->tensor_scale == QUANT_NONE)
        return 1;
    if (trace_quantised_part_name(form, QUANT_TENSOR_SCALE, x->object, name, f->other, f->room) >= 0)
        *at = trace_quantised_find(f, f->other);
    if (*at == QUANTISED_ABSENT) {
        if (form->tensor_scale != QUANT_MAYBE && !f->missing[0])
            snprintf(f->missing, sizeof f->missing, "'%.180s' is there without '%.180s'",
                     t->entries[x->q.parts[QUANT_CODES]].tensor.name, f->other);
        return form->tensor_scale == QUANT_MAYBE;
    }
    const trace_entry *e = &t->entries[*at];
    if (!trace_quantised_dtype(form, QUANT_TENSOR_SCALE, e))
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
static int fit_shapes(quantised_finder *f, quantised_fit *x, const quantised_hint *hint)
{
    const trace_entry *e = f->t->entries;
    const uint32_t codes = x->q.parts[QUANT_CODES], scales = x->q.parts[QUANT_SCALES];
    quant_shape code_shape, scale_shape;
    char why[QUANTISED_WHY], second[QUANTISED_WHY];
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
        x->q.said.transform = d->transform;
        return 1;
    }
    const int first = hint->swizzled > 0, last = hint->swizzled < 0 ? 1 : hint->swizzled;
    for (int swizzled = first; swizzled <= last; swizzled++)
        if (quant_geometry_from(&x->g, x->q.form, &code_shape, &scale_shape, swizzled, is_packed(&e[codes]),
                                swizzled == first ? why : second, QUANTISED_WHY) == 0) {
            x->q.swizzled = swizzled;
            return 1;
        }
    return misfit(f, x->q.form, codes, scales, why);
}

/* The format of elements that their dtype, the metadata or the user tells. */
static const mpsim_format *element_of(quantised_finder *f, const quantised_fit *x, const quantised_hint *hint,
                                      const char *dtype)
{
    const quant_form *form = x->q.form;
    const mpsim_format *own = f->t->entries[x->q.parts[QUANT_CODES]].tensor.format;
    const trace_dtype *d = trace_dtype_find(dtype);
    const char *word = !d || d->format ? own->name : f->element[0] ? f->element : hint->element;
    if (!*word && !strchr(form->elements, ' '))
        word = form->elements;
    if (!*word && !f->missing[0])
        snprintf(f->missing, sizeof f->missing,
                 "nothing says which elements the codes '%.180s' are (--stored LAYOUT:ELEMENT)",
                 f->t->entries[x->q.parts[QUANT_CODES]].tensor.name);
    if (!*word || !quant_form_has(form->elements, word) || (f->element[0] && strcmp(f->element, word) != 0))
        return NULL;
    const mpsim_format *element = mpsim_format_find(word);
    return element && element->bits <= 8 ? element : NULL;
}

/* Whether a row is one of the layout that the user says, if so, and of such files. */
static int is_asked(const quantised_finder *f, const quant_form *form, int object)
{
    return (!f->layout[0] || strcmp(f->layout, form->layout) == 0) && (!form->view || object);
}

/* Whether a row is to be tried on a tensor of which this is said. mpsim's own names are everybody's. */
static int suits(const quantised_finder *f, const quant_form *form, const quantised_hint *hint)
{
    if ((hint->layout && strcmp(hint->layout, form->layout) != 0) ||
        (hint->type[0] && strcmp(hint->type, form->type) != 0))
        return 0;
    return hint->described || f->layout[0] || strcmp(form->layout, "plain") != 0;
}

/* Whether two rows have the same names of codes and scales: those of a layout often do. */
static int same_names(const quant_form *a, const quant_form *b)
{
    return a->prefix == b->prefix && a->sibling == b->sibling &&
           strcmp(a->suffix[QUANT_CODES], b->suffix[QUANT_CODES]) == 0 &&
           strcmp(a->suffix[QUANT_SCALES], b->suffix[QUANT_SCALES]) == 0;
}

/* Whether an entry has the name of codes: f->name is the tensor's then, f->other that of its scales. */
static int has_name(quantised_finder *f, const quant_form *form, int object, uint32_t codes, uint32_t *scales)
{
    if (!f->named || f->named_codes != codes || f->named_object != object || !same_names(f->named, form)) {
        f->is_named = trace_quantised_part_of(form, QUANT_CODES, object, f->t->entries[codes].tensor.name, f->name,
                                              f->room) &&
                      trace_quantised_part_name(form, QUANT_SCALES, object, f->name, f->other, f->room) >= 0;
        f->named = form;
        f->named_codes = codes;
        f->named_object = object;
        f->named_scales = f->is_named ? trace_quantised_find(f, f->other) : QUANTISED_ABSENT;
    }
    *scales = f->named_scales;
    return f->is_named;
}

int trace_quantised_try(quantised_finder *f, const quant_form *form, int object, uint32_t codes, quantised_fit *x)
{
    quantised_hint hint;
    char why[QUANTISED_WHY];
    uint32_t scales;
    const trace_entry *e = f->t->entries;
    const char *dtype = is_asked(f, form, object) ? trace_quantised_dtype(form, QUANT_CODES, &e[codes]) : NULL;
    if (!dtype || !has_name(f, form, object, codes, &scales) ||
        (scales == QUANTISED_ABSENT && !form->suffix[QUANT_CODES][0] && !f->metadata.n))
        return 0;
    const int code = trace_quantised_hints(&f->metadata, f->name, &hint, why, sizeof why);
    f->no_memory |= code == -2;
    if (code) {
        snprintf(f->misfit, sizeof f->misfit, "tensor '%.180s': %s", f->name, why);
        return 0;
    }
    if (!suits(f, form, &hint))
        return 0;
    if (scales == QUANTISED_ABSENT || scales == codes) {
        if ((form->suffix[QUANT_CODES][0] || hint.known) && !f->missing[0]) {
            trace_quantised_part_name(form, QUANT_SCALES, object, f->name, f->other, f->room);
            snprintf(f->missing, sizeof f->missing, "'%.180s' is there without '%.180s'", e[codes].tensor.name,
                     f->other);
        }
        return 0;
    }
    x->q = (quantised){.form = form, .parts = {codes, scales}};
    for (int i = QUANT_TENSOR_SCALE; i < QUANTISED_PARTS; i++)
        x->q.parts[i] = QUANTISED_ABSENT;
    x->object = object;
    const char *scale = trace_quantised_dtype(form, QUANT_SCALES, &e[scales]);
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
