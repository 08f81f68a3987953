/* checkpoint.c -- see checkpoint.h. */
#include "checkpoint.h"

#include "../array/memory.h"
#include "../array/need.h"
#include "../cli/options.h"
#include "../trace/owndigests.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = OWN_DIGESTS_SCHEMA;
static const char key_schema[] = "mpsim.schema", key_run[] = "mpsim.train.run", key_state[] = "mpsim.train.state",
                  key_step[] = "mpsim.step", key_taken[] = "mpsim.optimizer_steps", key_digests[] = OWN_DIGESTS_KEY;

/* ---- runs as text ---- */

char *train_run_text(const train_run *r)
{
    char *text = NULL;
    size_t n;
    FILE *f = need(memory_open(&text, &n));
    const int bad = train_run_write(r, f);
    return need(fclose(f) != 0 || bad ? NULL : text);
}

/* The next line that does not say the number of steps; NULL at the end. */
static const char *next_line(const char **text, size_t *n)
{
    while (**text) {
        const char *line = *text;
        *n = strcspn(line, "\n");
        *text = line + *n + (line[*n] == '\n');
        if (strncmp(line, "steps ", 6) != 0)
            return line;
    }
    *n = 0;
    return NULL;
}

static int is_between(char c)
{
    return c == ' ' || c == ',';
}

static size_t word_length(const char *x, size_t n)
{
    size_t i = 0;
    while (i < n && !is_between(x[i]))
        i++;
    return i;
}

/* The place of the word, between blanks and commas, in which two lines begin to differ: of one that goes on where the
 * other ends, the next one. */
static size_t differing_word(const char *x, size_t n, const char *y, size_t m)
{
    const size_t least = n < m ? n : m;
    size_t i = 0, word = 0;
    for (; i < least && x[i] == y[i]; i++)
        if (is_between(x[i]))
            word = i + 1;
    return i == least && n != m && is_between((n < m ? y : x)[i]) ? i + 1 : word;
}

/* A part of a line, cut at `most`; where there is none, what says so. */
typedef struct piece {
    const char *text;
    int n;
} piece;

static piece cut(const char *x, size_t n, size_t most)
{
    return n ? (piece){x, (int)(n < most ? n : most)} : (piece){"nothing more", 12};
}

static piece word_at(const char *x, size_t n, size_t at)
{
    return at < n ? cut(x + at, word_length(x + at, n - at), 60) : cut(NULL, 0, 0);
}

/* What the line is of: "optimizer", and of a layer its name, too: "layer h.0". */
static piece subject(const char *x, size_t n, size_t at)
{
    const size_t first = word_length(x, n);
    const int of_layer = first == 5 && memcmp(x, "layer", 5) == 0 && n > 6;
    const size_t both = of_layer ? 6 + word_length(x + 6, n - 6) : first;
    return cut(x, both < at ? both : first, 90);
}

int train_run_difference(char *out, size_t size, const char *a, const char *b)
{
    size_t n, m;
    for (;;) {
        const char *x = next_line(&a, &n), *y = next_line(&b, &m);
        if (!x && !y)
            return 0;
        if (x && y && n == m && memcmp(x, y, n) == 0)
            continue;
        const size_t at = x && y ? differing_word(x, n, y, m) : 0;
        const piece of = at ? subject(x, n, at) : (piece){"", 0}, p = at ? word_at(x, n, at) : cut(x, n, 90),
                    q = at ? word_at(y, m, at) : cut(y, m, 90);
        snprintf(out, size, "%.*s%s%.*s, not %.*s", of.n, of.text, at ? " " : "", p.n, p.text, q.n, q.text);
        return 1;
    }
}

/* ---- writing ---- */

typedef struct taking {
    stored_list *list;
    train_engine *engine;
    char error[TRAIN_ERROR];
} taking;

static int take(const train_item *x, void *context)
{
    taking *t = context;
    return x->state ? train_stored_add(t->list, t->engine, x, t->error) : 0;
}

