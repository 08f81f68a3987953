/* compare.c -- see compare.h.
 *
 * The order of the judges is an order of certainty. A judge says no where a fit may be an accident: one number,
 * constants, few different values, the last bits in use, zeros that both sides have. What was computed is before
 * the colon, a guess after it, with a question mark; a verdict from the size of an error alone says "looks like". A
 * new judge comes with pairs in tests/sim/pairs that it names, and with similar pairs of another cause. Judging is
 * on one thread, in the order of the report. Formats are tried only if the bits of the numbers allow it. */
#include "compare.h"

#include "impl.h"

#include "../array/need.h"
#include "../text/words.h"

#include <stdlib.h>
#include <string.h>

/* The judges of two tensors of as many elements, the surest and cheapest first: the first that says yes is
 * believed. The last always does. */
/* clang-format off */
static verdict_judge *const judges[] = {
    diff_stale_shifted,       diff_stale_b,            diff_recipe_named,
    diff_pattern_codes,       diff_constants_scalar,   diff_constants_constant,
    diff_pattern_flipped_bit, diff_pattern_byte_order, diff_pattern_reinterpreted, diff_pattern_negated,  diff_numbers_rounded_own,
    diff_pattern_zeroed,      diff_pattern_clipped,    diff_numbers_scaled,     diff_line_offset,         diff_dropout_masks,
    diff_numbers_rounded,     diff_pattern_flipped_bits, diff_places_moved,     diff_pattern_non_finite,  diff_axes_near, diff_moved_lines, diff_parts_moved,
    diff_pattern_sum_order,   diff_line_fitted,        diff_lines_own,          diff_computed_widened,    diff_stale_a,
    diff_parts_corrupted,     diff_computed_operands,  diff_pattern_close,      diff_pattern_unrelated,
};
/* clang-format on */

static int has_same_shape(const side_tensor *x, const side_tensor *y)
{
    return x->rank == y->rank && (x->rank == 0 || memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0);
}

/* ---- before reading ---- */

static void one_side(comparison *c, int has)
{
    diff_finding_init(&c->found, has ? VERDICT_EXTRA : VERDICT_MISSING);
    diff_finding_say(&c->found, "%s has no such tensor, and none of other name like it", has ? "A" : "B");
}

static void one_has_numbers(comparison *c)
{
    const side_tensor *x = c->c.tensors[0], *y = c->c.tensors[1];
    diff_finding_init(&c->found, VERDICT_INCOMPARABLE);
    diff_finding_say(&c->found,
                     "%s in A, %s in B: floating-point numbers in %s only%s; --as reads integers as codes of a format",
                     x->dtype, y->dtype, x->format ? "A" : "B", has_same_shape(x, y) ? "" : ", and other shapes");
}

void diff_compare_begin(comparison *c, int lanes)
{
    verdict_case *k = &c->c;
    const side_tensor *x = k->tensors[0], *y = k->tensors[1];
    c->opened = c->equal = c->measured = c->failed = 0;
    diff_finding_init(&c->found, VERDICT_EQUAL);
    if (!x || !y) {
        one_side(c, y != NULL);
        return;
    }
    if (!x->format && !y->format) {
        c->failed = diff_bytes_compare(k, &c->found, &c->error);
        return;
    }
    if (!x->format || !y->format) {
        one_has_numbers(c);
        return;
    }
    memset(&k->walk, 0, sizeof k->walk);
    diff_measurer_init(&k->measurer, x->format, y->format);
    c->failed = diff_source_open(&k->walk.of[0], k->sides[0], x, &c->error) ||
                diff_source_open(&k->walk.of[1], k->sides[1], y, &c->error);
    c->opened = 1;
    if (!c->failed)
        diff_walk_open(&k->walk, lanes);
}

/* ---- reading ---- */

typedef struct measuring {
    const measurer *by;
    measure *first, *others; /* of the first lane, of the others */
} measuring;

static int look_measure(void *context, int lane, const walk_piece *p)
{
    measuring *m = context;
    measure *to = lane ? &m->others[lane - 1] : m->first;
    diff_measure_add(to, m->by, p->first, p->codes[0], p->codes[1], p->values[0], p->values[1], p->n);
    return 0;
}

