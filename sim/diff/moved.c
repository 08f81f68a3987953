/* moved.c -- rows, or columns, of B that are A's at other places: which went where, and what remains.
 *
 * linematch.c finds the places from some elements of each line. Here all elements of the matched lines are read, of large
 * tensors those of some lines, and what is said of a rounding is true of each of them. */
#include "impl.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED = 1 << 21, SAID = 12, SHORTEST = 16 };

/* ---- reading ---- */

static int all_finite(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return 0;
    return 1;
}

/* One row of B and what A has in its place. */
static int add_row(remains *r, const line_match *m, walk *w, uint64_t row, double *const x[3], trace_error *error)
{
    const uint64_t from = m->columns ? row : m->from[row], length = m->length;
    if (from == LINE_NONE)
        return 0;
    if (pass_elements_values(&w->of[0].from, from * length, x[0], (size_t)length, error) ||
        pass_elements_values(&w->of[1].from, row * length, x[1], (size_t)length, error))
        return -1;
    if (!all_finite(x[0], (size_t)length) || !all_finite(x[1], (size_t)length))
        return 0;
    size_t n = 0;
    for (uint64_t i = 0; i < length; i++) {
        const uint32_t at = m->columns ? m->from[i] : (uint32_t)i;
        if (at == LINE_NONE)
            continue;
        x[2][n] = x[0][at];
        x[1][n++] = x[1][i];
    }
    for (size_t at = 0; at < n; at += FIT_MOST)
        diff_remains_add(r, x[2] + at, x[1] + at, n - at < FIT_MOST ? n - at : FIT_MOST);
    return 0;
}

static int read_remains(remains *r, const line_match *m, walk *w, trace_error *error)
{
    const uint64_t rows = w->of[1].tensor->count / m->length, most = LOOKED / m->length + 1;
    const uint64_t step = (rows - 1) / most + 1;
    double *const x[] = {need_memory(m->length, sizeof **x), need_memory(m->length, sizeof **x),
                         need_memory(m->length, sizeof **x)};
    int bad = 0;
    for (uint64_t row = 0; row < rows && !bad; row += step)
        bad = add_row(r, m, w, row, x, error);
    for (int i = 0; i < 3; i++)
        free(x[i]);
    return bad;
}

/* ---- what order it is ---- */

/* Lines of groups of n are in these places: an order of A's places for B's place i of n. */
static uint64_t halves_of_pairs(uint64_t i, uint64_t n)
{
    return i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
}
static uint64_t pairs_of_halves(uint64_t i, uint64_t n)
{
    return i % 2 ? n / 2 + i / 2 : i / 2;
}
static uint64_t backwards(uint64_t i, uint64_t n)
{
    return n - 1 - i;
}

static const struct {
    uint64_t (*place)(uint64_t i, uint64_t n);
    uint64_t least;
    const char *words;
} orders[] = {
    {backwards, 2, "in each group of %s, %s run backwards"},
    {halves_of_pairs, 4,
     "in each group of %s, B has the even %s first, then the odd ones: pairs of a rotary embedding that became halves"},
    {pairs_of_halves, 4,
     "in each group of %s, B has %s of both halves in turn: halves of a rotary embedding that became pairs"},
};

static int is_order(const line_match *m, uint64_t n, size_t order)
{
    for (uint64_t i = 0; i < m->n; i++)
        if (m->from[i] != i - i % n + orders[order].place(i % n, n))
            return 0;
    return 1;
}

/* Whether groups of n lines went as a whole. */
static int is_in_groups(const line_match *m, uint64_t n)
{
    for (uint64_t i = 0; i < m->n; i++)
        if (m->from[i] == LINE_NONE || m->from[i - i % n] % n || m->from[i] != m->from[i - i % n] + i % n)
            return 0;
    return 1;
}

static int is_turned(const line_match *m)
{
    for (uint64_t i = 0; i < m->n; i++)
        if (m->from[i] != (m->from[0] + i) % m->n)
            return 0;
    return 1;
}

static const char *lines_word(const line_match *m)
{
    return m->columns ? "columns" : "rows";
}

static int say_order(finding *f, const line_match *m)
{
    char a[32];
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++)
        for (uint64_t n = m->n; n >= orders[k].least; n--)
            if (m->n % n == 0 && is_order(m, n, k)) {
                diff_finding_say(f, orders[k].words, text_count(a, n), lines_word(m));
                return 1;
            }
    return 0;
}

/* The first lines, or groups, that moved. */
static void say_moves(finding *f, const line_match *m, uint64_t n)
{
    int said = 0;
    for (uint64_t i = 0; i < m->n && said < SAID; i += n)
        if (m->from[i] != LINE_NONE && m->from[i] != i) {
            diff_finding_say(f, "%s%llu is %llu", said ? ", " : ": B's ", (unsigned long long)(i / n),
                             (unsigned long long)(m->from[i] / n));
            said += 1;
        }
    diff_finding_say(f, " of A%s", said == SAID ? ", ..." : "");
}

static void say_places(finding *f, const line_match *m)
{
    char a[32], b[32], d[32];
    uint64_t n = m->n / 2;
    if (say_order(f, m))
        return;
    while (n > 1 && (m->n % n || !is_in_groups(m, n)))
        n--;
    if (n > 1)
        diff_finding_say(f, "%s groups of %s %s changed places, each whole, as heads or experts do",
                         text_count(a, m->n / n), text_count(b, n), lines_word(m));
    else if (is_turned(m))
        diff_finding_say(f, "the %s %s go round", text_count(a, m->n), lines_word(m));
    else
        diff_finding_say(f, "%s of %s %s have changed places", text_count(a, m->found), text_count(b, m->n),
                         lines_word(m));
    say_moves(f, m, n > 1 ? n : 1);
    if (m->found < m->moved)
        diff_finding_say(f, "; A has no match for %s other %s", text_count(d, m->moved - m->found), lines_word(m));
}

/* ---- the judge ---- */

static int try_lines(verdict_case *c, finding *f, uint64_t length, int columns, trace_error *error)
{
    line_match m;
    remains r = {0};
    int result = diff_line_match(&m, &c->walk, length, columns, error);
    if (result > 0 && read_remains(&r, &m, &c->walk, error))
        result = -1;
    if (result > 0 && (result = diff_remains_explain(&r))) {
        diff_finding_init(f, VERDICT_REARRANGED);
        say_places(f, &m);
        diff_remains_say(f, &r);
    }
    diff_line_match_clear(&m);
    return result;
}

static int has_same_shape(const side_tensor *x, const side_tensor *y)
{
    return x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
}

int diff_moved_lines(verdict_case *c, finding *f, trace_error *error)
{
    const side_tensor *t = c->tensors[1];
    const measure *m = &c->all;
    int found;
    if (t->rank < 2 || !has_same_shape(c->tensors[0], t) || t->count > UINT64_C(1) << 40 ||
        m->levels[0].n <= MEASURE_LEVELS || m->levels[1].n <= MEASURE_LEVELS)
        return 0;
    const uint64_t last = t->shape[t->rank - 1], length = last < SHORTEST ? t->count / t->shape[0] : last;
    found = try_lines(c, f, length, 0, error);
    return found || last > t->count / last * 65536 ? found : try_lines(c, f, last, 1, error);
}
