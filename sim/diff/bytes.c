/* bytes.c -- see bytes.h. */
#include "impl.h"

#include "../array/need.h"
#include "../pass/elements.h"
#include "../record/cells.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 128 << 10, ORDERED_MOST = 1 << 30 };

/* ---- a tensor as it is stored ---- */

typedef struct stored {
    trace *t;
    const trace_tensor *x;
    trace_copy runs[TRACE_COPIES];
    size_t n;
    unsigned char *rows; /* all of it by rows, where the file has it by columns and the other side has not */
} stored;

static int stored_open(stored *s, side *of, const side_tensor *t, trace_error *error)
{
    size_t at;
    *s = (stored){.t = diff_side_trace(of, t->file, error)};
    if (!s->t)
        return -1;
    s->x = trace_at(s->t, t->index);
    if (!s->x && trace_loose(s->t, t->index, &at) && at == t->index)
        s->x = trace_loose(s->t, t->index, &at);
    if (!s->x || s->x->count != t->count)
        return trace_error_set(error, EXIT_DATA, t->file->path, UINT64_MAX, "has changed while it was read");
    s->n = trace_stored_as(s->t, t->index, s->runs);
    return 0;
}

/* Units of a run from `first` on, in order. */
static int stored_units(stored *s, size_t run, uint64_t first, void *to, size_t n, trace_error *error)
{
    const size_t width = s->runs[run].width;
    if (!s->rows)
        return trace_copy_units(s->t, &s->runs[run], first, to, n, error);
    memcpy(to, s->rows + first * width, n * width);
    return 0;
}

static int read_all(stored *s, unsigned char *to, trace_error *error)
{
    const trace_copy *c = &s->runs[0];
    int bad = 0;
    for (uint64_t at = 0, n; at < c->units && !bad; at += n) {
        n = c->units - at < AT_ONCE / c->width ? c->units - at : AT_ONCE / c->width;
        bad = trace_copy_units(s->t, c, at, to + at * c->width, (size_t)n, error);
    }
    return bad;
}

/* By rows, in memory: 1; 0: that is too large, or its elements have no width. */
static int stored_by_rows(stored *s, trace_error *error)
{
    const trace_copy *c = &s->runs[0];
    const uint64_t bytes = c->units * c->width;
    if (c->raw || c->units != s->x->count || bytes > ORDERED_MOST)
        return 0;
    unsigned char *columns = need_memory(bytes + 1, 1);
    const int bad = read_all(s, columns, error);
    if (!bad) {
        s->rows = need_memory(bytes + 1, 1);
        pass_elements_in_rows(s->rows, columns, s->x, c->width);
    }
    free(columns);
    return bad ? -1 : 1;
}

static void stored_close(stored *s)
{
    free(s->rows);
}

/* ---- side by side ---- */

/* What differs: units of a run, bytes or integers. */
typedef struct difference {
    const char *run; /* the part of the tensor, or NULL */
    uint64_t units, differ, first;
    uint64_t values[2];               /* of the first */
    int is_signed[2], integers, form; /* form: other parts, or of another size */
} difference;

