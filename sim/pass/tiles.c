/* tiles.c -- see tiles.h. */
#include "tiles.h"

#include <string.h>

int pass_block_in_rows(const trace_tensor *x)
{
    int long_axes = 0;
    for (size_t k = 0; k + 1 < x->rank; k++)
        long_axes += x->shape[k] > 1;
    return long_axes > 1 && pass_elements_by_columns(x);
}

uint64_t pass_block_stored(const trace_tensor *x, uint64_t i)
{
    uint64_t at = 0, step = x->count;
    for (size_t k = x->rank; k-- > 0; i /= x->shape[k]) {
        step /= x->shape[k];
        at += i % x->shape[k] * step;
    }
    return at;
}

block_matrix pass_block_matrix_of(const trace_tensor *x)
{
    const uint64_t last = x->rank ? x->shape[x->rank - 1] : 1, others = last ? x->count / last : 0;
    const int transposed = x->fortran && x->rank > 1 && !pass_block_in_rows(x);
    return (block_matrix){.rows = transposed ? last : others,
                          .cols = transposed ? others : last,
                          .transposed = transposed,
                          .line = x->rank < 2};
}

/* ---- units ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    const uint64_t of_a = a / common_divisor(a, b);
    return of_a > UINT64_MAX / b ? UINT64_MAX : of_a * b;
}

block_unit pass_block_unit_join(block_unit a, block_unit b)
{
    return (block_unit){common_multiple(a.rows, b.rows), common_multiple(a.cols, b.cols)};
}

block_unit pass_block_unit_of(const block_target *t, int transposed)
{
    const uint64_t across = t->recipe.block_cols ? t->recipe.block_cols : 1;
    const block_unit along = {t->recipe.block_rows ? t->recipe.block_rows : 1,
                              t->transform ? common_multiple(across, t->transform) : across};
    const block_unit other = {along.cols, along.rows};
    if (t->axis == BLOCK_REQUANTISED)
        return pass_block_unit_join(along, other);
    return (t->axis == BLOCK_COLUMNS) != transposed ? other : along;
}

/* ---- runs ---- */

static uint64_t round_up(uint64_t i, uint64_t unit, uint64_t most)
{
    const uint64_t rest = i % unit;
    return rest == 0 ? i : unit - rest > most - i ? most : i - rest + unit;
}

uint64_t pass_block_align(const block_list *l, const trace_tensor *x, uint64_t i)
{
    const block_matrix m = pass_block_matrix_of(x);
    block_unit all = {1, 1};
    if (l->count == 0 || i >= x->count)
        return i;
    for (size_t k = 0; k < l->count; k++)
        if (!m.line || l->items[k].axis == BLOCK_ROWS)
            all = pass_block_unit_join(all, pass_block_unit_of(&l->items[k], m.transposed));
    uint64_t row = i / m.cols, col = i % m.cols;
    if (all.rows == 1 || m.rows == 1)
        return row * m.cols + round_up(col, all.cols, m.cols);
    row = round_up(row + (col > 0), all.rows, m.rows);
    return row * m.cols;
}

size_t pass_block_parts(block_part parts[BLOCK_PARTS], const block_matrix *m, uint64_t first, uint64_t end)
{
    size_t n = 0;
    while (first < end) {
        const uint64_t row = first / m->cols, col = first % m->cols, left = end - first;
        block_part *p = &parts[n++];
        if (col == 0 && left >= m->cols)
            *p = (block_part){row, 0, left / m->cols, m->cols};
        else
            *p = (block_part){row, col, 1, left < m->cols - col ? left : m->cols - col};
        first += p->rows * p->cols;
    }
    return n;
}

/* ---- tiles ---- */

static uint64_t at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

/* The largest multiple of a unit up to n, at least one of it. */
static uint64_t multiple(uint64_t n, uint64_t unit)
{
    return n < unit ? unit : n / unit * unit;
}

/* Rows of a tile that has not all columns: one, or enough for columns of several blocks. */
static uint64_t height(block_unit unit)
{
    enum { ENOUGH = 128 };
    const uint64_t rows = round_up(ENOUGH, unit.rows, UINT64_MAX);
    return unit.rows > 1 && rows <= BLOCK_TILE / unit.cols ? rows : unit.rows;
}

