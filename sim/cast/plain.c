/* plain.c -- see plain.h.
 *
 * Tensors of a file lie in order of the bytes of an element, largest first, as safetensors itself writes them: readers
 * want them aligned. Those of one width keep the order of the input. */
#include "cast.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const plain_options *o;
    caster c;
    const char *path;
    contents all;
    content *order;        /* what is written, in its order  */
    trace_tensor *tensors; /* the same as tensors of the file */
    size_t n, cast;
    uint64_t elements;
    uint64_t codes, bare; /* tensors of 8 bits and less that no layout reads; of them E8M0 */
} job;

/* ---- the file ---- */

/* Metadata of the input, and how the output was made. */
static trace_writer *open_safetensors(job *j, const trace *t, trace_error *error)
{
    const mpsim_rounding *r = &j->c.to->rounding;
    pairs p = {.n = 0};
    cast_pairs_put_input(&p, t);
    cast_pairs_put(&p, "mpsim.cast.format", "%s", j->c.to->format.name);
    cast_pairs_put(&p, "mpsim.cast.preset", "%s", j->c.to->preset);
    cast_pairs_put(&p, "mpsim.cast.overflow", r->overflow == MPSIM_OVERFLOW_MAX ? "saturate" : "inf");
    cast_pairs_put(&p, "mpsim.cast.flush_subnormals", r->flush_output ? "true" : "false");
    cast_pairs_put(&p, "mpsim.cast.flush_inputs", r->flush_input ? "true" : "false");
    cast_pairs_put(&p, "mpsim.cast.scale", "%.17g", r->scale);
    cast_pairs_put(&p, "mpsim.cast.version", "%s", mpsim_version());
    cast_pairs_put(&p, "mpsim.cast.round", "%s", mpsim_round_mode_name((mpsim_round_mode)r->mode));
    if (r->mode >= MPSIM_ROUND_STOCHASTIC_A) {
        cast_pairs_put(&p, "mpsim.cast.random_bits", "%d", r->sr_bits);
        cast_pairs_put(&p, "mpsim.cast.seed", "%" PRIu64, j->c.seed);
    }
    cast_pairs_put_codes(&p, t, j->order, j->n);
    return cast_pairs_open(&p, j->path, j->tensors, j->n, error);
}

static void count_bare(job *j, const trace_tensor *x)
{
    const int is_code = x->format && !x->quantised && x->format->bits <= 8;
    if (is_code && strcmp(x->format->name, "e8m0") == 0)
        j->bare++;
    else if (is_code)
        j->codes++;
}

/* Bits of an element in the file; packed ones come last. */
static uint64_t bits_of(const job *j, const content *c)
{
    return c->copied ? c->copy.packed ? trace_code_bits(c->copy.packed) : 8 * c->copy.width : trace_code_bits(j->c.out);
}

static void add(job *j, const trace *t, const content *c)
{
    trace_tensor *x = &j->tensors[j->n];
    *x = c->copied ? c->copy.tensor : *trace_at(t, c->index);
    x->format = c->copied ? x->format : j->c.out;
    x->fortran = j->o->npy ? x->fortran : 0;
    if (x->name[0] == '\0' && !j->o->npy)
        x->name = "tensor"; /* an npy or raw file has no names */
    j->order[j->n++] = *c;
    j->cast += !c->copied;
    j->elements += c->copied ? 0 : x->count;
}

static int set_order(job *j, const trace *t)
{
    static const uint64_t bits[] = {64, 32, 16, 8, 6, 4};
    j->order = need_memory(j->all.n + 1, sizeof *j->order);
    j->tensors = need_memory(j->all.n + 1, sizeof *j->tensors);
    for (size_t k = 0; k < sizeof bits / sizeof bits[0]; k++)
        for (size_t i = 0; i < j->all.n; i++)
            if (bits_of(j, &j->all.items[i]) == bits[k])
                add(j, t, &j->all.items[i]);
    return 0;
}

static int write_file(job *j, trace *t)
{
    trace_error error;
    trace_writer *w = j->o->npy ? trace_writer_npy(j->path, j->tensors, &error) : open_safetensors(j, t, &error);
    if (w && cast_caster_write(&j->c, t, j->order, j->n, w, &error)) {
        trace_writer_abandon(w);
        w = NULL;
    }
    return !w || trace_writer_finish(w, &error) ? fail(error.exit, "%s", error.text) : 0;
}

/* ---- what is said ---- */

/* The alias of a format that is its ml_dtypes name, or NULL: it has no such type. */
static const char *ml_dtypes_name(const mpsim_format *f)
{
    static const char *const heads[] = {"float4_", "float6_", "float8_", "bfloat16"};
    static char name[64];
    int known = 0;
    for (const char *p = f->aliases; *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
            known |= strncmp(p, heads[i], strlen(heads[i])) == 0;
        if (n < sizeof name && known) {
            memcpy(name, p, n);
            name[n] = '\0';
            return name;
        }
        p += n;
    }
    return NULL;
}

static void print_summary(const job *j)
{
    char path[4096], line[8192] = "", n[32];
    text_add(line, sizeof line, "%s: %zu tensor%s, %s element%s as %s", escape_text(path, sizeof path, j->path),
             j->cast, text_plural(j->cast), text_count(n, j->elements), text_plural(j->elements), j->c.to->label);
    if (j->c.out != &j->c.to->format)
        text_add(line, sizeof line, " in %s", j->c.out->name);
    cast_contents_say(line, sizeof line, &j->all);
    screen_line(stdout, "%s", line);
    report_counts(stdout, &j->c.counts, j->elements);
    const char *type = ml_dtypes_name(j->c.out);
    if (j->o->npy && trace_npy_descr(j->c.out)[1] == 'V' && type)
        printf("  numpy.load gives bytes: add .view(ml_dtypes.%s)\n", type);
    else if (j->o->npy && trace_npy_descr(j->c.out)[1] == 'V')
        puts("  numpy.load gives bytes: ml_dtypes has no such type");
}

/* Scales of a layout that is not known: what they belong to is cast as it is stored. */
static void note_bare(const job *j)
{
    const uint64_t n = j->bare;
    if (n && j->codes)
        note("%" PRIu64 " tensor%s of E8M0 in no known layout: if they are scales, the codes beside them are cast "
             "without scales",
             n, text_plural(n));
}

int cast_plain_file(const plain_options *o, uint64_t seed, const input *in, trace *t, const char *file,
                    const char *path)
{
    char name[512];
    job j = {
        .o = o, .path = path, .c = {.to = o->to, .out = o->out, .seed = seed, .npy = o->npy, .counted = o->summary}};
    int code = 0;
    cast_contents_of(&j.all, o->lacks, in, t, file, o->only);
    for (size_t i = 0; i < trace_count(t); i++)
        count_bare(&j, trace_at(t, i));
    if (o->npy && j.all.n != 1)
        code = fail(EXIT_USAGE,
                    "cast: an npy file holds one array, but %zu of '%s' are selected: use --match, or write "
                    "safetensors",
                    j.all.n, escape_text(name, sizeof name, trace_path(t)));
    if (!code && !(code = set_order(&j, t)) && !(code = write_file(&j, t))) {
        cast_contents_note(&j.all);
        note_bare(&j);
        if (o->summary)
            print_summary(&j);
    }
    cast_contents_clear(&j.all);
    free(j.order);
    free(j.tensors);
    return code;
}
