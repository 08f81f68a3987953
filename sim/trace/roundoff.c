/* roundoff.c -- see roundoff.h, which has the bound and its reasons. */
#include "roundoff.h"

#include "impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 12, ROW = 4 }; /* ROW: so many elements in a row are no chance */
enum { BY_TERMS, BY_WEIGHT, BY_GAP };

/* ---- which tensors belong together ---- */

typedef struct search {
    trace *t;
    trace_error *error;
    const trace_entry **gradients; /* wgrad and agrad, by name */
    size_t n;
    uint64_t *bytes;
    double x[BLOCK];
} search;

/* The bias under inspection, n elements; of each the sum of its terms, and what rounding is measured by. */
typedef struct bias {
    trace_entry *e;
    size_t n;
    double *values, *sum, *size;
    unsigned char *marks;
    double most; /* of size: at most so much is round-off */
    int evidence;
} bias;

static int by_name(const void *a, const void *b)
{
    const trace_tensor *x = &(*(const trace_entry *const *)a)->tensor, *y = &(*(const trace_entry *const *)b)->tensor;
    const int names = strcmp(x->fqn, y->fqn);
    return names ? names : strcmp(x->kind, y->kind);
}

static int is_gradient(const trace_tensor *x)
{
    return x->kind && x->format && !x->fortran && (strcmp(x->kind, "wgrad") == 0 || strcmp(x->kind, "agrad") == 0);
}

/* The last component of a bias's name, which ends with one of these words; NULL: it is none. */
static const char *bias_word(const trace_tensor *x)
{
    static const char *const words[] = {"bias", "beta"};
    const size_t n = strlen(x->fqn);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n >= strlen(words[i]) && strcmp(x->fqn + n - strlen(words[i]), words[i]) == 0)
            return x->fqn + n - strlen(words[i]);
    return NULL;
}

static int is_bias(const trace_tensor *x)
{
    enum { MOST = 1 << 22 };
    return is_gradient(x) && strcmp(x->kind, "wgrad") == 0 && x->rank == 1 && x->count > 0 && x->count <= MOST &&
           bias_word(x);
}

static const trace_entry *find(const search *s, const char *kind, const char *fqn)
{
    const trace_entry wanted = {.tensor = {.kind = kind, .fqn = fqn}}, *key = &wanted;
    const trace_entry *const *at = bsearch(&key, s->gradients, s->n, sizeof *s->gradients, by_name);
    return at ? *at : NULL;
}

/* "fc1.bias": agrad of "fc1"; and the gradient of "fc1.weight", or "fc1.kernel". */
static const trace_entry *terms_of(const search *s, const trace_tensor *x)
{
    const char *dot = strrchr(x->fqn, '.');
    char *layer = dot ? strdup(x->fqn) : NULL;
    if (layer)
        layer[dot - x->fqn] = '\0';
    const trace_entry *e = layer ? find(s, "agrad", layer) : NULL;
    free(layer);
    return e;
}

static const trace_entry *weight_of(const search *s, const trace_tensor *x)
{
    static const char *const words[] = {"weight", "kernel"};
    const size_t before = (size_t)(bias_word(x) - x->fqn);
    char *name = malloc(before + sizeof "weight");
    const trace_entry *e = NULL;
    for (size_t i = 0; name && !e && i < sizeof words / sizeof *words; i++) {
        memcpy(name, x->fqn, before);
        strcpy(name + before, words[i]);
        e = find(s, "wgrad", name);
    }
    free(name);
    return e;
}

/* ---- what belongs to an element: its terms, its row of the weight ---- */

/* Element i of a tensor belongs to element (i / inner) % n of the bias. 0: to none. */
typedef struct layout {
    uint64_t inner;
    size_t n;
} layout;

static int has_dimension(layout *l, const trace_tensor *x, size_t d, size_t n)
{
    *l = (layout){1, n};
    if (d >= x->rank || x->shape[d] != n)
        return 0;
    for (size_t k = d + 1; k < x->rank; k++)
        l->inner *= x->shape[k];
    return 1;
}