/* Tiles with all columns if as many fit in `most` elements with `high` rows; else of so many rows. */
static block_tiling tile(const block_part *of, block_unit unit, uint64_t high, uint64_t most)
{
    block_tiling t = {.of = *of};
    if (of->rows == 0 || of->cols == 0)
        return t;
    high = at_most(high, of->rows);
    if (of->cols <= most / high) {
        t.cols = of->cols;
        t.rows = at_most(multiple(BLOCK_TILE / of->cols, unit.rows), of->rows);
    } else {
        t.cols = at_most(multiple(BLOCK_TILE / high, unit.cols), of->cols);
        t.rows = high;
    }
    t.across = (of->cols - 1) / t.cols + 1;
    t.count = ((of->rows - 1) / t.rows + 1) * t.across;
    return t;
}

block_tiling pass_block_tile(const block_part *of, block_unit unit)
{
    return tile(of, unit, height(unit), BLOCK_TILE);
}

block_tiling pass_block_tile_lines(const block_part *of, block_unit unit)
{
    return tile(of, unit, unit.rows, BLOCK_TILE_MOST);
}

block_part pass_block_tile_at(const block_tiling *t, uint64_t k)
{
    const uint64_t row = k / t->across * t->rows, col = k % t->across * t->cols;
    return (block_part){t->of.row + row, t->of.col + col, at_most(t->rows, t->of.rows - row),
                        at_most(t->cols, t->of.cols - col)};
}

/* ---- the elements of a tile ---- */

/* n elements that lie one behind the other. */
static int read_run(const block_reader *r, uint64_t first, uint64_t n, float *x, size_t at, elements_beyond *beyond,
                    trace_error *error)
{
    const uint64_t most = r->bytes / r->from->width;
    for (uint64_t i = 0, m; i < n; i += m) {
        m = n - i < most ? n - i : most;
        if (pass_elements_codes(r->from, first + i, r->codes, (size_t)m, error))
            return -1;
        pass_elements_floats(r->from, x, at + (size_t)i, r->codes, (size_t)m, beyond);
        if (r->tell && r->tell(r->context, first + i, r->codes, (size_t)m, error))
            return -1;
    }
    return 0;
}

int pass_block_read(const block_reader *r, const block_part *p, float *x, elements_beyond *beyond, trace_error *error)
{
    const int whole = p->cols == r->cols; /* rows of it lie one behind the other */
    const uint64_t n = whole ? p->rows * p->cols : p->cols, runs = whole ? 1 : p->rows;
    for (uint64_t i = 0; i < runs; i++)
        if (read_run(r, (p->row + i) * r->cols + p->col, n, x, (size_t)(i * n), beyond, error))
            return -1;
    return 0;
}

enum { SIDE = 4 };

/* Four rows of four at a time, which the compiler keeps in registers. */
static void transpose_square(float *to, const float *from, size_t rows, size_t cols)
{
    float x[SIDE][SIDE], y[SIDE][SIDE];
    for (size_t a = 0; a < SIDE; a++)
        memcpy(x[a], from + a * cols, sizeof x[a]);
    for (size_t b = 0; b < SIDE; b++)
        for (size_t a = 0; a < SIDE; a++)
            y[b][a] = x[a][b];
    for (size_t b = 0; b < SIDE; b++)
        memcpy(to + b * rows, y[b], sizeof y[b]);
}

void pass_block_transpose(float *to, const float *from, size_t rows, size_t cols)
{
    const size_t most = rows / SIDE * SIDE, wide = cols / SIDE * SIDE;
    for (size_t i = 0; i < most; i += SIDE) {
        for (size_t j = 0; j < wide; j += SIDE)
            transpose_square(to + j * rows + i, from + i * cols + j, rows, cols);
        for (size_t j = wide; j < cols; j++)
            for (size_t a = i; a < i + SIDE; a++)
                to[j * rows + a] = from[a * cols + j];
    }
    for (size_t i = most; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

void pass_block_transpose_bytes(uint8_t *to, const uint8_t *from, size_t rows, size_t cols)
{
    enum { NEAR = 32 }; /* both ways in the cache */
    for (size_t i0 = 0; i0 < rows; i0 += NEAR)
        for (size_t j0 = 0; j0 < cols; j0 += NEAR)
            for (size_t i = i0; i < rows && i < i0 + NEAR; i++)
                for (size_t j = j0; j < cols && j < j0 + NEAR; j++)
                    to[j * rows + i] = from[i * cols + j];
}
