/* files.c -- mpsim calc on files; see calc.h. */
#include "calc.h"

#include "../array/need.h"
#include "../operand/element.h"
#include "../process/output.h"
#include "../operand/stream.h"
#include "../input/unread.h"
#include "../pass/elements.h"
#include "../record/cells.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16, OPERANDS = 3 }; /* elements that are worked on at once */

/* One operand: a file, of which a tensor is at hand, or a number. */
typedef struct operand {
    trace *t; /* NULL: a number */
    exact_number number;
    uint64_t
        around[2]; /* of a number that is no number of its format: the codes on both sides of it; else twice its own */
    elements e;
    size_t *partners;     /* of a file: its tensor for each of the result */
    unsigned char *codes; /* a piece, in the operand's format */
} operand;

typedef struct job {
    const calculation *what;
    const target *to;
    const operand_formats *formats;
    const mpsim_format *rounded; /* the format that operands are rounded to first, or NULL */
    mpsim_arith o;
    mpsim_rounding nearest; /* into --operands */
    int between;            /* a number lies between two of its format: elements are calculated one by one */
    uint64_t seed;
    operand operands[OPERANDS];
    const operand *first; /* the first file */
    unsigned char *stored, *result;
    double *values;
    mpsim_counts counts;
    trace_tensor *tensors; /* of the result */
    size_t n;
    uint64_t elements;
    unread_list unread; /* of the first file: what the result lacks */
    trace_error error;
} job;

/* ---- what is to be done ---- */

/* A number: in the format of --operands, else in binary64, if it is one of it. */
static int open_number(job *j, int i, const char *word)
{
    operand *x = &j->operands[i];
    mpsim_format *f = &j->o.operand[i];
    const int code = calc_operand_value(&x->number, j->formats, word);
    if (code)
        return code;
    if (calc_flushes(j->to, &x->number, &j->o.result))
        exact_of(&x->number, copysign(0, x->number.nearest));
    unsigned flags;
    *f = j->rounded ? *j->rounded : x->number.nan_of ? *x->number.nan_of : *mpsim_format_find("binary64");
    mpsim_rounding down = j->nearest;
    if (!j->rounded)
        down.mode = MPSIM_ROUND_TOWARD_ZERO;
    x->around[0] = calc_operand_code(f, &down, &x->number, &flags);
    x->around[1] = x->around[0] + !(j->rounded || exact_is_binary64(&x->number));
    j->between |= x->around[0] != x->around[1];
    for (size_t k = 0; k < PIECE; k++)
        element_put_code(x->codes, mpsim_format_code_bytes(f), k, x->around[0]);
    return 0;
}

static int open_operands(job *j, char *const *words)
{
    for (int i = 0; i < j->what->operands; i++) {
        operand *x = &j->operands[i];
        x->codes = need_memory(PIECE * sizeof(uint64_t), 1);
        if (calc_operand_is_number(words[i])) {
            const int code = open_number(j, i, words[i]);
            if (code)
                return code;
            continue;
        }
        x->t = trace_open(words[i], NULL, &j->error);
        if (!x->t)
            return fail(j->error.exit, "%s", j->error.text);
        j->first = j->first ? j->first : x;
    }
    return 0;
}

static int same_shape(const trace_tensor *a, const trace_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* The tensor of another file that tensor a of the first meets; its index, or -1 after a message. */
static int64_t partner(const job *j, const operand *other, const trace_tensor *a)
{
    char name[512], path[512], ours[512];
    size_t i = 0;
    const size_t n = trace_count(other->t);
    if (n != 1 || trace_count(j->first->t) != 1)
        while (i < n && strcmp(trace_at(other->t, i)->name, a->name) != 0)
            i++;
    escape_text(name, sizeof name, a->name);
    escape_text(path, sizeof path, trace_path(other->t));
    escape_text(ours, sizeof ours, trace_path(j->first->t));
    if (i == n)
        (void)fail(EXIT_DATA, "calc: %s: no tensor '%s', which %s has", path, name, ours);
    else if (!trace_at(other->t, i)->format)
        (void)fail(EXIT_DATA, "calc: %s: tensor '%s': %s is not a floating-point dtype", path, name,
                   trace_at(other->t, i)->dtype);
    else if (!same_shape(a, trace_at(other->t, i)))
        (void)fail(EXIT_DATA, "calc: %s: tensor '%s' has another shape than in %s", path, name, ours);
    else
        return (int64_t)i;
    return -1;
}

/* The tensors of the result, in the order of the first file. */
static int choose(job *j)
{
    const trace *t = j->first->t;
    j->tensors = need_memory(trace_count(t), sizeof *j->tensors);
    for (int k = 0; k < j->what->operands; k++)
        j->operands[k].partners = need_memory(trace_count(t), sizeof(size_t));
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *a = trace_at(t, i);
        if (!a->format) {
            if (unread_add(&j->unread, trace_path(t), a))
                return EXIT_IO;
            continue;
        }
        for (int k = 0; k < j->what->operands; k++) {
            const int64_t at = j->operands[k].t ? partner(j, &j->operands[k], a) : 0;
            if (at < 0)
                return EXIT_DATA;
            j->operands[k].partners[j->n] = (size_t)at;
        }
        j->tensors[j->n] = *a;
        j->tensors[j->n].name = a->name[0] ? a->name : "tensor"; /* an npy file has no names */
        j->tensors[j->n].format = &j->o.result;
        j->tensors[j->n].fortran = 0;
        j->n++;
        j->elements += a->count;
    }
    return 0;
}