/* Features come last, channels of images second. */
static int layout_of_terms(layout *l, const trace_tensor *x, size_t n)
{
    const size_t last = x->rank ? x->rank - 1 : 0, first = x->rank > 3 ? 1 : last, other = first == last ? 1 : last;
    return has_dimension(l, x, first, n) || (x->rank > 2 && has_dimension(l, x, other, n));
}

typedef void see(bias *b, size_t j, double x);

static void see_term(bias *b, size_t j, double x)
{
    b->sum[j] += x;
    b->size[j] += fabs(x);
}

static void see_weight(bias *b, size_t j, double x)
{
    b->size[j] = fmax(b->size[j], fabs(x));
}

static int read_tensor(search *s, const trace_entry *e, const layout *l, see *told, bias *b)
{
    uint64_t i = 0;
    size_t got;
    if (trace_select(s->t, (size_t)(e - s->t->entries), s->error))
        return -1;
    *s->bytes += e->tensor.count * trace_width(e);
    do {
        if (trace_read(s->t, s->x, BLOCK, &got, s->error))
            return -1;
        for (size_t k = 0; k < got; k++, i++)
            told(b, (size_t)(i / l->inner % l->n), s->x[k]);
    } while (got);
    return 0;
}

static void see_value(bias *b, size_t j, double x)
{
    b->values[j] = x;
}

/* ---- how large round-off may be ---- */

static double unit_roundoff(const mpsim_format *f)
{
    return ldexp(1, -(int)f->mbits - 1);
}

/* A sum in the format of the bias, of binary32 at least. */
static double of_sum(const bias *b)
{
    return fmin(unit_roundoff(b->e->tensor.format), 0x1p-24);
}

static int by_terms(search *s, bias *b, const trace_entry *e, const layout *l)
{
    const double terms = (double)e->tensor.count / (double)b->n;
    b->evidence = BY_TERMS;
    b->most = 64 * of_sum(b);
    if (e->tensor.format->mbits < 23)
        b->most = fmax(b->most, 4 * unit_roundoff(e->tensor.format) / sqrt(terms));
    return read_tensor(s, e, l, see_term, b);
}

/* Along rows; of what may lie either way the smaller. */
static int by_weight(search *s, bias *b, const trace_entry *e)
{
    const trace_tensor *x = &e->tensor;
    layout rows, columns;
    const int has_rows = has_dimension(&rows, x, 0, b->n), has_columns = has_dimension(&columns, x, x->rank - 1, b->n);
    b->evidence = BY_WEIGHT;
    b->most = 64 * of_sum(b);
    if (read_tensor(s, e, has_rows ? &rows : &columns, see_weight, b))
        return -1;
    if (!has_rows || !has_columns || x->rank < 2)
        return 0;
    memcpy(b->sum, b->size, b->n * sizeof *b->sum);
    memset(b->size, 0, b->n * sizeof *b->size);
    if (read_tensor(s, e, &columns, see_weight, b))
        return -1;
    for (size_t j = 0; j < b->n; j++) {
        b->size[j] = fmin(b->size[j], b->sum[j]);
        b->sum[j] = 0;
    }
    return 0;
}

/* All beside the largest, unless something lies between. */
static void by_gap(bias *b)
{
    double amax = 0;
    for (size_t j = 0; j < b->n; j++)
        amax = fmax(amax, fabs(b->values[j]));
    b->evidence = BY_GAP;
    b->most = 16 * of_sum(b);
    for (size_t j = 0; j < b->n; j++) {
        const double x = fabs(b->values[j]);
        b->size[j] = amax;
        if (x > b->most * amax && x < 0x1p8 * b->most * amax)
            b->most = 0;
    }
}

static int measure(search *s, bias *b)
{
    const trace_tensor *x = &b->e->tensor;
    const trace_entry *terms = terms_of(s, x), *weight = weight_of(s, x);
    layout l;
    if (terms && terms->tensor.count > 0 && layout_of_terms(&l, &terms->tensor, b->n))
        return by_terms(s, b, terms, &l);
    if (weight && weight->tensor.rank && weight->tensor.count > 0 &&
        (has_dimension(&l, &weight->tensor, 0, b->n) ||
         has_dimension(&l, &weight->tensor, weight->tensor.rank - 1, b->n)))
        return by_weight(s, b, weight);
    by_gap(b);
    return 0;
}

