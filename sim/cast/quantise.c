/* quantise.c -- see quantise.h.
 *
 * All is decided before anything is written: what the layout has no place for leaves nothing. Tensors of a file lie in
 * order of the bytes of an element, largest first, as safetensors itself writes them: readers want them aligned.
 *
 * A layout of quantised tensors is a row of sim/quant/form.c: names, shapes and places follow from it for reading
 * and for writing. A matrix is quantised in tiles of whole blocks (tiles.c); the scale of the whole tensor comes
 * from a first pass. */
#include "cast.h"

#include "tiles.h"

#include "../array/need.h"
#include "../operand/stream.h"
#include "../text/words.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const quantise_options *o;
    trace *t;
    contents all;
    quantised *q;
    size_t n;
    trace_tensor *out; /* the tensors of the file, in their order */
    size_t n_out;
    uint64_t bytes;
    trace_writer *to;
    quantise_result *r;
} job;

/* ---- what is to be done ---- */

static int is_kept(const quantise_options *o, const trace_tensor *x)
{
    int kept = x->rank < 2 || x->count == 0;
    for (size_t i = 0; i < o->keep->count && !kept; i++)
        kept = fnmatch(o->keep->items[i], x->name, 0) == 0;
    return kept;
}

static int no_place(const job *j, const quantised *q, const char *why)
{
    char name[512], shape[512], path[512];
    return fail(EXIT_DATA, "%s: tensor '%s' of shape %s under %s: %s", escape_text(path, sizeof path, trace_path(j->t)),
                escape_text(name, sizeof name, q->name), text_shape(shape, sizeof shape, q->x->shape, q->x->rank),
                j->o->how->block.name, why);
}

/* The parts of a tensor in the layout. */
static int place(const job *j, quantised *q, const quant_form *f)
{
    const mpsim_block_recipe *b = &j->o->how->block;
    char why[512], name[8192];
    q->g = need_memory(sizeof *q->g, 1);
    if (quant_geometry_of(q->g, f, q->x->rank, q->x->shape, j->o->columns ? b->block_cols : b->block_rows,
                          j->o->columns ? b->block_rows : b->block_cols, j->o->swizzled, why, sizeof why))
        return no_place(j, q, why);
    for (quant_part p = 0; p < QUANT_PARTS; p++) {
        q->has[p] = p != QUANT_TENSOR_SCALE ||
                    (f->tensor_scale != QUANT_NONE && (f->tensor_scale != QUANT_MAYBE || j->o->how->tensor_scale));
        if (!q->has[p])
            continue;
        const int n = quant_part_name(f, p, q->name, name, sizeof name);
        if (n < 0 || (size_t)n >= sizeof name)
            return no_place(j, q,
                            n >= 0       ? "its name is too long"
                            : f->sibling ? "names of this layout end in '.weight'"
                                         : "names of this layout have a '.'");
        q->names[p] = need_text(name);
    }
    return 0;
}

static int choose_form(const quantise_options *o, const quant_form **f)
{
    const mpsim_block_recipe *b = &o->how->block;
    char why[1024];
    *f = NULL;
    if (o->widen)
        return 0;
    *f = quant_form_find(o->layout, b->element, o->how->scale, o->columns ? b->block_cols : b->block_rows,
                         o->columns ? b->block_rows : b->block_cols, o->how->tensor_scale, why, sizeof why);
    if (*f && o->columns && b->block_rows > 1 &&
        (*f)->block_rows == 1) { /* square blocks: the form of columns, if any */
        const quant_form *turned = quant_form_find(o->layout, b->element, o->how->scale, b->block_cols, 1,
                                                   o->how->tensor_scale, NULL, 0);
        *f = turned ? turned : *f;
    }
    if (*f && strcmp((*f)->scale, "binary32") == 0 && strcmp(o->how->scale, "e8m0") == 0 &&
        b->rule != MPSIM_SCALE_E8M0_DEEPGEMM) /* whose powers of two are stored as numbers */
        *f = quant_form_find(o->layout, "", "", 0, 0, 0, why, sizeof why);
    if (!*f)
        return fail(EXIT_USAGE, "cast: layout cannot hold %s%s: %s", b->name, o->columns ? " along columns" : "", why);
    if (o->swizzled && ((*f)->swizzle == QUANT_UNSWIZZLED || strcmp(o->how->scale, "binary32") == 0))
        return fail(EXIT_USAGE, "cast: %s of %s has no swizzled scales", b->name, o->layout);
    return 0;
}

/* A tensor that stays as it is, and whose codes share bytes, is copied: safetensors has it as it lies. */
static void copy_packed(const job *j, content *c)
{
    trace_copy copies[TRACE_COPIES];
    const trace_tensor *x = trace_at(j->t, c->index);
    if (!j->o->npy && !x->quantised && is_kept(j->o, x) && trace_packed_dtype(x->format) &&
        trace_copies(j->t, c->index, copies) == 1)
        c->copy = copies[0];
}