static char *state_text(const train *t)
{
    const size_t n = train_state_save(t, NULL, 0);
    char *text = need_memory(n + 1, 1);
    (void)train_state_save(t, text, n + 1);
    return text;
}

int train_checkpoint_take(checkpoint *c, const char *path, train *t, const checkpoint_note *own, trace_error *error)
{
    taking k = {.list = &c->list, .engine = train_engine_of(t)};
    train_checkpoint_clear(c);
    c->note = *own;
    c->state = state_text(t);
    return train_visit(t, take, &k) ? trace_error_set(error, EXIT_IO, path, UINT64_MAX, "%s", k.error) : 0;
}

int train_checkpoint_write(const checkpoint *c, const char *path, const train_run *r, trace_error *error)
{
    char *run = train_run_text(r), step[24], taken[24];
    snprintf(step, sizeof step, "%" PRIu64, c->note.step);
    snprintf(taken, sizeof taken, "%" PRIu64, c->note.taken);
    const char *pairs[][2] = {{key_schema, schema}, {key_step, step},      {key_taken, taken},
                              {key_run, run},       {key_state, c->state}, {key_digests, NULL}};
    const size_t n = sizeof pairs / sizeof *pairs;
    char *digests = train_stored_digests(&c->list, (const char *const(*)[2])pairs, n - 1);
    pairs[n - 1][1] = digests;
    const int bad = train_stored_write(&c->list, path, (const char *const(*)[2])pairs, n, error);
    free(run);
    free(digests);
    return bad;
}

void train_checkpoint_clear(checkpoint *c)
{
    train_stored_clear(&c->list);
    free(c->state);
    memset(c, 0, sizeof *c);
}

/* ---- reading ---- */

static int bad_file(const trace *t, trace_error *error, const char *what)
{
    return trace_error_set(error, train_error_exit(what), trace_path(t), UINT64_MAX, "%s", what);
}

/* Whether it says that it is a checkpoint; that it has the digests that it should have, trace_open knows. */
static int check_file(trace *t, trace_error *error)
{
    const char *is = trace_metadata(t, key_schema);
    if (!is || strcmp(is, schema) != 0)
        return bad_file(t, error, "not a checkpoint of mpsim train");
    return trace_metadata(t, key_run) && trace_metadata(t, key_state) && trace_metadata(t, key_step)
               ? 0
               : bad_file(t, error, "not a checkpoint of mpsim train");
}

static trace *open_checkpoint(const char *path, trace_error *error)
{
    trace *t = trace_open(path, NULL, error);
    if (t && check_file(t, error)) {
        trace_close(t);
        return NULL;
    }
    return t;
}

typedef struct putting {
    trace *from;
    train_engine *engine;
    size_t found; /* tensors of the file that the trainer has */
    trace_error *error;
} putting;

static ptrdiff_t find_tensor(const trace *t, const char *name)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (strcmp(trace_at(t, i)->name, name) == 0)
            return (ptrdiff_t)i;
    return -1;
}

static int same_shape(const trace_tensor *t, const train_item *x)
{
    int same = t->rank == x->rank && t->count == x->tensor->rows * x->tensor->cols;
    for (size_t i = 0; same && i < x->rank; i++)
        same = t->shape[i] == x->shape[i];
    return same;
}

/* Values as binary32. What is no number of f is refused: -1, and *error filled. */
static int read_values(putting *p, const trace_tensor *tensor, const mpsim_format *f, float *values)
{
    double block[512];
    float rounded[512];
    mpsim_rounding nearest;
    size_t at = 0, got;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    while (at < tensor->count) {
        const size_t want = tensor->count - at < 512 ? (size_t)tensor->count - at : 512;
        if (trace_read(p->from, block, want, &got, p->error))
            return -1;
        if (got != want)
            return bad_file(p->from, p->error, "a tensor that ends early");
        for (size_t i = 0; i < got; i++)
            values[at + i] = isnan(block[i]) ? (float)NAN : (float)block[i];
        if (mpsim_round_array_f32(f, &nearest, NULL, rounded, values + at, got, NULL))
            return bad_file(p->from, p->error, "a format that cannot be read");
        for (size_t i = 0; i < got; i++)
            if (!(rounded[i] == values[at + i] || (isnan(rounded[i]) && isnan(values[at + i]))))
                return trace_error_set(p->error, EXIT_DATA, trace_path(p->from), UINT64_MAX,
                                       "tensor '%s': %g is not a number of %s", tensor->name, (double)values[at + i],
                                       f->name);
        at += got;
    }
    return 0;
}

