/* blocks.c -- see blocks.h. */
#include "blocks.h"

#include "../cli/options.h"
#include "blockquant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MOST = 1 << 21, /* scales of rows, or of columns, that are longer than a tile */
    SIDE_MOST = 128,     /* of a transform                                             */
    SLOTS = 5, AXES = 2  /* transforms; axes                                           */
};

static const unsigned transforms[SLOTS] = {0, 16, 32, 64, 128};

/* A matrix that is quantised: the tensor's, or the transposed one, perhaps transformed. */
typedef struct view {
    int used, needs_tensor, needs_rows;
    uint64_t rows;
    shared_peak tensor, *of_rows; /* NULL where every tile has whole rows of it */
} view;

/* The recipes that are worked through at once. */
typedef struct pass {
    block_unit unit;
    block_tiling tilings[BLOCK_PARTS];
    size_t parts;
} pass;

struct blockrun {
    const target_list *targets;
    blockrun_of of;
    elements from;
    block_matrix m;
    view views[AXES][SLOTS];
    float signs[SLOTS][SIDE_MOST];
    pass *passes;        /* the first looks, if `looks` */
    size_t *pass_of;     /* of each target              */
    size_t n_passes;
    int looks, single;   /* single: one tile has the whole tensor */
};

struct blocklane {
    size_t room;   /* elements of a buffer */
    float *x, *rows, *columns, *first, *second;
    peak *peaks[AXES];
    block_room quantising;
    mpsim_sum beyond, left_out[AXES]; /* squares of the tile's elements that are not finite in what is quantised */
    mpsim_block_stats *found;
    size_t count;
};

/* ---- lanes ---- */

/* The elements of the largest tile of these recipes. */
static size_t largest_tile(const block_list *l)
{
    uint64_t most = BLOCK_TILE;
    for (size_t i = 0; i < l->count; i++) {
        const block_unit u = block_unit_of(&l->items[i], 0);
        most = u.rows * u.cols > most ? u.rows * u.cols : most;
    }
    return (size_t)most;
}

blocklane *blocklane_new(const target_list *targets)
{
    const block_list *b = &targets->blocks;
    blocklane *l = calloc(1, sizeof *l);
    int transposes = 0, transforms_some = 0, twice = 0, whole = 0, ok = l != NULL;
    for (size_t i = 0; i < b->count; i++) {
        transposes |= b->items[i].axis != BLOCK_ROWS;
        transforms_some |= b->items[i].transform != 0;
        twice |= b->items[i].axis == BLOCK_REQUANTISED;
        whole |= block_needs_rows(&b->items[i].recipe);
    }
    if (!ok)
        return NULL;
    l->room = largest_tile(b);
    const struct {
        float **buffer;
        int needed;
    } buffers[] = {{&l->x, 1}, {&l->rows, 1}, {&l->columns, 1}, {&l->first, twice}, {&l->second, twice}};
    (void)transposes; /* a column-major tensor has the other buffer */
    (void)transforms_some;
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        ok &= !buffers[i].needed || (*buffers[i].buffer = malloc(l->room * sizeof(float))) != NULL;
    for (int a = 0; a < AXES; a++)
        ok &= !whole || (l->peaks[a] = malloc(l->room * sizeof *l->peaks[a])) != NULL;
    l->count = b->count;
    l->found = calloc(b->count, sizeof *l->found);
    ok &= block_room_make(&l->quantising) == 0 && l->found;
    if (ok)
        return l;
    blocklane_free(l);
    return NULL;
}

void blocklane_free(blocklane *l)
{
    if (!l)
        return;
    free(l->x);
    free(l->rows);
    free(l->columns);
    free(l->first);
    free(l->second);
    free(l->peaks[0]);
    free(l->peaks[1]);
    block_room_clear(&l->quantising);
    free(l->found);
    free(l);
}

void blocklane_begin(blocklane *l)
{
    for (size_t i = 0; i < l->count; i++)
        mpsim_block_stats_init(&l->found[i]);
}

/* ---- what is to be done ---- */

static int slot_of(unsigned transform)
{
    int i = 0;
    while (i + 1 < SLOTS && transforms[i] != transform)
        i++;
    return i;
}

static int applies(const blockrun *r, const block_target *t)
{
    return !r->m.line || t->axis == BLOCK_ROWS;
}