/* A tensor of the contents, and its parts in the layout. */
static int add(job *j, content *c, const quant_form *f)
{
    if (!c->copied)
        copy_packed(j, c);
    quantised *q = &j->q[j->n++];
    const trace_tensor *x = c->copied ? &c->copy.tensor : trace_at(j->t, c->index);
    *q = (quantised){.index = c->index,
                     .x = x,
                     .copy = c->copied || c->copy.packed ? &c->copy : NULL,
                     .kept = !c->copied && is_kept(j->o, x),
                     .has = {1, 0, 0}};
    q->name = x->name[0] == '\0' && !j->o->npy ? "tensor" : x->name; /* an npy or raw file has no names */
    if (c->copied)
        return 0;
    j->r->kept += (size_t)q->kept;
    j->r->quantised += !q->kept;
    j->r->elements += q->kept ? 0 : x->count;
    return f && !q->kept ? place(j, q, f) : 0;
}

static int select_tensors(job *j, const input *in)
{
    const quant_form *f;
    int code = choose_form(j->o, &f);
    if (code)
        return code;
    cast_contents_of(&j->all, j->o->lacks, in, j->t, j->o->file, j->o->only);
    j->q = need_memory(j->all.n, sizeof *j->q);
    for (size_t i = 0; i < j->all.n && !code; i++)
        code = add(j, &j->all.items[i], f);
    return code;
}

/* ---- the file ---- */

/* A part as a tensor of the file. */
static trace_tensor part_of(const job *j, const quantised *q, quant_part p)
{
    trace_tensor x = *q->x;
    x.fortran = 0;
    if (!q->g) {
        x.name = q->name;
        if (q->copy)
            x = q->copy->tensor;
        x.fortran = 0;
        x.name = q->name;
        x.format = q->kept || q->copy ? x.format : mpsim_format_find("binary32");
        return x;
    }
    static const char *const names[][2] = {{"F32", "binary32"}, {"F8_E8M0", "e8m0"}, {"F8_E4M3", "e4m3"}};
    const char *dtype = q->g->form->dtypes[p];
    x.name = q->names[p];
    x.format = *dtype ? NULL : mpsim_format_find(p == QUANT_CODES ? j->o->how->block.element : j->o->how->scale);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(dtype, names[i][0], strlen(names[i][0])) == 0)
            x.format = mpsim_format_find(names[i][1]);
    if (!x.format || !trace_safetensors_dtype(x.format)) {
        x.format = NULL;
        x.dtype = strncmp(dtype, "I8", 2) == 0 ? "I8" : "U8";
    }
    x.shape = q->g->parts[p].sides;
    x.rank = q->g->parts[p].rank;
    x.count = q->g->parts[p].count;
    return x;
}

/* Of an element, or of a unit of what is copied. */
static size_t element_bytes(const quantised *q, const trace_tensor *x)
{
    return q->copy ? q->copy->width : x->format ? mpsim_format_code_bytes(x->format) : 1;
}

/* The tensors of the file with elements of so many bytes, behind those that are there. */
static void add_parts(job *j, size_t bytes)
{
    for (size_t i = 0; i < j->n; i++)
        for (quant_part p = 0; p < QUANT_PARTS; p++) {
            if (!j->q[i].has[p])
                continue;
            const trace_tensor x = part_of(j, &j->q[i], p);
            if (element_bytes(&j->q[i], &x) != bytes)
                continue;
            j->out[j->n_out++] = x;
            j->q[i].at[p] = j->bytes;
            j->bytes += (j->q[i].copy ? j->q[i].copy->units : x.count) * bytes;
        }
}

static int set_order(job *j)
{
    enum { WIDEST = 8 };
    j->out = need_memory(QUANT_PARTS * j->n + 1, sizeof *j->out);
    for (size_t bytes = WIDEST; bytes > 0; bytes /= 2)
        add_parts(j, bytes);
    return 0;
}

static trace_writer *open_writer(job *j, trace_error *error)
{
    pairs p = {.n = 0};
    if (j->o->npy)
        return trace_writer_npy(j->o->path, j->out, error);
    cast_quantise_metadata(&p, j->o, j->t, j->q, j->n);
    cast_pairs_put_codes(&p, j->t, j->all.items, j->all.n);
    return cast_pairs_open(&p, j->o->path, j->out, j->n_out, error);
}

/* ---- tensors ---- */

/* A tensor as it is stored. */
static int copy(const job *j, const quantised *q, trace_error *error)
{
    enum { PIECE = 1 << 13 };
    uint64_t units[PIECE];
    for (uint64_t first = 0; first < q->copy->units; first += PIECE) {
        const uint64_t left = q->copy->units - first;
        const size_t n = left < PIECE ? (size_t)left : PIECE, bytes = q->copy->width;
        if (trace_copy_units(j->t, q->copy, first, units, n, error) ||
            trace_writer_data_at(j->to, q->at[0] + first * bytes, units, n * bytes, error))
            return -1;
    }
    return 0;
}