static trace_writer *open_writer(job *j, const char *path)
{
    const size_t n = strlen(path);
    const int npy = n > 4 && strcmp(path + n - 4, ".npy") == 0;
    const char *const metadata[][2] = {{"mpsim.calc.operation", j->what->name},
                                       {"mpsim.calc.operands", j->rounded ? j->rounded->name : "as given"},
                                       {"mpsim.calc.format", j->o.result.name},
                                       {"mpsim.calc.version", mpsim_version()}};
    if (!(npy ? trace_npy_descr(&j->o.result) : trace_safetensors_dtype(&j->o.result))) {
        j->error.exit = EXIT_USAGE;
        snprintf(j->error.text, sizeof j->error.text, "calc: %s has no dtype in %s files", j->o.result.name,
                 npy ? "npy" : "safetensors");
        return NULL;
    }
    if (npy && j->n != 1) {
        j->error.exit = EXIT_USAGE;
        snprintf(j->error.text, sizeof j->error.text,
                 "calc: an npy file holds one array, and the result has %zu: write safetensors", j->n);
        return NULL;
    }
    return npy ? trace_writer_npy(path, j->tensors, &j->error)
               : trace_writer_safetensors(path, j->tensors, j->n, metadata, sizeof metadata / sizeof *metadata,
                                          &j->error);
}

/* ---- elements ---- */

/* What is of the format already is not rounded to it: a NaN stays the one that it is. */
static void keep_nans(void *codes, const void *stored, const mpsim_format *f, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = element_code(stored, bytes, i);
        if (mpsim_classify(f, code) == MPSIM_CLASS_NAN)
            element_put_code(codes, bytes, i, code);
    }
}

static int read_piece(job *j, operand *x, uint64_t first, size_t n)
{
    const mpsim_format *f = j->rounded;
    if (!x->t)
        return 0;
    if (pass_elements_codes(&x->e, first, f ? j->stored : x->codes, n, &j->error))
        return -1;
    if (!f)
        return 0;
    (void)mpsim_decode_array(x->e.format, j->values, j->stored, n);
    (void)mpsim_encode_array_f64(f, &j->nearest, NULL, x->codes, j->values, n, NULL);
    if (mpsim_format_same(f, x->e.format))
        keep_nans(x->codes, j->stored, f, n);
    return 0;
}

/* The element as it is, with the number that was typed. */
static uint64_t apply_exact(const job *j, const uint64_t codes[OPERANDS], uint32_t random, unsigned *flags)
{
    exact_number x[OPERANDS];
    const exact_number *operands[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        const operand *o = &j->operands[i];
        operands[i] = o->t ? &x[i] : &o->number;
        if (i >= j->what->operands || !o->t)
            continue;
        exact_of(&x[i], mpsim_decode(&j->o.operand[i], codes[i]));
        if (calc_flushes(j->to, &x[i], &j->o.operand[i]))
            exact_of(&x[i], copysign(0, x[i].nearest));
    }
    return exact_apply(j->what->op, &j->o.result, &j->o.rounding, operands, random, flags, NULL);
}

/* With a number between two of binary64. An operation rises or falls with each operand, so that the result lies between
 * those with the numbers around it: where these are the same, with the same flags, it is that. */
static uint64_t apply_between(const job *j, size_t k, uint32_t random, unsigned *flags)
{
    uint64_t codes[OPERANDS] = {0, 0, 0}, first = 0;
    unsigned first_flags = 0;
    for (unsigned corner = 0; corner < 1u << j->what->operands; corner++) {
        for (int i = 0; i < j->what->operands; i++)
            codes[i] = j->operands[i].t
                           ? element_code(j->operands[i].codes, mpsim_format_code_bytes(&j->o.operand[i]), k)
                           : j->operands[i].around[corner >> i & 1];
        const uint64_t code = mpsim_arith_apply(&j->o, codes[0], codes[1], codes[2], random, flags);
        if (corner > 0 && (code != first || *flags != first_flags))
            return apply_exact(j, codes, random, flags);
        first = code;
        first_flags = *flags;
    }
    return first;
}