/* Whether rows of a view are columns of the matrix as it lies. */
static int is_turned(const blockrun *r, int axis)
{
    return (axis == BLOCK_COLUMNS) != r->m.turned;
}

static void use_view(blockrun *r, int axis, const block_target *t)
{
    view *v = &r->views[axis][slot_of(t->transform)];
    v->used = 1;
    v->needs_tensor |= block_needs_tensor(&t->recipe);
    v->needs_rows |= block_needs_rows(&t->recipe);
    v->rows = is_turned(r, axis) ? r->m.cols : r->m.rows;
}

static void use_views(blockrun *r)
{
    for (size_t i = 0; i < r->targets->blocks.count; i++) {
        const block_target *t = &r->targets->blocks.items[i];
        if (!applies(r, t))
            continue;
        if (t->axis != BLOCK_COLUMNS)
            use_view(r, BLOCK_ROWS, t);
        if (t->axis != BLOCK_ROWS)
            use_view(r, BLOCK_COLUMNS, t);
    }
}

/* Recipes with a common tile go into one pass. */
static void divide(blockrun *r)
{
    const block_list *l = &r->targets->blocks;
    r->n_passes = 1;
    r->passes[0].unit = (block_unit){1, 1};
    for (size_t i = 0; i < l->count; i++) {
        if (!applies(r, &l->items[i]))
            continue;
        const block_unit own = block_unit_of(&l->items[i], r->m.turned);
        size_t p = 0;
        for (; p < r->n_passes; p++) {
            const block_unit both = block_unit_join(r->passes[p].unit, own);
            const int is_own = both.rows == own.rows && both.cols == own.cols;
            if (is_own || both.rows <= BLOCK_TILE / both.cols)
                break;
        }
        if (p == r->n_passes)
            r->passes[r->n_passes++].unit = own;
        r->passes[p].unit = block_unit_join(r->passes[p].unit, own);
        r->pass_of[i] = p;
    }
}

static void lay_tiles(const blockrun *r, pass *p, uint64_t first, uint64_t end)
{
    block_part parts[BLOCK_PARTS];
    p->parts = block_parts(parts, &r->m, first, end);
    for (size_t i = 0; i < p->parts; i++)
        p->tilings[i] = block_tile(&parts[i], p->unit);
}

/* Whether each tile has all of the matrix along a dimension. */
static int spans(const blockrun *r, int rows)
{
    int all = 1;
    for (size_t p = 0; p < r->n_passes; p++)
        for (size_t i = 0; i < r->passes[p].parts; i++) {
            const block_tiling *t = &r->passes[p].tilings[i];
            all &= rows ? t->cols == r->m.cols : t->rows == r->m.rows;
        }
    return all;
}

/* The first phase, where something is to be known of more than a tile. */
static int look_first(blockrun *r, trace_error *error)
{
    block_unit unit = {1, 1};
    r->single = spans(r, 0) && spans(r, 1);
    for (int axis = 0; axis < AXES; axis++)
        for (int slot = 0; slot < SLOTS; slot++) {
            view *v = &r->views[axis][slot];
            const int turned = is_turned(r, axis);
            const uint64_t side = transforms[slot] ? transforms[slot] : 1;
            const int rows = v->needs_rows && !spans(r, !turned);
            if (!v->used || !(rows || (v->needs_tensor && !r->single)))
                continue;
            r->looks = 1;
            unit = block_unit_join(unit, (block_unit){turned ? side : 1, turned ? 1 : side});
            if (!rows)
                continue;
            if (v->rows > ROWS_MOST)
                return trace_error_set(error, EXIT_DATA, trace_path(r->of.t), UINT64_MAX,
                                       "a recipe with a scale for each row, or column, of a tensor that has more than "
                                       "%d long ones", ROWS_MOST);
            v->of_rows = calloc((size_t)v->rows, sizeof *v->of_rows);
            if (!v->of_rows)
                return trace_error_set(error, EXIT_IO, trace_path(r->of.t), UINT64_MAX, "out of memory");
        }
    if (!r->looks)
        return 0;
    memmove(r->passes + 1, r->passes, r->n_passes * sizeof *r->passes);
    for (size_t i = 0; i < r->targets->blocks.count; i++)
        r->pass_of[i]++;
    r->n_passes++;
    r->passes[0].unit = unit;
    lay_tiles(r, &r->passes[0], 0, r->m.rows * r->m.cols);
    return 0;
}