static void measure_range(comparison *c, measure *sum, uint64_t first, uint64_t end)
{
    verdict_case *k = &c->c;
    const int others = k->walk.lanes - 1; /* the first lane's is the sum */
    measuring m = {&k->measurer, sum, need_memory((uint64_t)others, sizeof *m.others)};
    diff_measure_init(sum);
    for (int i = 0; i < others; i++)
        diff_measure_init(&m.others[i]);
    c->failed = diff_walk_range(&k->walk, first, end, 0, 1, look_measure, &m, &c->error);
    for (int i = 0; i < others && !c->failed; i++)
        diff_measure_merge(sum, &m.others[i]);
    free(m.others);
}

void diff_compare_look(comparison *c)
{
    verdict_case *k = &c->c;
    const side_tensor *y = k->tensors[1];
    if (!c->opened || c->failed || k->tensors[0]->count != y->count)
        return;
    if (k->measurer.same)
        c->failed = diff_walk_equal(&k->walk, &c->equal, &c->error);
    if (c->failed || c->equal)
        return;
    measure_range(c, &k->all, 0, y->count);
    c->measured = !c->failed;
}

/* ---- judging ---- */

/* Nothing differs, in its value. */
static void judge_equal(comparison *c)
{
    const side_tensor *x = c->c.tensors[0], *y = c->c.tensors[1];
    char shape[2][96];
    if (!c->c.measurer.same) {
        diff_finding_init(&c->found, VERDICT_DTYPE);
        diff_finding_say(&c->found, "all values are equal, as %s in A and as %s in B", x->format->name,
                         y->format->name);
    } else if (!has_same_shape(x, y)) {
        diff_finding_init(&c->found, VERDICT_RESHAPED);
        diff_finding_say(&c->found, "all codes are equal, in the shape %s in A and %s in B",
                         text_shape(shape[0], sizeof shape[0], x->shape, x->rank),
                         text_shape(shape[1], sizeof shape[1], y->shape, y->rank));
    } else if (x->quantised && y->quantised) {
        c->failed = diff_bytes_codes(&c->c, &c->found, &c->error);
    }
}

/* What differs lies between the first and the last such element. */
static void measure_part(comparison *c)
{
    verdict_case *k = &c->c;
    k->first = k->all.first.at;
    k->end = k->all.last.at + 1;
    if (k->first == 0 && k->end == k->all.count)
        k->part = k->all;
    else
        measure_range(c, &k->part, k->first, k->end);
}

static void judge(comparison *c)
{
    int said = 0;
    measure_part(c);
    for (size_t i = 0; i < sizeof judges / sizeof judges[0] && !said && !c->failed; i++) {
        said = judges[i](&c->c, &c->found, &c->error);
        c->failed = said < 0;
    }
    if (!c->failed && !has_same_shape(c->c.tensors[0], c->c.tensors[1]) && c->found.verdict != VERDICT_TRANSPOSED)
        diff_finding_say(&c->found, "; and the shapes differ");
}

static void judge_measured(comparison *c)
{
    if (c->c.all.differ == 0) {
        judge_equal(c);
        return;
    }
    if (diff_tolerance_holds(c->within, &c->c.all)) {
        diff_finding_init(&c->found, VERDICT_TOLERATED);
        return;
    }
    judge(c);
}

void diff_compare_end(comparison *c)
{
    if (c->opened && !c->failed) {
        if (c->equal)
            judge_equal(c);
        else if (c->measured)
            judge_measured(c);
        else
            c->failed = diff_places_resized(&c->c, &c->found, &c->error) < 0;
    }
    if (c->opened)
        diff_walk_close(&c->c.walk);
    c->opened = 0;
    if (c->failed)
        diff_finding_init(&c->found, VERDICT_UNREADABLE);
}

int diff_compare_differs(verdict v, const tolerance *within)
{
    switch (v) {
    case VERDICT_EQUAL:
    case VERDICT_TOLERATED:
    case VERDICT_NOT_COMPARED:
    case VERDICT_UNREADABLE:
        return 0;
    case VERDICT_DTYPE:
    case VERDICT_CODES:
        return within->by == TOLERANCE_NONE;
    default:
        return 1;
    }
}
