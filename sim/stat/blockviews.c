/* blockviews.c -- see blockviews.h. */
#include "stat.h"

#include "../array/array.h"
#include "../array/lacking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const unsigned transforms[BLOCK_SLOTS] = {0, 16, 32, 64, 128};

static int slot_of(unsigned transform)
{
    int i = 0;
    while (i + 1 < BLOCK_SLOTS && transforms[i] != transform)
        i++;
    return i;
}

/* Whether rows of a view are columns of the matrix as it lies. */
static int is_transposed(const block_views *v, int axis)
{
    return (axis == BLOCK_COLUMNS) != v->m.transposed;
}

int stat_block_views_applies(const block_views *v, const block_target *t)
{
    return !v->m.line || t->axis == BLOCK_ROWS;
}

/* A view of a slot; the second one of target i. */
static block_view *view_of(const block_views *v, int axis, int slot)
{
    return &v->of[axis * BLOCK_SLOTS + slot];
}

static block_view *again(const block_views *v, size_t i)
{
    return &v->of[BLOCK_VIEWS + i];
}

/* ---- what is needed ---- */

static void use(block_view *of, const block_target *t)
{
    of->used = 1;
    of->needs_tensor |= stat_block_needs_tensor(&t->recipe);
    of->needs_rows |= stat_block_needs_rows(&t->recipe);
}

int stat_block_views_make(block_views *v, const block_list *list, const block_matrix *m, uint64_t seed, uint64_t stream)
{
    *v = (block_views){.list = list, .m = *m, .seed = seed, .stream = stream, .n = BLOCK_VIEWS + list->count};
    v->of = array_zeros(v->n, sizeof *v->of);
    if (!v->of)
        return -1;
    for (int k = 0; k < (int)v->n; k++) {
        block_view *of = &v->of[k];
        of->axis = k < BLOCK_VIEWS ? k / BLOCK_SLOTS : BLOCK_COLUMNS;
        of->slot = k % BLOCK_SLOTS;
        of->rows = is_transposed(v, of->axis) ? m->cols : m->rows;
    }
    for (size_t i = 0; i < list->count; i++) {
        const block_target *t = &list->items[i];
        const int slot = slot_of(t->transform);
        if (!stat_block_views_applies(v, t))
            continue;
        if (t->axis != BLOCK_COLUMNS)
            use(view_of(v, BLOCK_ROWS, slot), t);
        if (t->axis != BLOCK_ROWS)
            use(view_of(v, BLOCK_COLUMNS, slot), t);
        if (t->axis == BLOCK_REQUANTISED)
            use(again(v, i), t);
    }
    return 0;
}

void stat_block_views_clear(block_views *v)
{
    for (size_t k = 0; v->of && k < v->n; k++)
        free(v->of[k].of_rows);
    free(v->of);
}

/* What a view needs and no tile tells. */
static int plan(block_view *of, int whole_rows, int single)
{
    of->looks_for_tensor = of->needs_tensor && !single;
    if (!of->needs_rows || whole_rows)
        return 0;
    if (of->rows > BLOCK_ROWS_MOST)
        return 1;
    of->of_rows = array_zeros(of->rows, sizeof *of->of_rows);
    return of->of_rows ? 0 : -1;
}

int stat_block_views_plan(block_views *v, int whole_rows, int whole_cols)
{
    int bad = 0;
    for (size_t k = 0; k < v->n && !bad; k++)
        bad = plan(&v->of[k], is_transposed(v, v->of[k].axis) ? whole_cols : whole_rows, whole_rows && whole_cols);
    return bad;
}

static int looks(const block_view *of)
{
    return of->looks_for_tensor || of->of_rows;
}

int stat_block_views_looks(const block_views *v, block_unit *unit)
{
    int some = 0;
    *unit = (block_unit){1, 1};
    for (const block_view *of = v->of; of < v->of + BLOCK_VIEWS; of++) {
        const uint64_t side = of->slot ? transforms[of->slot] : 1;
        const int transposed = is_transposed(v, of->axis);
        if (!looks(of))
            continue;
        some = 1;
        *unit = pass_block_unit_join(*unit, (block_unit){transposed ? side : 1, transposed ? 1 : side});
    }
    return some;
}

