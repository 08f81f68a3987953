/* rearrange.c -- see rearrange.h. */
#include "impl.h"

#include "../operand/element.h"

#include <string.h>

/* ---- rows ---- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ (x >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ (x >> 33);
}

typedef struct rows_state {
    uint64_t column, ordered[2], any[2], all[2]; /* of the row at hand; of all rows */
} rows_state;

static void end_row(rows_state *s, rearrange_rows *r)
{
    if (s->ordered[0] != s->ordered[1]) {
        if (r->moved++ == 0)
            r->first = r->rows;
        r->last = r->rows;
    }
    r->within &= s->any[0] == s->any[1];
    for (int k = 0; k < 2; k++) {
        s->all[k] += mixed(s->ordered[k] + 1);
        s->ordered[k] = s->any[k] = 0;
    }
    s->column = 0;
    r->rows++;
}

int diff_rearrange_by_rows(walk *w, uint64_t length, rearrange_rows *found, trace_error *error)
{
    enum { AT_ONCE = 1024 };
    unsigned char codes[2][AT_ONCE * 8];
    rows_state s = {0};
    const uint64_t count = w->of[1].tensor->count;
    *found = (rearrange_rows){.length = length, .within = 1};
    for (uint64_t at = 0; at < count;) {
        const size_t n = count - at < AT_ONCE ? (size_t)(count - at) : AT_ONCE;
        for (int k = 0; k < 2; k++)
            if (pass_elements_codes(&w->of[k].from, at, codes[k], n, error))
                return -1;
        for (size_t i = 0; i < n; i++) {
            for (int k = 0; k < 2; k++) {
                const uint64_t code = mixed(element_code(codes[k], w->of[k].from.width, i) + 1);
                s.any[k] += code;
                s.ordered[k] += mixed(code + s.column);
            }
            if (++s.column == length)
                end_row(&s, found);
        }
        at += n;
    }
    found->whole = s.all[0] == s.all[1];
    return 0;
}

/* ---- shifts ---- */

enum { WINDOW = 16, WINDOWS = 3, CANDIDATES = 8, SEARCHED = 4096 };

typedef struct equality {
    uint64_t same[1024]; /* a lane each */
    size_t width;
} equality;

static int look_same(void *context, int lane, const walk_piece *p)
{
    equality *e = context;
    const unsigned char *x = p->codes[0], *y = p->codes[1];
    for (size_t i = 0; i < p->n; i++)
        e->same[lane] += memcmp(x + i * e->width, y + i * e->width, e->width) == 0;
    return 0;
}

/* How many of B's elements from first to end - 1 are A's `shift` behind them, of those that A has. */
static int count_same(walk *w, uint64_t first, uint64_t end, int64_t shift, uint64_t *same, uint64_t *of,
                      trace_error *error)
{
    const uint64_t n = w->of[0].tensor->count;
    equality e = {.width = w->of[1].from.width};
    if (shift < 0 && first < (uint64_t)-shift)
        first = (uint64_t)-shift;
    if (shift > 0 && end > n - (uint64_t)shift)
        end = n - (uint64_t)shift;
    *same = *of = 0;
    if (first >= end)
        return 0;
    if (diff_walk_range(w, first, end, shift, 0, look_same, &e, error))
        return -1;
    for (int i = 0; i < w->lanes; i++)
        *same += e.same[i];
    *of = end - first;
    return 0;
}

/* Whether a window tells a place from others: a quarter of its elements are different ones. */
static int tells(const unsigned char *window, size_t n, size_t width)
{
    size_t different = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < i && memcmp(window + k * width, window + i * width, width) != 0)
            k++;
        different += k == i;
    }
    return different >= 3 && different >= n / 4;
}