/* The same by columns: in memory. */
static int copy_in_rows(const job *j, const quantised *q, trace_error *error)
{
    const size_t bytes = (size_t)(q->copy->units * q->copy->width);
    unsigned char *stored = need_memory(q->copy->units, q->copy->width),
                  *rows = need_memory(q->copy->units, q->copy->width);
    int result = trace_copy_units(j->t, q->copy, 0, stored, (size_t)q->copy->units, error);
    if (!result) {
        pass_elements_in_rows(rows, stored, q->x, q->copy->width);
        result = trace_writer_data_at(j->to, q->at[0], rows, bytes, error);
    }
    free(stored);
    free(rows);
    return result;
}

/* A tensor with its own numbers. */
static int keep(const job *j, const quantised *q, const elements *from, trace_error *error)
{
    enum { PIECE = 1 << 13 };
    const size_t bytes = from->width;
    uint64_t codes[PIECE];
    for (uint64_t first = 0; first < q->x->count; first += PIECE) {
        const uint64_t left = q->x->count - first;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        if (pass_elements_codes(from, first, codes, n, error))
            return -1;
        trace_to_little_endian((unsigned char *)codes, bytes, n);
        if (trace_writer_data_at(j->to, q->at[0] + first * bytes, codes, n * bytes, error))
            return -1;
    }
    return 0;
}

static int quantise(job *j, const quantised *q, const elements *from, trace_error *error)
{
    const uint64_t cols = q->x->shape[q->x->rank - 1];
    quantising one = {.how = j->o->how,
                      .columns = j->o->columns,
                      .seed = j->o->seed,
                      .stream = tensor_stream(j->t, q->x),
                      .g = q->g,
                      .from = from,
                      .rows = q->x->count / cols,
                      .cols = cols,
                      .to = j->to,
                      .counted = j->o->counted};
    memcpy(one.at, q->at, sizeof one.at);
    if (cast_tiles_run(&one, error))
        return -1;
    cast_counts_add(&j->r->counts, &one.counts);
    if (!q->has[QUANT_TENSOR_SCALE])
        return 0;
    float stored = quant_stored(q->g->form, one.tensor, j->o->how->tensor_scale ? one.amax : 6 * 448);
    trace_to_little_endian((unsigned char *)&stored, sizeof stored, 1);
    return trace_writer_data_at(j->to, q->at[QUANT_TENSOR_SCALE], &stored, sizeof stored, error);
}

static int write_tensors(job *j, trace_error *error)
{
    int failed = 0;
    for (size_t i = 0; i < j->n && !failed; i++) {
        const quantised *q = &j->q[i];
        elements from;
        if (q->copy) {
            failed = pass_elements_by_columns(q->x) ? copy_in_rows(j, q, error) : copy(j, q, error);
            continue;
        }
        failed = pass_elements_open(&from, j->t, q->index, ELEMENTS_ROWS, NULL, error);
        if (!failed)
            failed = q->kept ? keep(j, q, &from, error) : quantise(j, q, &from, error);
        pass_elements_close(&from);
    }
    return failed;
}

static int write_file(job *j)
{
    trace_error error;
    j->to = open_writer(j, &error);
    if (j->to && (trace_writer_make_places(j->to, &error) || write_tensors(j, &error))) {
        trace_writer_abandon(j->to);
        j->to = NULL;
    }
    return !j->to || trace_writer_finish(j->to, &error) ? fail(error.exit, "%s", error.text) : 0;
}

int cast_quantise_file(const quantise_options *o, const input *in, trace *t, quantise_result *r)
{
    job j = {.o = o, .t = t, .r = r};
    char name[512];
    memset(r, 0, sizeof *r);
    int code = select_tensors(&j, in);
    if (!code && o->npy && j.n != 1)
        code = fail(EXIT_USAGE,
                    "cast: an npy file holds one array, but %zu of '%s' are selected: use --match, or write "
                    "safetensors",
                    j.n, escape_text(name, sizeof name, trace_path(t)));
    if (!code && r->quantised == 0 && !o->may_be_none)
        code = fail(EXIT_DATA, "%s: no tensor of two dimensions or more to quantise",
                    escape_text(name, sizeof name, trace_path(t)));
    if (!code && !(code = set_order(&j)))
        code = write_file(&j);
    r->all = j.all; /* its counts */
    r->all.items = NULL;
    if (!code)
        cast_contents_note(&j.all);
    for (size_t i = 0; i < j.n; i++) {
        for (quant_part p = 0; p < QUANT_PARTS; p++)
            free(j.q[i].names[p]);
        free(j.q[i].g);
    }
    cast_contents_clear(&j.all);
    free(j.q);
    free(j.out);
    return code;
}