int stat_block_views_looks_again(const block_views *v, size_t i)
{
    return looks(again(v, i));
}

/* ---- buffers ---- */

/* The elements of the largest tile of these recipes. */
static size_t largest_tile(const block_list *l)
{
    uint64_t most = BLOCK_TILE;
    for (size_t i = 0; i < l->count; i++) {
        const block_unit u = pass_block_unit_of(&l->items[i], 0);
        most = u.rows * u.cols > most ? u.rows * u.cols : most;
    }
    return (size_t)most;
}

int stat_block_buffers_make(block_buffers *b, const block_list *list)
{
    const size_t room = largest_tile(list);
    float **const floats[] = {&b->x, &b->views[0], &b->views[1], &b->first, &b->second};
    const size_t n = sizeof floats / sizeof *floats;
    b->x = array_zeros(n * room, sizeof *b->x);
    b->amaxes[0] = array_zeros((BLOCK_AXES + 1) * room, sizeof *b->amaxes[0]);
    b->beyond.zero = array_zeros(room, sizeof *b->beyond.zero);
    b->summary = mpsim_summary_new();
    if (!b->x || !b->amaxes[0] || !b->beyond.zero || !b->summary)
        return -1;
    for (size_t i = 1; i < n; i++)
        *floats[i] = b->x + i * room;
    for (size_t i = 1; i <= BLOCK_AXES; i++)
        b->amaxes[i] = b->amaxes[0] + i * room;
    return 0;
}

void stat_block_buffers_clear(block_buffers *b)
{
    free(b->x);
    free(b->amaxes[0]);
    free(b->beyond.zero);
    mpsim_summary_free(b->summary);
}

/* ---- elements ---- */

/* Of mpsim/block.h: one way, or back. */
typedef mpsim_status transform_groups(float *x, size_t n, unsigned size, uint64_t seed);

/* Groups of each row; what is left at its end stays. */
static void transform(const block_views *v, float *x, size_t rows, size_t cols, int slot, transform_groups *by)
{
    const unsigned size = transforms[slot];
    if (cols % size == 0)
        by(x, rows * cols, size, v->seed);
    else
        for (size_t i = 0; i < rows; i++)
            by(x + i * cols, cols, size, v->seed);
}

/* The tile of a view: its elements are in the buffer, or as they were read. */
static void make_rectangle(const block_views *v, const block_view *of, block_rectangle *to, const block_part *p,
                           block_buffers *b)
{
    const int transposed = is_transposed(v, of->axis), slot = of->slot;
    float *buffer = b->views[of->axis];
    *to = (block_rectangle){.x = transposed || slot ? buffer : b->x,
                            .rows = (size_t)(transposed ? p->cols : p->rows),
                            .cols = (size_t)(transposed ? p->rows : p->cols),
                            .row = transposed ? p->col : p->row,
                            .col = transposed ? p->row : p->col,
                            .all_cols = transposed ? v->m.rows : v->m.cols,
                            .begins = p->row == 0 && p->col == 0};
    if (transposed)
        pass_block_transpose(buffer, b->x, (size_t)p->rows, (size_t)p->cols);
    else if (slot)
        memcpy(buffer, b->x, to->rows * to->cols * sizeof *buffer);
    if (slot)
        transform(v, buffer, to->rows, to->cols, slot, mpsim_hadamard_groups);
}

/* ---- the largest magnitudes ---- */

static void look_at(block_view *of, const block_rectangle *x)
{
    amax3 all = {0, 0, 0};
    for (size_t i = 0; i < x->rows; i++) {
        amax3 one = {0, 0, 0};
        pass_amax3_add(&one, x->x + i * x->cols, x->cols);
        if (of->of_rows)
            pass_amax3_share(&of->of_rows[x->row + i], &one);
        pass_amax3_merge(&all, &one);
    }
    pass_amax3_share(&of->tensor, &all);
}

