/* geometry.c -- a form with the sizes of one tensor: see quant.h. Shapes may be anything: no product overflows. */
#include "quant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIMIT (UINT64_C(1) << 56) /* of elements, with room for padding and bytes */

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int
refuse(char *why, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, size, format, ap);
    va_end(ap);
    return -1;
}

static uint64_t padded(uint64_t n, uint64_t side)
{
    return quant_up(n, side) * side;
}

/* The product of the sides; -1 if it is too large to count with. */
static int count(quant_shape *s)
{
    s->count = 1;
    for (size_t i = 0; i < s->rank; i++)
        if (s->sides[i] == 0) {
            s->count = 0;
            return 0;
        }
    for (size_t i = 0; i < s->rank; i++) {
        if (s->sides[i] > LIMIT / s->count)
            return -1;
        s->count *= s->sides[i];
    }
    return 0;
}

static void matrix(quant_shape *s, uint64_t rows, uint64_t cols)
{
    s->rank = 2;
    s->sides[0] = rows;
    s->sides[1] = cols;
}

/* ---- from a tensor ---- */

static int set_matrix(quant_geometry *g, size_t rank, const uint64_t *shape, char *why, size_t size)
{
    if (rank < 2 || rank > g->form->rank)
        return refuse(why, size, "layout %s does not hold blocks of %zu dimension%s", g->form->layout, rank,
                      rank == 1 ? "" : "s");
    g->tensor.rank = rank;
    memcpy(g->tensor.sides, shape, rank * sizeof *shape);
    quant_shape above = g->tensor;
    above.rank = rank - 1;
    for (size_t i = 0; i < rank; i++)
        if (shape[i] > LIMIT)
            return refuse(why, size, "it is too large");
    if (count(&g->tensor) || count(&above))
        return refuse(why, size, "it is too large");
    g->rows = above.count;
    g->cols = shape[rank - 1];
    return 0;
}

/* Elements of a block along a dimension of n. */
static uint64_t block_side(uint32_t own, uint32_t asked, uint64_t n)
{
    const uint32_t side = own == QUANT_ANY ? asked : own;
    return side == QUANT_WHOLE || side == QUANT_ANY ? n ? n : 1 : side;
}

static int set_blocks(quant_geometry *g, uint32_t block_rows, uint32_t block_cols, char *why, size_t size)
{
    const quant_form *f = g->form;
    g->block_rows = block_side(f->block_rows, block_rows, g->rows);
    g->block_cols = block_side(f->block_cols, block_cols, g->cols);
    if (g->swizzled && g->block_rows > 1 && g->block_cols > 1)
        g->block_rows = 1;
    const uint64_t down = f->multiple_rows ? f->multiple_rows : g->block_rows;
    const uint64_t across = f->multiple_cols ? f->multiple_cols : g->block_cols;
    if (g->rows % down || g->cols % across)
        return refuse(why, size,
                      "its %" PRIu64 " %s are not a multiple of %" PRIu64 ", as blocks of %" PRIu64 "x%" PRIu64
                      " of %s need",
                      g->rows % down ? g->rows : g->cols, g->rows % down ? "rows" : "columns",
                      g->rows % down ? down : across, g->block_rows, g->block_cols, f->layout);
    g->grid_rows = quant_up(g->rows, g->block_rows);
    g->grid_cols = quant_up(g->cols, g->block_cols);
    return 0;
}

static void set_codes(quant_geometry *g)
{
    quant_shape *s = &g->parts[QUANT_CODES];
    const int transposed = g->form->code_shape == QUANT_TRANSPOSED;
    g->lines = transposed ? g->cols : g->rows;
    g->line_codes = transposed ? g->rows : g->cols;
    g->line_bytes = quant_packed(g->form->packing, g->line_codes);
    *s = g->tensor;
    if (transposed) {
        matrix(s, g->lines, g->line_bytes);
    } else if (g->form->code_shape == QUANT_SPLIT) {
        s->sides[s->rank - 1] = g->grid_cols;
        s->sides[s->rank++] = quant_packed(g->form->packing, g->block_cols);
    } else {
        s->sides[s->rank - 1] = g->line_bytes;
    }
    (void)count(s); /* no more than the tensor's, but for bits left over in a row */
}

/* The plain order. */
static void set_scales(quant_geometry *g)
{
    const quant_form *f = g->form;
    quant_shape *s = &g->parts[QUANT_SCALES];
    switch (f->arrangement) {
    case QUANT_GRID:
        if (g->block_rows == 1) {
            *s = g->tensor;
            s->sides[s->rank - 1] = g->grid_cols;
        } else {
            matrix(s, g->grid_rows, g->grid_cols);
        }
        break;
    case QUANT_PADDED:
        matrix(s, padded(g->grid_rows, f->pad_rows), padded(g->grid_cols, f->pad_cols));
        break;
    case QUANT_PADDED_TRANSPOSED:
        matrix(s, padded(g->grid_cols, f->pad_rows), padded(g->grid_rows, f->pad_cols));
        break;
    case QUANT_SCALAR:
    case QUANT_ONE:
        s->rank = f->arrangement == QUANT_ONE;
        s->sides[0] = 1;
        break;
    }
    g->line_scales = s->rank ? s->sides[s->rank - 1] : 1;
}

