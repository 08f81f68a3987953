/* places.c -- see places.h. */
#include "impl.h"

#include "../record/cells.h"
#include "../text/words.h"

#include <string.h>

static int is_same_multiset(const verdict_case *c)
{
    return memcmp(c->all.multiset[0], c->all.multiset[1], sizeof c->all.multiset[0]) == 0;
}

static uint64_t row_length(const side_tensor *t)
{
    return t->rank >= 2 && t->count ? t->count / t->shape[0] : 0;
}

/* "3 rows of 64" or "192 elements" */
static const char *length_text(char out[96], const side_tensor *t, uint64_t n)
{
    char a[32], b[32];
    const uint64_t row = row_length(t);
    if (row > 1 && n % row == 0)
        snprintf(out, 96, "%s row%s of %s", text_count(a, n / row), n == row ? "" : "s", text_count(b, row));
    else
        snprintf(out, 96, "%s element%s", text_count(a, n), text_plural(n));
    return out;
}

/* ---- as many elements ---- */

/* The axes in another order, or with `flip` some of them backwards. */
static int rearranged(verdict_case *c, finding *f, int flip, trace_error *error)
{
    int axes[REARRANGE_RANK];
    uint64_t looked;
    char a[32], b[32];
    const int found = diff_rearrange_axes(&c->walk, flip, axes, &looked, error);
    if (found <= 0)
        return found;
    diff_finding_init(f, flip ? VERDICT_REVERSED : VERDICT_TRANSPOSED);
    diff_axes_say(f, flip, axes, c->tensors[0]->rank);
    diff_finding_say(f, ": the same codes, and %s of %s places looked at", text_count(a, looked),
                     text_count(b, c->tensors[1]->count));
    return 1;
}

static int shifted(verdict_case *c, finding *f, trace_error *error)
{
    int64_t shift;
    uint64_t same, of;
    char a[32], b[32], text[96], range[96];
    const int found = diff_rearrange_shift(&c->walk, c->first, c->end, &shift, &same, &of, error);
    if (found <= 0)
        return found;
    diff_finding_init(f, VERDICT_SHIFTED);
    f->shift = -shift;
    diff_finding_say(f, "%s: %s of %s are A's %s %s", diff_verdict_range(range, c), text_count(a, same),
                     text_count(b, of), length_text(text, c->tensors[1], (uint64_t)(shift < 0 ? -shift : shift)),
                     shift < 0 ? "before" : "behind");
    if (is_same_multiset(c))
        diff_finding_say(f, "; the same elements, so they go round");
    return 1;
}

static void say_rows(finding *f, const rearrange_rows *r)
{
    char a[32], b[32];
    if (r->moved == 2)
        diff_finding_say(f, "rows %s and %s", text_count(a, r->first), text_count(b, r->last));
    else
        diff_finding_say(f, "%s of %s rows", text_count(a, r->moved), text_count(b, r->rows));
    diff_finding_say(f, " of %s elements have changed places, each whole", text_count(a, r->length));
}

static int permuted_rows(verdict_case *c, finding *f, trace_error *error)
{
    const side_tensor *t = c->tensors[1];
    uint64_t length = t->count;
    rearrange_rows r, within = {0};
    char a[32];
    if (t->rank > 8)
        return 0;
    for (size_t k = 0; k + 1 < t->rank; k++) {
        length /= t->shape[k];
        if (length < 2 || length == t->count)
            continue;
        if (diff_rearrange_by_rows(&c->walk, length, &r, error))
            return -1;
        if (r.whole) {
            diff_finding_init(f, VERDICT_PERMUTED);
            say_rows(f, &r);
            return 1;
        }
        if (r.within)
            within = r;
    }
    if (!within.length)
        return 0;
    diff_finding_init(f, VERDICT_PERMUTED);
    diff_finding_say(f, "elements have changed places within rows of %s, none between them",
                     text_count(a, within.length));
    return 1;
}

/* Few different numbers, many times each: any two such tensors may have them as often. */
static int has_few_levels(const verdict_case *c)
{
    return c->all.levels[0].n <= MEASURE_LEVELS && c->all.count >= 4 * c->all.levels[0].n;
}

int diff_places_moved(verdict_case *c, finding *f, trace_error *error)
{
    char a[32], text[96];
    int found;
    if (!is_same_multiset(c) || c->all.differ < 2)
        return c->measurer.same && c->all.differ > 2 ? shifted(c, f, error) : 0;
    if (c->measurer.same &&
        ((found = rearranged(c, f, 0, error)) || (found = rearranged(c, f, 1, error)) ||
         (found = shifted(c, f, error)) || (!has_few_levels(c) && (found = permuted_rows(c, f, error)))))
        return found;
    if (has_few_levels(c))
        return 0;
    diff_finding_init(f, VERDICT_PERMUTED);
    if (c->all.differ == 2)
        diff_finding_say(f, "elements %s and ", text_count(a, c->first));
    if (c->all.differ == 2)
        diff_finding_say(f, "%s have changed places", text_count(a, c->end - 1));
    else
        diff_finding_say(f, "%s: the same codes, as often (digests of 128 bits), at other places",
                         diff_verdict_range(text, c));
    return 1;
}

/* ---- other counts ---- */

static const char *shape_words(char out[96], const side_tensor *t)
{
    snprintf(out, 96, "[");
    for (size_t i = 0; i < t->rank; i++)
        text_add(out, 96, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
    text_add(out, 96, "]");
    return out;
}

int diff_places_resized(verdict_case *c, finding *f, trace_error *error)
{
    const side_tensor *x = c->tensors[0], *y = c->tensors[1];
    const side_tensor *longer = x->count > y->count ? x : y;
    char a[32], s[96], t[96];
    uint64_t at;
    diff_finding_init(f, VERDICT_RESIZED);
    diff_finding_say(f, "%s in A, %s in B; ", shape_words(s, x), shape_words(t, y));
    if (!c->measurer.same)
        return 1;
    const int found = diff_rearrange_gap(&c->walk, row_length(longer), &at, error);
    if (found < 0)
        return -1;
    const uint64_t gap = x->count > y->count ? x->count - y->count : y->count - x->count;
    const uint64_t row = row_length(longer);
    if (!found)
        diff_finding_say(f, "not A with a part missing, nor B");
    else
        diff_finding_say(f, "%s %s, from %s %s on; the rest is equal", length_text(s, longer, gap),
                         x->count > y->count ? "of A are missing" : "are put in",
                         row > 1 && at % row == 0 ? "row" : "element",
                         text_count(a, row > 1 && at % row == 0 ? at / row : at));
    return 1;
}