/* Those that recipes need with a tile: of all that there are, or of the tile. */
static void find_amaxes(block_view *of, block_rectangle *x, amax3 *amaxes)
{
    if (of->looks_for_tensor)
        x->tensor = pass_amax3_of(&of->tensor);
    else if (of->needs_tensor)
        pass_amax3_add(&x->tensor, x->x, x->rows * x->cols);
    for (size_t i = 0; of->needs_rows && i < x->rows; i++) {
        amaxes[i] = of->of_rows ? pass_amax3_of(&of->of_rows[x->row + i]) : (amax3){0, 0, 0};
        if (!of->of_rows)
            pass_amax3_add(&amaxes[i], x->x + i * x->cols, x->cols);
    }
    x->of_rows = amaxes;
}

void stat_block_views_look(block_views *v, const block_part *of, block_buffers *b)
{
    block_rectangle x;
    for (block_view *view = v->of; view < v->of + BLOCK_VIEWS; view++)
        if (looks(view)) {
            make_rectangle(v, view, &x, of, b);
            look_at(view, &x);
        }
}

/* ---- recipes ---- */

/* What quantising along rows makes of it, along columns: in the rectangle `across`, which says where. */
static void quantise_first(block_views *v, const block_target *t, const block_rectangle *along, block_rectangle *across,
                           block_buffers *b)
{
    const int slot = slot_of(t->transform);
    const mpsim_rng words = {v->seed, v->stream, 0};
    block_rectangle first = *along;
    first.values = b->first;
    stat_block_quantise(&t->recipe, &first, &words, &b->room, NULL);
    if (slot)
        transform(v, b->first, along->rows, along->cols, slot, mpsim_hadamard_groups_back);
    pass_block_transpose(b->second, b->first, along->rows, along->cols);
    if (slot)
        transform(v, b->second, across->rows, across->cols, slot, mpsim_hadamard_groups);
    across->x = b->second;
    across->tensor = (amax3){0, 0, 0};
}

static void make_both(block_views *v, block_rectangle x[BLOCK_AXES], const block_part *of, block_buffers *b, int slot)
{
    for (int axis = 0; axis < BLOCK_AXES; axis++)
        if (view_of(v, axis, slot)->used) {
            make_rectangle(v, view_of(v, axis, slot), &x[axis], of, b);
            find_amaxes(view_of(v, axis, slot), &x[axis], b->amaxes[axis]);
        }
}

void stat_block_views_look_again(block_views *v, const block_part *of, block_buffers *b, size_t i)
{
    const block_target *t = &v->list->items[i];
    block_rectangle x[BLOCK_AXES];
    make_both(v, x, of, b, slot_of(t->transform));
    quantise_first(v, t, &x[BLOCK_ROWS], &x[BLOCK_COLUMNS], b);
    look_at(again(v, i), &x[BLOCK_COLUMNS]);
}

/* ---- what binary32 does not hold ---- */

/* Elements that binary32 made 0, where they are still: what they stand for is in `values`, like r->x. They are counted
 * as 0 already, with an error of 0 if that stands for a number. What a transform makes of elements has its own sums. */
static void add_zeros(const block_views *v, const block_part *of, const elements_beyond *beyond, int axis, int slot,
                      const block_rectangle *r, const float *values, mpsim_block_stats *to)
{
    const int transposed = is_transposed(v, axis);
    for (size_t i = 0; i < beyond->zeros; i++) {
        const size_t cols = (size_t)of->cols, at = beyond->zero[i].at;
        const size_t k = transposed ? at % cols * r->cols + at / cols : at;
        const double x = beyond->zero[i].x;
        const int is = r->x[k] == 0 && values[k] == 0;
        to->underflow += (uint64_t)is;
        if (slot)
            continue;
        if (!isfinite(values[k]))
            mpsim_sum_add_square(&to->casts.sum_squares_left_out, x);
        if (!is)
            continue;
        to->casts.counts.inexact++;
        mpsim_sum_add_square(&to->casts.sum_squared_error, x);
        to->casts.max_rel_err = fmax(to->casts.max_rel_err, 1);
    }
}