/* The signs that each transform begins with: it makes the sign of element i of what element i alone is. */
static void find_signs(blockrun *r)
{
    for (int slot = 1; slot < SLOTS; slot++)
        for (unsigned i = 0; i < transforms[slot]; i++) {
            float x[SIDE_MOST] = {0};
            x[i] = 1;
            mpsim_hadamard_groups(x, transforms[slot], transforms[slot], r->of.seed);
            r->signs[slot][i] = x[0] < 0 ? -1 : 1;
        }
}

blockrun *blockrun_new(const blockrun_of *of, const target_list *targets, const volatile sig_atomic_t *asked,
                       trace_error *error)
{
    const trace_tensor *x = trace_at(of->t, of->i);
    const size_t n = targets->blocks.count;
    blockrun *r = calloc(1, sizeof *r);
    if (r) {
        r->targets = targets;
        r->of = *of;
        r->m = block_matrix_of(x);
        r->passes = calloc(n + 2, sizeof *r->passes);
        r->pass_of = calloc(n + 1, sizeof *r->pass_of);
    }
    if (!r || !r->passes || !r->pass_of) {
        trace_error_set(error, EXIT_IO, trace_path(of->t), UINT64_MAX, "out of memory");
        blockrun_free(r);
        return NULL;
    }
    use_views(r);
    find_signs(r);
    divide(r);
    for (size_t i = 0; i < r->n_passes; i++)
        lay_tiles(r, &r->passes[i], of->first, of->first + of->n);
    if (elements_open(&r->from, of->t, of->i, asked, error) == 0 && look_first(r, error) == 0)
        return r;
    blockrun_free(r);
    return NULL;
}

void blockrun_free(blockrun *r)
{
    if (!r)
        return;
    for (int axis = 0; axis < AXES; axis++)
        for (int slot = 0; slot < SLOTS; slot++)
            free(r->views[axis][slot].of_rows);
    elements_close(&r->from);
    free(r->passes);
    free(r->pass_of);
    free(r);
}

int blockrun_phases(const blockrun *r)
{
    return (int)r->n_passes;
}

uint64_t blockrun_tiles(const blockrun *r, int phase)
{
    const pass *p = &r->passes[phase];
    uint64_t n = 0;
    for (size_t i = 0; i < p->parts; i++)
        n += p->tilings[i].count;
    return n;
}

int blockrun_whole(const blockrun *r)
{
    return r->n_passes - (size_t)r->looks == 1;
}

/* ---- a tile ---- */

static block_part tile_at(const pass *p, uint64_t k)
{
    size_t i = 0;
    while (k >= p->tilings[i].count)
        k -= p->tilings[i++].count;
    return block_tile_at(&p->tilings[i], k);
}

/* n elements from `first` on, through the buffer. */
static int read_run(const blockrun *r, uint64_t first, uint64_t n, float *to, blocklane *l, mpsim_summary *summary,
                    void *codes, size_t bytes, trace_error *error)
{
    const size_t most = bytes / r->from.width;
    for (uint64_t i = 0, m; i < n; i += m) {
        const mpsim_rng rng = {r->of.seed, r->of.stream, first + i};
        m = n - i < most ? n - i : most;
        if (elements_codes(&r->from, first + i, codes, (size_t)m, error))
            return -1;
        elements_floats(&r->from, to + i, codes, (size_t)m, &l->beyond);
        if (summary && mpsim_summary_add_codes(summary, r->from.format, &rng, codes, (size_t)m) != MPSIM_OK)
            return trace_error_set(error, EXIT_IO, trace_path(r->of.t), UINT64_MAX, "out of memory");
    }
    return 0;
}

static int read_tile(const blockrun *r, const block_part *p, blocklane *l, mpsim_summary *summary, void *codes,
                     size_t bytes, trace_error *error)
{
    const int whole = p->cols == r->m.cols; /* rows of it lie one behind the other */
    const uint64_t n = whole ? p->rows * p->cols : p->cols;
    mpsim_sum_init(&l->beyond);
    for (uint64_t i = 0; i < (whole ? 1 : p->rows); i++)
        if (read_run(r, (p->row + i) * r->m.cols + p->col, n, l->x + i * n, l, summary, codes, bytes, error))
            return -1;
    return 0;
}