static int set_swizzled(quant_geometry *g, char *why, size_t size)
{
    quant_shape *s = &g->parts[QUANT_SCALES];
    const int down = g->block_rows > g->block_cols;
    const uint64_t outer = down ? g->grid_cols : g->grid_rows, inner = down ? g->grid_rows : g->grid_cols;
    const uint64_t each = g->tensor.sides[g->tensor.rank - 2];
    switch (g->form->swizzle) {
    case QUANT_UNSWIZZLED:
        return refuse(why, size, "%s has no swizzled scales for blocks of %" PRIu64 "x%" PRIu64, g->form->layout,
                      g->block_rows, g->block_cols);
    case QUANT_AS_PLAIN:
        return 0;
    case QUANT_TILES:
        break;
    }
    if (g->form->rank == QUANT_RANK_MAX || g->tensor.rank == 2) {
        matrix(s, 32 * quant_up(outer, 128), 16 * quant_up(inner, 4));
        return 0;
    }
    if (each % 128)
        return refuse(why, size, "the swizzled scales of %s need a multiple of 128 rows in each matrix, not %" PRIu64,
                      g->form->layout, each);
    s->sides[s->rank - 2] = each / 128 * 32;
    s->sides[s->rank - 1] = 16 * quant_up(inner, 4);
    return 0;
}

int quant_geometry_of(quant_geometry *g, const quant_form *f, size_t rank, const uint64_t *shape, uint32_t block_rows,
                      uint32_t block_cols, int swizzled, char *why, size_t size)
{
    memset(g, 0, sizeof *g);
    g->form = f;
    g->swizzled = swizzled;
    if (set_matrix(g, rank, shape, why, size) || set_blocks(g, block_rows, block_cols, why, size))
        return -1;
    set_codes(g);
    set_scales(g);
    if (swizzled && set_swizzled(g, why, size))
        return -1;
    quant_shape *tensor = &g->parts[QUANT_TENSOR_SCALE];
    tensor->rank = f->tensor_rank;
    tensor->sides[0] = tensor->count = 1;
    if (count(&g->parts[QUANT_CODES]) || count(&g->parts[QUANT_SCALES]))
        return refuse(why, size, "it is too large");
    return 0;
}

/* ---- from the parts ---- */

/* Codes in so many bytes; -1 if that is no number of them. */
static int unpacked(const quant_form *f, uint64_t bytes, uint64_t *codes)
{
    static const uint8_t each[][2] = {
        [QUANT_BYTES] = {1, 1}, [QUANT_NIBBLES] = {2, 1}, [QUANT_SIXES] = {4, 3}, [QUANT_SIXES_TORCHAO] = {4, 3}};
    const uint8_t *e = each[f->packing];
    if (bytes % e[1] || bytes > LIMIT)
        return -1;
    *codes = bytes / e[1] * e[0];
    return 0;
}

static int logical_shape(const quant_form *f, const quant_shape *codes, int packed, quant_shape *to)
{
    if (codes->rank < 2 || codes->rank > QUANT_RANK_MAX)
        return -1;
    *to = *codes;
    uint64_t *last = &to->sides[to->rank - 1];
    if (packed && unpacked(f, *last, last))
        return -1;
    if (f->code_shape == QUANT_SPLIT) {
        if (to->rank < 3 || *last != f->block_cols || last[-1] > LIMIT / f->block_cols)
            return -1;
        to->rank--;
        to->sides[to->rank - 1] *= f->block_cols;
    } else if (f->code_shape == QUANT_TRANSPOSED) {
        const uint64_t cols = to->sides[0];
        memmove(to->sides, to->sides + 1, (to->rank - 1) * sizeof *to->sides);
        to->sides[to->rank - 1] = cols;
    }
    return 0;
}

/* The side of blocks of which n elements make `blocks`; UINT32_MAX if none is plausible. */
static uint32_t side_of(uint64_t n, uint64_t blocks)
{
    if (blocks == n)
        return 1;
    if (blocks == 1)
        return QUANT_WHOLE;
    for (uint32_t side = 2; side <= UINT32_C(1) << 30; side *= 2)
        if (quant_up(n, side) == blocks)
            return side;
    return QUANT_ANY;
}

static int same_shape(const quant_shape *a, const quant_shape *b)
{
    if (a->rank == b->rank && memcmp(a->sides, b->sides, a->rank * sizeof *a->sides) == 0)
        return 1;
    const quant_shape *of[] = {a, b}; /* one number, as [] or [1] */
    for (size_t k = 0; k < 2; k++)
        if (of[k]->rank > 1 || (of[k]->rank == 1 && of[k]->sides[0] != 1))
            return 0;
    return 1;
}

int quant_geometry_from(quant_geometry *g, const quant_form *f, const quant_shape *codes, const quant_shape *scales,
                        int swizzled, int packed, char *why, size_t size)
{
    quant_shape tensor;
    uint32_t block_rows = f->block_rows, block_cols = f->block_cols;
    if (logical_shape(f, codes, packed, &tensor))
        return refuse(why, size, "the codes have none of the shapes of %s of %s", f->type, f->layout);
    if (block_rows == QUANT_ANY || block_cols == QUANT_ANY) {
        if (scales->rank < 2 || scales->rank > QUANT_RANK_MAX)
            return refuse(why, size, "the scales are not a matrix");
        const size_t last = tensor.rank - 1;
        if (block_cols == QUANT_ANY)
            block_cols = side_of(tensor.sides[last], scales->sides[scales->rank - 1]);
        if (block_rows == QUANT_ANY)
            block_rows = side_of(tensor.sides[last - 1], scales->sides[scales->rank - 2]);
        if (block_rows == QUANT_ANY || block_cols == QUANT_ANY)
            return refuse(why, size, "the shape of the scales fits no blocks of the codes");
    }
    if (quant_geometry_of(g, f, tensor.rank, tensor.sides, block_rows, block_cols, swizzled, why, size))
        return -1;
    if (!same_shape(&g->parts[QUANT_SCALES], scales))
        return refuse(why, size, "the shape of the scales does not fit that of the codes");
    return 0;
}