static void add_infinite(const elements_beyond *beyond, int slot, mpsim_block_stats *to)
{
    to->spoilt += beyond->infinite;
    if (slot)
        return;
    to->casts.counts.inexact += beyond->infinite;
    mpsim_sum_merge(&to->casts.sum_squares_left_out, &beyond->squares);
}

/* Quantise, and account for what was so before. Values are asked for where there is something to see. */
static void quantise_view(const block_views *v, const block_target *t, const block_part *of, const block_rectangle *x,
                          const mpsim_rng *words, block_buffers *b, mpsim_block_stats *to)
{
    const int axis = t->axis == BLOCK_ROWS ? BLOCK_ROWS : BLOCK_COLUMNS, slot = slot_of(t->transform);
    block_rectangle r = *x;
    r.values = b->beyond.zeros ? b->first : NULL;
    stat_block_quantise(&t->recipe, &r, words, &b->room, to);
    add_zeros(v, of, &b->beyond, axis, slot, &r, r.values, to);
    add_infinite(&b->beyond, slot, to);
}

/* Quantised along rows, and what that stands for along columns: its errors against the elements along columns. */
static void requantise(block_views *v, size_t i, const block_part *of, const block_rectangle x[BLOCK_AXES],
                       block_buffers *b, mpsim_block_stats *to)
{
    const block_target *t = &v->list->items[i];
    const mpsim_rng words = {v->seed, ~v->stream, 0};
    block_rectangle second = x[BLOCK_COLUMNS];
    second.origin = second.x;
    quantise_first(v, t, &x[BLOCK_ROWS], &second, b);
    find_amaxes(again(v, i), &second, b->amaxes[BLOCK_AXES]);
    quantise_view(v, t, of, &second, &words, b, to);
}

/* Squares of the finite elements of a view. Nothing but memory fails: there are no casts, and all pointers are good. */
static void sum_squares(mpsim_sum *to, mpsim_summary *with, const block_rectangle *x)
{
    mpsim_stats found;
    mpsim_stats_init(&found);
    if (mpsim_summary_begin(with, NULL, 0, MPSIM_SUMMARY_SUMS) != MPSIM_OK ||
        mpsim_summary_add_f32(with, NULL, x->x, x->rows * x->cols) != MPSIM_OK ||
        mpsim_summary_read(with, &found, NULL, NULL) != MPSIM_OK)
        (void)host_no_memory();
    *to = found.sum_squares;
}

static void quantise_slot(block_views *v, const block_part *of, block_buffers *b, int slot, const size_t *pass_of,
                          size_t pass, mpsim_block_stats *found)
{
    const mpsim_rng words = {v->seed, v->stream, 0};
    block_rectangle x[BLOCK_AXES];
    mpsim_sum squares[BLOCK_AXES];
    make_both(v, x, of, b, slot);
    for (int axis = 0; axis < BLOCK_AXES; axis++)
        if (slot && view_of(v, axis, slot)->used)
            sum_squares(&squares[axis], b->summary, &x[axis]);
    for (size_t i = 0; i < v->list->count; i++) {
        const block_target *t = &v->list->items[i];
        mpsim_sum *left_out = &found[i].casts.sum_squares_left_out;
        if (pass_of[i] != pass || !stat_block_views_applies(v, t) || slot_of(t->transform) != slot)
            continue;
        if (t->axis == BLOCK_REQUANTISED)
            requantise(v, i, of, x, b, &found[i]);
        else
            quantise_view(v, t, of, &x[t->axis], &words, b, &found[i]);
        if (slot)
            mpsim_sum_subtract(left_out, &squares[t->axis == BLOCK_ROWS ? BLOCK_ROWS : BLOCK_COLUMNS]);
    }
}

void stat_block_views_quantise(block_views *v, const block_part *of, block_buffers *b, const size_t *pass_of,
                               size_t pass, mpsim_block_stats *found)
{
    for (int slot = 0; slot < BLOCK_SLOTS; slot++)
        if (view_of(v, BLOCK_ROWS, slot)->used || view_of(v, BLOCK_COLUMNS, slot)->used)
            quantise_slot(v, of, b, slot, pass_of, pass, found);
}