/* Look for the n elements of a window in A, from its beginning on, and judge the shifts that lead there. */
static int search(walk *w, const unsigned char *window, size_t n, uint64_t at, uint64_t first, uint64_t end,
                  int64_t *shift, uint64_t *same, uint64_t *of, trace_error *error)
{
    unsigned char codes[(SEARCHED + WINDOW) * 8];
    source *a = &w->of[0];
    const uint64_t count = a->tensor->count;
    int tried = 0;
    for (uint64_t from = 0; from + n <= count && tried < CANDIDATES; from += SEARCHED) {
        const uint64_t left = count - from, want = SEARCHED + n - 1;
        const size_t got = left < want ? (size_t)left : (size_t)want;
        if (pass_elements_codes(&a->from, from, codes, got, error))
            return -1;
        for (size_t i = 0; i + n <= got && i < SEARCHED && tried < CANDIDATES; i++) {
            if (memcmp(codes + i * a->from.width, window, n * a->from.width) != 0 || from + i == at)
                continue;
            *shift = (int64_t)(from + i) - (int64_t)at;
            if (count_same(w, first, end, *shift, same, of, error))
                return -1;
            if (*of >= (end - first) / 2 && *same >= *of - *of / 10)
                return 1;
            tried++;
        }
    }
    return 0;
}

int diff_rearrange_shift(walk *w, uint64_t first, uint64_t end, int64_t *shift, uint64_t *same, uint64_t *of,
                         trace_error *error)
{
    unsigned char window[WINDOW * 8];
    source *b = &w->of[1];
    const uint64_t span = end - first;
    const size_t n = span >= 4 * WINDOW ? WINDOW : span / 4 > 3 ? (size_t)(span / 4) : 3;
    if (w->of[0].from.width != b->from.width || span < 6 || w->lanes > 1024)
        return 0;
    for (int i = 0; i < WINDOWS; i++) {
        const uint64_t at = first + span / (WINDOWS + 1) * (uint64_t)(i + 1);
        if (at + n > end)
            break;
        if (pass_elements_codes(&b->from, at, window, n, error))
            return -1;
        if (!tells(window, n, b->from.width))
            continue;
        const int found = search(w, window, n, at, first, end, shift, same, of, error);
        if (found)
            return found;
    }
    return 0;
}

/* ---- parts that are missing ---- */

typedef struct mismatch {
    uint64_t first[1024], last[1024]; /* a lane each: places of elements that differ; last: one more */
    size_t width;
} mismatch;

static int look_mismatch(void *context, int lane, const walk_piece *p)
{
    mismatch *m = context;
    const unsigned char *x = p->codes[0], *y = p->codes[1];
    for (size_t i = 0; i < p->n; i++)
        if (memcmp(x + i * m->width, y + i * m->width, m->width) != 0) {
            const uint64_t at = p->first + i;
            m->first[lane] = at < m->first[lane] ? at : m->first[lane];
            m->last[lane] = at + 1 > m->last[lane] ? at + 1 : m->last[lane];
        }
    return 0;
}

static int find_mismatch(walk *w, uint64_t first, uint64_t end, int64_t shift, uint64_t *from, uint64_t *to,
                         trace_error *error)
{
    mismatch m = {.width = w->of[1].from.width};
    for (int i = 0; i < w->lanes; i++)
        m.first[i] = UINT64_MAX;
    if (diff_walk_range(w, first, end, shift, 0, look_mismatch, &m, error))
        return -1;
    *from = UINT64_MAX;
    *to = 0;
    for (int i = 0; i < w->lanes; i++) {
        *from = m.first[i] < *from ? m.first[i] : *from;
        *to = m.last[i] > *to ? m.last[i] : *to;
    }
    return 0;
}

int diff_rearrange_gap(walk *w, uint64_t length, uint64_t *at, trace_error *error)
{
    const uint64_t a = w->of[0].tensor->count, b = w->of[1].tensor->count, n = a < b ? a : b,
                   gap = a < b ? b - a : a - b;
    uint64_t from, to, unused;
    if (n == 0 || w->of[0].from.width != w->of[1].from.width || w->lanes > 1024)
        return 0;
    if (find_mismatch(w, 0, n, 0, &from, &unused, error))
        return -1;
    /* the elements behind the gap: places of B, and A's are a - b behind them */
    if (find_mismatch(w, a < b ? gap : 0, a < b ? b : n, a < b ? -(int64_t)gap : (int64_t)gap, &unused, &to, error))
        return -1;
    to -= a < b && to ? gap : 0; /* as a place of the shorter one */
    from = from < n ? from : n;
    if (to > from)
        return 0;
    *at = length ? from / length * length : from;
    if (*at < to)
        *at = from;
    return 1;
}