/* ---- which elements ---- */

static int may_be(const bias *b, size_t j)
{
    const double bound = b->most * b->size[j];
    return isfinite(bound) && fabs(b->values[j]) <= bound && fabs(b->sum[j]) <= bound;
}

/* Those in a row, from `first` to `end` - 1: marked where there are enough. */
static uint64_t mark_row(bias *b, size_t first, size_t end)
{
    uint64_t n = 0;
    for (size_t j = first; j < end; j++)
        n += b->values[j] != 0;
    if (n < ROW && end - first < b->n)
        return 0;
    for (size_t j = first; j < end; j++)
        b->marks[j] = b->values[j] != 0;
    return n;
}

static uint64_t mark(bias *b)
{
    uint64_t n = 0;
    for (size_t j = 0, end; j < b->n; j = end + 1) {
        end = j;
        while (end < b->n && (b->values[end] == 0 || may_be(b, end)))
            end++;
        n += mark_row(b, j, end);
    }
    return n;
}

static int look_at(search *s, bias *b)
{
    const layout own = {1, b->n};
    if (read_tensor(s, b->e, &own, see_value, b) || measure(s, b))
        return -1;
    const uint64_t n = mark(b);
    trace_rounded *r = n ? trace_alloc(s->t, sizeof *r) : NULL;
    if (n && !r)
        return trace_no_memory(s->t, s->error);
    if (r)
        *r = (trace_rounded){n, b->evidence, b->marks};
    b->e->tensor.roundoff = r;
    return 0;
}

static int look_at_bias(search *s, trace_entry *e)
{
    bias b = {.e = e, .n = (size_t)e->tensor.count};
    double *numbers = calloc(b.n, 3 * sizeof *numbers);
    b.marks = trace_alloc(s->t, b.n);
    if (!numbers || !b.marks) {
        free(numbers);
        return trace_no_memory(s->t, s->error);
    }
    memset(b.marks, 0, b.n);
    b.values = numbers;
    b.sum = numbers + b.n;
    b.size = numbers + 2 * b.n;
    const int failed = look_at(s, &b);
    free(numbers);
    return failed;
}

static int look_at_all(search *s)
{
    trace *t = s->t;
    int failed = 0;
    for (size_t i = 0; i < t->count; i++)
        if (is_gradient(&t->entries[i].tensor))
            s->gradients[s->n++] = &t->entries[i];
    qsort(s->gradients, s->n, sizeof *s->gradients, by_name);
    for (size_t i = 0; i < t->count && !failed; i++)
        if (is_bias(&t->entries[i].tensor) && !t->entries[i].tensor.roundoff)
            failed = look_at_bias(s, &t->entries[i]);
    return failed;
}

int trace_find_roundoff(trace *t, uint64_t *bytes, trace_error *error)
{
    size_t biases = 0;
    *bytes = 0;
    for (size_t i = 0; i < t->count; i++)
        biases += (size_t)is_bias(&t->entries[i].tensor);
    if (!biases)
        return 0;
    search *s = malloc(sizeof *s);
    const trace_entry **gradients = malloc(t->count * sizeof *gradients);
    int failed = !s || !gradients ? trace_no_memory(t, error) : 0;
    if (!failed) {
        s->t = t;
        s->error = error;
        s->gradients = gradients;
        s->n = 0;
        s->bytes = bytes;
        failed = look_at_all(s);
    }
    free(gradients);
    free(s);
    return failed;
}

/* ---- what readers see ---- */

uint64_t trace_roundoff(const trace *t, size_t i, uint64_t first, uint64_t n)
{
    const trace_rounded *r = t->entries[i].tensor.roundoff;
    uint64_t sum = 0;
    for (uint64_t k = 0; r && k < n; k++)
        sum += r->marks[first + k];
    return sum;
}

const char *trace_roundoff_evidence(int evidence)
{
    static const char *const words[] = {
        [BY_TERMS] = "the recorded terms of the sum cancel",
        [BY_WEIGHT] = "a guess from the gradient of the weight: the terms were not recorded",
        [BY_GAP] = "a guess from a gap in the tensor: neither terms nor the gradient of a weight were recorded",
    };
    return words[evidence];
}