static uint64_t unit_at(const unsigned char *p, size_t width, int is_signed)
{
    uint64_t x = 0;
    for (size_t i = 0; i < width && i < sizeof x; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return is_signed && width < 8 && x >> (8 * width - 1) ? x | UINT64_MAX << (8 * width) : x;
}

static int same_unit(const difference *d, uint64_t a, uint64_t b)
{
    return a == b && (d->is_signed[0] == d->is_signed[1] || a >> 63 == 0);
}

static void look(difference *d, uint64_t first, const unsigned char *a, const unsigned char *b, const size_t width[2],
                 size_t n)
{
    if (width[0] == width[1] && d->is_signed[0] == d->is_signed[1] && memcmp(a, b, n * width[0]) == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = unit_at(a + i * width[0], width[0], d->is_signed[0]);
        const uint64_t y = unit_at(b + i * width[1], width[1], d->is_signed[1]);
        const int wide = width[0] > 8 && memcmp(a + i * width[0], b + i * width[0], width[0]) != 0;
        if ((same_unit(d, x, y) && !wide) || d->differ++)
            continue;
        d->first = first + i;
        d->values[0] = x;
        d->values[1] = y;
    }
}

/* All units of a run of each side. */
static int compare_runs(stored of[2], size_t run, difference *d, trace_error *error)
{
    const trace_copy *a = &of[0].runs[run], *b = &of[1].runs[run];
    const size_t width[2] = {a->width, b->width};
    const size_t most = AT_ONCE / (width[0] > width[1] ? width[0] : width[1]), room = most ? most : 1;
    unsigned char *x = need_memory(room, width[0]), *y = need_memory(room, width[1]);
    int bad = 0;
    for (uint64_t at = 0; at < a->units && !bad; at += room) {
        const size_t n = a->units - at < room ? (size_t)(a->units - at) : room;
        bad = stored_units(&of[0], run, at, x, n, error) || stored_units(&of[1], run, at, y, n, error);
        if (!bad)
            look(d, at, x, y, width, n);
    }
    d->units = a->units;
    free(x);
    free(y);
    return bad;
}

/* The first run that differs. */
static int compare_stored(stored of[2], difference *d, trace_error *error)
{
    d->form = of[0].n != of[1].n;
    for (size_t run = 0; run < of[0].n && !d->form; run++) {
        const trace_copy *a = &of[0].runs[run], *b = &of[1].runs[run];
        d->form = a->units != b->units || (a->width != b->width && !d->integers);
        if (d->form || compare_runs(of, run, d, error))
            return d->form ? 0 : -1;
        if (d->differ) {
            d->run = of[0].n > 1 ? a->tensor.name : NULL;
            return 0;
        }
    }
    return 0;
}

/* ---- what is said of it ---- */

static const char *value_text(char out[24], uint64_t x, int is_signed)
{
    if (is_signed)
        snprintf(out, 24, "%" PRId64, (int64_t)x);
    else
        snprintf(out, 24, "%" PRIu64, x);
    return out;
}

static void say_difference(finding *f, const difference *d)
{
    char n[32], all[32], at[32], a[24], b[24], name[256];
    if (d->run)
        diff_finding_say(f, "of '%s' ", escape_text(name, sizeof name, d->run));
    diff_finding_say(f, "%s of %s %s differ, the first at %s: ", text_count(n, d->differ), text_count(all, d->units),
                     d->integers ? "integers" : "bytes", text_count(at, d->first));
    if (d->integers)
        diff_finding_say(f, "%s in A, %s in B", value_text(a, d->values[0], d->is_signed[0]),
                         value_text(b, d->values[1], d->is_signed[1]));
    else
        diff_finding_say(f, "0x%02" PRIx64 " in A, 0x%02" PRIx64 " in B", d->values[0], d->values[1]);
}

static void say_not_compared(finding *f, const char *where, const char *why)
{
    diff_finding_init(f, VERDICT_NOT_COMPARED);
    diff_finding_say(f, "%s: %s", where, why);
}

/* ---- two tensors ---- */

static int same_shape(const side_tensor *x, const side_tensor *y)
{
    return x->rank == y->rank && (x->rank == 0 || memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0);
}

/* Whether both sides have one dtype, however their files spell it. */
static int same_dtype(const stored of[2])
{
    const char *a = trace_copy_dtype(of[0].x), *b = trace_copy_dtype(of[1].x);
    return strcmp(a ? a : of[0].x->dtype, b ? b : of[1].x->dtype) == 0;
}

/* What dtypes and shapes tell. */
static int differ_in_form(const verdict_case *c, finding *f, const stored of[2], int integers)
{
    const side_tensor *x = c->tensors[0], *y = c->tensors[1];
    char shape[2][96];
    const int dtypes = !integers && !same_dtype(of), counts = x->count != y->count;
    if (!dtypes && !counts)
        return 0;
    diff_finding_init(f, counts ? VERDICT_RESIZED : VERDICT_INCOMPARABLE);
    diff_finding_say(f, "%s %s in A, %s %s in B", x->dtype, text_shape(shape[0], sizeof shape[0], x->shape, x->rank),
                     y->dtype, text_shape(shape[1], sizeof shape[1], y->shape, y->rank));
    return 1;
}

static void judge(const verdict_case *c, finding *f, const stored of[2], const difference *d)
{
    const side_tensor *x = c->tensors[0], *y = c->tensors[1];
    if (d->form || d->differ) {
        diff_finding_init(f, d->integers ? VERDICT_INTEGERS : VERDICT_BYTES);
        if (d->form)
            diff_finding_say(f, "they take another number of bytes in A and in B");
        else
            say_difference(f, d);
    } else if (!same_dtype(of)) {
        diff_finding_init(f, VERDICT_DTYPE);
        diff_finding_say(f, "all integers are equal, as %s in A and as %s in B", x->dtype, y->dtype);
    } else if (!same_shape(x, y)) {
        diff_finding_init(f, VERDICT_RESHAPED);
        diff_finding_say(f, "all %s are equal, in another shape", d->integers ? "integers" : "bytes");
    } else {
        diff_finding_init(f, VERDICT_EQUAL);
    }
}

static int is_other_order(const stored of[2])
{
    return pass_elements_by_columns(of[0].x) != pass_elements_by_columns(of[1].x);
}

/* By rows on both sides, where the files have different orders. */
static int order_rows(stored of[2], finding *f, trace_error *error)
{
    int code = 1;
    for (int s = 0; s < 2 && code == 1 && is_other_order(of); s++)
        if (pass_elements_by_columns(of[s].x))
            code = stored_by_rows(&of[s], error);
    if (code == 0)
        say_not_compared(f, "one is stored by columns, the other by rows", "too large to be compared");
    return code;
}

/* Whether the file of a side does not have its bytes. */
static int is_nowhere(const verdict_case *c, finding *f, const stored of[2])
{
    const int s = of[0].n != 0;
    if (c->tensors[0]->count == 0 || of[s].n)
        return 0;
    say_not_compared(f, s ? "B" : "A", of[s].x->unread ? of[s].x->unread : "it is not read");
    return 1;
}

int diff_bytes_compare(verdict_case *c, finding *f, trace_error *error)
{
    stored of[2] = {{.n = 0}};
    difference d = {.run = NULL};
    int bad = stored_open(&of[0], c->sides[0], c->tensors[0], error) ||
              stored_open(&of[1], c->sides[1], c->tensors[1], error);
    if (!bad) {
        d.integers = trace_integers(of[0].x, &d.is_signed[0]) && trace_integers(of[1].x, &d.is_signed[1]);
        d.is_signed[0] &= d.integers;
        d.is_signed[1] &= d.integers;
    }
    if (!bad && !differ_in_form(c, f, of, d.integers) && !is_nowhere(c, f, of)) {
        const int order = order_rows(of, f, error);
        bad = order < 0 || (order && compare_stored(of, &d, error));
        if (!bad && order)
            judge(c, f, of, &d);
    }
    stored_close(&of[0]);
    stored_close(&of[1]);
    return bad ? -1 : 0;
}

int diff_bytes_codes(verdict_case *c, finding *f, trace_error *error)
{
    stored of[2];
    difference d = {.run = NULL};
    if (stored_open(&of[0], c->sides[0], c->tensors[0], error) ||
        stored_open(&of[1], c->sides[1], c->tensors[1], error))
        return -1;
    const trace_quantised *p = of[0].x->quantised, *q = of[1].x->quantised;
    if (!p || !q || strcmp(p->layout, q->layout) != 0 || strcmp(p->type, q->type) != 0)
        return 0;
    if (compare_stored(of, &d, error))
        return -1;
    if (!d.form && !d.differ)
        return 0;
    diff_finding_init(f, VERDICT_CODES);
    diff_finding_say(f, "all numbers are equal, but not the codes or scales that they are read from: ");
    if (d.form)
        diff_finding_say(f, "they are stored in other parts");
    else
        say_difference(f, &d);
    return 0;
}