static int put(const train_item *x, void *context)
{
    putting *p = context;
    const char *path = trace_path(p->from);
    if (!x->state)
        return 0;
    const mpsim_format *f = x->tensor->format, *stored = train_stored_format(f);
    const ptrdiff_t i = find_tensor(p->from, x->name);
    if (i < 0)
        return trace_error_set(p->error, EXIT_DATA, path, UINT64_MAX, "tensor '%s' is missing", x->name);
    const trace_tensor *tensor = trace_at(p->from, (size_t)i);
    if (!tensor->format || strcmp(tensor->format->name, stored->name) != 0 || !same_shape(tensor, x))
        return trace_error_set(p->error, EXIT_DATA, path, UINT64_MAX,
                               "tensor '%s' is not of the shape and the format that the run has (%s)", x->name,
                               stored->name);
    float *values = need_memory(tensor->count, sizeof *values);
    int bad = trace_select(p->from, (size_t)i, p->error);
    if (!bad)
        bad = read_values(p, tensor, f, values);
    if (!bad && p->engine->ops->put(p->engine, x->tensor, values))
        bad = trace_error_set(p->error, EXIT_IO, path, UINT64_MAX, "%s", p->engine->error);
    free(values);
    p->found += !bad;
    return bad;
}

static int check_run(const trace *t, const train_run *r, trace_error *error)
{
    char difference[256];
    char *own = train_run_text(r);
    int bad = 0;
    if (train_run_difference(difference, sizeof difference, trace_metadata(t, key_run), own))
        bad = trace_error_set(error, EXIT_DATA, trace_path(t), UINT64_MAX, "a checkpoint of another run: %s",
                              difference);
    free(own);
    return bad;
}

static int read_note(const trace *t, const train *own, checkpoint_note *n, trace_error *error)
{
    const char *taken = trace_metadata(t, key_taken);
    if (parse_count(&n->step, trace_metadata(t, key_step)) || n->step != train_steps_done(own) || !taken ||
        parse_count(&n->taken, taken) || n->taken > n->step)
        return bad_file(t, error, "its numbers of steps contradict each other");
    return 0;
}

int train_checkpoint_read(const char *path, const train_run *r, train *t, checkpoint_note *n, trace_error *error)
{
    char line[TRAIN_ERROR];
    trace *from = open_checkpoint(path, error);
    if (!from)
        return -1;
    putting p = {.from = from, .engine = train_engine_of(t), .error = error};
    int bad = check_run(from, r, error);
    if (!bad && train_state_load(t, trace_metadata(from, key_state), line))
        bad = bad_file(from, error, line);
    if (!bad)
        bad = read_note(from, t, n, error);
    if (!bad)
        bad = train_visit(t, put, &p);
    if (!bad && p.found != trace_count(from))
        bad = bad_file(from, error, "it holds tensors that the run does not have");
    trace_close(from);
    return bad ? -1 : 0;
}

int train_checkpoint_run(const char *path, train_run *r, trace_error *error)
{
    char line[TRAIN_ERROR];
    int bad = 0;
    trace *t = open_checkpoint(path, error);
    if (!t)
        return -1;
    const char *text = trace_metadata(t, key_run);
    char *copy = need_text(text);
    FILE *f = *copy ? need(fmemopen(copy, strlen(copy), "r")) : NULL;
    if (!f)
        bad = bad_file(t, error, "the run that its metadata should describe is empty");
    else if (train_run_read(r, f, line))
        bad = bad_file(t, error, line);
    if (f)
        fclose(f);
    free(copy);
    trace_close(t);
    return bad;
}