/* What has no function of arrays: one element after the other, with the random words that an array would take. */
static void apply_one_by_one(job *j, const mpsim_rng *rng, size_t n)
{
    const size_t from = mpsim_format_code_bytes(&j->o.operand[0]), to = mpsim_format_code_bytes(&j->o.result);
    for (size_t k = 0; k < n; k++) {
        unsigned flags;
        const uint32_t random = mpsim_rng_word(rng->seed, rng->stream, rng->index + k);
        const uint64_t code = j->what->is_function
                                  ? mpsim_function_apply(j->what->function, &j->o.operand[0], &j->o.result,
                                                         &j->o.rounding, element_code(j->operands[0].codes, from, k),
                                                         random, &flags)
                                  : apply_between(j, k, random, &flags);
        element_put_code(j->result, to, k, code);
        j->counts.inexact += (flags & MPSIM_FLAG_INEXACT) != 0;
        j->counts.underflow += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
        j->counts.subnormal += (flags & MPSIM_FLAG_SUBNORMAL) != 0;
        j->counts.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
        j->counts.nan += (flags & (MPSIM_FLAG_NAN | MPSIM_FLAG_INVALID)) != 0;
    }
}

static int write_tensor(job *j, size_t k, trace_writer *w)
{
    const trace_tensor *a = trace_at(j->first->t, j->first->partners[k]);
    const size_t bytes = mpsim_format_code_bytes(&j->o.result);
    mpsim_rng rng = {j->seed, tensor_stream(j->first->t, a), 0};
    for (uint64_t n; rng.index < a->count; rng.index += n) {
        n = a->count - rng.index < PIECE ? a->count - rng.index : PIECE;
        for (int i = 0; i < j->what->operands; i++)
            if (read_piece(j, &j->operands[i], rng.index, (size_t)n))
                return -1;
        if (j->what->is_function || j->between)
            apply_one_by_one(j, &rng, (size_t)n);
        else
            (void)mpsim_arith_array(&j->o, &rng, j->result, j->operands[0].codes, j->operands[1].codes,
                                    j->operands[2].codes, (size_t)n, &j->counts);
        trace_to_little_endian(j->result, bytes, (size_t)n);
        if (trace_writer_data(w, j->result, (size_t)n * bytes, &j->error))
            return -1;
    }
    return 0;
}

/* One tensor of the result: those of the files are open meanwhile. */
static int visit_tensor(job *j, size_t k, trace_writer *w)
{
    int bad = 0, opened = 0;
    for (; opened < j->what->operands && !bad; opened++) {
        operand *x = &j->operands[opened];
        if (!x->t)
            continue;
        bad = pass_elements_open(&x->e, x->t, x->partners[k], ELEMENTS_ROWS, NULL, &j->error);
        if (!bad)
            j->o.operand[opened] = j->rounded ? *j->rounded : *x->e.format;
    }
    bad = bad || write_tensor(j, k, w);
    while (opened > 0)
        if (j->operands[--opened].t)
            pass_elements_close(&j->operands[opened].e);
    return bad ? -1 : 0;
}

/* ---- the whole ---- */

static int write_all(job *j, const char *path)
{
    j->stored = need_memory(PIECE, sizeof(uint64_t));
    j->result = need_memory(PIECE, sizeof(uint64_t));
    j->values = need_memory(PIECE, sizeof *j->values);
    trace_writer *w = open_writer(j, path);
    for (size_t k = 0; w && k < j->n; k++)
        if (visit_tensor(j, k, w)) {
            trace_writer_abandon(w);
            w = NULL;
        }
    return w && trace_writer_finish(w, &j->error) == 0 ? 0 : fail(j->error.exit, "%s", j->error.text);
}

static void print_summary(const job *j, const target *t, const char *path)
{
    char name[4096], n[32];
    if (strcmp(path, "-") == 0)
        return;
    if (j->unread.tensors > j->unread.unseen)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", j->unread.tensors - j->unread.unseen,
             text_plural(j->unread.tensors - j->unread.unseen));
    screen_line(stdout, "%s: %s of %zu tensor%s, %s element%s, as %s", escape_text(name, sizeof name, path),
                j->what->name, j->n, text_plural(j->n), text_count(n, j->elements), text_plural(j->elements), t->label);
    report_counts(stdout, &j->counts, j->elements);
}

int calc_files(const calculation *c, const target *t, const operand_formats *f, uint64_t seed, char *const *words,
               const char *path)
{
    job j = {.what = c,
             .to = t,
             .formats = f,
             .rounded = calc_operand_format(f, t),
             .seed = seed,
             .nearest = calc_nearest(t)};
    mpsim_arith_init(&j.o, c->op, &t->format, MPSIM_ROUND_NEAREST_EVEN);
    j.o.rounding = t->rounding;
    int code = open_operands(&j, words);
    if (!code && !(code = output_check(path)) && !(code = choose(&j)) && !(code = write_all(&j, path))) {
        print_summary(&j, t, path);
        code = unread_lacks(&j.unread, "calc");
    }
    unread_clear(&j.unread);
    for (int i = 0; i < OPERANDS; i++) {
        trace_close(j.operands[i].t);
        free(j.operands[i].codes);
        free(j.operands[i].partners);
    }
    free(j.tensors);
    free(j.stored);
    free(j.result);
    free(j.values);
    return code;
}