static void transpose(float *to, const float *from, size_t rows, size_t cols)
{
    enum { SIDE = 16 };
    for (size_t i = 0; i < rows; i += SIDE)
        for (size_t j = 0; j < cols; j += SIDE)
            for (size_t a = i; a < rows && a < i + SIDE; a++)
                for (size_t b = j; b < cols && b < j + SIDE; b++)
                    to[b * rows + a] = from[a * cols + b];
}

/* Groups of each row; what is left at its end stays. */
static void transform(const blockrun *r, float *x, size_t rows, size_t cols, int slot)
{
    const unsigned size = transforms[slot];
    if (cols % size == 0)
        mpsim_hadamard_groups(x, rows * cols, size, r->of.seed);
    else
        for (size_t i = 0; i < rows; i++)
            mpsim_hadamard_groups(x + i * cols, cols, size, r->of.seed);
}

static void apply_signs(const blockrun *r, float *x, size_t rows, size_t cols, int slot)
{
    const size_t size = transforms[slot], whole = cols / size * size;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < whole; j++)
            x[i * cols + j] *= r->signs[slot][j % size];
}

/* Hadamard's matrix is its own transposed one: the signs come last. */
static void transform_back(const blockrun *r, float *x, size_t rows, size_t cols, int slot)
{
    apply_signs(r, x, rows, cols, slot);
    transform(r, x, rows, cols, slot);
    apply_signs(r, x, rows, cols, slot);
}

/* Squares of finite elements that the transform made infinite or NaN, with others of their group. */
static void leave_out(mpsim_sum *sum, const float *x, const float *y, size_t rows, size_t cols, int turned)
{
    for (size_t i = 0; i < rows * cols; i++)
        if (!isfinite(y[i])) {
            const float from = turned ? x[i % cols * rows + i / cols] : x[i];
            if (isfinite(from))
                mpsim_sum_add_square(sum, (double)from);
        }
}

/* The tile of a view: where its elements are, in `buffer` or as they were read. */
static void make_rectangle(const blockrun *r, block_rectangle *to, const block_part *p, blocklane *l, int axis,
                           int slot)
{
    const int turned = is_turned(r, axis);
    float *buffer = axis == BLOCK_ROWS ? l->rows : l->columns;
    *to = (block_rectangle){.x = turned || slot ? buffer : l->x,
                            .rows = (size_t)(turned ? p->cols : p->rows),
                            .cols = (size_t)(turned ? p->rows : p->cols),
                            .row = turned ? p->col : p->row,
                            .col = turned ? p->row : p->col,
                            .all_cols = turned ? r->m.rows : r->m.cols,
                            .begins = p->row == 0 && p->col == 0};
    if (turned)
        transpose(buffer, l->x, (size_t)p->rows, (size_t)p->cols);
    else if (slot)
        memcpy(buffer, l->x, to->rows * to->cols * sizeof *buffer);
    mpsim_sum_init(&l->left_out[axis]);
    if (!slot)
        return;
    transform(r, buffer, to->rows, to->cols, slot);
    leave_out(&l->left_out[axis], l->x, buffer, to->rows, to->cols, turned);
}

/* The largest magnitudes that recipes need of it: of all that there are, or of the tile. */
static void find_peaks(blockrun *r, block_rectangle *to, blocklane *l, int axis, int slot)
{
    view *v = &r->views[axis][slot];
    if (v->needs_tensor && r->single)
        peak_add(&to->tensor, to->x, to->rows * to->cols);
    else
        to->tensor = peak_of(&v->tensor);
    if (!v->needs_rows)
        return;
    for (size_t i = 0; i < to->rows; i++) {
        peak *p = &l->peaks[axis][i];
        *p = v->of_rows ? peak_of(&v->of_rows[to->row + i]) : (peak){0, 0, 0};
        if (!v->of_rows)
            peak_add(p, to->x + i * to->cols, to->cols);
    }
    to->of_rows = l->peaks[axis];
}

/* The first phase. */
static void look(blockrun *r, const block_part *p, blocklane *l)
{
    for (int axis = 0; axis < AXES; axis++)
        for (int slot = 0; slot < SLOTS; slot++) {
            view *v = &r->views[axis][slot];
            block_rectangle x;
            if (!v->of_rows && !v->needs_tensor)
                continue;
            make_rectangle(r, &x, p, l, axis, slot);
            peak all = {0, 0, 0};
            for (size_t i = 0; i < x.rows; i++) {
                peak one = {0, 0, 0};
                peak_add(&one, x.x + i * x.cols, x.cols);
                if (v->of_rows)
                    peak_share(&v->of_rows[x.row + i], &one);
                all.finite = one.finite > all.finite ? one.finite : all.finite;
                all.number = one.number > all.number ? one.number : all.number;
                all.all = one.all > all.all ? one.all : all.all;
            }
            peak_share(&v->tensor, &all);
        }
}

/* ---- recipes ---- */

/* Quantised along rows, what that stands for along columns: its errors against the elements along columns. */
static void requantise(const blockrun *r, const block_target *t, const block_rectangle *along,
                       const block_rectangle *across, blocklane *l, mpsim_block_stats *to)
{
    const int slot = slot_of(t->transform);
    const mpsim_rng words = {r->of.seed, r->of.stream, 0}, others = {r->of.seed, ~r->of.stream, 0};
    block_rectangle first = *along, second = *across;
    first.values = l->first;
    block_quantise(&t->recipe, &first, &words, &l->quantising, NULL);
    if (slot)
        transform_back(r, l->first, along->rows, along->cols, slot);
    transpose(l->second, l->first, along->rows, along->cols);
    if (slot)
        transform(r, l->second, across->rows, across->cols, slot);
    second.x = l->second;
    second.origin = across->x;
    block_quantise(&t->recipe, &second, &others, &l->quantising, to);
}

static void quantise_slot(blockrun *r, size_t phase, const block_part *p, blocklane *l, int slot)
{
    const mpsim_rng words = {r->of.seed, r->of.stream, 0};
    block_rectangle x[AXES];
    for (int axis = 0; axis < AXES; axis++)
        if (r->views[axis][slot].used) {
            make_rectangle(r, &x[axis], p, l, axis, slot);
            find_peaks(r, &x[axis], l, axis, slot);
        }
    for (size_t i = 0; i < l->count; i++) {
        const block_target *t = &r->targets->blocks.items[i];
        mpsim_block_stats *to = &l->found[i];
        if (r->pass_of[i] != phase || !applies(r, t) || slot_of(t->transform) != slot)
            continue;
        if (t->axis == BLOCK_REQUANTISED)
            requantise(r, t, &x[BLOCK_ROWS], &x[BLOCK_COLUMNS], l, to);
        else
            block_quantise(&t->recipe, &x[t->axis], &words, &l->quantising, to);
        mpsim_sum_merge(&to->casts.sum_squares_left_out, &l->beyond);
        mpsim_sum_merge(&to->casts.sum_squares_left_out,
                        &l->left_out[t->axis == BLOCK_ROWS ? BLOCK_ROWS : BLOCK_COLUMNS]);
    }
}

int blockrun_tile(blockrun *r, int phase, uint64_t k, blocklane *l, mpsim_summary *summary, void *codes, size_t bytes,
                  uint64_t *n, trace_error *error)
{
    const block_part p = tile_at(&r->passes[phase], k);
    const int tells = phase == r->looks; /* the summary */
    if (read_tile(r, &p, l, tells ? summary : NULL, codes, bytes, error))
        return -1;
    if (phase < r->looks) {
        look(r, &p, l);
        return 0;
    }
    for (int slot = 0; slot < SLOTS; slot++)
        if (r->views[BLOCK_ROWS][slot].used || r->views[BLOCK_COLUMNS][slot].used)
            quantise_slot(r, (size_t)phase, &p, l, slot);
    *n += tells ? p.rows * p.cols : 0;
    return 0;
}

/* ---- what was found ---- */

void blockrun_take(const blockrun *r, const blocklane *l, group *g)
{
    (void)r;
    for (size_t i = 0; i < l->count; i++)
        mpsim_block_stats_merge(&g->blocks[i].stats, &l->found[i]);
}

/* A tensor of one dimension has no columns: all of it is left out there. */
void blockrun_end(const blockrun *r, group *g, uint64_t n)
{
    for (size_t i = 0; i < g->n_blocks; i++) {
        block_sums *b = &g->blocks[i];
        const int is = applies(r, &r->targets->blocks.items[i]);
        b->elements = is ? n : 0;
        if (!is)
            mpsim_sum_merge(&b->stats.casts.sum_squares_left_out, &g->stats.sum_squares);
    }
}
